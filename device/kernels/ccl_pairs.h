/* SPDX-License-Identifier: MIT
 *
 * Messages between pairs of members: gather, scatter, all_gatherv, all_to_allv,
 * send and receive.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_PAIRS_H
#define IRIS_DEVICE_KERNELS_CCL_PAIRS_H

#include <iris/device/kernels/ccl_channel.h>

/* A message goes from workgroup w of its sender to workgroup w of its receiver,
 * with a share of the bytes for each workgroup. The sender puts pieces of its
 * share alternately into two places of the receiver's ring. Before each piece
 * it waits until the receiver has taken the last but one. A large message in
 * memory that the receiver can access is one piece: the receiver reads it in
 * place, and the sender's kernel then ends. Counts of pieces grow over all
 * messages of a pair, so messages match in the order of the calls, and nothing
 * is reset.
 *
 * Why members cannot deadlock: all members send piece k of every message, then
 * receive piece k of every message. Piece k needs room that its receiver makes
 * in its round k - 2 at the latest. The receiver ends that round by itself once
 * all members have sent their pieces k - 2. The program has to order calls that
 * only send (ccl.h). */

/* This workgroup's share of a message, and its number of pieces. */
typedef struct iris_d_message {
    iris_d_ccl_share_t share;
    uint64_t bytes; /* bytes of all workgroups */
    size_t piece;
    size_t pieces;
    iris_bool_t read; /* the receiver reads it in place, as one piece */
} iris_d_message_t;

/* A message of 0 bytes is one piece if `is_empty` is set, or has no pieces. */
IRIS_DEVICE iris_d_message_t
iris_d_message(iris_wg_t wg, const iris_d_ccl_t *ccl,
               const struct iris_ccl_pairs_args *args, uint64_t bytes,
               iris_bool_t is_empty)
{
    uint64_t wgs = (bytes + args->bytes_per_wg - 1) / args->bytes_per_wg;
    size_t grains = (bytes + IRIS_CCL_LINE - 1) / IRIS_CCL_LINE;
    iris_d_message_t message;
    iris_wg_t all = wg;
    size_t end;

    message.bytes = bytes;
    message.piece = (size_t)iris_d_ccl_word(&ccl->space->pair_bytes);
    message.read = args->reads && bytes > message.piece;
    all.num_wgs = wgs < args->most_wgs ? (uint32_t)wgs : args->most_wgs;
    all.num_wgs = all.num_wgs == 0 ? 1 : all.num_wgs;
    message.share.begin = message.share.bytes = message.pieces = 0;
    if (wg.id >= all.num_wgs || (bytes == 0 && !args->checks && !is_empty)) {
        return message;
    }
    message.share.begin = iris_d_share(all, wg.id, grains) * IRIS_CCL_LINE;
    end = iris_d_share(all, wg.id + 1, grains) * IRIS_CCL_LINE;
    message.share.bytes = (end < bytes ? end : bytes) - message.share.begin;
    message.pieces = (message.share.bytes + message.piece - 1) / message.piece;
    message.pieces = message.read || message.pieces == 0 ? 1 : message.pieces;
    return message;
}

/* Bytes of piece k of a share. */
IRIS_DEVICE size_t iris_d_message_piece(const iris_d_message_t *message,
                                        size_t k)
{
    size_t left = message->share.bytes - k * message->piece;

    return left < message->piece ? left : message->piece;
}

IRIS_DEVICE iris_d_message_t iris_d_message_to(
    iris_wg_t wg, const iris_d_ccl_t *ccl,
    const struct iris_ccl_pairs_args *args, uint32_t r, uint32_t *to_p)
{
    iris_d_message_t message =
        iris_d_message(wg, ccl, args, args->routes[r].in_bytes,
                       args->first + r == args->empty_to);

    *to_p = iris_d_ccl_after(ccl, args->first + r);
    if (message.read && iris_d_is_far(ccl->dev, iris_d_pair_rank(ccl, *to_p))) {
        message.read = 0;
        message.pieces =
            (message.share.bytes + message.piece - 1) / message.piece;
    }
    return message;
}

