/* SPDX-License-Identifier: MIT
 *
 * A context's life: init, finalize, again, and several side by side.
 */
#include "config.h"

#include <iris/device.h>

#include "support/harness.h"
#include "support/leaks.h"

#include "context/context.h"

#include <stdlib.h>
#include <string.h>

#define MANY 10000
#define SAMPLE 200

static TEST(a_context_comes_and_goes_without_a_trace)
{
    struct leaks before;
    iris_t *iris;

    leaks_note(&before);
    iris = harness_init();
    assert_int_equal(iris_rank(iris), 0);
    assert_int_equal(iris_num_ranks(iris), 1);
    assert_int_equal(iris_device_id(iris), 0);
    assert_true(iris_num_cus(iris) >= 1);
    assert_non_null(iris_backend_name(iris));
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(leaks_found(&before), 0);
    assert_int_equal(leaks_found_files(), 0);
}

static TEST(init_may_follow_finalize_again_and_again)
{
    size_t rounds = harness_count(MANY, SAMPLE);
    struct leaks before;
    void *ptr;

    assert_int_equal(iris_finalize(harness_init()), IRIS_OK);
    leaks_note(&before);
    for (size_t round = 0; round < rounds; round++) {
        iris_t *iris = harness_init();

        assert_int_equal(iris_malloc(iris, 4096, &ptr), IRIS_OK);
        assert_int_equal(iris_finalize(iris), IRIS_OK);
    }
    assert_int_equal(leaks_found(&before), 0);
}

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

static TEST(jobs_may_follow_each_other_again_and_again)
{
    size_t rounds = harness_count(MANY / 10, SAMPLE / 10);
    struct leaks before;

    harness_run(4, nothing, NULL);
    leaks_note(&before);
    for (size_t round = 0; round < rounds; round++) {
        harness_run(4, nothing, NULL);
    }
    assert_int_equal(leaks_found(&before), 0);
}

static TEST(several_contexts_live_side_by_side)
{
    struct leaks before;
    iris_t *contexts[5];
    uint64_t *words[5], seen;

    leaks_note(&before);
    for (int i = 0; i < 5; i++) {
        contexts[i] = harness_init();
        assert_int_equal(
            iris_calloc(contexts[i], 1, sizeof(uint64_t), (void **)&words[i]),
            IRIS_OK);
        seen = (uint64_t)i;
        assert_int_equal(
            harness_write(contexts[i], words[i], &seen, sizeof seen), IRIS_OK);
    }
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            assert_int_equal(iris_is_symmetric(contexts[i], words[j]), i == j);
        }
        assert_int_equal(
            harness_read(contexts[i], &seen, words[i], sizeof seen), IRIS_OK);
        assert_int_equal(seen, i);
    }
    assert_int_equal(iris_finalize(contexts[2]), IRIS_OK);
    assert_int_equal(iris_free(contexts[3], words[3]), IRIS_OK);
    assert_int_equal(iris_free(contexts[2], words[2]), IRIS_ERR_STATE);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(iris_finalize(contexts[i]),
                         i == 2 ? IRIS_ERR_STATE : IRIS_OK);
    }
    assert_int_equal(leaks_found(&before), 0);
}

