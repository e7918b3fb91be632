/* SPDX-License-Identifier: MIT
 *
 * Which bootstrap applies.
 */
#include "config.h"

#include "control/bootstrap.h"

#include "base/log.h"

#include <string.h>

iris_status_t iris_i_bootstrap_check(int num_ranks)
{
    if (num_ranks <= IRIS_RANKS_MAX) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "a job of %d ranks; it can have at most %d: lower "
                       "IRIS_NUM_RANKS",
                       num_ranks, IRIS_RANKS_MAX);
}

static iris_status_t alone(struct iris_bootstrap *bootstrap_p)
{
    char key[IRIS_KEY_BYTES];
    iris_status_t status = iris_i_bootstrap_random_key(key);

    if (status == IRIS_OK) {
        iris_i_bootstrap_thread(key, 0, 1, bootstrap_p);
        bootstrap_p->how = "alone";
    }
    return status;
}

static iris_status_t find_out(const struct iris_settings *settings,
                              struct iris_bootstrap *bootstrap_p)
{
    int64_t how = settings->bootstrap.number;
    int has_rank = settings->rank.origin != IRIS_ORIGIN_DEFAULT;

    if (how == IRIS_CHOICE_BOOTSTRAP_MPI) {
        return iris_i_bootstrap_mpi(settings, bootstrap_p);
    }
    if (how == IRIS_CHOICE_BOOTSTRAP_ENV || has_rank) {
        return iris_i_bootstrap_env(settings, bootstrap_p);
    }
    if (iris_i_bootstrap_mpi_applies()) {
        return iris_i_bootstrap_mpi(settings, bootstrap_p);
    }
    if (iris_i_bootstrap_env_applies(settings)) {
        return iris_i_bootstrap_env(settings, bootstrap_p);
    }
    return alone(bootstrap_p);
}

iris_status_t iris_i_bootstrap(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap_p)
{
    struct iris_bootstrap bootstrap;
    iris_status_t status = find_out(settings, &bootstrap);

    if (status == IRIS_OK) {
        status = iris_i_bootstrap_check(bootstrap.num_ranks);
    }
    if (status == IRIS_OK) {
        *bootstrap_p = bootstrap;
    }
    return status;
}

int iris_i_bootstrap_launched(const struct iris_settings *settings)
{
    return settings->bootstrap.number != IRIS_CHOICE_BOOTSTRAP_AUTO ||
           iris_i_bootstrap_mpi_applies() ||
           iris_i_bootstrap_env_applies(settings);
}
