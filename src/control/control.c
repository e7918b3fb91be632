/* SPDX-License-Identifier: MIT
 *
 * The control plane of one rank: it shows its state, posts calls, reads the
 * others, watches their processes, and sends them descriptors.
 *
 *   before the rendezvous   a rank of a job of several nodes listens
 *   after it                it has its node's table, and watches processes; the
 *                           leader of the node opens the hub
 *   at the end              the leader's hub stays for the other ranks
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
#include <sys/eventfd.h>
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

static iris_status_t fail_memory_for_ranks(int num_ranks)
{
    return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                       num_ranks);
}

/* The lowest rank of that rank's node. */
static int find_leader(const struct iris_hello *hellos, int rank)
{
    int lowest = 0;

    while (!iris_i_hello_same_node(&hellos[lowest], &hellos[rank])) {
        lowest++;
    }
    return lowest;
}

/* From the ranks' hellos. */
static iris_status_t list_peers(struct iris_control *control,
                                const struct iris_rendezvous *rendezvous)
{
    const struct iris_hello *own = &rendezvous->hellos[rendezvous->rank];
    int own_pid = (int)getpid(); /* read once: it is a system call */

    control->peers = calloc((size_t)control->num_ranks, sizeof *control->peers);
    if (control->peers == NULL) {
        return fail_memory_for_ranks(control->num_ranks);
    }
    for (int rank = 0; rank < control->num_ranks; rank++) {
        const struct iris_hello *hello = &rendezvous->hellos[rank];
        struct iris_peer *peer = &control->peers[rank];

        peer->pidfd = -1;
        peer->pid = hello == own ? own_pid : hello->pid;
        peer->is_here = iris_i_hello_same_host(hello, own);
        peer->is_remote = peer->pid != own_pid || !peer->is_here;
        peer->is_far = !iris_i_hello_same_node(hello, own);
        peer->leader = find_leader(rendezvous->hellos, rank);
        control->num_nodes += peer->leader == rank;
        snprintf(peer->host, sizeof peer->host, "%.*s",
                 (int)sizeof hello->host_name - 1, hello->host_name);
        memcpy(peer->name, hello->endpoint, sizeof peer->name);
    }
    return IRIS_OK;
}

/* Where the system or a container forbids pidfds, the start of the process tells
 * it from a later one with the same number. */
static iris_status_t watch_peer(struct iris_peer *peer, int rank)
{
    struct iris_process process;
    int ret;

    peer->pidfd = iris_i_process_watch(peer->pid);
    ret = peer->pidfd < 0 ? errno : 0;
    if (ret == EPERM || ret == EACCES || ret == ENOSYS) {
        ret = iris_i_process_read(peer->pid, &process) ? 0 : ESRCH;
        peer->start_ticks = ret == 0 ? process.start_ticks : 0;
    }
    if (ret == ESRCH) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) died during init", rank,
                           peer->pid);
    }
    return ret == 0 ? IRIS_OK
                    : iris_i_fail_fd(ret, "cannot watch a peer's process");
}

/* Watches every other process of this machine by a pidfd. It becomes readable
 * once the process has ended, also as a zombie and also if a child holds its
 * descriptors, and is immune to reuse of the pid. IRIS_ERR_PEER_LOST,
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
static iris_status_t watch_peers(const struct iris_control *control)
{
    iris_status_t status = IRIS_OK;

    for (int rank = 0; status == IRIS_OK && rank < control->num_ranks; rank++) {
        struct iris_peer *peer = &control->peers[rank];

        if (peer->is_remote && peer->is_here) {
            status = watch_peer(peer, rank);
        }
    }
    return status;
}

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

/* ---- Opening ---- */

/* Time that a leader stays for ranks of its node that have not ended yet, so that
 * all their messages reach the others. It applies after the leader has finalized,
 * but not beyond the deadline of iris_finalize(), and after it left. */
#define STAY_MS 10000
#define STAY_LEFT_MS 500

static uint64_t next_id(void)
{
    static atomic_uint count;

    return ((uint64_t)getpid() << 32) + atomic_fetch_add(&count, 1) + 1;
}

static iris_status_t listen_for_ranks(enum iris_control_kind kind,
                                      struct iris_hello *hello,
                                      struct iris_control_parts *parts)
{
    iris_status_t status;

    parts->listener = iris_i_stream_socket(kind, &hello->control_address);
    if (parts->listener < 0 || (parts->wake = iris_i_fd_above_stdio(eventfd(
                                    0, EFD_CLOEXEC | EFD_NONBLOCK))) < 0) {
        return iris_i_fail_fd(errno, "cannot make the control plane's socket");
    }
    status = iris_i_secret_random(hello->control_secret,
                                  sizeof hello->control_secret);
    return status == IRIS_OK ? iris_i_stream_listen(parts->listener, kind,
                                                    &hello->control_address)
                             : status;
}

static void mark_far(struct iris_control *control)
{
    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (control->peers[rank].is_far) {
            iris_i_records_mark_elsewhere(control->records, rank);
        }
    }
}

static iris_status_t open_hub(struct iris_control *control,
                              struct iris_rendezvous *rendezvous,
                              struct iris_control_parts *parts)
{
    iris_status_t status = IRIS_OK;

    if (control->num_nodes == 1) {
        return IRIS_OK;
    }
    mark_far(control);
    if (control->peers[control->rank].leader == control->rank) {
        status = iris_i_hub_open(control, rendezvous, parts, &control->hub);
    }
    return status;
}

