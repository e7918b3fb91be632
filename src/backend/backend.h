/* SPDX-License-Identifier: MIT
 *
 * The backend interface: what a kind of device must offer, in three tables on
 * an instance. docs/backends.md is the manual; calls.h has the only callers.
 */
#ifndef IRIS_SRC_BACKEND_BACKEND_H
#define IRIS_SRC_BACKEND_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>
#include <iris/types.h>

#include "base/error.h"
#include "base/host_wait.h"

#define IRIS_HANDLE_BYTES 128

/* The core commits memory in multiples of this, or of page_bytes if that is
 * more. */
#define IRIS_COMMIT_BYTES ((size_t)65536)

struct iris_kernel;
struct iris_backend;
struct iris_graph;
struct iris_stream;

/* How one rank's memory is named to another: bytes, and for some backends a
 * file descriptor that the control plane moves between processes. */
struct iris_heap_handle {
    int fd; /* -1: none; owned by whoever holds the handle */
    uint32_t num_bytes;
    unsigned char bytes[IRIS_HANDLE_BYTES];
};

/* What commit() of a heap does, and who sees it. */
enum iris_commit {
    IRIS_COMMIT_NOTHING, /* alloc has committed all there will ever be */
    IRIS_COMMIT_SHARED,  /* peers see it through the mapping they have */
    IRIS_COMMIT_PRIVATE, /* peers map each committed range by its own handle */
};

/* A heap this rank has allocated. `cookie` is the backend's. */
struct iris_heap_region {
    void *base;
    size_t bytes;
    size_t window;       /* where in every mapping of the heap the addresses
                          * begin that are for external memory */
    size_t window_bytes; /* 0: there are none */
    enum iris_commit commit;
    int guarded;        /* nothing else begins where the heap ends */
    size_t ahead_bytes; /* that nothing else has, ahead of every mapping */
    void *cookie;
};

/* Whose memory heaps are, to other libraries: the host's, or that of a GPU of
 * one vendor's runtime. */
enum iris_memory_kind {
    IRIS_MEMORY_HOST,
    IRIS_MEMORY_CUDA,
    IRIS_MEMORY_ROCM,
};

/* What an open instance is. */
struct iris_device_info {
    char name[64];
    int device_id;
    int num_cus;       /* workgroups of a kernel that run at once */
    int wavefront;     /* lanes that run in lockstep; 1 on the CPU */
    int num_xccs;      /* dies with an L2 of their own; 0: not known */
    int64_t clock_khz; /* of the clock kernels read; 0: none */
    uint64_t watch;    /* struct iris_dev_watch as kernels map it; 0: none */
    size_t page_bytes; /* memory comes in multiples of this */
    int has_graphs;    /* 0: capture_begin is unsupported */
    enum iris_memory_kind memory;
};

/* What this machine has of a backend's devices, without opening one: for
 * iris-info. */
#define IRIS_SURVEY_DEVICES 16
struct iris_survey {
    char runtime[96]; /* "HIP 5.2.3, driver 5.2.3"; versions as they are told */
    int num_devices;  /* all there are; the arrays have the first 16 */
    struct {
        char name[64];
        char pci[16]; /* "0000:c1:00.0"; empty: none */
        size_t memory_bytes;
        uint32_t access;  /* bit i: can map memory of device i */
        uint32_t atomics; /* bit i: and its atomics work there */
    } devices[IRIS_SURVEY_DEVICES];
};

/* Memory of the program that could be mapped into the heap's window. */
struct iris_external {
    size_t bytes;  /* of the whole allocation, which is what can be mapped */
    size_t offset; /* in it, of what was asked for */
    void *cookie;  /* the backend's hold on it; of an allocation that is mapped
                    * still the same as before, of any other another */
};

/* One launch, as iris_launch() checked it. */
struct iris_launch {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
    const void *args; /* copied before the slot returns */
    bool own;         /* the library's: all its waits are the library's */
    uint64_t call;    /* id of the host's event of the call; 0: none */
};

/* A copy of rows; no pitch is less than row_bytes, which is not 0. */
struct iris_copy_rows {
    void *dst;
    const void *src;
    size_t dst_pitch;
    size_t src_pitch;
    size_t row_bytes;
    size_t rows; /* 2 or more */
};

/* Where an address is. */
struct iris_location {
    int rank; /* on whose heap */
    size_t offset;
    size_t start; /* the nearest allocation there, of `bytes`; 0: none known */
    size_t bytes;
};

/* A wait inside a kernel that has taken a while, as the flight record keeps it.
 * Zeroed at first, but for `slot`. */
