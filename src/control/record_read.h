/* SPDX-License-Identifier: MIT
 *
 * Converts the entries of a flight record for readers: kernels' numbers to
 * names, ticks to times.
 */
#ifndef IRIS_SRC_CONTROL_RECORD_READ_H
#define IRIS_SRC_CONTROL_RECORD_READ_H

#include <stddef.h>

#include "control/flight_record.h"

/* A call's cell, copied. */
struct iris_call_copy {
    uint64_t mark;
    uint64_t words[IRIS_CALL_WORDS];
};

/* Converts the copy, with the names in `record`. 0: it was not complete, or
 * contains no call. */
int iris_i_record_call(const struct iris_record *record,
                       const struct iris_ticks_scale *scale,
                       const struct iris_call_copy *copy,
                       struct iris_record_call *call_p);

/* Converts the copy of a stream's cell. */
void iris_i_record_stream(const struct iris_record *record,
                          const struct iris_ticks_scale *scale,
                          const struct iris_stream_now *now,
                          struct iris_record_stream *stream_p);

/* The number of the copied call's kernel; 0: none. */
unsigned iris_i_record_kernel_number(const struct iris_call_copy *copy);

/* A call of this process's own record (one of IRIS_RECORD_CALLS), with its
 * times in ticks. 0: no call, or it is being written. */
int iris_i_record_own_call(const struct iris_record *record, size_t i,
                           struct iris_record_call *call_p);

#endif /* IRIS_SRC_CONTROL_RECORD_READ_H */
