/* SPDX-License-Identifier: MIT
 *
 * Operations in chunks of rows, on streams of their own: what a chunk's product
 * needs, or is needed for, moves beside the product of another chunk.
 */
#ifndef IRIS_SRC_OPS_OPS_CHUNKS_H
#define IRIS_SRC_OPS_OPS_CHUNKS_H

#include "ops/ops_types.h"

/* Enqueues the call of several members, whose plan says so. The call's stream
 * waits for all of it; nothing waits here. */
iris_status_t iris_i_ops_chunks(iris_t *iris, const struct iris_ops_call *call);

#endif /* IRIS_SRC_OPS_OPS_CHUNKS_H */
