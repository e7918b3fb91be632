/* SPDX-License-Identifier: MIT
 *
 * What waits for too long or for the dead. Kernels: the word that ends them,
 * and the report of the lane that gave up (struct iris_dev_watch). Waits that
 * streams do without kernels: the host makes them come true.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <iris/device/op.h>

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* What the host writes to stop kernels; a lane that reports writes 1. */
#define STOPPED_BY_LANE 1
#define STOPPED_BY_HOST 2
/* How long a lane that has written 1 may take to make its report ready. Kernels
 * of other processes may have their turns on the GPU in between. */
#define READY_NS 100000000

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip)
{
    void *watch = NULL, *device = NULL;
    hipError_t error = iris_i_hip_pin(
        hip, HIP_WATCH_BYTES,
        hipHostMallocMapped | hipHostMallocCoherent | hipHostMallocPortable,
        &watch);

    if (error == hipSuccess) {
        memset(watch, 0, HIP_WATCH_BYTES);
        hip->watch = watch;
        pthread_mutex_init(&hip->fault_lock, NULL);
        error = hipHostGetDevicePointer(&device, watch, 0);
    }
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d gets no host memory that GPU %d maps",
                               hip->params.rank, hip->device);
    }
    hip->info.watch = (uint64_t)(uintptr_t)device;
    return IRIS_OK;
}

void iris_i_hip_watch_close(struct hip_backend *hip)
{
    if (hip->watch != NULL && !hip->abandoned) {
        pthread_mutex_destroy(&hip->fault_lock);
    }
    iris_i_hip_unpin(hip, hip->watch, HIP_WATCH_BYTES);
}

/* A word of the watch, as the host shares it with kernels. */
static _Atomic uint32_t *shared(uint32_t *word)
{
    return (_Atomic uint32_t *)word;
}

/* The lock is held. */
static void set_fault(struct hip_backend *hip, iris_status_t status,
                      const char *message)
{
    hip->num_faults++;
    hip->fault = status;
    snprintf(hip->fault_message, sizeof hip->fault_message, "%s", message);
}

void iris_i_hip_stop_begin(struct hip_backend *hip, iris_status_t status)
{
    uint32_t none = 0;

    pthread_mutex_lock(&hip->fault_lock);
    hip->num_stopping++;
    /* It stays if a lane has said so already. */
    (void)atomic_compare_exchange_strong(shared(&hip->watch->stop), &none,
                                         STOPPED_BY_HOST);
    set_fault(hip, status, iris_last_error());
    pthread_mutex_unlock(&hip->fault_lock);
}

void iris_i_hip_stop_end(struct hip_backend *hip)
{
    pthread_mutex_lock(&hip->fault_lock);
    hip->num_stopping--;
    pthread_mutex_unlock(&hip->fault_lock);
}

/* All that the stream has may have been ended, or is about to be. What the
 * program may have put there by itself counts as a piece. The lock is held, as
 * for the next two. */
static void hit(struct hip_stream *stream)
{
    stream->num_watched += stream->shared ? 1 : 0;
    stream->num_hit = stream->num_watched;
}

/* By what has gone wrong. */
static void see_faults(struct hip_stream *stream)
{
    const struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    if (stream->faults_seen != hip->num_faults) {
        stream->faults_seen = hip->num_faults;
        hit(stream);
    }
}

/* By what is ending kernels now. */
static void see_stop(struct hip_stream *stream)
{
    const struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    if (atomic_load(shared(&hip->watch->stop)) != 0) {
        hit(stream);
    }
}

void iris_i_hip_fault_share(struct hip_stream *stream)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    pthread_mutex_lock(&hip->fault_lock);
    see_faults(stream);
    stream->shared = true;
    see_stop(stream);
    pthread_mutex_unlock(&hip->fault_lock);
}

void iris_i_hip_fault_watch(struct hip_stream *stream)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    pthread_mutex_lock(&hip->fault_lock);
    see_faults(stream);
    stream->num_watched++;
    see_stop(stream);
    pthread_mutex_unlock(&hip->fault_lock);
}

