/* SPDX-License-Identifier: MIT
 *
 * The messages between hubs, and flight records on their way to other nodes'
 * tables. Messages come from other machines: every number in them is checked.
 *
 *   ROW      some bytes of a record, at an offset; a row's first bytes come first
 *   ROW_END  the sender's time, and the sum of the bytes; 0: nothing has changed
 *
 * - A hub sends about 10 KiB for a record: its members, the waits, the names in
 *   use, the newest calls and those in progress.
 * - The receiver marks its copy as changing until the end has come. Copies are
 *   written by pwrite(): most pages stay untouched, and need no memory.
 * - Two hosts' clocks differ by a constant, which the copy keeps for readers.
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Messages ---- */

/* Formats of bodies, by type. */
static const struct {
    uint32_t least;
    uint32_t most;
} lengths[IRIS_MESSAGE_TYPES] = {
    [IRIS_MESSAGE_SHOWN] = {0, sizeof(struct iris_shown)},
    [IRIS_MESSAGE_POST] = {0, IRIS_POST_BYTES},
    [IRIS_MESSAGE_ROW] = {1, IRIS_POST_BYTES},
    [IRIS_MESSAGE_ROW_END] = {sizeof(struct iris_message_row_end),
                              sizeof(struct iris_message_row_end)},
};

struct iris_message_head iris_i_message_head(enum iris_message_type type,
                                             int from, int place,
                                             uint64_t value, size_t bytes)
{
    return (struct iris_message_head){.type = type,
                                      .bytes = (uint32_t)bytes,
                                      .from = (uint16_t)from,
                                      .place = (uint32_t)place,
                                      .value = value};
}

size_t iris_i_message_take(const unsigned char *data, size_t bytes,
                           int num_ranks, struct iris_message_head *head_p)
{
    struct iris_message_head head = {.type = 0};

    if (bytes >= sizeof head) {
        memcpy(&head, data, sizeof head);
    }
    if (head.type < IRIS_MESSAGE_SHOWN || head.type >= IRIS_MESSAGE_TYPES ||
        head.bytes < lengths[head.type].least ||
        head.bytes > lengths[head.type].most ||
        (head.type == IRIS_MESSAGE_POST &&
         (head.members == 0 || head.members > num_ranks)) ||
        head.from >= num_ranks || head.place >= IRIS_PLACES ||
        head.bytes > bytes - sizeof head) {
        return 0;
    }
    *head_p = head;
    return sizeof head + head.bytes;
}

/* ---- Rows ---- */

/* Everything before this member belongs to the copy alone. */
#define FIRST offsetof(struct iris_record, rank)

/* A row contains this number of the newest calls, and all calls in
 * progress. */
#define NEWEST 64

/* Two hosts' clocks differ by a constant. An estimate contains the time of the
 * message, so a new one is taken only if it is this far off. */
#define SAME_SHIFT_NS ((uint64_t)500 * IRIS_NS_PER_MS)

/* In `taken`: no row has begun. */
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

static void settle_record(struct iris_record_copy *copy)
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

struct sending {
    void (*put_piece)(void *arg, const struct iris_message_head *head,
                      const void *body);
    void *arg;
    const struct iris_record *record;
    struct iris_message_head head;
    uint64_t bytes; /* sum of the parts sent so far */
};

static void send_piece(struct sending *sending, enum iris_message_type type,
                       uint64_t value, const struct iris_part *part)
{
    sending->head.type = type;
    sending->head.value = value;
    sending->head.bytes = (uint32_t)part->bytes;
    sending->put_piece(sending->arg, &sending->head, part->data);
}

static void send_range(struct sending *sending, size_t at, size_t bytes)
{
    while (bytes > 0) {
        const struct iris_part part = {
            (const char *)sending->record + at,
            bytes < IRIS_POST_BYTES ? bytes : IRIS_POST_BYTES};

        send_piece(sending, IRIS_MESSAGE_ROW, at, &part);
        sending->bytes += part.bytes;
        at += part.bytes;
        bytes -= part.bytes;
    }
}

