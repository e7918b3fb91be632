/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's streams: queues in order that threads take from. A
 * stream's threads come with its work and go when there is none for a moment.
 */
#include "config.h"

#include "fake.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_stream.h"

#include "base/processor.h"

/* How long an idle thread stays. */
#define LINGER_NS 3000000
/* Operations that a stream has room for. */
#define ROOM 1024
/* Streams and graphs that a GPU has room for at first. */
#define FIRST_ROOM 16
/* Kernels and copies in graphs, the same. */
#define FIRST_NODES 4096

pthread_mutex_t fake_streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ihipStream_t *streams; /* under the lock, as all of them are */
static struct ihipStream_t *defaults[FAKE_MAX_DEVICES];
pthread_cond_t fake_progress = PTHREAD_COND_INITIALIZER;

/* ---- Threads ---- */

static unsigned width(const struct fake_op *op)
{
    return op->kind == FAKE_LAUNCH ? op->launch.grid : 1;
}

static void run(hipStream_t stream, const struct fake_op *op, unsigned id)
{
    if (op->kind == FAKE_CALLBACK) {
        fake_call_back(stream, op);
        return;
    }
    if (op->error != hipSuccess) {
        return;
    }
    switch (op->kind) {
    case FAKE_COPY:
        fake_copy(op->dst, op->src, op->bytes);
        break;
    case FAKE_COPY_ROWS:
        for (size_t i = 0; i < op->rows; i++) {
            fake_copy((char *)op->dst + i * op->dst_pitch,
                      (const char *)op->src + i * op->src_pitch, op->bytes);
        }
        break;
    case FAKE_FILL:
        fake_fill(op->dst, (int)op->value, op->bytes);
        break;
    case FAKE_WRITE:
        atomic_store((_Atomic uint64_t *)op->dst, op->value);
        break;
    case FAKE_WAIT:
        fake_wait(op);
        break;
    case FAKE_FOLLOW:
        fake_follow(op);
        break;
    case FAKE_LAUNCH:
        fake_run_workgroup(op, id);
        break;
    case FAKE_CALLBACK:
        break;
    }
}

/* Whose first work it is: as on CUDA, that of new streams shares a queue. */
static hipStream_t newcomers[FAKE_MAX_DEVICES];

