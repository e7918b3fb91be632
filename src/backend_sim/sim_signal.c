/* SPDX-License-Identifier: MIT
 *
 * Reports a kernel that accesses unmapped memory: one line on stderr names the
 * kernel and the address. Then the program's own handler or the system's
 * default action follows.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS};
#define NUM_SIGNALS (sizeof signals / sizeof *signals)

/* The previous actions of the signals. Guarded by the lock; the handler reads
 * them without it, since they change only while there is no stream. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static void handle(int number, siginfo_t *info, void *context)
{
    const struct iris_backend_params *params;
    const struct iris_cpu_wg *cpu = iris_i_cpu_running(&params);

    if (cpu != NULL && info->si_code > 0) { /* a fault of this thread */
        write_line(number, info->si_addr, params, cpu);
    }
    pass_on(number == signals[0] ? 0 : 1, info, context);
}

static void install(size_t i)
{
    struct sigaction action = {.sa_flags = 0};

    if (installed[i] || sigaction(signals[i], NULL, &before[i]) != 0) {
        return;
    }
    action.sa_sigaction = handle;
    action.sa_mask = before[i].sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | /* the flags of the program's
                                                 * action: */
                      (before[i].sa_flags & (SA_NODEFER | SA_RESTART));
    installed[i] = sigaction(signals[i], &action, NULL) == 0;
}

/* A handler that was installed after ours may call ours: then ours stays. */
static void uninstall(size_t i)
{
    struct sigaction now;

    if (installed[i] && sigaction(signals[i], NULL, &now) == 0 &&
        (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle) {
        sigaction(signals[i], &before[i], NULL);
        installed[i] = false;
    }
}

void iris_i_sim_signals_acquire(void)
{
    pthread_mutex_lock(&lock);
    if (num_users++ == 0) {
        for (size_t i = 0; i < NUM_SIGNALS; i++) {
            install(i);
        }
    }
    pthread_mutex_unlock(&lock);
}

void iris_i_sim_signals_release(void)
{
    pthread_mutex_lock(&lock);
    if (--num_users == 0) {
        for (size_t i = 0; i < NUM_SIGNALS; i++) {
            uninstall(i);
        }
    }
    pthread_mutex_unlock(&lock);
}

void iris_i_sim_signals_unblock(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS};

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(set, faults[i]);
    }
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
