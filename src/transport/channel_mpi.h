/* SPDX-License-Identifier: MIT
 *
 * The channel over MPI: small messages by two-sided sends, blocks by MPI_Put
 * into a window over every rank's heap.
 */
#ifndef IRIS_SRC_TRANSPORT_CHANNEL_MPI_H
#define IRIS_SRC_TRANSPORT_CHANNEL_MPI_H

#include "base/host_wait.h"
#include "heap/heap_parts.h"
#include "transport/channel.h"

struct iris_channel_mpi_params {
    struct iris_heap *heap;
    const struct iris_waiter *waiter; /* until all ranks have opened theirs */
    int puts; /* 1: blocks by MPI_Put, if a test finds that it works */
};

/* Opens the channel, and says at info level how blocks go. Collective: ranks
 * are those of MPI_COMM_WORLD. IRIS_ERR_UNSUPPORTED (no MPI built in, MPI not
 * initialised or by fewer ranks, a thread level that leaves no calls to the
 * proxy's thread), IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM,
 * IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST */
iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p);

#endif /* IRIS_SRC_TRANSPORT_CHANNEL_MPI_H */
