/* SPDX-License-Identifier: MIT
 *
 * Kernels that call every function of the device API with every element type:
 * for tests that want it compiled whole, expanded from the library's own rows.
 */
#ifndef DEVICE_API_H
#define DEVICE_API_H

#ifndef API_LONG /* 1: what takes long to compile, too */
#define API_LONG 0
#endif

#include <iris/device.h>
#include <iris/device/wg_ccl_tile.h>
#include <iris/device/kernels/barrier.h>

struct api_args {
    const int64_t *context;
    void *heap; /* 4 KiB, written over */
    struct iris_dev_group *group;
    size_t bytes;
    int peer;
    int mask;
    iris_cmp_t cmp;
    iris_cache_t hint;
    iris_sem_t sem;
    iris_scope_t scope;
};

/* clang-format off */
/* api_rma_f32 and so on: typed names, one kernel for each type. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(api_rma_##name, struct api_args)                               \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        c_type *p = (c_type *)args->heap, *q = p + 64;                         \
        const c_type *from = p;                                                \
        iris_bool_t mask = args->mask != 0;                                    \
        int peer = args->peer;                                                 \
                                                                               \
        IRIS_LANES(wg, i, 8) {                                                 \
            c_type v = iris_load_##name(dev, from + i, peer);                  \
            v = iris_load_masked_##name(dev, from + i, peer, mask, v);         \
            iris_store_##name(dev, q + i, v, peer);                            \
            iris_store_masked_##name(dev, q + i, v, peer, mask);               \
            iris_get_##name(dev, from + i, q + i, peer);                       \
            iris_get_masked_##name(dev, from + i, q + i, peer, mask);          \
            iris_put_##name(dev, from + i, q + i, peer);                       \
            iris_put_masked_##name(dev, from + i, q + i, peer, mask);          \
            iris_copy_##name(dev, from + i, q + i, peer, 0);                   \
            iris_copy_masked_##name(dev, from + i, q + i, peer, 0, mask);      \
            v = iris_load_volatile_##name(dev, from + i, peer);                \
            iris_store_volatile_##name(dev, q + i, v, peer);                   \
            v = iris_load_hint_##name(dev, from + i, peer, args->hint);        \
            iris_store_hint_##name(dev, q + i, v, peer, args->hint);           \
        }                                                                      \
    }
IRIS_TYPES(ROW, )
#undef ROW

/* api_short_rma_f32 and so on: short names. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(api_short_rma_##name, struct api_args)                         \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        c_type *p = (c_type *)args->heap, *q = p + 64;                         \
        const c_type *from = p;                                                \
        uint64_t *signal = (uint64_t *)args->heap + 256;                       \
        iris_bool_t mask = args->mask != 0;                                    \
        int peer = args->peer;                                                 \
                                                                               \
        IRIS_WG_LANES(wg, i, 8) {                                              \
            c_type v = iris_load(dev, from + i, peer);                         \
            v = iris_load_masked(dev, &from[i], peer, mask, v);                \
            iris_store(dev, &q[i], v, peer);                                   \
            iris_store_masked(dev, q + i, v, peer, mask);                      \
            iris_get(dev, from + i, q + i, peer);                              \
            iris_get_masked(dev, from + i, q + i, peer, mask);                 \
            iris_put(dev, from + i, q + i, peer);                              \
            iris_put_masked(dev, from + i, q + i, peer, mask);                 \
            iris_copy(dev, from + i, q + i, peer, 0);                          \
            iris_copy_masked(dev, from + i, q + i, peer, 0, mask);             \
            v = iris_load_volatile(dev, from + i, peer);                       \
            iris_store_volatile(dev, q + i, v, peer);                          \
            v = iris_load_hint(dev, from + i, peer, args->hint);               \
            iris_store_hint(dev, q + i, v, peer, args->hint);                  \
            iris_put_signal_##name(dev, from + i, q + i, signal, 1, peer);     \
            iris_put_signal(dev, from + i, q + i, signal, 1, peer);            \
        }                                                                      \
    }
IRIS_TYPES(ROW, )
#undef ROW

/* api_add_f32 and so on: each update of each type, both names. */
#define UPDATE(op, suffix, sem, scope)                                         \
    v = op##suffix(dev, p, v, peer, sem, scope);                               \
    v = op##_masked##suffix(dev, p, v, peer, mask, sem, scope);
