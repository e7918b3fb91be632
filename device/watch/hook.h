/* SPDX-License-Identifier: MIT
 *
 * The hooks before and after each operation, through which observers watch it:
 * one macro for all of device code, and the data that it passes.
 */
#ifndef IRIS_DEVICE_HOOK_H
#define IRIS_DEVICE_HOOK_H

#include <iris/device/core/far.h>
#include <iris/device/watch/record.h>
#include <iris/device/watch/series.h>

/* One operation, or one side of it. */
typedef struct iris_d_access {
    enum iris_op op;
    int rank; /* the rank whose memory is accessed */
    iris_bool_t write;
    size_t bytes;
    iris_d_order_t order;
    iris_cmp_t cmp; /* of a wait */
} iris_d_access_t;

IRIS_DEVICE iris_d_access_t iris_d_reads(enum iris_op op, int rank,
                                         size_t bytes)
{
    iris_d_access_t access = {
        op, rank, 0, bytes, {IRIS_RELAXED, IRIS_SCOPE_WG}, IRIS_CMP_EQ};

    return access;
}

IRIS_DEVICE iris_d_access_t iris_d_writes(enum iris_op op, int rank,
                                          size_t bytes)
{
    iris_d_access_t access = iris_d_reads(op, rank, bytes);

    access.write = 1;
    return access;
}

IRIS_DEVICE iris_d_access_t iris_d_ordered(iris_d_access_t access,
                                           iris_d_order_t order)
{
    access.order = order;
    return access;
}

/* IRIS_D_HOOK(condition, call): one hook of an operation. Every operation has
 * two, before it and after it.
 *
 * On the CPU, the call is made if the integer condition is not 0. Both hooks of
 * an access have the same single value as their condition, because gcc takes no
 * more than that out of a loop. The called functions are out of line and take
 * few arguments, so that the branch not taken stays small. Otherwise the
 * compiler would not unswitch the loop, and would not vectorise it.
 *
 * On a GPU, the hook is empty unless the program is compiled with IRIS_TRACE.
 * Then it writes records while tracing is enabled.
 *
 * IRIS_D_CALL(what, dev, ...) is such a call, of iris_d_<what>().
 * IRIS_D_HOOK_CPU is the hook of operations that have no iris_dev_t: CPU
 * only. */
#if IRIS_D_HOOKED
#define IRIS_D_HOOK(condition, call)    \
    do {                                \
        if (IRIS_UNLIKELY(condition)) { \
            call;                       \
        }                               \
    } while (0)
#else
#define IRIS_D_HOOK(condition, call) ((void)0)
#endif
#if IRIS_ON_CPU
#define IRIS_D_HOOK_CPU(cpu, call) \
    IRIS_D_HOOK((cpu) != NULL && (cpu)->watched, call)
#else
#define IRIS_D_HOOK_CPU(cpu, call) ((void)(cpu))
#endif
#if IRIS_D_TRACES
#define IRIS_D_CALL(what, dev, ...) iris_d_traced_##what(&(dev), __VA_ARGS__)
#else
#define IRIS_D_CALL(what, dev, ...) iris_d_##what((dev).cpu, __VA_ARGS__)
#endif

#if IRIS_D_HOOKED
/* An access without its rank, in one word (record.h has its bits). */
IRIS_DEVICE uint64_t iris_d_packed(iris_d_access_t access)
{
    return (uint64_t)access.op | (access.write ? IRIS_D_WRITE : 0) |
           (uint64_t)(access.order.sem & IRIS_D_FIELD_MASK)
               << IRIS_D_SEM_SHIFT |
           (uint64_t)(access.order.scope & IRIS_D_FIELD_MASK)
               << IRIS_D_SCOPE_SHIFT |
           (uint64_t)(access.cmp & IRIS_D_FIELD_MASK) << IRIS_D_CMP_SHIFT |
           (uint64_t)access.bytes << IRIS_D_BYTES_SHIFT;
}

/* iris_d_packed() of a bulk copy's read or a barrier, which belong to the
 * workgroup. */
