/* SPDX-License-Identifier: MIT
 *
 * Tensors on the symmetric heap. All ranks create a tensor together, their
 * devices fill it, and views share its memory without copies. docs/tensors.md
 * is the guide.
 *
 *     iris_tensor_t x, row;
 *     status = iris_zeros(iris, IRIS_SHAPE(4, 256), NULL, &x);
 *     status = iris_tensor_select(&x, 0, 2, &row);           // x[2]
 *     status = iris_tensor_as_remote(iris, &row, peer, &row); // of a peer
 *     status = iris_tensor_free(iris, &x);
 *
 * @use local; never blocks; apart
 */
#ifndef IRIS_TENSOR_H
#define IRIS_TENSOR_H

#include <iris/constants.h>
#include <iris/stream.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest number of dimensions of a tensor. */
#define IRIS_TENSOR_DIMS_MAX 8

/** Sizes of the dimensions, outermost first. A shape with no dimensions has one
 *  element; a shape with a size of 0 has no elements. Use IRIS_SHAPE(), or set
 *  the fields. */
typedef struct iris_shape {
    int ndim;
    int64_t sizes[IRIS_TENSOR_DIMS_MAX];
} iris_shape_t;

/** A tensor: a plain struct that the caller owns, and may copy and read.
 *  Element (i, j, ...) is at data + (i * strides[0] + j * strides[1] + ...)
 *  elements.
 *
 *  Every call checks its tensors. It returns IRIS_ERR_INVALID (a call without a
 *  status returns 0) for a tensor that is NULL or that has
 *    - fewer than 0 or more than IRIS_TENSOR_DIMS_MAX dimensions,
 *    - a negative size, or a dtype that does not exist,
 *    - more elements than memory can hold, or elements that span more than the
 *      address space with these strides,
 *    - elements, and data that is NULL or not aligned to the smaller of an
 *      element and 8 bytes.
 *  A call that reads or writes the elements also refuses a tensor that begins
 *  on a rank's heap and leaves it, or that runs into a heap. */
typedef struct iris_tensor {
    void *data; /**< The first element: symmetric, or in a peer's heap. */
    iris_dtype_t dtype;
    int ndim;
    int64_t shape[IRIS_TENSOR_DIMS_MAX];
    int64_t strides[IRIS_TENSOR_DIMS_MAX]; /**< In elements, not bytes. */
    void *owner; /**< The memory that iris_tensor_free() frees. NULL for a view
                      of another tensor's, a peer's or the program's memory. */
} iris_tensor_t;

/** Order of the elements in memory. */
typedef enum iris_memory_format {
    IRIS_FORMAT_PRESERVE = 0,         /**< Keeps the source tensor's format. A
                                        tensor created from scratch is
                                        contiguous. */
    IRIS_FORMAT_CONTIGUOUS = 1,       /**< The last dimension is dense. */
    IRIS_FORMAT_CHANNELS_LAST = 2,    /**< Dimensions N, C, H, W: C is dense.
                                        A tensor that has not 4 dimensions is
                                        contiguous. */
    IRIS_FORMAT_CHANNELS_LAST_3D = 3, /**< Dimensions N, C, D, H, W: C is dense.
                                        A tensor that has not 5 dimensions is
                                        contiguous. */
} iris_memory_format_t;

/** The kind of a number in a program. */
typedef enum iris_value_kind {
    IRIS_VALUE_BOOL = 0,
    IRIS_VALUE_INT = 1,  /**< as.i */
    IRIS_VALUE_UINT = 2, /**< as.u, more than INT64_MAX */
    IRIS_VALUE_FLOAT = 3,
    IRIS_VALUE_COMPLEX = 4, /**< as.f: real, imaginary */
} iris_value_kind_t;

/** A number of any kind. If a call does not specify an element type, the kind
 *  decides: bool, i64, f32 or complex64. Use IRIS_VALUE() or the functions
 *  below. */
typedef struct iris_value {
    iris_value_kind_t kind;
    union {
        int64_t i; /**< 0 or 1 for BOOL. */
        uint64_t u;
        double f[2];
    } as;
} iris_value_t;

/** A generator of random numbers: <iris/random.h>. */
typedef struct iris_generator iris_generator_t;

/** iris_tensor_options.dtype: the function's rule chooses the dtype. */
#define IRIS_DTYPE_DEFAULT (-1)

