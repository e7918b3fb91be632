/* SPDX-License-Identifier: MIT
 *
 * The only table of settings, and the parser for each kind of value.
 */
#include "config.h"

#include "base/settings_table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct iris_setting_entry iris_i_settings_table[] = {
#define ROW(field, kind, env, value, choices, help) \
    {{env, value, choices, help, NULL},             \
     #field,                                        \
     kind,                                          \
     offsetof(struct iris_config, field),           \
     offsetof(struct iris_settings, field)},
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
};

const size_t iris_i_settings_count =
    sizeof iris_i_settings_table / sizeof iris_i_settings_table[0];

int iris_i_setting_is_text(const struct iris_setting_entry *row)
{
    return row->kind == STRING || row->kind == CHOICE || row->kind == LIST;
}

int iris_i_setting_is_secret(const struct iris_setting_row *row)
{
    return strcmp(row->env, "IRIS_JOB_SECRET") == 0;
}

/* Whether the first `length` characters of `text` are one of the
 * space-separated words of `choices`. *number_p is then its index. */
static int find_word(const char *choices, const char *text, size_t length,
                     int64_t *number_p)
{
    int64_t number = 0;

    for (const char *c = choices; *c != '\0'; c += strcspn(c, " ")) {
        c += strspn(c, " ");
        if (strcspn(c, " ") == length && strncasecmp(c, text, length) == 0) {
            *number_p = number;
            return 1;
        }
        number++;
    }
    return 0;
}

static int find_choice(const char *choices, const char *text, int64_t *number_p)
{
    return find_word(choices, text, strlen(text), number_p);
}

/* Whether `text` is empty, or choices with commas between them. */
static int find_choices(const char *choices, const char *text)
{
    int64_t ignored;

    while (*text != '\0') {
        size_t length = strcspn(text, ",");

        if (!find_word(choices, text, length, &ignored) ||
            (text[length] == ',' && text[length + 1] == '\0')) {
            return 0;
        }
        text += length + (text[length] == ',');
    }
    return 1;
}

static int parse_flag(const char *text, int64_t *number_p)
{
    int is_set = find_choice("1 true yes", text, number_p);

    if (!is_set && !find_choice("0 false no", text, number_p)) {
        return 0;
    }
    *number_p = is_set;
    return 1;
}

/* A decimal integer from `least` on, followed by K, M or G if `units` is
 * set. */
static int parse_number(const char *text, int64_t least, int units,
                        int64_t *number_p)
{
    const char *unit_names = "KMG", *unit = NULL;
    int64_t number;
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return 0;
    }
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0) {
        return 0;
    }
    if (units && *end != '\0') {
        unit = strchr(unit_names, *end >= 'a' ? *end - 'a' + 'A' : *end);
        if (unit == NULL || (end[1] != '\0' && strcasecmp(end + 1, "B") != 0 &&
                             strcasecmp(end + 1, "iB") != 0)) {
            return 0;
        }
    } else if (*end != '\0') {
        return 0;
    }
    for (const char *u = unit_names; unit != NULL && u <= unit; u++) {
        if (number > INT64_MAX / 1024) {
            return 0;
        }
        number *= 1024;
    }
    *number_p = number;
    return number >= least;
}

const char *iris_i_setting_accepts(const struct iris_setting_entry *row)
{
    static const char *const texts[] = {
        [STRING] = "a shorter text",
        [BYTES] = "a size such as 64M, 1G or 1048576",
        [MS] = "milliseconds, 0 for none",
        [COUNT] = "an integer from 1",
        [RANK] = "an integer from 0",
        [FLAG] = "1, true, yes, 0, false or no",
    };

    return row->kind == CHOICE || row->kind == LIST ? row->help.choices
                                                    : texts[row->kind];
}

int iris_i_setting_parse(const struct iris_setting_entry *row, const char *text,
                         struct iris_setting *setting)
{
    if (strlen(text) >= sizeof setting->text) {
        return 0;
    }
    switch (row->kind) {
    case BYTES:
        return parse_number(text, 1, 1, &setting->number);
    case MS:
    case RANK:
        return parse_number(text, 0, 0, &setting->number) &&
               setting->number <= INT32_MAX;
    case COUNT:
        return parse_number(text, 1, 0, &setting->number) &&
               setting->number <= INT32_MAX;
    case FLAG:
        return parse_flag(text, &setting->number);
    case CHOICE:
        return find_choice(row->help.choices, text, &setting->number);
    case LIST:
        return find_choices(row->help.choices, text);
    case STRING:
        break;
    }
    return 1;
}
