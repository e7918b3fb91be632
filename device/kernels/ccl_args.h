/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of collectives, and the layout of a workspace.
 * The host shares this header.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_ARGS_H
#define IRIS_DEVICE_KERNELS_CCL_ARGS_H

#include <iris/device/layout.h>

/* Bytes that a lane of a GPU combines at a time. */
#define IRIS_CCL_DEVICE_BLOCK 16

/* One rank's workspace. First come words that never change, in the rank's own
 * memory. Words that change follow, at offsets that are the same on all
 * members. Only iris_d_ccl_clear() ever resets anything.
 *
 *   call           this rank's call, in words of enum iris_ccl_call_word; peers
 *                  that have waited for a while read it
 *   epochs[w]      steps that workgroup w has done, and IRIS_CCL_BUSY; then the
 *                  number of calls that have ended; then how often each
 *                  workgroup has cleared the packets
 *   hellos[p][w][i][k]  the last hello of member i's workgroup w with parity p:
 *                  words of a packet (below)
 *   tables[w][d][i]  address at which this rank maps member i's input (d = 0) or
 *                  output (d = 1), from the last hello; only this rank uses
 *                  these, and a few words behind each workgroup's tables
 *   byes[w][i]     the last step that member i's workgroup w has ended
 *   locks[w]       not 0: a member's workgroup w adds to this rank's output
 *   cleared[i]     total number of workgroups of member i that have cleared its
 *                  packets
 *   stages[p]      copies of input that is off the heap, and sums of it, in
 *                  pieces: on the CPU (ccl_stage.h); for workgroups'
 *                  collectives, blocks of tiles, in and out (wg_ccl_tile.h)
 *   pairs[w][i]    words by which workgroups w here and on member i move
 *                  pieces: enum iris_ccl_pair_word
 *   rings[w][i][p]  member i's last piece of parity p for workgroup w
 *   slots[p][i]    packets of member i, from its last step of parity p
 *   rails[i]       words, then pieces, of member i, if there are several nodes
 *                  (ccl_levels.h)
 *
 * A packet carries 8 bytes of data in two words of 8 bytes. Half of each word
 * is data, the other half is a flag. Data and flag arrive in one store, so no
 * fence orders them. A flag has the low IRIS_CCL_EPOCH_BITS bits of the step's
 * number, and above them IRIS_CCL_CHECK_BITS bits of the call's number. The two
 * words have different bits of that number. So a packet of another call is
 * mistaken for one of this call with a probability of 1 in 2^24 only, and the
 * check costs no time.
 *
 * A workgroup that waits for a packet or a hello in vain looks at the peers'
 * `call` now and then. A peer that is at the same step with another call is a
 * mismatch (iris_d_ccl_look()). Each member finds the mismatch by itself,
 * because no step ends before all members have begun the same call:
 * - a workgroup that ends a step has heard from all members, directly or
 *   through others, by packets and hellos of its own call;
 * - so while members differ, none of them ends the step, and their `call` words
 *   stay as they are. A call that only some members make shifts the steps of
 *   the others' next calls: their next call meets it. It then differs, which is
 *   a mismatch, or is equal and becomes the same call.
 *
 * A slot holds packets of earlier steps until new ones overwrite them. The flag
 * of an old packet must never equal that of a new one. So all members clear
 * their packets before the step's bits of a flag start again from 0, once in
 * 2^20 steps. A cleared packet has the flag of step 0, which no step uses.
 *
 * Why two parities suffice: a step ends on a rank once the rank has heard in
 * it, directly or through others, from every member. So each member has begun
 * the step and has finished the previous one. The next step overwrites data of
 * the step before that one. */
