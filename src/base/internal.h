/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/base: settings, messages, files, sockets, time;
 * it knows ranks only as numbers.
 */
#ifndef IRIS_SRC_BASE_INTERNAL_H
#define IRIS_SRC_BASE_INTERNAL_H

#include "base/base.h"
#include "base/settings_table.h"

/* ---- settings_config.c ---- */

/* The row's field in the configuration. NULL if the program is so old that its
 * struct has no such field. */
void *iris_i_config_field(const struct iris_setting_entry *row,
                          const struct iris_config *config);

/* Whether iris_config_init() initialised it, and no field is set that only a
 * newer library knows. IRIS_ERR_CONFIG */
iris_status_t iris_i_config_check(const struct iris_config *config);

#endif /* IRIS_SRC_BASE_INTERNAL_H */
