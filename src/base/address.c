/* SPDX-License-Identifier: MIT
 *
 * Addresses of sockets, and which host this process is on.
 */
#include "config.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void take_address(const void *from, size_t bytes,
                         struct iris_address *address_p)
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

static int family_of(const struct iris_address *address)
{
    struct sockaddr any = {.sa_family = AF_UNSPEC};

    memcpy(&any.sa_family, address->data + offsetof(struct sockaddr, sa_family),
           sizeof any.sa_family);
    return any.sa_family;
}

static int is_literal(const char *host)
{
    unsigned char number[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, number) == 1 || strchr(host, ':') != NULL;
}

static int is_loopback(const struct iris_address *address)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    memcpy(&in, address->data, sizeof in);
    memcpy(&in6, address->data, sizeof in6);
    return in.sin_family == AF_INET
               ? ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
               : IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

static int is_link_local(const struct iris_address *address)
{
    struct sockaddr_in6 in6;

    memcpy(&in6, address->data, sizeof in6);
    return in6.sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

/* Splits "HOST:PORT" and "[HOST]:PORT". Returns the reason if the text is
 * neither. */
static const char *split_text(const char *text, char host[256],
                              const char **port_p)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    char *end;
    long port;

    if (length == 0 || length >= 256) {
        return "is not HOST:PORT";
    }
    if (text[0] == '[' && text[length - 1] == ']') {
        length -= 2;
        snprintf(host, 256, "%.*s", (int)length, text + 1);
        if (strchr(host, ':') == NULL) {
            return "the brackets contain no IPv6 address";
        }
    } else if (memchr(text, ':', length) != NULL || text[0] == '[') {
        return "an IPv6 address needs brackets, such as [fd00::1]:29400";
    } else {
        snprintf(host, 256, "%.*s", (int)length, text);
    }
    port = strtol(colon + 1, &end, 10);
    *port_p = colon + 1;
    return colon[1] < '0' || colon[1] > '9' || *end != '\0' || port < 1 ||
                   port > 65535
               ? "the port is not a number from 1 to 65535"
               : NULL;
}

/* The first IPv4 address, else the first IPv6 address that is not link-local,
 * else the first address. Resolvers may list a host's link-local addresses
 * first. */
static void choose_address(const struct addrinfo *all,
                           struct iris_address *address_p)
{
    struct iris_address one;
    int best = 0;

    for (; all != NULL; all = all->ai_next) {
        int good;

        take_address(all->ai_addr, all->ai_addrlen, &one);
        good = family_of(&one) == AF_INET ? 3 : is_link_local(&one) ? 1 : 2;
        if (good > best) {
            best = good;
            *address_p = one;
        }
    }
}

/* Asks the system's resolver. Returns the reason if it has no usable address. */
static const char *resolve_name(const char *host, const char *port,
                                struct iris_address *address_p)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    struct addrinfo *all;
    int ret = getaddrinfo(host, port, &hints, &all);

    if (ret != 0) {
        return gai_strerror(ret);
    }
    choose_address(all, address_p);
    freeaddrinfo(all);
    return is_link_local(address_p)
               ? "a link-local address has a meaning on one host only"
               : NULL;
}

/* A datagram socket, or -1 with errno. */
static int make_socket(const struct iris_address *address)
{
    return iris_i_fd_socket(
        socket(family_of(address), SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

int iris_i_address_is_own(const struct iris_address *address)
{
    const struct iris_address no_port = {.bytes = 0};
    struct iris_address own = *address;
    int sock = make_socket(address), ret;

    iris_i_address_set_port(&own, &no_port);
    ret = sock < 0 ? -1
                   : bind(sock, (const struct sockaddr *)own.data, own.bytes);
    iris_i_fd_close(&sock);
    return ret == 0;
}

iris_status_t iris_i_address_towards(const struct iris_address *other,
                                     struct iris_address *own_p)
{
    const struct iris_address no_port = {.bytes = 0};
    struct iris_address own = {.bytes = 0};
    socklen_t bytes = sizeof own.data;
    int sock = make_socket(other), ret = errno;

    if (sock < 0) {
        return iris_i_fail_fd(ret, "cannot make a socket");
    }
    do {
        ret = connect(sock, (const struct sockaddr *)other->data, other->bytes);
    } while (ret != 0 && errno == EINTR);
    ret = ret != 0 || getsockname(sock, (struct sockaddr *)own.data, &bytes);
    ret = ret == 0 ? 0 : errno;
    close(sock);
    if (ret != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_BOOTSTRAP, ret,
                                 "rank 0's host cannot be reached; check "
                                 "IRIS_ROOT and the network");
    }
    own.bytes = bytes;
    iris_i_address_set_port(&own, &no_port);
    *own_p = own;
    return IRIS_OK;
}

/* Takes the address if other hosts may reach it. */
static int take_interface(const struct ifaddrs *one, int family,
                          struct iris_address *own_p)
{
    struct iris_address own;

    if (one->ifa_addr == NULL || one->ifa_addr->sa_family != family ||
        !(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) {
        return 0;
    }
    take_address(one->ifa_addr,
                 family == AF_INET ? sizeof(struct sockaddr_in)
                                   : sizeof(struct sockaddr_in6),
                 &own);
    if (is_link_local(&own)) {
        return 0;
    }
    *own_p = own;
    return 1;
}

static iris_status_t find_interface(int first_family,
                                    struct iris_address *own_p)
{
    const int families[] = {first_family,
                            first_family == AF_INET ? AF_INET6 : AF_INET};
    struct ifaddrs *all;
    int found = 0;

    if (getifaddrs(&all) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot list network interfaces");
    }
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        for (const struct ifaddrs *one = all; !found && one != NULL;
             one = one->ifa_next) {
            found = take_interface(one, families[i], own_p);
        }
    }
    freeifaddrs(all);
    return found ? IRIS_OK
                 : iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                               "no network interface with an IP address is up; "
                               "set IRIS_ROOT to rank 0's address and port");
}

iris_status_t iris_i_address_of_host(struct iris_address *own_p)
{
    return find_interface(AF_INET, own_p);
}

iris_status_t iris_i_address_parse(const char *text,
                                   struct iris_address *address_p)
{
    struct iris_address address = {.bytes = 0}, own;
    char host[256];
    const char *port, *why = split_text(text, host, &port);

    if (why == NULL) {
        why = resolve_name(host, port, &address);
    }
    if (why != NULL) {
        return fail_parse(text, why);
    }
    if (is_loopback(&address) && strcmp(host, "localhost") != 0 &&
        !is_literal(host) &&
        find_interface(family_of(&address), &own) == IRIS_OK) {
        iris_i_address_set_port(&own, &address);
        address = own;
    }
    *address_p = address;
    return IRIS_OK;
}

void iris_i_address_widen(struct iris_address *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_ANY)}};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_addr = in6addr_any};
    struct iris_address before = *address;

    if (family_of(address) == AF_INET) {
        take_address(&in, sizeof in, address);
    } else {
        take_address(&in6, sizeof in6, address);
    }
    iris_i_address_set_port(address, &before);
}

/* Both families have the port at the same offset. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
                   offsetof(struct sockaddr_in6, sin6_port),
               "one offset");

void iris_i_address_set_port(struct iris_address *address,
                             const struct iris_address *from)
{
    const size_t at = offsetof(struct sockaddr_in, sin_port);

    memcpy(address->data + at, from->data + at, sizeof(in_port_t));
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
