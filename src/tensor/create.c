/* SPDX-License-Identifier: MIT
 *
 * Creates tensors: options, new memory or the program's, and the calls whose
 * tensors hold one value.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>

#include "base/base.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <string.h>

void iris_tensor_options_init_sized(struct iris_tensor_options *options,
                                    size_t size)
{
    if (iris_i_sized_init(options, size, 0) &&
        size > offsetof(struct iris_tensor_options, dtype)) {
        options->dtype = IRIS_DTYPE_DEFAULT;
    }
}

static iris_status_t check_options(const iris_t *iris,
                                   const struct iris_tensor_request *request)
{
    const struct iris_tensor_options *options = &request->options;

    if (options->dtype != IRIS_DTYPE_DEFAULT &&
        iris_dtype_size((iris_dtype_t)options->dtype) == 0) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "%s: dtype %d is not valid; pass an iris_dtype_t, or "
            "IRIS_DTYPE_DEFAULT",
            request->type->name, options->dtype);
    }
    if (options->format < IRIS_FORMAT_PRESERVE ||
        options->format > IRIS_FORMAT_CHANNELS_LAST_3D) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: format %d is not valid; pass an "
                           "iris_memory_format_t",
                           request->type->name, (int)options->format);
    }
    return IRIS_OK;
}

iris_status_t iris_i_tensor_begin(iris_t *iris,
                                  const struct iris_tensor_options *options,
                                  struct iris_tensor_request *request)
{
    iris_status_t status = iris_i_enter(iris, request->type->name);

    if (status != IRIS_OK) {
        return status;
    }
    iris_tensor_options_init(&request->options);
    request->checked = iris_i_sized_take(iris_i_log(iris), request->type->name,
                                         "iris_tensor_options_init", options,
                                         &request->options);
    if (request->checked == IRIS_OK) {
        request->checked = check_options(iris, request);
    }
    if (request->options.dtype != IRIS_DTYPE_DEFAULT) {
        request->dtype = (iris_dtype_t)request->options.dtype;
    }
    return IRIS_OK;
}

/* ---- In new memory ---- */

/* The state of a call inside the heap's allocation. */
struct making {
    iris_t *iris;
    const struct iris_tensor_request *request;
    iris_tensor_t tensor;
    struct iris_stream *stream;
};

/* Without a stream of the program, waits for work on the default stream first.
 * In a capture of that stream the wait fails, so the fill does not become part
 * of the graph. */
static iris_status_t fill_new(void *arg, void *ptr)
{
    struct making *making = arg;
    const struct iris_tensor_request *request = making->request;
    struct iris_queue *queue = iris_i_queue(making->iris);
    int waits = request->options.stream == NULL;
    iris_status_t status = IRIS_OK;

    making->tensor.data = making->tensor.owner = ptr;
    if (waits) {
        status = iris_i_stream_synchronize(queue, making->stream);
    }
    if (status == IRIS_OK && iris_tensor_numel(&making->tensor) != 0) {
        status = request->fill(making->iris, &making->tensor, request->arg,
                               making->stream);
    }
    return status == IRIS_OK && waits
               ? iris_i_stream_synchronize(queue, making->stream)
               : status;
}

static void end_fill(void *arg)
{
    const struct making *making = arg;

    (void)iris_i_stream_synchronize(iris_i_queue(making->iris), making->stream);
}

static iris_status_t create_new(struct making *making, iris_status_t checked,
                                iris_tensor_t *tensor_p)
{
    const struct iris_tensor_request *request = making->request;
    size_t bytes = checked == IRIS_OK ? iris_tensor_bytes(&making->tensor) : 0;
    struct iris_heap_request heap = {.type = request->type,
                                     .bytes = bytes,
                                     .alignment = IRIS_ALIGNMENT,
                                     .checked = checked,
                                     .arg = making};
    void *ptr;
    iris_status_t status;

    if (bytes == 0) {
        heap.bytes = iris_dtype_size(request->dtype);
    }
    if (request->fill != NULL) {
        heap.fill = fill_new;
        heap.end_fill = end_fill;
    }
    status = iris_i_heap_allocate(iris_i_heap(making->iris), &heap, &ptr);
    if (status == IRIS_OK) {
        making->tensor.data = making->tensor.owner = ptr;
        *tensor_p = making->tensor;
    }
    return status;
}

