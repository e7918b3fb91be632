/* SPDX-License-Identifier: MIT
 *
 * Exported traces: what files say is what observers have seen, arrows join the
 * right pairs, and no signal is seen before it was sent.
 */
#define IRIS_TRACE 1 /* before the device API */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>
#include <iris/device/wg_ccl.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"
#include "trace/trace.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANKS 4
#define WORDS 16

struct ring_args {
    const int64_t *context;
    uint64_t *data;
    uint64_t *signal; /* from the rank before this one */
    uint64_t *answer; /* from the rank behind it */
    uint64_t rounds;
};

/* Rounds of a put to the next rank, its signal, and an answer to it. */
IRIS_KERNEL(ring, struct ring_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int next = (dev.rank + 1) % dev.num_ranks;
    int last = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;

    for (uint64_t round = 1; round <= args->rounds; round++) {
        iris_wg_put_signal(wg, dev, args->data, args->data + WORDS,
                           WORDS * sizeof(uint64_t), args->signal, round, next);
        (void)iris_load(dev, args->data, next);
        if (iris_wg_leader(wg)) {
            (void)iris_wait_until_u64(dev, args->signal, IRIS_CMP_EQ, round);
            iris_signal_add(dev, args->answer, 1, last);
            (void)iris_wait_until_u64(dev, args->answer, IRIS_CMP_GE, round);
        }
        iris_wg_barrier(wg);
    }
}

struct combine_args {
    iris_ccl_device_t handle;
    float *data;
};

IRIS_KERNEL(combine, struct combine_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);

    iris_wg_all_reduce(wg, &ccl, args->data, args->data + WORDS, WORDS,
                       IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    iris_wg_ccl_end(wg, &ccl);
}

