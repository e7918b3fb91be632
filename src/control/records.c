/* SPDX-License-Identifier: MIT
 *
 * The file of records: its layout, its words for the choice of the reporting
 * rank, and its reading.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "control/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

/* How often a reader tries again to read a cell that was being written. */
#define TRIES 100

/* Flag in the word that names the reporting rank: the report is not
 * finished. */
#define WRITING ((uint64_t)1 << 32)

_Static_assert(sizeof(struct iris_records_header) <= PAGE, "one page");

/* ---- Layout ---- */

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t board_at(int rank)
{
    return PAGE + (size_t)rank * sizeof(struct iris_board);
}

size_t iris_i_records_at(int num_ranks, int rank)
{
    return iris_i_records_head_bytes(num_ranks) +
           (size_t)rank * pages(sizeof(struct iris_record));
}

size_t iris_i_records_head_bytes(int num_ranks)
{
    return pages(board_at(num_ranks));
}

size_t iris_i_records_bytes(int num_ranks)
{
    return iris_i_records_at(num_ranks, num_ranks);
}

static struct iris_records_header *header_of(const struct iris_records *records)
{
    return records->base;
}

void iris_i_records_init(const struct iris_records *records)
{
    *header_of(records) = (struct iris_records_header){
        .magic = IRIS_RECORDS_MAGIC,
        .version = IRIS_RECORDS_VERSION,
        .num_ranks = (uint32_t)records->num_ranks,
        .bytes = iris_i_records_bytes(records->num_ranks),
        .record_bytes = sizeof(struct iris_record),
        .start_ns = iris_i_now_ns(),
    };
}

struct iris_board *iris_i_records_board(const struct iris_records *records,
                                        int rank)
{
    return (void *)((char *)records->base + board_at(rank));
}

struct iris_record *iris_i_records_open(const struct iris_records *records,
                                        int rank)
{
    size_t at = iris_i_records_at(records->num_ranks, rank);

    return iris_i_shm_commit(records->fd, at,
                             pages(sizeof(struct iris_record))) == IRIS_OK
               ? (void *)((char *)records->base + at)
               : NULL;
}

/* ---- The reporting rank ---- */

int iris_i_records_claim(const struct iris_records *records, int rank)
{
    uint64_t nobody = 0;

    return atomic_compare_exchange_strong(
        &header_of(records)->reported, &nobody, ((uint64_t)rank + 1) | WRITING);
}

void iris_i_records_reported(const struct iris_records *records, int rank)
{
    atomic_store(&header_of(records)->reported, (uint64_t)rank + 1);
}

int iris_i_records_is_reporting(const struct iris_records *records)
{
    return (atomic_load(&header_of(records)->reported) & WRITING) != 0;
}

void iris_i_records_forget(const struct iris_records *records, int rank)
{
    uint64_t ours = (uint64_t)rank + 1;

    if (records != NULL) {
        atomic_compare_exchange_strong(&header_of(records)->reported, &ours, 0);
    }
}

int iris_i_records_take_turn(const struct iris_records *records, int64_t ns)
{
    struct iris_records_header *header = header_of(records);
    int64_t now = iris_i_now_ns(), last = atomic_load(&header->last_ns);

    return (last == 0 || now - last > ns) &&
           atomic_compare_exchange_strong(&header->last_ns, &last, now);
}

unsigned long long iris_i_records_number(const struct iris_records *records)
{
    return atomic_fetch_add(&header_of(records)->num_reports, 1);
}

/* ---- Reading ---- */

static int read_at(int fd, void *to, size_t bytes, size_t at)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got =
            pread(fd, (char *)to + done, bytes - done, (off_t)(at + done));

        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return 0;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 1;
}

iris_status_t iris_i_records_check(int fd, int *num_ranks_p)
{
    struct iris_records_header header;
    struct stat stat;

    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) ||
        !read_at(fd, &header, sizeof header, 0) ||
        header.magic != IRIS_RECORDS_MAGIC) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "this is no control segment of an Iris job");
    }
    if (header.version != IRIS_RECORDS_VERSION ||
        header.record_bytes != sizeof(struct iris_record)) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "the job has another version of Iris: its control "
                           "segment is of layout %u, this is %u; use the "
                           "iris top of that version",
                           header.version, IRIS_RECORDS_VERSION);
    }
    if (header.num_ranks == 0 || header.num_ranks > IRIS_RANKS_MAX ||
        header.bytes != iris_i_records_bytes((int)header.num_ranks) ||
        (uint64_t)stat.st_size < header.bytes) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "the control segment is damaged: %u ranks in %llu "
                           "bytes",
                           header.num_ranks, (unsigned long long)header.bytes);
    }
    *num_ranks_p = (int)header.num_ranks;
    return IRIS_OK;
}

