/* SPDX-License-Identifier: MIT
 *
 * Order under stress on the way from every rank to every rank: streams of small
 * messages, and blocks that whole workgroups put.
 */
#include "config.h"

#include "support/game.h"

#define GRID 3u    /* workgroups; k talks to k, and sends before it waits */
#define WINDOW 64u /* messages that go, are looked at and answered at once */
#define DEPTH 4u   /* windows, or blocks, that may be on their way */
#define WORDS 3u   /* of a message */
#define MOST 8192u /* bytes of a block */
#define SHIFTS 16u /* misalignments */
#define ROOM 8208u /* MOST and the largest of them */

/* How a message's words are written, and how a flag follows them. */
enum way {
    STORE_FLAG,  /* stores; each lane's own release */
    PUT_FLAG,    /* puts; each lane's own release, as an update */
    STORE_WINDOW /* stores; after a barrier one release for all lanes */
};

/* 64 bits that tell what they are part of. */
IRIS_DEVICE uint64_t pattern(int from, int to, uint64_t part, uint64_t round)
{
    uint64_t bits = ((uint64_t)from * GAME_MAX_RANKS + (uint64_t)to + 1) *
                        0x9e3779b97f4a7c15u +
                    part * 0xd1342543de82ef95u + round * 0xaf251af3b0f025b5u;

    bits = (bits ^ bits >> 32) * 0xbf58476d1ce4e5b9u;
    return bits ^ bits >> 29;
}

/* What a workgroup has got from one rank, and what it has told that rank. */
struct inbox {
    uint64_t words[DEPTH][WINDOW][WORDS];
    uint64_t flags[DEPTH][WINDOW]; /* last window that is there */
    uint64_t taken; /* last window the rank has taken of what we sent */
};

/* One on each rank's heap. */
struct message_board {
    uint64_t wrong;
    struct inbox inboxes[GRID][GAME_MAX_RANKS]; /* [workgroup][sender] */
    uint64_t out[GRID][WINDOW][WORDS];          /* where puts start */
};

/* One direction of a pair, as one of its ends sees it. */
struct side {
    struct message_board *board;
    uint64_t wg;
    int peer;
    uint64_t way;
};

/* A lane's message of a window: words, then, but for STORE_WINDOW, its flag. */
IRIS_DEVICE void send_one(iris_dev_t dev, struct side side, uint64_t window,
                          size_t lane)
{
    struct inbox *inbox = &side.board->inboxes[side.wg][dev.rank];
    uint64_t *words = inbox->words[window % DEPTH][lane];
    uint64_t *out = side.board->out[side.wg][lane];
    uint64_t *flag = &inbox->flags[window % DEPTH][lane];

    for (uint64_t w = 0; w < WORDS; w++) {
        uint64_t word = pattern(dev.rank, side.peer,
                                (side.wg * WINDOW + lane) * WORDS + w, window);

        if (side.way == PUT_FLAG) {
            out[w] = word;
            iris_put(dev, &out[w], &words[w], side.peer);
        } else {
            iris_store(dev, &words[w], word, side.peer);
        }
    }
    if (side.way == STORE_FLAG) {
        iris_atomic_store(dev, flag, window, side.peer, IRIS_RELEASE,
                          IRIS_SCOPE_SYSTEM);
    } else if (side.way == PUT_FLAG) {
        (void)iris_atomic_xchg(dev, flag, window, side.peer, IRIS_RELEASE,
                               IRIS_SCOPE_SYSTEM);
    }
}

/* Waits for a lane's message and looks at it, the last word first. */
IRIS_DEVICE void take_one(iris_dev_t dev, struct side side, uint64_t window,
                          size_t lane)
{
    struct inbox *inbox = &side.board->inboxes[side.wg][side.peer];
    const uint64_t *words = inbox->words[window % DEPTH][lane];

    if (side.way != STORE_WINDOW) {
        (void)iris_wait_until(dev, &inbox->flags[window % DEPTH][lane],
                              IRIS_CMP_EQ, window);
    }
    for (uint64_t w = WORDS; w-- > 0;) {
        uint64_t part = (side.wg * WINDOW + lane) * WORDS + w;

        game_expect(dev, side.board,
                    words[w] == pattern(side.peer, dev.rank, part, window));
    }
}

/* All lanes: sends a window to one rank and takes one from another. */
IRIS_DEVICE void exchange(iris_wg_t wg, iris_dev_t dev, struct side to,
                          struct side from, uint64_t window)
{
    struct message_board *board = to.board;
    struct inbox *ours = board->inboxes[wg.id];
    uint64_t *flag = &ours[dev.rank].flags[window % DEPTH][0];

    if (iris_wg_leader(wg) && window > DEPTH) {
        (void)iris_wait_until(dev, &ours[to.peer].taken, IRIS_CMP_GE,
                              window - DEPTH);
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, lane, WINDOW) {
        send_one(dev, to, window, lane);
    }
    if (to.way == STORE_WINDOW) {
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, flag, window, to.peer);
            (void)iris_wait_until(dev,
                                  &ours[from.peer].flags[window % DEPTH][0],
                                  IRIS_CMP_EQ, window);
        }
        iris_wg_barrier(wg);
    }
    IRIS_WG_LANES (wg, lane, WINDOW) {
        take_one(dev, from, window, lane);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, &ours[dev.rank].taken, window, from.peer);
    }
}