IRIS_DEVICE uint64_t iris_d_bulk(enum iris_op op, size_t bytes)
{
    return iris_d_packed(iris_d_reads(op, 0, bytes)) | IRIS_D_ONCE;
}

IRIS_DEVICE uint64_t iris_d_barrier_packed(iris_scope_t scope)
{
    return IRIS_D_ONCE |
           iris_d_packed(iris_d_ordered(iris_d_reads(IRIS_OP_BARRIER, -1, 0),
                                        iris_d_order(IRIS_ACQ_REL, scope)));
}
#endif

#if IRIS_ON_CPU
/* Not 0 if the operation's hooks have to be called: there are observers, the
 * rank does not exist, or the rank is far. */
IRIS_DEVICE uintptr_t iris_d_watched(iris_dev_t dev, int rank)
{
    return dev.watched | (uintptr_t)iris_d_no_rank(dev, rank) |
           (uintptr_t)iris_d_is_far(dev, rank);
}

IRIS_DEVICE uintptr_t iris_d_watched2(iris_dev_t dev, int rank, int other)
{
    return iris_d_watched(dev, rank) | iris_d_watched(dev, other);
}

/* iris_d_watched() outside hot lane loops. Here there is time to check that
 * `ptr` is aligned and on the heap, and to report errors. */
IRIS_DEVICE uintptr_t iris_d_suspect(iris_dev_t dev, const void *ptr, int rank,
                                     size_t bytes)
{
    uintptr_t offset = (uintptr_t)ptr - dev.heap_base;

    return iris_d_watched(dev, rank) | (uintptr_t)(bytes > dev.heap_bytes) |
           (uintptr_t)(offset > dev.heap_bytes - bytes) |
           (offset & (bytes - 1) & 7);
}

/* Makes an event of the workgroup's latest operation. */
IRIS_CPU_COLD struct iris_cpu_event *iris_d_event(struct iris_cpu_wg *cpu,
                                                  const void *address, int rank,
                                                  uint64_t what)
{
    int write = (what & IRIS_D_WRITE) != 0;
    struct iris_cpu_event *event = &cpu->events[write];

    event->id = cpu->num_ops;
    event->inside = cpu->inside;
    event->launch = cpu->launch;
    event->op = (enum iris_op)(what & IRIS_D_OP_MASK);
    event->after = 0;
    event->write = write;
    event->rank = cpu->rank;
    event->target_rank = rank;
    event->kernel = cpu->kernel;
    event->workgroup = cpu->workgroup;
    event->address = address;
    event->bytes = (size_t)(what >> IRIS_D_BYTES_SHIFT);
    event->sem = (iris_sem_t)(what >> IRIS_D_SEM_SHIFT & IRIS_D_FIELD_MASK);
    event->scope =
        (iris_scope_t)(what >> IRIS_D_SCOPE_SHIFT & IRIS_D_FIELD_MASK);
    event->cmp = (iris_cmp_t)(what >> IRIS_D_CMP_SHIFT & IRIS_D_FIELD_MASK);
    event->held = 0;
    event->value = event->seen = event->polls = 0;
    event->expected = cpu->expected;
    event->atomic = (what & IRIS_D_ATOMIC) != 0;
    event->site = cpu->site;
    cpu->expected = 0;
    return event;
}

/* Gives observers one side of the latest operation, unless it continues a
 * series. Then the rest of the event is that of an earlier operation. */
IRIS_CPU_COLD void iris_d_tell(struct iris_cpu_wg *cpu, const void *address,
                               uint64_t value, int rank, uint64_t what)
{
    struct iris_cpu_event *event = &cpu->events[(what & IRIS_D_WRITE) != 0];

    if (iris_d_continues(cpu, address, rank, what)) {
        event->id = cpu->num_ops;
        event->op = (enum iris_op)(what & IRIS_D_OP_MASK);
        event->atomic = 0;
        event->after = 0;
        return;
    }
    event = iris_d_event(cpu, address, rank, what);
    event->value = value;
    iris_cpu_observe(cpu, event);
}

/* Before an operation: calls the observers, and ends the kernel if the
 * operation is not allowed. `what` is iris_d_packed(). */
