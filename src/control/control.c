/* SPDX-License-Identifier: MIT
 *
 * The control plane of one rank: it shows its state, posts calls, reads the
 * others, watches their processes, and sends them descriptors.
 *
 * - Ranks of one node show and post in the node's table (table.c).
 * - In a job of several nodes the hub (hub.c) carries both between nodes.
 * - Other processes of this machine are watched by pidfds.
 * - Descriptors go by local datagrams. Every rank that needs one has an endpoint: a
 *   socket whose name the system chose, and which its hello announces. A message
 *   counts only if the system says that it comes from a process of the job.
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- Published state ---- */

static struct iris_board *find_board(struct iris_control *control, int rank)
{
    return iris_i_records_board(control->records, rank);
}

/* Something of this rank is new for the hub. */
static void mark_new(struct iris_control *control, unsigned parts,
                     uint64_t places)
{
    if (control->num_nodes > 1) {
        iris_i_records_mark(control->records, control->rank, parts, places);
    }
}

void iris_i_control_publish(struct iris_control *control, unsigned parts,
                            const struct iris_shown *shown)
{
    iris_i_board_write(find_board(control, control->rank), parts, shown);
    mark_new(control, parts, 0);
}

void iris_i_control_wait_stream(struct iris_control *control, int change)
{
    if (control != NULL) {
        atomic_fetch_add_explicit(&find_board(control, control->rank)->streams,
                                  (unsigned)change, memory_order_relaxed);
        mark_new(control, IRIS_SHOW_STREAMS, 0);
    }
}

void iris_i_control_read(struct iris_control *control, int rank, unsigned parts,
                         struct iris_shown *shown_p)
{
    iris_i_board_read(find_board(control, rank), parts, shown_p);
}

/* ---- Posts ---- */

static struct iris_place *find_place(struct iris_control *control, int place)
{
    return iris_i_segment_place(control->records, place);
}

void iris_i_control_post(struct iris_control *control,
                         const struct iris_post_id *id,
                         const struct iris_part parts[2], int expected)
{
    atomic_fetch_add_explicit(&control->posts, 1, memory_order_release);
    (void)iris_i_place_post(find_place(control, id->place), id, parts,
                            expected);
    mark_new(control, 0, (uint64_t)1 << id->place);
}

int iris_i_control_posted(struct iris_control *control,
                          const struct iris_post_id *id)
{
    return iris_i_place_posted(find_place(control, id->place), id);
}

unsigned iris_i_control_fail(struct iris_control *control, int place,
                             unsigned mark)
{
    unsigned first = iris_i_place_fail(find_place(control, place), mark);

    if (mark != 0 && first == mark && control->num_nodes > 1) {
        atomic_fetch_or(&control->records->header->new_fails,
                        (uint64_t)1 << place);
        iris_i_records_tell_hub(control->records, 1);
    }
    return first;
}

/* ---- Places ---- */

iris_status_t iris_i_control_place_prepare(struct iris_control *control,
                                           int place, int *free_p)
{
    uint64_t held = 0;
    iris_status_t status;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        held |= atomic_load_explicit(&find_board(control, rank)->holds,
                                     memory_order_acquire);
    }
    status = iris_i_segment_commit_place(control->records, place);
    if (status != IRIS_OK) {
        return status;
    }
    *free_p = (held >> place & 1) == 0;
    if (*free_p) {
        iris_i_place_reset(find_place(control, place));
    }
    return IRIS_OK;
}

/* No member posts at the place before all hold it, so each may prepare the table
 * of its node: rank 0 has prepared another one. */
iris_status_t iris_i_control_place_hold(struct iris_control *control, int place,
                                        const int *ranks, int count)
{
    iris_status_t status = IRIS_OK;

    if (control->num_nodes == 1) {
        iris_i_place_clear(find_place(control, place), control->rank);
    } else {
        status = iris_i_segment_commit_place(control->records, place);
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (control->num_nodes > 1) {
        iris_i_place_reset(find_place(control, place));
        for (int i = 0; i < count; i++) {
            iris_i_place_clear(find_place(control, place), ranks[i]);
        }
    }
    control->own.holds |= (uint64_t)1 << place;
    iris_i_control_publish(control, IRIS_SHOW_HOLDS, &control->own);
    return IRIS_OK;
}

void iris_i_control_place_release(struct iris_control *control, int place)
{
    control->own.holds &= ~((uint64_t)1 << place);
    iris_i_control_publish(control, IRIS_SHOW_HOLDS, &control->own);
}

/* ---- Endpoints ---- */

/* A message as received. */
struct letter {
    pid_t pid; /* the sender's, from the system */
    uid_t uid;
    ssize_t bytes;  /* its full size; -1: no message */
    int fd;         /* the caller closes it; -1: none */
    int fd_dropped; /* a descriptor came but this process had no room for it */
};

static iris_status_t bind_endpoint(int sock,
                                   char name[IRIS_ENDPOINT_NAME_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof address.sun_family;
    int on = 1;

    /* Binding without a name makes the system choose one in the abstract
     * namespace. */
    if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        bind(sock, (struct sockaddr *)&address, bytes) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot listen for peers' memory");
    }
    bytes = sizeof address;
    if (getsockname(sock, (struct sockaddr *)&address, &bytes) != 0 ||
        bytes <= offsetof(struct sockaddr_un, sun_path) + 1 ||
        bytes - offsetof(struct sockaddr_un, sun_path) >
            IRIS_ENDPOINT_NAME_BYTES) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a local socket has no name of %d bytes",
                           IRIS_ENDPOINT_NAME_BYTES - 1);
    }
    memset(name, 0, IRIS_ENDPOINT_NAME_BYTES);
    memcpy(name, address.sun_path + 1,
           bytes - offsetof(struct sockaddr_un, sun_path) - 1);
    return IRIS_OK;
}

