/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/control: flight records, by which any process of
 * a host sees the waits and calls of its ranks.
 */
#ifndef IRIS_SRC_CONTROL_RECORDS_H
#define IRIS_SRC_CONTROL_RECORDS_H

#include <iris/status.h>

#include "base/base.h"
#include "base/processor.h"
#include "control/control.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* ---- flight_record.c ---- */

#define IRIS_RECORD_CALLS 1024
#define IRIS_RECORD_WAITS 128
#define IRIS_RECORD_STREAMS 16
#define IRIS_RECORD_PEERS \
    64 /* counted one by one; the last counts all
                              * others */
#define IRIS_RECORD_NAME 48
#define IRIS_RECORD_KERNELS 512 /* number of kernels whose names are kept */
#define IRIS_RECORD_JOB 64
#define IRIS_RECORD_HOST 32
#define IRIS_RECORD_SITES 32 /* places in the program that are kept */
#define IRIS_RECORD_PLACE 64
#define IRIS_RECORD_EXPECTED 8
#define IRIS_RECORD_NOWHERE UINT64_MAX /* an offset: not on the rank's heap */

/* One host call, in the format for readers. */
struct iris_record_call {
    uint64_t id; /* of its events; 0: no call was recorded here yet */
    int64_t begin_ns;
    int64_t end_ns;  /* 0: in progress; begin_ns for a call that does not
                      * block */
    uint64_t stream; /* its address in the process; 0: the default stream */
    uint64_t offset; /* offset of `address`, on this rank's heap or the
                      * target's */
    uint64_t bytes;
    uint64_t value; /* for a collective, the number of its group */
    int16_t op;     /* enum iris_host_op */
    int16_t cmp;
    int32_t status;
    int32_t target_rank;
    uint32_t grid;
    char kernel[IRIS_RECORD_NAME];
    char place[IRIS_RECORD_PLACE]; /* only in reports: its source line */
};

enum iris_record_kind {
    IRIS_WAIT_KERNEL,    /* a workgroup waits for a word */
    IRIS_WAIT_BARRIER,   /* a workgroup waits for a word of a barrier, for
                          * its member */
    IRIS_WAIT_SPIN,      /* a workgroup repeats atomic operations */
    IRIS_WAIT_AGREEMENT, /* a host call waits for members */
    IRIS_WAIT_STREAM,    /* a host call waits for a stream */
};

/* One wait that has taken a while. */
struct iris_record_wait {
    int32_t kind;
    int32_t ended;        /* 1: ended by a deadline or a peer's death */
    int64_t begin_ns;     /* time when the wait was first noticed */
    int64_t update_ns;    /* time when the wait was last seen */
    int64_t change_ns;    /* time of the last change of `seen`; 0 */
    uint64_t stream;      /* as in calls */
    uint64_t offset;      /* of the word */
    uint64_t alloc;       /* the allocation around it, and its bytes; 0: */
    uint64_t alloc_bytes; /* it is in no allocation of the program */
    int64_t value;
    int64_t seen;
    int64_t first_seen;
    int32_t cmp;
    uint32_t workgroup;
    uint32_t grid;
    uint32_t begun; /* workgroups of the grid; 0: unknown */
    uint32_t done;
    int32_t own;           /* 1: a kernel of the library */
    int32_t is_unsigned;   /* 1: value and seen are unsigned */
    int32_t word_rank;     /* rank on whose heap `offset` is */
    uint64_t held;         /* bit mask of the first 64 ranks: those whose
                            * word satisfies the wait, if known */
    uint32_t num_expected; /* number of awaited ranks; 0: unknown */
    int16_t expected[IRIS_RECORD_EXPECTED]; /* the first of them */
    int32_t group;        /* its number; 0: all ranks; -1: no group */
    uint32_t num_members; /* of that */
    int16_t members[IRIS_RECORD_EXPECTED]; /* the first of them */
    uint32_t site; /* number of the place in the program; 0: unknown */
    char place[IRIS_RECORD_PLACE]; /* only in reports: its source line */
    char word[IRIS_RECORD_NAME];   /* iris_name() of the allocation, or empty */
    char name[IRIS_RECORD_NAME];   /* name of the kernel or the call */
};

