/* SPDX-License-Identifier: MIT
 *
 * What the kernels of collectives share: the memory that the members of a group
 * have for it, and the steps that every such kernel begins and ends with.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_SPACE_H
#define IRIS_DEVICE_KERNELS_CCL_SPACE_H

#include <iris/device/barrier.h>
#include <iris/device/kernels/ccl_args.h>

/* One workgroup's kernel. */
typedef struct iris_d_ccl {
    iris_dev_t dev;
    struct iris_ccl_space *space;
    uint32_t count;
    uint32_t index;
    uint32_t call;
    uint64_t epoch; /* of the step under way */
} iris_d_ccl_t;

IRIS_DEVICE int64_t iris_d_ccl_word(const int64_t *word)
{
    return iris_d_load_constant(word);
}

/* This rank's own memory at an offset that `where` holds. */
IRIS_DEVICE char *iris_d_ccl_own(const iris_d_ccl_t *ccl, const int64_t *where)
{
    return (char *)ccl->space + iris_d_ccl_word(where);
}

/* The same of member i, as this rank maps it. */
IRIS_DEVICE char *iris_d_ccl_peer(const iris_d_ccl_t *ccl, uint32_t i,
                                  const int64_t *where)
{
    uintptr_t base =
        (uintptr_t)iris_d_ccl_word(&iris_i_ccl_members(ccl->space)[i]);

    return (char *)iris_d_global(base) + iris_d_ccl_word(where);
}

IRIS_DEVICE uint32_t iris_d_ccl_flag(const iris_d_ccl_t *ccl)
{
    return (uint32_t)ccl->epoch;
}

/* Member `index` counted on from this rank: who comes `i`th after it. */
IRIS_DEVICE uint32_t iris_d_ccl_after(const iris_d_ccl_t *ccl, uint32_t i)
{
    uint32_t member = ccl->index + i;

    return member < ccl->count ? member : member - ccl->count;
}

/* The half of a packet that holds `data`. */
IRIS_DEVICE uint64_t iris_d_ccl_half(uint32_t data, uint32_t flag)
{
    return (uint64_t)flag << 32 | data;
}

IRIS_DEVICE iris_d_order_t iris_d_ccl_relaxed(void)
{
    return iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
}

/* A wait of this kernel's for a word or for the flag of half a packet. */
IRIS_DEVICE iris_d_condition_t iris_d_ccl_condition(enum iris_d_kind kind,
                                                    iris_cmp_t cmp,
                                                    uint64_t value)
{
    iris_d_condition_t condition = iris_d_condition(kind, cmp, value);

    condition.op = IRIS_OP_BARRIER; /* who reads a report wants to know */
    return condition;
}

/* Waits for a half of a packet of this step; returns it. Acquires. */
IRIS_DEVICE uint64_t iris_d_ccl_await(const iris_d_ccl_t *ccl, const void *half)
{
    uint32_t flag = iris_d_ccl_flag(ccl);
    iris_d_waiting_t wait;
    uint64_t seen = iris_d_peek(half, IRIS_D_KIND_u64);

    if ((uint32_t)(seen >> 32) != flag) {
        wait = iris_d_wait_begin(
            ccl->dev, (const char *)half + 4,
            iris_d_ccl_condition(IRIS_D_KIND_u32, IRIS_CMP_EQ, flag));
        do {
            iris_d_wait_poll(ccl->dev, &wait);
            seen = iris_d_peek(half, IRIS_D_KIND_u64);
        } while ((uint32_t)(seen >> 32) != flag);
        iris_d_wait_end(ccl->dev);
    }
    iris_d_polled();
    return seen;
}

/* ---- Begin and end ------------------------------------------------------- */

/* Clears this rank's packets, once in 2^32 steps: the flags begin anew, and one
 * of last time's must not be taken for one of this time's. All workgroups of
 * all members are waited for, since who has cleared its own share may get
 * packets in another's. Workgroup w counts for those that its grid lacks, too,
 * so that each rank counts to max_wgs whatever its grid is.
 *
 * Nobody has packets of an earlier step under way: their receivers have waited
 * for each of them. */
