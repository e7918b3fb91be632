/* SPDX-License-Identifier: MIT
 *
 * The command lines of all subcommands, parsed in one way by argp.
 */
#include "config.h"

#include "iris.h"

#include <iris/iris.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_USAGE = 0x10000 };

/* Words while a command line is parsed, and the parser of its options. */
struct words {
    argp_parser_t parser;
    char **words;
    int count;
};

static const struct argp_option common_options[] = {
    {"help", 'h', NULL, 0, "Print this help", -1},
    {"usage", KEY_USAGE, NULL, 0, "Print a short usage message", -1},
    {"version", 'V', NULL, 0, "Print the version", -1},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_ARG: /* the subcommand does not take it */
        argp_error(state, "\"%s\": an argument too many", arg);
        return 0;
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case KEY_USAGE:
        argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    case 'V':
        printf("iris %s\n", iris_version());
        exit(TOOL_OK);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The help text is short without argp's note that "-o FILE" is "--output=FILE". */
static char *drop_note(int key, const char *text, void *input)
{
    (void)input;
    return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)text;
}

void tool_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    static const struct argp common = {
        common_options, parse_common, 0, 0, 0, 0, 0};
    static const struct argp_child children[] = {{&common, 0, NULL, -1}, {0}};
    struct argp whole = *argp;
    error_t error;

    whole.children = children;
    whole.help_filter =
        argp->help_filter == NULL ? drop_note : argp->help_filter;
    argp_err_exit_status = TOOL_USAGE;
    error = argp_parse(&whole, argc, argv, ARGP_NO_HELP | ARGP_IN_ORDER, NULL,
                       input);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", argv[0], strerror(error));
        exit(TOOL_FAILED);
    }
}

char **tool_rest(struct argp_state *state)
{
    char **rest = &state->argv[state->next - 1];

    state->next = state->argc;
    return rest;
}

int tool_make_folder(const char *tool, char path[TOOL_FOLDER_BYTES])
{
    const char *below = getenv("TMPDIR");
    int length;

    below = below == NULL || below[0] == '\0' ? "/tmp" : below;
    length =
        snprintf(path, TOOL_FOLDER_BYTES, "%s/iris-%s.XXXXXX", below,
                 strrchr(tool, ' ') == NULL ? tool : strrchr(tool, ' ') + 1);
    if (length < TOOL_FOLDER_BYTES && mkdtemp(path) != NULL) {
        return 1;
    }
    fprintf(stderr, "%s: %s: %s\n", tool, path,
            length < TOOL_FOLDER_BYTES ? strerror(errno)
                                       : "TMPDIR is too long");
    return 0;
}

int64_t tool_number(struct argp_state *state, const char *option,
                    const char *text, int64_t least, int64_t most)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < least ||
        number > most) {
        argp_error(state, "--%s=%s: pass a whole number from %lld to %lld",
                   option, text, (long long)least, (long long)most);
    }
    return number;
}

static error_t collect_word(int key, char *arg, struct argp_state *state)
{
    struct words *words = state->input;

    if (key == ARGP_KEY_ARG) {
        words->words[words->count++] = arg;
        return 0;
    }
    return words->parser(key, arg, state);
}

/* Checks the number of words of the part that the first one names. Returns NULL
 * after printing a message. */
static const struct tool_part *find_part(const char *tool,
                                         const struct tool_part *parts,
                                         const struct words *words)
{
    const struct tool_part *part = parts;

    if (words->count == 0) {
        fprintf(stderr, "%s: pass what to do; see %s --help\n", tool, tool);
        return NULL;
    }
    while (part->name != NULL && strcmp(part->name, words->words[0]) != 0) {
        part++;
    }
    if (part->name == NULL) {
        fprintf(stderr, "%s: there is no \"%s %s\"; see %s --help\n", tool,
                tool, words->words[0], tool);
        return NULL;
    }
    if (words->count - 1 < part->least || words->count - 1 > part->most) {
        bool few = words->count - 1 < part->least;
        int wanted = few ? part->least : part->most;

        fprintf(stderr, "%s %s: pass %s%d argument%s, not %d; see %s --help\n",
                tool, part->name,
                part->least == part->most ? ""
                : few                     ? "at least "
                                          : "at most ",
                wanted, wanted == 1 ? "" : "s", words->count - 1, tool);
        return NULL;
    }
    return part;
}

int tool_run_part(const struct argp *argp, int argc, char **argv,
                  const struct tool_part *parts)
{
    struct words words = {.parser = argp->parser,
                          .words = calloc((size_t)argc, sizeof *words.words)};
    struct argp whole = *argp;
    const struct tool_part *part;
    int status = TOOL_USAGE;

    if (words.words == NULL) {
        perror(argv[0]);
        return TOOL_FAILED;
    }
    whole.parser = collect_word;
    tool_parse(&whole, argc, argv, &words);
    part = find_part(argv[0], parts, &words);
    if (part != NULL) {
        status = part->run(words.words + 1, words.count - 1);
    }
    free(words.words);
    return status;
}

FILE *tool_open(const char *tool, const char *path)
{
    FILE *file = path == NULL ? stdout : fopen(path, "we");

    if (file == NULL) {
        fprintf(stderr, "%s: %s: %s\n", tool, path, strerror(errno));
    }
    return file;
}

int tool_close(const char *tool, const char *path, FILE *file)
{
    bool failed = ferror(file) != 0;

    failed |= (file == stdout ? fflush(file) : fclose(file)) != 0;
    if (failed) {
        fprintf(stderr, "%s: cannot write %s: %s\n", tool,
                path == NULL ? "stdout" : path, strerror(errno));
    }
    return failed ? TOOL_FAILED : TOOL_OK;
}
