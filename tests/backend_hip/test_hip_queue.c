/* SPDX-License-Identifier: MIT
 *
 * Back-pressure: of a stream that is full calls wait, and watch meanwhile, and
 * what is captured does not count. And what a GPU needs for streams and graphs,
 * which is taken before rank threads have kernels.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls that a stream takes before it is full, and that the runtime takes. */
#define FULL 512
#define MOST 1024
#define NAP_US 600000
#define HANG_S 60
#define MADE 20 /* streams and graphs of a rank */

/* What the bodies below use. */
struct scene {
    iris_t *iris;
    iris_stream_t *stream;
    iris_stream_t *other;
    uint64_t *words; /* 4: two waited for, two to write */
    iris_status_t status;
};

struct wait_args {
    const int64_t *context;
    uint64_t *word;
    useconds_t nap;
};

/* Waits until the word is 1, and then takes a while. */
IRIS_KERNEL(wait_and_nap, struct wait_args)
{
    if (args->word != NULL) {
        (void)iris_wait_until_u64(iris_dev_init(args->context), args->word,
                                  IRIS_CMP_EQ, 1);
    }
    usleep(args->nap);
}

static int make_scene(iris_t *iris, struct scene *scene)
{
    scene->iris = iris;
    CHECK_OK(iris_calloc(iris, 4, sizeof(uint64_t), (void **)&scene->words));
    CHECK_OK(iris_stream_create(iris, &scene->stream));
    CHECK_OK(iris_stream_create(iris, &scene->other));
    return 0;
}

static iris_status_t wait_on(const struct scene *scene, uint64_t *word,
                             useconds_t nap, iris_stream_t *stream)
{
    struct wait_args args = {iris_device_context(scene->iris), word, nap};

    return iris_launch(scene->iris, wait_and_nap, 1, 1, &args, sizeof args,
                       stream);
}

/* So many calls; how many of them succeeded. */
static int fill(const struct scene *scene, int count)
{
    int done = 0;

    while (done < count && iris_memset(scene->iris, scene->words + 2, 0, 8,
                                       scene->stream) == IRIS_OK) {
        done++;
    }
    return done;
}

static int captured_body(iris_t *iris, void *arg)
{
    struct scene scene;
    iris_graph_t *graph;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    CHECK_OK(wait_on(&scene, scene.words, 0, scene.stream));
    CHECK_EQUAL(fill(&scene, FULL - 100), FULL - 100);
    CHECK_OK(iris_capture_begin(iris, scene.stream));
    CHECK_EQUAL(fill(&scene, FULL), FULL);
    CHECK_OK(iris_capture_end(iris, scene.stream, &graph));
    /* Of a full stream it would not come back before the signal. */
    CHECK_OK(iris_graph_launch(iris, graph, scene.stream));
    CHECK_OK(iris_signal_on_stream(iris, scene.words, 1, 0, scene.other));
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    return 0;
}

static TEST(captured_calls_do_not_count)
{
    setenv("IRIS_TIMEOUT_MS", "5000", 1);
    harness_run(1, captured_body, NULL);
}

/* Calls between captures, until one finds the stream full. */
static int between_body(iris_t *iris, void *arg)
{
    struct scene scene;
    int calls = 1, done;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    CHECK_OK(wait_on(&scene, scene.words, 0, scene.stream));
    do {
        iris_graph_t *graph;

        CHECK_OK(iris_capture_begin(iris, scene.stream));
        CHECK_EQUAL(fill(&scene, 67), 67);
        CHECK_OK(iris_capture_end(iris, scene.stream, &graph));
        done = fill(&scene, 190);
        calls += done;
    } while (done == 190 && calls < MOST);
    CHECK_MESSAGE("IRIS_TIMEOUT_MS");
    CHECK(calls >= FULL && calls < MOST);
    CHECK_STATUS(iris_stream_synchronize(iris, scene.stream), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    return 0;
}

static TEST(calls_between_captures_count)
{
    setenv("IRIS_TIMEOUT_MS", "1000", 1);
    harness_run(1, between_body, NULL);
}

/* So many fills, and then launches of a graph of some until one fails for want
 * of room. */
struct graph_plan {
    int fills;
    int nodes;
    int least; /* calls that find room */
};

static int graph_body(iris_t *iris, void *arg)
{
    const struct graph_plan *plan = arg;
    struct scene scene;
    iris_graph_t *graph;
    int calls = plan->fills;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    CHECK_OK(iris_capture_begin(iris, scene.stream));
    CHECK_EQUAL(fill(&scene, plan->nodes), plan->nodes);
    CHECK_OK(iris_capture_end(iris, scene.stream, &graph));
    CHECK_OK(wait_on(&scene, scene.words, 0, scene.stream));
    CHECK_EQUAL(fill(&scene, plan->fills), plan->fills);
    while (calls < MOST &&
           iris_graph_launch(iris, graph, scene.stream) == IRIS_OK) {
        calls += plan->nodes;
    }
    CHECK_MESSAGE("IRIS_TIMEOUT_MS");
    CHECK(calls >= plan->least && calls < MOST);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_graph_launch(iris, graph, scene.stream)); /* beside nothing */
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    iris_graph_destroy(iris, graph);
    return 0;
}

