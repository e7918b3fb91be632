/* SPDX-License-Identifier: MIT
 *
 * The channel between a pair of members, through which messages go
 * (ccl_pairs.h): its words and its ring, and how members refuse a message.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_CHANNEL_H
#define IRIS_DEVICE_KERNELS_CCL_CHANNEL_H

#include <iris/device/kernels/ccl_far.h>
#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/kernels/ccl_share.h>

/* iris_d_wg_bytes() with half as many loads in flight. With all of them, the
 * kernel has more values than an AMD GPU's lane has registers. */
IRIS_DEVICE_LARGE void iris_d_pair_bytes(iris_wg_t wg, void *to,
                                         const void *from, size_t bytes)
{
#if IRIS_ON_CPU
    iris_d_wg_bytes(wg, to, from, bytes);
#else
    iris_d_team_t team = {iris_d_lane(), wg.num_lanes};

    iris_d_wg_bytes_deep(team, to, from, bytes, IRIS_D_BULK_DEPTH / 2);
#endif
}

IRIS_DEVICE iris_d_u64_t *iris_d_pair_words(const iris_d_ccl_t *ccl, uint32_t w,
                                            uint32_t i)
{
    return (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->pairs) +
           ((size_t)w * ccl->count + i) * IRIS_CCL_PAIR_WORDS;
}

IRIS_DEVICE uint64_t iris_d_pair_word(iris_d_u64_t *words, uint32_t k)
{
    return iris_d_load_u64(&words[k], iris_d_ccl_relaxed());
}

IRIS_DEVICE int iris_d_pair_rank(const iris_d_ccl_t *ccl, uint32_t i)
{
    return (int)iris_d_ccl_word(
        &iris_i_ccl_members(ccl->space)[ccl->count + i]);
}

/* The place in member i's workspace that corresponds to one in this rank's. */
IRIS_DEVICE char *iris_d_pair_there(const iris_d_ccl_t *ccl, const void *place,
                                    uint32_t i)
{
    uintptr_t base =
        (uintptr_t)iris_d_ccl_word(&iris_i_ccl_members(ccl->space)[i]);

    return (char *)iris_d_global(base) +
           ((const char *)place - (const char *)ccl->space);
}

/* Writes a word that member i reads. It becomes visible after all earlier data
 * that this lane has sent to that member. */
