/* SPDX-License-Identifier: MIT
 *
 * Copies of the flight records of other hosts' ranks. They are written by
 * pwrite(): most pages of a copy stay untouched, and need no memory.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything before this member belongs to the copy alone. */
#define FIRST offsetof(struct iris_record, rank)

/* An answer contains this number of the newest calls, and all calls in
 * progress. */
#define NEWEST 64

/* Two hosts' clocks differ by a constant. An estimate contains the time of the
 * message, so a new one is taken only if it is this far off. */
#define SAME_SHIFT_NS ((uint64_t)500 * IRIS_NS_PER_MS)

/* In `taken`: no answer has begun. */
#define NOT_BEGUN (UINT64_MAX / 2)

/* ---- Sending ---- */

/* Replaces a cell that was being written by a complete one. */
static int settle_cell(struct iris_record_copy *copy, size_t at, size_t bytes)
{
    const uint64_t complete = 2;
    unsigned char value[sizeof(struct iris_wait_cell)];

    if (!iris_i_records_take(copy, at, value, bytes)) {
        return 0;
    }
    memcpy((char *)&copy->record + at, &complete, sizeof complete);
    memcpy((char *)&copy->record + at + sizeof complete, value, bytes);
    return 1;
}

static void settle(struct iris_record_copy *copy)
{
    struct iris_record *record = &copy->record;

    (void)settle_cell(copy, offsetof(struct iris_record, scale),
                      sizeof record->scale.words);
    for (size_t i = 0; i < IRIS_RECORD_STREAMS; i++) {
        (void)settle_cell(copy, offsetof(struct iris_record, streams[i]),
                          sizeof record->streams[i].words);
    }
    for (size_t i = 0; i < IRIS_RECORD_WAITS; i++) {
        if (atomic_load(&record->owners[i]) != IRIS_OWNER_NONE &&
            !settle_cell(copy, offsetof(struct iris_record, waits[i]),
                         sizeof record->waits[i].words)) {
            atomic_store(&record->owners[i], IRIS_OWNER_NONE);
        }
    }
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        uint64_t mark = atomic_load(&record->calls_ring[i].mark);

        if (atomic_load(&copy->first.calls_ring[i].mark) != mark ||
            atomic_load(&copy->last.calls_ring[i].mark) != mark) {
            atomic_store(&record->calls_ring[i].mark, 0);
        }
    }
}

struct answer {
    const struct iris_mirror_way *way;
    const struct iris_record *record;
    struct iris_message_head head;
    uint64_t bytes; /* sum of the parts sent so far */
};

static void send_part(struct answer *answer, enum iris_message_type type,
                      uint64_t value, const struct iris_part *part)
{
    const struct iris_part parts[2] = {*part, {NULL, 0}};

    answer->head.type = (uint16_t)type;
    answer->head.value = value;
    answer->head.bytes = (uint16_t)part->bytes;
    answer->way->send(answer->way->arg, &answer->head, parts);
}

static void send_range(struct answer *answer, size_t at, size_t bytes)
{
    while (bytes > 0) {
        const struct iris_part part = {
            (const char *)answer->record + at,
            bytes < IRIS_POST_BYTES ? bytes : IRIS_POST_BYTES};

        send_part(answer, IRIS_MESSAGE_RECORD, at, &part);
        answer->bytes += part.bytes;
        at += part.bytes;
        bytes -= part.bytes;
    }
}

static void send_calls(struct answer *answer)
{
    const struct iris_record *record = answer->record;
    uint64_t newest = 0;

    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        uint64_t id = atomic_load(&record->calls_ring[i].mark) >> IRIS_MARK_ID;

        newest = id > newest ? id : newest;
    }
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        uint64_t mark = atomic_load(&record->calls_ring[i].mark);

        if (mark % (1u << IRIS_MARK_STATUS) == IRIS_CALL_IN ||
            (mark != 0 && (mark >> IRIS_MARK_ID) + NEWEST > newest)) {
            send_range(answer, offsetof(struct iris_record, calls_ring[i]),
                       sizeof record->calls_ring[i]);
        }
    }
}

static void send_record(struct answer *answer)
{
    const struct iris_record *record = answer->record;

    send_range(answer, FIRST, offsetof(struct iris_record, waits) - FIRST);
    for (size_t i = 0; i < IRIS_RECORD_WAITS; i++) {
        if (atomic_load(&record->owners[i]) != IRIS_OWNER_NONE) {
            send_range(answer, offsetof(struct iris_record, waits[i]),
                       sizeof record->waits[i]);
        }
    }
    for (size_t i = 0; i < IRIS_RECORD_KERNELS; i++) {
        if (atomic_load(&record->kernels[i].known)) {
            send_range(answer, offsetof(struct iris_record, kernels[i]),
                       sizeof record->kernels[i]);
        }
    }
    send_calls(answer);
}

