/* SPDX-License-Identifier: MIT
 *
 * Makes ranks: iris_init() for this process's one rank, and iris_spawn() for ranks
 * as threads or processes.
 *
 * Wrong settings do not keep a rank from its peers, which may know of it and wait:
 * it joins them all the same, to tell them. A parent of processes waits for all of
 * them, and ends the others if one fails; a rank that ends without iris_finalize() is
 * abandoned, so that its peers fail at once.
 */
#include "config.h"

#include "job/internal.h"

#include "base/base.h"
#include "context/context.h"
#include "trace/trace.h"
#include <iris/spawn.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- iris_init() ---- */

iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p)
{
    struct iris_settings settings;
    iris_status_t status = iris_i_settings_load(config, &settings);

    return iris_i_context_open(&settings, bootstrap, &iris_i_life_ops, status,
                               iris_p);
}

/* Wrong settings may be the reason why a rank knows of no others, which wait
 * for it. It joins them all the same, to tell them. */
static void expect_others(struct iris_settings *settings)
{
    if (settings->rank.origin != IRIS_ORIGIN_DEFAULT &&
        settings->num_ranks.origin == IRIS_ORIGIN_DEFAULT) {
        settings->num_ranks.number = settings->rank.number + 2;
    }
}

iris_status_t iris_init(const struct iris_config *config, iris_t **iris_p)
{
    struct iris_settings settings;
    struct iris_bootstrap bootstrap;
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t loaded, status;

    if (iris_p == NULL) {
        return iris_i_fail(
            NULL, IRIS_ERR_INVALID,
            "iris_init: iris_p is NULL; pass where to put the context");
    }
    loaded = iris_i_settings_load(config, &settings);
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (loaded != IRIS_OK) {
        expect_others(&settings);
    }
    status = iris_i_bootstrap(&settings, &bootstrap);
    if (loaded != IRIS_OK) {
        iris_i_fail_again(loaded, message);
    }
    if (status != IRIS_OK) {
        return loaded != IRIS_OK ? loaded : status;
    }
    return iris_i_context_open(&settings, &bootstrap, &iris_i_life_ops, loaded,
                               iris_p);
}

/* ---- iris_spawn() ---- */

/* One rank's failure. The rank that claims the note writes it, once. */
struct note {
    atomic_int rank_p1; /* rank + 1 of the rank that claimed it; 0: none */
    iris_status_t status;
    char message[IRIS_MESSAGE_BYTES];
};

/* The failures, in memory that child processes share. Ranks in the rendezvous
 * check `first`, so that they do not wait for a failed rank. */
struct failure {
    struct note first;    /* the first failure, perhaps only a consequence at a
                        * survivor */
    struct note cause;    /* the failure that is not a consequence of another */
    atomic_int num_ended; /* number of ranks that reached the end of
                           * run_rank() */
};

struct spawn {
    const struct iris_config *config;
    iris_rank_fn fn;
    void *arg;
    int num_ranks;
    char key[IRIS_KEY_BYTES];
    struct failure *failure;
};

/* One rank's thread. */
struct rank_thread {
    pthread_t thread;
    struct spawn *spawn;
    int rank;
};

/* Keeps this thread's message unless another rank has claimed the note. */
static void note_down(struct note *note, int rank, iris_status_t status)
{
    int nobody = 0;

    if (atomic_compare_exchange_strong(&note->rank_p1, &nobody, rank + 1)) {
        snprintf(note->message, sizeof note->message, "%s", iris_last_error());
        note->status = status;
    }
}

static void record_end(struct failure *failure, int rank, iris_status_t status)
{
    note_down(&failure->first, rank, status);
}

/* Keeps it as the cause, which takes precedence over losses that survivors
 * recorded. */
static void record_cause(struct failure *failure, int rank)
{
    note_down(&failure->cause, rank, IRIS_ERR_PEER_LOST);
    note_down(&failure->first, rank, IRIS_ERR_PEER_LOST);
}

