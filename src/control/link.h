/* SPDX-License-Identifier: MIT
 *
 * One connection of the control plane over sockets. It never blocks, keeps data
 * that cannot be sent yet, and collects received data until a message is
 * complete.
 */
#ifndef IRIS_SRC_CONTROL_LINK_H
#define IRIS_SRC_CONTROL_LINK_H

#include "control/message.h"
#include "control/stream_socket.h"

/* The most bytes that one connection keeps for the other side. */
#define IRIS_LINK_MOST ((size_t)64 << 20)

struct iris_link {
    int sock;   /* -1: closed */
    int rank;   /* the other side's rank */
    int polled; /* its index among the polled descriptors; 0: not
                          * polled */
    size_t in_bytes;
    unsigned char in[2 * IRIS_MESSAGE_MOST];
    unsigned char *out; /* bytes to be sent: [out_at, out_bytes) */
    size_t out_at;
    size_t out_bytes;
    size_t out_room;
    int is_full;  /* the socket did not take all of it */
    int is_stuck; /* more data was pending than can be kept */
    int is_cut;   /* the other host does not answer */
    struct iris_stream_check check;
};

/* Takes over a socket. */
void iris_i_link_open(struct iris_link *link, int sock, int rank);
void iris_i_link_close(struct iris_link *link);

/* Adds a message for the next flush. IRIS_ERR_LIMIT: the other side has left
 * IRIS_LINK_MOST bytes unread. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_link_put(struct iris_link *link,
                              const struct iris_message_head *head,
                              const struct iris_part parts[2]);

/* Sends the pending messages. -1: the connection has ended. */
int iris_i_link_flush(struct iris_link *link);

/* Reads the received data. -1: the other side has closed. */
int iris_i_link_fill(struct iris_link *link);

/* Removes a processed message from the front of `in`. */
void iris_i_link_drop(struct iris_link *link, size_t bytes);

#endif /* IRIS_SRC_CONTROL_LINK_H */