static TEST(a_graph_counts_as_all_its_nodes)
{
    struct graph_plan small = {.fills = 0, .nodes = 100, .least = FULL};
    struct graph_plan large = {.fills = 250, .nodes = 450, .least = FULL};
    struct graph_plan too_large_beside_some = {
        .fills = FULL - 7, .nodes = 600, .least = FULL - 7};
    struct graph_plan too_large_beside_any = {.fills = 0, .nodes = MOST + 100};

    setenv("IRIS_TIMEOUT_MS", "1000", 1);
    alarm(HANG_S);
    harness_run(1, graph_body, &small);
    harness_run(1, graph_body, &large);
    harness_run(1, graph_body, &too_large_beside_some);
    harness_run(1, graph_body, &too_large_beside_any);
    alarm(0);
}

static void *call_on_full(void *arg)
{
    struct scene *scene = arg;

    scene->status =
        iris_memset(scene->iris, scene->words + 2, 0, 8, scene->stream);
    return NULL;
}

/* One thread's call waits for a stream that is full while another's deadline
 * passes: both get that error. */
static int ended_body(iris_t *iris, void *arg)
{
    struct scene scene;
    uint64_t *never;
    pthread_t thread;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    never = scene.words + 1;
    CHECK_OK(wait_on(&scene, scene.words, NAP_US, scene.stream));
    CHECK_OK(wait_on(&scene, NULL, NAP_US, scene.stream));
    CHECK_EQUAL(fill(&scene, FULL - 2), FULL - 2);
    CHECK_OK(wait_on(&scene, never, 0, scene.other));
    CHECK_EQUAL(pthread_create(&thread, NULL, call_on_full, &scene), 0);
    usleep(NAP_US / 2);
    CHECK_STATUS(iris_stream_synchronize(iris, scene.other), IRIS_ERR_TIMEOUT);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(scene.status, IRIS_ERR_TIMEOUT);
    CHECK_STATUS(wait_on(&scene, never, 0, scene.other), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris));
    CHECK_EQUAL(fill(&scene, 10), 10);
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    return 0;
}

static TEST(a_call_on_a_full_stream_ends_with_the_others)
{
    setenv("IRIS_TIMEOUT_MS", "1500", 1);
    harness_run(1, ended_body, NULL);
}

/* Each rank makes streams and graphs while the other's kernel waits for it. */
static int making_body(iris_t *iris, void *arg)
{
    struct scene scene;
    int other = 1 - iris_rank(iris);

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(wait_on(&scene, scene.words, 0, scene.other));
    for (int i = 0; i < MADE; i++) {
        iris_graph_t *graph;

        CHECK_OK(iris_stream_create(iris, &scene.stream));
        CHECK_OK(iris_capture_begin(iris, scene.stream));
        CHECK_EQUAL(fill(&scene, 1), 1);
        CHECK_OK(iris_capture_end(iris, scene.stream, &graph));
    }
    CHECK_OK(iris_signal_on_stream(iris, scene.words, 1, other, scene.stream));
    CHECK_OK(iris_stream_synchronize(iris, scene.other));
    return 0;
}

static void share_one_gpu(void)
{
    setenv("IRIS_TIMEOUT_MS", "60000", 1);
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "gpu", 1);
}

static TEST(rank_threads_make_streams_while_others_wait)
{
    struct hip_held before;

    share_one_gpu();
    hip_note(&before);
    alarm(HANG_S);
    harness_run(2, making_body, NULL);
    alarm(0);
    assert_int_equal(hip_found(&before), 0);
}

static int nothing_body(iris_t *iris, void *arg)
{
    return 0;
}

/* Nothing of what was made stays. */
static TEST(a_gpu_without_memory_for_streams_is_warned_of)
{
    struct harness_capture capture;
    struct hip_held before;

    share_one_gpu();
    hip_note(&before);
    (void)fakehip_fail("hipStreamCreateWithFlags:100:2");
    harness_capture(&capture);
    harness_run(2, nothing_body, NULL);
    assert_non_null(strstr(harness_captured(&capture),
                           "GPU 0 has no memory now for the streams and "
                           "graphs of ranks that share it"));
    free(capture.text);
    assert_int_equal(fakehip_fail(NULL), 1);
    assert_int_equal(hip_found(&before), 0);
}

/* Memory that there is not, while another rank's kernel waits. */
static int full_body(iris_t *iris, void *arg)
{
    struct scene scene;
    void *memory;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    if (iris_rank(iris) == 0) {
        CHECK_OK(wait_on(&scene, scene.words, 0, scene.stream));
    }
    CHECK_OK(iris_barrier(iris, scene.other, NULL));
    CHECK_STATUS(iris_malloc(iris, (size_t)200 << 20, &memory),
                 IRIS_ERR_NO_MEMORY);
    if (iris_rank(iris) == 1) {
        CHECK_OK(iris_signal_on_stream(iris, scene.words, 1, 0, scene.other));
    }
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    return 0;
}

