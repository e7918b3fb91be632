/* SPDX-License-Identifier: MIT
 *
 * The contents of all ranks' records at one moment, read from a descriptor.
 *
 * The writers do not stop for a reader. So a value of several words has a
 * sequence number, and is read again while that changes. A rank whose record
 * cannot be read is unknown, which no verdict counts as stuck. No index in a
 * record is trusted, and its text is made safe for a terminal before it is
 * printed.
 */
#include "config.h"

#include "report/report.h"

#include "base/base.h"
#include "control/records.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
 * Makes text of other processes safe for a terminal. A record may contain any
 * bytes: a job id or a kernel's name could move the cursor or fake a line.
 */

/* Whether a code point is printed. Control characters of ASCII and Latin 1 are
 * not, nor are characters that change the direction of writing or separate
 * lines. */
static int is_printed(uint32_t code)
{
    return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && code != 0x61c &&
           code != 0x200e && code != 0x200f &&
           !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2066 && code <= 0x2069);
}

size_t iris_i_printed_char(const char *text)
{
    uint32_t code = 0;
    size_t bytes = iris_i_utf8_char(text, &code);

    return bytes != 0 && is_printed(code) ? bytes : 0;
}

void iris_i_clean(char *text, size_t bytes)
{
    char raw[256];
    size_t used = 0;

    snprintf(raw, sizeof raw, "%.*s", (int)(bytes - 1), text);
    for (const char *c = raw; *c != '\0';) {
        size_t length = iris_i_printed_char(c);
        char piece[8];

        if (length == 0) {
            length = 1;
            snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)*c);
        } else {
            snprintf(piece, sizeof piece, "%.*s", (int)length, c);
        }
        if (used + strlen(piece) >= bytes) {
            break;
        }
        memcpy(text + used, piece, strlen(piece));
        used += strlen(piece);
        c += length;
    }
    text[used] = '\0';
}

/* If the text is too long, it ends with a whole character. */
void iris_i_append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text), at;
    va_list list;
    int length;

    va_start(list, format);
    length = iris_i_vprint(text + used, bytes - used, format, list);
    va_end(list);
    if (length < 0 || (size_t)length < bytes - used) {
        return;
    }
    at = strlen(text);
    while (at > used && ((unsigned char)text[at - 1] & 0xc0) == 0x80) {
        at--;
    }
    if (at > used && iris_i_printed_char(text + at - 1) == 0) {
        text[at - 1] = '\0';
    }
}

/* ---------------------------------------------------------------------------
 * The contents of all ranks' records at one moment, read from a descriptor.
 */

/* ---- The state of a rank, and its waits ---- */

int iris_i_rank_is_lost(const struct iris_report_rank *rank)
{
    int ended = rank->process == IRIS_PROCESS_GONE ||
                rank->process == IRIS_PROCESS_ZOMBIE;

    return rank->state == IRIS_RANK_LEFT ||
           (rank->known && ended && rank->state != IRIS_RANK_FINALIZED);
}

int iris_i_rank_has_ended(const struct iris_report_rank *rank)
{
    return rank->state == IRIS_RANK_FINALIZED || iris_i_rank_is_lost(rank);
}

int iris_i_rank_is_stopped(const struct iris_report_rank *rank)
{
    return rank->process == 'T' || rank->process == 't';
}

int iris_i_wait_is_in_kernel(const struct iris_record_wait *wait)
{
    return wait->kind == IRIS_WAIT_KERNEL || wait->kind == IRIS_WAIT_BARRIER;
}

/* For a GPU's kernel one lane is known, but not the state of the others. */
int iris_i_wait_is_of_gpu(const struct iris_record_wait *wait)
{
    return iris_i_wait_is_in_kernel(wait) && wait->grid == 0;
}

int iris_i_wait_is_collective(const struct iris_record_wait *wait)
{
    return iris_i_wait_is_in_kernel(wait) && wait->own &&
           strcmp(wait->name, "iris_k_wait") != 0;
}

/* A wait that repeats atomic operations may make progress each time. It counts
 * only if something ended it before it did. */
