/* SPDX-License-Identifier: MIT
 *
 * The workspace that the kernels of collectives share, and the steps with which
 * every such kernel begins and ends.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_SPACE_H
#define IRIS_DEVICE_KERNELS_CCL_SPACE_H

#include <iris/device/wg/barrier.h>
#include <iris/device/kernels/ccl_args.h>
#include <iris/device/core/vector.h>

/* The state of one workgroup's kernel. */
typedef struct iris_d_ccl {
    iris_dev_t dev;
    struct iris_ccl_space *space;
    uint32_t count;
    uint32_t index;
    uint32_t call;
    const struct iris_ccl_start *start;
    uint64_t epoch;  /* number of the current step */
    uint32_t before; /* low half of the step before the kernel's first */
} iris_d_ccl_t;

IRIS_DEVICE int64_t iris_d_ccl_word(const int64_t *word)
{
    return iris_d_load_constant(word);
}

/* The state of a kernel whose first step follows the step with low half
 * `before`. */
IRIS_DEVICE iris_d_ccl_t iris_d_ccl_of(const struct iris_ccl_start *start,
                                       uint32_t before)
{
    iris_d_ccl_t ccl;

    ccl.dev = iris_dev_init(start->context);
    ccl.space = (struct iris_ccl_space *)iris_d_global((uintptr_t)start->space);
    ccl.count = (uint32_t)iris_d_ccl_word(&ccl.space->count);
    ccl.index = (uint32_t)iris_d_ccl_word(&ccl.space->index);
    ccl.call = start->call;
    ccl.start = start;
    ccl.epoch = before;
    ccl.before = before;
    return ccl;
}

/* The address in this rank's workspace of the offset in `where`. */
IRIS_DEVICE char *iris_d_ccl_own(const iris_d_ccl_t *ccl, const int64_t *where)
{
    return (char *)ccl->space + iris_d_ccl_word(where);
}

/* The same place in member i's workspace, as this rank maps it. */
IRIS_DEVICE char *iris_d_ccl_peer(const iris_d_ccl_t *ccl, uint32_t i,
                                  const int64_t *where)
{
    uintptr_t base =
        (uintptr_t)iris_d_ccl_word(&iris_i_ccl_members(ccl->space)[i]);

    return (char *)iris_d_global(base) + iris_d_ccl_word(where);
}

/* The flag of hellos. */
IRIS_DEVICE uint32_t iris_d_ccl_flag(const iris_d_ccl_t *ccl)
{
    return (uint32_t)ccl->epoch;
}

/* The flags of a packet's two words. */
typedef struct iris_d_ccl_flags {
    uint32_t low;
    uint32_t high;
} iris_d_ccl_flags_t;

IRIS_DEVICE iris_d_ccl_flags_t iris_d_ccl_flags(const iris_d_ccl_t *ccl)
{
    uint32_t step = (uint32_t)ccl->epoch << IRIS_CCL_CHECK_BITS;
    iris_d_ccl_flags_t flags = {
        step | (ccl->call & ((1u << IRIS_CCL_CHECK_BITS) - 1)),
        step | ccl->call >> (32 - IRIS_CCL_CHECK_BITS)};

    return flags;
}

/* Index of the `i`th member after this rank. */
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

/* The condition of a wait for a word, or for the flag of half a packet. */
IRIS_DEVICE iris_d_condition_t iris_d_ccl_condition(enum iris_d_kind kind,
                                                    iris_cmp_t cmp,
                                                    uint64_t value)
{
    iris_d_condition_t condition = iris_d_condition(kind, cmp, value);

    condition.op = IRIS_OP_BARRIER; /* for the reader of a report */
    return condition;
}

/* ---- Members with different calls
 * ------------------------------------------- */

/* Word k of member i's description of its call. */
IRIS_DEVICE uint64_t iris_d_ccl_told(const iris_d_ccl_t *ccl, uint32_t i,
                                     uint32_t k)
{
    return iris_d_load_u64(
        (iris_d_u64_t *)iris_d_ccl_peer(ccl, i, &ccl->space->call) + k,
        iris_d_ccl_relaxed());
}

