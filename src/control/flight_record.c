/* SPDX-License-Identifier: MIT
 *
 * Flight records: the rank writes its own; any process reads boards and records
 * from a descriptor of the table, for reports.
 *
 * - The writer takes no lock and never waits. A cell has one writer at a time, and
 *   its counter or mark tells readers whether they read it completely. If a thread
 *   is delayed while it writes, for as long as others make 1,024 calls, it spoils
 *   an entry.
 * - A reader does not map the table, so a truncated file cannot kill it, and
 *   untouched pages stay untouched.
 * - It never stops a writer. It reads a record three times; a cell counts if
 *   its counter or mark is the same each time. Otherwise the cell is read again.
 * - The record belongs to another process, so its numbers may be anything.
 */
#include "config.h"

#include "control/internal.h"

#include <iris/types.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Cells ---- */

/* The first store of the counter stays before the words, the last one after
 * them. On x86 all of these are plain stores. */
static void write_cell(_Atomic uint64_t *seq, const void *value, size_t bytes)
{
    uint64_t before = atomic_load_explicit(seq, memory_order_relaxed);
    size_t words = bytes / sizeof before;
    const uint64_t *from = value;

    atomic_store_explicit(seq, before | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < words; i++) {
        atomic_store_explicit(&seq[1 + i], from[i], memory_order_relaxed);
    }
    atomic_store_explicit(seq, (before | 1) + 1, memory_order_release);
}

static void read_own(const _Atomic uint64_t *seq, void *value_p, size_t bytes)
{
    uint64_t *to = value_p;

    for (size_t i = 0; i < bytes / sizeof *to; i++) {
        to[i] = atomic_load_explicit(&seq[1 + i], memory_order_relaxed);
    }
}

#define WHOLE_WORDS(type) \
    _Static_assert(sizeof(struct type) % sizeof(uint64_t) == 0, "whole words")
WHOLE_WORDS(iris_record_wait);
WHOLE_WORDS(iris_stream_now);
WHOLE_WORDS(iris_ticks_scale);
#undef WHOLE_WORDS

/* ---- Time ---- */

static void show_scale(struct iris_record *record)
{
    const struct iris_ticks_calibration *now = &record->calibration;

    write_cell(&record->scale.seq, &now->scale, sizeof now->scale);
    atomic_store_explicit(&record->scale_span, now->span, memory_order_relaxed);
    atomic_store_explicit(&record->scale_ticks, now->scale.ticks,
                          memory_order_relaxed);
}

static void __attribute__((noinline, cold))
calibrate(struct iris_record *record)
{
    uint64_t ticks;
    int64_t ns;

    if (!atomic_flag_test_and_set_explicit(&record->calibrating,
                                           memory_order_acquire)) {
        iris_i_ticks_pair(&ticks, &ns);
        iris_i_ticks_calibrate(&record->calibration, ticks, ns);
        show_scale(record);
        atomic_flag_clear_explicit(&record->calibrating, memory_order_release);
    }
}

/* A counter that restarted counts as one that is ahead. */
static uint64_t read_ticks(struct iris_record *record)
{
    uint64_t ticks = iris_i_ticks();

    if (ticks -
            atomic_load_explicit(&record->scale_ticks, memory_order_relaxed) >
        atomic_load_explicit(&record->scale_span, memory_order_relaxed)) {
        calibrate(record);
    }
    return ticks;
}

/* ---- The rank ---- */

void iris_i_record_open(struct iris_record *record, int rank, const char *job)
{
    struct iris_process process = {.start_ticks = 0};

    (void)iris_i_process_read(getpid(), &process);
    record->rank = rank;
    record->pid = (int32_t)getpid();
    record->tid = (int32_t)gettid();
    record->start_ticks = process.start_ticks;
    iris_i_ticks_open(&record->calibration);
    show_scale(record);
    snprintf(record->job, sizeof record->job, "%s", job == NULL ? "" : job);
    atomic_store_explicit(&record->opened, 1, memory_order_release);
}

/* ---- Names of kernels ---- */

