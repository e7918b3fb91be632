/* SPDX-License-Identifier: MIT
 *
 * Which fused operation the calling thread is in.
 */
#ifndef IRIS_SRC_CONTEXT_FUSED_H
#define IRIS_SRC_CONTEXT_FUSED_H

#include "backend/mismatch.h"

struct iris_stream;

struct iris_fused {
    struct iris_compared compared;
    struct iris_stream *stream; /* the operation's, which the others' work that
                                 * is a part of it follows and joins */
};

/* Collectives that this thread calls are a part of this operation, and are
 * compared as it; NULL: of none. */
void iris_i_fused_set(const struct iris_fused *call);
const struct iris_fused *iris_i_fused(void);

#endif /* IRIS_SRC_CONTEXT_FUSED_H */
