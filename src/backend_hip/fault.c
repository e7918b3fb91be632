/* SPDX-License-Identifier: MIT
 *
 * The watch: how kernels of a GPU end, and the fault that says why.
 *
 * The watch is memory of the host that kernels look at while they wait. Its `stop`
 * is 0 while all is well. A lane that gives up claims it, writes a report and sets
 * `ready`; the host claims it by STOPPED_BY_HOST. Either way every kernel that
 * waits ends, and the reason becomes the instance's fault. The host then writes
 * the words that streams wait for without a kernel, until the streams are done or
 * two seconds have passed: that work is given up. iris_clear_error() resets the
 * watch once all streams are idle.
 *
 * A lane that waits for long notes the word in the watch, and the host copies the
 * note to the flight record. The watch's lock guards all changes by the host.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include "backend/backend.h"
#include "base/base.h"
#include <iris/device/watch/op.h>

#include <stdio.h>
#include <string.h>

/* The value that the host writes to `stop`; a lane that reports writes 1. */
#define STOPPED_BY_HOST 2
/* Time that a lane has, after writing `stop`, to complete its report. Kernels
 * of other processes may take turns on the GPU in between. */
#define READY_MS 100
/* Time that ended kernels have before they are given up. */
#define GRACE_MS 2000
#define NS_PER_MS 1000000
/* A waiting lane writes its note 32 times a second. After this time without
 * one, the wait has ended. */
#define STALE_NS 500000000

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip) IRIS_UNCHECKED
{
    void *device = NULL;
    void *pinned = NULL;
    hipError_t error = iris_i_hip_pin(hip, sizeof *hip->pinned, &pinned);

    hip->pinned = pinned;

    if (error == hipSuccess) {
        memset(&hip->pinned->watch, 0, sizeof hip->pinned->watch);
        hip->note.slot = -1;
        error = hipHostGetDevicePointer(&device, hip->pinned, 0);
    }
    hip->info.watch = (uint64_t)(uintptr_t)device;
    return iris_i_hip_fail(hip, error, "no %zu bytes of pinned memory",
                           sizeof(struct hip_pinned));
}

/* Words of the watch, which the host shares with kernels. */
static _Atomic uint32_t *get_stop(struct hip_backend *hip)
{
    return (_Atomic uint32_t *)&hip->pinned->watch.stop;
}

static _Atomic uint32_t *get_ready(struct hip_backend *hip)
{
    return (_Atomic uint32_t *)&hip->pinned->watch.ready;
}

/* ---- Reports ---- */

/* A report about requests to other nodes; a refusal has no time. */
static int is_refusal(const struct iris_dev_watch *report)
{
    return report->op == IRIS_OP_FENCE && report->waited == 0;
}

static void describe_far(struct hip_backend *hip,
                         const struct iris_dev_watch *report, char *message,
                         size_t bytes)
{
    const struct iris_backend_params *params = &hip->params;
    char late[64] = "";

    if (is_refusal(report)) {
        snprintf(message, bytes,
                 "rank %d: a kernel, workgroup %u: an access to another node "
                 "was refused: it touches memory of its target that is not "
                 "allocated, or the target's GPU has failed",
                 report->rank, report->workgroup);
        return;
    }
    params->core_ops->describe_late(params->core, NULL, late, sizeof late);
    snprintf(message, bytes,
             "rank %d: a kernel waited for %lld ms (IRIS_DEVICE_TIMEOUT_MS) "
             "for another node and was ended: lane %u of workgroup %u%s%s",
             report->rank,
             (long long)(report->waited / (uint64_t)hip->info.clock_khz),
             report->lane, report->workgroup, late[0] == '\0' ? "" : ": ",
             late);
}

static void describe_report(struct hip_backend *hip, char *message,
                            size_t bytes)
{
    const struct iris_dev_watch report = hip->pinned->watch;
    const struct iris_backend_params *params = &hip->params;
    char late[64] = "";

    if (report.op == IRIS_OP_FENCE) { /* a wait for other nodes */
        describe_far(hip, &report, message, bytes);
        return;
    }
    if (report.op == IRIS_OP_BARRIER) {
        params->core_ops->describe_late(params->core,
                                        (char *)hip->heap.base + report.offset,
                                        late, sizeof late);
    }
    snprintf(
        message, bytes,
        "rank %d: a kernel waited for %lld ms (IRIS_DEVICE_TIMEOUT_MS) "
        "and was ended: lane %u of workgroup %u, in a %s, waited for the "
        "word at heap offset %llu to be %s %lld and last saw %lld%s%s",
        report.rank, (long long)(report.waited / (uint64_t)hip->info.clock_khz),
        report.lane, report.workgroup,
        report.op == IRIS_OP_BARRIER ? "barrier" : "wait",
        (unsigned long long)report.offset, iris_i_cmp_name(report.cmp),
        (long long)report.expected, (long long)report.seen,
        late[0] == '\0' ? ". Find the code that should write it" : ": ", late);
}

