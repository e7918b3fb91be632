/* SPDX-License-Identifier: MIT
 *
 * How a lane waits for a word of its own rank: its polls, the steps between
 * them, and the end of a wait that takes too long.
 */
#ifndef IRIS_DEVICE_WAIT_H
#define IRIS_DEVICE_WAIT_H

#include <iris/device/core/amo.h>

/* The condition of a wait. */
typedef struct iris_d_condition {
    enum iris_op op; /* a wait or a barrier, for reports */
    enum iris_d_kind kind;
    iris_cmp_t cmp;
    uint64_t value;
} iris_d_condition_t;

IRIS_DEVICE iris_d_condition_t iris_d_condition(enum iris_d_kind kind,
                                                iris_cmp_t cmp, uint64_t value)
{
    iris_d_condition_t condition = {IRIS_OP_WAIT, kind, cmp, value};

    return condition;
}

/* Whether `seen` CMP value. An unknown comparison never holds. */
IRIS_DEVICE iris_bool_t iris_d_holds(iris_d_condition_t condition,
                                     uint64_t seen)
{
    switch (condition.cmp) {
    case IRIS_CMP_EQ:
        return seen == condition.value;
    case IRIS_CMP_NE:
        return seen != condition.value;
    case IRIS_CMP_LT:
        return iris_d_less(condition.kind, seen, condition.value);
    case IRIS_CMP_LE:
        return !iris_d_less(condition.kind, condition.value, seen);
    case IRIS_CMP_GT:
        return iris_d_less(condition.kind, condition.value, seen);
    case IRIS_CMP_GE:
        return !iris_d_less(condition.kind, seen, condition.value);
    default:
        return 0;
    }
}

/* How a wait polls its word. An acquiring poll invalidates a cache each time,
 * on AMD several. So polls are relaxed, and a fence after the last one acquires
 * the value. The exceptions acquire with each poll: CPUs, where that costs
 * nothing, and NVIDIA GPUs before Hopper, where it costs less than their fence,
 * which always is acquire and release. */
#if IRIS_ON_HIP || IRIS_D_HALF_FENCES
#define IRIS_D_POLL IRIS_RELAXED
#else
#define IRIS_D_POLL IRIS_ACQUIRE
#endif

/* After the poll that found the condition to hold. */
IRIS_DEVICE void iris_d_polled(void)
{
    if (IRIS_D_POLL == IRIS_RELAXED) {
        iris_d_fence(iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
    }
}

/* A local word's value, by the kind of load that this target polls with. */
IRIS_DEVICE uint64_t iris_d_peek(const void *ptr, enum iris_d_kind kind)
{
    return iris_d_load(iris_d_global((uintptr_t)ptr), iris_d_kind_bytes(kind),
                       iris_d_order(IRIS_D_POLL, IRIS_SCOPE_SYSTEM));
}

/* Polls a local word once. Returns true if *seen_p holds and is acquired. */
IRIS_DEVICE iris_bool_t iris_d_reached(const void *ptr,
                                       iris_d_condition_t condition,
                                       uint64_t *seen_p)
{
    *seen_p = iris_d_peek(ptr, condition.kind);
    if (!iris_d_holds(condition, *seen_p)) {
        return 0;
    }
    iris_d_polled();
    return 1;
}

/* Before a wait or test of `bytes` bytes of local words. A program may call
 * tests repeatedly, so they count as a possible spin loop. */
IRIS_DEVICE void iris_d_wait_hook(iris_dev_t *dev, const void *ptr,
                                  size_t bytes, iris_d_condition_t condition)
{
    iris_d_access_t access =
        iris_d_ordered(iris_d_reads(IRIS_OP_WAIT, dev->rank, bytes),
                       iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));

    iris_d_maybe_spinning(*dev, ptr, dev->rank, bytes);
    access.cmp = condition.cmp;
    (void)ptr, (void)access;
    IRIS_D_HOOK(iris_d_suspect(*dev, ptr, dev->rank, bytes),
                IRIS_D_CALL(before, *dev, ptr, condition.value, dev->rank,
                            iris_d_packed(access) | IRIS_D_ATOMIC));
}

/* A wait that did not succeed at once. */
typedef struct iris_d_waiting {
    const void *ptr; /* the first word, if there are several */
    iris_d_condition_t condition;
#if IRIS_D_WATCHED
    uint32_t polls;
    uint64_t start; /* time of its first check; 0: not yet */
#endif
} iris_d_waiting_t;

