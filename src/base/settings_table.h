/* SPDX-License-Identifier: MIT
 *
 * The one table of settings, for the files that load, parse and set them.
 */
#ifndef IRIS_SRC_BASE_SETTINGS_TABLE_H
#define IRIS_SRC_BASE_SETTINGS_TABLE_H

#include "base/settings.h"

enum iris_setting_kind { STRING, CHOICE, BYTES, MS, COUNT, RANK, FLAG };

/* What the table says of one setting, and where its values live. */
struct iris_setting_entry {
    struct iris_setting_row help;
    const char *field; /* its name */
    enum iris_setting_kind kind;
    size_t config_offset;  /* in struct iris_config */
    size_t setting_offset; /* in struct iris_settings */
};

extern const struct iris_setting_entry iris_i_settings_table[];
extern const size_t iris_i_settings_count;

/* Whether values are texts; they are numbers otherwise. */
int iris_i_setting_is_text(const struct iris_setting_entry *row);

/* What values a row accepts, for messages. */
const char *iris_i_setting_accepts(const struct iris_setting_entry *row);

/* Whether the text is a value of the row; setting->number is then its number,
 * if it is one. */
int iris_i_setting_parse(const struct iris_setting_entry *row, const char *text,
                         struct iris_setting *setting);

#endif /* IRIS_SRC_BASE_SETTINGS_TABLE_H */
