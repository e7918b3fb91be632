/* SPDX-License-Identifier: MIT
 *
 * A kernel's view of its job, and the one function that translates a pointer to
 * a peer's memory.
 */
#ifndef IRIS_DEVICE_TRANSLATE_H
#define IRIS_DEVICE_TRANSLATE_H

#include <iris/types.h>
#include <iris/device/core/compat.h>
#include <iris/device/layout.h>
#include <iris/device/core/word.h>

#if IRIS_D_TRACES
#define IRIS_D_NO_SLOT 0xffffffffu
/* An event that a lane has begun to record. Its data is kept here until its
 * end. */
typedef struct iris_d_open {
    uint32_t slot;
    uint64_t value;
    uint64_t what;
    uint64_t expected;
} iris_d_open_t;
#endif

/** The job, as a lane sees it; iris_dev_init() makes one. Passed by value, so
 *  that its fields stay in registers. */
typedef struct iris_dev {
    int32_t rank;
    int32_t num_ranks;
    const int64_t *heap_bases; /**< One for each rank, as this rank maps it. */
    uintptr_t heap_base;       /* the heap_bases entry of this rank */
#if IRIS_ON_CPU
    uintptr_t watched;       /* a copy of cpu->watched: compilers can hoist
                              * its test */
    size_t heap_bytes;       /* equal on all ranks */
    uintptr_t ring;          /* a copy of cpu->ring, as a number */
    struct iris_cpu_wg *cpu; /* NULL outside a kernel */
#elif IRIS_D_TRACES
    uintptr_t watched; /* not 0 if `trace` is not NULL or `delay` is not 0 */
#endif
#if IRIS_D_TRACES
    const int64_t *trace; /* the tracing words of the context; NULL: tracing
                           * is off */
    uint64_t delay;       /* longest delay before an operation, in ticks */
    iris_d_open_t open;
#endif
} iris_dev_t;

#if IRIS_D_TRACES
/* On the CPU observers record, and nothing is delayed. */
IRIS_DEVICE void iris_d_init_trace(iris_dev_t *dev, const int64_t *context)
{
    const int64_t *delay =
        context + IRIS_CONTEXT_OWN(dev->num_ranks, IRIS_CONTEXT_OWN_DELAY);
    const int64_t *words =
        context + IRIS_CONTEXT_TRACE_ENABLED + (size_t)dev->num_ranks;
    iris_bool_t enabled = iris_d_load_constant(words) != 0;

    dev->delay = (uint64_t)iris_d_load_constant(delay);
#if IRIS_ON_CPU
    enabled = enabled && dev->cpu == NULL;
    dev->delay = dev->cpu == NULL ? dev->delay : 0;
    dev->watched |= (uintptr_t)enabled | (dev->delay != 0);
#else
    dev->watched = (uintptr_t)enabled | (dev->delay != 0);
#endif
    dev->trace = enabled ? words : NULL;
    dev->open.slot = IRIS_D_NO_SLOT;
}
#endif

#if IRIS_ON_CPU && IRIS_D_WATCHED
/* A workgroup that the library does not run reaches other nodes as a GPU's. */
IRIS_DEVICE void iris_d_init_far(iris_dev_t *dev, const int64_t *context)
{
    struct iris_cpu_wg *own = dev->cpu == NULL ? IRIS_D_FAR_OWN() : NULL;

    if (own != NULL) {
        dev->ring = (uintptr_t)iris_d_load_constant(
            &context[IRIS_CONTEXT_OWN(dev->num_ranks, IRIS_CONTEXT_OWN_RING)]);
        own->rank = dev->rank;
        own->heap_base = (const char *)dev->heap_base;
        own->heap_bases = dev->heap_bases;
        own->ring = (struct iris_dev_ring *)dev->ring;
    }
}
#endif

/** Reads the device context (iris_device_context() on the host) once, at the
 *  start of a kernel. Any lane; orders nothing.
 *  @use lane; never blocks
 *  @param context  result of iris_device_context(), in the kernel's arguments */