struct iris_ccl_space {
    int64_t count;       /* members */
    int64_t index;       /* this rank's index in the group */
    int64_t max_wgs;     /* most workgroups of a kernel */
    int64_t slot_bytes;  /* data of one slot; its packets take twice that */
    int64_t stage_bytes; /* bytes of one stage; 0: no stages */
    int64_t pair_wgs;    /* most workgroups that move pieces between a pair */
    int64_t rail_bytes;  /* the most bytes of a piece between nodes
                          * (ccl_levels.h); 0: one node has all members */
    int64_t pair_bytes;  /* of one piece */
    int64_t average;     /* the bits of 1 / count, a double, for AVG */
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
    int64_t rails;
    int64_t bytes; /* of all */
    /* Followed by the addresses at which this rank maps each member's
     * workspace, the members' ranks, the members by nodes, and the place of
     * each node's first one among these, with one more for the end. */
};

enum {
    IRIS_CCL_HELLO_WORDS = 5, /* in and out, two words each, and the call */
    IRIS_CCL_HELLO_SPACE = 8,
    IRIS_CCL_TABLE_SPARE = 3,
    IRIS_CCL_LINE = 128,
};

/* Flag in a word of epochs: a kernel is between its begin and its end. It stays
 * set if members made different calls: then the workspace is unusable. */
#define IRIS_CCL_BUSY ((uint64_t)1 << 63)

/* Bits of a flag. More bits for the step's number make the clearing of packets
 * rarer. More bits for the check make it rarer that two calls share it by
 * chance. */
enum { IRIS_CCL_EPOCH_BITS = 20, IRIS_CCL_CHECK_BITS = 12 };

/* A rank's description of its call. The first word is written last: the number
 * of the call's first step in its upper half, and the call's number in its
 * lower half. */
enum iris_ccl_call_word {
    IRIS_CCL_CALL_BEGUN,
    IRIS_CCL_CALL_WHAT, /* struct iris_dev_call */
    IRIS_CCL_CALL_SIZES,
    /* Not 0 if lanes of a GPU have ended in the middle of a step. */
    IRIS_CCL_CALL_LEFT = IRIS_CCL_CALL_SIZES + 3,
    IRIS_CCL_CALL_WORDS,
};

/* Words for one workgroup and one other member. Counts only grow. The other
 * member writes all but SENT, GOT and READ. */
enum iris_ccl_pair_word {
    IRIS_CCL_PAIR_ARRIVED, /* pieces that it has sent */
    IRIS_CCL_PAIR_TAKEN,   /* pieces of this rank's that it has taken; all
                            * bits are set once it has refused one */
    IRIS_CCL_PAIR_WHAT,    /* in case of a refusal, its call */
    IRIS_CCL_PAIR_BYTES,   /* in case of a refusal, the bytes that it expects */
    /* Used by this rank only: pieces sent and received, and whether the message
     * is read from the sender's memory. */
    IRIS_CCL_PAIR_SENT,
    IRIS_CCL_PAIR_GOT,
    IRIS_CCL_PAIR_READ,
    /* In case of a refusal, the refused message: its bytes, with its sender's
     * index in the upper bits, and its sender's call. */
    IRIS_CCL_PAIR_FOUND,
    /* The member's description of its piece for each parity, in four words: the
     * call, the message's bytes and workgroups, and the address of its
     * memory. */
    IRIS_CCL_PAIR_TOLD = 8,
    IRIS_CCL_PAIR_FOUND_WHAT = IRIS_CCL_PAIR_TOLD + 3,
    IRIS_CCL_PAIR_WORDS = 16,
};

/* A slot has as many bytes as PARTS pieces of all workgroups. At most WGS
 * workgroups share a message: a GPU needs that many to fill its links. */
enum {
    IRIS_CCL_PAIR_PARTS = 2,
    IRIS_CCL_PAIR_CPU_PARTS = 16,
    IRIS_CCL_PAIR_WGS = 64,
    IRIS_CCL_PAIR_CPU_WGS = 16,
};
#define IRIS_CCL_PAIR_REFUSED (~(uint64_t)0)
#define IRIS_CCL_PAIR_IN_RING (~(uint64_t)0) /* no address */
#define IRIS_CCL_PAIR_WGS_SHIFT 48 /* in the word that also holds the bytes */

