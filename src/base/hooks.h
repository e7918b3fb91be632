/* SPDX-License-Identifier: MIT
 *
 * Observers of a context. They are called before and after each operation of
 * kernels on the CPU, and before and after each host call that they may want to
 * see.
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

/* Operations of the host. */
enum iris_host_op {
    IRIS_HOST_LAUNCH,        /* the launch call: kernel, grid, block, stream */
    IRIS_HOST_KERNEL,        /* the kernel's run on the CPU, from the thread
                              * that runs it; value: the id of the launch's
                              * event, or 0 */
    IRIS_HOST_SYNCHRONIZE,   /* stream */
    IRIS_HOST_COPY,          /* address, source, bytes, stream, target_rank */
    IRIS_HOST_SET,           /* address, bytes, value, stream */
    IRIS_HOST_SIGNAL,        /* address, value, stream, target_rank */
    IRIS_HOST_WAIT,          /* address, cmp, value, stream */
    IRIS_HOST_GRAPH,         /* the launch of a graph: stream */
    IRIS_HOST_ALLOC,         /* bytes; afterwards also address */
    IRIS_HOST_FREE,          /* address */
    IRIS_HOST_BARRIER,       /* group; with a stream if it is a device
                              * barrier */
    IRIS_HOST_BROADCAST,     /* address, bytes, group, target_rank (the root) */
    IRIS_HOST_GROUP_CREATE,  /* afterwards: group */
    IRIS_HOST_GROUP_DESTROY, /* group */
    IRIS_HOST_COLLECTIVE,    /* address, source, bytes, group, stream, count,
                              * type, value (a broadcast's root), in_bytes,
                              * out_bytes, tells, hears, source_rank; kernel is
                              * the public call's name; target_rank is the other
                              * member in a call of two members */
    /* The CPU runs a command of a stream, and its thread calls. Only while an
     * observer watches kernels. */
    IRIS_HOST_RUN_COPY, /* address, source, bytes, stream */
    IRIS_HOST_RUN_SET,  /* a fill: address, bytes, stream */
    IRIS_HOST_RUN_MARK, /* a mark: stream; source: the stream that waits for
                         * the mark */
};

/* One operation of the host. Unused members are 0 or NULL; an unused rank is
 * -1. */
struct iris_host_event {
    uint64_t id; /* numbered from 1 in each context; a kernel's run from 2^52
                  * + 1, so that all ids are exact as JSON numbers. The
                  * events before and after have the same id, which
                  * iris_i_hooks_before() sets. */
    enum iris_host_op op;
    int after;            /* 0: about to happen; 1: it has happened, or
                           * failed */
    iris_status_t status; /* afterwards: the returned status */
    int rank;             /* the rank of the context */
    int target_rank;      /* the rank whose memory it accesses, besides its
                           * own */
    const void *stream;
    const void *group;
    const char *kernel; /* its name */
    unsigned grid;
    unsigned block;
    const void *address; /* in this rank's address space */
    const void *source;
    size_t bytes;
    uint64_t value;
    iris_cmp_t cmp;
    size_t count;     /* elements */
    const char *type; /* name of the elements' type */
    size_t pitch; /* for a run of a copy of `count` rows of `bytes`: distance
                   * of the rows at address */
    size_t source_pitch; /* and at source */
    size_t in_bytes;     /* bytes that a collective reads at source; 0:
                          * unknown */
    size_t out_bytes;    /* bytes that it writes at address; 0: unknown */
    /* For a collective: whether other members' results depend on this rank's
     * work, and this rank's result on theirs (rule 9 of
     * docs/memory-model.md). */
    bool tells;
    bool hears;
    int source_rank; /* in a call of two members that hears: the other one */
    /* Before a collective of messages: returns the bytes sent to a member of
     * the group, or received from it. Otherwise NULL. */
    uint64_t (*bytes_with)(const void *call, int member, int from);
    const void *call;
};

/* The moments at which a workgroup's thread may be made to wait for others. */
enum iris_turn {
    IRIS_TURN_BEGIN, /* before the kernel is entered */
    IRIS_TURN_POLL,  /* a wait's poll has failed */
    IRIS_TURN_END,   /* the kernel has returned, or was ended */
};

