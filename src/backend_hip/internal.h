/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/backend_hip: gPUs, through HIP or CUDA; a module
 * that is loaded on demand.
 */
#ifndef IRIS_SRC_BACKEND_HIP_INTERNAL_H
#define IRIS_SRC_BACKEND_HIP_INTERNAL_H

#include <iris/device/layout.h>

#include "backend/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- Hip ---- */

/* The GPU backend, with the HIP runtime: the types that its files share. On
 * NVIDIA GPUs, hip_nvidia.h replaces HIP's header. */

#if IRIS_HIP_NVIDIA
#include "backend_hip/hip_nvidia.h"
#else
#include <hip/hip_runtime_api.h>
#endif

/* In HIP since 5.7 and 7. */
#ifndef hipDeviceMallocUncached
#define hipDeviceMallocUncached 0x3
#endif
#if IRIS_HIP_NVIDIA || !HAVE_DECL_HIPMEMALLOCATIONTYPEUNCACHED
#define hipMemAllocationTypeUncached ((hipMemAllocationType)0x40000000)
#endif

#define HIP_MAX_DEVICES 256 /* more GPUs than a node has */
#define HIP_PCI_BYTES 16    /* "0000:c1:00.0" */

/* A GPU, or a partition of one, as all processes of a node name it. Partitions
 * may have one address (rocm-systems #10740), and one UUID before ROCm 7.12
 * (#3977). Compared as bytes. */
struct hip_identity {
    char pci[HIP_PCI_BYTES];
    unsigned char uuid[16]; /* zeros: unknown */
    int32_t nth;            /* index among devices with the same two */
};

/* ---- Streams ---- */

/* queue.c has their protocol. Locks, in this order:
 * - a stream's lock, held during the call that enqueues. A full queue of the
 *   driver may block that call, so a thread that waits for the stream only
 *   tries the lock;
 * - the lock of the list of streams, held during copies of single words and
 *   calls that never block;
 * - the watch's lock. */
#define HIP_EVENTS 16
#define HIP_STREAM_WAITS 1024

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

    pthread_mutex_t lock; /* the order of the stream; held over the call that
                           * enqueues */
    /* State at the current enqueue. */
    bool capturing IRIS_GUARDED_BY(lock);
    struct hip_event events[HIP_EVENTS] IRIS_GUARDED_BY(lock);
    /* Numbers of recorded events, of events that have occurred, and of completed
     * calls at the last event. */
    uint64_t num_recorded IRIS_GUARDED_BY(lock);
    uint64_t num_passed IRIS_GUARDED_BY(lock);
    uint64_t recorded IRIS_GUARDED_BY(lock);
    /* For streams that follow this one; NULL: not needed yet. */
    hipEvent_t followed IRIS_GUARDED_BY(lock);

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
    size_t bytes;                           /* HIP_DEVICE: 0 if few */
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
    atomic_uint num_users;   /* open backends */
    atomic_bool tried;       /* whether it was tested that copies pass kernels
                            * that wait */
    atomic_bool prepared;    /* memory for more streams was allocated */
    atomic_bool shares;      /* IPC handles can be made */
    atomic_uint num_streams; /* streams of all contexts beside the next two */
    /* Held while a stream is made: beside the many streams that
     * iris_i_hip_prepare() makes for a moment, a stream would share a queue
     * for its whole life. */
    pthread_mutex_t making_lock;
    hipStream_t fill; /* fills new memory; may find no free compute unit */
    hipStream_t copy; /* copies single words */
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
    struct hip_identity self;
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
    /* The wait that a lane notes; slot -1: it has ended, as far as known. */
    struct iris_wait_note note IRIS_GUARDED_BY(watch_lock);
    _Atomic uint64_t note_beat; /* beat of the last note read */
    _Atomic int64_t note_ns;    /* time of that note; 0: the wait has ended */

    pthread_mutex_t streams_lock; /* the streams' lists of waits, too */
    struct hip_stream *streams IRIS_GUARDED_BY(streams_lock);
    struct hip_block stage[HIP_STAGE_BLOCKS] IRIS_GUARDED_BY(streams_lock);

    pthread_mutex_t known_lock;
    struct hip_known known[HIP_KNOWN] IRIS_GUARDED_BY(known_lock);
    unsigned next_known IRIS_GUARDED_BY(known_lock);
    atomic_uint waits; /* number of times that the host has waited for a
                        * stream */

    pthread_mutex_t functions_lock;
    struct hip_function
        functions[HIP_FUNCTION_SLOTS] IRIS_GUARDED_BY(functions_lock);

    /* A kernel that could not be ended still uses the heaps. All memory
     * reachable from here stays. */
    atomic_bool stuck;
};