iris_status_t iris_i_endpoint_open(struct iris_endpoint **endpoint_p)
{
    struct iris_endpoint *endpoint = calloc(1, sizeof *endpoint);
    iris_status_t status;

    if (endpoint == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for an endpoint");
    }
    endpoint->sock =
        iris_i_fd_socket(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    status = endpoint->sock < 0 ? iris_i_fail_fd(errno, "cannot make a socket")
                                : bind_endpoint(endpoint->sock, endpoint->name);
    if (status != IRIS_OK) {
        iris_i_endpoint_close(endpoint);
        return status;
    }
    *endpoint_p = endpoint;
    return IRIS_OK;
}

void iris_i_endpoint_close(struct iris_endpoint *endpoint)
{
    if (endpoint != NULL) {
        iris_i_fd_close(&endpoint->sock);
    }
    free(endpoint);
}

/* 0 or errno. Never blocks. */
static int send_letter(const struct iris_endpoint *endpoint,
                       const char name[IRIS_ENDPOINT_NAME_BYTES],
                       const void *data, size_t bytes, int fd)
{
    union iris_socket_control control;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strnlen(name, IRIS_ENDPOINT_NAME_BYTES);
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    struct msghdr header = {
        .msg_name = &address,
        .msg_namelen =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length),
        .msg_iov = &iov,
        .msg_iovlen = 1};

    memcpy(address.sun_path + 1, name, length);
    iris_i_socket_attach(&header, &control, fd);
    return sendmsg(endpoint->sock, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
               ? errno
               : 0;
}

/* A sender outside the job may send two descriptors, and they may fit. */
static void take_descriptors(const struct cmsghdr *one, struct letter *letter)
{
    size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int fd;

    for (size_t i = 0; i < count; i++) {
        memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
        if (letter->fd < 0) {
            letter->fd = iris_i_fd_above_stdio(fd);
        } else {
            close(fd);
        }
    }
}

static void open_letter(struct msghdr *header, struct letter *letter)
{
    struct cmsghdr *one;
    struct ucred sender;

    for (one = CMSG_FIRSTHDR(header); one != NULL;
         one = CMSG_NXTHDR(header, one)) {
        if (one->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&sender, CMSG_DATA(one), sizeof sender);
            letter->pid = sender.pid;
            letter->uid = sender.uid;
        } else if (one->cmsg_type == SCM_RIGHTS) {
            take_descriptors(one, letter);
        }
    }
    letter->fd_dropped = (header->msg_flags & MSG_CTRUNC) != 0;
}

/* Takes one message from any sender. Never blocks. */
static void take_letter(const struct iris_endpoint *endpoint, void *data,
                        size_t bytes, struct letter *letter_p)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {data, bytes};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};

    *letter_p = (struct letter){.pid = -1, .uid = (uid_t)-1, .fd = -1};
    letter_p->bytes = recvmsg(endpoint->sock, &header,
                              MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    if (letter_p->bytes >= 0) {
        open_letter(&header, letter_p);
    }
}

/* IRIS_ERR_SYSTEM: the socket is no longer usable. */
static iris_status_t await_letter(const struct iris_endpoint *endpoint,
                                  const struct iris_log *log, int timeout_ms)
{
    struct pollfd pollfd = {.fd = endpoint->sock, .events = POLLIN | POLLRDHUP};

    if (poll(&pollfd, 1, timeout_ms) > 0 &&
        (pollfd.revents & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL)) != 0) {
        return iris_i_fail(log, IRIS_ERR_SYSTEM,
                           "the socket by which peers share new memory with "
                           "this rank is closed: find the code that closes "
                           "other libraries' descriptors");
    }
    return IRIS_OK;
}

