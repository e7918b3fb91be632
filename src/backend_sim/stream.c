/* SPDX-License-Identifier: MIT
 *
 * Streams of a simulated device: commands, the threads that run them, and the
 * host's wait for them.
 *
 * A stream is a list of commands, in order. A command is enqueued at the tail,
 * begun by one thread, run, and counted as completed; `submitted` and `completed`
 * are the only state that other threads poll. One command at a time is begun. The
 * worker begins it, or a host thread that waits for the stream and may run it:
 * then no thread has to wake. A host runs only commands that are sure to end,
 * which are copies and the library's own kernels. A stop (fault.c) ends or skips
 * the commands, but they are counted all the same, and following streams go on.
 *
 * The worker runs a kernel's workgroups with the helpers of its team. The team's
 * `remaining` hands out workgroups; `done` counts them (struct sim_team).
 *
 * The stream's lock guards the list and the flags of threads that sleep; the
 * team's lock guards its sleepers. Neither is held while a command runs. A stream
 * whose kernel does not end is abandoned: its worker frees it if that ever ends.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "base/base.h"
#include <iris/device/core/atomic.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Threads ---- */

/* Turns of a wait before it yields the core, turns between readings of the
 * clock after that, and the total time. It is longer than a futex wake-up
 * takes, so that a host that launches and synchronizes in a loop avoids one. It
 * is short, since there may be many ranks and few cores. */
#define SPIN_PAUSES 30
#define SPIN_TURNS_PER_LOOK 8
#define SPIN_NS 50000

/* The spinning of a thread that waits for another, before it sleeps. */
struct sim_spin {
    unsigned turns;
    int64_t end_ns;
};

/* One turn of a spinning wait. False: it is time to sleep. *spin is zeroed
 * first. */
static bool spin_once(struct sim_spin *spin)
{
    int64_t now;

    if (spin->turns++ < SPIN_PAUSES) {
        iris_d_pause();
        return true;
    }
    sched_yield();
    if (spin->turns % SPIN_TURNS_PER_LOOK != 0) {
        return true;
    }
    now = iris_i_now_ns();
    if (spin->end_ns == 0) {
        spin->end_ns = now + SPIN_NS;
    }
    return now < spin->end_ns;
}

/* IRIS_ERR_LIMIT */
static iris_status_t start_thread(const struct iris_backend_params *params,
                                  void *(*entry)(void *), void *argument,
                                  pthread_t *thread_p)
{
    char name[16];
    int ret;

    snprintf(name, sizeof name, "iris-s%d", params->rank);
    ret = iris_i_thread_start(thread_p, name, 0, entry, argument);
    if (ret != 0) {
        return iris_i_fail_errno(
            NULL, IRIS_ERR_LIMIT, ret,
            "rank %d cannot start a thread for its stream; raise the limit on "
            "threads (ulimit -u, the container's pids limit) or lower "
            "IRIS_SIM_CUS, now %d",
            params->rank, params->num_cus);
    }
    return IRIS_OK;
}

/* ---- The workgroups of a launch, on the worker and its helpers ---- */

/* Takes one workgroup of the team's job. Returns the number that remained
 * before, or 0 if no workgroup remained. */
static uint32_t take_workgroup(struct sim_team *team)
{
    uint32_t remaining = atomic_load(&team->remaining);

    while (remaining != 0 && !atomic_compare_exchange_weak(
                                 &team->remaining, &remaining, remaining - 1)) {
    }
    return remaining;
}

/* Counts workgroups as done. After the last one, the job may be gone. */
static void count_done(struct sim_team *team, uint32_t grid, uint32_t count)
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
static void run_workgroups(struct sim_stream *stream)
{
    struct sim_team *team = &stream->team;
    uint32_t remaining;

    while ((remaining = take_workgroup(team)) != 0) {
        const struct iris_cpu_job *job = team->job;
        uint32_t grid = job->grid;
        uint32_t count = 1;

        if (iris_i_sim_stopped(stream)) {
            count += atomic_exchange(&team->remaining, 0);
            iris_i_sim_note_unstarted(stream, count, grid);
        } else {
            iris_i_cpu_job_run(job, grid - remaining);
        }
        count_done(team, grid, count);
    }
}