/* ---- Notes of current waits ---- */

static int64_t convert_ticks(const struct hip_backend *hip, uint64_t ticks)
{
    return hip->info.clock_khz == 0
               ? 0
               : (int64_t)(ticks / (uint64_t)hip->info.clock_khz) * NS_PER_MS;
}

/* A lane does not know its kernel and stream: the core finds them if it can. */
static void fill_note(const struct hip_backend *hip,
                      const struct iris_dev_watch *watch, int64_t now,
                      struct iris_wait_note *note)
{
    int64_t begin = now - convert_ticks(hip, watch->note_waited);
    char *address = (char *)hip->heap.base + watch->note_offset;

    /* The same wait, as far as its ticks and polls show. */
    if (note->slot < 0 || note->address != address ||
        note->value != (int64_t)watch->note_expected ||
        begin - note->begin_ns > STALE_NS) {
        *note = (struct iris_wait_note){.slot = note->slot, .begin_ns = begin};
    }
    note->workgroup = watch->note_workgroup;
    note->op = watch->note_op;
    note->address = address;
    note->bytes = watch->note_bytes;
    note->is_unsigned = watch->note_unsigned != 0;
    note->cmp = (iris_cmp_t)watch->note_cmp;
    note->value = (int64_t)watch->note_expected;
    note->seen = (int64_t)watch->note_seen;
    note->now_ns = now;
}

/* Ends the note of a wait; the wait itself may have been ended. */
static void end_note(struct hip_backend *hip, int ended)
    IRIS_REQUIRES(hip->watch_lock)
{
    const struct iris_backend_params *params = &hip->params;
    int64_t now = iris_i_now_ns();

    if (hip->note_ns == 0) {
        return;
    }
    if (ended && now - hip->note_ns < STALE_NS) {
        hip->note.ended = 1;
        hip->note.now_ns = now;
        params->core_ops->note_wait(params->core, &hip->note);
    }
    params->core_ops->wait_over(params->core, &hip->note);
    hip->note = (struct iris_wait_note){.slot = -1};
    hip->note_ns = 0;
}

/* Reads a new note. A note that was not renewed for long has ended. */
static void take_note(struct hip_backend *hip) IRIS_REQUIRES(hip->watch_lock)
{
    _Atomic uint64_t *beat_of = (_Atomic uint64_t *)&hip->pinned->watch.beat;
    const struct iris_backend_params *params = &hip->params;
    uint64_t beat = *beat_of;
    const struct iris_dev_watch watch = hip->pinned->watch;
    int64_t now = iris_i_now_ns();

    atomic_thread_fence(memory_order_acquire);
    if (beat == hip->note_beat) {
        if (hip->note_ns != 0 && now - hip->note_ns > STALE_NS) {
            end_note(hip, 0);
        }
        return;
    }
    if (*beat_of != beat) {
        return;
    }
    fill_note(hip, &watch, now, &hip->note);
    hip->note_beat = beat;
    hip->note_ns = now;
    params->core_ops->note_wait(params->core, &hip->note);
}

/* Checks before it takes the lock, because it is called very often. */
static void look_for_note(struct hip_backend *hip)
{
    uint64_t beat = *(_Atomic uint64_t *)&hip->pinned->watch.beat;

    if (beat == hip->note_beat && hip->note_ns == 0) {
        return;
    }
    pthread_mutex_lock(&hip->watch_lock);
    if (iris_i_fault_check(&hip->base) == IRIS_OK) {
        take_note(hip);
    }
    pthread_mutex_unlock(&hip->watch_lock);
}

void iris_i_hip_raise(struct hip_backend *hip, iris_status_t status)
{
    uint32_t none = 0;

    pthread_mutex_lock(&hip->watch_lock);
    (void)iris_i_fault_set(&hip->base, status, iris_last_error());
    /* A lane may have set it already. */
    (void)atomic_compare_exchange_strong(get_stop(hip), &none, STOPPED_BY_HOST);
    end_note(hip, 1);
    pthread_mutex_unlock(&hip->watch_lock);
}

/* Notes the report of a lane that has ended itself. */
static void note_report(struct hip_backend *hip) IRIS_REQUIRES(hip->watch_lock)
{
    const struct iris_dev_watch report = hip->pinned->watch;
    const struct iris_backend_params *params = &hip->params;
    int64_t now = iris_i_now_ns();
    struct iris_wait_note note = {
        .slot = -1,
        .ended = 1,
        .workgroup = report.workgroup,
        .op = report.op,
        .address = report.op == IRIS_OP_FENCE
                       ? NULL /* no word, another node */
                       : (char *)hip->heap.base + report.offset,
        .bytes = report.bytes,
        .is_unsigned =
            report.offset == report.note_offset && report.note_unsigned != 0,
        .cmp = (iris_cmp_t)report.cmp,
        .value = (int64_t)report.expected,
        .seen = (int64_t)report.seen,
        .begin_ns = now - convert_ticks(hip, report.waited),
        .now_ns = now,
    };

    end_note(hip, 0);
    params->core_ops->note_wait(params->core, &note);
    params->core_ops->wait_over(params->core, &note);
}

