/* SPDX-License-Identifier: MIT
 *
 * The kernels behind tensors: fills with one value, with arange and linspace,
 * and copies between any strides. Any grid, any block.
 */
#ifndef IRIS_DEVICE_KERNELS_FILL_H
#define IRIS_DEVICE_KERNELS_FILL_H

#include <iris/device/core/half.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/kernels/fill_args.h>
#include <iris/device/core/vector.h>

/* ---- Contiguous: one value ---- */

/* Bytes up to a multiple of 16. */
IRIS_DEVICE size_t iris_d_lead(const void *data, size_t bytes)
{
    size_t lead = (0 - (uintptr_t)data) & 15;

    return lead < bytes ? lead : bytes;
}

typedef union iris_d_words {
    uint64_t halves[2];
    iris_d_u128_t word;
} iris_d_words_t;

/* The pattern, rotated by `bytes`: a multiple of an element's size, or of 8. So
 * only elements of 16 bytes differ there. */
IRIS_DEVICE iris_d_words_t iris_d_from(const uint64_t *pattern, size_t bytes)
{
    iris_d_words_t words;

    words.halves[0] = pattern[bytes >> 3 & 1];
    words.halves[1] = pattern[~bytes >> 3 & 1];
    return words;
}

IRIS_DEVICE uint8_t iris_d_pattern_byte(const uint64_t *pattern, size_t i)
{
    return (uint8_t)(pattern[i >> 3 & 1] >> (i & 7) * 8);
}

IRIS_KERNEL(iris_k_fill, struct iris_fill_args)
{
    uint8_t *data = (uint8_t *)args->data;
    size_t lead = iris_d_lead(data, args->bytes);
    size_t words = (args->bytes - lead) / 16, done = lead + words * 16;
    iris_d_u128_t *body = (iris_d_u128_t *)(data + lead);
    iris_d_u128_t word = iris_d_from(args->pattern, lead).word;

    if (iris_d_past_cache(args->bytes)) {
        IRIS_LANES (wg, i, words) {
            iris_d_store_past(body + i, word);
        }
        iris_d_past_fence();
    } else {
        IRIS_LANES (wg, i, words) {
            body[i] = word;
        }
    }
    if (wg.id == 0) {
        IRIS_WG_LANES (wg, i, lead) {
            data[i] = iris_d_pattern_byte(args->pattern, i);
        }
        IRIS_WG_LANES (wg, i, args->bytes - done) {
            data[done + i] = iris_d_pattern_byte(args->pattern, done + i);
        }
    }
}

/* ---- Any strides ---- */

/* Offset of element `i`. Elements are counted with the last dimension
 * fastest. */
IRIS_DEVICE int64_t iris_d_offset(const struct iris_d_shape *shape,
                                  const int64_t *strides, uint64_t i)
{
    int64_t offset = 0;

    for (int d = shape->ndim - 1; d > 0; d--) {
        uint64_t size = (uint64_t)shape->sizes[d];

        offset += (int64_t)(i % size) * strides[d];
        i /= size;
    }
    return offset + (int64_t)i * strides[0];
}

IRIS_DEVICE void iris_d_store_element(void *data, int64_t at, int32_t width,
                                      const uint64_t *element)
{
    switch (width) {
    case 1:
        ((iris_d_u8_t *)data)[at] = (uint8_t)element[0];
        break;
    case 2:
        ((iris_d_u16_t *)data)[at] = (uint16_t)element[0];
        break;
    case 4:
        ((iris_d_u32_t *)data)[at] = (uint32_t)element[0];
        break;
    case 8:
        ((iris_d_u64_t *)data)[at] = element[0];
        break;
    default:
        ((iris_d_u64_t *)data)[2 * at] = element[0];
        ((iris_d_u64_t *)data)[2 * at + 1] = element[1];
        break;
    }
}

