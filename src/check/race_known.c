/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "check/internal.h"

#include <string.h>

#define KNOWN_SITES 64

/* For the checker of the thread's latest kernel. */
static _Thread_local struct {
    uint64_t serial; /* serial number of the checker; 0: nothing is known */
    uint64_t launch;
    unsigned workgroup;
    uint32_t lane;
    struct {
        struct iris_race_key key;
        uint32_t number; /* 0: no number is known */
    } sites[KNOWN_SITES];
} mine;

static unsigned slot_of(const struct iris_race_key *key)
{
    return (unsigned)(((uintptr_t)key->address ^ key->how) % KNOWN_SITES);
}

void iris_i_race_learn_lane(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t lane)
{
    if (mine.serial != race->serial) {
        memset(&mine, 0, sizeof mine);
    }
    mine.serial = race->serial;
    mine.launch = event->launch;
    mine.workgroup = event->workgroup;
    mine.lane = lane;
}

void iris_i_race_learn_site(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t site)
{
    struct iris_race_key key = iris_i_race_key(event);
    unsigned slot = slot_of(&key);

    if (mine.serial == race->serial) {
        mine.sites[slot].key = key;
        mine.sites[slot].number = site;
    }
}

bool iris_i_race_knows(const struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t *lane_p,
                       uint32_t *site_p)
{
    struct iris_race_key key = iris_i_race_key(event);
    unsigned slot = slot_of(&key);

    *lane_p = mine.lane;
    *site_p = mine.sites[slot].number;
    return mine.serial == race->serial && mine.launch == event->launch &&
           mine.workgroup == event->workgroup && *site_p != 0 &&
           iris_i_race_is_same_key(&mine.sites[slot].key, &key);
}
