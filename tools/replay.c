/* SPDX-License-Identifier: MIT
 *
 * iris replay: runs a program again under a schedule, which
 * src/check/weak_choice.c and weak_note.c record, and makes the schedule short.
 *
 * A schedule is a list of choices that are not the default, one a line, and
 * after them the operations of the run. Each run is a new process, because only
 * a program that starts anew is in the same state again. It follows the choices
 * in the file "follow" and records its own run in "recorded", both in a folder
 * of this tool, whose output goes to a third file there. The strings of a
 * schedule point into its text and live until close_schedule().
 */
#include "config.h"

#include "iris.h"
#include "replay.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Schedules ---- */

#define NUM_FIELDS 14 /* fields in the line of an operation */

static void *check_memory(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "iris replay: no memory\n");
        exit(2);
    }
    return memory;
}

void *replay_alloc(void *old, size_t bytes)
{
    return check_memory(realloc(old, bytes == 0 ? 1 : bytes));
}

void *replay_grow(void *array_p, size_t *count_p, size_t bytes)
{
    return check_memory(iris_i_grow(array_p, count_p, bytes));
}

/* The file's text, or NULL if it cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t bytes = 0, got = file != NULL;
    char *text = replay_alloc(NULL, 1);

    while (got != 0) {
        text = replay_alloc(text, bytes + 65536 + 1);
        got = fread(text + bytes, 1, 65536, file);
        bytes += got;
    }
    for (size_t i = 0; i < bytes; i++) { /* make binary output one string */
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[bytes] = '\0';
    if (file == NULL || ferror(file)) {
        free(text);
        text = NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

/* "read 7" or, without a value, "read -". */
static bool parse_value(const char *field, const char *word, uint64_t *value_p)
{
    unsigned long long value;
    char name[8];

    if (sscanf(field, "%7s %llu", name, &value) != 2 ||
        strcmp(name, word) != 0) {
        return false;
    }
    *value_p = value;
    return true;
}

/* Parses a line "did", whose fields are separated by tabs. */
static bool parse_op(char *line, struct replay_op *op)
{
    char *fields[NUM_FIELDS];
    int count = 0;

    for (char *at = line; at != NULL && count < NUM_FIELDS; count++) {
        fields[count] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    if (count != NUM_FIELDS) {
        return false;
    }
    *op = (struct replay_op){.rank = atoi(fields[1]),
                             .workgroup = (unsigned)atoi(fields[2]),
                             .kernel = fields[3],
                             .target = atoi(fields[4]),
                             .offset = strtoull(fields[5], NULL, 10),
                             .bytes = strtoull(fields[6], NULL, 10),
                             .deed = fields[10],
                             .place = fields[11],
                             .code = strtoull(fields[12], NULL, 16),
                             .file = fields[13]};
    op->reads = parse_value(fields[7], "read", &op->seen);
    op->writes = parse_value(fields[8], "wrote", &op->written);
    return sscanf(fields[9], "old %u", &op->behind) == 1;
}

static bool parse_schedule_line(struct replay_schedule *schedule, char *line)
{
    if (strncmp(line, "step ", 5) == 0) {
        struct replay_mark *mark =
            replay_grow(&schedule->marks, &schedule->num_marks, sizeof *mark);

        *mark = (struct replay_mark){line, schedule->num_ops};
        return true;
    }
    if (strncmp(line, "did\t", 4) == 0) {
        return parse_op(line, replay_grow(&schedule->ops, &schedule->num_ops,
                                          sizeof *schedule->ops));
    }
    if (strncmp(line, "turn ", 5) == 0 || strncmp(line, "read ", 5) == 0) {
        struct replay_choice *choice = replay_grow(
            &schedule->choices, &schedule->num_choices, sizeof *choice);

        choice->text = line;
        return true;
    }
    if (strcmp(line, "early") == 0) {
        schedule->is_early = true;
        return true;
    }
    schedule->has_end |= strncmp(line, "end ", 4) == 0;
    return schedule->has_end;
}

static int parse_lines(const char *path, struct replay_schedule *schedule,
                       char *line)
{
    size_t number = 1;
    char *end = strchr(line, '\n');

    if (sscanf(line, "schedule seed %llu check %15s ranks %d program %255[^\n]",
               &schedule->seed, schedule->check, &schedule->num_ranks,
               schedule->program) != 4) {
        fprintf(stderr,
                "iris replay: %s is no schedule; IRIS_SCHEDULE=FILE records "
                "one\n",
                path);
        return -1;
    }
    while (end != NULL && end[1] != '\0') {
        line = end + 1;
        end = strchr(line, '\n');
        number++;
        if (end != NULL) {
            *end = '\0';
        }
        if (end == NULL || !parse_schedule_line(schedule, line)) {
            break;
        }
    }
    if (end == NULL || end[1] != '\0') {
        fprintf(stderr, "iris replay: %s is damaged or truncated in line %zu\n",
                path, number);
        return -1;
    }
    return 0;
}

static void close_schedule(struct replay_schedule *schedule)
{
    free(schedule->text);
    free(schedule->choices);
    free(schedule->ops);
    free(schedule->marks);
    *schedule = (struct replay_schedule){0};
}

static int open_schedule(const char *path, struct replay_schedule *schedule)
{
    *schedule = (struct replay_schedule){.text = read_text(path)};
    if (schedule->text == NULL) {
        fprintf(stderr, "iris replay: %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (parse_lines(path, schedule, schedule->text) != 0) {
        close_schedule(schedule);
        return -1;
    }
    return 0;
}

/* Writes the header's lines, if it has any, and these choices. Returns 0, or -1
 * after printing a message. */
static int write_schedule(const char *path,
                          const struct replay_schedule *header,
                          const struct replay_choice *choices,
                          size_t num_choices)
{
    FILE *file = fopen(path, "we");
    bool failed = file == NULL;

    if (!failed) {
        if (header->num_ranks != 0) {
            fprintf(file, "schedule seed %llu check %s ranks %d program %s\n",
                    header->seed, header->check, header->num_ranks,
                    header->program);
        }
        for (size_t i = 0; i < num_choices; i++) {
            fprintf(file, "%s\n", choices[i].text);
        }
        fprintf(file, "end %zu\n", num_choices);
        failed = ferror(file) != 0;
        failed |= fclose(file) != 0;
    }
    if (failed) {
        fprintf(stderr, "iris replay: cannot write %s: %s\n", path,
                strerror(errno));
    }
    return failed ? -1 : 0;
}

bool replay_is_same(const struct replay_op *a, const struct replay_op *b)
{
    return a->rank == b->rank && a->workgroup == b->workgroup &&
           a->target == b->target && a->offset == b->offset &&
           a->bytes == b->bytes && a->reads == b->reads &&
           a->writes == b->writes && a->seen == b->seen &&
           a->written == b->written && strcmp(a->deed, b->deed) == 0;
}

/* ---- Runs ---- */

#define RACE "data race on "

static volatile sig_atomic_t is_interrupted;

static void stop_replay(int number)
{
    (void)number;
    is_interrupted = 1;
}

static const char *const file_names[] = {"follow", "recorded", "output"};

static const char *path_of(const struct replay_program *program,
                           const char *name, char path[300])
{
    snprintf(path, 300, "%s/%s", program->folder, name);
    return path;
}

int replay_prepare(struct replay_program *program)
{
    if (!tool_make_folder("iris replay", program->folder)) {
        return -1;
    }
    signal(SIGINT, stop_replay);
    signal(SIGTERM, stop_replay);
    return 0;
}

void replay_clean(const struct replay_program *program)
{
    char path[300];

    for (size_t i = 0; i < sizeof file_names / sizeof *file_names; i++) {
        unlink(path_of(program, file_names[i], path));
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
static void become_replayed(const struct replay_program *program,
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
static int wait_for_program(const struct replay_program *program, pid_t pid)
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
    char path[300], *text = read_text(path_of(program, "output", path));

    return text != NULL ? text : strcpy(replay_alloc(NULL, 1), "");
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

static void judge_run(const struct replay_program *program, int status,
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

/* Whether the run has this failure, possibly among others. */
static bool has_failure(const struct replay_result *result, const char *failure)
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
    if (write_schedule(path_of(program, "follow", path), schedule, choices,
                       num_choices) != 0) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        become_replayed(program, schedule);
    }
    if (pid < 0) {
        fprintf(stderr, "iris replay: cannot start a process: %s\n",
                strerror(errno));
        return -1;
    }
    status = wait_for_program(program, pid);
    result->output = read_output(program);
    judge_run(program, status, result);
    path_of(program, "recorded", path);
    if (access(path, R_OK) == 0) {
        if (open_schedule(path, &result->schedule) != 0) {
            return -1;
        }
        result->has_schedule = true;
    }
    return 0;
}

void replay_drop(struct replay_result *result)
{
    free(result->output);
    close_schedule(&result->schedule);
    *result = (struct replay_result){0};
}

/* ---- Shorter schedules: delta debugging ---- */

struct shrinking {
    const struct replay_program *program;
    const char *failure;
    struct replay_result *result; /* the shortest run so far */
    unsigned runs;
};

/* Tries a run without the choices from `begin` to `end`. Returns 1 if it fails;
 * it is then *s->result. Returns 0 if it does not fail, and -1 after printing a
 * message. */
static int try_without(struct shrinking *s, size_t begin, size_t end)
{
    const struct replay_schedule *from = &s->result->schedule;
    size_t count = from->num_choices - (end - begin);
    struct replay_choice *choices =
        replay_alloc(NULL, (count + 1) * sizeof *choices);
    struct replay_result result;
    int ret;

    memcpy(choices, from->choices, begin * sizeof *choices);
    memcpy(choices + begin, from->choices + end,
           (from->num_choices - end) * sizeof *choices);
    ret = replay_run(s->program, from, choices, count, &result);
    s->runs++;
    free(choices);
    if (ret == 0 && result.has_schedule &&
        result.schedule.num_choices < from->num_choices &&
        has_failure(&result, s->failure)) {
        replay_drop(s->result);
        *s->result = result;
        return 1;
    }
    replay_drop(&result);
    return ret;
}

/* Leaves out `chunk` choices at a time. Returns the number of successes, or -1. */
static int leave_out(struct shrinking *s, size_t chunk)
{
    size_t end = s->result->schedule.num_choices;
    int count = 0;

    while (end > 0) {
        size_t begin = end > chunk ? end - chunk : 0;
        int ret = try_without(s, begin, end);

        if (ret < 0) {
            return -1;
        }
        count += ret;
        end = begin;
        if (end > s->result->schedule.num_choices) {
            end = s->result->schedule.num_choices;
        }
    }
    return count;
}

/* Runs the shortest schedule once more. Returns 0, 1 if it does not fail now,
 * or -1. */
static int repeat_run(struct shrinking *s)
{
    const struct replay_schedule *from = &s->result->schedule;
    struct replay_result result;
    int ret =
        replay_run(s->program, from, from->choices, from->num_choices, &result);

    s->runs++;
    if (ret == 0 &&
        (!result.has_schedule || !has_failure(&result, s->failure))) {
        ret = 1;
    }
    replay_drop(&result);
    return ret;
}

/* Takes a run with the failure in *result, and replaces it by the shortest run
 * that was found, repeated as the latest run. *runs_p is the number of runs.
 * Returns 0, 1 if the short schedule did not repeat the failure, or -1 after
 * printing a message. */
static int shrink_run(const struct replay_program *program, const char *failure,
                      struct replay_result *result, unsigned *runs_p)
{
    struct shrinking s = {program, failure, result, 0};
    size_t chunk = result->schedule.num_choices;
    int count = 0;

    while (chunk >= 1 && count >= 0) {
        count = leave_out(&s, chunk);
        if (count == 0 || chunk > 1) {
            chunk /= 2;
        }
    }
    count = count < 0 ? -1 : repeat_run(&s);
    *runs_p = s.runs;
    return count;
}

static struct {
    bool shrinks;
    bool prints;
    const char *output; /* of --shrink; NULL: next to the schedule */
    const char *path;   /* the schedule */
    struct replay_program program;
} options = {.program = {.timeout_s = 60}};

/* ---- One schedule ---- */

/* Prints how the run differs from the recorded one. A schedule that was not
 * recorded has no operations. */
static void compare_runs(const struct replay_schedule *recorded,
                         const struct replay_schedule *made)
{
    size_t i = 0;

    while (i < recorded->num_ops && i < made->num_ops &&
           replay_is_same(&recorded->ops[i], &made->ops[i])) {
        i++;
    }
    if (i < recorded->num_ops || (i != 0 && i < made->num_ops)) {
        printf("another run: operation %zu differs", i + 1);
        if (i < recorded->num_ops) {
            printf("; recorded: rank %d, workgroup %u, kernel %s, %s",
                   recorded->ops[i].rank, recorded->ops[i].workgroup,
                   recorded->ops[i].kernel, recorded->ops[i].deed);
        }
        printf("\n");
    } else if (i != 0) {
        printf("the same run: %zu operations\n", i);
    }
}

static int shrink_schedule(struct replay_result *result)
{
    size_t choices = result->schedule.num_choices;
    size_t ops = result->schedule.num_ops;
    char failure[sizeof result->failure], path[4096];
    unsigned runs;
    int ret;

    memcpy(failure, result->failure, sizeof failure);
    ret = shrink_run(&options.program, failure, result, &runs);
    if (ret < 0) {
        return 2;
    }
    if (ret > 0) {
        fprintf(stderr,
                "iris replay: the failure does not come each time under the "
                "same schedule; the program depends on more than that, and "
                "nothing is written\n");
        return 1;
    }
    snprintf(path, sizeof path, "%s.short", options.path);
    if (replay_keep(&options.program,
                    options.output == NULL ? path : options.output) != 0) {
        return 2;
    }
    printf("%s: %zu of %zu choices, %zu of %zu operations, after %u runs\n",
           options.output == NULL ? path : options.output,
           result->schedule.num_choices, choices, result->schedule.num_ops, ops,
           runs);
    return 0;
}

static int run_again(const struct replay_schedule *schedule,
                     struct replay_result *result)
{
    int ret = 0;

    if (replay_run(&options.program, schedule, schedule->choices,
                   schedule->num_choices, result) != 0) {
        return 2;
    }
    if (!result->has_schedule) {
        fprintf(stderr,
                "iris replay: %s did not run under the schedule; it said:\n%s",
                options.program.argv[0], result->output);
        return 2;
    }
    compare_runs(schedule, &result->schedule);
    if (result->schedule.is_early) {
        fprintf(stderr, "iris replay: a workgroup or host did not come in "
                        "time; another run may differ\n");
    }
    if (result->failure[0] == '\0') {
        printf("no failure\n");
        ret = 1;
    } else {
        printf("it fails again: %s\n", result->failure);
        ret = options.shrinks ? shrink_schedule(result) : 0;
    }
    if (options.prints && ret != 2) {
        replay_print(result);
    }
    return ret;
}

static int replay_file(const char *path)
{
    struct replay_schedule schedule;
    struct replay_result result = {0};
    int ret;

    if (open_schedule(path, &schedule) != 0) {
        return 2;
    }
    if (!schedule.has_end) {
        fprintf(stderr,
                "iris replay: %s has no end: the program did not call "
                "iris_finalize(), or the file is truncated\n",
                path);
    }
    ret = run_again(&schedule, &result);
    replay_drop(&result);
    close_schedule(&schedule);
    return ret;
}

/* ---- The command line ---- */

static int run_program(void)
{
    int ret;

    if (replay_prepare(&options.program) != 0) {
        return 2;
    }
    ret = replay_file(options.path);
    replay_clean(&options.program);
    return ret;
}

/* The schedule, then "--" and the program. */
static void take_word(struct argp_state *state, char *word)
{
    if (state->quoted != 0) {
        options.program.argv = tool_rest(state);
    } else if (options.path == NULL) {
        options.path = word;
    } else {
        argp_error(state, "\"%s\": pass -- before the program", word);
    }
}

static error_t parse_replay(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 'm':
        options.program.match = arg;
        return 0;
    case 'o':
        options.output = arg;
        return 0;
    case 'p':
        options.prints = true;
        return 0;
    case 's':
        options.shrinks = true;
        return 0;
    case 't':
        options.program.timeout_s =
            (int)tool_number(state, "timeout", arg, 1, INT_MAX);
        return 0;
    case ARGP_KEY_ARG:
        take_word(state, arg);
        return 0;
    case ARGP_KEY_END:
        if (options.program.argv == NULL || options.path == NULL) {
            argp_error(state, "pass a schedule, --, and a program");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_replay(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"match", 'm', "TEXT", 0, "The failure is output with TEXT instead", 0},
        {"output", 'o', "FILE", 0,
         "The schedule that --shrink writes (default: SCHEDULE.short)", 0},
        {"print", 'p', NULL, 0, "Print the operations that matter, in order",
         0},
        {"shrink", 's', NULL, 0, "Make the schedule short while it fails", 0},
        {"timeout", 't', "SECONDS", 0, "Of one run (default: 60)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_replay,
        .args_doc = "SCHEDULE -- PROGRAM [ARGUMENT]...",
        .doc = "Runs PROGRAM as SCHEDULE says, which IRIS_SCHEDULE has "
               "recorded under IRIS_CHECK=weak or race, and tells whether it "
               "fails: an exit status that is not 0, a data race, a signal, or "
               "no end in time.\v"
               "Exit status: 0 if the failure came, 1 if it did not, 2 if a "
               "file or the command line is wrong or the program cannot run "
               "under the schedule.",
    };

    tool_parse(&argp, argc, argv, NULL);
    return run_program();
}