/* The first word of `call` for this kernel. */
IRIS_DEVICE uint64_t iris_d_ccl_begun(const iris_d_ccl_t *ccl)
{
    return (uint64_t)(ccl->before + 1) << 32 | ccl->call;
}

/* The word in which workgroup w counts its steps. */
IRIS_DEVICE iris_d_u64_t *iris_d_ccl_epoch(const iris_d_ccl_t *ccl, uint32_t w)
{
    return (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->epochs) + w;
}

/* Not 0 if lanes of a GPU have ended in the middle of a step. */
IRIS_DEVICE iris_d_u64_t *iris_d_ccl_left(const iris_d_ccl_t *ccl)
{
    return (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->call) +
           IRIS_CCL_CALL_LEFT;
}

IRIS_DEVICE void iris_d_ccl_call_of(const iris_d_ccl_t *ccl, uint32_t i,
                                    struct iris_dev_call *to)
{
    to->what = iris_d_ccl_told(ccl, i, IRIS_CCL_CALL_WHAT);
    IRIS_D_UNROLL
    for (uint32_t k = 0; k < 3; k++) {
        to->sizes[k] = iris_d_ccl_told(ccl, i, IRIS_CCL_CALL_SIZES + k);
    }
}

/* The word in which a workspace counts its calls, for messages. It follows the
 * steps. */
IRIS_DEVICE iris_d_u64_t *iris_d_ccl_count(const iris_d_ccl_t *ccl)
{
    return iris_d_ccl_epoch(ccl,
                            (uint32_t)iris_d_ccl_word(&ccl->space->max_wgs));
}

/* Fills in the report: member i makes another call. If i is this rank itself,
 * its workspace is in use, or was left in the middle of a step. */
IRIS_DEVICE void iris_d_ccl_describe(const iris_d_ccl_t *ccl, uint32_t i,
                                     struct iris_dev_mismatch *to)
{
    int64_t *ranks = iris_i_ccl_members(ccl->space) + ccl->count;

    to->rank = (int32_t)ccl->dev.rank;
    to->other = i == ccl->index ? -1 : (int32_t)iris_d_ccl_word(&ranks[i]);
    to->count =
        iris_d_load_u64(iris_d_ccl_count(ccl), iris_d_ccl_relaxed()) + 1;
    iris_d_ccl_call_of(ccl, ccl->index, &to->own);
    iris_d_ccl_call_of(ccl, i, &to->theirs);
}

#if IRIS_D_WATCHED
/* Marks the workspace as unusable: a later kernel would take the same step
 * again. Workgroups that end later only add to the words. */
IRIS_DEVICE void iris_d_ccl_leave(const iris_d_ccl_t *ccl)
{
    uint32_t max_wgs = (uint32_t)iris_d_ccl_word(&ccl->space->max_wgs);

    if (iris_d_load_u64(iris_d_ccl_left(ccl), iris_d_ccl_relaxed()) != 0) {
        return;
    }
    for (uint32_t w = 0; w < max_wgs; w++) {
        iris_d_store_u64(iris_d_ccl_epoch(ccl, w), IRIS_CCL_BUSY,
                         iris_d_ccl_relaxed());
    }
    iris_d_store_u64(iris_d_ccl_left(ccl), 1, iris_d_ccl_relaxed());
}

/* Ends this lane. If it is the first of the device that has a report, reports
 * the mismatch. */
IRIS_DEVICE void
iris_d_mismatch_report(iris_dev_t dev, iris_bool_t first,
                       const struct iris_dev_mismatch *mismatch)
{
    struct iris_dev_watch *watch = iris_d_watch(dev);
    iris_d_order_t release = iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);

    if (first) {
        watch->bytes = 0;
        watch->mismatch = *mismatch;
    }
    iris_d_store(&watch->stop, sizeof watch->stop, 1, release);
    if (first) {
        iris_d_store(&watch->ready, sizeof watch->ready, 1, release);
    }
    iris_d_end_lane();
}