struct iris_wait_note {
    int slot;  /* the core's; -1 at first */
    int ended; /* 1: the kernel ends because of a deadline or a peer */
    const struct iris_stream *stream;
    const char *kernel; /* NULL: not known, nor are stream, grid and own */
    uint32_t workgroup;
    uint32_t grid;
    uint32_t begun; /* workgroups of the grid; 0: not known */
    uint32_t done;
    int own;             /* the kernel is the library's */
    int op;              /* enum iris_op; 0: repeats atomic operations */
    const void *address; /* as this rank has it, of the word; NULL: not known */
    uint32_t bytes;      /* of the word */
    int is_unsigned;     /* value and seen are */
    iris_cmp_t cmp;
    int64_t value;
    int64_t seen;
    int is_known; /* the core's, as are the next three; 0: a new wait */
    int64_t first_seen;
    int64_t last_seen;
    int64_t change_ns;
    int64_t begin_ns;
    int64_t now_ns;
};

/* What a backend asks of the core; `core` comes back as first argument. All are
 * thread-safe, and never NULL. */
struct iris_core_ops {
    /* Why a wait for a word on this rank's heap is not over, or, with NULL, one
     * for another node: "rank 2 has not come to it"; empty: it is not known. */
    void (*describe_late)(void *core, const void *word, char *text,
                          size_t bytes);

    /* Keeps what a workgroup waits for where other processes can read it;
     * called again while it does. */
    void (*note_wait)(void *core, struct iris_wait_note *note);

    /* The wait of that note is over. */
    void (*wait_over)(void *core, struct iris_wait_note *note);

    /* Fills *place_p, or returns 0: it is on no rank's heap. Called from the
     * handler of a signal, of a thread that runs a kernel. */
    int (*locate)(void *core, const void *address,
                  struct iris_location *place_p);
};

/* What the core tells an instance when it opens one. */
struct iris_backend_params {
    int rank;
    int num_ranks;
    int device;          /* which of survey()'s; the core's placement chose */
    int ranks_on_device; /* rank threads and processes that share it, 1: none */
    int num_cus;         /* workgroups at once, of a device that has no number
                          * of its own (the CPU) */
    int vmem;            /* heaps that grow and take external memory */
    int vmem_if_needed;  /* if not, and heaps could not be shared otherwise */
    const char *memory;  /* of heaps, where a device has several: "auto", "fine"
                          * (grained) or "uncached"; lives as long as `core` */
    size_t heap_bytes;   /* of each rank */
    const struct iris_waiter *waiter; /* who waits for device work; lives as
                                       * long as `core` */
    int64_t device_timeout_ms;        /* of a wait inside a kernel; 0: none */
    const struct iris_log *log;       /* who speaks in messages */
    const struct iris_core_ops *core_ops;
    void *core;
    /* The library's own, with struct iris_wait_args; NULL: it has no use. */
    const struct iris_kernel *wait;
    /* Who watches CPU kernels, asked at each launch; NULL: nobody. */
    struct iris_hooks *hooks;
    /* Where CPU kernels leave requests to ranks of other nodes; NULL there or
     * here: there are no such ranks. */
    struct iris_dev_ring *const *ring;
};

/* ---- What the registry knows ----------------------------------------------
 */

/* A kind of backend: static, const, thread-safe. */
struct iris_backend_type {
    const char *name; /* what users type */
    int is_gpu;    /* its devices can stand in for several, shared by ranks */
    int simulates; /* stands for a GPU: placement may put its ranks on one */

    /* Can this backend run here? IRIS_OK, or IRIS_ERR_BACKEND with why, or
     * IRIS_ERR_LIMIT or IRIS_ERR_NO_MEMORY: it might, with more of what the
     * message names. *num_devices_p: how many devices it can use here, at
     * least 1. Leaves nothing open. */
    iris_status_t (*probe)(int *num_devices_p);

    /* What these devices are; for people, and takes its time. Leaves nothing
     * open. IRIS_ERR_BACKEND: there are none. */
    iris_status_t (*survey)(struct iris_survey *survey_p);

    /* Opens an instance for one rank; *params is copied, what it points to
     * outlives the instance. The core closes it. */
    iris_status_t (*open)(const struct iris_backend_params *params,
                          struct iris_backend **backend_p);
};

/* ---- The three tables ------------------------------------------------------
 *
 * Every slot is filled: a backend that lacks something names the stub of
 * stubs.h, which returns IRIS_ERR_UNSUPPORTED and says so. A slot returns a
 * status and sets this thread's message when it fails, or is a destructor and
 * returns nothing. Outputs are written only on success. "Thread-safe" means
 * from any thread, on one instance.
 */

/* The device itself, and the making of what works on it. */
struct iris_device_ops {
    /* Fills *info_p. Thread-safe. */
    void (*info)(const struct iris_backend *backend,
                 struct iris_device_info *info_p);

    /* Makes a stream; it is the core's to destroy. */
    iris_status_t (*stream_create)(struct iris_backend *backend,
                                   struct iris_stream **stream_p);