/* Waits until there is work; false to quit. */
static bool wait_for_start(struct sim_team *team)
{
    struct sim_spin spin = {0};

    while (atomic_load(&team->remaining) == 0 && !atomic_load(&team->quit)) {
        if (spin_once(&spin)) {
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
        run_workgroups(stream);
    }
    return NULL;
}

static void open_team(struct sim_team *team)
{
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->start, NULL);
    pthread_cond_init(&team->end, NULL);
}

/* Only the thread that makes the stream and its worker open and close; close
 * joins the helpers. */
static void close_team(struct sim_team *team)
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
static iris_status_t start_helpers(struct sim_stream *stream, uint32_t count)
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
        status = start_thread(&stream->sim->params, helper_main, stream,
                              &team->helpers[team->num_helpers]);
        team->num_helpers += status == IRIS_OK;
    }
    return status;
}

/* Publishes the job. A helper that went to sleep before the store is counted in
 * `sleepers` by the time this takes the lock. */
static void publish_job(struct sim_team *team, const struct iris_cpu_job *job)
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
        if (spin_once(&spin)) {
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

static iris_status_t run_job(struct sim_stream *stream,
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
    status = start_helpers(stream, (uint32_t)threads - 1);
    if (status != IRIS_OK) {
        return status;
    }
    publish_job(&stream->team, job);
    run_workgroups(stream);
    wait_for_end(&stream->team, job->grid);
    return IRIS_OK;
}

/* Runs a job on the worker and its helpers; returns when every workgroup has
 * ended. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY: nothing was run. */
static iris_status_t run_launch(struct sim_stream *stream,
                                struct iris_cpu_job *job)
{
    struct iris_host_event event;
    iris_status_t status;

    iris_i_cpu_job_begin(job, &event);
    status = run_job(stream, job);
    iris_i_cpu_job_end(job, &event, status);
    return status;
}

/* ---- Commands that are not kernels ---- */

/* Vector members of an argument struct may need this alignment. */
#define ARGS_ALIGNMENT 64

enum command_kind {
    COMMAND_COPY,
    COMMAND_COPY_ROWS,
    COMMAND_SET,
    COMMAND_LAUNCH,
    COMMAND_MARK,
    COMMAND_FOLLOW,
};

struct sim_command {
    struct sim_command *next;
    enum command_kind kind;
    void *dst;
    const void *src;
    int value;
    size_t bytes;
    struct iris_copy_rows rows;
    struct iris_cpu_job job;
    bool passed;                 /* FOLLOW: whether the mark was passed;
                                  * under the stream's lock */
    struct sim_stream *follower; /* MARK: the following stream, */
    struct sim_command *wait;    /* and its command */
    void *memory; /* the allocation around it: aligned_alloc() is slower than
                   * malloc() */
    size_t room;  /* bytes of args */
    _Alignas(ARGS_ALIGNMENT) unsigned char args[];
};

static void move_rows(const struct iris_copy_rows *rows)
{
    for (size_t i = 0; i < rows->rows; i++) {
        memmove((char *)rows->dst + i * rows->dst_pitch,
                (const char *)rows->src + i * rows->src_pitch, rows->row_bytes);
    }
}

static void move_bytes(const struct sim_command *command)
{
    switch (command->kind) {
    case COMMAND_COPY:
        memmove(command->dst, command->src, command->bytes);
        break;
    case COMMAND_COPY_ROWS:
        move_rows(&command->rows);
        break;
    case COMMAND_SET:
        memset(command->dst, command->value, command->bytes);
        break;
    default:
        break;
    }
}

/* The event of a command other than a kernel, for observers that watch
 * kernels. */
static struct iris_host_event make_event(struct sim_stream *stream,
                                         const struct sim_command *command)
{
    const struct iris_copy_rows *rows = &command->rows;
    struct iris_host_event event = {.op = IRIS_HOST_RUN_COPY,
                                    .rank = stream->sim->params.rank,
                                    .target_rank = -1,
                                    .stream = stream,
                                    .address = command->dst,
                                    .source = command->src,
                                    .bytes = command->bytes};

    if (command->kind == COMMAND_COPY_ROWS) {
        event.address = rows->dst;
        event.source = rows->src;
        event.bytes = rows->row_bytes;
        event.count = rows->rows;
        event.pitch = rows->dst_pitch;
        event.source_pitch = rows->src_pitch;
    } else if (command->kind == COMMAND_SET) {
        event.op = IRIS_HOST_RUN_SET;
    } else if (command->kind == COMMAND_MARK) {
        event.op = IRIS_HOST_RUN_MARK;
        event.source = command->follower;
    }
    return event;
}

/* Runs a command that is not a launch, and tells observers that watch
 * kernels. */
static void run_other_command(struct sim_stream *stream,
                              const struct sim_command *command)
{
    struct iris_hooks *hooks = stream->sim->params.hooks;
    struct iris_host_event event;

    if (command->kind == COMMAND_FOLLOW || !iris_i_hooks_watch_device(hooks)) {
        move_bytes(command);
        return;
    }
    event = make_event(stream, command);
    iris_i_hooks_before(hooks, &event);
    move_bytes(command);
    (void)iris_i_hooks_after(hooks, &event, IRIS_OK);
}

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

static struct timespec make_time(int64_t ns)
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
 * one has begun. */
static struct sim_command *begin_command(struct sim_stream *stream, bool host)
    IRIS_REQUIRES(stream->lock)
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

/* Waits for a command. Beside a prompt host, a worker
 * that spins, or that has to be woken, would take the core that a peer needs.
 * So it naps, and runs the commands that the host has not run within a nap. */
static void wait_for_work(struct sim_stream *stream, unsigned naps)
    IRIS_REQUIRES(stream->lock)
{
    if (is_prompt(stream) && naps < NAPS) {
        const struct timespec end = make_time(iris_i_now_ns() + NAP_NS);

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
           !atomic_load(&stream->quit) && spin_once(&spin)) {
    }
    pthread_mutex_lock(&stream->lock);
    while ((command = begin_command(stream, false)) == NULL &&
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
static void pass_mark(const struct sim_command *mark)
{
    struct sim_stream *follower = mark->follower;

    pthread_mutex_lock(&follower->lock);
    mark->wait->passed = true;
    pthread_cond_signal(&follower->work);
    pthread_mutex_unlock(&follower->lock);
}

static void execute_command(struct sim_stream *stream,
                            struct sim_command *command)
{
    iris_status_t status = IRIS_OK;

    if (command->kind == COMMAND_LAUNCH) {
        status = run_launch(stream, &command->job);
    } else {
        run_other_command(stream, command);
    }
    if (status != IRIS_OK) {
        iris_i_sim_stop(stream, status, iris_last_error());
    }
}

/* A stream keeps this many commands for its next ones: to allocate in one thread
 * and free in another costs as much as a short kernel. */
#define MAX_SPARES 256
#define SPARE_ROOM ((size_t)512)

/* Wakes waiters only if the count of one is reached: waking costs more than a
 * short kernel. Threads that wake too early announce themselves again. */
static void complete_command(struct sim_stream *stream,
                             struct sim_command *command)
{
    bool kept;

    pthread_mutex_lock(&stream->lock);
    kept = command->room == SPARE_ROOM && stream->num_spares < MAX_SPARES;
    if (kept) {
        command->next = stream->spares;
        stream->spares = command;
        stream->num_spares++;
    }
    stream->running = NULL;
    stream->begun = false;
    if (atomic_fetch_add(&stream->completed, 1) + 1 >= stream->wake_at) {
        stream->wake_at = UINT64_MAX;
        pthread_cond_broadcast(&stream->done);
    }
    pthread_mutex_unlock(&stream->lock);
    if (!kept) {
        free(command->memory);
    }
}

/* After a stop, commands are only counted, but following streams go on. */
static void run_command(struct sim_stream *stream, struct sim_command *command)
{
    if (!iris_i_sim_stopped(stream)) {
        execute_command(stream, command);
    }
    if (command->kind == COMMAND_MARK) {
        pass_mark(command);
    }
    complete_command(stream, command);
}

/* ---- Enqueueing ---- */

/* NULL: the stream has no spare command. */
static struct sim_command *take_spare(struct sim_stream *stream)
{
    struct sim_command *command;

    pthread_mutex_lock(&stream->lock);
    command = stream->spares;
    if (command != NULL) {
        stream->spares = command->next;
        stream->num_spares--;
    }
    pthread_mutex_unlock(&stream->lock);
    return command;
}

/* NULL: no memory. */
static struct sim_command *allocate_command(size_t room)
{
    const uintptr_t mask = ARGS_ALIGNMENT - 1;
    void *memory = malloc(sizeof(struct sim_command) + room + mask);
    struct sim_command *command = (void *)(((uintptr_t)memory + mask) & ~mask);

    if (memory == NULL) {
        return NULL;
    }
    command->memory = memory;
    command->room = room;
    return command;
}

/* A command for this stream. NULL, with this thread's message set, if there is
 * no memory. */
static struct sim_command *create_command(struct sim_stream *stream,
                                          enum command_kind kind,
                                          size_t args_bytes)
{
    struct sim_command *command =
        args_bytes <= SPARE_ROOM ? take_spare(stream) : NULL;

    if (command == NULL) {
        command = allocate_command(args_bytes <= SPARE_ROOM ? SPARE_ROOM
                                                            : args_bytes);
    }
    if (command == NULL) {
        iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                    "no memory to enqueue on a stream");
        return NULL;
    }
    memset(command, 0, offsetof(struct sim_command, memory));
    command->kind = kind;
    return command;
}

static void enqueue_command(struct sim_stream *stream,
                            struct sim_command *command)
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

static iris_status_t enqueue_copy(struct iris_stream *base, void *dst,
                                  const void *src, size_t bytes)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_command *command = create_command(stream, COMMAND_COPY, 0);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    command->dst = dst;
    command->src = src;
    command->bytes = bytes;
    enqueue_command(stream, command);
    return IRIS_OK;
}

static iris_status_t enqueue_rows(struct iris_stream *base,
                                  const struct iris_copy_rows *rows)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_command *command = create_command(stream, COMMAND_COPY_ROWS, 0);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    command->rows = *rows;
    enqueue_command(stream, command);
    return IRIS_OK;
}