IRIS_HOST_DEVICE int64_t *iris_i_ccl_members(struct iris_ccl_space *space)
{
    return (int64_t *)(void *)(space + 1);
}

IRIS_HOST_DEVICE int64_t iris_i_ccl_line(int64_t bytes)
{
    return (bytes + IRIS_CCL_LINE - 1) / IRIS_CCL_LINE * IRIS_CCL_LINE;
}

/* Words behind the header, for each member, and one more. */
#define IRIS_CCL_MEMBER_WORDS 4

/* A channel from one member to another on the way by levels: its words, its
 * pieces, and the pieces taken for each word that says so. */
enum {
    IRIS_CCL_RAIL_WORDS = 32,
    IRIS_CCL_RAIL_PIECES = 4,
    IRIS_CCL_RAIL_TOLD = 2,
};

/* Computes the offsets, pair_bytes and average from the seven numbers before
 * them. */
IRIS_HOST_DEVICE void iris_i_ccl_lay_out(struct iris_ccl_space *space)
{
    const union {
        double value;
        int64_t bits;
    } average = {1.0 / (double)space->count};
    int64_t n = space->count, wgs = space->max_wgs;
    int64_t pairs = space->pair_wgs < wgs ? space->pair_wgs : wgs;
    int64_t parts =
        space->stage_bytes > 0 ? IRIS_CCL_PAIR_CPU_PARTS : IRIS_CCL_PAIR_PARTS;

    space->call =
        iris_i_ccl_line((int64_t)sizeof *space +
                        (IRIS_CCL_MEMBER_WORDS * n + 1) * (int64_t)sizeof n);
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
    space->average = average.bits;
    space->pair_wgs = pairs;
    space->pair_bytes =
        pairs == 0 ? 0 : iris_i_ccl_line(space->slot_bytes / parts / pairs);
    space->rings = space->pairs + pairs * n * IRIS_CCL_PAIR_WORDS * 8;
    space->slots = space->rings + pairs * n * 2 * space->pair_bytes;
    space->rails = space->slots + 2 * n * 2 * space->slot_bytes;
    space->bytes =
        space->rails + (space->rail_bytes == 0
                            ? 0
                            : n * (IRIS_CCL_RAIL_WORDS * 8 +
                                   IRIS_CCL_RAIL_PIECES * space->rail_bytes));
}

/* The arguments that every kernel starts with. */
struct iris_ccl_start {
    const int64_t *context;
    struct iris_ccl_space *space; /* this rank's; NULL in a collective by
                                   * packets of a group of one */
    struct iris_dev_call what;
    uint32_t call;  /* a hash of the call, equal on members with equal calls */
    uint32_t steps; /* number of steps that the kernel takes */
};

/* If input goes through stages, the bytes of a workgroup's share of a buffer
 * are a multiple of this. */
#define IRIS_CCL_STAGE_GRAIN 128

/* The constants of a workspace with at most IRIS_CCL_NEAR members, for kernels
 * on GPUs, and of packets: loads of the workspace's header take longer than a
 * message. Addresses are as this rank maps them. */
enum { IRIS_CCL_NEAR = 8 };
struct iris_ccl_near {
    uint64_t members[IRIS_CCL_NEAR]; /* their workspaces */
    uint64_t heaps[IRIS_CCL_NEAR];
    uint64_t slots; /* offsets in a workspace */
    uint64_t hellos;
    uint64_t byes;
    uint64_t call;
    uint64_t epochs;
    uint64_t slot_bytes;
    uint32_t max_wgs;
    uint32_t count;
    uint32_t index;
    uint32_t unused;
};

/* The factor of a reduction's results, for each type of sums: 1 in a call without
 * a factor. Kernels multiply each sum once, before they round it. It is no union
 * because a compiler kept one in memory. */
struct iris_ccl_scale {
    double f64;
    float f32;
    float unused;
};

/* How input goes through stages, if a member's buffers are off the heap. */
struct iris_ccl_staging {
    uint64_t region; /* bytes of a stage for each workgroup */
    uint64_t piece;  /* bytes of each part that a workgroup stages at a time */
    uint64_t pieces; /* the most pieces of a call */
    int32_t staged;  /* 1: this rank stages its input; on the CPU only */
    int32_t unused;
};