static int choose_stay(const struct iris_control *control)
{
    int64_t left =
        control->by_ns == 0 ? INT64_MAX : control->by_ns - iris_i_now_ns();

    if (control->own.state != IRIS_RANK_FINALIZED ||
        left < STAY_LEFT_MS * IRIS_NS_PER_MS) {
        return STAY_LEFT_MS;
    }
    return left < STAY_MS * IRIS_NS_PER_MS ? (int)(left / IRIS_NS_PER_MS)
                                           : STAY_MS;
}

/* A leader's own end is its hub's. */
static void close_hub(struct iris_control *control)
{
    if (control->hub != NULL) {
        iris_i_hub_close(control->hub, choose_stay(control));
    } else if (control->records != NULL && control->num_nodes > 1) {
        control->own.ended = 1;
        iris_i_control_publish(control, IRIS_SHOW_ENDED, &control->own);
    }
}

void iris_i_control_close(struct iris_control *control)
{
    if (control == NULL) {
        return;
    }
    close_hub(control);
    for (int i = 0; control->peers != NULL && i < control->num_ranks; i++) {
        iris_i_fd_close(&control->peers[i].pidfd);
    }
    iris_i_endpoint_close(control->endpoint);
    iris_i_segment_release(control->records);
    free(control->peers);
    free(control);
}

iris_status_t iris_i_control_prepare(enum iris_control_kind kind,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts)
{
    hello_p->control = (int32_t)kind;
    return kind == IRIS_CONTROL_SHM ? IRIS_OK
                                    : listen_for_ranks(kind, hello_p, parts);
}

static void open_record(struct iris_control *control)
{
    control->record = iris_i_records_open(control->records, control->rank);
    if (control->record == NULL) {
        iris_i_warning(control->log,
                       "no flight record of this rank, so that reports of "
                       "hangs say less: %s",
                       iris_last_error());
        return;
    }
    memcpy(control->record->host, control->peers[control->rank].host,
           sizeof control->record->host);
}

static int has_mates(const struct iris_control *control)
{
    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (control->peers[rank].leader == control->rank &&
            control->peers[rank].is_remote) {
            return 1;
        }
    }
    return 0;
}

static iris_status_t join_control(struct iris_control *control,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts)
{
    iris_status_t status = list_peers(control, rendezvous);

    if (status == IRIS_OK) {
        status = watch_peers(control);
    }
    if (status != IRIS_OK) {
        return status;
    }
    control->records = rendezvous->segment;
    rendezvous->segment = NULL;
    open_record(control);
    if (control->rank == 0) {
        control->own.id = next_id();
        iris_i_control_publish(control, IRIS_SHOW_ID, &control->own);
    }
    status = open_hub(control, rendezvous, parts);
    if (status == IRIS_OK) {
        control->endpoint = parts->endpoint;
        parts->endpoint = NULL;
        control->serves = control->hub != NULL && has_mates(control);
    }
    return status;
}

iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p)
{
    struct iris_control *control = calloc(1, sizeof *control);
    iris_status_t status;

    if (control == NULL) {
        status = fail_memory_for_ranks(rendezvous->num_ranks);
    } else {
        control->log = log;
        control->rank = log->rank;
        control->num_ranks = rendezvous->num_ranks;
        status = join_control(control, rendezvous, parts);
    }
    iris_i_control_parts_close(parts); /* those that nobody has taken over */
    if (status == IRIS_OK) {
        *control_p = control;
    } else {
        iris_i_control_close(control);
    }
    return status;
}

/* ---- Going on with fewer ranks ---- */

/* Drops the other ranks; the survivors keep their order. */
static void keep_peers(struct iris_control *control, const uint64_t *survivors)
{
    int count = 0;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (iris_i_has_survived(survivors, rank)) {
            control->peers[count] = control->peers[rank];
            control->peers[count++].leader = 0;
        } else {
            iris_i_fd_close(&control->peers[rank].pidfd);
        }
    }
}

iris_status_t iris_i_control_renew(struct iris_control *control,
                                   const uint64_t *survivors)
{
    struct iris_table *old = control->records;
    int count = 0, own = 0;
    iris_status_t status;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        own += rank < control->rank && iris_i_has_survived(survivors, rank);
        count += iris_i_has_survived(survivors, rank);
    }
    status = iris_i_segment_follow(old, count, &control->records);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_segment_release(old);
    keep_peers(control, survivors);
    control->rank = own;
    control->num_ranks = count;
    atomic_store(&control->lost, 0);
    control->called = NULL;
    control->own = (struct iris_shown){.state = IRIS_RANK_RUNNING};
    open_record(control);
    if (own == 0) {
        control->own.id = next_id();
        iris_i_segment_show(control->records);
    }
    iris_i_control_publish(control, IRIS_SHOW_ID | IRIS_SHOW_STATE,
                           &control->own);
    return IRIS_OK;
}

void iris_i_control_drop_old(struct iris_control *control)
{
    if (control->rank == 0) {
        iris_i_segment_drop_old(control->records);
    }
}

void iris_i_control_parts_close(struct iris_control_parts *parts)
{
    iris_i_endpoint_close(parts->endpoint);
    iris_i_fd_close(&parts->listener);
    iris_i_fd_close(&parts->wake);
    *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
}
