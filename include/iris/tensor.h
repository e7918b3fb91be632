/* SPDX-License-Identifier: MIT
 *
 * Tensors on the symmetric heap: made collectively, filled by the device, and
 * viewed without copies. docs/tensors.md shows how they are used.
 */
#ifndef IRIS_TENSOR_H
#define IRIS_TENSOR_H

#include <iris/stream.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Dimensions of a tensor at most. */
#define IRIS_TENSOR_DIMS_MAX 8

/** Sizes of the dimensions, outermost first. No dimension: one element. A size
 *  of 0 is fine: no elements. Made by IRIS_SHAPE(), or field by field. */
typedef struct iris_shape {
    int ndim;
    int64_t sizes[IRIS_TENSOR_DIMS_MAX];
} iris_shape_t;

/** A tensor: a plain struct, the caller's own, to copy and to look into.
 *  Element (i, j, ...) is at data + (i * strides[0] + j * strides[1] + ...)
 *  elements.
 *
 *  Every call checks the tensors that it is given. It returns IRIS_ERR_INVALID,
 *  and a call that has no status returns 0, for a tensor that is NULL or that
 *  has
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
    void *owner; /**< What iris_tensor_free() frees; NULL: this is a view, of
                      another tensor's memory, a peer's or the program's. */
} iris_tensor_t;

/** Order of the elements in memory. */
typedef enum iris_memory_format {
    IRIS_FORMAT_PRESERVE = 0,         /**< Keeps the source tensor's format. A
                                        tensor created from scratch is
                                        contiguous. */
    IRIS_FORMAT_CONTIGUOUS = 1,       /**< The last dimension is dense. */
    IRIS_FORMAT_CHANNELS_LAST = 2,    /**< Dimensions N, C, H, W: C is dense.
                                        A tensor without 4 is contiguous. */
    IRIS_FORMAT_CHANNELS_LAST_3D = 3, /**< The same of N, C, D, H, W. */
} iris_memory_format_t;

/** The kind of a number, as programs write it. */
typedef enum iris_value_kind {
    IRIS_VALUE_BOOL = 0,
    IRIS_VALUE_INT = 1,  /**< as.i */
    IRIS_VALUE_UINT = 2, /**< as.u, more than INT64_MAX */
    IRIS_VALUE_FLOAT = 3,
    IRIS_VALUE_COMPLEX = 4, /**< as.f: real, imaginary */
} iris_value_kind_t;

/** A number of any kind. Where no element type is asked for, the kind decides:
 *  bool, i64, f32 or complex64. Made by IRIS_VALUE() or the functions below. */
typedef struct iris_value {
    iris_value_kind_t kind;
    union {
        int64_t i; /**< Of BOOL 0 or 1. */
        uint64_t u;
        double f[2];
    } as;
} iris_value_t;

/** A generator of random numbers: <iris/random.h>. */
typedef struct iris_generator iris_generator_t;

/** iris_tensor_options.dtype: by the rule of the function. */
#define IRIS_DTYPE_DEFAULT (-1)

/** What a creation call may be asked for beyond its arguments; where one takes
 *  a pointer to it, NULL asks for nothing. iris_tensor_options_init() comes
 *  first. New fields come at the end. */
struct iris_tensor_options {
    size_t size; /**< Set by iris_tensor_options_init(). */
    int dtype;   /**< An iris_dtype_t, or IRIS_DTYPE_DEFAULT. */
    iris_memory_format_t format;
    const iris_tensor_t *out; /**< Fill this tensor's memory, not new memory. */
    iris_stream_t *stream;    /**< Fill in order with its work, see below. */
    iris_generator_t *generator; /**< Of random numbers; NULL: the context's. */
};

/** Asks for nothing. Local, cannot fail. */
#define iris_tensor_options_init(options) \
    iris_tensor_options_init_sized((options), sizeof *(options))

/** iris_tensor_options_init() for a struct of `size` bytes, as the caller's
 *  header has it. See iris_config_init_sized(). */
IRIS_API void
iris_tensor_options_init_sized(struct iris_tensor_options *options,
                               size_t size);

/* ---- Creation --------------------------------------------------------------
 *
 * Each makes a tensor, the caller's until iris_tensor_free(), and fills it by a
 * kernel. Collective over the job, as iris_malloc(): every rank makes the same
 * call, for the same number of bytes; what it is filled with may differ. A
 * tensor of no elements has memory for one.
 *
 * Without `stream` the call returns when the tensor is filled on every rank, as
 * iris_calloc() does, and waits for this rank's default stream. With a stream
 * the fill is enqueued there, and the call returns when every rank has the
 * memory: a peer that writes to it must first know, by a barrier or a signal,
 * that the fill is done.
 *
 * With `out` the memory is that of `out`, and the call is local and does not
 * block: the fill is enqueued on `stream`, or on the default stream. `out` must
 * have as many elements as are asked for, the dtype and memory on this rank's
 * heap, which is checked in this order. The result is a view of it with the
 * shape that is asked for; only if tensor_p is `out` itself it stays the owner.
 * Either all ranks pass `out` in a call or none does.
 *
 * NULL options and IRIS_DTYPE_DEFAULT choose this dtype:
 *   empty, zeros, ones  f32
 *   linspace            f32; complex64 if start or end is complex
 *   full                the one of the value's kind (iris_value_t)
 *   arange              i64 if all its numbers are whole numbers, else f32
 *   zeros_like          that of `like`
 *
 * IRIS_ERR_INVALID      more than IRIS_TENSOR_DIMS_MAX dimensions, a negative
 *                       size, more elements than memory can have, no such
 *                       dtype or one that the function cannot fill, a number
 *                       that the dtype cannot hold, options that
 *                       iris_tensor_options_init() has not seen, tensor_p is
 *                       NULL, `out` does not fit, no live stream of this
 *                       context
 *
 * Also returns the statuses of iris_malloc() and iris_launch(). *tensor_p is
 * written on success only. */

