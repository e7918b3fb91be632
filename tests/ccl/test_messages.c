/* SPDX-License-Identifier: MIT
 *
 * Messages between pairs of members: parts of any size, in any place, in the
 * order of the calls; and members that expect something else.
 */
#include "config.h"

#include "ccl/cases.h"

#include <iris/ccl.h>

#include <stdlib.h>
#include <string.h>

#define PARTS CASES_MEMBERS
#define MOST ((size_t)70001) /* elements of a part: more than workspaces have */
#define NOTHING 0xeeu

/* Element i that rank `from` sends to rank `to`. */
static uint16_t value_of(int from, int to, size_t i)
{
    return (uint16_t)((size_t)(from * 31 + to * 7 + 1) * 40503u + i * 257u);
}

/* How many elements one rank sends to another, in a round. */
static size_t count_of(int from, int to, int round)
{
    static const size_t counts[] = {0, 1, 5, 700, 9001, 3, 0, 40000, MOST};

    return counts[(size_t)(3 * from + 5 * to + 2 * round) % 9];
}

struct memory {
    iris_t *iris;
    uint16_t *in;
    uint16_t *out;
    uint16_t *seen;
    size_t bytes;
    int off_heap;
};

static int open_memory(iris_t *iris, int off_heap, struct memory *memory)
{
    *memory = (struct memory){
        .iris = iris, .bytes = 2 * PARTS * (MOST + 8), .off_heap = off_heap};
    memory->seen = malloc(memory->bytes);
    CHECK(memory->seen != NULL);
    if (off_heap) {
        memory->in = malloc(memory->bytes);
        memory->out = malloc(memory->bytes);
        CHECK(memory->in != NULL && memory->out != NULL);
        return 0;
    }
    CHECK_OK(iris_malloc(iris, memory->bytes, (void **)&memory->in));
    return iris_malloc(iris, memory->bytes, (void **)&memory->out);
}

static void close_memory(struct memory *memory)
{
    free(memory->seen);
    if (memory->off_heap) {
        free(memory->in);
        free(memory->out);
    }
}

/* Fills `in` with what goes to member m from element at[m] on, and `out`. */
static int fill(struct memory *memory, const int *ranks, int n,
                const size_t *counts, const size_t *at)
{
    int rank = iris_rank(memory->iris);

    memset(memory->seen, 0, memory->bytes);
    for (int m = 0; m < n; m++) {
        for (size_t i = 0; i < counts[m]; i++) {
            memory->seen[at[m] + i] = value_of(rank, ranks[m], i);
        }
    }
    CHECK_OK(
        harness_write(memory->iris, memory->in, memory->seen, memory->bytes));
    memset(memory->seen, NOTHING, memory->bytes);
    return harness_write(memory->iris, memory->out, memory->seen,
                         memory->bytes);
}

/* That `out` has member m's elements from at[m] on, and is else as it was. With
 * `to` -1 they are what it sends to everybody. */
static int check(struct memory *memory, const int *ranks, int n,
                 const size_t *counts, const size_t *at, int to)
{
    size_t all = memory->bytes / sizeof *memory->seen;
    char *known = calloc(all, 1);
    int wrong = 0;

    CHECK(known != NULL);
    CHECK_OK(
        harness_read(memory->iris, memory->seen, memory->out, memory->bytes));
    for (int m = 0; m < n; m++) {
        for (size_t i = 0; i < counts[m]; i++) {
            wrong += memory->seen[at[m] + i] != value_of(ranks[m], to, i);
            known[at[m] + i] = 1;
        }
    }
    for (size_t i = 0; i < all; i++) {
        wrong += !known[i] && memory->seen[i] != NOTHING * 0x101u;
    }
    free(known);
    CHECK_EQUAL(wrong, 0);
    return 0;
}

/* Where parts begin: with gaps and backwards, or one behind the other. */
static void place(const size_t *counts, int n, int gaps, size_t *at)
{
    size_t end = 0;

    for (int i = 0; i < n; i++) {
        int m = gaps ? n - 1 - i : i;

        at[m] = end;
        end += counts[m] + (gaps ? 5 : 0);
    }
}

