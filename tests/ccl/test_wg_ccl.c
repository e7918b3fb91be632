/* SPDX-License-Identifier: MIT
 *
 * Collectives of workgroups inside kernels: the bits of collectives on streams,
 * many workgroups at once, many calls in a row, in groups of any ranks.
 */
#include "config.h"

#define IRIS_FAR 1 /* in GPU code, too */

#include "ccl/cases.h"

#include <iris/device.h>
#include <iris/device/wg_ccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WGS 4
#define REGION ((size_t)16 << 10) /* of a workgroup, in and out */

enum what { ALL_REDUCE, SCATTER, GATHER, SWAP, SPREAD, RING, ATOMIC, TWO_SHOT };

struct args {
    iris_ccl_device_t handle;
    char *in; /* [workgroup][REGION] */
    char *out;
    uint64_t count; /* of elements of a part, or of bytes of what only moves */
    uint64_t calls; /* in a row */
    uint64_t *wrong;
    int32_t what;
    int32_t dtype;
    int32_t op;
    uint32_t root;
    uint32_t shift; /* workgroup w is index (w + shift) mod the grid */
    uint32_t in_place;
};

IRIS_KERNEL(collect, struct args)
{
    uint32_t index = (wg.id + args->shift) % wg.num_wgs;
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, index);
    char *in = args->in + index * REGION, *out = args->out + index * REGION;
    size_t count = args->count + index;
    iris_dtype_t dtype = (iris_dtype_t)args->dtype;
    iris_reduce_op_t op = (iris_reduce_op_t)args->op;

    out = args->in_place ? in : out;
    switch (args->what) {
    case ALL_REDUCE:
        iris_wg_all_reduce(wg, &ccl, in, out, count, dtype, op);
        break;
    case SCATTER:
        iris_wg_reduce_scatter(wg, &ccl, in, out, count, dtype, op);
        break;
    case GATHER:
        iris_wg_all_gather(wg, &ccl, in, out, count);
        break;
    case SWAP:
        iris_wg_all_to_all(wg, &ccl, in, out, count);
        break;
    case RING:
        iris_wg_all_reduce_ring(wg, &ccl, in, out, count, dtype, op);
        break;
    case ATOMIC:
        iris_wg_all_reduce_atomic(wg, &ccl, in, out, count, dtype);
        break;
    case TWO_SHOT:
        iris_wg_all_reduce_two_shot(wg, &ccl, in, out, count, dtype, op);
        break;
    default:
        iris_wg_broadcast(wg, &ccl, in, out, count, args->root);
    }
    iris_wg_ccl_end(wg, &ccl);
}

/* What one rank has: buffers, and images of them on the host. */
struct board {
    iris_t *iris;
    iris_group_t *group;
    struct args args;
    char *in;
    char *out;
    char *want;
    uint64_t round;
};

static int open_board(iris_t *iris, iris_group_t *group, struct board *board)
{
    size_t bytes = MAX_WGS * REGION;

    board->iris = iris;
    board->group = group;
    board->in = (char *)malloc(3 * bytes);
    CHECK(board->in != NULL);
    board->out = board->in + bytes;
    board->want = board->out + bytes;
    return 0;
}

static int open_handle(struct board *board, char *memory)
{
    board->args.in = memory;
    board->args.out = memory + MAX_WGS * REGION;
    CHECK_OK(iris_ccl_device_create(board->iris, board->group, MAX_WGS, 200,
                                    &board->args.handle));
    return 0;
}

/* The seed of member m's data for workgroup w. */
static uint64_t seed_of(const struct board *board, int m, unsigned w)
{
    return case_seed(m, board->round * MAX_WGS + w);
}