/* The kernel on one stream, in the format for readers. */
struct iris_record_stream {
    uint64_t address; /* 0: unused */
    uint64_t number;
    uint64_t begun; /* number of kernels, of those that the CPU runs */
    uint64_t done;
    int64_t begin_ns; /* time of the latest begin */
    uint32_t grid;
    char kernel[IRIS_RECORD_NAME];
};

/* A value that one thread writes and others read consistently: `seq` is odd
 * during a write. All members are words, since readers are other processes. */
#define IRIS_RECORD_WORDS(type) \
    ((sizeof(struct type) + sizeof(uint64_t) - 1) / sizeof(uint64_t))
#define IRIS_RECORD_CELL(name, type)                     \
    struct name {                                        \
        _Atomic uint64_t seq;                            \
        _Atomic uint64_t words[IRIS_RECORD_WORDS(type)]; \
    }
IRIS_RECORD_CELL(iris_wait_cell, iris_record_wait);
IRIS_RECORD_CELL(iris_scale_cell, iris_ticks_scale);

/* A host call as recorded: one cache line, written when the call begins. Its
 * end writes `mark`, and the time if it is taken. So if a process hangs or dies
 * in a call, the record shows that it is in that call. */
enum iris_call_word {
    IRIS_CALL_BEGIN, /* ticks */
    IRIS_CALL_END,   /* ticks; 0: not taken */
    IRIS_CALL_STREAM,
    IRIS_CALL_OFFSET,
    IRIS_CALL_BYTES,
    IRIS_CALL_VALUE,
    IRIS_CALL_WHAT, /* struct iris_call_what */
    IRIS_CALL_WORDS,
};

struct iris_call_what {
    uint8_t op;
    uint8_t cmp;
    uint16_t kernel; /* its number; 0: no kernel */
    uint32_t number; /* the grid of a launch; else the target */
};

struct iris_call_cell {
    _Alignas(64) _Atomic uint64_t mark;
    _Atomic uint64_t words[IRIS_CALL_WORDS];
};
_Static_assert(sizeof(struct iris_call_cell) == 64, "one cache line");

/* A mark: the call's id, its status in 8 bits, and its state in 4 bits. */
enum iris_call_state {
    IRIS_CALL_WRITING, /* or never written, if the whole mark is 0 */
    IRIS_CALL_IN,
    IRIS_CALL_DONE,
};
#define IRIS_MARK_ID 12
#define IRIS_MARK_STATUS 4

/* The contents of a stream's cell. Its address is in `stream_address`. */
struct iris_stream_now {
    uint64_t number;
    uint64_t begun;
    uint64_t done;
    uint64_t begin_ticks;
    struct iris_call_what what; /* kernel and grid */
};
IRIS_RECORD_CELL(iris_stream_cell, iris_stream_now);

/* The name of a kernel, written once. The number of a kernel is its index in
 * the table plus 1. */
struct iris_kernel_name {
    _Atomic uint64_t address; /* address of the name in the process; 0: free */
    atomic_uint known;        /* 1: the name is written */
    char name[IRIS_RECORD_NAME];
};

enum iris_site_state { IRIS_SITE_FREE, IRIS_SITE_WRITING, IRIS_SITE_KNOWN };

/* A place in the program at which it waits, written once. Its number is its
 * index plus 1. */
struct iris_record_site {
    atomic_uint state; /* enum iris_site_state */
    struct iris_source source;
};

/* The number of kernels for which the table had no slot. */
#define IRIS_KERNEL_NOT_KEPT UINT16_MAX

