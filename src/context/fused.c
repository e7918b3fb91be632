/* SPDX-License-Identifier: MIT
 *
 * Which fused operation the calling thread is in.
 */
#include "config.h"

#include "context/fused.h"

/* A collective that is a part of one is called by the public function, which
 * has no argument for it. */
static _Thread_local const struct iris_fused *fused;

void iris_i_fused_set(const struct iris_fused *call)
{
    fused = call;
}

const struct iris_fused *iris_i_fused(void)
{
    return fused;
}