/* Whether another stream has a kernel to do that came before. */
static bool is_behind(hipStream_t own, uint64_t number)
{
    for (hipStream_t one = streams; one != NULL; one = one->next) {
        for (struct fake_op *op = one->head; op != NULL; op = op->next) {
            if (one->device == own->device && one != own &&
                op->kind == FAKE_LAUNCH && op->number < number) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the stream's head may begin; the lock is held. */
static bool may_begin(hipStream_t stream)
{
    if (newcomers[stream->device] == NULL && stream->completed == 0) {
        newcomers[stream->device] = stream;
    }
    return (newcomers[stream->device] == stream || stream->completed != 0) &&
           !(stream->head->queued && is_behind(stream, stream->head->number));
}

/* Takes the head off its stream; the lock is held. */
static void retire(hipStream_t stream)
{
    struct fake_op *op = stream->head;

    stream->head = op->next;
    stream->completed++;
    stream->held -= !op->takes_no_room;
    if (stream->completed == 1) {
        newcomers[stream->device] = NULL;
    }
    pthread_cond_broadcast(&stream->work);
    pthread_cond_broadcast(&fake_progress);
    free(op);
}

/* Waits for work; false if there is none for a while. The lock is held. */
static bool linger(hipStream_t stream)
{
    struct timespec end;

    if (stream->head != NULL) {
        pthread_cond_wait(&stream->work, &fake_streams_lock);
        return true;
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += LINGER_NS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    return stream->quit ||
           pthread_cond_timedwait(&stream->work, &fake_streams_lock, &end) == 0;
}

static void *thread_main(void *argument)
{
    hipStream_t stream = argument;
    bool stays = true;

    (void)iris_i_fp_enter(); /* a GPU knows no environment of the host */
    pthread_mutex_lock(&fake_streams_lock);
    while (stream->head != NULL || (stays && !stream->quit)) {
        struct fake_op *op = stream->head;
        unsigned id;

        if (op == NULL || op->begun == width(op)) {
            stays = linger(stream);
            continue;
        }
        if (!may_begin(stream)) {
            pthread_cond_wait(&fake_progress, &fake_streams_lock);
            continue;
        }
        if (op->begun == 0) {
            op->error = fake_begin_work();
        }
        id = op->begun++;
        pthread_mutex_unlock(&fake_streams_lock);
        run(stream, op, id);
        pthread_mutex_lock(&fake_streams_lock);
        if (++op->done == width(op)) {
            retire(stream);
        }
    }
    stream->threads--;
    pthread_cond_broadcast(&fake_progress);
    pthread_mutex_unlock(&fake_streams_lock); /* the stream may be gone now */
    return NULL;
}

/* Sees to it that there are threads for the operation; the lock is held. */
static bool need_threads(hipStream_t stream, const struct fake_op *op)
{
    unsigned cus = (unsigned)fake_setting("FAKEHIP_CUS", 4);
    unsigned need = width(op) < cus ? width(op) : cus;
    sigset_t all, before;
    pthread_t thread;
    int ret = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (ret == 0 && stream->threads < need) {
        ret = pthread_create(&thread, NULL, thread_main, stream);
        if (ret == 0) {
            pthread_detach(thread);
            stream->threads++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ret == 0;
}

struct fake_op *fake_op_copy(const struct fake_op *op, const void *args)
{
    size_t bytes = op->kind == FAKE_LAUNCH ? op->bytes : 0;
    struct fake_op *copy =
        aligned_alloc(_Alignof(struct fake_op),
                      (sizeof *op + bytes + _Alignof(struct fake_op) - 1) /
                          _Alignof(struct fake_op) * _Alignof(struct fake_op));

    if (copy != NULL) {
        memcpy(copy, op, sizeof *op);
        copy->next = NULL;
        copy->begun = copy->done = 0;
        if (bytes != 0) {
            memcpy(copy->args, args, bytes);
        }
    }
    return copy;
}

/* Whether a copy goes ahead of the fill that came before it. */
static bool is_overtaken(const struct fake_op *fill, const struct fake_op *op)
{
    return fill->kind == FAKE_FILL && fill->next == NULL && fill->begun == 0 &&
           op->kind == FAKE_COPY && fake_quirk("copy-before-fill");
}

/* Whether streams may come to any queue, as HIP's default is. */
static bool moves_streams(void)
{
    const char *dynamic = getenv("DEBUG_HIP_DYNAMIC_QUEUES");

    return dynamic == NULL || strcmp(dynamic, "0") != 0;
}

static hipError_t push(hipStream_t stream, struct fake_op *op)
{
    static uint64_t pushed;
    struct fake_op **link = &stream->head;

    if (stream->capture != NULL) {
        op->lane = stream->lane;
        fake_graph_append(stream->capture, op);
        return hipSuccess;
    }
    if (!need_threads(stream, op)) {
        free(op);
        return hipErrorOutOfMemory;
    }
    while (*link != NULL && !is_overtaken(*link, op)) {
        link = &(*link)->next;
    }
    op->next = *link;
    *link = op;
    op->number = ++pushed;
    op->queued = (op->kind == FAKE_COPY || op->kind == FAKE_COPY_ROWS) &&
                 is_behind(stream, pushed) && fake_quirk("copy-behind-kernel");
    op->queued |=
        op->kind == FAKE_LAUNCH && (stream->shares_queue || moves_streams()) &&
        is_behind(stream, pushed) && fake_quirk("kernel-behind-kernel");
    stream->submitted++;
    stream->held += !op->takes_no_room;
    pthread_cond_broadcast(&stream->work);
    return hipSuccess;
}

/* Who enqueues to a full stream waits, and who comes after it, too, whatever
 * the stream. (CUDA 13.0 holds up those of the same stream only, and those that
 * ask about it; others are said to have held up all.) */
static pthread_mutex_t enqueue_lock = PTHREAD_MUTEX_INITIALIZER;

hipError_t fake_enqueue(hipStream_t handle, const struct fake_op *op,
                        const void *args)
{
    struct fake_op *copy = fake_op_copy(op, args);
    hipStream_t stream;
    hipError_t error;

    if (copy == NULL) {
        return hipErrorOutOfMemory;
    }
    pthread_mutex_lock(&enqueue_lock);
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    while (error == hipSuccess && stream->capture == NULL &&
           stream->held >= ROOM && !op->takes_no_room) {
        pthread_cond_wait(&fake_progress, &fake_streams_lock);
    }
    if (error == hipSuccess && stream->shares_queue &&
        fake_quirk("shared-queues")) {
        error = hipErrorLaunchFailure;
    }
    if (error == hipSuccess && op->kind == FAKE_LAUNCH &&
        stream->device != fake_device()) {
        error = hipErrorInvalidHandle;
    }
    if (error == hipSuccess) {
        error = push(stream, copy);
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&fake_streams_lock);
    pthread_mutex_unlock(&enqueue_lock);
    return error;
}

/* ---- Streams ---- */

/* Beyond the number of queues, a stream shares one. */
static bool shares_queue(int device)
{
    long long others = 0;

    for (hipStream_t one = streams; one != NULL; one = one->next) {
        others += one->device == device && !one->hidden;
    }
    return others >= fake_setting("GPU_MAX_HW_QUEUES", 4);
}

/* Queues enough, unless a test says otherwise, or runs with quirks. */
__attribute__((constructor)) static void set_queues(void)
{
    if (getenv("FAKEHIP_QUIRKS") == NULL) {
        (void)setenv("GPU_MAX_HW_QUEUES", "1000", 0);
    }
}

static hipStream_t make(int device)
{
    hipStream_t stream = calloc(1, sizeof *stream);

    if (stream != NULL) {
        stream->device = device;
        stream->shares_queue = shares_queue(device);
        pthread_cond_init(&stream->work, NULL);
        stream->next = streams;
        streams = stream;
    }
    return stream;
}

hipError_t fake_stream_find(hipStream_t handle, hipStream_t *stream_p)
{
    hipStream_t stream = streams;

    if (handle == NULL) {
        if (defaults[fake_device()] == NULL) {
            defaults[fake_device()] = make(fake_device());
        }
        *stream_p = defaults[fake_device()];
        return *stream_p == NULL ? hipErrorOutOfMemory : hipSuccess;
    }
    while (stream != NULL && stream != handle) {
        stream = stream->next;
    }
    *stream_p = stream;
    return stream == NULL ? hipErrorInvalidHandle : hipSuccess;
}

void fake_count_streams(struct fakehip_counts *counts_p)
{
    pthread_mutex_lock(&fake_streams_lock);
    for (hipStream_t one = streams; one != NULL; one = one->next) {
        counts_p->streams += one != defaults[one->device] && !one->hidden;
        counts_p->captures += one->capture != NULL;
    }
    counts_p->graphs = fake_graphs_live;
    pthread_mutex_unlock(&fake_streams_lock);
}

void fakehip_wait_for_all(void)
{
    hipStream_t one;

    pthread_mutex_lock(&fake_streams_lock);
    for (one = streams; one != NULL;) {
        if (one->completed >= one->submitted) {
            one = one->next;
        } else {
            pthread_cond_wait(&fake_progress, &fake_streams_lock);
            one = streams; /* it may be gone */
        }
    }
    pthread_mutex_unlock(&fake_streams_lock);
}

hipError_t fake_refuse_capture(void)
{
    hipError_t error = hipSuccess;

    pthread_mutex_lock(&fake_streams_lock);
    for (hipStream_t one = streams; one != NULL; one = one->next) {
        if (fake_is_forbidden(one)) {
            one->broken = true;
            error = hipErrorStreamCaptureUnsupported;
        }
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return error;
}

void fake_wait_for_device(int device)
{
    hipStream_t one;

    pthread_mutex_lock(&fake_streams_lock);
    do {
        for (one = streams; one != NULL; one = one->next) {
            if (one->device == device && one->completed != one->submitted) {
                pthread_cond_wait(&fake_progress, &fake_streams_lock);
                break;
            }
        }
    } while (one != NULL);
    pthread_mutex_unlock(&fake_streams_lock);
}

/* As on CUDA: making room for another stream or graph waits for all that runs,
 * and those who enqueue wait for that. The room stays. */
void fake_make_room(unsigned nodes)
{
    static struct {
        unsigned things, nodes;
    } room[FAKE_MAX_DEVICES]; /* under the enqueue_lock */
    int device = fake_device();
    unsigned things = 1;

    pthread_mutex_lock(&enqueue_lock);
    pthread_mutex_lock(&fake_streams_lock);
    things += (unsigned)fake_graphs_live;
    nodes += fake_nodes_live;
    for (hipStream_t one = streams; one != NULL; one = one->next) {
        things += one->device == device && !one->hidden;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    if ((things > FIRST_ROOM && things > room[device].things) ||
        (nodes > FIRST_NODES && nodes > room[device].nodes)) {
        fake_wait_for_device(device);
        room[device].things =
            things > room[device].things ? things : room[device].things;
        room[device].nodes =
            nodes > room[device].nodes ? nodes : room[device].nodes;
    }
    pthread_mutex_unlock(&enqueue_lock);
}

FAKE_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *stream_p,
                                                unsigned flags)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    (void)flags;
    if (error != hipSuccess) {
        return error;
    }
    fake_make_room(0);
    pthread_mutex_lock(&fake_streams_lock);
    stream = make(fake_device());
    pthread_mutex_unlock(&fake_streams_lock);
    if (stream == NULL) {
        return fake_leave(hipErrorOutOfMemory);
    }
    *stream_p = stream;
    return hipSuccess;
}

/* Ends what there is of the stream, which no handle finds any more; the lock is
 * held. */
static void finish(hipStream_t stream)
{
    while (stream->completed != stream->submitted) {
        pthread_cond_wait(&fake_progress, &fake_streams_lock);
    }
    stream->quit = true;
    pthread_cond_broadcast(&stream->work);
    while (stream->threads != 0) {
        pthread_cond_wait(&fake_progress, &fake_streams_lock);
    }
    if (stream->capture != NULL && stream->lane == 0) {
        fake_graph_free(stream->capture);
    }
    pthread_cond_destroy(&stream->work);
    free(stream);
}

hipError_t fake_stream_destroy(hipStream_t handle)
{
    hipStream_t *link = &streams;

    while (*link != NULL && *link != handle) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return hipErrorInvalidHandle;
    }
    *link = handle->next;
    finish(handle);
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipStreamDestroy(hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);

    pthread_mutex_lock(&fake_streams_lock);
    if (fake_stream_destroy(handle) != hipSuccess) {
        error = hipErrorInvalidHandle;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

void fake_streams_leave(hipGraph_t capture)
{
    for (hipStream_t one = streams; one != NULL; one = one->next) {
        if (one->capture == capture) {
            one->capture = NULL;
        }
    }
}

/* It has had its first work. */
hipStream_t fake_stream_hide(int device)
{
    hipStream_t stream = make(device);

    if (stream != NULL) {
        stream->hidden = true;
        stream->submitted = stream->completed = 1;
    }
    return stream;
}

hipError_t fake_stream_lock_idle(hipStream_t handle, hipStream_t *stream_p)
{
    hipError_t error;

    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, stream_p);
    if (error == hipSuccess && (*stream_p)->capture != NULL) {
        (*stream_p)->broken = true;
        error = hipErrorStreamCaptureUnsupported;
    }
    if (error != hipSuccess) {
        pthread_mutex_unlock(&fake_streams_lock);
    }
    return error;
}