int iris_i_wait_counts(const struct iris_report_rank *rank, int wait)
{
    return rank->waits[wait].ended ||
           (rank->waits_live[wait] && rank->waits[wait].kind != IRIS_WAIT_SPIN);
}

const struct iris_record_wait *
iris_i_find_wait(const struct iris_report *report, int rank,
                 int (*sort)(const struct iris_record_wait *wait))
{
    const struct iris_report_rank *r = &report->ranks[rank];

    for (int i = 0; i < r->num_waits; i++) {
        if (iris_i_wait_counts(r, i) &&
            (sort == NULL ? r->waits[i].kind != IRIS_WAIT_SPIN
                          : sort(&r->waits[i]))) {
            return &r->waits[i];
        }
    }
    return NULL;
}

int iris_i_mark_waiting(const struct iris_report *report, char *marked)
{
    int count = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        marked[i] = !iris_i_rank_is_lost(&report->ranks[i]) &&
                    iris_i_find_wait(report, i, NULL) != NULL;
        count += marked[i];
    }
    return count;
}

/* ---- Calls, waits, streams ---- */

/* Keeps the newest entries. */
static void keep_newest(struct iris_record_call kept[IRIS_REPORT_SIGNALS],
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
    iris_i_clean(call->kernel, sizeof call->kernel);
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
        keep_newest(rank->signals, call);
    } else if (call->op == IRIS_HOST_WAIT) {
        keep_newest(rank->stream_waits, call);
    } else if (call->op == IRIS_HOST_LAUNCH) {
        keep_kernel(rank, call->kernel);
    }
    if (call->end_ns == 0 && rank->num_open < IRIS_REPORT_OPEN_CALLS) {
        rank->open[rank->num_open++] = *call;
    }
}

static void take_calls(struct iris_record_copy *copy,
                       struct iris_report_rank *rank)
{
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        struct iris_record_call call;

        if (iris_i_records_take_call(copy, i, &call)) {
            take_call(rank, &call);
        }
    }
}

/* Converts the times of another host. */
static void shift_wait(struct iris_record_wait *wait, int64_t shift_ns)
{
    int64_t *const times[] = {&wait->begin_ns, &wait->update_ns,
                              &wait->change_ns};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (*times[i] != 0) {
            *times[i] = (int64_t)((uint64_t)*times[i] + (uint64_t)shift_ns);
        }
    }
}

/* Returns its number, or 0 if it is not known. */
static uint32_t take_site(const struct iris_record_copy *copy, uint32_t site,
                          struct iris_report_rank *rank)
{
    const struct iris_record_site *from;
    struct iris_source *source;

    if (site == 0 || site > IRIS_RECORD_SITES) {
        return 0;
    }
    from = &copy->record.sites[site - 1];
    source = &rank->sites[site - 1];
    if (atomic_load(&from->state) != IRIS_SITE_KNOWN) {
        return 0;
    }
    *source = from->source;
    source->file[sizeof source->file - 1] = '\0';
    return site;
}

static void take_waits(const struct iris_record_copy *copy,
                       struct iris_report_rank *rank)
{
    for (size_t i = 0; i < IRIS_RECORD_WAITS; i++) {
        unsigned owner = atomic_load(&copy->record.owners[i]);
        struct iris_record_wait *wait = &rank->waits[rank->num_waits];

        if (owner == IRIS_OWNER_NONE ||
            !iris_i_records_take(copy, offsetof(struct iris_record, waits[i]),
                                 wait, sizeof *wait)) {
            continue;
        }
        iris_i_clean(wait->name, sizeof wait->name);
        iris_i_clean(wait->word, sizeof wait->word);
        wait->ended = owner == IRIS_OWNER_PAST || wait->ended;
        wait->site = rank->is_elsewhere ? 0 : take_site(copy, wait->site, rank);
        wait->place[0] = '\0';
        shift_wait(wait, copy->record.shift_ns);
        if (wait->kind != IRIS_WAIT_STREAM) {
            rank->num_waits++;
        } else if (wait->site != 0 &&
                   rank->num_host_waits < IRIS_REPORT_HOST_WAITS) {
            rank->host_waits[rank->num_host_waits++] = *wait;
        }
    }
}

