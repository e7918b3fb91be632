/* SPDX-License-Identifier: MIT
 *
 * A context's life: init, finalize, several of them, and use at the wrong time
 * or in the wrong process.
 */
#include "config.h"

#include <iris/device.h>

#include "harness.h"
#include "leaks.h"
#include "procs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 10000
#define SAMPLE 200

struct none_args {
    int unused;
};

IRIS_KERNEL(none, struct none_args)
{
}

static iris_t *start(void)
{
    iris_t *iris = NULL;
    iris_status_t status = iris_init(NULL, &iris);

    if (status != IRIS_OK) {
        print_error("%s\n", iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
    return iris;
}

static void a_context_comes_and_goes_without_a_trace(void **state)
{
    struct leaks before;
    iris_t *iris;

    (void)state;
    leaks_note(&before);
    iris = start();
    assert_int_equal(iris_rank(iris), 0);
    assert_int_equal(iris_num_ranks(iris), 1);
    assert_int_equal(iris_device_id(iris), 0);
    assert_int_equal(iris_num_cus(iris), 4);
    assert_string_equal(iris_backend_name(iris), "sim");
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(leaks_found(&before), 0);
    assert_int_equal(leaks_found_files(), 0);
}

static void init_may_follow_finalize_again_and_again(void **state)
{
    size_t rounds = harness_count(MANY, SAMPLE);
    struct leaks before;
    void *ptr;

    (void)state;
    assert_int_equal(iris_finalize(start()), IRIS_OK);
    leaks_note(&before);
    for (size_t round = 0; round < rounds; round++) {
        iris_t *iris = start();

        assert_int_equal(iris_malloc(iris, 4096, &ptr), IRIS_OK);
        assert_int_equal(iris_finalize(iris), IRIS_OK);
    }
    assert_int_equal(leaks_found(&before), 0);
}

static int nothing(iris_t *iris, void *arg)
{
    (void)arg;
    return iris_barrier(iris, NULL, NULL);
}

static void jobs_may_follow_each_other_again_and_again(void **state)
{
    size_t rounds = harness_count(MANY / 10, SAMPLE / 10);
    struct leaks before;

    (void)state;
    harness_run(4, nothing, NULL);
    leaks_note(&before);
    for (size_t round = 0; round < rounds; round++) {
        harness_run(4, nothing, NULL);
    }
    assert_int_equal(leaks_found(&before), 0);
}

static void several_contexts_live_side_by_side(void **state)
{
    struct leaks before;
    iris_t *contexts[5];
    uint64_t *words[5];

    (void)state;
    leaks_note(&before);
    for (int i = 0; i < 5; i++) {
        contexts[i] = start();
        assert_int_equal(
            iris_calloc(contexts[i], 1, sizeof(uint64_t), (void **)&words[i]),
            IRIS_OK);
        *words[i] = (uint64_t)i;
    }
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            assert_int_equal(iris_is_symmetric(contexts[i], words[j]), i == j);
        }
        assert_int_equal(*words[i], i);
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

/* Every public call that takes a context gives `expected`, its message has
 * `text`, and outputs stay as they were. */
static int refuses_all(iris_t *iris, iris_status_t expected, const char *text)
{
    struct iris_heap_stats stats = {.num_allocs = 99};
    struct none_args args = {0};
    int word = 0, ranks[1] = {0};
    iris_stream_t *stream = (void *)&word;
    iris_group_t *group = (void *)&word;
    void *ptr = &word;

#define REFUSED(call)               \
    CHECK_STATUS(call, expected);   \
    CHECK_MESSAGE(text);            \
    CHECK(ptr == (void *)&word);    \
    CHECK(stream == (void *)&word); \
    CHECK(group == (void *)&word)
    REFUSED(iris_malloc(iris, 64, &ptr));
    REFUSED(iris_malloc_aligned(iris, 64, 256, &ptr));
    REFUSED(iris_calloc(iris, 1, 64, &ptr));
    REFUSED(iris_free(iris, &word));
    REFUSED(iris_free(iris, NULL));
    REFUSED(iris_heap_stats(iris, &stats));
    REFUSED(iris_as_remote(iris, &word, 0, &ptr));
    REFUSED(iris_stream_create(iris, &stream));
    REFUSED(iris_stream_synchronize(iris, NULL));
    REFUSED(iris_memcpy(iris, &word, &word, 0, NULL));
    REFUSED(iris_memset(iris, &word, 0, 0, NULL));
    REFUSED(iris_launch(iris, none, 1, 1, &args, sizeof args, NULL));
    REFUSED(iris_barrier(iris, NULL, NULL));
    REFUSED(iris_device_barrier(iris, NULL, NULL));
    REFUSED(iris_broadcast(iris, &word, sizeof word, 0, NULL));
    REFUSED(iris_group_create(iris, ranks, 1, &group));
    REFUSED(iris_group_free(iris, NULL));
#undef REFUSED
    CHECK_EQUAL(stats.num_allocs, 99);
    CHECK_EQUAL(iris_rank(iris), -1);
    CHECK_MESSAGE(text);
    CHECK_EQUAL(iris_num_ranks(iris), -1);
    CHECK_EQUAL(iris_device_id(iris), -1);
    CHECK_EQUAL(iris_num_cus(iris), -1);
    CHECK(iris_backend_name(iris) == NULL);
    CHECK(iris_heap_bases(iris) == NULL);
    CHECK(iris_device_context(iris) == NULL);
    CHECK_EQUAL(iris_is_symmetric(iris, &word), 0);
    CHECK_EQUAL(iris_group_size(iris, NULL), -1);
    CHECK_EQUAL(iris_group_index(iris, NULL), -1);
    CHECK_EQUAL(iris_group_member(iris, NULL, 0), -1);
    CHECK(iris_group_device(iris, NULL) == NULL);
    iris_stream_destroy(iris, stream);
    return 0;
}

static void no_call_works_after_finalize(void **state)
{
    iris_t *iris = start();

    (void)state;
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(refuses_all(iris, IRIS_ERR_STATE, "finalized"), 0);
    assert_int_equal(iris_finalize(iris), IRIS_ERR_STATE);
    assert_true(harness_message_has("iris_finalize"));
}

static void no_call_works_without_a_context(void **state)
{
    (void)state;
    assert_int_equal(refuses_all(NULL, IRIS_ERR_INVALID, "iris_init"), 0);
    assert_int_equal(iris_finalize(NULL), IRIS_OK);
}

static void init_needs_somewhere_to_put_the_context(void **state)
{
    (void)state;
    assert_int_equal(iris_init(NULL, NULL), IRIS_ERR_INVALID);
    assert_true(harness_message_has("iris_p is NULL"));
}

/* Runs in a child forked while `iris` was live. */
static int after_fork(iris_t *iris)
{
    iris_t *own = NULL;

    CHECK_EQUAL(refuses_all(iris, IRIS_ERR_STATE, "forked"), 0);
    CHECK_STATUS(iris_finalize(iris), IRIS_ERR_STATE);
    CHECK_MESSAGE("[0/1]");
#ifndef __SANITIZE_THREAD__ /* which allows no threads here */
    CHECK_OK(iris_init(NULL, &own));
    CHECK_EQUAL(iris_rank(own), 0);
#endif
    CHECK_OK(iris_finalize(own));
    return 0;
}

static void a_forked_child_may_not_use_it_and_does_no_harm(void **state)
{
    iris_t *iris = start();
    uint64_t *word;
    void *more;
    int how;
    pid_t pid;

    (void)state;
    assert_int_equal(iris_calloc(iris, 1, sizeof *word, (void **)&word),
                     IRIS_OK);
    *word = 17;
    pid = fork();
    if (pid == 0) {
        _exit(after_fork(iris));
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_int_equal(*word, 17);
    assert_int_equal(iris_malloc(iris, 100, &more), IRIS_OK);
    assert_int_equal(iris_memset(iris, word, 1, sizeof *word, NULL), IRIS_OK);
    assert_int_equal(iris_barrier(iris, NULL, NULL), IRIS_OK);
    assert_int_equal(*word, 0x0101010101010101);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

static int check_context(iris_t *iris, void *arg)
{
    const int64_t *context = iris_device_context(iris);
    const int64_t *bases = iris_heap_bases(iris);
    int num_ranks = iris_num_ranks(iris);
    int own = iris_rank(iris);

    (void)arg;
    CHECK(iris_is_symmetric(iris, context));
    CHECK_EQUAL(context[IRIS_CONTEXT_RANK], own);
    CHECK_EQUAL(context[IRIS_CONTEXT_NUM_RANKS], num_ranks);
    for (int rank = 0; rank < num_ranks; rank++) {
        void *remote;

        CHECK(bases[rank] != 0);
        CHECK_EQUAL(context[IRIS_CONTEXT_HEAP_BASES + rank], bases[rank]);
        CHECK_OK(iris_as_remote(iris, context, rank, &remote));
        CHECK_EQUAL(*(int64_t *)remote, rank);
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

static void the_device_context_has_its_public_layout(void **state)
{
    (void)state;
    harness_run_all(check_context, NULL);
}

static void too_many_ranks_are_refused_by_name(void **state)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    (void)state;
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

static void a_heap_too_small_for_the_library_is_refused(void **state)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    (void)state;
    leaks_note(&before);
    iris_config_init(&config);
    config.heap_bytes = 4096;
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_HEAP_SIZE"));
    assert_true(harness_message_has("[0/1]"));
    config.heap_bytes = INT64_MAX;
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_NO_MEMORY);
    assert_true(harness_message_has("IRIS_HEAP_SIZE"));
    config.heap_bytes = -1;
    config.allocator = "vmem";
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("IRIS_ALLOCATOR=vmem"));
    assert_null(iris);
    assert_int_equal(leaks_found(&before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_comes_and_goes_without_a_trace),
        cmocka_unit_test(init_may_follow_finalize_again_and_again),
        cmocka_unit_test(jobs_may_follow_each_other_again_and_again),
        cmocka_unit_test(several_contexts_live_side_by_side),
        cmocka_unit_test(no_call_works_after_finalize),
        cmocka_unit_test(no_call_works_without_a_context),
        cmocka_unit_test(init_needs_somewhere_to_put_the_context),
        cmocka_unit_test(a_forked_child_may_not_use_it_and_does_no_harm),
        cmocka_unit_test(the_device_context_has_its_public_layout),
        cmocka_unit_test(too_many_ranks_are_refused_by_name),
        cmocka_unit_test(a_heap_too_small_for_the_library_is_refused),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
