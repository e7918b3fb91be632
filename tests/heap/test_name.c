/* SPDX-License-Identifier: MIT
 *
 * Names of allocations: in the list of what is allocated, and in messages.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This rank's allocations, as a trace has them. */
static int read_list(iris_t *iris, char **text_p)
{
    size_t bytes;
    FILE *file = open_memstream(text_p, &bytes);

    CHECK(file != NULL);
    iris_i_heap_list(&iris->heap.names, file, 0);
    CHECK(fclose(file) == 0);
    return 0;
}

static RANK_TEST(names_are_in_the_list_of_allocations, 2)
{
    char text[64], expected[200], *list;
    const char *freed;
    char *inbox, *outbox;
    size_t offset;

    CHECK_OK(iris_malloc(iris, 512, (void **)&inbox));
    CHECK_OK(iris_malloc(iris, 1024, (void **)&outbox));
    offset = (size_t)(inbox - (char *)(uintptr_t)iris_heap_bases(
                                  iris)[iris_rank(iris)]);
    CHECK_OK(iris_name(iris, inbox + 100, "in\"b\u00fcchse"));
    CHECK_OK(iris_name(iris, outbox, "outbox"));
    CHECK_OK(iris_name(iris, outbox, NULL));
    CHECK(read_list(iris, &list) == 0);
    snprintf(
        expected, sizeof expected,
        "{\"offset\":%zu,\"payload_size\":512,\"label\":\"in\\\"b\u00fcchse\","
        "\"born_ns\":",
        offset);
    CHECK(strstr(list, expected) != NULL);
    CHECK(strstr(list, "outbox") == NULL);
    free(list);
    CHECK_OK(iris_free(iris, inbox));
    CHECK(read_list(iris, &list) == 0);
    freed = strstr(list, "\"iris_freed\"");
    CHECK(freed != NULL && strstr(freed, "in\\\"b\u00fcchse") != NULL);
    *(char *)(uintptr_t)freed = '\0';
    CHECK(strstr(list, "chse") == NULL);
    free(list);
    CHECK_BAD(iris, iris_name(iris, inbox, "late"), IRIS_ERR_INVALID,
              "nothing is allocated", "iris_malloc");
    CHECK_BAD(iris, iris_name(iris, &text, "stack"), IRIS_ERR_INVALID,
              "nothing is allocated", "iris_malloc");
    memset(text, 'x', 60);
    text[60] = '\0';
    CHECK_BAD(iris, iris_name(iris, outbox, text), IRIS_ERR_INVALID, "60",
              "at most");
    return 0;
}

struct overrun_args {
    const int64_t *context;
    uint32_t *inbox;
};

IRIS_KERNEL(overrun, struct overrun_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_store(dev, &args->inbox[64], 1, dev.rank);
}

static int strayed(iris_t *iris, void *arg)
{
    struct overrun_args args = {.context = iris_device_context(iris)};

    CHECK_OK(iris_malloc(iris, 256, (void **)&args.inbox));
    CHECK_OK(iris_name(iris, args.inbox, "inbox"));
    CHECK_OK(iris_launch(iris, overrun, 1, 1, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE("\"inbox\"");
    CHECK_OK(iris_clear_error(iris));
    return 0;
}

static TEST(the_bounds_checker_says_the_name)
{
    setenv("IRIS_CHECK", "bounds", 1);
    harness_run(1, strayed, NULL);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
