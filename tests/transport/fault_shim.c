/* SPDX-License-Identifier: MIT
 *
 * A fault injector for stream sockets, loaded by LD_PRELOAD: cuts, splits,
 * delays and interrupts the calls of a process. The environment says how:
 *
 *   FAULT_SEED   the start of the random numbers; the rank is added to it
 *   FAULT_CUT    mean number of bytes between two cuts of a link; 0: none
 *   FAULT_SPLIT  percentage of calls that move only a part, or are interrupted
 *   FAULT_DELAY  percentage of calls that sleep for up to 2 ms before
 *   FAULT_PLANT  "drop": a cut leaves out one byte of the next connection, as
 *                a wrong resumption would; "flip": changes one byte
 *   FAULT_ALL    1: splits, interrupts and delays calls on all stream sockets,
 *                not only on links between nodes
 *   FAULT_REFUSE 1: no connection is made after the first link was used, so that
 *                none can be resumed
 *   FAULT_LOG    a file to which the process appends its number of cuts
 *
 * Cuts hit links of transport between nodes only: stream sockets that use
 * sendmsg() without waiting (base/session.c), but not in a hub's thread. A cut is a FIN or, over TCP, a reset. The last bytes before
 * it are lost, though send() has taken them or the system has received them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 4096

static struct {
    uint64_t state;
    long cut, split, delay, all, refuse;
    int drops, flips;
    long num_cuts;
    char is_link[FDS];
    char is_cut[FDS];
    int is_used;    /* a link was used */
    int is_planted; /* the next byte of a new link is left out or changed */
    pthread_mutex_t lock;
} shim = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_recv)(int, void *, size_t, int);
static int (*real_connect)(int, const struct sockaddr *, socklen_t);
static int (*real_close)(int);

static long read_number(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin_faults(void)
{
    const char *plant = getenv("FAULT_PLANT");

    shim.state = (uint64_t)read_number("FAULT_SEED") * 1000003 +
                 (uint64_t)read_number("IRIS_RANK") * 7919 + 12345;
    shim.cut = read_number("FAULT_CUT");
    shim.split = read_number("FAULT_SPLIT");
    shim.delay = read_number("FAULT_DELAY");
    shim.refuse = read_number("FAULT_REFUSE");
    shim.all = read_number("FAULT_ALL");
    shim.drops = plant != NULL && strcmp(plant, "drop") == 0;
    shim.flips = plant != NULL && strcmp(plant, "flip") == 0;
}

__attribute__((destructor)) static void log_cuts(void)
{
    const char *path = getenv("FAULT_LOG");
    int file =
        path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;

    if (file >= 0) {
        dprintf(file, "%ld\n", shim.num_cuts);
        close(file);
    }
}

static uint64_t draw(uint64_t bound)
{
    uint64_t value;

    pthread_mutex_lock(&shim.lock);
    shim.state ^= shim.state << 13;
    shim.state ^= shim.state >> 7;
    shim.state ^= shim.state << 17;
    value = shim.state;
    pthread_mutex_unlock(&shim.lock);
    return bound == 0 ? 0 : (value >> 11) % bound;
}

static int is_stream(int fd)
{
    int type = 0, saved = errno;
    socklen_t bytes = sizeof type;
    int is = fd < FDS &&
             getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
             type == SOCK_STREAM;

    errno = saved;
    return is;
}

/* Whether a hub calls: its connections cannot be resumed (src/control/hub.c). */
static int is_control(void)
{
    char name[16] = "";

    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
           strcmp(name, "iris-control") == 0;
}

static void delay_call(void)
{
    if ((long)draw(100) < shim.delay) {
        usleep((useconds_t)draw(2000));
    }
}

/* Whether a call on a link that moves `bytes` is cut: *at_p is the byte. At most
 * each second one is, so that the two sides do not reset each other forever. */
static int draw_cut(int fd, size_t bytes, size_t *at_p)
{
    uint64_t mean = (uint64_t)shim.cut;

    if (mean == 0 || !shim.is_link[fd] || bytes == 0 ||
        draw(mean > 2 * bytes ? mean : 2 * bytes) >= bytes) {
        return 0;
    }
    *at_p = (size_t)draw(bytes);
    return 1;
}

static void cut_link(int fd)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    shim.num_cuts++;
    shim.is_cut[fd] = 1;
    shim.is_planted = shim.drops || shim.flips;
    if (draw(2) == 0 || real_connect(fd, &none, sizeof none) != 0) {
        shutdown(fd, SHUT_RDWR);
    }
}

