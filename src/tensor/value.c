/* SPDX-License-Identifier: MIT
 *
 * Numbers as elements of a dtype, and elements as text.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/device/core/float8.h>

#include "base/base.h"
#include "base/processor.h"
#include "context/context.h"
#include "queue/queue.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Converts a program's numbers to elements of a dtype; accepts and refuses the
 * same numbers as PyTorch.
 */

/* The range of a dtype: all numbers from lowest to highest, as doubles, and
 * whether they are integers. 2^63 and 2^64 are the first numbers that are too
 * large for their types. */
struct range {
    double lowest;
    double highest;
    int is_signed;
    int bits; /* width of an integer; 0: a float */
};

static double power_of_two(int exponent)
{
    return exponent == 64 ? 0x1p64 : (double)((uint64_t)1 << exponent);
}

static struct range range_of(iris_dtype_t dtype)
{
    struct range range = {.bits = (int)iris_dtype_size(dtype) * 8};

    if (dtype >= IRIS_DTYPE_I8 && dtype <= IRIS_DTYPE_U64) {
        range.is_signed = dtype <= IRIS_DTYPE_I64;
        range.highest = power_of_two(range.bits - range.is_signed) - 1;
        range.lowest = range.is_signed ? -range.highest - 1 : 0;
        return range;
    }
    switch (dtype) {
    case IRIS_DTYPE_F16:
        return (struct range){-65504, 65504, 1, 0};
    case IRIS_DTYPE_F8E4M3:
        return (struct range){-448, 448, 1, 0};
    case IRIS_DTYPE_F8E5M2:
        return (struct range){-57344, 57344, 1, 0};
    case IRIS_DTYPE_BF16: /* 2^128 minus one unit in the last place */
        return (struct range){-0x1.fep127, 0x1.fep127, 1, 0};
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        return (struct range){-0x1.fffffep127, 0x1.fffffep127, 1, 0};
    default:
        return (struct range){-INFINITY, INFINITY, 1, 0};
    }
}

int iris_i_value_is_whole(iris_value_t value)
{
    return value.kind == IRIS_VALUE_BOOL || value.kind == IRIS_VALUE_INT ||
           value.kind == IRIS_VALUE_UINT;
}

/* The real part, as the nearest double. */
static double number_of(iris_value_t value)
{
    return value.kind == IRIS_VALUE_UINT  ? (double)value.as.u
           : iris_i_value_is_whole(value) ? (double)value.as.i
                                          : value.as.f[0];
}

/* Size of the range's text for messages. */
#define TEXT_BYTES 64
static const char *text_of(iris_value_t value, char text[TEXT_BYTES])
{
    if (value.kind == IRIS_VALUE_UINT) {
        snprintf(text, TEXT_BYTES, "%llu", (unsigned long long)value.as.u);
    } else if (iris_i_value_is_whole(value)) {
        snprintf(text, TEXT_BYTES, "%lld", (long long)value.as.i);
    } else if (value.kind == IRIS_VALUE_FLOAT) {
        iris_i_print(text, TEXT_BYTES, "%.17g", value.as.f[0]);
    } else {
        iris_i_print(text, TEXT_BYTES, "%.9g%+.9gi", value.as.f[0],
                     value.as.f[1]);
    }
    return text;
}

static iris_status_t fail_range(const struct iris_argument *argument,
                                iris_dtype_t dtype)
{
    struct range range = range_of(dtype);
    char text[TEXT_BYTES];

    return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                       "%s: %s %s cannot be converted to %s, which holds %s "
                       "from %.10g to %.10g; pass such a number, or ask for "
                       "another dtype",
                       argument->call, argument->name,
                       text_of(argument->value, text), iris_dtype_name(dtype),
                       range.bits != 0 ? "whole numbers" : "real numbers",
                       range.lowest, range.highest);
}

/* Negative integers wrap around in unsigned dtypes, down to -MAX. */
static int whole_fits(iris_value_t value, struct range range)
{
    uint64_t size = value.as.i < 0 && value.kind == IRIS_VALUE_INT
                        ? 0 - value.as.u
                        : value.as.u;
    uint64_t most =
        range.bits == 64 ? UINT64_MAX : ((uint64_t)1 << range.bits) - 1;

    if (range.is_signed) {
        most >>= 1;
        most += value.kind == IRIS_VALUE_INT && value.as.i < 0;
    }
    return size <= most;
}

/* Converts to an integer of the dtype, in the low bytes of *bits_p; 0: out of
 * range. */
