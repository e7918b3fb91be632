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
#include "base/log.h"

extern const struct iris_backend_type iris_i_hip_type;

/* "0000:c1:00.0" */
#define HIP_PCI_BYTES 16

/* Pinned memory in which pageable host memory is staged, so that its copies
 * are asynchronous: blocks of a bitmap. */
#define HIP_STAGE_BLOCKS 64
#define HIP_STAGE_BLOCK_BYTES ((size_t)65536)

struct hip_stage {
    char *base;
    _Atomic uint64_t used; /* bit i: block i */
};

/* Addresses. What is used of them begins at a multiple of what offsets in a
 * heap may have to be multiples of. */
struct hip_room {
    char *base;
    size_t bytes;
    void *raw; /* as reserved */
    size_t raw_bytes;
};

struct hip_opened;

/* A peer's heap as it is mapped here. */
struct hip_import {
    struct hip_import *next;
    char *base;
    size_t bytes;
    struct hip_opened *opened; /* NULL: not by IPC */
    struct hip_room room;      /* of bytes 0: not by addresses of its own */
    uint64_t borrowed;         /* a rank thread's: its generation; or 0 */
    struct hip_import *next_borrowed;
};

struct hip_vmem;

/* What a handle's bytes hold. A pid is unique only in its namespace, whose
 * number has 32 bits, and only at a time; an address, too. */
struct hip_handle {
    uint64_t
        generation; /* another one for each heap ever made in the process */
    char *base;     /* in that process */
    uint64_t bytes;
    uint32_t pid_namespace;
    int32_t pid;
    int32_t rank;
    int32_t vmem; /* the allocator, which all ranks must share */
    char pci[HIP_PCI_BYTES];
    union {
        uint64_t offset; /* pool: of the heap in its allocation */
        uint64_t backed; /* vmem: bytes of memory behind the descriptor */
    };
    hipIpcMemHandle_t ipc; /* pool: of the whole allocation. Two handles of one
                            * need not be equal. */
};

#if !IRIS_HIP_NVIDIA
/* They are on the device once their module is. */
static inline void hip_load_functions(hipModule_t module)
{
    (void)module;
}
#endif

/* A kernel's code on this backend's device, found once. */
struct hip_function {
    const struct iris_kernel *kernel;
    hipFunction_t function;
};

#define HIP_FUNCTION_SLOTS 256

/* The watch, and a word behind it that streams write and nobody reads. */
#define HIP_WATCH_BYTES (sizeof(struct iris_dev_watch) + sizeof(uint64_t))

/* More GPUs than a node has. */
#define HIP_MAX_DEVICES 256

/* Native streams for what may not queue behind a kernel that waits; all of a
 * GPU's contexts in this process share them. */
struct hip_services {
    hipStream_t fill; /* new memory, which may find no room on the GPU */
    hipStream_t copy; /* single words */
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
    uint64_t heap_generation;
    uint64_t heap_leaving; /* the same while the heap is given back, else 0 */
    struct hip_import *imports; /* live heap_import()s, in no order */
    struct hip_vmem *vmem;      /* NULL: the pool allocator */
    struct hip_services services;
    struct hip_stream *filler; /* around services.fill */
    struct hip_stage stage;
    struct iris_dev_watch *watch; /* pinned; the GPU maps it at info.watch */

    /* Never held over a call of the runtime: who is to end kernels must get it
     * while a call waits for them. Guards what the host does with the watch,
     * these, and what streams say is its. */
    pthread_mutex_t fault_lock;
    unsigned num_stopping; /* threads that end kernels; `stop` stays */
    bool claimed;        /* a report was taken, its claim could not be freed */
    unsigned num_faults; /* so far; the last one is: */
    iris_status_t fault;
    char fault_message[IRIS_MESSAGE_BYTES];

    /* Taken before a stream's lock, and held over copies of single words and
     * calls that never block only. Guards the list of streams. */
    pthread_mutex_t streams_lock;
    struct hip_stream *streams;

    pthread_mutex_t lock; /* guards these: */
    struct hip_function functions[HIP_FUNCTION_SLOTS];
    uint64_t images_removed;  /* from the program, when functions were found */
    struct iris_stream *left; /* destroyed, but could not be waited for */

    bool warned_of_atomics;

    /* Set once, by iris_i_hip_abandon(): a kernel that could not be ended still
     * uses the heaps, and all that is reached from here stays. */
    atomic_bool abandoned;
    struct hip_backend *next_abandoned;
};

/* A wait that a stream does without a kernel, so that it can be ended. */
struct hip_wait {
    bool taken;
    uint64_t number; /* in the order they were enqueued, from 1; 0: not yet */
    uint64_t *place;
    iris_cmp_t cmp; /* IRIS_CMP_EQ or IRIS_CMP_GE */
    uint64_t value;
    bool forced;    /* the host has written there, to end it */
    uint64_t saved; /* what was there before that */
};

