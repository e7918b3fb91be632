/* SPDX-License-Identifier: MIT
 *
 * How a lane waits for a word of its own rank: looks, what it does between
 * them, and how a wait ends that would go on for ever.
 */
#ifndef IRIS_DEVICE_WAIT_H
#define IRIS_DEVICE_WAIT_H

#include <iris/device/amo.h>

/* What a wait is for. */
typedef struct iris_i_goal {
    enum iris_op op; /* what waits, for reports */
    enum iris_i_kind kind;
    iris_cmp_t cmp;
    uint64_t value;
} iris_i_goal_t;

IRIS_DEVICE iris_i_goal_t iris_i_goal(enum iris_i_kind kind, iris_cmp_t cmp,
                                      uint64_t value)
{
    iris_i_goal_t goal = {IRIS_OP_WAIT, kind, cmp, value};

    return goal;
}

/* Whether `seen` CMP value. A comparison that is none never holds. */
IRIS_DEVICE iris_bool_t iris_i_holds(iris_i_goal_t goal, uint64_t seen)
{
    switch (goal.cmp) {
    case IRIS_CMP_EQ:
        return seen == goal.value;
    case IRIS_CMP_NE:
        return seen != goal.value;
    case IRIS_CMP_LT:
        return iris_i_less(goal.kind, seen, goal.value);
    case IRIS_CMP_LE:
        return !iris_i_less(goal.kind, goal.value, seen);
    case IRIS_CMP_GT:
        return iris_i_less(goal.kind, goal.value, seen);
    case IRIS_CMP_GE:
        return !iris_i_less(goal.kind, seen, goal.value);
    default:
        return 0;
    }
}

/* How a wait looks at its word. An acquiring look empties a cache each time, on
 * AMD several: looks are relaxed, and a fence behind the last one acquires what
 * it saw. On CPUs it costs nothing; on NVIDIA GPUs before Hopper less than a
 * fence, which they have in one piece only. */
#if IRIS_ON_HIP || IRIS_I_HALF_FENCES
#define IRIS_I_POLL IRIS_RELAXED
#else
#define IRIS_I_POLL IRIS_ACQUIRE
#endif

/* After the look that found what was waited for. */
IRIS_DEVICE void iris_i_polled(void)
{
    if (IRIS_I_POLL == IRIS_RELAXED) {
        iris_i_fence(iris_i_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
    }
}

/* What a local word is, by the load that this target polls with. */
IRIS_DEVICE uint64_t iris_i_look(const void *ptr, enum iris_i_kind kind)
{
    return iris_i_load(iris_i_global((uintptr_t)ptr), iris_i_kind_bytes(kind),
                       iris_i_order(IRIS_I_POLL, IRIS_SCOPE_SYSTEM));
}

/* One look at a local word: true means that *seen_p holds and is acquired. */
IRIS_DEVICE iris_bool_t iris_i_reached(const void *ptr, iris_i_goal_t goal,
                                       uint64_t *seen_p)
{
    *seen_p = iris_i_look(ptr, goal.kind);
    if (!iris_i_holds(goal, *seen_p)) {
        return 0;
    }
    iris_i_polled();
    return 1;
}

/* The event of a wait or test on local words, before its first look. Tests may
 * be called over and over, so they count as a possible spin loop. */
IRIS_DEVICE void iris_i_wait_seam(iris_dev_t dev, const void *ptr, size_t bytes)
{
    iris_i_maybe_spinning(dev);
    iris_i_strict_seam(
        dev, ptr,
        iris_i_ordered(iris_i_reads(IRIS_OP_WAIT, dev.rank, bytes),
                       iris_i_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM)));
}

/* A wait that did not succeed at once. */
typedef struct iris_i_waiting {
    const void *ptr; /* of several words the first */
    iris_i_goal_t goal;
#if IRIS_I_WATCHED
    uint32_t looks;
    uint64_t start; /* when its first check was; 0: not yet */
#endif
} iris_i_waiting_t;

