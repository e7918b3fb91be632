/* SPDX-License-Identifier: MIT
 *
 * Creates tensors, and fills and copies them.
 *
 * A call resolves its options, checks everything, and then either allocates
 * with all ranks or uses the memory of `out` alone. A failed check is carried
 * into the allocation as this rank's status, so that all ranks fail together.
 * *tensor_p is written on success only. Fills go to the stream of the options;
 * without one the allocation ends when all ranks have filled.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/device/core/half.h>
#include <iris/device/kernels/fill_args.h>

#include "tensor/kernels.h"
#include "base/base.h"
#include "base/processor.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Fills and copies of tensors with any strides: contiguous parts as ranges,
 * other parts by a kernel that computes each element's address.
 */

#define BLOCK 256           /* lanes of a workgroup */
#define WG_BYTES (16 << 10) /* bytes that justify a workgroup */
#define WGS_PER_CU 8

iris_status_t iris_i_tensor_launch(iris_t *iris,
                                   const struct iris_kernel *kernel,
                                   const iris_tensor_t *tensor,
                                   const void *args, iris_stream_t *stream)
{
    size_t grid = iris_tensor_bytes(tensor) / WG_BYTES + 1;
    size_t most = (size_t)iris_i_device(iris)->num_cus * WGS_PER_CU;
    struct iris_launch_request request = {
        .kernel = kernel,
        .grid = (unsigned)(grid < most ? grid : most),
        .block = BLOCK,
        .args = args,
        .args_bytes = kernel->args_bytes,
        .own = true};

    return iris_i_launch(iris_i_queue(iris), &request, stream);
}

static iris_status_t launch_kernel(iris_t *iris, enum iris_tensor_op op,
                                   const iris_tensor_t *tensor,
                                   const void *args, iris_stream_t *stream)
{
    return iris_i_tensor_launch(iris, iris_i_tensor_kernel(op, tensor->dtype),
                                tensor, args, stream);
}

/* ---- Dimensions of one or two tensors, joined as far as possible ---- */

struct nest {
    struct iris_d_shape shape;
    int64_t strides[2][IRIS_D_DIMS_MAX];
};

/* Inserts a dimension in the order of the first tensor's strides, the largest
 * first; after others with the same stride. */
static void insert_dim(struct nest *nest, int64_t size, int64_t stride,
                       int64_t other)
{
    int at = nest->shape.ndim++;

    while (at > 0 && nest->strides[0][at - 1] < stride) {
        nest->shape.sizes[at] = nest->shape.sizes[at - 1];
        nest->strides[0][at] = nest->strides[0][at - 1];
        nest->strides[1][at] = nest->strides[1][at - 1];
        at--;
    }
    nest->shape.sizes[at] = size;
    nest->strides[0][at] = stride;
    nest->strides[1][at] = other;
}

static int can_join(const struct nest *nest, int at)
{
    int64_t size = nest->shape.sizes[at];

    return nest->strides[0][at - 1] == nest->strides[0][at] * size &&
           nest->strides[1][at - 1] == nest->strides[1][at] * size;
}

/* Joins dimensions that are contiguous in both tensors. */
static void join_dims(struct nest *nest)
{
    int last = 0;

    for (int i = 1; i < nest->shape.ndim; i++) {
        nest->shape.sizes[last + 1] = nest->shape.sizes[i];
        nest->strides[0][last + 1] = nest->strides[0][i];
        nest->strides[1][last + 1] = nest->strides[1][i];
        if (can_join(nest, last + 1)) {
            nest->shape.sizes[last + 1] *= nest->shape.sizes[last];
        } else {
            last++;
            continue;
        }
        nest->shape.sizes[last] = nest->shape.sizes[last + 1];
        nest->strides[0][last] = nest->strides[0][last + 1];
        nest->strides[1][last] = nest->strides[1][last + 1];
    }
    nest->shape.ndim = nest->shape.ndim == 0 ? 0 : last + 1;
}