/** Options of creation calls. NULL in place of a pointer to them means the
 *  defaults. Call iris_tensor_options_init() before setting fields. Later
 *  versions add fields at the end. */
struct iris_tensor_options {
    size_t size; /**< Set by iris_tensor_options_init(). */
    int dtype;   /**< An iris_dtype_t, or IRIS_DTYPE_DEFAULT. */
    iris_memory_format_t format;
    const iris_tensor_t *out; /**< Fill this tensor's memory, not new memory. */
    iris_stream_t *stream; /**< Enqueue the fill on this stream (see below). */
    iris_generator_t *generator; /**< Generator of random numbers; NULL: the
                                      context's. */
};

/** Sets the defaults. Local, cannot fail.
 *  @param options  the struct to set */
#define iris_tensor_options_init(options) \
    iris_tensor_options_init_sized((options), sizeof *(options))

/** iris_tensor_options_init() for a struct of `size` bytes, which is the size
 *  in the caller's header. See iris_config_init_sized(). */
IRIS_API void
iris_tensor_options_init_sized(struct iris_tensor_options *options,
                               size_t size);

/* ---- Creation --------------------------------------------------------------
 *
 * Each call makes a tensor, which the caller owns until iris_tensor_free(), and
 * fills it with a kernel. Collective over the job, like iris_malloc(): every
 * rank makes the same call, for the same number of bytes; the values may differ.
 * A tensor without elements still has memory for one element.
 *
 * Without `stream` the call returns when the tensor is filled on every rank, as
 * iris_calloc() does, and waits for this rank's default stream. With a stream
 * the call enqueues the fill there, and returns when every rank has the memory.
 * A peer that writes to it must first know, by a barrier or a signal, that the
 * fill has completed.
 *
 * With `out` the call uses the memory of `out`, is local, and does not block: it
 * enqueues the fill on `stream`, or on the default stream. The call checks, in
 * this order, that `out` has the requested number of elements, has the requested
 * dtype, and is on this rank's heap. The result is a view of `out` with the
 * requested shape. It is the owner only if tensor_p is `out` itself. Either all
 * ranks pass `out` in a call, or no rank does.
 *
 * NULL options and IRIS_DTYPE_DEFAULT choose this dtype:
 *   empty, zeros, ones  f32
 *   linspace            f32; complex64 if start or end is complex
 *   full                the dtype of the value's kind (iris_value_t)
 *   arange              i64 if all its numbers are whole numbers, else f32
 *   zeros_like          the dtype of `like`
 *
 * IRIS_ERR_INVALID      more than IRIS_TENSOR_DIMS_MAX dimensions; a negative
 *                       size; more elements than memory can hold; an unknown
 *                       dtype, or one that the function cannot fill; a number
 *                       that the dtype cannot hold; options without
 *                       iris_tensor_options_init(); tensor_p is NULL; `out` does
 *                       not fit; not a live stream of this context
 *
 * Also returns the statuses of iris_malloc() and iris_launch(). The calls write
 * *tensor_p on success only.
 *
 * @use job; blocks; captured on a stream */

/** A tensor whose contents are undefined. */
IRIS_API iris_status_t iris_empty(iris_t *iris, iris_shape_t shape,
                                  const struct iris_tensor_options *options,
                                  iris_tensor_t *tensor_p);

/** A tensor with all elements equal to `value`, which is converted as PyTorch
 *  converts it: to integers by dropping the fraction, and to f16 and bf16 by way
 *  of f32. Every value except 0 becomes the bool true. A value outside the
 *  dtype's range gives IRIS_ERR_INVALID, and so do infinity and NaN for
 *  integers. As an exception, -1 to -MAX wrap around in an unsigned dtype.
 *  @param value  the number, from IRIS_VALUE() */
IRIS_API iris_status_t iris_full(iris_t *iris, iris_shape_t shape,
                                 iris_value_t value,
                                 const struct iris_tensor_options *options,
                                 iris_tensor_t *tensor_p);

/** A tensor of zeros with the shape, the dtype and the memory format of `like`,
 *  which may be anywhere.
 *  @param like  tensor with the shape, dtype and format to use */
IRIS_API iris_status_t iris_zeros_like(
    iris_t *iris, const iris_tensor_t *like,
    const struct iris_tensor_options *options, iris_tensor_t *tensor_p);