#define ROW(name, c_type, verb)                                                \
    IRIS_KERNEL(api_##verb##_##name, struct api_args)                          \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        c_type *p = (c_type *)args->heap + wg.id, v = *p;                      \
        iris_bool_t mask = args->mask != 0;                                    \
        int peer = args->peer;                                                 \
                                                                               \
        UPDATE(iris_atomic_##verb, _##name, IRIS_RELAXED, IRIS_SCOPE_AGENT)    \
        UPDATE(iris_atomic_##verb, , IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM)          \
        *p = v;                                                                \
    }
IRIS_TYPES(ROW, add)
IRIS_TYPES(ROW, sub)
IRIS_TYPES(ROW, min)
IRIS_TYPES(ROW, max)
IRIS_TYPES(ROW, xchg)
IRIS_INTEGER_TYPES(ROW, and)
IRIS_INTEGER_TYPES(ROW, or)
IRIS_INTEGER_TYPES(ROW, xor)
#undef ROW
#undef UPDATE

/* api_cas_f32 and so on: compare-and-swap, atomic load and store. */
#define ACCESS(suffix, sem, scope)                                             \
    v = iris_atomic_cas##suffix(dev, p, v, w, peer, sem, scope);               \
    v = iris_atomic_cas_masked##suffix(dev, p, v, w, peer, mask, sem, scope);  \
    v = iris_atomic_load##suffix(dev, (const c_type *)p, peer, sem, scope);    \
    iris_atomic_store##suffix(dev, p, v, peer, sem, scope);
#define ROW(name, T, arg)                                                      \
    IRIS_KERNEL(api_cas_##name, struct api_args)                               \
    {                                                                          \
        typedef T c_type;                                                      \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        c_type *p = (c_type *)args->heap + wg.id, v = *p, w = p[1];            \
        iris_bool_t mask = args->mask != 0;                                    \
        int peer = args->peer;                                                 \
                                                                               \
        ACCESS(_##name, IRIS_RELAXED, IRIS_SCOPE_AGENT)                        \
        ACCESS(, IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM)                              \
        *p = v;                                                                \
    }
IRIS_TYPES(ROW, )
#undef ROW
#undef ACCESS

/* api_wait_u64 and so on. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(api_wait_##name, struct api_args)                              \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        const c_type *p = (const c_type *)args->heap + wg.id;                  \
        c_type v = iris_wait_until(dev, p, args->cmp, 1);                      \
                                                                               \
        v = iris_wait_until_##name(dev, p, args->cmp, v);                      \
        if (iris_test(dev, p, IRIS_CMP_EQ, v) &&                               \
            iris_test_##name(dev, p, args->cmp, v)) {                          \
            iris_atomic_store_##name(dev, (c_type *)args->heap, v, 0,          \
                                     IRIS_RELEASE, IRIS_SCOPE_SYSTEM);         \
        }                                                                      \
    }
IRIS_WORD_TYPES(ROW, )
#undef ROW
/* clang-format on */

/* Orders and scopes that are known at run time only: every combination. */
IRIS_KERNEL(api_orders, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t *p = (uint32_t *)args->heap + wg.id;
    uint8_t *q = (uint8_t *)args->heap + 1024;
    iris_sem_t sem = args->sem;
    iris_scope_t scope = args->scope;
    uint32_t v = iris_atomic_load(dev, p, args->peer, sem, scope);

    v += iris_atomic_add(dev, p, v, args->peer, sem, scope);
    v += iris_atomic_max(dev, p, v, args->peer, sem, scope);
    v += iris_atomic_cas(dev, p, v, v + 1, args->peer, sem, scope);
    v += iris_atomic_add(dev, q, (uint8_t)1, args->peer, sem, scope);
    iris_atomic_store(dev, p, v, args->peer, sem, scope);
    iris_fence(sem, scope);
}

IRIS_KERNEL(api_signals, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *signal = (uint64_t *)args->heap;
    size_t indices[8], n = args->bytes % 8, found;
    int status[8] = {0, 1};

    iris_signal_set(dev, signal, 1, args->peer);
    iris_signal_add(dev, signal, iris_signal_fetch(dev, signal), args->peer);
    iris_wait_until_all(dev, signal, n, status, args->cmp, 1);
    found = iris_wait_until_any(dev, signal, n, NULL, args->cmp, 1);
    found +=
        iris_wait_until_some(dev, signal, n, status, args->cmp, 1, indices);
    found += iris_test_all(dev, signal, n, NULL, args->cmp, 1) ? 1u : 0u;
    found += iris_test_any(dev, signal, n, status, args->cmp, 1);
    found += iris_test_some(dev, signal, n, NULL, args->cmp, 1, indices);
    iris_fence(IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_fence(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);
    iris_fence(IRIS_RELEASE, IRIS_SCOPE_AGENT);
    iris_fence(IRIS_ACQ_REL, IRIS_SCOPE_WG);
    *(uint64_t *)iris_dev_as_remote(dev, signal, args->peer) = found;
}

IRIS_KERNEL(api_workgroup, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    char *p = (char *)args->heap, *q = p + 2048;
    uint64_t *signal = (uint64_t *)args->heap + 256;

    iris_wg_put(wg, dev, p, q, args->bytes, args->peer);
    iris_wg_get(wg, dev, p, q, args->bytes, args->peer);
    iris_wg_copy(wg, dev, p, q, args->bytes, args->peer, 0);
    iris_wg_put_signal(wg, dev, p, q, args->bytes, signal, 1, args->peer);
    iris_wg_put_signal_add(wg, dev, p, q, args->bytes, signal, 1, args->peer);
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        *p = 1;
    }
    iris_dev_barrier(wg, dev, args->group);
}

IRIS_KERNEL(api_flush, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    char *p = (char *)args->heap;

    iris_wg_put(wg, dev, p, p + 2048, args->bytes, args->peer);
    iris_wg_flush_source(wg);
    if (iris_wg_leader(wg)) {
        *p = 1;
    }
}

IRIS_KERNEL(api_plans, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct iris_dev_plan *plan = (struct iris_dev_plan *)args->heap;
    uint32_t epoch = (uint32_t)args->bytes, batch = (uint32_t)args->peer;
    uint64_t found = 0;

    iris_plan_publish(wg, dev, plan, batch, epoch, 1);
    iris_plan_publish(wg, dev, plan, batch, epoch, wg.num_wgs);
    found += (uint64_t)iris_plan_wait(wg, dev, plan, batch, epoch);
    found += (uint64_t)iris_plan_wait_reusable(wg, dev, plan, batch, epoch);
    found += (uint64_t)iris_plan_arrived(dev, plan, batch, epoch);
    found += (uint64_t)iris_plan_reusable(dev, plan, batch, epoch);
    *(uint64_t *)iris_dev_as_remote(dev, args->heap, (int)batch) = found;
}

IRIS_KERNEL(api_tiles, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    char *p = (char *)args->heap;
    uint64_t *signal = (uint64_t *)args->heap + 256;
    iris_tile_t from = iris_tile(p, 20, 9, args->peer, 2);
    iris_tile_t to = iris_tile_block(iris_tile_transposed(from), 1, 2, 5, 3);

    iris_wg_tile_put(wg, dev, from, to, args->peer);
    iris_wg_tile_get(wg, dev, from, to, args->peer);
    iris_wg_tile_load(wg, dev, from, p + 2048, args->peer);
    iris_wg_tile_store(wg, dev, to, p + 2048, args->peer);
    iris_wg_tile_put_signal(wg, dev, from, to, signal, 1, args->peer);
    iris_wg_tile_put_signal_add(wg, dev, from, to, signal, 1, args->peer);
}

/* clang-format off */
/* api_lanes_f32 and so on: what lanes combine. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(api_lanes_##name, struct api_args)                             \
    {                                                                          \
        c_type *p = (c_type *)iris_d_global((uintptr_t)args->heap);            \
        c_type v = p[0];                                                       \
        v = iris_wave_sum_##name(wg, v);                                       \
        v = iris_wave_min_##name(wg, v);                                       \
        v = iris_wave_max_##name(wg, v);                                       \
        v = iris_wg_sum_##name(wg, v);                                         \
        v = iris_wg_min_##name(wg, v);                                         \
        v = iris_wg_max_##name(wg, v);                                         \
        IRIS_WAVE_LANES(wg, i, 8) {                                            \
            p[8 * iris_wave_id(wg) + i] = v;                                   \
        }                                                                      \
    }
IRIS_TYPES(ROW, )
#undef ROW
/* clang-format on */

IRIS_KERNEL(api_waves, struct api_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    char *p = (char *)args->heap, *q = p + 2048;

    iris_wave_put(wg, dev, p, q, args->bytes, args->peer);
    if (iris_wave_leader(wg) && iris_wave_id(wg) + 1 == iris_num_waves(wg)) {
        iris_store_quad(dev, q, iris_load_quad(dev, p, args->peer), args->peer);
    }
}

/* clang-format off */
#define API_PRODUCT(name, product, DTYPE)                                      \
    IRIS_KERNEL(api_##name, struct api_args)                                   \
    {                                                                          \
        IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);                              \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t elem = IRIS_DTYPE_##DTYPE == IRIS_DTYPE_F32 ? 4 : 2;          \
        char *p = (char *)args->heap;                                          \
        iris_tile_t a = iris_tile(p, 9, 8, args->peer, elem);                  \
        iris_tile_t b = iris_tile(p, 8, 9, args->peer, elem);                  \
                                                                               \
        iris_wg_tile_sums_zero(wg, sums);                                      \
        product(wg, sums, a, b, IRIS_DTYPE_##DTYPE);                           \
        iris_wg_tile_sums_put(wg, dev, sums, a, IRIS_DTYPE_##DTYPE,            \
                              args->peer);                                     \
    }
API_PRODUCT(product_f16, iris_wg_tile_product, F16)
API_PRODUCT(product_bf16, iris_wg_tile_product, BF16)
API_PRODUCT(product_f32, iris_wg_tile_product, F32)
API_PRODUCT(ordered_f16, iris_wg_tile_product_in_order, F16)
API_PRODUCT(ordered_bf16, iris_wg_tile_product_in_order, BF16)
API_PRODUCT(ordered_f32, iris_wg_tile_product_in_order, F32)
#undef API_PRODUCT
/* clang-format on */

/* clang 15 puts the elements that a lane combines into the workgroup's memory,
 * which amd_code.sh does not allow. */
#if !IRIS_ON_HIP || __clang_major__ > 15
#define API_CCL_KERNELS                                              \
    api_wg_tile_all_reduce, api_wg_reduce_scatter, api_wg_broadcast, \
        api_wg_all_gather, api_wg_all_to_all,
struct api_ccl_args {
    iris_ccl_device_t handle;
    char *in;
    char *out;
    uint64_t count;
};

/* A collective in a kernel of its own, as programs know type and operation. */
/* clang-format off */
#define API_CCL(name, ...)                                                     \
    IRIS_KERNEL(api_##name, struct api_ccl_args)                               \
    {                                                                          \
        iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);       \
        iris_##name(wg, &ccl, args->in, args->out, __VA_ARGS__);               \
        iris_wg_ccl_end(wg, &ccl);                                             \
    }
API_CCL(wg_reduce_scatter, args->count, IRIS_DTYPE_BF16, IRIS_REDUCE_SUM)
API_CCL(wg_broadcast, args->count, 0)
API_CCL(wg_all_gather, args->count)
API_CCL(wg_all_to_all, args->count)
#if API_LONG /* compiles for half a minute */
#define API_LONG_KERNELS                                                       \
    api_wg_all_reduce, api_wg_all_reduce_two_shot, api_wg_all_reduce_ring,     \
        api_wg_all_reduce_atomic, api_wg_gather, api_wg_scatter,               \
        api_wg_reduce, api_wg_tile_reduce_scatter, api_wg_tile_scatter,        \
        api_wg_tile_reduce,                                                    \
        api_wg_tile_all_gather, api_wg_tile_gather, api_wg_tile_all_to_all,    \
        api_wg_tile_broadcast,
API_CCL(wg_all_reduce, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM)
API_CCL(wg_all_reduce_two_shot, args->count, IRIS_DTYPE_BF16, IRIS_REDUCE_SUM)
API_CCL(wg_all_reduce_ring, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM)
API_CCL(wg_all_reduce_atomic, args->count, IRIS_DTYPE_F32)
API_CCL(wg_gather, args->count, 0)
API_CCL(wg_scatter, args->count, 0)
API_CCL(wg_reduce, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, 0)
#endif
#undef API_CCL

/* The same of tiles, of which each has gaps behind its rows. */
#define API_CCL(name, ...)                                                     \
    IRIS_KERNEL(api_##name, struct api_ccl_args)                               \
    {                                                                          \
        iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);       \
        uint32_t rows = (uint32_t)args->count;                                 \
        iris_tile_t in = iris_tile(args->in, rows, 8, 12, 4);                  \
        iris_tile_t out = iris_tile(args->out, rows, 8, 12, 4);                \
                                                                               \
        iris_##name(wg, &ccl, in, out, __VA_ARGS__);                           \
        iris_wg_ccl_end(wg, &ccl);                                             \
    }
#define API_MOVE(name)                                                         \
    IRIS_KERNEL(api_##name, struct api_ccl_args)                               \
    {                                                                          \
        iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);       \
        uint32_t rows = (uint32_t)args->count;                                 \
        iris_tile_t in = iris_tile(args->in, rows, 8, 12, 4);                  \
        iris_tile_t out = iris_tile(args->out, rows, 8, 12, 4);                \
                                                                               \
        iris_##name(wg, &ccl, in, out);                                        \
        iris_wg_ccl_end(wg, &ccl);                                             \
    }
API_CCL(wg_tile_all_reduce, IRIS_DTYPE_F32, IRIS_REDUCE_SUM)
#if API_LONG
API_CCL(wg_tile_reduce_scatter, IRIS_DTYPE_F32, IRIS_REDUCE_SUM)
API_CCL(wg_tile_gather, 0)
API_CCL(wg_tile_broadcast, 0)
API_CCL(wg_tile_scatter, 0)
API_CCL(wg_tile_reduce, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, 0)
API_MOVE(wg_tile_all_gather)
API_MOVE(wg_tile_all_to_all)
#endif
#undef API_MOVE
#undef API_CCL
/* clang-format on */

#else
#define API_CCL_KERNELS
#endif
#ifndef API_LONG_KERNELS
#define API_LONG_KERNELS
#endif

IRIS_KERNEL(api_halves, struct api_args)
{
    float *f = (float *)args->heap;

    IRIS_LANES (wg, i, args->bytes) {
        f[i] = iris_f16_to_f32(iris_f16_from_f32(f[i]));
        f[i] += iris_bf16_to_f32(iris_bf16_from_f32(f[i]));
    }
}

/* All of them, so that none is dropped before it is compiled. */
/* clang-format off */
#define ROW(name, c_type, arg) arg##_##name,
static const struct iris_kernel *const api_kernels[] = {
    IRIS_TYPES(ROW, api_rma)
    IRIS_TYPES(ROW, api_short_rma)
    IRIS_TYPES(ROW, api_add)
    IRIS_TYPES(ROW, api_sub)
    IRIS_TYPES(ROW, api_min)
    IRIS_TYPES(ROW, api_max)
    IRIS_TYPES(ROW, api_xchg)
    IRIS_INTEGER_TYPES(ROW, api_and)
    IRIS_INTEGER_TYPES(ROW, api_or)
    IRIS_INTEGER_TYPES(ROW, api_xor)
    IRIS_TYPES(ROW, api_cas)
    IRIS_WORD_TYPES(ROW, api_wait)
    IRIS_TYPES(ROW, api_lanes)
    api_product_f16, api_product_bf16, api_product_f32, api_ordered_f16,
    api_ordered_bf16, api_ordered_f32, api_waves,
    api_orders, api_signals, api_workgroup, api_flush, api_plans, api_tiles, API_CCL_KERNELS API_LONG_KERNELS api_halves, iris_k_barrier,
};
#undef ROW
/* clang-format on */

#endif /* DEVICE_API_H */
