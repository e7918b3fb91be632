/* SPDX-License-Identifier: MIT
 *
 * The events of a trace file, ours or upstream's, one after the other.
 */
#ifndef IRIS_SRC_TRACE_EVENTS_H
#define IRIS_SRC_TRACE_EVENTS_H

#include "trace/json_reader.h"

#define IRIS_EVENT_MEMBERS 512
#define IRIS_EVENT_NOWHERE UINT64_MAX

/* One event. What it does not have is 0 or empty, ranks -1. Times are 2^61 ns
 * at most, on either side of 0, and durations are not negative: readers may add
 * and subtract a few of them. */
struct iris_event {
    char name[64];
    char cat[16];
    char ph; /* X, i, M, C, s, f */
    int64_t ts_ns;
    int64_t dur_ns;
    int pid;
    char tid[32];
    int target_rank;
    int64_t program_id;
    uint64_t address;
    uint64_t offset; /* IRIS_EVENT_NOWHERE: it says none */
    uint64_t payload;
    uint64_t value;
    int signal; /* others may wait for what it writes */
    int held;   /* a wait that ended so */
    uint64_t launch;
    uint64_t id, stream; /* of a call or a kernel's run */
    char kernel[64];
    char members[IRIS_EVENT_MEMBERS]; /* of a collective: ranks, "0-3,6" */
    /* Of a collective of messages: bytes by rank, "1:4096,3:512". */
    char sends[IRIS_EVENT_MEMBERS], receives[IRIS_EVENT_MEMBERS];
    const char *raw; /* as it is in the file, until the next one */
    size_t raw_bytes;
    size_t ts_begin, ts_end; /* where in `raw` the number of "ts" is */
};

/* What a file says of itself. */
struct iris_trace_file {
    int rank; /* -1: of several */
    int world_size;
    int ticks; /* of several files: how many; times are upstream's cycles of 10 ns, not microseconds */
    uint64_t num_events, host_events, dropped;
    int64_t clock_error_ns, device_error_ns; /* -1: the file does not say */
};

/* Adds another one's numbers to those of several files, whose errors are the
 * worst: -1, if one does not say. */
void iris_i_events_add_file(struct iris_trace_file *total,
                            const struct iris_trace_file *file);

/* Reads the file from the start: calls `event` for each event, and fills
 * *file_p. The file may say late what its times are: see ticks above. 0; or -1,
 * with why in `json->error`; or what `event` returns if that is not 0. */
int iris_i_events_read(struct iris_json *json, struct iris_trace_file *file_p,
                       int (*event)(void *arg, const struct iris_event *event),
                       void *arg);

#endif /* IRIS_SRC_TRACE_EVENTS_H */
