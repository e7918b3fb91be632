/* SPDX-License-Identifier: MIT
 *
 * The records of all ranks of one machine, in one file without a name: boards
 * and flight records, for reports of this and other processes. Readers need a
 * descriptor of it and nothing else; they map nothing, so a file that is cut
 * short cannot end them, and pages that nobody has touched stay untouched.
 */
#ifndef IRIS_SRC_CONTROL_RECORDS_H
#define IRIS_SRC_CONTROL_RECORDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "control/control.h"
#include "control/flight_record.h"

#define IRIS_RECORDS_MAGIC UINT64_C(0x6c72746373697269) /* "irisctrl" */
#define IRIS_RECORDS_VERSION 4u

/* The first page: what a reader goes by. All other places follow from
 * num_ranks. */
struct iris_records_header {
    uint64_t magic;
    uint32_t version; /* of the layout of all that follows */
    uint32_t num_ranks;
    uint64_t bytes; /* of the records; more may follow */
    uint64_t record_bytes;
    int64_t start_ns;          /* monotonic */
    _Atomic uint64_t reported; /* who reports the incident, + 1; 0: nobody */
    _Atomic uint64_t num_reports;
    _Atomic int64_t last_ns; /* of the last report that was not an incident's */
};

struct iris_board;

/* A process's hold on the file. */
struct iris_records {
    int fd;
    int num_ranks;
    void *base;
};

/* ---- For the ranks, each of which writes its own ---- */

/* Writes the header; the first page is there. */
void iris_i_records_init(const struct iris_records *records);

size_t iris_i_records_bytes(int num_ranks);

/* Where the first record is; all before it must be there from the start. */
size_t iris_i_records_head_bytes(int num_ranks);

struct iris_board *iris_i_records_board(const struct iris_records *records,
                                        int rank);

/* The record of a rank, for its owner alone. NULL: there is no memory for it,
 * and the rank goes on without; this thread's message says why. */
struct iris_record *iris_i_records_open(const struct iris_records *records,
                                        int rank);

/* ---- Who of them reports ---- */

/* The incident is this rank's to report: 1, until _reported(). 0: another's. */
int iris_i_records_claim(const struct iris_records *records, int rank);
void iris_i_records_reported(const struct iris_records *records, int rank);

/* Whether the one whose it is has not done it yet. */
int iris_i_records_is_reporting(const struct iris_records *records);

/* The next incident is a new one, if this rank has reported the last. NULL is
 * fine. */
void iris_i_records_forget(const struct iris_records *records, int rank);

/* Whether nobody has taken a turn in the last `ns`: then it is this rank's. */
int iris_i_records_take_turn(const struct iris_records *records, int64_t ns);

/* The next report's number. */
unsigned long long iris_i_records_number(const struct iris_records *records);

/* ---- For readers ---- */

/* IRIS_ERR_INVALID: it is something else; IRIS_ERR_MISMATCH: of another version
 * of Iris. *num_ranks_p: its ranks. */
iris_status_t iris_i_records_check(int fd, int *num_ranks_p);

/* A record as it was at one moment: three readings in a row, of which the
 * middle one counts where the counters of the others are the same. */
struct iris_record_copy {
    int fd;
    size_t at; /* where it is in the file */
    struct iris_record first;
    struct iris_record record;
    struct iris_record last;
    struct iris_ticks_scale scale;
};

/* These return 0 if the file cannot be read. */
int iris_i_records_copy(int fd, int num_ranks, int rank,
                        struct iris_record_copy *copy_p);
int iris_i_records_shown(int fd, int rank, struct iris_shown *shown_p);
int iris_i_records_start(int fd, int64_t *start_ns_p);

/* Takes the cell at `at` bytes of a record that was copied. 0: nothing was
 * written there, or it was never whole. */
int iris_i_records_take(const struct iris_record_copy *copy, size_t at,
                        void *value_p, size_t bytes);

/* Takes one call (of IRIS_RECORD_CALLS), what a stream runs; the same. */
int iris_i_records_take_call(struct iris_record_copy *copy, size_t i,
                             struct iris_record_call *call_p);
int iris_i_records_take_stream(const struct iris_record_copy *copy, size_t i,
                               struct iris_record_stream *stream_p);

#endif /* IRIS_SRC_CONTROL_RECORDS_H */
