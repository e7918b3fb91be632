/* SPDX-License-Identifier: MIT
 *
 * Structs and word positions that the host writes and kernels read. Offsets are
 * a public format: upstream Iris's Triton kernels read the same device context.
 */
#ifndef IRIS_DEVICE_LAYOUT_H
#define IRIS_DEVICE_LAYOUT_H

#include <iris/device/compat.h>

/* The device context: int64 words, n = number of ranks. */
enum {
    IRIS_CONTEXT_RANK = 0,
    IRIS_CONTEXT_NUM_RANKS = 1,
    IRIS_CONTEXT_HEAP_BASES = 2, /* n words, one for each rank */
    /* From here on, add n. */
    IRIS_CONTEXT_TRACE_ENABLED = 2,
    IRIS_CONTEXT_TRACE_MAX_EVENTS = 3,
    IRIS_CONTEXT_TRACE_COUNTER = 4,
    IRIS_CONTEXT_TRACE_OP_INDEX = 5,
    IRIS_CONTEXT_TRACE_BUFFERS = 6,
    IRIS_CONTEXT_TRACE_NUM_BUFFERS = 13,
    IRIS_CONTEXT_TAIL_WORDS = 17, /* trace_enabled and all after it */
};

/* Words in the device context of a job of n ranks. */
#define IRIS_CONTEXT_WORDS(n) \
    (IRIS_CONTEXT_HEAP_BASES + (size_t)(n) + IRIS_CONTEXT_TAIL_WORDS)

IRIS_STATIC_ASSERT(IRIS_CONTEXT_TRACE_BUFFERS +
                           IRIS_CONTEXT_TRACE_NUM_BUFFERS ==
                       IRIS_CONTEXT_TRACE_ENABLED + IRIS_CONTEXT_TAIL_WORDS,
                   "the trace words end the device context");

/* One group on one rank, in the symmetric heap at the same offset on every
 * member. `epoch` and the arrivals only grow, so nothing is ever reset.
 *   words[0 .. count-1]        rank of each member (group order)
 *   words[count .. 2*count-1]  epoch that member i last announced to us */
struct iris_dev_group {
    uint64_t epoch; /* barriers this rank has begun */
    int32_t count;  /* members */
    int32_t index;  /* this rank's place among them */
#ifndef __cplusplus /* has no such member; see iris_i_group_words() */
    uint64_t words[];
#endif
};

IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, epoch) == 0, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, count) == 8, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, index) == 12, "layout");
IRIS_STATIC_ASSERT(sizeof(struct iris_dev_group) == 16, "words follow");

/* Where `words` is, in any language; host and device. */
IRIS_HOST_DEVICE uint64_t *iris_i_group_words(struct iris_dev_group *group)
{
    return (uint64_t *)(void *)(group + 1);
}

/* Bytes of a group of n members. */
#define IRIS_DEV_GROUP_BYTES(n) \
    (sizeof(struct iris_dev_group) + 2 * (size_t)(n) * sizeof(uint64_t))

#endif /* IRIS_DEVICE_LAYOUT_H */
