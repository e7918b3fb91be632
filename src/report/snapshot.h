/* SPDX-License-Identifier: MIT
 *
 * What the flight records of a job's ranks say at one moment. Needs a
 * descriptor of the records and nothing else, so that any process of the same
 * user can make a report.
 */
#ifndef IRIS_SRC_REPORT_SNAPSHOT_H
#define IRIS_SRC_REPORT_SNAPSHOT_H

#include <stddef.h>
#include <stdio.h>

#include "control/control.h"
#include "control/flight_record.h"

/* Calls of a rank that are under way, at most. */
#define IRIS_REPORT_OPEN_CALLS 8
#define IRIS_REPORT_SIGNALS 16
#define IRIS_REPORT_KERNELS 8
#define IRIS_REPORT_CAUSE 900

/* What a process is, beyond what /proc says. */
#define IRIS_PROCESS_GONE 'X'
#define IRIS_PROCESS_ZOMBIE 'Z'

/* How things stand, worst last. */
enum iris_verdict {
    IRIS_VERDICT_RUNNING,  /* nobody waits for long */
    IRIS_VERDICT_LATE,     /* somebody waits for what may still come */
    IRIS_VERDICT_STOPPED,  /* for a rank that was stopped; or all ranks are */
    IRIS_VERDICT_MISMATCH, /* members made different calls, and got an error */
    IRIS_VERDICT_HUNG,     /* for what can come no more */
    IRIS_VERDICT_LOST,     /* for a rank that died or left */
};

/* One rank as it was. */
struct iris_report_rank {
    int pid;
    int tid;
    int known; /* it has a record; else only the next three are filled in */
    unsigned state; /* enum iris_rank_state */
    int busy;       /* in the collective call `call` */
    char call[64];  /* the last it has begun, after `calls` of them */
    uint64_t calls;
    char process; /* 'R', 'S', 'T', 'Z', 'X' and so on; as ps has it */
    int num_cus;
    uint64_t heap_bytes;
    uint64_t heap_used;
    uint64_t host_calls;
    uint64_t peer_bytes[IRIS_RECORD_PEERS];
    uint64_t launched[IRIS_RECORD_STREAMS];
    char job[IRIS_RECORD_JOB];
    struct iris_record_call begun;    /* the newest; id 0: none */
    struct iris_record_call finished; /* the newest that is over */
    /* The newest signals and waits on streams, and kernels that it launched. */
    struct iris_record_call signals[IRIS_REPORT_SIGNALS];
    struct iris_record_call stream_waits[IRIS_REPORT_SIGNALS];
    char kernels[IRIS_REPORT_KERNELS][IRIS_RECORD_NAME];
    int num_kernels;
    int helpers; /* threads of its process that are no rank's or the library's
                  */
    int num_open;
    struct iris_record_call open[IRIS_REPORT_OPEN_CALLS];
    int num_streams;
    struct iris_record_stream streams[IRIS_RECORD_STREAMS];
    int num_waits;
    struct iris_record_wait waits[IRIS_RECORD_WAITS];
    char waits_live[IRIS_RECORD_WAITS]; /* 1: it went on between two reads */
    char is_free; /* something of it may go on: it may end others' waits */
};

struct iris_report {
    int num_ranks;
    uint64_t job; /* rank 0's process, and its how manieth job; 0: not known */
    int64_t start_ns;
    int64_t now_ns;
    int64_t old_ns; /* a wait this old is worth a word */
    enum iris_verdict verdict;
    char cause[IRIS_REPORT_CAUSE];
    int root; /* the rank that the cause is about; -1: none */
    struct iris_report_rank ranks[];
};

/* One reading. The caller frees it by free(). IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_INVALID, IRIS_ERR_MISMATCH, IRIS_ERR_SYSTEM */
iris_status_t iris_i_report_read(int fd, struct iris_report **report_p);

/* The calls that the record of a rank has, the oldest first; returns how many.
 * -1: it cannot be read. */
int iris_i_report_calls(int fd, int rank,
                        struct iris_record_call calls[IRIS_RECORD_CALLS]);

/* ---- Ranks ---- */

/* A rank whose process or whose context has ended without the others. */
int iris_i_rank_is_lost(const struct iris_report_rank *rank);
int iris_i_rank_is_stopped(const struct iris_report_rank *rank);

/* Nothing more comes of it: it finalized, or is lost. */
int iris_i_rank_has_ended(const struct iris_report_rank *rank);

/* ---- Waits ---- */

/* A workgroup that waits; the waits of a kernel that the library has launched
 * for a collective; whether one wait is among those that count. */
int iris_i_wait_is_in_kernel(const struct iris_record_wait *wait);
int iris_i_wait_is_of_gpu(const struct iris_record_wait *wait);
int iris_i_wait_is_collective(const struct iris_record_wait *wait);
int iris_i_wait_counts(const struct iris_report_rank *rank, int wait);

/* The first wait of a rank that counts and is of that sort; NULL: none. */
const struct iris_record_wait *
iris_i_find_wait(const struct iris_report *report, int rank,
                 int (*sort)(const struct iris_record_wait *wait));

/* Marks the ranks that wait; returns how many. */
int iris_i_mark_waiting(const struct iris_report *report, char *marked);

#endif /* IRIS_SRC_REPORT_SNAPSHOT_H */
