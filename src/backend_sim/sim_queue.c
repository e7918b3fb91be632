/* SPDX-License-Identifier: MIT
 *
 * Runs a stream's commands in order, on its worker or on a host thread that
 * waits for them.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000

/* A host is prompt if it has synchronized this number of times within this time
 * after its last command. A nap is long compared with that, but short compared
 * with delays that a host which does not wait would notice. After this number
 * of naps, a worker sleeps until it is woken. */
#define PROMPT_MIN 2
#define PROMPT_NS 20000
#define NAP_NS 200000
#define NAPS 50

static struct timespec at(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
                             .tv_nsec = (long)(ns % NS_PER_S)};
}

/* ---- Running a command: by the worker, or by a waiting host thread ---- */

/* Whether the host waits for each command at once. Then it will run the next
 * one, too. */
static bool is_prompt(const struct sim_stream *stream)
{
    return atomic_load_explicit(&stream->prompt, memory_order_relaxed) >=
           PROMPT_MIN;
}

/* The host must return when work is stopped, so it runs no command that may
 * continue after that. */
static bool host_may_run(const struct sim_command *command)
{
    return command->kind == COMMAND_LAUNCH ? command->job.own
                                           : command->kind != COMMAND_FOLLOW;
}

/* Begins the next command, if there is one, the caller may run it and no other
 * one has begun. Under the stream's lock. */
static struct sim_command *begin(struct sim_stream *stream, bool host)
{
    struct sim_command *command = stream->head;

    if (command == NULL || stream->begun || (host && !host_may_run(command)) ||
        (command->kind == COMMAND_FOLLOW && !command->passed)) {
        return NULL;
    }
    stream->head = command->next;
    stream->begun = true;
    stream->running = command->kind == COMMAND_LAUNCH
                          ? command->job.kernel->name
                          : "a copy or fill";
    return command;
}

/* Waits for a command. Under the stream's lock. Beside a prompt host, a worker
 * that spins, or that has to be woken, would take the core that a peer needs.
 * So it naps, and runs the commands that the host has not run within a nap. */
static void wait_for_work(struct sim_stream *stream, unsigned naps)
{
    if (is_prompt(stream) && naps < NAPS) {
        const struct timespec end = at(iris_i_now_ns() + NAP_NS);

        stream->worker_naps = true;
        pthread_cond_timedwait(&stream->work, &stream->lock, &end);
        stream->worker_naps = false;
    } else {
        stream->worker_sleeps = true;
        pthread_cond_wait(&stream->work, &stream->lock);
        stream->worker_sleeps = false;
    }
}

/* Waits for the next command; NULL to quit. */
static struct sim_command *next_command(struct sim_stream *stream)
{
    uint64_t taken = atomic_load(&stream->completed);
    struct sim_spin spin = {0};
    struct sim_command *command;
    unsigned naps = 0;

    while (!is_prompt(stream) && atomic_load(&stream->submitted) == taken &&
           !atomic_load(&stream->quit) && iris_i_sim_spin(&spin)) {
    }
    pthread_mutex_lock(&stream->lock);
    while ((command = begin(stream, false)) == NULL &&
           !(atomic_load(&stream->quit) && stream->head == NULL)) {
        wait_for_work(stream, naps++);
    }
    if (command != NULL && naps != 0) {
        atomic_store(&stream->prompt, 0);
    }
    pthread_mutex_unlock(&stream->lock);
    return command;
}

/* Lets the following stream go on. It exists as long as its command does. */
static void pass(const struct sim_command *mark)
{
    struct sim_stream *follower = mark->follower;

    pthread_mutex_lock(&follower->lock);
    mark->wait->passed = true;
    pthread_cond_signal(&follower->work);
    pthread_mutex_unlock(&follower->lock);
}

static void execute(struct sim_stream *stream, struct sim_command *command)
{
    iris_status_t status = IRIS_OK;

    if (command->kind == COMMAND_LAUNCH) {
        status = iris_i_sim_run(stream, &command->job);
    } else {
        iris_i_sim_run_other(stream, command);
    }
    if (status != IRIS_OK) {
        iris_i_sim_stop(stream, status, iris_last_error());
    }
}

