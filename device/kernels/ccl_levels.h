/* SPDX-License-Identifier: MIT
 *
 * Collectives of ranks of several nodes by level. The members of a node work
 * together in shared memory, and each of them sends its own part over the
 * network. GPUs have it in objects compiled with IRIS_FAR.
 *
 * The members with one place in their nodes are a rail. A node with fewer
 * members than the largest one has several rails to a member, so nodes may be
 * uneven: rail j goes through member j modulo the node's number.
 *
 * GATHER (all_gather). Each member sends its piece to one member of each other
 * node, on its rail, and to its mates, the members of its own node. The receiver
 * passes it on to its mates. So a piece crosses once to each node.
 *
 * FEW (all_reduce of few bytes, or of floats in a group whose order the chain
 * would change). Gathers the input of all, and each member combines it in the
 * group's order.
 *
 * CHAIN (all_reduce of more bytes). A piece of the buffer has a share for each
 * rail. The first node's member of the rail takes the input of its mates and
 * sends their sums to the second node's member. That one adds the input of its
 * own node to them, member after member, and so on. The last node has the
 * results. They go back in the other direction, and each node's member gives
 * them to its mates:
 *
 * node 0: a + b; node 1: (a + b) + c + d; node 2: ((a + b) + c + d) + e + f.
 *
 * If the nodes' members follow each other in the group, this is the group's
 * order: the bits are those of one node, because the sums on the way are not
 * rounded (16-bit and 8-bit floats travel as f32). Both directions of the
 * network are busy at once. On a rail each node but the first and the last one
 * sends twice its share, where a ring sends 2 (nodes - 1) / nodes of it. A ring
 * would begin each share at another node, in another order.
 *
 * SCATTER (reduce_scatter). Like CHAIN, for each member's part on the rail of
 * that member's place. The last node sends the result to that member only.
 *
 * SPREAD (broadcast). The root gives its pieces to its mates, which take turns:
 * each sends its turns' pieces to one member of each other node, which gives
 * them to its mates. In the end all members meet by a GATHER of 0 bytes.
 *
 * SWAP (all_to_all of few bytes). Each member gives its mates the blocks for
 * their rails. It sends one message to each other node, on its rail, with its
 * node's blocks for the member there.
 *
 * A channel leads from each member to each other, in the receiver's workspace:
 * IRIS_CCL_RAIL_PIECES places for pieces, and counts of the pieces that arrived
 * and of those that were taken, which only grow. A word of pieces that arrived
 * has the call's number, too, so a receiver knows a sender that makes another
 * call. The same words serve inside a node, with stores in place of messages,
 * so buffers may be any memory.
 *
 * No member ends a call before it has heard from all others, directly or
 * through others, and has taken all pieces for it. So the end of the kernel
 * waits only for words for which no member waits (`owes`). The call is one step
 * of the workspace, like one of ccl_far.h: a member that waits for long tells
 * the others the step and its call by the words of such steps, and looks for
 * theirs, since a member may make a call that goes another way.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_LEVELS_H
#define IRIS_DEVICE_KERNELS_CCL_LEVELS_H

#include <iris/device/kernels/ccl_far.h>

#if IRIS_ON_CPU || IRIS_FAR
/* Words of a channel. The sender of its pieces writes ARRIVED, the receiver of
 * this rank's pieces TAKEN, and this rank the others: pieces sent, pieces taken,
 * and of those the ones that it has told. */
enum {
    IRIS_D_RAIL_ARRIVED = 0,
    IRIS_D_RAIL_SENT = 8,
    IRIS_D_RAIL_GOT = 9,
    IRIS_D_RAIL_TOLD = 10,
    IRIS_D_RAIL_TAKEN = 16,
};

/* The pieces for which a node sends sums ahead of the results that it takes
 * back. A channel takes at least that many at once:
 * then no member waits for room that only its own next piece would make. */
enum {
    IRIS_D_RAIL_AHEAD = IRIS_CCL_RAIL_PIECES - IRIS_CCL_RAIL_TOLD,
};

/* Polls before a waiting member looks at the others' steps, and tells them its
 * own: messages to all members. */
enum { IRIS_D_RAIL_LOOK = 128, IRIS_D_RAIL_TELL = 4096 };

