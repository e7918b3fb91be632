/* SPDX-License-Identifier: MIT
 *
 * The interface of src/backend: the interface of backends; workgroups on CPU
 * threads.
 */
#ifndef IRIS_SRC_BACKEND_BACKEND_H
#define IRIS_SRC_BACKEND_BACKEND_H

#include <iris/device/layout.h>
#include <iris/device/watch/op.h>
#include <iris/device/watch/series.h>
#include <iris/log.h>
#include <iris/status.h>
#include <iris/types.h>

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- backend.c ---- */

/* The backend interface: the functions that a kind of device must offer, in
 * three tables on an instance. docs/backends.md is the manual; only calls.h
 * calls the slots. */

#define IRIS_HANDLE_BYTES 160

/* The core commits memory in multiples of this size, or of page_bytes if that
 * is larger. */
#define IRIS_COMMIT_BYTES ((size_t)65536)

struct iris_kernel;
struct iris_backend;
struct iris_graph;
struct iris_stream;

/* A handle by which one rank gives another access to its memory: bytes, and for
 * some backends a file descriptor that the control plane sends between
 * processes. */
struct iris_heap_handle {
    int fd; /* -1: none; owned by the holder of the handle */
    uint32_t num_bytes;
    unsigned char bytes[IRIS_HANDLE_BYTES];
};

/* The effect of a heap's commit(), and its visibility to peers. */
enum iris_commit {
    IRIS_COMMIT_NOTHING, /* alloc has already committed everything */
    IRIS_COMMIT_SHARED,  /* peers see it through their existing mapping */
    IRIS_COMMIT_PRIVATE, /* peers map each committed range by a separate
                          * handle */
};

/* A heap that this rank has allocated. `cookie` belongs to the backend. */
struct iris_heap_region {
    void *base;
    size_t bytes;
    size_t window;       /* offset, in every mapping of the heap, of the
                          * addresses for external memory */
    size_t window_bytes; /* size of the window; 0: there is no window */
    enum iris_commit commit;
    int guarded;        /* no other memory begins where the heap ends */
    size_t ahead_bytes; /* reserved bytes ahead of every mapping */
    void *cookie;
};

/* The kind of memory of heaps, for other libraries: the host's, or that of a
 * GPU with one vendor's runtime. */
enum iris_memory_kind {
    IRIS_MEMORY_HOST,
    IRIS_MEMORY_CUDA,
    IRIS_MEMORY_ROCM,
};

/* The properties of an open instance. */
struct iris_device_info {
    char name[64];
    int device_id;
    int num_cus;       /* workgroups of a kernel that run at once */
    int wavefront;     /* lanes that run in lockstep; 1 on the CPU */
    int num_xccs;      /* dies, each with its own L2; 0: unknown */
    int64_t clock_khz; /* rate of the clock that kernels read; 0: no clock */
    uint64_t watch;    /* struct iris_dev_watch as kernels map it; 0: no
                        * watch */
    size_t page_bytes; /* memory comes in multiples of this */
    int has_graphs;    /* 0: capture_begin is unsupported */
    int heaps_grow;    /* 1: alloc() reserves addresses, and commit() puts
                        * memory there */
    enum iris_memory_kind memory;
    char heap[48]; /* its kind of memory, for people; empty: the host's */
};

/* The devices of a backend on this machine, found without opening one: for
 * iris info. */
#define IRIS_SURVEY_DEVICES 16
struct iris_survey {
    char runtime[96]; /* "HIP 5.2.3, driver 5.2.3"; versions in the runtime's
                       * format */
    int num_devices;  /* total number; the arrays have the first 16 */
    struct {
        char name[64];
        char pci[16]; /* "0000:c1:00.0"; empty: unknown */
        size_t memory_bytes;
        uint32_t access;  /* bit i: can map memory of device i */
        uint32_t atomics; /* bit i: and its atomics work on that memory */
    } devices[IRIS_SURVEY_DEVICES];
};

/* Memory of the program that can be mapped into the heap's window. */
struct iris_external {
    size_t
        bytes; /* size of the whole allocation, which is the unit of mapping */
    size_t offset; /* offset of the requested part */
    void *cookie;  /* the backend's reference. It is the same as before for
                    * an allocation that is still mapped, and differs for any
                    * other. */
};

/* One launch, after iris_launch() has checked it. */
struct iris_launch {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
    const void *args; /* copied before the slot returns */
    bool own;         /* a kernel of the library: all its waits are the
                       * library's */
    uint64_t call;    /* id of the host's event for the call; 0: no event */
};

