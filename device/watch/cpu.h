/* SPDX-License-Identifier: MIT
 *
 * The CPU's side of the device API: the events of accesses, atomics, fences and
 * barriers that observers get, and the hook that waiting loops poll. CPU only.
 */
#ifndef IRIS_DEVICE_CPU_H
#define IRIS_DEVICE_CPU_H

#include <iris/types.h>
#include <iris/device/core/compat.h>
#include <iris/device/watch/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operation, as an observer sees it: before it happens, and again after. An
 * operation with two sides (get, put, copy) gives two events each time: its
 * read (`write` 0) and its write (`write` 1). A wait for several signals gives,
 * after it, one event for each that was found to hold. A collective of a
 * workgroup gives two events before it, a read of its input and a write of its
 * output, and only the latter after it. An
 * operation that ends its kernel has no event after. */
struct iris_cpu_event {
    uint64_t id;     /* numbered from 1 in each workgroup; the events before
                      * and after an operation, and both sides of a copy,
                      * have the same id */
    uint64_t inside; /* id of the surrounding iris_dev_barrier(), or 0 */
    uint64_t launch; /* id of the host's event for the kernel's run */
    enum iris_op op;
    int after;           /* 0: the operation is about to happen; 1: it has
                          * happened */
    int write;           /* 1: writes address; atomics count as writes */
    int rank;            /* the rank that runs the kernel */
    int target_rank;     /* the rank whose memory it is; -1 for fences and
                          * barriers */
    const char *kernel;  /* its name */
    unsigned workgroup;  /* its id in the grid */
    const void *address; /* in this rank's address space; may be NULL */
    size_t bytes;
    iris_sem_t sem;     /* IRIS_RELAXED for plain accesses */
    iris_scope_t scope; /* IRIS_SCOPE_WG for plain accesses */
    iris_cmp_t cmp;     /* comparison of a wait or test */
    int held;           /* after a wait or test: 1 if the comparison holds */
    /* Values are the low bytes of words, the rest zero, and 0 where `bytes` is
     * more than 8. */
    uint64_t value;    /* the value written, an atomic's operand, or the
                        * value waited for. The write of a get, put or copy
                        * has it only after the operation. A collective has
                        * the address of the first member's workspace here. */
    uint64_t expected; /* comparand of a compare-and-swap */
    uint64_t seen;     /* after it: the value read; an atomic's old value. An
                        * observer may replace a wait's by an older value that
                        * holds, which the wait then returns */
    uint64_t polls;    /* after a wait: the number of polls, including the
                       * last */
    int atomic;       /* 1: an atomic access, perhaps relaxed; 0: a plain one */
    const void *site; /* the address of the call in the program's code */
};

/* Whether it is a load, store, get, put or copy that is not volatile. */
IRIS_DEVICE int iris_d_is_plain(const struct iris_cpu_event *event)
{
    return !event->atomic && event->op < IRIS_OP_FENCE;
}

/* The workgroup a CPU thread is running. The backend fills it in before the
 * kernel's entry is called; kernels only pass it on. */
struct iris_cpu_wg {
    int rank;
    int num_ranks;
    const char *heap_base; /* this rank's heap, as kernels see it */
    size_t heap_bytes;
    const char *kernel;
    unsigned workgroup;
    uintptr_t watched; /* not 0 if there are observers */
    uint64_t launch;   /* the host's event for this run; 0: nobody watched it */
    uint64_t num_ops;  /* operations that observers have seen */
    uint64_t inside;   /* id of the current barrier, which has operations
                        * inside; 0: none */
    uint64_t expected; /* the comparand of the next compare-and-swap */
    const void *site;  /* the call address of the latest operation */
    struct iris_cpu_series *series;  /* IRIS_CPU_SERIES of them; NULL: observers
                                     * get each access as an event */
    unsigned next_series;            /* the one that ends for another */
    struct iris_cpu_event events[2]; /* the latest operation's events,
                                      * indexed by `write` if it has two
                                      * sides */
    unsigned polls; /* iris_cpu_poll() calls; a wait starts it at 0 */
    unsigned spins; /* operations so far that may belong to a spin loop */
    const void *wait_address; /* the word that it waits for, for messages;
                               * else NULL */
    enum iris_op wait_op;     /* a wait or a barrier */
    iris_cmp_t wait_cmp;
    int64_t wait_value;
    int64_t wait_seen;
    int wait_unsigned;        /* 1: the compared values are unsigned */
    unsigned wait_bytes;      /* of the word */
    const void *spin_address; /* while a spin loop polls: the call address of
                               * its operations; NULL: unknown */
    unsigned spin_bytes;
    /* With IRIS_CHECK_LANES: the part of the workgroup's lanes that the iteration
     * of a lane loop stands for, 0 outside of loops, where all lanes do the same; the
     * loops begun; and the times when its lanes have met. */
    int part;
    unsigned loops;
    unsigned meets;
    struct iris_dev_ring *ring; /* requests to ranks of other nodes; NULL:
                                    * all heaps are mapped */
    uint64_t awaited; /* ticket + 1 of the request whose answer it waits for;
                       * 0: none */
    int posted;       /* 1: it has posted requests */
    /* Elements loaded from far ranks and stored to them, 16 bytes for each. */
    uint64_t words[4] __attribute__((aligned(16)));
#if IRIS_D_WATCHED
    /* The job's, for a workgroup that the library does not run; else NULL. */
    const int64_t *heap_bases;
    uint64_t wait_start; /* 0: not known yet */
#endif
};