/* What is to be in `want` of workgroup w: how many bytes. */
static size_t expect(const struct board *board, unsigned w,
                     const struct case_type *type, char *want)
{
    const struct args *args = &board->args;
    int n = iris_group_size(board->iris, board->group);
    int me = iris_group_index(board->iris, board->group);
    size_t count = args->count + w, from;
    uint64_t seeds[CASES_MEMBERS];

    for (int m = 0; m < n; m++) {
        seeds[m] = seed_of(board, m, w);
        from = args->what == SWAP ? (size_t)me * count : 0;
        if (args->what == GATHER || args->what == SWAP) {
            type->fill(want + (size_t)m * count, from, count, seeds[m]);
        }
    }
    if (args->what == SPREAD) {
        type->fill(want, 0, count, seeds[args->root]);
    }
    if (args->what == ALL_REDUCE || args->what == SCATTER ||
        args->what >= RING) {
        from = args->what == SCATTER ? (size_t)me * count : 0;
        type->reduce(
            want, from, count,
            &(struct case_reduction){(iris_reduce_op_t)args->op, 0, seeds, n});
        return count * type->bytes;
    }
    return args->what == SPREAD ? count : count * (size_t)n;
}

/* `out` of workgroup w is what is wanted. */
static int check_region(const struct board *board, unsigned w,
                        const struct case_type *type, size_t bytes)
{
    const struct args *args = &board->args;
    const char *out = board->out + w * REGION, *want = board->want + w * REGION;
    size_t at = 0;

    while (at < bytes && out[at] == want[at]) {
        at++;
    }
    if (at == bytes) {
        return 0;
    }
    fprintf(stderr,
            "member %d of %d: what %d, %s, op %d, root %u, workgroup %u of "
            "%zu: byte %zu is %02x, expected %02x\n",
            iris_group_index(board->iris, board->group),
            iris_group_size(board->iris, board->group), args->what, type->name,
            args->op, args->root, w, (size_t)args->count + w, at,
            (unsigned char)out[at], (unsigned char)want[at]);
    return 1;
}

static int play(struct board *board, const struct case_type *type)
{
    iris_t *iris = board->iris;
    struct args *args = &board->args;
    int n = iris_group_size(iris, board->group);
    int me = iris_group_index(iris, board->group);
    size_t all = MAX_WGS * REGION;

    args->dtype = (int32_t)type->dtype;
    args->shift = (uint32_t)(board->round + (uint64_t)me) % MAX_WGS;
    args->root = (uint32_t)(board->round % (uint64_t)n);
    for (unsigned w = 0; w < MAX_WGS; w++) {
        type->fill(
            board->in + w * REGION, 0,
            (args->count + w) *
                (args->what == SCATTER || args->what == SWAP ? (size_t)n : 1),
            seed_of(board, me, w));
    }
    memset(board->want, 0xa5, all);
    CHECK_OK(harness_write(iris, args->in, board->in, all));
    CHECK_OK(iris_memset(iris, args->out, 0xa5, all, NULL));
    CHECK_OK(iris_launch(iris, collect, MAX_WGS, 96, args, sizeof *args, NULL));
    CHECK_OK(harness_read(iris, board->out,
                          args->in_place ? args->in : args->out, all));
    for (unsigned w = 0; w < MAX_WGS; w++) {
        size_t bytes = expect(board, w, type, board->want + w * REGION);

        if (check_region(board, w, type, args->in_place ? bytes : REGION) !=
            0) {
            return 1;
        }
    }
    board->round++;
    return 0;
}

static const struct case_type *byte_type(void)
{
    for (size_t i = 0; i < case_num_types; i++) {
        if (case_types[i].dtype == IRIS_DTYPE_U8) {
            return &case_types[i];
        }
    }
    return NULL;
}

