/* SPDX-License-Identifier: MIT
 *
 * Chooses the library that is measured beside the collectives.
 */
#include "config.h"

#include "bench.h"

#include <stdio.h>

/* Either every rank has a peer or no rank has one. The first rank without a
 * peer prints the reason. */
iris_status_t bench_peer_open(struct bench *b)
{
    bool on_gpu = iris_stream_native(b->iris, NULL) != NULL;
    const char *why = "";
    double first;
    iris_status_t status;

    b->peer =
        on_gpu ? bench_peer_nccl(b, &why) : bench_peer_mpi(b->num_ranks, &why);
    first = b->peer == NULL ? b->num_ranks - b->rank : 0;
    status = bench_max(b, &first, 1);
    if (status == IRIS_OK && first == 0) {
        return IRIS_OK;
    }
    if (status == IRIS_OK && (int)first == b->num_ranks - b->rank) {
        fprintf(stderr, "iris bench: --peer: rank %d: %s\n", b->rank, why);
    }
    bench_peer_close(b);
    return status == IRIS_OK ? IRIS_ERR_UNSUPPORTED : status;
}

void bench_peer_close(struct bench *b)
{
    if (b->peer != NULL) {
        b->peer->close(b->peer);
    }
    b->peer = NULL;
}