static int is_status(int code)
{
    return strcmp(iris_status_string((iris_status_t)code), "IRIS_ERR_?") != 0;
}

/* The result of a rank's function. */
struct outcome {
    int rank;
    int num_ranks;
    int code;
    int finalized; /* it finalized its context, which it must not do */
};

/* Records a code that is not 0: a number of the function's own, or a status,
 * with the message of this thread's last call in the function. */
static iris_status_t record_code(struct failure *failure,
                                 const struct outcome *outcome)
{
    iris_status_t status = is_status(outcome->code)
                               ? (iris_status_t)outcome->code
                               : IRIS_ERR_PEER_LOST;
    const char *late =
        outcome->finalized
            ? ", after it had finalized its context, which iris_spawn does"
            : "";

    if (!is_status(outcome->code)) {
        iris_i_fail(NULL, status,
                    "[%d/%d] the function of rank %d returned %d%s",
                    outcome->rank, outcome->num_ranks, outcome->rank,
                    outcome->code, late);
        record_cause(failure, outcome->rank);
        return status;
    }
    iris_i_fail(NULL, status,
                "[%d/%d] the function of rank %d returned %s (%d)%s%s%s",
                outcome->rank, outcome->num_ranks, outcome->rank,
                iris_status_string(status), outcome->code, late,
                iris_last_error()[0] == '\0' ? "" : ": ", iris_last_error());
    record_end(failure, outcome->rank, status);
    return status;
}

/* After a function that returned 0. */
static iris_status_t finalize_rank(iris_t *iris, struct spawn *spawn,
                                   const struct outcome *outcome)
{
    iris_status_t status =
        outcome->finalized
            ? iris_i_fail(NULL, IRIS_ERR_STATE,
                          "[%d/%d] the function of rank %d finalized its "
                          "context; leave that to iris_spawn, which does it "
                          "when the function has returned",
                          outcome->rank, outcome->num_ranks, outcome->rank)
            : iris_finalize(iris);

    if (status != IRIS_OK) {
        record_end(spawn->failure, outcome->rank, status);
    }
    return status;
}

static IRIS_RUNS_PROGRAM int run_program(iris_t *iris,
                                         const struct spawn *spawn)
{
    volatile int code = spawn->fn(iris, spawn->arg); /* a call, and no jump */

    return code;
}

/* Runs fn between init and finalize. A failed rank leaves at once. */
static iris_status_t call_function(iris_t *iris, struct spawn *spawn)
{
    struct outcome outcome = {.rank = iris_i_rank(iris),
                              .num_ranks = iris_i_num_ranks(iris)};
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    iris_i_fail_again(IRIS_OK, ""); /* a later message is fn's */
    outcome.code = run_program(iris, spawn);
    outcome.finalized = !iris_i_is_live(iris);
    if (outcome.code == 0) {
        return finalize_rank(iris, spawn, &outcome);
    }
    status = record_code(spawn->failure, &outcome);
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (!outcome.finalized) {
        iris_i_abandon(iris);
    }
    return iris_i_fail_again(status, message);
}

static iris_status_t run_made_rank(struct spawn *spawn, int rank)
{
    struct iris_bootstrap bootstrap;
    iris_status_t status;
    iris_t *iris;

    iris_i_bootstrap_thread(spawn->key, rank, spawn->num_ranks, &bootstrap);
    bootstrap.failed = &spawn->failure->first.rank_p1;
    status = iris_i_init(spawn->config, &bootstrap, &iris);
    if (status != IRIS_OK) {
        record_end(spawn->failure, rank, status);
        return status;
    }
    return call_function(iris, spawn);
}

static iris_status_t run_rank(struct spawn *spawn, int rank)
{
    iris_status_t status = run_made_rank(spawn, rank);

    atomic_fetch_add(&spawn->failure->num_ended, 1);
    return status;
}

