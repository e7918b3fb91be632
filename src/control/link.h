/* SPDX-License-Identifier: MIT
 *
 * One connection of the control plane over sockets: never blocks, keeps what
 * cannot be sent yet, and gathers what comes until a message is whole.
 */
#ifndef IRIS_SRC_CONTROL_LINK_H
#define IRIS_SRC_CONTROL_LINK_H

#include "control/message.h"

/* What one connection keeps for the other side to read, at most. */
#define IRIS_LINK_MOST ((size_t)64 << 20)

struct iris_link {
    int sock;            /* -1: there is none */
    int rank;            /* whose it is; -1: it has not said yet */
    int64_t patience_ns; /* until when it has time to say */
    int polled;          /* which of those that are polled it is; 0: none */
    size_t in_bytes;
    unsigned char in[2 * IRIS_MESSAGE_MOST];
    unsigned char *out; /* what is to be sent: [out_at, out_bytes) */
    size_t out_at;
    size_t out_bytes;
    size_t out_room;
    int is_full;  /* the socket took not all of it */
    int is_stuck; /* more was to be sent than can be kept */
    int is_cut;   /* the other host does not answer */
};

/* Takes over a socket. */
void iris_i_link_open(struct iris_link *link, int sock, int rank);
void iris_i_link_close(struct iris_link *link);

/* Has a message sent with the next flush. IRIS_ERR_LIMIT: the other side has
 * left IRIS_LINK_MOST bytes unread, or IRIS_ERR_NO_MEMORY. */
iris_status_t iris_i_link_put(struct iris_link *link,
                              const struct iris_message_head *head,
                              const struct iris_part parts[2]);

/* Sends what was put. -1: the connection is over. */
int iris_i_link_flush(struct iris_link *link);

/* Reads what has come. -1: the other side has closed. */
int iris_i_link_fill(struct iris_link *link);

/* Drops a message that was taken from the front of `in`. */
void iris_i_link_drop(struct iris_link *link, size_t bytes);

#endif /* IRIS_SRC_CONTROL_LINK_H */
