/* SPDX-License-Identifier: MIT
 *
 * Traces: upstream's tests of device tracing in ours, and what a trace has
 * against what an observer has seen.
 */
#define IRIS_TRACE 1 /* before the device API */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 2
#define LANES 8
#define MAX_EVENTS 1024
#define PHASE 2050

struct exchange_args {
    const int64_t *context;
    int64_t *data;
    uint64_t *signals;
};

/* Every rank loads from, stores to and signals its partner, and waits for it:
 * 8 loads, 8 stores, a signal, a wait, an event of its own. */
IRIS_KERNEL(exchange, struct exchange_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    iris_dev_trace_span_t span = iris_dev_trace_begin(dev, PHASE);
    int partner = (dev.rank + dev.num_ranks / 2) % dev.num_ranks;

    IRIS_WG_LANES (wg, i, LANES) {
        int64_t value = iris_load(dev, &args->data[i], partner);

        iris_store(dev, &args->data[LANES + i], value + 1, partner);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, args->signals, 7, partner);
        (void)iris_wait_until_u64(dev, args->signals, IRIS_CMP_EQ, 7);
    }
    iris_dev_trace_end(dev, span);
}

static const int expected_ops[] = {PHASE, IRIS_OP_LOAD, IRIS_OP_STORE,
                                   IRIS_OP_WAIT};
#define NUM_EVENTS (1 + LANES + LANES + 1 + 1)
#define NUM_BYTES ((2 * LANES + 1) * 8)

/* On the CPU the loop's loads are one event, and so are its stores. If the
 * machine pauses the loop, they are more. */
static size_t least_events(iris_t *iris)
{
    return 1 + 2 * (size_t)(harness_on_gpu(iris) ? LANES : 1) + 1 + 1;
}

static int may_be(iris_t *iris, uint64_t events)
{
    return events >= least_events(iris) && events <= NUM_EVENTS;
}