uint64_t iris_i_hip_fault_work(struct hip_stream *stream)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    uint64_t work, coming = stream->enqueuing;

    pthread_mutex_lock(&hip->fault_lock);
    work = stream->num_watched;
    pthread_mutex_unlock(&hip->fault_lock);
    return work > coming ? work - coming : 0;
}

/* The lock is held. */
static void tell_upto(struct hip_stream *stream, uint64_t work)
{
    if (stream->num_told < work) {
        stream->num_told = work;
    }
}

/* A fault counts as a piece of a stream that the program has, too: nothing if
 * the stream is empty. One that was waited for past a mark has to be asked, and
 * who asks may be held up (iris_i_hip_force_waits()): only then. */
iris_status_t iris_i_hip_fault_take(struct hip_stream *stream,
                                    const struct hip_outcome *end,
                                    char *message_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    iris_status_t status = IRIS_OK;
    uint64_t before, with_fault;
    bool empty = end->empty;

    pthread_mutex_lock(&hip->fault_lock);
    before = stream->num_watched;
    see_faults(stream);
    with_fault = stream->num_watched;
    if (stream->num_hit > stream->num_told) {
        status = hip->fault;
        memcpy(message_p, hip->fault_message, sizeof hip->fault_message);
    }
    tell_upto(stream, end->finished ? end->work : 0);
    if (end->finished && end->work == before && with_fault != before) {
        pthread_mutex_unlock(&hip->fault_lock);
        if (!empty) {
            pthread_mutex_lock(&stream->lock);
            empty = iris_i_hip_is_idle(stream);
            pthread_mutex_unlock(&stream->lock);
        }
        pthread_mutex_lock(&hip->fault_lock);
        tell_upto(stream, empty ? with_fault : 0);
    }
    see_stop(stream);
    pthread_mutex_unlock(&hip->fault_lock);
    return status;
}

/* Copies a word beside all streams that wait. */
static bool copy_word(struct hip_backend *hip, void *to, const void *from)
{
    bool copied = hipMemcpyAsync(to, from, sizeof(uint64_t), hipMemcpyDefault,
                                 hip->services.copy) == hipSuccess &&
                  hipStreamSynchronize(hip->services.copy) == hipSuccess;

    (void)hipGetLastError();
    return copied;
}

/* The word in device memory that lanes compete for goes back to 0. By a copy,
 * since a fill may be a kernel that finds no room beside those that wait. */
static bool free_claim(struct hip_backend *hip)
{
    static const int64_t zero;
    int64_t *words = hip->heap.base;
    size_t place =
        IRIS_CONTEXT_OWN(hip->params.num_ranks, IRIS_CONTEXT_OWN_CLAIM);

    return copy_word(hip, &words[place], &zero);
}

/* A lane has said `stop`. If it has the claim its report is ready next, or has
 * been taken; else another lane's is, or was. */
static bool await_report(struct hip_backend *hip)
{
    int64_t end = iris_i_now_ns() + READY_NS;

    while (atomic_load(shared(&hip->watch->ready)) == 0) {
        if (iris_i_now_ns() >= end) {
            return false;
        }
    }
    return true;
}

static void take_report(struct hip_backend *hip)
{
    struct iris_dev_watch report = *hip->watch;
    const struct iris_backend_params *params = &hip->params;
    char message[IRIS_MESSAGE_BYTES], late[64] = "";

    if (report.op == IRIS_OP_BARRIER) {
        params->core_ops->describe_late(params->core,
                                        (char *)hip->heap.base + report.offset,
                                        late, sizeof late);
    }

    snprintf(
        message, sizeof message,
        "rank %d: a kernel waited for %lld ms (IRIS_DEVICE_TIMEOUT_MS) and "
        "was ended: lane %u of workgroup %u, in a %s, waited for the word "
        "at heap offset %llu to be %s %lld and last saw %lld%s%s",
        report.rank, (long long)(report.waited / (uint64_t)hip->info.clock_khz),
        report.lane, report.workgroup,
        report.op == IRIS_OP_BARRIER ? "barrier" : "wait",
        (unsigned long long)report.offset, iris_i_cmp_name(report.cmp),
        (long long)report.expected, (long long)report.seen,
        late[0] == '\0' ? ". Look at who should have written it" : ": ", late);
    set_fault(hip, IRIS_ERR_TIMEOUT, message);
}

