/* SPDX-License-Identifier: MIT
 *
 * Agreement on a call that the agreement's own files know nothing of: a call
 * type of this test's.
 */
#include "config.h"

#include "support/harness.h"

#include "context/context.h"
#include "control/internal.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static const struct iris_call_type reduce_call = {
    .name = "test_all_reduce",
    .fields = {{.name = "count"},
               {.name = "dtype"},
               {.name = "op"},
               {.name = "algorithm"},
               {.name = "root"}},
};

static const struct iris_call_type gather_call = {
    .name = "test_all_gather",
    .fields = {{.name = "dtype"}},
};

static struct iris_call reduce(uint64_t count, uint64_t dtype, uint64_t op)
{
    struct iris_call call = {.type = &reduce_call,
                             .fields = {count, dtype, op, 2, (uint64_t)-1}};

    return call;
}

static RANK_TEST(a_call_of_any_type_is_agreed_on, 2, 4)
{
    struct iris_members *world = &iris->world->members;
    struct iris_call call = reduce(4096, 1, 0);
    char own[8], payload[8];
    size_t bytes;

    (void)arg;
    for (int round = 0; round < 3; round++) {
        memset(own, 'a' + iris_rank(iris) + round, sizeof own);
        call.payload = own;
        call.payload_bytes = (size_t)iris_rank(iris); /* 0: none */
        CHECK_OK(iris_i_agree(world, &call));
        for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
            bytes = iris_i_agree_payload(world, rank, payload, sizeof payload);
            CHECK_EQUAL(bytes, rank);
            CHECK(bytes == 0 || payload[bytes - 1] == 'a' + rank + round);
        }
    }
    return 0;
}

