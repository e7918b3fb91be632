/* SPDX-License-Identifier: MIT
 *
 * Reports of a job: what the flight records of its ranks say, read at two
 * moments, and who waits for whom. Needs a descriptor of the records
 * and nothing else, so that any process of the same user can make one.
 */
#ifndef IRIS_SRC_REPORT_REPORT_H
#define IRIS_SRC_REPORT_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include "control/control.h"
#include "control/record.h"

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

/* Reads all ranks twice, `apart_ms` apart, and judges. The caller frees it by
 * free(). IRIS_ERR_NO_MEMORY, IRIS_ERR_INVALID and IRIS_ERR_MISMATCH (`fd` is
 * not that of a job's records, or of another version of Iris) */
iris_status_t iris_i_report_make(int fd, int apart_ms,
                                 struct iris_report **report_p);

/* A workgroup that waits; the waits of a kernel that the library has launched
 * for a collective; whether one wait is among those that count. */
int iris_i_wait_is_in_kernel(const struct iris_record_wait *wait);
int iris_i_wait_is_of_gpu(const struct iris_record_wait *wait);
int iris_i_wait_is_collective(const struct iris_record_wait *wait);
int iris_i_wait_counts(const struct iris_report_rank *rank, int wait);

/* The same of two verdicts (stopped.c). */
void iris_i_report_explain_stopped(struct iris_report *report);
void iris_i_report_explain_running(struct iris_report *report);

/* Marks the ranks that wait; returns how many. (cause.c) */
int iris_i_report_mark_waiting(const struct iris_report *report, char *marked);

/* What is known of the word that a wait of `rank` is for, and a guess (word.c).
 */
void iris_i_report_explain_word(struct iris_report *report, int rank,
                                const struct iris_record_wait *wait);

/* The cause, in a sentence, of the verdict (cause.c); `hung` has for each rank
 * whether it can go on no more. */
void iris_i_report_explain(struct iris_report *report, const char *hung);

/* Counts the helpers of all ranks, from /proc (helpers.c). */
void iris_i_report_count_helpers(struct iris_report *report);

/* The calls that the record of a rank has, the oldest first; returns how many.
 * -1: it cannot be read. (snapshot.c) */
int iris_i_report_calls(int fd, int rank,
                        struct iris_record_call calls[IRIS_RECORD_CALLS]);

/* One reading (snapshot.c); and what it says (analyse.c), given the one before.
 */
iris_status_t iris_i_report_read(int fd, struct iris_report **report_p);
void iris_i_report_judge(struct iris_report *report,
                         const struct iris_report *before);

/* The report as text (text.c), as JSON (json.c); both have all of it. */
void iris_i_report_text(const struct iris_report *report, FILE *out);
void iris_i_report_json(const struct iris_report *report, FILE *out);

/* Words for what is in a report (words.c). The texts of the first are static,
 * the others fill what they are given. */
const char *iris_i_verdict_name(enum iris_verdict verdict);
const char *iris_i_host_op_name(int op);
const char *iris_i_process_name(char process);
const char *iris_i_state_name(unsigned state);
/* "byte 8 of "inbox""; "ranks 0, 2". */
void iris_i_describe_word(const struct iris_record_wait *wait, char *text,
                          size_t bytes);
void iris_i_describe_ranks(const struct iris_report *report, const char *marked,
                           char *text, size_t bytes);
void iris_i_describe_group(const struct iris_record_wait *wait, char *text,
                           size_t bytes);
void iris_i_describe_wait(const struct iris_record_wait *wait, char *text,
                          size_t bytes);
void iris_i_describe_call(const struct iris_record_call *call, char *text,
                          size_t bytes);
void iris_i_describe_doing(const struct iris_report *report, int rank,
                           char *text, size_t bytes);

/* ---- Text of other processes (escape.c) ---- */

/* Bytes of the character at `text`; 0 if it is not to be printed as it is: a
 * control character, or no UTF-8. */
size_t iris_i_report_char(const char *text);

/* Escapes such bytes of a field of at most 256 bytes as "\x1b", in its place.
 * All text that is read of a job goes through here, and is cut if it gets too
 * long.
 */
void iris_i_report_clean(char *text, size_t bytes);

/* Adds to what is in `text`. */
void __attribute__((format(printf, 3, 4)))
iris_i_report_append(char *text, size_t bytes, const char *format, ...);

/* A rank whose process or whose context has ended without the others. */
int iris_i_report_is_lost(const struct iris_report_rank *rank);
int iris_i_report_is_stopped(const struct iris_report_rank *rank);

/* Nothing more comes of it: it finalized, or is lost. */
int iris_i_report_has_ended(const struct iris_report_rank *rank);

/* ---- Finding jobs (find.c) ---- */

/* Opens, to read, the segment of the nth job (from 0) that the process has;
 * -1, with errno: ENOENT, it has no more; ESRCH, no such process; EACCES. */
int iris_i_report_open(int pid, int n);

/* Writes the report of this incident, unless another rank does or has done it:
 * to stderr, and if `prefix` is not empty to <prefix>_report_<n>.json. What
 * keeps it from being written is logged. (incident.c) */
void iris_i_report_incident(struct iris_control *control, const char *prefix);

/* The same of a call that members made differently, this thread's message
 * saying how; and of a job that somebody asks about. Once a second for the job.
 */
void iris_i_report_mismatch(struct iris_control *control, const char *prefix);
void iris_i_report_asked(struct iris_control *control, const char *prefix);

/* ---- SIGUSR2 (on_signal.c) ---- */

/* From here on SIGUSR2 to this process prints the report of the job, unless the
 * program has a handler or ignores it. `prefix` lives until _unwatch(). */
void iris_i_report_watch(struct iris_control *control, const char *prefix);

/* Waits for a report under way. One that was not watched is fine. */
void iris_i_report_unwatch(struct iris_control *control);

#endif /* IRIS_SRC_REPORT_REPORT_H */