typedef struct iris_d_levels {
    iris_wg_t wg;
    iris_dev_t dev;
    const struct iris_ccl_levels_args *args;
    struct iris_ccl_space *space;
    const int64_t *ranks;
    const int64_t *order; /* members by nodes */
    const int64_t *first; /* the place of each node in `order` */
    uint64_t self;
    uint64_t mates; /* members of this node */
    uint64_t step;
    iris_bool_t told;    /* the leader's, as `owes` */
    iris_bool_t owes;    /* it has sent words for which nobody waits */
    uint64_t *byes;      /* the members' words of their steps */
    char *own;           /* memory for input and sums */
    iris_d_u64_t *table; /* addresses of pieces to be combined */
} iris_d_levels_t;

/* ---- Nodes ---- */

IRIS_DEVICE uint64_t iris_d_levels_size(const iris_d_levels_t *levels,
                                        uint64_t node)
{
    return (uint64_t)(levels->first[node + 1] - levels->first[node]);
}

/* The member of a node through which a rail goes. */
IRIS_DEVICE uint64_t iris_d_levels_on(const iris_d_levels_t *levels,
                                      uint64_t node, uint64_t rail)
{
    return (uint64_t)levels->order[(uint64_t)levels->first[node] +
                                   rail % iris_d_levels_size(levels, node)];
}

/* The mate at place `place` of this node. */
IRIS_DEVICE uint64_t iris_d_levels_mate(const iris_d_levels_t *levels,
                                        uint64_t place)
{
    return iris_d_levels_on(levels, levels->args->node, place);
}

/* ---- Channels ---- */

IRIS_DEVICE uint64_t *iris_d_rail_words(const iris_d_levels_t *levels,
                                        uint64_t i)
{
    return (uint64_t *)(void *)iris_d_far_at(levels->space,
                                             levels->space->rails) +
           i * IRIS_CCL_RAIL_WORDS;
}

/* The word that `sent` pieces have arrived: below the number, the two low bits
 * of the step's number, and bits of the call's. */
enum { IRIS_D_RAIL_STEP_AT = IRIS_D_FAR_CALL_BITS - 2 };

IRIS_DEVICE uint64_t iris_d_rail_word(const iris_d_levels_t *levels,
                                      uint64_t sent)
{
    uint64_t call =
        levels->args->start.call & (((uint64_t)1 << IRIS_D_RAIL_STEP_AT) - 1);

    return sent << IRIS_D_FAR_CALL_BITS |
           (levels->step & 3) << IRIS_D_RAIL_STEP_AT | call;
}

/* Whether a member that wrote this word makes another call than this rank in
 * the same step. It may be one step ahead: then it has heard from this rank in
 * this step, and both make the same call. */
IRIS_DEVICE iris_bool_t iris_d_rail_differs(const iris_d_levels_t *levels,
                                            uint64_t seen)
{
    uint64_t mask = ((uint64_t)1 << IRIS_D_FAR_CALL_BITS) - 1;
    uint64_t differ = (seen ^ iris_d_rail_word(levels, 0)) & mask;

    return differ != 0 && differ >> IRIS_D_RAIL_STEP_AT == 0;
}

/* The place of piece `number` of member i. */
IRIS_DEVICE char *iris_d_rail_piece(const iris_d_levels_t *levels, uint64_t i,
                                    uint64_t number)
{
    const struct iris_ccl_space *space = levels->space;
    uint64_t place = i * IRIS_CCL_RAIL_PIECES + number % IRIS_CCL_RAIL_PIECES;

    return (char *)(void *)iris_d_rail_words(levels, (uint64_t)space->count) +
           place * (uint64_t)space->rail_bytes;
}

/* Writes a word of member m, after all that this lane has sent to it, and all
 * that others have ahead of a barrier. One lane calls this and the next two. */
IRIS_DEVICE void iris_d_rail_tell(const iris_d_levels_t *levels, uint64_t *word,
                                  uint64_t m, uint64_t value)
{
    iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    iris_d_far_tell(
        levels->dev,
        (uint64_t *)iris_d_far_of(levels->dev, levels->space, word, m), value,
        (int)levels->ranks[m]);
}

/* Tells member m how many of its pieces have been taken. */
IRIS_DEVICE void iris_d_rail_tell_taken(const iris_d_levels_t *levels,
                                        uint64_t m)
{
    uint64_t *words = iris_d_rail_words(levels, m);
    uint64_t got = words[IRIS_D_RAIL_GOT];

    if (words[IRIS_D_RAIL_TOLD] != got) {
        words[IRIS_D_RAIL_TOLD] = got;
        iris_d_rail_tell(
            levels, &iris_d_rail_words(levels, levels->self)[IRIS_D_RAIL_TAKEN],
            m, got);
    }
}

/* ---- Members that make different calls ---- */

