/* SPDX-License-Identifier: MIT
 *
 * One rank's copy of the others' published states and posts, updated by their
 * messages.
 */
#ifndef IRIS_SRC_CONTROL_HUB_COPY_H
#define IRIS_SRC_CONTROL_HUB_COPY_H

#include "control/mail.h"
#include "control/message.h"
#include "control/segment.h"

struct iris_hub_copy {
    struct iris_segment *segment;
    atomic_uchar *ended; /* by rank: its connection has ended */
    int rank;            /* this one */
    /* The records of this host, in which readers find the states of the marked
     * ranks, which are on other hosts. NULL: they are not used. */
    const struct iris_records *records;
    const unsigned char *elsewhere;
    int writes_boards; /* 1: this rank writes their states; 0: another one does,
                        * except for the last state */
    const struct iris_mail *mail; /* the ranks' processes and hosts */
};

/* The caller closes it even if this fails. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_hub_copy_open(struct iris_hub_copy *copy, int num_ranks);
void iris_i_hub_copy_close(struct iris_hub_copy *copy);

struct iris_board *iris_i_hub_board(const struct iris_hub_copy *copy, int rank);
struct iris_place *iris_i_hub_place(const struct iris_hub_copy *copy,
                                    int place);

/* Parts to which other ranks react. The rest only informs people. */
#define IRIS_SHOW_URGENT                                                      \
    (IRIS_SHOW_STATE | IRIS_SHOW_WAITS | IRIS_SHOW_ID | IRIS_SHOW_ELSEWHERE | \
     IRIS_SHOW_REASON)

/* Writes parts of a rank's published state to the copy, and for readers of this
 * host if the rank is on another one. */
void iris_i_hub_write(struct iris_hub_copy *copy, int rank, unsigned parts,
                      const struct iris_shown *shown);

enum iris_hub_applied {
    IRIS_HUB_NONSENSE, /* not applied */
    IRIS_HUB_PATIENT,  /* no rank waits for it: it may be sent together with
                        * the next message */
    IRIS_HUB_URGENT,
};

/* Applies a message. */
enum iris_hub_applied iris_i_hub_apply(struct iris_hub_copy *copy,
                                       const struct iris_message_head *head,
                                       const unsigned char *body);

/* The connection of `rank` has ended. */
void iris_i_hub_end(struct iris_hub_copy *copy, int rank);

#endif /* IRIS_SRC_CONTROL_HUB_COPY_H */
