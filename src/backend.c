/* SPDX-License-Identifier: MIT
 *
 * Which backends this build has, and which of them to use.
 */
#include "config.h"

#include "backend.h"

#include "backend_sim/sim.h"
#include "log.h"

#include <string.h>
#include <strings.h>

/* Best first. */
static const struct iris_backend_ops *const backends[] = {
    &iris_i_sim_ops,
    NULL,
};

const struct iris_backend_ops *const *iris_i_backends(void)
{
    return backends;
}

static iris_status_t select_named(const char *name,
                                  const struct iris_backend_ops **ops_p)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (strcasecmp(backends[i]->name, name) == 0) {
            iris_status_t status = backends[i]->probe();

            if (status == IRIS_OK) {
                *ops_p = backends[i];
            }
            return status;
        }
    }
    if (strcasecmp(name, "hip") == 0) {
        return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                           "backend \"hip\" (IRIS_BACKEND) is not in this "
                           "build; it has: sim. Use IRIS_BACKEND=sim");
    }
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "backend \"%.60s\" (IRIS_BACKEND) is unknown; this "
                       "build has: sim",
                       name);
}

iris_status_t iris_i_backend_select(const char *name,
                                    const struct iris_backend_ops **ops_p)
{
    iris_status_t status = IRIS_ERR_BACKEND;

    if (name[0] != '\0') {
        return select_named(name, ops_p);
    }
    for (size_t i = 0; backends[i] != NULL; i++) {
        status = backends[i]->probe();
        if (status == IRIS_OK) {
            *ops_p = backends[i];
            return IRIS_OK;
        }
    }
    return status; /* the last one's message says why */
}
