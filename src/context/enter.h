/* SPDX-License-Identifier: MIT
 *
 * The checks that every call with a context begins with.
 */
#ifndef IRIS_SRC_CONTEXT_ENTER_H
#define IRIS_SRC_CONTEXT_ENTER_H

#include "context/context_type.h"

/* Whether this process can use this context. IRIS_ERR_INVALID (NULL),
 * IRIS_ERR_STATE (finalized, forked); `call` is the public name, for the
 * message. */
iris_status_t iris_i_enter(const iris_t *iris, const char *call);

/* iris_i_enter(), and a check that the output argument `name` is not NULL. */
iris_status_t iris_i_enter_output(const iris_t *iris, const char *call,
                                  const void *output, const char *name);

#endif /* IRIS_SRC_CONTEXT_ENTER_H */
