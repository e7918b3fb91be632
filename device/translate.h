/* SPDX-License-Identifier: MIT
 *
 * What a kernel knows about its job, the one function that translates a pointer
 * to a peer's memory, and the seam where observers see each operation.
 */
#ifndef IRIS_DEVICE_TRANSLATE_H
#define IRIS_DEVICE_TRANSLATE_H

#include <iris/types.h>
#include <iris/device/compat.h>
#include <iris/device/layout.h>
#include <iris/device/op.h>
#include <iris/device/word.h>

/** The job, as a lane sees it; iris_dev_init() makes one. Passed by value, so
 *  that its fields stay in registers. */
typedef struct iris_dev {
    int32_t rank;
    int32_t num_ranks;
    const int64_t *heap_bases; /**< One for each rank, as this rank maps it. */
#if IRIS_ON_CPU
    iris_cpu_observe_t observe; /* a copy of cpu's: its test can be hoisted */
    struct iris_cpu_wg *cpu;    /* NULL outside a kernel */
#endif
} iris_dev_t;

/** Reads the device context (iris_device_context() on the host) once, at the
 *  start of a kernel. Any lane; orders nothing. */
IRIS_DEVICE iris_dev_t iris_dev_init(const int64_t *context)
{
    iris_dev_t dev;

    dev.rank = (int32_t)context[IRIS_CONTEXT_RANK];
    dev.num_ranks = (int32_t)context[IRIS_CONTEXT_NUM_RANKS];
    dev.heap_bases = context + IRIS_CONTEXT_HEAP_BASES;
#if IRIS_ON_CPU
    dev.cpu = iris_cpu_self();
    dev.observe = dev.cpu != NULL ? dev.cpu->observe : NULL;
#endif
    return dev;
}

/* Translation, all of it: same offset, other heap. `ptr` is in this rank's
 * address space. The result is built from the target's base, so that compilers
 * see which object it points into. */
IRIS_DEVICE void *iris_i_translate(iris_dev_t dev, const void *ptr, int rank)
{
    uintptr_t offset = (uintptr_t)ptr - (uintptr_t)dev.heap_bases[dev.rank];
    char *base = (char *)(uintptr_t)dev.heap_bases[rank];

    return iris_i_global(base + offset);
}

/** Where `rank` keeps what this rank keeps at `ptr`, as an ordinary pointer for
 *  ordinary accesses: hoists translation out of a loop. `ptr` is on this rank's
 *  heap. Plain accesses through the result are relaxed and no observer sees
 *  them. Any lane; orders nothing. */
IRIS_DEVICE void *iris_dev_as_remote(iris_dev_t dev, const void *ptr, int rank)
{
    return iris_i_translate(dev, ptr, rank);
}

/* One operation, for iris_i_at() and iris_i_seam(). */
typedef struct iris_i_access {
    enum iris_op op;
    int rank; /* whose memory */
    iris_bool_t write;
    size_t bytes;
    iris_i_order_t order;
} iris_i_access_t;

IRIS_DEVICE iris_i_access_t iris_i_reads(enum iris_op op, int rank,
                                         size_t bytes)
{
    iris_i_access_t access = {
        op, rank, 0, bytes, {IRIS_RELAXED, IRIS_SCOPE_WG}};

    return access;
}

IRIS_DEVICE iris_i_access_t iris_i_writes(enum iris_op op, int rank,
                                          size_t bytes)
{
    iris_i_access_t access = iris_i_reads(op, rank, bytes);

    access.write = 1;
    return access;
}

IRIS_DEVICE iris_i_access_t iris_i_ordered(iris_i_access_t access,
                                           iris_i_order_t order)
{
    access.order = order;
    return access;
}

#if IRIS_ON_CPU
/* Out of the fast path: one event for the workgroup's observer. */
IRIS_DEVICE void iris_i_report(struct iris_cpu_wg *cpu, const void *address,
                               iris_i_access_t access)
{
    struct iris_cpu_event event = {0};

    event.op = access.op;
    event.target_rank = access.rank;
    event.write = access.write;
    event.address = address;
    event.bytes = access.bytes;
    event.sem = access.order.sem;
    event.scope = access.order.scope;
    iris_cpu_observe(cpu, event);
}
#endif

/* The seam. On the CPU every operation passes here before it happens; on a GPU
 * this is nothing. `ptr` is untranslated. */
IRIS_DEVICE void iris_i_seam(iris_dev_t dev, const void *ptr,
                             iris_i_access_t access)
{
#if IRIS_ON_CPU
    if (IRIS_UNLIKELY(dev.observe != NULL)) {
        iris_i_report(dev.cpu, ptr, access);
    }
#else
    (void)dev, (void)ptr, (void)access;
#endif
}

/* The seam, then the place to access: where access.rank keeps `ptr`. */
IRIS_DEVICE void *iris_i_at(iris_dev_t dev, const void *ptr,
                            iris_i_access_t access)
{
    iris_i_seam(dev, ptr, access);
    return iris_i_translate(dev, ptr, access.rank);
}

/** Orders this lane's accesses before it against those after it, at `scope`;
 *  IRIS_RELAXED does nothing. After a workgroup barrier a release by one lane
 *  covers the whole workgroup's earlier writes. Any lane. */
IRIS_DEVICE void iris_fence(iris_sem_t sem, iris_scope_t scope)
{
#if IRIS_ON_CPU
    struct iris_cpu_wg *cpu = iris_cpu_self();

    if (IRIS_UNLIKELY(cpu != NULL && cpu->observe != NULL)) {
        iris_i_report(cpu, NULL,
                      iris_i_ordered(iris_i_reads(IRIS_OP_FENCE, -1, 0),
                                     iris_i_order(sem, scope)));
    }
#endif
    iris_i_fence(iris_i_order(sem, scope));
}

#endif /* IRIS_DEVICE_TRANSLATE_H */