static int to_integer(iris_value_t value, iris_dtype_t dtype, uint64_t *bits_p)
{
    struct range range = range_of(dtype);
    double number = number_of(value);

    if (iris_i_value_is_whole(value)) {
        *bits_p = value.as.u;
        return whole_fits(value, range);
    }
    /* Written so that NaN fails. The highest 64-bit integer rounds up to a
     * double that does not fit. */
    if (!(number >= range.lowest && number <= range.highest &&
          number < power_of_two(range.bits - range.is_signed))) {
        return 0;
    }
    *bits_p = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    return 1;
}

/* Infinity and NaN are unchanged. */
static int float_fits(double number, iris_dtype_t dtype)
{
    struct range range = range_of(dtype);

    return isnan(number) || isinf(number) ||
           (number >= range.lowest && number <= range.highest);
}

static void put_f32(float number, iris_dtype_t dtype, void *element_p)
{
    iris_f16_t f16 = iris_f16_from_f32(number);
    iris_bf16_t bf16 = iris_bf16_from_f32(number);
    iris_f8e4m3_t f8e4m3 = iris_f8e4m3_from_f32(number);
    iris_f8e5m2_t f8e5m2 = iris_f8e5m2_from_f32(number);

    if (dtype == IRIS_DTYPE_F16) {
        memcpy(element_p, &f16, sizeof f16);
    } else if (dtype == IRIS_DTYPE_BF16) {
        memcpy(element_p, &bf16, sizeof bf16);
    } else if (dtype == IRIS_DTYPE_F8E4M3) {
        memcpy(element_p, &f8e4m3, sizeof f8e4m3);
    } else if (dtype == IRIS_DTYPE_F8E5M2) {
        memcpy(element_p, &f8e5m2, sizeof f8e5m2);
    } else {
        memcpy(element_p, &number, sizeof number);
    }
}

/* The float nearest to the value: integers are rounded once. */
static float to_f32(iris_value_t value)
{
    return value.kind == IRIS_VALUE_UINT  ? (float)value.as.u
           : iris_i_value_is_whole(value) ? (float)value.as.i
                                          : (float)value.as.f[0];
}

static void put_float(iris_value_t value, iris_dtype_t dtype, char *element_p)
{
    double parts[2] = {number_of(value),
                       value.kind == IRIS_VALUE_COMPLEX ? value.as.f[1] : 0};
    float imaginary = (float)parts[1];

    if (dtype == IRIS_DTYPE_F64) {
        memcpy(element_p, parts, sizeof parts[0]);
    } else if (dtype == IRIS_DTYPE_COMPLEX128) {
        memcpy(element_p, parts, sizeof parts);
    } else if (dtype == IRIS_DTYPE_COMPLEX64) {
        put_f32(to_f32(value), IRIS_DTYPE_F32, element_p);
        memcpy(element_p + sizeof imaginary, &imaginary, sizeof imaginary);
    } else {
        put_f32(to_f32(value), dtype, element_p);
    }
}

static int convert_value(iris_value_t value, iris_dtype_t dtype,
                         void *element_p)
{
    int has_imaginary = value.kind == IRIS_VALUE_COMPLEX && value.as.f[1] != 0;
    struct range range = range_of(dtype);
    uint64_t bits;

    if (dtype == IRIS_DTYPE_BOOL) {
        bits = number_of(value) != 0; /* for a complex number, the real part */
        memcpy(element_p, &bits, 1);
        return 1;
    }
    if (has_imaginary && !iris_i_dtype_is_complex(dtype)) {
        return 0;
    }
    if (range.bits != 0) {
        if (!to_integer(value, dtype, &bits)) {
            return 0;
        }
        memcpy(element_p, &bits, iris_dtype_size(dtype));
        return 1;
    }
    if (!float_fits(number_of(value), dtype) ||
        (has_imaginary && !float_fits(value.as.f[1], dtype))) {
        return 0;
    }
    put_float(value, dtype, element_p);
    return 1;
}

iris_status_t iris_i_value_convert(const struct iris_argument *argument,
                                   iris_dtype_t dtype, void *element_p)
{
    uint64_t fp;
    int fits;

    if ((unsigned)argument->value.kind > IRIS_VALUE_COMPLEX) {
        return iris_i_fail(
            argument->log, IRIS_ERR_INVALID,
            "%s: %s has the unknown kind %d; make it by IRIS_VALUE()",
            argument->call, argument->name, (int)argument->value.kind);
    }
    fp = iris_i_fp_enter();
    fits = convert_value(argument->value, dtype, element_p);
    iris_i_fp_leave(fp);
    return fits ? IRIS_OK : fail_range(argument, dtype);
}

/* ---- Elements ---- */

/* An integer's bits, sign-extended. */
static uint64_t read_bits(const void *element, iris_dtype_t dtype)
{
    unsigned unused = 64 - 8 * (unsigned)iris_dtype_size(dtype);
    uint64_t bits = 0;

    memcpy(&bits, element, iris_dtype_size(dtype));
    return dtype >= IRIS_DTYPE_I8 && dtype <= IRIS_DTYPE_I64
               ? (uint64_t)((int64_t)(bits << unused) >> unused)
               : bits;
}

