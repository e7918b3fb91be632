/* SPDX-License-Identifier: MIT
 *
 * The parts of events in one rank's file, and its calls of the host.
 */
#ifndef IRIS_SRC_TRACE_WRITER_H
#define IRIS_SRC_TRACE_WRITER_H

#include "trace/out.h"
#include "trace/recording.h"

#define IRIS_WRITER_TRACKS 4096
#define IRIS_WRITER_STREAMS 256

/* Bytes to and from one peer. */
struct iris_writer_peer {
    uint64_t bytes;
    uint64_t written; /* value of the last counter */
    int64_t next_ns;
};

struct iris_writer {
    struct iris_trace *trace;
    struct iris_out *out;
    struct iris_writer_peer *peers;
    int64_t last_ns; /* the latest time so far */
    uint64_t num_device, num_calls, dropped;
    const void *streams[IRIS_WRITER_STREAMS]; /* indexed by their numbers */
    unsigned num_streams;
    const struct iris_trace_call **launches; /* sorted by their ids */
    size_t num_launches;
    unsigned char seen[IRIS_WRITER_TRACKS];       /* tracks that were named */
    unsigned char seen_hosts[IRIS_WRITER_TRACKS]; /* threads that were named */
    unsigned char seen_streams[IRIS_WRITER_STREAMS + 1];
};

static inline int iris_i_writer_rank(const struct iris_writer *writer)
{
    return iris_i_rank(writer->trace->iris);
}

/* Names the track, unless *seen says that it has a name. */
void iris_i_writer_name_track(struct iris_writer *writer, unsigned char *seen,
                              const char *track, const char *name);

/* "ph", "ts" and "dur". An event that has not ended becomes an instant
 * event. */
void iris_i_writer_times(struct iris_writer *writer, int64_t begin,
                         int64_t end);

/* Counts bytes to or from another rank. */
void iris_i_writer_count_bytes(struct iris_writer *writer, int rank,
                               uint64_t bytes, int64_t ns);

/* Writes all calls of the host. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_writer_calls(struct iris_writer *writer);

/* Called before the end of the file. */
void iris_i_writer_last_counters(struct iris_writer *writer);

#endif /* IRIS_SRC_TRACE_WRITER_H */
