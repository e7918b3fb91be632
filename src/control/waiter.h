/* SPDX-License-Identifier: MIT
 *
 * A rank as one that waits (base/wait.h): its limits, and its peers' fate.
 */
#ifndef IRIS_SRC_CONTROL_WAITER_H
#define IRIS_SRC_CONTROL_WAITER_H

#include "base/wait.h"
#include "control/control.h"

/* The wait ends when any rank is lost, this one is interrupted, or the control
 * plane's deadline passes. NULL is fine: nothing ends it. */
struct iris_waiter iris_i_control_waiter(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_WAITER_H */
