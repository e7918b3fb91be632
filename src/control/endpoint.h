/* SPDX-License-Identifier: MIT
 *
 * One rank's endpoint for messages with descriptors after the rendezvous: a
 * datagram socket with a name that the system chose. It trusts only the
 * sender's identity that the system gives.
 */
#ifndef IRIS_SRC_CONTROL_ENDPOINT_H
#define IRIS_SRC_CONTROL_ENDPOINT_H

#include <stddef.h>
#include <sys/types.h>

#include <iris/status.h>

#include "base/error.h"

#define IRIS_ENDPOINT_NAME_BYTES 16

struct iris_endpoint {
    int sock;
    char name[IRIS_ENDPOINT_NAME_BYTES];
};

/* A message as received. */
struct iris_letter {
    pid_t pid; /* the sender's, from the system */
    uid_t uid;
    ssize_t bytes;  /* its full size; -1: no message */
    int fd;         /* the caller closes it; -1: none */
    int fd_dropped; /* a descriptor came but this process had no room for it */
};

/* Makes this rank's endpoint, whose name the others need. The caller closes it.
 * IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM */
iris_status_t iris_i_endpoint_open(struct iris_endpoint **endpoint_p);

/* `endpoint` may be NULL. */
void iris_i_endpoint_close(struct iris_endpoint *endpoint);

/* Sends one message, with a descriptor unless fd is -1, to the endpoint of that
 * name. 0 or errno. Never blocks. */
int iris_i_endpoint_send(const struct iris_endpoint *endpoint,
                         const char name[IRIS_ENDPOINT_NAME_BYTES],
                         const void *data, size_t bytes, int fd);

/* Takes one message from any sender. Never blocks. */
void iris_i_endpoint_take(const struct iris_endpoint *endpoint, void *data,
                          size_t bytes, struct iris_letter *letter_p);

/* Waits for a message, at most for this time. IRIS_ERR_SYSTEM: the socket is no
 * longer usable. */
iris_status_t iris_i_endpoint_wait(const struct iris_endpoint *endpoint,
                                   const struct iris_log *log, int timeout_ms);

#endif /* IRIS_SRC_CONTROL_ENDPOINT_H */
