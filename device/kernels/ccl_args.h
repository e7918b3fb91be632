/* SPDX-License-Identifier: MIT
 *
 * What the host gives to the kernels of collectives: their arguments, and how a
 * workspace is laid out.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_ARGS_H
#define IRIS_DEVICE_KERNELS_CCL_ARGS_H

#include <iris/device/layout.h>

/* Bytes that a lane of a GPU combines at a time. */
#define IRIS_CCL_DEVICE_BLOCK 16

/* One rank's workspace: words that never change, in its own memory, and behind
 * them, at offsets that are the same on all members, words that change. Nothing
 * is ever reset but by iris_d_ccl_clear().
 *   call           what this rank calls, in words of enum iris_ccl_call_word:
 *                  peers read it that have waited for a while
 *   epochs[w]      steps that workgroup w has done, and IRIS_CCL_BUSY; behind
 *                  these, how many calls have ended, and behind that how often
 *                  each workgroup has cleared the packets
 *   hellos[p][w][i][k]  what member i's workgroup w said of itself in its last
 *                  step of parity p: words of a packet (below)
 *   tables[w][d][i]  where this rank maps member i's buffer, in (d = 0) or out,
 *                  as that has said in its last hello; of this rank's own use,
 *                  as are a few words behind each workgroup's
 *   byes[w][i]     the last step that member i's workgroup w has ended
 *   locks[w]       not 0: a member's workgroup w adds to this rank's output
 *   cleared[i]     workgroups of member i that have cleared its packets, in all
 *   stages[p]      copies of input that is off the heap, and sums of it, in
 *                  pieces: on the CPU (ccl_stage.h); of workgroups' collectives
 *                  blocks of tiles, in and out (wg_ccl_tile.h)
 *   pairs[w][i]    words by which workgroups w here and on member i move
 *                  pieces: enum iris_ccl_pair_word
 *   rings[w][i][p]  member i's last piece of parity p for workgroup w
 *   slots[p][i]    packets of member i, of its last step of parity p
 *
 * A packet is 8 bytes of data in two words of 8 bytes, each half data, half
 * flag. Data and flag arrive in one store, so no fence orders them. A flag has
 * the low IRIS_CCL_EPOCH_BITS bits of the step's number, and behind them
 * IRIS_CCL_CHECK_BITS bits of the call's number, others in each of the two
 * words. So a packet of another call is never taken for one of this call's, but
 * by a chance of 1 in 2^24, and costs no more than one without a check. Who
 * waits for a packet or a hello that does not come looks at the peers' `call`
 * now and then: one that is at the same step with another call is a mismatch
 * (iris_d_ccl_look()). Each member of the group finds out by itself, since a
 * step ends nowhere before all members have begun the same call:
 *   - whoever ends a step has heard, at least by way of others, from all
 *     members, by packets and hellos that are of its own call;
 *   - so while members differ, none of them ends the step, and their `call`
 *     words stay as they are.
 * A call that only some members make shifts the others' next calls by its
 * steps: they meet it, and differ from it or, if they are equal, are it.
 *
 * A slot holds packets of earlier steps until new ones overwrite them. The
 * flag of an old packet must never equal that of a new one. So all members
 * clear their packets before the step's bits of a flag start again from 0, once
 * in 2^20 steps. A cleared packet has the flag of step 0, which no step uses.
 *
 * Why two parities suffice: a step ends on a rank when that has heard in it, at
 * least by way of others, from every member. So each member has begun the step
 * and has done with the one before. What the next step overwrites is of the
 * step before that one. */
struct iris_ccl_space {
    int64_t count;       /* members */
    int64_t index;       /* this rank's place among them */
    int64_t max_wgs;     /* workgroups of a kernel at most */
    int64_t slot_bytes;  /* data of one slot; its packets take twice that */
    int64_t stage_bytes; /* of one stage; 0: no stages */
    int64_t pair_wgs;    /* those that move pieces between pairs at most */
    int64_t pair_bytes;  /* of one piece */
    int64_t call;        /* offsets from here, in bytes */
    int64_t epochs;
    int64_t hellos;
    int64_t tables;
    int64_t byes;
    int64_t locks;
    int64_t cleared;
    int64_t stages;
    int64_t pairs;
    int64_t rings;
    int64_t slots;
    int64_t bytes; /* of all */
    /* Behind: where this rank maps each member's workspace, each one's rank. */
};

