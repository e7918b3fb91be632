/* SPDX-License-Identifier: MIT
 *
 * Addresses of sockets, and which host this process is on.
 */
#include "config.h"

#include "base/address.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/shm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void take(const void *from, size_t bytes, struct iris_address *address_p)
{
    memset(address_p, 0, sizeof *address_p);
    address_p->bytes = (uint32_t)bytes;
    memcpy(address_p->data, from, bytes);
}

static iris_status_t fail_parse(const char *text, const char *why)
{
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "IRIS_ROOT=\"%.200s\": %s; set it to rank 0's host and "
                       "a free port there, such as node0:29400",
                       text, why);
}

/* Whether the address is the loopback although the name is not one of the
 * loopback's. */
static int is_hidden(const char *host, const struct addrinfo *found)
{
    const struct sockaddr_in *in = (const void *)found->ai_addr;
    struct in_addr number;

    return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET &&
           strcmp(host, "localhost") != 0 &&
           inet_pton(AF_INET, host, &number) != 1;
}

iris_status_t iris_i_address_parse(const char *text,
                                   struct iris_address *address_p)
{
    const struct addrinfo hints = {.ai_family = AF_INET,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    const char *colon = strrchr(text, ':');
    struct iris_address address, own;
    struct addrinfo *found;
    char host[256], *end;
    long port;
    int ret;

    if (colon == NULL || colon == text ||
        (size_t)(colon - text) >= sizeof host) {
        return fail_parse(text, "is not HOST:PORT");
    }
    port = strtol(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || port < 1 ||
        port > 65535) {
        return fail_parse(text, "the port is not a number from 1 to 65535");
    }
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    ret = getaddrinfo(host, colon + 1, &hints, &found);
    if (ret != 0) {
        return fail_parse(text, gai_strerror(ret));
    }
    take(found->ai_addr, found->ai_addrlen, &address);
    if (is_hidden(host, found) && iris_i_address_of_host(&own) == IRIS_OK) {
        iris_i_address_set_port(&own, &address);
        address = own;
    }
    freeaddrinfo(found);
    *address_p = address;
    return IRIS_OK;
}

/* A datagram socket, or -1 with errno. */
static int make_socket(void)
{
    return iris_i_fd_above_stdio(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

int iris_i_address_is_own(const struct iris_address *address)
{
    struct sockaddr_in own;
    int sock = make_socket(), ret;

    memcpy(&own, address->data, sizeof own);
    own.sin_port = 0;
    ret = sock < 0 ? -1 : bind(sock, (struct sockaddr *)&own, sizeof own);
    if (sock >= 0) {
        close(sock);
    }
    return ret == 0;
}

iris_status_t iris_i_address_towards(const struct iris_address *other,
                                     struct iris_address *own_p)
{
    struct sockaddr_in own;
    socklen_t bytes = sizeof own;
    int sock = make_socket(), ret = errno;

    if (sock < 0) {
        return iris_i_fail_fd(ret, "cannot make a socket");
    }
    ret = connect(sock, (const struct sockaddr *)other->data, other->bytes) ||
          getsockname(sock, (struct sockaddr *)&own, &bytes);
    ret = ret == 0 ? 0 : errno;
    close(sock);
    if (ret != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_BOOTSTRAP, ret,
                                 "rank 0's host cannot be reached; check "
                                 "IRIS_ROOT and the network");
    }
    own.sin_port = 0;
    take(&own, sizeof own, own_p);
    return IRIS_OK;
}

iris_status_t iris_i_address_of_host(struct iris_address *own_p)
{
    struct ifaddrs *all, *one;

    if (getifaddrs(&all) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot list network interfaces");
    }
    for (one = all; one != NULL; one = one->ifa_next) {
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET &&
            (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK)) {
            take(one->ifa_addr, sizeof(struct sockaddr_in), own_p);
            break;
        }
    }
    freeifaddrs(all);
    return one != NULL
               ? IRIS_OK
               : iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                             "no network interface with an IPv4 address is up; "
                             "set IRIS_ROOT to rank 0's address and port");
}

void iris_i_address_widen(struct iris_address *address)
{
    struct sockaddr_in in;

    memcpy(&in, address->data, sizeof in);
    in.sin_addr.s_addr = htonl(INADDR_ANY);
    take(&in, sizeof in, address);
}

void iris_i_address_set_port(struct iris_address *address,
                             const struct iris_address *from)
{
    struct sockaddr_in in, other;

    memcpy(&in, address->data, sizeof in);
    memcpy(&other, from->data, sizeof other);
    in.sin_port = other.sin_port;
    take(&in, sizeof in, address);
}

uint64_t iris_i_host_id(void)
{
    char boot[64] = "";
    uint64_t hash = UINT64_C(14695981039346656037);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    struct stat st = {0};

    if (file != NULL) {
        (void)!fgets(boot, sizeof boot, file);
        fclose(file);
    }
    (void)stat("/proc/self/ns/net", &st);
    snprintf(boot + strcspn(boot, "\n"), sizeof boot - strcspn(boot, "\n"),
             "/%llx", (unsigned long long)st.st_ino);
    for (const char *c = boot; *c != '\0'; c++) { /* 64-bit FNV-1a */
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    return hash;
}