IRIS_DEVICE iris_d_message_t
iris_d_message_from(iris_wg_t wg, const iris_d_ccl_t *ccl,
                    const struct iris_ccl_pairs_args *args, uint32_t r)
{
    return iris_d_message(wg, ccl, args, args->routes[r].out_bytes,
                          args->first + r == args->empty_from);
}

/* Sends piece k of route r. */
IRIS_DEVICE_LARGE void iris_d_pair_send(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                        const struct iris_ccl_pairs_args *args,
                                        uint32_t r, size_t k)
{
    uint32_t to;
    iris_d_message_t message = iris_d_message_to(wg, ccl, args, r, &to);
    iris_d_u64_t *words = iris_d_pair_words(ccl, wg.id, to);
    uint64_t sent = iris_d_pair_word(words, IRIS_CCL_PAIR_SENT);
    const char *from = (const char *)args->in + args->routes[r].in_at +
                       message.share.begin + k * message.piece;
    uint64_t where = (uint64_t)((uintptr_t)from - ccl->dev.heap_base);

    if (k >= message.pieces) {
        return;
    }
    if (!iris_d_pair_wait(wg, ccl, words, IRIS_CCL_PAIR_TAKEN,
                          sent < 1 ? 0 : sent - 1, to)) {
        return;
    }
    /* On that member, this rank's words and ring are at this rank's index. */
    words = iris_d_pair_words(ccl, wg.id, ccl->index);
    if (!message.read) {
        where = IRIS_CCL_PAIR_IN_RING;
        iris_d_pair_put(wg, ccl, iris_d_pair_ring(wg, ccl, ccl->index, sent),
                        to, from, iris_d_message_piece(&message, k));
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_d_u64_t *told = iris_d_pair_told(words, sent);

        iris_d_pair_tell(ccl, &told[0], to, args->start.what.what);
        iris_d_pair_tell(ccl, &told[1], to,
                         iris_d_pair_sized(args, message.bytes));
        iris_d_pair_tell(ccl, &told[2], to, where);
        iris_d_release_ahead();
        iris_d_pair_tell(ccl, &words[IRIS_CCL_PAIR_ARRIVED], to, sent + 1);
        words = iris_d_pair_words(ccl, wg.id, to);
        iris_d_store_u64(&words[IRIS_CCL_PAIR_SENT], sent + 1,
                         iris_d_ccl_relaxed());
    }
    iris_wg_barrier(wg);
}

/* Whether member i's piece belongs to the message that this rank expects. */
IRIS_DEVICE iris_bool_t iris_d_pair_fits(const struct iris_ccl_pairs_args *args,
                                         iris_d_u64_t *told, uint64_t bytes)
{
    uint64_t differ = args->start.what.what ^ iris_d_pair_word(told, 0);

    return (differ >> IRIS_DEV_CALL_DTYPE & 0xff) == 0 &&
           iris_d_pair_word(told, 1) == iris_d_pair_sized(args, bytes);
}

