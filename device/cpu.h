/* SPDX-License-Identifier: MIT
 *
 * The CPU's side of the device API: the events of accesses, atomics, fences and
 * barriers that observers get, and the hook that waiting loops poll. CPU only.
 */
#ifndef IRIS_DEVICE_CPU_H
#define IRIS_DEVICE_CPU_H

#include <iris/types.h>
#include <iris/device/compat.h>
#include <iris/device/op.h>

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
    uint64_t id;     /* of the operation, from 1 in each workgroup: before,
                      * after and both sides have the same */
    uint64_t inside; /* id of the iris_dev_barrier() it is a part of, or 0 */
    uint64_t launch; /* id of the host's event of the kernel's run */
    enum iris_op op;
    int after;           /* 1: it has happened */
    int write;           /* 1: writes address; atomics count as writes */
    int rank;            /* whose kernel */
    int target_rank;     /* whose memory; -1 for fences and barriers */
    const char *kernel;  /* its name */
    unsigned workgroup;  /* its id in the grid */
    const void *address; /* as this rank's address space has it; may be NULL */
    size_t bytes;
    iris_sem_t sem;     /* IRIS_RELAXED for plain accesses */
    iris_scope_t scope; /* IRIS_SCOPE_WG for plain accesses */
    iris_cmp_t cmp;     /* of a wait or test */
    int held;           /* after a wait or test: 1 if it is seen CMP value */
    /* Values are the low bytes of words, the rest zero, and 0 where `bytes` is
     * more than 8. */
    uint64_t value;    /* written, or an atomic's operand, or waited for; the
                        * write of a get, put or copy has it only after the
                        * operation. A collective has the address of the
                        * first member's workspace here. */
    uint64_t expected; /* by a compare-and-swap */
    uint64_t seen;     /* after it: the value read; an atomic's old value */
    uint64_t polls;   /* after a wait: how many there were, the last included */
    int atomic;       /* 1: an atomic access, perhaps relaxed; 0: a plain one */
    const void *site; /* the address of the operation in the program's code */
};

/* The workgroup a CPU thread is running. The backend fills it in before the
 * kernel's entry is called; kernels only pass it on. */
struct iris_cpu_wg {
    int rank;
    int num_ranks;
    const char *heap_base; /* this rank's heap, as kernels see it */
    size_t heap_bytes;
    const char *kernel;
    unsigned workgroup;
    uintptr_t watched; /* not 0: there are observers */
    uint64_t launch;   /* the host's event of this run; 0: nobody watched it */
    uint64_t num_ops;  /* that observers have seen */
    uint64_t inside;   /* which of them is the barrier under way; 0: none */
    uint64_t expected; /* by the compare-and-swap that is about to begin */
    const void *site;  /* of the latest operation */
    struct iris_cpu_event events[2]; /* the latest operation's, by `write` of
                                      * those with two sides */
    unsigned polls; /* iris_cpu_poll() calls; a wait starts it at 0 */
    unsigned spins; /* operations so far that a spin loop may be made of */
    const void *wait_address; /* of its wait, for messages; else NULL */
    enum iris_op wait_op;     /* a wait or a barrier */
    iris_cmp_t wait_cmp;
    int64_t wait_value;
    int64_t wait_seen;
    int wait_unsigned;        /* both are unsigned */
    unsigned wait_bytes;      /* of the word */
    const void *spin_address; /* while a spin loop polls: the address of
                               * its operations; NULL: not known */
    unsigned spin_bytes;
    struct iris_dev_ring *ring;    /* of requests to ranks of other nodes; NULL:
                                 * all heaps are mapped */
    struct iris_dev_slot *pending; /* the request whose answer it waits for */
    int posted;                    /* 1: it has posted requests */
    /* Elements that it loads from such ranks, and stores to them; 16 bytes for
     * each of the two. */
    uint64_t words[4] __attribute__((aligned(16)));
};

/* The calling thread's workgroup, or NULL outside a kernel. */
__attribute__((visibility("default"))) struct iris_cpu_wg *iris_cpu_self(void);

/* Called over and over by a loop that waits: gives the core to other ranks now
 * and then, and does not return when the kernel is to end because a peer died
 * or the host's deadline passed. `cpu` may be NULL. */
__attribute__((visibility("default"))) void
iris_cpu_poll(struct iris_cpu_wg *cpu);

/* Wakes the proxy that sleeps behind this descriptor (ring.h). */
__attribute__((visibility("default"))) void iris_cpu_bell(int bell);

/* Calls the observers, if there are any. Before an operation it does not return
 * if an observer says that the kernel must end, or if the access is wrong: no
 * such rank, outside the heap, or misaligned. The kernel then ends, and the
 * stream's next synchronize returns IRIS_ERR_INVALID with the whole story.
 * Per-lane accesses outside the heap are seen only while somebody watches
 * (IRIS_CHECK=bounds). */
__attribute__((visibility("default"), cold)) void
iris_cpu_observe(struct iris_cpu_wg *cpu, const struct iris_cpu_event *event);

/* No race checker of this process has addresses outside of this range: they need
 * no call of iris_cpu_plain(). */
struct iris_cpu_range {
    uintptr_t low;
    uintptr_t high;
};

/* The range, which grows while checkers begin. */
__attribute__((visibility("default"))) const struct iris_cpu_range *
iris_cpu_checked(void);

/* Tells the race checker of an access that the program makes itself, in a
 * kernel or on the host; `iriscc --check` has the compiler insert such calls. A
 * plain access is one call ahead of it, with `op`, `address`, `bytes`, `write`
 * and `site`. An atomic is two calls, with the members that an atomic of the
 * device API has. */
__attribute__((visibility("default"))) void
iris_cpu_plain(const struct iris_cpu_event *access);

/* Ends the kernel, with `why` in the message of the stream's next synchronize;
 * returns only outside a kernel (cpu is NULL). */
__attribute__((visibility("default"), cold)) void
iris_cpu_end(struct iris_cpu_wg *cpu, const char *why);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_DEVICE_CPU_H */
