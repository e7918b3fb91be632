/* SPDX-License-Identifier: MIT
 *
 * A session: a stream of records between two sides that outlives its
 * connections. It knows nothing of ranks. The protocol is described in
 * session.c.
 */
#ifndef IRIS_SRC_BASE_SESSION_H
#define IRIS_SRC_BASE_SESSION_H

#include <stddef.h>
#include <stdint.h>

struct iris_session {
    int sock;    /* the connection, which the caller closes; -1: none */
    size_t most; /* payload of the largest record */

    unsigned char *in; /* received bytes: from in_at to in_end */
    size_t in_at;
    size_t in_end;
    uint64_t received; /* bytes of all connections */
    uint64_t applied;  /* bytes of the records that take() returned */
    uint64_t told;     /* value of `applied` in the last record put here */

    unsigned char *out; /* a ring: the bytes from `acked` to `end` */
    size_t out_room;    /* its size, a power of two */
    size_t out_at;      /* index of the byte `acked` */
    uint64_t acked;     /* bytes that the other side has applied */
    uint64_t sent;      /* bytes passed to the connection */
    uint64_t high;      /* the highest `sent` of all connections */
    uint64_t end;       /* bytes put */
    int is_stuck;       /* the connection did not take all of them */
};

/* Prepares a session without a connection. 0: no memory. The caller closes it
 * in both cases. */
int iris_i_session_open(struct iris_session *session, size_t most);
void iris_i_session_close(struct iris_session *session);

/* Adds a record of two pieces and keeps it until the other side has applied it.
 * Sends nothing. 0: no memory; the session is unchanged. */
int iris_i_session_put(struct iris_session *session, const void *head,
                       size_t head_bytes, const void *data, size_t bytes);

/* Adds the last record: this side will send and read no more. 0: no memory. */
int iris_i_session_put_end(struct iris_session *session);

/* Adds an acknowledgement if the other side needs one. 0: no memory. */
int iris_i_session_tell(struct iris_session *session);

/* Bytes that the other side has not acknowledged. */
static inline size_t iris_i_session_pending(const struct iris_session *session)
{
    return (size_t)(session->end - session->acked);
}

/* Sends and receives without waiting. 1: some bytes; 0: none; -1: the
 * connection has ended, with errno (0: the other side has closed it). */
int iris_i_session_send(struct iris_session *session);
int iris_i_session_receive(struct iris_session *session);

enum iris_session_taken {
    IRIS_SESSION_NONE,     /* no complete record has arrived */
    IRIS_SESSION_RECORD,   /* valid until the next receive() */
    IRIS_SESSION_END,      /* the other side sends and reads no more */
    IRIS_SESSION_NONSENSE, /* the session cannot go on */
};

enum iris_session_taken iris_i_session_take(struct iris_session *session,
                                            const void **data_p,
                                            size_t *bytes_p);

/* Goes on with a new connection to the other side, which has received `theirs`
 * bytes. 0: no session has these; then nothing is changed. */
int iris_i_session_resume(struct iris_session *session, int sock,
                          uint64_t theirs);

#endif /* IRIS_SRC_BASE_SESSION_H */