static int play_reductions(struct board *board)
{
    static const uint64_t counts[] = {0, 1, 5, 90};
    int failed = 0;

    for (size_t t = 0; t < case_num_types && !failed; t++) {
        for (int op = 0; op <= IRIS_REDUCE_AVG && !failed; op++) {
            board->args.what = (op + (int)t) % 2 != 0 ? SCATTER
                               : t % 3 == 0           ? TWO_SHOT
                                                      : ALL_REDUCE;
            board->args.op = op;
            board->args.count = counts[(t + (size_t)op) % 4];
            board->args.in_place =
                board->args.what != SCATTER && (op + t) % 4 == 0;
            failed = case_reduces(&case_types[t], (iris_reduce_op_t)op) &&
                     play(board, &case_types[t]);
        }
    }
    return failed;
}

/* What does not keep the order has the same bits of integers. */
static int play_unordered(struct board *board)
{
    int failed = 0;

    board->args.in_place = 0;
    for (size_t t = 0; t < case_num_types && !failed; t++) {
        board->args.what = t % 2 == 0 ? RING : ATOMIC;
        board->args.op = t % 2 == 0 ? (int32_t)(t / 2 % 7) : IRIS_REDUCE_SUM;
        board->args.count = t * t * 9;
        failed = case_types[t].is_integer && play(board, &case_types[t]);
    }
    return failed;
}

static int play_moves(struct board *board)
{
    static const uint64_t counts[] = {0, 3, 64, 777};
    int failed = 0;

    board->args.in_place = 0;
    for (int i = 0; i < 12 && !failed; i++) {
        board->args.what = GATHER + i % 3;
        board->args.count = counts[i / 3];
        failed = play(board, byte_type());
    }
    return failed;
}

static int play_group(iris_t *iris, iris_group_t *group, char *memory)
{
    struct board board = {0};
    int failed;

    CHECK_EQUAL(open_board(iris, group, &board), 0);
    failed = open_handle(&board, memory) || play_reductions(&board) ||
             play_unordered(&board) || play_moves(&board);
    free(board.in);
    CHECK_EQUAL(failed, 0);
    CHECK_OK(iris_ccl_device_destroy(iris, &board.args.handle));
    CHECK_STATUS(iris_ccl_device_destroy(iris, &board.args.handle),
                 IRIS_ERR_INVALID);
    return 0;
}

static RANK_TEST(workgroups_reduce_and_move_as_streams_do, ALL_RANKS)
{
    int n = iris_num_ranks(iris), half[CASES_MEMBERS], members = 0;
    iris_group_t *group;
    void *memory;

    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_malloc(iris, 2 * MAX_WGS * REGION, &memory));
    CHECK_EQUAL(play_group(iris, NULL, (char *)memory), 0);
    for (int rank = n - 1; rank >= 0; rank--) { /* two groups, turned around */
        if (rank % 2 == iris_rank(iris) % 2) {
            half[members++] = rank;
        }
    }
    CHECK_OK(iris_group_create(iris, half, members, &group));
    CHECK_EQUAL(play_group(iris, group, (char *)memory), 0);
    return iris_group_destroy(iris, group);
}

/* Nodes may have different numbers of members. */
static TEST(workgroups_of_several_nodes_do_the_same)
{
    static const struct {
        const char *nodes;
        int ranks;
    } jobs[] = {{"2", 2}, {"2", 3}, {"2", 4}, {"3", 4}, {"4", 4}};

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        setenv("IRIS_NODES", jobs[i].nodes, 1);
        harness_run(jobs[i].ranks,
                    on_rank_workgroups_reduce_and_move_as_streams_do, NULL);
    }
    unsetenv("IRIS_NODES");
}

/* ---- In a row ---- */

/* Sums of what differs from call to call; sizes and kinds change. Workgroups do
 * as many calls as they have time for: each its own number. */
