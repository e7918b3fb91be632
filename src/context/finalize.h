/* SPDX-License-Identifier: MIT
 *
 * The end of a context.
 */
#ifndef IRIS_SRC_CONTEXT_FINALIZE_H
#define IRIS_SRC_CONTEXT_FINALIZE_H

#include "context/context_type.h"

/* Makes the context one of those this process has; its end undoes that. */
void iris_i_enlist(iris_t *iris);

/* Frees what there is of a context, in reverse order of making. */
void iris_i_close_all(iris_t *iris);

/* Ends a context without its peers: they get IRIS_ERR_PEER_LOST. */
void iris_i_abandon(iris_t *iris);

#endif /* IRIS_SRC_CONTEXT_FINALIZE_H */
