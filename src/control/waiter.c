/* SPDX-License-Identifier: MIT
 *
 * A rank as one that waits.
 */
#include "config.h"

#include "control/waiter.h"

#include "control/peers.h"

static iris_status_t peers_fate(void *arg)
{
    return iris_i_peers_check_all(arg);
}

struct iris_waiter iris_i_control_waiter(struct iris_control *control)
{
    if (control == NULL) {
        return (struct iris_waiter){.log = NULL};
    }
    return (struct iris_waiter){.log = control->log,
                                .timeout_ms = control->timeout_ms,
                                .warn_ms = control->warn_ms,
                                .interrupted = control->interrupted,
                                .fate = peers_fate,
                                .arg = control};
}