/* A copy of rows. No pitch is less than row_bytes, which is not 0. */
struct iris_copy_rows {
    void *dst;
    const void *src;
    size_t dst_pitch;
    size_t src_pitch;
    size_t row_bytes;
    size_t rows; /* 2 or more */
};

/* Memory of the host that kernels reach, too. */
struct iris_pinned {
    void *host;
    uint64_t device; /* its address for kernels */
    size_t bytes;
};

/* The place of an address. */
struct iris_location {
    int rank; /* the rank whose heap contains it */
    size_t offset;
    size_t start; /* the nearest allocation there, of `bytes`; 0: none known */
    size_t bytes;
};

/* A long wait inside a kernel, as the flight record keeps it. Initially zero,
 * except for `slot`. */
struct iris_wait_note {
    int slot;  /* used by the core; -1 initially */
    int ended; /* 1: the kernel ends because of a deadline or a peer */
    const struct iris_stream *stream;
    const char *kernel; /* NULL: unknown; then stream, grid and own are
                         * unknown, too */
    uint32_t workgroup;
    uint32_t grid;
    uint32_t begun; /* workgroups of the grid; 0: unknown */
    uint32_t done;
    int own;             /* the kernel is the library's */
    int op;              /* enum iris_op; 0: repeats atomic operations */
    const void *address; /* address of the word on this rank; NULL:
                          * unknown */
    uint32_t bytes;      /* of the word */
    int is_unsigned;     /* 1: value and seen are unsigned */
    iris_cmp_t cmp;
    int64_t value;
    int64_t seen;
    int is_known; /* used by the core, as are the next four; 0: a new wait */
    uint32_t site;
    int64_t first_seen;
    int64_t last_seen;
    int64_t change_ns;
    int64_t begin_ns;
    int64_t now_ns;
};

/* Functions of the core for backends. `core` is the first argument. All are
 * thread-safe and never NULL. */
struct iris_core_ops {
    /* Writes the reason why a wait for a word on this rank's heap has not
     * ended: "rank 2 has not come to it". NULL means a wait for another node.
     * Empty: unknown. */
    void (*describe_late)(void *core, const void *word, char *text,
                          size_t bytes);

    /* Publishes a workgroup's wait for other processes; called again while the
     * wait lasts. */
    void (*note_wait)(void *core, struct iris_wait_note *note);

    /* The wait of that note has ended. */
    void (*wait_over)(void *core, struct iris_wait_note *note);

    /* Fills *place_p, or returns 0 if the address is on no rank's heap. Called
     * from a signal handler, on a thread that runs a kernel. */
    int (*locate)(void *core, const void *address,
                  struct iris_location *place_p);
};

/* The parameters with which the core opens an instance. */
struct iris_backend_params {
    int rank;
    int num_ranks;
    int device;           /* index in survey(); the core's placement chose it */
    int ranks_on_device;  /* rank threads and processes that share the device;
                          * 1: not shared */
    int num_cus;          /* workgroups at once, for a device without a fixed
                          * number (the CPU) */
    int vmem;             /* heaps that grow and accept external memory */
    int vmem_if_needed;   /* the same, but only if heaps could not be shared
                          * otherwise */
    const char *memory;   /* kind of memory for heaps, if a device has
                          * several: "auto", "fine" (grained) or "uncached";
                          * lives as long as `core` */
    size_t heap_bytes;    /* size of each rank's heap */
    size_t reserve_bytes; /* size that it may grow to; alloc() gets this one */
    const struct iris_waiter *waiter; /* for waits for device work; lives as
                                       * long as `core` */
    int64_t device_timeout_ms;        /* limit of a wait inside a kernel; 0:
                                       * no limit */
    const struct iris_log *log;       /* the rank for messages */
    const struct iris_core_ops *core_ops;
    void *core;
    /* The library's kernel for struct iris_wait_args; NULL: it is not
     * needed. */
    const struct iris_kernel *wait;
    /* Observers of CPU kernels, read at each launch; NULL: none. */
    struct iris_hooks *hooks;
    /* How CPU kernels reach ranks of other nodes; NULL: all ranks are on
     * this node. */
    const struct iris_far *far;
};

/* ---- Types in the registry ---------------------------------------------- */

/* A kind of backend: static, const, thread-safe. */
struct iris_backend_type {
    const char *name; /* name in settings */
    int is_gpu;       /* ranks may share one of its devices, as a stand-in for
                    * several */
    int simulates;    /* simulates a GPU: placement may put its ranks on a real
                    * one */