/* ---- In `out` ---- */

static iris_status_t check_out(const iris_t *iris,
                               const struct iris_tensor_request *request)
{
    const iris_tensor_t *out = request->options.out;
    const char *call = request->type->name;
    const struct iris_named_argument argument = {iris_i_log(iris), call,
                                                 "the output tensor"};
    int64_t numel = iris_i_shape_numel(&request->shape);
    iris_status_t status = iris_i_tensor_check(&argument, out);

    if (status != IRIS_OK) {
        return status;
    }
    if (iris_tensor_numel(out) != numel) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the output tensor has %lld elements, but %lld "
                           "are required; pass one of this size",
                           call, (long long)iris_tensor_numel(out),
                           (long long)numel);
    }
    if (out->dtype != request->dtype) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the output tensor has dtype %s, but %s is "
                           "required; pass one of it, or ask for another dtype",
                           call, iris_dtype_name(out->dtype),
                           iris_dtype_name(request->dtype));
    }
    if (!iris_tensor_is_symmetric(iris, out)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the output tensor, at %p, is not on the "
                           "symmetric heap; pass one that a creation call made",
                           call, out->data);
    }
    return IRIS_OK;
}

static iris_status_t create_in_out(struct making *making,
                                   iris_tensor_t *tensor_p)
{
    const struct iris_tensor_request *request = making->request;
    const iris_tensor_t *out = request->options.out;
    int64_t strides[IRIS_TENSOR_DIMS_MAX];
    iris_status_t status = check_out(making->iris, request);

    if (status != IRIS_OK) {
        return status;
    }
    if (!iris_i_layout_reshape(out, &request->shape, strides)) {
        return iris_i_fail(iris_i_log(making->iris), IRIS_ERR_INVALID,
                           "%s: the output tensor's strides do not let it be "
                           "seen in the shape that is asked for; pass a "
                           "contiguous one, or one of that shape",
                           request->type->name);
    }
    making->tensor =
        iris_i_tensor_make(out->data, request->dtype, &request->shape, strides);
    making->tensor.owner = out == tensor_p ? out->owner : NULL;
    if (request->options.format != IRIS_FORMAT_PRESERVE &&
        !iris_tensor_is_contiguous(&making->tensor, request->options.format)) {
        return iris_i_fail(iris_i_log(making->iris), IRIS_ERR_INVALID,
                           "%s: the output tensor is not in memory format %d; "
                           "pass one that is, or no format",
                           request->type->name, (int)request->options.format);
    }
    if (request->fill != NULL && iris_tensor_numel(out) != 0) {
        status = request->fill(making->iris, &making->tensor, request->arg,
                               making->stream);
    }
    if (status == IRIS_OK) {
        *tensor_p = making->tensor;
    }
    return status;
}

iris_status_t iris_i_tensor_create(iris_t *iris,
                                   const struct iris_tensor_request *request,
                                   iris_tensor_t *tensor_p)
{
    struct making making = {.iris = iris, .request = request};
    const struct iris_named_argument shape = {iris_i_log(iris),
                                              request->type->name, "the shape"};
    int64_t strides[IRIS_TENSOR_DIMS_MAX];
    iris_status_t status = request->checked;

    if (status == IRIS_OK && tensor_p == NULL) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "%s: tensor_p is NULL; pass where to put the "
                             "tensor",
                             request->type->name);
    }
    if (status == IRIS_OK) {
        status = iris_i_shape_check(&shape, &request->shape, request->dtype);
    }
    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris_i_queue(iris),
                                       request->options.stream, &making.stream);
    }
    if (request->options.out != NULL) {
        return status == IRIS_OK ? create_in_out(&making, tensor_p) : status;
    }
    if (status == IRIS_OK) {
        iris_i_layout_strides(&request->shape, request->options.format,
                              request->like, strides);
        making.tensor =
            iris_i_tensor_make(NULL, request->dtype, &request->shape, strides);
    }
    return create_new(&making, status, tensor_p);
}