    /* A stream around one that the program made with the device's own runtime
     * and destroys itself, after stream_destroy. */
    iris_status_t (*stream_wrap)(struct iris_backend *backend, void *native,
                                 struct iris_stream **stream_p);

    /* Ends what still waits on the stream, then frees it. */
    void (*stream_destroy)(struct iris_stream *stream);

    /* No launch of the graph runs any more. */
    void (*graph_destroy)(struct iris_backend *backend, void *graph);

    /* Forgets the instance's fault (see struct iris_fault): waits until what
     * was enqueued before has been skipped or ended, then lets work run again.
     * IRIS_ERR_STATE: a kernel cannot be ended, or the device's runtime does
     * not work any more; the fault stays. */
    iris_status_t (*clear_fault)(struct iris_backend *backend);

    /* All streams and heaps are gone by now. */
    void (*close)(struct iris_backend *backend);
};

/* Heaps, and how they get memory. `at` is an address in this rank's heap or its
 * window or, for import_range and decommit, in a peer's; addresses and sizes
 * are multiples of page_bytes but for external memory. From the thread that
 * makes collective calls. */
struct iris_memory_ops {
    /* Allocates this rank's heap: `bytes` of device memory that peers can map,
     * zeroed. region_p->commit says whether it is memory or only addresses. The
     * core frees it. */
    iris_status_t (*alloc)(struct iris_backend *backend, size_t bytes,
                           struct iris_heap_region *region_p);

    /* No peer uses the heap any more. */
    void (*free)(struct iris_backend *backend, struct iris_heap_region *region);

    /* Names the heap for other ranks, and with IRIS_COMMIT_PRIVATE the memory
     * at its start, if there is some. The descriptor in *handle_p, if any, is
     * the caller's to close. */
    iris_status_t (*export_heap)(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p);

    /* Maps a peer's heap from its handle, which stays the caller's. Works in
     * another process and in another rank thread of the same process.
     * IRIS_ERR_UNREACHABLE: this device has no access to that one's memory. */
    iris_status_t (*import_heap)(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p);

    /* Undoes import_heap; this rank's kernels no longer use it. */
    void (*unimport_heap)(struct iris_backend *backend, void *base,
                          size_t bytes);

    /* Puts zeroed memory at `at`, where there is none, so that touching it
     * cannot fault, here and for all devices of this process that can reach
     * this rank's. IRIS_ERR_NO_MEMORY */
    iris_status_t (*commit)(struct iris_backend *backend, void *at,
                            size_t bytes);

    /* Undoes one commit, import_range or map_external; nothing at `at`: does
     * nothing. No device work uses it any more. free and unimport_heap undo
     * what is left. */
    void (*decommit)(struct iris_backend *backend, void *at, size_t bytes);

    /* Names what commit or map_external has put at `at`, as export_heap does.
     */
    iris_status_t (*export_range)(struct iris_backend *backend, void *at,
                                  struct iris_heap_handle *handle_p);

    /* Maps a peer's range, of `most` bytes or fewer, from its handle, which
     * stays the caller's. Only in another process than the peer's. */
    iris_status_t (*import_range)(struct iris_backend *backend, void *at,
                                  size_t most,
                                  const struct iris_heap_handle *handle);

    /* Takes hold of the program's memory at `ptr`, of which `bytes` are meant,
     * until release_external. IRIS_ERR_UNSUPPORTED: it cannot be mapped a
     * second time and in other processes; the message says why. */
    iris_status_t (*hold_external)(struct iris_backend *backend,
                                   const void *ptr, size_t bytes,
                                   struct iris_external *external_p);
    void (*release_external)(struct iris_backend *backend,
                             struct iris_external *external);

    /* As commit, with the memory that is held; it stays until decommit,
     * whatever the program does with its own mapping of it. */
    iris_status_t (*map_external)(struct iris_backend *backend, void *at,
                                  struct iris_external *external);
};

/* A function that gives the runtime's stream work. */
typedef iris_status_t (*iris_native_call_t)(void *native, void *what);

/* Work in stream order. Enqueueing never waits for device work, but where the
 * queue is full and, for `copy`, between the device and pageable host memory of
 * more than a few megabytes: params.waiter
 * says when to stop. bytes > 0. Thread-safe. */
struct iris_queue_ops {
    /* Blocks until all that was enqueued before the call is done. Returns the
     * instance's fault if there is one. When params.waiter ends the wait,
     * that becomes the fault and ends waiting kernels. */
    iris_status_t (*synchronize)(struct iris_stream *stream);

    /* Whether all that was enqueued before a point is done; never waits. The
     * first call, with *target_p 0, makes that point, and later ones pass on
     * what it left there. 0 is always right: not as far as is known. */
    int (*query)(struct iris_stream *stream, uint64_t *target_p);