enum iris_wait_owner {
    IRIS_OWNER_NONE,
    IRIS_OWNER_THREAD, /* a thread has this wait in progress */
    IRIS_OWNER_PAST,   /* it was ended; kept for reports */
};

/* In `arrived`: the copy is being written. */
#define IRIS_RECORD_CHANGES UINT64_MAX

/* The whole record of one rank. Only this rank writes it, from any of its
 * threads. In the records of another host it is a copy (rows.c). */
struct iris_record {
    _Alignas(64) atomic_uint opened; /* 1: the following members are filled
                                      * in */
    atomic_uint gone;                /* of a copy: 1: its process has ended */
    _Atomic uint64_t arrived;        /* of a copy: how often it has come */
    _Atomic int64_t arrived_ns;      /* of a copy: the last time */
    _Atomic uint64_t taken;          /* of a copy: its bytes so far */
    int64_t shift_ns;                /* of a copy: add this to its times */
    int32_t rank;
    int32_t pid;
    int32_t num_cus;        /* workgroups that run at once; 0: unknown */
    int32_t tid;            /* id of the thread that made the context */
    uint64_t start_ticks;   /* start time of the process, from /proc/PID/stat */
    uint64_t heap_reserved; /* bytes that the heap may grow to */
    char job[IRIS_RECORD_JOB];   /* IRIS_JOB_ID, may be empty */
    char host[IRIS_RECORD_HOST]; /* empty: the job has one host */
    int32_t num_threads; /* of a copy: the process's threads other than the
                          * library's */
    int32_t process;     /* of a copy: the process's state, as in ps */
    /* The scale of all ticks here, and the time of the next calibration.
     * Readers use `scale` alone; only the rank uses the others. */
    _Alignas(64) _Atomic uint64_t scale_ticks;
    _Atomic uint64_t scale_span;
    struct iris_scale_cell scale;
    atomic_flag calibrating; /* guards the next member */
    struct iris_ticks_calibration calibration;
    _Alignas(64) _Atomic uint64_t heap_used;
    _Atomic uint64_t heap_bytes;
    _Atomic uint64_t heap_mapped;                   /* bytes that have memory */
    _Atomic uint64_t unlisted_waits;                /* waits that found no
                                                     * slot */
    _Atomic uint64_t peer_bytes[IRIS_RECORD_PEERS]; /* bytes copied by the
                                                     * host */
    _Atomic uint64_t stream_address[IRIS_RECORD_STREAMS];
    _Atomic uint64_t launched[IRIS_RECORD_STREAMS];
    atomic_uint owners[IRIS_RECORD_WAITS]; /* enum iris_wait_owner */
    struct iris_stream_cell streams[IRIS_RECORD_STREAMS];
    struct iris_wait_cell waits[IRIS_RECORD_WAITS];
    _Alignas(64) struct iris_kernel_name kernels[IRIS_RECORD_KERNELS];
    _Alignas(64) struct iris_call_cell calls_ring[IRIS_RECORD_CALLS];
    struct iris_record_site sites[IRIS_RECORD_SITES]; /* not in copies */
};

/* Fills in the constant members. `job` may be NULL. */
void iris_i_record_open(struct iris_record *record, int rank, const char *job);

/* A call begins. `offset` is that of its address; `value` replaces the
 * event's. */
void iris_i_record_begin(struct iris_record *record,
                         const struct iris_host_event *event, uint64_t offset,
                         uint64_t value);

/* The call ends, unless a newer call has its slot by now. Takes the time only
 * if `timed`, since that costs as much as the rest. */
void iris_i_record_end(struct iris_record *record,
                       const struct iris_host_event *event, uint64_t offset,
                       int timed);

/* The stream's slot, allocated if necessary; -1: there are no more slots. */
int iris_i_record_stream_slot(struct iris_record *record, uint64_t address);

void iris_i_record_launched(struct iris_record *record, int slot);

