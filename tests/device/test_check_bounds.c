/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=bounds: the first access outside of what is allocated ends the
 * kernel and is described; without the setting nothing happens.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>

#define ELEMENTS 25 /* 100 bytes: less than what is taken for them */

/* Accesses that stay in this process's memory, whatever they mean. */
enum stray {
    OFF_HEAP,
    FREED,
    FREED_ATOMIC,
    OVERRUN,
    OVERRUN_BEHIND,
    OVERRUN_BULK,
    OVERRUN_TILE,
    OVERRUN_NEAR,
    NEVER_ALLOCATED,
    TWICE_TRANSLATED,
    LIBRARY_S,
    NUM_STRAYS
};

struct stray_args {
    const int64_t *context;
    struct iris_dev_group *group;
    int32_t *array;   /* symmetric, ELEMENTS of them */
    int32_t *after;   /* the allocation behind it */
    int32_t *freed;   /* ELEMENTS, between two that are not freed */
    int32_t *outside; /* the program's */
    uint64_t *signal;
    enum stray what;
};

IRIS_KERNEL(go_astray, struct stray_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int32_t *array = args->array;
    int peer = (dev.rank + 1) % dev.num_ranks;

    if (wg.id != 1) {
        return;
    }
    switch (args->what) {
    case OFF_HEAP:
        iris_store(dev, args->outside, 1, dev.rank);
        break;
    case FREED:
        (void)iris_load(dev, &args->freed[3], peer);
        break;
    case FREED_ATOMIC:
        (void)iris_atomic_add(dev, &args->freed[3], 1, peer, IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
        break;
    case OVERRUN:
        IRIS_WG_LANES (wg, i, ELEMENTS + 1) {
            iris_store(dev, &array[i], 7, peer);
        }
        break;
    case OVERRUN_BEHIND:
        (void)iris_load(dev, &array[70], peer);
        break;
    case OVERRUN_BULK:
        iris_wg_put(wg, dev, args->outside, array, 4 * ELEMENTS + 2, peer);
        break;
    case OVERRUN_TILE: /* its last row, by 4 elements */
        iris_wg_tile_put(wg, dev, iris_tile(args->outside, 5, 5, 5, 4),
                         iris_tile(array, 5, 5, 6, 4), peer);
        break;
    case OVERRUN_NEAR:
        iris_get(dev, array, &array[ELEMENTS], peer);
        break;
    case NEVER_ALLOCATED:
        (void)iris_load(dev, &args->after[2048], peer);
        break;
    case TWICE_TRANSLATED:
        (void)iris_load(dev, (int32_t *)iris_dev_as_remote(dev, array, peer),
                        dev.rank);
        break;
    default:
        (void)iris_load(dev, args->context, peer);
        break;
    }
}

/* Everything here is right: nothing ends it. */
IRIS_KERNEL(keep_to_bounds, struct stray_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int32_t *array = args->array, *last = &array[ELEMENTS - 1], local = 4;
    int peer = (dev.rank + 1) % dev.num_ranks;

    if (wg.id != 0) {
        return;
    }
    iris_store(dev, last, 3, peer);
    iris_put(dev, &local, last, peer);
    iris_get(dev, last, &local, peer);
    iris_get(dev, last, (int32_t *)iris_dev_as_remote(dev, array, peer), peer);
    iris_wg_put(wg, dev, args->outside, array, 4 * ELEMENTS, peer);
    iris_wg_tile_put(wg, dev, iris_tile(args->outside, 4, 5, 5, 4),
                     iris_tile(array, 4, 5, 6, 4), peer);
    iris_wg_copy(wg, dev, array, args->after, 4 * ELEMENTS, peer, dev.rank);
    (void)iris_atomic_add(dev, array, 1, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_dev_barrier(wg, dev, args->group);
    iris_signal_add(dev, args->signal, 1, peer);
    (void)iris_wait_until(dev, args->signal, IRIS_CMP_GE, 1);
    iris_fence(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);
}

#if IRIS_ON_CPU /* all else is about the CPU */

/* What the message says of each. */
static const struct {
    const char *access, *why;
} strays[NUM_STRAYS] = {
    [OFF_HEAP] = {"store of 4 bytes", "not on this rank's heap"},
    [FREED] = {"load of 4 bytes", "that was freed: it is 12 bytes into a "
                                  "former allocation of 100 bytes"},
    [FREED_ATOMIC] = {"atomic add of 4 bytes", "12 bytes into"},
    [OVERRUN] = {"store of 4 bytes", "ends 4 bytes past the end of the "
                                     "allocation of 100 bytes"},
    [OVERRUN_BEHIND] = {"load of 4 bytes", "ends 184 bytes past the end"},
    [OVERRUN_BULK] = {"put of 102 bytes", "ends 2 bytes past the end"},
    [OVERRUN_TILE] = {"put of 20 bytes", "ends 16 bytes past the end"},
    [OVERRUN_NEAR] = {"get of 4 bytes", "ends 4 bytes past the end"},
    [NEVER_ALLOCATED] = {"load of 4 bytes", "the nearest allocation, of 100 "
                                            "bytes at heap offset"},
    [TWICE_TRANSLATED] = {"load of 4 bytes", "would be translated twice"},
    [LIBRARY_S] = {"load of 8 bytes", "the library's own"},
};

static int open_args(iris_t *iris, struct stray_args *args)
{
    static int32_t outside[2][ELEMENTS + 1]; /* one for each rank thread */
    void *array, *after, *freed, *signal;

    CHECK_OK(iris_malloc(iris, 4 * ELEMENTS, &array));
    CHECK_OK(iris_malloc(iris, 4 * ELEMENTS, &freed));
    CHECK_OK(iris_calloc(iris, 1, sizeof(uint64_t), &signal));
    CHECK_OK(iris_malloc(iris, 4 * ELEMENTS, &after));
    CHECK_OK(iris_free(iris, freed));
    *args = (struct stray_args){.context = iris_device_context(iris),
                                .group = iris_group_device(iris, NULL),
                                .array = array,
                                .after = after,
                                .freed = freed,
                                .outside = outside[iris_rank(iris) % 2],
                                .signal = signal};
    return 0;
}

static int check_message(const iris_t *iris, enum stray what)
{
    char text[80];

    snprintf(text, sizeof text, "rank %d: kernel go_astray, workgroup 1: %s",
             iris_rank(iris), strays[what].access);
    CHECK_MESSAGE(text);
    CHECK_MESSAGE(strays[what].why);
    return 0;
}

/* `arg` points to 1 if bounds are checked. */
static int stray_body(iris_t *iris, void *arg)
{
    int checked = *(int *)arg;
    struct stray_args args;

    CHECK_EQUAL(open_args(iris, &args), 0);
    for (int what = 0; what < NUM_STRAYS; what++) {
        args.what = (enum stray)what;
        CHECK_OK(iris_launch(iris, go_astray, 2, 1, &args, sizeof args, NULL));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL),
                     checked ? IRIS_ERR_INVALID : IRIS_OK);
        if (checked) {
            CHECK_EQUAL(check_message(iris, args.what), 0);
            CHECK_OK(iris_clear_error(iris));
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

static int right_body(iris_t *iris, void *arg)
{
    struct stray_args args;

    CHECK_EQUAL(open_args(iris, &args), 0);
    CHECK_OK(iris_launch(iris, keep_to_bounds, 2, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_free(iris, args.array));
    CHECK_OK(iris_free(iris, args.signal));
    return iris_free(iris, args.after);
}

static void with_check(int checked, iris_rank_fn body)
{
    setenv("IRIS_CHECK", checked ? "bounds" : "none", 1);
    harness_run(2, body, &checked);
    unsetenv("IRIS_CHECK");
}

static TEST(an_access_outside_of_what_is_allocated_ends_the_kernel)
{
    with_check(1, stray_body);
}

static TEST(without_the_check_it_does_not)
{
    with_check(0, stray_body);
}

static TEST(what_is_inside_passes_the_check)
{
    with_check(1, right_body);
}

/* A kernel may use memory that was freed, once it is allocated again. */
static int again_body(iris_t *iris, void *arg)
{
    struct stray_args args;
    void *again;

    CHECK_EQUAL(open_args(iris, &args), 0);
    CHECK_OK(iris_malloc(iris, 4 * ELEMENTS, &again));
    CHECK(again == args.freed);
    args.what = FREED;
    CHECK_OK(iris_launch(iris, go_astray, 2, 1, &args, sizeof args, NULL));
    return iris_barrier(iris, NULL, NULL);
}

static TEST(memory_that_is_allocated_again_is_not_freed)
{
    with_check(1, again_body);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, rank, one_node, standard);
#endif /* IRIS_ON_CPU */
