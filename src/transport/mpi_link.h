/* SPDX-License-Identifier: MIT
 *
 * What one rank sends another by MPI: messages collected in packets.
 */
#ifndef IRIS_SRC_TRANSPORT_MPI_LINK_H
#define IRIS_SRC_TRANSPORT_MPI_LINK_H

#include <iris/device/ring.h>

#include "transport/far_message.h"

#if HAVE_MPI

#include <mpi.h>

/* A packet holds one message of the largest size, or many small ones. */
#define IRIS_MPI_PACKET_BYTES \
    (sizeof(struct iris_far_message) + IRIS_RING_BYTES)

struct iris_mpi_packet {
    struct iris_mpi_packet *next;
    MPI_Request request;
    size_t bytes;
    unsigned char data[IRIS_MPI_PACKET_BYTES];
};

struct iris_mpi_link {
    int rank;
    MPI_Comm comm;
    struct iris_mpi_packet **unused; /* that all links share */
    struct iris_mpi_packet *open;    /* takes messages; NULL: none is begun */
    struct iris_mpi_packet *sent;    /* on their way, the oldest first */
    struct iris_mpi_packet *newest;  /* the last of those */
    int num_sent;                    /* of those */
    uint64_t asked;                  /* requests that are answered */
    uint64_t answered;               /* answers to them, which come in order */
    uint64_t unasked;                /* other requests since the last of them */
    int is_lost;                     /* MPI has failed to reach the rank */
};

/* Sends the message with others, once send() is called or the packet is full.
 * No memory, or a failure of MPI: the link is lost. */
void iris_i_mpi_link_append(struct iris_mpi_link *link,
                            const struct iris_far_message *message,
                            const void *data);

/* Sends what was appended. Returns 1 if there was something. */
int iris_i_mpi_link_send(struct iris_mpi_link *link);

/* Takes back packets that have left. Returns how many. */
int iris_i_mpi_link_reap(struct iris_mpi_link *link);

/* Whether the rank has done all that messages have asked it. */
int iris_i_mpi_link_is_quiet(const struct iris_mpi_link *link);

void iris_i_mpi_packets_free(struct iris_mpi_packet *packet);

#endif

#endif /* IRIS_SRC_TRANSPORT_MPI_LINK_H */