/* ---- Tensors of one value ---- */

static iris_status_t fill_value(iris_t *iris, const iris_tensor_t *tensor,
                                const void *arg, iris_stream_t *stream)
{
    return iris_i_tensor_fill(iris, tensor, arg, stream);
}

/* The rest of a call whose tensor is filled with `value`. */
static iris_status_t create_filled(iris_t *iris,
                                   struct iris_tensor_request *request,
                                   iris_value_t value, iris_tensor_t *tensor_p)
{
    uint64_t element[2];
    const struct iris_argument argument = {iris_i_log(iris),
                                           request->type->name, "value", value};

    if (request->checked == IRIS_OK) {
        request->checked =
            iris_i_value_convert(&argument, request->dtype, element);
    }
    request->fill = fill_value;
    request->arg = element;
    return iris_i_tensor_create(iris, request, tensor_p);
}

static iris_dtype_t dtype_of(iris_value_t value)
{
    switch (value.kind) {
    case IRIS_VALUE_BOOL:
        return IRIS_DTYPE_BOOL;
    case IRIS_VALUE_INT:
    case IRIS_VALUE_UINT:
        return IRIS_DTYPE_I64;
    case IRIS_VALUE_COMPLEX:
        return IRIS_DTYPE_COMPLEX64;
    default:
        return IRIS_DTYPE_F32;
    }
}

iris_status_t iris_empty(iris_t *iris, iris_shape_t shape,
                         const struct iris_tensor_options *options,
                         iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_empty",
                                               IRIS_TENSOR_CALL_FIELDS};
    struct iris_tensor_request request = {
        .type = &type, .shape = shape, .dtype = IRIS_DTYPE_F32};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    return status == IRIS_OK ? iris_i_tensor_create(iris, &request, tensor_p)
                             : status;
}

iris_status_t iris_full(iris_t *iris, iris_shape_t shape, iris_value_t value,
                        const struct iris_tensor_options *options,
                        iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_full",
                                               IRIS_TENSOR_CALL_FIELDS};
    struct iris_tensor_request request = {
        .type = &type, .shape = shape, .dtype = dtype_of(value)};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    return status == IRIS_OK ? create_filled(iris, &request, value, tensor_p)
                             : status;
}

/* A malformed `like` is an error on every rank, as are all wrong arguments. */
iris_status_t iris_zeros_like(iris_t *iris, const iris_tensor_t *like,
                              const struct iris_tensor_options *options,
                              iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_zeros_like",
                                               IRIS_TENSOR_CALL_FIELDS};
    struct iris_tensor_request request = {.type = &type, .like = like};
    iris_status_t status;

    if (like != NULL) {
        request.shape = iris_i_tensor_shape(like);
        request.dtype = like->dtype;
    }
    status = iris_i_tensor_begin(iris, options, &request);
    if (status == IRIS_OK && request.checked == IRIS_OK) {
        const struct iris_named_argument argument = {iris_i_log(iris),
                                                     type.name, "like"};

        request.checked = iris_i_tensor_check(&argument, like);
    }
    return status == IRIS_OK
               ? create_filled(iris, &request, iris_value_int(0), tensor_p)
               : status;
}

iris_status_t iris_tensor_free(iris_t *iris, iris_tensor_t *tensor)
{
    iris_status_t status = iris_i_enter(iris, "iris_tensor_free");
    iris_status_t checked = IRIS_OK;

    if (status != IRIS_OK) {
        return status;
    }
    if (tensor == NULL || tensor->owner == NULL) {
        checked =
            iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                        "iris_tensor_free: tensor %s; pass the tensor of a "
                        "creation call, once",
                        tensor == NULL ? "is NULL"
                                       : "owns no memory: it is a view, or was "
                                         "freed before");
    }
    status = iris_i_heap_release(
        iris_i_heap(iris), checked == IRIS_OK ? tensor->owner : NULL, checked);
    if (status == IRIS_OK) {
        tensor->data = tensor->owner = NULL;
    }
    return status;
}