/** The numbers start, start + step, ... below `end`: one dimension of
 *  ceil((end - start) / step) elements. If all three are whole numbers, the
 *  count is exact for any size. Element i is start + step * i, rounded once; the
 *  arithmetic is i64 for integers, f32 for f16 and bf16, and f64 for f32 and
 *  f64. For integer dtypes, start and step lose their fractions (for i64 and u64
 *  before the elements are counted), and elements wrap around. bool and complex
 *  dtypes are refused. Also IRIS_ERR_INVALID: step is 0, or there are no
 *  elements because `end` is not beyond `start` in the direction of the step.
 *  @param start, end, step  numbers from IRIS_VALUE() */
IRIS_API iris_status_t iris_arange(iris_t *iris, iris_value_t start,
                                   iris_value_t end, iris_value_t step,
                                   const struct iris_tensor_options *options,
                                   iris_tensor_t *tensor_p);

/** `steps` evenly spaced numbers from `start` to `end`, with both ends exact.
 *  The first half is computed from the start and the second half from the end,
 *  in the arithmetic of the dtype. Integers are computed in f64 and then lose
 *  their fractions. f64 rounds ends of i64 and u64 beyond 2^53: UINT64_MAX stays
 *  UINT64_MAX, and INT64_MAX becomes 2^63 and wraps around, as in PyTorch on
 *  x86. 0 steps give no elements, and 1 step gives exactly `start`. bool is
 *  refused. Also IRIS_ERR_INVALID: steps is negative, or start or end is complex
 *  and the dtype is not.
 *  @param start, end  numbers from IRIS_VALUE()
 *  @param steps  number of elements */
IRIS_API iris_status_t iris_linspace(iris_t *iris, iris_value_t start,
                                     iris_value_t end, int64_t steps,
                                     const struct iris_tensor_options *options,
                                     iris_tensor_t *tensor_p);

/** Frees a tensor's memory on every rank, and makes *tensor a tensor without
 *  memory. Collective, with the rules of iris_free(). Do not use views of the
 *  memory afterwards. A tensor that iris_tensor_to_dlpack() has handed over is
 *  a view; the other library frees its memory.
 *
 *  IRIS_ERR_INVALID      *tensor is a view, or already freed
 *
 *  Also returns the statuses of iris_free().
 *  @use job; blocks; apart
 *  @param tensor  the tensor, which becomes one without memory */
IRIS_API iris_status_t iris_tensor_free(iris_t *iris, iris_tensor_t *tensor);

/* ---- Views and properties: local, without a context ------------------------
 *
 * A view has no memory of its own, and is not freed. view_p may point to the
 * tensor itself. After an error *view_p is unchanged.
 *
 * IRIS_ERR_INVALID      an argument is wrong; the message says which */

/** Number of elements. The result depends on ndim, shape and dtype only. */
IRIS_API int64_t iris_tensor_numel(const iris_tensor_t *tensor);

/** Number of bytes of these elements. */
static inline size_t iris_tensor_bytes(const iris_tensor_t *tensor)
{
    int64_t numel = iris_tensor_numel(tensor);

    return numel == 0 ? 0 : (size_t)numel * iris_dtype_size(tensor->dtype);
}

/** 1 if the elements lie in memory in that order, without gaps. A tensor
 *  without elements is contiguous in every format.
 *  @param format  order of the elements */
IRIS_API int iris_tensor_is_contiguous(const iris_tensor_t *tensor,
                                       iris_memory_format_t format);

/** A contiguous tensor in memory that the program allocated.
 *  @param data  the program's memory */
IRIS_API iris_status_t iris_tensor_wrap(void *data, iris_dtype_t dtype,
                                        iris_shape_t shape,
                                        iris_tensor_t *view_p);

/** The elements start, start + step, ... before `stop` of one dimension, with
 *  Python's rules: a negative dim, start or stop counts from the end, and start
 *  and stop are limited to the dimension's size. INT64_MAX as `stop` means the
 *  end. step is 1 or more.
 *  @param dim  the dimension; negative: from the end
 *  @param start, stop, step  elements of the dimension to take */
IRIS_API iris_status_t iris_tensor_slice(const iris_tensor_t *tensor, int dim,
                                         int64_t start, int64_t stop,
                                         int64_t step, iris_tensor_t *view_p);

/** The elements with one index in a dimension. The view does not have this
 *  dimension. A negative dim or index counts from the end.
 *  @param dim  the dimension; negative: from the end
 *  @param index  the element to take; negative: from the end */
