/* SPDX-License-Identifier: MIT
 *
 * How ranks meet: this rank's number, the number of ranks, the job's name, and
 * a secret that only the job's ranks know. The rendezvous (rendezvous.h) is then the same for
 * every launcher.
 */
#ifndef IRIS_SRC_CONTROL_BOOTSTRAP_H
#define IRIS_SRC_CONTROL_BOOTSTRAP_H

#include <stdatomic.h>

#include "base/address.h"
#include "base/secret.h"
#include "base/settings.h"

#define IRIS_KEY_BYTES 80

/* The most ranks of a job: one payload of the control segment can name them
 * all. */
#define IRIS_RANKS_MAX 1000

struct iris_bootstrap {
    const char *how; /* "mpi", "env", "spawn": for messages */
    int rank;
    int num_ranks;
    int local_rank;           /* on this node; picks the device */
    char job[IRIS_KEY_BYTES]; /* the job's name, for messages */
    /* Names of local sockets and the keys of connections are derived from it
     * (iris_i_secret_name(), iris_i_rendezvous_key()). It never leaves the
     * process, except that MPI passes it. */
    struct iris_secret secret;
    int is_guessable;         /* the secret is only a hash of the job's name */
    struct iris_address root; /* address at which rank 0 meets ranks of other
                               * hosts; size 0: the job has one host */
    struct iris_address own;  /* this host's address, for connections from
                               * other hosts */
    int listener;             /* rank 0's listener at root; -1: not open */
    /* If a rank fails, its creator notes it here (rank + 1), so that the others
     * do not wait for it. NULL: nobody notes failures. */
    const atomic_int *failed;
};

/* IRIS_ERR_UNSUPPORTED if a job cannot have this number of ranks. */
iris_status_t iris_i_bootstrap_check(int num_ranks);

/* Finds the job as the settings say. "auto" takes the first that applies of
 * IRIS_RANK, MPI, another launcher's variables, and a job of one rank.
 * IRIS_ERR_BOOTSTRAP, IRIS_ERR_CONFIG, IRIS_ERR_UNSUPPORTED (built without MPI,
 * too many ranks) */
iris_status_t iris_i_bootstrap(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap_p);

/* 1 if a launcher started this process as one rank of several. Then
 * iris_spawn() must not make ranks. */
int iris_i_bootstrap_launched(const struct iris_settings *settings);

/* A key that nobody can guess, for ranks that this process makes. */
iris_status_t iris_i_bootstrap_random_key(char key[IRIS_KEY_BYTES]);

/* Rank `rank` of num_ranks that this process makes; the secret is a hash of
 * `key`, and all other members are 0. */
void iris_i_bootstrap_thread(const char *key, int rank, int num_ranks,
                             struct iris_bootstrap *bootstrap_p);

/* Ranks identified by environment variables, ours or a launcher's. _applies:
 * whether they are set. */
int iris_i_bootstrap_env_applies(const struct iris_settings *settings);
iris_status_t iris_i_bootstrap_env(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p);

#endif /* IRIS_SRC_CONTROL_BOOTSTRAP_H */