    /* Whether this backend can run here. IRIS_OK; IRIS_ERR_BACKEND with the
     * reason; IRIS_ERR_LIMIT or IRIS_ERR_NO_MEMORY if it might run with more of
     * the resource in the message. *num_devices_p is the number of usable
     * devices, at least 1. Leaves nothing open. */
    iris_status_t (*probe)(int *num_devices_p);

    /* Describes these devices for users; slow. Leaves nothing open.
     * IRIS_ERR_BACKEND: there are no devices. */
    iris_status_t (*survey)(struct iris_survey *survey_p);

    /* Opens an instance for one rank. *params is copied; the objects it points
     * to outlive the instance. The core closes it. */
    iris_status_t (*open)(const struct iris_backend_params *params,
                          struct iris_backend **backend_p);
};

/* ---- The three tables ------------------------------------------------------
 *
 * Every slot is filled. A backend that lacks a function uses the stub of
 * stubs.h, which returns IRIS_ERR_UNSUPPORTED with a message. A slot returns a
 * status, and sets this thread's message when it fails; destructors return
 * nothing. Outputs are written only on success. "Thread-safe" means from any
 * thread, on one instance. */

/* The device itself, and the creation of streams and graphs. */
struct iris_device_ops {
    /* Fills *info_p. Thread-safe. */
    void (*info)(const struct iris_backend *backend,
                 struct iris_device_info *info_p);

    /* Makes a stream; the core destroys it. */
    iris_status_t (*stream_create)(struct iris_backend *backend,
                                   struct iris_stream **stream_p);

    /* Wraps a stream that the program made with the device's own runtime. The
     * program destroys it itself, after stream_destroy. */
    iris_status_t (*stream_wrap)(struct iris_backend *backend, void *native,
                                 struct iris_stream **stream_p);

    /* Ends waiting work of the stream, then frees it. */
    void (*stream_destroy)(struct iris_stream *stream);

    /* No launch of the graph is running any more. */
    void (*graph_destroy)(struct iris_backend *backend, void *graph);

    /* Clears the instance's fault (see struct iris_fault): waits until earlier
     * work has been skipped or ended, then lets work run again. IRIS_ERR_STATE:
     * a kernel cannot be ended, or the device's runtime no longer works; the
     * fault stays. */
    iris_status_t (*clear_fault)(struct iris_backend *backend);

    /* Changes the numbers of params, after the job has lost ranks. No work is
     * running. */
    void (*renumber)(struct iris_backend *backend, int rank, int num_ranks);

    /* Called after all streams and heaps are gone. */
    void (*close)(struct iris_backend *backend);
};

/* Heaps, and their memory. `at` is an address in this rank's heap or its window
 * or, for import_range and decommit, in a peer's. Addresses and sizes are
 * multiples of page_bytes, except for external memory. Called from the thread
 * that makes collective calls. */
struct iris_memory_ops {
    /* Allocates this rank's heap: `bytes` of device memory that peers can map,
     * zeroed. region_p->commit says whether it is memory or only addresses. The
     * core frees it. */
    iris_status_t (*alloc)(struct iris_backend *backend, size_t bytes,
                           struct iris_heap_region *region_p);

    /* No peer uses the heap any more. */
    void (*free)(struct iris_backend *backend, struct iris_heap_region *region);

    /* Whether kernels can access memory outside of heaps. IRIS_ERR_INVALID, with
     * `name` in the message: it is known that they cannot. A memory whose state
     * is not known counts as accessible. Thread-safe; also during a capture. */
    iris_status_t (*check_access)(struct iris_backend *backend,
                                  const char *name, const void *ptr,
                                  size_t bytes);

    /* Makes a handle of the heap for other ranks. With IRIS_COMMIT_PRIVATE, the
     * handle also covers the memory at its start, if there is any. The caller
     * closes the descriptor in *handle_p, if any. */
    iris_status_t (*export_heap)(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p);

    /* Maps a peer's heap from its handle, which the caller keeps. Works in
     * another process and in another rank thread of the same process.
     * IRIS_ERR_UNREACHABLE: this device has no access to the other one's
     * memory. */
    iris_status_t (*import_heap)(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p);

    /* Undoes import_heap; this rank's kernels no longer use it. */
    void (*unimport_heap)(struct iris_backend *backend, void *base,
                          size_t bytes);

    /* Commits zeroed memory to the addresses at `at`, so that accesses
     * cannot fault. It is for this device and all devices of this process that
     * can reach this rank's. IRIS_ERR_NO_MEMORY */
    iris_status_t (*commit)(struct iris_backend *backend, void *at,
                            size_t bytes);

