/* SPDX-License-Identifier: MIT
 *
 * Peer liveness: a pidfd for each other process (readable once it has ended,
 * zombie or not, and immune to reuse of the pid) and the rank's state word.
 */
#include "config.h"

#include "control/peers.h"

#include "context/context.h"
#include "base/fd.h"
#include "base/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct iris_peers {
    int num_ranks;
    atomic_int lost; /* the first rank found lost, + 1 */
    struct {
        int pid;
        int fd; /* -1: a thread of this process */
    } ranks[];
};

static iris_status_t open_one(struct iris_peers *peers, int rank, int pid)
{
    peers->ranks[rank].pid = pid;
    peers->ranks[rank].fd = -1;
    if (pid == getpid()) {
        return IRIS_OK;
    }
    peers->ranks[rank].fd =
        iris_i_fd_above_stdio((int)syscall(SYS_pidfd_open, pid, 0));
    if (peers->ranks[rank].fd >= 0) {
        return IRIS_OK;
    }
    if (errno == ESRCH) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) died during init", rank, pid);
    }
    return iris_i_fail_fd(errno, "cannot watch a peer's process");
}

iris_status_t iris_i_peers_open(struct iris_control *control, const int *pids,
                                int own_rank, struct iris_peers **peers_p)
{
    int num_ranks = control->num_ranks;
    struct iris_peers *peers =
        malloc(sizeof *peers + (size_t)num_ranks * sizeof peers->ranks[0]);

    if (peers == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    atomic_init(&peers->lost, 0);
    for (peers->num_ranks = 0; peers->num_ranks < num_ranks;) {
        int rank = peers->num_ranks;
        iris_status_t status = open_one(
            peers, rank, rank == own_rank ? (int)getpid() : pids[rank]);

        if (status != IRIS_OK) {
            iris_i_peers_close(peers);
            return status;
        }
        peers->num_ranks++;
    }
    *peers_p = peers;
    return IRIS_OK;
}

void iris_i_peers_close(struct iris_peers *peers)
{
    for (int rank = 0; peers != NULL && rank < peers->num_ranks; rank++) {
        if (peers->ranks[rank].fd >= 0) {
            close(peers->ranks[rank].fd);
        }
    }
    free(peers);
}

enum fate { PRESENT, LEFT, DIED };

static enum fate fate_of(const iris_t *iris, int rank)
{
    struct pollfd pollfd = {.fd = iris->peers->ranks[rank].fd,
                            .events = POLLIN};
    /* The order matters: a rank may finalize and then end. */
    int ended = pollfd.fd >= 0 && poll(&pollfd, 1, 0) > 0;
    unsigned state = atomic_load_explicit(
        &iris_i_control_rank(iris->control, rank)->state, memory_order_acquire);

    if (state == IRIS_RANK_LEFT) {
        return LEFT;
    }
    return ended && state != IRIS_RANK_FINALIZED ? DIED : PRESENT;
}

/* Who made `rank`, which has left, leave. */
static int find_origin(const iris_t *iris, int rank)
{
    for (int hops = 0; hops < iris->num_ranks; hops++) {
        unsigned blames = atomic_load_explicit(
            &iris_i_control_rank(iris->control, rank)->blames,
            memory_order_relaxed);

        if (blames == 0 || blames > (unsigned)iris->num_ranks ||
            fate_of(iris, (int)blames - 1) == PRESENT) {
            break;
        }
        rank = (int)blames - 1;
    }
    return rank;
}

iris_status_t iris_i_peers_check(const iris_t *iris, int rank)
{
    enum fate fate = fate_of(iris, rank);
    int nobody = 0, pid;

    if (fate == PRESENT) {
        return IRIS_OK;
    }
    if (fate == LEFT) {
        rank = find_origin(iris, rank);
        fate = fate_of(iris, rank);
    }
    pid = iris->peers->ranks[rank].pid;
    atomic_compare_exchange_strong(&iris->peers->lost, &nobody, rank + 1);
    if (fate == LEFT) {
        return iris_i_fail(&iris->log, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) left the job after an error; see "
                           "its own message, then restart the job",
                           rank, pid);
    }
    return iris_i_fail(&iris->log, IRIS_ERR_PEER_LOST,
                       "rank %d (pid %d) died; the job cannot go on: finalize "
                       "and restart it",
                       rank, pid);
}

int iris_i_peers_lost(const iris_t *iris)
{
    return iris->peers == NULL ? -1 : atomic_load(&iris->peers->lost) - 1;
}

iris_status_t iris_i_peers_check_all(const iris_t *iris)
{
    for (int rank = 0; iris->peers != NULL && rank < iris->num_ranks; rank++) {
        iris_status_t status =
            rank == iris->rank ? IRIS_OK : iris_i_peers_check(iris, rank);

        if (status != IRIS_OK) {
            return status;
        }
    }
    return IRIS_OK;
}
