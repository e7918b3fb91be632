/* SPDX-License-Identifier: MIT
 *
 * Work on streams, for the race checker.
 */
#ifndef IRIS_SRC_CHECK_RACE_STREAM_H
#define IRIS_SRC_CHECK_RACE_STREAM_H

#include "check/race_state.h"

/* All under the lock. */

struct iris_race_clock *iris_i_race_host_clock(const struct iris_race *race);

/* The part of a heap that the range covers; false: it is on no heap. */
bool iris_i_race_range_of(const struct iris_race *race, const void *address,
                          size_t bytes, struct iris_race_range *range_p);

/* An access by a host call, or by its work on a stream. */
void iris_i_race_touch_by(struct iris_race *race,
                          const struct iris_race_range *range, uint32_t lane,
                          uint32_t site, unsigned kind);

/* Before a launch, copy or fill, and after one that failed. */
void iris_i_race_enqueue(struct iris_race *race,
                         const struct iris_host_event *event);
void iris_i_race_call_off(struct iris_race *race,
                          const struct iris_host_event *event);
void iris_i_race_enqueue_collective(struct iris_race *race,
                                    const struct iris_host_event *event,
                                    uint32_t site);

/* The commands that a stream's thread runs. */
void iris_i_race_run_kernel(struct iris_race *race,
                            const struct iris_host_event *event);
void iris_i_race_run_copy(struct iris_race *race,
                          const struct iris_host_event *event);
void iris_i_race_pass_mark(struct iris_race *race,
                           const struct iris_host_event *event);

#endif /* IRIS_SRC_CHECK_RACE_STREAM_H */
