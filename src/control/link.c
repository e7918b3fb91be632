/* SPDX-License-Identifier: MIT
 *
 * Sends and receives on a stream socket without blocking.
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void iris_i_link_open(struct iris_link *link, int sock, int rank)
{
    link->sock = sock;
    link->rank = rank;
    link->polled = 0;
    link->in_bytes = 0;
    link->out_at = 0;
    link->out_bytes = 0;
    link->is_full = 0;
    link->is_stuck = 0;
    link->is_cut = 0;
    link->check = (struct iris_stream_check){0};
    if (sock >= 0) {
        iris_i_stream_settle(sock);
    }
    atomic_store(&link->has_come, sock >= 0);
}

void iris_i_link_close(struct iris_link *link)
{
    if (link->sock >= 0) {
        close(link->sock);
    }
    free(link->out);
    link->out = NULL;
    link->out_room = 0;
    link->out_at = 0;
    link->out_bytes = 0;
    link->sock = -1;
}

/* Makes room for more bytes. The buffer grows geometrically, so that each byte
 * is moved only a few times. */
static iris_status_t make_room(struct iris_link *link, size_t bytes)
{
    size_t kept = link->out_bytes - link->out_at, room = 2 * IRIS_MESSAGE_MOST;
    unsigned char *out;

    if (kept + bytes > IRIS_LINK_MOST) {
        return IRIS_ERR_LIMIT;
    }
    if (link->out_bytes + bytes <= link->out_room) {
        return IRIS_OK;
    }
    while (room < 2 * (kept + bytes)) {
        room *= 2;
    }
    room = room < link->out_room ? link->out_room : room;
    out = malloc(room);
    if (out == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    if (kept != 0) {
        memcpy(out, link->out + link->out_at, kept);
    }
    free(link->out);
    link->out = out;
    link->out_room = room;
    link->out_at = 0;
    link->out_bytes = kept;
    return IRIS_OK;
}

static void put(struct iris_link *link, const void *data, size_t bytes)
{
    if (bytes != 0) {
        memcpy(link->out + link->out_bytes, data, bytes);
        link->out_bytes += bytes;
    }
}

iris_status_t iris_i_link_put(struct iris_link *link,
                              const struct iris_message_head *head,
                              const struct iris_part parts[2])
{
    iris_status_t status = make_room(link, sizeof *head + head->bytes);

    if (status == IRIS_OK) {
        put(link, head, sizeof *head);
        put(link, parts[0].data, parts[0].bytes);
        put(link, parts[1].data, parts[1].bytes);
    }
    return status;
}

/* Notes the errno of a failed call. */
static int end(struct iris_link *link, int errno_value)
{
    link->is_cut |= errno_value == ETIMEDOUT || errno_value == EHOSTUNREACH ||
                    errno_value == ENETUNREACH || errno_value == ENETDOWN;
    return -1;
}

int iris_i_link_flush(struct iris_link *link)
{
    while (link->out_at < link->out_bytes) {
        ssize_t sent =
            send(link->sock, link->out + link->out_at,
                 link->out_bytes - link->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            link->is_full = errno == EAGAIN || errno == ENOBUFS;
            return link->is_full ? 0 : end(link, errno);
        }
        link->out_at += (size_t)sent;
    }
    link->out_at = 0;
    link->out_bytes = 0;
    link->is_full = 0;
    return 0;
}

/* A side that closes with unread data resets the connection, but its earlier
 * messages may still be readable. */
int iris_i_link_fill(struct iris_link *link)
{
    ssize_t got;
    int resets = 0;

    do {
        got = recv(link->sock, link->in + link->in_bytes,
                   sizeof link->in - link->in_bytes, MSG_DONTWAIT);
    } while (got < 0 &&
             (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    if (got > 0) {
        link->in_bytes += (size_t)got;
        return 0;
    }
    return got < 0 && errno == EAGAIN ? 0 : end(link, got < 0 ? errno : 0);
}

void iris_i_link_drop(struct iris_link *link, size_t bytes)
{
    link->in_bytes -= bytes;
    memmove(link->in, link->in + bytes, link->in_bytes);
}