/** A tensor whose contents are undefined. */
IRIS_API iris_status_t iris_empty(iris_t *iris, iris_shape_t shape,
                                  const struct iris_tensor_options *options,
                                  iris_tensor_t *tensor_p);

/** A tensor of zeros; of ones. */
IRIS_API iris_status_t iris_zeros(iris_t *iris, iris_shape_t shape,
                                  const struct iris_tensor_options *options,
                                  iris_tensor_t *tensor_p);
IRIS_API iris_status_t iris_ones(iris_t *iris, iris_shape_t shape,
                                 const struct iris_tensor_options *options,
                                 iris_tensor_t *tensor_p);

/** A tensor whose elements all are `value`, converted as PyTorch does: to an
 *  integer by cutting off the fraction; to f16 and bf16 by way of f32. A value
 *  that is out of the dtype's range is IRIS_ERR_INVALID, as are infinity and
 *  NaN for integers, but -1 to -MAX of an unsigned dtype wrap around. Every
 *  value except 0 becomes the bool true. */
IRIS_API iris_status_t iris_full(iris_t *iris, iris_shape_t shape,
                                 iris_value_t value,
                                 const struct iris_tensor_options *options,
                                 iris_tensor_t *tensor_p);

/** A tensor of zeros with the shape, the dtype and the memory format of `like`,
 *  which may be anywhere. */
IRIS_API iris_status_t iris_zeros_like(
    iris_t *iris, const iris_tensor_t *like,
    const struct iris_tensor_options *options, iris_tensor_t *tensor_p);

/** start, start + step, ... up to but without `end`: one dimension of
 *  ceil((end - start) / step) elements. If the three are whole numbers they are
 *  counted as such, whatever their size. Of integer dtypes start and step are
 *  cut to whole numbers, of i64 and u64 before elements are counted; elements
 *  wrap around. Element i is start + step * i, reckoned as i64 for integers, as
 *  f32 for f16 and bf16, as f64 for f32 and f64, and rounded once. Not of bool
 *  and complex dtypes. Also IRIS_ERR_INVALID: step is 0, or there is no
 *  element, since `end` is not beyond `start` in the direction of the step. */
IRIS_API iris_status_t iris_arange(iris_t *iris, iris_value_t start,
                                   iris_value_t end, iris_value_t step,
                                   const struct iris_tensor_options *options,
                                   iris_tensor_t *tensor_p);

/** `steps` numbers from `start` to `end`, evenly spaced, with both ends exact:
 *  the first half is reckoned from the start, the second from the end, in the
 *  arithmetic of the dtype (f64 for integers, which are cut then). f64 rounds
 *  ends of i64 and u64 beyond 2^53: UINT64_MAX stays what it is, INT64_MAX
 *  becomes 2^63 and wraps around, as in PyTorch on x86. 0 steps: no elements;
 *  1: `start`, exactly. Not of bool. Also IRIS_ERR_INVALID: steps is negative,
 *  or start or end is complex and the dtype is not. */
IRIS_API iris_status_t iris_linspace(iris_t *iris, iris_value_t start,
                                     iris_value_t end, int64_t steps,
                                     const struct iris_tensor_options *options,
                                     iris_tensor_t *tensor_p);

/** Frees a tensor's memory on every rank and makes *tensor one without.
 *  Collective, as iris_free(), which says what must be over by then. Views of
 *  the memory are not to be used any more. What iris_tensor_to_dlpack() has
 *  handed over is freed by the other library, and *tensor is a view.
 *
 *  IRIS_ERR_INVALID      a view, or freed already
 *
 *  Also returns the statuses of iris_free(). */
IRIS_API iris_status_t iris_tensor_free(iris_t *iris, iris_tensor_t *tensor);

/* ---- Views and properties: local, without a context ------------------------
 *
 * A view has no memory of its own: nobody frees it. IRIS_ERR_INVALID says what
 * was wrong; *view_p is then as it was, and may be the tensor itself. */

/** Elements; bytes of as many elements. Only ndim, shape and dtype matter. */
IRIS_API int64_t iris_tensor_numel(const iris_tensor_t *tensor);
IRIS_API size_t iris_tensor_bytes(const iris_tensor_t *tensor);

