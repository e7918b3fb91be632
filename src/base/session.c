/* SPDX-License-Identifier: MIT
 *
 * Sessions. Each direction is one stream of bytes, numbered from 0 and made of
 * records:
 *
 *   bytes    uint32: size of the payload; ACK_ONLY: none; END: the last record
 *   ack      uint32: number of bytes of the other direction that this side had
 *            applied when it put the record, modulo 2^32
 *   payload  these bytes
 *
 * The sender keeps each byte until the other side has acknowledged it:
 *
 *   acked <= sent <= high <= end
 *
 * It copies these bytes to a ring, except data that its caller lends: that stays
 * where it is. The caller gets lent data back once it is acknowledged, or recalls
 * it before that; then the session copies it.
 *
 * The connection may have lost [acked, sent). It was not given [sent, end) yet.
 *
 * The receiver counts the bytes that it has in memory (`received`), over all
 * connections. A part of a record stays when a connection ends. After that each
 * side tells the other its `received`, in a way that the caller chooses. The
 * other side sets `acked` and `sent` to it, and sends the rest. So each byte
 * arrives once and in order, though connections lose bytes.
 *
 * Every record acknowledges. A side that only receives adds a record without
 * payload for every TELL_BYTES. A sender that waits for acknowledgements has to
 * allow the other side more than that.
 *
 * A side without memory for a record, or that reads nonsense, cannot go on. Its
 * caller ends the session, and has to report this as an error: bytes may be
 * missing.
 */
#include "config.h"

#include "base/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TELL_BYTES ((uint64_t)512 << 10)

/* Room for sent records at first. */
#define FIRST_ROOM ((size_t)64 << 10)

/* The most pieces of memory that one send() passes to the system. */
#define PIECES (3 * IRIS_SESSION_LENT)

/* Number of the largest records that one receive() can read. */
#define IN_RECORDS 2

#define ACK_ONLY UINT32_MAX
#define END (UINT32_MAX - 1)

struct record {
    uint32_t bytes;
    uint32_t ack;
};

int iris_i_session_open(struct iris_session *session, size_t most)
{
    *session = (struct iris_session){.sock = -1, .most = most};
    session->out_room = FIRST_ROOM;
    session->in = malloc(IN_RECORDS * (sizeof(struct record) + most));
    session->out = malloc(session->out_room);
    return session->in != NULL && session->out != NULL;
}

void iris_i_session_close(struct iris_session *session)
{
    free(session->in);
    free(session->out);
    session->in = session->out = NULL;
    for (int i = 0; i < session->num_lent; i++) {
        free(session->lent[i].copy);
    }
    session->num_lent = 0;
}

/* ---- Sending ---- */

/* Number of copied bytes up to the byte `at` of the stream. */
static uint64_t count_copied(const struct iris_session *session, uint64_t at)
{
    uint64_t behind = session->end - at;

    for (int i = session->num_lent - 1; i >= 0; i--) {
        const struct iris_session_lent *lent = &session->lent[i];

        if (lent->end <= at) {
            break;
        }
        behind -= lent->end - (lent->at > at ? lent->at : at);
    }
    return session->copied - behind;
}

/* The copied bytes from number `from` on, in up to two pieces. Returns the
 * number of pieces. */
static int find_copied(const struct iris_session *session, uint64_t from,
                       size_t bytes, struct iovec pieces[2])
{
    size_t index = (size_t)from & (session->out_room - 1);
    size_t first = session->out_room - index;

    first = bytes < first ? bytes : first;
    pieces[0] = (struct iovec){session->out + index, first};
    pieces[1] = (struct iovec){session->out, bytes - first};
    return bytes == first ? 1 : 2;
}

static void copy_in(struct iris_session *session, const void *data,
                    size_t bytes)
{
    size_t index = (size_t)session->copied & (session->out_room - 1);
    size_t first = session->out_room - index;

    session->copied += bytes;
    session->end += bytes;
    if (bytes > first) {
        memcpy(session->out, (const char *)data + first, bytes - first);
        bytes = first;
    }
    if (bytes != 0) {
        memcpy(session->out + index, data, bytes);
    }
}

