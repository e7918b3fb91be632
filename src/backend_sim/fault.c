/* SPDX-License-Identifier: MIT
 *
 * Faults of simulated kernels: how work stops, and the message that says why.
 *
 * The instance runs until the first kernel or wait for a stream fails. That sets
 * `stop`, under the instance's lock, and every stream then skips its commands and
 * ends its workgroups. A synchronize turns the stop into the instance's fault,
 * after the stream of its origin has ended, since only then is everything known
 * for the message. iris_clear_error() drops both, after all streams have ended.
 * Only one thing cannot be stopped: a kernel that waits by a loop of its own. The
 * fault then stays, and the instance and its heaps with it.
 *
 * A kernel that accesses unmapped memory does not stop: the process gets SIGSEGV
 * or SIGBUS. While there is a stream, our handler writes a line about the kernel
 * and passes the signal on to the program's handler.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "base/base.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- A signal: one line about the kernel, then the previous action ---- */

static const int signals[] = {SIGSEGV, SIGBUS};
#define NUM_SIGNALS (sizeof signals / sizeof *signals)

/* The previous actions of the signals. Guarded by the lock; the handler reads
 * them without it, since they change only while there is no stream. */
static pthread_mutex_t signals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[NUM_SIGNALS];
static bool installed[NUM_SIGNALS];
static unsigned num_users;

/* ---- The line, made by calls that are allowed in handlers ---- */

struct line {
    char text[512];
    size_t used;
};

static void add_text(struct line *line, const char *text)
{
    /* space for the line's end */
    size_t most = sizeof line->text - 1 - line->used;
    size_t bytes = strnlen(text, most);

    memcpy(line->text + line->used, text, bytes);
    line->used += bytes;
}

static void add_number(struct line *line, uint64_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    add_text(line, &digits[at]);
}

/* "; that is heap offset 70000 on rank 1, 20 bytes past the end of the
 * allocation of 4096 bytes at heap offset 65536" */
static void add_place(struct line *line, const struct iris_location *place)
{
    add_text(line, "; that is heap offset ");
    add_number(line, place->offset, 10);
    add_text(line, " on rank ");
    add_number(line, (uint64_t)place->rank, 10);
    if (place->bytes == 0) {
        return;
    }
    if (place->offset < place->start) {
        add_text(line, ", ");
        add_number(line, place->start - place->offset, 10);
        add_text(line, " bytes before");
    } else if (place->offset - place->start >= place->bytes) {
        add_text(line, ", ");
        add_number(line, place->offset - place->start - place->bytes, 10);
        add_text(line, " bytes past the end of");
    } else {
        add_text(line, ", in");
    }
    add_text(line, " the allocation of ");
    add_number(line, place->bytes, 10);
    add_text(line, " bytes at heap offset ");
    add_number(line, place->start, 10);
}

static void write_line(int number, const void *address,
                       const struct iris_backend_params *params,
                       const struct iris_cpu_wg *cpu)
{
    struct line line = {.used = 0};
    struct iris_location place;

    add_text(&line, "[Iris] rank ");
    add_number(&line, (uint64_t)cpu->rank, 10);
    add_text(&line, ": kernel ");
    add_text(&line, cpu->kernel);
    add_text(&line, ", workgroup ");
    add_number(&line, cpu->workgroup, 10);
    add_text(&line, number == SIGSEGV ? ": SIGSEGV at 0x" : ": SIGBUS at 0x");
    add_number(&line, (uint64_t)(uintptr_t)address, 16);
    if (params->core_ops->locate(params->core, address, &place)) {
        add_place(&line, &place);
    }
    add_text(&line, cpu->watched ? "" : "; run again with IRIS_CHECK=bounds");
    line.text[line.used++] = '\n';
    if (write(STDERR_FILENO, line.text, line.used) < 0) {
        return; /* stderr is closed */
    }
}

/* ---- The handler ---- */

/* Passes the signal on. A fault is raised again when the handler returns, and
 * then meets the previous action. A signal that was sent is not raised
 * again. */
static void pass_on(size_t i, siginfo_t *info, void *context)
{
    struct sigaction next = before[i];

    if ((next.sa_flags & SA_RESETHAND) != 0) {
        before[i].sa_handler = SIG_DFL;
        before[i].sa_flags = 0;
    }
    if ((next.sa_flags & SA_SIGINFO) != 0) {
        next.sa_sigaction(signals[i], info, context);
    } else if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
        next.sa_handler(signals[i]);
    } else if (info->si_code > 0) {
        sigaction(signals[i], &next, NULL);
    } else if (next.sa_handler == SIG_DFL) {
        sigaction(signals[i], &next, NULL);
        raise(signals[i]);
    }
}

static void handle_signal(int number, siginfo_t *info, void *context)
{
    const struct iris_backend_params *params;
    const struct iris_cpu_wg *cpu = iris_i_cpu_running(&params);

    if (cpu != NULL && info->si_code > 0) { /* a fault of this thread */
        write_line(number, info->si_addr, params, cpu);
    }
    pass_on(number == signals[0] ? 0 : 1, info, context);
}

static void install_handler(size_t i)
{
    struct sigaction action = {.sa_flags = 0};

    if (installed[i] || sigaction(signals[i], NULL, &before[i]) != 0) {
        return;
    }
    action.sa_sigaction = handle_signal;
    action.sa_mask = before[i].sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | /* the flags of the program's
                                                 * action: */
                      (before[i].sa_flags & (SA_NODEFER | SA_RESTART));
    installed[i] = sigaction(signals[i], &action, NULL) == 0;
}

