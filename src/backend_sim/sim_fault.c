/* SPDX-License-Identifier: MIT
 *
 * Stops work: the first kernel that fails, or the first failed wait for one,
 * stops all streams of the instance until the fault is cleared.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Time that streams have to end after a stop. */
#define GRACE_MS 1000

/* ---- Stopping ---- */

/* Stops all work. The caller holds the lock. False: it was stopped before. */
static bool stop(struct sim_stream *stream, iris_status_t status,
                 const char *message)
{
    struct sim_stop *stop = &stream->sim->stop;

    if (atomic_load(&stop->status) != IRIS_OK) {
        return false;
    }
    snprintf(stop->message, sizeof stop->message, "%s", message);
    stop->origin = stream;
    stop->num_ended = 0;
    stop->num_unstarted = 0;
    stop->expired = false;
    stop->refused = false;
    atomic_store(&stop->status, status);
    return true;
}

void iris_i_sim_stop(struct sim_stream *stream, iris_status_t status,
                     const char *message)
{
    pthread_mutex_lock(&stream->sim->lock);
    (void)stop(stream, status, message);
    pthread_mutex_unlock(&stream->sim->lock);
}

/* After a deadline, the report describes the wait that expired, not the waits
 * that end because of it. */
static void stop_by_workgroup(void *stream, iris_status_t status,
                              enum iris_cpu_stop why,
                              const struct iris_cpu_wg *cpu)
{
    struct sim_backend *sim = ((struct sim_stream *)stream)->sim;

    pthread_mutex_lock(&sim->lock);
    if (stop(stream, status, iris_last_error())) {
        sim->stop.refused = why == IRIS_CPU_STOP_REFUSED;
        sim->stop.expired = why == IRIS_CPU_STOP_EXPIRED;
        sim->stop.ended = *cpu;
    }
    pthread_mutex_unlock(&sim->lock);
}

/* Notes a workgroup that the stop ends. */
static void note_end(void *stream, const struct iris_cpu_wg *cpu)
{
    struct sim_backend *sim = ((struct sim_stream *)stream)->sim;
    struct sim_stop *stop = &sim->stop;

    pthread_mutex_lock(&sim->lock);
    if (stop->origin == stream) {
        if (!stop->expired &&
            (stop->num_ended == 0 || cpu->workgroup < stop->ended.workgroup)) {
            stop->ended = *cpu;
        }
        stop->num_ended++;
    }
    pthread_mutex_unlock(&sim->lock);
}

/* After a stop, workgroups that have not begun are no longer counted. A single
 * thread runs the grid in order. */
static void count_progress(void *arg, const struct iris_cpu_wg *cpu,
                           uint32_t grid, uint32_t *begun_p, uint32_t *done_p)
{
    struct sim_stream *stream = arg;
    struct sim_team *team = &stream->team;
    uint32_t remaining = atomic_load(&team->remaining);
    bool alone = stream->sim->params.num_cus <= 1 || grid <= 1;

    *begun_p = alone ? cpu->workgroup + 1 : grid - remaining;
    *done_p = alone ? cpu->workgroup : atomic_load(&team->done);
    if (iris_i_sim_stopped(stream)) {
        *begun_p = *done_p = 0;
    }
}

const struct iris_cpu_job_ops iris_i_sim_job_ops = {
    .stop = stop_by_workgroup,
    .ended = note_end,
    .progress = count_progress,
};

void iris_i_sim_note_unstarted(struct sim_stream *stream, uint32_t count,
                               uint32_t grid)
{
    struct sim_stop *stop = &stream->sim->stop;

    pthread_mutex_lock(&stream->sim->lock);
    if (stop->origin == stream) {
        stop->num_unstarted += count;
        stop->grid = grid;
    }
    pthread_mutex_unlock(&stream->sim->lock);
}

/* ---- Messages ---- */

static void __attribute__((format(printf, 2, 3)))
append(char message[IRIS_MESSAGE_BYTES], const char *format, ...)
{
    size_t used = strlen(message);
    va_list list;

    va_start(list, format);
    iris_i_vprint(message + used, IRIS_MESSAGE_BYTES - used, format, list);
    va_end(list);
}

/* " in a barrier for the value at 0x7f... (heap offset 64) to be >= 1 ..." */
static void append_wait(const struct iris_backend_params *params,
                        const struct iris_cpu_wg *ended,
                        char message[IRIS_MESSAGE_BYTES])
{
    char late[64] = "";
    size_t offset =
        (size_t)((uintptr_t)ended->wait_address - (uintptr_t)ended->heap_base);

    append(message, "%s for the value at %p (",
           ended->wait_op == IRIS_OP_BARRIER ? " in a barrier" : "",
           ended->wait_address);
    if (offset < ended->heap_bytes) {
        append(message, "heap offset %zu", offset);
    } else {
        append(message, "not on this rank's heap");
    }
    append(message, ") to be %s %lld and last saw %lld",
           iris_i_cmp_name(ended->wait_cmp), (long long)ended->wait_value,
           (long long)ended->wait_seen);
    if (ended->wait_op == IRIS_OP_BARRIER) {
        params->core_ops->describe_late(params->core, ended->wait_address, late,
                                        sizeof late);
    }
    append(message, "%s%s", late[0] == '\0' ? "" : ": ", late);
}

