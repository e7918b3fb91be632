/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/trace: traces of kernels and host calls; it knows
 * no tensors and no collectives.
 */
#ifndef IRIS_SRC_TRACE_INTERNAL_H
#define IRIS_SRC_TRACE_INTERNAL_H

#include <iris/trace.h>

#include "context/context.h"
#include "trace/trace.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- record.c ---- */

/* The records of one context: operations of kernels in columns on its heap,
 * host calls in an array, and the conversion of their times. */

/* The columns in the order of the device context's words. */
enum iris_trace_column {
    IRIS_TRACE_EVENT_ID,
    IRIS_TRACE_PID,
    IRIS_TRACE_PID_M,
    IRIS_TRACE_PID_N,
    IRIS_TRACE_CUR_RANK,
    IRIS_TRACE_TARGET_RANK,
    IRIS_TRACE_XCC_ID,
    IRIS_TRACE_CU_ID,
    IRIS_TRACE_TIMESTAMP,
    IRIS_TRACE_ADDRESS,
    IRIS_TRACE_END, /* duration_cycles: time of its end; 0: it has not ended */
    IRIS_TRACE_OP_INDEX,
    IRIS_TRACE_PAYLOAD,
    /* Our own, after upstream's. */
    IRIS_TRACE_VALUE, /* value of the word after the operation */
    IRIS_TRACE_WHAT,  /* iris_d_packed(), and IRIS_D_HELD */
    IRIS_TRACE_COLUMNS,
};

/* Additional data of an operation recorded on the CPU. */
struct iris_trace_note {
    uint64_t launch; /* the host event of the kernel's run */
    uint32_t kernel; /* number of its name */
    uint32_t lanes;  /* accesses that this event represents; see record.c */
};

/* One call of the host. */
struct iris_trace_call {
    int64_t begin_ns;
    int64_t end_ns; /* 0: it has not ended */
    struct iris_host_event event;
    uint32_t kernel;  /* number of its name, in place of event.kernel */
    uint32_t members; /* number of the text with the members of a
                       * collective's group */
    uint32_t sends,
        receives; /* numbers of texts for a collective of messages; 0: none */
    uint32_t thread;
    size_t outer; /* place + 1 of the public call that made this call; else 0 */
    int user;     /* id of an event of the program's own; else 0 */
};

/* Conversion of a clock of device ticks to this host's nanoseconds, and of
 * those to rank 0's. */
struct iris_trace_clock {
    int64_t ticks, ns; /* at the same time, the first measured pair */
    double ns_per_tick;
    int64_t device_error_ns;
    int64_t least_ns, most_ns; /* range of possible values of offset_ns */
    int64_t offset_ns;         /* the difference to rank 0's clock */
    int64_t rank_error_ns;
    int64_t start_ns; /* begin of the trace by rank 0's clock: time 0 of
                       * files */
};

/* The counters have separate cache lines, since all lanes add to both. */
#define IRIS_TRACE_OP_INDEX_WORD 32
#define IRIS_TRACE_CLOCK_OFFSET 192
#define IRIS_TRACE_HEADER_BYTES 256

#define IRIS_TRACE_NAME_BYTES 48
#define IRIS_TRACE_NAMES 256
#define IRIS_TRACE_KERNELS 1024

struct iris_trace {
    struct iris_extension extension;
    iris_t *iris;
    struct iris_observer observer;
    unsigned generation; /* unique among the traces of this process */
    char *memory;        /* on the heap */
    char *columns[IRIS_TRACE_COLUMNS]; /* there */
    size_t max_events;
    struct iris_trace_note *notes; /* one for each event; CPU only */
    struct iris_trace_call *calls;
    size_t max_calls;
    _Atomic uint64_t num_calls; /* including dropped ones */
    atomic_uint num_threads;
    struct iris_trace_clock clock;
    pthread_mutex_t lock;
    char *kernels[IRIS_TRACE_KERNELS]; /* those below num_kernels stay */
    unsigned num_kernels IRIS_GUARDED_BY(lock);
    struct {
        int event;
        char name[IRIS_TRACE_NAME_BYTES];
    } names[IRIS_TRACE_NAMES] IRIS_GUARDED_BY(lock);
    unsigned num_names IRIS_GUARDED_BY(lock);
};