static int run_combine(iris_t *iris)
{
    struct combine_args args;
    void *memory;

    CHECK_OK(iris_calloc(iris, 1, 4096, &memory));
    CHECK_OK(iris_ccl_device_create(iris, NULL, 1, 0, &args.handle));
    args.data = memory;
    CHECK_OK(iris_launch(iris, combine, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_ccl_device_destroy(iris, &args.handle));
    CHECK_OK(iris_free(iris, memory));
    return 0;
}

static int run_ring(iris_t *iris, uint64_t rounds)
{
    struct ring_args args = {.context = iris_device_context(iris),
                             .rounds = rounds};
    void *memory;

    CHECK_OK(iris_calloc(iris, 1, 4096, &memory));
    args.data = memory;
    args.signal = args.data + 2 * WORDS;
    args.answer = args.signal + 1;
    CHECK_OK(iris_launch(iris, ring, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_free(iris, memory));
    return 0;
}

/* ---- Reading back ---- */

struct seen {
    uint64_t puts, stores, adds, waits, flows, counters, spans, calls;
    uint64_t without_end, held;
    uint64_t collectives, collective_bytes;
};

static int look(void *arg, const struct iris_event *event)
{
    struct seen *seen = arg;

    seen->puts += strcmp(event->name, "put") == 0 && event->ph == 'X';
    seen->stores += strcmp(event->name, "store") == 0;
    seen->adds += strcmp(event->name, "atomic_add") == 0;
    seen->waits += strcmp(event->name, "wait") == 0;
    seen->spans += strcmp(event->name, "my \"phase\"") == 0;
    seen->flows += event->ph == 'f' && strcmp(event->cat, "iris_flow") == 0;
    seen->counters += event->ph == 'C';
    seen->calls += strcmp(event->cat, "iris_host") == 0 ||
                   strcmp(event->cat, "iris_kernel") == 0;
    seen->held += event->held;
    if (strcmp(event->name, "workgroup collective") == 0 && event->dur_ns > 0) {
        seen->collectives++;
        seen->collective_bytes += event->payload;
    }
    seen->without_end += event->ph == 'i';
    return 0;
}

static int read_file(const char *path, struct seen *seen,
                     struct iris_trace_file *file)
{
    struct iris_json *json = malloc(sizeof *json);
    int ret;

    memset(seen, 0, sizeof *seen);
    ret = iris_i_json_open(json, path);
    if (ret == 0) {
        ret = iris_i_events_read(json, file, look, seen);
        iris_i_json_close(json);
    }
    if (ret != 0) {
        print_error("%s\n", json->error);
    }
    free(json);
    return ret;
}

struct file {
    char name[300];
    int merge;
};

#define ROUNDS 20

static int check_files(iris_t *iris, const struct file *file)
{
    uint64_t n = (uint64_t)iris_num_ranks(iris);
    uint64_t collectives = harness_on_gpu(iris) ? 0 : 1; /* GPUs record none */
    struct iris_trace_file about;
    struct seen seen;
    char path[400];
    char *dot = strstr(file->name, ".json");

    snprintf(path, sizeof path, "%.*s_rank%d%s", (int)(dot - file->name),
             file->name, iris_rank(iris), dot);
    if (file->merge) { /* one file takes the place of all */
        CHECK(access(path, F_OK) != 0);
        if (iris_rank(iris) != 0) {
            return 0;
        }
    }
    CHECK(read_file(file->merge ? file->name : path, &seen, &about) == 0);
    CHECK_EQUAL(about.rank, file->merge ? -1 : iris_rank(iris));
    CHECK_EQUAL(about.world_size, n);
    n = file->merge ? n : 1;
    CHECK_EQUAL(about.num_events, n * (6 * ROUNDS + collectives));
    CHECK_EQUAL(seen.collectives, n * collectives);
    CHECK_EQUAL(seen.collective_bytes, n * collectives * WORDS * sizeof(float));
    CHECK_EQUAL(seen.puts, n * ROUNDS);
    CHECK_EQUAL(seen.stores, n * ROUNDS);
    CHECK_EQUAL(seen.adds, n * ROUNDS);
    CHECK_EQUAL(seen.waits, n * 2 * ROUNDS);
    CHECK_EQUAL(seen.held, n * 2 * ROUNDS);
    CHECK_EQUAL(seen.spans, n);
    CHECK_EQUAL(seen.without_end, 0);
    CHECK(iris_num_ranks(iris) == 1 || seen.counters > 0);
    CHECK(seen.calls >= 3);
    CHECK(!file->merge || seen.flows == n * 3 * ROUNDS);
    return 0;
}

static int exported(iris_t *iris, void *arg)
{
    struct file own = *(const struct file *)arg;
    const struct file *file = &own;
    uint64_t span;

    /* Ranks of a launcher have folders of their own. */
    CHECK_OK(iris_broadcast(iris, own.name, sizeof own.name, 0, NULL));
    CHECK_OK(iris_trace_enable(iris, 1000));
    CHECK_OK(iris_trace_name(iris, 2051, "my \"phase\""));
    span = iris_trace_begin(iris, 2051);
    CHECK(span != 0);
    CHECK(run_ring(iris, ROUNDS) == 0);
    CHECK(run_combine(iris) == 0);
    iris_trace_end(iris, span);
    CHECK_OK(iris_trace_export(iris, file->name, file->merge));
    CHECK(check_files(iris, file) == 0);
    return 0;
}

static void run_exported(const char *name, int merge)
{
    struct file file = {.merge = merge};

    snprintf(file.name, sizeof file.name, "%s/%s", harness_folder(), name);
    harness_run_all(exported, &file);
}

static TEST(a_merged_trace_has_all_and_joins_signals_and_waits)
{
    run_exported("merged.json", 1);
}

static TEST(a_rank_has_a_file_of_its_own)
{
    run_exported("alone.json", 0);
}

#if HAVE_ZLIB
static TEST(a_name_with_gz_is_compressed)
{
    char path[400];
    unsigned char magic[2] = {0};
    FILE *stream;

    run_exported("small.json.gz", 1);
    snprintf(path, sizeof path, "%s/small.json.gz", harness_folder());
    stream = fopen(path, "r");
    if (stream != NULL) { /* no launcher of other ranks had the test */
        assert_int_equal(fread(magic, 1, 2, stream), 2);
        fclose(stream);
        assert_int_equal(magic[0], 0x1f);
        assert_int_equal(magic[1], 0x8b);
    }
}
#endif

/* ---- One clock ---- */

#define CLOCK_ROUNDS 2500

/* What the files of all ranks say. On a GPU each rank measures the device's
 * clock by itself, which has an error that the files know. */
static int check_clock(iris_t *iris, const char *name)
{
    struct iris_merge_report report;
    char *paths[RANKS], out[400];

    for (int i = 0; i < RANKS; i++) {
        paths[i] = malloc(400);
        snprintf(paths[i], 400, "%.*s_rank%d.json", (int)strlen(name) - 5, name,
                 i);
    }
    snprintf(out, sizeof out, "%s.all.json", name);
    CHECK_EQUAL(iris_i_merge(paths, RANKS, out, &report), 0);
    CHECK_EQUAL(report.waits, 2 * CLOCK_ROUNDS * RANKS);
    CHECK_EQUAL(report.joined, report.waits);
    CHECK(report.worst_early_ns <= 2 * report.device_error_ns);
    if (!harness_on_gpu(iris)) {
        CHECK_EQUAL(report.device_error_ns, 0);
        CHECK_EQUAL(report.early, 0);
    }
    for (int i = 0; i < RANKS; i++) {
        unlink(paths[i]);
        free(paths[i]);
    }
    unlink(out);
    return 0;
}

/* A million pairs of a signal and the wait that it ended in a long run. */
static int timed(iris_t *iris, void *arg)
{
    size_t times = harness_count(1000000 / (2 * CLOCK_ROUNDS * RANKS), 1);
    char name[300];

    memcpy(name, arg, sizeof name);
    CHECK_OK(iris_broadcast(iris, name, sizeof name, 0, NULL));
    CHECK_OK(iris_trace_enable(iris, 6 * CLOCK_ROUNDS));
    for (size_t i = 0; i < times; i++) {
        CHECK_OK(iris_trace_reset(iris));
        CHECK(run_ring(iris, CLOCK_ROUNDS) == 0);
        CHECK_OK(iris_trace_export(iris, name, 0));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        if (iris_rank(iris) == 0) {
            CHECK(check_clock(iris, name) == 0);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

static TEST(no_signal_is_seen_before_it_was_sent)
{
    char name[300] = "";

    snprintf(name, sizeof name, "%s/clock.json", harness_folder());
    harness_run_sim(RANKS, timed, name);
}

/* ---- The disk ---- */

static int full(iris_t *iris, void *arg)
{
    const char *folder = arg;
    char name[400];

    CHECK_OK(iris_trace_enable(iris, 100));
    CHECK(run_ring(iris, 5) == 0);
    snprintf(name, sizeof name, "%s/trace.json", folder);
    CHECK_STATUS(iris_trace_export(iris, name, 1), IRIS_ERR_SYSTEM);
    return 0;
}

/* The rank's file is there as a folder: nothing takes its place, and nothing is
 * left beside it. */
static TEST(what_cannot_be_written_leaves_nothing)
{
    char folder[300], path[400];

    snprintf(folder, sizeof folder, "%s/taken", harness_folder());
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/trace_rank0.json", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    harness_run(1, full, folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST_GROUP(rank, one_node);
