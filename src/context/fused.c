/* SPDX-License-Identifier: MIT
 *
 * The fused operation that the calling thread is in.
 */
#include "config.h"

#include "context/context.h"

/* A fused operation calls public functions for the collectives that are part of
 * it. They have no argument for the operation. */
static _Thread_local const struct iris_fused *fused;

void iris_i_fused_set(const struct iris_fused *call)
{
    fused = call;
}

const struct iris_fused *iris_i_fused(void)
{
    return fused;
}
