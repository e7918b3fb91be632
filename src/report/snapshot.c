/* SPDX-License-Identifier: MIT
 *
 * Reading the records of all ranks from a descriptor of the segment. Nothing is
 * mapped: a file that is cut short cannot end the reader, and pages that nobody
 * has touched stay untouched.
 */
#include "config.h"

#include "report/report.h"

#include "base/clock.h"
#include "base/hooks.h"
#include "base/timing.h"
#include "control/bootstrap.h"
#include "control/peers.h"
#include "control/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often a cell is read again that was being written. */
#define TRIES 100

/* A record as it was at one moment: three readings in a row, of which the
 * middle one counts where the counters of the others are the same. */
struct reading {
    int fd;
    size_t at;
    struct iris_record first;
    struct iris_record record;
    struct iris_record last;
};

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

/* ---- Which file it is ---- */

iris_status_t iris_i_report_check(int fd, int *num_ranks_p)
{
    struct iris_segment_header header;
    struct stat stat;

    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) ||
        !read_at(fd, &header, sizeof header, 0) ||
        header.magic != IRIS_SEGMENT_MAGIC) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "this is no control segment of an Iris job");
    }
    if (header.version != IRIS_SEGMENT_VERSION ||
        header.record_bytes != sizeof(struct iris_record)) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "the job has another version of Iris: its control "
                           "segment is of layout %u, this is %u; use the "
                           "iris-top of that version",
                           header.version, IRIS_SEGMENT_VERSION);
    }
    if (header.num_ranks == 0 || header.num_ranks > IRIS_RANKS_MAX ||
        header.bytes != iris_i_segment_bytes((int)header.num_ranks) ||
        (uint64_t)stat.st_size < header.bytes) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "the control segment is damaged: %u ranks in %llu "
                           "bytes",
                           header.num_ranks, (unsigned long long)header.bytes);
    }
    *num_ranks_p = (int)header.num_ranks;
    return IRIS_OK;
}

/* ---- Cells ---- */

/* The cell alone: all of it is read in less time than its writer lets go by. */
static int take_again(const struct reading *reading, size_t at, void *value_p,
                      size_t bytes)
{
    size_t from = reading->at + at;
    uint64_t first, last;

    for (int i = 0; i < TRIES; i++) {
        if (!read_at(reading->fd, &first, sizeof first, from) ||
            !read_at(reading->fd, value_p, bytes, from + sizeof first) ||
            !read_at(reading->fd, &last, sizeof last, from)) {
            return 0;
        }
        if (first % 2 == 0 && first == last) {
            return 1;
        }
    }
    return 0;
}

/* Whether there is a cell at `at` bytes of the record, and it was whole. */
static int take(const struct reading *reading, size_t at, void *value_p,
                size_t bytes)
{
    uint64_t first, seq, last;

    memcpy(&first, (const char *)&reading->first + at, sizeof first);
    memcpy(&seq, (const char *)&reading->record + at, sizeof seq);
    memcpy(&last, (const char *)&reading->last + at, sizeof last);
    if (seq == 0) {
        return 0;
    }
    if (seq % 2 != 0 || first != seq || last != seq) {
        return take_again(reading, at, value_p, bytes);
    }
    memcpy(value_p, (const char *)&reading->record + at + sizeof seq, bytes);
    return 1;
}

/* Keeps the newest. */
static void keep(struct iris_record_call kept[IRIS_REPORT_SIGNALS],
                 const struct iris_record_call *call)
{
    int oldest = 0;

    for (int i = 1; i < IRIS_REPORT_SIGNALS; i++) {
        if (kept[i].id < kept[oldest].id) {
            oldest = i;
        }
    }
    if (call->id > kept[oldest].id) {
        kept[oldest] = *call;
    }
}

static void keep_kernel(struct iris_report_rank *rank, const char *name)
{
    int i = 0;

    while (i < rank->num_kernels && strcmp(rank->kernels[i], name) != 0) {
        i++;
    }
    if (i == rank->num_kernels && i < IRIS_REPORT_KERNELS) {
        memcpy(rank->kernels[rank->num_kernels++], name, IRIS_RECORD_NAME);
    }
}