/* Tells all others this rank's call, once. The leader calls this and the next
 * two. */
IRIS_D_FAR_RARE void iris_d_levels_tell(iris_d_levels_t *levels)
{
    uint64_t word = iris_d_far_word(levels->step, levels->args->start.call);

    for (uint64_t m = 0; m < (uint64_t)levels->space->count && !levels->told;
         m++) {
        if (m != levels->self) {
            iris_d_rail_tell(levels, &levels->byes[levels->self], m, word);
        }
    }
    levels->told = levels->owes = 1;
}

/* Ends the kernel: member m makes another call. */
IRIS_D_FAR_RARE void iris_d_levels_differ(iris_d_levels_t *levels, uint64_t m)
{
    iris_d_levels_tell(levels);
    iris_d_far_differ(levels->dev, &levels->args->start, levels->step, m);
}

/* Looks for members that have told another call at this step. */
IRIS_D_FAR_RARE void iris_d_levels_look(iris_d_levels_t *levels)
{
    uint64_t word = iris_d_far_word(levels->step, levels->args->start.call);

    for (uint64_t m = 0; m < (uint64_t)levels->space->count; m++) {
        uint64_t seen = iris_d_load(
            &levels->byes[m], 8, iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));

        if (seen >> IRIS_D_FAR_CALL_BITS == levels->step && seen != word) {
            iris_d_levels_differ(levels, m);
        }
    }
}

/* The leader's wait for a word of a channel, like iris_d_wait(). */
IRIS_DEVICE uint64_t iris_d_rail_poll(iris_d_levels_t *levels,
                                      const uint64_t *word, uint64_t least)
{
    iris_d_condition_t condition =
        iris_d_ccl_condition(IRIS_D_KIND_u64, IRIS_CMP_GE, least);
    iris_dev_t dev = levels->dev;
    iris_d_waiting_t wait;
    uint64_t seen;

    iris_d_wait_hook(&dev, word, sizeof *word, condition);
    if (iris_d_reached(word, condition, &seen)) {
        return iris_d_wait_held(dev, word, sizeof *word, seen);
    }
    wait = iris_d_wait_begin(dev, word, condition);
    for (uint32_t polls = 1; !iris_d_reached(word, condition, &seen); polls++) {
        iris_d_wait_poll(dev, &wait);
        if (IRIS_UNLIKELY(polls % IRIS_D_RAIL_LOOK == 0)) {
            iris_d_levels_look(levels);
        }
        if (IRIS_UNLIKELY(polls == IRIS_D_RAIL_TELL)) {
            iris_d_levels_tell(levels);
        }
    }
    seen = iris_d_wait_held(dev, word, sizeof *word, seen);
    iris_d_wait_end(dev);
    return seen;
}

/* Waits for a word of a channel. */
IRIS_DEVICE_CALLED uint64_t iris_d_rail_wait(iris_d_levels_t *levels,
                                             const uint64_t *word,
                                             uint64_t least)
{
    uint64_t seen =
        iris_wg_leader(levels->wg) ? iris_d_rail_poll(levels, word, least) : 0;

    return iris_d_far_waited(levels->wg, word, least, seen);
}

/* ---- Pieces ---- */

/* Sends a piece to member m. `from` may be overwritten once this returns. */
IRIS_DEVICE_CALLED void iris_d_rail_send(iris_d_levels_t *levels, uint64_t m,
                                         const void *from, size_t bytes)
{
    uint64_t *words = iris_d_rail_words(levels, m);
    uint64_t sent = words[IRIS_D_RAIL_SENT];

    if (sent >= IRIS_CCL_RAIL_PIECES) {
        (void)iris_d_rail_wait(levels, &words[IRIS_D_RAIL_TAKEN],
                               sent + 1 - IRIS_CCL_RAIL_PIECES);
    }
    iris_d_far_send_bytes(
        levels->wg, levels->dev, from,
        iris_d_far_of(levels->dev, levels->space,
                      iris_d_rail_piece(levels, levels->self, sent), m),
        bytes, (int)levels->ranks[m]);
    iris_wg_barrier(levels->wg);
    if (iris_wg_leader(levels->wg)) {
        words[IRIS_D_RAIL_SENT] = ++sent;
        iris_d_rail_tell(
            levels,
            &iris_d_rail_words(levels, levels->self)[IRIS_D_RAIL_ARRIVED], m,
            iris_d_rail_word(levels, sent));
    }
    iris_wg_barrier(levels->wg); /* all lanes know the number */
}