static void *rank_main(void *arg)
{
    struct rank_thread *self = arg;

    run_rank(self->spawn, self->rank);
    return NULL;
}

static void run_threads(struct spawn *spawn)
{
    struct rank_thread *threads =
        calloc((size_t)spawn->num_ranks, sizeof *threads);
    int started = 0, ret = threads == NULL ? ENOMEM : 0;

    for (; ret == 0 && started < spawn->num_ranks; started += ret == 0) {
        threads[started].spawn = spawn;
        threads[started].rank = started;
        ret = pthread_create(&threads[started].thread, NULL, rank_main,
                             &threads[started]);
    }
    if (ret != 0) {
        iris_i_fail_errno(NULL, IRIS_ERR_LIMIT, ret,
                          "cannot start the thread of rank %d", started);
        record_end(spawn->failure, started, IRIS_ERR_LIMIT);
    }
    for (int rank = 0; rank < started; rank++) {
        pthread_join(threads[rank].thread, NULL);
    }
    free(threads);
}

static void __attribute__((noreturn))
child_main(struct spawn *spawn, int rank, pid_t parent)
{
    iris_status_t status;

    /* If the parent is killed, its ranks are killed, too. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    status = run_rank(spawn, rank);
    fflush(NULL);
    _exit(status == IRIS_OK ? 0 : 1);
}

/* Derives a rank's result from the end of its child process. */
static void judge_child(struct spawn *spawn, int rank, pid_t pid, int how)
{
    if (WIFSIGNALED(how)) {
        iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                    "rank %d (pid %ld) was killed by signal %d", rank,
                    (long)pid, WTERMSIG(how));
        record_cause(spawn->failure, rank);
    } else if (WEXITSTATUS(how) != 0) {
        iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                    "rank %d (pid %ld) exited with code %d", rank, (long)pid,
                    WEXITSTATUS(how));
        record_end(spawn->failure, rank, IRIS_ERR_PEER_LOST);
    }
}

/* Reaps the children in the order of their ends, so that one killed before the
 * rendezvous is recorded while the others still wait for it. Does not reap
 * other children of the process. */
static void wait_for_children(struct spawn *spawn, const pid_t *pids, int count)
{
    struct pollfd pollfds[count + 1]; /* an array of size 0 is not allowed */
    int left = count, patience_ms = -1, how = 0;

    for (int rank = 0; rank < count; rank++) {
        pollfds[rank].fd = iris_i_process_watch(pids[rank]);
        pollfds[rank].events = POLLIN;
        pollfds[rank].revents = POLLIN;
        patience_ms = pollfds[rank].fd < 0 ? IRIS_CHILDREN_MS : patience_ms;
    }
    while (left > 0) {
        for (int rank = 0; rank < count; rank++) {
            pid_t ret = pollfds[rank].events == 0
                            ? 0
                            : waitpid(pids[rank], &how, WNOHANG);

            if (ret == 0) {
                continue;
            }
            if (ret == pids[rank]) {
                judge_child(spawn, rank, pids[rank], how);
            }
            if (pollfds[rank].fd >= 0) {
                close(pollfds[rank].fd);
            }
            pollfds[rank] = (struct pollfd){.fd = -1};
            left--;
        }
        if (left > 0) {
            poll(pollfds, (nfds_t)count, patience_ms);
        }
    }
}

static void run_processes(struct spawn *spawn)
{
    pid_t *pids = calloc((size_t)spawn->num_ranks, sizeof *pids);
    pid_t parent = getpid();
    int started = 0;

    fflush(NULL);
    while (pids != NULL && started < spawn->num_ranks) {
        pids[started] = fork();
        if (pids[started] == 0) {
            child_main(spawn, started, parent);
        }
        if (pids[started] < 0) {
            break;
        }
        started++;
    }
    if (started < spawn->num_ranks) {
        iris_i_fail_errno(NULL, IRIS_ERR_LIMIT, errno,
                          "cannot start the process of rank %d", started);
        record_end(spawn->failure, started, IRIS_ERR_LIMIT);
        for (int rank = 0; rank < started; rank++) {
            kill(pids[rank], SIGKILL);
        }
    }
    wait_for_children(spawn, pids, started);
    free(pids);
}