/* ---- Reductions that read the buffers in place ---- */

/* The part of the buffers that a rank combines, and the receivers of the
 * result. */
enum iris_ccl_shape {
    IRIS_CCL_WHOLE,   /* all of it, for itself: one shot */
    IRIS_CCL_TO_ALL,  /* its share of it, for all members: two shots */
    IRIS_CCL_SCATTER, /* its own part, for itself */
    /* Reductions that do not keep the order. */
    IRIS_CCL_ADDED,  /* each adds its input to all outputs, by atomics */
    IRIS_CCL_LOCKED, /* each adds its input to all outputs, by plain accesses
                      * under locks */
    IRIS_CCL_RINGED, /* shares go around a ring, then the sums */
};

struct iris_ccl_reduce_args {
    struct iris_ccl_start start;
    const void *in; /* on the heap, as out */
    void *out;
    uint64_t bytes; /* bytes of out; the input of IRIS_CCL_SCATTER has
                     * `count` times that */
    int32_t kind;   /* enum iris_d_kind */
    int32_t op;     /* iris_reduce_op_t */
    int32_t shape;
    int32_t async; /* 1: peers may read `in` after the end */
    /* For matrices: rows of `bytes` bytes, not 0. */
    uint64_t rows;
    uint64_t in_pitch;
    uint64_t out_pitch;
    int32_t striding; /* 1: members take rows in turn */
    int32_t own_rows; /* 1: combines its share for itself only */
    int32_t rings;    /* 2: odd workgroups go around in the other direction */
    int32_t root;     /* not -1: only this member gets the result */
    struct iris_ccl_scale scale;
    struct iris_ccl_staging staging;
    struct iris_ccl_near near;
};

/* ---- Collectives that only move data, in place ---- */

/* For member i, with this rank as member r, `bytes` bytes move
 *
 *   push  from this rank's in  + i * in_of_peer  + r * in_of_self
 *         to member i's   out  + i * out_of_peer + r * out_of_self
 *   pull  from member i's in to this rank's out, with the same offsets. */
struct iris_ccl_move_args {
    struct iris_ccl_start start;
    const void *in; /* on the heap, as out */
    void *out;
    uint64_t bytes;
    uint64_t in_of_peer;
    uint64_t in_of_self;
    uint64_t out_of_peer;
    uint64_t out_of_self;
    uint64_t rows; /* not 0: number of rows, with these distances */
    uint64_t in_pitch;
    uint64_t out_pitch;
    int32_t pull;
    int32_t root;  /* not -1: only this member's in is read */
    int32_t async; /* 1: peers may read `in` after the end; pull only */
    struct iris_ccl_staging staging;
    struct iris_ccl_near near;
};

/* ---- Between pairs of members ---- */

/* The message that a rank sends to the i-th member after it, from `in` + in_at
 * on, and the message that it receives from the i-th member before it. */
struct iris_ccl_route {
    uint64_t in_at;
    uint64_t in_bytes;
    uint64_t out_at;
    uint64_t out_bytes;
};

enum { IRIS_CCL_ROUTES = 32 };

/* The routes from i = `first` on; route 0 is from this rank to itself. A
 * message has one workgroup for each bytes_per_wg bytes, but at most
 * most_wgs. */
struct iris_ccl_pairs_args {
    struct iris_ccl_start start;
    const void *in; /* any memory; out as well */
    void *out;
    uint64_t bytes_per_wg;
    uint32_t most_wgs;
    uint32_t first;
    uint32_t count;
    int32_t meets;       /* 1: all members of the group make the call */
    int32_t checks;      /* 1: the members' sizes of a message may differ: each
                    * sends one message to each, and waits until it is taken */
    uint32_t empty_to;   /* not 0: the route with a message of 0 bytes */
    uint32_t empty_from; /* the route from which such a message arrives */
    int32_t reads;       /* 1: receivers may read `in` in place */
    int32_t fails;       /* 1: this member's call has failed; it refuses the
                          * messages of the routes */
    struct iris_ccl_route routes[IRIS_CCL_ROUTES];
};

