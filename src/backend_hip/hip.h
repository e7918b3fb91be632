/* SPDX-License-Identifier: MIT
 *
 * The GPU backend, with the HIP runtime: the types that its files share. On
 * NVIDIA GPUs, hip_nvidia.h replaces HIP's header.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_H
#define IRIS_SRC_BACKEND_HIP_HIP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if IRIS_HIP_NVIDIA
#include "backend_hip/hip_nvidia.h"
#else
#include <hip/hip_runtime_api.h>
#endif

#include <iris/device/layout.h>

#include "backend/backend.h"

/* In HIP since 5.7 and 7. */
#ifndef hipDeviceMallocUncached
#define hipDeviceMallocUncached 0x3
#endif
#if IRIS_HIP_NVIDIA || !HAVE_DECL_HIPMEMALLOCATIONTYPEUNCACHED
#define hipMemAllocationTypeUncached ((hipMemAllocationType)0x40000000)
#endif

#define HIP_MAX_DEVICES 256 /* more GPUs than a node has */
#define HIP_PCI_BYTES 16    /* "0000:c1:00.0" */

/* ---- Streams ----
 *
 * A stream has two numbers: `submitted` calls, of which `completed` are done.
 * Both only grow. A stream is idle if they are equal, and full if they are far
 * apart. Memory that call n uses is free once n calls are completed. A ring of
 * events backs them; each event has the number of calls that are completed when
 * it has occurred. Captured calls are not counted. In a stream that the program
 * uses, too, a wait of the host counts as a call that represents the program's
 * own earlier work.
 *
 * Locks, in this order:
 * - a stream's lock, held during the call that enqueues. A full queue of the
 *   driver may block that call, so a thread that waits for the stream only
 *   tries the lock;
 * - the lock of the list of streams, held during copies of single words and
 *   calls that never block;
 * - the watch's lock. */
#define HIP_EVENTS 16
#define HIP_STREAM_WAITS 64

struct hip_event {
    hipEvent_t event; /* NULL: not needed so far */
    uint64_t number;
};

/* A wait that a stream does without a kernel, recorded so that it can be
 * ended. */
struct hip_wait {
    uint64_t number;
    uint64_t *place;
    iris_cmp_t cmp; /* IRIS_CMP_EQ or IRIS_CMP_GE */
    uint64_t value;
};

struct hip_stream {
    struct iris_stream base;
    struct hip_backend *hip;
    hipStream_t native;
    bool owned;
    atomic_bool shared; /* the program uses `native`, too, and may enqueue */

    _Atomic uint64_t submitted;
    _Atomic uint64_t completed;
    _Atomic uint64_t wanted; /* the highest number that some thread waits for */

    pthread_mutex_t lock; /* guards these: */
    bool capturing;       /* state at the current enqueue */
    struct hip_event events[HIP_EVENTS];
    uint64_t num_recorded; /* number of recorded events */
    uint64_t num_passed;   /* number of events that have occurred */
    uint64_t recorded;     /* number of completed calls at the last event */
    hipEvent_t followed;   /* for streams that follow this one; NULL: not
                            * needed yet */

    /* Guarded by the lock of the list of streams. */
    struct hip_stream *next;
    uint64_t clear_at;
    struct hip_wait waits[HIP_STREAM_WAITS]; /* a ring */
    uint64_t first_wait;
    uint64_t end_wait;
};

/* Pinned blocks through which pageable host memory is copied asynchronously.
 * Each records the work that used it last. */
#define HIP_STAGE_BLOCKS 64
#define HIP_STAGE_BLOCK_BYTES ((size_t)65536)

struct hip_block {
    const struct hip_stream *user; /* NULL: none */
    uint64_t number;
};

/* An instance's pinned memory. The GPU maps all of it. */
struct hip_pinned {
    struct iris_dev_watch watch;
    uint64_t unread; /* written by streams */
    uint64_t copied; /* the same */
    _Atomic uint64_t released;
    _Alignas(4096) char blocks[HIP_STAGE_BLOCKS][HIP_STAGE_BLOCK_BYTES];
};

/* ---- Memory ---- */

