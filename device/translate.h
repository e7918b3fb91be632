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
    uintptr_t heap_base;       /* this rank's own of them */
#if IRIS_ON_CPU
    iris_cpu_observe_t observe; /* a copy of cpu's: its test can be hoisted */
    size_t heap_bytes;          /* the same of every rank */
    struct iris_cpu_wg *cpu;    /* NULL outside a kernel */
#endif
} iris_dev_t;

/** Reads the device context (iris_device_context() on the host) once, at the
 *  start of a kernel. Any lane; orders nothing. */
IRIS_DEVICE iris_dev_t iris_dev_init(const int64_t *context)
{
    iris_dev_t dev;

    dev.rank = (int32_t)iris_d_load_constant(&context[IRIS_CONTEXT_RANK]);
    dev.num_ranks =
        (int32_t)iris_d_load_constant(&context[IRIS_CONTEXT_NUM_RANKS]);
    dev.heap_bases = context + IRIS_CONTEXT_HEAP_BASES;
    dev.heap_base = (uintptr_t)iris_d_load_constant(&dev.heap_bases[dev.rank]);
#if IRIS_ON_CPU
    dev.cpu = iris_cpu_self();
    dev.observe = dev.cpu != NULL ? dev.cpu->observe : NULL;
    dev.heap_bytes = dev.cpu != NULL ? dev.cpu->heap_bytes : 0;
#endif
    return dev;
}

/* Whether the job has no such rank. GPUs do not ask. */
IRIS_DEVICE iris_bool_t iris_d_no_rank(iris_dev_t dev, int rank)
{
#if IRIS_ON_CPU
    return (uint32_t)rank >= (uint32_t)dev.num_ranks;
#else
    (void)dev, (void)rank;
    return 0;
#endif
}

/* Translation, all of it: same offset, other heap. `ptr` is in this rank's
 * address space. The result is built from the target's base, so that compilers
 * see which object it points into. A rank that is none has no base to read; the
 * seam then ends the kernel. */
IRIS_DEVICE void *iris_d_translate(iris_dev_t dev, const void *ptr, int rank)
{
    int known = iris_d_no_rank(dev, rank) ? dev.rank : rank;
#if IRIS_ON_CUDA /* nvcc may load the base ahead of a test of the rank */
    known = (int)((uint32_t)known % IRIS_CONTEXT_READABLE);
#endif
    uintptr_t base = (uintptr_t)iris_d_load_constant(&dev.heap_bases[known]);
    uintptr_t offset = (uintptr_t)ptr - dev.heap_base;

    return (char *)iris_d_global(base) + offset;
}

#if IRIS_D_WATCHED
/* A word that nobody writes while the kernel runs, but loaded only now: for
 * what waits do now and then. A constant would be loaded ahead of the first
 * poll. */
IRIS_DEVICE int64_t iris_d_load_late(const int64_t *ptr)
{
    return (int64_t)iris_d_load_u64(
        (iris_d_u64_t *)iris_d_global((uintptr_t)ptr),
        iris_d_order(IRIS_RELAXED, IRIS_SCOPE_WG));
}

/* The words of the device context that are ours (layout.h). */
IRIS_DEVICE int64_t *iris_d_own_words(iris_dev_t dev)
{
    const int64_t *context = dev.heap_bases - IRIS_CONTEXT_HEAP_BASES;
    size_t first =
        IRIS_CONTEXT_WORDS(iris_d_load_late(&context[IRIS_CONTEXT_NUM_RANKS]));

    return (int64_t *)iris_d_global((uintptr_t)(context + first));
}

/* dev.heap_base, which a kernel that only waits need not load at its start. */
IRIS_DEVICE uintptr_t iris_d_own_heap(iris_dev_t dev)
{
    const int64_t *context = dev.heap_bases - IRIS_CONTEXT_HEAP_BASES;

    return (uintptr_t)iris_d_load_late(
        &dev.heap_bases[iris_d_load_late(&context[IRIS_CONTEXT_RANK])]);
}

/* What the host and waiting lanes share; NULL: nothing. */
IRIS_DEVICE struct iris_dev_watch *iris_d_watch(iris_dev_t dev)
{
    uintptr_t address = (uintptr_t)iris_d_load_late(
        &iris_d_own_words(dev)[IRIS_CONTEXT_OWN_WATCH]);

    return address == 0 ? NULL
                        : (struct iris_dev_watch *)iris_d_global(address);
}
#endif

/* One operation, for iris_d_at() and iris_d_seam(). */
typedef struct iris_d_access {
    enum iris_op op;
    int rank; /* whose memory */
    iris_bool_t write;
    size_t bytes;
    iris_d_order_t order;
} iris_d_access_t;

