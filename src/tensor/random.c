/* SPDX-License-Identifier: MIT
 *
 * Creates tensors of random numbers: chooses generator and kernel, and checks
 * that the dtype can hold the numbers.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/random.h>

#include "tensor/kernels.h"
#include "context/context.h"

iris_generator_t *iris_default_generator(iris_t *iris)
{
    return iris_i_enter(iris, "iris_default_generator") == IRIS_OK
               ? &iris->generator
               : NULL;
}

/* The numbers with which a call fills its tensor. */
struct numbers {
    enum iris_random_kind kind;
    iris_generator_t *generator;
    uint64_t low; /* of integers */
    uint64_t range;
};

/* Number of values of this number of elements: a complex one has two. */
static uint64_t count_of(const iris_tensor_t *tensor)
{
    return (uint64_t)iris_tensor_numel(tensor) *
           (iris_i_dtype_is_complex(tensor->dtype) ? 2 : 1);
}

static uint64_t blocks_of(const struct numbers *numbers,
                          const iris_tensor_t *tensor)
{
    uint64_t per_block =
        iris_i_random_kernel(numbers->kind, tensor->dtype).per_block;

    return (count_of(tensor) + per_block - 1) / per_block;
}

/* Sets the strides of elements whose memory order differs from the counting
 * order. The two parts of a complex number are an additional dimension. */
static void set_strides(const iris_tensor_t *tensor,
                        struct iris_random_args *args)
{
    int parts = iris_i_dtype_is_complex(tensor->dtype) ? 2 : 1;

    if (iris_tensor_is_contiguous(tensor, IRIS_FORMAT_CONTIGUOUS)) {
        return;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        args->sizes[i] = tensor->shape[i];
        args->strides[i] = tensor->strides[i] * parts;
    }
    args->ndim = tensor->ndim;
    if (parts == 2) {
        args->sizes[args->ndim] = 2;
        args->strides[args->ndim++] = 1;
    }
}

static iris_status_t fill_random(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *arg, iris_stream_t *stream)
{
    const struct numbers *numbers = arg;
    const struct iris_kernel *kernel =
        iris_i_random_kernel(numbers->kind, tensor->dtype).kernel;
    struct iris_random_args args = {
        .data = tensor->data,
        .count = count_of(tensor),
        .half = iris_i_dtype_is_complex(tensor->dtype),
        .seed = numbers->generator->seed,
        .sequence = numbers->generator->sequence,
        .offset = numbers->generator->offset,
        .low = numbers->low,
        .range = numbers->range,
    };

    if (numbers->kind == IRIS_RANDOM_INTEGER) {
        args.bias = ((uint64_t)1 << 32) % numbers->range;
    } else if (numbers->kind == IRIS_RANDOM_WIDE_INTEGER) {
        args.bias = (0 - numbers->range) % numbers->range;
    }
    set_strides(tensor, &args);
    return iris_i_tensor_launch(iris, kernel, tensor, &args, stream);
}

/* The rest of a call. After a failure, the generator's numbers remain for the
 * next call. Since all ranks learn of the failure, their generators stay
 * equal. */
static iris_status_t create_random(iris_t *iris,
                                   struct iris_tensor_request *request,
                                   struct numbers *numbers,
                                   iris_tensor_t *tensor_p)
{
    iris_generator_t *generator = request->options.generator;
    iris_status_t status;

    numbers->generator = generator != NULL ? generator : &iris->generator;
    request->fill = fill_random;
    request->arg = numbers;
    status = iris_i_tensor_create(iris, request, tensor_p);
    if (status == IRIS_OK) {
        numbers->generator->offset += blocks_of(numbers, tensor_p);
    }
    return status;
}

static iris_status_t create_real(iris_t *iris, enum iris_random_kind kind,
                                 struct iris_tensor_request request,
                                 const struct iris_tensor_options *options,
                                 iris_tensor_t *tensor_p)
{
    struct numbers numbers = {.kind = kind};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    if (status != IRIS_OK) {
        return status;
    }
    if (request.checked == IRIS_OK &&
        iris_i_random_kernel(kind, request.dtype).kernel == NULL) {
        request.checked = iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "%s: dtype %s has no such numbers; ask for a float or a complex "
            "dtype, or call iris_randint",
            request.type->name, iris_dtype_name(request.dtype));
    }
    return create_random(iris, &request, &numbers, tensor_p);
}