    /* Undoes one commit, import_range or map_external; does nothing if there is
     * no memory at `at`. No device work uses it any more. free and
     * unimport_heap undo the remaining ones. */
    void (*decommit)(struct iris_backend *backend, void *at, size_t bytes);

    /* Makes a handle of the memory that commit or map_external has put at `at`,
     * like export_heap. */
    iris_status_t (*export_range)(struct iris_backend *backend, void *at,
                                  struct iris_heap_handle *handle_p);

    /* Maps a peer's range, of at most `most` bytes, from its handle, which the
     * caller keeps. Not in the peer's own process. */
    iris_status_t (*import_range)(struct iris_backend *backend, void *at,
                                  size_t most,
                                  const struct iris_heap_handle *handle);

    /* Takes a reference to the program's memory at `ptr`, of which `bytes` are
     * used, until release_external. IRIS_ERR_UNSUPPORTED: it cannot be mapped a
     * second time and in other processes; the message says why. */
    iris_status_t (*hold_external)(struct iris_backend *backend,
                                   const void *ptr, size_t bytes,
                                   struct iris_external *external_p);
    void (*release_external)(struct iris_backend *backend,
                             struct iris_external *external);

    /* Like commit, with the referenced memory. It stays until decommit, even if
     * the program removes its own mapping. */
    iris_status_t (*map_external)(struct iris_backend *backend, void *at,
                                  struct iris_external *external);

    /* Allocates zeroed host memory that the device maps. IRIS_ERR_NO_MEMORY;
     * IRIS_ERR_UNSUPPORTED: kernels run on the host. No kernel uses it any more
     * when it is given back. */
    iris_status_t (*pin)(struct iris_backend *backend, size_t bytes,
                         struct iris_pinned *pinned_p);
    void (*unpin)(struct iris_backend *backend, struct iris_pinned *pinned);
};

/* A function that enqueues work on the runtime's stream. */
typedef iris_status_t (*iris_native_call_t)(void *native, void *what);

/* Work in stream order. Enqueueing never waits for device work, with two
 * exceptions: the queue is full, or `copy` moves more than a few megabytes
 * between the device and pageable host memory. Then params.waiter says when to
 * stop. bytes > 0. Thread-safe. */
struct iris_queue_ops {
    /* Blocks until all work enqueued before the call is done. Returns the
     * instance's fault if there is one. If params.waiter ends the wait, its
     * reason becomes the fault and ends waiting kernels. */
    iris_status_t (*synchronize)(struct iris_stream *stream);

    /* Whether all work enqueued before a point is done; never waits. The first
     * call, with *target_p 0, sets that point; later calls pass the value back.
     * Returning 0 is always correct: it means that it is not known to be
     * done. */
    int (*query)(struct iris_stream *stream, uint64_t *target_p);

    iris_status_t (*copy)(struct iris_stream *stream, void *dst,
                          const void *src, size_t bytes);
    iris_status_t (*set)(struct iris_stream *stream, void *dst, int value,
                         size_t bytes);

    /* Copies rows, with these pitches on the two sides. IRIS_ERR_UNSUPPORTED
     * (always, or for such memory or pitches): the core copies them one by
     * one. */
    iris_status_t (*copy_rows)(struct iris_stream *stream,
                               const struct iris_copy_rows *rows);
    iris_status_t (*launch)(struct iris_stream *stream,
                            const struct iris_launch *launch);

    /* Enqueues the store of a signal, on any rank's heap, that releases all
     * earlier work of the stream at system scope; and a wait for this rank's
     * own signal that acquires. `place` is translated. IRIS_ERR_UNSUPPORTED
     * (always, in a capture, or for that comparison): the core launches a
     * kernel. */
    iris_status_t (*signal)(struct iris_stream *stream, uint64_t *place,
                            uint64_t value);
    iris_status_t (*wait)(struct iris_stream *stream, uint64_t *place,
                          iris_cmp_t cmp, uint64_t value);

    /* Later work of the stream waits for all earlier work of `other`, on the
     * same instance. If `other` is capturing, this stream joins that capture;
     * the capturing stream has to follow this stream before the capture
     * ends. */
    iris_status_t (*follow)(struct iris_stream *stream,
                            struct iris_stream *other);

    /* Work enqueued between capture_begin and capture_end does not run but is
     * recorded; graph_launch enqueues all of it. The core destroys the
     * graph. */
    iris_status_t (*capture_begin)(struct iris_stream *stream);
    iris_status_t (*capture_end)(struct iris_stream *stream, void **graph_p);
    iris_status_t (*graph_launch)(struct iris_stream *stream, void *graph);

