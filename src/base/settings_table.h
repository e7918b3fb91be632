/* SPDX-License-Identifier: MIT
 *
 * The only table of settings, for the files that load, parse and set them.
 */
#ifndef IRIS_SRC_BASE_SETTINGS_TABLE_H
#define IRIS_SRC_BASE_SETTINGS_TABLE_H

#include "base/base.h"

/* A LIST is some of the choices, separated by commas. */
enum iris_setting_kind { STRING, CHOICE, LIST, BYTES, MS, COUNT, RANK, FLAG };

/* One setting: its row of the table, and the places of its values. */
struct iris_setting_entry {
    struct iris_setting_row help;
    const char *field; /* its name */
    enum iris_setting_kind kind;
    size_t config_offset;  /* offset in struct iris_config */
    size_t setting_offset; /* offset in struct iris_settings */
};

extern const struct iris_setting_entry iris_i_settings_table[];
extern const size_t iris_i_settings_count;

/* Whether values are texts; they are numbers otherwise. */
int iris_i_setting_is_text(const struct iris_setting_entry *row);

/* Whether nobody may print the row's value. */
int iris_i_setting_is_secret(const struct iris_setting_row *row);

/* The values that a row accepts, for messages. */
const char *iris_i_setting_accepts(const struct iris_setting_entry *row);

/* Whether the text is a valid value of the row. If so, and if it is a number,
 * setting->number gets it. */
int iris_i_setting_parse(const struct iris_setting_entry *row, const char *text,
                         struct iris_setting *setting);

#endif /* IRIS_SRC_BASE_SETTINGS_TABLE_H */