/* The first lane of the device that comes here reports `known` or, if that is
 * NULL, member i. All lanes that come here end. Lanes that reach the next
 * barrier without this lane see that it has ended, because it releases that
 * before it leaves. */
IRIS_DEVICE void iris_d_ccl_report(const iris_d_ccl_t *ccl, uint32_t i,
                                   const struct iris_dev_mismatch *known,
                                   struct iris_dev_watch *watch)
{
    iris_d_order_t release = iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    iris_bool_t first = iris_d_report_claim(ccl->dev);

    iris_d_ccl_leave(ccl);
    if (first) {
        watch->bytes = 0;
        if (known != NULL) {
            watch->mismatch = *known;
        } else {
            iris_d_ccl_describe(ccl, i, &watch->mismatch);
        }
    }
    iris_d_store(&watch->stop, sizeof watch->stop, 1, release);
    if (first) {
        iris_d_store(&watch->ready, sizeof watch->ready, 1, release);
    }
    iris_d_end_lane();
}
#endif

/* Tells this rank's host of a call that differs, or failed. */
IRIS_DEVICE void iris_d_mismatch_tell(iris_dev_t dev,
                                      const struct iris_dev_mismatch *mismatch)
{
#if IRIS_ON_CPU
    iris_cpu_mismatch(dev.cpu, mismatch);
#endif
#if IRIS_D_WATCHED
    if (iris_d_watch(dev) != NULL) {
        iris_d_mismatch_report(dev, iris_d_report_claim(dev), mismatch);
    }
#endif
    (void)dev, (void)mismatch;
}

/* Ends the kernel for that. Where nobody is there to tell, the host's deadline
 * does. */
IRIS_DEVICE void iris_d_ccl_differ(const iris_d_ccl_t *ccl, uint32_t i)
{
#if IRIS_ON_CPU
    struct iris_dev_mismatch mismatch;

    iris_d_ccl_describe(ccl, i, &mismatch);
    iris_cpu_mismatch(ccl->dev.cpu, &mismatch);
#endif
#if IRIS_D_WATCHED
    if (iris_d_watch(ccl->dev) != NULL) {
        iris_d_ccl_report(ccl, i, NULL, iris_d_watch(ccl->dev));
    }
#endif
}

/* Writes the description of this rank's call to its own memory. Peers that do
 * not read it lose no time. Every lane that waits for long writes the same
 * values. */
