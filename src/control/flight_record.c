/* SPDX-License-Identifier: MIT
 *
 * Writing the flight record. Nothing here takes a lock or waits: a cell has one
 * writer at a time, and readers see by its counter whether they got it whole.
 */
#include "config.h"

#include "control/flight_record.h"

#include <iris/types.h>

#include "base/process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Cells ---- */

/* The first store of the counter stays ahead of the words, the last one behind
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
WHOLE_WORDS(iris_record_call);
WHOLE_WORDS(iris_record_wait);
WHOLE_WORDS(iris_record_stream);
#undef WHOLE_WORDS

/* ---- The rank ---- */

void iris_i_record_open(struct iris_record *record, int rank, const char *job)
{
    struct iris_process process = {.start_ticks = 0};

    (void)iris_i_process_read(getpid(), &process);
    record->rank = rank;
    record->pid = (int32_t)getpid();
    record->tid = (int32_t)gettid();
    record->start_ticks = process.start_ticks;
    snprintf(record->job, sizeof record->job, "%s", job == NULL ? "" : job);
    atomic_store_explicit(&record->opened, 1, memory_order_release);
}

/* ---- Calls ---- */

static struct iris_call_cell *cell_of(struct iris_record *record, uint64_t id)
{
    return &record->calls_ring[id % IRIS_RECORD_CALLS];
}

/* Without a bus lock: two threads at once may lose one of a count. */
static void raise(_Atomic uint64_t *count)
{
    atomic_store_explicit(count,
                          atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void iris_i_record_begin(struct iris_record *record,
                         const struct iris_record_call *call)
{
    write_cell(&cell_of(record, call->id)->seq, call, sizeof *call);
    raise(&record->calls);
}

/* Where a member of that struct is, in words. */
#define WORD(type, member) (offsetof(struct type, member) / sizeof(uint64_t))
_Static_assert(WORD(iris_record_call, op) == WORD(iris_record_call, status),
               "one word has both");

static void write_word(struct iris_call_cell *cell, size_t word,
                       const struct iris_record_call *call)
{
    atomic_store_explicit(&cell->words[word], ((const uint64_t *)call)[word],
                          memory_order_relaxed);
}

/* Only what has changed, since every call pays for it. The slot may be a newer
 * call's by now. */
void iris_i_record_end(struct iris_record *record,
                       const struct iris_record_call *call)
{
    struct iris_call_cell *cell = cell_of(record, call->id);
    uint64_t seq = atomic_load_explicit(&cell->seq, memory_order_relaxed) | 1;

    if (atomic_load_explicit(&cell->words[WORD(iris_record_call, id)],
                             memory_order_relaxed) != call->id) {
        return;
    }
    atomic_store_explicit(&cell->seq, seq, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    if (call->end_ns != 0) {
        write_word(cell, WORD(iris_record_call, end_ns), call);
    } else {
        atomic_store_explicit(
            &cell->words[WORD(iris_record_call, end_ns)],
            atomic_load_explicit(&cell->words[WORD(iris_record_call, begin_ns)],
                                 memory_order_relaxed),
            memory_order_relaxed);
    }
    write_word(cell, WORD(iris_record_call, offset), call);
    write_word(cell, WORD(iris_record_call, op), call);
    atomic_store_explicit(&cell->seq, seq + 1, memory_order_release);
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
    raise(&record->launched[slot]);
}

void iris_i_record_kernel(struct iris_record *record, int slot,
                          const struct iris_record_stream *stream)
{
    struct iris_stream_cell *cell = &record->streams[slot];
    struct iris_record_stream kernel = *stream;

    kernel.begun =
        1 + atomic_load_explicit(&cell->words[WORD(iris_record_stream, begun)],
                                 memory_order_relaxed);
    kernel.done = atomic_load_explicit(
        &cell->words[WORD(iris_record_stream, done)], memory_order_relaxed);
    write_cell(&cell->seq, &kernel, sizeof kernel);
}

/* One word, which readers get whole: the counter stays. */
void iris_i_record_kernel_done(struct iris_record *record, int slot)
{
    struct iris_stream_cell *cell = &record->streams[slot];

    atomic_store_explicit(
        &cell->words[WORD(iris_record_stream, done)],
        atomic_load_explicit(&cell->words[WORD(iris_record_stream, begun)],
                             memory_order_relaxed),
        memory_order_release);
}

/* ---- Waits ---- */

static int claim(struct iris_record *record)
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
        slot = claim(record);
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
    /* With its highest bit turned, an unsigned number compares as a signed one.
     */
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
