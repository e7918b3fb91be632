/* SPDX-License-Identifier: MIT
 *
 * Each run is a new process, because only a program that starts anew is in the
 * same state again.
 */
#define _GNU_SOURCE
#include "config.h"

#include "replay_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RACE "data race on "

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

static const char *const names[] = {"follow", "recorded", "output"};

static const char *path_of(const struct replay_program *program,
                           const char *name, char path[300])
{
    snprintf(path, 300, "%s/%s", program->folder, name);
    return path;
}

int replay_prepare(struct replay_program *program)
{
    const char *folder = getenv("TMPDIR");

    snprintf(program->folder, sizeof program->folder, "%s/iris-replay.XXXXXX",
             folder == NULL || folder[0] == '\0' ? "/tmp" : folder);
    if (mkdtemp(program->folder) == NULL) {
        fprintf(stderr, "iris replay: %s: %s\n", program->folder,
                strerror(errno));
        return -1;
    }
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    return 0;
}

void replay_clean(const struct replay_program *program)
{
    char path[300];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unlink(path_of(program, names[i], path));
    }
    rmdir(program->folder);
}

/* Leaves out the lines about steps, which a replay does not use. */
int replay_keep(const struct replay_program *program, const char *path)
{
    char source[300], line[4096];
    FILE *from = fopen(path_of(program, "recorded", source), "re");
    FILE *to = fopen(path, "we");
    bool failed = from == NULL || to == NULL;

    while (!failed && fgets(line, sizeof line, from) != NULL) {
        failed = strncmp(line, "step ", 5) != 0 && fputs(line, to) == EOF;
    }
    if (from != NULL) {
        fclose(from);
    }
    if (to != NULL) {
        failed |= fclose(to) != 0;
    }
    if (failed) {
        fprintf(stderr, "iris replay: cannot write %s: %s\n", path,
                strerror(errno));
    }
    return failed ? -1 : 0;
}

/* ---- The process ---- */

/* Runs in the child. It makes a process group, so that the parent can kill the
 * whole group. */
static void become(const struct replay_program *program,
                   const struct replay_schedule *schedule)
{
    char path[300], ranks[16], seed[32];
    int output;

    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    snprintf(ranks, sizeof ranks, "%d", schedule->num_ranks);
    snprintf(seed, sizeof seed, "%llu", schedule->seed);
    setenv("IRIS_SEED", seed, 1);
    setenv("IRIS_CHECK", schedule->check, 1);
    setenv("IRIS_REPLAY", path_of(program, "follow", path), 1);
    setenv("IRIS_SCHEDULE", path_of(program, "recorded", path), 1);
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "cpu", 1);
    setenv("IRIS_SPAWN", "threads", 1);
    if (schedule->num_ranks != 0) {
        setenv("IRIS_NUM_RANKS", ranks, 0);
    }
    output = open(path_of(program, "output", path),
                  O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (output >= 0) {
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execvp(program->argv[0], program->argv);
        fprintf(stderr, "%s: %s\n", program->argv[0], strerror(errno));
    }
    _exit(127);
}

/* Returns the status of waitpid(), or -1 if the process has not ended in time. */
static int wait_for(const struct replay_program *program, pid_t pid)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec now;
    time_t end;
    int status;

    clock_gettime(CLOCK_MONOTONIC, &now);
    end = now.tv_sec + program->timeout_s;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > end || is_interrupted) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            if (is_interrupted) {
                replay_clean(program);
                exit(2);
            }
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return status;
}

/* ---- The result ---- */

static char *read_output(const struct replay_program *program)
{
    char path[300];
    FILE *file = fopen(path_of(program, "output", path), "re");
    size_t bytes = 0, got = 1;
    char *text = replay_alloc(NULL, 1);

    while (file != NULL && got != 0) {
        text = replay_alloc(text, bytes + 65536 + 1);
        got = fread(text + bytes, 1, 65536, file);
        bytes += got;
    }
    if (file != NULL) {
        fclose(file);
    }
    for (size_t i = 0; i < bytes; i++) { /* make binary output one string */
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[bytes] = '\0';
    return text;
}

/* Finds the two accesses of the first race, in the report's words. */
static bool find_race(const char *output, char *text, size_t bytes)
{
    const char *race = strstr(output, RACE);
    const char *first = race == NULL ? NULL : strchr(race, '\n');
    const char *second = first == NULL ? NULL : strchr(first + 1, '\n');
    const char *end = second == NULL ? NULL : strchr(second + 1, '\n');

    if (end == NULL) {
        return false;
    }
    snprintf(text, bytes, "data race:\n%.*s", (int)(end - first - 1),
             first + 1);
    return true;
}

static void judge(const struct replay_program *program, int status,
                  struct replay_result *result)
{
    char *text = result->failure;
    size_t bytes = sizeof result->failure;

    if (program->match != NULL) {
        if (strstr(result->output, program->match) != NULL) {
            snprintf(text, bytes, "output with \"%s\"", program->match);
        }
    } else if (status == -1) {
        snprintf(text, bytes, "no end in %d s", program->timeout_s);
    } else if (WIFSIGNALED(status)) {
        snprintf(text, bytes, "signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (!find_race(result->output, text, bytes) &&
               WEXITSTATUS(status) != 0) {
        snprintf(text, bytes, "exit status %d", WEXITSTATUS(status));
    }
}

bool replay_has_failure(const struct replay_result *result, const char *failure)
{
    const char *race = strchr(failure, '\n');

    return race != NULL && strncmp(failure, "data race", 9) == 0
               ? strstr(result->output, race + 1) != NULL
               : strcmp(result->failure, failure) == 0;
}

int replay_run(const struct replay_program *program,
               const struct replay_schedule *schedule,
               const struct replay_choice *choices, size_t num_choices,
               struct replay_result *result)
{
    char path[300];
    pid_t pid;
    int status;

    *result = (struct replay_result){0};
    unlink(path_of(program, "recorded", path));
    if (replay_write(path_of(program, "follow", path), schedule, choices,
                     num_choices) != 0) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        become(program, schedule);
    }
    if (pid < 0) {
        fprintf(stderr, "iris replay: cannot start a process: %s\n",
                strerror(errno));
        return -1;
    }
    status = wait_for(program, pid);
    result->output = read_output(program);
    judge(program, status, result);
    path_of(program, "recorded", path);
    if (access(path, R_OK) == 0) {
        if (replay_open(path, &result->schedule) != 0) {
            return -1;
        }
        result->has_schedule = true;
    }
    return 0;
}

void replay_drop(struct replay_result *result)
{
    free(result->output);
    replay_close(&result->schedule);
    *result = (struct replay_result){0};
}
