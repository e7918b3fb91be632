/* SPDX-License-Identifier: MIT
 *
 * Who watches a context: observers that are called before and after each
 * operation of kernels on the CPU and each host call that matters.
 */
#ifndef IRIS_SRC_BASE_HOOKS_H
#define IRIS_SRC_BASE_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <iris/status.h>
#include <iris/types.h>
#include <iris/device/cpu.h>

#define IRIS_MAX_OBSERVERS 8

/* What happens on the host. */
enum iris_host_op {
    IRIS_HOST_LAUNCH,        /* the call: kernel, grid, block, stream */
    IRIS_HOST_KERNEL,        /* its run on the CPU, from the thread that runs
                              * it; value: the id of the launch's event, or 0 */
    IRIS_HOST_SYNCHRONIZE,   /* stream */
    IRIS_HOST_COPY,          /* address, source, bytes, stream, target_rank */
    IRIS_HOST_SET,           /* address, bytes, value, stream */
    IRIS_HOST_SIGNAL,        /* address, value, stream, target_rank */
    IRIS_HOST_WAIT,          /* address, cmp, value, stream */
    IRIS_HOST_GRAPH,         /* the launch of a graph: stream */
    IRIS_HOST_ALLOC,         /* bytes; after it address */
    IRIS_HOST_FREE,          /* address */
    IRIS_HOST_BARRIER,       /* group; with a stream: of the device */
    IRIS_HOST_BROADCAST,     /* address, bytes, group, target_rank: the root */
    IRIS_HOST_GROUP_CREATE,  /* after it group */
    IRIS_HOST_GROUP_DESTROY, /* group */
    IRIS_HOST_COLLECTIVE,    /* address, source, bytes, group, stream, count,
                              * type, value: a broadcast's root; kernel is the
                              * public call's name; target_rank: of a call of
                              * two members the other; in_bytes, out_bytes */
    /* The CPU runs a command of a stream; its thread calls. Only while somebody
     * watches kernels. */
    IRIS_HOST_RUN_COPY, /* address, source, bytes, stream */
    IRIS_HOST_RUN_SET,  /* a fill: address, bytes, stream */
    IRIS_HOST_RUN_MARK, /* a mark: stream; source: the stream that waits for it */
};

/* One of them. What does not apply is 0 or NULL, a rank -1. */
struct iris_host_event {
    uint64_t id; /* of the operation, from 1 in each context, a kernel's run
                  * from 2^52 + 1, so that all are exact as numbers of JSON:
                  * before and after have the same; iris_i_hooks_before() sets
                  * it */
    enum iris_host_op op;
    int after;            /* 1: it has happened, or failed */
    iris_status_t status; /* then: what it returned */
    int rank;             /* whose context */
    int target_rank;      /* whose memory, beside this rank's own */
    const void *stream;
    const void *group;
    const char *kernel; /* its name */
    unsigned grid;
    unsigned block;
    const void *address; /* as this rank's address space has it */
    const void *source;
    size_t bytes;
    uint64_t value;
    iris_cmp_t cmp;
    size_t count;     /* elements */
    const char *type; /* their type's name */
    size_t pitch; /* of a run of a copy of `count` rows of `bytes`: from row */
    size_t source_pitch; /* to row of address and source */
    size_t in_bytes;     /* that a collective reads at source; 0: not known */
    size_t out_bytes;    /* that it writes at address; 0: not known */
    /* Of a collective of messages, before it: the bytes to a member of the group,
     * or from it. Else NULL. */
    uint64_t (*bytes_with)(const void *call, int member, int from);
    const void *call;
};

/* When a workgroup's thread may be made to wait for others. */
enum iris_turn {
    IRIS_TURN_BEGIN, /* before the kernel is entered */
    IRIS_TURN_POLL,  /* a wait's poll has failed */
    IRIS_TURN_END,   /* the kernel has returned, or was ended */
};