static void send_calls(struct sending *sending)
{
    const struct iris_record *record = sending->record;
    uint64_t newest = 0;

    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        uint64_t id = atomic_load(&record->calls_ring[i].mark) >> IRIS_MARK_ID;

        newest = id > newest ? id : newest;
    }
    for (size_t i = 0; i < IRIS_RECORD_CALLS; i++) {
        uint64_t mark = atomic_load(&record->calls_ring[i].mark);

        if (mark % (1u << IRIS_MARK_STATUS) == IRIS_CALL_IN ||
            (mark != 0 && (mark >> IRIS_MARK_ID) + NEWEST > newest)) {
            send_range(sending, offsetof(struct iris_record, calls_ring[i]),
                       sizeof record->calls_ring[i]);
        }
    }
}

static void send_record(struct sending *sending)
{
    const struct iris_record *record = sending->record;

    send_range(sending, FIRST, offsetof(struct iris_record, waits) - FIRST);
    for (size_t i = 0; i < IRIS_RECORD_WAITS; i++) {
        if (atomic_load(&record->owners[i]) != IRIS_OWNER_NONE) {
            send_range(sending, offsetof(struct iris_record, waits[i]),
                       sizeof record->waits[i]);
        }
    }
    for (size_t i = 0; i < IRIS_RECORD_KERNELS; i++) {
        if (atomic_load(&record->kernels[i].known)) {
            send_range(sending, offsetof(struct iris_record, kernels[i]),
                       sizeof record->kernels[i]);
        }
    }
    send_calls(sending);
}

