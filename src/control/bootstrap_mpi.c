/* SPDX-License-Identifier: MIT
 *
 * Bootstrap by MPI: it gives the rank, the number of ranks, and transfers the
 * job's secret. After that only IRIS_TRANSPORT=mpi uses MPI.
 */
#include "config.h"

#include "control/internal.h"

#if HAVE_MPI

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mpi_lock = PTHREAD_MUTEX_INITIALIZER;

static int mpi_initialized(void)
{
    int initialized = 0;

    return MPI_Initialized(&initialized) == MPI_SUCCESS && initialized;
}

int iris_i_bootstrap_mpi_applies(void)
{
    return mpi_initialized() || getenv("OMPI_COMM_WORLD_RANK") != NULL ||
           getenv("PMIX_RANK") != NULL || getenv("PMI_RANK") != NULL;
}

/* Held around calls of MPI, so that the thread level SERIALIZED suffices. */
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;

static pid_t initializer; /* the process that initialised MPI */

void iris_i_mpi_enter(void) IRIS_ACQUIRES(call_lock)
{
    pthread_mutex_lock(&call_lock);
}

void iris_i_mpi_leave(void) IRIS_RELEASES(call_lock)
{
    pthread_mutex_unlock(&call_lock);
}

int iris_i_mpi_is_up(void)
{
    int finalized = 0;

    return mpi_initialized() && MPI_Finalized(&finalized) == MPI_SUCCESS &&
           !finalized;
}

/* MPI cannot be initialised twice in a process, but contexts can. So MPI stays
 * initialised until the process ends. A process that was forked later does not
 * finalize it. */
static void finalize_at_exit(void)
{
    if (getpid() != initializer || pthread_mutex_trylock(&call_lock) != 0) {
        return;
    }
    if (iris_i_mpi_is_up()) {
        MPI_Finalize();
    }
    pthread_mutex_unlock(&call_lock);
}

iris_status_t iris_i_mpi_check_calls(int rank, int num_ranks)
{
    int is_up = iris_i_mpi_is_up(), level = MPI_THREAD_SINGLE;
    int needed =
        initializer == getpid() ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
    int world_rank = -1, world_ranks = 0;

    if (!is_up) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "IRIS_TRANSPORT asks for MPI, which is not "
                           "initialised; start the program with mpirun, or set "
                           "IRIS_TRANSPORT=socket");
    }
    MPI_Query_thread(&level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
    if (world_rank != rank || world_ranks != num_ranks) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "IRIS_TRANSPORT asks for MPI, but rank %d of %d is "
                           "rank %d of %d in MPI_COMM_WORLD; set "
                           "IRIS_TRANSPORT=socket",
                           rank, num_ranks, world_rank, world_ranks);
    }
    if (level < needed) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "IRIS_TRANSPORT asks for MPI, but the thread level "
                           "of MPI forbids calls by the library's thread; "
                           "initialise MPI with MPI_THREAD_MULTIPLE, or let "
                           "iris_init do it, or set IRIS_TRANSPORT=socket");
    }
    return IRIS_OK;
}

static iris_status_t ensure_mpi(const struct iris_settings *settings)
{
    int level = settings->transport.number >= IRIS_CHOICE_TRANSPORT_MPI
                    ? MPI_THREAD_SERIALIZED
                    : MPI_THREAD_FUNNELED;
    int finalized = 0, provided;

    MPI_Finalized(&finalized);
    if (finalized) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "MPI has been finalized; call iris_init before "
                           "MPI_Finalize, or set IRIS_BOOTSTRAP=env");
    }
    if (mpi_initialized()) {
        return IRIS_OK;
    }
    if (MPI_Init_thread(NULL, NULL, level, &provided) != MPI_SUCCESS) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP, "MPI_Init failed");
    }
    initializer = getpid();
    atexit(finalize_at_exit);
    return IRIS_OK;
}

static void describe_world(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "the other ranks of MPI_COMM_WORLD");
}

static iris_status_t fail_late_mpi(const struct iris_wait *wait)
{
    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "not every rank of MPI_COMM_WORLD has come to iris_init "
                       "within %lld ms (IRIS_TIMEOUT_MS); does every rank call "
                       "it?",
                       (long long)wait->waiter->timeout_ms);
}

/* MPI's own calls wait without limit for a missing rank. After this meeting all
 * ranks are present, so the following calls are short. */
