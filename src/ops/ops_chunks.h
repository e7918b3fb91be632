/* SPDX-License-Identifier: MIT
 *
 * Operations in chunks of rows, on their own streams: the transfer of one chunk
 * overlaps with the product of another.
 */
#ifndef IRIS_SRC_OPS_OPS_CHUNKS_H
#define IRIS_SRC_OPS_OPS_CHUNKS_H

#include "ops/ops_types.h"

/* Enqueues the call of several members, if its plan says so. The call's stream
 * waits for all of the work; the host does not wait. */
iris_status_t iris_i_ops_chunks(iris_t *iris, const struct iris_ops_call *call);

#endif /* IRIS_SRC_OPS_OPS_CHUNKS_H */
