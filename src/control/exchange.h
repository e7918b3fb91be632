/* SPDX-License-Identifier: MIT
 *
 * Descriptors between ranks after the meeting: memory that has come to a heap
 * since, told to every other process.
 */
#ifndef IRIS_SRC_CONTROL_EXCHANGE_H
#define IRIS_SRC_CONTROL_EXCHANGE_H

#include "backend/backend.h"

#define IRIS_EXCHANGE_NAME_BYTES 16

struct iris_exchange;
struct iris_meeting;

/* Makes this rank's socket, whose name the others need. The caller closes.
 * IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM */
iris_status_t iris_i_exchange_open(int num_ranks,
                                   char name[IRIS_EXCHANGE_NAME_BYTES],
                                   struct iris_exchange **exchange_p);

/* Takes note of the others' names. Returns 0 if all ranks are threads of this
 * process: then there is nothing to exchange, on any rank. */
int iris_i_exchange_connect(struct iris_exchange *exchange,
                            const struct iris_meeting *meeting);

/* 1 if the rank is one of another process. NULL is fine. */
int iris_i_exchange_has(const struct iris_exchange *exchange, int rank);

/* NULL is fine. */
void iris_i_exchange_close(struct iris_exchange *exchange);

/* Memory of this rank's heap. */
struct iris_offer {
    size_t offset; /* from the heap's base */
    size_t bytes;
    struct iris_heap_handle handle; /* the caller's */
};

/* What is offered to this rank; the handle's descriptor is closed afterwards.
 */
typedef iris_status_t (*iris_taker)(iris_t *iris, int rank,
                                    const struct iris_offer *offer);

/* Collective, between two meetings of all ranks: tells every rank of another
 * process of this rank's offers, and calls take() with each of theirs. All
 * ranks have equally many, at the same offsets in the same order. A rank whose
 * own preparation failed (`status`, with this thread's message) comes all the
 * same; nobody then takes its offers. Returns the first thing that went wrong
 * on this rank alone; the meeting that follows must tell the others.
 *
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_MISMATCH (other offsets),
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM (a socket is broken), `status`, or what
 * take() returned. */
iris_status_t iris_i_exchange(iris_t *iris, const struct iris_offer *offers,
                              size_t num_offers, iris_status_t status,
                              iris_taker take);

#endif /* IRIS_SRC_CONTROL_EXCHANGE_H */
