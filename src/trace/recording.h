/* SPDX-License-Identifier: MIT
 *
 * What one context has recorded: operations of kernels in columns on its heap,
 * host calls in an array, and how their times compare.
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
    IRIS_TRACE_END, /* duration_cycles: when it ended; 0: it has not */
    IRIS_TRACE_OP_INDEX,
    IRIS_TRACE_PAYLOAD,
    /* Ours, behind upstream's. */
    IRIS_TRACE_VALUE, /* what the word is after the operation */
    IRIS_TRACE_WHAT,  /* iris_d_packed(), and IRIS_D_HELD */
    IRIS_TRACE_COLUMNS,
};

/* What a recorded operation of the CPU also has. */
struct iris_trace_note {
    uint64_t launch; /* the host event of the kernel's run */
    uint32_t kernel; /* its name's number */
    uint32_t lanes;  /* accesses that this event stands for; see observe.c */
};

/* One call of the host. */
struct iris_trace_call {
    int64_t begin_ns;
    int64_t end_ns; /* 0: it has not ended */
    struct iris_host_event event;
    uint32_t kernel;  /* its name's number, in place of event.kernel */
    uint32_t members; /* of a collective's group: that text's number */
    uint32_t sends,
        receives; /* of a collective of messages: the same; 0: none */
    uint32_t thread;
    int user; /* an event of the program's own: its id; else 0 */
};

/* How a clock of device ticks becomes this host's nanoseconds, and those become
 * rank 0's. */
struct iris_trace_clock {
    int64_t ticks, ns; /* at one time, the first measured pair */
    double ns_per_tick;
    int64_t device_error_ns;
    int64_t least_ns, most_ns; /* what offset_ns can be */
    int64_t offset_ns;         /* to add for rank 0's clock */
    int64_t rank_error_ns;
    int64_t start_ns; /* of the trace, by rank 0's clock: time 0 of files */
};

/* The counters are in lines of their own, since all lanes add to both. */
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
    unsigned generation; /* no other trace of this process has it */
    char *memory;        /* on the heap */
    char *columns[IRIS_TRACE_COLUMNS]; /* there */
    size_t max_events;
    struct iris_trace_note *notes; /* one for each event; CPU only */
    struct iris_trace_call *calls;
    size_t max_calls;
    _Atomic uint64_t num_calls; /* dropped ones included */
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

/* The context's trace, or NULL and IRIS_ERR_STATE: it has none. `call` is for
 * the message. */
struct iris_trace *iris_i_trace_of(const iris_t *iris, const char *call);

/* ---- Columns ---- */

/* Bytes of the whole, where a column begins, and of one of its elements. */
size_t iris_i_trace_bytes(size_t max_events);
size_t iris_i_trace_offset(size_t max_events, enum iris_trace_column column);
size_t iris_i_trace_width(enum iris_trace_column column);

/* Copies from the columns to host memory; on the CPU also when the backend has
 * a fault. */
iris_status_t iris_i_trace_read(const struct iris_trace *trace, void *to,
                                const void *from, size_t bytes);

/* Events that kernels have begun, dropped ones included. */
iris_status_t iris_i_trace_count(struct iris_trace *trace, uint64_t *count_p);

/* Some of the recorded operations, in host memory: the columns one behind the
 * other. The caller frees the memory by free(). */
#define IRIS_TRACE_CHUNK ((size_t)16384)
struct iris_trace_chunk {
    char *columns[IRIS_TRACE_COLUMNS];
    char *memory;
};

iris_status_t iris_i_trace_chunk_open(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk);

/* Fetches those from `first` on, a multiple of IRIS_TRACE_CHUNK: `count` of
 * them, or as many as there is space for. */
iris_status_t iris_i_trace_chunk_read(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk,
                                      size_t first, size_t count);

/* Operation i, of those that were fetched. */
void iris_i_trace_row(const struct iris_trace_chunk *chunk, size_t i,
                      int64_t row[IRIS_TRACE_COLUMNS]);

#endif /* IRIS_SRC_TRACE_RECORDING_H */
