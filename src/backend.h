/* SPDX-License-Identifier: MIT
 *
 * The backend interface: what a kind of device must offer. The core's wrappers
 * are its only callers, and a contract test walks every backend.
 */
#ifndef IRIS_SRC_BACKEND_H
#define IRIS_SRC_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <iris/stream.h>
#include <iris/types.h>
#include <iris/device/cpu.h>

#define IRIS_HANDLE_BYTES 128

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
    void *cookie;
};

struct iris_device_info {
    char name[64];
    int device_id;
    int num_cus;       /* workgroups of a kernel that run at once */
    int wavefront;     /* lanes that run in lockstep; 1 on the CPU */
    size_t page_bytes; /* granularity of heap_back */
};

/* What a backend needs from the core. */
struct iris_backend_params {
    int rank;
    int num_ranks;
    int local_rank; /* picks the device */
    int64_t sim_cus;
    const char *sim_device;
    /* Asked now and then by anything that waits for device work: IRIS_OK to go
     * on, else why to stop, with this thread's message set. Thread-safe. */
    iris_status_t (*keep_waiting)(void *core);
    /* Who watches CPU kernels; read at each launch. NULL function: nobody. */
    const struct iris_cpu_observer *observer;
    void *core;
    int64_t timeout_ms; /* 0: none */
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
};

/* A stream; instances embed it first. `next` is the core's. */
struct iris_stream {
    struct iris_backend *backend;
    struct iris_stream *next;
};

/* Every slot returns a status and sets the thread's message when it fails, or
 * is a destructor and returns nothing. Outputs are written only on success.
 * "Thread-safe" means from any thread, on one instance. */
struct iris_backend_ops {
    const char *name;
    int priority;   /* highest that can run is the default: hip 50, sim 10 */
    int simulation; /* several ranks where the real thing has one */

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
     * so that touching it cannot fault. NULL: heap_alloc has done so. */
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
     * clears the stream's first error. Asks keep_waiting; when that or the
     * deadline says stop, ends the waiting kernels. Thread-safe. */
    iris_status_t (*stream_synchronize)(struct iris_stream *stream);

    /* Enqueue; never wait for device work. bytes > 0. Thread-safe. */
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

/* The backends of this build, best first, ended by NULL. */
const struct iris_backend_ops *const *iris_i_backends(void);

/* The backend called `name`, or for "" the first whose probe says yes.
 * IRIS_ERR_BACKEND says what is known or why it cannot run. */
iris_status_t iris_i_backend_select(const char *name,
                                    const struct iris_backend_ops **ops_p);

#endif /* IRIS_SRC_BACKEND_H */