/* Bits of a word in the format of reports: signed types are sign-extended. */
IRIS_DEVICE int64_t iris_d_reported(enum iris_d_kind kind, uint64_t bits)
{
    return kind == IRIS_D_KIND_i32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

#if IRIS_D_WATCHED
/* Whether this lane is the first of the device that has something to report to
 * the host. */
IRIS_DEVICE iris_bool_t iris_d_report_claim(iris_dev_t dev)
{
    int64_t *own = iris_d_own_words(dev);

    return iris_d_cas(&own[IRIS_CONTEXT_OWN_CLAIM], sizeof *own, 0, 1,
                      iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT)) == 0;
}

/* The wait has taken too long, so all waiting lanes have to end. The first lane
 * of the device that times out also reports it to the host. */
IRIS_DEVICE void iris_d_wait_report(iris_dev_t dev,
                                    const iris_d_waiting_t *wait,
                                    uint64_t waited, uint64_t seen)
{
    struct iris_dev_watch *watch = iris_d_watch(dev);
    iris_d_order_t release = iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);

    if (!iris_d_report_claim(dev)) {
        iris_d_store(&watch->stop, sizeof watch->stop, 1, release);
        return;
    }
    watch->rank = dev.rank;
    watch->op = wait->condition.op;
    watch->cmp = wait->condition.cmp;
    watch->workgroup = iris_d_wg_id();
    watch->lane = iris_d_lane();
    watch->bytes = (uint32_t)iris_d_kind_bytes(wait->condition.kind);
    watch->offset = (uintptr_t)wait->ptr - iris_d_own_heap(dev);
    watch->expected =
        (uint64_t)iris_d_reported(wait->condition.kind, wait->condition.value);
    watch->seen = (uint64_t)iris_d_reported(wait->condition.kind, seen);
    watch->waited = waited;
    iris_d_store(&watch->stop, sizeof watch->stop, 1, release);
    iris_d_store(&watch->ready, sizeof watch->ready, 1, release);
}

#if IRIS_D_NOTES
/* Shows this lane's wait to the host, if the wait is long and no other lane
 * shows its own. A lane loses its turn if it has not renewed its note for a
 * while. */
IRIS_DEVICE void iris_d_wait_note(iris_dev_t dev, iris_d_waiting_t *wait,
                                  uint64_t now, uint64_t seen)
{
    int64_t *own = iris_d_own_words(dev);
    struct iris_dev_watch *watch = iris_d_watch(dev);
    iris_d_order_t relaxed = iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    int64_t after = iris_d_load_late(&own[IRIS_CONTEXT_OWN_NOTE]);
    uint64_t last =
        iris_d_load(&own[IRIS_CONTEXT_OWN_NOTED], sizeof *own, relaxed);
    int64_t since = (int64_t)(now - last);
    iris_bool_t again = /* not kept in a register while polls fail */
        iris_d_load(&watch->note_workgroup, 4, relaxed) == iris_d_wg_id() &&
        iris_d_load(&watch->note_lane, 4, relaxed) == iris_d_lane();

    if ((int64_t)(now - wait->start) < after ||
        since < (again ? after / 32 : after / 4) ||
        iris_d_cas(&own[IRIS_CONTEXT_OWN_NOTED], sizeof *own, last, now,
                   relaxed) != last) {
        return;
    }
    watch->note_op = wait->condition.op;
    watch->note_cmp = wait->condition.cmp;
    watch->note_workgroup = iris_d_wg_id();
    watch->note_lane = iris_d_lane();
    watch->note_bytes = (uint32_t)iris_d_kind_bytes(wait->condition.kind);
    watch->note_unsigned = !iris_d_less(wait->condition.kind, ~(uint64_t)0, 0);
    watch->note_offset = (uintptr_t)wait->ptr - iris_d_own_heap(dev);
    watch->note_expected =
        (uint64_t)iris_d_reported(wait->condition.kind, wait->condition.value);
    watch->note_seen = (uint64_t)iris_d_reported(wait->condition.kind, seen);
    watch->note_waited = now - wait->start;
    iris_d_store(&watch->beat, sizeof watch->beat, now,
                 iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
}

#endif

/* Now and then: ends this lane if the host or another lane says so, or if it
 * has waited for too long. Everything it needs it reads here, so that nothing
 * of it is kept in registers while polls fail. */
IRIS_DEVICE void iris_d_wait_check(iris_dev_t dev, iris_d_waiting_t *wait)
{
    struct iris_dev_watch *watch = iris_d_watch(dev);
    uint64_t timeout, now, seen;
    int64_t note = 0;

    IRIS_D_PAUSED();
    if (watch == NULL) {
        return;
    }
    if (iris_d_load(&watch->stop, sizeof watch->stop,
                    iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM)) != 0) {
        iris_d_end_lane();
    }
    timeout = (uint64_t)iris_d_load_late(
        &iris_d_own_words(dev)[IRIS_CONTEXT_OWN_TIMEOUT]);
#if IRIS_D_NOTES
    note = iris_d_load_late(&iris_d_own_words(dev)[IRIS_CONTEXT_OWN_NOTE]);
#endif
    if (timeout == 0 && note == 0) {
        return;
    }
    now = iris_d_clock();
    if (wait->start == 0) {
        wait->start = now;
    }
    seen = iris_d_peek(wait->ptr, wait->condition.kind);
    if (iris_d_holds(wait->condition, seen)) {
        return;
    }
    if (timeout != 0 && now - wait->start >= timeout) {
        iris_d_wait_report(dev, wait, now - wait->start, seen);
        iris_d_end_lane();
    }
#if IRIS_D_NOTES
    if (note != 0) {
        iris_d_wait_note(dev, wait, now, seen);
    }
#endif
}
#endif

