/* SPDX-License-Identifier: MIT
 *
 * Barriers between ranks, from the host, on streams and inside kernels, on all
 * ranks and on groups.
 */
#include "config.h"

#include <iris/device/layout.h>

#include "support/game.h"

#define CELLS 5

/* One on each rank's heap. */
struct board {
    uint64_t wrong;
    uint64_t work; /* keeps the straggler's work from being dropped */
    uint64_t turn; /* of workgroups that take turns */
    uint64_t cells[GAME_MAX_RANKS][CELLS];
};

struct round_args {
    const int64_t *context;
    struct board *board;
    struct iris_dev_group *group;
    uint64_t round;
    uint64_t rounds; /* of a kernel that makes its own barriers */
};

/* Delays one rank in turn by work, as much as it takes. */
IRIS_DEVICE void straggle(iris_dev_t dev, struct board *board, uint64_t round)
{
    uint64_t work = board->work;

    if (round % 16 == (uint64_t)dev.rank) {
        for (int i = 0; i < 20000; i++) {
            work = work * 6364136223846793005u + 1442695040888963407u;
        }
    }
    board->work = work;
}

/* Tells every member of the group about this round, by plain stores. */
IRIS_DEVICE void tell_members(iris_wg_t wg, iris_dev_t dev,
                              const struct round_args *args, uint64_t round)
{
    const uint64_t *members = iris_i_group_ranks(args->group);

    if (iris_wg_leader(wg)) {
        straggle(dev, args->board, round);
    }
    IRIS_WG_LANES (wg, i, (size_t)args->group->count * CELLS) {
        int to = (int)members[i / CELLS];

        iris_store(dev, &args->board->cells[dev.rank][i % CELLS],
                   game_mark(dev.rank, to, round * CELLS + i % CELLS), to);
    }
}

/* What the members told is here. */
IRIS_DEVICE void check_members(iris_wg_t wg, iris_dev_t dev,
                               const struct round_args *args, uint64_t round)
{
    const uint64_t *members = iris_i_group_ranks(args->group);

    IRIS_WG_LANES (wg, i, (size_t)args->group->count * CELLS) {
        int from = (int)members[i / CELLS];

        game_expect(dev, args->board,
                    args->board->cells[from][i % CELLS] ==
                        game_mark(from, dev.rank, round * CELLS + i % CELLS));
    }
}

IRIS_KERNEL(tell, struct round_args)
{
    tell_members(wg, iris_dev_init(args->context), args, args->round);
}

IRIS_KERNEL(check, struct round_args)
{
    check_members(wg, iris_dev_init(args->context), args, args->round);
}

IRIS_KERNEL(tell_and_check, struct round_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint64_t round = 1; round <= args->rounds; round++) {
        tell_members(wg, dev, args, round);
        iris_dev_barrier(wg, dev, args->group);
        check_members(wg, dev, args, round);
        iris_dev_barrier(wg, dev, args->group);
    }
}

/* The group's barriers go from one workgroup to the next and back: what only
 * the leader has acquired is what its other lanes begin their barrier by. */
IRIS_KERNEL(take_turns, struct round_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint64_t turn = wg.id; turn < args->rounds; turn += wg.num_wgs) {
        if (iris_wg_leader(wg)) {
            (void)iris_wait_until(dev, &args->board->turn, IRIS_CMP_EQ, turn);
        }
        iris_dev_barrier(wg, dev, args->group);
        tell_members(wg, dev, args, turn);
        iris_dev_barrier(wg, dev, args->group);
        check_members(wg, dev, args, turn);
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, &args->board->turn, turn + 1, dev.rank);
        }
    }
}

/* The barriers of one kind under test on one group. */
struct ground {
    iris_t *iris;
    iris_stream_t *stream;
    iris_group_t *group;
    struct round_args args;
};

typedef iris_status_t (*barrier_fn)(iris_t *iris, iris_stream_t *stream,
                                    iris_group_t *group);

static struct ground make_ground(iris_t *iris, iris_stream_t *stream,
                                 iris_group_t *group, void *board)
{
    struct ground ground = {iris, stream, group, {0}};

    ground.args.context = iris_device_context(iris);
    ground.args.board = (struct board *)board;
    ground.args.group = iris_group_device(iris, group);
    return ground;
}

