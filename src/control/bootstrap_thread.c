/* SPDX-License-Identifier: MIT
 *
 * Ranks this process makes itself, as threads or as children: it knows who they
 * are, and gives them a key of their own.
 */
#include "config.h"

#include "control/bootstrap.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

iris_status_t iris_i_bootstrap_random_key(char key[IRIS_KEY_BYTES])
{
    uint64_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "no random numbers for the job's key");
    }
    snprintf(key, IRIS_KEY_BYTES, "%016llx%016llx",
             (unsigned long long)random[0], (unsigned long long)random[1]);
    return IRIS_OK;
}

void iris_i_bootstrap_thread(const char *key, int rank, int num_ranks,
                             struct iris_bootstrap *bootstrap_p)
{
    memset(bootstrap_p, 0, sizeof *bootstrap_p);
    bootstrap_p->how = "spawn";
    bootstrap_p->rank = rank;
    bootstrap_p->num_ranks = num_ranks;
    bootstrap_p->local_rank = rank;
    snprintf(bootstrap_p->key, sizeof bootstrap_p->key, "%s", key);
}
