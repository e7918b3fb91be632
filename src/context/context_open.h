/* SPDX-License-Identifier: MIT
 *
 * Makes a context.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_OPEN_H
#define IRIS_SRC_CONTEXT_CONTEXT_OPEN_H

#include "context/context_type.h"
#include "control/bootstrap.h"

/* The context of the rank in `bootstrap`. Peers wait for this rank. If its
 * settings are wrong (`status`, with this thread's message), it joins them all
 * the same, to tell them, and gets that status. `life_ops` outlives the
 * context. */
iris_status_t iris_i_context_open(const struct iris_settings *settings,
                                  const struct iris_bootstrap *bootstrap,
                                  const struct iris_life_ops *life_ops,
                                  iris_status_t status, iris_t **iris_p);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_OPEN_H */
