/* SPDX-License-Identifier: MIT
 *
 * Packets to one rank leave in the order of their begin, and MPI keeps that
 * order.
 */
#include "config.h"

#include "transport/mpi_internal.h"

#if HAVE_MPI

#include <iris/device/watch/op.h>

#include <stdlib.h>
#include <string.h>

static struct iris_mpi_packet *take_request(struct iris_mpi_link *link)
{
    struct iris_mpi_packet *packet = *link->unused;

    if (packet == NULL) {
        packet = malloc(sizeof *packet);
    } else {
        *link->unused = packet->next;
    }
    if (packet != NULL) {
        packet->next = NULL;
        packet->bytes = 0;
    }
    return packet;
}

static void drop_request(struct iris_mpi_link *link,
                         struct iris_mpi_packet *packet)
{
    packet->next = *link->unused;
    *link->unused = packet;
}

static void note_request(struct iris_mpi_link *link,
                         const struct iris_far_message *message)
{
    if (message->answers) {
        return;
    }
    if (message->op == IRIS_OP_PUT || message->op == IRIS_OP_STORE) {
        link->unasked++;
    } else {
        link->asked++;
        link->unasked = 0;
    }
}

void iris_i_mpi_link_append(struct iris_mpi_link *link,
                            const struct iris_far_message *message,
                            const void *data)
{
    size_t bytes = sizeof *message + message->data;
    unsigned char *at;

    if (link->open != NULL &&
        IRIS_MPI_PACKET_BYTES - link->open->bytes < bytes) {
        (void)iris_i_mpi_link_send(link);
    }
    link->open = link->open != NULL ? link->open : take_request(link);
    if (link->open == NULL) {
        link->is_lost = 1;
        link->why = "there is no memory for messages to it";
        return;
    }
    at = link->open->data + link->open->bytes;
    memcpy(at, message, sizeof *message);
    if (message->data != 0) {
        memcpy(at + sizeof *message, data, message->data);
    }
    link->open->bytes += bytes;
    note_request(link, message);
}

int iris_i_mpi_link_send(struct iris_mpi_link *link)
{
    struct iris_mpi_packet *packet = link->open;

    if (packet == NULL) {
        return 0;
    }
    link->open = NULL;
    if (MPI_Isend(packet->data, (int)packet->bytes, MPI_BYTE, link->rank, 0,
                  link->comm, &packet->request) != MPI_SUCCESS) {
        link->is_lost = 1;
        drop_request(link, packet);
        return 1;
    }
    if (link->sent == NULL) {
        link->sent = packet;
    } else {
        link->newest->next = packet;
    }
    link->newest = packet;
    link->num_sent++;
    return 1;
}

int iris_i_mpi_link_reap(struct iris_mpi_link *link)
{
    int count = 0, done = 1;

    while (link->sent != NULL && done) {
        struct iris_mpi_packet *packet = link->sent;

        if (MPI_Test(&packet->request, &done, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS) {
            link->is_lost = 1;
            done = 1;
        }
        if (done) {
            link->sent = packet->next;
            link->num_sent--;
            drop_request(link, packet);
            count++;
        }
    }
    return count;
}

int iris_i_mpi_link_is_quiet(const struct iris_mpi_link *link)
{
    return link->asked == link->answered && link->unasked == 0;
}

void iris_i_mpi_packets_free(struct iris_mpi_packet *packet)
{
    while (packet != NULL) {
        struct iris_mpi_packet *next = packet->next;

        free(packet);
        packet = next;
    }
}

#endif