#define HIP_STREAM_WAITS 64

struct hip_stream {
    struct iris_stream base;
    hipStream_t native;
    bool owned;
    struct hip_stream *next; /* of the backend's streams */

    /* Under the backend's fault_lock; the first may be read without. */
    atomic_bool shared;   /* the program has `native`, too, and may enqueue */
    uint64_t num_watched; /* pieces of work so far */
    uint64_t num_hit;     /* those up to here may have been ended by a fault */
    uint64_t num_told;    /* of those up to here a synchronize has told */
    unsigned faults_seen; /* of the backend's, in num_hit */

    /* Guards all below. It is held over no call of the runtime that waits for
     * the stream; a full one's calls do, those that ask about it as well while
     * another thread's enqueues. */
    pthread_mutex_t lock;
    unsigned enqueuing; /* threads between the two calls below */
    uint64_t num_given; /* calls outside of captures; of a graph its nodes */
    struct hip_wait waits[HIP_STREAM_WAITS];
    uint64_t num_waits;     /* so far */
    uint64_t stage_orphans; /* blocks to give back once the stream is through */

    /* Who waits for the stream is done once it is empty, or past the mark. One
     * who enqueues sets the mark, so that waiting ends however much comes. */
    unsigned num_waiting;
    uint64_t turns;  /* waits of the host begun so far; each has its number */
    uint64_t marked; /* the mark is behind all that those up to here wait for */
    uint64_t passed; /* those up to here are done */
    bool marking;    /* by a thread, without the lock */
    hipEvent_t mark; /* NULL: never needed so far */

    /* Who enqueues to a full stream waits for an event in the middle of what it
     * has. */
    uint64_t num_done; /* of those given, whose work is known to be done */
    uint64_t half_at; /* the event is behind so many given; 0: to be recorded */
    bool halving;     /* by a thread, without the lock */
    hipEvent_t half;  /* NULL: never needed so far */
};

/* What a thread of the program had before a call into the backend. */
struct hip_before {
    int device; /* -1: none to put back */
    hipStreamCaptureMode mode;
};

/* Between these two the calling thread's device is the backend's, and no
 * capture that some thread of the program has begun forbids it anything. */
struct hip_before iris_i_hip_enter(const struct hip_backend *hip);
void iris_i_hip_leave(const struct hip_backend *hip, struct hip_before before);

/* Every error of the runtime becomes a status here: IRIS_ERR_NO_MEMORY or
 * IRIS_ERR_DEVICE, with the runtime's name and text behind the message. */
iris_status_t iris_i_hip_fail(hipError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What the runtime has given and gets back. */
enum hip_kind {
    HIP_MEMORY, /* of the device */
    HIP_PINNED, /* of the host */
    HIP_EXTENT, /* memory at an address, and the hold on it */
    HIP_ROOM,   /* addresses */
};

struct hip_thing {
    enum hip_kind kind;
    void *ptr;                              /* NULL: nothing */
    size_t bytes;                           /* but for HIP_MEMORY */
    hipMemGenericAllocationHandle_t handle; /* HIP_EXTENT */
};

/* hip_waste.c. Gives things back, at the latest when the last context of this
 * process leaves the GPU, in the order they came here; between the first two,
 * which count contexts. The device is current. */
void iris_i_hip_use_memory(struct hip_backend *hip);
void iris_i_hip_leave_memory(struct hip_backend *hip);
void iris_i_hip_discard(const struct hip_backend *hip,
                        const struct hip_thing *thing);

/* A context uses a rank thread's heap, by its owner's pointer, and no longer.
 * Nothing of the heap is given back between these: kernels may write there,
 * from other GPUs as well. */
void iris_i_hip_borrow(struct hip_import *import, uint64_t generation);
void iris_i_hip_unborrow(struct hip_import *import);

/* Gives back now what is kept of the GPU; whether there was any. The second:
 * only what is mapped at these addresses. Both may wait for other contexts'
 * kernels. */
bool iris_i_hip_flush(const struct hip_backend *hip);
void iris_i_hip_flush_at(const struct hip_backend *hip, const void *at,
                         size_t bytes);

/* Pinned memory, maybe used before; the same size goes with the same flags. Of
 * unpin, ptr may be NULL. */
hipError_t iris_i_hip_pin(const struct hip_backend *hip, size_t bytes,
                          unsigned flags, void **ptr_p);
void iris_i_hip_unpin(const struct hip_backend *hip, void *ptr, size_t bytes);

/* Notes that a kernel of this backend cannot be ended. From then on no memory
 * is given back, whoever has it: that would wait for the kernel, or it may use
 * it. The process's end frees all the same. */
void iris_i_hip_abandon(struct hip_backend *hip);
bool iris_i_hip_keeps_all(void);

/* hip_heap.c */
iris_status_t iris_i_hip_heap_alloc(struct iris_backend *backend, size_t bytes,
                                    struct iris_heap_region *region_p);
void iris_i_hip_heap_free(struct iris_backend *backend,
                          struct iris_heap_region *region);
iris_status_t iris_i_hip_heap_export(struct iris_backend *backend,
                                     const struct iris_heap_region *region,
                                     struct iris_heap_handle *handle_p);
iris_status_t iris_i_hip_heap_import(struct iris_backend *backend,
                                     const struct iris_heap_handle *handle,
                                     size_t bytes, void **base_p);
void iris_i_hip_heap_unimport(struct iris_backend *backend, void *base,
                              size_t bytes);

/* hip_vmem.c: heaps as addresses that get memory when it is needed. Makes
 * hip->vmem and the backend's memory table. */
iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip);
void iris_i_hip_vmem_close(struct hip_backend *hip);