/* ---- Ranks ---- */

int iris_i_control_has_process(const struct iris_control *control, int rank)
{
    const struct iris_peer *peer = &control->peers[rank];
    struct pollfd pollfd = {.fd = peer->pidfd, .events = POLLIN};
    struct iris_process process;

    if (peer->start_ticks != 0) {
        return iris_i_process_read(peer->pid, &process) &&
               process.start_ticks == peer->start_ticks &&
               process.state != 'Z' && process.state != 'X';
    }
    return pollfd.fd < 0 || poll(&pollfd, 1, 0) <= 0;
}

int iris_i_control_find_stopped(const struct iris_control *control)
{
    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (control->peers[rank].is_here &&
            iris_i_process_is_stopped(control->peers[rank].pid)) {
            return rank;
        }
    }
    return -1;
}

void iris_i_control_name(const struct iris_control *control, int rank,
                         char name[IRIS_RANK_NAME_BYTES])
{
    const char *host = control->peers[rank].host;

    snprintf(name, IRIS_RANK_NAME_BYTES, "rank %d (pid %d%s%s)", rank,
             control->peers[rank].pid, host[0] == '\0' ? "" : " on ", host);
}

/* ---- Peers ---- */

/* Whether the process of this node's leader has ended, or its hub. */
static int is_leader_gone(struct iris_control *control)
{
    int leader = control->peers[control->rank].leader;

    return leader != control->rank &&
           (!iris_i_control_has_process(control, leader) ||
            atomic_load(&find_board(control, leader)->ended));
}

/* The end of a far rank comes by the hubs, after its last messages. */
int iris_i_control_alive(struct iris_control *control, int rank)
{
    if (!control->peers[rank].is_far) {
        return iris_i_control_has_process(control, rank);
    }
    return !atomic_load_explicit(&find_board(control, rank)->ended,
                                 memory_order_acquire) &&
           !is_leader_gone(control);
}

int iris_i_control_find_cut(struct iris_control *control, int rank)
{
    struct iris_shown shown;

    if (!control->peers[rank].is_far) {
        return -1;
    }
    iris_i_control_read(control, rank, IRIS_SHOW_ENDED, &shown);
    if (shown.ended) {
        return shown.cut_by <= (unsigned)control->num_ranks
                   ? (int)shown.cut_by - 1
                   : -1;
    }
    return is_leader_gone(control) ? control->peers[control->rank].leader : -1;
}

int iris_i_control_is_remote(struct iris_control *control, int rank)
{
    return control != NULL && control->peers[rank].is_remote;
}

/* ---- Messages ---- */

int iris_i_control_send(struct iris_control *control, int rank,
                        const void *data, size_t bytes, int fd)
{
    return control->endpoint == NULL
               ? ENOTSOCK
               : send_letter(control->endpoint, control->peers[rank].name, data,
                             bytes, fd);
}

/* The rank whose process sent the message and whose number is its first word;
 * -1: not one of ours. */
static int find_sender(const struct iris_control *control, const void *data,
                       size_t bytes, const struct letter *letter)
{
    int32_t rank = -1;

    if (letter->bytes == (ssize_t)bytes) {
        memcpy(&rank, data, sizeof rank);
    }
    if (rank < 0 || rank >= control->num_ranks ||
        letter->pid != control->peers[rank].pid ||
        (letter->uid != geteuid() && letter->uid != getuid())) {
        iris_i_warning(control->log,
                       "dropped a message of pid %ld, uid %ld, which is not "
                       "one of our ranks",
                       (long)letter->pid, (long)letter->uid);
        return -1;
    }
    return rank;
}

iris_status_t iris_i_control_receive(struct iris_control *control, void *data,
                                     size_t bytes, int timeout_ms,
                                     struct iris_sender *sender_p)
{
    const struct iris_endpoint *endpoint = control->endpoint;
    iris_status_t status = IRIS_OK;
    struct letter letter;

    *sender_p = (struct iris_sender){.rank = -1, .fd = -1};
    if (timeout_ms > 0) {
        status = await_letter(endpoint, control->log, timeout_ms);
    }
    if (status != IRIS_OK) {
        return status;
    }
    take_letter(endpoint, data, bytes, &letter);
    if (letter.bytes < 0) {
        return IRIS_OK;
    }
    sender_p->rank = find_sender(control, data, bytes, &letter);
    if (sender_p->rank >= 0) {
        sender_p->fd = letter.fd;
    } else {
        iris_i_fd_close(&letter.fd);
    }
    return letter.fd_dropped && sender_p->rank >= 0
               ? iris_i_fail_fd(EMFILE, "cannot take a peer's descriptor")
               : IRIS_OK;
}
