/* SPDX-License-Identifier: MIT
 *
 * A launch's workgroups on a stream's worker and its helpers.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include <stdlib.h>

/* Takes one workgroup of the team's job. Returns the number that remained
 * before, or 0 if no workgroup remained. */
static uint32_t take(struct sim_team *team)
{
    uint32_t remaining = atomic_load(&team->remaining);

    while (remaining != 0 && !atomic_compare_exchange_weak(
                                 &team->remaining, &remaining, remaining - 1)) {
    }
    return remaining;
}

/* Counts workgroups as done. After the last one, the job may be gone. */
static void finish(struct sim_team *team, uint32_t grid, uint32_t count)
{
    if (atomic_fetch_add(&team->done, count) + count != grid) {
        return;
    }
    pthread_mutex_lock(&team->lock);
    if (team->worker_sleeps) {
        pthread_cond_signal(&team->end);
    }
    pthread_mutex_unlock(&team->lock);
}

/* Runs workgroups until none remains. */
static void work(struct sim_stream *stream)
{
    struct sim_team *team = &stream->team;
    uint32_t remaining;

    while ((remaining = take(team)) != 0) {
        const struct iris_cpu_job *job = team->job;
        uint32_t grid = job->grid;
        uint32_t count = 1;

        if (iris_i_sim_stopped(stream)) {
            count += atomic_exchange(&team->remaining, 0);
            iris_i_sim_note_unstarted(stream, count, grid);
        } else {
            iris_i_cpu_job_run(job, grid - remaining);
        }
        finish(team, grid, count);
    }
}

/* Waits until there is work; false to quit. */
static bool wait_for_start(struct sim_team *team)
{
    struct sim_spin spin = {0};

    while (atomic_load(&team->remaining) == 0 && !atomic_load(&team->quit)) {
        if (iris_i_sim_spin(&spin)) {
            continue;
        }
        pthread_mutex_lock(&team->lock);
        team->sleepers++;
        while (atomic_load(&team->remaining) == 0 &&
               !atomic_load(&team->quit)) {
            pthread_cond_wait(&team->start, &team->lock);
        }
        team->sleepers--;
        pthread_mutex_unlock(&team->lock);
    }
    return !atomic_load(&team->quit);
}

static void *helper_main(void *argument)
{
    struct sim_stream *stream = argument;
    char handlers[SIM_SIGNAL_STACK_BYTES];

    iris_i_sim_signals_stack(handlers, sizeof handlers);
    while (wait_for_start(&stream->team)) {
        work(stream);
    }
    return NULL;
}

void iris_i_sim_team_open(struct sim_team *team)
{
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->start, NULL);
    pthread_cond_init(&team->end, NULL);
}

void iris_i_sim_team_close(struct sim_team *team)
{
    atomic_store(&team->quit, true);
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(&team->start);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->num_helpers; i++) {
        pthread_join(team->helpers[i], NULL);
    }
    free(team->helpers);
    pthread_cond_destroy(&team->end);
    pthread_cond_destroy(&team->start);
    pthread_mutex_destroy(&team->lock);
}

/* Starts all helpers, or returns an error. With fewer helpers, fewer workgroups
 * would run at once than promised, and kernels rely on that number. */
static iris_status_t need_helpers(struct sim_stream *stream, uint32_t count)
{
    struct sim_team *team = &stream->team;
    iris_status_t status = IRIS_OK;
    pthread_t *helpers;

    if (count <= team->num_helpers) {
        return IRIS_OK;
    }
    helpers = realloc(team->helpers, count * sizeof *helpers);
    if (helpers == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for %u threads; lower IRIS_SIM_CUS",
                           count);
    }
    team->helpers = helpers;
    while (status == IRIS_OK && team->num_helpers < count) {
        status =
            iris_i_sim_thread_start(&stream->sim->params, helper_main, stream,
                                    &team->helpers[team->num_helpers]);
        team->num_helpers += status == IRIS_OK;
    }
    return status;
}

/* Publishes the job. A helper that went to sleep before the store is counted in
 * `sleepers` by the time this takes the lock. */
static void publish(struct sim_team *team, const struct iris_cpu_job *job)
{
    uint32_t wake;

    team->job = job;
    atomic_store(&team->done, 0);
    atomic_store(&team->remaining, job->grid);
    pthread_mutex_lock(&team->lock);
    wake = team->sleepers;
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < wake && i < job->grid - 1; i++) {
        pthread_cond_signal(&team->start);
    }
}

/* The worker waits for the workgroups that its helpers still run. */
static void wait_for_end(struct sim_team *team, uint32_t grid)
{
    struct sim_spin spin = {0};

    while (atomic_load(&team->done) != grid) {
        if (iris_i_sim_spin(&spin)) {
            continue;
        }
        pthread_mutex_lock(&team->lock);
        team->worker_sleeps = true;
        while (atomic_load(&team->done) != grid) {
            pthread_cond_wait(&team->end, &team->lock);
        }
        team->worker_sleeps = false;
        pthread_mutex_unlock(&team->lock);
    }
}

static iris_status_t run(struct sim_stream *stream,
                         const struct iris_cpu_job *job)
{
    int64_t threads = stream->sim->params.num_cus;
    iris_status_t status;

    if (threads > job->grid) {
        threads = job->grid;
    }
    if (threads <= 1) {
        uint32_t id = 0;

        while (id < job->grid && !iris_i_sim_stopped(stream)) {
            iris_i_cpu_job_run(job, id++);
        }
        if (id < job->grid) {
            iris_i_sim_note_unstarted(stream, job->grid - id, job->grid);
        }
        return IRIS_OK;
    }
    status = need_helpers(stream, (uint32_t)threads - 1);
    if (status != IRIS_OK) {
        return status;
    }
    publish(&stream->team, job);
    work(stream);
    wait_for_end(&stream->team, job->grid);
    return IRIS_OK;
}

iris_status_t iris_i_sim_run(struct sim_stream *stream,
                             struct iris_cpu_job *job)
{
    struct iris_host_event event;
    iris_status_t status;

    iris_i_cpu_job_begin(job, &event);
    status = run(stream, job);
    iris_i_cpu_job_end(job, &event, status);
    return status;
}
