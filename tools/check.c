/* SPDX-License-Identifier: MIT
 *
 * iris check: runs a program plainly, under IRIS_CHECK=race without a seed and
 * with seeds, and under IRIS_CHECK=weak with seeds, and reports the findings.
 *
 * Each run is a child in a process group of its own, whose output goes to a file.
 * A finding is a data race, known by the lines of its two accesses, or another
 * failure, known by the check and how the program ended. It keeps the text of the
 * first run that showed it, and the names of all that did.
 */
#include "config.h"

#include "iris.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS 65536
#define TOOL_BLIND \
    "ordinary pointers were not seen" /* src/check/race_report.c */
#define LAST_LINES 10                 /* in the text of a run that failed */

struct finding {
    struct finding *next;
    bool is_race;
    char *key;
    char *text;
    char again[64]; /* settings and option that show it again */
    char runs[256]; /* "without a seed, seeds 1 4 7" */
    int count;      /* runs that show it */
    int last_run;   /* number of the latest of them; a run may show it twice */
};

struct checking {
    const char *tool;
    int num_ranks;
    int num_seeds;
    int timeout_s;
    const char *mode; /* NULL: all of them */
    char **program;
    char folder[TOOL_FOLDER_BYTES];
    char output[TOOL_FOLDER_BYTES + 16], schedule[TOOL_FOLDER_BYTES + 16];
    bool is_broken;           /* runs cannot be made or read */
    bool is_absent;           /* the program does not start */
    bool is_blind;            /* ordinary accesses were not seen */
    struct finding *findings; /* in the order of their first run */
    int num_races, num_failures, num_runs;
};

/* ---- Runs ---- */

static volatile sig_atomic_t is_interrupted;

static void note_interrupt(int number)
{
    is_interrupted = number;
}