__attribute__((constructor)) static void find_calls(void)
{
    *(void **)&real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    *(void **)&real_send = dlsym(RTLD_NEXT, "send");
    *(void **)&real_recv = dlsym(RTLD_NEXT, "recv");
    *(void **)&real_connect = dlsym(RTLD_NEXT, "connect");
    *(void **)&real_close = dlsym(RTLD_NEXT, "close");
}

/* Sends the planted fault instead of the first byte of a message. */
static ssize_t send_planted(int fd, const unsigned char *at, int flags)
{
    unsigned char changed = *at ^ 1u;

    shim.is_planted = 0;
    return shim.flips ? real_send(fd, &changed, 1, flags) : 1;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t bytes = 0, at;
    unsigned char *copy;
    ssize_t sent;

    if (!is_stream(fd) || (flags & MSG_DONTWAIT) == 0 || is_control()) {
        return real_sendmsg(fd, message, flags);
    }
    shim.is_link[fd] = shim.is_used = 1;
    delay_call();
    if (shim.is_cut[fd]) {
        errno = EPIPE;
        return -1;
    }
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        bytes += message->msg_iov[i].iov_len;
    }
    copy = malloc(bytes + 1);
    for (size_t i = 0, done = 0; i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];

        memcpy(copy + done, piece->iov_base, piece->iov_len);
        done += piece->iov_len;
    }
    if (shim.is_planted && bytes != 0) {
        sent = send_planted(fd, copy, flags);
    } else if (draw_cut(fd, bytes, &at)) {
        (void)real_send(fd, copy, at, flags);
        cut_link(fd);
        sent = (ssize_t)(at + draw(bytes - at + 1));
        if (sent == 0) {
            errno = ECONNRESET;
            sent = -1;
        }
    } else if ((long)draw(100) < shim.split) {
        sent = draw(4) == 0 ? (errno = EINTR, -1)
                            : real_send(fd, copy, 1 + draw(bytes), flags);
    } else {
        sent = real_send(fd, copy, bytes, flags);
    }
    free(copy);
    return sent;
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    if (is_stream(fd) && bytes != 0 && (shim.all || shim.is_link[fd])) {
        delay_call();
        if ((long)draw(100) < shim.split) {
            return draw(4) == 0 ? (errno = EINTR, -1)
                                : real_send(fd, data, 1 + draw(bytes), flags);
        }
    }
    return real_send(fd, data, bytes, flags);
}

ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    ssize_t got;
    size_t at;

    if (!is_stream(fd) || bytes == 0 || !(shim.all || shim.is_link[fd])) {
        return real_recv(fd, data, bytes, flags);
    }
    if (shim.is_cut[fd]) {
        errno = ECONNRESET;
        return -1;
    }
    if ((long)draw(100) < shim.split) {
        if (draw(4) == 0) {
            errno = EINTR;
            return -1;
        }
        bytes = 1 + draw(bytes < 64 ? bytes : draw(2) ? 64 : bytes);
    }
    got = real_recv(fd, data, bytes, flags);
    if (got > 0) {
        delay_call();
    }
    if (got > 0 && draw_cut(fd, (size_t)got, &at)) {
        cut_link(fd); /* what the system had received beyond `at` is lost */
        got = at != 0 ? (ssize_t)at : (errno = ECONNRESET, -1);
    }
    return got;
}

int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    if (shim.refuse && shim.is_used && is_stream(fd)) {
        errno = ECONNREFUSED;
        return -1;
    }
    return real_connect(fd, address, bytes);
}

int close(int fd)
{
    if (fd >= 0 && fd < FDS) {
        shim.is_link[fd] = shim.is_cut[fd] = 0;
    }
    return real_close(fd);
}