IRIS_API iris_status_t iris_tensor_select(const iris_tensor_t *tensor, int dim,
                                          int64_t index, iris_tensor_t *view_p);

/** The dimensions in another order: dimension i of the view is dimension
 *  order[i] of the tensor. `order` has one number for each dimension.
 *  @param order  a dimension of the tensor for each of the view */
IRIS_API iris_status_t iris_tensor_permute(const iris_tensor_t *tensor,
                                           const int *order,
                                           iris_tensor_t *view_p);

/** The same elements in the same order, in another shape. One size may be -1,
 *  and is then computed from the others. The call fails if it would need a
 *  copy. */
IRIS_API iris_status_t iris_tensor_reshape(const iris_tensor_t *tensor,
                                           iris_shape_t shape,
                                           iris_tensor_t *view_p);

/* ---- Tensors and ranks -----------------------------------------------------
 */

/** 1 if every element is on this rank's own heap, or in memory that
 *  iris_as_symmetric() has added to it; also 1 for a tensor without elements.
 *  Otherwise, and on a bad context, 0. Local, does not block. */
IRIS_API int iris_tensor_is_symmetric(const iris_t *iris,
                                      const iris_tensor_t *tensor);

/** A view of the same tensor on `rank`'s heap, which kernels and copies of this
 *  rank read and write. Local, does not block.
 *
 *  IRIS_ERR_INVALID      the tensor is not symmetric, the rank is out of range,
 *                        or view_p is NULL
 *  IRIS_ERR_UNREACHABLE  that heap is not mapped here
 *  IRIS_ERR_STATE
 *  @use one node */
IRIS_API iris_status_t iris_tensor_as_remote(const iris_t *iris,
                                             const iris_tensor_t *tensor,
                                             int rank, iris_tensor_t *view_p);

/** Calls iris_as_symmetric() on the memory that a tensor's elements span, with
 *  any strides. *symmetric_p receives the same tensor on the heap; the caller
 *  frees it with iris_tensor_free(). Collective; every rank's tensor spans the
 *  same number of bytes. If memory is shared, later calls for the same memory
 *  return the same place, and the memory stays until each result has been freed.
 *  Otherwise each call makes a new copy. shared_p may be NULL. Returns the
 *  statuses of iris_as_symmetric().
 *  @use job; blocks; refused */
IRIS_API iris_status_t iris_tensor_as_symmetric(iris_t *iris,
                                                const iris_tensor_t *tensor,
                                                iris_tensor_t *symmetric_p,
                                                int *shared_p);

/** Copies the elements of `from` to `to` on the stream. The two have the same
 *  shape and dtype, and any strides; they must not overlap. Asynchronous. If
 *  both are one range of memory, the call copies as iris_memcpy() does.
 *  Otherwise a kernel copies, and this rank's device must reach both. Local.
 *
 *  IRIS_ERR_INVALID      shapes or dtypes differ, or a range leaves the heap
 *
 *  Also returns the statuses of iris_memcpy() and iris_launch().
 *  @use blocks if full; captured; one node
 *  @param to  target
 *  @param from  source, of the same shape and dtype */
IRIS_API iris_status_t iris_tensor_copy(iris_t *iris, const iris_tensor_t *to,
                                        const iris_tensor_t *from,
                                        iris_stream_t *stream);

/** Writes a tensor's dtype, shape and elements as text to `text`, which has room
 *  for `bytes` bytes. The text ends with a 0 byte, and is cut if it is too long.
 *  If the tensor has more than 1,000 elements, the text has the first and last
 *  three of each dimension. The call copies them to the host in order with the
 *  default stream, and waits for that. *needed_p, which may be NULL, receives
 *  the size of the whole text, with the 0 byte. Local.
 *
 *  IRIS_ERR_INVALID      tensor is NULL, or text is NULL and bytes is not 0
 *
 *  Also returns the statuses of iris_memcpy_sync().
 *  @use blocks; refused
 *  @param text  receives the text; may be NULL if `bytes` is 0
 *  @param needed_p  receives the size of the whole text; may be NULL */
IRIS_API iris_status_t iris_tensor_format(iris_t *iris,
                                          const iris_tensor_t *tensor,
                                          char *text, size_t bytes,
                                          size_t *needed_p);

/* ---- Shapes and values -----------------------------------------------------
 */

/** A number as a value. Local, cannot fail.
 *  @param value  the number
 *  @param real, imaginary  parts of the number */
