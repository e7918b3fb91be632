/* SPDX-License-Identifier: MIT
 *
 * Opens the check that IRIS_CHECK names.
 */
#ifndef IRIS_SRC_CONTEXT_CHECK_H
#define IRIS_SRC_CONTEXT_CHECK_H

#include <iris/context.h>

/* Watches the context from its first allocation on. On a GPU it only warns that
 * it checks nothing. */
iris_status_t iris_i_context_open_check(iris_t *iris);

#endif /* IRIS_SRC_CONTEXT_CHECK_H */
