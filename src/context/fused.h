/* SPDX-License-Identifier: MIT
 *
 * The fused operation that the calling thread is in.
 */
#ifndef IRIS_SRC_CONTEXT_FUSED_H
#define IRIS_SRC_CONTEXT_FUSED_H

#include "backend/mismatch.h"

struct iris_stream;

struct iris_fused {
    struct iris_compared compared;
    struct iris_stream *stream; /* the operation's stream; the other work of
                                 * the operation follows it and joins it */
};

/* The collectives that this thread calls are part of this operation, and peers
 * compare them as such; NULL: no operation. */
void iris_i_fused_set(const struct iris_fused *call);
const struct iris_fused *iris_i_fused(void);

#endif /* IRIS_SRC_CONTEXT_FUSED_H */
