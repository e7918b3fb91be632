/* SPDX-License-Identifier: MIT
 *
 * What observers are given beside the operation itself: the values that it
 * read, wrote or exchanged, what ended a wait, and the kernel's run on the
 * host. Several may watch, and one may end a kernel.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "base/base.h"
#include "context/context.h"
#endif

#include <string.h>

struct values_args {
    const int64_t *context;
    uint64_t *words; /* 8 of them, all zero at first */
};

IRIS_KERNEL(exchange_values, struct values_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *w = args->words;
    int32_t *half = (int32_t *)&w[4];

    iris_store(dev, &w[0], 5, dev.rank);
    (void)iris_load(dev, &w[0], dev.rank);
    (void)iris_atomic_add(dev, &w[0], 3, dev.rank, IRIS_RELAXED, IRIS_SCOPE_WG);
    (void)iris_atomic_cas(dev, &w[0], 8, 9, dev.rank, IRIS_RELAXED,
                          IRIS_SCOPE_WG);
    (void)iris_atomic_xchg(dev, &w[0], 7, dev.rank, IRIS_RELAXED,
                           IRIS_SCOPE_WG);
    iris_get(dev, &w[0], &w[1], dev.rank);
    iris_atomic_store(dev, half, -2, dev.rank, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    (void)iris_wait_until(dev, half, IRIS_CMP_LT, -1);
    (void)iris_test(dev, &w[1], IRIS_CMP_EQ, 6);
    (void)iris_wait_until_any(dev, w, 2, NULL, IRIS_CMP_GE, 7);
    (void)iris_test_any(dev, w, 2, NULL, IRIS_CMP_EQ, 1);
}

struct pass_args {
    const int64_t *context;
    uint64_t *ball;
};

/* Rank 0's first poll fails: nobody answers before it has asked. */
IRIS_KERNEL(pass_ball, struct pass_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg) && dev.rank == 0) {
        (void)iris_test(dev, args->ball, IRIS_CMP_EQ, 2);
        iris_signal_set(dev, args->ball, 1, 1);
        (void)iris_wait_until(dev, args->ball, IRIS_CMP_EQ, 2);
    } else if (iris_wg_leader(wg) && dev.rank == 1) {
        (void)iris_wait_until(dev, args->ball, IRIS_CMP_EQ, 1);
        iris_signal_set(dev, args->ball, 2, 0);
    }
}

#if IRIS_ON_CPU /* all else is about the CPU */

#define MAX_EVENTS 64

struct record {
    size_t count;
    struct iris_cpu_event events[MAX_EVENTS]; /* after the operations */
    size_t num_before;
    iris_status_t answer; /* to the event before operation `answer_to` */
    uint64_t answer_to;
    size_t num_host;
    struct iris_host_event host[MAX_EVENTS];
};

static iris_status_t note(void *self, const struct iris_cpu_event *event)
{
    struct record *record = self;

    if (!event->after) {
        record->num_before++;
        if (event->id == record->answer_to) {
            return iris_i_fail(NULL, record->answer, "the observer's reason");
        }
    } else if (record->count < MAX_EVENTS) {
        record->events[record->count++] = *event;
    }
    return IRIS_OK;
}

static void note_host(void *self, const struct iris_host_event *event)
{
    struct record *record = self;

    if (event->op == IRIS_HOST_KERNEL && record->num_host < MAX_EVENTS) {
        record->host[record->num_host++] = *event;
    }
}

/* The events after each operation of exchange_values. */
static const struct row {
    enum iris_op op;
    int write;
    uint64_t value;
    uint64_t expected;
    uint64_t seen;
    int held;
    size_t word;
} rows[] = {
    {IRIS_OP_STORE, 1, 5, 0, 0, 0, 0},
    {IRIS_OP_LOAD, 0, 0, 0, 5, 0, 0},
    {IRIS_OP_ATOMIC_ADD, 1, 3, 0, 5, 0, 0},
    {IRIS_OP_ATOMIC_CAS, 1, 9, 8, 8, 0, 0},
    {IRIS_OP_ATOMIC_XCHG, 1, 7, 0, 9, 0, 0},
    {IRIS_OP_GET, 0, 0, 0, 7, 0, 0},
    {IRIS_OP_GET, 1, 7, 0, 0, 0, 1},
    {IRIS_OP_STORE, 1, 0xfffffffe, 0, 0, 0, 4},
    {IRIS_OP_WAIT, 0, 0xffffffff, 0, 0xfffffffe, 1, 4},
    {IRIS_OP_WAIT, 0, 6, 0, 7, 0, 1},
    {IRIS_OP_WAIT, 0, 7, 0, 7, 1, 0}, /* the first signal of the set */
    {IRIS_OP_WAIT, 0, 1, 0, 0, 0, 0}, /* none of it */
};
#define NUM_ROWS (sizeof rows / sizeof *rows)

static int check_values(const struct record *record, const uint64_t *words)
{
    CHECK_EQUAL(record->count, NUM_ROWS);
    for (size_t i = 0; i < NUM_ROWS; i++) {
        const struct iris_cpu_event *event = &record->events[i];

        if (event->op != rows[i].op || event->write != rows[i].write ||
            event->value != rows[i].value ||
            event->expected != rows[i].expected ||
            event->seen != rows[i].seen || event->held != rows[i].held ||
            event->address != &words[rows[i].word] ||
            event->polls != (rows[i].op == IRIS_OP_WAIT)) {
            return harness_failed(__FILE__, __LINE__, "event differs",
                                  (long long)i, -1);
        }
    }
    return 0;
}