/* A tensor without dimensions becomes one dimension of size 1. */
static void nest_of(const iris_tensor_t *tensor, const iris_tensor_t *other,
                    struct nest *nest_p)
{
    memset(nest_p, 0, sizeof *nest_p);
    nest_p->shape.count = (uint64_t)iris_tensor_numel(tensor);
    nest_p->shape.width = (int32_t)iris_dtype_size(tensor->dtype);
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] != 1) {
            insert_dim(nest_p, tensor->shape[i], tensor->strides[i],
                       other->strides[i]);
        }
    }
    join_dims(nest_p);
    if (nest_p->shape.ndim == 0) {
        insert_dim(nest_p, 1, 1, 1);
    }
}

static int is_range(const struct nest *nest)
{
    return nest->shape.ndim == 1 && nest->strides[0][0] == 1 &&
           nest->strides[1][0] == 1;
}

/* ---- Fills ---- */

/* Repeats the first `width` bytes up to 16. */
static void repeat_element(const void *element, size_t width,
                           uint64_t *pattern_p)
{
    char *bytes = (char *)pattern_p;

    for (size_t i = 0; i < 2 * sizeof *pattern_p; i += width) {
        memcpy(bytes + i, element, width);
    }
}

static iris_status_t fill_strided(iris_t *iris, const iris_tensor_t *tensor,
                                  const struct nest *nest,
                                  const uint64_t *element,
                                  iris_stream_t *stream)
{
    struct iris_fill_strided_args args = {.data = tensor->data,
                                          .shape = nest->shape,
                                          .element = {element[0], element[1]}};

    memcpy(args.strides, nest->strides[0], sizeof args.strides);
    return launch_kernel(iris, IRIS_TENSOR_FILL_STRIDED, tensor, &args, stream);
}

/* Enqueues the fill of a tensor with one element; any strides. */
static iris_status_t fill_tensor(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *element, iris_stream_t *stream)
{
    struct nest nest;
    uint64_t pattern[2];

    nest_of(tensor, tensor, &nest);
    repeat_element(element, (size_t)nest.shape.width, pattern);
    if (is_range(&nest)) {
        struct iris_fill_args args = {
            tensor->data, iris_tensor_bytes(tensor), {pattern[0], pattern[1]}};

        return launch_kernel(iris, IRIS_TENSOR_FILL, tensor, &args, stream);
    }
    return fill_strided(iris, tensor, &nest, pattern, stream);
}

/* ---- Copies ---- */

static iris_status_t check_copy(const iris_t *iris, const iris_tensor_t *to,
                                const iris_tensor_t *from, int by_kernel)
{
    static const char call[] = "iris_tensor_copy";
    const struct iris_named_argument to_argument = {iris_i_log(iris), call,
                                                    "to"};
    const struct iris_named_argument from_argument = {iris_i_log(iris), call,
                                                      "from"};
    iris_status_t status = iris_i_tensor_check_access(
        iris_i_heap(iris), &to_argument, to, by_kernel + 1);
    int same;

    if (status == IRIS_OK) {
        status = iris_i_tensor_check_access(iris_i_heap(iris), &from_argument,
                                            from, by_kernel);
    }
    if (status != IRIS_OK) {
        return status;
    }
    same = to->dtype == from->dtype && to->ndim == from->ndim;
    for (int i = 0; same && i < to->ndim; i++) {
        same = to->shape[i] == from->shape[i];
    }
    return same ? IRIS_OK
                : iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                              "%s: the tensors differ in dtype or shape; pass "
                              "two that agree",
                              call);
}

static iris_status_t copy_strided(iris_t *iris, const iris_tensor_t *to,
                                  const iris_tensor_t *from,
                                  const struct nest *nest,
                                  iris_stream_t *stream)
{
    struct iris_copy_strided_args args = {
        .to = to->data, .from = from->data, .shape = nest->shape};

    memcpy(args.to_strides, nest->strides[0], sizeof args.to_strides);
    memcpy(args.from_strides, nest->strides[1], sizeof args.from_strides);
    return launch_kernel(iris, IRIS_TENSOR_COPY_STRIDED, to, &args, stream);
}

