/* SPDX-License-Identifier: MIT
 *
 * The program's configuration: initialised for any size of the struct, and set
 * by name.
 */
#include "config.h"

#include "base/internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Value of all bytes after the fields that this library knows. */
#define UNSET_BYTE 0xff

#define ENV_PREFIX "IRIS_"

void *iris_i_config_field(const struct iris_setting_entry *row,
                          const struct iris_config *config)
{
    size_t end =
        row->config_offset +
        (iris_i_setting_is_text(row) ? sizeof(const char *) : sizeof(int64_t));

    return end > config->size ? NULL
                              : (char *)(uintptr_t)config + row->config_offset;
}

static void unset(const struct iris_setting_entry *row, void *field)
{
    if (iris_i_setting_is_text(row)) {
        *(const char **)field = NULL;
    } else {
        *(int64_t *)field = -1;
    }
}

void iris_config_init_sized(struct iris_config *config, size_t size)
{
    if (!iris_i_sized_init(config, size, UNSET_BYTE)) {
        return;
    }
    for (size_t i = 0; i < iris_i_settings_count; i++) {
        void *field = iris_i_config_field(&iris_i_settings_table[i], config);

        if (field != NULL) {
            unset(&iris_i_settings_table[i], field);
        }
    }
}

iris_status_t iris_i_config_check(const struct iris_config *config)
{
    if (config == NULL) {
        return IRIS_OK;
    }
    if (!iris_i_sized_fits(config->size)) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "the configuration says that it has %zu bytes; call "
                           "iris_config_init on it first",
                           config->size);
    }
    if (iris_i_sized_unknown(config, sizeof *config, UNSET_BYTE) != 0) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "the program has set a field of the configuration "
                           "that came after version %s of this library; "
                           "install the version that the program was compiled "
                           "for",
                           iris_version());
    }
    return IRIS_OK;
}

static const struct iris_setting_entry *find(const char *name)
{
    for (size_t i = 0; i < iris_i_settings_count; i++) {
        const struct iris_setting_entry *row = &iris_i_settings_table[i];

        if (strcasecmp(name, row->field) == 0 ||
            strcasecmp(name, row->help.env + strlen(ENV_PREFIX)) == 0) {
            return row;
        }
    }
    return NULL;
}

static iris_status_t fail_name(const char *name)
{
    char names[IRIS_MESSAGE_BYTES / 2] = "";
    size_t length = 0;

    for (size_t i = 0; i < iris_i_settings_count; i++) {
        length += (size_t)snprintf(names + length, sizeof names - length, " %s",
                                   iris_i_settings_table[i].field);
        if (length >= sizeof names) {
            break;
        }
    }
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "iris_config_set: no setting is called \"%.60s\"; there "
                       "are:%s",
                       name, names);
}

static iris_status_t set(const struct iris_setting_entry *row, void *field,
                         const char *value)
{
    struct iris_setting setting;

    if (value == NULL) {
        unset(row, field);
        return IRIS_OK;
    }
    if (!iris_i_setting_parse(row, value, &setting)) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "iris_config_set: %s=\"%.60s\" does not parse; it "
                           "takes: %s",
                           row->field,
                           iris_i_setting_is_secret(&row->help) ? "..." : value,
                           iris_i_setting_accepts(row));
    }
    if (iris_i_setting_is_text(row)) {
        *(const char **)field = value;
    } else {
        *(int64_t *)field = setting.number;
    }
    return IRIS_OK;
}

iris_status_t iris_config_set(struct iris_config *config, const char *name,
                              const char *value)
{
    const struct iris_setting_entry *row;
    iris_status_t status;
    void *field;

    if (config == NULL || name == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_config_set: %s is NULL",
                           config == NULL ? "config" : "name");
    }
    status = iris_i_config_check(config);
    if (status != IRIS_OK) {
        return status;
    }
    row = find(name);
    if (row == NULL) {
        return fail_name(name);
    }
    field = iris_i_config_field(row, config);
    if (field == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "iris_config_set: the program's struct iris_config "
                           "ends before %s; compile it with the headers of "
                           "version %s",
                           row->field, iris_version());
    }
    return set(row, field, value);
}
