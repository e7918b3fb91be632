/* SPDX-License-Identifier: MIT
 *
 * The race checker's begin and end.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <stdlib.h>

static const struct iris_call_type open_call = {.name = "iris_init"};

static _Atomic uint64_t num_checkers; /* so far */

static iris_status_t begin(struct iris_race *race)
{
    const struct iris_log *log = race->heap->log;
    struct iris_call call = {.type = &open_call};
    struct iris_race_shared *shared;
    iris_status_t status;

    call.status = iris_i_race_suppressions_open(log, race->suppressions_path,
                                                &race->suppressions);
    status = iris_i_agree(race->heap->world, &call);
    if (status == IRIS_OK) {
        status = iris_i_race_memory_open(
            race->heap->world, log->rank, log->num_ranks,
            iris_i_heap_bytes(&race->heap->memory), &race->memory);
    }
    if (status != IRIS_OK) {
        return status;
    }
    shared = race->memory.shared;
    iris_i_race_lock(shared);
    race->host = iris_i_race_add_lane(race, 0, 0) - 1;
    iris_i_race_unlock(shared);
    race->observer.device = iris_i_race_device;
    race->observer.takes_series = true;
    race->observer.host = iris_i_race_host;
    race->observer.self = race;
    status = iris_i_hooks_add(race->heap->hooks, &race->observer);
    if (status == IRIS_OK) {
        iris_i_race_plain_begin(race);
    }
    return status;
}

iris_status_t iris_i_race_create(const struct iris_race_params *params,
                                 struct iris_race **race_p)
{
    struct iris_race *race = calloc(1, sizeof *race);

    if (race == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory to look for races");
    }
    race->serial = atomic_fetch_add(&num_checkers, 1) + 1;
    race->heap = params->heap;
    race->default_stream = params->default_stream;
    race->group_key = params->group_key;
    race->prefix = params->prefix;
    race->suppressions_path = params->suppressions;
    *race_p = race;
    return begin(race);
}

/* Number of lines in the suppressions file that some rank used. */
static unsigned count_suppressed(struct iris_race *race)
{
    const struct iris_race_shared *shared = race->memory.shared;
    unsigned num_found = atomic_load(&shared->num_found), count = 0;

    for (unsigned i = 0; i < num_found; i++) {
        const struct iris_race_found *found = &shared->found[i];

        if (atomic_load(&found->suppressed)) {
            struct iris_race_story story;

            count++;
            iris_i_race_tell(race, found, &story);
            (void)iris_i_race_is_suppressed(&race->suppressions, &story);
        }
    }
    return count;
}

iris_status_t iris_i_race_verdict(struct iris_race *race)
{
    const struct iris_log *log;
    unsigned count, suppressed;

    if (race == NULL) {
        return IRIS_OK;
    }
    log = race->heap->log;
    suppressed = count_suppressed(race);
    count = atomic_load(&race->memory.shared->num_found) - suppressed;
    if (log->rank == 0 && race->memory.shared->blind) {
        iris_i_warning(log, "IRIS_CHECK=race: there was more to keep than "
                            "there is room for; races may have been missed");
    }
    if (log->rank == 0 && race->suppressions.count != 0) {
        iris_i_info(log, "IRIS_CHECK=race: %u of the races are suppressed",
                    suppressed);
        iris_i_race_tell_unused(&race->suppressions, log,
                                race->suppressions_path);
    }
    if (log->rank == 0 && race->prefix[0] != '\0') {
        iris_i_race_write_file(race);
    }
    return count == 0 ? IRIS_OK
                      : iris_i_fail(log, IRIS_ERR_RACE,
                                    "IRIS_CHECK=race: %u data race%s found; "
                                    "the log says where",
                                    count, count == 1 ? " was" : "s were");
}

void iris_i_race_destroy(struct iris_race *race)
{
    if (race == NULL) {
        return;
    }
    iris_i_race_plain_end(race);
    iris_i_hooks_remove(race->heap->hooks, &race->observer);
    for (uint32_t i = 0; i < race->num_streams; i++) {
        free(race->streams[i]->work);
        free(race->streams[i]);
    }
    free(race->streams);
    iris_i_race_suppressions_close(&race->suppressions);
    iris_i_race_memory_close(&race->memory);
    free(race);
}