/* What hip_heap.c does for such heaps, the device being current; free: on any
 * heap. A mapping has the window behind the heap, too. */
iris_status_t iris_i_hip_vmem_alloc(struct hip_backend *hip, size_t bytes,
                                    struct iris_heap_region *region_p);
void iris_i_hip_vmem_free(struct hip_backend *hip);
iris_status_t iris_i_hip_vmem_export(struct hip_backend *hip,
                                     struct hip_handle *handle, int *fd_p);
iris_status_t iris_i_hip_vmem_import(struct hip_backend *hip,
                                     const struct hip_handle *theirs, int fd,
                                     struct hip_import *import);
void iris_i_hip_vmem_unimport(struct hip_backend *hip,
                              struct hip_import *import);

/* Whether the address is in a heap this backend has mapped: device memory. */
bool iris_i_hip_is_heap(const struct hip_backend *hip, const void *ptr);

/* hip_shared.c. Makes hip->services, which the backend holds until it leaves.
 * The device is current around all of these. */
hipError_t iris_i_hip_services_share(struct hip_backend *hip);
void iris_i_hip_services_leave(struct hip_backend *hip);

/* A new stream, the caller's, that has had its first work. */
hipError_t iris_i_hip_native_create(const struct hip_backend *hip,
                                    hipStream_t *native_p);

/* Gives one its first work. */
hipError_t iris_i_hip_give_first_work(const struct hip_backend *hip,
                                      hipStream_t native);

/* hip_stream.c. Makes hip->services and what is around them. */
iris_status_t iris_i_hip_services_open(struct hip_backend *hip);
void iris_i_hip_services_close(struct hip_backend *hip);

iris_status_t iris_i_hip_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p);
iris_status_t iris_i_hip_stream_wrap(struct iris_backend *backend, void *native,
                                     struct iris_stream **stream_p);
void *iris_i_hip_stream_native(struct iris_stream *stream);
void iris_i_hip_stream_destroy(struct iris_stream *stream);
iris_status_t iris_i_hip_synchronize(struct iris_stream *stream);

/* Gives back one that has no work. */
void iris_i_hip_stream_free(struct hip_stream *stream);

/* Fills new memory of the heap with zeros, and waits for that, as for a stream:
 * IRIS_ERR_TIMEOUT and the like if it does not come to an end by itself. */
iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base,
                              size_t bytes);

/* Waits for what has been enqueued, as iris_i_hip_synchronize() does,
 * but leaves errors of that work for it. */
iris_status_t iris_i_hip_stream_settle(struct hip_stream *stream);

/* hip_enqueue.c. Around every call that gives the stream work, whether it
 * succeeds or not. If the stream is full the first waits, as
 * iris_i_hip_synchronize() does; what it returns then, if that is not
 * IRIS_OK, is the call's error. */
iris_status_t iris_i_hip_enqueue_begin(struct hip_stream *stream);
void iris_i_hip_enqueue_end(struct hip_stream *stream);

/* The same of one that takes the room of several. If they do not fit beside
 * what is in the stream the first waits for all of that. */
iris_status_t iris_i_hip_enqueue_begin_many(struct hip_stream *stream,
                                            size_t calls);
void iris_i_hip_enqueue_end_many(struct hip_stream *stream, size_t calls);

/* Whether nothing is left to do in the stream. Never blocks: false if that
 * cannot be asked now. The stream's lock is held. */
bool iris_i_hip_is_idle(struct hip_stream *stream);