/* Lanes gave up after the report was taken and before others could make one. */
static void note_unreported(struct hip_backend *hip)
{
    char message[IRIS_MESSAGE_BYTES];

    snprintf(message, sizeof message,
             "rank %d: a kernel waited for too long (IRIS_DEVICE_TIMEOUT_MS) "
             "and was ended, soon after another one, whose end was reported",
             hip->params.rank);
    set_fault(hip, IRIS_ERR_TIMEOUT, message);
}

/* Other streams' kernels may run on. As long as the claim is taken no other
 * lane writes to the watch but to `stop`, so it is freed last, and only by who
 * takes the report: a lane that is not ready yet still writes its own. */
void iris_i_hip_collect(struct hip_backend *hip)
{
    bool reported, claimed;

    if (atomic_load(shared(&hip->watch->stop)) == 0 &&
        atomic_load(shared(&hip->watch->ready)) == 0) {
        return;
    }
    pthread_mutex_lock(&hip->fault_lock);
    reported = atomic_load(shared(&hip->watch->ready)) != 0;
    if (!reported &&
        atomic_load(shared(&hip->watch->stop)) == STOPPED_BY_LANE) {
        reported = await_report(hip);
        if (!reported) {
            note_unreported(hip);
        }
    }
    if (reported) {
        take_report(hip);
        atomic_store(shared(&hip->watch->ready), 0);
    }
    /* A kernel that could not be ended is to end when it next waits. */
    atomic_store(shared(&hip->watch->stop),
                 hip->num_stopping == 0 && !hip->abandoned ? 0
                                                           : STOPPED_BY_HOST);
    claimed = reported || hip->claimed;
    hip->claimed = false;
    pthread_mutex_unlock(&hip->fault_lock);
    if (claimed && !free_claim(hip)) {
        pthread_mutex_lock(&hip->fault_lock);
        hip->claimed = true;
        pthread_mutex_unlock(&hip->fault_lock);
    }
}

/* ---- Waits without kernels ---- */

#define FAR (UINT64_C(1) << 62)

/* The last wait with a number in this range, or NULL; with `first`, the first
 * one. */
static struct hip_wait *find_wait(struct hip_stream *stream, uint64_t from,
                                  uint64_t upto, bool first)
{
    struct hip_wait *found = NULL;

    for (size_t i = 0; i < HIP_STREAM_WAITS; i++) {
        struct hip_wait *wait = &stream->waits[i];

        if (wait->number >= from && wait->number <= upto &&
            (found == NULL || (wait->number < found->number) == first)) {
            found = wait;
        }
    }
    return found;
}

/* As the hardware compares: GE is cyclic. */
static bool holds(const struct hip_wait *wait, uint64_t seen)
{
    return wait->cmp == IRIS_CMP_EQ ? seen == wait->value
                                    : (int64_t)(seen - wait->value) >= 0;
}

/* What ends the wait: of GE what no signal comes near, so that it can be told
 * from what peers write. */
static uint64_t forcing(const struct hip_wait *wait)
{
    return wait->cmp == IRIS_CMP_EQ ? wait->value : wait->value + FAR;
}

/* Whether what was seen there is what ended the wait, and *before_p what the
 * place would have without. */
static bool is_forced(const struct hip_wait *wait, uint64_t seen,
                      uint64_t *before_p)
{
    uint64_t added = seen - forcing(wait);

    if (!wait->forced || added >= (wait->cmp == IRIS_CMP_EQ ? 1 : FAR / 2)) {
        return false;
    }
    *before_p = wait->saved + added;
    return true;
}

/* What this place would have if the host had ended no wait there. Both locks of
 * force_wait() are held; a stream that is busy is passed over. */