static void become_run(const struct checking *c, const char *mode, int seed)
{
    char text[16];
    int output = open(c->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (output < 0) {
        _exit(TOOL_FAILED);
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setenv("IRIS_LOG_LEVEL", seed == 0 ? "warning" : "error", 1);
    if (seed != 0) {
        snprintf(text, sizeof text, "%d", seed);
        setenv("IRIS_SEED", text, 1);
        setenv("IRIS_SCHEDULE", c->schedule, 1);
    }
    _exit(tool_check_once(c->tool, mode, c->num_ranks, c->program));
}

/* The status of the run; -1: it has not ended in time. */
static int wait_for_run(const struct checking *c, pid_t pid)
{
    static const struct timespec pause = {.tv_nsec = 2000000};
    time_t end = time(NULL) + c->timeout_s;
    bool is_late = false;
    int status;

    setpgid(pid, pid); /* the child may not have done it yet */
    while (!is_late && waitpid(pid, &status, WNOHANG) == 0) {
        nanosleep(&pause, NULL);
        is_late = time(NULL) > end || is_interrupted;
    }
    kill(-pid, SIGKILL); /* its children, too */
    if (is_late) {
        waitpid(pid, &status, 0);
        return -1;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Ends the run's output with a line's end. Fails if the disk is full: then races may
 * be missing in it. */
static bool end_output(const struct checking *c)
{
    int output = open(c->output, O_WRONLY | O_APPEND);
    bool is_whole = output >= 0 && write(output, "\n", 1) == 1;

    if (!is_whole) {
        fprintf(stderr, "%s: %s: %s; the run's output is not whole\n", c->tool,
                c->output, strerror(errno));
    }
    if (output >= 0) {
        close(output);
    }
    return is_whole;
}

/* ---- Findings ---- */

static char *append_text(char *text, const char *more)
{
    size_t length = text == NULL ? 0 : strlen(text);
    char *longer = realloc(text, length + strlen(more) + 1);

    if (longer == NULL) {
        fprintf(stderr, "iris check: no memory\n");
        exit(TOOL_FAILED);
    }
    strcpy(longer + length, more);
    return longer;
}

/* Takes `key` and `text` over. */
static void add_finding(struct checking *c, bool is_race, char *key, char *text,
                        const char *mode, int seed)
{
    struct finding **at = &c->findings, *one;
    size_t used;

    while (*at != NULL && strcmp((*at)->key, key) != 0) {
        at = &(*at)->next;
    }
    one = *at;
    if (one == NULL) {
        one = *at = calloc(1, sizeof *one);
        if (one == NULL) {
            exit(TOOL_FAILED);
        }
        one->is_race = is_race;
        one->key = key;
        one->text = text;
        snprintf(one->again, sizeof one->again, "%s%.0d%siris check -m %s",
                 seed == 0 ? "" : "IRIS_SEED=", seed, seed == 0 ? "" : " ",
                 mode);
        *(is_race ? &c->num_races : &c->num_failures) += 1;
    } else {
        free(key);
        free(text);
    }
    if (one->last_run == c->num_runs + 1) {
        return;
    }
    one->last_run = c->num_runs + 1;
    used = strlen(one->runs);
    if (seed == 0) {
        snprintf(one->runs, sizeof one->runs, "%s",
                 mode[0] == '\0' ? "without a check" : "without a seed");
    } else if (used + 16 < sizeof one->runs) {
        snprintf(one->runs + used, sizeof one->runs - used, "%s%d",
                 strstr(one->runs, "seed ") != NULL ? " "
                 : used == 0                        ? "with seed "
                                                    : ", with seed ",
                 seed);
    }
    one->count++;
}

/* The two places, in one order, whichever access came first. */
static char *make_race_key(const char *text)
{
    const char *lines[2] = {strchr(text, '\n') + 1, NULL};
    size_t lengths[2];
    char *key;
    int first;

    lines[1] = strchr(lines[0], '\n');
    lines[1] = lines[1] == NULL ? "" : lines[1] + 1;
    for (int i = 0; i < 2; i++) {
        const char *end = strstr(lines[i], ": ");

        lengths[i] =
            end == NULL ? strcspn(lines[i], "\n") : (size_t)(end - lines[i]);
    }
    first = strncmp(lines[0], lines[1], lengths[0]) > 0;
    key = append_text(NULL, lines[first]);
    key[lengths[first]] = '\0';
    key = append_text(key, lines[!first]);
    key[lengths[0] + lengths[1]] = '\0';
    return key;
}

/* Adds the races that the run's output tells: a line, and those below it that are
 * indented. Returns how many there are. `tail` gets the last lines. */
static int read_races(struct checking *c, const char *mode, int seed,
                      char **tail_p)
{
    FILE *file = fopen(c->output, "re");
    char *line = NULL, *text = NULL, *last[LAST_LINES] = {NULL};
    size_t room = 0;
    int count = 0, num_lines = 0;

    while (file != NULL) {
        bool more = getline(&line, &room, file) > 0;
        const char *race = more ? strstr(line, "data race on ") : NULL;

        if (text != NULL && more && strncmp(line, "    ", 4) == 0) {
            text = append_text(text, line);
        } else if (text != NULL) {
            add_finding(c, true, make_race_key(text), text, mode, seed);
            text = NULL;
            count++;
        }
        if (race != NULL) {
            text = append_text(NULL, race);
        }
        c->is_blind |= more && strstr(line, TOOL_BLIND) != NULL;
        if (!more) {
            break;
        }
        if (line[0] == '\n') {
            continue;
        }
        free(last[num_lines % LAST_LINES]);
        last[num_lines++ % LAST_LINES] = append_text(
            append_text(NULL, strncmp(line, "    ", 4) == 0 ? "" : "    "),
            line);
    }
    *tail_p = append_text(NULL, "");
    for (int i = 0; i < LAST_LINES; i++) {
        char *one = last[(num_lines + i) % LAST_LINES];

        *tail_p = append_text(*tail_p, one == NULL ? "" : one);
        free(one);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/* Whether the schedule of the run is of one rank that the program did not start
 * itself. A run may end before it has one. */
static bool is_alone(const struct checking *c)
{
    FILE *file = fopen(c->schedule, "re");
    int made = -1;

    if (file != NULL) {
        (void)!fscanf(file, "schedule seed %*u check %*s ranks %d", &made);
        fclose(file);
    }
    return made > 0 && made != c->num_ranks;
}

/* One run with that seed; 0: without one. False: it cannot have seeds. */
static bool run_once(struct checking *c, const char *mode, int seed)
{
    char how[64], *tail, *key, *text;
    int status, num_races;
    pid_t pid;

    (void)unlink(c->schedule);
    pid = fork();
    if (pid == 0) {
        become_run(c, mode, seed);
    }
    if (pid < 0) {
        fprintf(stderr, "%s: no process: %s\n", c->tool, strerror(errno));
        c->is_broken = true;
        return false;
    }
    status = wait_for_run(c, pid);
    if (is_interrupted || (seed != 0 && is_alone(c))) {
        return false;
    }
    c->is_broken = !end_output(c);
    if (c->is_broken) {
        return false;
    }
    c->num_runs++;
    c->is_absent = status == TOOL_NOT_FOUND || status == TOOL_NOT_RUN;
    num_races = read_races(c, mode, seed, &tail);
    if (status != 0 && (num_races == 0 || status < 0 || status >= 128)) {
        snprintf(how, sizeof how,
                 status < 0      ? "no end within %d s"
                 : status >= 128 ? "ended by signal %d"
                                 : "exit status %d",
                 status < 0      ? c->timeout_s
                 : status >= 128 ? status - 128
                                 : status);
        key = append_text(append_text(NULL, mode), how);
        text = append_text(append_text(NULL, how), "; its output ends with\n");
        add_finding(c, false, key, append_text(text, tail), mode, seed);
    }
    free(tail);
    return true;
}

static void show_progress(const struct checking *c, const char *mode, int seed)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%s, seed %d of %d: %d race%s, %d other failure%s ",
                mode, seed, c->num_seeds, c->num_races,
                c->num_races == 1 ? "" : "s", c->num_failures,
                c->num_failures == 1 ? "" : "s");
    }
}

static bool has_stopped(const struct checking *c)
{
    return is_interrupted || c->is_broken;
}

/* The runs of a check, from `seed` on, and a line about them. */
static void run_seeds(struct checking *c, const char *mode, int seed)
{
    int races = c->num_races, failures = c->num_failures, runs = c->num_runs;
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (; seed <= (mode[0] == '\0' ? 0 : c->num_seeds) && !has_stopped(c);
         seed++) {
        show_progress(c, mode[0] == '\0' ? "plain" : mode, seed);
        if (!run_once(c, mode, seed) && !has_stopped(c)) {
            printf("%s: no seeds, since the program does not start %d ranks by "
                   "iris_spawn()\n",
                   mode, c->num_ranks);
            c->num_seeds = 0;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%60s\r", "");
    }
    printf("%s: %d run%s, %.1f s, %d new race%s, %d other failure%s\n",
           mode[0] == '\0' ? "plain" : mode, c->num_runs - runs,
           c->num_runs - runs == 1 ? "" : "s",
           (double)(end.tv_sec - begin.tv_sec) +
               (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
           c->num_races - races, c->num_races - races == 1 ? "" : "s",
           c->num_failures - failures,
           c->num_failures - failures == 1 ? "" : "s");
    fflush(stdout);
}

static void print_findings(const struct checking *c)
{
    for (const struct finding *one = c->findings; one != NULL;
         one = one->next) {
        bool is_plain = strncmp(one->runs, "without a check", 15) == 0;

        printf("\n%s    seen in %d run%s, %s", one->text, one->count,
               one->count == 1 ? "" : "s", one->runs);
        if (!is_plain) {
            printf("; again: %s -n %d -- %s", one->again, c->num_ranks,
                   c->program[0]);
            for (int i = 1; c->program[i] != NULL; i++) {
                printf(" %s", c->program[i]);
            }
        }
        printf("\n");
    }
    printf("\n%d race%s and %d other failure%s in %d run%s\n", c->num_races,
           c->num_races == 1 ? "" : "s", c->num_failures,
           c->num_failures == 1 ? "" : "s", c->num_runs,
           c->num_runs == 1 ? "" : "s");
    if (c->is_absent) {
        printf("no check ran, because the program did not start\n");
    }
    if (c->is_blind) {
        printf("accesses by ordinary pointers were not seen: compile with "
               "iriscc --check\n");
    }
}

static int check_all(struct checking *c)
{
    static const struct sigaction action = {.sa_handler = note_interrupt};
    int status = TOOL_OK;

    if (!tool_make_folder(c->tool, c->folder)) {
        return TOOL_FAILED;
    }
    snprintf(c->output, sizeof c->output, "%s/output", c->folder);
    snprintf(c->schedule, sizeof c->schedule, "%s/schedule", c->folder);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    run_seeds(c, "", 0);
    if (!has_stopped(c) && !c->is_absent) {
        run_seeds(c, "race", 0);
    }
    if (!has_stopped(c) && !c->is_absent && c->num_seeds != 0) {
        run_seeds(c, "weak", 1);
    }
    print_findings(c);
    (void)unlink(c->output);
    (void)unlink(c->schedule);
    (void)rmdir(c->folder);
    while (c->findings != NULL) {
        struct finding *next = c->findings->next;

        free(c->findings->key);
        free(c->findings->text);
        free(c->findings);
        c->findings = next;
        status = TOOL_FAILED;
    }
    return is_interrupted ? 128 + is_interrupted
           : c->is_broken ? TOOL_FAILED
                          : status;
}

/* ---- Command line ---- */

static error_t parse_check(int key, char *arg, struct argp_state *state)
{
    static const char *const modes[] = {"race", "weak", "bounds"};
    struct checking *c = state->input;

    switch (key) {
    case 'n':
        c->num_ranks = (int)tool_number(state, "ranks", arg, 1, MOST_RANKS);
        return 0;
    case 's':
        c->num_seeds = (int)tool_number(state, "seeds", arg, 0, 1000000);
        return 0;
    case 't':
        c->timeout_s = (int)tool_number(state, "timeout", arg, 1, 1000000);
        return 0;
    case 'm':
        c->mode = NULL;
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
            c->mode = strcmp(modes[i], arg) == 0 ? modes[i] : c->mode;
        }
        if (c->mode == NULL) {
            argp_error(state, "--mode=%s: pass race, weak or bounds", arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        c->program = tool_rest(state);
        return 0;
    case ARGP_KEY_END:
        if (c->num_ranks == 0 || c->program == NULL) {
            argp_error(state, "pass -n N and a program");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_check(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"ranks", 'n', "N", 0, "The number of ranks", 0},
        {"seeds", 's', "N", 0,
         "The number of seeds for each of race and weak (10)", 0},
        {"timeout", 't', "SECONDS", 0, "The longest that a run may take (60)",
         0},
        {"mode", 'm', "MODE", 0,
         "One run under race, weak or bounds: the value of IRIS_CHECK", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_check,
        .args_doc = "-- PROGRAM [ARGUMENT]...",
        .doc =
            "Runs a program in the CPU simulation: plainly, under "
            "IRIS_CHECK=race without a seed and with seeds, and under "
            "IRIS_CHECK=weak with seeds. Prints each data race once, and the "
            "runs that show it. With --mode, IRIS_SEED, IRIS_SCHEDULE or "
            "IRIS_REPLAY there is one run, whose output is shown. With seeds "
            "and under weak the ranks are threads, which the program starts by "
            "iris_spawn(); else they are processes.\v"
            "Exit status: 0 if nothing was found, 1 if there is a race or "
            "another failure. Of one run: that of the lowest rank that failed "
            "(128 and the signal's number if a signal ended it), else 0. 2 for "
            "a wrong command line.",
    };
    struct checking c = {
        .tool = argv[0], .num_seeds = 10, .timeout_s = 60, .mode = NULL};

    tool_parse(&argp, argc, argv, &c);
    if (c.mode == NULL &&
        (getenv("IRIS_SEED") != NULL || getenv("IRIS_SCHEDULE") != NULL ||
         getenv("IRIS_REPLAY") != NULL)) {
        c.mode = "race";
    }
    return c.mode == NULL
               ? check_all(&c)
               : tool_check_once(c.tool, c.mode, c.num_ranks, c.program);
}
