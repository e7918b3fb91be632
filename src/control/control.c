/* SPDX-License-Identifier: MIT
 *
 * Calls of the control plane that callers may make without one.
 */
#include "config.h"

#include "control/control.h"

int iris_i_control_is_remote(struct iris_control *control, int rank)
{
    return control != NULL && control->ops->is_remote(control, rank);
}

void iris_i_control_wait_stream(struct iris_control *control, int change)
{
    if (control != NULL) {
        control->ops->wait_stream(control, change);
    }
}

void iris_i_control_close(struct iris_control *control)
{
    if (control != NULL) {
        control->ops->close(control);
    }
}