/* ---- call.c ---- */

/* The state of a program's thread before a call into the backend. */
struct hip_before {
    int device; /* -1: nothing to restore */
    hipStreamCaptureMode mode;
    hipError_t error; /* error that the program may still query */
};

/* Between these two calls, the calling thread's device is the backend's, and no
 * capture of any thread of the program forbids calls. The program does not see
 * errors of calls in between. Each slot that calls the runtime holds this as
 * HIP_SCOPED, which leaves at the end of the block; older clangs report that as
 * unused. */
struct hip_before iris_i_hip_enter(const struct hip_backend *hip);
void iris_i_hip_leave(const struct hip_before *before);
#define HIP_SCOPED __attribute__((cleanup(iris_i_hip_leave), unused))

/* Takes a reference to the device for the rest of the process. */
hipError_t iris_i_hip_attach(struct hip_backend *hip);

/* Translates an error of the runtime: IRIS_OK, IRIS_ERR_NO_MEMORY or
 * IRIS_ERR_DEVICE. The message has "rank 0, GPU 3: " in front, and the
 * runtime's name and text for the error at its end. The second function is for
 * the library's own errors. */
iris_status_t iris_i_hip_fail(const struct hip_backend *hip, hipError_t error,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_refuse(const struct hip_backend *hip,
                                iris_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_fail_captured(const struct hip_backend *hip,
                                       const char *what);

/* For a call that may fail by chance. Waits a moment and returns true for the
 * first few such errors, else returns false. `tries` starts at 0. */
bool iris_i_hip_try_again(hipError_t error, int *tries);

/* An attribute of the device; the third argument if the runtime does not know
 * it. */
int iris_i_hip_attribute(const struct hip_backend *hip,
                         hipDeviceAttribute_t which, int otherwise);

/* ---- quirks.c ---- */

/* Whether streams write and wait for words by themselves. */
#if IRIS_HIP_NVIDIA || IRIS_HIP_FAKE
#define HIP_QUEUE_WAITS 1
#else
#define HIP_QUEUE_WAITS 0
#endif

/* Sets variables that the runtime reads when it begins. */
void iris_i_hip_set_environment(void);

/* Enqueues a stream's first work. */
hipError_t iris_i_hip_give_first_work(const struct hip_backend *hip,
                                      hipStream_t native);

/* A stream of this context beside the shared ones, before it is made: an error
 * if it could not run beside the others. The second function undoes it. */
iris_status_t iris_i_hip_take_queue(const struct hip_backend *hip);
void iris_i_hip_return_queue(const struct hip_backend *hip);

/* Makes the GPU allocate the memory that streams need. No other thread makes a
 * stream meanwhile. */
hipError_t iris_i_hip_prepare(const struct hip_backend *hip);

/* Warns if that failed, or if the runtime began too early. */
void iris_i_hip_warn_of_streams(const struct hip_backend *hip,
                                hipError_t prepared);

/* Loads all of a module's functions now. */
void iris_i_hip_load_functions(hipModule_t module);

/* The GPU of a stream; unchanged if the runtime does not tell. */
hipError_t iris_i_hip_stream_device(hipStream_t native, int *device_p);

/* The identity of a device, and the device of an identity: an error if
 * this process does not see it. */
hipError_t iris_i_hip_identify(int device, struct hip_identity *identity_p);
hipError_t iris_i_hip_find_device(const struct hip_identity *identity,
                                  int *device_p);

/* Whether it is known that kernels cannot access the byte: it is host memory that
 * the runtime does not know. Errors other than for that say nothing. *what_p is
 * zeroed first. */
bool iris_i_hip_is_pageable(const void *ptr, hipPointerAttribute_t *what_p);

/* Whether it is memory of a GPU. */
bool iris_i_hip_is_device(const hipPointerAttribute_t *what);

/* Whether memory of the pool can be shared with other processes. */
bool iris_i_hip_can_share(const struct hip_backend *hip);

/* The rate of the clock that kernels read. */
int64_t iris_i_hip_clock_khz(const struct hip_backend *hip);

/* The type of memory for heaps that grow: sets hip->vmem.uncached. `prop`
 * describes other memory for them. */
iris_status_t iris_i_hip_choose_type(struct hip_backend *hip,
                                     hipMemAllocationProp prop);

/* Gives devices access to mapped memory. */
hipError_t iris_i_hip_set_access(const struct hip_backend *hip,
                                 const struct hip_memory *what,
                                 const hipMemAccessDesc *access, size_t count);

/* The form in which a descriptor is passed to the import. */
void *iris_i_hip_os_handle(int *fd);

/* The reason why the program's memory cannot be referenced; NULL: it can. */
const char *iris_i_hip_cannot_retain(void);

/* ---- deferred.c ---- */

/* Each context of this process joins its GPU, which sets hip->gpu, and leaves
 * it. Deferred memory is freed in the order of arrival, at the latest when the
 * last context leaves; then iris_i_hip_memory_leave() returns true. */
void iris_i_hip_memory_join(struct hip_backend *hip);
bool iris_i_hip_memory_leave(const struct hip_backend *hip);
void iris_i_hip_free_later(const struct hip_backend *hip,
                           const struct hip_memory *memory);

/* Frees now the deferred memory of the GPU (-1: all GPUs without users) that,
 * unless `bytes` is 0, is mapped at these addresses. Returns whether there was
 * any. May wait for other contexts' kernels. */
bool iris_i_hip_free_deferred(int device, const void *at, size_t bytes);

/* For an allocation that failed: frees the GPU's deferred memory if that is as
 * large. Less would not help, and another rank's kernel may wait for this rank. */
bool iris_i_hip_make_room(int device, size_t bytes);

/* A context begins to use a rank thread's heap by its owner's pointer, or
 * stops. No heap is freed in between: kernels may write there, from other GPUs
 * as well. */
void iris_i_hip_import_local(int count);

/* Host memory that GPUs map; it may have been used before. iris_i_hip_free_later()
 * takes it back. */
hipError_t iris_i_hip_pin(const struct hip_backend *hip, size_t bytes,
                          void **pinned_p);

/* Records that a kernel of this backend cannot be ended. From then on no memory
 * of any context is freed: freeing would wait for the kernel, or the kernel may
 * use it. The process's end frees it. */
void iris_i_hip_stick(struct hip_backend *hip);
bool iris_i_hip_any_stuck(void);

/* ---- queue.c ---- */

bool iris_i_hip_capturing(struct hip_stream *stream);

/* Updates `completed` of all streams to which no thread is enqueueing, and of one
 * whose lock is held, or NULL. */
void iris_i_hip_update_all(struct hip_backend *hip, struct hip_stream *held);

/* hipSuccess: this number is completed; 0 means all, and is replaced by that
 * number. hipErrorNotReady: not yet. Another error: the device has failed, so
 * all of the stream's work counts as completed. */
hipError_t iris_i_hip_poll(struct hip_stream *stream, uint64_t *target_p);

/* Called around this number of runtime calls that enqueue work. Begin returns
 * 0, and holds the stream's lock up to the end. If there is no space, it
 * returns the number that has to be completed first. */
uint64_t iris_i_hip_begin(struct hip_stream *stream, size_t calls)
    IRIS_TRIES(0, stream->lock);
void iris_i_hip_end(struct hip_stream *stream, size_t calls)
    IRIS_RELEASES(stream->lock);

/* A copy of host memory by the host; with src NULL, a fill. */
struct hip_errand {
    void *dst;
    const void *src;
    int value;
    size_t bytes;
};

/* Enqueues it, as a part of the stream's next call. The stream's lock is
 * held. */
hipError_t iris_i_hip_send_errand(struct hip_stream *stream,
                                  const struct hip_errand *what);

/* Whether a pending errand of this process will write to this memory. */
bool iris_i_hip_errand_writes(const void *ptr, size_t bytes);

/* Cancels the pending errands of a stream whose work is given up: the runtime
 * may run them later or never. */
void iris_i_hip_call_off_errands(const struct hip_stream *stream);

/* Lists the stream's next wait, and numbers it; false: there are too many. The
 * second function undoes it if the runtime has not accepted the wait. The
 * stream's lock is held. */
bool iris_i_hip_list_wait(struct hip_stream *stream, struct hip_wait *wait)
    IRIS_REQUIRES(stream->lock);
void iris_i_hip_unlist_wait(struct hip_stream *stream);

/* After a fault: writes the values that streams wait for without a kernel. It
 * leaves out waits that are over, since their memory may have been reused. A
 * stream may miss the first of two values for one word: call it again until the
 * streams are done. */
void iris_i_hip_end_waits(struct hip_backend *hip);

/* The stream's own wait, as the end of a sentence; empty if it does not
 * wait. */
void iris_i_hip_describe_wait(struct hip_stream *stream, char *text,
                              size_t bytes);

/* Copies a word, independently of all streams that wait. */
bool iris_i_hip_copy_word(struct hip_backend *hip, void *to, const void *from);

/* ---- stream.c ---- */

/* Fills new memory of the heap with zeros, and waits for that as for a stream:
 * IRIS_ERR_TIMEOUT and similar if it does not end by itself. */
iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base,
                              size_t bytes);

IRIS_SLOT(iris_i_hip_graph_destroy, device, graph_destroy);

extern const struct iris_queue_ops iris_i_hip_queue_ops;

/* Loads all of the program's GPU code now: later, loading could wait for a
 * kernel. */
void iris_i_hip_load_images(struct hip_backend *hip);

/* Opens the streams for fills and copies that all contexts of a GPU in this
 * process share, unless they are open, and this context's own stream for
 * fills. */
iris_status_t iris_i_hip_streams_open(struct hip_backend *hip);
void iris_i_hip_streams_close(struct hip_backend *hip);

IRIS_SLOT(iris_i_hip_stream_create, device, stream_create);
IRIS_SLOT(iris_i_hip_stream_wrap, device, stream_wrap);
IRIS_SLOT(iris_i_hip_stream_destroy, device, stream_destroy);

/* ---- fault.c ---- */

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip);

/* Makes `status`, with this thread's message, the fault, and ends kernels that
 * wait. */
void iris_i_hip_raise(struct hip_backend *hip, iris_status_t status);

/* The fault, including one that a lane has just reported; or IRIS_OK. */
iris_status_t iris_i_hip_check(struct hip_backend *hip);

/* After a fault: waits until `is_done` is true, at most two seconds. Work that
 * has not ended by then is given up. */
bool iris_i_hip_end_work(struct hip_backend *hip, bool (*is_done)(void *arg),
                         void *arg);

IRIS_SLOT(iris_i_hip_clear_fault, device, clear_fault);

/* ---- heap.c ---- */

iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip);

extern const struct iris_memory_ops iris_i_hip_pool_ops;
extern const struct iris_memory_ops iris_i_hip_vmem_ops; /* heaps that grow */

#endif /* IRIS_SRC_BACKEND_HIP_INTERNAL_H */