/* Waits for member m's next piece, which stays here until it is taken. */
IRIS_DEVICE_CALLED const char *iris_d_rail_receive(iris_d_levels_t *levels,
                                                   uint64_t m)
{
    uint64_t *words = iris_d_rail_words(levels, m);
    uint64_t got = words[IRIS_D_RAIL_GOT];
    uint64_t seen = iris_d_rail_wait(levels, &words[IRIS_D_RAIL_ARRIVED],
                                     iris_d_far_word(got + 1, 0));

    if (IRIS_UNLIKELY(iris_d_rail_differs(levels, seen))) {
        if (iris_wg_leader(levels->wg)) {
            iris_d_levels_tell(levels);
        }
        iris_d_far_differs(levels->wg, levels->dev, &levels->args->start,
                           levels->step, m);
    }
    return iris_d_rail_piece(levels, m, got);
}

/* Gives the piece's place back once all lanes have read it, by a word of its own
 * if no piece to member m has said so for a while. */
IRIS_DEVICE_CALLED void iris_d_rail_taken(iris_d_levels_t *levels, uint64_t m)
{
    uint64_t *words = iris_d_rail_words(levels, m);

    iris_wg_barrier(levels->wg);
    if (iris_wg_leader(levels->wg) &&
        ++words[IRIS_D_RAIL_GOT] - words[IRIS_D_RAIL_TOLD] ==
            IRIS_CCL_RAIL_TOLD) {
        iris_d_rail_tell_taken(levels, m);
        levels->owes |= iris_d_is_far(levels->dev, (int)levels->ranks[m]);
    }
    iris_wg_barrier(levels->wg); /* all lanes know the number */
}

/* Copies memory that other lanes read afterwards. */
IRIS_DEVICE_CALLED void iris_d_levels_copy(const iris_d_levels_t *levels,
                                           char *to, const char *from,
                                           size_t bytes)
{
    iris_d_wg_bytes(levels->wg, to, from, bytes);
    iris_wg_barrier(levels->wg);
}

/* Receives a piece to `to`. */
IRIS_DEVICE void iris_d_rail_take(iris_d_levels_t *levels, uint64_t m, char *to,
                                  size_t bytes)
{
    iris_d_wg_bytes(levels->wg, to, iris_d_rail_receive(levels, m), bytes);
    iris_d_rail_taken(levels, m);
}

/* Sends a piece to the other members of this node. */
IRIS_DEVICE void iris_d_levels_share(iris_d_levels_t *levels, const char *from,
                                     size_t bytes)
{
    for (uint64_t i = 1; i < levels->mates; i++) {
        iris_d_rail_send(levels,
                         iris_d_levels_mate(levels, levels->args->place + i),
                         from, bytes);
    }
}

/* ---- Gathering ---- */

/* Takes the pieces of a node that is not this one: those on this rank's rails
 * over the network, the others from the mates that have them. All members take
 * turns, so that no channel fills up. */
IRIS_DEVICE void iris_d_levels_take(iris_d_levels_t *levels, uint64_t node,
                                    char *out, uint64_t pitch, size_t bytes)
{
    uint64_t n = iris_d_levels_size(levels, node);

    for (uint64_t turn = 0; turn < n; turn += levels->mates) {
        uint64_t own = turn + levels->args->place;

        if (own < n) {
            uint64_t m = iris_d_levels_on(levels, node, own);

            iris_d_rail_take(levels, m, out + m * pitch, bytes);
            iris_d_levels_share(levels, out + m * pitch, bytes);
        }
        for (uint64_t i = 0; i < levels->mates && turn + i < n; i++) {
            uint64_t m = iris_d_levels_on(levels, node, turn + i);

            if (i != levels->args->place) {
                iris_d_rail_take(levels, iris_d_levels_mate(levels, i),
                                 out + m * pitch, bytes);
            }
        }
    }
}

/* Gathers a piece of each member, `pitch` bytes from one to the next. */
IRIS_DEVICE void iris_d_levels_gather(iris_d_levels_t *levels, const char *in,
                                      char *out, uint64_t pitch, size_t bytes)
{
    uint64_t nodes = levels->args->nodes, node = levels->args->node;
    char *own = out + levels->self * pitch;

    for (uint64_t i = 1; i < nodes; i++) {
        iris_d_rail_send(
            levels,
            iris_d_levels_on(levels, (node + i) % nodes, levels->args->place),
            in, bytes);
    }
    iris_d_levels_share(levels, in, bytes);
    if (own != in) {
        iris_d_levels_copy(levels, own, in, bytes);
    }
    for (uint64_t i = 0; i < levels->mates; i++) {
        uint64_t m = iris_d_levels_mate(levels, i);

        if (m != levels->self) {
            iris_d_rail_take(levels, m, out + m * pitch, bytes);
        }
    }
    for (uint64_t i = 1; i < nodes; i++) {
        iris_d_levels_take(levels, (node + nodes - i) % nodes, out, pitch,
                           bytes);
    }
}