/* An observer. Its functions are called from any thread, several at once; NULL
 * functions are not called. They must not call Iris, and must not wait for
 * other ranks. The one exception is the flight recorder, after a failed
 * call. */
struct iris_observer {
    /* IRIS_OK, or a status that ends the kernel. The stream then returns this
     * status with this thread's message. */
    iris_status_t (*device)(void *self, const struct iris_cpu_event *event);
    /* `device` takes plain accesses to consecutive elements as one event, later
     * (struct iris_cpu_series), and no events after plain accesses. */
    bool takes_series;
    void (*host)(void *self, const struct iris_host_event *event);
    /* This function may wait for other workgroups. */
    void (*turn)(void *self, const struct iris_cpu_wg *cpu,
                 enum iris_turn turn);
    void *self;
};

/* The observers of one context, in the order of their calls. All zero at the
 * start. */
struct iris_hooks {
    atomic_uint num_device; /* observers with a `device` function */
    atomic_uint num_host;
    atomic_uint num_slots; /* no slot from here on was ever used */
    const struct iris_observer *_Atomic observers[IRIS_MAX_OBSERVERS];
    /* The following members have their own cache lines, because they are
     * written: the program's threads count calls, and threads that run kernels
     * count runs. All threads read the members above. */
    char apart[64];
    _Atomic uint64_t last_call;
    char apart_too[64];
    _Atomic uint64_t last_run;
    char from_what_follows[64];
};

/* The caller owns *observer. It must not move until it has been removed.
 * Kernels that already run are not watched. IRIS_ERR_LIMIT */
iris_status_t iris_i_hooks_add(struct iris_hooks *hooks,
                               const struct iris_observer *observer);

/* Calls of the observer may still be running when this returns. None are once
 * the streams are idle and other threads' calls have returned. */
void iris_i_hooks_remove(struct iris_hooks *hooks,
                         const struct iris_observer *observer);

/* Calls all observers for an operation of a kernel. Returns the first status
 * that is not IRIS_OK; calls the remaining observers all the same. */
iris_status_t iris_i_hooks_device(struct iris_hooks *hooks,
                                  const struct iris_cpu_event *event);

/* Whether all observers of operations take series. */
bool iris_i_hooks_take_series(struct iris_hooks *hooks);

/* Called by the thread of a watched workgroup. True if an observer decides
 * which workgroup runs. */
bool iris_i_hooks_turn(struct iris_hooks *hooks, const struct iris_cpu_wg *cpu,
                       enum iris_turn turn);

/* iris_i_hooks_before() and iris_i_hooks_after() if there are observers. */
void iris_i_hooks_host(struct iris_hooks *hooks, struct iris_host_event *event);

/* "atomic add", for messages. */
const char *iris_i_op_name(enum iris_op op);

/* Whether the event's address is translated, so that it must be on the heap.
 * The near side of a get or put, and the word of a wait, may be in any
 * memory. */
bool iris_i_is_translated(const struct iris_cpu_event *event);

/* Sets this thread's error to "rank 1: kernel scale, workgroup 3: atomic add of
 * 4 bytes at 0x7f00 on rank 0: <why>". Returns `status`. */
iris_status_t iris_i_fail_access(const struct iris_cpu_event *event,
                                 iris_status_t status, const char *why);

/* Whether an observer watches kernels; `hooks` may be NULL. */
static inline int iris_i_hooks_watch_device(struct iris_hooks *hooks)
{
    return hooks != NULL &&
           atomic_load_explicit(&hooks->num_device, memory_order_acquire) != 0;
}

/* Call before an operation of the host. Keep *event for the call after it, and
 * add its results before that call. `hooks` may be NULL. */
static inline void iris_i_hooks_before(struct iris_hooks *hooks,
                                       struct iris_host_event *event)
{
    if (hooks != NULL &&
        atomic_load_explicit(&hooks->num_host, memory_order_acquire) != 0) {
        iris_i_hooks_host(hooks, event);
    }
}

/* Call after the operation. Returns `status`. */
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
