/* SPDX-License-Identifier: MIT
 *
 * The GPU backend, over the HIP runtime: what its files share. On NVIDIA GPUs
 * hip_nvidia.h stands for HIP's header.
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
/* How long ended kernels may take before they are given up. */
#define HIP_GRACE_NS 2000000000

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
    uint64_t unread;       /* streams write it */
    uint64_t copied;       /* the same */
    _Atomic int64_t clock; /* a kernel writes it; 0: not yet */
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

/* ---- Slots ---- */

/* What the backend's tables have: X(queue, copy) stands for the slot `copy` of
 * struct iris_queue_ops, which is the function iris_i_hip_copy(). */
/* clang-format off */
#define HIP_DEVICE_SLOTS(X) \
    X(device, info) X(device, close) X(device, clear_fault) \
    X(device, stream_create) X(device, stream_wrap) X(device, stream_destroy) \
    X(device, graph_destroy)
#define HIP_HEAP_SLOTS(X) \
    X(memory, alloc) X(memory, free) \
    X(memory, export_heap) X(memory, import_heap) X(memory, unimport_heap)
#define HIP_VMEM_SLOTS(X) \
    X(memory, commit) X(memory, decommit) \
    X(memory, export_range) X(memory, import_range) \
    X(memory, hold_external) X(memory, release_external) X(memory, map_external)
#define HIP_QUEUE_SLOTS(X) \
    X(queue, synchronize) X(queue, query) X(queue, copy) X(queue, set) \
    X(queue, launch) \
    X(queue, signal) X(queue, wait) X(queue, native) \
    X(queue, capture_begin) X(queue, capture_end) X(queue, graph_launch)
/* clang-format on */

