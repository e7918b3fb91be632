/* SPDX-License-Identifier: MIT
 *
 * Plans: copies that a kernel starts arrive whole, epoch after epoch and across
 * the wrap of their numbers; wrong, late, dead and leaving ranks get a named
 * error, and no rank takes data for published that are not.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 6000u
#define GRID 3u
#define BATCHES 2

struct plan_args {
    const int64_t *context;
    struct iris_dev_plan *plan;
    uint32_t *out;
    uint32_t *in;
    uint64_t *wrong;
    uint32_t epoch;
    int32_t mistake;
};

IRIS_DEVICE uint32_t word_of(int rank, uint32_t epoch, size_t i)
{
    return (uint32_t)rank * 1000003u + epoch * 7919u + (uint32_t)i;
}

/* All workgroups write each batch, the last one first. */
IRIS_KERNEL(produce, struct plan_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int batch = BATCHES - 1; batch >= 0; batch--) {
        IRIS_LANES (wg, i, WORDS / BATCHES) {
            size_t at = (size_t)batch * (WORDS / BATCHES) + i;

            args->out[at] = word_of((int)dev.rank, args->epoch, at);
        }
        iris_plan_publish(wg, dev, args->plan, (uint32_t)batch, args->epoch,
                          GRID);
    }
}

