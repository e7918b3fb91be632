/* SPDX-License-Identifier: MIT
 *
 * The GPU backend, over the HIP runtime: the types that its files share. On
 * NVIDIA GPUs hip_nvidia.h stands for HIP's header.
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

/* HIP since 5.7 and 7. */
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
 * A stream is two numbers: `submitted` calls, of which `completed` are done.
 * Both only grow; a stream is idle where they are equal, full where they are
 * far apart, and a piece of memory that call n uses is free once n calls are
 * completed. Behind them is a ring of events, each with the number that is
 * completed when it has come. What is captured is not counted; of a stream that
 * the program has, too, a wait of the host counts as a call that stands for the
 * program's own work before it.
 *
 * Locks, in this order: a stream's lock, held over the call that enqueues,
 * which a full queue of the driver's may hold up, so that who waits for the
 * stream only tries it; that of the list of streams, held over copies of single
 * words and calls that never block; the watch's.
 */
#define HIP_EVENTS 16
#define HIP_STREAM_WAITS 64

struct hip_event {
    hipEvent_t event; /* NULL: never needed so far */
    uint64_t number;
};

/* A wait that a stream does without a kernel, so that it can be ended. */
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
    atomic_bool shared; /* the program has `native`, too, and may enqueue */

    _Atomic uint64_t submitted;
    _Atomic uint64_t completed;
    _Atomic uint64_t wanted; /* the last that somebody waits for */

    pthread_mutex_t lock; /* guards these: */
    bool capturing;       /* as of the call that enqueues */
    struct hip_event events[HIP_EVENTS];
    uint64_t num_recorded; /* events so far */
    uint64_t num_passed;   /* of them, have come */
    uint64_t recorded;     /* number of the last event */
    hipEvent_t followed;   /* where another stream waits; NULL: none has yet */

    /* Under the lock of the list of streams. */
    struct hip_stream *next;
    uint64_t clear_at;
    struct hip_wait waits[HIP_STREAM_WAITS]; /* a ring */
    uint64_t first_wait;
    uint64_t end_wait;
};

/* Pageable host memory is staged in pinned blocks, so that its copies are
 * asynchronous; each with the work that used it last. */
#define HIP_STAGE_BLOCKS 64
#define HIP_STAGE_BLOCK_BYTES ((size_t)65536)

struct hip_block {
    const struct hip_stream *user; /* NULL: none */
    uint64_t number;
};

/* An instance's pinned memory, all of which the GPU maps. */
struct hip_pinned {
    struct iris_dev_watch watch;
    uint64_t unread; /* streams write it */
    uint64_t copied; /* the same */
    _Atomic uint64_t released;
    _Alignas(4096) char blocks[HIP_STAGE_BLOCKS][HIP_STAGE_BLOCK_BYTES];
};

/* ---- Memory ---- */

/* What the runtime has given and gets back. */
struct hip_memory {
    enum hip_memory_kind {
        HIP_DEVICE,
        HIP_PINNED,    /* of the host */
        HIP_RANGE,     /* memory at an address, and the hold on it */
        HIP_ADDRESSES, /* without memory */
    } kind;
    void *ptr;                              /* NULL: nothing */
    size_t bytes;                           /* but for HIP_DEVICE */
    hipMemGenericAllocationHandle_t handle; /* HIP_RANGE */
};

/* Memory at an address of a heap, by the runtime's virtual memory calls. */
struct hip_range {
    struct hip_range *next;
    struct hip_memory memory;
};

struct hip_vmem {
    size_t granularity; /* of mappings; 0: the pool allocator */
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
    bool local;               /* a rank thread's, by its own pointer; else: */
    struct hip_memory memory; /* the addresses of vmem, or what IPC opened */
};

/* ---- The instance ---- */

/* A kernel's code on this backend's device, found once. */
#define HIP_FUNCTION_SLOTS 256

struct hip_function {
    const struct iris_kernel *kernel;
    uint64_t removed; /* images from the program, when it was found */
    hipFunction_t function;
};

/* What all of a GPU's contexts in this process share: also native streams for
 * what may not queue behind a kernel that waits. */
struct hip_gpu {
    atomic_uint num_users; /* open backends */
    atomic_bool tried;     /* whether copies pass kernels that wait */
    atomic_bool prepared;  /* has memory for more streams */
    atomic_bool shares;    /* IPC handles can be made */
    hipStream_t fill;      /* new memory; may find no compute unit free */
    hipStream_t copy;      /* single words */
};

struct hip_backend {
    struct iris_backend base;
    struct iris_backend_params params;
    int device;
#if IRIS_HIP_NVIDIA
    hipCtx_t context; /* the device's */
#endif
    char pci[HIP_PCI_BYTES];
    struct iris_device_info info;
    struct iris_heap_region heap;
    struct hip_memory heap_memory; /* or addresses, as the runtime gave them */
    bool heap_freed;               /* while the heap is freed */
    struct hip_import *imports;    /* in no order */
    struct hip_vmem vmem;
    unsigned num_contexts; /* of this process on the GPU, when it was opened */
    struct hip_gpu *gpu;
    struct iris_stream *filler; /* around gpu->fill */
    bool warned_of_atomics;

    pthread_mutex_t watch_lock; /* for what the host changes of the watch */
    struct hip_pinned *pinned;  /* the GPU maps it at info.watch */
    struct iris_wait_note note; /* of the wait that a lane notes; slot -1: it is
                                 * over, as far as is known */
    _Atomic uint64_t note_beat; /* of the last that was taken */
    _Atomic int64_t note_ns;    /* when it was; 0: the wait is over */

    pthread_mutex_t streams_lock; /* guards these: */
    struct hip_stream *streams;
    struct hip_block stage[HIP_STAGE_BLOCKS];

    pthread_mutex_t functions_lock;
    struct hip_function functions[HIP_FUNCTION_SLOTS];

    /* A kernel that could not be ended still uses the heaps: all that can be
     * reached from here stays. */
    atomic_bool stuck;
};

#endif /* IRIS_SRC_BACKEND_HIP_HIP_H */
