/* SPDX-License-Identifier: MIT
 *
 * What the flight record has of an agreement that waits for members.
 */
#include "config.h"

#include "control/agree.h"

#include "base/clock.h"
#include "control/record.h"

#include <stdio.h>

static void list_absent(const struct iris_members *members,
                        struct iris_record_wait *wait)
{
    for (int i = 0; i < members->count; i++) {
        if (iris_i_agree_has_come(members, members->ranks[i])) {
            continue;
        }
        if (wait->num_expected < IRIS_RECORD_EXPECTED) {
            wait->expected[wait->num_expected] = (int16_t)members->ranks[i];
        }
        wait->num_expected++;
    }
}

int iris_i_agree_note(const struct iris_members *members, const char *call,
                      int64_t begin_ns, int slot)
{
    struct iris_record_wait wait = {
        .kind = IRIS_WAIT_AGREEMENT,
        .begin_ns = begin_ns,
        .update_ns = iris_i_now_ns(),
        .offset = IRIS_RECORD_NOWHERE,
        .value = members->place,
        .seen = (int64_t)members->seq,
        .word_rank = -1,
        .group = members->place,
    };

    list_absent(members, &wait);
    iris_i_record_members(&wait, members->ranks, members->count);
    snprintf(wait.name, sizeof wait.name, "%s", call);
    return iris_i_record_wait(members->control->record, slot, &wait);
}
