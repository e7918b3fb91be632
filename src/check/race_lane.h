/* SPDX-License-Identifier: MIT
 *
 * A rank's lanes: its host, and the workgroups of its streams.
 */
#ifndef IRIS_SRC_CHECK_RACE_LANE_H
#define IRIS_SRC_CHECK_RACE_LANE_H

#include "check/race_state.h"

/* All under the lock. */

/* A lane + 1; 0: there are too many. */
uint32_t iris_i_race_add_lane(struct iris_race *race, uint32_t stream,
                              uint32_t workgroup);

/* The stream; NULL means the default one. Returns NULL without memory. */
struct iris_race_stream *iris_i_race_stream(struct iris_race *race,
                                            const void *stream);

/* The stream of a kernel's run; NULL: not found. */
struct iris_race_stream *iris_i_race_stream_of(const struct iris_race *race,
                                               uint64_t run);

/* The lane of a workgroup + 1; it begins after the stream's earlier work. 0:
 * there are too many. */
uint32_t iris_i_race_lane(struct iris_race *race,
                          struct iris_race_stream *stream, uint64_t run,
                          uint32_t workgroup);

/* The run has ended: its workgroups' operations happen before later work of the
 * stream. */
void iris_i_race_end_run(struct iris_race *race,
                         struct iris_race_stream *stream);

#endif /* IRIS_SRC_CHECK_RACE_LANE_H */