IRIS_DEVICE void iris_d_pair_tell(const iris_d_ccl_t *ccl, iris_d_u64_t *place,
                                  uint32_t i, uint64_t value)
{
#if IRIS_ON_CPU || IRIS_FAR
    int rank = iris_d_pair_rank(ccl, i);

    if (IRIS_UNLIKELY(iris_d_is_far(ccl->dev, rank))) {
        iris_d_far_tell(
            ccl->dev, (uint64_t *)iris_d_far_of(ccl->dev, ccl->space, place, i),
            value, rank);
        return;
    }
#endif
    iris_d_store_u64((iris_d_u64_t *)iris_d_pair_there(ccl, place, i), value,
                     iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
}

IRIS_DEVICE void iris_d_pair_put(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                 void *place, uint32_t i, const char *from,
                                 size_t bytes)
{
#if IRIS_ON_CPU || IRIS_FAR
    int rank = iris_d_pair_rank(ccl, i);

    if (IRIS_UNLIKELY(iris_d_is_far(ccl->dev, rank))) {
        IRIS_D_WG_FAR(put, wg, ccl->dev, from,
                      iris_d_far_of(ccl->dev, ccl->space, place, i), bytes,
                      rank);
        return;
    }
#endif
    iris_d_pair_bytes(wg, iris_d_pair_there(ccl, place, i), from, bytes);
}

/* The place of piece number `piece` from member i in this rank's ring. */
IRIS_DEVICE char *iris_d_pair_ring(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                   uint32_t i, uint64_t piece)
{
    size_t bytes = (size_t)iris_d_ccl_word(&ccl->space->pair_bytes);
    size_t pair = (size_t)wg.id * ccl->count + i;

    return iris_d_ccl_own(ccl, &ccl->space->rings) +
           (2 * pair + (size_t)(piece & 1)) * bytes;
}

IRIS_DEVICE iris_d_u64_t *iris_d_pair_told(iris_d_u64_t *words, uint64_t piece)
{
    return words + IRIS_CCL_PAIR_TOLD + 4 * (piece & 1);
}

/* ---- Messages that differ ---- */

IRIS_DEVICE uint64_t iris_d_pair_sized(const struct iris_ccl_pairs_args *args,
                                       uint64_t bytes)
{
    return bytes | (uint64_t)args->most_wgs << IRIS_CCL_PAIR_WGS_SHIFT;
}

IRIS_DEVICE uint64_t iris_d_pair_unsized(uint64_t word)
{
    return word & (((uint64_t)1 << IRIS_CCL_PAIR_WGS_SHIFT) - 1);
}

/* A message that its receiver refused: the words of calls that may differ. They
 * are no calls, because a choice between two structs would be made in memory. */
typedef struct iris_d_refusal {
    uint32_t receiver; /* indexes of members */
    uint32_t sender;
    uint64_t expected; /* the receiver's call, and its bytes */
    uint64_t expected_bytes;
    uint64_t found; /* the sender's */
    uint64_t found_bytes;
} iris_d_refusal_t;

/* Tells this workgroup of member i that this rank refuses a message. */
IRIS_DEVICE void iris_d_pair_refuse(const iris_d_ccl_t *ccl, uint32_t w,
                                    uint32_t i, const iris_d_refusal_t *refusal)
{
    iris_d_u64_t *there = iris_d_pair_words(ccl, w, ccl->index);
    uint64_t found = refusal->found_bytes | (uint64_t)refusal->sender
                                                << IRIS_CCL_PAIR_WGS_SHIFT;

    iris_d_pair_tell(ccl, &there[IRIS_CCL_PAIR_WHAT], i, refusal->expected);
    iris_d_pair_tell(ccl, &there[IRIS_CCL_PAIR_BYTES], i,
                     refusal->expected_bytes);
    iris_d_pair_tell(ccl, &there[IRIS_CCL_PAIR_FOUND_WHAT], i, refusal->found);
    iris_d_pair_tell(ccl, &there[IRIS_CCL_PAIR_FOUND], i, found);
    iris_d_release_ahead();
    iris_d_pair_tell(ccl, &there[IRIS_CCL_PAIR_TAKEN], i,
                     IRIS_CCL_PAIR_REFUSED);
    iris_d_pair_tell(ccl, &there[IRIS_CCL_PAIR_ARRIVED], i,
                     IRIS_CCL_PAIR_REFUSED);
}

/* Ends the kernel. The receiver and the sender report their own call and the
 * other's; a third member reports both. Every lane tells the same. */
IRIS_DEVICE_APART void iris_d_pair_differ(struct iris_ccl_start start,
                                          iris_d_refusal_t refusal)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&start, 0);
    iris_bool_t finds = ccl.index == refusal.receiver;
    uint32_t other = finds ? refusal.sender : refusal.receiver;
    struct iris_dev_mismatch mismatch;

    mismatch.rank = (int32_t)ccl.dev.rank;
    mismatch.other = (int32_t)iris_d_pair_rank(&ccl, other);
    mismatch.count =
        iris_d_load_u64(iris_d_ccl_count(&ccl), iris_d_ccl_relaxed()) + 1;
    mismatch.own = mismatch.theirs = start.what;
    mismatch.own.what = finds ? refusal.expected : refusal.found;
    mismatch.theirs.what = finds ? refusal.found : refusal.expected;
    mismatch.own.sizes[0] =
        finds ? refusal.expected_bytes : refusal.found_bytes;
    mismatch.theirs.sizes[0] =
        finds ? refusal.found_bytes : refusal.expected_bytes;
    mismatch.own.sizes[1] =
        ccl.index == refusal.receiver || ccl.index == refusal.sender
            ? 0
            : (uint64_t)iris_d_pair_rank(&ccl, refusal.sender) + 1;