static int run_exchange(iris_t *iris, void *memory)
{
    struct exchange_args args = {iris_device_context(iris), memory,
                                 (uint64_t *)memory + 2 * LANES};

    CHECK_OK(iris_launch(iris, exchange, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* The words of the device context about tracing. */
static int read_words(iris_t *iris, int64_t words[IRIS_CONTEXT_TAIL_WORDS])
{
    const int64_t *place = iris_device_context(iris) +
                           IRIS_CONTEXT_TRACE_ENABLED + iris_num_ranks(iris);

    CHECK_OK(harness_read(iris, words, place,
                          IRIS_CONTEXT_TAIL_WORDS * sizeof *words));
    return 0;
}

static int read_column(iris_t *iris, const int64_t *words, int column,
                       size_t width, void *to)
{
    CHECK_OK(harness_read(iris, to, (const void *)(uintptr_t)words[4 + column],
                          NUM_EVENTS * width));
    return 0;
}

/* ---- Upstream's tests, with our kernel ---- */

static RANK_TEST(nothing_is_recorded_unless_enabled, ALL_RANKS)
{
    int64_t words[IRIS_CONTEXT_TAIL_WORDS];
    void *memory;

    CHECK_OK(iris_calloc(iris, 1, 4096, &memory));
    CHECK(read_words(iris, words) == 0);
    for (int i = 0; i < IRIS_CONTEXT_TAIL_WORDS; i++) {
        CHECK_EQUAL(words[i], 0);
    }
    CHECK(run_exchange(iris, memory) == 0);
    CHECK_BAD(iris, iris_trace_reset(iris), IRIS_ERR_STATE, "tracing",
              "iris_trace_enable");
    CHECK_BAD(iris, iris_trace_export(iris, "t.json", 0), IRIS_ERR_STATE,
              "tracing", "iris_trace_enable");
    CHECK_EQUAL(iris_trace_begin(iris, PHASE), 0);
    return 0;
}

static int check_columns(iris_t *iris, const int64_t *words, size_t all)
{
    int32_t id[NUM_EVENTS], cur[NUM_EVENTS], target[NUM_EVENTS];
    int32_t payload[NUM_EVENTS];
    int64_t begin[NUM_EVENTS], end[NUM_EVENTS], address[NUM_EVENTS];
    int partner =
        (iris_rank(iris) + iris_num_ranks(iris) / 2) % iris_num_ranks(iris);
    const size_t loop = harness_on_gpu(iris) ? LANES : 1;
    const size_t least[] = {1, loop, loop + 1, 1},
                 most[] = {1, LANES, LANES + 1, 1};
    size_t count, sum = 0, bytes = 0;

    CHECK(read_column(iris, words, 0, 4, id) == 0);
    CHECK(read_column(iris, words, 4, 4, cur) == 0);
    CHECK(read_column(iris, words, 5, 4, target) == 0);
    CHECK(read_column(iris, words, 8, 8, begin) == 0);
    CHECK(read_column(iris, words, 9, 8, address) == 0);
    CHECK(read_column(iris, words, 10, 8, end) == 0);
    CHECK(read_column(iris, words, 12, 4, payload) == 0);
    for (size_t k = 0; k < sizeof expected_ops / sizeof *expected_ops; k++) {
        count = 0;
        for (size_t i = 0; i < all; i++) {
            count += id[i] == expected_ops[k];
        }
        CHECK(count >= least[k] && count <= most[k]);
        sum += count;
    }
    CHECK_EQUAL(sum, all);
    for (size_t i = 0; i < all; i++) {
        CHECK_EQUAL(cur[i], iris_rank(iris));
        CHECK(begin[i] > 0 && end[i] >= begin[i]);
        if (id[i] == IRIS_OP_LOAD || id[i] == IRIS_OP_STORE) {
            CHECK_EQUAL(target[i], partner);
            CHECK(iris_is_symmetric(iris, (void *)(uintptr_t)address[i]));
            bytes += (size_t)payload[i];
        }
    }
    CHECK_EQUAL(bytes, NUM_BYTES);
    return 0;
}

static RANK_TEST(columns_have_what_upstreams_have, ALL_RANKS)
{
    struct iris_trace_counts counts;
    int64_t words[IRIS_CONTEXT_TAIL_WORDS];
    uint32_t counters[2];
    void *memory;

    CHECK_OK(iris_calloc(iris, 1, 4096, &memory));
    CHECK_OK(iris_trace_enable(iris, MAX_EVENTS));
    CHECK(read_words(iris, words) == 0);
    CHECK_EQUAL(words[0], 1);
    CHECK_EQUAL(words[1], MAX_EVENTS);
    CHECK(run_exchange(iris, memory) == 0);
    CHECK_OK(
        harness_read(iris, &counters[0], (const void *)(uintptr_t)words[2], 4));
    CHECK_OK(
        harness_read(iris, &counters[1], (const void *)(uintptr_t)words[3], 4));
    CHECK(may_be(iris, counters[0]));
    CHECK_EQUAL(counters[1], counters[0]);
    CHECK(check_columns(iris, words, counters[0]) == 0);
    CHECK_OK(iris_trace_counts(iris, &counts));
    CHECK_EQUAL(counts.device_events, counters[0]);
    CHECK_EQUAL(counts.dropped, 0);
    CHECK_OK(iris_trace_reset(iris));
    CHECK_OK(iris_trace_counts(iris, &counts));
    CHECK_EQUAL(counts.device_events, 0);
    CHECK_EQUAL(counts.host_events, 0);
    return 0;
}

/* ---- No space ---- */

static RANK_TEST(what_finds_no_space_is_counted, RANKS)
{
    struct iris_trace_counts counts;
    int64_t words[IRIS_CONTEXT_TAIL_WORDS];
    int32_t pid[8], guard[8];
    void *memory;

    CHECK_OK(iris_calloc(iris, 1, 4096, &memory));
    CHECK_OK(iris_trace_enable(iris, 3));
    CHECK(read_words(iris, words) == 0);
    CHECK(run_exchange(iris, memory) == 0);
    CHECK_OK(iris_trace_counts(iris, &counts));
    CHECK_EQUAL(counts.device_events, 3);
    CHECK(may_be(iris, counts.dropped + 3));
    /* The first events stay, and behind the third element of a column nothing
     * is written. */
    CHECK_OK(
        harness_read(iris, pid, (const void *)(uintptr_t)words[4], sizeof pid));
    CHECK_EQUAL(pid[0], PHASE);
    CHECK_EQUAL(pid[1], IRIS_OP_LOAD);
    CHECK_EQUAL(pid[2], IRIS_OP_STORE);
    CHECK_OK(
        harness_read(iris, pid, (const void *)(uintptr_t)words[8], sizeof pid));
    memset(guard, 0, sizeof guard);
    CHECK(memcmp(pid + 3, guard, sizeof pid - 12) == 0);
    /* Enabling again makes space. */
    CHECK_OK(iris_trace_enable(iris, MAX_EVENTS));
    CHECK_OK(harness_write(iris, (uint64_t *)memory + 2 * LANES, guard, 8));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK(run_exchange(iris, memory) == 0);
    CHECK_OK(iris_trace_counts(iris, &counts));
    CHECK(may_be(iris, counts.device_events));
    CHECK_EQUAL(counts.dropped, 0);
    return 0;
}

/* ---- Loops ---- */

#define ELEMENTS 1000

struct loop_args {
    const int64_t *context;
    float *data;
    int stride;
};

/* Copies and adds: three series side by side, if the stride is 1. */
IRIS_KERNEL(add_up, struct loop_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int partner = (dev.rank + dev.num_ranks / 2) % dev.num_ranks;
    float *sum = args->data + 2 * ELEMENTS;

    IRIS_LANES (wg, i, ELEMENTS / (size_t)args->stride) {
        size_t at = i * (size_t)args->stride;
        float a = iris_load(dev, &args->data[at], partner);
        float b = iris_load(dev, &args->data[ELEMENTS + at], dev.rank);

        iris_store(dev, &sum[at], a + b, dev.rank);
    }
}

static int run_loop(iris_t *iris, struct loop_args *args, uint64_t *count_p)
{
    struct iris_trace_counts counts;

    CHECK_OK(iris_trace_reset(iris));
    CHECK_OK(iris_launch(iris, add_up, 1, 1, args, sizeof *args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_trace_counts(iris, &counts));
    CHECK_EQUAL(counts.dropped, 0);
    *count_p = counts.device_events;
    return 0;
}

/* A loop that is interrupted for long may be some events more. */
static RANK_TEST(accesses_of_a_loop_that_go_on_are_one_event, RANKS)
{
    struct loop_args args = {iris_device_context(iris), NULL, 1};
    int64_t words[IRIS_CONTEXT_TAIL_WORDS];
    int32_t payload[3 * ELEMENTS];
    uint64_t count, bytes = 0;

    CHECK_OK(iris_calloc(iris, 3 * ELEMENTS, 4, (void **)&args.data));
    CHECK_OK(iris_trace_enable(iris, 4 * ELEMENTS));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK(run_loop(iris, &args, &count) == 0);
    CHECK(harness_on_gpu(iris) ? count == 3 * ELEMENTS : count < ELEMENTS);
    CHECK(read_words(iris, words) == 0);
    CHECK_OK(harness_read(iris, payload, (const void *)(uintptr_t)words[4 + 12],
                          count * sizeof *payload));
    for (uint64_t i = 0; i < count; i++) {
        bytes += (uint64_t)payload[i];
    }
    CHECK_EQUAL(bytes, 3 * ELEMENTS * sizeof(float));
    args.stride = 2;
    CHECK(run_loop(iris, &args, &count) == 0);
    CHECK_EQUAL(count, 3 * ELEMENTS / 2);
    return 0;
}

static RANK_TEST(wrong_arguments_are_refused, RANKS)
{
    struct iris_heap_stats stats;
    char file[512];
    size_t rank = (size_t)iris_rank(iris);

    CHECK_BAD(iris, iris_trace_enable(iris, 0), IRIS_ERR_INVALID, "max_events",
              "pass 1 to");
    CHECK_BAD(iris, iris_trace_enable(iris, (size_t)1 << 31), IRIS_ERR_INVALID,
              "max_events", "pass 1 to");
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_BAD(iris, iris_trace_enable(iris, stats.free_bytes / 80 + 1),
              IRIS_ERR_NO_MEMORY, "events take", "raise IRIS_HEAP_SIZE");
    CHECK_STATUS(iris_trace_enable(iris, 10 + rank * 1000), IRIS_ERR_MISMATCH);
    CHECK_OK(iris_trace_enable(iris, 10));
    CHECK_BAD(iris, iris_trace_export(iris, NULL, 0), IRIS_ERR_INVALID, "file",
              "pass a name");
    CHECK_BAD(iris, iris_trace_export(iris, "trace.txt", 0), IRIS_ERR_INVALID,
              "file", ".json");
    CHECK_BAD(iris, iris_trace_name(iris, 3, "x"), IRIS_ERR_INVALID, "event 3",
              "pass 1024");
    CHECK_BAD(iris, iris_trace_name(iris, PHASE, NULL), IRIS_ERR_INVALID,
              "name", "pass at most");
    snprintf(file, sizeof file, "%s/none/trace.json", harness_folder());
    CHECK_OK(iris_broadcast(iris, file, sizeof file, 0, NULL));
    CHECK_STATUS(iris_trace_export(iris, file, 0), IRIS_ERR_SYSTEM);
    CHECK_STATUS(iris_trace_export(iris, "/dev/full/trace.json", 0),
                 IRIS_ERR_SYSTEM);
    return 0;
}

TEST_GROUP(matrix, one_node);
