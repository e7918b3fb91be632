/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the messages between hubs: any bytes, as a stream that the leader of
 * another node sends.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include <poll.h>

#include "control/internal.h"
#include "report/report.h"

#include <stdlib.h>

#define RANKS 4

/* Ranks 2 and 3 are on another node, which rank 2 leads. */
static void make_hub(struct iris_hub *hub)
{
    static struct iris_peer peers[RANKS] = {{.leader = 0},
                                            {.leader = 0},
                                            {.is_far = 1, .leader = 2},
                                            {.is_far = 1, .leader = 2}};
    static struct iris_control control = {
        .num_ranks = RANKS, .num_nodes = 2, .peers = peers};
    static struct iris_table *segment;

    if (segment == NULL && iris_i_segment_create(RANKS, &segment) != IRIS_OK) {
        abort();
    }
    *hub = (struct iris_hub){
        .num_ranks = RANKS, .control = &control, .table = segment, .wake = -1};
    if (iris_i_hub_make(hub) != IRIS_OK) {
        abort();
    }
}

/* What was applied can be read back within bounds. */
static void read_back(struct iris_hub *hub,
                      const struct iris_message_head *head)
{
    const struct iris_post_id id = {head->place, head->from, head->value};
    unsigned char data[IRIS_POST_BYTES];

    (void)iris_i_place_collect(iris_i_segment_place(hub->table, head->place),
                               &id, 0, data, sizeof data);
    if (head->type == IRIS_MESSAGE_ROW_END) {
        struct iris_record_call calls[IRIS_RECORD_CALLS];
        struct iris_report *report;

        (void)iris_i_report_calls(hub->table->fd, head->from, calls);
        if (iris_i_report_read(hub->table->fd, &report) == IRIS_OK) {
            free(report);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct iris_message_head head;
    struct iris_hub hub;
    size_t taken;

    make_hub(&hub);
    while ((taken = iris_i_message_take(data, bytes, RANKS, &head)) > 0) {
        (void)iris_i_hub_apply(&hub, 2, &head, data + sizeof head);
        read_back(&hub, &head);
        data += taken;
        bytes -= taken;
    }
    iris_i_hub_free(&hub);
    return 0;
}