static int all_to_allv_round(struct memory *memory, iris_group_t *group,
                             const int *ranks, int n, int round)
{
    size_t in[PARTS], out[PARTS], in_at[PARTS], out_at[PARTS];
    int rank = iris_rank(memory->iris), gaps = round % 2;
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.group = group;
    options.num_cus = round % 3;
    for (int m = 0; m < n; m++) {
        in[m] = count_of(rank, ranks[m], round);
        out[m] = count_of(ranks[m], rank, round);
    }
    place(in, n, gaps, in_at);
    place(out, n, gaps, out_at);
    CHECK_EQUAL(fill(memory, ranks, n, in, in_at), 0);
    CHECK_OK(iris_all_to_allv(memory->iris, memory->in, in, gaps ? in_at : NULL,
                              memory->out, out, gaps ? out_at : NULL,
                              IRIS_DTYPE_U16, &options));
    CHECK_OK(iris_stream_synchronize(memory->iris, NULL));
    return check(memory, ranks, n, out, out_at, rank);
}

static int all_gatherv_round(struct memory *memory, iris_group_t *group,
                             const int *ranks, int n, int round)
{
    size_t counts[PARTS], at[PARTS], none[PARTS] = {0};
    int rank = iris_rank(memory->iris), self = 0, gaps = round % 2;
    struct iris_ccl_options options;
    uint16_t *in = memory->in;

    iris_ccl_options_init(&options);
    options.group = group;
    for (int m = 0; m < n; m++) {
        counts[m] = count_of(ranks[m], 0, round);
        self = ranks[m] == rank ? m : self;
    }
    place(counts, n, gaps, at);
    CHECK_EQUAL(fill(memory, ranks, n, none, at), 0);
    for (size_t i = 0; i < counts[self]; i++) {
        memory->seen[i] = value_of(rank, -1, i);
    }
    in = round % 4 == 3 ? memory->out + at[self] : in; /* in place */
    CHECK_OK(harness_write(memory->iris, in, memory->seen,
                           counts[self] * sizeof *in));
    CHECK_OK(iris_all_gatherv(memory->iris, in, memory->out, counts,
                              gaps ? at : NULL, IRIS_DTYPE_U16, &options));
    CHECK_OK(iris_stream_synchronize(memory->iris, NULL));
    return check(memory, ranks, n, counts, at, -1);
}

/* Around a ring, more than workspaces hold; every member sends before any has
 * received. */
static int ring_round(struct memory *memory, iris_group_t *group,
                      const int *ranks, int n, int round)
{
    int rank = iris_rank(memory->iris), self = 0, to, from;
    struct iris_ccl_options options;
    size_t in, out, at = 0;

    iris_ccl_options_init(&options);
    options.group = group;
    for (int m = 0; m < n; m++) {
        self = ranks[m] == rank ? m : self;
    }
    to = (self + 1 + round) % n;
    from = (self + (n - 1 - round % n) % n + n) % n;
    in = count_of(rank, ranks[to], round);
    out = count_of(ranks[from], rank, round);
    CHECK_EQUAL(fill(memory, &ranks[to], 1, &in, &at), 0);
    CHECK_OK(iris_send_recv(memory->iris, memory->in, in, to, memory->out, out,
                            from, IRIS_DTYPE_U16, &options));
    CHECK_OK(iris_stream_synchronize(memory->iris, NULL));
    return check(memory, &ranks[from], 1, &out, &at, rank);
}

static int rounds_in(struct memory *memory, iris_group_t *group,
                     const int *ranks, int n)
{
    for (int round = 0; round < 6; round++) {
        CHECK_EQUAL(all_to_allv_round(memory, group, ranks, n, round), 0);
        CHECK_EQUAL(all_gatherv_round(memory, group, ranks, n, round), 0);
        CHECK_EQUAL(ring_round(memory, group, ranks, n, round), 0);
    }
    return 0;
}

static int rounds_body(iris_t *iris, void *arg)
{
    static const int all[PARTS] = {0, 1, 2, 3, 4, 5, 6, 7};
    int turned[PARTS], n = iris_num_ranks(iris), is_member;
    struct memory memory;
    iris_group_t *group;

    if (*(int *)arg) {
        CPU_ONLY(iris, "the host has memory off the heap");
    }
    CHECK_EQUAL(open_memory(iris, *(int *)arg, &memory), 0);
    CHECK_EQUAL(rounds_in(&memory, NULL, all, n), 0);
    /* All but rank 0, in another order. */
    is_member = iris_rank(iris) > 0;
    for (int m = 0; m < n - 1; m++) {
        turned[m] = n - 1 - m;
    }
    if (n > 2) {
        CHECK_OK(
            iris_group_create(iris, turned, is_member ? n - 1 : 0, &group));
        if (is_member) {
            CHECK_EQUAL(rounds_in(&memory, group, turned, n - 1), 0);
            CHECK_OK(iris_group_destroy(iris, group));
        }
    }
    close_memory(&memory);
    return iris_barrier(iris, NULL, NULL);
}

