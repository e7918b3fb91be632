/* SPDX-License-Identifier: MIT
 *
 * The context's insides, and the checks every public call starts with.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_H
#define IRIS_SRC_CONTEXT_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <iris/random.h>

#include "backend/mismatch.h"
#include "base/hooks.h"
#include "base/settings.h"
#include "base/wait.h"
#include "context/group.h"
#include "context/placement.h"
#include "control/bootstrap.h"
#include "heap/heap.h"
#include "queue/queue.h"

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

/* What a layer above keeps with a context or a group. */
struct iris_extension {
    void (*close)(struct iris_extension *self); /* before that ends */
};

/* NULL is fine. */
void iris_i_extension_close(struct iris_extension *extension);

struct iris {
    atomic_uint life;
    atomic_int interrupted; /* by iris_interrupt() */
    atomic_int heedless;    /* not 0: waits on streams go on without a peer */
    pid_t pid;              /* who made it: a fork must not use it */
    struct iris_log log;
    struct iris_waiter waiter; /* for work on streams */
    struct iris_settings *settings;
    pthread_t owner;        /* the thread that made it */
    iris_t *next_live;      /* of all that this process has */
    iris_t *next_finalized; /* of all that this process had */
    struct iris_placement placement;
    struct iris_backend *backend;
    struct iris_device_info device;
    struct iris_hooks hooks;
    struct iris_bounds *bounds; /* NULL: bounds are not checked */
    struct iris_control *control;
    struct iris_observer recorder; /* the flight recorder */
    struct iris_heap heap;
    struct iris_queue queue;
    iris_generator_t generator; /* the one that calls without one use */
    struct iris_group *world;
    struct iris_group *groups; /* live ones but the world */
    pthread_mutex_t groups_lock;
    int64_t *device_context;      /* device memory, at the heap's start */
    struct iris_extension *ccl;   /* of collectives; NULL: not used yet */
    struct iris_extension *ops;   /* the same of fused operations */
    struct iris_extension *trace; /* NULL: not enabled */
    struct iris_extension *blas;  /* the library of products */
};

/* What a layer above does with every context, where settings ask for it: the
 * trace of IRIS_TRACE (trace/automatic.c). None of these fails, and all leave
 * this thread's error alone. */
struct iris_life_ops {
    /* The context is complete. Collective: all ranks call it from iris_init().
     */
    void (*begun)(iris_t *iris);

    /* This rank leaves the job; its heap and its peers are there. Local. With
     * `waits` 0 it waits for no stream. */
    void (*ending)(iris_t *iris, int waits);

    /* The context goes; its peers have agreed to it if `state` is
     * IRIS_RANK_FINALIZED, and do not wait for this. */
    void (*ended)(iris_t *iris, enum iris_rank_state state);
};
extern const struct iris_life_ops iris_i_life_ops;

/* What a traced rank's heap is larger by. */
#define IRIS_TRACE_HEAP_BYTES ((size_t)44 << 20)

/* iris_init() for ranks this process made: `bootstrap` says who they are. */
iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p);

/* ---- Finalizing (finalize.c) ---- */

/* Makes the context one of those this process has; its end undoes that. */
void iris_i_enlist(iris_t *iris);
void iris_i_delist(iris_t *iris);

/* The call by which ranks agree that a context ends. */
extern const struct iris_call_type iris_i_finalize_call;

/* Frees the context, whose rank shows `state` to its peers from now on. */
void iris_i_end(iris_t *iris, enum iris_rank_state state);

/* Frees what there is of a context, in reverse order of making. */
void iris_i_close_all(iris_t *iris);

/* Ends a context without its peers: they get IRIS_ERR_PEER_LOST. */
void iris_i_abandon(iris_t *iris);

/* Can this context be used by this process? IRIS_ERR_INVALID (NULL),
 * IRIS_ERR_STATE (finalized, forked); `call` is the public name, for the
 * message. */
iris_status_t iris_i_enter(const iris_t *iris, const char *call);

/* The same, and that an output argument, `name`, is not NULL. */
iris_status_t iris_i_enter_output(const iris_t *iris, const char *call,
                                  const void *output, const char *name);

/* ---- Fused operations (fused.c) ---- */

/* Collectives that this thread calls are a part of this operation, and are
 * compared as it; NULL: of none. */
void iris_i_fused_set(const struct iris_compared *call);
const struct iris_compared *iris_i_fused(void);

/* core_ops.locate. */
int iris_i_context_locate(void *core, const void *address,
                          struct iris_location *place_p);

/* ---- The flight recorder (recorder.c) ---- */

/* From here on host calls and kernels' waits are in the control segment; the
 * control plane is open. IRIS_ERR_LIMIT */
iris_status_t iris_i_recorder_open(iris_t *iris);

/* Before the control plane goes. */
void iris_i_recorder_close(iris_t *iris);

/* A call of all ranks or of the device gave `status`: the job's report is
 * written if that is a deadline or the loss of a peer. */
void iris_i_recorder_failed(iris_t *iris, iris_status_t status);

/* waiter.describe of a context: what its kernels wait for. */
void iris_i_recorder_describe_wait(void *arg, char *text, size_t bytes);

/* What ended work is forgotten. */
void iris_i_recorder_clear(iris_t *iris);

/* core_ops.note_wait, .wait_over. */
void iris_i_note_wait(void *core, struct iris_wait_note *note);
void iris_i_wait_over(void *core, struct iris_wait_note *note);

/* ---- The library's own memory at the heap's start (layout.c) ---- */

/* Bytes of it, in a job of so many ranks. */
size_t iris_i_layout_bytes(int num_ranks);

/* Bytes of a heap and of the library's own in it, as the settings want them. */
struct iris_layout_sizes {
    size_t heap_bytes;
    size_t own_bytes;
};
struct iris_layout_sizes
iris_i_layout_sizes(const struct iris_settings *settings, int num_ranks);

/* The smallest heap size that a program may ask for. */
size_t iris_i_layout_least(const struct iris_settings *settings, int num_ranks);

/* Where the device half of the group with this place is. */
struct iris_dev_group *iris_i_layout_group(const iris_t *iris, int place);

/* Writes the word that peers recognise the heap by, and where that is. */
iris_status_t iris_i_layout_write_id(iris_t *iris, uint64_t *id_p);
size_t iris_i_layout_id_offset(int num_ranks);

/* Writes the device context, at its start, but for that word. */
iris_status_t iris_i_layout_write_context(iris_t *iris);

/* Writes its words about tracing, behind what the stream does, and waits. */
iris_status_t iris_i_layout_write_tracing(iris_t *iris, const int64_t *words,
                                          struct iris_stream *stream);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_H */