/* Wakes waiters only if the count of one is reached: waking costs more than a
 * short kernel. Threads that wake too early announce themselves again. */
static void complete(struct sim_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->running = NULL;
    stream->begun = false;
    if (atomic_fetch_add(&stream->completed, 1) + 1 >= stream->wake_at) {
        stream->wake_at = UINT64_MAX;
        pthread_cond_broadcast(&stream->done);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* After a stop, commands are only counted, but following streams go on. */
static void run(struct sim_stream *stream, struct sim_command *command)
{
    if (!iris_i_sim_stopped(stream)) {
        execute(stream, command);
    }
    if (command->kind == COMMAND_MARK) {
        pass(command);
    }
    complete(stream);
    free(command->memory);
}

/* ---- Enqueueing ---- */

/* NULL, with this thread's message set, if there is no memory. */
static struct sim_command *command_create(enum command_kind kind,
                                          size_t args_bytes)
{
    const uintptr_t mask = ARGS_ALIGNMENT - 1;
    void *memory = malloc(sizeof(struct sim_command) + args_bytes + mask);
    struct sim_command *command;

    if (memory == NULL) {
        iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                    "no memory to enqueue on a stream");
        return NULL;
    }
    command = (void *)(((uintptr_t)memory + mask) & ~mask);
    memset(command, 0, sizeof *command);
    command->memory = memory;
    command->kind = kind;
    return command;
}

static void enqueue(struct sim_stream *stream, struct sim_command *command)
{
    bool wake;

    pthread_mutex_lock(&stream->lock);
    if (stream->head == NULL) {
        stream->head = command;
    } else {
        stream->tail->next = command;
    }
    stream->tail = command;
    stream->enqueued_ns = iris_i_now_ns();
    atomic_fetch_add(&stream->submitted, 1);
    if (!host_may_run(command)) {
        atomic_store(&stream->prompt, 0);
    }
    wake = stream->worker_sleeps ||
           (stream->worker_naps && !host_may_run(command));
    pthread_mutex_unlock(&stream->lock);
    if (wake) {
        pthread_cond_signal(&stream->work);
    }
}

iris_status_t iris_i_sim_copy(struct iris_stream *stream, void *dst,
                              const void *src, size_t bytes)
{
    struct sim_command *command = command_create(COMMAND_COPY, 0);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    command->dst = dst;
    command->src = src;
    command->bytes = bytes;
    enqueue((struct sim_stream *)stream, command);
    return IRIS_OK;
}

iris_status_t iris_i_sim_copy_rows(struct iris_stream *stream,
                                   const struct iris_copy_rows *rows)
{
    struct sim_command *command = command_create(COMMAND_COPY_ROWS, 0);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    command->rows = *rows;
    enqueue((struct sim_stream *)stream, command);
    return IRIS_OK;
}

iris_status_t iris_i_sim_set(struct iris_stream *stream, void *dst, int value,
                             size_t bytes)
{
    struct sim_command *command = command_create(COMMAND_SET, 0);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    command->dst = dst;
    command->value = value;
    command->bytes = bytes;
    enqueue((struct sim_stream *)stream, command);
    return IRIS_OK;
}

iris_status_t iris_i_sim_follow(struct iris_stream *stream,
                                struct iris_stream *other)
{
    struct sim_command *mark = command_create(COMMAND_MARK, 0);
    struct sim_command *wait = command_create(COMMAND_FOLLOW, 0);

    if (mark == NULL || wait == NULL) {
        free(mark == NULL ? NULL : mark->memory);
        free(wait == NULL ? NULL : wait->memory);
        return IRIS_ERR_NO_MEMORY;
    }
    mark->follower = (struct sim_stream *)stream;
    mark->wait = wait;
    enqueue((struct sim_stream *)stream, wait);
    enqueue((struct sim_stream *)other, mark);
    return IRIS_OK;
}

iris_status_t iris_i_sim_enqueue_job(struct sim_stream *stream,
                                     const struct iris_cpu_job *job)
{
    size_t args_bytes = job->kernel->args_bytes;
    struct sim_command *command = command_create(COMMAND_LAUNCH, args_bytes);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    if (args_bytes > 0) {
        memcpy(command->args, job->args, args_bytes);
    }
    command->job = *job;
    command->job.args = command->args;
    enqueue(stream, command);
    return IRIS_OK;
}

/* ---- A waiting host thread ---- */

/* Records whether the host came right after the last command. */
static void note_promptness(struct sim_stream *stream, int64_t now)
{
    unsigned prompt = atomic_load(&stream->prompt);

    if (now - stream->enqueued_ns > PROMPT_NS) {
        atomic_store(&stream->prompt, 0);
    } else if (prompt < PROMPT_MIN) {
        atomic_store(&stream->prompt, prompt + 1);
    }
}

void iris_i_sim_run_here(struct sim_stream *stream, uint64_t target)
{
    int64_t timeout_ms = stream->sim->params.waiter->timeout_ms;
    int64_t now = iris_i_now_ns();
    struct sim_command *command;

    pthread_mutex_lock(&stream->lock);
    note_promptness(stream, now);
    while (atomic_load(&stream->completed) < target &&
           (command = begin(stream, true)) != NULL) {
        pthread_mutex_unlock(&stream->lock);
        command->job.deadline_ns =
            timeout_ms > 0 ? now + timeout_ms * NS_PER_MS : 0;
        run(stream, command);
        pthread_mutex_lock(&stream->lock);
    }
    if (stream->head != NULL && !stream->begun) {
        pthread_cond_signal(&stream->work);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Threads that wake too early announce themselves again. */
void iris_i_sim_sleep(struct sim_stream *stream, uint64_t target, int64_t ns)
{
    const struct timespec end = at(iris_i_now_ns() + ns);
    int ret = 0;

    pthread_mutex_lock(&stream->lock);
    while (atomic_load(&stream->completed) < target && ret == 0) {
        if (target < stream->wake_at) {
            stream->wake_at = target;
        }
        ret = pthread_cond_timedwait(&stream->done, &stream->lock, &end);
    }
    pthread_mutex_unlock(&stream->lock);
}

int iris_i_sim_query(struct iris_stream *base, uint64_t *target_p)
{
    struct sim_stream *stream = (struct sim_stream *)base;

    if (*target_p == 0) {
        *target_p = atomic_load(&stream->submitted);
    }
    return atomic_load(&stream->completed) >= *target_p;
}

/* ---- The worker ---- */

/* For a stream whose worker never started, or has ended. */
static void stream_free(struct sim_stream *stream)
{
    iris_i_sim_signals_release();
    pthread_cond_destroy(&stream->done);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static void *worker_main(void *argument)
{
    struct sim_stream *stream = argument;
    struct sim_command *command;
    char handlers[SIM_SIGNAL_STACK_BYTES];

    iris_i_sim_signals_stack(handlers, sizeof handlers);
    while ((command = next_command(stream)) != NULL) {
        run(stream, command);
    }
    iris_i_sim_team_close(&stream->team);
    if (stream->abandoned) {
        stream_free(stream);
    }
    return NULL;
}

iris_status_t iris_i_sim_queue_open(struct sim_stream *stream)
{
    pthread_condattr_t monotonic;
    iris_status_t status;

    stream->wake_at = UINT64_MAX;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, &monotonic);
    pthread_cond_init(&stream->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    iris_i_sim_team_open(&stream->team);
    iris_i_sim_signals_acquire();
    status = iris_i_sim_thread_start(&stream->sim->params, worker_main, stream,
                                     &stream->worker);
    if (status != IRIS_OK) {
        iris_i_sim_team_close(&stream->team);
        stream_free(stream);
    }
    return status;
}

void iris_i_sim_queue_close(struct sim_stream *stream, bool finished)
{
    pthread_t worker = stream->worker;

    pthread_mutex_lock(&stream->lock);
    stream->abandoned = !finished;
    atomic_store(&stream->quit, true);
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (finished) {
        pthread_join(worker, NULL);
        stream_free(stream);
    } else {
        pthread_detach(worker);
    }
}
