/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime: what its files share.
 */
#ifndef IRIS_TESTS_FAKEHIP_FAKE_H
#define IRIS_TESTS_FAKEHIP_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "fakehip.h"

#define FAKE_MAX_DEVICES 64

/* HIP's headers do not say it. */
#define FAKE_EXPORT __attribute__((visibility("default")))

/* ---- fake_device.c ---- */

/* Every call but those that cannot fail begins with fake_enter(__func__): what
 * it returns but hipSuccess, the call returns. And it ends with fake_leave(),
 * which notes an error as the thread's last. */
hipError_t fake_enter(const char *call);
hipError_t fake_leave(hipError_t error);

/* fake_enter() for what is a driver call on other GPUs: an error in a thread
 * that has not set its device. */
hipError_t fake_enter_driver(const char *call);

/* fake_enter() for work of a stream, whose errors stay for ever. */
hipError_t fake_begin_work(void);

/* An error that stays: all calls fail, kernels end. hipSuccess: none. What
 * frees does so whether it fails or not, since the error may be an earlier
 * call's. */
hipError_t fake_lost(void);

/* The calling thread's GPU, as the program sees it. */
int fake_device(void);

/* Whether two GPUs reach each other. */
bool fake_linked(int one, int other);

/* HIP's version. The second is for what crashes before that one. */
int fake_version(void);
void fake_need_version(int version);

/* A number from the environment. */
long long fake_setting(const char *name, long long otherwise);

/* Whether this runtime has the quirk (FAKEHIP_QUIRKS) now. */
bool fake_quirk(const char *name);

/* Set in a stream's callback, which may make no calls. */
extern _Thread_local bool fake_in_callback;

/* ---- fake_memory.c ---- */

enum fake_kind {
    FAKE_MEMORY, /* of a device */
    FAKE_PINNED, /* of the host */
    FAKE_IMPORT, /* another process's */
    FAKE_MAPPED, /* a range that memory is mapped into, page by page */
};

/* A range of addresses that the runtime knows. */
struct fake_range {
    struct fake_range *next;
    enum fake_kind kind;
    int device;
    char *start; /* of the whole, from where IPC shares it */
    size_t bytes;
    char *ptr; /* what the program got of it */
    int fd;    /* the memory; -1: none */
};

/* Adds a copy; removes one that begins for the program at `ptr`, whose memory
 * is then the caller's. Both take the lock. */
hipError_t fake_range_add(const struct fake_range *range);
bool fake_range_remove(const void *ptr, enum fake_kind kind,
                       struct fake_range *range_p);

/* Copies what is known of the range that holds an address. */
bool fake_range_find(const void *ptr, struct fake_range *range_p);

/* Memory that other processes can map by its descriptor; a map of it. */
hipError_t fake_memory_create(size_t bytes, int *fd_p);
hipError_t fake_memory_map(int fd, size_t bytes, char **start_p);

/* Takes bytes off the device's, if it has them; gives them back. */
bool fake_memory_take(int device, size_t bytes);
void fake_memory_give(int device, size_t bytes);

/* ---- fake_vmem.c ---- */

void fake_count_vmem(struct fakehip_counts *counts_p);

/* ---- fake_memory.c, for work ---- */

/* Fills as memset does, but leaves no page behind zeros. */
void fake_fill(void *dst, int value, size_t bytes);

/* ---- fake_stream.c ---- */

/* Copied with what follows it. */
struct fake_launch {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
};

enum fake_op_kind {
    FAKE_COPY,
    FAKE_COPY_ROWS,
    FAKE_FILL,
    FAKE_WRITE,
    FAKE_WAIT,
    FAKE_CALLBACK,
    FAKE_FOLLOW,
    FAKE_LAUNCH,
};

struct fake_op {
    struct fake_op *next;
    enum fake_op_kind kind;
    bool takes_no_room; /* in its stream: a graph's kernels and copies */
    bool queued;        /* behind kernels that came before to other streams */
    uint64_t number;    /* of all there were */
    unsigned lane;      /* in a graph: which of its streams' */
    struct ihipStream_t *other; /* FAKE_FOLLOW: the stream, in a graph its */
    unsigned other_lane;        /* lane, that has `value` operations to do */
    void *dst;
    const void *src;
    uint64_t value;
    size_t bytes; /* of a launch: of its arguments; of rows: of one */
    size_t rows;
    size_t dst_pitch;
    size_t src_pitch;
    hipStreamCallback_t callback;
    void *argument;
    struct fake_launch launch;
    unsigned begun; /* workgroups; other kinds count as one */
    unsigned done;
    hipError_t error; /* hipSuccess: it is done */
    _Alignas(64) unsigned char args[];
};

/* Appends a copy of the operation, with `args`, to what the stream does or to
 * what it captures. */
hipError_t fake_enqueue(hipStream_t stream, const struct fake_op *op,
                        const void *args);

/* Blocks until no stream of the GPU has work. */
void fake_wait_for_device(int device);

/* For calls that do not belong in captures: an error if one forbids them to
 * this thread, which is then void. */
hipError_t fake_refuse_capture(void);

void fake_count_streams(struct fakehip_counts *counts_p);

/* ---- fake_launch.c ---- */

/* Runs a workgroup of a launch until its end, or until it ends itself. */
void fake_run_workgroup(const struct fake_op *op, unsigned id);

/* A stream's wait for a word. */
void fake_wait(const struct fake_op *op);

#endif /* IRIS_TESTS_FAKEHIP_FAKE_H */