/* ---- Reducing ---- */

/* Writes an entry of the table. No lane reads it until the next barrier. */
IRIS_DEVICE void iris_d_levels_enter(const iris_d_levels_t *levels, uint64_t i,
                                     const char *from)
{
    if (iris_wg_leader(levels->wg)) {
        levels->table[i] = (uintptr_t)from;
    }
}

/* Combines `bytes` bytes at the first `count` addresses of the table. With
 * `before`, adds them to these sums. Writes the sums to `sums`, or if that is
 * NULL the result to `to`. */
IRIS_DEVICE void iris_d_levels_fold(const iris_d_levels_t *levels,
                                    uint64_t count, size_t bytes,
                                    const char *before, char *sums, char *to)
{
    const struct iris_ccl_levels_args *args = levels->args;
    iris_d_far_sum_t sum;

    sum.in = levels->table;
    sum.count = (uint32_t)count;
    sum.kind = (enum iris_d_kind)args->kind;
    sum.op = (iris_reduce_op_t)args->op;
    sum.wider = args->wider;
    sum.scale = args->scale;
    sum.before = before;
    sum.sums = sums;
    sum.to = to;
    sum.bytes = bytes;
    iris_wg_barrier(levels->wg); /* all lanes see the table */
    iris_d_far_combine(levels->wg, &sum);
    iris_wg_barrier(levels->wg);
}

IRIS_DEVICE void iris_d_levels_few(iris_d_levels_t *levels)
{
    const struct iris_ccl_levels_args *args = levels->args;
    uint64_t count = (uint64_t)levels->space->count;
    char *all = levels->own;

    for (uint64_t m = 0; m < count; m++) {
        iris_d_levels_enter(levels, m, all + m * args->piece);
    }
    for (uint64_t at = 0; at < args->bytes; at += args->piece) {
        uint64_t left = args->bytes - at;
        size_t bytes = left < args->piece ? left : args->piece;

        iris_d_levels_gather(levels, (const char *)args->in + at, all,
                             args->piece, bytes);
        iris_d_levels_fold(levels, count, bytes, NULL, NULL,
                           (char *)args->out + at);
    }
}

/* ---- The chain ---- */

#define IRIS_D_LEVELS_NOBODY (~(uint64_t)0)

/* A rail's share of a piece of the buffer. */
typedef struct iris_d_levels_part {
    uint64_t rail;
    uint64_t at;
    size_t bytes; /* may be 0 */
    uint64_t out; /* where the result goes in `out` */
    uint64_t to;  /* of SCATTER: the member that gets it, or nobody */
} iris_d_levels_part_t;

/* Pieces of SCATTER are of the rail's members of the nodes by turns. If a node has
 * no such member, its piece is empty. */
IRIS_DEVICE iris_d_levels_part_t
iris_d_levels_part(const iris_d_levels_t *levels, uint64_t piece, uint64_t rail)
{
    const struct iris_ccl_levels_args *args = levels->args;
    iris_bool_t scatters = args->way == IRIS_CCL_LEVELS_SCATTER;
    uint64_t node = piece % args->nodes, left;
    iris_d_levels_part_t part;

    part.rail = rail;
    part.to = IRIS_D_LEVELS_NOBODY;
    part.out = args->piece *
               (scatters ? piece / args->nodes : piece * args->rails + rail);
    part.out = part.out < args->bytes ? part.out : args->bytes;
    part.at = part.out;
    left = args->bytes - part.out;
    part.bytes = left < args->piece ? left : args->piece;
    if (scatters && rail < iris_d_levels_size(levels, node)) {
        part.to = iris_d_levels_on(levels, node, rail);
        part.at += part.to * args->bytes;
    } else if (scatters) {
        part.bytes = 0;
    }
    return part;
}

/* Sends the result to the node before this one. */
IRIS_DEVICE void iris_d_levels_send_back(iris_d_levels_t *levels,
                                         iris_d_levels_part_t part)
{
    const struct iris_ccl_levels_args *args = levels->args;

    if (args->node > 0) {
        iris_d_rail_send(levels,
                         iris_d_levels_on(levels, args->node - 1, part.rail),
                         (char *)args->out + part.at, part.bytes);
    }
}

