/* SPDX-License-Identifier: MIT
 *
 * The records of all ranks of one machine, in one unnamed file: boards and
 * flight records, for reports of this and other processes. Readers need only a
 * descriptor of it. They do not map it, so a truncated file cannot kill them,
 * and untouched pages stay untouched.
 */
#ifndef IRIS_SRC_CONTROL_RECORDS_H
#define IRIS_SRC_CONTROL_RECORDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "control/bootstrap.h"
#include "control/control.h"
#include "control/flight_record.h"

#define IRIS_RECORDS_MAGIC UINT64_C(0x6c72746373697269) /* "irisctrl" */
#define IRIS_RECORDS_VERSION 5u

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
    _Atomic int64_t last_ns;   /* time of the last report without an incident */
    _Atomic uint64_t query;    /* the number of the last query, which a reader
                              * writes */
    _Atomic uint64_t asked;    /* the last query that some rank has sent */
    _Atomic int64_t wanted_ns; /* time of another host's last query */
    _Atomic uint64_t elsewhere[(IRIS_RANKS_MAX + 63) / 64]; /* a bit for each
                              * rank: it is on another host */
};

struct iris_board;

/* A process's reference to the file. */
struct iris_records {
    int fd;
    int num_ranks;
    void *base;
};

/* ---- For the ranks, each of which writes its own record ---- */

/* Writes the header. The first page must be committed. */
void iris_i_records_init(const struct iris_records *records);

size_t iris_i_records_bytes(int num_ranks);

/* The offset of the first record. Everything before it must be committed from
 * the start. */
size_t iris_i_records_head_bytes(int num_ranks);

/* The offset of a rank's record. */
size_t iris_i_records_at(int num_ranks, int rank);

struct iris_board *iris_i_records_board(const struct iris_records *records,
                                        int rank);

/* The record of a rank, for its owner alone. NULL: there is no memory for it,
 * and the rank goes on without one; this thread's message gives the reason. */
struct iris_record *iris_i_records_open(const struct iris_records *records,
                                        int rank);

/* ---- The reporting rank ---- */

/* 1: this rank reports the incident, until it calls _reported(). 0: another
 * rank does. */
int iris_i_records_claim(const struct iris_records *records, int rank);
void iris_i_records_reported(const struct iris_records *records, int rank);

/* Whether another rank's report of the incident is not finished yet. */
int iris_i_records_is_reporting(const struct iris_records *records);

/* If this rank has reported the last incident, the next one counts as new.
 * `records` may be NULL. */
void iris_i_records_forget(const struct iris_records *records, int rank);

/* Whether no rank has taken a turn in the last `ns`; then this rank has taken
 * it. */
int iris_i_records_take_turn(const struct iris_records *records, int64_t ns);

/* The next report's number. */
unsigned long long iris_i_records_number(const struct iris_records *records);

/* ---- Ranks of other hosts ---- */

/* Marks a rank as one of another host. */
void iris_i_records_mark_elsewhere(const struct iris_records *records,
                                   int rank);

/* The number of a query that this rank now has to send; 0: it has sent all.
 * `records` may be NULL. */
uint64_t iris_i_records_take_query(const struct iris_records *records);

/* Another host's report wants the records of this host's ranks; whether one has
 * in the last IRIS_WANTED_MS. */
void iris_i_records_note_wanted(const struct iris_records *records);
int iris_i_records_are_wanted(const struct iris_records *records);

/* A reader's query. Copies with a lower number are older. */
struct iris_query {
    uint64_t number; /* 0: no rank is on another host */
    struct iris_records_header header;
};

/* Asks the ranks of other hosts for their records. Returns after all have
 * answered, or after IRIS_ANSWER_MS. A reader who may not write to the file
 * gets no answers. */
void iris_i_records_ask(int fd, struct iris_query *query_p);
int iris_i_records_is_elsewhere(const struct iris_query *query, int rank);

/* ---- For readers ---- */

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

/* These return 0 if the file cannot be read. */
int iris_i_records_copy(int fd, int num_ranks, int rank,
                        struct iris_record_copy *copy_p);
int iris_i_records_shown(int fd, int rank, struct iris_shown *shown_p);
int iris_i_records_start(int fd, int64_t *start_ns_p);

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

#endif /* IRIS_SRC_CONTROL_RECORDS_H */