    /* The runtime's stream behind this one; NULL: there is no runtime, or it is
     * the runtime's default stream. */
    void *(*native)(struct iris_stream *stream);

    /* Runs `function` in this thread, for a library that enqueues work on the
     * runtime's stream itself. The device is current, the program's captures
     * forbid no call, and the work counts as the stream's. Returns the result
     * of `function`; IRIS_ERR_STATE with `apart` while a stream captures. */
    iris_status_t (*call)(struct iris_stream *stream,
                          iris_native_call_t function, void *what, int apart);
};

/* Declares a function for a slot of one of the tables:
 * IRIS_SLOT(iris_i_hip_copy, queue, copy) has the type of `copy` in struct
 * iris_queue_ops. */
#define IRIS_SLOT(function, table, slot) \
    __typeof__(*((const struct iris_##table##_ops *)0)->slot) function

/* ---- Instances -------------------------------------------------------------
 */

/* The first error that ended work of this instance. From then on, every call
 * that needs the device returns it, until clear_fault or close.
 *
 *   IRIS_OK       work runs
 *   another       work is skipped, kernels that wait end, calls return this */
struct iris_fault {
    _Atomic int status;
    pthread_mutex_t lock; /* guards the message and changes of status */
    char message[IRIS_MESSAGE_BYTES] IRIS_GUARDED_BY(lock);
};

/* An opened backend; instances embed it first. */
struct iris_backend {
    const struct iris_backend_type *type;
    const struct iris_device_ops *device;
    const struct iris_memory_ops *memory;
    const struct iris_queue_ops *queue;
    struct iris_fault fault;
};

/* A stream; instances embed it first. `next` and `fence` belong to the core
 * until it destroys the stream, and are 0 initially. */
struct iris_stream {
    struct iris_backend *backend;
    struct iris_stream *next;
    uint64_t fence; /* the point for query */
    bool serves;    /* other ranks' work: it goes on after this rank's faults */
    /* Used by the core, 0 initially: the stream's number in the rank, the
     * number of waits of the host for it, and the graph that it captures. */
    uint64_t number;
    atomic_ullong waits;
    struct iris_graph *_Atomic capturing;
};

/* Initialises a new instance; type and tables are set. */
void iris_i_backend_made(struct iris_backend *backend);

/* Makes `status`, with `message`, the instance's fault unless it has one.
 * Returns the fault's status. Thread-safe. */
iris_status_t iris_i_fault_set(struct iris_backend *backend,
                               iris_status_t status, const char *message);

/* IRIS_OK, or the fault; sets this thread's message to the fault's.
 * Thread-safe, and a single load if there is no fault. */
iris_status_t iris_i_fault_check(const struct iris_backend *backend);

/* The instance's fault `fault`, unless the stream's work goes on. */
static inline iris_status_t iris_i_fault_of(const struct iris_stream *stream,
                                            iris_status_t fault)
{
    return stream->serves && fault != IRIS_ERR_DEVICE ? IRIS_OK : fault;
}

/* For clear_fault, when none of the old work is running. */
void iris_i_fault_clear(struct iris_backend *backend);

/* "==" and the like, for messages. */
static inline const char *iris_i_cmp_name(iris_cmp_t cmp)
{
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};

    return cmp >= IRIS_CMP_EQ && cmp <= IRIS_CMP_GE ? names[cmp] : "?";
}

/* The public functions: X(NAME, name). The collectives are in the order of enum
 * iris_ccl_op; those after the broadcast start at REDUCE. The products are in
 * the order of enum iris_ops_op. Programs contain the value of GATHER. */
#define IRIS_COMPARED_ROWS(X)                              \
    X(ALL_REDUCE, "iris_all_reduce")                       \
    X(ALL_GATHER, "iris_all_gather")                       \
    X(REDUCE_SCATTER, "iris_reduce_scatter")               \
    X(ALL_TO_ALL, "iris_all_to_all")                       \
    X(BROADCAST, "iris_ccl_broadcast")                     \
    X(MATMUL_ALL_REDUCE, "iris_matmul_all_reduce")         \
    X(ALL_GATHER_MATMUL, "iris_all_gather_matmul")         \
    X(MATMUL_ALL_GATHER, "iris_matmul_all_gather")         \
    X(MATMUL_REDUCE_SCATTER, "iris_matmul_reduce_scatter") \
    X(GATHER, "iris_wg_gather") /* for workgroups */       \
    X(REDUCE, "iris_reduce")                               \
    X(GATHER_TO, "iris_gather")                            \
    X(SCATTER_FROM, "iris_scatter")                        \
    X(ALL_GATHERV, "iris_all_gatherv")                     \
    X(ALL_TO_ALLV, "iris_all_to_allv")                     \
    X(SEND, "iris_send")                                   \
    X(RECV, "iris_recv")                                   \
    X(SEND_RECV, "iris_send_recv")                         \
    X(FAILED, "a call that failed") /* sizes[0]: -status */

enum iris_compared_op {
#define IRIS_COMPARED_ENUM(NAME, name) IRIS_COMPARED_##NAME,
    IRIS_COMPARED_ROWS(IRIS_COMPARED_ENUM)
#undef IRIS_COMPARED_ENUM
        IRIS_COMPARED_NUM_OPS,
};

/* A call. struct iris_dev_call has the parts that fit. */
struct iris_compared {
    int op; /* enum iris_compared_op */
    int dtype;
    int reduce;
    int variant;
    int root;          /* of a product: number of chunks */
    uint64_t sizes[3]; /* count, rows and bits of the scale; bytes of messages,
                        * or for all_gatherv a hash of the counts; or M, N and K
                        * of a product */
};

struct iris_dev_call iris_i_compared_pack(const struct iris_compared *call);

/* Sets the message of IRIS_ERR_MISMATCH and returns it. For a workspace that
 * was left in the middle of a step, it is IRIS_ERR_INVALID; for a call that
 * failed on a member, that member's status. */
iris_status_t iris_i_mismatch_describe(const struct iris_dev_mismatch *mismatch,
                                       char *text, size_t bytes);

/* ---- registry.c ---- */

/* Registered at build time (registry.c lists them). */
extern const struct iris_backend_type iris_i_sim_type;

/* Name of the `i`th backend of this build, in order of preference; NULL after
 * the last. *type_p is NULL if it is a module that cannot be loaded here; this
 * thread's message says why. `module_dir` is the folder of modules; NULL or
 * empty: the installation's. */
const char *iris_i_registry_at(size_t i, const char *module_dir,
                               const struct iris_backend_type **type_p);

/* The backend of that name, in upper or lower case. IRIS_ERR_BACKEND lists the
 * available ones, or says why this one cannot be used. */
iris_status_t iris_i_registry_find(const char *name, const char *module_dir,
                                   const struct iris_backend_type **type_p);

/* Adds a backend after the others; it lives as long as the process. Not while
 * another thread uses the registry. IRIS_ERR_LIMIT */
iris_status_t iris_i_registry_add(const struct iris_backend_type *type);

/* ---- backend.c ---- */

/* For devices without a runtime. */
iris_status_t iris_i_no_stream_wrap(struct iris_backend *backend, void *native,
                                    struct iris_stream **stream_p);
void *iris_i_no_native(struct iris_stream *stream);
iris_status_t iris_i_no_call(struct iris_stream *stream,
                             iris_native_call_t function, void *what,
                             int apart);

/* For queues that have always done all their work. */
iris_status_t iris_i_no_follow(struct iris_stream *stream,
                               struct iris_stream *other);

/* For queues without graphs. No graph is ever made, so none is destroyed. */
iris_status_t iris_i_no_capture_begin(struct iris_stream *stream);
iris_status_t iris_i_no_capture_end(struct iris_stream *stream, void **graph_p);
iris_status_t iris_i_no_graph_launch(struct iris_stream *stream, void *graph);
void iris_i_no_graph_destroy(struct iris_backend *backend, void *graph);

/* For queues that signal and wait by kernels. No message: the core launches
 * one. */
iris_status_t iris_i_no_signal(struct iris_stream *stream, uint64_t *place,
                               uint64_t value);
iris_status_t iris_i_no_wait(struct iris_stream *stream, uint64_t *place,
                             iris_cmp_t cmp, uint64_t value);

/* For queues that copy rows one by one. No message: the core does so. */
iris_status_t iris_i_no_copy_rows(struct iris_stream *stream,
                                  const struct iris_copy_rows *rows);

/* For heaps that are not IRIS_COMMIT_PRIVATE. */
iris_status_t iris_i_no_export_range(struct iris_backend *backend, void *at,
                                     struct iris_heap_handle *handle_p);
iris_status_t iris_i_no_import_range(struct iris_backend *backend, void *at,
                                     size_t most,
                                     const struct iris_heap_handle *handle);
iris_status_t iris_i_no_hold_external(struct iris_backend *backend,
                                      const void *ptr, size_t bytes,
                                      struct iris_external *external_p);
void iris_i_no_release_external(struct iris_backend *backend,
                                struct iris_external *external);
iris_status_t iris_i_no_map_external(struct iris_backend *backend, void *at,
                                     struct iris_external *external);
iris_status_t iris_i_no_pin(struct iris_backend *backend, size_t bytes,
                            struct iris_pinned *pinned_p);
void iris_i_no_unpin(struct iris_backend *backend, struct iris_pinned *pinned);

/* The slots for them. */
#define IRIS_NO_RANGE_SLOTS                         \
    .export_range = iris_i_no_export_range,         \
    .import_range = iris_i_no_import_range,         \
    .hold_external = iris_i_no_hold_external,       \
    .release_external = iris_i_no_release_external, \
    .map_external = iris_i_no_map_external
#define IRIS_NO_PIN_SLOTS .pin = iris_i_no_pin, .unpin = iris_i_no_unpin

/* For heaps that are IRIS_COMMIT_NOTHING: these do nothing. */
iris_status_t iris_i_all_committed(struct iris_backend *backend, void *at,
                                   size_t bytes);
void iris_i_no_decommit(struct iris_backend *backend, void *at, size_t bytes);
#define IRIS_ALL_COMMITTED_SLOTS \
    .commit = iris_i_all_committed, .decommit = iris_i_no_decommit

/* Kernels can access all memory of the process. */
iris_status_t iris_i_all_accessible(struct iris_backend *backend,
                                    const char *name, const void *ptr,
                                    size_t bytes);

/* ---- module.c ---- */

/* The core and its modules are built together. A module of another build is
 * refused: one with another version, or with other sizes of the shared structs.
 * Increase the version for changes that keep all sizes. */
#define IRIS_MODULE_VERSION "iris " PACKAGE_VERSION " module 7"
#define IRIS_MODULE_STRUCTS(X) \
    X(iris_module_core)        \
    X(iris_backend)            \
    X(iris_backend_params)     \
    X(iris_backend_type)       \
    X(iris_core_ops)           \
    X(iris_dev_watch)          \
    X(iris_device_info)        \
    X(iris_device_ops)         \
    X(iris_external)           \
    X(iris_fault)              \
    X(iris_heap_handle)        \
    X(iris_heap_region)        \
    X(iris_kernel)             \
    X(iris_launch)             \
    X(iris_log)                \
    X(iris_memory_ops)         \
    X(iris_queue_ops)          \
    X(iris_stream)             \
    X(iris_survey)             \
    X(iris_wait)               \
    X(iris_wait_type)          \
    X(iris_waiter)

/* The size of each struct. The first member is this struct's own size: the
 * others may be read only if it matches. */
struct iris_module_layout {
    size_t bytes;
#define IRIS_MODULE_MEMBER(name) size_t name;
    IRIS_MODULE_STRUCTS(IRIS_MODULE_MEMBER)
#undef IRIS_MODULE_MEMBER
};

#define IRIS_MODULE_SIZE(name) sizeof(struct name),
#define IRIS_MODULE_LAYOUT                        \
    {                                             \
        sizeof(struct iris_module_layout),        \
            IRIS_MODULE_STRUCTS(IRIS_MODULE_SIZE) \
    }

/* The functions of the core for modules. The first two never move. */
struct iris_module_core {
    const char *version;
    const struct iris_module_layout *layout;
    iris_status_t (*fail)(const struct iris_log *log, iris_status_t status,
                          const char *message);
    iris_status_t (*fail_again)(iris_status_t status, const char *message);
    const char *(*last_error)(void);
    void (*log)(const struct iris_log *log, iris_log_level_t level,
                const char *message);
    /* Visits each image of GPU code in the program. */
    void (*each_image)(iris_image_visit_t visit, void *arg);
    /* An unloaded object takes its images and kernels along, and the next
     * object may have others at the same addresses. Therefore images have
     * serial numbers, which are never used again (0: not an image), and the
     * core counts removed images. Not to be called from a visit. */
    uint64_t (*image_serial)(const void *image);
    uint64_t (*images_removed)(void);
    void (*wait_start)(struct iris_wait *wait);
    iris_status_t (*wait_turn)(struct iris_wait *wait);
    void (*wait_moment)(struct iris_wait *wait, int64_t ms);
};

/* The only exported symbol of a module. NULL: built for another core. `core`
 * lives as long as the process. */
#define IRIS_MODULE_SYMBOL "iris_backend_module"
typedef const struct iris_backend_type *(*iris_module_entry_t)(
    const struct iris_module_core *core);

/* Called by a module's entry: stores the core, whose functions (iris_i_fail(),
 * iris_i_warning(), ...) the module may call from then on. */
const struct iris_backend_type *
iris_i_module_open(const struct iris_module_core *core,
                   const struct iris_backend_type *type);

/* ---- workgroup.c ---- */

/* Gives observers the accesses that they have not got. `cpu` may have no
 * series. */
void iris_i_cpu_series_tell(struct iris_cpu_wg *cpu, struct iris_hooks *hooks);

/* Whether the ordinary access continues a series, which observers get later. It may
 * begin one otherwise. */
bool iris_i_cpu_series_take(struct iris_cpu_wg *cpu, struct iris_hooks *hooks,
                            const struct iris_cpu_event *event);

/* ---- Far steps ---- */

/* How kernels on CPU threads reach ranks of other nodes: by this rank's proxy. */

struct iris_dev_ring;
struct iris_steps;

/* Threads that run kernels call the functions, which never wait. */
struct iris_far {
    struct iris_dev_ring *ring; /* for their requests; NULL: there are no such
                                 * ranks, and no proxy */
    struct iris_steps *steps;

    /* A request of `bytes` bytes was posted in the ring. */
    void (*posted)(struct iris_steps *steps, enum iris_op op, size_t bytes);

    /* Sends posted requests and takes messages of other nodes on the calling
     * thread. Returns their number; 0, too, if another thread does so now, or
     * if only the proxy's own thread may. */
    int (*carry)(struct iris_steps *steps);

    /* The calling thread will not carry() soon. */
    void (*leave)(struct iris_steps *steps);
};

/* ---- workgroup.c ---- */

/* The reason why a workgroup stops all work. */
enum iris_cpu_stop {
    IRIS_CPU_STOP_ASKED,   /* it waits, and the core ended the wait */
    IRIS_CPU_STOP_EXPIRED, /* its wait has taken too long */
    IRIS_CPU_STOP_REFUSED, /* it made an access that is not allowed; it does
                            * not wait */
};

/* Calls of a workgroup to its backend, on its own thread. */
struct iris_cpu_job_ops {
    /* Stops all work, with `status` and this thread's message, unless it was
     * stopped before. */
    void (*stop)(void *stream, iris_status_t status, enum iris_cpu_stop why,
                 const struct iris_cpu_wg *cpu);

    /* This workgroup ends now, because work was stopped. */
    void (*ended)(void *stream, const struct iris_cpu_wg *cpu);

    /* Numbers of workgroups of the grid that have begun and that are done; 0:
     * no longer known. */
    void (*progress)(void *stream, const struct iris_cpu_wg *cpu, uint32_t grid,
                     uint32_t *begun_p, uint32_t *done_p);
};

/* One run of a kernel, for its workgroups. */
struct iris_cpu_job {
    const struct iris_cpu_job_ops *ops;
    void *stream; /* first argument of the ops */
    const struct iris_backend_params *params;
    const _Atomic int *stopped;       /* not IRIS_OK: workgroups that wait have
                                   * to end */
    struct iris_heap_region heap;     /* this rank's */
    const struct iris_kernel *kernel; /* a kernel with a cpu_entry */
    uint32_t grid;
    uint32_t block;
    const void *args;
    uint64_t call;  /* id of the host's event for the launch; 0: no event */
    uint64_t event; /* id of the host's event for this run */
    bool own;       /* all its waits are the library's */
    /* The time at which its waits end with IRIS_ERR_TIMEOUT. It is set if the
     * thread that waits for the stream also runs it, and so cannot watch the
     * deadline; 0: never. */
    int64_t deadline_ns;
};

/* Calls observers around a run, from any thread. The caller keeps *event in
 * between. `status` is the run's result. */
void iris_i_cpu_job_begin(struct iris_cpu_job *job,
                          struct iris_host_event *event);
void iris_i_cpu_job_end(const struct iris_cpu_job *job,
                        struct iris_host_event *event, iris_status_t status);

/* IRIS_ERR_TIMEOUT of a wait for a stream, with its message. */
iris_status_t iris_i_cpu_late(const struct iris_backend_params *params);

/* Runs one workgroup on the calling thread, until it returns or is ended. The
 * stack frames of an ended kernel are dropped without cleanup. */
void iris_i_cpu_job_run(const struct iris_cpu_job *job, uint32_t id);

/* The calling thread's workgroup and its rank's parameters; NULL: it runs none.
 * Allowed in signal handlers. */
const struct iris_cpu_wg *
iris_i_cpu_running(const struct iris_backend_params **params_p);

#endif /* IRIS_SRC_BACKEND_BACKEND_H */
