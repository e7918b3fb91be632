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
    if (row->kind == CHOICE) {
        for (char *c = setting->text; *c != '\0'; c++) {
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        }
    }
}

static iris_status_t load_row(const struct iris_setting_entry *row,
                              const struct iris_config *config,
                              struct iris_setting *setting)
{
    char buffer[32];
    enum iris_origin origin = IRIS_ORIGIN_ARGUMENT;
    const char *text = argument_text(row, config, buffer, sizeof buffer);
    struct iris_setting given = {.number = 0};

    setting->number = 0;
    iris_i_setting_parse(row, row->help.value, setting);
    set(row, row->help.value, IRIS_ORIGIN_DEFAULT, setting);
    if (text == NULL) {
        origin = IRIS_ORIGIN_ENVIRONMENT;
        text = getenv(row->help.env);
    }
    if (text == NULL || (text[0] == '\0' && !iris_i_setting_is_text(row)) ||
        (text[0] == '\0' && origin == IRIS_ORIGIN_ENVIRONMENT)) {
        return IRIS_OK;
    }
    if (!iris_i_setting_parse(row, text, &given)) {
        return iris_i_fail(
            NULL, IRIS_ERR_CONFIG,
            "%s%s=\"%.60s\" does not parse; it takes: %s",
            origin == IRIS_ORIGIN_ARGUMENT ? "configuration value for "
                                           : "environment variable ",
            row->help.env, iris_i_setting_is_secret(&row->help) ? "..." : text,
            iris_i_setting_accepts(row));
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
    if (first != IRIS_OK) {
        return first;
    }
    return apply_simulation(settings_p);
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
