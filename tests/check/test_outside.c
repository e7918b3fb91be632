/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=race: the list of work on memory off the heap stays short.
 */
#include "config.h"

#include "support/harness.h"

#include "check/internal.h"
#include "context/context.h"

#if IRIS_ON_CPU /* the checker is the simulation's */

#define TURNS 40

/* In each turn, work ends while other work has not begun: that of the next turn,
 * or work that waits for the last turn. */
static int overlap_turns(iris_t *iris, void *arg)
{
    int is_long = *(const int *)arg;
    int32_t buffers[TURNS + 3][16] = {{0}};
    iris_stream_t *streams[2];
    uint64_t *flag;
    int32_t *x;

    CHECK_OK(iris_calloc(iris, 1, 1024, (void **)&x));
    CHECK_OK(iris_calloc(iris, 1, 8, (void **)&flag));
    CHECK_OK(iris_stream_create(iris, &streams[0]));
    CHECK_OK(iris_stream_create(iris, &streams[1]));
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        if (turn == 1 || !is_long) {
            CHECK_OK(iris_wait_on_stream(iris, flag, IRIS_CMP_GE,
                                         is_long ? TURNS : turn,
                                         streams[turn % 2]));
            CHECK_OK(iris_put_on_stream(iris, &x[16 * (turn % 2)],
                                        buffers[turn], 64, 0,
                                        streams[turn % 2]));
        }
        CHECK_OK(iris_put_on_stream(iris, &x[64],
                                    buffers[is_long ? 0 : TURNS + turn % 2], 64,
                                    0, NULL));
        CHECK_OK(iris_signal_on_stream(iris, flag, turn - 1, 0, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        if (!is_long) {
            CHECK_OK(iris_stream_synchronize(iris, streams[(turn - 1) % 2]));
        }
        CHECK(iris->race->num_outside <= 8);
    }
    CHECK_OK(iris_signal_on_stream(iris, flag, TURNS, 0, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_stream_synchronize(iris, streams[i]));
        iris_stream_destroy(iris, streams[i]);
    }
    return 0;
}

static TEST(work_off_the_heap_that_has_ended_is_forgotten)
{
    struct iris_config config = harness_sim_config("race");

    for (int is_long = 0; is_long < 2; is_long++) {
        assert_int_equal(iris_spawn(&config, 1, overlap_turns, &is_long),
                         IRIS_OK);
    }
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
#endif /* IRIS_ON_CPU */
