/* SPDX-License-Identifier: MIT
 *
 * What the environment has that looks like a setting and is none.
 */
#ifndef IRIS_SRC_BASE_ENVIRONMENT_H
#define IRIS_SRC_BASE_ENVIRONMENT_H

#include "base/error.h"

/* Warns of each IRIS_* variable, not empty, that nobody reads, with the setting
 * whose name is nearest. Once in a process: later calls do nothing. */
void iris_i_environment_check(const struct iris_log *log);

/* Whether an entry of environ, "NAME=value", is one of these. */
int iris_i_environment_is_unknown(const char *variable);

#endif /* IRIS_SRC_BASE_ENVIRONMENT_H */