/* Counts the words that are not the left neighbour's. */
IRIS_KERNEL(consume, struct plan_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int left = (int)(dev.rank + dev.num_ranks - 1) % (int)dev.num_ranks;
    uint64_t wrong = 0;

    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        wrong += !iris_plan_wait(wg, dev, args->plan, batch, args->epoch);
        wrong += !iris_plan_arrived(dev, args->plan, batch, args->epoch);
        wrong +=
            !iris_plan_wait_reusable(wg, dev, args->plan, batch, args->epoch);
        wrong += !iris_plan_reusable(dev, args->plan, batch, args->epoch);
    }
    IRIS_LANES (wg, i, WORDS) {
        wrong += args->in[i] != word_of(left, args->epoch, i);
    }
    if (wrong != 0) {
        (void)iris_atomic_add_u64(dev, args->wrong, wrong, (int)dev.rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* Counts a wait that a rank's giving up has ended. */
IRIS_KERNEL(wait_in_vain, struct plan_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    iris_bool_t came = iris_plan_wait(wg, dev, args->plan, 0, args->epoch);

    if (iris_wg_leader(wg)) {
        *args->wrong = came ? 2 : 1;
    }
}

/* One rank's memory, with a plan in which every rank copies to the next. */
struct ring {
    struct iris_plan_segment segments[2 * 64];
    size_t count;
    iris_plan_t *plan;
    struct plan_args args;
    void *memory;
};

static int make_segments(iris_t *iris, struct ring *ring)
{
    int num_ranks = iris_num_ranks(iris);
    size_t half = WORDS / BATCHES;

    CHECK_OK(
        iris_calloc(iris, 1, 2 * WORDS * sizeof(uint32_t) + 8, &ring->memory));
    ring->args.wrong = ring->memory;
    ring->args.out = (uint32_t *)(ring->args.wrong + 1);
    ring->args.in = ring->args.out + WORDS;
    ring->args.context = iris_device_context(iris);
    for (int rank = 0; rank < num_ranks; rank++) {
        for (int batch = 0; batch < BATCHES; batch++) {
            ring->segments[ring->count++] = (struct iris_plan_segment){
                .from_rank = rank,
                .to_rank = (rank + 1) % num_ranks,
                .src = ring->args.out + (size_t)batch * half,
                .dst = ring->args.in + (size_t)batch * half,
                .bytes = half * sizeof(uint32_t),
                .batch = batch};
        }
    }
    return 0;
}

static int make_ring(iris_t *iris, struct ring *ring, uint32_t first)
{
    struct iris_plan_options options;

    memset(ring, 0, sizeof *ring);
    iris_plan_options_init(&options);
    options.first_epoch = first;
    CHECK_EQUAL(make_segments(iris, ring), 0);
    CHECK_OK(iris_plan_create(iris, ring->segments, ring->count, &options,
                              &ring->plan));
    ring->args.plan = iris_plan_device(iris, ring->plan);
    CHECK(ring->args.plan != NULL);
    return 0;
}

static int end_ring(iris_t *iris, struct ring *ring)
{
    CHECK_OK(iris_plan_destroy(iris, ring->plan));
    return iris_free(iris, ring->memory) == IRIS_OK ? 0 : -1;
}

static iris_status_t run(iris_t *iris, const struct iris_kernel *kernel,
                         unsigned grid, const struct ring *ring)
{
    return iris_launch(iris, kernel, grid, 64, &ring->args, sizeof ring->args,
                       NULL);
}

static int check_state(iris_t *iris, struct ring *ring,
                       iris_plan_state_t expected)
{
    iris_plan_state_t state;

    CHECK_OK(iris_plan_state(iris, ring->plan, &state));
    CHECK_EQUAL(state, expected);
    return 0;
}

static int play_epoch(iris_t *iris, struct ring *ring, uint32_t expected)
{
    CHECK_OK(iris_plan_begin(iris, ring->plan, NULL, &ring->args.epoch));
    CHECK_EQUAL(ring->args.epoch, expected);
    CHECK_OK(run(iris, produce, GRID, ring));
    CHECK_OK(run(iris, consume, 1, ring));
    CHECK_OK(iris_plan_end(iris, ring->plan));
    return check_state(iris, ring, IRIS_PLAN_COMPLETE);
}

static int play_ring(iris_t *iris, uint32_t first, int epochs)
{
    struct ring ring;
    uint64_t wrong;

    CHECK_EQUAL(make_ring(iris, &ring, first), 0);
    for (int i = 0; i < epochs; i++) {
        CHECK_EQUAL(play_epoch(iris, &ring, first + (uint32_t)i), 0);
    }
    CHECK_OK(harness_read(iris, &wrong, ring.args.wrong, sizeof wrong));
    CHECK_EQUAL(wrong, 0);
    return end_ring(iris, &ring);
}

static RANK_TEST(copies_that_a_kernel_starts_arrive_whole_in_every_epoch,
                 ALL_RANKS)
{
    return play_ring(iris, 1, (int)harness_count(200, 12));
}

static RANK_TEST(epochs_go_on_behind_the_largest_number, 2)
{
    return play_ring(iris, UINT32_MAX - 2, 6);
}

/* The next epoch may overwrite what a kernel ahead on the stream still reads. */
static RANK_TEST(a_plan_may_copy_to_its_own_rank_and_to_several, 2)
{
    struct iris_plan_segment segments[3] = {{0}};
    struct ring ring = {.count = 0};
    iris_plan_t *plan;
    uint32_t epoch;

    CHECK_EQUAL(make_segments(iris, &ring), 0);
    for (int i = 0; i < 3; i++) {
        segments[i] = ring.segments[0];
        segments[i].to_rank = i % 2;
        segments[i].batch = 0;
        segments[i].dst = ring.args.in + (i == 2 ? WORDS / 2 : 0);
    }
    CHECK_OK(iris_plan_create(iris, segments, 3, NULL, &plan));
    ring.args.plan = iris_plan_device(iris, plan);
    for (int i = 0; i < 3; i++) {
        uint32_t words[WORDS];

        CHECK_OK(iris_plan_begin(iris, plan, NULL, &epoch));
        ring.args.epoch = epoch;
        CHECK_OK(run(iris, produce, GRID, &ring));
        CHECK_OK(iris_plan_end(iris, plan));
        CHECK_OK(harness_read(iris, words, ring.args.in, sizeof words));
        for (size_t j = 0; j < WORDS; j++) {
            uint32_t expected = word_of(0, epoch, j % (WORDS / 2));

            CHECK_EQUAL(words[j],
                        j < WORDS / 2 || iris_rank(iris) == 0 ? expected : 0);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    CHECK_OK(iris_plan_destroy(iris, plan));
    return iris_free(iris, ring.memory) == IRIS_OK ? 0 : -1;
}

/* ---- Wrong calls ---- */

static RANK_TEST(different_segments_are_told_with_both_digests, 2, 3)
{
    struct ring ring = {.count = 0};
    iris_plan_t *plan = NULL;
    struct iris_plan_options options;
    const char *digest;

    CHECK_EQUAL(make_segments(iris, &ring), 0);
    ring.segments[1].bytes -= iris_rank(iris) == 1;
    CHECK_STATUS(iris_plan_create(iris, ring.segments, ring.count, NULL, &plan),
                 IRIS_ERR_MISMATCH);
    digest = strstr(iris_last_error(), "digest ");
    CHECK(digest != NULL && strstr(digest + 1, "digest ") != NULL);
    ring.segments[1].bytes += iris_rank(iris) == 1;
    iris_plan_options_init(&options);
    options.first_epoch = (uint32_t)iris_rank(iris) + 5;
    CHECK_STATUS(
        iris_plan_create(iris, ring.segments, ring.count, &options, &plan),
        IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("first_epoch 5");
    CHECK_MESSAGE("first_epoch 6");
    CHECK(plan == NULL);
    return iris_free(iris, ring.memory) == IRIS_OK ? 0 : -1;
}

static RANK_TEST(a_wrong_segment_of_one_rank_is_refused_on_all, 2)
{
    struct ring ring = {.count = 0};
    iris_plan_t *plan = NULL;
    struct iris_plan_segment good;

    CHECK_EQUAL(make_segments(iris, &ring), 0);
    good = ring.segments[0];
    for (int wrong = 0; wrong < 7; wrong++) {
        struct iris_plan_segment *bad = &ring.segments[0];

        *bad = good;
        if (iris_rank(iris) == 1) {
            bad->bytes = wrong == 0   ? 0
                         : wrong == 1 ? ((size_t)1 << 30) + 1
                                      : bad->bytes;
            bad->batch = wrong == 2 ? 32 : bad->batch;
            bad->to_rank = wrong == 3 ? 2 : bad->to_rank;
            bad->dst = wrong == 4 ? (void *)&ring : bad->dst;
            bad->to_rank = wrong == 5 ? 0 : bad->to_rank;
            bad->dst = wrong == 5 ? (void *)(uintptr_t)bad->src : bad->dst;
        }
        CHECK_STATUS(iris_plan_create(iris, ring.segments,
                                      wrong == 6 ? 0 : ring.count, NULL, &plan),
                     IRIS_ERR_INVALID);
        CHECK_MESSAGE("iris_plan_create");
    }
    return iris_free(iris, ring.memory) == IRIS_OK ? 0 : -1;
}

static RANK_TEST(calls_in_the_wrong_state_say_what_to_do, 2)
{
    struct ring ring;
    iris_plan_state_t state;

    CHECK_EQUAL(make_ring(iris, &ring, 1), 0);
    CHECK_BAD(iris, iris_plan_end(iris, ring.plan), IRIS_ERR_STATE,
              "no epoch has begun", "call iris_plan_begin");
    CHECK_BAD(iris, iris_plan_state(iris, NULL, &state), IRIS_ERR_INVALID,
              "plan", "iris_plan_create");
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    CHECK_BAD(iris, iris_plan_begin(iris, ring.plan, NULL, NULL),
              IRIS_ERR_STATE, "has not ended", "call iris_plan_end");
    CHECK_STATUS(iris_plan_destroy(iris, ring.plan), IRIS_ERR_STATE);
    CHECK_EQUAL(check_state(iris, &ring, IRIS_PLAN_ARMED), 0);
    CHECK_OK(run(iris, produce, GRID, &ring));
    CHECK_OK(iris_plan_end(iris, ring.plan));
    CHECK_OK(iris_plan_destroy(iris, NULL));
    return end_ring(iris, &ring);
}

static RANK_TEST(an_epoch_does_not_begin_in_a_graph, 2)
{
    iris_graph_t *graph = NULL;
    struct ring ring;

    CHECK_EQUAL(make_ring(iris, &ring, 1), 0);
    if (iris_capture_begin(iris, NULL) == IRIS_OK) {
        CHECK_BAD(iris, iris_plan_begin(iris, ring.plan, NULL, NULL),
                  IRIS_ERR_STATE, "captured", "outside of graphs");
        CHECK_OK(iris_capture_end(iris, NULL, &graph));
    }
    iris_graph_destroy(iris, graph);
    return end_ring(iris, &ring);
}

/* ---- Giving up ---- */

/* Rank 0 gives up: its neighbours learn of it, then theirs. */
static RANK_TEST(an_abort_ends_the_waits_of_all_ranks, 2, 4)
{
    struct ring ring;
    uint64_t seen;

    CHECK_EQUAL(make_ring(iris, &ring, 7), 0);
    CHECK_EQUAL(play_epoch(iris, &ring, 7), 0);
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    CHECK_OK(run(iris, wait_in_vain, 1, &ring));
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_plan_abort(iris, ring.plan));
        CHECK_EQUAL(check_state(iris, &ring, IRIS_PLAN_ABORTED), 0);
        CHECK_BAD(iris, iris_plan_end(iris, ring.plan), IRIS_ERR_STATE,
                  "aborted", "destroy");
    } else {
        CHECK_STATUS(iris_plan_end(iris, ring.plan), IRIS_ERR_STATE);
        CHECK_MESSAGE("gave the plan up in epoch 8");
        CHECK_EQUAL(check_state(iris, &ring, IRIS_PLAN_FAILED), 0);
        CHECK_BAD(iris, iris_plan_begin(iris, ring.plan, NULL, NULL),
                  IRIS_ERR_STATE, "failed", "destroy");
    }
    CHECK_OK(harness_read(iris, &seen, ring.args.wrong, sizeof seen));
    CHECK_EQUAL(seen, 1);
    return end_ring(iris, &ring);
}

/* Between two epochs: those who end the old one do, the next one fails. */
static RANK_TEST(an_abort_before_the_next_epoch_leaves_the_last_one, 2)
{
    struct ring ring;

    CHECK_EQUAL(make_ring(iris, &ring, 1), 0);
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    CHECK_OK(run(iris, produce, GRID, &ring));
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_plan_end(iris, ring.plan));
        CHECK_OK(iris_plan_abort(iris, ring.plan));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    } else {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_plan_end(iris, ring.plan));
        CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
        CHECK_OK(run(iris, produce, GRID, &ring));
        CHECK_STATUS(iris_plan_end(iris, ring.plan), IRIS_ERR_STATE);
        CHECK_MESSAGE("rank 0 gave the plan up in epoch 2");
    }
    return end_ring(iris, &ring);
}

