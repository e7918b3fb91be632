/* SPDX-License-Identifier: MIT
 *
 * iris replay: runs a recorded schedule again, makes it short, and shows it.
 */
#include "config.h"

#include "iris.h"
#include "replay_explore.h"
#include "replay_rows.h"
#include "replay_run.h"
#include "replay_shrink.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool explores;
    struct replay_exploration exploration;
    bool shrinks;
    bool prints;
    const char *output; /* of --shrink; NULL: next to the schedule */
    const char *path;   /* the schedule */
    struct replay_program program;
} options = {.exploration = {.most = 100000}, .program = {.timeout_s = 60}};

/* ---- One schedule ---- */

/* Prints how the run differs from the recorded one. A schedule that was not
 * recorded has no operations. */
static void compare(const struct replay_schedule *recorded,
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

static int shrink(struct replay_result *result)
{
    size_t choices = result->schedule.num_choices;
    size_t ops = result->schedule.num_ops;
    char failure[sizeof result->failure], path[4096];
    unsigned runs;
    int ret;

    memcpy(failure, result->failure, sizeof failure);
    ret = replay_shrink(&options.program, failure, result, &runs);
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

static void show(const struct replay_result *result)
{
    struct replay_rows rows;

    replay_rows_open(&rows, result);
    replay_print(&rows);
    replay_rows_close(&rows);
}

static int replay(const struct replay_schedule *schedule,
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
    compare(schedule, &result->schedule);
    if (result->schedule.is_early) {
        fprintf(stderr, "iris replay: a workgroup or host did not come in "
                        "time; another run may differ\n");
    }
    if (result->failure[0] == '\0') {
        printf("no failure\n");
        ret = 1;
    } else {
        printf("it fails again: %s\n", result->failure);
        ret = options.shrinks ? shrink(result) : 0;
    }
    if (options.prints && ret != 2) {
        show(result);
    }
    return ret;
}

static int replay_file(const char *path)
{
    struct replay_schedule schedule;
    struct replay_result result = {0};
    int ret;

    if (replay_open(path, &schedule) != 0) {
        return 2;
    }
    if (!schedule.has_end) {
        fprintf(stderr,
                "iris replay: %s has no end: the program did not call "
                "iris_finalize(), or the file is truncated\n",
                path);
    }
    ret = replay(&schedule, &result);
    replay_drop(&result);
    replay_close(&schedule);
    return ret;
}

/* ---- All schedules ---- */

/* Continues with a failure that it found as with a recorded one. */
static int explore(void)
{
    struct replay_exploration *exploration = &options.exploration;

    options.path = options.output == NULL ? "explored" : options.output;
    if (replay_explore(&options.program, options.path, exploration) != 0) {
        return 2;
    }
    if (exploration->failure[0] != '\0') {
        printf("%lu of %lu runs fail, with %s; the schedule is in %s\n",
               exploration->failed, exploration->count + exploration->again,
               exploration->failure, options.path);
        options.output = NULL;
        return replay_file(options.path) == 0 ? 1 : 2;
    }
    printf("no failure in %s%lu executions (%lu more runs were like these)\n",
           exploration->is_complete ? "all " : "", exploration->count,
           exploration->again);
    if (!exploration->is_complete) {
        fprintf(stderr,
                "iris replay: there are more executions; see --limit\n");
    }
    return exploration->is_complete ? 0 : 2;
}

static int run_program(void)
{
    int ret;

    if (replay_prepare(&options.program) != 0) {
        return 2;
    }
    ret = options.explores ? explore() : replay_file(options.path);
    replay_clean(&options.program);
    return ret;
}

/* ---- The command line ---- */

/* The schedule, unless --explore makes one, then "--" and the program. */
static void take_word(struct argp_state *state, char *word)
{
    if (state->quoted != 0) {
        options.program.argv = tool_rest(state);
    } else if (options.path == NULL && !options.explores) {
        options.path = word;
    } else {
        argp_error(state, "\"%s\": pass -- before the program", word);
    }
}

static error_t parse_replay(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 'a':
        options.exploration.goes_on = true;
        return 0;
    case 'e':
        options.explores = true;
        return 0;
    case 'l':
        options.exploration.most =
            (unsigned)tool_number(state, "limit", arg, 1, INT_MAX);
        return 0;
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
        if (options.program.argv == NULL ||
            options.explores == (options.path != NULL)) {
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
        {"all", 'a', NULL, 0, "Explore on after a failure; list the outputs",
         0},
        {"explore", 'e', NULL, 0, "Run in all ways, for small programs", 0},
        {"limit", 'l', "NUMBER", 0,
         "Of executions to explore (default: 100000)", 0},
        {"match", 'm', "TEXT", 0, "The failure is output with TEXT instead", 0},
        {"output", 'o', "FILE", 0,
         "The schedule that --shrink or --explore writes (default: "
         "SCHEDULE.short, explored)",
         0},
        {"print", 'p', NULL, 0, "Print the operations that matter, in order",
         0},
        {"shrink", 's', NULL, 0, "Make the schedule short while it fails", 0},
        {"timeout", 't', "SECONDS", 0, "Of one run (default: 60)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_replay,
        .args_doc = "SCHEDULE -- PROGRAM [ARGUMENT]...\n"
                    "--explore -- PROGRAM [ARGUMENT]...",
        .doc = "Runs PROGRAM as SCHEDULE says, which IRIS_SCHEDULE has "
               "recorded under IRIS_CHECK=weak or race, and tells whether it "
               "fails: an exit status that is not 0, a data race, a signal, or "
               "no end in time. With --explore it runs PROGRAM in all ways "
               "that IRIS_CHECK=weak allows, until it fails.\v"
               "Exit status: 0 if the failure came, 1 if it did not, 2 if a "
               "file or the command line is wrong or the program cannot run "
               "under the schedule. Of --explore: 0 if no execution fails, 1 "
               "if one does, 2 also at the limit.",
    };

    tool_parse(&argp, argc, argv, NULL);
    return run_program();
}