/* In turn every rank `shift` places on, the own one first. */
IRIS_KERNEL(messages, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct message_board *board = (struct message_board *)args->board;
    struct side to = {board, wg.id, 0, args->variant}, from = to;

    for (int shift = 0; shift < dev.num_ranks; shift++) {
        to.peer = (dev.rank + shift) % dev.num_ranks;
        from.peer = (dev.rank + dev.num_ranks - shift) % dev.num_ranks;
        for (uint64_t window = 1; window <= args->rounds; window++) {
            exchange(wg, dev, to, from, window);
        }
    }
}

/* One on each rank's heap. */
struct block_board {
    uint64_t wrong;
    uint64_t sent[GRID][GAME_MAX_RANKS];  /* [workgroup][sender] */
    uint64_t taken[GRID][GAME_MAX_RANKS]; /* [workgroup][receiver] */
    unsigned char out[GRID][ROOM];
    unsigned char in[GRID][GAME_MAX_RANKS][DEPTH][ROOM];
};

/* A block's size and where its two ends start, which both sides know. */
struct block {
    size_t bytes;
    size_t out;
    size_t in;
};

IRIS_DEVICE struct block block_of(int from, int to, uint64_t wg, uint64_t round)
{
    uint64_t bits = pattern(from, to, wg, round ^ 0x5bd1e995);
    struct block block;

    /* As many small ones as large ones. */
    block.bytes = 1 + (bits >> 16) % (MOST >> bits % 12);
    block.out = bits >> 48 & (SHIFTS - 1);
    block.in = bits >> 52 & (SHIFTS - 1);
    return block;
}

IRIS_DEVICE unsigned char block_byte(int from, int to, uint64_t round, size_t i)
{
    return (unsigned char)(pattern(from, to, i / 8, round) >> i % 8 * 8);
}

/* All lanes. */
IRIS_DEVICE void send_block(iris_wg_t wg, iris_dev_t dev,
                            struct block_board *board, int to, uint64_t round)
{
    struct block block = block_of(dev.rank, to, wg.id, round);
    unsigned char *out = board->out[wg.id] + block.out;
    unsigned char *in = board->in[wg.id][dev.rank][round % DEPTH] + block.in;

    IRIS_WG_LANES (wg, i, block.bytes) {
        out[i] = block_byte(dev.rank, to, round, i);
    }
    if (iris_wg_leader(wg) && round > DEPTH) {
        (void)iris_wait_until(dev, &board->taken[wg.id][to], IRIS_CMP_GE,
                              round - DEPTH);
    }
    iris_wg_barrier(wg);
    iris_wg_put_signal(wg, dev, out, in, block.bytes,
                       &board->sent[wg.id][dev.rank], round, to);
}

/* All lanes; the tail, which left last, is looked at first. One lane waits, or
 * each. */
IRIS_DEVICE void take_block(iris_wg_t wg, iris_dev_t dev,
                            struct block_board *board, int from, uint64_t round)
{
    struct block block = block_of(from, dev.rank, wg.id, round);
    const unsigned char *in = board->in[wg.id][from][round % DEPTH] + block.in;

    if (iris_wg_leader(wg) || round % 2 == 0) {
        (void)iris_wait_until(dev, &board->sent[wg.id][from], IRIS_CMP_GE,
                              round);
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, block.bytes) {
        size_t at = block.bytes - 1 - i;

        game_expect(dev, board,
                    in[at] == block_byte(from, dev.rank, round, at));
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, &board->taken[wg.id][dev.rank], round, from);
    }
}

IRIS_KERNEL(blocks, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct block_board *board = (struct block_board *)args->board;

    for (int shift = 0; shift < dev.num_ranks; shift++) {
        int to = (dev.rank + shift) % dev.num_ranks;
        int from = (dev.rank + dev.num_ranks - shift) % dev.num_ranks;

        for (uint64_t round = 1; round <= args->rounds; round++) {
            send_block(wg, dev, board, to, round);
            take_block(wg, dev, board, from, round);
        }
    }
}

/* So many messages go over each ordered pair, in whole windows. */
static void play_messages(enum way way)
{
    size_t count = harness_count(10000000, 20000);

    game_play_all((struct game){messages, sizeof(struct message_board), GRID,
                                count / (GRID * WINDOW) + 1, way, WINDOW});
}

static TEST(no_released_flag_overtakes_the_stores_before_it)
{
    play_messages(STORE_FLAG);
}

static TEST(no_released_update_overtakes_the_puts_before_it)
{
    play_messages(PUT_FLAG);
}

static TEST(no_signal_overtakes_the_stores_of_other_lanes)
{
    play_messages(STORE_WINDOW);
}

static TEST(no_signal_overtakes_a_workgroups_put)
{
    game_play_all((struct game){blocks, sizeof(struct block_board), GRID,
                                harness_count(50000, 200), 0, 256});
}

TEST_GROUP(rank);