IRIS_KERNEL(go_on, struct args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);
    uint64_t *in = (uint64_t *)args->in + wg.id * 512;
    uint64_t *out = (uint64_t *)args->out + wg.id * 512;
    uint64_t n = ccl.ccl.count, me = ccl.ccl.index;
    uint64_t calls = args->calls / (wg.id + 1);

    for (uint64_t i = 0; i < calls; i++) {
        size_t count = i % 37 == 0 ? 60 : 1 + i % 5;

        IRIS_WG_LANES (wg, k, count) {
            in[k] = i * 1000 + k + me;
        }
        if (i % 3 == 2) {
            iris_wg_broadcast(wg, &ccl, in, out, count * 8, (uint32_t)(i % n));
        } else {
            iris_wg_all_reduce(wg, &ccl, in, out, count, IRIS_DTYPE_U64,
                               IRIS_REDUCE_SUM);
        }
        IRIS_WG_LANES (wg, k, count) {
            uint64_t want = i % 3 == 2 ? i * 1000 + k + i % n
                                       : n * (i * 1000 + k) + n * (n - 1) / 2;

            if (out[k] != want) {
                iris_store_volatile_u64(ccl.ccl.dev, args->wrong, i + 1,
                                        ccl.ccl.dev.rank);
            }
        }
    }
    iris_wg_ccl_end(wg, &ccl);
}

/* Lets the workgroups begin `epoch` steps later, where flags wrap around. */
static int set_epoch(iris_t *iris, const iris_ccl_device_t *handle,
                     uint64_t epoch)
{
    struct iris_ccl_space space;
    uint64_t none = 0;

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (unsigned w = 0; w < handle->max_wgs; w++) {
        char *part = (char *)handle->spaces + w * handle->stride;

        CHECK_OK(harness_read(iris, &space, part, sizeof space));
        CHECK_OK(harness_write(iris, part + space.epochs, &epoch, 8));
        CHECK_OK(harness_write(iris, part + space.call, &none, 8));
    }
    return iris_barrier(iris, NULL, NULL);
}

/* Workgroup 0 has cleared its flags once on every member. Steps between nodes
 * have no flags. */
static int check_cleared(iris_t *iris, const iris_ccl_device_t *handle)
{
    struct iris_ccl_space space;
    char *part = (char *)handle->spaces;
    uint64_t times;

    CHECK_OK(harness_read(iris, &space, part, sizeof space));
    for (int64_t i = 0; i < space.count; i++) {
        CHECK_OK(harness_read(iris, &times, part + space.cleared + 8 * i, 8));
        CHECK_EQUAL(times, handle->far ? 0 : 1);
    }
    return 0;
}

static int play_row(iris_t *iris, void *arg)
{
    struct args args = {0};
    void *memory, *wrong;
    uint64_t where;
    size_t calls = *(size_t *)arg;

    /* Processes that share a GPU have it by turns. */
    if (harness_on_gpu(iris) &&
        (getenv("IRIS_SPAWN") != NULL || harness_launched() != 0)) {
        calls = 600;
    }
    CHECK_OK(iris_malloc(iris, 2 * MAX_WGS * 4096, &memory));
    CHECK_OK(iris_calloc(iris, 1, sizeof where, &wrong));
    CHECK_OK(iris_ccl_device_create(iris, NULL, MAX_WGS, 64, &args.handle));
    args.in = (char *)memory;
    args.out = args.in + MAX_WGS * 4096;
    args.wrong = (uint64_t *)wrong;
    for (int launch = 0; launch < 2; launch++) {
        args.calls = harness_count(calls, calls) / 2;
        if (launch == 1) { /* as many as take it past the last one */
            CHECK_EQUAL(set_epoch(iris, &args.handle, 0xfffb0), 0);
            args.calls = args.calls < 100 ? 100 : args.calls;
        }
        CHECK_OK(
            iris_launch(iris, go_on, MAX_WGS, 64, &args, sizeof args, NULL));
    }
    CHECK_OK(harness_read(iris, &where, wrong, sizeof where));
    CHECK_EQUAL(where, 0);
    return check_cleared(iris, &args.handle);
}

static TEST(twenty_thousand_in_a_row_need_no_reset)
{
    size_t calls = 20000;

    harness_run(2, play_row, &calls);
    calls = 600;
    harness_run(3, play_row, &calls);
    harness_run(8, play_row, &calls);
}

