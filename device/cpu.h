/* SPDX-License-Identifier: MIT
 *
 * The CPU's side of the device API: the one seam every access, atomic, fence
 * and barrier passes, and the hook that waiting loops poll. CPU only.
 */
#ifndef IRIS_DEVICE_CPU_H
#define IRIS_DEVICE_CPU_H

#include <iris/types.h>
#include <iris/device/compat.h>
#include <iris/device/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operation, as an observer sees it, before it happens. An operation with
 * two sides (get, put, copy) gives two events: its read (`write` 0) and its
 * write (`write` 1). */
struct iris_cpu_event {
    enum iris_op op;
    int rank;            /* whose kernel */
    int target_rank;     /* whose memory; -1 for fences and barriers */
    int write;           /* 1: writes address; atomics count as writes */
    const char *kernel;  /* its name */
    unsigned workgroup;  /* its id in the grid */
    const void *address; /* as this rank's address space has it; may be NULL */
    size_t bytes;
    iris_sem_t sem;     /* IRIS_RELAXED for plain accesses */
    iris_scope_t scope; /* IRIS_SCOPE_WG for plain accesses */
};

/* Called for every event, from the thread that runs the workgroup. */
typedef void (*iris_cpu_observe_t)(void *observer,
                                   const struct iris_cpu_event *event);

/* The workgroup a CPU thread is running. The backend fills it in before the
 * kernel's entry is called; kernels only pass it on. */
struct iris_cpu_wg {
    int rank;
    int num_ranks;
    const char *heap_base; /* this rank's heap, as kernels see it */
    size_t heap_bytes;
    const char *kernel;
    unsigned workgroup;
    iris_cpu_observe_t observe; /* NULL: nobody watches */
    void *observer;
    unsigned polls; /* iris_cpu_poll() calls; a wait starts it at 0 */
    unsigned spins; /* operations so far that a spin loop may be made of */
    const void *wait_address; /* what it waits for, for messages; else NULL */
    enum iris_op wait_op;     /* what waits: a wait or a barrier */
    iris_cmp_t wait_cmp;
    int64_t wait_value;
    int64_t wait_seen;
};

/* The calling thread's workgroup, or NULL outside a kernel. */
__attribute__((visibility("default"))) struct iris_cpu_wg *iris_cpu_self(void);

/* Called over and over by a loop that waits: gives the core to other ranks now
 * and then, and does not return when the kernel is to end because a peer died
 * or the host's deadline passed. `cpu` may be NULL. */
__attribute__((visibility("default"))) void
iris_cpu_poll(struct iris_cpu_wg *cpu);

/* Calls the observer, if there is one, but does not return if the access is
 * wrong: no such rank, or outside the heap, or misaligned for what needs
 * alignment. The kernel then ends, and the stream's next synchronize returns
 * IRIS_ERR_INVALID with the whole story. Per-lane accesses outside the heap are
 * seen only while an observer watches. */
__attribute__((visibility("default"), cold)) void
iris_cpu_observe(struct iris_cpu_wg *cpu, struct iris_cpu_event event);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_DEVICE_CPU_H */