static inline iris_value_t iris_value_bool(int value)
{
    iris_value_t result;

    result.kind = IRIS_VALUE_BOOL;
    result.as.i = value != 0;
    return result;
}

static inline iris_value_t iris_value_int(int64_t value)
{
    iris_value_t result;

    result.kind = IRIS_VALUE_INT;
    result.as.i = value;
    return result;
}

static inline iris_value_t iris_value_uint(uint64_t value)
{
    iris_value_t result;

    result.kind = value > INT64_MAX ? IRIS_VALUE_UINT : IRIS_VALUE_INT;
    result.as.u = value;
    return result;
}

static inline iris_value_t iris_value_float(double value)
{
    iris_value_t result;

    result.kind = IRIS_VALUE_FLOAT;
    result.as.f[0] = value;
    result.as.f[1] = 0;
    return result;
}

static inline iris_value_t iris_value_complex(double real, double imaginary)
{
    iris_value_t result;

    result.kind = IRIS_VALUE_COMPLEX;
    result.as.f[0] = real;
    result.as.f[1] = imaginary;
    return result;
}

/** iris_full() with 0 or 1, and f32 as the default dtype.
 *  @use job; blocks; captured on a stream */
static inline iris_status_t
iris_zeros(iris_t *iris, iris_shape_t shape,
           const struct iris_tensor_options *options, iris_tensor_t *tensor_p)
{
    return iris_full(iris, shape, iris_value_float(0), options, tensor_p);
}

static inline iris_status_t iris_ones(iris_t *iris, iris_shape_t shape,
                                      const struct iris_tensor_options *options,
                                      iris_tensor_t *tensor_p)
{
    return iris_full(iris, shape, iris_value_float(1), options, tensor_p);
}

/* Implements IRIS_SHAPE(). It drops sizes beyond IRIS_TENSOR_DIMS_MAX; calls
 * refuse the shape because ndim is too large. */
static inline iris_shape_t iris_i_shape(size_t ndim, const int64_t *sizes)
{
    iris_shape_t shape;
    size_t i;

    shape.ndim = (int)ndim;
    for (i = 0; i < IRIS_TENSOR_DIMS_MAX; i++) {
        shape.sizes[i] = i < ndim ? sizes[i] : 0;
    }
    return shape;
}

/** The shape without dimensions: one element. */
#define IRIS_SCALAR_SHAPE iris_i_shape(0, NULL)

#ifdef __cplusplus
}

/** IRIS_SHAPE(2, 3): sizes as a shape. */
#define IRIS_SHAPE(...) iris_i_shape_of(__VA_ARGS__)
template <typename... T> inline iris_shape_t iris_i_shape_of(T... sizes)
{
    const int64_t list[] = {(int64_t)sizes...};

    return iris_i_shape(sizeof...(sizes), list);
}

/** A number as a value of the kind of its type. */
#define IRIS_VALUE(x) iris_i_value_of(x)
inline iris_value_t iris_i_value_of(bool x)
{
    return iris_value_bool(x);
}
inline iris_value_t iris_i_value_of(float x)
{
    return iris_value_float(x);
}
inline iris_value_t iris_i_value_of(double x)
{
    return iris_value_float(x);
}
inline iris_value_t iris_i_value_of(long double x)
{
    return iris_value_float((double)x);
}
template <typename T> inline iris_value_t iris_i_value_of(T x)
{
    return x > T(0) ? iris_value_uint((uint64_t)x) : iris_value_int((int64_t)x);
}
#else
/** IRIS_SHAPE(2, 3): sizes as a shape. */
#define IRIS_SHAPE(...)                                                    \
    iris_i_shape(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
                 (const int64_t[]){__VA_ARGS__})

/* clang-format off */
/** A number as a value of the kind of its type. For complex numbers, use
 *  iris_value_complex(). */
#define IRIS_VALUE(x)                                                          \
    _Generic((x), _Bool: iris_value_bool,                                      \
             float: iris_value_float, double: iris_value_float,                \
             long double: iris_value_float,                                    \
             unsigned char: iris_value_uint, unsigned short: iris_value_uint,  \
             unsigned: iris_value_uint, unsigned long: iris_value_uint,        \
             unsigned long long: iris_value_uint,                              \
             default: iris_value_int)(x)
/* clang-format on */
#endif

#endif /* IRIS_TENSOR_H */