/* The event's kernel begins on the stream with that number; it ends. One thread
 * at a time runs a stream's kernels. */
void iris_i_record_kernel(struct iris_record *record, int slot,
                          const struct iris_host_event *event, uint64_t number);
void iris_i_record_kernel_done(struct iris_record *record, int slot);

/* Writes a wait to its slot, or to a new slot if `slot` is -1. Returns the
 * slot; -1: there is no free slot, or no record. */
int iris_i_record_wait(struct iris_record *record, int slot,
                       const struct iris_record_wait *wait);

/* The number of the place in the program that calls the library in this thread,
 * for a wait that takes long. 0: unknown, or there is no record. */
uint32_t iris_i_record_site(struct iris_record *record);

/* Fills in the members of the wait's group. */
void iris_i_record_members(struct iris_record_wait *wait, const int *ranks,
                           int count);

/* Frees the slot. A wait that was ended stays readable as long as other slots
 * are free. `slot` may be -1. */
void iris_i_record_wait_over(struct iris_record *record, int slot, int ended);

/* A current wait of this rank, except that of a host call. 0: no such wait.
 * `record` may be NULL. */
int iris_i_record_find_wait(const struct iris_record *record,
                            struct iris_record_wait *wait_p);

/* Removes the waits that were ended. `record` may be NULL. */
void iris_i_record_forget(struct iris_record *record);

/* Whether `seen` satisfies the wait. */
int iris_i_record_holds(const struct iris_record_wait *wait, int64_t seen);

/* ---- table.c ---- */

/* The records of all ranks of one machine, in one unnamed file: boards and
 * flight records, for reports of this and other processes. Readers need only a
 * descriptor of it. They do not map it, so a truncated file cannot kill them,
 * and untouched pages stay untouched. */

#define IRIS_RECORDS_MAGIC UINT64_C(0x6c72746373697269) /* "irisctrl" */
#define IRIS_RECORDS_VERSION 7u

/* The first page, by which readers identify the file. All offsets follow from
 * num_ranks. */
struct iris_records_header {
    uint64_t magic;
    uint32_t version; /* version of the layout of everything after it */
    uint32_t num_ranks;
    uint64_t bytes; /* bytes of the records; more data may follow */
    uint64_t record_bytes;
    int64_t start_ns;          /* monotonic */
    _Atomic uint64_t reported; /* the reporting rank of the incident, + 1; 0:
                                * none yet */
    _Atomic uint64_t num_reports;
    _Atomic int64_t last_ns; /* time of the last report without an incident */
    atomic_uint hub_wakes;   /* futex: bumped when the hub has something to
                              * send */
    atomic_uint hub_sleeps;  /* 1: it sleeps on it */
    _Atomic uint64_t new_ranks[(IRIS_RANKS_MAX + 63) / 64]; /* a bit for each
                              * rank of this node whose board says what is new */
    _Atomic uint64_t new_fails; /* a bit for each place that has failed */
    _Atomic uint64_t elsewhere[(IRIS_RANKS_MAX + 63) / 64]; /* a bit for each
                              * rank: it is on another node */
    _Atomic uint64_t newest; /* the offset of the table in use; only the
                              * header at the file's start has it */
    atomic_uint revoked;     /* the rank that revoked the job, + 1 */
    atomic_uint decided;     /* how the ranks shrink (shrink.c); 0: not yet */
};

struct iris_board;

/* This process's reference to it. Threads that are ranks share one, so that they
 * share addresses, too. */
struct iris_table {
    atomic_int refs;
    int num_ranks;
    int fd;
    size_t at; /* its offset in the file; 0: the job has not shrunk */
    size_t bytes;
    struct iris_records_header *header; /* the mapping of the file, + at */
};

/* ---- For the ranks, each of which writes its own record ---- */

size_t iris_i_records_bytes(int num_ranks);

/* The offset of a rank's record. */
size_t iris_i_records_at(int num_ranks, int rank);