static void take_streams(const struct iris_record_copy *copy,
                         struct iris_report_rank *rank)
{
    for (size_t i = 0; i < IRIS_RECORD_STREAMS; i++) {
        struct iris_record_stream *stream = &rank->streams[rank->num_streams];
        uint64_t address = atomic_load(&copy->record.stream_address[i]);

        if (address == 0) {
            continue;
        }
        if (!iris_i_records_take_stream(copy, i, stream)) {
            *stream = (struct iris_record_stream){.address = address};
        }
        iris_i_clean(stream->kernel, sizeof stream->kernel);
        rank->launched[rank->num_streams++] =
            atomic_load(&copy->record.launched[i]);
    }
}

/* ---- Ranks ---- */

static void take_shown(const struct iris_shown *shown,
                       struct iris_report_rank *rank)
{
    rank->state = shown->state;
    rank->busy = shown->busy != 0;
    rank->calls = shown->calls;
    snprintf(rank->call, sizeof rank->call, "%s", shown->name);
    iris_i_clean(rank->call, sizeof rank->call);
    if (rank->is_elsewhere) {
        memcpy(rank->reason, shown->reason, sizeof rank->reason);
        iris_i_clean(rank->reason, sizeof rank->reason);
    }
}

/* The process with this number may be another one by now. The hub of another
 * node tells whether its process is stopped. */
static char process_of(const struct iris_record *record, int is_elsewhere)
{
    struct iris_process process;

    if (is_elsewhere) {
        return atomic_load(&record->gone) ? IRIS_PROCESS_GONE
               : record->process == 'T' || record->process == 't'
                   ? (char)record->process
                   : 'S';
    }
    return iris_i_process_read(record->pid, &process) &&
                   process.start_ticks == record->start_ticks
               ? process.state
               : IRIS_PROCESS_GONE;
}

static void take_record(struct iris_record_copy *copy,
                        struct iris_report_rank *rank)
{
    const struct iris_record *record = &copy->record;

    rank->known = 1;
    rank->tid = record->tid;
    rank->start_ticks = record->start_ticks;
    rank->process = process_of(record, rank->is_elsewhere);
    rank->threads = record->num_threads > 0 ? record->num_threads : 0;
    rank->num_cus = record->num_cus;
    rank->heap_bytes = atomic_load(&record->heap_bytes);
    rank->heap_reserved = record->heap_reserved;
    rank->heap_mapped = atomic_load(&record->heap_mapped);
    rank->heap_used = atomic_load(&record->heap_used);
    for (int i = 0; i < IRIS_RECORD_PEERS; i++) {
        rank->peer_bytes[i] = atomic_load(&record->peer_bytes[i]);
    }
    memcpy(rank->job, record->job, sizeof rank->job);
    iris_i_clean(rank->job, sizeof rank->job);
    take_calls(copy, rank);
    rank->host_calls = rank->begun.id; /* numbered from 1 */
    take_waits(copy, rank);
    take_streams(copy, rank);
}

/* Whether the hub has brought the record lately, or it is the last that can be
 * known. */
static int is_new(const struct iris_record *record)
{
    uint64_t arrived = atomic_load(&record->arrived);

    return atomic_load(&record->gone) ||
           (arrived != 0 && arrived != IRIS_RECORD_CHANGES &&
            iris_i_now_ns() - atomic_load(&record->arrived_ns) <
                IRIS_ROW_OLD_MS * IRIS_NS_PER_MS);
}

/* Reads the published state last: a rank may finalize and then end. So if its
 * process had ended, the state shows whether it had finalized. */
static int read_rank(const struct iris_records_header *header, int i,
                     struct iris_record_copy *copy, struct iris_report *report)
{
    struct iris_report_rank *rank = &report->ranks[i];
    struct iris_shown shown;
    int fd = copy->fd;