iris_status_t iris_tensor_copy(iris_t *iris, const iris_tensor_t *to,
                               const iris_tensor_t *from, iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_tensor_copy");
    struct nest nest;

    if (status == IRIS_OK) {
        status = check_copy(iris, to, from, 0);
    }
    if (status != IRIS_OK || iris_tensor_numel(to) == 0) {
        return status;
    }
    nest_of(to, from, &nest);
    if (is_range(&nest)) {
        return iris_i_copy(iris_i_queue(iris), to->data, from->data,
                           iris_tensor_bytes(to), stream);
    }
    status = check_copy(iris, to, from, IRIS_BY_KERNEL);
    return status == IRIS_OK ? copy_strided(iris, to, from, &nest, stream)
                             : status;
}

/* ---------------------------------------------------------------------------
 * Creates tensors: options, new memory or the program's, and the calls whose
 * tensors hold one value.
 */

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
    request->fill = fill_tensor;
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

/* ---------------------------------------------------------------------------
 * iris_arange(): the number of elements, the start and the step.
 */

static int is_integer(iris_dtype_t dtype)
{
    return dtype >= IRIS_DTYPE_I8 && dtype <= IRIS_DTYPE_U64;
}

struct span {
    iris_value_t start;
    iris_value_t end;
    iris_value_t step;
};

static int is_whole(const struct span *span)
{
    return iris_i_value_is_whole(span->start) &&
           iris_i_value_is_whole(span->end) &&
           iris_i_value_is_whole(span->step);
}

/* The three numbers as doubles, and as integers if the dtype is an integer. */
static iris_status_t read_span(const iris_t *iris, const struct span *span,
                               int whole, double *real_p, int64_t *whole_p)
{
    static const char *const names[] = {"start", "end", "step"};
    const iris_value_t values[] = {span->start, span->end, span->step};
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < 3 && status == IRIS_OK; i++) {
        const struct iris_argument argument = {iris_i_log(iris), "iris_arange",
                                               names[i], values[i]};

        status = iris_i_value_convert(&argument, IRIS_DTYPE_F64, &real_p[i]);
        if (status == IRIS_OK && whole) {
            status =
                iris_i_value_convert(&argument, IRIS_DTYPE_I64, &whole_p[i]);
        }
    }
    return status;
}

static iris_status_t fail_count(const iris_t *iris, const struct span *span,
                                iris_dtype_t dtype, const char *why)
{
    double numbers[3] = {0};
    int64_t whole[3];

    (void)read_span(iris, span, 0, numbers, whole);
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                       "iris_arange: %s (start %.17g, end %.17g, step %.17g, "
                       "dtype %s)",
                       why, numbers[0], numbers[1], numbers[2],
                       iris_dtype_name(dtype));
}

static const char step_is_0[] =
    "step must be non-zero; pass one that leads from start to end";
static const char no_range[] =
    "no element: end is not beyond start in the direction of step; pass a "
    "range that has some";

/* The count for integers: exact for all values. */
static iris_status_t count_whole(const iris_t *iris, const struct span *span,
                                 const int64_t *numbers, iris_dtype_t dtype,
                                 int64_t *count_p)
{
    int64_t start = numbers[0], end = numbers[1], step = numbers[2];
    uint64_t distance = step > 0 ? (uint64_t)end - (uint64_t)start
                                 : (uint64_t)start - (uint64_t)end;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;

    if (step == 0) {
        return fail_count(iris, span, dtype, step_is_0);
    }
    if (step > 0 ? start >= end : start <= end) {
        return fail_count(iris, span, dtype, no_range);
    }
    distance = distance / size + (distance % size != 0);
    if (distance > INT64_MAX) {
        return fail_count(iris, span, dtype,
                          "too many elements; pass a larger step");
    }
    *count_p = (int64_t)distance;
    return IRIS_OK;
}

static iris_status_t count_real(const iris_t *iris, const struct span *span,
                                const double *numbers, iris_dtype_t dtype,
                                int64_t *count_p)
{
    double start = numbers[0], end = numbers[1], step = numbers[2];
    uint64_t fp = iris_i_fp_enter();
    double quotient = (end - start) / step;

    iris_i_fp_leave(fp);

    if (step == 0) {
        return fail_count(iris, span, dtype, step_is_0);
    }
    if (!isfinite(start) || !isfinite(end) || !isfinite(step)) {
        return fail_count(iris, span, dtype,
                          "a number that is not finite; pass numbers that are");
    }
    if (step > 0 ? start >= end : start <= end) {
        return fail_count(iris, span, dtype, no_range);
    }
    if (!(quotient < 0x1p62)) {
        return fail_count(iris, span, dtype,
                          "too many elements; pass a larger step");
    }
    *count_p = (int64_t)quotient + ((double)(int64_t)quotient < quotient);
    return IRIS_OK;
}

