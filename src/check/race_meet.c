/* SPDX-License-Identifier: MIT
 *
 * Meetings, identified by the group and the number of the call.
 */
#include "config.h"

#include "check/internal.h"

uint32_t iris_i_race_group(struct iris_race *race, uint64_t key)
{
    struct iris_race_shared *shared = race->memory.shared;
    uint32_t i = 0;

    while (i < IRIS_RACE_GROUPS && shared->groups[i].key != key &&
           shared->groups[i].key != 0) {
        i++;
    }
    if (i == IRIS_RACE_GROUPS) {
        shared->blind = true;
    } else {
        shared->groups[i].key = key;
    }
    return i;
}

uint32_t iris_i_race_group_of(struct iris_race *race, const void *group,
                              bool on_stream)
{
    uint64_t members = group == NULL ? 1 : race->group_key(group);

    return iris_i_race_group(race, 2 * members + on_stream);
}

struct iris_race_call iris_i_race_next_call(struct iris_race *race,
                                            uint32_t group)
{
    struct iris_race_call call = {0, 0};

    if (group < IRIS_RACE_GROUPS) {
        call.group = group;
        call.number = ++race->calls[group];
    }
    return call;
}

uint32_t iris_i_race_pair_of(struct iris_race *race, const void *group,
                             int from, int to)
{
    uint64_t members = group == NULL ? 1 : race->group_key(group);
    uint64_t pair = (uint64_t)(uint32_t)from << 32 | (uint32_t)to;

    return iris_i_race_group(
        race, 2 * members + (pair + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

struct iris_race_meeting *iris_i_race_meeting(struct iris_race *race,
                                              const struct iris_race_call *call)
{
    struct iris_race_group *group = &race->memory.shared->groups[call->group];
    struct iris_race_meeting *meeting =
        &group->meetings[call->number % IRIS_RACE_MEETINGS];

    if (meeting->number < call->number) {
        iris_i_race_clear(&race->memory, &meeting->clock);
        meeting->number = call->number;
        meeting->cleared = false;
    }
    return meeting;
}