/* The bytes of the stream from `at` on, as far as they fit into PIECES pieces.
 * Returns the number of pieces. */
static int find_pieces(const struct iris_session *session, uint64_t at,
                       struct iovec pieces[PIECES])
{
    const struct iris_session_lent none = {.at = session->end,
                                           .end = session->end};
    int count = 0;

    for (int i = 0; i <= session->num_lent && count + 3 <= PIECES; i++) {
        const struct iris_session_lent *lent =
            i < session->num_lent ? &session->lent[i] : &none;

        if (at < lent->at) {
            count += find_copied(session, count_copied(session, at),
                                 (size_t)(lent->at - at), pieces + count);
            at = lent->at;
        }
        if (at < lent->end) {
            pieces[count++] =
                (struct iovec){(char *)(uintptr_t)lent->data + (at - lent->at),
                               (size_t)(lent->end - at)};
            at = lent->end;
        }
    }
    return count;
}

static int make_room(struct iris_session *session, size_t bytes)
{
    uint64_t from = count_copied(session, session->acked);
    size_t kept = (size_t)(session->copied - from), room = session->out_room;
    struct iovec pieces[2];
    unsigned char *out;

    if (room - kept >= bytes) {
        return 1;
    }
    while (room - kept < bytes) {
        room *= 2;
    }
    out = malloc(room);
    if (out == NULL) {
        return 0;
    }
    (void)find_copied(session, from, kept, pieces);
    memcpy(out, pieces[0].iov_base, pieces[0].iov_len);
    memcpy(out + pieces[0].iov_len, pieces[1].iov_base, pieces[1].iov_len);
    free(session->out);
    session->out = out;
    session->out_room = room;
    session->copied = kept;
    return 1;
}

/* `bytes`: of the payload. `copied`: the part of it that copy_in() will get. */
static int put_record(struct iris_session *session, uint32_t bytes,
                      size_t copied)
{
    const struct record record = {bytes, (uint32_t)session->applied};

    if (!make_room(session, sizeof record + copied)) {
        return 0;
    }
    copy_in(session, &record, sizeof record);
    session->told = session->applied;
    return 1;
}

int iris_i_session_put(struct iris_session *session, const void *head,
                       size_t head_bytes, const void *data, size_t bytes)
{
    if (!put_record(session, (uint32_t)(head_bytes + bytes),
                    head_bytes + bytes)) {
        return 0;
    }
    copy_in(session, head, head_bytes);
    copy_in(session, data, bytes);
    return 1;
}

int iris_i_session_lend(struct iris_session *session, const void *head,
                        size_t head_bytes, const void *data, size_t bytes)
{
    if (session->num_lent == IRIS_SESSION_LENT ||
        !put_record(session, (uint32_t)(head_bytes + bytes), head_bytes)) {
        return 0;
    }
    copy_in(session, head, head_bytes);
    session->lent[session->num_lent++] = (struct iris_session_lent){
        .at = session->end, .end = session->end + bytes, .data = data};
    session->end += bytes;
    return 1;
}

const void *iris_i_session_returned(struct iris_session *session)
{
    while (session->num_lent > 0 && session->lent[0].end <= session->acked) {
        struct iris_session_lent first = session->lent[0];

        session->num_lent--;
        memmove(session->lent, session->lent + 1,
                (size_t)session->num_lent * sizeof first);
        if (first.copy == NULL) {
            return first.data;
        }
        free(first.copy);
    }
    return NULL;
}

int iris_i_session_recall(struct iris_session *session, const void **data_p)
{
    int i = 0;

    while (i < session->num_lent && session->lent[i].copy != NULL) {
        i++;
    }
    *data_p = NULL;
    if (i < session->num_lent) {
        struct iris_session_lent *lent = &session->lent[i];
        size_t bytes = (size_t)(lent->end - lent->at);

        lent->copy = malloc(bytes);
        if (lent->copy == NULL) {
            return 0;
        }
        memcpy(lent->copy, lent->data, bytes);
        *data_p = lent->data;
        lent->data = lent->copy;
    }
    return 1;
}