/** 1 if the elements lie in memory in that order, without gaps. A tensor of no
 *  elements is contiguous in any format. */
IRIS_API int iris_tensor_is_contiguous(const iris_tensor_t *tensor,
                                       iris_memory_format_t format);

/** A contiguous tensor around memory that the program has. */
IRIS_API iris_status_t iris_tensor_wrap(void *data, iris_dtype_t dtype,
                                        iris_shape_t shape,
                                        iris_tensor_t *view_p);

/** Elements start, start + step, ... before `stop` of one dimension. As Python
 *  has it: a dimension, start or stop below 0 counts from the end, and start
 *  and stop are cut to what there is. INT64_MAX as `stop`: to the end. step is
 *  1 or more. */
IRIS_API iris_status_t iris_tensor_slice(const iris_tensor_t *tensor, int dim,
                                         int64_t start, int64_t stop,
                                         int64_t step, iris_tensor_t *view_p);

/** One index of a dimension, which then is gone. Below 0: from the end. */
IRIS_API iris_status_t iris_tensor_select(const iris_tensor_t *tensor, int dim,
                                          int64_t index, iris_tensor_t *view_p);

/** The dimensions in another order: dimension i of the view is order[i] of the
 *  tensor. `order` has as many as the tensor has dimensions. */
IRIS_API iris_status_t iris_tensor_permute(const iris_tensor_t *tensor,
                                           const int *order,
                                           iris_tensor_t *view_p);

/** The same elements in the same order as another shape; one size may be -1:
 *  what is left. An error if it would take a copy. */
IRIS_API iris_status_t iris_tensor_reshape(const iris_tensor_t *tensor,
                                           iris_shape_t shape,
                                           iris_tensor_t *view_p);

/* ---- Tensors and ranks -----------------------------------------------------
 */

/** 1 if every element is on this rank's own heap or in memory that
 *  iris_as_symmetric() has added to it; of a tensor without elements 1. Else 0,
 *  as on a bad context. Local, does not block. */
IRIS_API int iris_tensor_is_symmetric(const iris_t *iris,
                                      const iris_tensor_t *tensor);

/** A view of the same tensor on `rank`'s heap, which kernels and copies of this
 *  rank read and write. Local, does not block.
 *
 *  IRIS_ERR_INVALID      the tensor is not symmetric, else rank out of range;
 *                        view_p is NULL
 *  IRIS_ERR_UNREACHABLE  that heap is not mapped here
 *  IRIS_ERR_STATE */
IRIS_API iris_status_t iris_tensor_as_remote(const iris_t *iris,
                                             const iris_tensor_t *tensor,
                                             int rank, iris_tensor_t *view_p);

/** iris_as_symmetric() of the memory that a tensor's elements are in, whatever
 *  its strides: *symmetric_p is the same tensor on the heap, which the caller
 *  frees with iris_tensor_free(). Collective; every rank's tensor spans as many
 *  bytes. Where memory is shared, the same tensor, or another of the same
 *  memory, comes to lie in the same place, and the memory stays until each has
 *  been freed; a copy is a copy, each time anew. shared_p may be NULL. Statuses
 *  as iris_as_symmetric(). */
IRIS_API iris_status_t iris_tensor_as_symmetric(iris_t *iris,
                                                const iris_tensor_t *tensor,
                                                iris_tensor_t *symmetric_p,
                                                int *shared_p);

/** Copies the elements of `from` to those of `to`, of the same shape and dtype
 *  and any strides, on the stream. Asynchronous. What is one range of memory in
 *  both goes as iris_memcpy() goes; else a kernel copies, and both must be
 *  memory that this rank's device reaches. They may not overlap. Local.
 *
 *  IRIS_ERR_INVALID      shape or dtype differ, or a range leaves the heap
 *
 *  Also returns the statuses of iris_memcpy() and iris_launch(). */
IRIS_API iris_status_t iris_tensor_copy(iris_t *iris, const iris_tensor_t *to,
                                        const iris_tensor_t *from,
                                        iris_stream_t *stream);

/** Writes a tensor's dtype, shape and elements as text, which ends with a 0
 *  byte and is cut to `bytes` bytes. Of more than 1,000 elements each
 *  dimension's first and last three are shown. Copies them to the host in order
 *  with the default stream, and waits for it. Local. *needed_p, which may be
 *  NULL: bytes of the whole text, the 0 byte included.
 *
 *  IRIS_ERR_INVALID      tensor is NULL, or text is NULL and bytes is not 0
 *
 *  Also returns the statuses of iris_memcpy_sync(). */
IRIS_API iris_status_t iris_tensor_format(iris_t *iris,
                                          const iris_tensor_t *tensor,
                                          char *text, size_t bytes,
                                          size_t *needed_p);

/* ---- Shapes and values -----------------------------------------------------
 */

/** A number as a value. Local, cannot fail. */
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

/* Behind IRIS_SHAPE(). Sizes that do not fit are left out, and ndim says so to
 * whoever takes the shape. */
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

/** A number as a value of the kind that its type has. */
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
/** A number as a value of the kind that its type has; complex ones are made by
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
