/* SPDX-License-Identifier: MIT
 *
 * iris run, and one run of iris check: start the processes of a program's ranks, pass
 * signals on to them, and wait for all of them. A rank that fails is for its
 * peers to notice: nobody here ends the others.
 */
#include "config.h"

#include "iris.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_RANKS 65536

static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,
                              SIGQUIT, SIGUSR1, SIGUSR2};

/* The processes. Signals are blocked while they start; a process that was
 * waited for is 0. */
static pid_t *ranks;
static int num_ranks;

static void forward_signal(int signal)
{
    int error = errno;

    for (int i = 0; i < num_ranks; i++) {
        if (ranks[i] > 0) {
            (void)kill(ranks[i], signal);
        }
    }
    errno = error;
}

/* A signal that is ignored stays so, here and in the ranks. */
static void catch_signals(sigset_t *mask_p)
{
    struct sigaction action = {.sa_handler = forward_signal,
                               .sa_flags = SA_RESTART};

    sigemptyset(mask_p);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old;

        sigaddset(mask_p, signals[i]);
        if (sigaction(signals[i], NULL, &old) == 0 &&
            old.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

static void become_program(const char *tool, char **program)
{
    int error;

    execvp(program[0], program);
    error = errno;
    fprintf(stderr, "%s: %s: %s\n", tool, program[0], strerror(error));
    _exit(error == ENOENT ? TOOL_NOT_FOUND : TOOL_NOT_RUN);
}

/* Starts all ranks. After a failure there are fewer than num_ranks of them. */
static int start_ranks(const char *tool, char **program, bool are_threads)
{
    unsigned long long random = 0;
    sigset_t mask, old;
    char job[64];
    int started = 0;

    /* No two jobs of one machine may share the name. */
    (void)!getrandom(&random, sizeof random, 0);
    snprintf(job, sizeof job, "run-%ld-%016llx", (long)getpid(), random);
    if (!are_threads) {
        setenv("IRIS_JOB_ID", job, 1);
        set_number("IRIS_NUM_RANKS", num_ranks);
    }
    catch_signals(&mask);
    sigprocmask(SIG_BLOCK, &mask, &old);
    for (; started < num_ranks; started++) {
        pid_t pid = fork();

        if (pid == 0) {
            if (!are_threads) {
                set_number("IRIS_RANK", started);
            }
            sigprocmask(SIG_SETMASK, &old, NULL);
            become_program(tool, program);
        }
        if (pid < 0) {
            fprintf(stderr, "%s: rank %d: %s\n", tool, started,
                    strerror(errno));
            break;
        }
        ranks[started] = pid;
    }
    if (started < num_ranks) {
        forward_signal(SIGTERM);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return started == num_ranks ? TOOL_OK : TOOL_FAILED;
}

/* The exit status of a rank, by the rules of a shell. No signal is passed on to a
 * process that has been waited for, whose number another may have by then. */
static int wait_for(pid_t *rank)
{
    pid_t pid = *rank;
    siginfo_t ended;
    int status;

    if (pid == 0) {
        return TOOL_OK;
    }
    while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR) {
    }
    *rank = 0;
    if (waitpid(pid, &status, 0) < 0) {
        return TOOL_FAILED;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs num_ranks processes, or one whose threads are the ranks. Returns the status
 * of the lowest rank that failed. */
static int run_ranks(const char *tool, char **program, bool are_threads)
{
    int status;

    ranks = calloc((size_t)num_ranks, sizeof *ranks);
    if (ranks == NULL) {
        fprintf(stderr, "%s: no memory\n", tool);
        return TOOL_FAILED;
    }
    status = start_ranks(tool, program, are_threads);
    for (int i = 0; i < num_ranks; i++) {
        int one = wait_for(&ranks[i]);

        status = status == 0 ? one : status;
    }
    return status;
}

/* ---- Command lines ---- */

struct run_options {
    int num_ranks;
    char **program;
};

static const struct argp_option run_rows[] = {
    {"ranks", 'n', "N", 0, "The number of ranks", 0},
    {0},
};

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
    struct run_options *options = state->input;

    switch (key) {
    case 'n':
        options->num_ranks =
            (int)tool_number(state, "ranks", arg, 1, MOST_RANKS);
        return 0;
    case ARGP_KEY_ARG:
        options->program = tool_rest(state);
        return 0;
    case ARGP_KEY_END:
        if (options->num_ranks == 0 || options->program == NULL) {
            argp_error(state, "pass -n N and a program");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_run(int argc, char **argv)
{
    static const struct argp argp = {
        .options = run_rows,
        .parser = parse_run,
        .args_doc = "PROGRAM [ARGUMENT]...",
        .doc = "Starts N processes of a program on this machine, the ranks of "
               "one job, and waits for them. Needs no MPI.\v"
               "Exit status: that of the lowest rank that failed (128 and the "
               "signal's number if a signal ended it), else 0; 2 for a wrong "
               "command line.",
    };
    struct run_options options = {0};

    tool_parse(&argp, argc, argv, &options);
    num_ranks = options.num_ranks;
    return run_ranks(argv[0], options.program, false);
}

/* Whether the ranks have to be threads of one process: where a seed or a
 * schedule decides on the order. */
static bool needs_threads(const char *mode)
{
    return strcmp(mode, "weak") == 0 || getenv("IRIS_SEED") != NULL ||
           getenv("IRIS_SCHEDULE") != NULL || getenv("IRIS_REPLAY") != NULL;
}

/* A program that does not start its ranks by iris_spawn() is one rank alone, and
 * its schedule tells. Returns false after printing a message. */
static bool has_ranks(const char *tool, int wanted, const char *path)
{
    FILE *file = fopen(path, "re");
    int made = wanted;

    if (file != NULL) {
        if (fscanf(file, "schedule seed %*u check %*s ranks %d", &made) != 1) {
            made = wanted; /* the program ended before */
        }
        fclose(file);
    }
    if (made != wanted) {
        fprintf(stderr,
                "%s: the program ran %d rank%s, not %d; these checks need a "
                "program that starts its ranks by iris_spawn()\n",
                tool, made, made == 1 ? "" : "s", wanted);
    }
    return made == wanted;
}

/* Runs the program with ranks that are threads, and with a schedule. */
static int check_threads(const char *tool, int wanted, char **program)
{
    char folder[TOOL_FOLDER_BYTES] = "", path[TOOL_FOLDER_BYTES + 16];
    const char *given = getenv("IRIS_SCHEDULE");
    int status;

    unsetenv("IRIS_RANK");
    set_number("IRIS_NUM_RANKS", wanted);
    setenv("IRIS_SPAWN", "threads", 1);
    if (given == NULL) {
        if (!tool_make_folder(tool, folder)) {
            return TOOL_FAILED;
        }
        snprintf(path, sizeof path, "%s/schedule", folder);
        setenv("IRIS_SCHEDULE", path, 1);
    }
    num_ranks = 1;
    status = run_ranks(tool, program, true);
    if (!has_ranks(tool, wanted, given == NULL ? path : given)) {
        status = status == 0 ? TOOL_FAILED : status;
    }
    if (given == NULL) {
        (void)unlink(path);
        (void)rmdir(folder);
    }
    return status;
}

int tool_check_once(const char *tool, const char *mode, int wanted,
                    char **program)
{
    if (mode[0] == '\0') {
        unsetenv("IRIS_CHECK");
    } else {
        setenv("IRIS_CHECK", mode, 1);
    }
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "cpu", 1);
    num_ranks = wanted;
    if (needs_threads(mode)) {
        return check_threads(tool, wanted, program);
    }
    return run_ranks(tool, program, false);
}