IRIS_CPU_COLD void iris_d_before(struct iris_cpu_wg *cpu, const void *address,
                                 uint64_t value, int rank, uint64_t what)
{
    if (cpu != NULL) {
        cpu->num_ops++;
        cpu->site = IRIS_D_CALLER();
        iris_d_tell(cpu, address, value, rank, what);
    }
}

/* Precedes the hook before a compare-and-swap. */
IRIS_CPU_COLD void iris_d_expects(struct iris_cpu_wg *cpu, uint64_t expected)
{
    cpu->expected = expected;
}

/* After an operation. `write` is that of its event, `seen` the value that it
 * read. */
IRIS_CPU_COLD void iris_d_after(struct iris_cpu_wg *cpu, iris_bool_t write,
                                uint64_t seen)
{
    struct iris_cpu_event *event;

    if (cpu != NULL && cpu->watched != 0) {
        event = &cpu->events[write];
        event->after = 1;
        event->seen = seen;
        if (cpu->series == NULL || !iris_d_is_plain(event)) {
            iris_cpu_observe(cpu, event);
        }
    }
}

/* iris_d_before() for an operation with two sides. `what` describes its
 * read. */
IRIS_CPU_COLD void iris_d_before_both(struct iris_cpu_wg *cpu, const void *from,
                                      int from_rank, const void *to,
                                      int to_rank, uint64_t what)
{
    if (cpu != NULL) {
        cpu->num_ops++;
        cpu->site = IRIS_D_CALLER();
        iris_d_tell(cpu, from, 0, from_rank, what);
        iris_d_tell(cpu, to, 0, to_rank, what | IRIS_D_WRITE);
    }
}

IRIS_CPU_COLD void iris_d_after_both(struct iris_cpu_wg *cpu, uint64_t value)
{
    if (cpu != NULL && cpu->watched != 0) {
        iris_d_after(cpu, 0, value);
        cpu->events[1].value = value;
        iris_d_after(cpu, 1, 0);
    }
}

/* After a wait or test of the word at `address`. Its last poll read `seen`. */
IRIS_CPU_COLD void iris_d_after_wait(struct iris_cpu_wg *cpu,
                                     const void *address, size_t bytes,
                                     uint64_t seen, iris_bool_t held)
{
    if (cpu != NULL && cpu->watched != 0) {
        cpu->events[0].address = address;
        cpu->events[0].bytes = bytes;
        cpu->events[0].held = held;
        cpu->events[0].polls =
            cpu->wait_address != NULL ? (uint64_t)cpu->polls + 1 : 1;
        iris_d_after(cpu, 0, seen);
    }
}

/* Around the barrier of `group`, which has other operations inside. */
IRIS_CPU_COLD void iris_d_before_barrier(struct iris_cpu_wg *cpu,
                                         const void *group, uint64_t what)
{
    iris_d_before(cpu, group, 0, -1, what);
    cpu->inside = cpu->num_ops;
}

IRIS_CPU_COLD void iris_d_after_barrier(struct iris_cpu_wg *cpu,
                                        const void *group, uint64_t what)
{
    struct iris_cpu_event *event;

    if (cpu != NULL && cpu->watched != 0) {
        uint64_t id = cpu->inside;

        cpu->inside = 0;
        event = iris_d_event(cpu, group, -1, what);
        event->id = id;
        iris_d_after(cpu, 0, 0);
    }
}

/* Around an event of the program's own, which may contain operations. */
IRIS_CPU_COLD uint64_t iris_d_before_span(struct iris_cpu_wg *cpu,
                                          uint64_t what)
{
    if (cpu == NULL) {
        return 0;
    }
    iris_d_before(cpu, NULL, 0, cpu->rank, what);
    return cpu->num_ops;
}

IRIS_CPU_COLD void iris_d_after_span(struct iris_cpu_wg *cpu, uint64_t id,
                                     uint64_t what)
{
    struct iris_cpu_event *event;

    if (cpu != NULL && cpu->watched != 0) {
        event = iris_d_event(cpu, NULL, cpu->rank, what);
        event->id = id;
        iris_d_after(cpu, 0, 0);
    }
}
#elif IRIS_D_TRACES
IRIS_DEVICE uintptr_t iris_d_watched(iris_dev_t dev, int rank)
{
    (void)rank;
    return dev.watched;
}