/* Combines this node's input with the sums of the nodes before it. The mates'
 * pieces stay in their channels meanwhile. */
IRIS_DEVICE void iris_d_levels_add(iris_d_levels_t *levels,
                                   iris_d_levels_part_t part)
{
    const struct iris_ccl_levels_args *args = levels->args;
    iris_bool_t is_last = args->node + 1 == args->nodes;
    char *sums = is_last ? NULL : levels->own;
    char *out = (char *)args->out + part.out;
    const char *before = NULL;
    uint64_t prior = 0;

    for (uint64_t i = 0; i < levels->mates; i++) {
        uint64_t m = iris_d_levels_mate(levels, i);
        const char *from = m == levels->self ? (const char *)args->in + part.at
                                             : iris_d_rail_receive(levels, m);

        iris_d_levels_enter(levels, i, from);
    }
    if (args->way == IRIS_CCL_LEVELS_SCATTER && part.to != levels->self) {
        out = levels->own;
    }
    if (args->node > 0) {
        prior = iris_d_levels_on(levels, args->node - 1, part.rail);
        before = iris_d_rail_receive(levels, prior);
    }
    iris_d_levels_fold(levels, levels->mates, part.bytes, before, sums, out);
    for (uint64_t i = 0; i < levels->mates; i++) {
        if (iris_d_levels_mate(levels, i) != levels->self) {
            iris_d_rail_taken(levels, iris_d_levels_mate(levels, i));
        }
    }
    if (args->node > 0) {
        iris_d_rail_taken(levels, prior);
    }
    if (is_last && args->way == IRIS_CCL_LEVELS_CHAIN) {
        iris_d_levels_send_back(levels, part);
    } else if (is_last && part.to != levels->self &&
               part.to != IRIS_D_LEVELS_NOBODY) {
        iris_d_rail_send(levels, part.to, out, part.bytes);
    } else if (!is_last) {
        iris_d_rail_send(levels,
                         iris_d_levels_on(levels, args->node + 1, part.rail),
                         sums, part.bytes * args->wider);
    }
}

/* Gives the mates their shares of this rank's input, and adds up its own. */
IRIS_DEVICE void iris_d_levels_forward(iris_d_levels_t *levels, uint64_t piece)
{
    const struct iris_ccl_levels_args *args = levels->args;

    for (uint64_t turn = 0; turn < args->rails; turn += levels->mates) {
        for (uint64_t i = 1; i < levels->mates; i++) {
            uint64_t place = (args->place + i) % levels->mates;

            if (turn + place < args->rails) {
                iris_d_levels_part_t part =
                    iris_d_levels_part(levels, piece, turn + place);

                iris_d_rail_send(levels, iris_d_levels_mate(levels, place),
                                 (const char *)args->in + part.at, part.bytes);
            }
        }
        if (turn + args->place < args->rails) {
            iris_d_levels_add(
                levels, iris_d_levels_part(levels, piece, turn + args->place));
        }
    }
}

/* Takes the result of this rank's rail, passes it on, and takes those of the
 * mates' rails. */
IRIS_DEVICE void iris_d_levels_back(iris_d_levels_t *levels, uint64_t piece)
{
    const struct iris_ccl_levels_args *args = levels->args;
    char *out = (char *)args->out;

    for (uint64_t turn = 0; turn < args->rails; turn += levels->mates) {
        if (turn + args->place < args->rails) {
            iris_d_levels_part_t part =
                iris_d_levels_part(levels, piece, turn + args->place);

            if (args->node + 1 < args->nodes) {
                iris_d_rail_take(
                    levels, iris_d_levels_on(levels, args->node + 1, part.rail),
                    out + part.at, part.bytes);
                iris_d_levels_send_back(levels, part);
            }
            iris_d_levels_share(levels, out + part.at, part.bytes);
        }
        for (uint64_t i = 0; i < levels->mates; i++) {
            if (i != args->place && turn + i < args->rails) {
                iris_d_levels_part_t part =
                    iris_d_levels_part(levels, piece, turn + i);

                iris_d_rail_take(levels, iris_d_levels_mate(levels, i),
                                 out + part.at, part.bytes);
            }
        }
    }
}