/* ---- Between nodes ---- */

/* In each row, this rank sends member m the bytes at `in` + m * in_of_peer, at
 * most `piece` bytes at a time. Bytes from member i go to `out` + i *
 * out_of_peer, unless the members' bytes are combined. */
struct iris_ccl_far_args {
    struct iris_ccl_start start;
    const void *in; /* any memory; out as well */
    void *out;
    uint64_t bytes; /* bytes of a row of a part */
    uint64_t piece;
    uint64_t rows; /* not 0 */
    uint64_t in_pitch;
    uint64_t out_pitch;
    uint64_t in_of_peer;
    uint64_t out_of_peer;
    int32_t root; /* not -1: only this member's in is read or, in a
                   * reduction, only its out is written */
    int32_t reduces;
    int32_t kind; /* enum iris_d_kind */
    int32_t op;   /* iris_reduce_op_t */
    int32_t
        own_rows; /* 1: member m gets only its rows of `in`, and writes them */
    int32_t striding; /* 1: rows go to members by turns */
    struct iris_ccl_scale scale;
};

/* By levels (ccl_levels.h). */
enum iris_ccl_levels {
    IRIS_CCL_LEVELS_GATHER,  /* all_gather */
    IRIS_CCL_LEVELS_SPREAD,  /* broadcast */
    IRIS_CCL_LEVELS_FEW,     /* all_reduce: gathers all input */
    IRIS_CCL_LEVELS_SWAP,    /* all_to_all of few bytes */
    IRIS_CCL_LEVELS_CHAIN,   /* all_reduce: sums go from node to node */
    IRIS_CCL_LEVELS_SCATTER, /* reduce_scatter: in the same way */
};

struct iris_ccl_levels_args {
    struct iris_ccl_start start;
    const void *in; /* any memory; out as well */
    void *out;
    uint64_t bytes; /* bytes of a member's part */
    uint64_t piece; /* the most of them in a piece */
    int32_t way;    /* enum iris_ccl_levels */
    int32_t kind;   /* enum iris_d_kind */
    int32_t op;     /* iris_reduce_op_t */
    uint32_t wider; /* bytes of a sum for each byte of an element */
    uint32_t nodes;
    uint32_t node;  /* this rank's */
    uint32_t place; /* this rank's among the members of its node */
    uint32_t rails; /* the most members of a node */
    uint32_t root;  /* of a SPREAD */
    struct iris_ccl_scale scale;
};

/* ---- By packets ---- */

#define IRIS_CCL_UNIT_BYTES 8    /* bytes of data in a packet */
#define IRIS_CCL_PACKET_BYTES 16 /* bytes of a packet */

enum iris_ccl_exchange {
    IRIS_CCL_REDUCE_ONE,   /* all_reduce; everything goes to all members */
    IRIS_CCL_REDUCE_TWO,   /* all_reduce; each member sums a share and sends
                            * the sums to all */
    IRIS_CCL_REDUCE_PARTS, /* reduce_scatter */
    IRIS_CCL_GATHER,       /* all_gather */
    IRIS_CCL_SWAP,         /* all_to_all */
    IRIS_CCL_SPREAD,       /* broadcast */
    IRIS_CCL_BRING,        /* gather; for workgroups only (wg_ccl.h), as are
                            * the following */
    IRIS_CCL_BRING_SUMS,   /* reduce */
    IRIS_CCL_DEAL,         /* scatter */
    IRIS_CCL_REDUCE_ANY,   /* ONE or TWO, by size */
};

/* `in` and `out` have `bytes` bytes for each member whose part they contain,
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
    int32_t to_root; /* 1: in a reduction only the root gets the result */
    struct iris_ccl_scale scale;
    struct iris_ccl_near near;
};

#endif /* IRIS_DEVICE_KERNELS_CCL_ARGS_H */
