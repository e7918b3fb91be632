/* SPDX-License-Identifier: MIT
 *
 * Writes the flight record. Nothing here takes a lock or waits. A cell has one
 * writer at a time, and its counter or mark tells readers whether they read it
 * completely. If a thread is delayed while it writes, for as long as others
 * make 1,024 calls, it spoils an entry.
 */
#include "config.h"

#include "base/base.h"
#include "control/records.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
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

static void put_what(_Atomic uint64_t *word, struct iris_call_what what)
{
    uint64_t value;

    memcpy(&value, &what, sizeof value);
    put_word(word, value);
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

    put_word(&cell->mark, make_mark(event->id, IRIS_CALL_WRITING));
    atomic_thread_fence(memory_order_release);
    put_word(&cell->words[IRIS_CALL_BEGIN], read_ticks(record));
    put_word(&cell->words[IRIS_CALL_END], 0);
    put_word(&cell->words[IRIS_CALL_STREAM], (uintptr_t)event->stream);
    put_word(&cell->words[IRIS_CALL_OFFSET], offset);
    put_word(&cell->words[IRIS_CALL_BYTES], event->bytes);
    put_word(&cell->words[IRIS_CALL_VALUE], value);
    put_what(&cell->words[IRIS_CALL_WHAT], what);
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
        if (seq % 2 == 0 && wait_p->kind != IRIS_WAIT_AGREEMENT &&
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
