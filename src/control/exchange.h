/* SPDX-License-Identifier: MIT
 *
 * Exchange of handles and descriptors between ranks after the rendezvous. A
 * rank offers memory that was added to its heap to every other process.
 */
#ifndef IRIS_SRC_CONTROL_EXCHANGE_H
#define IRIS_SRC_CONTROL_EXCHANGE_H

#include "backend/backend.h"
#include "control/control.h"

/* Memory of this rank's heap. */
struct iris_offer {
    size_t offset; /* offset from the heap's base */
    size_t bytes;
    struct iris_heap_handle handle; /* owned by the caller */
};

/* One exchange, on this rank. */
struct iris_exchange {
    struct iris_control *control;
    uint64_t seq; /* number of the preceding agreement, the same on all ranks */
    const struct iris_offer *offers;
    size_t num_offers;
    const unsigned char *reachable; /* for each rank; NULL: all are reachable */

    /* Takes an offer of `rank`; the handle's descriptor is closed
     * afterwards. */
    iris_status_t (*take)(void *arg, int rank, const struct iris_offer *offer);
    void *arg;
};

/* Collective, between two agreements of all ranks: sends this rank's offers to
 * every reachable rank of another process, and takes each of theirs. All ranks
 * have the same number of offers, at the same offsets in the same order. A rank
 * whose own preparation failed (`status`, with this thread's message) takes
 * part all the same; no rank then takes its offers. Returns the first error on
 * this rank alone. The agreement that follows must report it to the others.
 *
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_MISMATCH (other offsets),
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM (a socket is broken), `status`, or the status
 * of take(). */
iris_status_t iris_i_exchange(const struct iris_exchange *exchange,
                              iris_status_t status);

#endif /* IRIS_SRC_CONTROL_EXCHANGE_H */
