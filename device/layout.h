/* SPDX-License-Identifier: MIT
 *
 * Structs and word positions that the host writes and kernels read. Offsets are
 * a public format: upstream Iris's Triton kernels read the same device context.
 */
#ifndef IRIS_DEVICE_LAYOUT_H
#define IRIS_DEVICE_LAYOUT_H

#include <iris/device/core/compat.h>

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

/* Offset of the device context in its rank's heap, in bytes. It is not 0: a
 * tool that looks up memory by its first address, such as Triton's interpreter,
 * would confuse the context with the heap. */
#define IRIS_CONTEXT_OFFSET ((size_t)256)

/* Words in the device context of a job of n ranks. */
#define IRIS_CONTEXT_WORDS(n) \
    (IRIS_CONTEXT_HEAP_BASES + (size_t)(n) + IRIS_CONTEXT_TAIL_WORDS)

/* Number of words after heap_bases that can be read without a fault. No job has
 * more ranks. */
#define IRIS_CONTEXT_READABLE 1024u

IRIS_STATIC_ASSERT(IRIS_CONTEXT_TRACE_BUFFERS +
                           IRIS_CONTEXT_TRACE_NUM_BUFFERS ==
                       IRIS_CONTEXT_TRACE_ENABLED + IRIS_CONTEXT_TAIL_WORDS,
                   "the trace words end the device context");

/* Words of Iris in C behind the public ones, which upstream's kernels never
 * read. The host writes them before the first kernel starts. */
enum {
    /* Device address of struct iris_dev_watch; 0: waits read only their own
     * word. */
    IRIS_CONTEXT_OWN_WATCH = 0,
    /* Longest duration of a wait, in ticks of iris_d_clock(); 0: no limit. */
    IRIS_CONTEXT_OWN_TIMEOUT = 1,
    /* 0, or 1 once a lane has claimed the report. Lanes write it at agent
     * scope, so iris_d_load_constant() never reads it. The host resets it after
     * reading the report. */
    IRIS_CONTEXT_OWN_CLAIM = 2,
    /* For tracing: address of the column of values. The column of operations
     * follows it (record.h). */
    IRIS_CONTEXT_OWN_TRACE = 3,
    /* Ticks after which a waiting lane notes its wait; 0: never. */
    IRIS_CONTEXT_OWN_NOTE = 4,
    /* Time of the last such note, in ticks. Lanes write it. */
    IRIS_CONTEXT_OWN_NOTED = 5,
    /* For kernels compiled with IRIS_TRACE: longest delay before an operation, in
     * ticks, below 2^32; 0: none. */
    IRIS_CONTEXT_OWN_DELAY = 6,
    /* Device address of struct iris_dev_ring; 0: there are no ranks of other
     * nodes, or GPUs do not reach them. */
    IRIS_CONTEXT_OWN_RING = 7,
    /* A number that no other heap has. Peers identify the heap by it. It is
     * written before the heap is exported, and never again. */
    IRIS_CONTEXT_OWN_ID = 8,
    IRIS_CONTEXT_OWN_WORDS = 9,
};

/* Index of one of our words in the device context of a job of n ranks, and the
 * number of words including ours. */
#define IRIS_CONTEXT_OWN(n, word) (IRIS_CONTEXT_WORDS(n) + (size_t)(word))
#define IRIS_CONTEXT_ALL_WORDS(n) IRIS_CONTEXT_OWN(n, IRIS_CONTEXT_OWN_WORDS)

/* A member's description of its collective call, for the other members. The
 * host makes and reads it (backend/mismatch.c). */
struct iris_dev_call {
    uint64_t what;     /* function, type and options */
    uint64_t sizes[3]; /* count and rows, or the sizes of a product */
};

/* Positions of the parts of `what`. */
enum {
    IRIS_DEV_CALL_DTYPE = 8,
    IRIS_DEV_CALL_REDUCE = 16,
    IRIS_DEV_CALL_VARIANT = 24,
    IRIS_DEV_CALL_ROOT = 32,
};