static iris_status_t enqueue_set(struct iris_stream *base, void *dst, int value,
                                 size_t bytes)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_command *command = create_command(stream, COMMAND_SET, 0);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    command->dst = dst;
    command->value = value;
    command->bytes = bytes;
    enqueue_command(stream, command);
    return IRIS_OK;
}

static iris_status_t enqueue_follow(struct iris_stream *base,
                                    struct iris_stream *other)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_stream *before = (struct sim_stream *)other;
    struct sim_command *mark = create_command(before, COMMAND_MARK, 0);
    struct sim_command *wait = create_command(stream, COMMAND_FOLLOW, 0);

    if (mark == NULL || wait == NULL) {
        free(mark == NULL ? NULL : mark->memory);
        free(wait == NULL ? NULL : wait->memory);
        return IRIS_ERR_NO_MEMORY;
    }
    mark->follower = stream;
    mark->wait = wait;
    enqueue_command(stream, wait);
    enqueue_command(before, mark);
    return IRIS_OK;
}

/* Enqueues a run of the job and copies its arguments. IRIS_ERR_NO_MEMORY */
static iris_status_t enqueue_job(struct sim_stream *stream,
                                 const struct iris_cpu_job *job)
{
    size_t args_bytes = job->kernel->args_bytes;
    struct sim_command *command =
        create_command(stream, COMMAND_LAUNCH, args_bytes);

    if (command == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    if (args_bytes > 0) {
        memcpy(command->args, job->args, args_bytes);
    }
    command->job = *job;
    command->job.args = command->args;
    enqueue_command(stream, command);
    return IRIS_OK;
}

/* ---- A waiting host thread ---- */

/* Records whether the host came right after the last command. */
static void note_promptness(struct sim_stream *stream, int64_t now)
    IRIS_REQUIRES(stream->lock)
{
    unsigned prompt = atomic_load(&stream->prompt);

    if (now - stream->enqueued_ns > PROMPT_NS) {
        atomic_store(&stream->prompt, 0);
    } else if (prompt < PROMPT_MIN) {
        atomic_store(&stream->prompt, prompt + 1);
    }
}

/* Runs commands up to `target` on the calling thread, if it may run them and
 * they have not begun. This wakes no thread. */
static void run_on_host(struct sim_stream *stream, uint64_t target)
{
    int64_t timeout_ms = stream->sim->params.waiter->timeout_ms;
    int64_t now = iris_i_now_ns();
    struct sim_command *command;

    pthread_mutex_lock(&stream->lock);
    note_promptness(stream, now);
    while (atomic_load(&stream->completed) < target &&
           (command = begin_command(stream, true)) != NULL) {
        pthread_mutex_unlock(&stream->lock);
        command->job.deadline_ns =
            timeout_ms > 0 ? now + timeout_ms * NS_PER_MS : 0;
        run_command(stream, command);
        pthread_mutex_lock(&stream->lock);
    }
    if (stream->head != NULL && !stream->begun) {
        pthread_cond_signal(&stream->work);
    }
    pthread_mutex_unlock(&stream->lock);
}

static int query_stream(struct iris_stream *base, uint64_t *target_p)
{
    struct sim_stream *stream = (struct sim_stream *)base;

    if (*target_p == 0) {
        *target_p = atomic_load(&stream->submitted);
    }
    return atomic_load(&stream->completed) >= *target_p;
}

/* ---- The worker ---- */

/* For a stream whose worker never started, or has ended. */
static void free_stream(struct sim_stream *stream)
{
    struct sim_command *spare;

    while ((spare = take_spare(stream)) != NULL) {
        free(spare->memory);
    }
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
        run_command(stream, command);
    }
    close_team(&stream->team);
    if (stream->abandoned) {
        free_stream(stream);
    }
    return NULL;
}