iris_status_t iris_rand(iris_t *iris, iris_shape_t shape,
                        const struct iris_tensor_options *options,
                        iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_rand",
                                               IRIS_TENSOR_CALL_FIELDS};
    struct iris_tensor_request request = {
        .type = &type, .shape = shape, .dtype = IRIS_DTYPE_F32};

    return create_real(iris, IRIS_RANDOM_UNIFORM, request, options, tensor_p);
}

iris_status_t iris_randn(iris_t *iris, iris_shape_t shape,
                         const struct iris_tensor_options *options,
                         iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_randn",
                                               IRIS_TENSOR_CALL_FIELDS};
    struct iris_tensor_request request = {
        .type = &type, .shape = shape, .dtype = IRIS_DTYPE_F32};

    return create_real(iris, IRIS_RANDOM_NORMAL, request, options, tensor_p);
}

/* ---- Integers ---- */

/* The integers from `least` to `most` are exact in the dtype. */
struct limits {
    int64_t least;
    int64_t most;
};

static const struct limits limits[] = {
    [IRIS_DTYPE_BOOL] = {0, 1},
    [IRIS_DTYPE_I8] = {INT8_MIN, INT8_MAX},
    [IRIS_DTYPE_I16] = {INT16_MIN, INT16_MAX},
    [IRIS_DTYPE_I32] = {INT32_MIN, INT32_MAX},
    [IRIS_DTYPE_I64] = {INT64_MIN, INT64_MAX},
    [IRIS_DTYPE_U8] = {0, UINT8_MAX},
    [IRIS_DTYPE_U16] = {0, UINT16_MAX},
    [IRIS_DTYPE_U32] = {0, UINT32_MAX},
    [IRIS_DTYPE_U64] = {0, INT64_MAX},
    [IRIS_DTYPE_F16] = {-(1 << 11), 1 << 11},
    [IRIS_DTYPE_BF16] = {-(1 << 8), 1 << 8},
    [IRIS_DTYPE_F32] = {-(1 << 24), 1 << 24},
    [IRIS_DTYPE_F64] = {-((int64_t)1 << 53), (int64_t)1 << 53},
};

static iris_status_t check_range(const iris_t *iris, int64_t low, int64_t high,
                                 iris_dtype_t dtype)
{
    if (iris_i_dtype_is_complex(dtype) || iris_i_dtype_is_float8(dtype)) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "iris_randint: dtype %s has no such numbers; ask for an integer or "
            "a real dtype of 16 bits or more",
            iris_dtype_name(dtype));
    }
    if (low >= high) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_randint: no number is from low %lld up to but "
                           "without high %lld; pass high above low",
                           (long long)low, (long long)high);
    }
    if (low < limits[dtype].least || high - 1 > limits[dtype].most) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_randint: dtype %s does not hold all numbers "
                           "from low %lld to high %lld - 1, but %lld to %lld; "
                           "pass others, or another dtype",
                           iris_dtype_name(dtype), (long long)low,
                           (long long)high, (long long)limits[dtype].least,
                           (long long)limits[dtype].most);
    }
    return IRIS_OK;
}

iris_status_t iris_randint(iris_t *iris, int64_t low, int64_t high,
                           iris_shape_t shape,
                           const struct iris_tensor_options *options,
                           iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_randint",
                                               IRIS_TENSOR_CALL_FIELDS};
    struct iris_tensor_request request = {
        .type = &type, .shape = shape, .dtype = IRIS_DTYPE_I64};
    struct numbers numbers = {.low = (uint64_t)low,
                              .range = (uint64_t)high - (uint64_t)low};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    if (status != IRIS_OK) {
        return status;
    }
    if (request.checked == IRIS_OK) {
        request.checked = check_range(iris, low, high, request.dtype);
    }
    numbers.kind = numbers.range <= (uint64_t)1 << 32
                       ? IRIS_RANDOM_INTEGER
                       : IRIS_RANDOM_WIDE_INTEGER;
    return create_random(iris, &request, &numbers, tensor_p);
}