void iris_i_mirror_answer(const struct iris_records *records, int rank,
                          const struct iris_message_head *query,
                          const struct iris_mirror_way *way)
{
    struct iris_record_copy *copy = aligned_alloc(64, sizeof *copy);
    struct answer answer = {
        way, copy == NULL ? NULL : &copy->record,
        iris_i_message_head(IRIS_MESSAGE_RECORD, rank, 0, 0, 0), 0};
    struct iris_message_answered answered = {.now_ns = iris_i_now_ns()};
    const struct iris_part end = {&answered, sizeof answered};

    answer.head.members = query->from;
    if (copy != NULL &&
        iris_i_records_copy(records->fd, records->num_ranks, rank, copy) &&
        atomic_load(&copy->record.opened)) {
        settle(copy);
        copy->record.num_threads = iris_i_process_threads(copy->record.pid);
        send_record(&answer);
        answered.bytes = answer.bytes;
        send_part(&answer, IRIS_MESSAGE_ANSWERED, query->value, &end);
    }
    free(copy);
}

/* ---- Receiving ---- */

/* Returns whether all of it was written. */
static int put(const struct iris_records *records, int rank, size_t at,
               const struct iris_part *part)
{
    off_t offset = (off_t)(iris_i_records_at(records->num_ranks, rank) + at);
    ssize_t done;

    do {
        done = pwrite(records->fd, part->data, part->bytes, offset);
    } while (done < 0 && errno == EINTR);
    return done == (ssize_t)part->bytes;
}

/* A word of the copy; 0: it cannot be read. */
static uint64_t get(const struct iris_records *records, int rank, size_t at)
{
    off_t offset = (off_t)(iris_i_records_at(records->num_ranks, rank) + at);
    uint64_t value;

    return pread(records->fd, &value, sizeof value, offset) ==
                   (ssize_t)sizeof value
               ? value
               : 0;
}

#define PUT(records, rank, member, value)                          \
    (void)put(records, rank, offsetof(struct iris_record, member), \
              &(const struct iris_part){&(value), sizeof(value)})

static void put_answers(const struct iris_records *records, int rank,
                        uint64_t answers)
{
    PUT(records, rank, answers, answers);
}

static void put_taken(const struct iris_records *records, int rank,
                      uint64_t taken)
{
    PUT(records, rank, taken, taken);
}

/* An answer begins. It has only some of the calls, so those of the last answer
 * go. */
static void begin(const struct iris_records *records, int rank)
{
    size_t at = iris_i_records_at(records->num_ranks, rank) +
                offsetof(struct iris_record, calls_ring);

    put_answers(records, rank, IRIS_RECORD_CHANGES);
    put_taken(records, rank, 0);
    (void)fallocate(records->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)at,
                    sizeof(struct iris_call_cell[IRIS_RECORD_CALLS]));
}

/* The waits of two readings are compared, so the shift stays the same. The
 * message may have any time in it. */
static void put_shift(const struct iris_records *records, int rank,
                      uint64_t shift_ns)
{
    uint64_t old_ns =
        get(records, rank, offsetof(struct iris_record, shift_ns));

    if (old_ns == 0 || shift_ns - old_ns + SAME_SHIFT_NS > 2 * SAME_SHIFT_NS) {
        PUT(records, rank, shift_ns, shift_ns);
    }
}

/* An answer of which a part is missing does not count. */
static void finish(const struct iris_records *records,
                   const struct iris_message_head *head,
                   const struct iris_message_answered *answered)
{
    const unsigned opened = 1;
    uint64_t taken =
        get(records, head->from, offsetof(struct iris_record, taken));

    put_taken(records, head->from, NOT_BEGUN);
    if (taken == answered->bytes) {
        put_shift(records, head->from,
                  (uint64_t)iris_i_now_ns() - (uint64_t)answered->now_ns);
        PUT(records, head->from, opened, opened);
        put_answers(records, head->from, head->value);
    }
}

void iris_i_mirror_take(const struct iris_records *records,
                        const struct iris_message_head *head,
                        const unsigned char *body)
{
    const struct iris_part part = {body, head->bytes};
    struct iris_message_answered answered;

    if (head->type == IRIS_MESSAGE_ANSWERED) {
        memcpy(&answered, body, sizeof answered);
        finish(records, head, &answered);
        return;
    }
    if (head->value < FIRST || head->value > sizeof(struct iris_record) ||
        head->bytes > sizeof(struct iris_record) - head->value) {
        return;
    }
    if (head->value == FIRST) {
        begin(records, head->from);
    }
    if (put(records, head->from, head->value, &part)) {
        put_taken(records, head->from,
                  head->bytes + get(records, head->from,
                                    offsetof(struct iris_record, taken)));
    }
}

void iris_i_mirror_end(const struct iris_records *records, int rank, int pid,
                       const char *host)
{
    const unsigned opened = 1, gone = IRIS_RECORD_ENDED;
    const int32_t number = pid;
    char name[IRIS_RECORD_HOST] = "";

    strncpy(name, host, sizeof name - 1);
    PUT(records, rank, pid, number);
    PUT(records, rank, host, name);
    PUT(records, rank, gone, gone);
    PUT(records, rank, opened, opened);
}

void iris_i_mirror_lose(const struct iris_records *records, int rank)
{
    const unsigned gone = IRIS_RECORD_UNREACHABLE;

    PUT(records, rank, gone, gone);
}