int iris_i_session_put_end(struct iris_session *session)
{
    session->is_last = put_record(session, END, 0);
    return session->is_last;
}

int iris_i_session_tell(struct iris_session *session)
{
    return session->is_last || session->applied - session->told < TELL_BYTES ||
           put_record(session, ACK_ONLY, 0);
}

int iris_i_session_send(struct iris_session *session)
{
    struct iovec pieces[PIECES];
    struct msghdr header = {.msg_iov = pieces};
    ssize_t sent;

    if (session->sent == session->end) {
        return 0;
    }
    header.msg_iovlen = (size_t)find_pieces(session, session->sent, pieces);
    do {
        sent = sendmsg(session->sock, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
        return -1;
    }
    session->sent += sent > 0 ? (size_t)sent : 0;
    session->high =
        session->sent > session->high ? session->sent : session->high;
    session->is_stuck = session->sent != session->end;
    return sent > 0;
}

/* The other side has all bytes before `at`. */
static void forget_acked(struct iris_session *session, uint64_t at)
{
    session->acked = at;
    if (session->acked == session->end) {
        session->copied = 0; /* the memory that the caches have */
    }
}

void iris_i_session_abandon(struct iris_session *session)
{
    session->sent = session->end;
    session->is_stuck = 0;
    forget_acked(session, session->end);
}

/* ---- Receiving ---- */

int iris_i_session_receive(struct iris_session *session)
{
    size_t room = IN_RECORDS * (sizeof(struct record) + session->most);
    ssize_t got;

    if (session->in_at != 0) {
        session->in_end -= session->in_at;
        memmove(session->in, session->in + session->in_at, session->in_end);
        session->in_at = 0;
    }
    do {
        got = recv(session->sock, session->in + session->in_end,
                   room - session->in_end, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        return 0;
    }
    if (got <= 0) {
        errno = got == 0 ? 0 : errno;
        return -1;
    }
    session->in_end += (size_t)got;
    session->received += (size_t)got;
    return 1;
}

/* An acknowledgement may be older than the resumption, which told more. 0:
 * nonsense. */
static int hear_ack(struct iris_session *session, uint32_t ack)
{
    uint32_t more = ack - (uint32_t)session->acked;

    if (more > UINT32_MAX / 2) {
        return 1;
    }
    if (more > session->sent - session->acked) {
        return 0;
    }
    forget_acked(session, session->acked + more);
    return 1;
}

enum iris_session_taken iris_i_session_take(struct iris_session *session,
                                            const void **data_p,
                                            size_t *bytes_p)
{
    for (;;) {
        size_t left = session->in_end - session->in_at, payload;
        const unsigned char *at = session->in + session->in_at;
        struct record record;

        if (left < sizeof record) {
            return IRIS_SESSION_NONE;
        }
        memcpy(&record, at, sizeof record);
        payload = record.bytes < END ? record.bytes : 0;
        if (payload > session->most) {
            return IRIS_SESSION_NONSENSE;
        }
        if (left < sizeof record + payload) {
            return IRIS_SESSION_NONE;
        }
        session->in_at += sizeof record + payload;
        session->applied += sizeof record + payload;
        if (!hear_ack(session, record.ack)) {
            return IRIS_SESSION_NONSENSE;
        }
        if (record.bytes == END) {
            return IRIS_SESSION_END;
        }
        if (record.bytes != ACK_ONLY) {
            *data_p = at + sizeof record;
            *bytes_p = payload;
            return IRIS_SESSION_RECORD;
        }
    }
}

int iris_i_session_resume(struct iris_session *session, int sock,
                          uint64_t theirs)
{
    if (theirs < session->acked || theirs > session->high) {
        return 0;
    }
    forget_acked(session, theirs);
    session->sent = theirs;
    session->sock = sock;
    session->is_stuck = session->sent != session->end;
    return 1;
}
