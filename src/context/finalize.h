/* SPDX-License-Identifier: MIT
 *
 * Ends a context.
 */
#ifndef IRIS_SRC_CONTEXT_FINALIZE_H
#define IRIS_SRC_CONTEXT_FINALIZE_H

#include "context/context_type.h"

/* Adds the context to the list of this process's contexts; its end removes
 * it. */
void iris_i_enlist(iris_t *iris);

/* Frees the parts of a context that exist, in reverse order of their
 * creation. */
void iris_i_close_all(iris_t *iris);

/* Ends a context without its peers: they get IRIS_ERR_PEER_LOST. */
void iris_i_abandon(iris_t *iris);

#endif /* IRIS_SRC_CONTEXT_FINALIZE_H */