/* One that watches. Its functions are called from any thread, several at once;
 * a NULL one is not called. They make no calls of Iris and do not wait for
 * other ranks, but for the recorder's on the way out of a call that failed. */
struct iris_observer {
    /* IRIS_OK; else the kernel ends, and this status with this thread's message
     * is what the stream returns. */
    iris_status_t (*device)(void *self, const struct iris_cpu_event *event);
    void (*host)(void *self, const struct iris_host_event *event);
    /* This one may wait for other workgroups. */
    void (*turn)(void *self, const struct iris_cpu_wg *cpu,
                 enum iris_turn turn);
    void *self;
};

/* The observers of one context, in the order in which they are called. All zero
 * at the start. */
struct iris_hooks {
    atomic_uint num_device; /* observers that have such a function */
    atomic_uint num_host;
    atomic_uint num_slots; /* behind these there has never been one */
    const struct iris_observer *_Atomic observers[IRIS_MAX_OBSERVERS];
    /* What is written is on cache lines of its own: the program's threads count
     * calls, those that run kernels count runs, and all read what is above. */
    char apart[64];
    _Atomic uint64_t last_call;
    char apart_too[64];
    _Atomic uint64_t last_run;
    char from_what_follows[64];
};

/* *observer is the caller's, and stays where it is until it has been removed.
 * Kernels that run already are not watched. IRIS_ERR_LIMIT */
iris_status_t iris_i_hooks_add(struct iris_hooks *hooks,
                               const struct iris_observer *observer);

/* Calls under way may still be running; none is once the streams are idle and
 * other threads' calls have returned. */
void iris_i_hooks_remove(struct iris_hooks *hooks,
                         const struct iris_observer *observer);

/* Calls them about an operation of a kernel. The first status that is not
 * IRIS_OK; all are called in any case. */
iris_status_t iris_i_hooks_device(struct iris_hooks *hooks,
                                  const struct iris_cpu_event *event);

/* Of a workgroup that is watched, from its thread. True: somebody has a say in
 * who runs. */
bool iris_i_hooks_turn(struct iris_hooks *hooks, const struct iris_cpu_wg *cpu,
                       enum iris_turn turn);

/* iris_i_hooks_before() and iris_i_hooks_after() when somebody watches. */
void iris_i_hooks_host(struct iris_hooks *hooks, struct iris_host_event *event);

/* "atomic add", for messages. */
const char *iris_i_op_name(enum iris_op op);

/* Whether the event's address is translated, so that it must be on the heap.
 * The near side of a get or put, and what is waited for, may be any memory. */
bool iris_i_is_translated(const struct iris_cpu_event *event);

/* "rank 1: kernel scale, workgroup 3: atomic add of 4 bytes at 0x7f00 on rank
 * 0: <why>" is this thread's error now. Returns `status`. */
iris_status_t iris_i_fail_access(const struct iris_cpu_event *event,
                                 iris_status_t status, const char *why);

/* Whether anyone watches kernels; `hooks` may be NULL. */
static inline int iris_i_hooks_watch_device(struct iris_hooks *hooks)
{
    return hooks != NULL &&
           atomic_load_explicit(&hooks->num_device, memory_order_acquire) != 0;
}

/* Before an operation of the host. The caller keeps *event for the call after
 * it, and may add then what it has learned. `hooks` may be NULL. */
static inline void iris_i_hooks_before(struct iris_hooks *hooks,
                                       struct iris_host_event *event)
{
    if (hooks != NULL &&
        atomic_load_explicit(&hooks->num_host, memory_order_acquire) != 0) {
        iris_i_hooks_host(hooks, event);
    }
}

/* After it. Returns `status`. */
static inline iris_status_t iris_i_hooks_after(struct iris_hooks *hooks,
                                               struct iris_host_event *event,
                                               iris_status_t status)
{
    if (event->id != 0) {
        event->after = 1;
        event->status = status;
        iris_i_hooks_host(hooks, event);
    }
    return status;
}

#endif /* IRIS_SRC_BASE_HOOKS_H */