/* A handler that was installed after ours may call ours: then ours stays. */
static void remove_handler(size_t i)
{
    struct sigaction now;

    if (installed[i] && sigaction(signals[i], NULL, &now) == 0 &&
        (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle_signal) {
        sigaction(signals[i], &before[i], NULL);
        installed[i] = false;
    }
}

void iris_i_sim_signals_acquire(void)
{
    pthread_mutex_lock(&signals_lock);
    if (num_users++ == 0) {
        for (size_t i = 0; i < NUM_SIGNALS; i++) {
            install_handler(i);
        }
    }
    pthread_mutex_unlock(&signals_lock);
}

void iris_i_sim_signals_release(void)
{
    pthread_mutex_lock(&signals_lock);
    if (--num_users == 0) {
        for (size_t i = 0; i < NUM_SIGNALS; i++) {
            remove_handler(i);
        }
    }
    pthread_mutex_unlock(&signals_lock);
}

void iris_i_sim_signals_stack(void *stack, size_t bytes)
{
    const stack_t own = {.ss_sp = stack, .ss_size = bytes};
    stack_t there;

    /* A sanitizer may have given the thread a stack, and will free it. */
    if (sigaltstack(NULL, &there) == 0 && (there.ss_flags & SS_DISABLE) != 0) {
        sigaltstack(&own, NULL);
    }
}

/* Time that streams have to end after a stop. */
#define GRACE_MS 1000

/* ---- Stopping ---- */

/* Stops all work. False: it was stopped before. */
static bool stop_work(struct sim_backend *sim, struct sim_stream *stream,
                      iris_status_t status, const char *message)
    IRIS_REQUIRES(sim->lock)
{
    struct sim_stop *stop = &sim->stop;

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
    (void)stop_work(stream->sim, stream, status, message);
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
    if (stop_work(sim, stream, status, iris_last_error())) {
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
append_text(char message[IRIS_MESSAGE_BYTES], const char *format, ...)
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

    append_text(message, "%s for the value at %p (",
                ended->wait_op == IRIS_OP_BARRIER ? " in a barrier" : "",
                ended->wait_address);
    if (offset < ended->heap_bytes) {
        append_text(message, "heap offset %zu", offset);
    } else {
        append_text(message, "not on this rank's heap");
    }
    append_text(message, ") to be %s %lld and last saw %lld",
                iris_i_cmp_name(ended->wait_cmp), (long long)ended->wait_value,
                (long long)ended->wait_seen);
    if (ended->wait_op == IRIS_OP_BARRIER) {
        params->core_ops->describe_late(params->core, ended->wait_address, late,
                                        sizeof late);
    }
    append_text(message, "%s%s", late[0] == '\0' ? "" : ": ", late);
}

/* "; rank 3, on another node, has not answered" */
static void append_silent(const struct iris_backend_params *params,
                          char message[IRIS_MESSAGE_BYTES])
{
    char silent[64];

    params->core_ops->describe_late(params->core, NULL, silent, sizeof silent);
    append_text(message, "%s%s", silent[0] == '\0' ? "" : "; ", silent);
}

/* Whether the stream has work that is neither done nor skipped. */
static bool is_busy(struct sim_stream *stream)
{
    return atomic_load(&stream->completed) != atomic_load(&stream->submitted);
}

/* Appends the kernel's wait to the stop's message, unless the kernel was ended
 * for a wrong access. The caller holds the lock. */
static void describe_stop(const struct sim_backend *sim,
                          char message[IRIS_MESSAGE_BYTES])
{
    const struct sim_stop *stop = &sim->stop;
    struct sim_stream *origin = stop->origin;

    memcpy(message, stop->message, IRIS_MESSAGE_BYTES);
    if (stop->num_ended > 0 && !stop->refused) {
        append_text(message, "; kernel %s: workgroup %u waited",
                    stop->ended.kernel, stop->ended.workgroup);
        if (stop->ended.wait_address != NULL) {
            append_wait(&sim->params, &stop->ended, message);
        } else {
            append_silent(&sim->params, message);
        }
    }
    if (stop->num_ended > 0) {
        append_text(message, "; workgroups ended: %u", stop->num_ended);
    }
    /* The waiting workgroups may have waited for these. */
    if (stop->num_ended > 0 && stop->num_unstarted > 0 &&
        atomic_load(&stop->status) == IRIS_ERR_TIMEOUT) {
        append_text(message,
                    "; %u of %u workgroups never started, see IRIS_SIM_CUS",
                    stop->num_unstarted, stop->grid);
    }
    if (origin == NULL || !is_busy(origin)) {
        return;
    }
    pthread_mutex_lock(&origin->lock);
    if (origin->running != NULL) {
        append_text(
            message,
            "; %s still runs: it does not wait by iris_wait_until() or the "
            "like, so it cannot be ended",
            origin->running);
    }
    pthread_mutex_unlock(&origin->lock);
}

/* ---- The instance's fault ---- */

/* A stream with work: any stream, or the origin alone. */
static struct sim_stream *find_busy(const struct sim_backend *sim, bool all)
    IRIS_REQUIRES(sim->lock)
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
    IRIS_ACQUIRES(sim->lock)
{
    iris_status_t status = IRIS_OK;
    struct sim_stream *busy;
    struct iris_wait wait;

    iris_i_wait_moment(&wait, GRACE_MS);
    pthread_mutex_lock(&sim->lock);
    while ((busy = find_busy(sim, all)) != NULL && status == IRIS_OK) {
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
            describe_stop(sim, message);
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