static RANK_TEST(the_device_context_has_its_public_layout, ALL_RANKS)
{
    const int64_t *on_device = iris_device_context(iris);
    const int64_t *bases = iris_heap_bases(iris);
    int64_t context[IRIS_CONTEXT_WORDS(8)], word;
    int num_ranks = iris_num_ranks(iris);
    int own = iris_rank(iris);

    CHECK(iris_is_symmetric(iris, on_device));
    CHECK((int64_t)(uintptr_t)on_device != bases[own]);
    CHECK_OK(harness_read(iris, context, on_device,
                          IRIS_CONTEXT_WORDS(num_ranks) * sizeof *context));
    CHECK_EQUAL(context[IRIS_CONTEXT_RANK], own);
    CHECK_EQUAL(context[IRIS_CONTEXT_NUM_RANKS], num_ranks);
    for (int rank = 0; rank < num_ranks; rank++) {
        void *remote;

        CHECK(bases[rank] != 0);
        CHECK_EQUAL(context[IRIS_CONTEXT_HEAP_BASES + rank], bases[rank]);
        CHECK_OK(iris_as_remote(iris, on_device, rank, &remote));
        CHECK_OK(harness_read(iris, &word, remote, sizeof word));
        CHECK_EQUAL(word, rank);
        for (int other = 0; other < rank; other++) {
            CHECK(bases[rank] != bases[other]);
        }
    }
    for (int i = 0; i < IRIS_CONTEXT_TAIL_WORDS; i++) {
        CHECK_EQUAL(context[IRIS_CONTEXT_TRACE_ENABLED + num_ranks + i], 0);
    }
    CHECK_EQUAL(IRIS_CONTEXT_WORDS(num_ranks), 2 + num_ranks + 17);
    /* Nobody writes a context that a peer still reads. */
    return iris_barrier(iris, NULL, NULL);
}

/* On one rank only: the others' words, and all that is around, stay. */
static RANK_TEST(the_words_about_tracing_can_be_set, 1, 4)
{
    const int64_t *on_device = iris_device_context(iris);
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    int64_t before[IRIS_CONTEXT_ALL_WORDS(8)];
    int64_t after[IRIS_CONTEXT_ALL_WORDS(8)];
    int64_t words[IRIS_CONTEXT_TAIL_WORDS];
    int first = IRIS_CONTEXT_TRACE_ENABLED + num_ranks;
    size_t all = IRIS_CONTEXT_ALL_WORDS(num_ranks);
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(harness_read(iris, before, on_device, all * sizeof *before));
    for (int i = 0; i < IRIS_CONTEXT_TAIL_WORDS; i++) {
        words[i] = rank == 0 ? 1000 + i : 0;
        before[first + i] = words[i];
    }
    if (rank == 0) {
        CHECK_OK(iris_i_layout_write_tracing(iris, words, stream));
    }
    words[0] = 77; /* it is done */
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, after, on_device, all * sizeof *after));
    for (size_t i = 0; i < all; i++) {
        CHECK_EQUAL(after[i], before[i]);
    }
    iris_stream_destroy(iris, stream);
    return 0;
}

static TEST(too_many_ranks_are_refused_by_name)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    leaks_note(&before);
    iris_config_init(&config);
    config.bootstrap = "env";
    config.rank = 0;
    config.num_ranks = 1001;
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("1001"));
    assert_true(harness_message_has("IRIS_NUM_RANKS"));
    assert_null(iris);
    assert_int_equal(leaks_found(&before), 0);
}

/* The number in the last message is the smallest that does. */
static void expect_least(struct iris_config *config)
{
    const char *number = strstr(iris_last_error(), "at least ");
    iris_t *iris = NULL;

    assert_true(harness_message_has("with 1 rank it takes"));
    assert_non_null(number);
    config->heap_bytes = strtoll(number + strlen("at least "), NULL, 10);
    assert_int_equal(iris_init(config, &iris), IRIS_OK);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    config->heap_bytes -= 1;
    iris = NULL;
    assert_int_equal(iris_init(config, &iris), IRIS_ERR_CONFIG);
    assert_null(iris);
}

static TEST(a_heap_too_small_for_the_library_is_refused)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    leaks_note(&before);
    iris_config_init(&config);
    config.heap_bytes = 4096;
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_HEAP_SIZE"));
    assert_true(harness_message_has("[0/1]"));
    expect_least(&config);
    config.heap_bytes = INT64_MAX;
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_NO_MEMORY);
    assert_true(harness_message_has("IRIS_HEAP_SIZE"));
    config.heap_bytes = -1;
    config.backend = "sim";
    config.sim_device = "cpu";
    config.allocator = "vmem";
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("IRIS_ALLOCATOR=vmem"));
    assert_null(iris);
    assert_int_equal(leaks_found(&before), 0);
}

TEST_GROUP(unit, one_node);