/* How a wait of the host went. */
struct hip_outcome {
    bool finished;     /* what was enqueued before is done */
    bool empty;        /* and the stream was seen to have nothing left */
    uint64_t work;     /* so many of its pieces of work are done then */
    iris_status_t why; /* what made the host stop waiting, if anything did; its
                        * message is this thread's */
};

#define HIP_WORK "work on a stream was"

/* Waits until all that was enqueued before is done, or that cannot be had;
 * `what` is the subject of a message, with its verb. IRIS_OK, IRIS_ERR_STATE of
 * a stream that is captured, or IRIS_ERR_DEVICE. */
iris_status_t iris_i_hip_drain(struct hip_stream *stream, const char *what,
                               struct hip_outcome *end);

/* hip_copy.c */
iris_status_t iris_i_hip_stage_open(struct hip_backend *hip);
void iris_i_hip_stage_close(struct hip_backend *hip);

/* Frees blocks of a stage, as bits. */
void iris_i_hip_stage_give(struct hip_backend *hip, uint64_t blocks);
iris_status_t iris_i_hip_copy(struct iris_stream *stream, void *dst,
                              const void *src, size_t bytes);
iris_status_t iris_i_hip_set(struct iris_stream *stream, void *dst, int value,
                             size_t bytes);
iris_status_t iris_i_hip_signal(struct iris_stream *stream, uint64_t *place,
                                uint64_t value);
iris_status_t iris_i_hip_wait(struct iris_stream *stream, uint64_t *place,
                              iris_cmp_t cmp, uint64_t value);

/* hip_fault.c. What stops a rank's waiting kernels, and the reports of those
 * that gave up by themselves. */
iris_status_t iris_i_hip_watch_open(struct hip_backend *hip);
void iris_i_hip_watch_close(struct hip_backend *hip);

/* Between these two this rank's waiting kernels end; `status` and this thread's
 * message are what streams that have work then return. */
void iris_i_hip_stop_begin(struct hip_backend *hip, iris_status_t status);
void iris_i_hip_stop_end(struct hip_backend *hip);

/* From now on the program may give the stream work by itself. */
void iris_i_hip_fault_share(struct hip_stream *stream);

/* A stream gets a piece of work: what went wrong before is not its error. The
 * second: how many it has got, but for what threads are about to enqueue; the
 * stream's lock is held. */
void iris_i_hip_fault_watch(struct hip_stream *stream);
uint64_t iris_i_hip_fault_work(struct hip_stream *stream);

/* After a stream has drained: takes a report, if there is one, and makes the
 * backend ready for the next kernels. */
void iris_i_hip_collect(struct hip_backend *hip);

/* After a stream has drained, as `end` says: what may have ended its work, once
 * for all that is done. message_p has IRIS_MESSAGE_BYTES. */
iris_status_t iris_i_hip_fault_take(struct hip_stream *stream,
                                    const struct hip_outcome *end,
                                    char *message_p);

/* Lets every wait that the backend's streams do without a kernel come true, in
 * the order they come: a stream may wait for another one. Of two for one word a
 * stream may miss the first, and one that a thread holds up is left out: call
 * it again until the stream that matters is through. A stream that is idle has
 * none any more, unless the program has it, too: those are not asked. */
void iris_i_hip_force_waits(struct hip_backend *hip);

/* After iris_i_hip_stop_begin(): adds to what streams return for what this one
 * waits by itself, if it does. */
void iris_i_hip_tell_wait(struct hip_stream *stream);

/* The stream is behind the waits up to this number: puts back what was there,
 * and what was added since, unless somebody has set it since. The stream's lock
 * is held. */
void iris_i_hip_forget_waits(struct hip_stream *stream, uint64_t upto);

/* hip_launch.c. Loads all of the program's GPU code now: later it could wait
 * for kernels that wait. */
void iris_i_hip_load_images(struct hip_backend *hip);

/* IRIS_OK, or IRIS_ERR_STATE if the stream is being captured, which what
 * `what` names would break; that error. */
iris_status_t iris_i_hip_not_capturing(struct hip_stream *stream,
                                       const char *what);
iris_status_t iris_i_hip_fail_captured(const struct hip_stream *stream,
                                       const char *what);
bool iris_i_hip_capturing(struct hip_stream *stream);
iris_status_t iris_i_hip_launch(struct iris_stream *stream,
                                const struct iris_launch *launch);
iris_status_t iris_i_hip_capture_begin(struct iris_stream *stream);
iris_status_t iris_i_hip_capture_end(struct iris_stream *stream,
                                     void **graph_p);
iris_status_t iris_i_hip_graph_launch(struct iris_stream *stream, void *graph);
void iris_i_hip_graph_destroy(struct iris_backend *backend, void *graph);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_H */