static RANK_TEST(calls_that_differ_are_printed_with_their_fields, 2)
{
    struct iris_members *world = &iris->world->members;
    int rank = iris_rank(iris);
    struct iris_call call = reduce(4096, rank == 0 ? 1 : 5, (uint64_t)rank);
    struct iris_call gather = {.type = &gather_call, .fields = {3}};

    (void)arg;
    CHECK_STATUS(iris_i_agree(world, &call), IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 0 called test_all_reduce(count 4096, dtype 1, op 0, "
                  "algorithm 2, root -1)");
    CHECK_MESSAGE("rank 1 called test_all_reduce(count 4096, dtype 5, op 1, "
                  "algorithm 2, root -1)");
    CHECK_STATUS(iris_i_agree(world, rank == 0 ? &call : &gather),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 0 called test_all_reduce(");
    CHECK_MESSAGE("rank 1 called test_all_gather(dtype 3)");
    call = reduce(1, 3, 0);
    return iris_i_agree(world, &call); /* and all goes on */
}

static RANK_TEST(a_failed_preparation_fails_every_rank, 3)
{
    struct iris_members *world = &iris->world->members;
    struct iris_call call = reduce(8, 3, 0);

    (void)arg;
    call.payload = "lost";
    call.payload_bytes = 4;
    if (iris_rank(iris) == 1) {
        call.status =
            iris_i_fail(&iris->log, IRIS_ERR_UNSUPPORTED, "no such reduction");
    }
    CHECK_STATUS(iris_i_agree(world, &call), IRIS_ERR_UNSUPPORTED);
    CHECK_MESSAGE("no such reduction");
    if (iris_rank(iris) != 1) {
        CHECK_MESSAGE("rank 1 failed in test_all_reduce: ");
    }
    call = reduce(1, 3, 0);
    return iris_i_agree(world, &call);
}

static RANK_TEST(a_payload_may_fill_its_place, 2)
{
    struct iris_members *world = &iris->world->members;
    struct iris_call call = reduce(1, 8, 4);
    unsigned char own[IRIS_PAYLOAD_BYTES], payload[IRIS_PAYLOAD_BYTES];
    size_t bytes;

    (void)arg;
    memset(own, 1 + iris_rank(iris), sizeof own);
    call.payload = own;
    call.payload_bytes = sizeof own;
    CHECK_OK(iris_i_agree(world, &call));
    for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
        bytes = iris_i_agree_payload(world, rank, payload, sizeof payload);
        CHECK_EQUAL(bytes, IRIS_PAYLOAD_BYTES);
        for (size_t i = 0; i < bytes; i++) {
            CHECK_EQUAL(payload[i], 1 + rank);
        }
    }
    return 0;
}

static iris_status_t stop_waiting(void *arg)
{
    return iris_i_fail(NULL, IRIS_ERR_STATE, "rank 0 has waited %d times",
                       ++*(int *)arg);
}

/* Rank 0 stops waiting of its own accord; rank 1 comes once it has. */
static int impatient_body(iris_t *iris, void *arg)
{
    struct iris_call call = reduce(1, 3, 0);
    atomic_int *over = arg;
    int times = 0;

    if (iris_rank(iris) == 0) {
        call.keep_waiting = stop_waiting;
        call.arg = &times;
        CHECK_STATUS(iris_i_agree(&iris->world->members, &call),
                     IRIS_ERR_STATE);
        CHECK_EQUAL(times, 1);
        CHECK_MESSAGE("rank 0 has waited 1 times");
        atomic_store(over, 1);
    }
    while (atomic_load(over) == 0) {
        sched_yield();
    }
    CHECK_STATUS(iris_i_agree(&iris->world->members, &call), IRIS_ERR_STATE);
    return IRIS_ERR_STATE;
}

static TEST(a_caller_may_end_its_wait)
{
    struct iris_config config;
    atomic_int over = 0;

    iris_config_init(&config);
    config.spawn = "threads";
    assert_int_equal(iris_spawn(&config, 2, impatient_body, &over),
                     IRIS_ERR_STATE);
}

/* Rank 0 has lost rank 1, whose host does not answer, before rank 1 shows here as
 * one that has left. */
static int unreachable_body(iris_t *iris, void *arg)
{
    struct iris_members *world = &iris->world->members;
    struct iris_call call = reduce(1, 3, 0);

    (void)arg;
    (void)iris_i_control_fail(world->control, world->place,
                              ((unsigned)-IRIS_ERR_UNREACHABLE << 16) | 2);
    CHECK_STATUS(iris_i_agree(world, &call), IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("another rank has found that rank 1 (pid ");
    CHECK_MESSAGE("its host does not answer");
    return IRIS_ERR_PEER_LOST;
}

static TEST(a_rank_that_another_one_cannot_reach_has_not_died)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = "threads";
    assert_int_equal(iris_spawn(&config, 2, unreachable_body, NULL),
                     IRIS_ERR_PEER_LOST);
}

/* ---- Cycles of waits ---- */

static TEST(a_rank_that_has_come_since_closes_no_cycle)
{
    static const int ranks[] = {0, 1};
    const struct iris_part parts[2] = {{"call", 4}, {NULL, 0}};
    const struct iris_post_id id = {0, 1, 1};
    /* Rank 1 waits at place 0 for rank 0, in agreement 2. */
    const struct iris_shown shown = {.waits = (uint64_t)2 << 24 | 1};
    struct iris_log log = {.num_ranks = 2};
    struct iris_control control = {.log = &log, .num_ranks = 2, .num_nodes = 1};
    struct iris_members members = {
        .control = &control, .ranks = ranks, .count = 2, .seq = 1};

    atomic_init(&log.level, IRIS_LOG_OFF);
    assert_int_equal(iris_i_segment_create(2, &control.records), IRIS_OK);
    iris_i_board_write(iris_i_records_board(control.records, 1),
                       IRIS_SHOW_WAITS, &shown);
    assert_int_equal(iris_i_cycle_check(&members, "a", 1), IRIS_ERR_MISMATCH);
    (void)iris_i_place_post(iris_i_segment_place(control.records, 0), &id,
                            parts, 2);
    assert_int_equal(iris_i_cycle_check(&members, "a", 1), IRIS_OK);
    iris_i_segment_release(control.records);
}

TEST_GROUP(unit);
