/* SPDX-License-Identifier: MIT
 *
 * The checks that every call with a context begins with.
 */
#include "config.h"

#include "context/context.h"

#include "base/base.h"

iris_status_t iris_i_enter(const iris_t *iris, const char *call)
{
    if (iris == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "%s: the context is NULL; call iris_init first",
                           call);
    }
    if (!iris_i_is_live(iris)) {
        return iris_i_fail(NULL, IRIS_ERR_STATE,
                           "%s: the context has been finalized; no call may "
                           "follow iris_finalize",
                           call);
    }
    if (iris->pid != iris_i_process_id()) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "%s: the context belongs to process %ld, which "
                           "forked this one; call iris_init in the child, or "
                           "fork before it",
                           call, (long)iris->pid);
    }
    return IRIS_OK;
}

iris_status_t iris_i_enter_output(const iris_t *iris, const char *call,
                                  const void *output, const char *name)
{
    iris_status_t status = iris_i_enter(iris, call);

    if (status == IRIS_OK && output == NULL) {
        status = iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                             "%s: %s is NULL; pass where to put the result",
                             call, name);
    }
    return status;
}