/* Receives piece k of route r. */
IRIS_DEVICE_LARGE void
iris_d_pair_receive(iris_wg_t wg, const iris_d_ccl_t *ccl,
                    const struct iris_ccl_pairs_args *args, uint32_t r,
                    size_t k)
{
    iris_d_message_t message = iris_d_message_from(wg, ccl, args, r);
    uint32_t from = iris_d_ccl_after(ccl, ccl->count - (args->first + r));
    iris_d_u64_t *words = iris_d_pair_words(ccl, wg.id, from);
    uint64_t got = iris_d_pair_word(words, IRIS_CCL_PAIR_GOT), where;
    iris_d_u64_t *told = iris_d_pair_told(words, got);
    char *to = (char *)args->out + args->routes[r].out_at +
               message.share.begin + k * message.piece;
    const char *piece = iris_d_pair_ring(wg, ccl, from, got);
    size_t bytes;

    message.pieces = (message.share.bytes + message.piece - 1) / message.piece +
                     (message.share.bytes == 0 ? message.pieces : 0);
    if (k >= message.pieces ||
        (k > 0 && iris_d_pair_word(words, IRIS_CCL_PAIR_READ) != 0)) {
        return;
    }
    if (!iris_d_pair_wait(wg, ccl, words, IRIS_CCL_PAIR_ARRIVED, got + 1,
                          from)) {
        return;
    }
    if (!iris_d_pair_fits(args, told, message.bytes)) {
        iris_d_pair_find(args->start, args->meets, from, message.bytes, told);
        return;
    }
    where = iris_d_pair_word(told, 2);
    bytes = iris_d_message_piece(&message, k);
    if (where != IRIS_CCL_PAIR_IN_RING) {
        piece = (const char *)iris_d_global(
            (uintptr_t)iris_d_load_constant(
                &ccl->dev.heap_bases[iris_d_pair_rank(ccl, from)]) +
            (uintptr_t)where);
        bytes = message.share.bytes;
    }
    iris_d_pair_bytes(wg, to, piece, bytes);
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_d_release_ahead();
        iris_d_pair_tell(
            ccl,
            &iris_d_pair_words(ccl, wg.id, ccl->index)[IRIS_CCL_PAIR_TAKEN],
            from, got + 1);
        iris_d_store_u64(&words[IRIS_CCL_PAIR_GOT], got + 1,
                         iris_d_ccl_relaxed());
        iris_d_store_u64(&words[IRIS_CCL_PAIR_READ],
                         where != IRIS_CCL_PAIR_IN_RING, iris_d_ccl_relaxed());
    }
    iris_wg_barrier(wg);
}

/* Copies the message from this rank to itself. */
IRIS_DEVICE void iris_d_pair_keep(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                  const struct iris_ccl_pairs_args *args)
{
    const struct iris_ccl_route *route = &args->routes[0];
    iris_d_message_t message =
        iris_d_message(wg, ccl, args, route->in_bytes, 0);
    const char *from;
    char *to;

    if (message.share.bytes == 0) {
        return; /* the buffers may be NULL */
    }
    from = (const char *)args->in + route->in_at + message.share.begin;
    to = (char *)args->out + route->out_at + message.share.begin;
    if (from != to) {
        iris_d_pair_bytes(wg, to, from, message.share.bytes);
    }
}

/* The pieces of the message from route r, once the first one is here. */
IRIS_DEVICE size_t iris_d_pair_pieces(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                      const struct iris_ccl_pairs_args *args,
                                      uint32_t r)
{
    uint32_t from = iris_d_ccl_after(ccl, ccl->count - (args->first + r));
    iris_d_message_t message = iris_d_message_from(wg, ccl, args, r);

    return iris_d_pair_word(iris_d_pair_words(ccl, wg.id, from),
                            IRIS_CCL_PAIR_READ) != 0
               ? 1
               : (message.share.bytes + message.piece - 1) / message.piece;
}

/* The most pieces of a message that this workgroup sends or receives, once it
 * has received the first pieces. A message that is read in place has one. */
IRIS_DEVICE size_t iris_d_pair_rounds(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                      const struct iris_ccl_pairs_args *args,
                                      uint32_t own)
{
    size_t most = 1;

    for (uint32_t r = own; r < args->count; r++) {
        uint32_t to;
        size_t sent = iris_d_message_to(wg, ccl, args, r, &to).pieces;
        size_t got = iris_d_pair_pieces(wg, ccl, args, r);

        most = sent > most ? sent : most;
        most = got > most ? got : most;
    }
    return most;
}

/* Ends the waits of the members of the routes for this one. They report the
 * failed call and its status. Every lane tells the same. */
