/* SPDX-License-Identifier: MIT
 *
 * The interface of src/context: `iris_t`: a rank in a job; groups; most public
 * calls.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_H
#define IRIS_SRC_CONTEXT_CONTEXT_H

#include <iris/group.h>
#include <iris/random.h>
#include <iris/tensor.h>

#include "backend/backend.h"
#include "backend/calls.h"
#include "base/base.h"
#include "control/control.h"
#include "control/records.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* ---- open.c ---- */

/* Placement: a rank's backend and device, the number of ranks that share it,
 * and whether that counts as a simulation. */

struct iris_placement {
    const char *name; /* the selected backend: "hip", "sim" */
    const struct iris_backend_type *type; /* the backend that actually runs */
    int simulation;      /* several ranks share a device where a real job
                          * would have one each */
    int device;          /* number in the type's survey */
    int ranks_on_device; /* 1: the rank has the device for itself */
    char no_gpu[IRIS_MESSAGE_BYTES]; /* why no GPU is used; empty: one is
                                      * used, or none was looked for */
};

/* Chooses the backend in the settings, or else the first whose probe succeeds,
 * and a device for this rank. IRIS_ERR_BACKEND lists the known backends, or
 * says why the backend cannot run, or that there are too few devices. */
iris_status_t iris_i_place(const struct iris_settings *settings,
                           const struct iris_bootstrap *bootstrap,
                           struct iris_placement *placement_p);

/* Loads the module before ranks that are threads would load it at once. A
 * module may set environment variables for its device's runtime, and other
 * threads must not be reading the environment then. */
void iris_i_place_preload(const struct iris_settings *settings);

/* ---- Context type ---- */

/* The context's private struct. */

struct iris_group;
struct iris_proxy;

/* A context's life.
 *   LIVE       between iris_init() and iris_finalize()
 *   LEAVING    after iris_finalize_later(): a thread of the library finalizes
 *              it, and calls are refused as in FINALIZED
 *   FINALIZED  every later call returns IRIS_ERR_STATE; the struct is never
 *              freed, so that such calls are caught */
enum iris_life {
    IRIS_LIFE_LIVE = 0x49726973,
    IRIS_LIFE_LEAVING = 0x4c656176,
    IRIS_LIFE_FINALIZED = 0x64656164,
};

/* Data that a higher layer attaches to a context or a group. */
struct iris_extension {
    void (*close)(struct iris_extension *self); /* called before the owner
                                                 * ends */
    /* The ranks change: gives back memory of the heap, in the same order on every
     * rank, and streams; _close() follows. NULL, except in IRIS_EXTENSION_OPS. */
    void (*shrink)(struct iris_extension *self, iris_t *iris);
};

/* `extension` may be NULL. */
static inline void iris_i_extension_close(struct iris_extension *extension)
{
    if (extension != NULL) {
        extension->close(extension);
    }
}

/* Slots of extensions. The last slot is closed first. */
enum iris_extension_slot {
    IRIS_EXTENSION_RANGES, /* ranges for a profiler */
    IRIS_EXTENSION_TRACE,
    IRIS_EXTENSION_TUNING, /* the tuning file */
    IRIS_EXTENSION_CCL,
    IRIS_EXTENSION_OPS,
    IRIS_EXTENSION_BLAS, /* the BLAS library */
    IRIS_EXTENSIONS
};

/* Callbacks of a higher layer for every context, if settings ask for it: the
 * trace or the ranges of IRIS_TRACE (trace/export.c). None of them fails, and none changes
 * this thread's error. */
struct iris_life_ops {
    /* The context is complete. Collective: all ranks call it from iris_init().
     */
    void (*begun)(iris_t *iris);

    /* This rank leaves the job. Its heap and its peers still exist. Local. With
     * `waits` 0 it waits for no stream. */
    void (*ending)(iris_t *iris, int waits);

    /* The context is freed. If `state` is IRIS_RANK_FINALIZED, its peers have
     * agreed, and do not wait for this. */
    void (*ended)(iris_t *iris, enum iris_rank_state state);
};

