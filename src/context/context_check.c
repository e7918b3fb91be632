/* SPDX-License-Identifier: MIT */
#include "context/internal.h"

#include "base/base.h"
#include "check/check.h"

/* Whether the user has asked for one particular run. */
static bool is_scheduled(const struct iris_settings *settings)
{
    return settings->seed.origin != IRIS_ORIGIN_DEFAULT ||
           settings->replay.text[0] != '\0' ||
           settings->schedule.text[0] != '\0';
}

iris_status_t iris_i_context_open_check(iris_t *iris)
{
    int64_t check = iris->settings->check.number;
    const struct iris_race_params races = {
        .heap = &iris->heap,
        .default_stream = iris->queue.streams,
        .group_key = iris_i_group_key,
        .prefix = iris->settings->report.text,
        .suppressions = iris->settings->suppressions.text};
    const struct iris_weak_params weak = {
        .heap = &iris->heap,
        .default_stream = iris->queue.streams,
        .group_key = iris_i_group_key,
        .group_size = iris_i_group_count,
        .threads = (unsigned)iris->settings->sim_cus.number,
        .choices = {.seed = (uint64_t)iris->settings->seed.number,
                    .follow = iris->settings->replay.text,
                    .record = iris->settings->schedule.text,
                    .newest = check == IRIS_CHOICE_CHECK_RACE,
                    .num_ranks = iris->log.num_ranks}};
    iris_status_t status = IRIS_OK;

    if (check == IRIS_CHOICE_CHECK_NONE) {
        return IRIS_OK;
    }
    if (iris->placement.type->is_gpu) {
        iris_i_warning(&iris->log,
                       "IRIS_CHECK=%s checks nothing on a GPU; set "
                       "IRIS_SIM_DEVICE=cpu, too",
                       iris->settings->check.text);
        return IRIS_OK;
    }
    if (check == IRIS_CHOICE_CHECK_BOUNDS) {
        return iris_i_bounds_create(&iris->heap, &iris->bounds);
    }
    if (check == IRIS_CHOICE_CHECK_WEAK || is_scheduled(iris->settings)) {
        status = iris_i_weak_create(&weak, &iris->weak);
    }
    /* The scheduler comes second, so that this check sees an operation when it
     * is its turn. */
    return status == IRIS_OK && check == IRIS_CHOICE_CHECK_RACE
               ? iris_i_race_create(&races, &iris->race)
               : status;
}