#define HIP_DECLARE(table, slot) \
    __typeof__(*((const struct iris_##table##_ops *)0)->slot) iris_i_hip_##slot;
HIP_DEVICE_SLOTS(HIP_DECLARE)
HIP_HEAP_SLOTS(HIP_DECLARE)
HIP_VMEM_SLOTS(HIP_DECLARE)
HIP_QUEUE_SLOTS(HIP_DECLARE)

/* ---- hip_init.c ---- */

/* An error of the runtime as a status: IRIS_OK, IRIS_ERR_NO_MEMORY or
 * IRIS_ERR_DEVICE, with "rank 0, GPU 3: " before the message and the runtime's
 * name and text behind it. The second: of this library's. */
iris_status_t iris_i_hip_fail(const struct hip_backend *hip, hipError_t error,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_refuse(const struct hip_backend *hip,
                                iris_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An attribute of the device; the third if the runtime does not know it. */
int iris_i_hip_attribute(const struct hip_backend *hip,
                         hipDeviceAttribute_t which, int otherwise);

/* ---- hip_quirks.c; seen with which runtime or driver is said there ---- */

/* Whether streams write and wait for words by themselves. */
#if IRIS_HIP_NVIDIA || IRIS_HIP_FAKE
#define HIP_QUEUE_WAITS 1
#else
#define HIP_QUEUE_WAITS 0
#endif

/* What a thread of the program had before a call into the backend. */
struct hip_before {
    int device; /* -1: nothing to put back */
    hipStreamCaptureMode mode;
    hipError_t error; /* that the program may still ask for */
};

/* Between these two the calling thread's device is the backend's, and no
 * capture that some thread of the program has begun forbids it anything. Errors
 * of calls between are not the program's to find. Each slot that calls the
 * runtime holds this as HIP_SCOPED, which leaves at the end of the block; older
 * clangs see no use in that. */
struct hip_before iris_i_hip_enter(const struct hip_backend *hip);
void iris_i_hip_leave(const struct hip_before *before);
#define HIP_SCOPED __attribute__((cleanup(iris_i_hip_leave), unused))

/* Sets variables that the runtime reads when it begins. */
void iris_i_hip_set_environment(void);

/* Takes hold of the device for as long as the process lasts. */
hipError_t iris_i_hip_attach(struct hip_backend *hip);

/* Gives a stream its first work. */
hipError_t iris_i_hip_give_first_work(const struct hip_backend *hip,
                                      hipStream_t native);

/* Makes the GPU take the memory that streams need, and warns where kernels of
 * the contexts cannot all run at once. */
void iris_i_hip_prepare(const struct hip_backend *hip);

/* Loads all of a module's functions now. */
void iris_i_hip_load_functions(hipModule_t module);

/* The GPU of a stream; left as it was where the runtime does not say. */
hipError_t iris_i_hip_stream_device(hipStream_t native, int *device_p);

/* Whether this is memory that the runtime does not know. */
bool iris_i_hip_is_unknown(const hipPointerAttribute_t *what);

/* For a call that may fail by chance: false, or after a moment true, some
 * times. `tries` begins as 0. */
bool iris_i_hip_try_again(hipError_t error, int *tries);

/* Whether memory of the pool can be shared with other processes. */
bool iris_i_hip_can_share(const struct hip_backend *hip);

/* Whether the GPU is of the generation of MI200, or an older one. */
bool iris_i_hip_is_mi200(const struct hip_backend *hip);

/* The type of memory for heaps that grow: hip->vmem.uncached. */
iris_status_t iris_i_hip_choose_type(struct hip_backend *hip);

/* Lets devices use memory that is mapped. */
hipError_t iris_i_hip_set_access(const struct hip_backend *hip,
                                 const struct hip_memory *what,
                                 const hipMemAccessDesc *access, size_t count);

/* How a descriptor is passed to be imported. */
void *iris_i_hip_os_handle(int *fd);

/* Why the program's memory cannot be held; NULL: it can. */
const char *iris_i_hip_cannot_retain(void);

/* ---- hip_deferred.c ---- */

/* Contexts are counted from join, which makes hip->gpu, to leave. What is freed
 * later goes in the order it came, at the latest when the last of this process
 * leaves the GPU: true. */
void iris_i_hip_memory_join(struct hip_backend *hip);
bool iris_i_hip_memory_leave(const struct hip_backend *hip);
void iris_i_hip_free_later(const struct hip_backend *hip,
                           const struct hip_memory *memory);

/* Frees now what is deferred of the GPU (-1: of those that nobody uses) and,
 * unless `bytes` is 0, mapped at these addresses; whether there was any. May
 * wait for other contexts' kernels. */
bool iris_i_hip_free_deferred(int device, const void *at, size_t bytes);

/* A context uses a rank thread's heap, by its owner's pointer, or no longer. No
 * heap is freed between: kernels may write there, from other GPUs as well. */
void iris_i_hip_import_local(int count);

/* Makes hip->pinned, of memory that may have been used before. */
hipError_t iris_i_hip_pin(struct hip_backend *hip);

/* Notes that a kernel of this backend cannot be ended. From then on no memory
 * is freed, whoever has it: that would wait for the kernel, or the kernel may
 * use it. The process's end frees all the same. */
void iris_i_hip_stick(struct hip_backend *hip);
bool iris_i_hip_any_stuck(void);

/* ---- hip_heap.c, hip_peer.c, hip_vmem.c ---- */

/* Whether the address is in a heap this backend has mapped: device memory. */
bool iris_i_hip_is_heap(const struct hip_backend *hip, const void *ptr);

/* Fills new memory of the heap with zeros, and waits for that, as for a stream:
 * IRIS_ERR_TIMEOUT and the like if it does not come to an end by itself. */
iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base,
                              size_t bytes);

/* Heaps as addresses that get memory when it is needed: makes hip->vmem, and
 * what slots do for such heaps. A mapping has the window behind the heap. What
 * is exported is the memory that begins there; nothing, if there is none. */
iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip);
iris_status_t iris_i_hip_vmem_alloc(struct hip_backend *hip, size_t bytes,
                                    struct iris_heap_region *region_p);
iris_status_t iris_i_hip_vmem_export(struct hip_backend *hip, const void *at,
                                     uint64_t *bytes_p, int *fd_p);
iris_status_t iris_i_hip_vmem_import(struct hip_backend *hip, int rank,
                                     uint64_t committed, int fd,
                                     struct hip_import *import);

/* Frees memory or addresses, and what is mapped there. */
void iris_i_hip_vmem_free(struct hip_backend *hip,
                          const struct hip_memory *memory);

/* Of memory for this rank's heap. */
hipMemAllocationProp iris_i_hip_properties(const struct hip_backend *hip);

/* Maps memory for the last `num_devices` of `access`. The handle is the range's
 * from then on, and released if that fails. */
hipError_t iris_i_hip_range_map(struct hip_backend *hip,
                                const struct hip_memory *what, int num_devices);

/* ---- hip_descriptor.c ---- */

/* A heap of vmem has this many pieces at most: each costs every process a
 * mapping, with some runtimes a descriptor, and one while it travels. */
#define HIP_MOST_PIECES 128

/* A descriptor of memory, which is the caller's to close. */
hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p);

/* Whether a call that failed did so since the process has no descriptors left:
 * *status_p, with this thread's message. */
bool iris_i_hip_lacks_descriptors(const struct hip_backend *hip, size_t bytes,
                                  iris_status_t *status_p);

/* ---- hip_stream.c, hip_queue.c, hip_copy.c, hip_signal.c, hip_graph.c ---- */

/* Makes the GPU's streams, if there are none, and what is around them. */
iris_status_t iris_i_hip_streams_open(struct hip_backend *hip);
void iris_i_hip_streams_close(struct hip_backend *hip);

/* Calls `enqueue` with the stream's lock held, once there is room for so many
 * calls of the runtime; its status, or why it was not called. */
typedef iris_status_t (*hip_enqueue_t)(struct hip_stream *stream, void *what);
iris_status_t iris_i_hip_enqueue(struct iris_stream *stream, size_t calls,
                                 hip_enqueue_t enqueue, void *what);

bool iris_i_hip_capturing(struct hip_stream *stream);
iris_status_t iris_i_hip_fail_captured(const struct hip_backend *hip,
                                       const char *what);

/* Brings `completed` up to date. hipErrorNotReady: there is more to come. The
 * stream's lock is held. The second: of all streams that nobody enqueues to,
 * and of one whose lock is held, or NULL. */
hipError_t iris_i_hip_update(struct hip_stream *stream);
void iris_i_hip_update_all(struct hip_backend *hip, struct hip_stream *held);

#define HIP_WORK "work on a stream was"

/* Waits until all that was enqueued before is done, or that cannot be had:
 * *finished_p. Returns the fault, if there is one. `what` is the subject of a
 * message, with its verb. */
iris_status_t iris_i_hip_wait_all(struct hip_stream *stream, const char *what,
                                  bool *finished_p);

/* Whether so much is completed; 0 is all, and becomes what that is. */
bool iris_i_hip_is_done(struct hip_stream *stream, uint64_t *target_p);

/* After a fault: writes what streams wait for without a kernel. Update the
 * streams first: memory of waits that are over may be something else's by now.
 * A stream may miss the first of two for one word: call it again until they are
 * done. */
void iris_i_hip_end_waits(struct hip_backend *hip);

/* What the stream itself waits for, as the end of a sentence; or nothing. */
void iris_i_hip_describe_wait(struct hip_stream *stream, char *text,
                              size_t bytes);

/* Copies a word beside all streams that wait. */
bool iris_i_hip_copy_word(struct hip_backend *hip, void *to, const void *from);

/* ---- hip_errand.c ---- */

/* A copy of host memory, or with src NULL a fill, that the host makes. */
struct hip_errand {
    void *dst;
    const void *src;
    int value;
    size_t bytes;
};

/* Has the host do it when the stream gets there, as a part of the stream's next
 * call. The stream's lock is held. */
hipError_t iris_i_hip_send_errand(struct hip_stream *stream,
                                  const struct hip_errand *what);

/* Whether an errand of this process that has not run will write there. */
bool iris_i_hip_errand_writes(const void *ptr, size_t bytes);

/* The number of the last call before the stream's first errand that has not
 * run; UINT64_MAX if all have. The stream's lock is held. */
uint64_t iris_i_hip_errand_limit(const struct hip_stream *stream);

/* Calls off what a stream whose work is given up has not begun: the runtime may
 * run it later or never. */
void iris_i_hip_call_off_errands(const struct hip_stream *stream);

/* ---- hip_fault.c, hip_launch.c ---- */

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip);

/* Makes `status`, with this thread's message, the fault, and ends kernels that
 * wait. */
void iris_i_hip_raise(struct hip_backend *hip, iris_status_t status);

/* The fault, which a lane may have reported just now; or IRIS_OK. */
iris_status_t iris_i_hip_check(struct hip_backend *hip);

/* Loads all of the program's GPU code: later it could wait for a kernel. */
void iris_i_hip_load_images(struct hip_backend *hip);

/* Launches a kernel of the library for one lane; false: it cannot be. */
bool iris_i_hip_launch_lane(struct hip_backend *hip, hipStream_t native,
                            const struct iris_kernel *kernel, const void *args);

/* Makes info.clock_khz, once streams and kernels are there: hip_clock.c. */
void iris_i_hip_find_clock(struct hip_backend *hip);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_H */