/* Bits of a word as reports have them: signed types with their sign. */
IRIS_DEVICE int64_t iris_i_reported(enum iris_i_kind kind, uint64_t bits)
{
    return kind == IRIS_I_KIND_i32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

#if IRIS_I_WATCHED
/* Looks between two checks: one look takes about a microsecond, a check about
 * three, and the deadlines they are for are milliseconds. On the CPU that
 * stands in for a GPU each look gives the core away, maybe to many others in
 * turn. */
#if IRIS_ON_CPU
#define IRIS_I_LOOKS_PER_CHECK 8u
#else
#define IRIS_I_LOOKS_PER_CHECK 1024u
#endif

/* The wait has taken too long: all that wait are to end. The first lane of the
 * device that comes here also tells the host about it. */
IRIS_DEVICE void iris_i_wait_report(iris_dev_t dev,
                                    const iris_i_waiting_t *wait,
                                    uint64_t waited, uint64_t seen)
{
    int64_t *own = iris_i_own_words(dev);
    struct iris_dev_watch *watch = iris_i_watch(dev);
    iris_i_order_t release = iris_i_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);

    if (iris_i_cas(&own[IRIS_CONTEXT_OWN_CLAIM], sizeof *own, 0, 1,
                   iris_i_order(IRIS_RELAXED, IRIS_SCOPE_AGENT)) != 0) {
        iris_i_store(&watch->stop, sizeof watch->stop, 1, release);
        return;
    }
    watch->rank = dev.rank;
    watch->op = wait->goal.op;
    watch->cmp = wait->goal.cmp;
    watch->workgroup = iris_i_wg_id();
    watch->lane = iris_i_lane();
    watch->bytes = (uint32_t)iris_i_kind_bytes(wait->goal.kind);
    watch->offset = (uintptr_t)wait->ptr - iris_i_own_heap(dev);
    watch->expected =
        (uint64_t)iris_i_reported(wait->goal.kind, wait->goal.value);
    watch->seen = (uint64_t)iris_i_reported(wait->goal.kind, seen);
    watch->waited = waited;
    iris_i_store(&watch->stop, sizeof watch->stop, 1, release);
    iris_i_store(&watch->ready, sizeof watch->ready, 1, release);
}

/* Now and then: ends this lane if the host or another lane says so, or if it
 * has waited for too long. Everything it needs it reads here, so that nothing
 * of it is kept in registers while looks fail. */
IRIS_DEVICE void iris_i_wait_check(iris_dev_t dev, iris_i_waiting_t *wait)
{
    struct iris_dev_watch *watch = iris_i_watch(dev);
    uint64_t timeout, now, seen;

    iris_i_stand_in_poll();
    if (watch == NULL) {
        return;
    }
    if (iris_i_load(&watch->stop, sizeof watch->stop,
                    iris_i_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM)) != 0) {
        iris_i_end_lane();
    }
    timeout = (uint64_t)iris_i_load_late(
        &iris_i_own_words(dev)[IRIS_CONTEXT_OWN_TIMEOUT]);
    if (timeout == 0) {
        return;
    }
    now = iris_i_clock();
    if (wait->start == 0) {
        wait->start = now;
    }
    seen = iris_i_look(wait->ptr, wait->goal.kind);
    if (now - wait->start >= timeout && !iris_i_holds(wait->goal, seen)) {
        iris_i_wait_report(dev, wait, now - wait->start, seen);
        iris_i_end_lane();
    }
}
#endif

/* Around the looks of a wait that did not succeed at once. On the CPU this
 * tells the host what is waited for, and polling may end the kernel. */
IRIS_DEVICE iris_i_waiting_t iris_i_wait_begin(iris_dev_t dev, const void *ptr,
                                               iris_i_goal_t goal)
{
    iris_i_waiting_t wait;

    wait.ptr = ptr;
    wait.goal = goal;
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->polls = 0;
        dev.cpu->wait_address = ptr;
        dev.cpu->wait_op = goal.op;
        dev.cpu->wait_cmp = goal.cmp;
        dev.cpu->wait_value = iris_i_reported(goal.kind, goal.value);
    }
#endif
#if IRIS_I_WATCHED
    (void)dev;
    wait.looks = 0;
    wait.start = 0;
#endif
    return wait;
}

IRIS_DEVICE void iris_i_wait_poll(iris_dev_t dev, iris_i_waiting_t *wait)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->wait_seen = iris_i_reported(
            wait->goal.kind, iris_i_look(wait->ptr, wait->goal.kind));
    }
    iris_cpu_poll(dev.cpu);
#else
    iris_i_pause();
#endif
#if IRIS_I_WATCHED
    if (IRIS_UNLIKELY(++wait->looks % IRIS_I_LOOKS_PER_CHECK == 0)) {
        iris_i_wait_check(dev, wait);
    }
#endif
}

IRIS_DEVICE void iris_i_wait_end(iris_dev_t dev)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->wait_address = NULL;
    }
#else
    (void)dev;
#endif
}

IRIS_DEVICE uint64_t iris_i_wait(iris_dev_t dev, const void *ptr,
                                 iris_i_goal_t goal)
{
    iris_i_waiting_t wait;
    uint64_t seen;

    iris_i_wait_seam(dev, ptr, iris_i_kind_bytes(goal.kind));
    if (iris_i_reached(ptr, goal, &seen)) {
        return seen;
    }
    wait = iris_i_wait_begin(dev, ptr, goal);
    do {
        iris_i_wait_poll(dev, &wait);
    } while (!iris_i_reached(ptr, goal, &seen));
    iris_i_wait_end(dev);
    return seen;
}

IRIS_DEVICE iris_bool_t iris_i_test(iris_dev_t dev, const void *ptr,
                                    iris_i_goal_t goal)
{
    uint64_t seen;

    iris_i_wait_seam(dev, ptr, iris_i_kind_bytes(goal.kind));
    return iris_i_reached(ptr, goal, &seen);
}

#endif /* IRIS_DEVICE_WAIT_H */