static void take_call(struct iris_report_rank *rank,
                      struct iris_record_call *call)
{
    iris_i_report_clean(call->kernel, sizeof call->kernel);
    if (call->id > rank->begun.id) {
        rank->begun = *call;
    }
    if (call->end_ns != 0 &&
        (rank->finished.id == 0 || call->end_ns > rank->finished.end_ns ||
         (call->end_ns == rank->finished.end_ns &&
          call->id > rank->finished.id))) {
        rank->finished = *call;
    }
    if (call->op == IRIS_HOST_SIGNAL) {
        keep(rank->signals, call);
    } else if (call->op == IRIS_HOST_WAIT) {
        keep(rank->stream_waits, call);
    } else if (call->op == IRIS_HOST_LAUNCH) {
        keep_kernel(rank, call->kernel);
    }
    if (call->end_ns == 0 && rank->num_open < IRIS_REPORT_OPEN_CALLS) {
        rank->open[rank->num_open++] = *call;
    }
}

static void take_calls(const struct reading *reading,
                       struct iris_report_rank *rank)
{
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        struct iris_record_call call;

        if (take(reading, offsetof(struct iris_record, calls_ring[i]), &call,
                 sizeof call) &&
            call.id % IRIS_RECORD_CALLS == i && call.id != 0) {
            take_call(rank, &call);
        }
    }
}

static void take_waits(const struct reading *reading,
                       struct iris_report_rank *rank)
{
    for (size_t i = 0; i < IRIS_RECORD_WAITS; i++) {
        unsigned owner = atomic_load(&reading->record.owners[i]);
        struct iris_record_wait *wait = &rank->waits[rank->num_waits];

        if (owner == IRIS_OWNER_NONE ||
            !take(reading, offsetof(struct iris_record, waits[i]), wait,
                  sizeof *wait)) {
            continue;
        }
        iris_i_report_clean(wait->name, sizeof wait->name);
        iris_i_report_clean(wait->word, sizeof wait->word);
        wait->ended = owner == IRIS_OWNER_PAST || wait->ended;
        rank->num_waits++;
    }
}

static void take_streams(const struct reading *reading,
                         struct iris_report_rank *rank)
{
    for (size_t i = 0; i < IRIS_RECORD_STREAMS; i++) {
        struct iris_record_stream *stream = &rank->streams[rank->num_streams];
        uint64_t address = atomic_load(&reading->record.stream_address[i]);

        if (address == 0) {
            continue;
        }
        if (!take(reading, offsetof(struct iris_record, streams[i]), stream,
                  sizeof *stream)) {
            *stream = (struct iris_record_stream){.address = address};
        }
        iris_i_report_clean(stream->kernel, sizeof stream->kernel);
        rank->launched[rank->num_streams++] =
            atomic_load(&reading->record.launched[i]);
    }
}

/* ---- Ranks ---- */

static void take_board(const struct iris_board *board,
                       struct iris_report_rank *rank)
{
    rank->state = atomic_load(&board->state);
    rank->busy = atomic_load(&board->busy) != 0;
    rank->calls = atomic_load(&board->calls);
    iris_i_peers_read_call(board, rank->call);
    iris_i_report_clean(rank->call, sizeof rank->call);
}

/* A process of the same number may be another by now. */
static char process_of(const struct iris_record *record)
{
    char state = IRIS_PROCESS_GONE;
    uint64_t start = iris_i_record_process(record->pid, &state);

    return start == 0 || start != record->start_ticks ? IRIS_PROCESS_GONE
                                                      : state;
}

static void take_record(const struct reading *reading,
                        struct iris_report_rank *rank)
{
    const struct iris_record *record = &reading->record;