/* ---- Late and dead ranks ---- */

static iris_status_t spawn_late(int num_ranks, iris_rank_fn body,
                                const char *spawn, void *arg)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = spawn;
    config.timeout_ms = spawn == NULL ? 500 : -1;
    return iris_spawn(&config, num_ranks, body, arg);
}

/* Rank 0 tells rank 1 to go on, which waits without a deadline. */
static iris_status_t meet_late(iris_t *iris, const struct ring *ring)
{
    uint64_t seen = 0;
    iris_status_t status =
        iris_rank(iris) == 0
            ? iris_signal_on_stream(iris, ring->args.wrong, 1, 1, NULL)
            : IRIS_OK;

    while (iris_rank(iris) == 1 && status == IRIS_OK && seen == 0) {
        status = harness_read(iris, &seen, ring->args.wrong, sizeof seen);
    }
    return status;
}

static iris_status_t end_late(iris_t *iris, const struct ring *ring)
{
    iris_status_t status = IRIS_ERR_TIMEOUT;

    while (status == IRIS_ERR_TIMEOUT) {
        status = iris_plan_end(iris, ring->plan);
    }
    return status;
}

/* Rank 1 publishes nothing; rank 0 then has nothing to read. */
static int be_late(iris_t *iris, void *arg)
{
    struct ring ring;

    CHECK_EQUAL(make_ring(iris, &ring, 3), 0);
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    if (iris_rank(iris) == 0) {
        CHECK_OK(run(iris, produce, GRID, &ring));
        CHECK_STATUS(iris_plan_end(iris, ring.plan), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("of rank 1, which has not arrived");
        CHECK_EQUAL(check_state(iris, &ring, IRIS_PLAN_ACTIVE), 0);
        CHECK_OK(meet_late(iris, &ring));
    } else {
        CHECK_STATUS(iris_plan_end(iris, ring.plan), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("batch 0, which no kernel of this rank has published in "
                      "epoch 3: the gate has 2");
        CHECK_OK(meet_late(iris, &ring));
        CHECK_OK(run(iris, produce, GRID, &ring));
    }
    CHECK_OK(end_late(iris, &ring)); /* the epoch went on */
    return end_ring(iris, &ring);
}

static TEST(a_deadline_names_the_gate_and_the_epoch_goes_on)
{
    if (harness_launched() != 0) {
        skip();
    }
    assert_int_equal(spawn_late(2, be_late, NULL, NULL), IRIS_OK);
}

static int begin_late(iris_t *iris, void *arg)
{
    struct ring ring;

    CHECK_EQUAL(make_ring(iris, &ring, 1), 0);
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
        CHECK_OK(run(iris, produce, GRID, &ring));
        CHECK_STATUS(iris_plan_end(iris, ring.plan), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("rank 1, which has not begun epoch 1");
        CHECK_OK(iris_plan_abort(iris, ring.plan));
    }
    CHECK_OK(meet_late(iris, &ring));
    return end_ring(iris, &ring);
}

/* Its abort lets the copies go, so that nothing waits when the plan ends. */
static TEST(a_deadline_names_a_receiver_that_has_not_begun)
{
    if (harness_launched() != 0) {
        skip();
    }
    assert_int_equal(spawn_late(2, begin_late, NULL, NULL), IRIS_OK);
}

static int die_early(iris_t *iris, void *arg)
{
    struct ring ring;

    CHECK_EQUAL(make_ring(iris, &ring, 1), 0);
    if (iris_rank(iris) == 1) {
        raise(SIGKILL);
    }
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    CHECK_OK(run(iris, produce, GRID, &ring));
    CHECK_STATUS(iris_plan_end(iris, ring.plan), IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("rank 1");
    CHECK_EQUAL(check_state(iris, &ring, IRIS_PLAN_FAILED), 0);
    CHECK_STATUS(iris_plan_destroy(iris, ring.plan), IRIS_ERR_PEER_LOST);
    *(volatile int *)arg = 1;
    return 0;
}

static TEST(a_rank_that_dies_fails_the_plan_by_name)
{
    int *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (harness_launched() != 0 || harness_has_gpu()) {
        skip();
    }
    assert_true(reached != MAP_FAILED);
    assert_int_not_equal(spawn_late(2, die_early, "processes", reached),
                         IRIS_OK);
    assert_int_equal(*reached, 1);
    munmap(reached, sizeof *reached);
}

/* ---- A fault opens gates ---- */

/* A deadline of another stream ends all work of rank 1. Its copies may run, but
 * rank 0 gets no arrival. */
static int fault_early(iris_t *iris, void *arg)
{
    uint64_t *words, arrival;
    struct ring ring;
    void *word;

    CHECK_EQUAL(make_ring(iris, &ring, 1), 0);
    CHECK_OK(iris_calloc(iris, 1, 16, &word));
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    if (iris_rank(iris) == 0) {
        CHECK_OK(run(iris, produce, GRID, &ring));
        CHECK_STATUS(end_late(iris, &ring), IRIS_ERR_STATE);
        CHECK_MESSAGE("rank 1 gave the plan up");
    } else {
        CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 1, NULL));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK_OK(iris_clear_error(iris));
        CHECK_EQUAL(check_state(iris, &ring, IRIS_PLAN_ARMED), 0);
        words = (uint64_t *)ring.args.plan +
                (sizeof(struct iris_dev_plan) / 8 + 2 + 15) / 16 * 16;
        CHECK_OK(iris_get_on_stream(iris, (uint64_t *)word + 1,
                                    &words[IRIS_PLAN_ARRIVALS + 1], 8, 0,
                                    NULL));
        CHECK_OK(harness_read(iris, &arrival, (uint64_t *)word + 1, 8));
        CHECK_EQUAL(arrival, 0);
        CHECK_OK(iris_plan_abort(iris, ring.plan));
    }
    CHECK_EQUAL(end_ring(iris, &ring), 0);
    return iris_free(iris, word) == IRIS_OK ? 0 : -1;
}

static TEST(copies_behind_a_gate_that_a_fault_opened_do_not_arrive)
{
    struct iris_config config;

    if (harness_launched() != 0) {
        skip();
    }
    iris_config_init(&config);
    config.timeout_ms = 500;
    assert_int_equal(iris_spawn(&config, 2, fault_early, NULL), IRIS_OK);
}

/* ---- Planted faults ---- */

/* 1: one workgroup publishes for all; 2: it does not release the gate. */
IRIS_KERNEL(publish_badly, struct plan_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = (uint64_t *)args->plan + args->plan->first;

    IRIS_LANES (wg, i, WORDS) {
        iris_store(dev, &args->out[i], 1u, (int)dev.rank);
    }
    if (args->mistake == 0) {
        iris_plan_publish(wg, dev, args->plan, 0, args->epoch, GRID);
    } else if (wg.id == 0 && args->mistake == 1) {
        iris_plan_publish(wg, dev, args->plan, 0, args->epoch, 1);
    } else if (wg.id == 0) {
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_atomic_store_u64(dev, &words[IRIS_PLAN_STAMP], args->epoch,
                                  (int)dev.rank, IRIS_RELAXED,
                                  IRIS_SCOPE_SYSTEM);
            iris_atomic_store_u64(dev, &words[IRIS_PLAN_GATE], args->epoch,
                                  (int)dev.rank, IRIS_RELAXED,
                                  IRIS_SCOPE_SYSTEM);
        }
    }
}

