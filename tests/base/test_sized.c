/* SPDX-License-Identifier: MIT
 *
 * Public structs that begin with their size: one rule for all calls that fill
 * or take one.
 */
#include "config.h"

#include <iris/iris.h>

#include <string.h>

#include "base/base.h"
#include "support/harness.h"

/* A struct of any header. */
union space {
    size_t size;
    struct iris_ccl_options ccl;
    struct iris_config config;
    struct iris_heap_stats stats;
    struct iris_ops_options ops;
    struct iris_tensor_options tensor;
    unsigned char bytes[IRIS_SIZED_MOST + 64];
};

static void init_ccl(union space *space, size_t size)
{
    iris_ccl_options_init_sized((void *)space, size);
}

static void init_config(union space *space, size_t size)
{
    iris_config_init_sized((void *)space, size);
}

static void init_ops(union space *space, size_t size)
{
    iris_ops_options_init_sized((void *)space, size);
}

static void init_tensor(union space *space, size_t size)
{
    iris_tensor_options_init_sized((void *)space, size);
}

static iris_status_t take_ccl(iris_t *iris, union space *space)
{
    return iris_all_reduce(iris, NULL, NULL, 0, IRIS_DTYPE_F32, IRIS_REDUCE_SUM,
                           &space->ccl);
}

static iris_status_t take_config(iris_t *iris, union space *space)
{
    return iris_config_set(&space->config, "warn_ms", "1");
}

static iris_status_t take_ops(iris_t *iris, union space *space)
{
    static float memory[3];
    iris_tensor_t a, b, out;

    iris_tensor_wrap(&memory[0], IRIS_DTYPE_F32, IRIS_SHAPE(1, 1), &a);
    iris_tensor_wrap(&memory[1], IRIS_DTYPE_F32, IRIS_SHAPE(1, 1), &b);
    iris_tensor_wrap(&memory[2], IRIS_DTYPE_F32, IRIS_SHAPE(1, 1), &out);
    return iris_matmul_all_reduce(iris, &a, &b, &out, &space->ops);
}

static iris_status_t take_tensor(iris_t *iris, union space *space)
{
    iris_tensor_t tensor;
    iris_status_t status =
        iris_empty(iris, IRIS_SHAPE(1), &space->tensor, &tensor);

    return status == IRIS_OK ? iris_tensor_free(iris, &tensor) : status;
}

static const struct {
    void (*init)(union space *space, size_t size);
    iris_status_t (*take)(iris_t *iris, union space *space);
    size_t known;
    int unset;
} calls[] = {
    {init_ccl, take_ccl, sizeof(struct iris_ccl_options), 0},
    {init_config, take_config, sizeof(struct iris_config), 0xff},
    {init_ops, take_ops, sizeof(struct iris_ops_options), 0},
    {init_tensor, take_tensor, sizeof(struct iris_tensor_options), 0},
};
#define NUM_CALLS (sizeof calls / sizeof calls[0])

/* Sizes that no header has: less than the field itself, half a field, more than
 * any struct. */
static const size_t bad_sizes[] = {0,
                                   1,
                                   7,
                                   9,
                                   12,
                                   sizeof(struct iris_ops_options) + 4,
                                   IRIS_SIZED_MOST + 8,
                                   SIZE_MAX};
#define NUM_BAD (sizeof bad_sizes / sizeof bad_sizes[0])

static TEST(init_of_a_size_that_is_none_leaves_memory_alone)
{
    union space space;

    for (size_t c = 0; c < NUM_CALLS; c++) {
        calls[c].init(NULL, 64);
        for (size_t i = 0; i < NUM_BAD; i++) {
            memset(&space, 0x5a, sizeof space);
            calls[c].init(&space, bad_sizes[i]);
            for (size_t at = 0; at < sizeof space; at++) {
                assert_int_equal(space.bytes[at], 0x5a);
            }
        }
    }
}

static RANK_TEST(all_calls_take_the_same_sizes, 1)
{
    union space space;

    for (size_t c = 0; c < NUM_CALLS; c++) {
        for (size_t i = 0; i < NUM_BAD; i++) {
            calls[c].init(&space, calls[c].known);
            space.size = bad_sizes[i];
            CHECK(calls[c].take(iris, &space) != IRIS_OK);
        }
        /* An older header's, and a newer one's without and with its field. */
        calls[c].init(&space, sizeof(size_t));
        CHECK_EQUAL(space.size, sizeof(size_t));
        calls[c].init(&space, calls[c].known - sizeof(void *));
        CHECK_OK(calls[c].take(iris, &space));
        calls[c].init(&space, calls[c].known + 16);
        CHECK_OK(calls[c].take(iris, &space));
        CHECK_EQUAL(
            iris_i_sized_unknown(&space, calls[c].known, calls[c].unset), 0);
        space.bytes[calls[c].known + 9] = 1;
        CHECK(calls[c].take(iris, &space) != IRIS_OK);
    }
    for (size_t i = 0; i < NUM_BAD; i++) {
        CHECK_STATUS(iris_heap_stats_sized(iris, &space.stats, bad_sizes[i]),
                     IRIS_ERR_INVALID);
    }
    return 0;
}

TEST_GROUP_WITH(NULL, NULL, unit);