    iris_status_t (*copy)(struct iris_stream *stream, void *dst,
                          const void *src, size_t bytes);
    iris_status_t (*set)(struct iris_stream *stream, void *dst, int value,
                         size_t bytes);

    /* Copies rows, each `pitch` bytes behind the last, on either side.
     * IRIS_ERR_UNSUPPORTED (always, or such memory or pitches): the core copies
     * them one by one. */
    iris_status_t (*copy_rows)(struct iris_stream *stream,
                               const struct iris_copy_rows *rows);
    iris_status_t (*launch)(struct iris_stream *stream,
                            const struct iris_launch *launch);

    /* Enqueues the store of a signal, on any rank's heap, that releases all
     * earlier work of the stream at system scope; and a wait for this rank's
     * own signal that acquires. `place` is translated. IRIS_ERR_UNSUPPORTED
     * (always, in a capture, or that comparison): the core launches a
     * kernel. */
    iris_status_t (*signal)(struct iris_stream *stream, uint64_t *place,
                            uint64_t value);
    iris_status_t (*wait)(struct iris_stream *stream, uint64_t *place,
                          iris_cmp_t cmp, uint64_t value);

    /* What the stream does next waits for all that `other`, of the same
     * instance, was given before. If `other` is
     * captured, the stream's work comes into that capture, too; whose stream has
     * to follow it before the capture ends. */
    iris_status_t (*follow)(struct iris_stream *stream,
                            struct iris_stream *other);

    /* Work enqueued between capture_begin and capture_end is not run but kept;
     * graph_launch enqueues all of it. The graph is the core's to destroy. */
    iris_status_t (*capture_begin)(struct iris_stream *stream);
    iris_status_t (*capture_end)(struct iris_stream *stream, void **graph_p);
    iris_status_t (*graph_launch)(struct iris_stream *stream, void *graph);

    /* The runtime's stream behind this one; NULL: there is none, or it is the
     * runtime's default stream. */
    void *(*native)(struct iris_stream *stream);

    /* Runs `function` in this thread, for a library that enqueues work on the
     * runtime's stream itself: the device is current, captures of the program's
     * forbid nothing, and the work counts as the stream's. Returns what
     * `function` returns. */
    iris_status_t (*call)(struct iris_stream *stream,
                          iris_native_call_t function, void *what);
};

/* Declares a function for a slot of one of the tables:
 * IRIS_SLOT(iris_i_hip_copy, queue, copy) has the type of `copy` in struct
 * iris_queue_ops. */
#define IRIS_SLOT(function, table, slot) \
    __typeof__(*((const struct iris_##table##_ops *)0)->slot) function

/* ---- Instances -------------------------------------------------------------
 */

/* What ended work of this instance: the first of it, and from then on the
 * answer of every call that needs the device, until clear_fault or close.
 *
 *   IRIS_OK       work runs
 *   another       work is skipped, kernels that wait end, calls return this
 */
struct iris_fault {
    _Atomic int status;
    pthread_mutex_t lock; /* guards the message, and setting status */
    char message[IRIS_MESSAGE_BYTES];
};

/* An opened backend; instances embed it first. */
struct iris_backend {
    const struct iris_backend_type *type;
    const struct iris_device_ops *device;
    const struct iris_memory_ops *memory;
    const struct iris_queue_ops *queue;
    struct iris_fault fault;
};

/* A stream; instances embed it first. `next` and `fence` are the core's until
 * it destroys the stream, and 0 at the start. */
struct iris_stream {
    struct iris_backend *backend;
    struct iris_stream *next;
    uint64_t fence; /* what query is asked about */
    /* The core's own, 0 at first: its number among the rank's streams, how
     * often the host has waited for it, and what it captures. */
    uint64_t number;
    atomic_ullong waits;
    struct iris_graph *_Atomic capturing;
};

/* Fills in a new instance; type and tables are set. */
void iris_i_backend_made(struct iris_backend *backend);

/* Makes `status`, with `message`, the instance's fault unless it has one;
 * returns the fault's status. Thread-safe. */
iris_status_t iris_i_fault_set(struct iris_backend *backend,
                               iris_status_t status, const char *message);

/* IRIS_OK, or the fault, its message now this thread's: the same every time.
 * Thread-safe, and one load where there is none. */
iris_status_t iris_i_fault_check(const struct iris_backend *backend);

/* For clear_fault, once nothing of the old work runs. */
void iris_i_fault_clear(struct iris_backend *backend);

/* "==" and the like, for messages. */
static inline const char *iris_i_cmp_name(iris_cmp_t cmp)
{
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};

    return cmp >= IRIS_CMP_EQ && cmp <= IRIS_CMP_GE ? names[cmp] : "?";
}

#endif /* IRIS_SRC_BACKEND_BACKEND_H */