/* Memory that the runtime has allocated and gets back. */
struct hip_memory {
    enum hip_memory_kind {
        HIP_DEVICE,
        HIP_PINNED,    /* of the host */
        HIP_RANGE,     /* memory at an address, and its reference */
        HIP_ADDRESSES, /* addresses without memory */
    } kind;
    void *ptr;                              /* NULL: no memory */
    size_t bytes;                           /* unused for HIP_DEVICE */
    hipMemGenericAllocationHandle_t handle; /* HIP_RANGE */
};

/* Memory at an address of a heap, made by the runtime's virtual memory
 * calls. */
struct hip_range {
    struct hip_range *next;
    struct hip_memory memory;
};

struct hip_vmem {
    size_t granularity; /* of mappings; 0: the pool allocator is used */
    bool uncached;      /* the type of this rank's memory */
    struct hip_range *ranges;
    int num_devices; /* that use this rank's memory; its own is the last */
    hipMemAccessDesc access[HIP_MAX_DEVICES];
};

/* A peer's heap as it is mapped here. */
struct hip_import {
    struct hip_import *next;
    void *base;
    size_t bytes;
    bool local;               /* a rank thread's heap, used by its own
                               * pointer; else: */
    struct hip_memory memory; /* addresses of virtual memory, or the pointer
                               * that IPC opened */
};

/* ---- The instance ---- */

/* A kernel's code on this backend's device, looked up once. */
#define HIP_FUNCTION_SLOTS 256

struct hip_function {
    const struct iris_kernel *kernel;
    uint64_t removed; /* number of removed images at the lookup */
    hipFunction_t function;
};

/* State that all contexts of a GPU in this process share, with native streams
 * for work that must not queue behind a kernel that waits. */
struct hip_gpu {
    atomic_uint num_users; /* open backends */
    atomic_bool tried;     /* whether it was tested that copies pass kernels
                            * that wait */
    atomic_bool prepared;  /* memory for more streams was allocated */
    atomic_bool shares;    /* IPC handles can be made */
    hipStream_t fill;      /* fills new memory; may find no free compute unit */
    hipStream_t copy;      /* copies single words */
};

/* Memory outside of heaps that kernels can access. Other memory than the GPU's
 * may have become inaccessible since the host last waited for a stream: the
 * program frees memory only after that. */
struct hip_known {
    uintptr_t start;
    size_t bytes;
    unsigned waits; /* hip->waits then; HIP_KNOWN_FOREVER: it is the GPU's */
};
#define HIP_KNOWN_FOREVER (~0u)
enum { HIP_KNOWN = 16 };

struct hip_backend {
    struct iris_backend base;
    struct iris_backend_params params;
    int device;
#if IRIS_HIP_NVIDIA
    hipCtx_t context; /* the device's primary context */
#endif
    char pci[HIP_PCI_BYTES];
    struct iris_device_info info;
    struct iris_heap_region heap;
    struct hip_memory heap_memory; /* memory or addresses, as returned by the
                                    * runtime */
    bool heap_freed;               /* the heap is being freed */
    struct hip_import *imports;    /* in no order */
    struct hip_vmem vmem;
    unsigned num_contexts; /* contexts of this process on the GPU at its
                            * opening */
    struct hip_gpu *gpu;
    struct iris_stream *filler; /* wraps gpu->fill */
    bool warned_of_atomics;

    pthread_mutex_t watch_lock; /* for changes of the watch by the host */
    struct hip_pinned *pinned;  /* the GPU maps its watch at info.watch */
    struct iris_wait_note note; /* the wait that a lane notes; slot -1: it
                                 * has ended, as far as known */
    _Atomic uint64_t note_beat; /* beat of the last note read */
    _Atomic int64_t note_ns;    /* time of that note; 0: the wait has ended */

    pthread_mutex_t streams_lock; /* guards these: */
    struct hip_stream *streams;
    struct hip_block stage[HIP_STAGE_BLOCKS];

    pthread_mutex_t known_lock; /* guards these two: */
    struct hip_known known[HIP_KNOWN];
    unsigned next_known;
    atomic_uint waits; /* number of times that the host has waited for a
                        * stream */

    pthread_mutex_t functions_lock;
    struct hip_function functions[HIP_FUNCTION_SLOTS];

    /* A kernel that could not be ended still uses the heaps. All memory
     * reachable from here stays. */
    atomic_bool stuck;
};

#endif /* IRIS_SRC_BACKEND_HIP_HIP_H */
