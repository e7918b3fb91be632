/* SPDX-License-Identifier: MIT
 *
 * Reads the events of a trace file, ours or upstream's.
 */
#ifndef IRIS_SRC_TRACE_EVENTS_H
#define IRIS_SRC_TRACE_EVENTS_H

#include "trace/json_reader.h"

#define IRIS_EVENT_MEMBERS 512
#define IRIS_EVENT_NOWHERE UINT64_MAX

/* One event. Missing members are 0 or empty, missing ranks -1. Times are
 * between -2^61 and 2^61 ns, and durations are not negative, so readers may add
 * and subtract a few of them. */
struct iris_event {
    char name[64];
    char cat[16];
    char ph; /* X, i, M, C, s or f */
    int64_t ts_ns;
    int64_t dur_ns;
    int pid;
    char tid[32];
    int target_rank;
    int64_t program_id;
    uint64_t address;
    uint64_t offset; /* IRIS_EVENT_NOWHERE: not in the file */
    uint64_t payload;
    uint64_t value;
    int signal; /* others may wait for the written word */
    int held;   /* a wait whose comparison held */
    uint64_t launch;
    uint64_t id, stream; /* id of a call or a kernel's run */
    char kernel[64];
    char members[IRIS_EVENT_MEMBERS]; /* ranks of a collective, "0-3,6" */
    /* For a collective of messages: bytes by rank, "1:4096,3:512". */
    char sends[IRIS_EVENT_MEMBERS], receives[IRIS_EVENT_MEMBERS];
    const char *raw; /* its text in the file, until the next event */
    size_t raw_bytes;
    size_t ts_begin, ts_end; /* place of the number of "ts" in `raw` */
};

/* The properties of a file. */
struct iris_trace_file {
    int rank; /* -1: of several ranks */
    int world_size;
    /* Number of files whose times are upstream's cycles of 10 ns, not
     * microseconds. */
    int ticks;
    uint64_t num_events, host_events, dropped;
    int64_t clock_error_ns, device_error_ns; /* -1: not in the file */
};

/* Adds another file's numbers to the total of several files. The errors are the
 * largest ones; -1 if one is unknown. */
void iris_i_events_add_file(struct iris_trace_file *total,
                            const struct iris_trace_file *file);

/* Reads the file from the start: calls `event` for each event, and fills
 * *file_p. The unit of times may come late in the file: see ticks above.
 * Returns 0; -1, with the reason in `json->error`; or the value of `event` if
 * that is not 0. */
int iris_i_events_read(struct iris_json *json, struct iris_trace_file *file_p,
                       int (*event)(void *arg, const struct iris_event *event),
                       void *arg);

#endif /* IRIS_SRC_TRACE_EVENTS_H */
