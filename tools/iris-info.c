/* SPDX-License-Identifier: MIT
 *
 * iris-info: the features of this build on this machine, and the settings of a
 * program that is started now. This file has the options, the table of settings
 * and --check.
 */
#include "config.h"

#include "info.h"
#include "info_check.h"

#include <iris/iris.h>

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Table of settings ---- */

/* The possible values of each kind; a CHOICE and a LIST have
 * their own lists. */
#define TAKES_STRING "any text"
#define TAKES_CHOICE ""
#define TAKES_LIST ""
#define TAKES_BYTES "a size such as 64M, 1G or 1048576"
#define TAKES_MS "milliseconds, 0 for none"
#define TAKES_COUNT "an integer from 1"
#define TAKES_RANK "an integer from 0"
#define TAKES_FLAG "1, true, yes, 0, false or no"

static const char *const takes[] = {
#define TAKES(field, kind, env, value, choices, help) TAKES_##kind,
    IRIS_CONFIG_ROWS(TAKES)
#undef TAKES
};

/* Prints the words of a list with commas between them. */
static void print_choices(const char *choices)
{
    for (const char *c = choices; *c != '\0'; c++) {
        printf("%s%c", *c == ' ' ? "," : "", *c);
    }
}

/* Prints it with a backslash before each of the characters. */
static void print_escaped(const char *text, const char *characters)
{
    for (const char *c = text; *c != '\0'; c++) {
        printf("%s%c", strchr(characters, *c) != NULL ? "\\" : "", *c);
    }
}

static int env_markdown(void)
{
    struct iris_setting_row row;

    printf("| Variable | Default | Takes | Meaning |\n"
           "| --- | --- | --- | --- |\n");
    for (size_t i = 0; iris_i_settings_row(NULL, i, &row); i++) {
        printf("| `%s` |", row.env);
        printf(row.value[0] == '\0' ? " " : " `%s`", row.value);
        printf(" | ");
        if (row.choices[0] != '\0') {
            print_choices(row.choices);
        } else {
            printf("%s", takes[i]);
        }
        printf(" | ");
        print_escaped(row.help, "<|"); /* no tag, no column */
        printf(" |\n");
    }
    return 0;
}

static int env_man(void)
{
    const char *special = "-\\"; /* a minus is not its hyphen */
    struct iris_setting_row row;

    for (size_t i = 0; iris_i_settings_row(NULL, i, &row); i++) {
        printf(".TP\n.B %s\n", row.env);
        print_escaped(row.help, special);
        printf(".\nTakes ");
        if (row.choices[0] != '\0') {
            print_choices(row.choices);
        } else {
            print_escaped(takes[i], special);
        }
        printf(". Default: ");
        print_escaped(row.value[0] == '\0' ? "none" : row.value, special);
        printf(".\n");
    }
    return 0;
}

/* ---- Options ---- */

static void usage(FILE *file)
{
    fprintf(
        file,
        "usage: iris-info [option]\n"
        "Shows the version and how it was built, backends, their devices,\n"
        "the links between devices, shared memory, settings, and anything\n"
        "that would make a program fail. Runs nothing; --check does.\n\n"
        "  -j, --json      all of it as JSON\n"
        "  -c, --check     run 2 ranks that write into each other's heaps\n"
        "  --env-markdown  the settings as a table in Markdown\n"
        "  --env-man       the settings as in iris(7)\n"
        "  -V, --version   the version\n"
        "  -h, --help      this text\n\n"
        "Exit status: 0, or 1 if a program started now would fail: a setting\n"
        "does not parse or contradicts another, the rank is not one of the\n"
        "job's, the heap is too small, no backend can run; with --check, if\n"
        "the ranks fail. 2 for a bad option.\n");
}

static int print_all(void (*print)(const struct info *info))
{
    static struct info info;

    info_gather(&info);
    print(&info);
    return info.num_problems != 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"check", no_argument, NULL, 'c'},
        {"env-markdown", no_argument, NULL, 'm'},
        {"env-man", no_argument, NULL, 'M'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option = getopt_long(argc, argv, "jcVh", options, NULL);

    if (optind < argc) {
        usage(stderr);
        return 2;
    }
    switch (option) {
    case 'j':
        return print_all(info_print_json);
    case 'c':
        return info_check();
    case 'm':
        return env_markdown();
    case 'M':
        return env_man();
    case 'V':
        printf("iris-info %s\n", iris_version());
        return 0;
    case 'h':
        usage(stdout);
        return 0;
    case -1:
        return print_all(info_print_text);
    default:
        usage(stderr);
        return 2;
    }
}
