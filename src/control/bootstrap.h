/* SPDX-License-Identifier: MIT
 *
 * How ranks meet: who am I, how many are we, and a key only we share. All that
 * follows (rendezvous.h) is the same for every launcher.
 */
#ifndef IRIS_SRC_CONTROL_BOOTSTRAP_H
#define IRIS_SRC_CONTROL_BOOTSTRAP_H

#include <stdatomic.h>

#include "base/address.h"
#include "base/settings.h"

#define IRIS_KEY_BYTES 80

/* Ranks of a job: what one payload of the control segment can name. */
#define IRIS_RANKS_MAX 1000

struct iris_bootstrap {
    const char *how; /* "mpi", "env", "spawn": for messages */
    int rank;
    int num_ranks;
    int local_rank;           /* on this node; picks the device */
    char key[IRIS_KEY_BYTES]; /* the job's name, the same on its ranks only */
    struct iris_address root; /* where rank 0 meets ranks of other hosts; of 0
                               * bytes: the job has one host */
    struct iris_address own;  /* this host's, for connections of other hosts */
    int listener;             /* of rank 0, at root; -1: not yet, or none */
    /* Where whoever makes the ranks notes that one of them (rank + 1) has
     * failed, so that the others do not wait for it. NULL: nobody would. */
    const atomic_int *failed;
};

/* IRIS_ERR_UNSUPPORTED if a job cannot have so many ranks. */
iris_status_t iris_i_bootstrap_check(int num_ranks);

/* Finds out, in the manner the settings ask for; "auto" takes the first that
 * applies of: IRIS_RANK, MPI, another launcher's variables, alone.
 * IRIS_ERR_BOOTSTRAP, IRIS_ERR_CONFIG, IRIS_ERR_UNSUPPORTED (no MPI built in,
 * too many ranks) */
iris_status_t iris_i_bootstrap(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap_p);

/* 1 if a launcher started this process as one rank of several, so that
 * iris_spawn() must not make ranks of its own. */
int iris_i_bootstrap_launched(const struct iris_settings *settings);

/* A key nobody can guess, for ranks this process makes. */
iris_status_t iris_i_bootstrap_random_key(char key[IRIS_KEY_BYTES]);

/* Rank `rank` of num_ranks that this process makes, under `key`; what is not
 * mentioned is 0. */
void iris_i_bootstrap_thread(const char *key, int rank, int num_ranks,
                             struct iris_bootstrap *bootstrap_p);

/* Ranks told apart by environment variables, ours or a launcher's. _applies:
 * are they set? */
int iris_i_bootstrap_env_applies(const struct iris_settings *settings);
iris_status_t iris_i_bootstrap_env(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p);

#endif /* IRIS_SRC_CONTROL_BOOTSTRAP_H */
