/* SPDX-License-Identifier: MIT
 *
 * A kernel for every device operation and type, expanded from the library's own
 * rows, for scripts/amd-emu: it runs each as code for AMD GPUs and on the CPU,
 * and compares what they did. run.py knows the kernels by their names.
 */
#ifndef EMU_CASES_H
#define EMU_CASES_H

#include <iris/device.h>
#include <iris/device/core/float8.h>
#include <iris/device/kernels/barrier.h>
#include <iris/device/kernels/signal.h>
#include <iris/device/wg/tile.h>

/* What every kernel takes, packed; run.py packs the same. */
struct emu_args {
    const int64_t *context;
    void *heap;  /* symmetric */
    void *more;  /* symmetric, elsewhere on the heap */
    void *local; /* this rank's own: what is read there and what is found out */
    struct iris_dev_group *group;
    uint64_t count; /* elements, or bytes of a bulk copy */
    uint64_t value;
    int32_t peer;
    int32_t from;
    int32_t sem;
    int32_t scope;
    int32_t cmp;
    int32_t hint;
};

/* Lanes whose mask is true. */
#define EMU_MASK(i) ((i) % 3 != 0)

/* clang-format off */

/* emu_<operation>_<type>: dev, and three arrays of the type: p and q on the
 * heap, l not. Operands are in l behind the results. */