static iris_status_t launch(struct ground *ground,
                            const struct iris_kernel *kernel)
{
    unsigned lanes = ground->args.round % 2 == 0 ? 64 : 3;

    return iris_launch(ground->iris, kernel, 1, lanes, &ground->args,
                       sizeof ground->args, ground->stream);
}

/* Enqueues rounds of kernels with barriers in between. */
static int enqueue_rounds(struct ground *ground, barrier_fn barrier,
                          uint64_t first, uint64_t count)
{
    for (uint64_t round = first; round < first + count; round++) {
        ground->args.round = round;
        CHECK_OK(launch(ground, tell));
        CHECK_OK(barrier(ground->iris, ground->stream, ground->group));
        CHECK_OK(launch(ground, check));
        CHECK_OK(barrier(ground->iris, ground->stream, ground->group));
    }
    return 0;
}

static int finish(struct ground *ground)
{
    uint64_t wrong;

    CHECK_OK(iris_stream_synchronize(ground->iris, ground->stream));
    CHECK_OK(harness_read(ground->iris, &wrong, &ground->args.board->wrong,
                          sizeof wrong));
    CHECK_EQUAL(wrong, 0);
    return 0;
}

/* All three kinds of barrier on one group. */
static int all_kinds(struct ground *ground, uint64_t rounds)
{
    int failed = enqueue_rounds(ground, iris_barrier, 1, rounds) ||
                 enqueue_rounds(ground, iris_device_barrier, 100, rounds);

    if (failed) {
        return failed;
    }
    ground->args.rounds = rounds;
    CHECK_OK(launch(ground, tell_and_check));
    return finish(ground);
}