/* The context's trace, or NULL and IRIS_ERR_STATE if it has no trace. `call` is
 * for the message. */
struct iris_trace *iris_i_trace_of(const iris_t *iris, const char *call);

/* The name of the event with that id. `text` is a buffer for events without a
 * name. */
const char *iris_i_trace_event_name(struct iris_trace *trace, int event,
                                    char text[IRIS_TRACE_NAME_BYTES]);
/* The name of a call in the trace: "all_reduce 4096 f32". `kernel` takes the
 * place of event->kernel. */
#define IRIS_TRACE_CALL_BYTES 128
void iris_i_trace_call_name(const iris_t *iris,
                            const struct iris_host_event *event,
                            const char *kernel,
                            char text[IRIS_TRACE_CALL_BYTES]);

/* The rank whose memory a call accesses besides its own, also by a pointer of
 * iris_as_remote(); -1: none. */
int iris_i_trace_target(const iris_t *iris,
                        const struct iris_host_event *event);

iris_status_t iris_i_trace_device(void *self,
                                  const struct iris_cpu_event *event);
void iris_i_trace_host(void *self, const struct iris_host_event *event);

/* Whether the event is of a stream's thread, which runs a command. */
static inline bool iris_i_trace_is_command(const struct iris_host_event *event)
{
    return event->op >= IRIS_HOST_RUN_COPY && event->op != IRIS_HOST_FUSED;
}

/* ---- Columns ---- */

/* The total bytes, the offset of a column, and the bytes of one of its
 * elements. */
size_t iris_i_trace_bytes(size_t max_events);
size_t iris_i_trace_offset(size_t max_events, enum iris_trace_column column);

/* Number of events that kernels have begun, including dropped ones. */
iris_status_t iris_i_trace_count(struct iris_trace *trace, uint64_t *count_p);

/* Some of the recorded operations, in host memory: the columns one behind the
 * other. The caller frees the memory with free(). */
#define IRIS_TRACE_CHUNK ((size_t)16384)
struct iris_trace_chunk {
    char *columns[IRIS_TRACE_COLUMNS];
    char *memory;
};

iris_status_t iris_i_trace_chunk_open(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk);

/* Fetches operations from `first` on, a multiple of IRIS_TRACE_CHUNK: `count`
 * of them, or as many as fit. */
iris_status_t iris_i_trace_chunk_read(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk,
                                      size_t first, size_t count);

/* Operation i of the fetched ones. */
void iris_i_trace_row(const struct iris_trace_chunk *chunk, size_t i,
                      int64_t row[IRIS_TRACE_COLUMNS]);

/* ---- enable.c ---- */

/* Measures a pair of the device's clock and the host's. With `first`, the
 * conversion begins with it; otherwise it makes the conversion more exact.
 * Waits for the default stream. */
iris_status_t iris_i_trace_measure_device(struct iris_trace *trace, int first);

/* Measures this rank's clock against rank 0's, after its own preparation with
 * result `status`. With `first`, also agrees on the time of the trace's begin.
 * Collective. */
iris_status_t iris_i_trace_measure_ranks(struct iris_trace *trace, int first,
                                         iris_status_t status);

/* Converts the device's ticks, and this host's clock, to nanoseconds since the
 * trace began. */
int64_t iris_i_trace_device_ns(const struct iris_trace_clock *clock,
                               int64_t ticks);
int64_t iris_i_trace_host_ns(const struct iris_trace_clock *clock, int64_t ns);

/* ---- ranges.c ---- */

/* Begins to mark the context's calls for a profiler: IRIS_TRACE is nvtx or
 * roctx. A warning says why it cannot. */
void iris_i_trace_mark_calls(iris_t *iris);

/* ---- write.c ---- */

/* Writes it, completely or not at all. */
iris_status_t iris_i_trace_write(struct iris_trace *trace, const char *path);

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

#endif /* IRIS_SRC_TRACE_INTERNAL_H */
