/* SPDX-License-Identifier: MIT
 *
 * The flight record of a rank, in the control segment: its last host calls, its
 * streams and the waits under way, for readers in other processes.
 */
#ifndef IRIS_SRC_CONTROL_FLIGHT_RECORD_H
#define IRIS_SRC_CONTROL_FLIGHT_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/hooks.h"
#include "base/ticks.h"

#define IRIS_RECORD_CALLS 1024
#define IRIS_RECORD_WAITS 128
#define IRIS_RECORD_STREAMS 16
#define IRIS_RECORD_PEERS 64 /* counted one by one; the last has the rest */
#define IRIS_RECORD_NAME 48
#define IRIS_RECORD_KERNELS 512 /* whose names are kept */
#define IRIS_RECORD_JOB 64
#define IRIS_RECORD_EXPECTED 8
#define IRIS_RECORD_NOWHERE UINT64_MAX /* an offset: not on the rank's heap */

/* One host call, as readers have it (record_read.c). */
struct iris_record_call {
    uint64_t id; /* of its events; 0: nothing was here yet */
    int64_t begin_ns;
    int64_t end_ns;  /* 0: it is under way; of what does not block: begin_ns */
    uint64_t stream; /* its address in the process; 0: the default one */
    uint64_t offset; /* of `address`, on this rank's heap or the target's */
    uint64_t bytes;
    uint64_t value; /* of a collective: the number of its group */
    int16_t op;     /* enum iris_host_op */
    int16_t cmp;
    int32_t status;
    int32_t target_rank;
    uint32_t grid;
    char kernel[IRIS_RECORD_NAME];
};

enum iris_record_kind {
    IRIS_WAIT_KERNEL,    /* a workgroup waits for a word */
    IRIS_WAIT_BARRIER,   /* the same in a barrier, for its member */
    IRIS_WAIT_SPIN,      /* a workgroup repeats atomic operations */
    IRIS_WAIT_AGREEMENT, /* a host call waits for members */
};

/* One wait that has taken a while. */
struct iris_record_wait {
    int32_t kind;
    int32_t ended;        /* 1: by a deadline or a peer's death */
    int64_t begin_ns;     /* when it was first seen to wait */
    int64_t update_ns;    /* when it was last seen to */
    int64_t change_ns;    /* when `seen` was another for the last time; 0 */
    uint64_t stream;      /* as in calls */
    uint64_t offset;      /* of the word */
    uint64_t alloc;       /* the allocation that it is in, and its bytes; 0: */
    uint64_t alloc_bytes; /* none of the program's */
    int64_t value;
    int64_t seen;
    int64_t first_seen;
    int32_t cmp;
    uint32_t workgroup;
    uint32_t grid;
    uint32_t begun; /* workgroups of the grid; 0: not known */
    uint32_t done;
    int32_t own;           /* the kernel is the library's */
    int32_t is_unsigned;   /* value and seen are */
    int32_t word_rank;     /* whose heap `offset` is on */
    uint64_t held;         /* ranks, bit by bit, whose word would do; of the
                            * first 64, and where that is known */
    uint32_t num_expected; /* ranks it waits for; 0: not known */
    int16_t expected[IRIS_RECORD_EXPECTED]; /* the first of them */
    int32_t group;        /* its number; 0: all ranks; -1: it is of no group */
    uint32_t num_members; /* of that */
    int16_t members[IRIS_RECORD_EXPECTED]; /* the first of them */
    char word[IRIS_RECORD_NAME]; /* iris_name() of the allocation, or empty */
    char name[IRIS_RECORD_NAME]; /* of the kernel or the call */
};

/* What runs on one stream, as readers have it. */
struct iris_record_stream {
    uint64_t address; /* 0: unused */
    uint64_t number;
    uint64_t begun; /* kernels, of those that the CPU runs */
    uint64_t done;
    int64_t begin_ns; /* of the last begun */
    uint32_t grid;
    char kernel[IRIS_RECORD_NAME];
};

/* A value that one thread writes and others read whole: `seq` is odd while it
 * is written. All in words, since readers are other processes. */
#define IRIS_RECORD_WORDS(type) \
    ((sizeof(struct type) + sizeof(uint64_t) - 1) / sizeof(uint64_t))
#define IRIS_RECORD_CELL(name, type)                     \
    struct name {                                        \
        _Atomic uint64_t seq;                            \
        _Atomic uint64_t words[IRIS_RECORD_WORDS(type)]; \
    }
IRIS_RECORD_CELL(iris_wait_cell, iris_record_wait);
IRIS_RECORD_CELL(iris_scale_cell, iris_ticks_scale);

/* A host call as it is kept: one cache line, which is written when the call
 * begins. Its end writes `mark`, and the time if it is taken: so a call whose
 * process hangs or died in it is still in. */
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
    uint16_t kernel; /* its number; 0: none */
    uint32_t number; /* what launches a kernel: its grid; else the target */
};

struct iris_call_cell {
    _Alignas(64) _Atomic uint64_t mark;
    _Atomic uint64_t words[IRIS_CALL_WORDS];
};
_Static_assert(sizeof(struct iris_call_cell) == 64, "one cache line");