struct iris_context {
    atomic_uint life;
    const struct iris_life_ops *life_ops;
    atomic_int interrupted; /* set by iris_interrupt() */
    atomic_int heedless;    /* not 0: waits on streams go on after the loss
                             * of a peer */
    pid_t pid;              /* the process that made it: a forked child must
                             * not use it */
    struct iris_log log;
    struct iris_waiter waiter; /* for waits for streams */
    struct iris_settings *settings;
    pthread_t owner;        /* the thread that made it */
    iris_t *next_live;      /* list of this process's live contexts */
    iris_t *next_finalized; /* list of this process's finalized contexts */
    struct iris_placement placement;
    struct iris_backend *backend;
    struct iris_device_info device;
    struct iris_hooks hooks;
    struct iris_bounds *bounds; /* NULL: no check of bounds */
    struct iris_race *race;     /* NULL: no check for races */
    struct iris_weak *weak;     /* NULL: reads see the newest values */
    struct iris_control *control;
    int far_listener; /* listener for ranks of other nodes; -1: closed */
    struct iris_ucx *far_ucx; /* NULL: the proxy has it, or nobody needs it */
    struct iris_proxy *proxy; /* NULL: ranks of other nodes cannot be
                                 * reached */
    struct iris_far far;      /* the proxy's */
    struct iris_observer recorder; /* the flight recorder */
    struct iris_heap heap;
    struct iris_queue queue;
    iris_generator_t generator; /* used by calls without a generator */
    struct iris_group *world;
    pthread_mutex_t groups_lock;
    /* Live groups except the world. */
    struct iris_group *groups IRIS_GUARDED_BY(groups_lock);
    int64_t *device_context; /* device memory, at the heap's start */
    struct iris_extension *extensions[IRIS_EXTENSIONS];
};

/* ---- For higher layers, which do not access its fields. A const context does
 * not promise that its heap, streams and observers stay unchanged. ---- */

static inline int iris_i_is_live(const iris_t *iris)
{
    return atomic_load_explicit(&iris->life, memory_order_acquire) ==
           IRIS_LIFE_LIVE;
}

/* NULL: not used yet. */
static inline struct iris_extension *
iris_i_extension(const iris_t *iris, enum iris_extension_slot slot)
{
    return iris->extensions[slot];
}

static inline void iris_i_extend(iris_t *iris, enum iris_extension_slot slot,
                                 struct iris_extension *extension)
{
    iris->extensions[slot] = extension;
}

static inline const struct iris_log *iris_i_log(const iris_t *iris)
{
    return &iris->log;
}

static inline int iris_i_rank(const iris_t *iris)
{
    return iris->log.rank;
}

static inline int iris_i_num_ranks(const iris_t *iris)
{
    return iris->log.num_ranks;
}

/* Whether IRIS_TRACE asks for ranges in a profiler, and not for a file. */
static inline bool iris_i_settings_mark(const struct iris_settings *settings)
{
    const char *value = settings->trace.text;

    return strcmp(value, "nvtx") == 0 || strcmp(value, "roctx") == 0;
}

static inline const struct iris_settings *iris_i_settings(const iris_t *iris)
{
    return iris->settings;
}

static inline const struct iris_device_info *iris_i_device(const iris_t *iris)
{
    return &iris->device;
}

static inline int iris_i_is_gpu(const iris_t *iris)
{
    return iris->placement.type->is_gpu;
}

static inline struct iris_backend *iris_i_backend(const iris_t *iris)
{
    return iris->backend;
}

static inline struct iris_hooks *iris_i_hooks(const iris_t *iris)
{
    return &((iris_t *)(uintptr_t)iris)->hooks;
}

static inline struct iris_heap *iris_i_heap(const iris_t *iris)
{
    return &((iris_t *)(uintptr_t)iris)->heap;
}

static inline struct iris_queue *iris_i_queue(const iris_t *iris)
{
    return &((iris_t *)(uintptr_t)iris)->queue;
}

static inline struct iris_stream *iris_i_default_stream(const iris_t *iris)
{
    return iris->queue.streams;
}

static inline struct iris_group *iris_i_world(const iris_t *iris)
{
    return iris->world;
}

/* ---- group.c ---- */

struct iris_dev_group;

