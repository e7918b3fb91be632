/* SPDX-License-Identifier: MIT
 *
 * Calls on sockets that are counted, cut short, interrupted, delayed, or the
 * process's last.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "socket_faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_PIECES 192

enum fault { NOTHING, SHORTER, INTERRUPTED, DELAYED };

static struct {
    atomic_long calls;
    atomic_int is_on;
    long at;
    int signal;
    long every;
    uint64_t seed;
    const char *note;
    const char *link;
} plan;

static long number_of(const char *variable, long otherwise)
{
    const char *text = getenv(variable);

    return text == NULL || *text == '\0' ? otherwise : strtol(text, NULL, 10);
}

void socket_faults_begin(void)
{
    long own = number_of("IRIS_RANK", -1);

    plan.at = number_of("IRIS_TEST_FAULT_AT", 0);
    plan.signal = (int)number_of("IRIS_TEST_FAULT_SIGNAL", SIGKILL);
    plan.every = number_of("IRIS_TEST_FAULT_EVERY", 0);
    plan.seed = (uint64_t)number_of("IRIS_TEST_FAULT_SEED", 1) * 1000003 +
                (uint64_t)own;
    plan.note = getenv("IRIS_TEST_FAULT_NOTE");
    plan.link = getenv("IRIS_TEST_FAULT_LINK");
    atomic_store(&plan.calls, 0);
    atomic_store(&plan.is_on, number_of("IRIS_TEST_FAULT_RANK", own) == own &&
                                  (plan.at != 0 || plan.every != 0));
}

static void __attribute__((constructor)) begin_preloaded(void)
{
    socket_faults_begin();
}

long socket_faults_calls(void)
{
    return atomic_load(&plan.calls);
}

void socket_faults_end(void)
{
    atomic_store(&plan.is_on, 0);
}

/* ---- The fault of a call ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Makes a socket in another network namespace. */
static int make_socket_in(const char *space)
{
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int other = open(space, O_RDONLY | O_CLOEXEC), sock = -1;

    if (own >= 0 && other >= 0 && setns(other, CLONE_NEWNET) == 0) {
        sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        (void)setns(own, CLONE_NEWNET);
    }
    close(own);
    close(other);
    return sock;
}

int socket_faults_set_link(const char *link, int is_up)
{
    const char *colon = strchr(link, ':');
    struct ifreq request = {0};
    char space[200];
    int sock, ret;

    snprintf(space, sizeof space, "%.*s", (int)(colon - link), link);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", colon + 1);
    request.ifr_flags = (short)(is_up ? IFF_UP : 0);
    sock = make_socket_in(space);
    ret = ioctl(sock, SIOCSIFFLAGS, &request);
    close(sock);
    return ret == 0;
}

static void end_here(void)
{
    FILE *file = plan.note == NULL ? NULL : fopen(plan.note, "we");
    struct timespec now;

    if (file != NULL) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        fprintf(file, "%lld\n",
                (long long)now.tv_sec * 1000000000 + now.tv_nsec);
        fclose(file);
    }
    if (plan.link != NULL) {
        (void)!socket_faults_set_link(plan.link, 0);
        return;
    }
    kill(getpid(), plan.signal);
}

/* Counts a call. *random_p is drawn for it. */
static enum fault meet(uint64_t *random_p)
{
    long call;

    *random_p = 0;
    if (!atomic_load_explicit(&plan.is_on, memory_order_relaxed)) {
        return NOTHING;
    }
    call = atomic_fetch_add(&plan.calls, 1) + 1;
    if (call == plan.at) {
        end_here();
    }
    *random_p = mix(plan.seed * 0x9e3779b97f4a7c15u + (uint64_t)call);
    if (plan.every == 0 || *random_p % (uint64_t)plan.every != 0) {
        return NOTHING;
    }
    *random_p = mix(*random_p);
    if (*random_p % 3 == 0) {
        const struct timespec nap = {.tv_nsec =
                                         (long)(mix(*random_p) % 3000000)};

        nanosleep(&nap, NULL);
        return DELAYED;
    }
    return *random_p % 3 == 1 ? SHORTER : INTERRUPTED;
}

/* The function of the C library. */
#define REAL(name) ((__typeof__(&(name)))find(#name))

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static int option_of(int fd, int name)
{
    int value = -1;
    socklen_t bytes = sizeof value;

    return getsockopt(fd, SOL_SOCKET, name, &value, &bytes) == 0 ? value : -1;
}

