/* SPDX-License-Identifier: MIT
 *
 * A tensor as text, in brackets as in NumPy and PyTorch.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>

#include "base/base.h"
#include "context/context.h"
#include "queue/queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor with more elements shows only the ends of its dimensions. */
#define ALL_ELEMENTS 1000
#define END_ELEMENTS 3

/* A text in progress: it may need more space than there is. */
struct text {
    char *start;
    size_t bytes;
    size_t length;
};

static void append(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(struct text *text, const char *format, ...)
{
    size_t left = text->length < text->bytes ? text->bytes - text->length : 0;
    va_list args;
    int length;

    va_start(args, format);
    length = iris_i_vprint(left == 0 ? NULL : text->start + text->length, left,
                           format, args);
    va_end(args);
    text->length += length > 0 ? (size_t)length : 0;
}

/* The shown part of a tensor: with `ends`, only the ends of longer
 * dimensions. */
struct summary {
    const iris_tensor_t *tensor;
    int ends;
    unsigned char *elements; /* the shown elements, contiguous */
    size_t element_bytes;
    size_t count; /* so far */
};

static int is_left_out(const struct summary *summary, int dim, int64_t i)
{
    return summary->ends && summary->tensor->shape[dim] > 2 * END_ELEMENTS &&
           i >= END_ELEMENTS && i < summary->tensor->shape[dim] - END_ELEMENTS;
}

/* The index after the part that is left out at i. */
static int64_t skip(const struct summary *summary, int dim, int64_t i)
{
    return is_left_out(summary, dim, i)
               ? summary->tensor->shape[dim] - END_ELEMENTS
               : i;
}

/* ---- To the host ---- */

static iris_status_t fetch_one(iris_t *iris, struct summary *summary,
                               int64_t offset)
{
    size_t bytes = summary->element_bytes;
    const char *from =
        (const char *)summary->tensor->data + offset * (int64_t)bytes;
    unsigned char *to = summary->elements + summary->count++ * bytes;

    return iris_i_copy(iris_i_queue(iris), to, from, bytes, NULL);
}

/* Enqueues copies of the shown elements from dimension `dim` on, in order. */
static iris_status_t fetch(iris_t *iris, struct summary *summary, int dim,
                           int64_t offset)
{
    const iris_tensor_t *tensor = summary->tensor;
    iris_status_t status = IRIS_OK;

    if (dim == tensor->ndim) {
        return fetch_one(iris, summary, offset);
    }
    for (int64_t i = 0; i < tensor->shape[dim] && status == IRIS_OK; i++) {
        i = skip(summary, dim, i);
        status =
            fetch(iris, summary, dim + 1, offset + i * tensor->strides[dim]);
    }
    return status;
}

static size_t count_shown(const struct summary *summary)
{
    size_t count = 1;

    for (int dim = 0; dim < summary->tensor->ndim; dim++) {
        int64_t size = summary->tensor->shape[dim];

        count *= summary->ends && size > 2 * END_ELEMENTS ? 2 * END_ELEMENTS
                                                          : (size_t)size;
    }
    return count;
}

/* A contiguous tensor that is shown completely is copied at once. */
static iris_status_t fetch_all(iris_t *iris, struct summary *summary)
{
    const iris_tensor_t *tensor = summary->tensor;
    size_t count = count_shown(summary);
    iris_status_t status = IRIS_OK, ended;

    summary->elements = malloc(count * summary->element_bytes + 1);
    if (summary->elements == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "iris_tensor_format: no memory for %zu elements",
                           count);
    }
    if (count != 0) {
        status =
            !summary->ends &&
                    iris_tensor_is_contiguous(tensor, IRIS_FORMAT_CONTIGUOUS)
                ? iris_i_copy(iris_i_queue(iris), summary->elements,
                              tensor->data, iris_tensor_bytes(tensor), NULL)
                : fetch(iris, summary, 0, 0);
    }
    /* Waits even if enqueueing failed. */
    ended = iris_stream_synchronize(iris, NULL);
    summary->count = 0;
    return status == IRIS_OK ? ended : status;
}

