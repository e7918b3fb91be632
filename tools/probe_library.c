/* SPDX-License-Identifier: MIT
 *
 * iris probe: checks that use the library: a collective with each variant, a
 * graph, a tensor.
 */
#include "config.h"

#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT ((size_t)512) /* elements of a rank */

/* Where each element is a member's number, from 1, or the sum of all numbers.
 */
static void judge_values(const struct probe *probe, const char *what,
                         const float *seen, bool is_gathered,
                         struct probe_found *found_p)
{
    int num_ranks = probe->args.num_ranks;
    size_t count = is_gathered ? COUNT * (size_t)num_ranks : COUNT;

    for (size_t i = 0; i < count && found_p->verdict == PROBE_OK; i++) {
        int sum = num_ranks * (num_ranks + 1) / 2;
        int expected = is_gathered ? (int)(i / COUNT) + 1 : sum;

        if (seen[i] != (float)expected) {
            found_p->verdict = PROBE_WRONG;
            snprintf(found_p->text, sizeof found_p->text,
                     "%s: rank %d, element %zu of %zu: expected %d, found %g",
                     what, probe->args.rank, i, count, expected,
                     (double)seen[i]);
        }
    }
}

static iris_status_t check_out(struct probe *probe, const char *what,
                               bool is_gathered, struct probe_found *found_p)
{
    size_t bytes = COUNT * sizeof(float) *
                   (is_gathered ? (size_t)probe->args.num_ranks : 1);
    float *seen = malloc(bytes);
    iris_status_t status =
        seen == NULL
            ? IRIS_ERR_NO_MEMORY
            : iris_memcpy_sync(probe->iris, seen, probe->args.out, bytes);

    if (status == IRIS_OK) {
        judge_values(probe, what, seen, is_gathered, found_p);
    }
    free(seen);
    return status;
}

/* Every rank's number, for each rank. */
static iris_status_t fill_in(struct probe *probe)
{
    size_t count = COUNT * (size_t)probe->args.num_ranks;
    float *words = malloc(count * sizeof *words);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    for (size_t i = 0; i < count && words != NULL; i++) {
        words[i] = (float)(probe->args.rank + 1);
    }
    if (words != NULL) {
        status = iris_memcpy_sync(probe->iris, probe->args.in, words,
                                  count * sizeof *words);
    }
    free(words);
    return status;
}

/* ---- Collectives ---- */

static const struct {
    const char *name;
    iris_ccl_variant_t variant;
    char kind; /* all_reduce, all_Gather, reduce_Scatter */
} rows[] = {
    {"all_reduce one_shot", IRIS_CCL_ONE_SHOT, 'r'},
    {"all_reduce two_shot", IRIS_CCL_TWO_SHOT, 'r'},
    {"all_reduce one_shot_packet", IRIS_CCL_ONE_SHOT_PACKET, 'r'},
    {"all_reduce two_shot_packet", IRIS_CCL_TWO_SHOT_PACKET, 'r'},
    {"all_reduce atomic", IRIS_CCL_ATOMIC, 'r'},
    {"all_reduce spinlock", IRIS_CCL_SPINLOCK, 'r'},
    {"all_reduce ring", IRIS_CCL_RING, 'r'},
    {"all_gather push", IRIS_CCL_PUSH, 'g'},
    {"all_gather pull", IRIS_CCL_PULL, 'g'},
    {"all_gather packet", IRIS_CCL_PACKET, 'g'},
    {"reduce_scatter direct", IRIS_CCL_DIRECT, 's'},
    {"reduce_scatter packet", IRIS_CCL_PACKET, 's'},
};

static iris_status_t collect(struct probe *probe, size_t row,
                             iris_stream_t *stream)
{
    const struct probe_args *args = &probe->args;
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = stream;
    if (rows[row].kind == 'g') {
        options.all_gather = rows[row].variant;
        return iris_all_gather(probe->iris, args->in, args->out, COUNT,
                               IRIS_DTYPE_F32, &options);
    }
    if (rows[row].kind == 's') {
        options.reduce_scatter = rows[row].variant;
        return iris_reduce_scatter(probe->iris, args->in, args->out, COUNT,
                                   IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &options);
    }
    options.all_reduce = rows[row].variant;
    return iris_all_reduce(probe->iris, args->in, args->out, COUNT,
                           IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &options);
}

/* ---- A graph, a tensor ---- */

static iris_status_t run_graph(struct probe *probe, struct probe_found *found_p)
{
    iris_graph_t *graph = NULL;
    iris_status_t status = iris_stream_synchronize(probe->iris, NULL), ended;

    status = status ? status : iris_capture_begin(probe->iris, probe->stream);
    if (status == IRIS_ERR_UNSUPPORTED) {
        snprintf(found_p->text, sizeof found_p->text,
                 "without graphs, which this backend does not have");
        return IRIS_OK;
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = collect(probe, 1, probe->stream);
    ended = iris_capture_end(probe->iris, probe->stream, &graph);
    status = status ? status : ended;
    for (int i = 0; i < 2 && status == IRIS_OK; i++) {
        status = iris_graph_launch(probe->iris, graph, probe->stream);
    }
    status =
        status ? status : iris_stream_synchronize(probe->iris, probe->stream);
    iris_graph_destroy(probe->iris, graph);
    return status ? status : check_out(probe, "graph", false, found_p);
}

static iris_status_t run_tensor(struct probe *probe,
                                struct probe_found *found_p)
{
    iris_value_t value = {.kind = IRIS_VALUE_FLOAT, .as = {.f = {7, 0}}};
    iris_tensor_t tensor;
    float seen[6] = {0};
    iris_status_t status =
        iris_full(probe->iris, IRIS_SHAPE(2, 3), value, NULL, &tensor);

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_memcpy_sync(probe->iris, seen, tensor.data, sizeof seen);
    for (int i = 0; i < 6 && status == IRIS_OK; i++) {
        if (seen[i] != 7) {
            found_p->verdict = PROBE_WRONG;
            snprintf(found_p->text, sizeof found_p->text,
                     "iris_full: rank %d, element %d of 6: expected 7, found "
                     "%g",
                     probe->args.rank, i, (double)seen[i]);
        }
    }
    (void)iris_tensor_free(probe->iris, &tensor);
    return status;
}

iris_status_t probe_library_run(struct probe *probe,
                                struct probe_found *found_p)
{
    iris_status_t status = fill_in(probe);

    for (size_t row = 0;
         row < sizeof rows / sizeof rows[0] && status == IRIS_OK; row++) {
        status = collect(probe, row, NULL);
        status = status ? status : iris_stream_synchronize(probe->iris, NULL);
        status = status ? status
                        : check_out(probe, rows[row].name,
                                    rows[row].kind == 'g', found_p);
    }
    status = status ? status : run_graph(probe, found_p);
    return status ? status : run_tensor(probe, found_p);
}