IRIS_DEVICE void iris_d_ccl_tell(const iris_d_ccl_t *ccl)
{
    const struct iris_dev_call *what = &ccl->start->what;
    iris_d_u64_t *words =
        (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->call);

    iris_d_store_u64(&words[IRIS_CCL_CALL_WHAT], what->what,
                     iris_d_ccl_relaxed());
    /* Not a loop: an indexed array would have to be in memory. */
    iris_d_store_u64(&words[IRIS_CCL_CALL_SIZES], what->sizes[0],
                     iris_d_ccl_relaxed());
    iris_d_store_u64(&words[IRIS_CCL_CALL_SIZES + 1], what->sizes[1],
                     iris_d_ccl_relaxed());
    iris_d_store_u64(&words[IRIS_CCL_CALL_SIZES + 2], what->sizes[2],
                     iris_d_ccl_relaxed());
    iris_d_store_u64(&words[IRIS_CCL_CALL_BEGUN], iris_d_ccl_begun(ccl),
                     iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
}

/* Ends the kernel if a member has begun another call at this step. A member
 * that is ahead has heard from this rank; a member that is behind has yet to
 * come. */
IRIS_DEVICE void iris_d_ccl_look(const iris_d_ccl_t *ccl)
{
    uint64_t own = iris_d_ccl_begun(ccl);

    for (uint32_t i = 0; i < ccl->count; i++) {
        uint64_t begun = iris_d_ccl_told(ccl, i, IRIS_CCL_CALL_BEGUN);

        if (begun >> 32 == own >> 32 && begun != own && begun != 0) {
            iris_d_ccl_differ(ccl, i);
        }
    }
}

/* ---- Waits --------------------------------------------------------------- */

/* Number of polls after which a wait describes this rank's call and looks at
 * the peers. Both take time, and looking takes the word's cache line from peers
 * that may arrive any moment. After that it looks often, to find another call
 * before it finds that the rank which made it has left. While members differ,
 * all of them wait, so all describe their calls. */
#define IRIS_CCL_POLLS_BEFORE_LOOK 128u
#define IRIS_CCL_POLLS_PER_LOOK 16u

/* Number of polls before a wait does anything else, if that code is out of
 * line. */
#define IRIS_CCL_POLLS_AT_ONCE (IRIS_D_CALLS ? 112u : 0u)

/* Waits for a word of this rank that all members with the same call write.
 * Acquires. */
IRIS_DEVICE void iris_d_ccl_wait_long(const iris_d_ccl_t *ccl, const void *word,
                                      iris_d_condition_t condition)
{
    iris_d_waiting_t wait = iris_d_wait_begin(ccl->dev, word, condition);
    uint32_t polls = IRIS_CCL_POLLS_AT_ONCE;
    uint64_t seen;

    do {
        iris_d_wait_poll(ccl->dev, &wait);
        polls++;
        if (IRIS_UNLIKELY(polls >= IRIS_CCL_POLLS_BEFORE_LOOK &&
                          polls % IRIS_CCL_POLLS_PER_LOOK == 0)) {
            if (polls == IRIS_CCL_POLLS_BEFORE_LOOK) {
                iris_d_ccl_tell(ccl);
            }
            iris_d_ccl_look(ccl);
        }
    } while (!iris_d_reached(word, condition, &seen));
    iris_d_wait_end(ccl->dev);
}

#if IRIS_D_CALLS
/* Rare code is out of line, so that it takes neither registers nor space in the
 * common path. The arguments need not be in memory. */
IRIS_DEVICE_APART void iris_d_ccl_wait_apart(struct iris_ccl_start start,
                                             uint32_t before, const void *word,
                                             iris_d_condition_t condition)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&start, before);

    iris_d_ccl_wait_long(&ccl, word, condition);
}
#endif

IRIS_DEVICE void iris_d_ccl_wait_on(const iris_d_ccl_t *ccl, const void *word,
                                    iris_d_condition_t condition)
{
#if IRIS_D_CALLS
    iris_d_ccl_wait_apart(*ccl->start, ccl->before, word, condition);
#else
    iris_d_ccl_wait_long(ccl, word, condition);
#endif
}

/* iris_d_ccl_wait_long() for a word that may already have arrived. */
IRIS_DEVICE void iris_d_ccl_wait(const iris_d_ccl_t *ccl, const void *word,
                                 enum iris_d_kind kind, iris_cmp_t cmp,
                                 uint64_t value)
{
    iris_d_condition_t condition = iris_d_ccl_condition(kind, cmp, value);
    uint64_t seen;

    for (uint32_t polls = 0; !iris_d_reached(word, condition, &seen); polls++) {
        if (polls == IRIS_CCL_POLLS_AT_ONCE) {
            iris_d_ccl_wait_on(ccl, word, condition);
            return;
        }
        iris_d_pause();
    }
}

/* Waits for a word of a hello of this step. Acquires. */
IRIS_DEVICE void iris_d_ccl_await(const iris_d_ccl_t *ccl, const void *half)
{
    iris_d_ccl_wait(ccl, (const char *)half + 4, IRIS_D_KIND_u32, IRIS_CMP_EQ,
                    iris_d_ccl_flag(ccl));
}

/* ---- Begin and end ------------------------------------------------------- */