int iris_i_records_shown(int fd, int rank, struct iris_shown *shown_p)
{
    struct iris_board board;

    if (!read_at(fd, &board, sizeof board, board_at(rank))) {
        return 0;
    }
    iris_i_board_read(&board, IRIS_SHOW_ALL, shown_p);
    return 1;
}

int iris_i_records_start(int fd, int64_t *start_ns_p)
{
    struct iris_records_header header;

    if (!read_at(fd, &header, sizeof header, 0)) {
        return 0;
    }
    *start_ns_p = header.start_ns;
    return 1;
}

/* ---- Ranks of other hosts ---- */

void iris_i_records_mark_elsewhere(const struct iris_records *records, int rank)
{
    atomic_fetch_or(&header_of(records)->elsewhere[rank / 64],
                    (uint64_t)1 << rank % 64);
}

uint64_t iris_i_records_take_query(const struct iris_records *records)
{
    struct iris_records_header *header =
        records == NULL ? NULL : header_of(records);
    uint64_t query = header == NULL ? 0 : atomic_load(&header->query);
    uint64_t asked = header == NULL ? 0 : atomic_load(&header->asked);

    return query != asked &&
                   atomic_compare_exchange_strong(&header->asked, &asked, query)
               ? query
               : 0;
}

void iris_i_records_note_wanted(const struct iris_records *records)
{
    atomic_store(&header_of(records)->wanted_ns, iris_i_now_ns());
}

int iris_i_records_are_wanted(const struct iris_records *records)
{
    int64_t last_ns = atomic_load(&header_of(records)->wanted_ns);

    return last_ns != 0 &&
           iris_i_now_ns() - last_ns < IRIS_WANTED_MS * IRIS_NS_PER_MS;
}

int iris_i_records_is_elsewhere(const struct iris_query *query, int rank)
{
    return (query->header.elsewhere[rank / 64] >> rank % 64 & 1) != 0;
}

/* Readers have the file open for reading only. */
static int write_query(int fd, uint64_t number)
{
    char path[64];
    int out, done;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    out = open(path, O_WRONLY | O_CLOEXEC);
    if (out < 0) {
        return 0;
    }
    done = pwrite(out, &number, sizeof number,
                  offsetof(struct iris_records_header, query)) ==
           (ssize_t)sizeof number;
    close(out);
    return done;
}

/* Whether the rank has answered, or will not. */
static int has_answered(int fd, const struct iris_query *query, int rank)
{
    size_t at = iris_i_records_at((int)query->header.num_ranks, rank);
    struct iris_shown shown;
    uint64_t answers;
    unsigned gone;

    return !read_at(fd, &answers, sizeof answers,
                    at + offsetof(struct iris_record, answers)) ||
           !read_at(fd, &gone, sizeof gone,
                    at + offsetof(struct iris_record, gone)) ||
           !iris_i_records_shown(fd, rank, &shown) ||
           shown.state >= IRIS_RANK_FINALIZED || gone != IRIS_RECORD_HERE ||
           (answers >= query->number && answers != IRIS_RECORD_CHANGES);
}

void iris_i_records_ask(int fd, struct iris_query *query_p)
{
    struct iris_wait wait;
    int rank = 0;

    *query_p = (struct iris_query){.number = 0};
    if (!read_at(fd, &query_p->header, sizeof query_p->header, 0)) {
        return;
    }
    for (size_t i = 0; i < sizeof query_p->header.elsewhere / sizeof(uint64_t);
         i++) {
        if (query_p->header.elsewhere[i] != 0) {
            query_p->number = query_p->header.query + 1;
        }
    }
    if (query_p->number == 0 || !write_query(fd, query_p->number)) {
        return;
    }
    iris_i_wait_moment(&wait, IRIS_ANSWER_MS);
    while (rank < (int)query_p->header.num_ranks &&
           iris_i_wait_tick(&wait) == IRIS_OK) {
        while (rank < (int)query_p->header.num_ranks &&
               (!iris_i_records_is_elsewhere(query_p, rank) ||
                has_answered(fd, query_p, rank))) {
            rank++;
        }
    }
}

/* ---- Reading of cells ---- */

/* Reads it in less time than its writer takes between two writes. */
static int read_cell(int fd, size_t at, void *value_p, size_t bytes)
{
    uint64_t first, last;

    for (int i = 0; i < TRIES; i++) {
        if (!read_at(fd, &first, sizeof first, at) ||
            !read_at(fd, value_p, bytes, at + sizeof first) ||
            !read_at(fd, &last, sizeof last, at)) {
            return 0;
        }
        if (first % 2 == 0 && first == last) {
            return 1;
        }
    }
    return 0;
}