static int is_socket(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* From 1 to all of the bytes of a stream; a packet is whole. */
static size_t shorten(int fd, size_t bytes, uint64_t random)
{
    return bytes > 1 && option_of(fd, SO_TYPE) == SOCK_STREAM
               ? 1 + mix(random) % bytes
               : bytes;
}

static int is_interrupted(enum fault fault)
{
    if (fault == INTERRUPTED) {
        errno = EINTR;
    }
    return fault == INTERRUPTED;
}

/* ---- Opening ---- */

/* A connection by TCP goes on in the background after an interrupt. A socket
 * that does not block is not interrupted. */
int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    uint64_t random;
    enum fault fault = meet(&random);
    int family = option_of(fd, SO_DOMAIN), flags = fcntl(fd, F_GETFL);

    if (fault != INTERRUPTED || (flags & O_NONBLOCK) != 0) {
        return REAL(connect)(fd, address, bytes);
    }
    if (family == AF_INET || family == AF_INET6) {
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        (void)REAL(connect)(fd, address, bytes);
        fcntl(fd, F_SETFL, flags);
    }
    errno = EINTR;
    return -1;
}

int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    uint64_t random;

    return is_interrupted(meet(&random))
               ? -1
               : REAL(accept4)(fd, address, bytes, flags);
}

/* ---- Sending and receiving ---- */

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    uint64_t random;
    enum fault fault = meet(&random);

    bytes = fault == SHORTER ? shorten(fd, bytes, random) : bytes;
    return is_interrupted(fault) ? -1 : REAL(send)(fd, data, bytes, flags);
}

ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    uint64_t random;
    enum fault fault = meet(&random);

    bytes = fault == SHORTER ? shorten(fd, bytes, random) : bytes;
    return is_interrupted(fault) ? -1 : REAL(recv)(fd, data, bytes, flags);
}

ssize_t read(int fd, void *data, size_t bytes)
{
    uint64_t random;
    enum fault fault = is_socket(fd) ? meet(&random) : NOTHING;

    bytes = fault == SHORTER ? shorten(fd, bytes, random) : bytes;
    return is_interrupted(fault) ? -1 : REAL(read)(fd, data, bytes);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    uint64_t random;
    enum fault fault = is_socket(fd) ? meet(&random) : NOTHING;

    bytes = fault == SHORTER ? shorten(fd, bytes, random) : bytes;
    return is_interrupted(fault) ? -1 : REAL(write)(fd, data, bytes);
}

/* A copy of the message with fewer bytes. */
static struct msghdr shorten_pieces(int fd, const struct msghdr *message,
                                    struct iovec pieces[MOST_PIECES],
                                    uint64_t random)
{
    struct msghdr shorter = *message;
    size_t all = 0, left;

    if (message->msg_iovlen > MOST_PIECES) {
        return shorter;
    }
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        all += message->msg_iov[i].iov_len;
    }
    left = shorten(fd, all, random);
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        pieces[i] = message->msg_iov[i];
        pieces[i].iov_len = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        left -= pieces[i].iov_len;
    }
    shorter.msg_iov = pieces;
    return shorter;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct iovec pieces[MOST_PIECES];
    struct msghdr shorter = *message;
    uint64_t random;
    enum fault fault = meet(&random);

    if (fault == SHORTER) {
        shorter = shorten_pieces(fd, message, pieces, random);
    }
    return is_interrupted(fault) ? -1 : REAL(sendmsg)(fd, &shorter, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    struct iovec pieces[MOST_PIECES], *whole = message->msg_iov;
    uint64_t random;
    enum fault fault = meet(&random);
    ssize_t got;

    if (is_interrupted(fault)) {
        return -1;
    }
    if (fault == SHORTER) {
        *message = shorten_pieces(fd, message, pieces, random);
    }
    got = REAL(recvmsg)(fd, message, flags);
    message->msg_iov = whole;
    return got;
}

/* ---- Waiting ---- */

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    uint64_t random;
    enum fault fault = count == 0 ? NOTHING : meet(&random);

    return is_interrupted(fault) ? -1 : REAL(poll)(fds, count, timeout_ms);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
          const sigset_t *mask)
{
    uint64_t random;
    enum fault fault = count == 0 ? NOTHING : meet(&random);

    return is_interrupted(fault) ? -1 : REAL(ppoll)(fds, count, timeout, mask);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    uint64_t random;

    return is_interrupted(meet(&random))
               ? -1
               : REAL(epoll_wait)(fd, events, most, timeout_ms);
}