#define EMU(op, name, T, ...)                                                  \
    IRIS_KERNEL(emu_##op##_##name, struct emu_args)                            \
    {                                                                          \
        typedef T c_type;                                                      \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        c_type *p = (c_type *)args->heap, *q = (c_type *)args->more;           \
        c_type *l = (c_type *)iris_d_global((uintptr_t)args->local);           \
        const c_type *v = l + args->count, *w = v + args->count;               \
        iris_sem_t sem = (iris_sem_t)args->sem;                                \
        iris_scope_t scope = (iris_scope_t)args->scope;                        \
        iris_cache_t hint = (iris_cache_t)args->hint;                          \
        int peer = args->peer, from = args->from;                              \
                                                                               \
        (void)dev, (void)p, (void)q, (void)w, (void)sem, (void)scope;          \
        (void)hint, (void)peer, (void)from;                                    \
        IRIS_LANES(wg, i, args->count) {                                       \
            __VA_ARGS__;                                                       \
        }                                                                      \
    }

/* Loads and stores of one lane. */
#define ROW(name, T, arg)                                                      \
    EMU(load, name, T, l[i] = iris_load_##name(dev, p + i, peer))              \
    EMU(loadmasked, name, T, l[i] = iris_load_masked_##name(                   \
            dev, p + i, peer, EMU_MASK(i), v[i]))                              \
    EMU(store, name, T, iris_store_##name(dev, p + i, v[i], peer))             \
    EMU(storemasked, name, T, iris_store_masked_##name(                        \
            dev, p + i, v[i], peer, EMU_MASK(i)))                              \
    EMU(get, name, T, iris_get_##name(dev, p + i, l + i, peer))                \
    EMU(getmasked, name, T,                                                    \
        iris_get_masked_##name(dev, p + i, l + i, peer, EMU_MASK(i)))          \
    EMU(put, name, T, iris_put_##name(dev, v + i, p + i, peer))                \
    EMU(putmasked, name, T,                                                    \
        iris_put_masked_##name(dev, v + i, p + i, peer, EMU_MASK(i)))          \
    EMU(copy, name, T, iris_copy_##name(dev, p + i, q + i, from, peer))        \
    EMU(copymasked, name, T,                                                   \
        iris_copy_masked_##name(dev, p + i, q + i, from, peer, EMU_MASK(i)))   \
    EMU(loadvolatile, name, T,                                                 \
        l[i] = iris_load_volatile_##name(dev, p + i, peer))                    \
    EMU(storevolatile, name, T,                                                \
        iris_store_volatile_##name(dev, p + i, v[i], peer))                    \
    EMU(loadhint, name, T,                                                     \
        l[i] = iris_load_hint_##name(dev, p + i, peer, hint))                  \
    EMU(storehint, name, T,                                                    \
        iris_store_hint_##name(dev, p + i, v[i], peer, hint))                  \
    EMU(asremote, name, T,                                                     \
        *(c_type *)iris_dev_as_remote(dev, p + i, peer) = v[i])                \
    EMU(putsignal, name, T, iris_put_signal_##name(                            \
            dev, v + i, p + i, (uint64_t *)args->more + i, args->value + i,    \
            peer))
IRIS_TYPES(ROW, )
#undef ROW

/* Updates: each lane an element of its own, and all lanes the same one. */
#define ROW(name, T, verb)                                                     \
    EMU(verb, name, T, l[i] = iris_atomic_##verb##_##name(                     \
            dev, p + i, v[i], peer, sem, scope))                               \
    EMU(verb##masked, name, T, l[i] = iris_atomic_##verb##_masked_##name(      \
            dev, p + i, v[i], peer, EMU_MASK(i), sem, scope))
IRIS_TYPES(ROW, add)
IRIS_TYPES(ROW, sub)
IRIS_TYPES(ROW, min)
IRIS_TYPES(ROW, max)
IRIS_TYPES(ROW, xchg)
IRIS_INTEGER_TYPES(ROW, and)
IRIS_INTEGER_TYPES(ROW, or)
IRIS_INTEGER_TYPES(ROW, xor)
#undef ROW
#define ROW(name, T, verb)                                                     \
    EMU(crowd##verb, name, T, (void)iris_atomic_##verb##_##name(               \
            dev, p + 1, v[i], peer, sem, scope))
IRIS_TYPES(ROW, add)
IRIS_TYPES(ROW, sub)
IRIS_TYPES(ROW, min)
IRIS_TYPES(ROW, max)
IRIS_INTEGER_TYPES(ROW, and)
IRIS_INTEGER_TYPES(ROW, or)
IRIS_INTEGER_TYPES(ROW, xor)
#undef ROW
#define ROW(name, T, arg)                                                      \
    EMU(cas, name, T, l[i] = iris_atomic_cas_##name(                           \
            dev, p + i, w[i], v[i], peer, sem, scope))                         \
    EMU(casmasked, name, T, l[i] = iris_atomic_cas_masked_##name(              \
            dev, p + i, w[i], v[i], peer, EMU_MASK(i), sem, scope))            \
    EMU(atomicload, name, T, l[i] = iris_atomic_load_##name(                   \
            dev, p + i, peer, sem, scope))                                     \
    EMU(atomicstore, name, T, iris_atomic_store_##name(                        \
            dev, p + i, v[i], peer, sem, scope))
IRIS_TYPES(ROW, )
#undef ROW

/* Waits that need not wait, and tests. */
#define ROW(name, T, arg)                                                      \
    EMU(wait, name, T, l[i] = iris_wait_until_##name(                          \
            dev, p + i, (iris_cmp_t)args->cmp, v[i]))                          \
    EMU(test, name, T, l[i] = iris_test_##name(                                \
            dev, p + i, (iris_cmp_t)args->cmp, v[i]) ? 1 : 0)
IRIS_WORD_TYPES(ROW, )
#undef ROW

EMU(signalset, u64, uint64_t, iris_signal_set(dev, p + i, v[i], peer))
EMU(signaladd, u64, uint64_t, iris_signal_add(dev, p + i, v[i], peer))
EMU(signalcrowd, u64, uint64_t, iris_signal_add(dev, p, v[i], peer))
EMU(signalfetch, u64, uint64_t, l[i] = iris_signal_fetch(dev, p + i))
EMU(fence, u64, uint64_t,
    p[i] = v[i]; iris_fence(sem, scope); q[i] = p[i] + v[i])

/* Eight signals a lane; status, where there is one, is in `more`. */
#define SETS(op, result)                                                       \
    EMU(op, u64, uint64_t,                                                     \
        const int *status =                                                    \
            args->hint != 0 ? (const int *)args->more + 8 * i : NULL;          \
        iris_cmp_t cmp = (iris_cmp_t)args->cmp;                                \
        size_t *indices = (size_t *)l + 16 * i;                                \
        (void)indices;                                                         \
        l[16 * i + 8] = result)
SETS(testall, iris_test_all(dev, p + 8 * i, 8, status, cmp, args->value) ? 1 : 0)
SETS(testany, iris_test_any(dev, p + 8 * i, 8, status, cmp, args->value))
SETS(testsome, iris_test_some(dev, p + 8 * i, 8, status, cmp, args->value,
     indices))
SETS(waitall, (iris_wait_until_all(dev, p + 8 * i, 8, status, cmp,
     args->value), 1))
SETS(waitany, iris_wait_until_any(dev, p + 8 * i, 8, status, cmp, args->value))
SETS(waitsome, iris_wait_until_some(dev, p + 8 * i, 8, status, cmp,
     args->value, indices))
#undef SETS

EMU(halves, f32, float,
    uint32_t *b = (uint32_t *)args->heap;
    iris_f16_t h = iris_f16_from_f32(iris_d_value_f32(b[i]));
    iris_bf16_t g = iris_bf16_from_f32(iris_d_value_f32(b[i]));
    ((uint32_t *)args->more)[i] = h.bits | (uint32_t)g.bits << 16;
    h.bits = (uint16_t)b[i], g.bits = (uint16_t)(b[i] >> 16);
    l[2 * i] = iris_f16_to_f32(h), l[2 * i + 1] = iris_bf16_to_f32(g))

/* 8-bit floats: from any float, to float, and sums of all pairs from pair `value`
 * on, times 1 or, with `hint`, 0.3. The sign of a NaN that an addition makes is
 * left open. */
#define F8_SUM(T)                                                              \
    a##T.bits = (uint8_t)pair, b##T.bits = (uint8_t)(pair >> 8);               \
    a##T = iris_##T##_from_f32((iris_##T##_to_f32(a##T) +                      \
                                iris_##T##_to_f32(b##T)) * scale);             \
    a##T.bits = iris_##T##_to_f32(a##T) != iris_##T##_to_f32(a##T) ? 0x7f      \
                                                                   : a##T.bits
EMU(eights, f32, float,
    uint32_t *b = (uint32_t *)args->heap;
    uint8_t *m = (uint8_t *)args->more;
    iris_f8e4m3_t h = iris_f8e4m3_from_f32(iris_d_value_f32(b[i]));
    iris_f8e5m2_t g = iris_f8e5m2_from_f32(iris_d_value_f32(b[i]));
    m[2 * i] = h.bits, m[2 * i + 1] = g.bits;
    h.bits = g.bits = (uint8_t)i;
    l[2 * i] = iris_f8e4m3_to_f32(h), l[2 * i + 1] = iris_f8e5m2_to_f32(g))
EMU(eightsums, f32, float,
    uint8_t *m = (uint8_t *)args->more;
    uint32_t pair = (uint32_t)(args->value + i);
    float scale = hint == 0 ? 1.0f : 0.3f;
    iris_f8e4m3_t af8e4m3, bf8e4m3;
    iris_f8e5m2_t af8e5m2, bf8e5m2;
    F8_SUM(f8e4m3); F8_SUM(f8e5m2);
    m[2 * i] = af8e4m3.bits, m[2 * i + 1] = af8e5m2.bits)
/* clang-format on */

/* Bulk copies of args->count bytes between pointers of any alignment. */
IRIS_KERNEL(emu_wgput, struct emu_args)
{
    iris_wg_put(wg, iris_dev_init(args->context), args->local, args->heap,
                args->count, args->peer);
}

IRIS_KERNEL(emu_wgget, struct emu_args)
{
    iris_wg_get(wg, iris_dev_init(args->context), args->heap, args->local,
                args->count, args->peer);
}

IRIS_KERNEL(emu_wgcopy, struct emu_args)
{
    iris_wg_copy(wg, iris_dev_init(args->context), args->heap, args->more,
                 args->count, args->from, args->peer);
}

IRIS_KERNEL(emu_wgputsignal, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_wg_put_signal(wg, dev, args->local, args->heap, args->count,
                       (uint64_t *)args->more, args->value, args->peer);
}

/* clang-format off */
/* args->count rows, args->value columns, args->from of k: a on the heap, b on the
 * rest of it, the result behind a on the peer's. */
#define PRODUCT(op, name, T, product, DTYPE)                                   \
    IRIS_KERNEL(emu_##op##_##name, struct emu_args)                            \
    {                                                                          \
        IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);                              \
        uint32_t rows = (uint32_t)args->count, cols = (uint32_t)args->value;   \
        uint32_t k = (uint32_t)args->from;                                     \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        iris_tile_t a = iris_tile(args->heap, rows, k, k, sizeof(T));          \
        iris_tile_t b = iris_tile(args->more, k, cols, cols, sizeof(T));       \
        iris_tile_t c = iris_tile((char *)args->heap + 0x4000, rows, cols,     \
                                  cols, sizeof(T));                            \
                                                                               \
        if (args->hint != 0) { /* by columns */                                \
            b.row_stride = 1;                                                  \
            b.col_stride = k;                                                  \
        }                                                                      \
        iris_wg_tile_sums_zero(wg, sums);                                      \
        product(wg, sums, a, b, IRIS_DTYPE_##DTYPE);                           \
        iris_wg_tile_sums_put(wg, dev, sums, c, IRIS_DTYPE_##DTYPE,            \
                              args->peer);                                     \
    }
PRODUCT(product, f16, iris_f16_t, iris_wg_tile_product, F16)
PRODUCT(product, bf16, iris_bf16_t, iris_wg_tile_product, BF16)
PRODUCT(product, f32, float, iris_wg_tile_product, F32)
PRODUCT(ordered, f16, iris_f16_t, iris_wg_tile_product_in_order, F16)
PRODUCT(ordered, bf16, iris_bf16_t, iris_wg_tile_product_in_order, BF16)
PRODUCT(ordered, f32, float, iris_wg_tile_product_in_order, F32)
#undef PRODUCT
/* clang-format on */

/* Tiles of args->count rows and args->value columns, of elements of args->sem
 * bytes: one in own memory, which is larger and has gaps, and one on the heap, with
 * gaps, and with its columns adjacent if args->hint has bit 1. Bit 0 is the same of
 * the one in own memory. */
IRIS_DEVICE iris_tile_t emu_tile(const struct emu_args *args, void *data,
                                 uint32_t more, int by_columns)
{
    uint32_t rows = (uint32_t)args->count + more;
    uint32_t cols = (uint32_t)args->value + more;
    uint32_t bytes = (uint32_t)args->sem;

    return by_columns != 0
               ? iris_tile_transposed(
                     iris_tile(data, cols, rows, rows + 1, bytes))
               : iris_tile(data, rows, cols,
                           cols + (args->hint > 3 ? 0 : 2 - more), bytes);
}

#define EMU_TILE(name, call)                                               \
    IRIS_KERNEL(emu_tile##name, struct emu_args)                           \
    {                                                                      \
        iris_dev_t dev = iris_dev_init(args->context);                     \
        iris_tile_t here =                                                 \
            emu_tile(args, args->local, args->hint < 4, args->hint & 1);   \
        iris_tile_t there = emu_tile(args, args->heap, 0, args->hint & 2); \
                                                                           \
        (void)here, (void)there;                                           \
        call;                                                              \
    }
EMU_TILE(put, iris_wg_tile_put(wg, dev, here, there, args->peer))
EMU_TILE(get, iris_wg_tile_get(wg, dev, there, here, args->from))
EMU_TILE(load, iris_wg_tile_load(wg, dev, there, args->local, args->from))
EMU_TILE(store, iris_wg_tile_store(wg, dev, there, args->local, args->peer))

/* Two ranks pass tiles to and fro, args->from times: rank 1 begins. Each marks its
 * tile as ready for itself, puts it, and waits for the other's. */
IRIS_KERNEL(emu_tilepass, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    iris_tile_t here = emu_tile(args, args->local, 0, 0);
    iris_tile_t there = emu_tile(args, args->heap, 0, 0);
    uint64_t *ready = (uint64_t *)args->more, *come = ready + 1;
    uint32_t *q = (uint32_t *)args->local;

    for (uint64_t turn = 1; turn <= (uint64_t)args->from; turn++) {
        if ((int)(turn & 1) != dev.rank) {
            iris_wg_tile_await(wg, dev, come + (turn & 1), turn - (turn > 2));
            iris_wg_tile_get(wg, dev, there, here, dev.rank);
            iris_wg_barrier(wg);
            continue;
        }
        for (int pauses = 0; pauses < 20; pauses++) {
            iris_d_pause();
        }
        IRIS_WG_LANES (wg, i, args->count * args->value) {
            q[i] = q[i] * 5 + (uint32_t)(i + turn);
        }
        iris_wg_tile_ready(wg, dev, ready, turn);
        iris_wg_tile_await(wg, dev, ready, turn);
        if (turn < 3) {
            iris_wg_tile_put_signal(wg, dev, here, there, come + (turn & 1),
                                    turn, args->peer);
        } else {
            iris_wg_tile_put_signal_add(wg, dev, here, there, come + (turn & 1),
                                        2, args->peer);
        }
    }
}

/* Each lane reads after the barrier what a lane of another wavefront wrote
 * before it. */
IRIS_KERNEL(emu_wgbarrier, struct emu_args)
{
    uint64_t *p = (uint64_t *)args->heap, *q = (uint64_t *)args->more;
    size_t n = args->count;

    IRIS_WG_LANES (wg, i, n) {
        q[i] = 3 * p[i] + wg.id;
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, n) {
        p[i] = q[(i + n / 2) % n];
    }
    if (iris_wg_leader(wg)) {
        p[n] = wg.num_wgs;
    }
}

/* Two ranks, args->value rounds: data, then a flag; then the same back. */
IRIS_KERNEL(emu_pingpong, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t *p = (uint32_t *)args->heap, *q = (uint32_t *)args->local;
    uint64_t *flag = (uint64_t *)args->more;
    size_t n = args->count;

    for (uint64_t turn = 1; turn <= 2 * args->value; turn++) {
        if ((int)(turn & 1) == dev.rank) { /* our turn to send */
            IRIS_WG_LANES (wg, i, n) {
                iris_store_u32(dev, &p[i], p[i] * 5 + (uint32_t)(i + turn),
                               args->peer);
            }
            iris_wg_barrier(wg);
            if (iris_wg_leader(wg)) {
                iris_signal_set(dev, flag, turn, args->peer);
            }
        } else {
            if (iris_wg_leader(wg)) {
                (void)iris_wait_until_u64(dev, flag, IRIS_CMP_EQ, turn);
            }
            iris_wg_barrier(wg);
            IRIS_WG_LANES (wg, i, n) {
                q[i] = q[i] * 3 + p[i];
            }
            iris_wg_barrier(wg);
        }
    }
}

/* Two ranks, args->value rounds, the device barrier between them. */
IRIS_KERNEL(emu_rounds, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t *p = (uint32_t *)args->heap, *q = (uint32_t *)args->local;
    size_t n = args->count;

    for (uint32_t turn = 1; turn <= args->value; turn++) {
        IRIS_WG_LANES (wg, i, n) {
            iris_store_u32(dev, &p[i], (uint32_t)(turn * 1000 + i) + q[i],
                           args->peer);
        }
        iris_dev_barrier(wg, dev, args->group);
        IRIS_WG_LANES (wg, i, n) {
            q[i] = q[i] * 7 + p[i];
        }
        iris_dev_barrier(wg, dev, args->group);
    }
}

/* Sends a signal, a word of data ahead of it: so late that a rank that does not wait
 * for it goes on without its data. */
IRIS_DEVICE void emu_send_late(iris_dev_t dev, const struct emu_args *args,
                               int i, uint64_t datum)
{
    for (int pauses = 0; pauses < 100; pauses++) {
        iris_d_pause();
    }
    iris_store_u64(dev, (uint64_t *)args->heap + i, datum, args->peer);
    iris_signal_set(dev, (uint64_t *)args->more + i, args->value, args->peer);
}

/* Sends the eight signals of a set, `last` behind the others. */
IRIS_DEVICE void emu_send_set(iris_dev_t dev, const struct emu_args *args,
                              int set, int last)
{
    for (int i = 8 * set; i < 8 * set + 8; i++) {
        if (i != last) {
            iris_store_u64(dev, (uint64_t *)args->heap + i, (uint64_t)i + 100,
                           args->peer);
            iris_signal_set(dev, (uint64_t *)args->more + i, args->value,
                            args->peer);
        }
    }
    emu_send_late(dev, args, last, (uint64_t)last + 100);
}

/* Rank 0 waits for all of eight signals, the first of which comes last, for all of
 * which the last one does, for one of eight, and for another one. */
IRIS_KERNEL(emu_sets, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *data = (uint64_t *)args->heap, *set = (uint64_t *)args->more;
    uint64_t *q = (uint64_t *)args->local, value = args->value;
    size_t *indices = (size_t *)q + 24;

    if (!iris_wg_leader(wg)) {
        return;
    }
    for (int k = 0; k < 2; k++) {
        if (dev.rank == 1) {
            emu_send_set(dev, args, k, 15 * k);
            continue;
        }
        iris_wait_until_all(dev, set + 8 * k, 8, NULL, IRIS_CMP_EQ, value);
        for (int i = 8 * k; i < 8 * k + 8; i++) {
            q[i] = data[i];
        }
    }
    if (dev.rank == 0) {
        q[16] = iris_wait_until_any(dev, set + 16, 8, NULL, IRIS_CMP_EQ, value);
        q[17] = data[q[16] < 8 ? 16 + q[16] : 0];
        q[18] = iris_wait_until_some(dev, set + 24, 8, NULL, IRIS_CMP_EQ, value,
                                     indices);
        q[19] = data[q[18] == 1 && indices[0] < 8 ? 24 + indices[0] : 0];
        return;
    }
    emu_send_late(dev, args, 16 + 5, 55);
    emu_send_late(dev, args, 24 + 2, 22);
}

/* Requests to a rank of another node, with IRIS_FAR; library.py is the proxy. Behind
 * three arrays of results are the operands. */
IRIS_KERNEL(emu_ring, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *p = (uint64_t *)args->heap, *q = (uint64_t *)args->more;
    uint64_t *l = (uint64_t *)iris_d_global((uintptr_t)args->local);
    size_t n = args->count;
    const uint64_t *v = l + 3 * n;
    int peer = args->peer;

    IRIS_LANES (wg, i, n) {
        iris_store_u64(dev, &p[i], v[i], peer);
        iris_store_u16(dev, (uint16_t *)q + i, (uint16_t)v[i], peer);
        l[i] = iris_atomic_add_u64(dev, &p[i], 7, peer, IRIS_RELAXED,
                                   IRIS_SCOPE_SYSTEM);
        l[n + i] = iris_atomic_cas_u64(dev, &p[i], l[i] + 7, 3 * v[i], peer,
                                       IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        iris_atomic_store_u64(dev, &q[n + i], v[i] ^ 5, peer, IRIS_RELEASE,
                              IRIS_SCOPE_SYSTEM);
        l[2 * n + i] = iris_load_u64(dev, &p[i], peer);
    }
    iris_wg_put(wg, dev, v, &p[2 * n], 100, peer);
    iris_wg_get(wg, dev, &q[4 * n], &l[5 * n], 300, peer);
    IRIS_LANES (wg, i, n) {
        iris_store_u64(dev, &q[2 * n + i], i, peer);
    }
    if (iris_wg_leader(wg)) {
        IRIS_D_FAR_RELEASE(dev, iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    }
}

/* Two ranks at once on the same elements: none of the updates may be lost. */
IRIS_KERNEL(emu_contest, struct emu_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_dev_barrier(wg, dev, args->group); /* begin together */
    for (uint64_t turn = 0; turn < args->value; turn++) {
        IRIS_WG_LANES (wg, i, args->count) {
            (void)iris_atomic_add_u64(dev, (uint64_t *)args->heap, i, 0,
                                      IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_add_f32(dev, (float *)args->heap + 2, 1.0f, 0,
                                      IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_add_u8(dev, (uint8_t *)args->heap + 13 + dev.rank,
                                     3, 0, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_xor_i16(dev, (int16_t *)args->heap + 8,
                                      (int16_t)(i << dev.rank), 0, IRIS_RELAXED,
                                      IRIS_SCOPE_SYSTEM);
        }
    }
    iris_dev_barrier(wg, dev, args->group);
}

#endif /* EMU_CASES_H */
