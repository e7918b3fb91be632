/* SPDX-License-Identifier: MIT
 *
 * The meeting: every rank tells rank 0 about itself over a local socket, rank 0
 * answers all with one verdict, the control segment and every heap's handle.
 */
#ifndef IRIS_SRC_WIRE_H
#define IRIS_SRC_WIRE_H

#include "backend.h"
#include "bootstrap/bootstrap.h"
#include "control.h"
#include "log.h"

/* What a rank brings. A rank whose own preparation failed comes all the same,
 * so that its peers learn why at once instead of waiting for it. */
struct iris_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank;
    int32_t num_ranks;
    int32_t pid;
    int32_t status; /* of its preparation; if not OK, `message` says why */
    uint64_t heap_bytes;
    char backend[16];
    char message[IRIS_MESSAGE_BYTES];
    struct iris_heap_handle handle; /* its fd travels beside it */
};

/* The meeting as one rank has it: the hello of every rank, with handles whose
 * descriptors are open here, the control segment, and the sockets. */
struct iris_meeting {
    int rank;
    int num_ranks;
    int64_t deadline;
    int *socks; /* rank 0: to each peer; others: to rank 0 in [0] */
    struct iris_hello *hellos;
    struct iris_control *control; /* one reference, the caller's */
};

/* Meets. `hello` is this rank's (its fd stays the caller's); blocks until all
 * have come, one has failed or the deadline passes, and gives every rank the
 * same answer. On success iris_i_wire_agree() must follow.
 *
 * IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST, IRIS_ERR_BOOTSTRAP (key or rank taken,
 * stranger), IRIS_ERR_MISMATCH (ranks differ), IRIS_ERR_LIMIT, or the status of
 * the rank that failed. */
iris_status_t iris_i_wire_meet(const struct iris_bootstrap *bootstrap,
                               const struct iris_hello *hello,
                               int64_t timeout_ms,
                               struct iris_meeting *meeting_p);

/* Tells all how this rank fared with what it took home (`status`, with this
 * thread's message) and returns IRIS_OK only if all fared well. Then closes
 * sockets and descriptors and frees the hellos; the control segment stays. */
iris_status_t iris_i_wire_agree(struct iris_meeting *meeting,
                                iris_status_t status);

#endif /* IRIS_SRC_WIRE_H */