IRIS_DEVICE iris_d_access_t iris_d_reads(enum iris_op op, int rank,
                                         size_t bytes)
{
    iris_d_access_t access = {
        op, rank, 0, bytes, {IRIS_RELAXED, IRIS_SCOPE_WG}};

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

#if IRIS_ON_CPU
/* Calls the workgroup's observers, and ends the kernel if the access is wrong.
 * `what` is iris_d_packed() of the access: with
 * few arguments and out of line, the untaken branch stays so small that gcc
 * takes its test out of loops. */
IRIS_CPU_COLD void iris_d_report(struct iris_cpu_wg *cpu, const void *address,
                                 size_t bytes, int rank, uint32_t what)
{
    struct iris_cpu_event event;

    if (cpu == NULL) {
        return;
    }
    event.op = (enum iris_op)(what & 0xffffu);
    event.rank = cpu->rank;
    event.target_rank = rank;
    event.write = what >> 16 & 1;
    event.kernel = cpu->kernel;
    event.workgroup = cpu->workgroup;
    event.address = address;
    event.bytes = bytes;
    event.sem = (iris_sem_t)(what >> 20 & 15);
    event.scope = (iris_scope_t)(what >> 24 & 15);
    iris_cpu_observe(cpu, event);
}

IRIS_DEVICE uint32_t iris_d_packed(iris_d_access_t access)
{
    return (uint32_t)access.op | (uint32_t)access.write << 16 |
           (uint32_t)access.order.sem << 20 |
           (uint32_t)access.order.scope << 24;
}
#endif

/* The seam of what is of no rank in particular: fences and barriers, `at` what
 * they are of or NULL. */
IRIS_DEVICE void iris_d_meeting_seam(enum iris_op op, const void *at,
                                     iris_d_order_t order)
{
#if IRIS_ON_CPU
    struct iris_cpu_wg *cpu = iris_cpu_self();

    if (IRIS_UNLIKELY(cpu != NULL && cpu->observe != NULL)) {
        iris_d_access_t access = iris_d_reads(op, -1, 0);

        iris_d_report(cpu, at, 0, -1,
                      iris_d_packed(iris_d_ordered(access, order)));
    }
#else
    (void)op, (void)at, (void)order;
#endif
}

/* The seam. On the CPU every operation passes here before it happens; on a GPU
 * this is nothing. `ptr` is untranslated. */
IRIS_DEVICE void iris_d_seam(iris_dev_t dev, const void *ptr,
                             iris_d_access_t access)
{
#if IRIS_ON_CPU
    /* One test of one value: gcc takes no more out of a loop. */
    uintptr_t odd =
        (uintptr_t)dev.observe | (uintptr_t)iris_d_no_rank(dev, access.rank);

    if (IRIS_UNLIKELY(odd != 0)) {
        iris_d_report(dev.cpu, ptr, access.bytes, access.rank,
                      iris_d_packed(access));
    }
#else
    (void)dev, (void)ptr, (void)access;
#endif
}

/* The seam of what is not in hot lane loops: there is time to see on the CPU
 * that `ptr` is aligned and on the heap, and to report what may not be. */
IRIS_DEVICE void iris_d_strict_seam(iris_dev_t dev, const void *ptr,
                                    iris_d_access_t access)
{
#if IRIS_ON_CPU
    uintptr_t offset = (uintptr_t)ptr - dev.heap_base;

    if (IRIS_UNLIKELY(access.bytes > dev.heap_bytes ||
                      offset > dev.heap_bytes - access.bytes ||
                      (offset & (access.bytes - 1) & 7) != 0)) {
        iris_d_report(dev.cpu, ptr, access.bytes, access.rank,
                      iris_d_packed(access));
        return;
    }
#endif
    iris_d_seam(dev, ptr, access);
}

/* The place to access: where access.rank keeps `ptr`. Passes the seam, after
 * translation: gcc would not hoist what follows a call. */
IRIS_DEVICE void *iris_d_at(iris_dev_t dev, const void *ptr,
                            iris_d_access_t access)
{
    void *place = iris_d_translate(dev, ptr, access.rank);

    iris_d_seam(dev, ptr, access);
    return place;
}

/* The same with the strict seam. */
IRIS_DEVICE void *iris_d_strict_at(iris_dev_t dev, const void *ptr,
                                   iris_d_access_t access)
{
    void *place = iris_d_translate(dev, ptr, access.rank);

    iris_d_strict_seam(dev, ptr, access);
    return place;
}

/** Where `rank` keeps what this rank keeps at `ptr`, as an ordinary pointer for
 *  ordinary accesses: hoists translation out of a loop. `ptr` is on this rank's
 *  heap. Accesses through the result are plain, not atomic: no flags (see
 *  docs/memory-model.md). No observer sees them. Any lane; orders nothing. */
IRIS_DEVICE void *iris_dev_as_remote(iris_dev_t dev, const void *ptr, int rank)
{
#if IRIS_ON_CPU
    if (IRIS_UNLIKELY(iris_d_no_rank(dev, rank))) {
        iris_d_report(dev.cpu, ptr, 1, rank, IRIS_OP_LOAD);
    }
#endif
    return iris_d_translate(dev, ptr, rank);
}

/** Orders this lane's accesses before it against those after it, at `scope`;
 *  IRIS_RELAXED does nothing. After a workgroup barrier a release by one lane
 *  covers the whole workgroup's earlier writes. Any lane. */
IRIS_DEVICE void iris_fence(iris_sem_t sem, iris_scope_t scope)
{
    iris_d_meeting_seam(IRIS_OP_FENCE, NULL, iris_d_order(sem, scope));
    iris_d_fence(iris_d_order(sem, scope));
}

#endif /* IRIS_DEVICE_TRANSLATE_H */
