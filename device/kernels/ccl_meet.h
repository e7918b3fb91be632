/* SPDX-License-Identifier: MIT
 *
 * How workgroups of a group's members begin and end a step in which they access
 * each other's buffers. A hello tells the addresses of the buffers. A bye says
 * that the member no longer uses them.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_MEET_H
#define IRIS_DEVICE_KERNELS_CCL_MEET_H

#include <iris/device/kernels/ccl_space.h>

/* Words of a hello. Buffers are offsets from the start of the member's heap, so
 * that they need not be the same on all members. */
enum {
    IRIS_CCL_IN_LOW,
    IRIS_CCL_IN_HIGH,
    IRIS_CCL_OUT_LOW,
    IRIS_CCL_OUT_HIGH,
    IRIS_CCL_CALL,
};

/* Member i's hello to this workgroup is at this offset from hellos. */
IRIS_DEVICE size_t iris_d_ccl_hello_at(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                       uint32_t i)
{
    size_t wgs = (size_t)iris_d_ccl_word(&ccl->space->max_wgs);
    size_t parity = (size_t)(ccl->epoch & 1);

    return ((parity * wgs + wg.id) * ccl->count + i) * IRIS_CCL_HELLO_SPACE * 8;
}

/* Word k of this rank's hello. */
IRIS_DEVICE uint32_t iris_d_ccl_says(const iris_d_ccl_t *ccl, const void *in,
                                     const void *out, uint32_t k)
{
    uint64_t from = (uint64_t)((uintptr_t)in - ccl->dev.heap_base);
    uint64_t to = (uint64_t)((uintptr_t)out - ccl->dev.heap_base);

    return k == IRIS_CCL_CALL      ? ccl->call
           : k == IRIS_CCL_IN_LOW  ? (uint32_t)from
           : k == IRIS_CCL_IN_HIGH ? (uint32_t)(from >> 32)
           : k == IRIS_CCL_OUT_LOW ? (uint32_t)to
                                   : (uint32_t)(to >> 32);
}

/* Tells this workgroup of every member the addresses of this rank's buffers,
 * and waits for the hellos of all members. Their kernels have then begun:
 * earlier work on their streams is complete and visible. Called by all lanes of
 * the workgroup. */