/* Around the polls of a wait that did not succeed at once. On the CPU this
 * notes the wait for the host, and polling may end the kernel. */
IRIS_DEVICE iris_d_waiting_t iris_d_wait_begin(iris_dev_t dev, const void *ptr,
                                               iris_d_condition_t condition)
{
    iris_d_waiting_t wait;

    wait.ptr = ptr;
    wait.condition = condition;
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->polls = 0;
        dev.cpu->wait_address = ptr;
        dev.cpu->wait_op = condition.op;
        dev.cpu->wait_cmp = condition.cmp;
        dev.cpu->wait_value = iris_d_reported(condition.kind, condition.value);
        dev.cpu->wait_unsigned = !iris_d_less(condition.kind, ~(uint64_t)0, 0);
        dev.cpu->wait_bytes = (unsigned)iris_d_kind_bytes(condition.kind);
    }
#endif
#if IRIS_D_WATCHED
    (void)dev;
    wait.polls = 0;
    wait.start = 0;
#endif
    return wait;
}

IRIS_DEVICE void iris_d_wait_poll(iris_dev_t dev, iris_d_waiting_t *wait)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->wait_seen = iris_d_reported(
            wait->condition.kind, iris_d_peek(wait->ptr, wait->condition.kind));
    }
    iris_cpu_poll(dev.cpu);
#else
    iris_d_pause();
#endif
#if IRIS_D_WATCHED
    if (IRIS_UNLIKELY(++wait->polls % IRIS_D_POLLS_PER_CHECK == 0)) {
        iris_d_wait_check(dev, wait);
    }
#endif
}

IRIS_DEVICE void iris_d_wait_end(iris_dev_t dev)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->wait_address = NULL;
    }
#else
    (void)dev;
#endif
}

/* After a wait: the word that it returns. On CPUs an observer may have replaced it
 * by an older value of the word for which the wait holds, too. */
IRIS_DEVICE uint64_t iris_d_wait_held(iris_dev_t dev, const void *ptr,
                                      size_t bytes, uint64_t seen)
{
    IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_wait, dev, ptr, bytes, seen, 1));
#if IRIS_ON_CPU
    if (IRIS_UNLIKELY(dev.cpu != NULL && dev.cpu->watched != 0)) {
        seen = dev.cpu->events[0].seen;
    }
#endif
    (void)dev, (void)ptr, (void)bytes;
    return seen;
}

IRIS_DEVICE uint64_t iris_d_wait(iris_dev_t dev, const void *ptr,
                                 iris_d_condition_t condition)
{
    size_t bytes = iris_d_kind_bytes(condition.kind);
    iris_d_waiting_t wait;
    uint64_t seen;

    iris_d_wait_hook(&dev, ptr, bytes, condition);
    if (iris_d_reached(ptr, condition, &seen)) {
        return iris_d_wait_held(dev, ptr, bytes, seen);
    }
    wait = iris_d_wait_begin(dev, ptr, condition);
    do {
        iris_d_wait_poll(dev, &wait);
    } while (!iris_d_reached(ptr, condition, &seen));
    seen = iris_d_wait_held(dev, ptr, bytes, seen);
    iris_d_wait_end(dev);
    return seen;
}

IRIS_DEVICE iris_bool_t iris_d_test(iris_dev_t dev, const void *ptr,
                                    iris_d_condition_t condition)
{
    size_t bytes = iris_d_kind_bytes(condition.kind);
    iris_bool_t held;
    uint64_t seen;

    iris_d_wait_hook(&dev, ptr, bytes, condition);
    held = iris_d_reached(ptr, condition, &seen);
    IRIS_D_HOOK(dev.watched,
                IRIS_D_CALL(after_wait, dev, ptr, bytes, seen, held));
    return held;
}

#endif /* IRIS_DEVICE_WAIT_H */
