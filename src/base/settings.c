/* SPDX-License-Identifier: MIT
 *
 * The one table of settings: parsing, defaults, and rows for help texts.
 */
#include "config.h"

#include "base/settings.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { STRING, CHOICE, BYTES, MS, COUNT, RANK, FLAG };

/* What the table says of one setting, and where its values live. */
struct row {
    struct iris_setting_row help;
    enum kind kind;
    size_t config_offset;  /* in struct iris_config */
    size_t setting_offset; /* in struct iris_settings */
};

static const struct row rows[] = {
#define ROW(field, kind, env, value, choices, help) \
    {{env, value, choices, help, NULL},             \
     kind,                                          \
     offsetof(struct iris_config, field),           \
     offsetof(struct iris_settings, field)},
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
};

#define NUM_ROWS (sizeof rows / sizeof rows[0])

static int is_text(enum kind kind)
{
    return kind == STRING || kind == CHOICE;
}

/* Is `text` one of the space-separated words of `choices`? */
static int is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);

    for (const char *c = choices; *c != '\0'; c += strcspn(c, " ")) {
        c += strspn(c, " ");
        if (strcspn(c, " ") == length && strncasecmp(c, text, length) == 0) {
            return 1;
        }
    }
    return 0;
}

static int parse_flag(const char *text, int64_t *number_p)
{
    if (is_choice("1 true yes", text)) {
        *number_p = 1;
        return 1;
    }
    if (is_choice("0 false no", text)) {
        *number_p = 0;
        return 1;
    }
    return 0;
}

/* A decimal integer from `least`, with K, M or G behind it where `units`. */
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

/* What values a row accepts, for messages. */
static const char *accepts(const struct row *row)
{
    switch (row->kind) {
    case BYTES:
        return "a size such as 64M, 1G or 1048576";
    case MS:
        return "milliseconds, 0 for none";
    case COUNT:
        return "an integer from 1";
    case RANK:
        return "an integer from 0";
    case FLAG:
        return "1, true, yes, 0, false or no";
    case CHOICE:
        return row->help.choices;
    case STRING:
        break;
    }
    return "a shorter text";
}

static int parse(const struct row *row, const char *text,
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
        return is_choice(row->help.choices, text);
    case STRING:
        break;
    }
    return 1;
}

/* The text the program gave for a row, or NULL. Numbers are printed into
 * `buffer`, so that one parser judges every origin. */
static const char *argument_text(const struct row *row,
                                 const struct iris_config *config, char *buffer,
                                 size_t buffer_bytes)
{
    const char *field;

    if (config == NULL) {
        return NULL;
    }
    field = (const char *)config + row->config_offset;
    if (is_text(row->kind)) {
        return *(const char *const *)(const void *)field;
    }
    if (*(const int64_t *)(const void *)field == -1) {
        return NULL;
    }
    snprintf(buffer, buffer_bytes, "%lld",
             (long long)*(const int64_t *)(const void *)field);
    return buffer;
}

static void set(const struct row *row, const char *text,
                enum iris_origin origin, struct iris_setting *setting)
{
    setting->origin = origin;
    snprintf(setting->text, sizeof setting->text, "%s", text);
    if (row->kind == CHOICE) {
        for (char *c = setting->text; *c != '\0'; c++) {
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        }
    }
}

static iris_status_t load_row(const struct row *row,
                              const struct iris_config *config,
                              struct iris_setting *setting)
{
    char buffer[32];
    enum iris_origin origin = IRIS_ORIGIN_ARGUMENT;
    const char *text = argument_text(row, config, buffer, sizeof buffer);
    struct iris_setting given = {.number = 0};

    setting->number = 0;
    parse(row, row->help.value, setting);
    set(row, row->help.value, IRIS_ORIGIN_DEFAULT, setting);
    if (text == NULL) {
        origin = IRIS_ORIGIN_ENVIRONMENT;
        text = getenv(row->help.env);
    }
    if (text == NULL || (text[0] == '\0' && !is_text(row->kind)) ||
        (text[0] == '\0' && origin == IRIS_ORIGIN_ENVIRONMENT)) {
        return IRIS_OK;
    }
    if (!parse(row, text, &given)) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "%s%s=\"%.60s\" does not parse; it takes: %s",
                           origin == IRIS_ORIGIN_ARGUMENT
                               ? "configuration value for "
                               : "environment variable ",
                           row->help.env, text, accepts(row));
    }
    setting->number = given.number;
    set(row, text, origin, setting);
    return IRIS_OK;
}

/* IRIS_SIMULATION is another way to say IRIS_BACKEND=sim. */
static iris_status_t apply_simulation(struct iris_settings *settings)
{
    if (!settings->simulation.number) {
        return IRIS_OK;
    }
    if (settings->backend.text[0] != '\0' &&
        strcasecmp(settings->backend.text, "sim") != 0) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "IRIS_SIMULATION asks for the sim backend but "
                           "IRIS_BACKEND for \"%.60s\"; unset one of them",
                           settings->backend.text);
    }
    snprintf(settings->backend.text, sizeof settings->backend.text, "sim");
    settings->backend.origin = settings->simulation.origin;
    return IRIS_OK;
}

void iris_config_init(struct iris_config *config)
{
    for (size_t i = 0; i < NUM_ROWS; i++) {
        void *field = (char *)config + rows[i].config_offset;

        if (is_text(rows[i].kind)) {
            *(const char **)field = NULL;
        } else {
            *(int64_t *)field = -1;
        }
    }
}

iris_status_t iris_i_settings_load(const struct iris_config *config,
                                   struct iris_settings *settings_p)
{
    iris_status_t first = IRIS_OK;

    for (size_t i = 0; i < NUM_ROWS; i++) {
        struct iris_setting *setting =
            (void *)((char *)settings_p + rows[i].setting_offset);
        char kept[IRIS_MESSAGE_BYTES];

        snprintf(kept, sizeof kept, "%s", iris_last_error());
        if (load_row(&rows[i], config, setting) != IRIS_OK) {
            if (first != IRIS_OK) {
                iris_i_fail_again(first, kept);
            }
            first = IRIS_ERR_CONFIG;
        }
    }
    if (first != IRIS_OK) {
        return first;
    }
    return apply_simulation(settings_p);
}

int iris_i_settings_row(const struct iris_settings *settings, size_t i,
                        struct iris_setting_row *row_p)
{
    if (i >= NUM_ROWS) {
        return 0;
    }
    *row_p = rows[i].help;
    if (settings != NULL) {
        row_p->setting =
            (const void *)((const char *)settings + rows[i].setting_offset);
    }
    return 1;
}

const char *iris_i_origin_string(enum iris_origin origin)
{
    switch (origin) {
    case IRIS_ORIGIN_ENVIRONMENT:
        return "environment";
    case IRIS_ORIGIN_ARGUMENT:
        return "argument";
    case IRIS_ORIGIN_DEFAULT:
        break;
    }
    return "default";
}