    rank->known = 1;
    rank->pid = record->pid;
    rank->tid = record->tid;
    rank->process = process_of(record);
    rank->num_cus = record->num_cus;
    rank->heap_bytes = record->heap_bytes;
    rank->heap_used = atomic_load(&record->heap_used);
    rank->host_calls = atomic_load(&record->calls);
    for (int i = 0; i < IRIS_RECORD_PEERS; i++) {
        rank->peer_bytes[i] = atomic_load(&record->peer_bytes[i]);
    }
    memcpy(rank->job, record->job, sizeof rank->job);
    iris_i_report_clean(rank->job, sizeof rank->job);
    take_calls(reading, rank);
    take_waits(reading, rank);
    take_streams(reading, rank);
}

/* The board comes last: a rank may finalize and then end, so that one whose
 * process had ended shows on it whether it had finalized. */
static int read_rank(int fd, const struct iris_report *report, int i,
                     struct reading *reading)
{
    size_t at = iris_i_segment_record_at(report->num_ranks, i);
    struct iris_report_rank *rank =
        (struct iris_report_rank *)&report->ranks[i];
    struct iris_board board;

    reading->fd = fd;
    reading->at = at;
    if (!read_at(fd, &reading->first, sizeof reading->first, at) ||
        !read_at(fd, &reading->record, sizeof reading->record, at) ||
        !read_at(fd, &reading->last, sizeof reading->last, at)) {
        return 0;
    }
    rank->process = '?';
    if (atomic_load(&reading->record.opened) == 1) {
        take_record(reading, rank);
    }
    if (!read_at(fd, &board, sizeof board, iris_i_segment_board_at(i))) {
        return 0;
    }
    take_board(&board, rank);
    return 1;
}

iris_status_t iris_i_report_read(int fd, struct iris_report **report_p)
{
    int num_ranks = 0, whole = 1;
    iris_status_t status = iris_i_report_check(fd, &num_ranks);
    struct iris_segment_header header;
    struct iris_report *report;
    struct iris_board board;
    struct reading *reading;

    if (status != IRIS_OK) {
        return status;
    }
    report =
        calloc(1, sizeof *report + (size_t)num_ranks * sizeof report->ranks[0]);
    reading = aligned_alloc(64, sizeof *reading);
    if (report == NULL || reading == NULL) {
        free(report);
        free(reading);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a report");
    }
    report->num_ranks = num_ranks;
    report->root = -1;
    report->old_ns = IRIS_OLD_MS * IRIS_NS_PER_MS;
    for (int i = 0; i < num_ranks && whole; i++) {
        whole = read_rank(fd, report, i, reading);
    }
    whole = whole && read_at(fd, &header, sizeof header, 0) &&
            read_at(fd, &board, sizeof board, iris_i_segment_board_at(0));
    free(reading);
    if (!whole) {
        free(report);
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "the control segment cannot be read");
    }
    report->start_ns = header.start_ns;
    report->job = atomic_load(&board.id);
    report->now_ns = iris_i_now_ns();
    iris_i_report_count_helpers(report);
    *report_p = report;
    return IRIS_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const struct iris_record_call *first = a, *second = b;

    return (first->id > second->id) - (first->id < second->id);
}

int iris_i_report_calls(int fd, int rank,
                        struct iris_record_call calls[IRIS_RECORD_CALLS])
{
    struct reading reading = {.fd = fd};
    int num_ranks = 0, count = 0;

    if (iris_i_report_check(fd, &num_ranks) != IRIS_OK || rank < 0 ||
        rank >= num_ranks) {
        return -1;
    }
    reading.at = iris_i_segment_record_at(num_ranks, rank);
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        struct iris_record_call *call = &calls[count];

        if (take_again(&reading, offsetof(struct iris_record, calls_ring[i]),
                       call, sizeof *call) &&
            call->id != 0 && call->id % IRIS_RECORD_CALLS == i) {
            iris_i_report_clean(call->kernel, sizeof call->kernel);
            count++;
        }
    }
    qsort(calls, (size_t)count, sizeof calls[0], compare_ids);
    return count;
}
