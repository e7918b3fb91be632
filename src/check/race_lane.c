/* SPDX-License-Identifier: MIT
 *
 * Lanes. Workgroups of a stream with the same number are one lane, in all
 * launches: the stream orders them.
 */
#include "config.h"

#include "check/internal.h"

#include <stdlib.h>

uint32_t iris_i_race_add_lane(struct iris_race *race, uint32_t stream,
                              uint32_t workgroup)
{
    struct iris_race_shared *shared = race->memory.shared;
    uint32_t number = atomic_load(&shared->num_lanes);
    struct iris_race_lane *lane = &shared->lanes[number];

    if (number == IRIS_RACE_LANES) {
        shared->blind = true;
        return 0;
    }
    lane->rank = race->heap->log->rank;
    lane->stream = stream;
    lane->workgroup = workgroup;
    atomic_store(&shared->num_lanes, number + 1);
    iris_i_race_tick(&race->memory, number);
    return number + 1;
}

struct iris_race_stream *iris_i_race_stream(struct iris_race *race,
                                            const void *stream)
{
    struct iris_race_stream **streams;
    struct iris_race_stream *one;

    stream = stream == NULL ? race->default_stream : stream;
    for (uint32_t i = 0; i < race->num_streams; i++) {
        if (race->streams[i]->stream == stream) {
            return race->streams[i];
        }
    }
    streams =
        realloc(race->streams, (race->num_streams + 1) * sizeof *race->streams);
    one = calloc(1, sizeof *one);
    if (streams == NULL || one == NULL) {
        race->streams = streams == NULL ? race->streams : streams;
        race->memory.shared->blind = true;
        free(one);
        return NULL;
    }
    race->streams = streams;
    one->stream = stream;
    streams[race->num_streams++] = one;
    one->number = race->num_streams;
    return one;
}

struct iris_race_stream *iris_i_race_stream_of(const struct iris_race *race,
                                               uint64_t run)
{
    for (uint32_t i = 0; i < race->num_streams; i++) {
        if (race->streams[i]->run == run) {
            return race->streams[i];
        }
    }
    return NULL;
}

uint32_t iris_i_race_lane(struct iris_race *race,
                          struct iris_race_stream *stream, uint64_t run,
                          uint32_t workgroup)
{
    uint32_t *lane_p1 = &stream->lanes[workgroup % IRIS_RACE_WGS];
    struct iris_race_lane *lane;

    if (*lane_p1 == 0) {
        *lane_p1 = iris_i_race_add_lane(race, stream->number, workgroup);
    }
    if (*lane_p1 == 0) {
        return 0;
    }
    lane = &race->memory.shared->lanes[*lane_p1 - 1];
    if (lane->run != run) {
        lane->run = run;
        lane->fence_scope = 0;
        iris_i_race_clear(&race->memory, &lane->near);
        iris_i_race_clear(&race->memory, &lane->far);
        iris_i_race_join(&race->memory, &lane->clock, &stream->clock, 0);
        iris_i_race_tick(&race->memory, *lane_p1 - 1);
    }
    return *lane_p1;
}

void iris_i_race_end_run(struct iris_race *race,
                         struct iris_race_stream *stream)
{
    for (uint32_t i = 0; i < IRIS_RACE_WGS; i++) {
        uint32_t lane = stream->lanes[i];

        if (lane != 0 &&
            race->memory.shared->lanes[lane - 1].run == stream->run) {
            iris_i_race_join(&race->memory, &stream->clock,
                             &race->memory.shared->lanes[lane - 1].clock, 0);
        }
    }
    stream->run = 0;
}