/* FNV-1a, by words: only tells whether a row has changed. */
static uint64_t hash_record(const struct iris_record *record)
{
    const unsigned char *at = (const unsigned char *)record;
    uint64_t hash = UINT64_C(14695981039346656037), word;

    for (size_t i = FIRST / 8 * 8; i + 8 <= sizeof *record; i += 8) {
        memcpy(&word, at + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
    }
    return hash;
}

void iris_i_row_send(const struct iris_table *records, int rank,
                     uint64_t *hash_p,
                     void (*put_piece)(void *arg,
                                       const struct iris_message_head *head,
                                       const void *body),
                     void *arg)
{
    struct iris_record_copy *copy = aligned_alloc(64, sizeof *copy);
    struct sending sending = {
        .put_piece = put_piece,
        .arg = arg,
        .head = iris_i_message_head(IRIS_MESSAGE_ROW, rank, 0, 0, 0)};
    struct iris_message_row_end end = {.now_ns = iris_i_now_ns()};
    const struct iris_part part = {&end, sizeof end};
    struct iris_process process;
    uint64_t hash;

    if (copy != NULL &&
        iris_i_records_copy(records->fd, records->num_ranks, rank, copy) &&
        atomic_load(&copy->record.opened)) {
        settle_record(copy);
        copy->record.num_threads = iris_i_process_threads(copy->record.pid);
        copy->record.process =
            iris_i_process_read(copy->record.pid, &process) ? process.state : 0;
        hash = hash_record(&copy->record);
        if (hash != *hash_p) {
            sending.record = &copy->record;
            send_record(&sending);
            *hash_p = hash;
        }
        end.bytes = sending.bytes;
        send_piece(&sending, IRIS_MESSAGE_ROW_END, 0, &part);
    }
    free(copy);
}

/* ---- Receiving ---- */

/* Returns whether all of it was written. */
static int write_row(const struct iris_table *records, int rank, size_t at,
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
static uint64_t read_word(const struct iris_table *records, int rank, size_t at)
{
    off_t offset = (off_t)(iris_i_records_at(records->num_ranks, rank) + at);
    uint64_t value;

    return pread(records->fd, &value, sizeof value, offset) ==
                   (ssize_t)sizeof value
               ? value
               : 0;
}

/* Writes a member of the copy, which has that type or is atomic. */
#define PUT(records, rank, type, member, value)                          \
    (void)write_row(records, rank, offsetof(struct iris_record, member), \
                    &(const struct iris_part){&(type){value}, sizeof(type)})

/* A row begins. It has only some of the calls, so those of the last one go. */
static void begin_row(const struct iris_table *records, int rank)
{
    size_t at = iris_i_records_at(records->num_ranks, rank) +
                offsetof(struct iris_record, calls_ring);

    PUT(records, rank, uint64_t, arrived, IRIS_RECORD_CHANGES);
    PUT(records, rank, uint64_t, taken, 0);
    (void)fallocate(records->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)at,
                    sizeof(struct iris_call_cell[IRIS_RECORD_CALLS]));
}

/* The waits of two readings are compared, so the shift stays the same. The
 * message may have any time in it. */
static void put_shift(const struct iris_table *records, int rank,
                      uint64_t shift_ns)
{
    uint64_t old_ns =
        read_word(records, rank, offsetof(struct iris_record, shift_ns));

    if (old_ns == 0 || shift_ns - old_ns + SAME_SHIFT_NS > 2 * SAME_SHIFT_NS) {
        PUT(records, rank, int64_t, shift_ns, (int64_t)shift_ns);
    }
}

/* A row of which a part is missing does not count. One without parts has not
 * changed. */
static void finish_row(const struct iris_table *records,
                       const struct iris_message_head *head,
                       const struct iris_message_row_end *end, uint64_t *count)
{
    const int64_t arrived_ns = iris_i_now_ns();
    uint64_t taken =
        read_word(records, head->from, offsetof(struct iris_record, taken));
    uint64_t arrived =
        read_word(records, head->from, offsetof(struct iris_record, arrived));

    PUT(records, head->from, uint64_t, taken, NOT_BEGUN);
    if (end->bytes == 0 && arrived != 0 && arrived != IRIS_RECORD_CHANGES) {
        PUT(records, head->from, int64_t, arrived_ns, arrived_ns);
    }
    if (end->bytes != 0 && taken == end->bytes) {
        put_shift(records, head->from,
                  (uint64_t)arrived_ns - (uint64_t)end->now_ns);
        PUT(records, head->from, unsigned, opened, 1);
        PUT(records, head->from, int64_t, arrived_ns, arrived_ns);
        PUT(records, head->from, uint64_t, arrived, ++*count);
    }
}

void iris_i_row_take(const struct iris_table *records,
                     const struct iris_message_head *head,
                     const unsigned char *body, uint64_t *count)
{
    const struct iris_part part = {body, head->bytes};
    struct iris_message_row_end end;

    if (head->type == IRIS_MESSAGE_ROW_END) {
        memcpy(&end, body, sizeof end);
        finish_row(records, head, &end, count);
        return;
    }
    if (head->value < FIRST || head->value > sizeof(struct iris_record) ||
        head->bytes > sizeof(struct iris_record) - head->value) {
        return;
    }
    if (head->value == FIRST) {
        begin_row(records, head->from);
    }
    if (write_row(records, head->from, head->value, &part)) {
        PUT(records, head->from, uint64_t, taken,
            head->bytes + read_word(records, head->from,
                                    offsetof(struct iris_record, taken)));
    }
}

void iris_i_row_end(const struct iris_table *records, int rank, int pid,
                    const char *host)
{
    char name[IRIS_RECORD_HOST] = "";
    const struct iris_part part = {name, sizeof name};

    strncpy(name, host, sizeof name - 1);
    PUT(records, rank, int32_t, pid, pid);
    (void)write_row(records, rank, offsetof(struct iris_record, host), &part);
    PUT(records, rank, unsigned, gone, 1);
    PUT(records, rank, unsigned, opened, 1);
}
