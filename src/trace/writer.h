/* SPDX-License-Identifier: MIT
 *
 * Pieces of events of one rank's file, and calls of the host in it.
 */
#ifndef IRIS_SRC_TRACE_WRITER_H
#define IRIS_SRC_TRACE_WRITER_H

#include "trace/out.h"
#include "trace/recording.h"

#define IRIS_WRITER_TRACKS 4096
#define IRIS_WRITER_STREAMS 256

/* Bytes that went to or came from one peer. */
struct iris_writer_peer {
    uint64_t bytes;
    uint64_t written; /* what the last counter said */
    int64_t next_ns;
};

struct iris_writer {
    struct iris_trace *trace;
    struct iris_out *out;
    struct iris_writer_peer *peers;
    int64_t last_ns; /* the latest time there was */
    uint64_t num_device, num_calls, dropped;
    const void *streams[IRIS_WRITER_STREAMS]; /* by their numbers */
    unsigned num_streams;
    const struct iris_trace_call **launches; /* by their ids */
    size_t num_launches;
    unsigned char seen[IRIS_WRITER_TRACKS]; /* tracks that have their name */
    unsigned char seen_hosts[IRIS_WRITER_TRACKS]; /* the same of threads */
    unsigned char seen_streams[IRIS_WRITER_STREAMS + 1];
};

static inline int iris_i_writer_rank(const struct iris_writer *writer)
{
    return iris_i_rank(writer->trace->iris);
}

/* Gives the track its name, unless *seen says that it has one. */
void iris_i_writer_name_track(struct iris_writer *writer, unsigned char *seen,
                              const char *track, const char *name);

/* "ph", "ts" and "dur"; an event that has not ended is an instant. */
void iris_i_writer_times(struct iris_writer *writer, int64_t begin,
                         int64_t end);

/* Counts what goes to or comes from another rank. */
void iris_i_writer_count_bytes(struct iris_writer *writer, int rank,
                               uint64_t bytes, int64_t ns);

/* Writes all calls of the host. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_writer_calls(struct iris_writer *writer);

/* Ahead of the end of the file. */
void iris_i_writer_last_counters(struct iris_writer *writer);

#endif /* IRIS_SRC_TRACE_WRITER_H */