/* Clears this rank's packets, because the flags start again from 0: an old flag
 * must not be taken for a new one. Waits for all workgroups of all members,
 * since a workgroup that has cleared its own share may get packets in
 * another's. Workgroup w also counts for those that its grid lacks, so that
 * each rank counts max_wgs each time with every grid. No packets of an earlier
 * step are in flight: their receivers have waited for each. */
IRIS_DEVICE void iris_d_ccl_clear(iris_wg_t wg, const iris_d_ccl_t *ccl)
{
    uint32_t max_wgs = (uint32_t)iris_d_ccl_word(&ccl->space->max_wgs);
    iris_d_u64_t *times = iris_d_ccl_epoch(ccl, max_wgs + 1);
    uint64_t time = iris_d_load_u64(&times[wg.id], iris_d_ccl_relaxed()) + 1;
    iris_d_u64_t *hellos =
        (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->hellos);
    iris_d_u64_t *slots =
        (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->slots);
    size_t bytes = (size_t)(iris_d_ccl_word(&ccl->space->bytes) -
                            iris_d_ccl_word(&ccl->space->slots));
    uint32_t counts = (max_wgs - wg.id + wg.num_wgs - 1) / wg.num_wgs;

    IRIS_LANES (wg, i,
                2 * (size_t)max_wgs * ccl->count * IRIS_CCL_HELLO_SPACE) {
        iris_d_store_u64(&hellos[i], 0, iris_d_ccl_relaxed());
    }
    IRIS_LANES (wg, i, bytes / 8) {
        iris_d_store_u64(&slots[i], 0, iris_d_ccl_relaxed());
    }
    iris_wg_barrier(wg); /* every lane has read the time */
    IRIS_WG_LANES (wg, i, counts) {
        iris_d_store_u64(&times[wg.id + i * wg.num_wgs], time,
                         iris_d_ccl_relaxed());
    }
    IRIS_WG_LANES (wg, i, ccl->count) {
        (void)iris_d_add_u64((iris_d_u64_t *)iris_d_ccl_peer(
                                 ccl, (uint32_t)i, &ccl->space->cleared) +
                                 ccl->index,
                             counts,
                             iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    }
    IRIS_WG_LANES (wg, i, ccl->count) {
        iris_d_ccl_wait(
            ccl, (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->cleared) + i,
            IRIS_D_KIND_u64, IRIS_CMP_GE, time * max_wgs);
    }
    iris_wg_barrier(wg);
}

/* On a GPU, a lane that finds a mismatch ends alone, and the barriers of its
 * workgroup no longer wait for it. The other lanes end here, before they use
 * data for which it should have waited. */
IRIS_DEVICE void iris_d_ccl_go_on(const iris_d_ccl_t *ccl)
{
#if IRIS_D_WATCHED
    if (IRIS_UNLIKELY(
            iris_d_load_u64(iris_d_ccl_left(ccl), iris_d_ccl_relaxed()) != 0)) {
        iris_d_end_lane();
    }
#endif
    (void)ccl;
}

/* Rare cases at a kernel's begin: the workspace is unusable, or the flags
 * restart. Returns the step before the kernel's first. */
IRIS_DEVICE_APART uint64_t iris_d_ccl_begin_anew(iris_wg_t wg,
                                                 struct iris_ccl_start start,
                                                 uint64_t epoch)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&start, (uint32_t)epoch);
    uint64_t next = ((epoch >> IRIS_CCL_EPOCH_BITS) + 1) << IRIS_CCL_EPOCH_BITS;

    if ((epoch & IRIS_CCL_BUSY) != 0) {
        iris_d_ccl_differ(&ccl, ccl.index);
    }
    if (next - epoch > start.steps) {
        return epoch;
    }
    iris_d_ccl_clear(wg, &ccl);
    return next;
}

/* Begins a kernel. The flags of step 0 belong to no step: cleared packets have
 * them. A kernel whose steps would take the flags past step 0 clears the
 * packets first. If a kernel takes more steps than there are flags, a slot's
 * old packet is always two steps old, so its flag differs from the new one. */