static int world_body(iris_t *iris, void *arg)
{
    uint64_t rounds = *(const size_t *)arg;
    struct ground ground;
    void *board;

    CHECK_OK(iris_calloc(iris, 1, sizeof(struct board), &board));
    ground = make_ground(iris, NULL, NULL, board);
    CHECK_EQUAL(all_kinds(&ground, rounds), 0);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static TEST(what_ranks_wrote_is_seen_after_every_kind_of_barrier)
{
    size_t rounds = harness_count(5000, 100);

    harness_run_all(world_body, &rounds);
}

static int back_to_back_body(iris_t *iris, void *arg)
{
    size_t count = *(const size_t *)arg;
    const uint64_t *epoch_p =
        iris_i_group_words(iris_group_device(iris, NULL)) + 1;
    uint64_t epoch;

    for (size_t i = 0; i < count; i++) {
        CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    }
    CHECK_OK(harness_read(iris, &epoch, epoch_p, sizeof epoch));
    CHECK_EQUAL(epoch, count);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    CHECK_OK(harness_read(iris, &epoch, epoch_p, sizeof epoch));
    CHECK_EQUAL(epoch, count);
    return 0;
}

static TEST(barriers_follow_each_other_at_once)
{
    size_t count = harness_count(100000, 1000);

    harness_run_all(back_to_back_body, &count);
}

static int turns_body(iris_t *iris, void *arg)
{
    uint64_t rounds = *(const size_t *)arg;
    struct ground ground;
    void *board;

    CHECK_OK(iris_calloc(iris, 1, sizeof(struct board), &board));
    ground = make_ground(iris, NULL, NULL, board);
    ground.args.rounds = rounds;
    CHECK_OK(iris_launch(iris, take_turns, 3, 64, &ground.args,
                         sizeof ground.args, NULL));
    CHECK_EQUAL(finish(&ground), 0);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static TEST(workgroups_may_take_turns)
{
    size_t rounds = harness_count(10000, 300);

    harness_run_all(turns_body, &rounds);
}

#define NUM_SHAPES 7

/* This rank's group in the shape: its members, 0 of them for none. */
static int shape(int which, int rank, int num_ranks, int *members)
{
    int first = 0, end = num_ranks, step = 1, count = 0;

    switch (which) {
    case 0: /* the last three */
        first = num_ranks > 3 ? num_ranks - 3 : 0;
        break;
    case 1: /* all, the other way round */
        for (int r = num_ranks; r-- > 0;) {
            members[count++] = r;
        }
        return count;
    case 2: /* each alone */
        first = rank;
        end = rank + 1;
        break;
    case 3: /* two halves */
        first = rank < num_ranks / 2 ? 0 : num_ranks / 2;
        end = rank < num_ranks / 2 ? num_ranks / 2 : num_ranks;
        break;
    case 4: /* even and odd */
        first = rank % 2;
        step = 2;
        break;
    case 5: /* all but rank 0 */
        first = 1;
        break;
    default: /* the last */
        first = num_ranks - 1;
        break;
    }
    if (rank < first) {
        return 0;
    }
    for (int r = first; r < end; r += step) {
        members[count++] = r;
    }
    return count;
}

static int check_group(const iris_t *iris, const iris_group_t *group,
                       const int *members, int count)
{
    CHECK_EQUAL(iris_group_size(iris, group), count);
    CHECK_EQUAL(members[iris_group_index(iris, group)], iris_rank(iris));
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(iris_group_member(iris, group, i), members[i]);
    }
    CHECK_EQUAL(iris_group_member(iris, group, count), -1);
    CHECK_EQUAL(iris_group_member(iris, group, -1), -1);
    return 0;
}

static int groups_body(iris_t *iris, void *arg)
{
    int chains = *(const int *)arg;
    void *board;

    CHECK_OK(iris_calloc(iris, 1, sizeof(struct board), &board));
    for (int chain = 0; chain < chains; chain++) {
        int members[GAME_MAX_RANKS];
        int count = shape(chain % NUM_SHAPES, iris_rank(iris),
                          iris_num_ranks(iris), members);
        iris_group_t *group = (iris_group_t *)board;
        struct ground ground;

        CHECK_OK(iris_group_create(iris, members, count, &group));
        CHECK((group == NULL) == (count == 0));
        if (count == 0) {
            continue;
        }
        CHECK_EQUAL(check_group(iris, group, members, count), 0);
        ground = make_ground(iris, NULL, group, board);
        CHECK_EQUAL(all_kinds(&ground, 3), 0);
        CHECK_OK(iris_group_destroy(iris, group));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static TEST(groups_of_every_shape_come_work_and_go)
{
    int chains = (int)harness_count(2000, 50);

    harness_run_all(groups_body, &chains);
}

/* The world on one stream, this rank's part of the shape on another. */
static int two_groups_body(iris_t *iris, void *arg)
{
    uint64_t rounds = *(const size_t *)arg;
    int members[GAME_MAX_RANKS];
    int count = shape(4, iris_rank(iris), iris_num_ranks(iris), members);
    struct ground grounds[2];
    iris_stream_t *stream;
    iris_group_t *group;
    void *boards;

    CHECK_OK(iris_calloc(iris, 2, sizeof(struct board), &boards));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_group_create(iris, members, count, &group));
    grounds[0] = make_ground(iris, NULL, NULL, boards);
    grounds[1] = make_ground(iris, stream, group, (struct board *)boards + 1);
    for (uint64_t round = 1; round <= rounds; round += 10) {
        int first = iris_rank(iris) % 2; /* no order among the groups */

        CHECK_EQUAL(
            enqueue_rounds(&grounds[first], iris_device_barrier, round, 10), 0);
        CHECK_EQUAL(
            enqueue_rounds(&grounds[!first], iris_device_barrier, round, 10),
            0);
    }
    CHECK_EQUAL(finish(&grounds[0]), 0);
    CHECK_EQUAL(finish(&grounds[1]), 0);
    CHECK_OK(iris_group_destroy(iris, group));
    iris_stream_destroy(iris, stream);
    CHECK_OK(iris_free(iris, boards));
    return 0;
}

static TEST(two_groups_work_at_once)
{
    size_t rounds = harness_count(10000, 100);

    harness_run_all(two_groups_body, &rounds);
}

TEST_GROUP(matrix, code, one_gpu, sample, valgrind);