/* The calling thread's workgroup, or NULL outside a kernel. */
__attribute__((visibility("default"))) struct iris_cpu_wg *iris_cpu_self(void);

/* Parts that the checker tells apart: 0: all; 1: the first lane; thirds of others. */
#define IRIS_CPU_PARTS 5
#define IRIS_CPU_LOOP (-1) /* a lane loop begins */
#define IRIS_CPU_MEET (-2) /* all lanes meet, as in a barrier */

/* The thread goes on for that part of its workgroup's lanes. */
__attribute__((visibility("default"))) void iris_cpu_lanes(int part);

/* Waiting loops call this for every poll. It gives the core to other ranks now
 * and then. It does not return if the kernel has to end because a peer died or
 * the host's deadline passed. `cpu` may be NULL. */
__attribute__((visibility("default"))) void
iris_cpu_poll(struct iris_cpu_wg *cpu);

/* A request of `bytes` bytes was posted to the workgroup's ring (ring.h). */
__attribute__((visibility("default"))) void
iris_cpu_posted(struct iris_cpu_wg *cpu, enum iris_op op, size_t bytes);

/* Calls the observers, if there are any. Before an operation, it ends the
 * kernel and does not return in two cases:
 * - an observer says that the kernel must end;
 * - the access is wrong: no such rank, outside the heap, or misaligned. The
 *   stream's next synchronize then returns IRIS_ERR_INVALID with all details.
 *   Accesses of single lanes outside the heap are found only if there is an
 *   observer (IRIS_CHECK=bounds). */
__attribute__((visibility("default"), cold)) void
iris_cpu_observe(struct iris_cpu_wg *cpu, const struct iris_cpu_event *event);

/* An address range of all race checkers of this process. */
struct iris_cpu_range {
    uintptr_t low;
    uintptr_t high;
};

/* Two ranges: that of heaps, and that of other memory that work on streams accesses.
 * They grow. Accesses outside them need no call of iris_cpu_plain(). */
__attribute__((visibility("default"))) const struct iris_cpu_range *
iris_cpu_checked(void);

/* Tells the race checker about an access by the program itself, in a kernel or
 * on the host. `iriscc --check` makes the compiler insert such calls. A plain
 * access is one call ahead of it, with `op`, `address`, `bytes`, `write` and
 * `site`. An atomic is two calls, with the same members as an atomic of the
 * device API. */
__attribute__((visibility("default"))) void
iris_cpu_plain(const struct iris_cpu_event *access);

/* The same for the order of the host's threads. A key is an address, or any other
 * number. */
enum iris_cpu_edge {
    IRIS_CPU_RELEASE, /* the thread's operations so far happen before those
                           * behind an acquire of the key */
    IRIS_CPU_PUBLISH, /* the same, and the key forgets earlier releases */
    IRIS_CPU_ACQUIRE,
    IRIS_CPU_ACQUIRE_ALL, /* all threads' operations so far happen before this
                           * thread's next one: nobody knows the releases */
    IRIS_CPU_BEGIN,       /* a new sequence of operations: acquires */
    IRIS_CPU_END,         /* its last operation: releases */
    IRIS_CPU_COUNT,       /* the barrier has `count` members; 0: unknown */
    IRIS_CPU_ARRIVE,      /* ahead of the barrier; behind it: acquire */
    IRIS_CPU_MERGE,       /* from now on the threads count as one */
};
__attribute__((visibility("default"))) void
iris_cpu_order(enum iris_cpu_edge edge, const void *key, unsigned count);

/* A sequence of operations of the host. */
struct iris_cpu_thread {
    void *checker;   /* of its rank; NULL: unknown; it may no longer exist */
    uint64_t serial; /* the checker's; 0: there is no lane */
    uint32_t lane;
    uint32_t number;   /* among the threads of its rank; 0: the first */
    int is_known;      /* its begin was told */
    const void *reads; /* a volatile read, which acquires ahead of the thread's
                        * next operation: it has not happened when it is told;
                        * NULL: none */
};

/* The calling thread's. */
__attribute__((visibility("default"))) struct iris_cpu_thread *
iris_cpu_thread(void);

/* Ends the kernel, with `why` in the message of the stream's next synchronize;
 * returns only outside a kernel (cpu is NULL). */
__attribute__((visibility("default"), cold)) void
iris_cpu_end(struct iris_cpu_wg *cpu, const char *why);

/* The same, after members of a group have made different calls (layout.h): the
 * stream's next synchronize returns IRIS_ERR_MISMATCH. */
struct iris_dev_mismatch;
__attribute__((visibility("default"), cold)) void
iris_cpu_mismatch(struct iris_cpu_wg *cpu,
                  const struct iris_dev_mismatch *mismatch);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_DEVICE_CPU_H */
