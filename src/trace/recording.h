/* SPDX-License-Identifier: MIT
 *
 * The records of one context: operations of kernels in columns on its heap,
 * host calls in an array, and the conversion of their times.
 */
#ifndef IRIS_SRC_TRACE_RECORDING_H
#define IRIS_SRC_TRACE_RECORDING_H

#include <pthread.h>
#include <stdatomic.h>

#include <iris/trace.h>

#include "context/context_type.h"

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
    uint32_t lanes;  /* accesses that this event represents; see observe.c */
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
    int user; /* id of an event of the program's own; else 0 */
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
    pthread_mutex_t lock; /* guards the names */
    char *kernels[IRIS_TRACE_KERNELS];
    unsigned num_kernels;
    struct {
        int event;
        char name[IRIS_TRACE_NAME_BYTES];
    } names[IRIS_TRACE_NAMES];
    unsigned num_names;
};

/* The context's trace, or NULL and IRIS_ERR_STATE if it has no trace. `call` is
 * for the message. */
struct iris_trace *iris_i_trace_of(const iris_t *iris, const char *call);

/* ---- Columns ---- */

/* The total bytes, the offset of a column, and the bytes of one of its
 * elements. */
size_t iris_i_trace_bytes(size_t max_events);
size_t iris_i_trace_offset(size_t max_events, enum iris_trace_column column);
size_t iris_i_trace_width(enum iris_trace_column column);

/* Copies from the columns to host memory. On the CPU, this works even if the
 * backend has a fault. */
iris_status_t iris_i_trace_read(const struct iris_trace *trace, void *to,
                                const void *from, size_t bytes);

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

#endif /* IRIS_SRC_TRACE_RECORDING_H */