/* A mark: the call's id, its status in 8 bits, and its state in 4. */
enum iris_call_state {
    IRIS_CALL_WRITING, /* or never written, if all is 0 */
    IRIS_CALL_IN,
    IRIS_CALL_DONE,
};
#define IRIS_MARK_ID 12
#define IRIS_MARK_STATUS 4

/* What a stream's cell keeps; its address is in `stream_address`. */
struct iris_stream_now {
    uint64_t number;
    uint64_t begun;
    uint64_t done;
    uint64_t begin_ticks;
    struct iris_call_what what; /* kernel and grid */
};
IRIS_RECORD_CELL(iris_stream_cell, iris_stream_now);

/* The name of a kernel, written once: its number is the place in the table, and
 * 1. */
struct iris_kernel_name {
    _Atomic uint64_t address; /* of the name in the process; 0: free */
    atomic_uint known;        /* 1: the name is written */
    char name[IRIS_RECORD_NAME];
};

/* The number of those that found no place. */
#define IRIS_KERNEL_NOT_KEPT UINT16_MAX

enum iris_wait_owner {
    IRIS_OWNER_NONE,
    IRIS_OWNER_THREAD, /* it is under way */
    IRIS_OWNER_PAST,   /* it was ended, which reports want to know */
};

/* All of one rank. It alone writes, from any of its threads. */
struct iris_record {
    _Alignas(64) atomic_uint opened; /* 1: what follows is filled in */
    int32_t rank;
    int32_t pid;
    int32_t num_cus;      /* workgroups at once; 0: not known */
    int32_t tid;          /* of the thread that made the context */
    uint64_t start_ticks; /* of the process, as /proc/PID/stat has it */
    uint64_t heap_bytes;
    char job[IRIS_RECORD_JOB]; /* IRIS_JOB_ID, may be empty */
    /* The scale of all ticks here, and when to calibrate it again. Readers use
     * `scale` alone; the others are the rank's. */
    _Alignas(64) _Atomic uint64_t scale_ticks;
    _Atomic uint64_t scale_span;
    struct iris_scale_cell scale;
    atomic_flag calibrating; /* guards the next */
    struct iris_ticks_calibration calibration;
    _Alignas(64) _Atomic uint64_t heap_used;
    _Atomic uint64_t unlisted_waits;                /* that found no slot */
    _Atomic uint64_t peer_bytes[IRIS_RECORD_PEERS]; /* copied by the host */
    _Atomic uint64_t stream_address[IRIS_RECORD_STREAMS];
    _Atomic uint64_t launched[IRIS_RECORD_STREAMS];
    atomic_uint owners[IRIS_RECORD_WAITS]; /* enum iris_wait_owner */
    struct iris_stream_cell streams[IRIS_RECORD_STREAMS];
    struct iris_wait_cell waits[IRIS_RECORD_WAITS];
    _Alignas(64) struct iris_kernel_name kernels[IRIS_RECORD_KERNELS];
    _Alignas(64) struct iris_call_cell calls_ring[IRIS_RECORD_CALLS];
};

/* Fills in what stays the same. `job` may be NULL. */
void iris_i_record_open(struct iris_record *record, int rank, const char *job);

/* A call begins; `offset` is where its address is, `value` takes the place of
 * the event's. */
void iris_i_record_begin(struct iris_record *record,
                         const struct iris_host_event *event, uint64_t offset,
                         uint64_t value);

/* It ends, unless a newer call has its place by now. The time is taken if
 * `timed`, since even that costs as much as all else here. */
void iris_i_record_end(struct iris_record *record,
                       const struct iris_host_event *event, uint64_t offset,
                       int timed);

/* The stream's slot, made if need be; -1: there are none left. */
int iris_i_record_stream_slot(struct iris_record *record, uint64_t address);

void iris_i_record_launched(struct iris_record *record, int slot);

/* The event's kernel begins on the stream of that number; is over. One thread
 * at a time runs a stream's kernels. */
void iris_i_record_kernel(struct iris_record *record, int slot,
                          const struct iris_host_event *event, uint64_t number);
void iris_i_record_kernel_done(struct iris_record *record, int slot);

/* Writes a wait to its slot, or if `slot` is -1 to a new one. Returns the slot;
 * -1: there is none, or no record. */
int iris_i_record_wait(struct iris_record *record, int slot,
                       const struct iris_record_wait *wait);

/* Fills in the members of the wait's group. */
void iris_i_record_members(struct iris_record_wait *wait, const int *ranks,
                           int count);

/* Gives the slot back. One whose wait was ended stays readable for as long as
 * there are others. -1 is fine. */
void iris_i_record_wait_over(struct iris_record *record, int slot, int ended);

/* A wait of this rank's that is under way, not that of a host call. 0: there is
 * none. NULL is fine. */
int iris_i_record_find_wait(const struct iris_record *record,
                            struct iris_record_wait *wait_p);

/* Forgets the waits that were ended. NULL is fine. */
void iris_i_record_forget(struct iris_record *record);

/* Whether `seen` is what is waited for, of such a type. */
int iris_i_record_holds(const struct iris_record_wait *wait, int64_t seen);

#endif /* IRIS_SRC_CONTROL_FLIGHT_RECORD_H */