IRIS_DEVICE void iris_d_pairs_fail(const iris_d_ccl_t *ccl,
                                   const struct iris_ccl_pairs_args *args)
{
    uint32_t wgs = (uint32_t)iris_d_ccl_word(&ccl->space->pair_wgs);
    iris_d_refusal_t refusal;

#if IRIS_FAR
    if (iris_d_lane() != 0) {
        return; /* one lane's messages are enough */
    }
#endif
    refusal.receiver = ccl->index;
    refusal.expected = args->start.what.what;
    refusal.expected_bytes = args->start.what.sizes[0];
    refusal.found = args->start.what.sizes[1];
    refusal.found_bytes = 0;
    for (uint32_t r = 0; r < args->count; r++) {
        refusal.sender = iris_d_ccl_after(ccl, args->first + r);
        for (uint32_t w = 0; w < wgs; w++) {
            iris_d_pair_refuse(ccl, w, refusal.sender, &refusal);
        }
    }
}

/* `meets`: this workgroup has greeted the members, whose hellos arrive while it
 * sends. Their rings need none: they have room. */
IRIS_DEVICE void iris_d_pairs(iris_wg_t wg, const iris_d_ccl_t *ccl,
                              const struct iris_ccl_pairs_args *args,
                              iris_bool_t meets)
{
    uint32_t own = args->first == 0 ? 1 : 0, to;
    size_t rounds = 1;

    if (args->fails) {
        iris_d_pairs_fail(ccl, args);
        return;
    }
    if (own != 0) {
        iris_d_pair_keep(wg, ccl, args);
    }
    for (size_t k = 0; k < rounds; k++) {
        for (uint32_t r = own; r < args->count; r++) {
            iris_d_pair_send(wg, ccl, args, r, k);
        }
        if (meets && k == 0) {
            iris_d_ccl_greeted(wg, ccl, ccl->count);
            iris_d_ccl_go_on(ccl);
        }
        for (uint32_t r = own; r < args->count; r++) {
            iris_d_pair_receive(wg, ccl, args, r, k);
        }
        if (k == 0) {
            rounds = iris_d_pair_rounds(wg, ccl, args, own);
        }
    }
    for (uint32_t r = own; r < args->count; r++) {
        iris_d_message_t message = iris_d_message_to(wg, ccl, args, r, &to);
        iris_d_u64_t *words = iris_d_pair_words(ccl, wg.id, to);

        if (message.pieces > 0 && (message.read || args->checks)) {
            (void)iris_d_pair_wait(wg, ccl, words, IRIS_CCL_PAIR_TAKEN,
                                   iris_d_pair_word(words, IRIS_CCL_PAIR_SENT),
                                   to);
        }
    }
}

/* Each workgroup meets only the others with its index. That suffices: the
 * stream's next kernel begins when all workgroups of this one have ended. */
IRIS_KERNEL(iris_k_ccl_pairs, struct iris_ccl_pairs_args)
{
    iris_d_ccl_t ccl = iris_d_ccl_begin(wg, &args->start);

    if (args->meets) {
        ccl.epoch++;
    }
    if (args->meets && wg.id == 0) {
        IRIS_WG_LANES (wg, i, ccl.count) {
            iris_d_release_ahead(); /* a fence of all lanes takes longer */
        }
        iris_d_ccl_greet_ahead(wg, &ccl);
    }
    iris_d_pairs(wg, &ccl, args, args->meets && wg.id == 0);
    iris_d_ccl_end(wg, &ccl);
}

#if IRIS_ON_CPU || IRIS_FAR
/* iris_k_ccl_pairs for members that do not all map each other's heaps; one
 * workgroup. */
IRIS_KERNEL(iris_k_ccl_far_pairs, struct iris_ccl_pairs_args)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&args->start, 0);
    /* They move no bytes. */
    iris_d_far_step_t step = {0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0};
    struct iris_ccl_far_args meeting = {args->start, NULL, NULL, 0, 0,        0,
                                        0,           0,    0,    0, -1,       0,
                                        0,           0,    0,    0, {0, 0, 0}};

    step.number = iris_d_far_begin(wg, ccl.dev, &meeting.start);
    if (args->meets) {
        iris_d_far_exchange(wg, ccl.dev, &meeting, &step);
    }
    iris_d_pairs(wg, &ccl, args, 0);
    iris_wg_barrier(wg);
    iris_d_far_end(wg, args->start.space);
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_PAIRS_H */
