/* SPDX-License-Identifier: MIT
 *
 * Which fused operation the calling thread is in.
 */
#ifndef IRIS_SRC_CONTEXT_FUSED_H
#define IRIS_SRC_CONTEXT_FUSED_H

struct iris_compared;

/* Collectives that this thread calls are a part of this operation, and are
 * compared as it; NULL: of none. */
void iris_i_fused_set(const struct iris_compared *call);
const struct iris_compared *iris_i_fused(void);

#endif /* IRIS_SRC_CONTEXT_FUSED_H */