static iris_status_t start_worker(struct sim_stream *stream)
{
    pthread_condattr_t monotonic;
    iris_status_t status;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&stream->lock, NULL);
    stream->wake_at = UINT64_MAX;
    pthread_cond_init(&stream->work, &monotonic);
    pthread_cond_init(&stream->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    open_team(&stream->team);
    iris_i_sim_signals_acquire();
    status = start_thread(&stream->sim->params, worker_main, stream,
                          &stream->worker);
    if (status != IRIS_OK) {
        close_team(&stream->team);
        free_stream(stream);
    }
    return status;
}

/* Starts the worker of a zeroed stream whose `sim` is set; ends it. If
 * `finished` is false, its current command does not end: the worker frees the
 * stream if that ever ends. IRIS_ERR_LIMIT: the stream has been freed. */
static void end_worker(struct sim_stream *stream, bool finished)
{
    pthread_t worker = stream->worker;

    pthread_mutex_lock(&stream->lock);
    stream->abandoned = !finished;
    atomic_store(&stream->quit, true);
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (finished) {
        pthread_join(worker, NULL);
        free_stream(stream);
    } else {
        pthread_detach(worker);
    }
}

/* ---- The host's wait for a stream ---- */

/* Time that a kernel has to end after a stop. A waiting kernel needs one
 * poll. */