enum {
    IRIS_CCL_HELLO_WORDS = 5, /* in and out, two each, and the call */
    IRIS_CCL_HELLO_SPACE = 8,
    IRIS_CCL_TABLE_SPARE = 3,
    IRIS_CCL_LINE = 128,
};

/* In a word of epochs: a kernel is between its begin and its end, or members
 * differed: the workspace is of no use any more. */
#define IRIS_CCL_BUSY ((uint64_t)1 << 63)

/* Bits of a flag. The wider a step's number, the rarer all packets are cleared;
 * the wider the check, the rarer two calls share it by chance. */
enum { IRIS_CCL_EPOCH_BITS = 20, IRIS_CCL_CHECK_BITS = 12 };

/* What a rank says of its call. The first word is written last: the number of
 * the step before the call's first, and 1, and below it the call's number. */
enum iris_ccl_call_word {
    IRIS_CCL_CALL_BEGUN,
    IRIS_CCL_CALL_WHAT, /* struct iris_dev_call */
    IRIS_CCL_CALL_SIZES,
    /* Not 0: lanes of a GPU have left it in a step. */
    IRIS_CCL_CALL_LEFT = IRIS_CCL_CALL_SIZES + 3,
    IRIS_CCL_CALL_WORDS,
};

/* Words of one workgroup and one other member. Counts only grow. The first four
 * are what that member writes here. */
enum iris_ccl_pair_word {
    IRIS_CCL_PAIR_ARRIVED, /* pieces that it has sent */
    IRIS_CCL_PAIR_TAKEN,   /* pieces of this rank's that it has taken; all bits
                            * are set once it has refused one */
    IRIS_CCL_PAIR_WHAT,    /* the call that it made instead */
    IRIS_CCL_PAIR_BYTES,   /* and how many bytes it expects there */
    /* Of this rank's own use: pieces sent and received, and whether the message
     * is read from the sender's memory. */
    IRIS_CCL_PAIR_SENT,
    IRIS_CCL_PAIR_GOT,
    IRIS_CCL_PAIR_READ,
    /* What that member says of its piece of each parity: four words, the call,
     * the message's bytes and workgroups, and where its memory is. */
    IRIS_CCL_PAIR_TOLD = 8,
    IRIS_CCL_PAIR_WORDS = 16,
};

/* A slot has as many bytes as so many pieces of all workgroups. */
enum {
    IRIS_CCL_PAIR_PARTS = 4,
    IRIS_CCL_PAIR_CPU_PARTS = 16,
    IRIS_CCL_PAIR_WGS = 16,
};
#define IRIS_CCL_PAIR_REFUSED (~(uint64_t)0)
#define IRIS_CCL_PAIR_IN_RING (~(uint64_t)0) /* no address */
#define IRIS_CCL_PAIR_WGS_SHIFT 48 /* in the word that has the bytes */

IRIS_HOST_DEVICE int64_t *iris_i_ccl_members(struct iris_ccl_space *space)
{
    return (int64_t *)(void *)(space + 1);
}

IRIS_HOST_DEVICE int64_t iris_i_ccl_line(int64_t bytes)
{
    return (bytes + IRIS_CCL_LINE - 1) / IRIS_CCL_LINE * IRIS_CCL_LINE;
}

