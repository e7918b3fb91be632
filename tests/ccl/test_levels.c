/* SPDX-License-Identifier: MIT
 *
 * Collectives by level, in groups of several pretended nodes: the bits of one
 * node with any type, operation, order of the members and number of them on a
 * node; the bytes that cross between nodes; and members that make different
 * calls, which go different ways.
 */
#include "config.h"

#include "ccl/play.h"

#include "context/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MOST 8
#define MOST ((size_t)600 << 10) /* several pieces on each rail */

/* Runs a body on so many ranks of so many nodes. */
static void run_on(const char *nodes, int ranks, int (*body)(iris_t *, void *),
                   void *arg)
{
    setenv("IRIS_NODES", nodes, 1);
    harness_run(ranks, body, arg);
    unsetenv("IRIS_NODES");
}

/* In the short run every third one; which, each number of ranks has its own. */
static int check_types(struct play_board *board, struct play play)
{
    static const size_t counts[] = {1, 1031, 9001, 257, 20000};
    size_t step = harness_is_long() ? 1 : 3;
    size_t first = (size_t)iris_num_ranks(board->iris) % step;

    for (size_t t = 0; t < case_num_types; t++) {
        for (int op = (int)((first + t) % step); op <= IRIS_REDUCE_AVG;
             op += (int)step) {
            play.type = &case_types[t];
            play.reduce = (iris_reduce_op_t)op;
            play.count = counts[(t + (size_t)op) % 5];
            play.round += 10;
            play.in_place = op & 1;
            play.off_heap = (enum play_memory)((t + (size_t)op) % 3);
            if (case_reduces(play.type, play.reduce)) {
                play_scale(&play, t);
                CHECK_EQUAL(play_and_check(board, &play), 0);
            }
        }
    }
    return 0;
}

static int check_counts(struct play_board *board, struct play play)
{
    static const size_t counts[] = {0,    1,     2047,  2048,  2049, 8191,
                                    8192, 16411, 40000, 70001, 76800};

    play.off_heap = PLAY_ON_HEAP;
    play.options.scale = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        play.type = &case_types[i % 2 == 0 ? 10 : 8]; /* f32, f16 */
        play.reduce = IRIS_REDUCE_SUM;
        play.count = counts[i];
        play.shift = i % 5;
        play.round += 10;
        play.in_place = i % 3 == 1;
        CHECK_EQUAL(play_and_check(board, &play), 0);
    }
    return 0;
}

static int check_group(struct play_board *board, iris_group_t *group)
{
    static const enum play_op ops[] = {PLAY_ALL_REDUCE, PLAY_REDUCE_SCATTER,
                                       PLAY_ALL_GATHER, PLAY_BROADCAST,
                                       PLAY_ALL_TO_ALL};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct play play = {.op = ops[i],
                            .root = iris_group_size(board->iris, group) - 1,
                            .round = 10000 * i};

        iris_ccl_options_init(&play.options);
        play.options.group = group;
        CHECK_EQUAL(check_types(board, play), 0);
        play.round = 10000 * i + 7001;
        CHECK_EQUAL(check_counts(board, play), 0);
    }
    return 0;
}

static int world_body(iris_t *iris, void *arg)
{
    struct play_board board;

    CHECK_EQUAL(play_open(iris, RANKS_MOST * MOST, &board), 0);
    return check_group(&board, NULL);
}

static TEST(each_type_and_count_has_the_bits_of_one_node)
{
    run_on("2", 2, world_body, NULL);
    run_on("2", 4, world_body, NULL);
    run_on("4", 4, world_body, NULL);
}

/* Members have several rails; nodes have different numbers of members. */
static TEST(nodes_may_have_different_numbers_of_members)
{
    run_on("2", 3, world_body, NULL);
    run_on("2", 5, world_body, NULL);
    run_on("3", 7, world_body, NULL);
}

/* Members of nodes of three: in order, by turns, one against many. */
static const int orders[][7] = {{3, 4, 5, 0, 1, 2, -1},
                                {5, 0, 3, 1, 4, 2, -1},
                                {0, 1, 2, 5, -1},
                                {4, 0, 5, -1}};

