/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/transport: declarations that need MPI.
 */
#ifndef IRIS_SRC_TRANSPORT_MPI_INTERNAL_H
#define IRIS_SRC_TRANSPORT_MPI_INTERNAL_H

#include <iris/device/core/ring.h>

#include "heap/heap.h"
#include "transport/transport.h"

/* ---- mpi_link.c ---- */

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
    struct iris_mpi_packet **unused; /* shared by all links */
    struct iris_mpi_packet *open;    /* collects messages; NULL: no packet
                                      * was begun */
    struct iris_mpi_packet *sent;    /* in flight, the oldest first */
    struct iris_mpi_packet *newest;  /* the last of those */
    int num_sent;                    /* of those */
    uint64_t asked;                  /* number of requests that need an
                                      * answer */
    uint64_t answered;               /* number of answers to them, which come
                                      * in order */
    uint64_t unasked;                /* other requests since the last of them */
    int is_lost;                     /* a message to the rank, or from it, is
                                      * lost */
    int is_told;                     /* the proxy knows it */
    const char *why;                 /* NULL: MPI has failed */
};

/* Adds the message to a packet. The packet is sent when it is full, or by
 * send(). If there is no memory, or MPI fails, the link is lost. */
void iris_i_mpi_link_append(struct iris_mpi_link *link,
                            const struct iris_far_message *message,
                            const void *data);

/* Sends the pending packet. Returns 1 if there was one. */
int iris_i_mpi_link_send(struct iris_mpi_link *link);

/* Reclaims sent packets. Returns their number. */
int iris_i_mpi_link_reap(struct iris_mpi_link *link);

/* Whether the rank has completed all requests. */
int iris_i_mpi_link_is_quiet(const struct iris_mpi_link *link);

void iris_i_mpi_packets_free(struct iris_mpi_packet *packet);

#endif

/* ---- mpi_window.c ---- */

#if HAVE_MPI

#include <mpi.h>

struct iris_mpi_window;

/* Opens the window on all ranks of `comm`. If a test shows that blocks do not
 * arrive, opens it on no rank and returns NULL. Collective. */
struct iris_mpi_window *iris_i_mpi_window_open(struct iris_heap *heap,
                                               MPI_Comm comm);

/* Puts a copy of a block. It may arrive as late as the next flush. 0: the block
 * has to go by a message, because it is small, or is not in the committed
 * memory of this rank's heap. */
int iris_i_mpi_window_put(struct iris_mpi_window *window, int rank,
                          uint64_t offset, const void *data, size_t bytes);

/* Waits until all blocks have arrived at the rank. 0: MPI has failed. */
int iris_i_mpi_window_flush(struct iris_mpi_window *window, int rank);

/* Makes blocks that arrived before a message visible to later reads. */
void iris_i_mpi_window_see(struct iris_mpi_window *window);

/* Collective. `window` may be NULL. */
void iris_i_mpi_window_close(struct iris_mpi_window *window);

#endif

#endif /* IRIS_SRC_TRANSPORT_MPI_INTERNAL_H */