IRIS_DEVICE void iris_d_ccl_hello(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                  const void *in, const void *out)
{
    uint32_t flag = iris_d_ccl_flag(ccl);
    size_t mine = iris_d_ccl_hello_at(wg, ccl, ccl->index);

    iris_d_release_ahead();
    IRIS_WG_LANES (wg, i, (size_t)ccl->count * IRIS_CCL_HELLO_WORDS) {
        uint32_t k = (uint32_t)i % IRIS_CCL_HELLO_WORDS;
        uint32_t to = iris_d_ccl_after(ccl, (uint32_t)i / IRIS_CCL_HELLO_WORDS);
        char *hello = iris_d_ccl_peer(ccl, to, &ccl->space->hellos) + mine;

        iris_d_store_u64(
            (iris_d_u64_t *)hello + k,
            iris_d_ccl_half(iris_d_ccl_says(ccl, in, out, k), flag),
            iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
    }
    IRIS_WG_LANES (wg, i, (size_t)ccl->count * IRIS_CCL_HELLO_WORDS) {
        uint32_t k = (uint32_t)i % IRIS_CCL_HELLO_WORDS;
        uint32_t from =
            iris_d_ccl_after(ccl, (uint32_t)i / IRIS_CCL_HELLO_WORDS);
        const char *half = iris_d_ccl_own(ccl, &ccl->space->hellos) +
                           iris_d_ccl_hello_at(wg, ccl, from) + k * 8;

        if (k == IRIS_CCL_CALL) {
            /* A member that makes another call never sends the awaited
             * words. */
            iris_d_ccl_wait(ccl, half, IRIS_D_KIND_u64, IRIS_CMP_EQ,
                            iris_d_ccl_half(ccl->call, flag));
        } else {
            iris_d_ccl_await(ccl, half);
        }
    }
    iris_wg_barrier(wg);
}

/* A hello without buffers: tells this workgroup of every other member that this
 * workgroup has begun the step. The lanes that tell have released earlier
 * work. */
IRIS_DEVICE void iris_d_ccl_greet_ahead(iris_wg_t wg, const iris_d_ccl_t *ccl)
{
    uint64_t word = iris_d_ccl_half(ccl->call, iris_d_ccl_flag(ccl));
    size_t mine = iris_d_ccl_hello_at(wg, ccl, ccl->index);

    IRIS_WG_LANES (wg, i, (size_t)ccl->count - 1) {
        uint32_t to = iris_d_ccl_after(ccl, (uint32_t)i + 1);
        char *hello = iris_d_ccl_peer(ccl, to, &ccl->space->hellos) + mine;

        iris_d_store_u64((iris_d_u64_t *)hello + IRIS_CCL_CALL, word,
                         iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
    }
}

/* Waits for such hellos. It does not wait for member `heard`, which has shown
 * this in another way. */
IRIS_DEVICE void iris_d_ccl_greeted(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                    uint32_t heard)
{
    uint64_t word = iris_d_ccl_half(ccl->call, iris_d_ccl_flag(ccl));

    IRIS_WG_LANES (wg, i, (size_t)ccl->count - 1) {
        uint32_t from = iris_d_ccl_after(ccl, (uint32_t)i + 1);
        const char *hello = iris_d_ccl_own(ccl, &ccl->space->hellos) +
                            iris_d_ccl_hello_at(wg, ccl, from);

        if (from != heard) {
            iris_d_ccl_wait(ccl, hello + IRIS_CCL_CALL * 8, IRIS_D_KIND_u64,
                            IRIS_CMP_EQ, word);
        }
    }
    iris_wg_barrier(wg);
}

/* Both, called by all lanes of the workgroup. */
IRIS_DEVICE void iris_d_ccl_greet(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                  uint32_t heard)
{
    iris_d_release_ahead();
    iris_d_ccl_greet_ahead(wg, ccl);
    iris_d_ccl_greeted(wg, ccl, heard);
}

/* The address of the buffer that member i named in its hello, as this rank maps
 * it. `low` is IRIS_CCL_IN_LOW or IRIS_CCL_OUT_LOW. */
IRIS_DEVICE uint64_t iris_d_ccl_named(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                      uint32_t i, uint32_t low)
{
    iris_d_u64_t *hello =
        (iris_d_u64_t *)(iris_d_ccl_own(ccl, &ccl->space->hellos) +
                         iris_d_ccl_hello_at(wg, ccl, i));
    uint64_t offset =
        iris_d_load_u64(&hello[low], iris_d_ccl_relaxed()) & 0xffffffffu;
    int64_t rank =
        iris_d_ccl_word(&iris_i_ccl_members(ccl->space)[ccl->count + i]);

    offset |= iris_d_load_u64(&hello[low + 1], iris_d_ccl_relaxed()) << 32;
    return (uint64_t)iris_d_load_constant(&ccl->dev.heap_bases[rank]) + offset;
}

/* The members' buffers in this step: tables of addresses, in the group's
 * order. */
typedef struct iris_d_ccl_tables {
    const iris_d_u64_t *in;
    const iris_d_u64_t *out;
} iris_d_ccl_tables_t;

IRIS_DEVICE char *iris_d_ccl_at(const iris_d_u64_t *table, uint32_t i)
{
    return (char *)iris_d_global((uintptr_t)table[i]);
}

/* iris_d_ccl_hello(), then tables of the addresses that the members sent.
 * Called by all lanes. */
IRIS_DEVICE iris_d_ccl_tables_t iris_d_ccl_meet(iris_wg_t wg,
                                                const iris_d_ccl_t *ccl,
                                                const void *in, const void *out)
{
    iris_d_u64_t *table =
        (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->tables) +
        (size_t)wg.id * (2 * ccl->count + IRIS_CCL_TABLE_SPARE);
    iris_d_ccl_tables_t tables = {table, table + ccl->count};

    iris_d_ccl_hello(wg, ccl, in, out);
    iris_d_ccl_go_on(ccl);
    IRIS_WG_LANES (wg, i, 2 * (size_t)ccl->count) {
        table[i] = i < ccl->count
                       ? iris_d_ccl_named(wg, ccl, (uint32_t)i, IRIS_CCL_IN_LOW)
                       : iris_d_ccl_named(wg, ccl, (uint32_t)i - ccl->count,
                                          IRIS_CCL_OUT_LOW);
    }
    iris_wg_barrier(wg);
    return tables;
}

/* Words of a workgroup's local memory for tables of addresses. */
#define IRIS_CCL_NEAR_WORDS (2 * IRIS_CCL_NEAR)

#if IRIS_ON_CUDA
/* iris_d_ccl_meet() with tables in local memory. */
IRIS_DEVICE iris_d_ccl_tables_t iris_d_ccl_meet_near(
    iris_wg_t wg, const iris_d_ccl_t *ccl, const struct iris_ccl_near *near,
    const void *in, const void *out, iris_d_u64_t *table)
{
    uint32_t flag = iris_d_ccl_flag(ccl);
    uint64_t first = near->hellos + ((ccl->epoch & 1) * near->max_wgs + wg.id) *
                                        near->count * IRIS_CCL_HELLO_SPACE * 8;
    iris_d_ccl_tables_t tables = {table, table + IRIS_CCL_NEAR};

    IRIS_WG_LANES (wg, i, (size_t)near->count * IRIS_CCL_HELLO_WORDS) {
        uint32_t k = (uint32_t)i % IRIS_CCL_HELLO_WORDS;
        uint32_t to = iris_d_ccl_after(ccl, (uint32_t)i / IRIS_CCL_HELLO_WORDS);
        iris_d_u64_t *hello = (iris_d_u64_t *)iris_d_ccl_near_at(
            near, to, first + near->index * IRIS_CCL_HELLO_SPACE * 8);

        /* Only these lanes: a fence of all takes as long as a message. */
        iris_d_release_ahead();
        iris_d_store_u64(
            hello + k, iris_d_ccl_half(iris_d_ccl_says(ccl, in, out, k), flag),
            iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
    }
    /* A lane waits for an address, or for the call. */
    IRIS_WG_LANES (wg, i, (size_t)near->count * 3) {
        uint32_t k = (uint32_t)i % 3 * 2;
        uint32_t from = iris_d_ccl_after(ccl, (uint32_t)i / 3);
        iris_d_u64_t *hello = (iris_d_u64_t *)iris_d_ccl_near_at(
            near, near->index, first + from * IRIS_CCL_HELLO_SPACE * 8);
        uint64_t low;

        if (k == IRIS_CCL_CALL) {
            iris_d_ccl_wait(ccl, hello + k, IRIS_D_KIND_u64, IRIS_CMP_EQ,
                            iris_d_ccl_half(ccl->call, flag));
        } else {
            iris_d_ccl_await(ccl, hello + k);
            iris_d_ccl_await(ccl, hello + k + 1);
            low = iris_d_load_u64(hello + k, iris_d_ccl_relaxed());
            table[k / 2 * IRIS_CCL_NEAR + from] =
                near->heaps[from] + (uint32_t)low +
                (iris_d_load_u64(hello + k + 1, iris_d_ccl_relaxed()) << 32);
        }
    }
    iris_wg_barrier(wg);
#if IRIS_D_WATCHED
    if (IRIS_UNLIKELY(iris_d_load_u64((iris_d_u64_t *)iris_d_ccl_near_at(
                                          near, near->index,
                                          near->call + IRIS_CCL_CALL_LEFT * 8),
                                      iris_d_ccl_relaxed()) != 0)) {
        iris_d_end_lane(); /* iris_d_ccl_go_on() says why */
    }
#endif
    return tables;
}
#endif

/* Meets by the workspace's header or, if `near` is not NULL, by arguments. On
 * AMD GPUs tables are in memory in both cases: not measured. */
IRIS_DEVICE iris_d_ccl_tables_t iris_d_ccl_meet_by(
    iris_wg_t wg, const iris_d_ccl_t *ccl, const struct iris_ccl_near *near,
    const void *in, const void *out, iris_d_u64_t *table)
{
#if IRIS_ON_CUDA
    if (near != NULL) {
        return iris_d_ccl_meet_near(wg, ccl, near, in, out, table);
    }
#endif
    (void)near, (void)table;
    return iris_d_ccl_meet(wg, ccl, in, out);
}

/* iris_d_ccl_bye() with the addresses of the members' words, and of this
 * rank's. */
IRIS_DEVICE void iris_d_ccl_bye_at(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                   const struct iris_ccl_near *near)
{
    size_t first = (size_t)wg.id * ccl->count;

    iris_wg_barrier(wg);
    if (!IRIS_ON_CUDA) {
        iris_d_release_ahead(); /* releases all writes of the workgroup */
    }
    IRIS_WG_LANES (wg, i, ccl->count) {
        uint32_t to = iris_d_ccl_after(ccl, (uint32_t)i);
        char *byes = near != NULL ? iris_d_ccl_near_at(near, to, near->byes)
                                  : iris_d_ccl_peer(ccl, to, &ccl->space->byes);

        if (IRIS_ON_CUDA) {
            iris_d_release_ahead(); /* a fence of all lanes takes longer */
        }
        iris_d_store_u64((iris_d_u64_t *)byes + first + ccl->index, ccl->epoch,
                         iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
    }
    IRIS_WG_LANES (wg, i, ccl->count) {
        char *byes = near != NULL
                         ? iris_d_ccl_near_at(near, near->index, near->byes)
                         : iris_d_ccl_own(ccl, &ccl->space->byes);

#if IRIS_D_TRACES /* an event of traces */
        (void)iris_d_wait(
            ccl->dev, (iris_d_u64_t *)byes + first + i,
            iris_d_ccl_condition(IRIS_D_KIND_u64, IRIS_CMP_GE, ccl->epoch));
#else
        iris_d_ccl_wait(ccl, (iris_d_u64_t *)byes + first + i, IRIS_D_KIND_u64,
                        IRIS_CMP_GE, ccl->epoch);
#endif
    }
    iris_wg_barrier(wg);
}

/* Waits until this workgroup of every member has ended the step. Then its
 * writes are visible here, and it no longer reads this rank's buffers. Called
 * by all lanes. */
IRIS_DEVICE void iris_d_ccl_bye(iris_wg_t wg, const iris_d_ccl_t *ccl)
{
    iris_d_ccl_bye_at(wg, ccl, NULL);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_MEET_H */