int iris_i_records_take(const struct iris_record_copy *copy, size_t at,
                        void *value_p, size_t bytes)
{
    uint64_t first, seq, last;

    memcpy(&first, (const char *)&copy->first + at, sizeof first);
    memcpy(&seq, (const char *)&copy->record + at, sizeof seq);
    memcpy(&last, (const char *)&copy->last + at, sizeof last);
    if (seq == 0) {
        return 0;
    }
    if (seq % 2 != 0 || first != seq || last != seq) {
        return read_cell(copy->fd, copy->at + at, value_p, bytes);
    }
    memcpy(value_p, (const char *)&copy->record + at + sizeof seq, bytes);
    return 1;
}

/* Another reader's answer may be arriving. A rank that has ended, or whose answer
 * was lost, leaves it like that. */
static void await_answer(int fd, size_t at)
{
    uint64_t answers = IRIS_RECORD_CHANGES;

    for (int i = 0; i < TRIES && answers == IRIS_RECORD_CHANGES; i++) {
        if (!read_at(fd, &answers, sizeof answers,
                     at + offsetof(struct iris_record, answers))) {
            return;
        }
    }
}

/* Whether a copy of another host's record changed during the readings. */
static int has_changed(const struct iris_record_copy *copy)
{
    return atomic_load(&copy->first.answers) !=
           atomic_load(&copy->last.answers);
}

int iris_i_records_copy(int fd, int num_ranks, int rank,
                        struct iris_record_copy *copy_p)
{
    int tries = 0;

    copy_p->fd = fd;
    copy_p->at = iris_i_records_at(num_ranks, rank);
    do {
        await_answer(fd, copy_p->at);
        if (!read_at(fd, &copy_p->first, sizeof copy_p->first, copy_p->at) ||
            !read_at(fd, &copy_p->record, sizeof copy_p->record, copy_p->at) ||
            !read_at(fd, &copy_p->last, sizeof copy_p->last, copy_p->at)) {
            return 0;
        }
    } while (has_changed(copy_p) && ++tries < TRIES);
    if (!iris_i_records_take(copy_p, offsetof(struct iris_record, scale),
                             &copy_p->scale, sizeof copy_p->scale)) {
        copy_p->scale = (struct iris_ticks_scale){0};
    }
    copy_p->scale.ns = (int64_t)((uint64_t)copy_p->scale.ns +
                                 (uint64_t)copy_p->record.shift_ns);
    return 1;
}

/* The name may be newer than the copy, like the call. */
static int read_name(struct iris_record_copy *copy,
                     const struct iris_call_copy *call)
{
    unsigned number = iris_i_record_kernel_number(call);
    size_t at = copy->at + offsetof(struct iris_record, kernels);

    return number == 0 || number > IRIS_RECORD_KERNELS ||
           read_at(copy->fd, &copy->record.kernels[number - 1],
                   sizeof copy->record.kernels[0],
                   at + (number - 1) * sizeof copy->record.kernels[0]);
}

/* Reads again a call that was being written. No mark occurs twice, and the
 * words after a mark that says "in" are complete. */
static int read_call(struct iris_record_copy *copy, size_t i,
                     struct iris_call_copy *call_p)
{
    size_t at = copy->at + offsetof(struct iris_record, calls_ring[i]);
    uint64_t first;

    for (int n = 0; n < TRIES; n++) {
        if (!read_at(copy->fd, &first, sizeof first, at) ||
            !read_at(copy->fd, call_p->words, sizeof call_p->words,
                     at + sizeof first) ||
            !read_at(copy->fd, &call_p->mark, sizeof first, at)) {
            return 0;
        }
        if (first == call_p->mark &&
            first % (1u << IRIS_MARK_STATUS) != IRIS_CALL_WRITING) {
            return read_name(copy, call_p);
        }
    }
    return 0;
}

int iris_i_records_take_call(struct iris_record_copy *copy, size_t i,
                             struct iris_record_call *call_p)
{
    struct iris_call_copy call;

    memcpy(&call, &copy->record.calls_ring[i], sizeof call);
    return ((copy->first.calls_ring[i].mark == call.mark &&
             copy->last.calls_ring[i].mark == call.mark) ||
            read_call(copy, i, &call)) &&
           iris_i_record_call(&copy->record, &copy->scale, &call, call_p) &&
           call_p->id != 0 && call_p->id % IRIS_RECORD_CALLS == i;
}

int iris_i_records_take_stream(const struct iris_record_copy *copy, size_t i,
                               struct iris_record_stream *stream_p)
{
    struct iris_stream_now now;

    stream_p->address = atomic_load(&copy->record.stream_address[i]);
    if (!iris_i_records_take(copy, offsetof(struct iris_record, streams[i]),
                             &now, sizeof now)) {
        return 0;
    }
    iris_i_record_stream(&copy->record, &copy->scale, &now, stream_p);
    return 1;
}