/* Fills in the row, except its address. */
static iris_status_t plan_arange(const iris_t *iris, const struct span *span,
                                 struct iris_tensor_request *request,
                                 struct iris_row_args *row)
{
    iris_dtype_t dtype = request->dtype;
    int all_whole = is_whole(span);
    int of_64 = dtype == IRIS_DTYPE_I64 || dtype == IRIS_DTYPE_U64;
    double real[3];
    int64_t whole[3] = {0};
    iris_status_t status;

    if (dtype == IRIS_DTYPE_BOOL || iris_i_dtype_is_complex(dtype) ||
        iris_i_dtype_is_float8(dtype)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_arange: dtype %s; pass one of integers or "
                           "real numbers of 16 bits or more",
                           iris_dtype_name(dtype));
    }
    status = read_span(iris, span, all_whole || is_integer(dtype), real, whole);
    if (status != IRIS_OK) {
        return status;
    }
    row->start = real[0];
    row->step = real[2];
    row->whole_start = (uint64_t)whole[0];
    row->whole_step = (uint64_t)whole[2];
    request->shape.ndim = 1;
    if (is_integer(dtype) && whole[2] == 0) {
        return fail_count(iris, span, dtype, step_is_0);
    }
    return all_whole || of_64
               ? count_whole(iris, span, whole, dtype, &request->shape.sizes[0])
               : count_real(iris, span, real, dtype, &request->shape.sizes[0]);
}

static iris_status_t fill_arange(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *arg, iris_stream_t *stream)
{
    struct iris_row_args args = *(const struct iris_row_args *)arg;

    args.data = tensor->data;
    args.count = tensor->shape[0];
    args.stride = args.count > 1 ? tensor->strides[0] : 1;
    return launch_kernel(iris, IRIS_TENSOR_ARANGE, tensor, &args, stream);
}

iris_status_t iris_arange(iris_t *iris, iris_value_t start, iris_value_t end,
                          iris_value_t step,
                          const struct iris_tensor_options *options,
                          iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_arange",
                                               IRIS_TENSOR_CALL_FIELDS};
    const struct span span = {start, end, step};
    struct iris_row_args row = {.data = NULL};
    struct iris_tensor_request request = {
        .type = &type,
        .dtype = is_whole(&span) ? IRIS_DTYPE_I64 : IRIS_DTYPE_F32,
        .fill = fill_arange,
        .arg = &row};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    if (status != IRIS_OK) {
        return status;
    }
    if (request.checked == IRIS_OK) {
        request.checked = plan_arange(iris, &span, &request, &row);
    }
    return iris_i_tensor_create(iris, &request, tensor_p);
}

/* ---------------------------------------------------------------------------
 * iris_linspace(): the ends and the step in the arithmetic of the dtype, as in
 * PyTorch. A complex row is two rows of real numbers.
 */

static const char call[] = "iris_linspace";

struct rows {
    struct iris_row_args row[2];
    int count;
    unsigned char start[16]; /* the element */
};

/* (end - start) / (count - 1), each operation rounded to the dtype. */
static double step_of(double start, double end, int64_t count,
                      iris_dtype_t dtype)
{
    float distance = (float)end - (float)start, steps = (float)(count - 1);

    switch (dtype) {
    case IRIS_DTYPE_F16:
        distance = iris_f16_to_f32(iris_f16_from_f32(distance));
        steps = iris_f16_to_f32(iris_f16_from_f32(steps));
        return iris_f16_to_f32(iris_f16_from_f32(distance / steps));
    case IRIS_DTYPE_BF16:
        distance = iris_bf16_to_f32(iris_bf16_from_f32(distance));
        steps = iris_bf16_to_f32(iris_bf16_from_f32(steps));
        return iris_bf16_to_f32(iris_bf16_from_f32(distance / steps));
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        return distance / steps;
    default:
        return (end - start) / (double)(count - 1);
    }
}