/* ---- As text ---- */

/* As many digits as distinguish the type's numbers. */
static void append_element(struct text *text, struct summary *summary)
{
    iris_dtype_t dtype = summary->tensor->dtype;
    const void *element =
        summary->elements + summary->count++ * summary->element_bytes;

    if (dtype == IRIS_DTYPE_BOOL) {
        append(text, iris_i_element_bits(element, dtype) ? "true" : "false");
    } else if (dtype <= IRIS_DTYPE_I64) {
        append(text, "%lld", (long long)iris_i_element_bits(element, dtype));
    } else if (dtype <= IRIS_DTYPE_U64) {
        append(text, "%llu",
               (unsigned long long)iris_i_element_bits(element, dtype));
    } else {
        append(text, iris_dtype_size(dtype) <= 2 ? "%.4g" : "%.6g",
               iris_i_element_part(element, dtype, 0));
    }
    if (iris_i_dtype_is_complex(dtype)) {
        append(text, "%+.6gi", iris_i_element_part(element, dtype, 1));
    }
}

/* The separator between two elements of a dimension: a line for each row. */
static void append_between(struct text *text, const struct summary *summary,
                           int dim)
{
    int lines = summary->tensor->ndim - 1 - dim;

    append(text, lines == 0 ? ", " : ",");
    for (int i = 0; i < lines; i++) {
        append(text, "\n");
    }
    append(text, "%*s", lines == 0 ? 0 : dim + 1, "");
}

static void append_dims(struct text *text, struct summary *summary, int dim)
{
    if (dim == summary->tensor->ndim) {
        append_element(text, summary);
        return;
    }
    append(text, "[");
    for (int64_t i = 0; i < summary->tensor->shape[dim]; i++) {
        if (i > 0) {
            append_between(text, summary, dim);
        }
        if (is_left_out(summary, dim, i)) {
            append(text, "...");
            append_between(text, summary, dim);
        }
        i = skip(summary, dim, i);
        append_dims(text, summary, dim + 1);
    }
    append(text, "]");
}

static void append_head(struct text *text, const iris_tensor_t *tensor)
{
    append(text, "%s (", iris_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->ndim; i++) {
        append(text, i == 0 ? "%lld" : ", %lld", (long long)tensor->shape[i]);
    }
    append(text, tensor->ndim > 1 ? ")\n" : ") ");
}

iris_status_t iris_tensor_format(iris_t *iris, const iris_tensor_t *tensor,
                                 char *text, size_t bytes, size_t *needed_p)
{
    static const char call[] = "iris_tensor_format";
    struct iris_named_argument argument = {NULL, call, "tensor"};
    iris_status_t status = iris_i_enter(iris, call);
    struct text whole = {text, bytes, 0};
    struct summary summary = {.tensor = tensor};
    int64_t numel;

    if (status != IRIS_OK) {
        return status;
    }
    argument.log = iris_i_log(iris);
    status =
        iris_i_tensor_check_access(iris_i_heap(iris), &argument, tensor, 0);
    if (status != IRIS_OK) {
        return status;
    }
    if (text == NULL && bytes != 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: text is NULL; pass where to put %zu bytes",
                           call, bytes);
    }
    numel = iris_tensor_numel(tensor);
    summary.ends = numel > ALL_ELEMENTS || numel == 0; /* (2^40, 0), too */
    summary.element_bytes = iris_dtype_size(tensor->dtype);
    status = fetch_all(iris, &summary);
    if (status == IRIS_OK) {
        append_head(&whole, tensor);
        append_dims(&whole, &summary, 0);
        if (needed_p != NULL) {
            *needed_p = whole.length + 1;
        }
    }
    free(summary.elements);
    return status;
}
