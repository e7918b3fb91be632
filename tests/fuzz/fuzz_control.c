/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the messages of the control plane over sockets: any bytes, as a stream
 * that rank 0 or a stranger sends.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include <poll.h>

#include "control/internal.h"
#include "report/report.h"

#include <stdlib.h>

#define RANKS 4

/* Ranks 2 and 3 are on another host. */
static void add_hosts(struct iris_hub *hub)
{
    static const unsigned char elsewhere[RANKS] = {0, 0, 1, 1};
    static struct iris_mail_rank ranks[RANKS];
    static const struct iris_mail mail = {.num_ranks = RANKS, .ranks = ranks};
    static struct iris_segment *segment;

    if (segment == NULL && iris_i_segment_create(RANKS, &segment) != IRIS_OK) {
        abort();
    }
    hub->copy.rank = hub->rank;
    hub->copy.records = &segment->records;
    hub->copy.elsewhere = elsewhere;
    hub->copy.mail = &mail;
}

static void make_hub(struct iris_hub *hub)
{
    hub->rank = 1;
    hub->num_ranks = RANKS;
    hub->links = calloc(RANKS, sizeof *hub->links);
    if (hub->links == NULL ||
        iris_i_hub_copy_open(&hub->copy, RANKS) != IRIS_OK) {
        abort();
    }
    add_hosts(hub);
}

/* What was applied can be read back within bounds. */
static void read_back(struct iris_hub *hub,
                      const struct iris_message_head *head)
{
    const struct iris_post_id id = {head->place, head->from, head->value};
    unsigned char data[IRIS_POST_BYTES];

    (void)iris_i_place_collect(iris_i_hub_place(&hub->copy, head->place), &id,
                               0, data, sizeof data);
    if (head->type == IRIS_MESSAGE_ANSWERED) {
        struct iris_record_call calls[IRIS_RECORD_CALLS];
        struct iris_report *report;

        (void)iris_i_report_calls(hub->copy.records->fd, head->from, calls);
        if (iris_i_report_read(hub->copy.records->fd, &report) == IRIS_OK) {
            free(report);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char why[IRIS_MESSAGE_WHY_BYTES];
    struct iris_message_head head;
    struct iris_hub hub = {0};
    int taken;

    make_hub(&hub);
    while ((taken = iris_i_message_take(data, bytes, RANKS, &head, why)) > 0) {
        (void)iris_i_hub_apply(&hub.copy, &head, data + sizeof head);
        read_back(&hub, &head);
        data += taken;
        bytes -= (size_t)taken;
    }
    iris_i_hub_copy_close(&hub.copy);
    free(hub.links);
    return 0;
}