    rank->is_elsewhere = iris_i_records_is_elsewhere(header, i);
    if (!iris_i_records_copy(fd, report->num_ranks, i, copy)) {
        return 0;
    }
    rank->process = '?';
    if (atomic_load(&copy->record.opened) == 1) {
        rank->pid = copy->record.pid;
        memcpy(rank->host, copy->record.host, sizeof rank->host);
        iris_i_clean(rank->host, sizeof rank->host);
        if (!rank->is_elsewhere || is_new(&copy->record)) {
            take_record(copy, rank);
        }
    }
    if (!iris_i_records_shown(fd, i, &shown)) {
        return 0;
    }
    take_shown(&shown, rank);
    report->job = i == 0 ? shown.id : report->job;
    return 1;
}

/* ---- Unknown threads ---- */

/* A record shows a thread only once it calls Iris. */

static int share_process(const struct iris_report_rank *a,
                         const struct iris_report_rank *b)
{
    return a->known && b->known && a->pid == b->pid &&
           a->is_elsewhere == b->is_elsewhere && strcmp(a->host, b->host) == 0;
}

/* If ranks are threads, the main thread is in iris_spawn(). */
static int count_helpers(const struct iris_report *report,
                         const struct iris_report_rank *rank)
{
    int ranks = 0, main_is_rank = 0;
    int threads =
        rank->is_elsewhere ? rank->threads : iris_i_process_threads(rank->pid);

    for (int i = 0; i < report->num_ranks; i++) {
        if (share_process(&report->ranks[i], rank)) {
            ranks++;
            main_is_rank |= report->ranks[i].tid == rank->pid;
        }
    }
    threads -= ranks + !main_is_rank;
    return threads > 0 ? threads : 0;
}

static void count_helpers_of_all(struct iris_report *report)
{
    for (int i = 0; i < report->num_ranks; i++) {
        struct iris_report_rank *rank = &report->ranks[i];
        int before = i - 1;

        if (!rank->known || iris_i_rank_has_ended(rank)) {
            continue;
        }
        while (before >= 0 && !share_process(&report->ranks[before], rank)) {
            before--;
        }
        rank->helpers = before >= 0 ? report->ranks[before].helpers
                                    : count_helpers(report, rank);
    }
}

/* ---- The whole report ---- */

iris_status_t iris_i_report_read(int fd, struct iris_report **report_p)
{
    int num_ranks = 0, whole;
    iris_status_t status = iris_i_records_check(fd, &num_ranks);
    struct iris_report *report;
    struct iris_record_copy *copy;
    struct iris_records_header header;
    struct stat stats;

    if (status != IRIS_OK) {
        return status;
    }
    report =
        calloc(1, sizeof *report + (size_t)num_ranks * sizeof report->ranks[0]);
    copy = aligned_alloc(64, sizeof *copy);
    if (report == NULL || copy == NULL) {
        free(report);
        free(copy);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a report");
    }
    report->num_ranks = num_ranks;
    report->root = -1;
    report->old_ns = IRIS_OLD_MS * IRIS_NS_PER_MS;
    copy->fd = fd;
    whole = iris_i_records_read_header(fd, &header);
    for (int i = 0; i < num_ranks && whole; i++) {
        whole = read_rank(&header, i, copy, report);
    }
    free(copy);
    report->start_ns = header.start_ns;
    if (!whole) {
        free(report);
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "the control segment cannot be read");
    }
    report->is_own = fstat(fd, &stats) == 0 && stats.st_uid == geteuid();
    report->now_ns = iris_i_now_ns();
    count_helpers_of_all(report);
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
    struct iris_record_copy *copy = aligned_alloc(64, sizeof *copy);
    int num_ranks = 0, count = 0;

    if (copy == NULL || iris_i_records_check(fd, &num_ranks) != IRIS_OK ||
        rank < 0 || rank >= num_ranks ||
        !iris_i_records_copy(fd, num_ranks, rank, copy)) {
        free(copy);
        return -1;
    }
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        if (iris_i_records_take_call(copy, i, &calls[count])) {
            iris_i_clean(calls[count].kernel, sizeof calls[count].kernel);
            count++;
        }
    }
    free(copy);
    qsort(calls, (size_t)count, sizeof calls[0], compare_ids);
    return count;
}