IRIS_DEVICE void iris_d_ccl_clear(iris_wg_t wg, const iris_d_ccl_t *ccl)
{
    uint64_t max_wgs = (uint64_t)iris_d_ccl_word(&ccl->space->max_wgs);
    uint64_t rounds = ccl->epoch >> 32, counts = 0;
    iris_d_u64_t *hellos =
        (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->hellos);
    iris_d_u64_t *slots =
        (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->slots);
    size_t bytes = (size_t)(iris_d_ccl_word(&ccl->space->bytes) -
                            iris_d_ccl_word(&ccl->space->slots));

    IRIS_LANES (wg, i, 2 * max_wgs * ccl->count * IRIS_CCL_HELLO_SPACE) {
        iris_d_store_u64(&hellos[i], 0, iris_d_ccl_relaxed());
    }
    IRIS_LANES (wg, i, bytes / 8) {
        iris_d_store_u64(&slots[i], 0, iris_d_ccl_relaxed());
    }
    iris_wg_barrier(wg);
    for (uint64_t w = wg.id; w < max_wgs; w += wg.num_wgs) {
        counts++;
    }
    IRIS_WG_LANES (wg, i, ccl->count) {
        (void)iris_d_add_u64((iris_d_u64_t *)iris_d_ccl_peer(
                                 ccl, (uint32_t)i, &ccl->space->cleared) +
                                 ccl->index,
                             counts,
                             iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    }
    IRIS_WG_LANES (wg, i, ccl->count) {
        (void)iris_d_wait(
            ccl->dev,
            (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->cleared) + i,
            iris_d_ccl_condition(IRIS_D_KIND_u64, IRIS_CMP_GE,
                                 rounds * max_wgs));
    }
    iris_wg_barrier(wg);
}

/* Where this workgroup counts its steps. */
IRIS_DEVICE iris_d_u64_t *iris_d_ccl_epoch(const iris_d_ccl_t *ccl, uint32_t w)
{
    return (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->epochs) + w;
}

/* What a kernel begins with. Flag 0 is that of no step: cleared packets have
 * it. A kernel whose steps would take the flag past it begins 2^32 anew. */
IRIS_DEVICE iris_d_ccl_t iris_d_ccl_begin(iris_wg_t wg,
                                          const struct iris_ccl_start *start)
{
    iris_d_ccl_t ccl;
    uint64_t next;

    ccl.dev = iris_dev_init(start->context);
    ccl.space = (struct iris_ccl_space *)iris_d_global((uintptr_t)start->space);
    ccl.count = (uint32_t)iris_d_ccl_word(&ccl.space->count);
    ccl.index = (uint32_t)iris_d_ccl_word(&ccl.space->index);
    ccl.call = start->call;
#if IRIS_ON_CPU
    ccl.epoch = iris_d_or_u64(iris_d_ccl_epoch(&ccl, wg.id), IRIS_CCL_BUSY,
                              iris_d_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM));
    if (IRIS_UNLIKELY((ccl.epoch & IRIS_CCL_BUSY) != 0)) {
        iris_cpu_end(wg.cpu,
                     "the workspace is in use by a collective on another "
                     "stream, or one that used it did not end; give each "
                     "stream a workspace of its own "
                     "(iris_ccl_workspace_create)");
    }
#else
    ccl.epoch = *iris_d_ccl_epoch(&ccl, wg.id);
#endif
    next = ((ccl.epoch >> 32) + 1) << 32;
    if (IRIS_UNLIKELY(next - ccl.epoch <= start->steps)) {
        ccl.epoch = next;
        iris_d_ccl_clear(wg, &ccl);
    }
    return ccl;
}

/* What a kernel ends with: the steps it took are counted, those of workgroups
 * that this grid lacks as well, so that the next one may have them. */
IRIS_DEVICE void iris_d_ccl_end(iris_wg_t wg, const iris_d_ccl_t *ccl)
{
    uint32_t max_wgs = (uint32_t)iris_d_ccl_word(&ccl->space->max_wgs);

    iris_wg_barrier(wg); /* every lane has read the epoch */
    IRIS_WG_LANES (wg, i, (max_wgs - wg.id + wg.num_wgs - 1) / wg.num_wgs) {
        iris_d_store_u64(
            iris_d_ccl_epoch(ccl, wg.id + (uint32_t)i * wg.num_wgs), ccl->epoch,
            iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
    }
}

#endif /* IRIS_DEVICE_KERNELS_CCL_SPACE_H */
