/* SPDX-License-Identifier: MIT
 *
 * Copies of the flight records of other hosts' ranks, for reports of this host.
 * A reader asks (iris_i_records_ask()). One rank of its host asks the others by
 * the control plane, and writes their answers to its host's file of records.
 */
#ifndef IRIS_SRC_CONTROL_MIRROR_H
#define IRIS_SRC_CONTROL_MIRROR_H

#include "control/message.h"
#include "control/records.h"

/* Sends one message of an answer. */
struct iris_mirror_way {
    void (*send)(void *arg, const struct iris_message_head *head,
                 const struct iris_part parts[2]);
    void *arg;
};

/* Sends the used parts of this rank's record to the rank that has sent `query`:
 * about 10 KiB. Sends nothing if the rank has no record. */
void iris_i_mirror_answer(const struct iris_records *records, int rank,
                          const struct iris_message_head *query,
                          const struct iris_mirror_way *way);

/* Writes a message of an answer to the copy. Ignores a malformed one. */
void iris_i_mirror_take(const struct iris_records *records,
                        const struct iris_message_head *head,
                        const unsigned char *body);

/* A rank of another host has closed its connection. `host` is its name. */
void iris_i_mirror_end(const struct iris_records *records, int rank, int pid,
                       const char *host);

/* No answer of this rank can arrive any more. */
void iris_i_mirror_lose(const struct iris_records *records, int rank);

#endif /* IRIS_SRC_CONTROL_MIRROR_H */