struct iris_board *iris_i_records_board(const struct iris_table *records,
                                        int rank);

/* The record of a rank, for its owner alone. NULL: there is no memory for it,
 * and the rank goes on without one; this thread's message gives the reason. */
struct iris_record *iris_i_records_open(const struct iris_table *records,
                                        int rank);

/* ---- The reporting rank ---- */

/* 1: this rank reports the incident, until it calls _reported(). 0: another
 * rank does. */
int iris_i_records_claim(const struct iris_table *records, int rank);
void iris_i_records_reported(const struct iris_table *records, int rank);

/* Whether another rank's report of the incident is not finished yet. */
int iris_i_records_is_reporting(const struct iris_table *records);

/* If this rank has reported the last incident, the next one counts as new.
 * `records` may be NULL. */
void iris_i_records_forget(const struct iris_table *records, int rank);

/* Whether no rank has taken a turn in the last `ns`; then this rank has taken
 * it. */
int iris_i_records_take_turn(const struct iris_table *records, int64_t ns);

/* The next report's number. */
unsigned long long iris_i_records_number(const struct iris_table *records);

/* ---- Ranks of other hosts ---- */

/* Marks a rank as one of another host. */
void iris_i_records_mark_elsewhere(const struct iris_table *records, int rank);

int iris_i_records_has_far(const struct iris_table *records);

/* For the hub: parts of a rank's board, and posts at places, are new; and it
 * wakes if somebody waits for them. */
void iris_i_records_mark(const struct iris_table *records, int rank,
                         unsigned parts, uint64_t places);
void iris_i_records_tell_hub(const struct iris_table *records, int is_urgent);

/* ---- flight_record.c: readers ---- */

/* IRIS_ERR_INVALID: not a file of records; IRIS_ERR_MISMATCH: from another
 * version of Iris. *num_ranks_p: its number of ranks. */
iris_status_t iris_i_records_check(int fd, int *num_ranks_p);

/* A record at one moment: three readings in a row. The middle one counts if the
 * counters of the others are equal. */
struct iris_record_copy {
    int fd;
    size_t at; /* its offset in the file */
    struct iris_record first;
    struct iris_record record;
    struct iris_record last;
    struct iris_ticks_scale scale;
};

/* Whether the header marks a rank as one of another node. */
int iris_i_records_is_elsewhere(const struct iris_records_header *header,
                                int rank);

/* These return 0 if the file cannot be read. */
int iris_i_records_read_header(int fd, struct iris_records_header *header_p);
int iris_i_records_copy(int fd, int num_ranks, int rank,
                        struct iris_record_copy *copy_p);
int iris_i_records_shown(int fd, int rank, struct iris_shown *shown_p);

/* A rank of another node whose hub says that it is stopped, or from which
 * nothing has come of late, the lowest such; -1: none.
 * *is_stopped_p: the hub says it. */
int iris_i_records_find_silent(int fd, int num_ranks, int *is_stopped_p);

/* Takes the cell at `at` bytes of a copied record. 0: nothing was written
 * there, or it was never complete. */
int iris_i_records_take(const struct iris_record_copy *copy, size_t at,
                        void *value_p, size_t bytes);

/* Takes one call (one of IRIS_RECORD_CALLS), or a stream's cell; returns the
 * same. */
int iris_i_records_take_call(struct iris_record_copy *copy, size_t i,
                             struct iris_record_call *call_p);
int iris_i_records_take_stream(const struct iris_record_copy *copy, size_t i,
                               struct iris_record_stream *stream_p);

/* The names of kernels that may be running: those launched after the rank's
 * last synchronize of their streams. Text such as "step or iris_k_wait" */
void iris_i_record_launched_names(const struct iris_record *record,
                                  char names[IRIS_RECORD_NAME]);

#endif /* IRIS_SRC_CONTROL_RECORDS_H */