/* A lane has set `stop`: the lane with the claim completes its report next. */
static void take_report(struct hip_backend *hip) IRIS_REQUIRES(hip->watch_lock)
{
    char message[IRIS_MESSAGE_BYTES];
    const struct iris_dev_watch *report = &hip->pinned->watch;
    iris_status_t status = IRIS_ERR_TIMEOUT;
    struct iris_wait wait;

    iris_i_wait_moment(&wait, READY_MS);
    while (*get_ready(hip) == 0 && iris_i_wait_tick(&wait) == IRIS_OK) {
    }
    snprintf(message, sizeof message,
             "rank %d: a kernel waited for too long (IRIS_DEVICE_TIMEOUT_MS) "
             "and was ended; it made no report",
             hip->params.rank);
    if (*get_ready(hip) != 0 && report->bytes == 0) {
        status = iris_i_mismatch_describe(&report->mismatch, message,
                                          sizeof message);
    } else if (*get_ready(hip) != 0) {
        status = is_refusal(report) ? IRIS_ERR_INVALID : status;
        describe_report(hip, message, sizeof message);
        note_report(hip);
    }
    (void)iris_i_fault_set(&hip->base, status, message);
}

iris_status_t iris_i_hip_check(struct hip_backend *hip)
{
    iris_status_t status = iris_i_fault_check(&hip->base);

    if (status == IRIS_OK && *get_stop(hip) == 0) {
        look_for_note(hip);
    }
    if (status != IRIS_OK || *get_stop(hip) == 0) {
        return status;
    }
    pthread_mutex_lock(&hip->watch_lock); /* excludes raising and clearing */
    if (*get_stop(hip) != 0 && iris_i_fault_check(&hip->base) == IRIS_OK) {
        take_report(hip);
    }
    pthread_mutex_unlock(&hip->watch_lock);
    return iris_i_fault_check(&hip->base);
}

/* ---- Clearing ---- */

bool iris_i_hip_end_work(struct hip_backend *hip, bool (*is_done)(void *arg),
                         void *arg)
{
    struct iris_wait wait;
    bool done;

    iris_i_wait_moment(&wait, GRACE_MS);
    do {
        done = is_done(arg);
        if (!done) {
            iris_i_hip_end_waits(hip);
        }
    } while (!done && iris_i_wait_tick(&wait) == IRIS_OK);
    return done;
}

/* Resets the word in device memory that lanes compete for. Uses a copy, since a
 * fill may be a kernel that finds no free compute unit. The copy also shows
 * whether the runtime works. */
static bool free_claim(struct hip_backend *hip)
{
    static const int64_t zero;
    size_t word =
        IRIS_CONTEXT_OWN(hip->params.num_ranks, IRIS_CONTEXT_OWN_CLAIM);
    char *context = (char *)hip->heap.base + IRIS_CONTEXT_OFFSET;

    return iris_i_hip_copy_word(hip, context + word * sizeof zero, &zero);
}

/* Records the current work of the streams. */
static void mark_all(struct hip_backend *hip)
{
    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        stream->clear_at = stream->shared ? 0 : stream->submitted;
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* Whether all streams have done the recorded work. */
static bool all_done(void *arg)
{
    struct hip_backend *hip = arg;
    bool done = true;

    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        done = iris_i_hip_poll(stream, &stream->clear_at) != hipErrorNotReady &&
               done;
    }
    pthread_mutex_unlock(&hip->streams_lock);
    return done;
}

/* From here on, later kernels may wait. */
static void reset_watch(struct hip_backend *hip)
{
    pthread_mutex_lock(&hip->watch_lock);
    iris_i_fault_clear(&hip->base);
    *get_ready(hip) = 0;
    hip->note_beat = *(_Atomic uint64_t *)&hip->pinned->watch.beat;
    *get_stop(hip) = 0;
    pthread_mutex_unlock(&hip->watch_lock);
}

iris_status_t iris_i_hip_clear_fault(struct iris_backend *backend)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    const char *why = "the runtime does not work any more";

    if (iris_i_hip_check(hip) == IRIS_OK) {
        return IRIS_OK;
    }
    mark_all(hip);
    if (!iris_i_hip_end_work(hip, all_done, hip)) {
        why = "a kernel cannot be ended";
    } else if (free_claim(hip)) {
        reset_watch(hip);
        return IRIS_OK;
    }
    return iris_i_hip_refuse(hip, IRIS_ERR_STATE,
                             "the error stays, since %s; leave with "
                             "iris_finalize",
                             why);
}
