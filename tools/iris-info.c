/* SPDX-License-Identifier: MIT
 *
 * iris info: the features of this build on this machine, and the settings of a
 * program that is started now. This file has the options and the table of
 * settings.
 */
#include "config.h"

#include "info.h"
#include "iris.h"

#include <iris/iris.h>

#include <stdio.h>
#include <string.h>

/* ---- Table of settings ---- */

/* The possible values of each kind; a CHOICE has its own list. */
#define TAKES_STRING "any text"
#define TAKES_CHOICE ""
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

enum { KEY_MARKDOWN = 256, KEY_MAN };

static error_t parse_info(int key, char *arg, struct argp_state *state)
{
    int *mode = state->input;

    (void)arg;
    if (key != 'j' && key != KEY_MARKDOWN && key != KEY_MAN) {
        return ARGP_ERR_UNKNOWN;
    }
    *mode = key;
    return 0;
}

static int print_all(void (*print)(const struct info *info))
{
    static struct info info;

    info_gather(&info);
    print(&info);
    return info.num_problems != 0;
}

int tool_info(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"json", 'j', NULL, 0, "Print everything as JSON", 0},
        {"env-markdown", KEY_MARKDOWN, NULL, 0,
         "Print the settings as a table in Markdown", 0},
        {"env-man", KEY_MAN, NULL, 0, "Print the settings as in iris(7)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_info,
        .doc = "Shows the version and how it was built, backends, their "
               "devices, the links between devices, shared memory, settings, "
               "and anything that would make a program fail. Runs nothing on "
               "a device; iris probe does.\v"
               "Exit status: 0, or 1 if a program started now would fail: a "
               "setting does not parse or contradicts another, the rank is not "
               "one of the job's, the heap is too small, no backend can run. 2 "
               "for a wrong command line.",
    };
    int mode = 0;

    tool_parse(&argp, argc, argv, &mode);
    switch (mode) {
    case KEY_MARKDOWN:
        return env_markdown();
    case KEY_MAN:
        return env_man();
    case 'j':
        return print_all(info_print_json);
    default:
        return print_all(info_print_text);
    }
}