/* A kernel's run is one event of the host around all of its operations. */
static int check_run(const struct record *record)
{
    CHECK_EQUAL(record->num_host, 2);
    CHECK_EQUAL(record->host[0].op, IRIS_HOST_KERNEL);
    CHECK_EQUAL(record->host[0].after, 0);
    CHECK_EQUAL(record->host[1].after, 1);
    CHECK_EQUAL(record->host[1].status, IRIS_OK);
    CHECK_EQUAL(record->host[1].id, record->host[0].id);
    CHECK_EQUAL(record->host[0].grid, 1);
    CHECK_EQUAL(record->host[0].block, 64);
    CHECK(strcmp(record->host[0].kernel, "exchange_values") == 0);
    CHECK_EQUAL(record->events[0].launch, record->host[0].id);
    return 0;
}

static RANK_TEST(observers_get_the_values_that_operations_exchange, 1, 2)
{
    struct record first = {0}, second = {0};
    const struct iris_observer observers[] = {
        {.device = note, .host = note_host, .self = &first},
        {.device = note, .self = &second}};
    struct values_args args = {iris_device_context(iris), NULL};
    void *words;

    CPU_ONLY(iris, "nobody observes a GPU");
    CHECK_OK(iris_calloc(iris, 8, sizeof(uint64_t), &words));
    args.words = words;
    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observers[0]));
    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observers[1]));
    CHECK_OK(
        iris_launch(iris, exchange_values, 1, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_i_hooks_remove(&iris->hooks, &observers[0]);
    CHECK_EQUAL(check_values(&first, args.words), 0);
    CHECK_EQUAL(check_values(&second, args.words), 0);
    CHECK_EQUAL(check_run(&first), 0);
    CHECK_OK(
        iris_launch(iris, exchange_values, 1, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_i_hooks_remove(&iris->hooks, &observers[1]);
    CHECK_EQUAL(first.count, NUM_ROWS);
    CHECK_EQUAL(second.count, 2 * NUM_ROWS);
    return iris_free(iris, words);
}

static RANK_TEST(an_observer_gets_the_poll_that_ended_a_wait, 2)
{
    struct record record = {0};
    const struct iris_observer observer = {.device = note, .self = &record};
    struct pass_args args = {iris_device_context(iris), NULL};
    const struct iris_cpu_event *last;
    void *ball;

    CPU_ONLY(iris, "nobody observes a GPU");
    CHECK_OK(iris_calloc(iris, 1, sizeof(uint64_t), &ball));
    args.ball = ball;
    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observer));
    CHECK_OK(iris_launch(iris, pass_ball, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_i_hooks_remove(&iris->hooks, &observer);
    last = &record.events[record.count - 1];
    if (iris_rank(iris) == 0) {
        CHECK_EQUAL(record.count, 3);
        CHECK_EQUAL(record.events[0].held, 0);
        CHECK_EQUAL(record.events[0].polls, 1);
        CHECK_EQUAL(last->op, IRIS_OP_WAIT);
        CHECK_EQUAL(last->seen, 2);
        CHECK_EQUAL(last->held, 1);
        CHECK(last->polls >= 1);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, ball);
}

static RANK_TEST(an_observer_can_end_a_kernel_before_an_operation, 1)
{
    struct record record = {.answer = IRIS_ERR_MISMATCH, .answer_to = 4};
    const struct iris_observer observer = {.device = note, .self = &record};
    struct values_args args = {iris_device_context(iris), NULL};
    uint64_t seen[2];
    void *words;

    CPU_ONLY(iris, "nobody observes a GPU");
    CHECK_OK(iris_calloc(iris, 8, sizeof(uint64_t), &words));
    args.words = words;
    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observer));
    CHECK_OK(
        iris_launch(iris, exchange_values, 1, 64, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("the observer's reason");
    CHECK_OK(iris_clear_error(iris));
    iris_i_hooks_remove(&iris->hooks, &observer);
    CHECK_EQUAL(record.count, 3);
    CHECK_EQUAL(record.num_before, 4);
    CHECK_OK(harness_read(iris, seen, words, sizeof seen));
    CHECK_EQUAL(seen[0], 8); /* the fourth, a compare-and-swap, was not done */
    return iris_free(iris, words);
}

static TEST(there_is_a_limit_on_observers)
{
    struct iris_observer observers[IRIS_MAX_OBSERVERS + 1] = {{.self = NULL}};
    struct iris_hooks hooks = {0};
    size_t i;

    for (i = 0; i < IRIS_MAX_OBSERVERS; i++) {
        assert_int_equal(iris_i_hooks_add(&hooks, &observers[i]), IRIS_OK);
    }
    assert_int_equal(iris_i_hooks_add(&hooks, &observers[i]), IRIS_ERR_LIMIT);
    iris_i_hooks_remove(&hooks, &observers[3]);
    assert_int_equal(iris_i_hooks_add(&hooks, &observers[i]), IRIS_OK);
    assert_false(iris_i_hooks_watch_device(&hooks));
}

TEST_GROUP(rank);
#endif /* IRIS_ON_CPU */
