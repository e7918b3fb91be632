/* SPDX-License-Identifier: MIT
 *
 * The interface of src/report: reads, judges and prints the flight records of
 * a job, in any process; knows no context.
 */
#ifndef IRIS_SRC_REPORT_REPORT_H
#define IRIS_SRC_REPORT_REPORT_H

#include "control/control.h"
#include "control/records.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- snapshot.c ---- */

/* The contents of all flight records of a job at one moment. Needs only a
 * descriptor of the records, so any process of the same user can make a report. */

/* The most calls of a rank in progress. */
#define IRIS_REPORT_OPEN_CALLS 8
#define IRIS_REPORT_SIGNALS 16
#define IRIS_REPORT_KERNELS 8
#define IRIS_REPORT_HOST_WAITS 4
#define IRIS_REPORT_CAUSE 900

/* The state of a process that no longer exists, besides those of /proc. */
#define IRIS_PROCESS_GONE 'X'
#define IRIS_PROCESS_ZOMBIE 'Z'

/* The state of the job, the worst last. */
enum iris_hang_verdict {
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
    uint64_t heap_reserved; /* bytes that the heap may grow to */
    uint64_t heap_mapped;   /* bytes that have memory */
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
    /* Waits of its host for streams. They only tell the place of the call. */
    int num_host_waits;
    struct iris_record_wait host_waits[IRIS_REPORT_HOST_WAITS];
    struct iris_source sites[IRIS_RECORD_SITES];
    uint64_t start_ticks; /* start time of its process */
};

struct iris_report {
    int num_ranks;
    uint64_t job; /* rank 0's process, and the index of the job in it; 0:
                   * unknown */
    int64_t start_ns;
    int64_t now_ns;
    int64_t old_ns; /* age from which waits are mentioned */
    enum iris_hang_verdict verdict;
    char cause[IRIS_REPORT_CAUSE];
    int root;   /* the rank that the cause is about; -1: none */
    int is_own; /* the job's and this process's user are the same */
    struct iris_report_rank ranks[];
};

/* One reading. The caller frees it with free(). IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_INVALID, IRIS_ERR_MISMATCH, IRIS_ERR_SYSTEM */
iris_status_t iris_i_report_read(int fd, struct iris_report **report_p);

/* The calls in the record of a rank, the oldest first; returns their number, or
 * -1 if the record cannot be read. */
int iris_i_report_calls(int fd, int rank,
                        struct iris_record_call calls[IRIS_RECORD_CALLS]);

/* Bytes of the character at `text`. 0 if it must not be printed directly: a
 * control character, or not UTF-8. */
size_t iris_i_printed_char(const char *text);

/* Escapes such bytes as "\x1b", in place, in a field of at most 256 bytes. All
 * text from a job's records passes through here. It is cut if it gets too
 * long. */
void iris_i_clean(char *text, size_t bytes);

/* Appends to `text`. */
void __attribute__((format(printf, 3, 4)))
iris_i_append(char *text, size_t bytes, const char *format, ...);

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

/* The first wait of a rank that counts and is of that sort. `sort` NULL: any wait,
 * except those that repeat atomic operations. Returns NULL without such a wait. */
const struct iris_record_wait *
iris_i_find_wait(const struct iris_report *report, int rank,
                 int (*sort)(const struct iris_record_wait *wait));

/* Marks the ranks that wait; returns their number. */
int iris_i_mark_waiting(const struct iris_report *report, char *marked);

/* ---- words.c ---- */

/* Functions that return a text return a static one; the others fill a
 * buffer. */
const char *iris_i_verdict_name(enum iris_hang_verdict verdict);
const char *iris_i_host_op_name(int op);
const char *iris_i_process_name(char process);
const char *iris_i_state_name(unsigned state);
void iris_i_describe_group(const struct iris_record_wait *wait, char *text,
                           size_t bytes);
void iris_i_describe_wait(const struct iris_record_wait *wait, char *text,
                          size_t bytes);
void iris_i_describe_call(const struct iris_record_call *call, char *text,
                          size_t bytes);
void iris_i_describe_doing(const struct iris_report *report, int rank,
                           char *text, size_t bytes);

/* Whether a call of the host may wait for other ranks or for streams. */
int iris_i_host_op_waits(int op);

/* 0 if it is negative. */
double iris_i_seconds(int64_t ns);

/* "4711.2": the process of rank 0, and the index of the job in it. */
#define IRIS_REPORT_NAME 48
void iris_i_report_name(const struct iris_report *report,
                        char name[IRIS_REPORT_NAME]);

/* Appends to the report's cause. */
#define iris_i_say(report, ...) \
    iris_i_append((report)->cause, sizeof(report)->cause, __VA_ARGS__)
/* "ranks 0, 2"; "rank 1 runs kernel ...". */
void iris_i_say_ranks(struct iris_report *report, const char *marked);
void iris_i_say_doing(struct iris_report *report, int rank);

/* ---- incident.c ---- */

/* Reads all ranks twice, `apart_ms` apart, and judges. The caller frees the
 * report with free(). IRIS_ERR_NO_MEMORY, IRIS_ERR_INVALID and
 * IRIS_ERR_MISMATCH (`fd` is not a job's records, or is from another version of
 * Iris) */
iris_status_t iris_i_report_make(int fd, int apart_ms,
                                 struct iris_report **report_p);

/* Judges a reading, given the one before: the ranks that can go on, the verdict
 * and its cause. */
void iris_i_report_judge(struct iris_report *report,
                         const struct iris_report *before);

/* Writes the report of this incident, unless another rank does so or has done
 * so. It goes to stderr and, if `prefix` is not empty, to
 * <prefix>_report_<n>.json. Logs errors. */
void iris_i_report_incident(struct iris_control *control, const char *prefix);

/* Writes the report of a call that members made differently, with this thread's
 * message as the cause. At most once a second for the job. */
void iris_i_report_mismatch(struct iris_control *control, const char *prefix);

/* From now on, SIGUSR2 to this process prints the report of the job, unless the
 * program handles or ignores the signal. `prefix` lives until _unwatch(). */
void iris_i_report_watch(struct iris_control *control, const char *prefix);

/* Waits for the end of a report. Does nothing for a job that was not
 * watched. */
void iris_i_report_unwatch(struct iris_control *control);

/* ---- find.c ---- */

/* Files that were seen; later ones than this number are ignored. */
struct iris_report_seen {
    int count;
    struct {
        dev_t dev;
        ino_t ino;
    } files[256];
};

/* Whether the file is new. It is added to the seen files. */
int iris_i_report_is_new(struct iris_report_seen *seen, int fd);

/* Opens, for reading, the segment of the process's nth job (from 0). -1, with
 * errno: ENOENT, it has no more; ESRCH, no such process; EACCES. */
int iris_i_report_open(int pid, int n);

/* ---- print.c ---- */

void iris_i_report_text(const struct iris_report *report, FILE *out);

void iris_i_report_json(const struct iris_report *report, FILE *out);

#endif /* IRIS_SRC_REPORT_REPORT_H */