struct iris_group {
    struct iris_group *next;     /* next in the context's list */
    struct iris_members members; /* .ranks is the array below */
    int index;                   /* this rank's index in the group */
    int unreachable;             /* a member whose heap is not mapped here */
    struct iris_dev_group *device;
    struct iris_extension *ccl; /* data of collectives; NULL: not used yet */
    struct iris_extension *ops; /* data of fused operations */
    uintptr_t workspace;        /* the workspace of the latest collective;
                                 * under the lock */
    size_t workspace_bytes;
    int ranks[]; /* ranks of the job, in group order */
};

/* A group of these ranks; NULL: all ranks in order. Returns NULL, with this
 * thread's message, if there is no memory. */
struct iris_group *iris_i_group_make(iris_t *iris, const int *ranks, int count);

/* Writes the device half, after the heaps are mapped: epochs 0, no arrivals.
 * IRIS_ERR_NO_MEMORY, or the status of the device copy. */
iris_status_t iris_i_group_write_device(iris_t *iris, struct iris_group *group);

/* A number, not 0, that is equal for groups of the same ranks in the same
 * order. */
uint64_t iris_i_group_key(const void *group);

/* The number of members. */
int iris_i_group_count(const void *group);

/* Frees every group the program has not destroyed, and restarts the world with the
 * ranks that are left; iris_i_group_write_device() follows. */
void iris_i_group_shrink(iris_t *iris);

/* Frees the world and every group the program has not destroyed. Local. */
void iris_i_group_close_all(iris_t *iris);

/* Finds the group of a call: NULL is the world. IRIS_ERR_INVALID: the group
 * belongs to another context. */
iris_status_t iris_i_group_resolve(const iris_t *iris,
                                   const iris_group_t *group,
                                   struct iris_group **group_p);

/* Whether it has ranks of other nodes, which only a proxy reaches. */
int iris_i_group_is_far(const iris_t *iris, const struct iris_group *group);

/* IRIS_ERR_UNREACHABLE if barriers in kernels cannot reach every member. */
iris_status_t iris_i_group_check_reachable(const iris_t *iris,
                                           const struct iris_group *group,
                                           const char *call);

/* IRIS_ERR_INVALID if `root` is no index of the group. */
iris_status_t iris_i_group_check_root(const iris_t *iris,
                                      const struct iris_group *group,
                                      const char *call, int root);

/* The work of iris_broadcast(), for a call whose type has these fields. */
#define IRIS_BROADCAST_FIELDS                \
    {                                        \
        {.name = "bytes"}, {.name = "root"}, \
        {                                    \
            .name = "position"               \
        }                                    \
    }
iris_status_t iris_i_group_broadcast(struct iris_group *group,
                                     struct iris_call *call, void *ptr,
                                     size_t bytes, int root);

/* core_ops.describe_late. */
void iris_i_group_describe_late(void *core, const void *word, char *text,
                                size_t bytes);

/* Notes the group that waits for this word of this rank's heap: in a barrier,
 * with the late member, or in its workspace for collectives. */
void iris_i_group_note(iris_t *iris, const void *word,
                       struct iris_record_wait *wait);

/* Sets the address of this rank's words for the group's collectives. */
void iris_i_group_set_workspace(iris_t *iris, struct iris_group *group,
                                const void *memory, size_t bytes);

/* ---- enter.c ---- */

/* Whether this process can use this context. IRIS_ERR_INVALID (NULL),
 * IRIS_ERR_STATE (finalized, forked); `call` is the public name, for the
 * message. */
iris_status_t iris_i_enter(const iris_t *iris, const char *call);

/* iris_i_enter(), and a check that the output argument `name` is not NULL. */
iris_status_t iris_i_enter_output(const iris_t *iris, const char *call,
                                  const void *output, const char *name);

/* The check of a tensor at the start of every public call that takes one.
 * `tensor` and `ops` share it, so it is in a lower layer. */

/* An argument and its name for messages. `log` is NULL if the call has no
 * context. */
struct iris_named_argument {
    const struct iris_log *log;
    const char *call;
    const char *name;
};

/* IRIS_ERR_INVALID: too many dimensions, a negative size, an unknown dtype, or
 * more elements than memory can hold. */
