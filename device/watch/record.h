/* SPDX-License-Identifier: MIT
 *
 * Records of operations: their contents, and the code by which a GPU writes
 * them into the columns of the device context, where upstream Iris's kernels
 * write theirs.
 */
#ifndef IRIS_DEVICE_RECORD_H
#define IRIS_DEVICE_RECORD_H

#include <iris/device/core/atomic.h>
#include <iris/device/watch/op.h>
#include <iris/device/core/translate.h>

/* An operation, without the rank that it acts on, is packed into one word by
 * iris_d_packed(). The word's fields:
 *
 *   bits 0 to 11   enum iris_op
 *   bits 12 to 15  flags: WRITE, HELD (after a wait or test: it holds), ONCE
 *                  (all lanes do it together) and ATOMIC
 *   bits 16 to 19  iris_sem_t
 *   bits 20 to 23  iris_scope_t
 *   bits 24 to 27  iris_cmp_t
 *   bits 28 to 63  bytes */
#define IRIS_D_OP_MASK 0xfff
#define IRIS_D_WRITE ((uint64_t)1 << 12)
#define IRIS_D_HELD ((uint64_t)1 << 13)
#define IRIS_D_ONCE ((uint64_t)1 << 14)
#define IRIS_D_ATOMIC ((uint64_t)1 << 15)
#define IRIS_D_SEM_SHIFT 16
#define IRIS_D_SCOPE_SHIFT 20
#define IRIS_D_CMP_SHIFT 24
#define IRIS_D_FIELD_MASK \
    15 /* mask for iris_sem_t, iris_scope_t and iris_cmp_t */
#define IRIS_D_BYTES_SHIFT 28

/* Bytes in the column's format. */
IRIS_HOST_DEVICE int32_t iris_d_record_payload(uint64_t bytes)
{
    return bytes > INT32_MAX ? INT32_MAX : (int32_t)bytes;
}

/* Whether the buffer has been full for so long that the counter stays where it
 * is: it must not wrap around to 0. */
IRIS_HOST_DEVICE iris_bool_t iris_d_record_full(uint32_t counter)
{
    return counter >= (uint32_t)3 << 30;
}

/* The value of an integer word after an operation that read `seen`. A wait for
 * the word will see it. Minimum and maximum are those of unsigned integers. */
IRIS_HOST_DEVICE uint64_t iris_d_record_value(enum iris_op op, uint64_t value,
                                              uint64_t seen, uint64_t expected)
{
    switch (op) {
    case IRIS_OP_LOAD:
    case IRIS_OP_WAIT:
        return seen;
    case IRIS_OP_ATOMIC_ADD:
        return seen + value;
    case IRIS_OP_ATOMIC_SUB:
        return seen - value;
    case IRIS_OP_ATOMIC_CAS:
        return seen == expected ? value : seen;
    case IRIS_OP_ATOMIC_XOR:
        return seen ^ value;
    case IRIS_OP_ATOMIC_AND:
        return seen & value;
    case IRIS_OP_ATOMIC_OR:
        return seen | value;
    case IRIS_OP_ATOMIC_MIN:
        return seen < value ? seen : value;
    case IRIS_OP_ATOMIC_MAX:
        return seen > value ? seen : value;
    default:
        return value;
    }
}

#if IRIS_D_TRACES
/* The column with that number. Upstream's columns come first, then our values
 * and operations. */
enum {
    IRIS_D_COLUMN_EVENT_ID = 0,
    IRIS_D_COLUMN_PID = 1,
    IRIS_D_COLUMN_PID_M = 2,
    IRIS_D_COLUMN_PID_N = 3,
    IRIS_D_COLUMN_CUR_RANK = 4,
    IRIS_D_COLUMN_TARGET_RANK = 5,
    IRIS_D_COLUMN_XCC_ID = 6,
    IRIS_D_COLUMN_CU_ID = 7,
    IRIS_D_COLUMN_TIMESTAMP = 8,
    IRIS_D_COLUMN_ADDRESS = 9,
    IRIS_D_COLUMN_END = 10,
    IRIS_D_COLUMN_OP_INDEX = 11,
    IRIS_D_COLUMN_PAYLOAD = 12,
};

/* A word of the context about tracing, by its name in layout.h. */
IRIS_DEVICE uintptr_t iris_d_trace_word(iris_dev_t dev, unsigned word)
{
    return (uintptr_t)iris_d_load_constant(
        &dev.trace[word - IRIS_CONTEXT_TRACE_ENABLED]);
}

IRIS_DEVICE void iris_d_put32(iris_dev_t dev, unsigned column, uint32_t slot,
                              int32_t value)
{
    int32_t *words = (int32_t *)iris_d_global(
        iris_d_trace_word(dev, IRIS_CONTEXT_TRACE_BUFFERS + column));

    words[slot] = value;
}

IRIS_DEVICE void iris_d_put64(iris_dev_t dev, unsigned column, uint32_t slot,
                              uint64_t value)
{
    uint64_t *words = (uint64_t *)iris_d_global(
        iris_d_trace_word(dev, IRIS_CONTEXT_TRACE_BUFFERS + column));

    words[slot] = value;
}

/* Our own two columns; 0: there are no such columns, because another program
 * has set the words. */
