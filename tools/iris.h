/* SPDX-License-Identifier: MIT
 *
 * The subcommands of `iris`, and how each of them reads its command line.
 */
#ifndef IRIS_TOOLS_IRIS_H
#define IRIS_TOOLS_IRIS_H

#include <argp.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses of every subcommand; iris-top(1) and iris-replay(1) say more. */
enum { TOOL_OK, TOOL_FAILED, TOOL_USAGE };
/* Statuses of shells for a program that does not start. */
enum { TOOL_NOT_RUN = 126, TOOL_NOT_FOUND };

/* Each takes its own command line, with "iris NAME" as argv[0], and returns the
 * exit status. */
int tool_info(int argc, char **argv);
int tool_probe(int argc, char **argv);
int tool_top(int argc, char **argv);
int tool_check(int argc, char **argv);
int tool_trace(int argc, char **argv);
int tool_replay(int argc, char **argv);
int tool_sim(int argc, char **argv);
int tool_bench(int argc, char **argv);
int tool_run(int argc, char **argv);

/* One run of the ranks of a program under that check, as `iris check --mode` makes
 * it; an empty name: under none. Returns the exit status. */
int tool_check_once(const char *tool, const char *mode, int num_ranks,
                    char **program);

/* For iris probe. Finds this program and its script, in PATH_MAX bytes each. Lets
 * RCCL or NCCL, by its path, begin to use the first GPUs; NULL: nothing to do. Both
 * return 0 after printing a message. */
int tool_find_script(char *program, char *script);
int tool_begin_peer(const char *path, int num_gpus);

/* Parses a command line, with --help, --usage and --version besides `argp`'s own
 * options. Ends the program after these, and with TOOL_USAGE after a wrong
 * option. Options may stand behind other arguments, but argp->parser can take
 * all the rest by tool_rest(). */
void tool_parse(const struct argp *argp, int argc, char **argv, void *input);

/* The arguments from the current one on, which are parsed no further. */
char **tool_rest(struct argp_state *state);

/* A part of a subcommand, the first of its words, such as "iris trace merge". */
struct tool_part {
    const char *name;
    int (*run)(char **words, int num_words); /* those after the name */
    int least, most;                         /* how many it takes */
};

/* Parses a command line by tool_parse(), and runs the part that its first word
 * names, of a list that ends with a NULL name. Returns the exit status. */
int tool_run_part(const struct argp *argp, int argc, char **argv,
                  const struct tool_part *parts);

/* Opens a file to write, stdout if `path` is NULL. Returns NULL after printing a
 * message. Closing returns the exit status: TOOL_FAILED, after a message, if
 * something could not be written. */
FILE *tool_open(const char *tool, const char *path);
int tool_close(const char *tool, const char *path, FILE *file);

/* Makes an empty folder below TMPDIR, or /tmp, for the caller to remove. Returns 0
 * after printing a message. */
#define TOOL_FOLDER_BYTES 256
int tool_make_folder(const char *tool, char path[TOOL_FOLDER_BYTES]);

/* The value of the option, a whole number from `least` to `most`. Ends the
 * program with TOOL_USAGE if it is another. */
int64_t tool_number(struct argp_state *state, const char *option,
                    const char *text, int64_t least, int64_t most);

#endif /* IRIS_TOOLS_IRIS_H */