/* Takes the result of a piece of this rank's part from the last node. */
IRIS_DEVICE void iris_d_levels_keep(iris_d_levels_t *levels, uint64_t piece)
{
    const struct iris_ccl_levels_args *args = levels->args;
    iris_d_levels_part_t part = iris_d_levels_part(levels, piece, args->place);

    if (part.to == levels->self && args->node + 1 < args->nodes) {
        iris_d_rail_take(levels,
                         iris_d_levels_on(levels, args->nodes - 1, part.rail),
                         (char *)args->out + part.out, part.bytes);
    }
}

IRIS_DEVICE void iris_d_levels_chain(iris_d_levels_t *levels)
{
    const struct iris_ccl_levels_args *args = levels->args;
    iris_bool_t scatters = args->way == IRIS_CCL_LEVELS_SCATTER;
    uint64_t each = scatters ? args->piece : args->rails * args->piece;
    uint64_t pieces =
        (args->bytes + each - 1) / each * (scatters ? args->nodes : 1);

    for (uint64_t k = 0; k < pieces + IRIS_D_RAIL_AHEAD; k++) {
        if (k < pieces) {
            iris_d_levels_forward(levels, k);
        }
        if (k >= IRIS_D_RAIL_AHEAD && scatters) {
            iris_d_levels_keep(levels, k - IRIS_D_RAIL_AHEAD);
        } else if (k >= IRIS_D_RAIL_AHEAD) {
            iris_d_levels_back(levels, k - IRIS_D_RAIL_AHEAD);
        }
    }
}

/* ---- Swapping ---- */

/* Each mate's blocks for this rank's rail, in the order of the nodes, go to the
 * other nodes with its own, one message to each. */
IRIS_DEVICE void iris_d_levels_pass(iris_d_levels_t *levels, const char *in,
                                    size_t bytes)
{
    uint64_t nodes = levels->args->nodes, place = levels->args->place;
    char *pack = levels->own;

    for (uint64_t i = 1; i < nodes; i++) {
        uint64_t node = (levels->args->node + i) % nodes;
        uint64_t to = iris_d_levels_on(levels, node, place);

        for (uint64_t q = 0; q < levels->mates; q++) {
            iris_d_wg_bytes(levels->wg, pack + q * bytes,
                            q == place
                                ? in + to * bytes
                                : iris_d_ccl_at(levels->table, (uint32_t)q) +
                                      node * bytes,
                            bytes);
        }
        iris_wg_barrier(levels->wg);
        iris_d_rail_send(levels, to, pack, levels->mates * bytes);
    }
}

/* All nodes have the same number of members. Reads all input before it writes
 * output, which may be in its place. */
IRIS_DEVICE void iris_d_levels_swap(iris_d_levels_t *levels, const char *in,
                                    char *out, size_t bytes)
{
    uint64_t nodes = levels->args->nodes, place = levels->args->place;
    uint64_t node = levels->args->node;
    char *pack = levels->own;

    for (uint64_t i = 1; i < levels->mates; i++) {
        for (uint64_t k = 0; k < nodes; k++) {
            iris_d_wg_bytes(levels->wg, pack + k * bytes,
                            in + iris_d_levels_on(levels, k, place + i) * bytes,
                            bytes);
        }
        iris_wg_barrier(levels->wg);
        iris_d_rail_send(levels, iris_d_levels_mate(levels, place + i), pack,
                         nodes * bytes);
    }
    for (uint64_t i = 1; i < levels->mates; i++) {
        iris_d_levels_enter(
            levels, (place + i) % levels->mates,
            iris_d_rail_receive(levels, iris_d_levels_mate(levels, place + i)));
    }
    iris_wg_barrier(levels->wg); /* all lanes see the table */
    iris_d_levels_pass(levels, in, bytes);
    if (out != in) {
        iris_d_wg_bytes(levels->wg, out + levels->self * bytes,
                        in + levels->self * bytes, bytes);
    }
    for (uint64_t i = 1; i < levels->mates; i++) {
        uint64_t q = (place + i) % levels->mates;
        uint64_t m = iris_d_levels_mate(levels, q);

        iris_d_wg_bytes(
            levels->wg, out + m * bytes,
            iris_d_ccl_at(levels->table, (uint32_t)q) + node * bytes, bytes);
        iris_d_rail_taken(levels, m);
    }
    for (uint64_t i = 1; i < nodes; i++) {
        uint64_t from = (node + nodes - i) % nodes;
        uint64_t m = iris_d_levels_on(levels, from, place);
        const char *piece = iris_d_rail_receive(levels, m);

        for (uint64_t q = 0; q < levels->mates; q++) {
            iris_d_wg_bytes(levels->wg,
                            out + iris_d_levels_on(levels, from, q) * bytes,
                            piece + q * bytes, bytes);
        }
        iris_d_rail_taken(levels, m);
    }
}