#define GRACE_MS 1000

/* The awaited number of completed commands of a stream. */
struct work {
    struct sim_stream *stream;
    uint64_t target;
    bool stopped; /* work was already stopped when the wait ended */
};

static bool is_done(const struct work *work)
{
    return atomic_load(&work->stream->completed) >= work->target;
}

static iris_status_t check_fate(void *arg)
{
    struct work *work = arg;
    const struct iris_waiter *waiter = work->stream->sim->params.waiter;

    work->stopped = iris_i_sim_stopped(work->stream);
    return work->stopped          ? IRIS_ERR_STATE
           : waiter->fate != NULL ? waiter->fate(waiter->arg)
                                  : IRIS_OK;
}

static iris_status_t fail_late(const struct iris_wait *wait)
{
    return iris_i_cpu_late(&((struct work *)wait->arg)->stream->sim->params);
}

/* Sleeps until the work is complete, at most for this time. Threads that wake too
 * early announce themselves again. */
static void sleep_for(void *arg, int64_t ns)
{
    const struct work *work = arg;
    struct sim_stream *stream = work->stream;
    const struct timespec end = make_time(iris_i_now_ns() + ns);
    int ret = 0;

    pthread_mutex_lock(&stream->lock);
    while (!is_done(work) && ret == 0) {
        if (work->target < stream->wake_at) {
            stream->wake_at = work->target;
        }
        ret = pthread_cond_timedwait(&stream->done, &stream->lock, &end);
    }
    pthread_mutex_unlock(&stream->lock);
}

