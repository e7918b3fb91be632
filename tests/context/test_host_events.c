/* SPDX-License-Identifier: MIT
 *
 * Host calls that matter, as observers see them: before and after, with one
 * identity and what they are about.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"

#include <string.h>

#define MAX_EVENTS 256

/* What came, of this rank's own thread in this order; kernels on the CPU also
 * say so, from whichever thread runs them, and are left out. */
struct seen {
    int count;
    struct iris_host_event events[MAX_EVENTS];
};
#endif

static void note(void *self, const struct iris_host_event *event)
{
    struct seen *seen = self;

    if (event->op != IRIS_HOST_KERNEL && seen->count < MAX_EVENTS) {
        seen->events[seen->count++] = *event;
    }
}

struct nothing_args {
    int unused;
};

IRIS_KERNEL(nothing, struct nothing_args)
{
}

/* The pair of events of the only call of that kind since the last look. */
static int took(struct seen *seen, enum iris_host_op op, iris_status_t status,
                struct iris_host_event *event_p)
{
    int before = -1, after = -1;

    for (int i = 0; i < seen->count; i++) {
        if (seen->events[i].op == op && !seen->events[i].after) {
            CHECK(before < 0);
            before = i;
        } else if (seen->events[i].op == op) {
            CHECK(after < 0);
            after = i;
        }
    }
    CHECK(before >= 0 && after > before);
    CHECK_EQUAL(seen->events[before].id, seen->events[after].id);
    CHECK_EQUAL(seen->events[after].status, status);
    *event_p = seen->events[after];
    seen->count = 0;
    return 0;
}

#define TOOK(op, status)                          \
    do {                                          \
        if (took(all, op, status, &event) != 0) { \
            return 1;                             \
        }                                         \
        CHECK_EQUAL(event.rank, iris_rank(iris)); \
    } while (0)

static int on_a_stream(iris_t *iris, struct seen *all, uint64_t *words)
{
    static const char host[64];
    struct iris_host_event event;
    struct nothing_args args = {0};
    int next = (iris_rank(iris) + 1) % iris_num_ranks(iris);

    CHECK_OK(iris_launch(iris, nothing, 3, 32, &args, sizeof args, NULL));
    TOOK(IRIS_HOST_LAUNCH, IRIS_OK);
    CHECK(strcmp(event.kernel, "nothing") == 0 && event.grid == 3);
    CHECK_OK(iris_memcpy(iris, words, host, 32, NULL));
    TOOK(IRIS_HOST_COPY, IRIS_OK);
    CHECK(event.address == words && event.source == host);
    CHECK_EQUAL(event.target_rank, -1);
    CHECK_OK(iris_put_on_stream(iris, words + 4, host, 8, next, NULL));
    TOOK(IRIS_HOST_COPY, IRIS_OK);
    CHECK(event.target_rank == next && event.bytes == 8);
    CHECK_OK(iris_memset(iris, words + 2, 5, 8, NULL));
    TOOK(IRIS_HOST_SET, IRIS_OK);
    CHECK(event.value == 5);
    CHECK_OK(iris_signal_on_stream(iris, words + 7, 7, next, NULL));
    TOOK(IRIS_HOST_SIGNAL, IRIS_OK);
    CHECK(event.value == 7 && event.target_rank == next);
    CHECK_OK(iris_wait_on_stream(iris, words + 7, IRIS_CMP_EQ, 7, NULL));
    TOOK(IRIS_HOST_WAIT, IRIS_OK);
    CHECK(event.cmp == IRIS_CMP_EQ && event.address == words + 7);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    TOOK(IRIS_HOST_SYNCHRONIZE, IRIS_OK);
    return 0;
}

static int by_all(iris_t *iris, struct seen *all, uint64_t *words)
{
    struct iris_host_event event;
    int ranks[2] = {0, 1};
    iris_group_t *group;

    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    TOOK(IRIS_HOST_BARRIER, IRIS_OK);
    CHECK(event.stream != NULL);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    TOOK(IRIS_HOST_BARRIER, IRIS_OK);
    CHECK(event.stream == NULL);
    CHECK_OK(iris_broadcast(iris, words + 3, 8, 1, NULL));
    TOOK(IRIS_HOST_BROADCAST, IRIS_OK);
    CHECK_EQUAL(event.target_rank, 1);
    CHECK_OK(iris_group_create(iris, ranks, 2, &group));
    TOOK(IRIS_HOST_GROUP_CREATE, IRIS_OK);
    CHECK(event.group == group);
    CHECK_OK(iris_group_destroy(iris, group));
    TOOK(IRIS_HOST_GROUP_DESTROY, IRIS_OK);
    return 0;
}

static RANK_TEST(host_calls_are_seen_before_and_after, 2)
{
    struct seen seen = {.count = 0}, *const all = &seen;
    const struct iris_observer observer = {.host = note, .self = &seen};
    struct iris_host_event event;
    uint64_t *words;
    void *none;

    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observer));
    CHECK_OK(iris_calloc(iris, 64, 1, (void **)&words));
    TOOK(IRIS_HOST_ALLOC, IRIS_OK);
    CHECK(event.address == words && event.bytes == 64);
    CHECK_EQUAL(on_a_stream(iris, &seen, words), 0);
    CHECK_EQUAL(by_all(iris, &seen, words), 0);
    CHECK_STATUS(iris_malloc(iris, 0, &none), IRIS_ERR_INVALID);
    TOOK(IRIS_HOST_ALLOC, IRIS_ERR_INVALID);
    CHECK_OK(iris_free(iris, words));
    TOOK(IRIS_HOST_FREE, IRIS_OK);
    iris_i_hooks_remove(&iris->hooks, &observer);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(seen.count, 0);
    return 0;
}

TEST_GROUP(unit, one_node);