/* Number of slots that are tried before a name is given up. */
#define PROBES 16

static size_t place_name(const char *name)
{
    uint64_t address = (uintptr_t)name;

    return (address ^ address >> 9) % IRIS_RECORD_KERNELS;
}

static int claim_name(struct iris_kernel_name *kernel, const char *name)
{
    uint64_t nobody = 0;

    if (!atomic_compare_exchange_strong(&kernel->address, &nobody,
                                        (uintptr_t)name)) {
        return 0;
    }
    memcpy(kernel->name, name, strnlen(name, IRIS_RECORD_NAME - 1));
    atomic_store_explicit(&kernel->known, 1, memory_order_release);
    return 1;
}

/* Compares the name, too: another program's module may be loaded at its address
 * by now. A name that another thread is about to write gets a second slot. */
static int is_name(const struct iris_kernel_name *kernel, const char *name)
{
    return atomic_load_explicit(&kernel->address, memory_order_relaxed) ==
               (uintptr_t)name &&
           atomic_load_explicit(&kernel->known, memory_order_acquire) != 0 &&
           strncmp(kernel->name, name, IRIS_RECORD_NAME - 1) == 0;
}

static uint16_t number_kernel(struct iris_record *record, const char *name)
{
    size_t place = place_name(name);

    for (int i = 0; i < PROBES; i++) {
        struct iris_kernel_name *kernel = &record->kernels[place];

        if (is_name(kernel, name) || claim_name(kernel, name)) {
            return (uint16_t)(place + 1);
        }
        place = (place + 1) % IRIS_RECORD_KERNELS;
    }
    return IRIS_KERNEL_NOT_KEPT;
}

/* ---- Calls ---- */

static struct iris_call_cell *find_cell(struct iris_record *record, uint64_t id)
{
    return &record->calls_ring[id % IRIS_RECORD_CALLS];
}

static uint64_t make_mark(uint64_t id, enum iris_call_state state)
{
    return id << IRIS_MARK_ID | state;
}

