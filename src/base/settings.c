/* SPDX-License-Identifier: MIT
 *
 * The origins of settings' values, and rows for help texts.
 */
#include "config.h"

#include "base/internal.h"

#include "base/settings_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The program's text for a row, or NULL. Numbers are printed into `buffer`, so
 * that one parser checks all origins. */
static const char *argument_text(const struct iris_setting_entry *row,
                                 const struct iris_config *config, char *buffer,
                                 size_t buffer_bytes)
{
    const void *field =
        config == NULL ? NULL : iris_i_config_field(row, config);

    if (field == NULL) {
        return NULL;
    }
    if (iris_i_setting_is_text(row)) {
        return *(const char *const *)field;
    }
    if (*(const int64_t *)field == -1) {
        return NULL;
    }
    snprintf(buffer, buffer_bytes, "%lld", (long long)*(const int64_t *)field);
    return buffer;
}

static void set(const struct iris_setting_entry *row, const char *text,
                enum iris_origin origin, struct iris_setting *setting)
{
    setting->origin = origin;
    snprintf(setting->text, sizeof setting->text, "%s", text);
    if (row->kind == CHOICE || row->kind == LIST) {
        for (char *c = setting->text; *c != '\0'; c++) {
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        }
    }
}

static iris_status_t reject_value(const struct iris_setting_entry *row,
                                  const char *origin, const char *text)
{
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "%s%s=\"%.60s\" does not parse; it takes: %s", origin,
                       row->help.env,
                       iris_i_setting_is_secret(&row->help) ? "..." : text,
                       iris_i_setting_accepts(row));
}

/* A row's variable, or NULL. IRIS_SIMULATION=1 is upstream's name for
 * IRIS_BACKEND=sim. */
static iris_status_t read_variable(const struct iris_setting_entry *row,
                                   const char **text_p)
{
    static const struct iris_setting_entry upstream = {
        .help = {.env = "IRIS_SIMULATION"}, .kind = FLAG};
    const char *asked = getenv(upstream.help.env);
    struct iris_setting is_sim = {.number = 0};

    *text_p = getenv(row->help.env);
    if (strcmp(row->help.env, "IRIS_BACKEND") != 0 || asked == NULL ||
        asked[0] == '\0') {
        return IRIS_OK;
    }
    if (!iris_i_setting_parse(&upstream, asked, &is_sim)) {
        return reject_value(&upstream, "environment variable ", asked);
    }
    if (is_sim.number == 0) {
        return IRIS_OK;
    }
    if (*text_p != NULL && **text_p != '\0' &&
        strcasecmp(*text_p, "sim") != 0) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "IRIS_SIMULATION asks for the sim backend but "
                           "IRIS_BACKEND for \"%.60s\"; unset one of them",
                           *text_p);
    }
    *text_p = "sim";
    return IRIS_OK;
}

static iris_status_t load_row(const struct iris_setting_entry *row,
                              const struct iris_config *config,
                              struct iris_setting *setting)
{
    char buffer[32];
    enum iris_origin origin = IRIS_ORIGIN_ARGUMENT;
    const char *text = argument_text(row, config, buffer, sizeof buffer);
    struct iris_setting given = {.number = 0};
    iris_status_t status = IRIS_OK;

    setting->number = 0;
    iris_i_setting_parse(row, row->help.value, setting);
    set(row, row->help.value, IRIS_ORIGIN_DEFAULT, setting);
    if (text == NULL) {
        origin = IRIS_ORIGIN_ENVIRONMENT;
        status = read_variable(row, &text);
    }
    if (status != IRIS_OK || text == NULL ||
        (text[0] == '\0' && !iris_i_setting_is_text(row)) ||
        (text[0] == '\0' && origin == IRIS_ORIGIN_ENVIRONMENT)) {
        return status;
    }
    if (!iris_i_setting_parse(row, text, &given)) {
        return reject_value(row,
                            origin == IRIS_ORIGIN_ARGUMENT
                                ? "configuration value for "
                                : "environment variable ",
                            text);
    }
    setting->number = given.number;
    set(row, text, origin, setting);
    return IRIS_OK;
}

iris_status_t iris_i_settings_load(const struct iris_config *config,
                                   struct iris_settings *settings_p)
{
    iris_status_t first = iris_i_config_check(config);

    config = first == IRIS_OK ? config : NULL;
    for (size_t i = 0; i < iris_i_settings_count; i++) {
        struct iris_setting *setting =
            (void *)((char *)settings_p +
                     iris_i_settings_table[i].setting_offset);
        char kept[IRIS_MESSAGE_BYTES];

        snprintf(kept, sizeof kept, "%s", iris_last_error());
        if (load_row(&iris_i_settings_table[i], config, setting) != IRIS_OK) {
            if (first != IRIS_OK) {
                iris_i_fail_again(first, kept);
            }
            first = IRIS_ERR_CONFIG;
        }
    }
    return first;
}

int iris_i_settings_row(const struct iris_settings *settings, size_t i,
                        struct iris_setting_row *row_p)
{
    if (i >= iris_i_settings_count) {
        return 0;
    }
    *row_p = iris_i_settings_table[i].help;
    if (settings != NULL) {
        row_p->setting =
            (const void *)((const char *)settings +
                           iris_i_settings_table[i].setting_offset);
    }
    return 1;
}

const char *iris_i_origin_string(enum iris_origin origin)
{
    return origin == IRIS_ORIGIN_ENVIRONMENT ? "environment"
           : origin == IRIS_ORIGIN_ARGUMENT  ? "argument"
                                             : "default";
}