static const struct iris_wait_type work_wait = {.pace = IRIS_PACE_STREAM,
                                                .fate = check_fate,
                                                .late = fail_late,
                                                .sleep = sleep_for};

/* Whether stopped work ends in time. */
static bool ends_in_time(const struct work *work)
{
    struct iris_wait wait;

    iris_i_wait_moment(&wait, GRACE_MS);
    while (!is_done(work)) {
        if (iris_i_wait_tick(&wait) != IRIS_OK) {
            return false;
        }
    }
    return true;
}

/* Waits for all earlier work. False if work was stopped and the running command
 * does not end. */
static bool wait_for_all(struct sim_stream *stream)
{
    struct work work = {.stream = stream,
                        .target = atomic_load(&stream->submitted)};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    run_on_host(stream, work.target);
    iris_i_wait_begin(&wait, &work_wait, stream->sim->params.waiter, "the host",
                      &work);
    while (status == IRIS_OK && !is_done(&work)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    if (status != IRIS_OK && !work.stopped) {
        iris_i_sim_stop(stream, status, iris_last_error());
    }
    return status == IRIS_OK || ends_in_time(&work);
}

static iris_status_t synchronize_stream(struct iris_stream *base)
{
    struct sim_stream *stream = (struct sim_stream *)base;

    (void)wait_for_all(stream);
    return iris_i_sim_fault(stream->sim);
}

/* ---- A launch ---- */

static iris_status_t launch_kernel(struct iris_stream *base,
                                   const struct iris_launch *launch)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    const struct iris_cpu_job job = {
        .ops = &iris_i_sim_job_ops,
        .stream = stream,
        .params = &stream->sim->params,
        .stopped = &stream->sim->stop.status,
        .heap = stream->sim->heap,
        .kernel = launch->kernel,
        .grid = launch->grid,
        .block = launch->block,
        .args = launch->args,
        .own = launch->own,
        .call = launch->call,
    };

    return launch->kernel->cpu_entry != NULL
               ? enqueue_job(stream, &job)
               : iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                             "kernel %s has no CPU version in this program; "
                             "compile its IRIS_KERNEL for the CPU too",
                             launch->kernel->name);
}

/* ---- The life of a stream ---- */

iris_status_t iris_i_sim_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct sim_backend *sim = (struct sim_backend *)backend;
    struct sim_stream *stream = calloc(1, sizeof *stream);
    iris_status_t status;

    if (stream == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a stream");
    }
    stream->base.backend = backend;
    stream->sim = sim;
    status = start_worker(stream);
    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&sim->lock);
    stream->next = sim->streams;
    sim->streams = stream;
    pthread_mutex_unlock(&sim->lock);
    *stream_p = &stream->base;
    return IRIS_OK;
}

static void unlist_stream(struct sim_stream *stream)
{
    struct sim_backend *sim = stream->sim;
    struct sim_stream **link = &sim->streams;

    pthread_mutex_lock(&sim->lock);
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    if (sim->stop.origin == stream) {
        sim->stop.origin = NULL;
    }
    pthread_mutex_unlock(&sim->lock);
}

void iris_i_sim_stream_destroy(struct iris_stream *base)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_backend *sim = stream->sim;
    bool known = iris_i_fault_check(&sim->base) != IRIS_OK;
    bool finished = wait_for_all(stream);
    iris_status_t status = iris_i_sim_fault(sim);

    /* A rank that leaves on purpose ends its kernels itself. */
    if (!known && status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_i_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                     sim->params.rank, iris_last_error());
    }
    unlist_stream(stream);
    if (!finished) { /* a kernel is still running: the heaps stay */
        sim->abandoned = true;
    }
    end_worker(stream, finished);
}

const struct iris_queue_ops iris_i_sim_queue_ops = {
    .synchronize = synchronize_stream,
    .query = query_stream,
    .copy = enqueue_copy,
    .copy_rows = enqueue_rows,
    .set = enqueue_set,
    .launch = launch_kernel,
    .signal = iris_i_no_signal,
    .wait = iris_i_no_wait,
    .follow = enqueue_follow,
    .capture_begin = iris_i_no_capture_begin,
    .capture_end = iris_i_no_capture_end,
    .graph_launch = iris_i_no_graph_launch,
    .native = iris_i_no_native,
    .call = iris_i_no_call,
};
