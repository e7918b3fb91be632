/* SPDX-License-Identifier: MIT
 *
 * Finds environment variables that look like settings but are not.
 */
#ifndef IRIS_SRC_BASE_ENVIRONMENT_H
#define IRIS_SRC_BASE_ENVIRONMENT_H

#include "base/error.h"

/* Warns about each non-empty IRIS_* variable that nothing reads, and names the
 * nearest setting. Only the first call in a process does so. */
void iris_i_environment_check(const struct iris_log *log);

/* Whether an entry of environ, "NAME=value", is such a variable. */
int iris_i_environment_is_unknown(const char *variable);

#endif /* IRIS_SRC_BASE_ENVIRONMENT_H */