IRIS_DEVICE iris_dev_t iris_dev_init(const int64_t *context)
{
    iris_dev_t dev;
#if IRIS_ON_CPU
    struct iris_cpu_wg *cpu = iris_cpu_self();

    if (IRIS_UNLIKELY(context == NULL)) {
        iris_cpu_end(cpu, "iris_dev_init: the context is NULL; pass "
                          "iris_device_context() to the kernel");
    }
#endif
    dev.rank = (int32_t)iris_d_load_constant(&context[IRIS_CONTEXT_RANK]);
    dev.num_ranks =
        (int32_t)iris_d_load_constant(&context[IRIS_CONTEXT_NUM_RANKS]);
    dev.heap_bases = context + IRIS_CONTEXT_HEAP_BASES;
    dev.heap_base = (uintptr_t)iris_d_load_constant(&dev.heap_bases[dev.rank]);
#if IRIS_ON_CPU
    dev.cpu = cpu;
    dev.watched = dev.cpu != NULL ? dev.cpu->watched : 0;
    dev.heap_bytes = dev.cpu != NULL ? dev.cpu->heap_bytes : 0;
    dev.ring = dev.cpu != NULL ? (uintptr_t)dev.cpu->ring : 0;
#if IRIS_D_WATCHED
    iris_d_init_far(&dev, context);
#endif
#endif
#if IRIS_D_TRACES
    iris_d_init_trace(&dev, context);
#endif
    return dev;
}

/* Whether the job has no such rank. GPUs do not check. */
IRIS_DEVICE iris_bool_t iris_d_no_rank(iris_dev_t dev, int rank)
{
#if IRIS_ON_CPU
    return (uint32_t)rank >= (uint32_t)dev.num_ranks;
#else
    (void)dev, (void)rank;
    return 0;
#endif
}

/* The whole translation: the same offset in another heap. `ptr` is in this
 * rank's address space. The result is computed from the target's base, so that
 * compilers know which object it points into. If the rank does not exist, there
 * is no base to read; the hook before the operation then ends the kernel. */
IRIS_DEVICE void *iris_d_translate(iris_dev_t dev, const void *ptr, int rank)
{
    int known = iris_d_no_rank(dev, rank) ? dev.rank : rank;
#if IRIS_ON_CUDA /* nvcc may load the base ahead of a test of the rank */
    known = (int)((uint32_t)known % IRIS_CONTEXT_READABLE);
#endif
    uintptr_t base = (uintptr_t)iris_d_load_constant(&dev.heap_bases[known]);
    uintptr_t offset = (uintptr_t)ptr - dev.heap_base;

#if IRIS_ON_CPU /* the base is 0 if the heap is not mapped here */
    return (void *)(base + offset);
#else
    return (char *)iris_d_global(base) + offset;
#endif
}

#if IRIS_D_WATCHED
/* Loads a word that nobody writes while the kernel runs, but not before this
 * point. It is for rare steps of waits: the compiler would load a constant
 * ahead of the first poll. */
IRIS_DEVICE int64_t iris_d_load_late(const int64_t *ptr)
{
    return (int64_t)iris_d_load_u64(
        (iris_d_u64_t *)iris_d_global((uintptr_t)ptr),
        iris_d_order(IRIS_RELAXED, IRIS_SCOPE_WG));
}

/* Our own words of the device context (layout.h). */
IRIS_DEVICE int64_t *iris_d_own_words(iris_dev_t dev)
{
    const int64_t *context = dev.heap_bases - IRIS_CONTEXT_HEAP_BASES;
    size_t first =
        IRIS_CONTEXT_WORDS(iris_d_load_late(&context[IRIS_CONTEXT_NUM_RANKS]));

    return (int64_t *)iris_d_global((uintptr_t)(context + first));
}

/* dev.heap_base. A kernel that only waits need not load it at its start. */
IRIS_DEVICE uintptr_t iris_d_own_heap(iris_dev_t dev)
{
    const int64_t *context = dev.heap_bases - IRIS_CONTEXT_HEAP_BASES;

    return (uintptr_t)iris_d_load_late(
        &dev.heap_bases[iris_d_load_late(&context[IRIS_CONTEXT_RANK])]);
}

/* The memory that the host and waiting lanes share, or NULL. */
IRIS_DEVICE struct iris_dev_watch *iris_d_watch(iris_dev_t dev)
{
    uintptr_t address = (uintptr_t)iris_d_load_late(
        &iris_d_own_words(dev)[IRIS_CONTEXT_OWN_WATCH]);

    return address == 0 ? NULL
                        : (struct iris_dev_watch *)iris_d_global(address);
}
#endif

#endif /* IRIS_DEVICE_TRANSLATE_H */
