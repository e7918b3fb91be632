/* SPDX-License-Identifier: MIT
 *
 * The contents of all flight records of a job at one moment. Needs only a
 * descriptor of the records, so any process of the same user can make a report.
 */
#ifndef IRIS_SRC_REPORT_SNAPSHOT_H
#define IRIS_SRC_REPORT_SNAPSHOT_H

#include <stddef.h>
#include <stdio.h>

#include "control/control.h"
#include "control/flight_record.h"

/* The most calls of a rank in progress. */
#define IRIS_REPORT_OPEN_CALLS 8
#define IRIS_REPORT_SIGNALS 16
#define IRIS_REPORT_KERNELS 8
#define IRIS_REPORT_CAUSE 900

/* The state of a process that no longer exists, besides those of /proc. */
#define IRIS_PROCESS_GONE 'X'
#define IRIS_PROCESS_ZOMBIE 'Z'

/* The state of the job, the worst last. */
enum iris_verdict {
    IRIS_VERDICT_RUNNING,  /* no rank has waited for long */
    IRIS_VERDICT_LATE,     /* some rank waits for an event that may still
                            * happen */
    IRIS_VERDICT_STOPPED,  /* waits for a rank that is stopped; or all ranks
                            * are stopped */
    IRIS_VERDICT_MISMATCH, /* members made different calls, and got an error */
    IRIS_VERDICT_HUNG,     /* waits for an event that can no longer happen */
    IRIS_VERDICT_LOST,     /* waits for a rank that died or left */
};

/* The state of one rank. */
struct iris_report_rank {
    int pid;
    int tid;
    int known;        /* its record is here; otherwise only its state, the host
                     * and the last collective call are filled in */
    int is_elsewhere; /* on another host: `known` if it has answered */
    char host[IRIS_RECORD_HOST]; /* its name; empty: the job has one host, or
                                  * it has never answered */
    unsigned state;              /* enum iris_rank_state */
    int busy;                    /* 1: in the collective call `call` */
    char call[64]; /* the last one that it began, number `calls` */
    uint64_t calls;
    char reason[IRIS_REASON_BYTES + 1]; /* a rank's of another host for
                                         * leaving; empty: none known */
    char process; /* 'R', 'S', 'T', 'Z', 'X' and so on, as in ps */
    int num_cus;
    uint64_t heap_bytes;
    uint64_t heap_used;
    uint64_t host_calls;
    uint64_t peer_bytes[IRIS_RECORD_PEERS];
    uint64_t launched[IRIS_RECORD_STREAMS];
    char job[IRIS_RECORD_JOB];
    struct iris_record_call begun;    /* the newest; id 0: none */
    struct iris_record_call finished; /* the newest that has ended */
    /* The newest signals and waits on streams, and the newest kernels
     * launched. */
    struct iris_record_call signals[IRIS_REPORT_SIGNALS];
    struct iris_record_call stream_waits[IRIS_REPORT_SIGNALS];
    char kernels[IRIS_REPORT_KERNELS][IRIS_RECORD_NAME];
    int num_kernels;
    int threads; /* on another host: those of its process, except the
                  * library's */
    int helpers; /* threads of its process other than ranks and the library's */
    int num_open;
    struct iris_record_call open[IRIS_REPORT_OPEN_CALLS];
    int num_streams;
    struct iris_record_stream streams[IRIS_RECORD_STREAMS];
    int num_waits;
    struct iris_record_wait waits[IRIS_RECORD_WAITS];
    char waits_live[IRIS_RECORD_WAITS]; /* 1: the wait was live between two
                                         * readings */
    char is_free; /* some part of it may go on, and may end others' waits */
};

struct iris_report {
    int num_ranks;
    uint64_t job; /* rank 0's process, and the index of the job in it; 0:
                   * unknown */
    int64_t start_ns;
    int64_t now_ns;
    int64_t old_ns; /* age from which waits are mentioned */
    enum iris_verdict verdict;
    char cause[IRIS_REPORT_CAUSE];
    int root; /* the rank that the cause is about; -1: none */
    struct iris_report_rank ranks[];
};

/* One reading. Ranks of other hosts have IRIS_ANSWER_MS to answer. The caller frees it with free(). IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_INVALID, IRIS_ERR_MISMATCH, IRIS_ERR_SYSTEM */
iris_status_t iris_i_report_read(int fd, struct iris_report **report_p);

/* The calls in the record of a rank, the oldest first; returns their number, or
 * -1 if the record cannot be read. */
int iris_i_report_calls(int fd, int rank,
                        struct iris_record_call calls[IRIS_RECORD_CALLS]);

/* ---- Ranks ---- */

/* Whether the rank's process or its context has ended without the others. */
int iris_i_rank_is_lost(const struct iris_report_rank *rank);
int iris_i_rank_is_stopped(const struct iris_report_rank *rank);

/* Whether the rank does nothing any more: it finalized, or is lost. */
int iris_i_rank_has_ended(const struct iris_report_rank *rank);

/* ---- Waits ---- */

/* Whether a workgroup waits; whether a kernel waits that the library launched
 * for a collective; whether the wait counts. */
int iris_i_wait_is_in_kernel(const struct iris_record_wait *wait);
int iris_i_wait_is_of_gpu(const struct iris_record_wait *wait);
int iris_i_wait_is_collective(const struct iris_record_wait *wait);
int iris_i_wait_counts(const struct iris_report_rank *rank, int wait);

/* The first wait of a rank that counts and is of that kind; NULL: none. */
const struct iris_record_wait *
iris_i_find_wait(const struct iris_report *report, int rank,
                 int (*sort)(const struct iris_record_wait *wait));

/* Marks the ranks that wait; returns their number. */
int iris_i_mark_waiting(const struct iris_report *report, char *marked);

#endif /* IRIS_SRC_REPORT_SNAPSHOT_H */