static int orders_body(iris_t *iris, void *arg)
{
    struct play_board board;

    CHECK_EQUAL(play_open(iris, RANKS_MOST * MOST, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        iris_group_t *group = NULL;
        int n = 0, is_member = 0;

        for (; orders[i][n] >= 0; n++) {
            is_member |= orders[i][n] == iris_rank(iris);
        }
        CHECK_OK(iris_group_create(iris, orders[i], is_member ? n : 0, &group));
        if (is_member) {
            CHECK_EQUAL(check_group(&board, group), 0);
            CHECK_OK(iris_group_destroy(iris, group));
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

static TEST(members_may_come_in_any_order)
{
    run_on("2", 6, orders_body, NULL);
}

/* ---- Calls in random order ---- */

#define GROUPS 4

static uint64_t draw(uint64_t call, uint64_t most, int what)
{
    return (case_seed(what, call) >> 7) % most;
}

/* All ranks in order, backwards and at random; and about half of them. */
static int make_groups(iris_t *iris, iris_group_t **groups)
{
    int n = iris_num_ranks(iris), ranks[RANKS_MOST] = {0};

    for (int g = 1; g < GROUPS; g++) {
        int count = 0, is_member = 0;

        for (int r = n - 1; r >= 0; r--) {
            int at = g == 1 ? count : (int)draw(g, (uint64_t)count + 1, r);

            if (g == 3 && draw(g, 2, 100 + r) == 0 && r != 0 && r != n - 1) {
                continue;
            }
            ranks[count++] = ranks[at];
            ranks[at] = r;
            is_member |= r == iris_rank(iris);
        }
        CHECK_OK(
            iris_group_create(iris, ranks, is_member ? count : 0, &groups[g]));
    }
    return 0;
}

/* A call that all members of the group draw. */
static struct play draw_play(const iris_t *iris, iris_group_t *group,
                             uint64_t call)
{
    static const size_t most[] = {4, 300, 2500, 20000, 76800};
    struct play play = {.op = (enum play_op)draw(call, PLAY_NUM_OPS, 1),
                        .type = &case_types[draw(call, case_num_types, 2)],
                        .reduce = IRIS_REDUCE_SUM,
                        .count = draw(call, most[draw(call, 5, 3)], 4),
                        .shift = draw(call, 5, 5),
                        .in_place = (int)draw(call, 2, 6),
                        .off_heap = (enum play_memory)draw(call, 3, 7),
                        .round = call};
    iris_reduce_op_t op =
        (iris_reduce_op_t)draw(call, (uint64_t)IRIS_REDUCE_AVG + 1, 8);

    iris_ccl_options_init(&play.options);
    play.options.group = group;
    play.root = (int)draw(call, (uint64_t)iris_group_size(iris, group), 9);
    play.reduce = case_reduces(play.type, op) ? op : play.reduce;
    play_scale(&play, draw(call, 9, 10));
    return play;
}

static int random_body(iris_t *iris, void *arg)
{
    size_t calls = harness_count(1500, 80);
    iris_group_t *groups[GROUPS] = {NULL};
    struct play_board board;

    CHECK_EQUAL(play_open(iris, RANKS_MOST * MOST, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_EQUAL(make_groups(iris, groups), 0);
    for (size_t i = 0; i < calls; i++) {
        uint64_t call = i + *(uint64_t *)arg, g = draw(call, GROUPS, 0);

        if (g == 0 || groups[g] != NULL) {
            struct play play = draw_play(iris, groups[g], call);

            CHECK_EQUAL(play_and_check(&board, &play), 0);
        }
    }
    for (int g = 1; g < GROUPS; g++) {
        CHECK_OK(iris_group_destroy(iris, groups[g]));
    }
    return 0;
}

static TEST(calls_of_all_kinds_and_groups_may_follow_each_other)
{
    static const struct {
        const char *nodes;
        int ranks;
    } jobs[] = {{"2", 4}, {"2", 3}, {"3", 8}, {"4", 7}, {"4", 4}, {"8", 8}};

    for (uint64_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        uint64_t first = 1000000 * (i + 1);

        run_on(jobs[i].nodes, jobs[i].ranks, random_body, &first);
    }
}

/* ---- The bytes between nodes ---- */

#define NODES_MOST 4
#define FEW_BYTES 8192 /* up to here an all_reduce gathers its input */

/* A rank's puts to each node. */
struct traffic {
    const iris_t *iris;
    uint64_t bytes[NODES_MOST];
    uint64_t puts[NODES_MOST];
};

static int node_of(const iris_t *iris, int rank)
{
    return iris_i_heap_node(&iris_i_heap(iris)->memory, rank);
}

static iris_status_t count_put(void *self, const struct iris_cpu_event *event)
{
    struct traffic *traffic = self;
    int node;

    if (event->op == IRIS_OP_PUT && event->write && !event->after) {
        node = node_of(traffic->iris, event->target_rank);
        traffic->bytes[node] += event->bytes;
        traffic->puts[node]++;
    }
    return IRIS_OK;
}

/* The bytes from node a to node b in a call with `part` bytes of each member,
 * whose sums have `wide` bytes for each part. */
static uint64_t find_promise(const iris_t *iris, const struct play *play,
                             uint64_t part, uint64_t wide, int a, int b)
{
    int ranks = iris_num_ranks(iris), last = iris_num_nodes(iris) - 1;
    uint64_t from = 0, to = 0;

    for (int r = 0; r < ranks; r++) {
        from += node_of(iris, r) == a;
        to += node_of(iris, r) == b;
    }
    switch (play->op) {
    case PLAY_BROADCAST:
        return node_of(iris, play->root) == a ? part : 0;
    case PLAY_REDUCE_SCATTER:
        return (b == a + 1 ? (uint64_t)ranks * wide : 0) +
               (a == last ? to * part : 0);
    case PLAY_ALL_REDUCE:
        if (play->count * play->type->bytes > FEW_BYTES) {
            return b == a + 1 ? wide : b == a - 1 ? part : 0;
        }
        return from * part;
    case PLAY_ALL_TO_ALL:
        return from * to * part;
    default:
        return from * part;
    }
}

/* The puts that carry them in a call with few bytes. */
static uint64_t find_puts(const iris_t *iris, const struct play *play, int a,
                          int b)
{
    int each = iris_num_ranks(iris) / iris_num_nodes(iris);
    int is_even = each * iris_num_nodes(iris) == iris_num_ranks(iris);
    uint64_t puts = find_promise(iris, play, 1, 1, a, b);
    size_t part = play->count * play->type->bytes;

    return play->op == PLAY_ALL_TO_ALL && is_even &&
                   part * (size_t)each <= FEW_BYTES
               ? puts / (uint64_t)each
               : puts;
}

/* Sums what the ranks of each node have sent, and compares it. */
static int check_traffic(iris_t *iris, const struct play *play,
                         const struct traffic *own)
{
    uint64_t sent[NODES_MOST][2 * NODES_MOST] = {{0}}, all[8 * NODES_MOST];
    uint64_t part = play->count * play->type->bytes;
    uint64_t wide = part * (play->type->is_integer ? 1 : 4 / play->type->bytes);
    int nodes = iris_num_nodes(iris);

    memcpy(sent[iris_node(iris)], own->bytes, sizeof own->bytes);
    memcpy(sent[iris_node(iris)] + NODES_MOST, own->puts, sizeof own->puts);
    CHECK_OK(iris_all_reduce(iris, sent, all, 8 * NODES_MOST, IRIS_DTYPE_U64,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    for (int i = 0; i < nodes * nodes; i++) {
        int a = i / nodes, b = i % nodes;
        const uint64_t *from_a = &all[2 * NODES_MOST * a];

        if (a == b) {
            continue;
        }
        CHECK_EQUAL(from_a[b], find_promise(iris, play, part, wide, a, b));
        if (part <= FEW_BYTES) {
            CHECK_EQUAL(from_a[NODES_MOST + b], find_puts(iris, play, a, b));
        }
    }
    return 0;
}

static int traffic_body(iris_t *iris, void *arg)
{
    static const enum play_op ops[] = {PLAY_ALL_REDUCE, PLAY_REDUCE_SCATTER,
                                       PLAY_ALL_GATHER, PLAY_BROADCAST,
                                       PLAY_ALL_TO_ALL};
    static const size_t counts[] = {1, 250, 2000, 4099, 70001};
    struct play_board board;

    CPU_ONLY(iris, "observers count the puts of kernels on CPUs");
    CHECK_EQUAL(play_open(iris, RANKS_MOST * MOST, &board), 0);
    for (size_t i = 0; i < 2 * 5 * 5; i++) {
        struct play play = {.op = ops[i % 5],
                            .type = &case_types[i < 25 ? 10 : 8], /* f32, f16 */
                            .root = iris_num_ranks(iris) / 2,
                            .count = counts[i / 5 % 5],
                            .round = 10 * i};
        struct traffic own = {.iris = iris};
        const struct iris_observer observer = {.device = count_put,
                                               .self = &own};

        iris_ccl_options_init(&play.options);
        CHECK_OK(iris_i_hooks_add(iris_i_hooks(iris), &observer));
        CHECK_EQUAL(play_and_check(&board, &play), 0);
        iris_i_hooks_remove(iris_i_hooks(iris), &observer);
        CHECK_EQUAL(check_traffic(iris, &play, &own), 0);
    }
    return 0;
}

static TEST(each_byte_crosses_between_two_nodes_once)
{
    setenv("IRIS_HEAP_SIZE", "64M", 1); /* pieces hold small calls */
    run_on("2", 4, traffic_body, NULL);
    run_on("4", 8, traffic_body, NULL);
    run_on("2", 5, traffic_body, NULL);
}

/* ---- Members that differ ---- */

struct differing {
    size_t count;       /* elements of all but one rank */
    size_t other_count; /* of that one */
    int gathers;        /* that one calls all_gather */
    int broadcasts;     /* or broadcast, which goes another way */
};

static const struct differing cases[] = {
    {10, 20, 0, 0},        {10, 100000, 0, 0}, {100000, 10, 0, 0},
    {100000, 90000, 0, 0}, {100000, 10, 1, 0}, {10, 10, 1, 0},
    {100000, 10, 0, 1},    {10, 100000, 0, 1}, {10, 0, 0, 0}};

static int differ_body(iris_t *iris, void *arg)
{
    const struct differing *differing = arg;
    int is_other = iris_rank(iris) == 3;
    size_t count = is_other ? differing->other_count : differing->count;
    iris_status_t status;
    float *in, *out;

    CHECK_OK(iris_calloc(iris, 100000, sizeof *in, (void **)&in));
    CHECK_OK(iris_calloc(iris, 400000, sizeof *out, (void **)&out));
    CHECK_OK(iris_all_reduce(iris, in, out, 50000, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, NULL));
    if (is_other && differing->gathers) {
        status = iris_all_gather(iris, in, out, count, IRIS_DTYPE_F32, NULL);
    } else if (is_other && differing->broadcasts) {
        status =
            iris_ccl_broadcast(iris, in, out, count, IRIS_DTYPE_F32, 0, NULL);
    } else {
        status = iris_all_reduce(iris, in, out, count, IRIS_DTYPE_F32,
                                 IRIS_REDUCE_SUM, NULL);
    }
    /* A GPU's kernel may end before the call does. */
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, NULL);
    }
    CHECK_STATUS(status, IRIS_ERR_MISMATCH);
    CHECK_OK(iris_clear_error(iris));
    return iris_barrier(iris, NULL, NULL);
}

static TEST(members_that_go_different_ways_are_told)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_on("2", 4, differ_body, (void *)(uintptr_t)&cases[i]);
    }
    run_on("3", 6, differ_body, (void *)(uintptr_t)&cases[1]);
    run_on("4", 4, differ_body, (void *)(uintptr_t)&cases[3]);
}

/* ---- A member that does not call ---- */

/* The last rank makes no call: each wait of the others has a limit. */
static int absent_body(iris_t *iris, void *arg)
{
    struct play play = *(const struct play *)arg;
    size_t bytes = play.count * 4 * (size_t)iris_num_ranks(iris);
    char *in, *out;

    CHECK_OK(iris_calloc(iris, 1, bytes, (void **)&in));
    CHECK_OK(iris_calloc(iris, 1, bytes, (void **)&out));
    CHECK_OK(iris_all_reduce(iris, in, out, 1, IRIS_DTYPE_F32, IRIS_REDUCE_SUM,
                             NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    if (iris_rank(iris) < iris_num_ranks(iris) - 1) {
        CHECK_OK(play_call(iris, &play, in, out));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK_OK(iris_clear_error(iris));
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(members_that_wait_for_one_that_does_not_call_time_out)
{
    static const size_t counts[] = {100, 50000};

    setenv("IRIS_DEVICE_TIMEOUT_MS", "300", 1);
    for (int op = 0; op <= PLAY_BROADCAST; op++) {
        for (size_t i = 0; i < 2; i++) {
            struct play play = {.op = (enum play_op)op,
                                .type = &case_types[10],
                                .reduce = IRIS_REDUCE_SUM,
                                .count = counts[i]};

            iris_ccl_options_init(&play.options);
            run_on("2", 4, absent_body, &play);
        }
    }
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
}

TEST_GROUP(rank, one_node);