static iris_status_t make_ranks(const struct iris_settings *settings,
                                struct spawn *spawn)
{
    iris_status_t status = iris_i_bootstrap_random_key(spawn->key);

    if (status != IRIS_OK) {
        return status;
    }
    if (settings->spawn.number == IRIS_CHOICE_SPAWN_PROCESSES) {
        run_processes(spawn);
    } else {
        iris_i_place_preload(settings);
        run_threads(spawn);
    }
    return IRIS_OK;
}

/* This process is one rank of a launcher's job. */
static iris_status_t run_launched(struct spawn *spawn)
{
    iris_status_t status;
    iris_t *iris;

    status = iris_init(spawn->config, &iris);
    if (status != IRIS_OK) {
        return status;
    }
    if (spawn->num_ranks != 0 && spawn->num_ranks != iris_i_num_ranks(iris)) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "iris_spawn of %d ranks under a launcher that "
                             "started %d; pass 0 or start as many",
                             spawn->num_ranks, iris_i_num_ranks(iris));
        iris_i_abandon(iris);
        return status;
    }
    return call_function(iris, spawn);
}

/* Called after every rank made here has ended. */
static iris_status_t first_failure(const struct failure *failure, int num_ranks)
{
    int has_cause = atomic_load(&failure->cause.rank_p1) != 0;
    const struct note *note =
        has_cause && (failure->first.status == IRIS_ERR_PEER_LOST ||
                      failure->first.status == IRIS_OK)
            ? &failure->cause
            : &failure->first;
    int rank = atomic_load(&note->rank_p1) - 1;

    if (rank >= 0 && note->status != IRIS_OK) {
        return iris_i_fail_again(note->status, note->message);
    }
    if (rank >= 0) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank %d ended while it noted a failure", rank);
    }
    if (atomic_load(&failure->num_ended) < num_ranks) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "%d of %d ranks ended without returning from their "
                           "function; a rank must not exit()",
                           num_ranks - atomic_load(&failure->num_ended),
                           num_ranks);
    }
    return IRIS_OK;
}

static iris_status_t spawn_ranks(struct spawn *spawn)
{
    struct iris_settings settings;
    iris_status_t status = iris_i_settings_load(spawn->config, &settings);

    if (status != IRIS_OK) {
        return status;
    }
    if (iris_i_bootstrap_launched(&settings)) {
        return run_launched(spawn);
    }
    if (spawn->num_ranks == 0) {
        spawn->num_ranks = (int)settings.num_ranks.number;
    }
    status = iris_i_bootstrap_check(spawn->num_ranks);
    if (status == IRIS_OK) {
        status = make_ranks(&settings, spawn);
    }
    return status == IRIS_OK ? first_failure(spawn->failure, spawn->num_ranks)
                             : status;
}

iris_status_t iris_spawn(const struct iris_config *config, int num_ranks,
                         iris_rank_fn fn, void *arg)
{
    struct spawn spawn = {
        .config = config, .fn = fn, .arg = arg, .num_ranks = num_ranks};
    iris_status_t status;

    if (fn == NULL || num_ranks < 0) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID, "iris_spawn: %s",
                           fn == NULL ? "fn is NULL" : "num_ranks is negative");
    }
    spawn.failure = mmap(NULL, sizeof *spawn.failure, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (spawn.failure == MAP_FAILED) {
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno,
                                 "no memory to run ranks");
    }
    status = spawn_ranks(&spawn);
    munmap(spawn.failure, sizeof *spawn.failure);
    return status;
}