IRIS_DEVICE void iris_d_load_element(const void *data, int64_t at,
                                     int32_t width, uint64_t *element_p)
{
    element_p[1] = 0;
    switch (width) {
    case 1:
        element_p[0] = ((const iris_d_u8_t *)data)[at];
        break;
    case 2:
        element_p[0] = ((const iris_d_u16_t *)data)[at];
        break;
    case 4:
        element_p[0] = ((const iris_d_u32_t *)data)[at];
        break;
    case 8:
        element_p[0] = ((const iris_d_u64_t *)data)[at];
        break;
    default:
        element_p[0] = ((const iris_d_u64_t *)data)[2 * at];
        element_p[1] = ((const iris_d_u64_t *)data)[2 * at + 1];
        break;
    }
}

IRIS_KERNEL(iris_k_fill_strided, struct iris_fill_strided_args)
{
    IRIS_LANES (wg, i, args->shape.count) {
        iris_d_store_element(args->data,
                             iris_d_offset(&args->shape, args->strides, i),
                             args->shape.width, args->element);
    }
}

IRIS_KERNEL(iris_k_copy_strided, struct iris_copy_strided_args)
{
    IRIS_LANES (wg, i, args->shape.count) {
        uint64_t element[2];

        iris_d_load_element(args->from,
                            iris_d_offset(&args->shape, args->from_strides, i),
                            args->shape.width, element);
        iris_d_store_element(args->to,
                             iris_d_offset(&args->shape, args->to_strides, i),
                             args->shape.width, element);
    }
}

/* ---- Numbers in a row ----
 *
 * `count` elements, `stride` elements apart. Contiguous elements are made in
 * blocks: on the CPU in loops that compilers vectorise, on a GPU 16 bytes that
 * a lane stores at once. An element's index is the sum of its block's index and
 * an int32_t, since every CPU has vector instructions that convert those to
 * doubles. Both numbers are exact, as is their sum. */
#if IRIS_ON_CPU
#define IRIS_D_BLOCK_BYTES(bytes) (bytes)
#else
#define IRIS_D_BLOCK_BYTES(bytes) 16
#endif
/* Bytes of a block on the CPU. Blocks are small enough that a core still stores
 * one past the cache while it computes the next. They are larger for integers,
 * whose blocks have a slow start. */
#define IRIS_D_FEW_BYTES 512
#define IRIS_D_MANY_BYTES 4096

/* clang-format off */
/* Defines the kernel NAME. NAME##_block(args, first, count, to) makes the
 * elements from index `first` on; `args` is a copy that stores do not
 * change. */
