/* SPDX-License-Identifier: MIT
 *
 * A kernel on the CPU that touches the heap of a rank which is not mapped here
 * ends with that rank and why; one that keeps to its node does not.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>

enum touch { STORE, ADD, WG_PUT, REMOTE_POINTER, NUM_TOUCHES };

struct touch_args {
    const int64_t *context;
    uint32_t *word;
    int32_t rank;
    enum touch what;
};

IRIS_KERNEL(touch_rank, struct touch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t value = 1;

    if (args->what == STORE) {
        iris_store(dev, args->word, value, args->rank);
    } else if (args->what == ADD) {
        (void)iris_atomic_add(dev, args->word, value, args->rank, IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
    } else if (args->what == WG_PUT) {
        iris_wg_put(wg, dev, &value, args->word, sizeof value, args->rank);
    } else {
        *(uint32_t *)iris_dev_as_remote(dev, args->word, args->rank) = value;
    }
}

#if IRIS_ON_CPU /* all else is about the CPU */

static int touch(iris_t *iris, struct touch_args *args, int rank)
{
    char text[64];

    args->rank = rank;
    CHECK_OK(iris_launch(iris, touch_rank, 1, 1, args, sizeof *args, NULL));
    if (iris_is_reachable(iris, rank)) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        return 0;
    }
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_UNREACHABLE);
    snprintf(text, sizeof text,
             "rank %d: kernel touch_rank, workgroup 0:", iris_rank(iris));
    CHECK_MESSAGE(text);
    snprintf(text, sizeof text, "rank %d's heap is not mapped", rank);
    CHECK_MESSAGE(text);
    return iris_clear_error(iris);
}

static int touch_body(iris_t *iris, void *arg)
{
    struct touch_args args = {.context = iris_device_context(iris)};
    void *word;

    CHECK_OK(iris_calloc(iris, 4, sizeof *args.word, &word));
    args.word = (uint32_t *)word + iris_rank(iris); /* who writes it */
    CHECK(iris_is_reachable(iris, iris_rank(iris)));
    CHECK(!iris_is_reachable(iris, 3 - iris_rank(iris)));
    for (int what = 0; what < NUM_TOUCHES; what++) {
        args.what = (enum touch)what;
        for (int rank = 0; rank < 4; rank++) {
            CHECK_EQUAL(touch(iris, &args, rank), 0);
        }
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, word);
}

static TEST(a_kernel_that_touches_an_unreachable_rank_ends)
{
    setenv("IRIS_NODES", "2", 1);
    setenv("IRIS_TRANSPORT", "none", 1);
    harness_run(4, touch_body, NULL);
    unsetenv("IRIS_TRANSPORT");
    unsetenv("IRIS_NODES");
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, rank, standard);
#endif /* IRIS_ON_CPU */