/* "; rank 3, on another node, has not answered" */
static void append_silent(const struct iris_backend_params *params,
                          char message[IRIS_MESSAGE_BYTES])
{
    char silent[64];

    params->core_ops->describe_late(params->core, NULL, silent, sizeof silent);
    append(message, "%s%s", silent[0] == '\0' ? "" : "; ", silent);
}

/* Whether the stream has work that is neither done nor skipped. */
static bool is_busy(struct sim_stream *stream)
{
    return atomic_load(&stream->completed) != atomic_load(&stream->submitted);
}

/* Appends the kernel's wait to the stop's message, unless the kernel was ended
 * for a wrong access. The caller holds the lock. */
static void describe(const struct sim_backend *sim,
                     char message[IRIS_MESSAGE_BYTES])
{
    const struct sim_stop *stop = &sim->stop;
    struct sim_stream *origin = stop->origin;

    memcpy(message, stop->message, IRIS_MESSAGE_BYTES);
    if (stop->num_ended > 0 && !stop->refused) {
        append(message, "; kernel %s: workgroup %u waited", stop->ended.kernel,
               stop->ended.workgroup);
        if (stop->ended.wait_address != NULL) {
            append_wait(&sim->params, &stop->ended, message);
        } else {
            append_silent(&sim->params, message);
        }
    }
    if (stop->num_ended > 0) {
        append(message, "; workgroups ended: %u", stop->num_ended);
    }
    /* The waiting workgroups may have waited for these. */
    if (stop->num_ended > 0 && stop->num_unstarted > 0 &&
        atomic_load(&stop->status) == IRIS_ERR_TIMEOUT) {
        append(message, "; %u of %u workgroups never started, see IRIS_SIM_CUS",
               stop->num_unstarted, stop->grid);
    }
    if (origin == NULL || !is_busy(origin)) {
        return;
    }
    pthread_mutex_lock(&origin->lock);
    if (origin->running != NULL) {
        append(message,
               "; %s still runs: it does not wait by iris_wait_until() or the "
               "like, so it cannot be ended",
               origin->running);
    }
    pthread_mutex_unlock(&origin->lock);
}

/* ---- The instance's fault ---- */

/* A stream with work: any stream, or the origin alone. The caller holds the
 * lock. */
static struct sim_stream *busy_stream(const struct sim_backend *sim, bool all)
{
    struct sim_stream *origin = sim->stop.origin;

    if (!all) {
        return origin != NULL && is_busy(origin) ? origin : NULL;
    }
    for (struct sim_stream *s = sim->streams; s != NULL; s = s->next) {
        if (is_busy(s)) {
            return s;
        }
    }
    return NULL;
}

/* Locks the instance after its streams have skipped or ended their work, or the
 * time is over. Returns a stream that has not. */
static struct sim_stream *lock_idle(struct sim_backend *sim, bool all)
{
    iris_status_t status = IRIS_OK;
    struct sim_stream *busy;
    struct iris_wait wait;

    iris_i_wait_moment(&wait, GRACE_MS);
    pthread_mutex_lock(&sim->lock);
    while ((busy = busy_stream(sim, all)) != NULL && status == IRIS_OK) {
        pthread_mutex_unlock(&sim->lock);
        status = iris_i_wait_tick(&wait);
        pthread_mutex_lock(&sim->lock);
    }
    return busy;
}

iris_status_t iris_i_sim_fault(struct sim_backend *sim)
{
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    if (atomic_load(&sim->stop.status) == IRIS_OK) {
        return IRIS_OK;
    }
    if (iris_i_fault_check(&sim->base) == IRIS_OK) {
        (void)lock_idle(sim, false);
        status = (iris_status_t)atomic_load(&sim->stop.status);
        if (status != IRIS_OK) { /* it may have been cleared in between */
            describe(sim, message);
            (void)iris_i_fault_set(&sim->base, status, message);
        }
        pthread_mutex_unlock(&sim->lock);
    }
    return iris_i_fault_check(&sim->base);
}

iris_status_t iris_i_sim_clear_fault(struct iris_backend *backend)
{
    struct sim_backend *sim = (struct sim_backend *)backend;
    iris_status_t status = IRIS_OK;

    if (atomic_load(&sim->stop.status) == IRIS_OK) {
        return IRIS_OK;
    }
    if (lock_idle(sim, true) != NULL) {
        status = iris_i_fail(NULL, IRIS_ERR_STATE,
                             "rank %d: a kernel still runs and cannot be "
                             "ended, so the error stays: it does not wait by "
                             "iris_wait_until() or the like",
                             sim->params.rank);
    } else {
        sim->stop.origin = NULL;
        iris_i_fault_clear(&sim->base);
        atomic_store(&sim->stop.status, IRIS_OK);
    }
    pthread_mutex_unlock(&sim->lock);
    return status;
}
