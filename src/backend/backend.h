/* SPDX-License-Identifier: MIT
 *
 * The backend interface: what a kind of device must offer. The core's wrappers
 * are its only callers, and a contract test walks every backend.
 */
#ifndef IRIS_SRC_BACKEND_BACKEND_H
#define IRIS_SRC_BACKEND_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <iris/stream.h>
#include <iris/types.h>
#include <iris/device/cpu.h>

#include "base/settings.h"

#define IRIS_HANDLE_BYTES 128

/* "==" and the like, for messages. */
static inline const char *iris_i_cmp_name(int cmp)
{
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};

    return cmp >= IRIS_CMP_EQ && cmp <= IRIS_CMP_GE ? names[cmp] : "?";
}

/* How one rank's heap is named to another: bytes, and for some backends a file
 * descriptor that the core moves between processes. */
struct iris_heap_handle {
    int fd; /* -1: none; owned by whoever holds the handle */
    uint32_t num_bytes;
    unsigned char bytes[IRIS_HANDLE_BYTES];
};

/* A heap this rank has allocated. `cookie` is the backend's. */
struct iris_heap_region {
    void *base;
    size_t bytes;
    size_t window;       /* where in every mapping of the heap the addresses
                          * begin at which iris_as_symmetric() has memory */
    size_t window_bytes; /* 0: there are none */
    void *cookie;
};

struct iris_device_info {
    char name[64];
    int device_id;
    int num_cus;       /* workgroups of a kernel that run at once */
    int wavefront;     /* lanes that run in lockstep; 1 on the CPU */
    int num_xccs;      /* dies with an L2 of their own; 0: not told */
    int64_t clock_khz; /* of the clock kernels read; 0: none */
    uint64_t watch;    /* struct iris_dev_watch as kernels map it; 0: none */
    size_t page_bytes; /* memory comes in multiples of this */
};

/* What a backend needs from the core. */
struct iris_backend_params {
    int rank;
    int num_ranks;
    int local_rank; /* picks the device */
    int64_t sim_cus;
    const char *sim_device;
    const char *allocator;
    size_t heap_bytes; /* of each rank */
    /* The backend that can simulate on a GPU; NULL: none can run here, and
     * gpu_reason says why. */
    const struct iris_backend_ops *gpu;
    const char *gpu_reason;
    int share_device; /* all ranks are on one GPU: simulation */
    /* Asked now and then by anything that waits for device work: IRIS_OK to go
     * on, else why to stop, with this thread's message set. Thread-safe. */
    iris_status_t (*keep_waiting)(void *core);
    /* Who has not come, of a word on this rank's heap that a barrier waited
     * for: "rank 2 has not come to ..."; of another word nothing. May be NULL.
     * Thread-safe. */
    void (*tell_late)(void *core, const void *word, char *text, size_t bytes);
    /* Who watches CPU kernels; read at each launch. NULL function: nobody. */
    const struct iris_cpu_observer *observer;
    void *core;
    int64_t timeout_ms;        /* 0: none */
    int64_t device_timeout_ms; /* of a wait inside a kernel; 0: none */
};

struct iris_cpu_observer {
    iris_cpu_observe_t observe;
    void *self;
};

/* One launch, as iris_launch() checked it. */
struct iris_launch {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
    const void *args; /* copied before the slot returns */
};

/* An opened backend; instances embed it first. */
struct iris_backend {
    const struct iris_backend_ops *ops;
    const struct iris_growth_ops *growth; /* NULL: a heap has all its memory */
};

/* A stream; instances embed it first. `next` is the core's until it destroys
 * the stream. */
struct iris_stream {
    struct iris_backend *backend;
    struct iris_stream *next;
};

/* Memory of the program that could be made part of the heap. */
struct iris_foreign {
    size_t bytes;  /* of the whole allocation, which is what can be mapped */
    size_t offset; /* in it, of what was asked for */
    void *cookie;  /* the backend's hold on it */
};