/* Two members that are at the same step with different calls. */
struct iris_dev_mismatch {
    int32_t rank;   /* the rank that found it */
    int32_t other;  /* the other rank; -1: a kernel left the workspace in the
                     * middle of a step */
    uint64_t count; /* number of calls so far, including this one; 32 bits */
    struct iris_dev_call own;
    struct iris_dev_call theirs;
};

IRIS_STATIC_ASSERT(sizeof(struct iris_dev_mismatch) == 80, "layout");

/* Reports from waiting lanes of a GPU to the host, in host memory that the GPU
 * maps. All zero at the start.
 *
 * A lane that has waited for too long writes the report, then 1 to `stop`, then
 * `ready`. A lane that times out after it only writes `stop`. A lane that sees
 * `stop` ends. The host may also set `stop`, to another value. Once it has the
 * report, the host resets `ready` and `stop` to 0; other kernels may run then.
 *
 * A lane that has waited for a second notes its wait here, repeatedly, and goes
 * on waiting. Only one lane at a time does so. It writes the fields of the
 * note, then a new value of `beat`. A reader accepts a note if its `beat` is
 * new and did not change during the reading. */
struct iris_dev_watch {
    uint32_t stop;      /* not 0: waiting lanes end */
    uint32_t ready;     /* not 0, released at system scope: the report is
                         * complete */
    int32_t rank;       /* that waited */
    int32_t op;         /* enum iris_op: a wait or a barrier */
    int32_t cmp;        /* iris_cmp_t */
    uint32_t workgroup; /* its id in the grid */
    uint32_t lane;      /* its place in the workgroup */
    uint32_t bytes;     /* size of the word waited for; 0: the report is in
                         * `mismatch` instead */
    uint64_t offset;    /* offset of that word on the rank's heap */
    uint64_t expected;  /* the wanted value, sign-extended */
    uint64_t seen;      /* the last value, sign-extended */
    uint64_t waited;    /* ticks */
    struct iris_dev_mismatch mismatch;
    uint64_t beat;   /* released at system scope; 0: no note yet */
    int32_t note_op; /* the note; members as in the report */
    int32_t note_cmp;
    uint32_t note_workgroup;
    uint32_t note_lane;
    uint32_t note_bytes;
    uint32_t note_unsigned; /* 1: the comparison is unsigned */
    uint64_t note_offset;
    uint64_t note_expected;
    uint64_t note_seen;
    uint64_t note_waited;
};

IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, stop) == 0, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, ready) == 4, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, rank) == 8, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, op) == 12, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, cmp) == 16, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, workgroup) == 20, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, lane) == 24, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, bytes) == 28, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, offset) == 32, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, expected) == 40, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, seen) == 48, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, waited) == 56, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, mismatch) == 64, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, beat) == 144, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_watch, note_offset) == 176,
                   "layout");
IRIS_STATIC_ASSERT(sizeof(struct iris_dev_watch) == 208, "layout");

/* One group on one rank, in the symmetric heap at the same offset on every
 * member. Epochs and arrivals only grow, so nothing is ever reset.
 *
 *   words[2 * i]          address where we announce to member i, as this rank
 *                         maps it
 *   words[2 * i + 1]      the epoch that we last announced there: the number
 *                         of barriers this rank has begun
 *   words[2 * count + i]  rank of member i (group order)
 *   arrivals[i]           the epoch that member i last announced to us
 *
 * A lane loads the first two words of its member before it knows `count`. So a
 * group has space for IRIS_DEV_GROUP_LANES such pairs, even if it uses
 * fewer. */
#define IRIS_DEV_GROUP_LANES 32
struct iris_dev_group {
    int32_t count;     /* members */
    int32_t index;     /* this rank's index in the group */
    uint64_t arrivals; /* address of the arrivals, as this rank maps them */
#ifndef __cplusplus    /* C++ has no flexible array members; see
                        * iris_i_group_words() */
    uint64_t words[];
#endif
};

IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, count) == 0, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, index) == 4, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, arrivals) == 8, "layout");
IRIS_STATIC_ASSERT(sizeof(struct iris_dev_group) == 16, "words follow");

/* Address of `words`, in C and C++; host and device. */
IRIS_HOST_DEVICE uint64_t *iris_i_group_words(struct iris_dev_group *group)
{
    return (uint64_t *)(void *)(group + 1);
}

/* The members' ranks. */
IRIS_HOST_DEVICE uint64_t *iris_i_group_ranks(struct iris_dev_group *group)
{
    return &iris_i_group_words(group)[2 * (size_t)group->count];
}

/* Bytes from a group of n members to its arrivals. The arrivals begin a cache
 * line of 128 bytes: peers write them while this rank writes the words
 * before. */
IRIS_HOST_DEVICE size_t iris_i_group_arrivals(size_t n)
{
    size_t before = 3 * n < 2 * IRIS_DEV_GROUP_LANES
                        ? (size_t)(2 * IRIS_DEV_GROUP_LANES)
                        : 3 * n;

    return (sizeof(struct iris_dev_group) + before * sizeof(uint64_t) + 127) /
           128 * 128;
}

/* Bytes of a group of n members. */
IRIS_HOST_DEVICE size_t iris_i_group_bytes(size_t n)
{
    return iris_i_group_arrivals(n) + n * sizeof(uint64_t);
}

/* One plan on one rank (<iris/plan.h>), in the symmetric heap at the same offset
 * on every rank: this header, then words of 64 bits.
 *
 *   posted[n]  the epoch that each receiver has begun; receivers set it
 *   batches    from word `first` on, each of `batch_words` words:
 *     [GATE]          opens in an epoch when it has the epoch's number
 *     [STAMP]         the epoch whose sources a kernel has released
 *     [PARTS]         workgroups that have published so far
 *     [DONE]          the epoch whose copies are done; the stream sets it
 *     [SNAPSHOT]      the stamp, as the stream found it behind the gate
 *     [ARRIVALS + i]  the epoch whose data rank i has copied here; it sets it
 *     [ARRIVALS + n]  from here on, the ranks that copy here
 *     [SENDERS]       number of these ranks
 *
 * A stamp says that the sources are ready, and a gate only starts the stream: a
 * fault opens gates, too. So the stream passes the stamp on, not a constant.
 * A rank that gives up sets IRIS_PLAN_GIVEN_UP plus the epoch. Kernels and
 * streams write different cache lines. */
#define IRIS_PLAN_GIVEN_UP ((uint64_t)1 << 32)
enum {
    IRIS_PLAN_GATE = 0,
    IRIS_PLAN_STAMP = 1,
    IRIS_PLAN_PARTS = 2,
    IRIS_PLAN_SENDERS = 3,
    IRIS_PLAN_DONE = 16,
    IRIS_PLAN_SNAPSHOT = 17,
    IRIS_PLAN_ARRIVALS = 32,
};
struct iris_dev_plan {
    uint64_t num_batches;
    uint64_t first;       /* words from the header's start to batch 0 */
    uint64_t batch_words; /* words from a batch to the next one */
    uint64_t unused[13];
};

IRIS_STATIC_ASSERT(sizeof(struct iris_dev_plan) == 128, "a cache line");

/* Whether a word says that the epoch is over. A rank that gives up in the next
 * epoch has completed this one. */
IRIS_HOST_DEVICE int iris_i_plan_reached(uint64_t word, uint32_t epoch)
{
    return word == epoch ||
           word == (IRIS_PLAN_GIVEN_UP | (uint32_t)(epoch + 1));
}

#endif /* IRIS_DEVICE_LAYOUT_H */