IRIS_DEVICE uintptr_t iris_d_watched2(iris_dev_t dev, int rank, int other)
{
    (void)rank, (void)other;
    return dev.watched;
}

IRIS_DEVICE uintptr_t iris_d_suspect(iris_dev_t dev, const void *ptr, int rank,
                                     size_t bytes)
{
    (void)ptr, (void)rank, (void)bytes;
    return dev.watched;
}
#endif

#if IRIS_D_TRACES
/* On the CPU, as in the simulation of a GPU, observers record. */
#if IRIS_ON_CPU
#define IRIS_D_OBSERVED(dev, call) \
    do {                           \
        if ((dev)->cpu != NULL) {  \
            call;                  \
            return;                \
        }                          \
    } while (0)
#else
#define IRIS_D_OBSERVED(dev, call) ((void)0)
#endif

IRIS_DEVICE void iris_d_open(iris_dev_t *dev, const void *address,
                             uint64_t value, int rank, uint64_t what)
{
    if (dev->delay != 0) {
        iris_d_delay(*dev);
    }
    if (dev->trace == NULL) { /* watched only for this, or for checks of CPUs */
        return;
    }
    dev->open.slot = iris_d_record(*dev, address, value, rank, what);
    dev->open.value = value;
    dev->open.what = what;
}

IRIS_DEVICE void iris_d_traced_before(iris_dev_t *dev, const void *address,
                                      uint64_t value, int rank, uint64_t what)
{
    IRIS_D_OBSERVED(dev, iris_d_before(dev->cpu, address, value, rank, what));
    iris_d_open(dev, address, value, rank, what);
}

IRIS_DEVICE void iris_d_traced_after(iris_dev_t *dev, iris_bool_t write,
                                     uint64_t seen)
{
    (void)write;
    IRIS_D_OBSERVED(dev, iris_d_after(dev->cpu, write, seen));
    iris_d_record_end(*dev, dev->open, seen, 0);
}

/* Records the access of the side that may be far. */
IRIS_DEVICE void iris_d_traced_before_both(iris_dev_t *dev, const void *from,
                                           int from_rank, const void *to,
                                           int to_rank, uint64_t what)
{
    iris_bool_t reads = (what & IRIS_D_OP_MASK) == IRIS_OP_GET;

    IRIS_D_OBSERVED(
        dev, iris_d_before_both(dev->cpu, from, from_rank, to, to_rank, what));
    iris_d_open(dev, reads ? from : to, 0, reads ? from_rank : to_rank,
                what | (reads ? 0 : IRIS_D_WRITE));
}

IRIS_DEVICE void iris_d_traced_after_both(iris_dev_t *dev, uint64_t value)
{
    IRIS_D_OBSERVED(dev, iris_d_after_both(dev->cpu, value));
    iris_d_record_end(*dev, dev->open, value, 0);
}

IRIS_DEVICE void iris_d_traced_after_wait(iris_dev_t *dev, const void *address,
                                          size_t bytes, uint64_t seen,
                                          iris_bool_t held)
{
    (void)bytes;
    IRIS_D_OBSERVED(dev,
                    iris_d_after_wait(dev->cpu, address, bytes, seen, held));
    /* One record for several words. */
    if (held && dev->open.slot != IRIS_D_NO_SLOT) {
        iris_d_put64(*dev, IRIS_D_COLUMN_ADDRESS, dev->open.slot,
                     (uintptr_t)address);
    }
    iris_d_record_end(*dev, dev->open, seen, held);
}

IRIS_DEVICE void iris_d_traced_before_barrier(iris_dev_t *dev,
                                              const void *group, uint64_t what)
{
    IRIS_D_OBSERVED(dev, iris_d_before_barrier(dev->cpu, group, what));
    iris_d_open(dev, group, 0, -1, what);
}

