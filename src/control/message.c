/* SPDX-License-Identifier: MIT
 *
 * Checking and packing messages.
 */
#include "config.h"

#include "control/internal.h"

#include <stdio.h>
#include <string.h>

/* Formats of bodies, by type. */
static const struct {
    uint32_t least;
    uint32_t most;
} lengths[IRIS_MESSAGE_TYPES] = {
    [IRIS_MESSAGE_SHOWN] = {0, IRIS_MESSAGE_SHOWN_BYTES},
    [IRIS_MESSAGE_POST] = {0, IRIS_POST_BYTES},
    [IRIS_MESSAGE_ROW] = {1, IRIS_POST_BYTES},
    [IRIS_MESSAGE_ROW_END] = {sizeof(struct iris_message_row_end),
                              sizeof(struct iris_message_row_end)},
};

struct iris_message_head iris_i_message_head(enum iris_message_type type,
                                             int from, int place,
                                             uint64_t value, size_t bytes)
{
    return (struct iris_message_head){.magic = IRIS_MESSAGE_MAGIC,
                                      .version = IRIS_MESSAGE_VERSION,
                                      .type = (uint16_t)type,
                                      .bytes = (uint16_t)bytes,
                                      .from = (uint16_t)from,
                                      .place = (uint16_t)place,
                                      .value = value};
}

static int check_head(const struct iris_message_head *head, int num_ranks,
                      char why[IRIS_MESSAGE_WHY_BYTES])
{
    if (head->magic != IRIS_MESSAGE_MAGIC) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "it does not speak the protocol of Iris's control plane");
        return 0;
    }
    if (head->version != IRIS_MESSAGE_VERSION) {
        snprintf(
            why, IRIS_MESSAGE_WHY_BYTES,
            "its messages have version %u, this rank's version %u; use one "
            "version of Iris on all ranks",
            head->version, IRIS_MESSAGE_VERSION);
        return 0;
    }
    if (head->type < IRIS_MESSAGE_SHOWN || head->type >= IRIS_MESSAGE_TYPES) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES, "a message has unknown type %u",
                 head->type);
        return 0;
    }
    if (head->bytes < lengths[head->type].least ||
        head->bytes > lengths[head->type].most) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "a message of type %u has %u bytes; %u to %u are allowed",
                 head->type, head->bytes, lengths[head->type].least,
                 lengths[head->type].most);
        return 0;
    }
    if (head->type == IRIS_MESSAGE_POST &&
        (head->members == 0 || head->members > num_ranks)) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "a message is for %u members of %d ranks", head->members,
                 num_ranks);
        return 0;
    }
    if (head->from >= num_ranks || head->place >= IRIS_PLACES) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "a message names rank %u of %d, place %u of %d", head->from,
                 num_ranks, head->place, IRIS_PLACES);
        return 0;
    }
    return 1;
}

int iris_i_message_take(const unsigned char *data, size_t bytes, int num_ranks,
                        struct iris_message_head *head_p,
                        char why[IRIS_MESSAGE_WHY_BYTES])
{
    if (bytes < sizeof *head_p) {
        return 0;
    }
    memcpy(head_p, data, sizeof *head_p);
    if (!check_head(head_p, num_ranks, why)) {
        return -1;
    }
    return bytes - sizeof *head_p < head_p->bytes
               ? 0
               : (int)(sizeof *head_p + head_p->bytes);
}

/* ---- Published state ---- */

#define FIELD(part, name)                           \
    {                                               \
        part, offsetof(struct iris_shown, name),    \
            sizeof((struct iris_shown *)NULL)->name \
    }

static const struct {
    unsigned part;
    size_t at;
    size_t bytes;
} fields[] = {
    FIELD(IRIS_SHOW_STATE, state),     FIELD(IRIS_SHOW_STATE, interrupted),
    FIELD(IRIS_SHOW_STATE, blames),    FIELD(IRIS_SHOW_BUSY, busy),
    FIELD(IRIS_SHOW_STREAMS, streams), FIELD(IRIS_SHOW_CALLS, calls),
    FIELD(IRIS_SHOW_NAME, name),       FIELD(IRIS_SHOW_WAITS, waits),
    FIELD(IRIS_SHOW_ID, id),           FIELD(IRIS_SHOW_ELSEWHERE, elsewhere),
    FIELD(IRIS_SHOW_REASON, reason),   FIELD(IRIS_SHOW_HOLDS, holds),
    FIELD(IRIS_SHOW_ENDED, ended),     FIELD(IRIS_SHOW_ENDED, cut_by),
};
#define NUM_FIELDS (sizeof fields / sizeof fields[0])

size_t iris_i_message_pack(unsigned parts, const struct iris_shown *shown,
                           unsigned char *data)
{
    size_t bytes = 0;

    for (size_t i = 0; i < NUM_FIELDS; i++) {
        if (parts & fields[i].part) {
            memcpy(data + bytes, (const char *)shown + fields[i].at,
                   fields[i].bytes);
            bytes += fields[i].bytes;
        }
    }
    return bytes;
}

int iris_i_message_unpack(unsigned parts, const unsigned char *data,
                          size_t bytes, struct iris_shown *shown_p)
{
    size_t at = 0;

    for (size_t i = 0; i < NUM_FIELDS; i++) {
        if ((parts & fields[i].part) == 0) {
            continue;
        }
        if (fields[i].bytes > bytes - at) {
            return 0;
        }
        memcpy((char *)shown_p + fields[i].at, data + at, fields[i].bytes);
        at += fields[i].bytes;
    }
    /* Terminates the texts. */
    shown_p->name[sizeof shown_p->name - 1] = '\0';
    shown_p->reason[sizeof shown_p->reason - 1] = '\0';
    return at == bytes;
}
