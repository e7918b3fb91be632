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

/* Where it is in its rank's heap, in bytes. Not at the heap's own address: a
 * tool that looks memory up by its first address, as Triton's interpreter does,
 * would confuse the two. */
#define IRIS_CONTEXT_OFFSET ((size_t)256)

/* Words in the device context of a job of n ranks. */
#define IRIS_CONTEXT_WORDS(n) \
    (IRIS_CONTEXT_HEAP_BASES + (size_t)(n) + IRIS_CONTEXT_TAIL_WORDS)

/* Number of words from heap_bases on that can be read without a fault. No job
 * has more ranks. */
#define IRIS_CONTEXT_READABLE 1024u

IRIS_STATIC_ASSERT(IRIS_CONTEXT_TRACE_BUFFERS +
                           IRIS_CONTEXT_TRACE_NUM_BUFFERS ==
                       IRIS_CONTEXT_TRACE_ENABLED + IRIS_CONTEXT_TAIL_WORDS,
                   "the trace words end the device context");

/* Words of ours behind the public ones, which upstream's kernels never read.
 * The host writes them before the first kernel starts. */
enum {
    /* struct iris_dev_watch as the device maps it; 0: waits read only their
     * own word. */
    IRIS_CONTEXT_OWN_WATCH = 0,
    /* How long a wait may take, in ticks of iris_d_clock(); 0: for ever. */
    IRIS_CONTEXT_OWN_TIMEOUT = 1,
    /* 0, or 1 once a lane has taken the report for itself. Lanes write it, at
     * agent scope: it is never read by iris_d_load_constant(). The host sets it
     * to 0 behind the report. */
    IRIS_CONTEXT_OWN_CLAIM = 2,
    /* Of tracing: where the column of values begins, behind which is that of
     * what each event was (record.h). */
    IRIS_CONTEXT_OWN_TRACE = 3,
    /* A waiting lane notes its wait after this number of ticks; 0: never. */
    IRIS_CONTEXT_OWN_NOTE = 4,
    /* When a lane has last done so, in ticks. Lanes write it. */
    IRIS_CONTEXT_OWN_NOTED = 5,
    /* A number that no other heap has: peers recognise the heap by it. It is
     * written before the heap is exported, and never again. */
    IRIS_CONTEXT_OWN_ID = 6,
    IRIS_CONTEXT_OWN_WORDS = 7,
};

/* Where one of our words is in the device context of a job of n ranks, and how
 * many words that has with ours. */
#define IRIS_CONTEXT_OWN(n, word) (IRIS_CONTEXT_WORDS(n) + (size_t)(word))
#define IRIS_CONTEXT_ALL_WORDS(n) IRIS_CONTEXT_OWN(n, IRIS_CONTEXT_OWN_WORDS)

/* A collective call as members tell each other of it. The host makes and reads
 * it (backend/mismatch.h). */
struct iris_dev_call {
    uint64_t what;     /* which, of which type, how */
    uint64_t sizes[3]; /* count and rows, or the sizes of a product */
};

/* Where the parts of `what` are. */
enum {
    IRIS_DEV_CALL_DTYPE = 8,
    IRIS_DEV_CALL_REDUCE = 16,
    IRIS_DEV_CALL_VARIANT = 24,
    IRIS_DEV_CALL_ROOT = 32,
};

/* Two members that are at the same step with different calls. */
struct iris_dev_mismatch {
    int32_t rank;   /* that found it */
    int32_t other;  /* the other rank; -1: the workspace was left in a step */
    uint64_t count; /* of calls so far, this one included; 32 bits */
    struct iris_dev_call own;
    struct iris_dev_call theirs;
};

IRIS_STATIC_ASSERT(sizeof(struct iris_dev_mismatch) == 80, "layout");

/* Reports between the waiting lanes of a GPU and the host, in host memory that
 * the GPU maps. All zero at the start. A lane that has waited for too long
 * writes the report, then 1 to `stop`, then `ready`; one that comes after it
 * only writes `stop`. A lane that sees `stop` ends. The host may set `stop` as
 * well, to another value, and makes `ready` and `stop` 0 again once it has the
 * report; other kernels may run then.
 *
 * One lane at a time that has waited for a second notes that, again and again
 * while it waits, and goes on: the fields of the note, then `beat`, another
 * value each time. A reader takes a note if its `beat` is new, and did not
 * change during the reading. */
struct iris_dev_watch {
    uint32_t stop;      /* not 0: waiting lanes end */
    uint32_t ready;     /* not 0, released at system scope: a report follows */
    int32_t rank;       /* that waited */
    int32_t op;         /* enum iris_op: a wait or a barrier */
    int32_t cmp;        /* iris_cmp_t */
    uint32_t workgroup; /* its id in the grid */
    uint32_t lane;      /* its place in the workgroup */
    uint32_t bytes;     /* of the word waited for; 0: this is no such report,
                         * but one of `mismatch` */
    uint64_t offset;    /* of that word on the rank's heap */
    uint64_t expected;  /* the wanted value; signs are extended */
    uint64_t seen;      /* the last value, the same */
    uint64_t waited;    /* ticks */
    struct iris_dev_mismatch mismatch;
    uint64_t beat;   /* released at system scope; 0: no note yet */
    int32_t note_op; /* all of these as above */
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
 *   words[2 * i]          where we announce to member i, as this rank maps it
 *   words[2 * i + 1]      the epoch that we last announced there: barriers this
 *                         rank has begun
 *   words[2 * count + i]  rank of member i (group order)
 *   arrivals[i]           the epoch that member i last announced to us
 * A lane loads the first two words of its member before it knows `count`: a
 * group has space for IRIS_DEV_GROUP_LANES such pairs, however few it uses. */
#define IRIS_DEV_GROUP_LANES 32
struct iris_dev_group {
    int32_t count;     /* members */
    int32_t index;     /* this rank's place among them */
    uint64_t arrivals; /* their address as this rank maps it */
#ifndef __cplusplus    /* has no such member; see iris_i_group_words() */
    uint64_t words[];
#endif
};

IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, count) == 0, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, index) == 4, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_group, arrivals) == 8, "layout");
IRIS_STATIC_ASSERT(sizeof(struct iris_dev_group) == 16, "words follow");

/* Where `words` is, in any language; host and device. */
IRIS_HOST_DEVICE uint64_t *iris_i_group_words(struct iris_dev_group *group)
{
    return (uint64_t *)(void *)(group + 1);
}

/* The members' ranks. */
IRIS_HOST_DEVICE uint64_t *iris_i_group_ranks(struct iris_dev_group *group)
{
    return &iris_i_group_words(group)[2 * (size_t)group->count];
}

/* Bytes from a group of n members to its arrivals. They begin a cache line, of
 * 128 bytes: peers write them while this rank writes the words before. */
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

#endif /* IRIS_DEVICE_LAYOUT_H */
