/* SPDX-License-Identifier: MIT
 *
 * Addresses of sockets, and which host this process is on.
 */
#ifndef IRIS_SRC_BASE_ADDRESS_H
#define IRIS_SRC_BASE_ADDRESS_H

#include <stdint.h>

#include <iris/status.h>

/* A socket address in bind()'s format. Its size is 0 if it is not set. */
struct iris_address {
    uint32_t bytes;
    _Alignas(8) unsigned char data[32];
};

/* Reads "HOST:PORT": a name, an IPv4 address or an IPv6 address in brackets,
 * and a number from 1 to 65535. Asks the system's resolver, and takes an IPv4
 * address if the name has one. Many hosts resolve their own name to the
 * loopback; for such a name the result is an address of
 * an interface, of the same family if there is one.
 * IRIS_ERR_CONFIG */
iris_status_t iris_i_address_parse(const char *text,
                                   struct iris_address *address_p);

/* Whether the address is one of this host's interfaces. */
int iris_i_address_is_own(const struct iris_address *address);

/* The address, with port 0, from which this host reaches another one. Sends
 * nothing. IRIS_ERR_BOOTSTRAP: there is no route. */
iris_status_t iris_i_address_towards(const struct iris_address *other,
                                     struct iris_address *own_p);

/* The address, with port 0, of the first interface that is up and not a
 * loopback: IPv4, else IPv6 but not link-local. IRIS_ERR_BOOTSTRAP: this host has no such interface. */
iris_status_t iris_i_address_of_host(struct iris_address *own_p);

/* The same port on all interfaces of this host. */
void iris_i_address_widen(struct iris_address *address);

/* Takes the port of `from`; 0 if that is not set. */
void iris_i_address_set_port(struct iris_address *address,
                             const struct iris_address *from);

/* A number that only processes of this host and network namespace share.
 * Processes with the same number can connect by local sockets. */
uint64_t iris_i_host_id(void);

#endif /* IRIS_SRC_BASE_ADDRESS_H */