#define IRIS_D_ROW(NAME, c_type, BYTES)                                        \
    typedef union NAME##_words {                                               \
        c_type elements[IRIS_D_BLOCK_BYTES(BYTES) / sizeof(c_type)];           \
        iris_d_u128_t words[IRIS_D_BLOCK_BYTES(BYTES) / 16];                   \
    } NAME##_words_t;                                                          \
    IRIS_DEVICE void NAME##_store(const struct iris_row_args *args,            \
                                  int64_t first, c_type *to)                   \
    {                                                                          \
        IRIS_D_STORE_BLOCK(NAME)                                               \
    }                                                                          \
    IRIS_DEVICE void NAME##_store_past(const struct iris_row_args *args,       \
                                       int64_t first, c_type *to)              \
    {                                                                          \
        NAME##_words_t block;                                                  \
        NAME##_block(args, first, sizeof block / sizeof *to, block.elements);  \
        for (size_t i = 0; i < sizeof block / 16; i++) {                       \
            iris_d_store_past((iris_d_u128_t *)to + i, block.words[i]);        \
        }                                                                      \
    }                                                                          \
    IRIS_DEVICE void NAME##_dense(iris_wg_t wg,                                \
                                  const struct iris_row_args *args)            \
    {                                                                          \
        const struct iris_row_args own = *args;                                \
        c_type *data = (c_type *)own.data;                                     \
        const int64_t per_block = sizeof(NAME##_words_t) / sizeof(c_type);     \
        size_t count = (size_t)own.count;                                      \
        size_t lead =                                                          \
            iris_d_lead(data, count * sizeof(c_type)) / sizeof(c_type);        \
        size_t blocks = (count - lead) / per_block;                            \
        size_t done = lead + blocks * per_block;                               \
                                                                               \
        if (iris_d_past_cache(count * sizeof(c_type))) {                       \
            IRIS_LANES (wg, i, blocks) {                                       \
                int64_t first = (int64_t)(lead + i * per_block);               \
                NAME##_store_past(&own, first, data + first);                  \
            }                                                                  \
            iris_d_past_fence();                                               \
        } else {                                                               \
            IRIS_LANES (wg, i, blocks) {                                       \
                int64_t first = (int64_t)(lead + i * per_block);               \
                NAME##_store(&own, first, data + first);                       \
            }                                                                  \
        }                                                                      \
        if (wg.id == 0) {                                                      \
            IRIS_WG_LANES (wg, i, lead) {                                      \
                NAME##_block(&own, (int64_t)i, 1, data + i);                   \
            }                                                                  \
            IRIS_WG_LANES (wg, i, count - done) {                              \
                NAME##_block(&own, (int64_t)(done + i), 1, data + done + i);   \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    IRIS_D_WIDE(NAME, wg, args, struct iris_row_args)                          \
    IRIS_KERNEL(NAME, struct iris_row_args)                                    \
    {                                                                          \
        c_type *data = (c_type *)args->data;                                   \
        if (args->stride == 1) {                                               \
            IRIS_D_RUN_WIDE(NAME, wg, args);                                   \
            return;                                                            \
        }                                                                      \
        IRIS_LANES (wg, i, (size_t)args->count) {                              \
            NAME##_block(args, (int64_t)i, 1,                                  \
                         data + (int64_t)i * args->stride);                    \
        }                                                                      \
    }
#if IRIS_ON_CPU
#define IRIS_D_STORE_BLOCK(NAME)                                               \
    NAME##_block(args, first, sizeof(NAME##_words_t) / sizeof *to, to);
#else
#define IRIS_D_STORE_BLOCK(NAME)                                               \
    NAME##_words_t block;                                                      \
    NAME##_block(args, first, sizeof block / sizeof *to, block.elements);      \
    *(iris_d_u128_t *)to = block.words[0];
#endif
/* Runs NAME##_dense(), with wide vectors on a CPU that has them. */
#if IRIS_ON_CPU && IRIS_ON_X86
#define IRIS_D_WIDE(NAME, wg, args, ARGS)                                      \
    IRIS_D_FMA void NAME##_wide(iris_wg_t wg, const ARGS *args)                \
    {                                                                          \
        NAME##_dense(wg, args);                                                \
    }
#define IRIS_D_RUN_WIDE(NAME, wg, args)                                        \
    if (iris_d_has_fma()) {                                                    \
        NAME##_wide(wg, args);                                                 \
    } else {                                                                   \
        NAME##_dense(wg, args);                                                \
    }
#else
#define IRIS_D_WIDE(NAME, wg, args, ARGS)
#define IRIS_D_RUN_WIDE(NAME, wg, args) NAME##_dense(wg, args)
#endif

/* For u32: integers of 32 bits, signed or not. */
#define IRIS_D_ARANGE_WHOLE(name, c_type)                                      \
    IRIS_DEVICE void iris_k_arange_##name##_block(                             \
        const struct iris_row_args *args, int64_t first, int32_t count,        \
        c_type *to)                                                            \
    {                                                                          \
        c_type step = (c_type)args->whole_step;                                \
        c_type value = (c_type)(args->whole_start +                            \
                                args->whole_step * (uint64_t)first);           \
        IRIS_D_UNROLL                                                          \
        for (int32_t k = 0; k < count; k++) {                                  \
            to[k] = value;                                                     \
            value = (c_type)(value + step);                                    \
        }                                                                      \
    }                                                                          \
    IRIS_D_ROW(iris_k_arange_##name, c_type, IRIS_D_MANY_BYTES)
IRIS_D_ARANGE_WHOLE(u8, uint8_t)
IRIS_D_ARANGE_WHOLE(u16, uint16_t)
IRIS_D_ARANGE_WHOLE(u32, uint32_t)
IRIS_D_ARANGE_WHOLE(u64, uint64_t)
#undef IRIS_D_ARANGE_WHOLE

/* Defines a kernel that makes each element from its index. */
#define IRIS_D_ROW_OF(NAME, c_type, ELEMENT)                                   \
    IRIS_DEVICE void NAME##_block(const struct iris_row_args *args,            \
                                  int64_t first, int32_t count, c_type *to)    \
    {                                                                          \
        IRIS_D_UNROLL                                                          \
        for (int32_t k = 0; k < count; k++) {                                  \
            to[k] = ELEMENT(args, first, k);                                   \
        }                                                                      \
    }                                                                          \
    IRIS_D_ROW(NAME, c_type, IRIS_D_FEW_BYTES)
/* clang-format on */

IRIS_DEVICE double iris_d_arange_f64(const struct iris_row_args *args,
                                     int64_t first, int32_t k)
{
    double index = (double)first + (double)k;

    return args->start + iris_d_product_f64(args->step, index);
}

IRIS_DEVICE float iris_d_arange_f32(const struct iris_row_args *args,
                                    int64_t first, int32_t k)
{
    return (float)iris_d_arange_f64(args, first, k);
}

/* The 16-bit floats use float arithmetic. Vector instructions convert an index
 * to float if it fits into an int32_t. Larger indices are not worth the
 * effort. */
IRIS_DEVICE float iris_d_arange_half(const struct iris_row_args *args,
                                     float index)
{
    return (float)args->start + iris_d_product_f32((float)args->step, index);
}

IRIS_DEVICE void iris_k_arange_f16_block(const struct iris_row_args *args,
                                         int64_t first, int32_t count,
                                         iris_f16_t *to)
{
#if IRIS_ON_CPU && IRIS_ON_X86
    if (first + count <= INT32_MAX && count % 8 == 0 && iris_d_has_avx2()) {
        iris_d_f16_line_avx2(to, (float)args->start, (float)args->step,
                             (int32_t)first, count);
        return;
    }
#endif
    IRIS_D_UNROLL
    for (int32_t k = 0; k < count; k++) {
        to[k] = iris_f16_from_f32(iris_d_arange_half(args, (float)(first + k)));
    }
}

/* As a float. A row with a finite start and step has no NaN. */
IRIS_DEVICE iris_bool_t iris_d_is_finite(double value)
{
    return (float)value - (float)value == 0.0f;
}

IRIS_DEVICE void iris_k_arange_bf16_block(const struct iris_row_args *args,
                                          int64_t first, int32_t count,
                                          iris_bf16_t *to)
{
    if (first + count <= INT32_MAX && iris_d_is_finite(args->start) &&
        iris_d_is_finite(args->step)) {
        IRIS_D_UNROLL
        for (int32_t k = 0; k < count; k++) {
            to[k].bits = iris_d_bf16_from_f32(
                iris_d_arange_half(args, (float)((int32_t)first + k)));
        }
        return;
    }
    IRIS_D_UNROLL
    for (int32_t k = 0; k < count; k++) {
        to[k] =
            iris_bf16_from_f32(iris_d_arange_half(args, (float)(first + k)));
    }
}

IRIS_D_ROW(iris_k_arange_f16, iris_f16_t, IRIS_D_FEW_BYTES / 2)
IRIS_D_ROW(iris_k_arange_bf16, iris_bf16_t, IRIS_D_FEW_BYTES / 2)
IRIS_D_ROW_OF(iris_k_arange_f32, float, iris_d_arange_f32)
IRIS_D_ROW_OF(iris_k_arange_f64, double, iris_d_arange_f64)

/* Both halves of a linspace are computed from their own end: from `from`,
 * `index` times `step`. The sum is fused with the product, as in PyTorch's code
 * for GPUs and for CPUs with FMA. */
typedef struct iris_d_way {
    double from;
    double step;
    double index;
} iris_d_way_t;

IRIS_DEVICE iris_d_way_t iris_d_way(const struct iris_row_args *args,
                                    int64_t first, int32_t k)
{
    double index = (double)first + (double)k;
    iris_d_way_t way = {args->start, args->step, index};

    if (first + k >= args->count / 2) {
        way.from = args->end;
        way.step = -args->step;
        way.index = (double)(args->count - 1 - first) - (double)k;
    }
    return way;
}

IRIS_DEVICE double iris_d_linspace_f64(const struct iris_row_args *args,
                                       int64_t first, int32_t k)
{
    iris_d_way_t way = iris_d_way(args, first, k);

    return iris_d_fused_f64(way.step, way.index, way.from);
}

IRIS_DEVICE float iris_d_linspace_f32(const struct iris_row_args *args,
                                      int64_t first, int32_t k)
{
    iris_d_way_t way = iris_d_way(args, first, k);

    return iris_d_fused_f32((float)way.step, (float)way.index, (float)way.from);
}

/* clang-format off */
/* For f16: the kernel, with each operation rounded to the type, as native
 * arithmetic of the type would do. */
#define IRIS_D_LINSPACE_HALF(name)                                             \
    IRIS_DEVICE float iris_d_rounded_##name(float value)                       \
    {                                                                          \
        return iris_##name##_to_f32(iris_##name##_from_f32(value));            \
    }                                                                          \
    IRIS_DEVICE iris_##name##_t iris_d_linspace_##name(                        \
        const struct iris_row_args *args, int64_t first, int32_t k)            \
    {                                                                          \
        iris_d_way_t way = iris_d_way(args, first, k);                         \
        float index = iris_d_rounded_##name((float)way.index);                 \
        float far =                                                            \
            iris_d_rounded_##name(iris_d_product_f32((float)way.step, index)); \
        return iris_##name##_from_f32((float)way.from + far);                  \
    }                                                                          \
    IRIS_D_ROW_OF(iris_k_linspace_##name, iris_##name##_t,                     \
                  iris_d_linspace_##name)
IRIS_D_LINSPACE_HALF(f16)
IRIS_D_LINSPACE_HALF(bf16)
#undef IRIS_D_LINSPACE_HALF

/* For u32: integers of 32 bits, signed or not. */
#define IRIS_D_LINSPACE_WHOLE(name, c_type)                                    \
    IRIS_DEVICE c_type iris_d_linspace_##name(                                 \
        const struct iris_row_args *args, int64_t first, int32_t k)            \
    {                                                                          \
        return (c_type)(int64_t)iris_d_linspace_f64(args, first, k);           \
    }                                                                          \
    IRIS_D_ROW_OF(iris_k_linspace_##name, c_type, iris_d_linspace_##name)
IRIS_D_LINSPACE_WHOLE(u8, uint8_t)
IRIS_D_LINSPACE_WHOLE(u16, uint16_t)
IRIS_D_LINSPACE_WHOLE(u32, uint32_t)
#undef IRIS_D_LINSPACE_WHOLE
/* clang-format on */

/* A double can be one above the maximum of either type: 2^63 for i64, whose
 * bits are then those of -2^63, as in PyTorch on x86; and 2^64, which no type
 * holds. */
IRIS_DEVICE uint64_t iris_d_linspace_u64(const struct iris_row_args *args,
                                         int64_t first, int32_t k)
{
    double value = iris_d_linspace_f64(args, first, k);

    if (value < 9223372036854775808.0) {
        return (uint64_t)(int64_t)value;
    }
    return value < 18446744073709551616.0 ? (uint64_t)value : UINT64_MAX;
}

IRIS_D_ROW_OF(iris_k_linspace_u64, uint64_t, iris_d_linspace_u64)
IRIS_D_ROW_OF(iris_k_linspace_f32, float, iris_d_linspace_f32)
IRIS_D_ROW_OF(iris_k_linspace_f64, double, iris_d_linspace_f64)
#undef IRIS_D_ROW_OF
#undef IRIS_D_ROW
#undef IRIS_D_STORE_BLOCK
#undef IRIS_D_MANY_BYTES
#undef IRIS_D_FEW_BYTES
#undef IRIS_D_BLOCK_BYTES
#undef IRIS_D_WIDE
#undef IRIS_D_RUN_WIDE

#endif /* IRIS_DEVICE_KERNELS_FILL_H */