static int publish_one(iris_t *iris, void *arg)
{
    struct ring ring;

    memset(&ring, 0, sizeof ring);
    CHECK_EQUAL(make_segments(iris, &ring), 0);
    for (size_t i = 0; i < ring.count; i++) {
        ring.segments[i].batch = 0;
    }
    CHECK_OK(
        iris_plan_create(iris, ring.segments, ring.count, NULL, &ring.plan));
    ring.args.plan = iris_plan_device(iris, ring.plan);
    ring.args.mistake = *(const int *)arg;
    CHECK_OK(iris_plan_begin(iris, ring.plan, NULL, &ring.args.epoch));
    CHECK_OK(run(iris, publish_badly, GRID, &ring));
    CHECK_OK(iris_plan_end(iris, ring.plan));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return end_ring(iris, &ring);
}

static iris_status_t check_publish(int mistake)
{
    struct iris_config config;

    iris_config_init(&config);
    config.backend = "sim";
    config.sim_device = "cpu";
    config.check = "race";
    config.log_level = "off";
    return iris_spawn(&config, 2, publish_one, &mistake);
}

static TEST(the_race_check_finds_a_publish_without_its_release)
{
    if (harness_launched() != 0) {
        skip();
    }
    assert_int_equal(check_publish(0), IRIS_OK);
    assert_int_equal(check_publish(1), IRIS_ERR_RACE);
    assert_int_equal(check_publish(2), IRIS_ERR_RACE);
}

TEST_GROUP(matrix);
