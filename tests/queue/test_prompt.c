/* SPDX-License-Identifier: MIT
 *
 * Who runs what is enqueued on the CPU: a host that synchronizes at once runs
 * the library's kernels itself, and a worker all the rest, whether anybody
 * waits for it or not.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#define ATTEMPTS 10000
#define LEFT_OUT "on a GPU no thread of the host runs kernels"

#if IRIS_ON_CPU
#include "context/context.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* Runs of kernels, by who ran them. */
struct runs {
    pthread_t host;
    atomic_int by_host;
    atomic_int by_worker;
};

static void note(void *self, const struct iris_host_event *event)
{
    struct runs *runs = self;

    if (event->op != IRIS_HOST_KERNEL || !event->after) {
        return;
    }
    if (pthread_equal(pthread_self(), runs->host)) {
        atomic_fetch_add(&runs->by_host, 1);
    } else {
        atomic_fetch_add(&runs->by_worker, 1);
    }
}

struct store_args {
    uint64_t *word;
    atomic_int *begun; /* kernels, in this process's own memory */
};

/* Gives what comes behind it the time to be first. */
IRIS_KERNEL(store_late, struct store_args)
{
    atomic_fetch_add(args->begun, 1);
    for (int i = 0; i < 200; i++) {
        if (__atomic_load_n(args->word, __ATOMIC_RELAXED) == 1) {
            break;
        }
        sched_yield();
    }
    __atomic_store_n(args->word, 7, __ATOMIC_RELAXED);
}

static int signal_and_wait(iris_t *iris, uint64_t *word)
{
    CHECK_OK(iris_signal_on_stream(iris, word, 1, iris_rank(iris), NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* Until the host has run some itself: the worker is at times faster. */
static int become_prompt(iris_t *iris, struct runs *runs, uint64_t *word)
{
    int before = atomic_load(&runs->by_host);

    for (int i = 0; i < ATTEMPTS && atomic_load(&runs->by_host) < before + 5;
         i++) {
        CHECK_EQUAL(signal_and_wait(iris, word), 0);
    }
    CHECK(atomic_load(&runs->by_host) >= before + 5);
    return 0;
}

IRIS_KERNEL(do_nothing, struct store_args)
{
}

/* Nobody waits for it, and it runs. */
static int check_unattended(iris_t *iris, struct runs *runs, uint64_t *word)
{
    atomic_int begun = 0;
    struct store_args args = {word, &begun};
    int before = atomic_load(&runs->by_worker);

    CHECK_OK(iris_signal_on_stream(iris, word, 2, iris_rank(iris), NULL));
    while (atomic_load(&runs->by_worker) == before) {
        sched_yield();
    }
    CHECK_EQUAL(become_prompt(iris, runs, word), 0);
    before = atomic_load(&runs->by_worker);
    CHECK_OK(iris_launch(iris, store_late, 1, 1, &args, sizeof args, NULL));
    while (atomic_load(&runs->by_worker) == before) {
        sched_yield();
    }
    return 0;
}

/* A program's kernel may never end, so the host runs none; and what comes
 * behind it waits for it. */
static int check_order(iris_t *iris, struct runs *runs, uint64_t *word)
{
    atomic_int begun = 0;
    struct store_args args = {word, &begun};

    for (int i = 0; i < 200; i++) {
        int before = atomic_load(&runs->by_worker);

        *word = 0;
        CHECK_OK(iris_launch(iris, store_late, 1, 1, &args, sizeof args, NULL));
        while (atomic_load(&begun) == i) {
            sched_yield();
        }
        CHECK_EQUAL(signal_and_wait(iris, word), 0);
        CHECK(atomic_load(&runs->by_worker) > before);
        CHECK_EQUAL(*word, 1);
        before = atomic_load(&runs->by_worker);
        CHECK_OK(iris_signal_on_stream(iris, word, 1, iris_rank(iris), NULL));
        CHECK_OK(iris_launch(iris, do_nothing, 1, 1, &args, sizeof args, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK(atomic_load(&runs->by_worker) > before);
    }
    return 0;
}

/* What the host runs waits for another of its streams. */
static int check_streams(iris_t *iris, uint64_t *word)
{
    iris_stream_t *other;

    CHECK_OK(iris_stream_create(iris, &other));
    for (uint64_t i = 3; i < 23; i++) {
        CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, i, NULL));
        CHECK_OK(iris_signal_on_stream(iris, word, i, iris_rank(iris), other));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(iris_stream_synchronize(iris, other));
    }
    iris_stream_destroy(iris, other);
    return 0;
}

static RANK_TEST(a_host_that_waits_at_once_runs_it, 2)
{
    struct runs runs = {.host = pthread_self()};
    const struct iris_observer observer = {.host = note, .self = &runs};
    uint64_t *word;
    int ret;

    CPU_ONLY(iris, LEFT_OUT);
    CHECK_OK(iris_calloc_typed(iris, 1, &word));
    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observer));
    ret = become_prompt(iris, &runs, word) ||
          check_unattended(iris, &runs, word) ||
          check_order(iris, &runs, word) || check_streams(iris, word);
    iris_i_hooks_remove(&iris->hooks, &observer);
    return ret;
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, rank, standard);
#endif /* IRIS_ON_CPU */