IRIS_DEVICE void iris_d_traced_after_barrier(iris_dev_t *dev, const void *group,
                                             uint64_t what)
{
    (void)group, (void)what;
    IRIS_D_OBSERVED(dev, iris_d_after_barrier(dev->cpu, group, what));
    iris_d_record_end(*dev, dev->open, 0, 0);
}

IRIS_DEVICE void iris_d_traced_expects(iris_dev_t *dev, uint64_t expected)
{
    (void)dev, (void)expected;
    IRIS_D_OBSERVED(dev, iris_d_expects(dev->cpu, expected));
    dev->open.expected = expected;
}

IRIS_DEVICE uint64_t iris_d_traced_before_span(iris_dev_t *dev, uint64_t what)
{
#if IRIS_ON_CPU
    if (dev->cpu != NULL) {
        return iris_d_before_span(dev->cpu, what);
    }
#endif
    return dev->trace == NULL ? IRIS_D_NO_SLOT
                              : iris_d_record(*dev, NULL, 0, dev->rank, what);
}

IRIS_DEVICE void iris_d_traced_after_span(iris_dev_t *dev, uint64_t id,
                                          uint64_t what)
{
    IRIS_D_OBSERVED(dev, iris_d_after_span(dev->cpu, id, what));
    dev->open.slot = (uint32_t)id;
    dev->open.what = what;
    iris_d_record_end(*dev, dev->open, 0, 0);
}
#endif

/* The calling thread's workgroup, for the hooks of what has no iris_dev_t. */
#if IRIS_ON_CPU
#define IRIS_D_SELF() iris_cpu_self()
#else
#define IRIS_D_SELF() ((struct iris_cpu_wg *)0)
#endif

/** The address of `rank`'s copy of the object at `ptr`, as an ordinary pointer
 *  for ordinary accesses. Hoists translation out of a loop. `ptr` is on this
 *  rank's heap. Accesses through the result are plain, not atomic: no flags
 *  (see docs/memory-model.md). Observers see them only by `iriscc --check`.
 *  Returns NULL on the CPU if the rank is on another node, which only other
 *  calls reach. Any lane; orders nothing.
 *  @use lane; never blocks; one node */
IRIS_DEVICE void *iris_dev_as_remote(iris_dev_t dev, const void *ptr, int rank)
{
#if IRIS_ON_CPU
    if (IRIS_UNLIKELY(iris_d_no_rank(dev, rank) ||
                      iris_d_load_constant(&dev.heap_bases[rank]) == 0)) {
        iris_d_before(dev.cpu, ptr, 0, rank,
                      iris_d_packed(iris_d_reads(IRIS_OP_LOAD, rank, 1)));
        return NULL;
    }
#endif
    return iris_d_translate(dev, ptr, rank);
}

/** Orders this lane's accesses before it against those after it, at `scope`;
 *  IRIS_RELAXED does nothing. After a workgroup barrier a release by one lane
 *  covers the whole workgroup's earlier writes. Any lane.
 *  @use lane; never blocks */
IRIS_DEVICE void iris_fence(iris_sem_t sem, iris_scope_t scope)
{
    IRIS_UNUSED struct iris_cpu_wg *cpu = IRIS_D_SELF();

    IRIS_D_HOOK_CPU(cpu, iris_d_before(cpu, NULL, 0, -1,
                                       iris_d_packed(iris_d_ordered(
                                           iris_d_reads(IRIS_OP_FENCE, -1, 0),
                                           iris_d_order(sem, scope)))));
#if IRIS_ON_CPU
    iris_d_far_t *far = iris_d_far_lane(cpu);

    if (IRIS_UNLIKELY(far != NULL && far->ring != NULL) &&
        scope == IRIS_SCOPE_SYSTEM &&
        iris_d_releases(iris_d_order(sem, scope))) {
        iris_d_far_flush(far);
    }
#endif
    iris_d_fence(iris_d_order(sem, scope));
    IRIS_D_HOOK_CPU(cpu, iris_d_after(cpu, 0, 0));
}

#endif /* IRIS_DEVICE_HOOK_H */