#if IRIS_ON_CPU
    iris_cpu_mismatch(ccl.dev.cpu, &mismatch);
#endif
#if IRIS_D_WATCHED
    if (iris_d_watch(ccl.dev) != NULL) {
        iris_d_ccl_report(&ccl, other, &mismatch, iris_d_watch(ccl.dev));
    }
#endif
}

/* Ends the kernel: member i's message is not the one that this rank expects.
 * Tells that member or, in a call of the whole group, in which all members wait
 * for this rank, all of them. */
IRIS_DEVICE_APART void iris_d_pair_find(struct iris_ccl_start start,
                                        iris_bool_t tells_all, uint32_t i,
                                        uint64_t bytes, iris_d_u64_t *told)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&start, 0);
    uint32_t wgs = (uint32_t)iris_d_ccl_word(&ccl.space->pair_wgs);
    iris_d_refusal_t refusal;

#if IRIS_FAR && IRIS_D_WATCHED
    if (iris_d_lane() != 0) {
        iris_d_end_lane(); /* one lane's messages are enough */
    }
#endif
    refusal.receiver = ccl.index;
    refusal.sender = i;
    refusal.expected = start.what.what;
    refusal.expected_bytes = bytes;
    refusal.found = iris_d_pair_word(told, 0);
    refusal.found_bytes = iris_d_pair_unsized(iris_d_pair_word(told, 1));
    for (uint32_t m = 0; m < ccl.count; m++) {
        for (uint32_t w = 0; w < wgs && m != ccl.index && (m == i || tells_all);
             w++) {
            iris_d_pair_refuse(&ccl, w, m, &refusal);
        }
    }
    iris_d_pair_differ(start, refusal);
}

/* Waits until member i has sent or taken this number of pieces. Returns 0 if it
 * has refused a message. Only the leader polls: now and then a wait that takes
 * long reads words of the host, one lane after the other, and thousands of
 * lanes took 1.3 ms for that. */
IRIS_DEVICE iris_bool_t iris_d_pair_wait(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                         iris_d_u64_t *words, uint32_t k,
                                         uint64_t least, uint32_t i)
{
    iris_d_refusal_t refusal;
    uint64_t found, seen;

    if (iris_wg_leader(wg)) {
        (void)iris_d_wait(
            ccl->dev, &words[k],
            iris_d_ccl_condition(IRIS_D_KIND_u64, IRIS_CMP_GE, least));
    }
    iris_wg_barrier(wg);
    seen = iris_d_pair_word(words, k);
#if IRIS_D_WATCHED
    if (IRIS_UNLIKELY(seen < least)) {
        iris_d_end_lane(); /* the leader has, and barriers do not wait for it */
    }
#endif
    if (seen != IRIS_CCL_PAIR_REFUSED) {
        return 1;
    }
    found = iris_d_pair_word(words, IRIS_CCL_PAIR_FOUND);
    refusal.receiver = i;
    refusal.sender = (uint32_t)(found >> IRIS_CCL_PAIR_WGS_SHIFT);
    refusal.expected = iris_d_pair_word(words, IRIS_CCL_PAIR_WHAT);
    refusal.expected_bytes = iris_d_pair_word(words, IRIS_CCL_PAIR_BYTES);
    refusal.found = iris_d_pair_word(words, IRIS_CCL_PAIR_FOUND_WHAT);
    refusal.found_bytes = iris_d_pair_unsized(found);
    iris_d_pair_differ(*ccl->start, refusal);
    return 0;
}

#endif /* IRIS_DEVICE_KERNELS_CCL_CHANNEL_H */