static double part_of(const void *element, iris_dtype_t dtype, int part)
{
    union {
        iris_f16_t f16;
        iris_bf16_t bf16;
        iris_f8e4m3_t f8e4m3;
        iris_f8e5m2_t f8e5m2;
        float f32[2];
        double f64[2];
    } bits;

    memcpy(&bits, element, iris_dtype_size(dtype));
    switch (dtype) {
    case IRIS_DTYPE_F16:
        return iris_f16_to_f32(bits.f16);
    case IRIS_DTYPE_BF16:
        return iris_bf16_to_f32(bits.bf16);
    case IRIS_DTYPE_F8E4M3:
        return iris_f8e4m3_to_f32(bits.f8e4m3);
    case IRIS_DTYPE_F8E5M2:
        return iris_f8e5m2_to_f32(bits.f8e5m2);
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        return bits.f32[part];
    case IRIS_DTYPE_F64:
    case IRIS_DTYPE_COMPLEX128:
        return bits.f64[part];
    case IRIS_DTYPE_U64:
        return (double)read_bits(element, dtype);
    default:
        return (double)(int64_t)read_bits(element, dtype);
    }
}

double iris_i_element_part(const void *element, iris_dtype_t dtype, int part)
{
    uint64_t fp = iris_i_fp_enter();
    double value = part_of(element, dtype, part);

    iris_i_fp_leave(fp);
    return value;
}

/* ---------------------------------------------------------------------------
 * A tensor as text, in brackets as in NumPy and PyTorch.
 */

/* A tensor with more elements shows only the ends of its dimensions. */
#define ALL_ELEMENTS 1000
#define END_ELEMENTS 3

/* A text in progress: it may need more space than there is. */
struct text {
    char *start;
    size_t bytes;
    size_t length;
};

static void append_text(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append_text(struct text *text, const char *format, ...)
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
static int64_t skip_hidden(const struct summary *summary, int dim, int64_t i)
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
static iris_status_t fetch_shown(iris_t *iris, struct summary *summary, int dim,
                                 int64_t offset)
{
    const iris_tensor_t *tensor = summary->tensor;
    iris_status_t status = IRIS_OK;

    if (dim == tensor->ndim) {
        return fetch_one(iris, summary, offset);
    }
    for (int64_t i = 0; i < tensor->shape[dim] && status == IRIS_OK; i++) {
        i = skip_hidden(summary, dim, i);
        status = fetch_shown(iris, summary, dim + 1,
                             offset + i * tensor->strides[dim]);
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
                : fetch_shown(iris, summary, 0, 0);
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
        append_text(text, read_bits(element, dtype) ? "true" : "false");
    } else if (dtype <= IRIS_DTYPE_I64) {
        append_text(text, "%lld", (long long)read_bits(element, dtype));
    } else if (dtype <= IRIS_DTYPE_U64) {
        append_text(text, "%llu",
                    (unsigned long long)read_bits(element, dtype));
    } else {
        append_text(text, iris_dtype_size(dtype) <= 2 ? "%.4g" : "%.6g",
                    iris_i_element_part(element, dtype, 0));
    }
    if (iris_i_dtype_is_complex(dtype)) {
        append_text(text, "%+.6gi", iris_i_element_part(element, dtype, 1));
    }
}

/* The separator between two elements of a dimension: a line for each row. */
static void append_between(struct text *text, const struct summary *summary,
                           int dim)
{
    int lines = summary->tensor->ndim - 1 - dim;

    append_text(text, lines == 0 ? ", " : ",");
    for (int i = 0; i < lines; i++) {
        append_text(text, "\n");
    }
    append_text(text, "%*s", lines == 0 ? 0 : dim + 1, "");
}

static void append_dims(struct text *text, struct summary *summary, int dim)
{
    if (dim == summary->tensor->ndim) {
        append_element(text, summary);
        return;
    }
    append_text(text, "[");
    for (int64_t i = 0; i < summary->tensor->shape[dim]; i++) {
        if (i > 0) {
            append_between(text, summary, dim);
        }
        if (is_left_out(summary, dim, i)) {
            append_text(text, "...");
            append_between(text, summary, dim);
        }
        i = skip_hidden(summary, dim, i);
        append_dims(text, summary, dim + 1);
    }
    append_text(text, "]");
}

static void append_head(struct text *text, const iris_tensor_t *tensor)
{
    append_text(text, "%s (", iris_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->ndim; i++) {
        append_text(text, i == 0 ? "%lld" : ", %lld",
                    (long long)tensor->shape[i]);
    }
    append_text(text, tensor->ndim > 1 ? ")\n" : ") ");
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