static TEST(parts_of_any_size_come_where_they_belong)
{
    int off_heap = 0;

    harness_run_all(rounds_body, &off_heap);
    harness_run(3, rounds_body, &off_heap);
}

static TEST(memory_off_the_heap_comes_in_pieces)
{
    int off_heap = 1;

    harness_run(3, rounds_body, &off_heap);
    setenv("IRIS_CCL_SIZE", "64K", 1);
    harness_run(2, rounds_body, &off_heap);
    unsetenv("IRIS_CCL_SIZE");
}

static TEST(ranks_of_other_nodes_are_reached)
{
    setenv("IRIS_NODES", "2", 1);
    for (int off_heap = 0; off_heap < 2; off_heap++) {
        harness_run(4, rounds_body, &off_heap);
    }
    unsetenv("IRIS_NODES");
}

/* ---- Order ---- */

#define SENDS 40

/* Rank 0 sends to each, in an order of its own, before it receives; small and
 * large messages match in the order of the calls. */
static RANK_TEST(messages_match_in_the_order_of_the_calls, 2, 4)
{
    int rank = iris_rank(iris), n = iris_num_ranks(iris);
    uint32_t *in, *out, seen;

    CHECK_OK(iris_malloc(iris, SENDS * sizeof *in * 20001, (void **)&in));
    CHECK_OK(iris_malloc(iris, SENDS * sizeof *out * 20001, (void **)&out));
    for (int k = 0; k < SENDS; k++) {
        size_t count = k % 5 == 4 ? 20001 : 1, at = (size_t)k * 20001;

        for (int m = 1; m < n && rank == 0; m++) {
            uint32_t value = (uint32_t)k * 7 + 1;

            CHECK_OK(harness_write(iris, in + at + count - 1, &value, 4));
            CHECK_OK(iris_send(iris, in + at, count, IRIS_DTYPE_U32, m, NULL));
        }
        if (rank > 0) {
            CHECK_OK(iris_recv(iris, out + at, count, IRIS_DTYPE_U32, 0, NULL));
        }
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    for (int k = 0; k < SENDS && rank > 0; k++) {
        size_t count = k % 5 == 4 ? 20001 : 1;

        CHECK_OK(
            harness_read(iris, &seen, out + (size_t)k * 20001 + count - 1, 4));
        CHECK_EQUAL(seen, (uint32_t)k * 7 + 1);
    }
    return iris_barrier(iris, NULL, NULL);
}

/* A captured exchange moves what is there when the graph runs. */
static RANK_TEST(captured_messages_move_again, 2)
{
    int rank = iris_rank(iris), other = 1 - rank;
    iris_graph_t *graph;
    uint64_t *in, *out, value;

    CHECK_OK(iris_malloc(iris, sizeof *in, (void **)&in));
    CHECK_OK(iris_malloc(iris, sizeof *out, (void **)&out));
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    if (iris_capture_begin(iris, NULL) == IRIS_ERR_UNSUPPORTED) {
        return 0;
    }
    CHECK_OK(iris_send_recv(iris, in, 1, other, out, 1, other, IRIS_DTYPE_U64,
                            NULL));
    CHECK_OK(iris_gather(iris, out, in, 0, IRIS_DTYPE_U64, 0, NULL));
    CHECK_OK(iris_capture_end(iris, NULL, &graph));
    for (uint64_t k = 0; k < 5; k++) {
        value = 100 * k + (uint64_t)rank;
        CHECK_OK(harness_write(iris, in, &value, sizeof value));
        CHECK_OK(iris_graph_launch(iris, graph, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(harness_read(iris, &value, out, sizeof value));
        CHECK_EQUAL(value, 100 * k + (uint64_t)other);
    }
    iris_graph_destroy(iris, graph);
    return 0;
}

/* ---- What differs ---- */

enum fault { COUNTS, PAIR, SIZE, TYPE, ROOT, NUM_FAULTS };

static iris_status_t make_fault(iris_t *iris, enum fault fault, uint32_t *in,
                                uint32_t *out)
{
    int rank = iris_rank(iris), odd = rank == 1;
    size_t equal[3] = {4, 4, 4}, uneven[3] = {5, 3, 4};

    switch (fault) {
    case COUNTS:
        return iris_all_gatherv(iris, in, out, odd ? uneven : equal, NULL,
                                IRIS_DTYPE_U32, NULL);
    case PAIR: /* rank 1 expects another number from rank 0 only */
        return iris_all_to_allv(iris, in, equal, NULL, out,
                                odd ? uneven : equal, NULL, IRIS_DTYPE_U32,
                                NULL);
    case ROOT:
        return iris_gather(iris, in, out, 4, IRIS_DTYPE_U32, odd ? 2 : 0, NULL);
    default: /* large, so that the sender is told, too */
        return rank == 2 ? IRIS_OK
               : odd
                   ? iris_recv(iris, out, fault == SIZE ? 69999 : 70000,
                               fault == TYPE ? IRIS_DTYPE_F32 : IRIS_DTYPE_U32,
                               0, NULL)
                   : iris_send(iris, in, 70000, IRIS_DTYPE_U32, 1, NULL);
    }
}

static int fault_body(iris_t *iris, void *arg)
{
    enum fault fault = *(enum fault *)arg;
    int rank = iris_rank(iris);
    /* Rank 2 makes no such call. */
    int apart = rank == 2 && (fault == SIZE || fault == TYPE);
    static const char *const calls[NUM_FAULTS] = {"iris_all_gatherv",
                                                  "iris_all_to_allv", "iris_",
                                                  "iris_", "iris_gather"};
    uint32_t *in, *out;

    CHECK_OK(iris_malloc(iris, 280000, (void **)&in));
    CHECK_OK(iris_malloc(iris, 280000, (void **)&out));
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    CHECK_OK(make_fault(iris, fault, in, out));
    if (!apart) {
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
        CHECK(strstr(iris_last_error(), calls[fault]) != NULL);
        CHECK(fault != PAIR || rank == 2 ||
              strstr(iris_last_error(), "of 5 u32") != NULL);
        CHECK(fault != SIZE || strstr(iris_last_error(), "69999 u32") != NULL);
        CHECK(fault != TYPE || strstr(iris_last_error(), "70000 f32") != NULL);
        CHECK_OK(iris_clear_error(iris));
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(members_that_differ_are_told)
{
    for (int fault = 0; fault < NUM_FAULTS; fault++) {
        enum fault one = (enum fault)fault;

        harness_run(3, fault_body, &one);
    }
}

/* ---- Nothing against something ---- */

enum empty {
    EMPTY_SEND,
    EMPTY_RECV,
    EMPTY_SWAP,
    EMPTY_TO_ALLV,
    EMPTY_GATHERV,
    EMPTY_GATHER,
    EMPTY_SCATTER,
    EMPTY_BROADCAST,
    EMPTY_ALL_REDUCE,
    EMPTY_ALL_GATHER,
    EMPTY_REDUCE_SCATTER,
    EMPTY_ALL_TO_ALL,
    EMPTY_REDUCE,
    NUM_EMPTY
};

/* One of two members passes 0, the other one 1. */
static iris_status_t call_empty(iris_t *iris, enum empty empty, size_t count,
                                uint32_t *in, uint32_t *out)
{
    const iris_dtype_t dtype = IRIS_DTYPE_U32;
    int rank = iris_rank(iris), other = 1 - rank;
    size_t all[2] = {count, count}, others[2] = {0, 0};

    others[other] = count;
    switch (empty) {
    case EMPTY_SEND:
    case EMPTY_RECV: /* the receiver has nothing, or the sender */
        return rank == (empty == EMPTY_SEND)
                   ? iris_send(iris, in, count, dtype, other, NULL)
                   : iris_recv(iris, out, count, dtype, other, NULL);
    case EMPTY_SWAP:
        return iris_send_recv(iris, in, count, other, out, count, other, dtype,
                              NULL);
    case EMPTY_TO_ALLV:
        return iris_all_to_allv(iris, in, others, NULL, out, others, NULL,
                                dtype, NULL);
    case EMPTY_GATHERV:
        return iris_all_gatherv(iris, in, out, all, NULL, dtype, NULL);
    case EMPTY_GATHER:
        return iris_gather(iris, in, out, count, dtype, 0, NULL);
    case EMPTY_SCATTER:
        return iris_scatter(iris, in, out, count, dtype, 0, NULL);
    case EMPTY_BROADCAST:
        return iris_ccl_broadcast(iris, in, out, count, dtype, 0, NULL);
    case EMPTY_ALL_REDUCE:
        return iris_all_reduce(iris, in, out, count, dtype, IRIS_REDUCE_SUM,
                               NULL);
    case EMPTY_ALL_GATHER:
        return iris_all_gather(iris, in, out, count, dtype, NULL);
    case EMPTY_REDUCE_SCATTER:
        return iris_reduce_scatter(iris, in, out, count, dtype, IRIS_REDUCE_SUM,
                                   NULL);
    case EMPTY_ALL_TO_ALL:
        return iris_all_to_all(iris, in, out, count, dtype, NULL);
    default:
        return iris_reduce(iris, in, out, count, dtype, IRIS_REDUCE_SUM, 0,
                           NULL);
    }
}

static int empty_body(iris_t *iris, void *arg)
{
    int kind = *(int *)arg, rank = iris_rank(iris);
    /* A small message completes before its receiver looks at it. */
    int sends = kind / 2 <= EMPTY_RECV && rank == (kind / 2 == EMPTY_SEND);
    uint32_t *in, *out;

    CHECK_OK(iris_malloc(iris, 64, (void **)&in));
    CHECK_OK(iris_malloc(iris, 64, (void **)&out));
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    /* All members with nothing: that works, and the next call is in order. */
    CHECK_OK(call_empty(iris, (enum empty)(kind / 2), 0, NULL, NULL));
    CHECK_OK(call_empty(iris, (enum empty)(kind / 2), 1, in, out));
    CHECK_OK(call_empty(iris, (enum empty)(kind / 2),
                        (size_t)(rank == kind % 2), in, out));
    if (!sends) {
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
        CHECK_OK(iris_clear_error(iris));
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(nothing_against_one_element_is_told)
{
    setenv("IRIS_TIMEOUT_MS", "3000", 1);
    for (int nodes = 1; nodes <= 2; nodes++) {
        if (nodes == 2) {
            setenv("IRIS_NODES", "2", 1);
        }
        for (int kind = 0; kind < 2 * NUM_EMPTY; kind++) {
            harness_run(2, empty_body, &kind);
        }
    }
    unsetenv("IRIS_NODES");
    unsetenv("IRIS_TIMEOUT_MS");
}

/* Rank 0 sends rank 1 more than that expects. Each of three members reads the
 * two counts in its message, whoever finds the difference. */
static RANK_TEST(a_message_names_the_two_counts_that_differ, 3)
{
    int rank = iris_rank(iris);
    size_t counts[3] = {1, rank == 0 ? 2 : 1, 1}, one[3] = {1, 1, 1};
    struct iris_ccl_options options;
    uint32_t *heap;

    CHECK_OK(iris_calloc(iris, 64, sizeof *heap, (void **)&heap));
    for (int i = 0; i < 40; i++) {
        iris_ccl_options_init(&options);
        CHECK_OK(iris_ccl_workspace_create(iris, NULL, &options.workspace));
        CHECK_OK(iris_all_to_allv(iris, heap, counts, NULL, heap + 32, one,
                                  NULL, IRIS_DTYPE_U32, &options));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
        CHECK_MESSAGE("of 2 u32");
        CHECK_MESSAGE("of 1 u32");
        if (rank == 2) {
            CHECK_MESSAGE("rank 1 calls iris_all_to_allv of 1 u32, rank 0 "
                          "iris_all_to_allv of 2 u32");
        }
        CHECK_OK(iris_clear_error(iris));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_ccl_workspace_destroy(iris, options.workspace));
    }
    return 0;
}

/* ---- What is refused ---- */

static RANK_TEST(wrong_arguments_are_refused, 2)
{
    size_t counts[2] = {1, 1}, huge[2] = {1, SIZE_MAX / 2};
    int rank = iris_rank(iris);
    uint32_t *in;

    CHECK_OK(iris_malloc(iris, 64, (void **)&in));
    CHECK_STATUS(iris_send(iris, in, 1, IRIS_DTYPE_U32, rank, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_send(iris, in, 1, IRIS_DTYPE_U32, 2, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_recv(iris, in, 1, IRIS_DTYPE_U32, -1, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_send_recv(iris, in, 1, rank, in + 4, 2, rank,
                                IRIS_DTYPE_U32, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_send(iris, NULL, 1, IRIS_DTYPE_U32, 1 - rank, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(
        iris_all_gatherv(iris, in, in, NULL, NULL, IRIS_DTYPE_U32, NULL),
        IRIS_ERR_INVALID);
    CHECK_STATUS(
        iris_all_gatherv(iris, in, in, huge, NULL, IRIS_DTYPE_U32, NULL),
        IRIS_ERR_INVALID);
    CHECK_STATUS(iris_all_to_allv(iris, in, counts, NULL, in, counts, NULL,
                                  IRIS_DTYPE_U32, NULL),
                 IRIS_ERR_INVALID); /* in place */
    CHECK_STATUS(iris_gather(iris, in, in + 8, 1, IRIS_DTYPE_U32, 2, NULL),
                 IRIS_ERR_INVALID);
    CHECK_OK(iris_send_recv(iris, in, 2, rank, in + 4, 2, rank, IRIS_DTYPE_U32,
                            NULL));
    return iris_stream_synchronize(iris, NULL);
}

TEST_GROUP(matrix, slow);
