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
    const struct iris_waiter *waiter; /* for the wait until all ranks have
                                       * opened theirs */
    int puts; /* 1: blocks go by MPI_Put, if a test shows that it works */
};

/* Opens the channel, and logs at info level how blocks are sent. Collective:
 * ranks are those of MPI_COMM_WORLD.
 * - IRIS_ERR_UNSUPPORTED: built without MPI, MPI is not initialised or has
 *   fewer ranks, or its thread level does not let the proxy's thread call it.
 * - IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM, IRIS_ERR_TIMEOUT,
 *   IRIS_ERR_PEER_LOST */
iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p);

#endif /* IRIS_SRC_TRANSPORT_CHANNEL_MPI_H */