IRIS_DEVICE void iris_d_put_own(iris_dev_t dev, uint32_t slot, uint64_t value,
                                uint64_t what)
{
    uintptr_t place = (uintptr_t)iris_d_load_constant(
        &dev.trace[(unsigned)IRIS_CONTEXT_TAIL_WORDS +
                   (unsigned)IRIS_CONTEXT_OWN_TRACE]);
    size_t max = (size_t)iris_d_trace_word(dev, IRIS_CONTEXT_TRACE_MAX_EVENTS);
    size_t column = (max * sizeof(uint64_t) + 255) / 256 * 256;

    if (place != 0) {
        ((uint64_t *)iris_d_global(place))[slot] = value;
        ((uint64_t *)iris_d_global(place + column))[slot] = what;
    }
}

/* A slot for one event; IRIS_D_NO_SLOT: none is free. */
IRIS_DEVICE uint32_t iris_d_record_slot(iris_dev_t dev)
{
    iris_d_order_t relaxed = iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT);
    void *counter =
        iris_d_global(iris_d_trace_word(dev, IRIS_CONTEXT_TRACE_COUNTER));
    void *op_index =
        iris_d_global(iris_d_trace_word(dev, IRIS_CONTEXT_TRACE_OP_INDEX));
    uint32_t slot, op;

    if (iris_d_record_full((uint32_t)iris_d_load(counter, 4, relaxed))) {
        return IRIS_D_NO_SLOT;
    }
    slot = (uint32_t)iris_d_fetch(counter, 4, IRIS_D_FETCH_ADD, 1, relaxed);
    op = (uint32_t)iris_d_fetch(op_index, 4, IRIS_D_FETCH_ADD, 1, relaxed);
    if (slot >= iris_d_trace_word(dev, IRIS_CONTEXT_TRACE_MAX_EVENTS)) {
        return IRIS_D_NO_SLOT;
    }
    iris_d_put32(dev, IRIS_D_COLUMN_OP_INDEX, slot, (int32_t)op);
    return slot;
}

/* Spins for up to dev.delay ticks: how long depends on the time and on the
 * workgroup. There is no iris_d_pause(), by which checks of AMD code find waits. */
IRIS_DEVICE_LARGE void iris_d_delay(iris_dev_t dev)
{
    uint64_t start = iris_d_clock();
    uint64_t random = (start ^ iris_d_wg_id()) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t ticks = (random >> 32) * dev.delay >> 32;

    while (iris_d_clock() - start < ticks) {
        IRIS_D_PAUSED();
    }
}

/* Records the begin of an event; returns its slot. The clock is read last. */
IRIS_DEVICE_LARGE uint32_t iris_d_record(iris_dev_t dev, const void *address,
                                         uint64_t value, int rank,
                                         uint64_t what)
{
    uint32_t slot;

    if ((what & IRIS_D_ONCE) != 0 && iris_d_lane() != 0) {
        return IRIS_D_NO_SLOT;
    }
    slot = iris_d_record_slot(dev);
    if (slot == IRIS_D_NO_SLOT) {
        return slot;
    }
    iris_d_put32(dev, IRIS_D_COLUMN_EVENT_ID, slot,
                 (int32_t)(what & IRIS_D_OP_MASK));
    iris_d_put32(dev, IRIS_D_COLUMN_PID, slot, (int32_t)iris_d_wg_id());
    iris_d_put32(dev, IRIS_D_COLUMN_PID_M, slot, (int32_t)iris_d_wg_id());
    iris_d_put32(dev, IRIS_D_COLUMN_PID_N, slot, 0);
    iris_d_put32(dev, IRIS_D_COLUMN_CUR_RANK, slot, dev.rank);
    iris_d_put32(dev, IRIS_D_COLUMN_TARGET_RANK, slot, rank);
    iris_d_put32(dev, IRIS_D_COLUMN_XCC_ID, slot, (int32_t)iris_d_xcc_id());
    iris_d_put32(dev, IRIS_D_COLUMN_CU_ID, slot, (int32_t)iris_d_cu_id());
    iris_d_put64(dev, IRIS_D_COLUMN_ADDRESS, slot, (uintptr_t)address);
    iris_d_put64(dev, IRIS_D_COLUMN_END, slot, 0);
    iris_d_put32(dev, IRIS_D_COLUMN_PAYLOAD, slot,
                 iris_d_record_payload(what >> IRIS_D_BYTES_SHIFT));
    iris_d_put_own(dev, slot, value, what);
    iris_d_put64(dev, IRIS_D_COLUMN_TIMESTAMP, slot, iris_d_clock());
    return slot;
}

/* Adds the word's value once it is known. */
IRIS_DEVICE void iris_d_record_seen(iris_dev_t dev, iris_d_open_t open,
                                    uint64_t seen, iris_bool_t held)
{
    if (open.slot != IRIS_D_NO_SLOT) {
        iris_d_put_own(
            dev, open.slot,
            iris_d_record_value((enum iris_op)(open.what & IRIS_D_OP_MASK),
                                open.value, seen, open.expected),
            open.what | (held ? IRIS_D_HELD : 0));
    }
}

/* Records the end of an event. The clock may return the same value twice, and 0
 * would mean that there is no end. */
IRIS_DEVICE_LARGE void iris_d_record_end(iris_dev_t dev, iris_d_open_t open,
                                         uint64_t seen, iris_bool_t held)
{
    uint64_t now;

    if (open.slot != IRIS_D_NO_SLOT) {
        now = iris_d_clock();
        iris_d_record_seen(dev, open, seen, held);
        iris_d_put64(dev, IRIS_D_COLUMN_END, open.slot, now);
    }
}
#endif

#endif /* IRIS_DEVICE_RECORD_H */