static uint64_t unforced(struct hip_stream *self, const uint64_t *place,
                         uint64_t seen)
{
    struct hip_backend *hip = (struct hip_backend *)self->base.backend;
    bool found = false;

    for (struct hip_stream *stream = hip->streams; stream != NULL && !found;
         stream = stream->next) {
        if (stream != self && pthread_mutex_trylock(&stream->lock) != 0) {
            continue;
        }
        for (size_t i = 0; i < HIP_STREAM_WAITS && !found; i++) {
            const struct hip_wait *wait = &stream->waits[i];

            found = wait->number != 0 && wait->place == place &&
                    is_forced(wait, seen, &seen);
        }
        if (stream != self) {
            pthread_mutex_unlock(&stream->lock);
        }
    }
    return seen;
}

/* The lock of the list of streams is held, and the stream's. */
static void force_wait(struct hip_stream *stream, struct hip_wait *wait)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    uint64_t value = forcing(wait), seen;

    if (!copy_word(hip, &seen, wait->place) || holds(wait, seen)) {
        return;
    }
    if (!wait->forced || wait->cmp != IRIS_CMP_EQ) {
        /* GE again: a peer has set it since. */
        wait->saved = unforced(stream, wait->place, seen);
        wait->forced = true;
    }
    (void)copy_word(hip, wait->place, &value);
}

void iris_i_hip_force_waits(struct hip_backend *hip)
{
    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        struct hip_wait *wait;
        uint64_t from = 1;

        if (pthread_mutex_trylock(&stream->lock) != 0) {
            continue;
        }
        /* Waits that are over may have been for memory that is freed. Where the
         * program enqueues, too, a call of its own may wait for room, for what
         * is to be ended here, and who asks would wait with it. */
        if (!stream->shared && iris_i_hip_is_idle(stream)) {
            iris_i_hip_forget_waits(stream, UINT64_MAX);
        }
        while ((wait = find_wait(stream, from, UINT64_MAX, true)) != NULL) {
            force_wait(stream, wait);
            from = wait->number + 1;
        }
        pthread_mutex_unlock(&stream->lock);
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* Undoes force_wait(). */
static void restore(struct hip_backend *hip, const struct hip_wait *wait)
{
    uint64_t seen, before;

    if (copy_word(hip, &seen, wait->place) && is_forced(wait, seen, &before)) {
        (void)copy_word(hip, wait->place, &before);
    }
}

/* The first wait whose word it still waits for, or NULL; the stream's lock is
 * held. */
static const struct hip_wait *first_open(struct hip_stream *stream,
                                         uint64_t *seen_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    const struct hip_wait *wait;
    uint64_t from = 1;

    while ((wait = find_wait(stream, from, UINT64_MAX, true)) != NULL &&
           (!copy_word(hip, seen_p, wait->place) || holds(wait, *seen_p))) {
        from = wait->number + 1;
    }
    return wait;
}

void iris_i_hip_tell_wait(struct hip_stream *stream)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    const struct hip_wait *wait;
    char message[IRIS_MESSAGE_BYTES] = "";
    uint64_t seen;

    pthread_mutex_lock(&stream->lock);
    wait = first_open(stream, &seen);
    if (wait != NULL) {
        snprintf(message, sizeof message,
                 "%s; the stream itself waits for the word at heap offset %zu "
                 "to be %s %llu and last saw %llu",
                 iris_last_error(),
                 (size_t)((char *)wait->place - (char *)hip->heap.base),
                 iris_i_cmp_name(wait->cmp), (unsigned long long)wait->value,
                 (unsigned long long)seen);
    }
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_lock(&hip->fault_lock);
    if (message[0] != '\0' &&
        strcmp(hip->fault_message, iris_last_error()) == 0) {
        memcpy(hip->fault_message, message, sizeof message);
    }
    pthread_mutex_unlock(&hip->fault_lock);
}

void iris_i_hip_forget_waits(struct hip_stream *stream, uint64_t upto)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    struct hip_wait *wait;

    while ((wait = find_wait(stream, 1, upto, false)) != NULL) {
        if (wait->forced) {
            restore(hip, wait);
        }
        memset(wait, 0, sizeof *wait);
    }
}