static TEST(memory_that_runs_out_says_so_while_others_wait)
{
    share_one_gpu();
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    setenv("IRIS_HEAP_SIZE", "512M", 1);
    setenv("FAKEHIP_MEMORY", "150000000", 1);
    alarm(HANG_S);
    harness_run(2, full_body, NULL);
    alarm(0);
}

/* With two streams that all contexts share. */
static int streams_body(iris_t *iris, void *arg)
{
    const int *wanted = arg;
    iris_stream_t *streams[4];
    int count = 0;
    iris_status_t status = IRIS_OK;

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    while (status == IRIS_OK && count < *wanted) {
        status = iris_stream_create(iris, &streams[count]);
        count += status == IRIS_OK;
    }
    if (status != IRIS_OK) {
        CHECK_STATUS(status, IRIS_ERR_LIMIT);
        CHECK_MESSAGE("4 streams of this process use all 4 hardware queues "
                      "(GPU_MAX_HW_QUEUES)");
        CHECK_MESSAGE("IRIS_SPAWN=processes");
    }
    CHECK_EQUAL(status != IRIS_OK, iris_num_ranks(iris) == 2 && *wanted > 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    while (count > 0) {
        iris_stream_destroy(iris, streams[--count]);
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(rank_threads_get_no_more_streams_than_queues)
{
    int none = 0, two = 2;

    share_one_gpu();
    setenv("GPU_MAX_HW_QUEUES", "4", 1);
    setenv("FAKEHIP_QUIRKS", "shared-queues", 1);
    harness_run(2, streams_body, &none);
    harness_run(2, streams_body, &two);
    harness_run(2, streams_body, &two); /* those are given back */
    setenv("IRIS_SPAWN", "processes", 1);
    harness_run(3, streams_body, &none);
}

static TEST(one_rank_is_warned_of_streams_that_share_queues)
{
    struct harness_capture capture;
    int one = 1, four = 4;

    share_one_gpu();
    setenv("GPU_MAX_HW_QUEUES", "4", 1);
    harness_capture(&capture);
    harness_run(1, streams_body, &one);
    assert_null(strstr(harness_captured(&capture), "streams at once"));
    free(capture.text);
    harness_capture(&capture);
    harness_run(1, streams_body, &four);
    assert_non_null(strstr(harness_captured(&capture),
                           "makes stream 5 of this process on GPU 0, which "
                           "runs 4 streams at once (GPU_MAX_HW_QUEUES)"));
    free(capture.text);
}

static int launch_body(iris_t *iris, void *arg)
{
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* As where the program lets HIP move streams. */
static TEST(kernels_that_wait_need_streams_that_keep_their_queues)
{
    struct harness_capture capture;

    share_one_gpu();
    setenv("FAKEHIP_QUIRKS", "kernel-behind-kernel", 1);
    harness_run(3, launch_body, NULL);
    setenv("DEBUG_HIP_DYNAMIC_QUEUES", "1", 1);
    setenv("IRIS_DEVICE_TIMEOUT_MS", "1000", 1);
    harness_capture(&capture);
    assert_int_not_equal(iris_spawn(NULL, 3, launch_body, NULL), IRIS_OK);
    assert_non_null(strstr(harness_captured(&capture), "has not come to it"));
    free(capture.text);
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
    setenv("DEBUG_HIP_DYNAMIC_QUEUES", "0", 1);
    setenv("GPU_MAX_HW_QUEUES", "24", 1);
    harness_run(3, launch_body, NULL);
    unsetenv("FAKEHIP_QUIRKS");
}

static TEST(a_copy_that_waits_for_a_kernel_is_warned_of_once)
{
    static const char *const quirks[] = {"", "copy-behind-kernel:1",
                                         "copy-behind-kernel:1", ""};
    static const int ranks[] = {3, 1, 3, 3};
    static const char warning[] = "a copy does not pass a kernel that waits";
    struct harness_capture capture;
    const char *first;

    share_one_gpu();
    for (int i = 0; i < 4; i++) {
        setenv("FAKEHIP_QUIRKS", quirks[i], 1);
        harness_capture(&capture);
        harness_run(ranks[i], launch_body, NULL);
        first = strstr(harness_captured(&capture), warning);
        assert_int_equal(first != NULL, i == 2);
        if (first != NULL) {
            assert_non_null(strstr(first, "raise GPU_MAX_HW_QUEUES, set "
                                          "DEBUG_HIP_DYNAMIC_QUEUES=0 or "
                                          "HSA_ENABLE_SDMA=0, or use "
                                          "processes (IRIS_SPAWN=processes)"));
            assert_null(strstr(first + 1, warning));
        }
        free(capture.text);
    }
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