IRIS_DEVICE void iris_d_ccl_begin_at(iris_wg_t wg, iris_d_ccl_t *ccl,
                                     iris_d_u64_t *epochs)
{
    const uint32_t last = (1u << IRIS_CCL_EPOCH_BITS) - 1;

#if IRIS_ON_CPU
    ccl->epoch = iris_d_or_u64(&epochs[wg.id], IRIS_CCL_BUSY,
                               iris_d_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM));
#else
    ccl->epoch = epochs[wg.id];
#endif
    ccl->before = (uint32_t)ccl->epoch;
    if (IRIS_UNLIKELY((ccl->epoch & IRIS_CCL_BUSY) != 0 ||
                      last - (ccl->before & last) < ccl->start->steps)) {
        ccl->epoch = iris_d_ccl_begin_anew(wg, *ccl->start, ccl->epoch);
    }
}

IRIS_DEVICE iris_d_ccl_t iris_d_ccl_begin(iris_wg_t wg,
                                          const struct iris_ccl_start *start)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(start, 0);

    iris_d_ccl_begin_at(wg, &ccl, iris_d_ccl_epoch(&ccl, 0));
    return ccl;
}

/* The same place in member i's workspace as iris_d_ccl_peer() finds. */
IRIS_DEVICE char *iris_d_ccl_near_at(const struct iris_ccl_near *near,
                                     uint32_t i, uint64_t offset)
{
    return (char *)iris_d_global((uintptr_t)(near->members[i] + offset));
}

IRIS_DEVICE iris_d_u64_t *
iris_d_ccl_near_epochs(const struct iris_ccl_near *near)
{
    return (iris_d_u64_t *)iris_d_ccl_near_at(near, near->index, near->epochs);
}

/* iris_d_ccl_begin() without loads but the step's number. */
IRIS_DEVICE iris_d_ccl_t
iris_d_ccl_begin_near(iris_wg_t wg, const struct iris_ccl_start *start,
                      const struct iris_ccl_near *near)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(start, 0);

    ccl.count = near->count;
    ccl.index = near->index;
    iris_d_ccl_begin_at(wg, &ccl, iris_d_ccl_near_epochs(near));
    return ccl;
}

/* Ends a kernel: counts the calls and the steps that it took, also for
 * workgroups that this grid lacks, because the next grid may have them. On a
 * GPU the steps are added by an atomic, because another lane may have ended
 * (iris_d_ccl_leave()); no lane waits for the sum. */
IRIS_DEVICE void iris_d_ccl_end_at(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                   iris_d_u64_t *epochs, uint32_t max_wgs)
{
    iris_d_order_t order = iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM);

    iris_wg_barrier(wg); /* every lane has read the epoch */
    IRIS_WG_LANES (wg, i, (max_wgs - wg.id + wg.num_wgs) / wg.num_wgs) {
        uint32_t w = wg.id + (uint32_t)i * wg.num_wgs;
        iris_d_u64_t *word = &epochs[w];

#if IRIS_ON_CPU /* no other lane writes it, and an atomic takes longer */
        iris_d_store_u64(word, w < max_wgs ? ccl->epoch : *word + 1, order);
#else
        iris_d_count_u64(
            word, w < max_wgs ? (uint32_t)ccl->epoch - ccl->before : 1, order);
#endif
    }
}

IRIS_DEVICE void iris_d_ccl_end_near(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                     const struct iris_ccl_near *near)
{
    iris_d_ccl_end_at(wg, ccl, iris_d_ccl_near_epochs(near), near->max_wgs);
}

IRIS_DEVICE void iris_d_ccl_end(iris_wg_t wg, const iris_d_ccl_t *ccl)
{
    iris_d_ccl_end_at(wg, ccl, iris_d_ccl_epoch(ccl, 0),
                      (uint32_t)iris_d_ccl_word(&ccl->space->max_wgs));
}

#endif /* IRIS_DEVICE_KERNELS_CCL_SPACE_H */
