/* SPDX-License-Identifier: MIT
 *
 * One rank's copy of what the others show and post, kept by their messages.
 */
#ifndef IRIS_SRC_CONTROL_HUB_COPY_H
#define IRIS_SRC_CONTROL_HUB_COPY_H

#include "control/message.h"
#include "control/segment.h"

struct iris_hub_copy {
    struct iris_segment *segment;
    atomic_uchar *ended; /* by rank: its connection is over */
    /* Where tools of this host look for what ranks of other hosts, which are
     * marked, show. NULL: nowhere, or another rank writes it. */
    const struct iris_records *mirror;
    const unsigned char *elsewhere;
};

/* The caller closes it also if it could not be opened. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_hub_copy_open(struct iris_hub_copy *copy, int num_ranks);
void iris_i_hub_copy_close(struct iris_hub_copy *copy);

struct iris_board *iris_i_hub_board(const struct iris_hub_copy *copy, int rank);
struct iris_place *iris_i_hub_place(const struct iris_hub_copy *copy,
                                    int place);

/* Parts that others act on; the rest only tells people what a rank does. */
#define IRIS_SHOW_URGENT                                                      \
    (IRIS_SHOW_STATE | IRIS_SHOW_WAITS | IRIS_SHOW_ID | IRIS_SHOW_ELSEWHERE | \
     IRIS_SHOW_REASON)

enum iris_hub_applied {
    IRIS_HUB_NONSENSE, /* not applied */
    IRIS_HUB_PATIENT,  /* nobody goes on for it: the other ranks may hear of it
                        * together with what comes next */
    IRIS_HUB_URGENT,
};

/* Does what a message says. */
enum iris_hub_applied iris_i_hub_apply(struct iris_hub_copy *copy,
                                       const struct iris_message_head *head,
                                       const unsigned char *body);

/* The connection of `rank` is over. */
void iris_i_hub_end(struct iris_hub_copy *copy, int rank);

#endif /* IRIS_SRC_CONTROL_HUB_COPY_H */