/* Heaps that are addresses first and get memory when it is needed; peers map
 * what comes later one by one. `at` is an address in this rank's heap or its
 * window, or, for map and unmap, in a peer's; addresses and sizes are multiples
 * of page_bytes but for the program's own. All slots are there. */
struct iris_growth_ops {
    /* Puts zeroed memory at `at`, where there is none, for all devices of this
     * process that can reach this rank's. IRIS_ERR_NO_MEMORY */
    iris_status_t (*back)(struct iris_backend *backend, void *at, size_t bytes);

    /* Takes hold of the memory at `ptr`, of which `bytes` are meant, until
     * drop. IRIS_ERR_UNSUPPORTED: it cannot be mapped a second time and in
     * other processes; the message says why. */
    iris_status_t (*find)(struct iris_backend *backend, const void *ptr,
                          size_t bytes, struct iris_foreign *foreign_p);
    void (*drop)(struct iris_backend *backend, struct iris_foreign *foreign);

    /* As back, with the memory that was found; it stays until unmap, whatever
     * the program does with its own mapping of it. */
    iris_status_t (*adopt)(struct iris_backend *backend, void *at,
                           struct iris_foreign *foreign);

    /* Names the memory that back or adopt has put there, as heap_export does;
     * heap_export itself names the memory at the heap's start as well, if there
     * is some, and heap_import maps it. */
    iris_status_t (*share)(struct iris_backend *backend, void *at,
                           struct iris_heap_handle *handle_p);

    /* Maps a peer's memory, of `most` bytes or fewer, from its handle, which
     * stays the caller's. Only in another process than the peer's. */
    iris_status_t (*map)(struct iris_backend *backend, void *at, size_t most,
                         const struct iris_heap_handle *handle);

    /* Undoes one back, adopt or map; nothing at `at`: does nothing. No device
     * work uses it any more. heap_free and heap_unimport undo what is left. */
    void (*unmap)(struct iris_backend *backend, void *at);
};

/* What a device with a runtime of its own can do beyond the rest. All slots are
 * there. */
struct iris_native_ops {
    /* A stream around one that the program made with that runtime and destroys
     * itself, after stream_destroy. */
    iris_status_t (*stream_wrap)(struct iris_backend *backend, void *native,
                                 struct iris_stream **stream_p);

    /* The runtime's stream behind this one; NULL is its default. */
    void *(*stream_native)(struct iris_stream *stream);

    /* Enqueues the store of a signal, on any rank's heap, that releases all
     * earlier work of the stream at system scope; and a wait for this rank's
     * own signal that acquires. `place` is translated. IRIS_ERR_UNSUPPORTED
     * (in a capture, or that comparison): the core launches a kernel. */
    iris_status_t (*signal)(struct iris_stream *stream, uint64_t *place,
                            uint64_t value);
    iris_status_t (*wait)(struct iris_stream *stream, uint64_t *place,
                          iris_cmp_t cmp, uint64_t value);

    /* Work enqueued between capture_begin and capture_end is not run but kept;
     * graph_launch enqueues all of it. The graph is the core's to free, when no
     * launch of it runs. */
    iris_status_t (*capture_begin)(struct iris_stream *stream);
    iris_status_t (*capture_end)(struct iris_stream *stream, void **graph_p);
    iris_status_t (*graph_launch)(struct iris_stream *stream, void *graph);
    void (*graph_free)(struct iris_backend *backend, void *graph);
};

/* Every slot returns a status and sets the thread's message when it fails, or
 * is a destructor and returns nothing. Outputs are written only on success.
 * "Thread-safe" means from any thread, on one instance. */
struct iris_backend_ops {
    const char *name;
    int simulation; /* several ranks where the real thing has one */
    const struct iris_native_ops *native; /* NULL: none of that */

    /* Can this backend run here? IRIS_OK, or IRIS_ERR_BACKEND with why, or
     * IRIS_ERR_LIMIT or IRIS_ERR_NO_MEMORY: it might, with more of what the
     * message names. Leaves nothing open. Thread-safe. */
    iris_status_t (*probe)(void);

