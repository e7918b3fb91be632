/* SPDX-License-Identifier: MIT
 *
 * iris: chooses the subcommand.
 */
#include "config.h"

#include "iris.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

/* A word with this many letters changed, added or left out is a misspelling. */
#define MOST_TYPOS 2

static const struct {
    const char *name;
    const char *text;
    int (*run)(int argc, char **argv);
} tools[] = {
    {"info", "shows the build, the devices and the settings", tool_info},
    {"probe", "tests the operations that ranks need on this machine",
     tool_probe},
    {"run", "starts the ranks of a program on this machine", tool_run},
    {"top", "shows what the ranks of a job wait for", tool_top},
    {"check", "runs a program under the checks", tool_check},
    {"replay", "runs a recorded schedule again, and makes it short",
     tool_replay},
    {"trace", "reads traces", tool_trace},
    {"sim", "predicts times on another machine", tool_sim},
    {"bench", "measures every operation", tool_bench},
};

#define NUM_TOOLS (sizeof tools / sizeof tools[0])

/* The subcommand nearest to a word, or NULL if none is near. */
static const char *find_nearest(const char *word)
{
    const char *nearest = NULL;
    int best = MOST_TYPOS + 1;

    for (size_t i = 0; i < NUM_TOOLS; i++) {
        int typos = iris_i_count_changes(word, tools[i].name);

        if (typos < best && typos < (int)strlen(tools[i].name)) {
            best = typos;
            nearest = tools[i].name;
        }
    }
    return nearest;
}

static int run_tool(struct argp_state *state, int argc, char **argv)
{
    const char *nearest = find_nearest(argv[0]);
    char name[32];

    for (size_t i = 0; i < NUM_TOOLS; i++) {
        if (strcmp(tools[i].name, argv[0]) == 0) {
            snprintf(name, sizeof name, "iris %s", tools[i].name);
            argv[0] = name;
            return tools[i].run(argc, argv);
        }
    }
    if (nearest != NULL) {
        argp_error(state, "\"%s\" is not a subcommand; did you mean \"%s\"?",
                   argv[0], nearest);
    }
    argp_error(state, "\"%s\" is not a subcommand", argv[0]);
    return TOOL_USAGE;
}

static error_t parse_tool(int key, char *arg, struct argp_state *state)
{
    int *status_p = state->input;
    int argc = state->argc - state->next + 1;
    char *help[] = {arg, "--help", NULL};

    switch (key) {
    case ARGP_KEY_ARG:
        if (strcmp(arg, "help") != 0) {
            *status_p = run_tool(state, argc, tool_rest(state));
        } else if (argc == 1) {
            argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        } else {
            help[0] = tool_rest(state)[1];
            *status_p = run_tool(state, 2, help);
        }
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_state_help(state, stderr,
                        ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK);
        *status_p = TOOL_USAGE;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The subcommands behind the options. */
static char *list_tools(int key, const char *text, void *input)
{
    size_t bytes;
    char *list;
    FILE *file;

    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC ||
        (file = open_memstream(&list, &bytes)) == NULL) {
        return (char *)text;
    }
    fprintf(file, "Subcommands:\n");
    for (size_t i = 0; i < NUM_TOOLS; i++) {
        fprintf(file, "  %-8s %s\n", tools[i].name, tools[i].text);
    }
    fprintf(file, "\n%s", text);
    return fclose(file) == 0 ? list : (char *)text;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse_tool,
        .args_doc = "SUBCOMMAND [ARGUMENT]...\nhelp SUBCOMMAND",
        .doc =
            "The tools of Iris, remote memory access for GPU kernels.\v"
            "\"iris help SUBCOMMAND\" and \"man iris-SUBCOMMAND\" say more.\n"
            "Exit status: 0 if all is well, 1 for a failure or a finding, 2 "
            "for a wrong command line.",
        .help_filter = list_tools,
    };
    int status = TOOL_OK;

    if (argc > 0) {
        argv[0] = "iris";
    }
    tool_parse(&argp, argc, argv, &status);
    return status;
}
