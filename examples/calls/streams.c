/* SPDX-License-Identifier: MIT
 *
 * Streams, launches, graphs, groups, barriers, and traces.
 */
#include "calls.h"

struct twice_args {
    float *values;
    size_t count;
};

IRIS_KERNEL(twice, struct twice_args)
{
    IRIS_LANES (wg, i, args->count)
        args->values[i] *= 2;
}

static void use_streams(iris_t *iris, float *values)
{
    float host[256] = {1, 2, 3};

    iris_stream_t *stream;
    check(iris_stream_create(iris, &stream));

    struct twice_args args = {values, 256};
    check(iris_memcpy(iris, values, host, sizeof host, stream));
    check(iris_launch(iris, twice, 4, 64, &args, sizeof args, stream));
    check(iris_stream_synchronize(iris, stream)); /* waits, returns errors */

    check(iris_memcpy_sync(iris, host, values, sizeof host));
    EXPECT(host[2] == 6);

    check(iris_memset(iris, values, 0, 1024, stream));
    iris_stream_destroy(iris, stream);

    iris_stream_t *wrapped; /* NULL: the default stream of the GPU */
    check(iris_stream_wrap(iris, NULL, &wrapped));
    void *native = iris_stream_native(iris, wrapped); /* NULL on the CPU */
    iris_stream_destroy(iris, wrapped);
    printf("%s\n", native == NULL ? "the default stream" : "a stream");
}

static void use_remote_access(iris_t *iris, float *inbox, uint64_t *signal)
{
    float data[64] = {1};
    int peer = 1 - iris_rank(iris);

    check(iris_put_on_stream(iris, inbox, data, sizeof data, peer, NULL));
    check(iris_signal_on_stream(iris, signal, 1, peer, NULL));
    check(iris_wait_on_stream(iris, signal, IRIS_CMP_GE, 1, NULL));
    check(iris_get_on_stream(iris, data, inbox, sizeof data, peer, NULL));

    check(iris_put_signal_on_stream(iris, inbox, data, sizeof data, signal, 2,
                                    IRIS_SIGNAL_SET, peer, NULL));
    check(iris_wait_on_stream(iris, signal, IRIS_CMP_GE, 2, NULL));

    iris_tile_t from = iris_tile(data, 8, 8, 8, sizeof(float));
    iris_tile_t to = iris_tile(inbox + 64, 8, 8, 8, sizeof(float));
    check(iris_tiles_on_stream(iris, IRIS_PUT, &to, &from, 1, peer, NULL));
    check(iris_barrier(iris, NULL, NULL)); /* all ranks are done */
}

static void use_graphs(iris_t *iris, float *values)
{
    struct twice_args args = {values, 256};
    iris_stream_t *stream;
    iris_graph_t *graph;

    check(iris_stream_create(iris, &stream));
    iris_status_t status = iris_capture_begin(iris, stream);
    if (status == IRIS_ERR_UNSUPPORTED)
        return; /* no GPU */
    check(status);
    check(iris_launch(iris, twice, 4, 64, &args, sizeof args, stream));
    check(iris_capture_end(iris, stream, &graph));

    for (int i = 0; i < 100; i++)
        check(iris_graph_launch(iris, graph, stream));
    check(iris_stream_synchronize(iris, stream));
    iris_graph_destroy(iris, graph);
}

struct publish_args {
    const int64_t *context;
    struct iris_dev_plan *plan; /* from iris_plan_device() */
    float *values;
    uint32_t epoch;
};

IRIS_KERNEL(publish, struct publish_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, 64)
        args->values[i] = (float)i;
    iris_plan_publish(wg, dev, args->plan, 0, args->epoch,
                      4); /* 4 workgroups */

    if (wg.id == 3 && iris_plan_wait(wg, dev, args->plan, 0, args->epoch))
        IRIS_WG_LANES (wg, i, 64)
            args->values[64 + i] += 1; /* the peer's values have arrived */

    if (wg.id == 3 &&
        iris_plan_wait_reusable(wg, dev, args->plan, 0, args->epoch))
        IRIS_WG_LANES (wg, i, 64)
            args->values[i] = 0;

    if (iris_plan_arrived(dev, args->plan, 0, args->epoch) &&
        iris_plan_reusable(dev, args->plan, 0, args->epoch))
        return; /* neither waits */
}