    /* Opens an instance for one rank; *params is copied, what it points to
     * outlives the instance. The core closes it. */
    iris_status_t (*open)(const struct iris_backend_params *params,
                          struct iris_backend **backend_p);

    /* All streams and heaps are gone by now. */
    void (*close)(struct iris_backend *backend);

    /* Allocates this rank's heap: `bytes` of device memory that peers can map,
     * zeroed, address space only where the system allows it. The core frees
     * it. */
    iris_status_t (*heap_alloc)(struct iris_backend *backend, size_t bytes,
                                struct iris_heap_region *region_p);

    /* No peer uses the heap any more. */
    void (*heap_free)(struct iris_backend *backend,
                      struct iris_heap_region *region);

    /* Optional. Makes sure that [offset, offset + bytes) has memory behind it,
     * so that touching it cannot fault, here and where it is mapped. NULL:
     * heap_alloc has done so, or there is iris_backend.growth. */
    iris_status_t (*heap_back)(struct iris_backend *backend,
                               const struct iris_heap_region *region,
                               size_t offset, size_t bytes);

    /* Names the heap for other ranks. The descriptor in *handle_p, if any, is
     * the caller's to close. */
    iris_status_t (*heap_export)(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p);

    /* Maps a peer's heap from its handle, which stays the caller's. Works in
     * another process and in another rank thread of the same process. */
    iris_status_t (*heap_import)(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p);

    /* Undoes heap_import; this rank's kernels no longer use it. */
    void (*heap_unimport)(struct iris_backend *backend, void *base,
                          size_t bytes);

    /* Makes a stream; it is the core's to destroy. */
    iris_status_t (*stream_create)(struct iris_backend *backend,
                                   struct iris_stream **stream_p);

    /* Ends what still waits on the stream, then frees it. */
    void (*stream_destroy)(struct iris_stream *stream);

    /* Blocks until all that was enqueued before the call is done. Returns and
     * clears the stream's error, of several the first or the last. Asks
     * keep_waiting; when that or the deadline says stop, ends the waiting
     * kernels. Thread-safe. */
    iris_status_t (*stream_synchronize)(struct iris_stream *stream);

    /* Enqueue; never wait for device work, but for `copy` between the device
     * and pageable host memory of more than a few megabytes. bytes > 0.
     * Thread-safe. */
    iris_status_t (*copy)(struct iris_stream *stream, void *dst,
                          const void *src, size_t bytes);
    iris_status_t (*set)(struct iris_stream *stream, void *dst, int value,
                         size_t bytes);
    iris_status_t (*launch)(struct iris_stream *stream,
                            const struct iris_launch *launch);

    /* Fills *info_p. Thread-safe. */
    void (*device_info)(const struct iris_backend *backend,
                        struct iris_device_info *info_p);
};

/* Name of the `i`th backend of this build, best first; NULL after the last.
 * *ops_p is NULL if it is a module that cannot be loaded here, and this
 * thread's message says why. */
const char *iris_i_backend_at(size_t i, const struct iris_settings *settings,
                              const struct iris_backend_ops **ops_p);

/* The backend that the settings name, or else the first whose probe says yes.
 * IRIS_ERR_BACKEND says what is known or why it cannot run. */
iris_status_t iris_i_backend_select(const struct iris_settings *settings,
                                    const struct iris_backend_ops **ops_p);

/* Loads now what ranks that are threads would load at once: a module may set
 * environment variables for its device's runtime, which other threads must not
 * be reading then. */
void iris_i_backend_preload(const struct iris_settings *settings);

/* Fills in what of *params_p the settings say; strings are theirs. `reason`
 * gets why there is no GPU and outlives the instance's opening. */
void iris_i_backend_params(const struct iris_settings *settings,
                           struct iris_backend_params *params_p, char *reason,
                           size_t reason_bytes);

#endif /* IRIS_SRC_BACKEND_BACKEND_H */
