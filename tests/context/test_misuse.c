/* SPDX-License-Identifier: MIT
 *
 * Calls without a context, after finalize, and in a forked child: all refused,
 * none harmful.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iris/device.h>

struct none_args {
    int unused;
};

IRIS_KERNEL(none, struct none_args)
{
}

/* The message begins with the name of the call, behind the rank if known. */
static int names_call(const char *call)
{
    char name[64];

    snprintf(name, sizeof name, "%.*s: ", (int)strcspn(call, "("), call);
    return harness_message_has(name);
}

/* Every public call that takes a context gives `expected`, its message has its
 * name and `text`, and outputs stay as they were. */
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
    CHECK(names_call(#call));       \
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
    REFUSED(iris_group_destroy(iris, NULL));
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

static TEST(no_call_works_after_finalize)
{
    iris_t *iris = harness_init();

    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(
        refuses_all(iris, IRIS_ERR_STATE, "no call may follow iris_finalize"),
        0);
    assert_int_equal(iris_finalize(iris), IRIS_ERR_STATE);
    assert_true(harness_message_has("iris_finalize: the context"));
}

#define MANY 100

/* However many came after it; and no new one has the address of an old one,
 * which would let the calls through. */
static TEST(a_finalized_context_is_never_another)
{
    iris_t *old[MANY], *live;

    for (int i = 0; i < MANY; i++) {
        old[i] = harness_init();
        assert_int_equal(iris_finalize(old[i]), IRIS_OK);
    }
    live = harness_init();
    for (int i = 0; i < MANY; i++) {
        assert_ptr_not_equal(old[i], live);
        assert_int_equal(refuses_all(old[i], IRIS_ERR_STATE,
                                     "no call may follow iris_finalize"),
                         0);
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(old[i], old[j]);
        }
    }
    assert_int_equal(iris_finalize(live), IRIS_OK);
}

static TEST(no_call_works_without_a_context)
{
    assert_int_equal(
        refuses_all(NULL, IRIS_ERR_INVALID, "call iris_init first"), 0);
    assert_int_equal(iris_finalize(NULL), IRIS_OK);
}

static TEST(init_needs_somewhere_to_put_the_context)
{
    assert_int_equal(iris_init(NULL, NULL), IRIS_ERR_INVALID);
    assert_true(harness_message_has("iris_p is NULL; pass where to put"));
}

/* Runs in a child forked while `iris` was live. */
static int after_fork(iris_t *iris)
{
    iris_t *own = NULL;

    CHECK_EQUAL(refuses_all(iris, IRIS_ERR_STATE,
                            "call iris_init in the child, or fork before it"),
                0);
    CHECK_STATUS(iris_finalize(iris), IRIS_ERR_STATE);
    CHECK_MESSAGE("[0/1] iris_finalize: ");
    CHECK_MESSAGE("call iris_init in the child");
#ifndef __SANITIZE_THREAD__ /* which allows no threads here */
    CHECK_OK(iris_init(NULL, &own));
    CHECK_EQUAL(iris_rank(own), 0);
#endif
    CHECK_OK(iris_finalize(own));
    return 0;
}

static TEST(a_forked_child_may_not_use_it_and_does_no_harm)
{
    iris_t *iris = harness_init();
    uint64_t *word, seen = 17;
    void *more;
    int how;
    pid_t pid;

    assert_int_equal(iris_calloc(iris, 1, sizeof *word, (void **)&word),
                     IRIS_OK);
    assert_int_equal(harness_write(iris, word, &seen, sizeof seen), IRIS_OK);
    pid = fork();
    if (pid == 0) {
        _exit(after_fork(iris));
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_int_equal(harness_read(iris, &seen, word, sizeof seen), IRIS_OK);
    assert_int_equal(seen, 17);
    assert_int_equal(iris_malloc(iris, 100, &more), IRIS_OK);
    assert_int_equal(iris_memset(iris, word, 1, sizeof *word, NULL), IRIS_OK);
    assert_int_equal(iris_barrier(iris, NULL, NULL), IRIS_OK);
    assert_int_equal(harness_read(iris, &seen, word, sizeof seen), IRIS_OK);
    assert_int_equal(seen, 0x0101010101010101);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

TEST_GROUP(unit);