/* Without a bus lock: if two threads count at once, one count may be lost. */
static void raise_count(_Atomic uint64_t *count)
{
    atomic_store_explicit(count,
                          atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void put_word(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

void iris_i_record_begin(struct iris_record *record,
                         const struct iris_host_event *event, uint64_t offset,
                         uint64_t value)
{
    struct iris_call_cell *cell = find_cell(record, event->id);
    const struct iris_call_what what = {
        .op = (uint8_t)event->op,
        .cmp = (uint8_t)event->cmp,
        .kernel =
            event->kernel == NULL ? 0 : number_kernel(record, event->kernel),
        .number = event->op == IRIS_HOST_LAUNCH ? event->grid
                                                : (uint32_t)event->target_rank,
    };
    uint64_t what_word;

    memcpy(&what_word, &what, sizeof what_word);
    put_word(&cell->mark, make_mark(event->id, IRIS_CALL_WRITING));
    atomic_thread_fence(memory_order_release);
    put_word(&cell->words[IRIS_CALL_BEGIN], read_ticks(record));
    put_word(&cell->words[IRIS_CALL_END], 0);
    put_word(&cell->words[IRIS_CALL_STREAM], (uintptr_t)event->stream);
    put_word(&cell->words[IRIS_CALL_OFFSET], offset);
    put_word(&cell->words[IRIS_CALL_BYTES], event->bytes);
    put_word(&cell->words[IRIS_CALL_VALUE], value);
    put_word(&cell->words[IRIS_CALL_WHAT], what_word);
    if (atomic_load_explicit(&cell->mark, memory_order_relaxed) !=
        make_mark(event->id, IRIS_CALL_WRITING)) {
        /* A newer call came in between: neither is complete. */
        put_word(&cell->mark, 0);
        return;
    }
    atomic_store_explicit(&cell->mark, make_mark(event->id, IRIS_CALL_IN),
                          memory_order_release);
}

/* A reader accepts values that change while the mark says "in" only if it says
 * "done". The exception is an address, of which either value is fine. */
void iris_i_record_end(struct iris_record *record,
                       const struct iris_host_event *event, uint64_t offset,
                       int timed)
{
    struct iris_call_cell *cell = find_cell(record, event->id);
    uint64_t status = (uint8_t)event->status;

    if (atomic_load_explicit(&cell->mark, memory_order_relaxed) !=
        make_mark(event->id, IRIS_CALL_IN)) {
        return;
    }
    if (timed) {
        put_word(&cell->words[IRIS_CALL_END], read_ticks(record));
    }
    put_word(&cell->words[IRIS_CALL_OFFSET], offset);
    atomic_store_explicit(&cell->mark,
                          make_mark(event->id, IRIS_CALL_DONE) |
                              status << IRIS_MARK_STATUS,
                          memory_order_release);
}

/* ---- Streams ---- */

int iris_i_record_stream_slot(struct iris_record *record, uint64_t address)
{
    for (int i = 0; i < IRIS_RECORD_STREAMS; i++) {
        uint64_t seen = atomic_load_explicit(&record->stream_address[i],
                                             memory_order_relaxed);

        if (seen == address ||
            (seen == 0 && (atomic_compare_exchange_strong(
                               &record->stream_address[i], &seen, address) ||
                           seen == address))) {
            return i;
        }
    }
    return -1;
}

void iris_i_record_launched(struct iris_record *record, int slot)
{
    raise_count(&record->launched[slot]);
}

/* Index of a member in that struct, in words. */
#define WORD(type, member) (offsetof(struct type, member) / sizeof(uint64_t))

void iris_i_record_kernel(struct iris_record *record, int slot,
                          const struct iris_host_event *event, uint64_t number)
{
    struct iris_stream_cell *cell = &record->streams[slot];
    const struct iris_stream_now now = {
        .number = number,
        .begun =
            1 + atomic_load_explicit(&cell->words[WORD(iris_stream_now, begun)],
                                     memory_order_relaxed),
        .done = atomic_load_explicit(&cell->words[WORD(iris_stream_now, done)],
                                     memory_order_relaxed),
        .begin_ticks = read_ticks(record),
        .what = {.op = IRIS_HOST_KERNEL,
                 .kernel = number_kernel(record, event->kernel),
                 .number = event->grid},
    };

    write_cell(&cell->seq, &now, sizeof now);
}

/* A single word, which readers read atomically: the counter stays. */
void iris_i_record_kernel_done(struct iris_record *record, int slot)
{
    struct iris_stream_cell *cell = &record->streams[slot];

    atomic_store_explicit(
        &cell->words[WORD(iris_stream_now, done)],
        atomic_load_explicit(&cell->words[WORD(iris_stream_now, begun)],
                             memory_order_relaxed),
        memory_order_release);
}

/* ---- Waits ---- */

static int claim_wait(struct iris_record *record)
{
    for (unsigned owner = IRIS_OWNER_NONE; owner <= IRIS_OWNER_PAST;
         owner += IRIS_OWNER_PAST) {
        for (int i = 0; i < IRIS_RECORD_WAITS; i++) {
            unsigned seen = owner;

            if (atomic_compare_exchange_strong(&record->owners[i], &seen,
                                               IRIS_OWNER_THREAD)) {
                return i;
            }
        }
    }
    atomic_fetch_add_explicit(&record->unlisted_waits, 1, memory_order_relaxed);
    return -1;
}

int iris_i_record_wait(struct iris_record *record, int slot,
                       const struct iris_record_wait *wait)
{
    if (record == NULL) {
        return -1;
    }
    if (slot < 0) {
        slot = claim_wait(record);
    }
    if (slot >= 0) {
        write_cell(&record->waits[slot].seq, wait, sizeof *wait);
    }
    return slot;
}

static int is_site(struct iris_record_site *site,
                   const struct iris_source *source)
{
    unsigned nobody = IRIS_SITE_FREE;

    if (atomic_compare_exchange_strong(&site->state, &nobody,
                                       IRIS_SITE_WRITING)) {
        site->source = *source;
        atomic_store_explicit(&site->state, IRIS_SITE_KNOWN,
                              memory_order_release);
        return 1;
    }
    return atomic_load_explicit(&site->state, memory_order_acquire) ==
               IRIS_SITE_KNOWN &&
           memcmp(&site->source, source, sizeof *source) == 0;
}

uint32_t iris_i_record_site(struct iris_record *record)
{
    struct iris_caller caller;
    struct iris_source source;

    if (record == NULL) {
        return 0;
    }
    iris_i_source_caller(&caller);
    iris_i_source_find(&caller, &source);
    for (uint32_t i = 0; source.file[0] != '\0' && i < IRIS_RECORD_SITES; i++) {
        if (is_site(&record->sites[i], &source)) {
            return i + 1;
        }
    }
    return 0;
}

void iris_i_record_members(struct iris_record_wait *wait, const int *ranks,
                           int count)
{
    wait->num_members = (uint32_t)count;
    for (int i = 0; i < count && i < IRIS_RECORD_EXPECTED; i++) {
        wait->members[i] = (int16_t)ranks[i];
    }
}

void iris_i_record_wait_over(struct iris_record *record, int slot, int ended)
{
    if (record != NULL && slot >= 0) {
        atomic_store_explicit(&record->owners[slot],
                              ended ? IRIS_OWNER_PAST : IRIS_OWNER_NONE,
                              memory_order_release);
    }
}

int iris_i_record_find_wait(const struct iris_record *record,
                            struct iris_record_wait *wait_p)
{
    for (int i = 0; record != NULL && i < IRIS_RECORD_WAITS; i++) {
        const struct iris_wait_cell *cell = &record->waits[i];
        uint64_t seq = atomic_load_explicit(&cell->seq, memory_order_acquire);

        if (atomic_load(&record->owners[i]) != IRIS_OWNER_THREAD) {
            continue;
        }
        read_own(&cell->seq, wait_p, sizeof *wait_p);
        atomic_thread_fence(memory_order_acquire);
        if (seq % 2 == 0 && wait_p->kind < IRIS_WAIT_AGREEMENT &&
            atomic_load_explicit(&cell->seq, memory_order_relaxed) == seq) {
            return 1;
        }
    }
    return 0;
}

void iris_i_record_forget(struct iris_record *record)
{
    for (int i = 0; record != NULL && i < IRIS_RECORD_WAITS; i++) {
        unsigned past = IRIS_OWNER_PAST;

        atomic_compare_exchange_strong(&record->owners[i], &past,
                                       IRIS_OWNER_NONE);
    }
}

int iris_i_record_holds(const struct iris_record_wait *wait, int64_t seen)
{
    /* With its highest bit flipped, an unsigned number compares like a signed
     * one. */
    uint64_t turn = wait->is_unsigned ? (uint64_t)1 << 63 : 0;
    int64_t a = (int64_t)((uint64_t)seen ^ turn);
    int64_t b = (int64_t)((uint64_t)wait->value ^ turn);

    switch (wait->cmp) {
    case IRIS_CMP_EQ:
        return a == b;
    case IRIS_CMP_NE:
        return a != b;
    case IRIS_CMP_LT:
        return a < b;
    case IRIS_CMP_LE:
        return a <= b;
    case IRIS_CMP_GT:
        return a > b;
    case IRIS_CMP_GE:
        return a >= b;
    default:
        return 0;
    }
}

/* How often a reader tries again to read a cell that was being written. */
#define TRIES 100

/* A rank of another node of which nothing came for this time is silent. */
#define SILENT_MS (5 * IRIS_ROW_MS)

/* ---- Reading: entries ---- */

/* A call's cell, copied. */
struct call_copy {
    uint64_t mark;
    uint64_t words[IRIS_CALL_WORDS];
};

static void copy_kernel_name(const struct iris_record *record, unsigned number,
                             char name[IRIS_RECORD_NAME])
{
    static const char not_kept[] = "(name not kept)";
    int is_kept = number != 0 && number <= IRIS_RECORD_KERNELS &&
                  atomic_load_explicit(&record->kernels[number - 1].known,
                                       memory_order_acquire) != 0;

    memset(name, 0, IRIS_RECORD_NAME);
    if (is_kept) {
        memcpy(name, record->kernels[number - 1].name, IRIS_RECORD_NAME - 1);
    } else if (number != 0) {
        memcpy(name, not_kept, sizeof not_kept);
    }
}

static struct iris_call_what read_what(const struct call_copy *copy)
{
    struct iris_call_what what;

    memcpy(&what, &copy->words[IRIS_CALL_WHAT], sizeof what);
    return what;
}

static int convert_call(const struct iris_record *record,
                        const struct iris_ticks_scale *scale,
                        const struct call_copy *copy,
                        struct iris_record_call *call_p)
{
    uint64_t state = copy->mark % (1u << IRIS_MARK_STATUS);
    const uint64_t *words = copy->words;
    struct iris_call_what what = read_what(copy);

    if (state != IRIS_CALL_IN && state != IRIS_CALL_DONE) {
        return 0;
    }
    *call_p = (struct iris_record_call){
        .id = copy->mark >> IRIS_MARK_ID,
        .begin_ns = iris_i_ticks_ns(scale, words[IRIS_CALL_BEGIN]),
        .stream = words[IRIS_CALL_STREAM],
        .offset = words[IRIS_CALL_OFFSET],
        .bytes = words[IRIS_CALL_BYTES],
        .value = words[IRIS_CALL_VALUE],
        .op = what.op,
        .cmp = what.cmp,
        .target_rank = what.op == IRIS_HOST_LAUNCH ? -1 : (int32_t)what.number,
        .grid = what.op == IRIS_HOST_LAUNCH ? what.number : 0,
    };
    if (state == IRIS_CALL_DONE) {
        call_p->status = (int8_t)(copy->mark >> IRIS_MARK_STATUS);
        call_p->end_ns = words[IRIS_CALL_END] == 0
                             ? call_p->begin_ns
                             : iris_i_ticks_ns(scale, words[IRIS_CALL_END]);
    }
    copy_kernel_name(record, what.kernel, call_p->kernel);
    return 1;
}

static void convert_stream(const struct iris_record *record,
                           const struct iris_ticks_scale *scale,
                           const struct iris_stream_now *now,
                           struct iris_record_stream *stream_p)
{
    stream_p->number = now->number;
    stream_p->begun = now->begun;
    stream_p->done = now->done;
    stream_p->begin_ns = iris_i_ticks_ns(scale, now->begin_ticks);
    stream_p->grid = now->what.number;
    copy_kernel_name(record, now->what.kernel, stream_p->kernel);
}

static int read_own_call(const struct iris_record *record, size_t i,
                         struct iris_record_call *call_p)
{
    static const struct iris_ticks_scale ticks = {.ns_per_tick = UINT64_C(1)
                                                                 << 32};
    const struct iris_call_cell *cell = &record->calls_ring[i];
    struct call_copy copy;

    copy.mark = atomic_load_explicit(&cell->mark, memory_order_acquire);
    for (int w = 0; w < IRIS_CALL_WORDS; w++) {
        copy.words[w] =
            atomic_load_explicit(&cell->words[w], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&cell->mark, memory_order_relaxed) ==
               copy.mark &&
           convert_call(record, &ticks, &copy, call_p);
}

/* ---- Kernels that may be running ---- */

struct last {
    uint64_t stream[IRIS_RECORD_STREAMS]; /* 0: the default stream */
    uint64_t synchronized[IRIS_RECORD_STREAMS];
    int count;
};

static void note_synchronized(struct last *last,
                              const struct iris_record_call *call)
{
    int i = 0;

    while (i < last->count && last->stream[i] != call->stream) {
        i++;
    }
    if (i == last->count && i < IRIS_RECORD_STREAMS) {
        last->count++;
        last->stream[i] = call->stream;
        last->synchronized[i] = 0;
    }
    if (i < last->count && last->synchronized[i] < call->id) {
        last->synchronized[i] = call->id;
    }
}

static int was_synchronized(const struct last *last,
                            const struct iris_record_call *call)
{
    for (int i = 0; i < last->count; i++) {
        if (last->stream[i] == call->stream) {
            return call->id < last->synchronized[i];
        }
    }
    return 0;
}

/* The kernel that the call launches; NULL: none. */
static const char *find_kernel(const struct iris_record_call *call)
{
    switch (call->op) {
    case IRIS_HOST_LAUNCH:
    case IRIS_HOST_COLLECTIVE:
        return call->kernel;
    case IRIS_HOST_BARRIER:
        return call->stream != 0 ? "iris_k_barrier" : NULL;
    case IRIS_HOST_WAIT:
        return "iris_k_wait";
    case IRIS_HOST_GRAPH:
        return "of a graph";
    default:
        return NULL;
    }
}

static void add_name(char names[IRIS_RECORD_NAME], const char *name)
{
    size_t used = strlen(names), length = strlen(name);
    const char *at = strstr(names, name);

    if (length == 0 || (at != NULL && (at == names || at[-1] == ' ') &&
                        (at[length] == ' ' || at[length] == '\0'))) {
        return;
    }
    snprintf(names + used, IRIS_RECORD_NAME - used, "%s%s",
             used == 0 ? "" : " or ", name);
}

void iris_i_record_launched_names(const struct iris_record *record,
                                  char names[IRIS_RECORD_NAME])
{
    struct last last = {.count = 0};
    struct iris_record_call call;

    names[0] = '\0';
    for (size_t i = 0; record != NULL && i < IRIS_RECORD_CALLS; i++) {
        if (read_own_call(record, i, &call) &&
            call.op == IRIS_HOST_SYNCHRONIZE && call.end_ns != 0 &&
            call.status == IRIS_OK) {
            note_synchronized(&last, &call);
        }
    }
    for (size_t i = 0; record != NULL && i < IRIS_RECORD_CALLS; i++) {
        if (read_own_call(record, i, &call) && find_kernel(&call) != NULL &&
            !was_synchronized(&last, &call)) {
            add_name(names, find_kernel(&call));
        }
    }
    if (names[0] == '\0') {
        snprintf(names, IRIS_RECORD_NAME, "of a GPU");
    }
}

/* ---- The file ---- */

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

/* The offset of the table in use. */
static size_t find_table(int fd)
{
    uint64_t at;

    return read_at(fd, &at, sizeof at,
                   offsetof(struct iris_records_header, newest))
               ? (size_t)at
               : 0;
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
    if (!iris_i_records_read_header(fd, &header) || header.num_ranks == 0 ||
        header.num_ranks > IRIS_RANKS_MAX ||
        header.bytes != iris_i_records_bytes((int)header.num_ranks) ||
        (uint64_t)stat.st_size < find_table(fd) + header.bytes) {
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

    if (!read_at(fd, &board, sizeof board,
                 find_table(fd) + iris_i_board_at(rank))) {
        return 0;
    }
    iris_i_board_read(&board, IRIS_SHOW_ALL, shown_p);
    return 1;
}

int iris_i_records_read_header(int fd, struct iris_records_header *header_p)
{
    return read_at(fd, header_p, sizeof *header_p, find_table(fd));
}

int iris_i_records_is_elsewhere(const struct iris_records_header *header,
                                int rank)
{
    return (header->elsewhere[rank / 64] >> rank % 64 & 1) != 0;
}

/* Reads the last record of a rank on another node. Returns 0 if it has ended or
 * never came. */
static int read_last_word(int fd, int num_ranks, int rank,
                          struct iris_record *record_p)
{
    struct iris_shown shown;

    return iris_i_records_shown(fd, rank, &shown) && !shown.ended &&
           shown.state < IRIS_RANK_FINALIZED &&
           read_at(fd, record_p, offsetof(struct iris_record, scale_ticks),
                   find_table(fd) + iris_i_records_at(num_ranks, rank)) &&
           !atomic_load(&record_p->gone) && atomic_load(&record_p->arrived);
}

int iris_i_records_find_silent(int fd, int num_ranks, int *is_stopped_p)
{
    const int64_t old_ns = iris_i_now_ns() - SILENT_MS * IRIS_NS_PER_MS;
    struct iris_records_header header;
    struct iris_record record;

    if (!iris_i_records_read_header(fd, &header)) {
        return -1;
    }
    for (int rank = 0; rank < num_ranks; rank++) {
        if (!iris_i_records_is_elsewhere(&header, rank) ||
            !read_last_word(fd, num_ranks, rank, &record)) {
            continue;
        }
        *is_stopped_p = record.process == 'T' || record.process == 't';
        if (*is_stopped_p || atomic_load(&record.arrived_ns) < old_ns) {
            return rank;
        }
    }
    return -1;
}

/* ---- Cells, as readers see them ---- */

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

/* The hub may be writing it. If that has ended, it stays like that. */
static void await_row(int fd, size_t at)
{
    uint64_t arrived = IRIS_RECORD_CHANGES;

    for (int i = 0; i < TRIES && arrived == IRIS_RECORD_CHANGES; i++) {
        if (!read_at(fd, &arrived, sizeof arrived,
                     at + offsetof(struct iris_record, arrived))) {
            return;
        }
    }
}

int iris_i_records_copy(int fd, int num_ranks, int rank,
                        struct iris_record_copy *copy_p)
{
    int tries = 0;

    copy_p->fd = fd;
    copy_p->at = find_table(fd) + iris_i_records_at(num_ranks, rank);
    do {
        await_row(fd, copy_p->at);
        if (!read_at(fd, &copy_p->first, sizeof copy_p->first, copy_p->at) ||
            !read_at(fd, &copy_p->record, sizeof copy_p->record, copy_p->at) ||
            !read_at(fd, &copy_p->last, sizeof copy_p->last, copy_p->at)) {
            return 0;
        }
        /* a copy of another host's record may have changed meanwhile */
    } while (atomic_load(&copy_p->first.arrived) !=
                 atomic_load(&copy_p->last.arrived) &&
             ++tries < TRIES);
    if (!iris_i_records_take(copy_p, offsetof(struct iris_record, scale),
                             &copy_p->scale, sizeof copy_p->scale)) {
        copy_p->scale = (struct iris_ticks_scale){0};
    }
    copy_p->scale.ns = (int64_t)((uint64_t)copy_p->scale.ns +
                                 (uint64_t)copy_p->record.shift_ns);
    return 1;
}

/* The name may be newer than the copy, like the call. */
static int read_kernel_name(struct iris_record_copy *copy,
                            const struct call_copy *call)
{
    unsigned number = read_what(call).kernel;
    size_t at = copy->at + offsetof(struct iris_record, kernels);

    return number == 0 || number > IRIS_RECORD_KERNELS ||
           read_at(copy->fd, &copy->record.kernels[number - 1],
                   sizeof copy->record.kernels[0],
                   at + (number - 1) * sizeof copy->record.kernels[0]);
}

/* Reads again a call that was being written. No mark occurs twice, and the
 * words after a mark that says "in" are complete. */
static int read_call(struct iris_record_copy *copy, size_t i,
                     struct call_copy *call_p)
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
            return read_kernel_name(copy, call_p);
        }
    }
    return 0;
}

int iris_i_records_take_call(struct iris_record_copy *copy, size_t i,
                             struct iris_record_call *call_p)
{
    struct call_copy call;

    memcpy(&call, &copy->record.calls_ring[i], sizeof call);
    return ((copy->first.calls_ring[i].mark == call.mark &&
             copy->last.calls_ring[i].mark == call.mark) ||
            read_call(copy, i, &call)) &&
           convert_call(&copy->record, &copy->scale, &call, call_p) &&
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
    convert_stream(&copy->record, &copy->scale, &now, stream_p);
    return 1;
}