/* Fills in the offsets, from the six numbers before them, and pair_bytes. */
IRIS_HOST_DEVICE void iris_i_ccl_lay_out(struct iris_ccl_space *space)
{
    int64_t n = space->count, wgs = space->max_wgs;
    int64_t pairs = space->pair_wgs < wgs ? space->pair_wgs : wgs;
    int64_t parts =
        space->stage_bytes > 0 ? IRIS_CCL_PAIR_CPU_PARTS : IRIS_CCL_PAIR_PARTS;

    space->call =
        iris_i_ccl_line((int64_t)sizeof *space + 2 * n * (int64_t)sizeof n);
    space->epochs = space->call + iris_i_ccl_line(IRIS_CCL_CALL_WORDS * 8);
    space->hellos = space->epochs + iris_i_ccl_line((2 * wgs + 1) * 8);
    space->tables =
        space->hellos + iris_i_ccl_line(2 * wgs * n * IRIS_CCL_HELLO_SPACE * 8);
    space->byes = space->tables +
                  iris_i_ccl_line(wgs * (2 * n + IRIS_CCL_TABLE_SPARE) * 8);
    space->locks = space->byes + iris_i_ccl_line(wgs * n * 8);
    space->cleared = space->locks + iris_i_ccl_line(wgs * 8);
    space->stages = space->cleared + iris_i_ccl_line(n * 8);
    space->pairs = space->stages + iris_i_ccl_line(2 * space->stage_bytes);
    space->pair_wgs = pairs;
    space->pair_bytes =
        pairs == 0 ? 0 : iris_i_ccl_line(space->slot_bytes / parts / pairs);
    space->rings = space->pairs + pairs * n * IRIS_CCL_PAIR_WORDS * 8;
    space->slots = space->rings + pairs * n * 2 * space->pair_bytes;
    space->bytes = space->slots + 2 * n * 2 * space->slot_bytes;
}

/* What every kernel starts from. */
struct iris_ccl_start {
    const int64_t *context;
    struct iris_ccl_space *space; /* this rank's; NULL: of packets, for a
                                   * group of one */
    struct iris_dev_call what;
    uint32_t call;  /* a number that differs where members' calls do */
    uint32_t steps; /* how many steps the kernel takes */
};

/* Bytes of a workgroup's share of a buffer, where input goes through stages,
 * are a multiple of this. */
#define IRIS_CCL_STAGE_GRAIN 128

/* How input goes through stages, where a member's buffers are off the heap. */
struct iris_ccl_staging {
    uint64_t region; /* bytes of a stage for each workgroup */
    uint64_t piece;  /* bytes of each part that a workgroup stages at a time */
    uint64_t pieces; /* how often, at most */
    int32_t staged;  /* 1: this rank's input is, on the CPU only */
    int32_t unused;
};

/* ---- Reductions that read the buffers where they are ---- */

/* Which part of the buffers a rank combines, and who gets it. */
enum iris_ccl_shape {
    IRIS_CCL_WHOLE,   /* all of it, for itself: one shot */
    IRIS_CCL_TO_ALL,  /* its share of it, for all: two shots */
    IRIS_CCL_SCATTER, /* the part that is its own, for itself */
    /* Those that do not keep the order. */
    IRIS_CCL_ADDED,  /* each adds its own to all outputs, by atomics */
    IRIS_CCL_LOCKED, /* the same by plain accesses, under locks */
    IRIS_CCL_RINGED, /* a share goes around, and the sum once more */
};

struct iris_ccl_reduce_args {
    struct iris_ccl_start start;
    const void *in; /* on the heap, as out */
    void *out;
    uint64_t bytes; /* of out; of IRIS_CCL_SCATTER in is `count` times that */
    int32_t kind;   /* enum iris_d_kind */
    int32_t op;     /* iris_reduce_op_t */
    int32_t shape;
    int32_t async; /* 1: peers may read `in` after the end */
    /* Of matrices: rows of `bytes` bytes, not 0. */
    uint64_t rows;
    uint64_t in_pitch;
    uint64_t out_pitch;
    int32_t striding; /* 1: rows go to members by turns */
    int32_t own_rows; /* 1: of a share, for itself only */
    int32_t rings;    /* 2: odd workgroups go around the other way */
    int32_t root;     /* not -1: only this member gets the result */
    struct iris_ccl_staging staging;
};

/* ---- What only moves, the same way ---- */

/* For member i, this rank being member r, `bytes` bytes move
 *   push  from this rank's in  + i * in_of_peer  + r * in_of_self
 *         to member i's   out  + i * out_of_peer + r * out_of_self
 *   pull  from member i's  in, to this rank's out, the same way. */