static void use_plans(iris_t *iris, float *values)
{
    struct iris_plan_segment segments[2];
    for (int rank = 0; rank < 2; rank++)
        segments[rank] =
            (struct iris_plan_segment){.from_rank = rank,
                                       .to_rank = 1 - rank,
                                       .src = values,
                                       .dst = values + 64,
                                       .bytes = 64 * sizeof(float)};

    struct iris_plan_options options;
    iris_plan_t *plan;
    iris_plan_options_init(&options);
    check(iris_plan_create(iris, segments, 2, &options, &plan)); /* all ranks */

    struct publish_args args = {iris_device_context(iris),
                                iris_plan_device(iris, plan), values, 0};
    for (int i = 0; i < 3; i++) {
        check(iris_plan_begin(iris, plan, NULL, &args.epoch));
        check(iris_launch(iris, publish, 4, 64, &args, sizeof args, NULL));
        check(iris_plan_end(iris, plan));
    }

    iris_plan_state_t state;
    check(iris_plan_state(iris, plan, &state));
    EXPECT(state == IRIS_PLAN_COMPLETE);
    check(iris_plan_abort(iris, plan)); /* if something went wrong */
    check(iris_plan_destroy(iris, plan));
}

static void use_groups(iris_t *iris)
{
    int ranks[2] = {1, 0}; /* in this order */
    iris_group_t *group;
    check(iris_group_create(iris, ranks, 2, &group));
    EXPECT(iris_group_size(iris, group) == 2);
    EXPECT(iris_group_index(iris, group) == 1 - iris_rank(iris));
    EXPECT(iris_group_member(iris, group, 0) == 1);
    EXPECT(iris_group_translate(iris, group, 0, NULL) == 1);
    EXPECT(iris_group_device(iris, group) != NULL); /* for iris_dev_barrier() */

    check(iris_device_barrier(iris, NULL, group)); /* does not block the host */
    check(iris_barrier(iris, NULL, group));        /* does */

    int number = iris_rank(iris) + 10;
    check(iris_broadcast(iris, &number, sizeof number, 0, NULL));
    EXPECT(number == 10);
    check(iris_group_destroy(iris, group));
}

static void use_traces(iris_t *iris)
{
    struct iris_trace_counts counts;

    check(iris_trace_enable(iris, 10000)); /* all ranks */
    check(iris_trace_name(iris, 2100, "my step"));
    uint64_t span = iris_trace_begin(iris, 2100);
    check(iris_barrier(iris, NULL, NULL));
    iris_trace_end(iris, span);
    check(iris_trace_counts(iris, &counts));
    EXPECT(counts.host_events > 0 && counts.dropped == 0);
    check(iris_trace_export(iris, "calls.json", 1)); /* rank 0 merges */
    check(iris_trace_reset(iris));
}

static void register_image(void)
{
    /* Code that iriscc generates does this. */
    static struct iris_gpu_image image = {.version = IRIS_GPU_IMAGE_VERSION};
    iris_gpu_image_add(&image);
    iris_gpu_image_remove(&image);
}

static int rank_main(iris_t *iris, void *arg)
{
    uint64_t *signal;
    float *values;

    check(iris_calloc_typed(iris, 256, &values));
    check(iris_calloc_typed(iris, 1, &signal));
    use_streams(iris, values);
    use_remote_access(iris, values, signal);
    use_graphs(iris, values);
    use_plans(iris, values);
    use_groups(iris);
    use_traces(iris);
    return arg == NULL ? 0 : 1;
}

int main(void)
{
    register_image();
    check(iris_spawn(NULL, 2, rank_main, NULL));
    return 0;
}
