/* SPDX-License-Identifier: MIT
 *
 * Handles and descriptors between ranks after the rendezvous: memory that has
 * come to a heap since, offered to every other process.
 */
#ifndef IRIS_SRC_CONTROL_EXCHANGE_H
#define IRIS_SRC_CONTROL_EXCHANGE_H

#include "backend/backend.h"
#include "control/control.h"

/* Memory of this rank's heap. */
struct iris_offer {
    size_t offset; /* from the heap's base */
    size_t bytes;
    struct iris_heap_handle handle; /* the caller's */
};

/* One exchange of this rank's. */
struct iris_exchange {
    struct iris_control *control;
    uint64_t seq; /* of the agreement before, the same on all ranks */
    const struct iris_offer *offers;
    size_t num_offers;
    const unsigned char *reachable; /* of each rank; NULL: all are */

    /* Takes what `rank` offers; the handle's descriptor is closed afterwards.
     */
    iris_status_t (*take)(void *arg, int rank, const struct iris_offer *offer);
    void *arg;
};

/* Collective, between two agreements of all ranks: sends every reachable rank
 * of another process this rank's offers, and takes each of theirs. All ranks
 * have equally many, at the same offsets in the same order. A rank whose own
 * preparation failed (`status`, with this thread's message) comes all the same;
 * nobody then takes its offers. Returns the first thing that went wrong on this
 * rank alone; the agreement that follows must report it to the others.
 *
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_MISMATCH (other offsets),
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM (a socket is broken), `status`, or what
 * take() returned. */
iris_status_t iris_i_exchange(const struct iris_exchange *exchange,
                              iris_status_t status);

#endif /* IRIS_SRC_CONTROL_EXCHANGE_H */