struct iris_ccl_move_args {
    struct iris_ccl_start start;
    const void *in; /* on the heap, as out */
    void *out;
    uint64_t bytes;
    uint64_t in_of_peer;
    uint64_t in_of_self;
    uint64_t out_of_peer;
    uint64_t out_of_self;
    uint64_t rows; /* not 0: so many times, so far apart */
    uint64_t in_pitch;
    uint64_t out_pitch;
    int32_t pull;
    int32_t root;  /* not -1: only this member's in is read */
    int32_t async; /* 1: peers may read `in` after the end; pull only */
    struct iris_ccl_staging staging;
};

/* ---- Between pairs of members ---- */

/* What a rank sends to the i-th member after it, from `in` + in_at on, and what
 * it gets from the i-th member before it. */
struct iris_ccl_route {
    uint64_t in_at;
    uint64_t in_bytes;
    uint64_t out_at;
    uint64_t out_bytes;
};

enum { IRIS_CCL_ROUTES = 32 };

/* The routes from i = `first` on; that of i = 0 is this rank's own. A message
 * has a workgroup for each bytes_per_wg bytes, most_wgs at most. */
struct iris_ccl_pairs_args {
    struct iris_ccl_start start;
    const void *in; /* any memory, as out */
    void *out;
    uint64_t bytes_per_wg;
    uint32_t most_wgs;
    uint32_t first;
    uint32_t count;
    int32_t meets; /* 1: all members of the group make the call */
    int32_t
        checks;    /* 1: they may differ in a message's bytes: each sends one to
                     * each, and waits until it is taken */
    int32_t reads; /* 1: receivers may read `in` where it is */
    struct iris_ccl_route routes[IRIS_CCL_ROUTES];
};

/* ---- Between nodes ---- */

/* For each row this rank sends member m the bytes at `in` + m * in_of_peer, `piece`
 * bytes at a time. Bytes from member i go to `out` + i * out_of_peer, unless the
 * members' bytes are combined. */
struct iris_ccl_far_args {
    struct iris_ccl_start start;
    const void *in; /* any memory, as out */
    void *out;
    uint64_t bytes; /* of a part's row */
    uint64_t piece;
    uint64_t rows; /* not 0 */
    uint64_t in_pitch;
    uint64_t out_pitch;
    uint64_t in_of_peer;
    uint64_t out_of_peer;
    int32_t root; /* not -1: only this member's in is read or, of a reduction,
                   * only its out is written */
    int32_t reduces;
    int32_t kind; /* enum iris_d_kind */
    int32_t op;   /* iris_reduce_op_t */
};

/* ---- By packets ---- */

#define IRIS_CCL_UNIT_BYTES 8    /* bytes of data in a packet */
#define IRIS_CCL_PACKET_BYTES 16 /* bytes of a packet */

enum iris_ccl_exchange {
    IRIS_CCL_REDUCE_ONE,   /* all_reduce, all to all members */
    IRIS_CCL_REDUCE_TWO,   /* all_reduce, a share to each, the sums to all */
    IRIS_CCL_REDUCE_PARTS, /* reduce_scatter */
    IRIS_CCL_GATHER,       /* all_gather */
    IRIS_CCL_SWAP,         /* all_to_all */
    IRIS_CCL_SPREAD,       /* broadcast */
    IRIS_CCL_BRING,        /* gather: of workgroups only (wg_ccl.h) */
    IRIS_CCL_REDUCE_ANY,   /* of workgroups only: ONE or TWO, by size */
};

/* `in` and `out` have `bytes` bytes for each member that they have a part of,
 * one behind the other. A step takes `piece` bytes of each part. */
struct iris_ccl_packet_args {
    struct iris_ccl_start start;
    const void *in;
    void *out;
    uint64_t bytes;
    uint64_t piece;
    int32_t kind; /* enum iris_d_kind */
    int32_t op;   /* iris_reduce_op_t */
    int32_t exchange;
    int32_t root;
    int32_t to_root; /* 1: of a reduction only the root gets the result */
};

#endif /* IRIS_DEVICE_KERNELS_CCL_ARGS_H */