static iris_status_t meet_ranks(const struct iris_settings *settings)
{
    static const struct iris_wait_type for_world = {.pace = IRIS_PACE_MPI,
                                                    .describe = describe_world,
                                                    .late = fail_late_mpi};
    const struct iris_waiter waiter = {.timeout_ms =
                                           settings->timeout_ms.number,
                                       .warn_ms = settings->warn_ms.number};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;
    MPI_Request request;
    int done = 0;

    if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP, "MPI_Ibarrier failed");
    }
    iris_i_wait_begin(&wait, &for_world, &waiter, "iris_init", NULL);
    while (status == IRIS_OK &&
           MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           !done) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}

/* Rank 0 makes the job's secret. The other ranks get zeros if it cannot. */
static iris_status_t share_secret(struct iris_bootstrap *bootstrap)
{
    static const struct iris_secret nothing = {{0}};
    struct iris_secret *secret = &bootstrap->secret;
    iris_status_t status = IRIS_OK;

    if (bootstrap->rank == 0) {
        status = iris_i_secret_random(secret, sizeof *secret);
    }
    if (MPI_Bcast(secret, (int)sizeof *secret, MPI_BYTE, 0, MPI_COMM_WORLD) !=
        MPI_SUCCESS) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP, "MPI_Bcast failed");
    }
    if (status == IRIS_OK &&
        iris_i_secret_equal(secret, &nothing, sizeof *secret)) {
        status = iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                             "rank 0 could not make a secret for the job");
    }
    return status;
}

/* The number of ranks on this node, and this rank's index among them. */
static void local_place(int *local_rank_p, int *local_ranks_p)
{
    MPI_Comm node;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &node);
    MPI_Comm_rank(node, local_rank_p);
    MPI_Comm_size(node, local_ranks_p);
    MPI_Comm_free(&node);
}

/* Rank 0: opens the address at which ranks of other hosts meet it. */
static iris_status_t open_root(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap)
{
    iris_status_t status =
        settings->root.text[0] != '\0'
            ? iris_i_address_parse(settings->root.text, &bootstrap->root)
            : iris_i_address_of_host(&bootstrap->root);

    if (status == IRIS_OK) {
        status = iris_i_rendezvous_far_listen(&bootstrap->root,
                                              &bootstrap->listener);
    }
    if (status != IRIS_OK) {
        bootstrap->root.bytes = 0;
    }
    return status;
}

/* Rank 0 tells the others its address. */
static iris_status_t share_root(const struct iris_settings *settings,
                                struct iris_bootstrap *bootstrap)
{
    iris_status_t status =
        bootstrap->rank == 0 ? open_root(settings, bootstrap) : IRIS_OK;

    if (MPI_Bcast(&bootstrap->root, (int)sizeof bootstrap->root, MPI_BYTE, 0,
                  MPI_COMM_WORLD) != MPI_SUCCESS) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP, "MPI_Bcast failed");
    }
    if (status == IRIS_OK && bootstrap->root.bytes == 0) {
        status = iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                             "rank 0 cannot listen for ranks of other hosts; "
                             "see its own message");
    }
    return status == IRIS_OK
               ? iris_i_address_towards(&bootstrap->root, &bootstrap->own)
               : status;
}

static iris_status_t bootstrap_mpi(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p)
{
    struct iris_bootstrap bootstrap = {.how = "mpi"};
    iris_status_t status = ensure_mpi(settings);
    int local_ranks;

    if (status == IRIS_OK) {
        status = meet_ranks(settings);
    }
    if (status != IRIS_OK) {
        return status;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &bootstrap.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bootstrap.num_ranks);
    local_place(&bootstrap.local_rank, &local_ranks);
    status = share_secret(&bootstrap);
    if (status == IRIS_OK && (local_ranks != bootstrap.num_ranks ||
                              settings->root.text[0] != '\0')) {
        status = share_root(settings, &bootstrap);
    }
    if (status == IRIS_OK) {
        *bootstrap_p = bootstrap;
    }
    return status;
}

iris_status_t iris_i_bootstrap_mpi(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p)
{
    iris_status_t status;

    pthread_mutex_lock(&mpi_lock);
    status = bootstrap_mpi(settings, bootstrap_p);
    pthread_mutex_unlock(&mpi_lock);
    return status;
}

#else /* !HAVE_MPI */

int iris_i_bootstrap_mpi_applies(void)
{
    return 0;
}

iris_status_t iris_i_bootstrap_mpi(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p)
{
    (void)settings;
    (void)bootstrap_p;
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "IRIS_BOOTSTRAP=mpi, but this library was built without "
                       "MPI; configure --with-mpi, or unset IRIS_BOOTSTRAP: "
                       "mpirun's own variables are enough on one node");
}

#endif