/* ---- Spreading ---- */

/* The node of member m. */
IRIS_DEVICE uint64_t iris_d_levels_node(const iris_d_levels_t *levels,
                                        uint64_t m)
{
    uint64_t node = 0;

    for (int64_t i = 0; (uint64_t)levels->order[i] != m; i++) {
        node += i + 1 == levels->first[node + 1];
    }
    return node;
}

/* Moves one piece of the root, which has it at `in`, to everybody's `out`. */
IRIS_DEVICE void iris_d_levels_hand_on(iris_d_levels_t *levels, uint64_t piece,
                                       const char *in, char *out, size_t bytes)
{
    const struct iris_ccl_levels_args *args = levels->args;
    uint64_t from = iris_d_levels_node(levels, args->root);
    uint64_t sender = iris_d_levels_on(levels, from, piece);
    uint64_t taker = iris_d_levels_on(levels, args->node, piece);

    if (levels->self == args->root) {
        iris_d_levels_share(levels, in, bytes);
        if (out != in) {
            iris_d_levels_copy(levels, out, in, bytes);
        }
    } else if (args->node == from) {
        iris_d_rail_take(levels, args->root, out, bytes);
    } else if (levels->self == taker) {
        iris_d_rail_take(levels, sender, out, bytes);
        iris_d_levels_share(levels, out, bytes);
    } else {
        iris_d_rail_take(levels, taker, out, bytes);
    }
    for (uint64_t i = 1; i < args->nodes && levels->self == sender; i++) {
        iris_d_rail_send(
            levels, iris_d_levels_on(levels, (from + i) % args->nodes, piece),
            out, bytes);
    }
}

/* Moves the parts of a GATHER, or of a SPREAD, piece by piece. */
IRIS_DEVICE void iris_d_levels_move(iris_d_levels_t *levels)
{
    const struct iris_ccl_levels_args *args = levels->args;
    const char *in = (const char *)args->in;
    char *out = (char *)args->out;

    for (uint64_t at = 0; at < args->bytes; at += args->piece) {
        uint64_t left = args->bytes - at;
        size_t bytes = left < args->piece ? left : args->piece;

        if (args->way == IRIS_CCL_LEVELS_SPREAD) {
            iris_d_levels_hand_on(levels, at / args->piece, in + at, out + at,
                                  bytes);
        } else {
            iris_d_levels_gather(levels, in + at, out + at, args->bytes, bytes);
        }
    }
    if (args->way == IRIS_CCL_LEVELS_SPREAD) {
        iris_d_levels_gather(levels, out, out, 0, 0);
    }
}

/* One workgroup. */
IRIS_KERNEL(iris_k_ccl_levels, struct iris_ccl_levels_args)
{
    struct iris_ccl_space *space = args->start.space;
    uint64_t n = (uint64_t)space->count;
    iris_d_levels_t levels;

    levels.wg = wg;
    levels.dev = iris_dev_init(args->start.context);
    levels.args = args;
    levels.space = space;
    levels.ranks = iris_i_ccl_members(space) + n;
    levels.order = levels.ranks + n;
    levels.first = levels.order + n;
    levels.self = (uint64_t)space->index;
    levels.mates = iris_d_levels_size(&levels, args->node);
    levels.told = levels.owes = 0;
    levels.byes = (uint64_t *)(void *)iris_d_far_at(space, space->byes);
    levels.own = iris_d_far_at(space, space->stages);
    levels.table = (iris_d_u64_t *)(void *)iris_d_far_at(space, space->tables);
    levels.step = iris_d_far_begin(wg, levels.dev, &args->start) + 1;
    iris_d_far_count(wg, space, levels.step);
    if (args->way == IRIS_CCL_LEVELS_CHAIN ||
        args->way == IRIS_CCL_LEVELS_SCATTER) {
        iris_d_levels_chain(&levels);
    } else if (args->way == IRIS_CCL_LEVELS_FEW) {
        iris_d_levels_few(&levels);
    } else if (args->way == IRIS_CCL_LEVELS_SWAP) {
        iris_d_levels_swap(&levels, (const char *)args->in, (char *)args->out,
                           args->bytes);
    } else {
        iris_d_levels_move(&levels);
    }
    iris_d_far_end(wg, space);
    iris_d_far_owes(levels.dev, levels.owes);
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_LEVELS_H */