iris_status_t iris_i_shape_check(const struct iris_named_argument *argument,
                                 const iris_shape_t *shape, iris_dtype_t dtype);

/* IRIS_ERR_INVALID: one of these holds:
 * - the tensor is NULL;
 * - its shape or dtype fails iris_i_shape_check();
 * - its elements span more than the address space;
 * - it has elements, and its data is NULL or misaligned. After a successful
 *   check, products of the tensor's sizes, strides and byte offsets cannot
 *   overflow. */
iris_status_t iris_i_tensor_check(const struct iris_named_argument *argument,
                                  const iris_tensor_t *tensor);

/* iris_i_tensor_check(), and iris_i_heap_check_range(): the device may access
 * all memory between the first element and the last. `access` is 1 if it writes,
 * plus IRIS_BY_KERNEL if a kernel does it, and not a copy engine. */
#define IRIS_BY_KERNEL 2
iris_status_t
iris_i_tensor_check_access(const struct iris_heap *heap,
                           const struct iris_named_argument *argument,
                           const iris_tensor_t *tensor, int access);

/* Whether a kernel may load and store elements at this address. */
int iris_i_tensor_is_aligned(const void *data, iris_dtype_t dtype);

/* The bytes between a checked tensor's first and last element, in memory order;
 * 0 bytes without elements. */
struct iris_tensor_extent {
    char *start;
    size_t bytes;
};
struct iris_tensor_extent iris_i_tensor_extent(const iris_tensor_t *tensor);

/* ---- group.c ---- */

/* The heap of a traced rank is larger by this size. */
#define IRIS_TRACE_HEAP_BYTES ((size_t)44 << 20)

/* Bytes of a heap, of the addresses that it may grow into, and of the library's
 * own part, from the settings. */
struct iris_layout_sizes {
    size_t heap_bytes;
    size_t reserve_bytes; /* at least heap_bytes */
    size_t own_bytes;
};
struct iris_layout_sizes
iris_i_layout_sizes(const struct iris_settings *settings, int num_ranks);

/* Whether a job of that size can have the heaps that the settings ask for.
 * IRIS_ERR_CONFIG */
iris_status_t iris_i_layout_check(const struct iris_settings *settings,
                                  const struct iris_log *log, int num_ranks);

/* Writes the word by which peers recognise the heap, and gives its offset. */
iris_status_t iris_i_layout_write_id(iris_t *iris, uint64_t *id_p);
size_t iris_i_layout_id_offset(int num_ranks);

/* Writes the device context, at the start of its heap, without that word. */
iris_status_t iris_i_layout_write_context(iris_t *iris);

/* Writes the words about tracing after all earlier work of the stream, and
 * waits. */
iris_status_t iris_i_layout_write_tracing(iris_t *iris, const int64_t *words,
                                          struct iris_stream *stream);

/* ---- enter.c ---- */

struct iris_stream;

struct iris_fused {
    struct iris_compared compared;
    struct iris_stream *stream; /* the operation's stream; the other work of
                                 * the operation follows it and joins it */
};

/* The collectives that this thread calls are part of this operation, and peers
 * compare them as such; NULL: no operation. */
void iris_i_fused_set(const struct iris_fused *call);
const struct iris_fused *iris_i_fused(void);

/* ---- finalize.c ---- */

/* Adds the context to the list of this process's contexts; its end removes
 * it. */
void iris_i_enlist(iris_t *iris);

/* Frees the parts of a context that exist, in reverse order of their
 * creation. */
void iris_i_close_all(iris_t *iris);

/* Ends a context without its peers: they get IRIS_ERR_PEER_LOST. */
void iris_i_abandon(iris_t *iris);

/* ---- open.c ---- */

/* The context of the rank in `bootstrap`. Peers wait for this rank. If its
 * settings are wrong (`status`, with this thread's message), it joins them all
 * the same, to tell them, and gets that status. `life_ops` outlives the
 * context. */
iris_status_t iris_i_context_open(const struct iris_settings *settings,
                                  const struct iris_bootstrap *bootstrap,
                                  const struct iris_life_ops *life_ops,
                                  iris_status_t status, iris_t **iris_p);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_H */