static void plan_row(const unsigned char *start, const unsigned char *end,
                     int part, const struct iris_tensor_request *request,
                     struct iris_row_args *row)
{
    int64_t count = request->shape.sizes[0];
    uint64_t fp;

    row->start = iris_i_element_part(start, request->dtype, part);
    row->end = iris_i_element_part(end, request->dtype, part);
    fp = iris_i_fp_enter();
    row->step =
        count < 2 ? 0 : step_of(row->start, row->end, count, request->dtype);
    iris_i_fp_leave(fp);
}

static iris_status_t plan_linspace(const iris_t *iris, iris_value_t start,
                                   iris_value_t end,
                                   const struct iris_tensor_request *request,
                                   struct rows *rows)
{
    const struct iris_argument first = {iris_i_log(iris), call, "start", start};
    const struct iris_argument last = {iris_i_log(iris), call, "end", end};
    unsigned char last_element[16];
    iris_dtype_t dtype = request->dtype;
    iris_status_t status;

    if (request->shape.sizes[0] < 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: steps is %lld; pass 0 or more", call,
                           (long long)request->shape.sizes[0]);
    }
    if (iris_i_dtype_is_float8(dtype)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: dtype %s; pass one of 16 bits or more", call,
                           iris_dtype_name(dtype));
    }
    rows->count = 1 + iris_i_dtype_is_complex(dtype);
    if (dtype == IRIS_DTYPE_BOOL ||
        (rows->count == 1 && (start.kind == IRIS_VALUE_COMPLEX ||
                              end.kind == IRIS_VALUE_COMPLEX))) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: dtype %s from %s numbers; pass %s", call,
                           iris_dtype_name(dtype),
                           dtype == IRIS_DTYPE_BOOL ? "any" : "complex",
                           dtype == IRIS_DTYPE_BOOL ? "one of numbers"
                                                    : "a complex dtype");
    }
    status = iris_i_value_convert(&first, dtype, rows->start);
    if (status == IRIS_OK) {
        status = iris_i_value_convert(&last, dtype, last_element);
    }
    for (int i = 0; i < rows->count && status == IRIS_OK; i++) {
        plan_row(rows->start, last_element, i, request, &rows->row[i]);
    }
    return status;
}

static iris_status_t fill_linspace(iris_t *iris, const iris_tensor_t *tensor,
                                   const void *arg, iris_stream_t *stream)
{
    const struct rows *rows = arg;
    size_t bytes = iris_dtype_size(tensor->dtype) / (size_t)rows->count;
    iris_status_t status = IRIS_OK;

    /* Uses the value directly: f64 does not hold every integer. */
    if (tensor->shape[0] == 1) {
        return fill_tensor(iris, tensor, rows->start, stream);
    }
    for (int i = 0; i < rows->count && status == IRIS_OK; i++) {
        struct iris_row_args args = rows->row[i];

        args.data = (char *)tensor->data + (size_t)i * bytes;
        args.count = tensor->shape[0];
        args.stride = args.count > 1 ? tensor->strides[0] : 1;
        args.stride *= rows->count;
        status =
            launch_kernel(iris, IRIS_TENSOR_LINSPACE, tensor, &args, stream);
    }
    return status;
}

iris_status_t iris_linspace(iris_t *iris, iris_value_t start, iris_value_t end,
                            int64_t steps,
                            const struct iris_tensor_options *options,
                            iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {call, IRIS_TENSOR_CALL_FIELDS};
    struct rows rows = {.count = 0};
    struct iris_tensor_request request = {
        .type = &type,
        .shape = {.ndim = 1, .sizes = {steps}},
        .dtype =
            start.kind == IRIS_VALUE_COMPLEX || end.kind == IRIS_VALUE_COMPLEX
                ? IRIS_DTYPE_COMPLEX64
                : IRIS_DTYPE_F32,
        .fill = fill_linspace,
        .arg = &rows};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    if (status != IRIS_OK) {
        return status;
    }
    if (request.checked == IRIS_OK) {
        request.checked = plan_linspace(iris, start, end, &request, &rows);
    }
    return iris_i_tensor_create(iris, &request, tensor_p);
}