/* ---- What is refused ---- */

/* Members whose calls differ find out, each by itself. */
static int play_mismatch(iris_t *iris, void *arg)
{
    struct args args = {0};
    void *memory;

    CHECK_OK(iris_malloc(iris, 2 * MAX_WGS * REGION, &memory));
    CHECK_OK(iris_ccl_device_create(iris, NULL, 1, 0, &args.handle));
    args.in = (char *)memory;
    args.out = args.in + MAX_WGS * REGION;
    args.dtype = IRIS_DTYPE_I32;
    args.count = iris_rank(iris) == 0 ? 8 : 9;
    CHECK_OK(iris_launch(iris, collect, 1, 64, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("iris_all_reduce of 8 i32");
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_launch(iris, collect, 1, 64, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE("did not end");
    return iris_clear_error(iris);
}

static TEST(members_that_differ_find_out)
{
    harness_run_sim(2, play_mismatch, NULL);
    setenv("IRIS_NODES", "2", 1);
    harness_run(2, play_mismatch, NULL);
    unsetenv("IRIS_NODES");
}

/* A member without elements is found, too, whatever the call is. */
static int play_empty(iris_t *iris, void *arg)
{
    struct args args = {0};
    void *memory;

    CHECK_OK(iris_malloc(iris, 2 * MAX_WGS * REGION, &memory));
    args.in = (char *)memory;
    args.out = args.in + MAX_WGS * REGION;
    args.dtype = IRIS_DTYPE_I32;
    for (args.what = ALL_REDUCE; args.what <= TWO_SHOT; args.what++) {
        for (int empty = 0; empty < iris_num_ranks(iris); empty++) {
            CHECK_OK(iris_ccl_device_create(iris, NULL, 1, 0, &args.handle));
            args.count = iris_rank(iris) == empty ? 0 : 9;
            CHECK_OK(
                iris_launch(iris, collect, 1, 64, &args, sizeof args, NULL));
            CHECK_STATUS(iris_stream_synchronize(iris, NULL),
                         IRIS_ERR_MISMATCH);
            CHECK_OK(iris_clear_error(iris));
            CHECK_OK(iris_barrier(iris, NULL, NULL));
            CHECK_OK(iris_ccl_device_destroy(iris, &args.handle));
        }
    }
    return 0;
}

static TEST(a_member_without_elements_is_found)
{
    harness_run_sim(2, play_empty, NULL);
    harness_run_sim(3, play_empty, NULL);
    setenv("IRIS_NODES", "2", 1);
    harness_run_sim(3, play_empty, NULL);
    unsetenv("IRIS_NODES");
}

static RANK_TEST(more_workgroups_than_fit_are_refused, 2)
{
    iris_ccl_device_t handle = {0};
    char text[80];

    CHECK_STATUS(iris_ccl_device_create(iris, NULL, 0, 0, &handle),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_ccl_device_create(iris, NULL, 1, 0, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(
        iris_ccl_device_create(iris, NULL, 1, (size_t)2 << 30, &handle),
        IRIS_ERR_INVALID);
    CHECK_STATUS(
        iris_ccl_device_create(iris, NULL, iris_num_cus(iris) + 1, 0, &handle),
        IRIS_ERR_INVALID);
    snprintf(text, sizeof text, "but %d workgroups run at once",
             iris_num_cus(iris));
    CHECK_MESSAGE(text);
    CHECK_STATUS(
        iris_ccl_device_create(iris, NULL, 1 + iris_rank(iris), 0, &handle),
        IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("max_wgs");
    CHECK(handle.spaces == NULL);
    CHECK_STATUS(iris_ccl_device_destroy(iris, &handle), IRIS_ERR_INVALID);
    return iris_ccl_device_destroy(iris, NULL);
}

TEST_GROUP(matrix, slow);
