/* SPDX-License-Identifier: MIT
 *
 * Cases of launches, groups, the configuration, values, and arguments of
 * streams and traces.
 */
#include "config.h"

#include "fuzz/structs.h"

#include <iris/constants.h>
#include <iris/device/wg/kernel.h>

#define EXPECT(call, status, right) fuzz_expect(fuzz, right, call, status)

/* ---- struct iris_kernel ---- */

struct nothing_args {
    int64_t nothing;
};

IRIS_KERNEL(do_nothing, struct nothing_args)
{
    (void)wg;
    (void)args;
}

void fuzz_launch(struct fuzz *fuzz)
{
    struct iris_kernel kernel = *do_nothing;
    struct nothing_args args[2] = {{0}}; /* for one byte more */
    const struct iris_kernel *launched = &kernel;
    const void *given = args;
    unsigned grid = 1 + fuzz_choose(fuzz, 4), block = 1;
    size_t bytes = sizeof args[0];
    unsigned wrong = fuzz_choose(fuzz, 9);
    iris_status_t status;

    kernel.version += wrong == 0;
    kernel.args_bytes += wrong == 1;
    kernel.name = wrong == 2 ? NULL : kernel.name;
    kernel.cpu_entry = wrong == 3 ? NULL : kernel.cpu_entry;
    launched = wrong == 4 ? NULL : launched;
    given = wrong == 5 ? NULL : given;
    grid = wrong == 6 ? 0 : grid;
    block = wrong == 7 ? IRIS_LAUNCH_BLOCK_MAX + 1 : block;
    if (fuzz_one_in(fuzz, 4)) {
        bytes = (size_t)fuzz_edge(fuzz);
    }
    status = iris_launch(fuzz->iris, launched, grid, block, given, bytes, NULL);
    EXPECT("iris_launch", status,
           (status == IRIS_OK) ==
               ((wrong == 8 || wrong == 1) && bytes == kernel.args_bytes));
    fuzz_wait(fuzz);
}

/* ---- Lists of members ---- */

void fuzz_groups(struct fuzz *fuzz)
{
    int n = iris_num_ranks(fuzz->iris);
    int ranks[4], right, count = (int)fuzz_choose(fuzz, 5);
    iris_group_t *group = NULL, *none = (iris_group_t *)fuzz->host;
    iris_status_t status;

    for (int i = 0; i < 4; i++) {
        ranks[i] = fuzz_one_in(fuzz, 4) ? (int)fuzz_edge(fuzz)
                                        : (int)fuzz_choose(fuzz, 2);
    }
    count = fuzz_one_in(fuzz, 4) ? (int)fuzz_edge(fuzz) : count;
    right = count == 0 || count == n;
    for (int i = 0; i < n && count == n; i++) {
        for (int j = 0; j < i; j++) {
            right = right && ranks[i] != ranks[j];
        }
        right = right && ranks[i] >= 0 && ranks[i] < n;
    }
    status = iris_group_create(fuzz->iris, ranks, count, &group);
    EXPECT("iris_group_create", status, (status == IRIS_OK) == right);
    if (group != NULL) {
        status = iris_group_destroy(fuzz->iris, group);
        EXPECT("iris_group_destroy", status, status == IRIS_OK);
    }
    status = iris_group_create(fuzz->iris, NULL, 1 + (int)fuzz_choose(fuzz, 2),
                               &group);
    EXPECT("iris_group_create", status, status != IRIS_OK);
    status = iris_barrier(fuzz->iris, NULL, none);
    EXPECT("iris_barrier", status, status == IRIS_ERR_INVALID);
    EXPECT("iris_group_size", IRIS_OK,
           iris_group_size(fuzz->iris, none) < 0 &&
               iris_group_index(fuzz->iris, none) < 0 &&
               iris_group_member(fuzz->iris, NULL, n) < 0 &&
               iris_group_device(fuzz->iris, none) == NULL);
}

/* ---- struct iris_config ---- */

/* One field that no kind takes; a text is a choice's. */
static int spoil_config(struct iris_config *config, unsigned which)
{
    unsigned at = 0;

#define SPOIL_STRING(field)
#define SPOIL_CHOICE(field) config->field = "\001no such choice";
#define SPOIL_LIST(field) config->field = "no=choice";
#define SPOIL_BYTES(field) config->field = -2;
#define SPOIL_MS(field) config->field = INT64_MAX;
#define SPOIL_COUNT(field) config->field = 0;
#define SPOIL_RANK(field) config->field = -2;
#define SPOIL_FLAG(field) config->field = 2;
#define SPOIL(field, kind, env, value, choices, help) \
    if (at++ == which) {                              \
        SPOIL_##kind(field) return #kind[0] != 'S';   \
    }
    IRIS_CONFIG_ROWS(SPOIL)
#undef SPOIL
    config->size = which % sizeof config->size;
    return 1;
}

static int never(iris_t *iris, void *arg)
{
    (void)iris;
    *(int *)arg = 1;
    return 0;
}

void fuzz_config(struct fuzz *fuzz)
{
    struct iris_config config;
    iris_t *none = NULL;
    iris_status_t status;
    int ran = 0;

    iris_config_init(&config);
    if (!spoil_config(&config, fuzz_choose(fuzz, 48))) {
        return; /* a text, which may be anything */
    }
    if (fuzz_one_in(fuzz, 2)) {
        status = iris_init(&config, &none);
        EXPECT("iris_init", status, status == IRIS_ERR_CONFIG && none == NULL);
    } else {
        status = iris_spawn(&config, 1, never, &ran);
        EXPECT("iris_spawn", status, status == IRIS_ERR_CONFIG && !ran);
    }
    status = iris_spawn(NULL, -1 - (int)fuzz_choose(fuzz, 9), never, &ran);
    EXPECT("iris_spawn", status, status != IRIS_OK && !ran);
    status = iris_spawn(NULL, 1, NULL, &ran);
    EXPECT("iris_spawn", status, status != IRIS_OK);
    iris_config_init(&config);
    status = iris_config_set(
        &config, fuzz_one_in(fuzz, 2) ? NULL : "no such field", "1");
    EXPECT("iris_config_set", status, status != IRIS_OK);
}

/* ---- Traces ---- */

void fuzz_trace(struct fuzz *fuzz)
{
    int64_t events = fuzz_edge(fuzz);
    int event = (int)fuzz_edge(fuzz);
    struct iris_trace_counts counts;
    iris_status_t status;

    if (events <= 0 || events > (int64_t)1 << 30) {
        status = iris_trace_enable(fuzz->iris, (size_t)events);
        EXPECT("iris_trace_enable", status, status == IRIS_ERR_INVALID);
    }
    status = iris_trace_name(fuzz->iris, event, NULL);
    EXPECT("iris_trace_name", status, status != IRIS_OK);
    if (event < IRIS_TRACE_EVENT_MIN || event > IRIS_TRACE_EVENT_MAX) {
        status = iris_trace_name(fuzz->iris, event, "name");
        EXPECT("iris_trace_name", status, status != IRIS_OK);
    }
    iris_trace_end(fuzz->iris, iris_trace_begin(fuzz->iris, event));
    iris_trace_end(fuzz->iris, (uint64_t)events);
    status =
        iris_trace_counts(fuzz->iris, fuzz_one_in(fuzz, 2) ? NULL : &counts);
    EXPECT("iris_trace_counts", status, status != IRIS_OK);
}

/* ---- iris_value_t ---- */

static iris_value_t value_of(struct fuzz *fuzz)
{
    iris_value_t value;

    memset(&value, 0, sizeof value);
    value.kind =
        (iris_value_kind_t)(fuzz_one_in(fuzz, 3) ? fuzz_edge(fuzz)
                                                 : fuzz_choose(fuzz, 5));
    value.as.i = fuzz_edge(fuzz);
    if (fuzz_one_in(fuzz, 2)) {
        value.as.f[0] = (double)fuzz_edge(fuzz) / 7;
        value.as.f[1] = fuzz_one_in(fuzz, 2) ? 0 : 1e300 * 1e300;
    }
    return value;
}

static int is_value(iris_value_t value)
{
    return (unsigned)value.kind <= IRIS_VALUE_COMPLEX;
}

static iris_status_t create(struct fuzz *fuzz, iris_value_t *values,
                            const struct iris_tensor_options *options,
                            iris_tensor_t *made_p)
{
    switch (fuzz_choose(fuzz, 4)) {
    case 0:
        values[1] = values[2] = iris_value_int(0);
        return iris_full(fuzz->iris, IRIS_SHAPE(3), values[0], options, made_p);
    case 1:
        return iris_arange(fuzz->iris, values[0], values[1], values[2], options,
                           made_p);
    case 2:
        values[2] = iris_value_int(0);
        return iris_linspace(fuzz->iris, values[0], values[1], 7, options,
                             made_p);
    default:
        values[0] = values[1] = values[2] = iris_value_int(0);
        return iris_randint(fuzz->iris, fuzz_edge(fuzz), fuzz_edge(fuzz),
                            IRIS_SHAPE(3), options, made_p);
    }
}

void fuzz_values(struct fuzz *fuzz)
{
    iris_value_t values[3] = {value_of(fuzz), value_of(fuzz), value_of(fuzz)};
    iris_tensor_t made = {.owner = NULL};
    struct iris_tensor_options options;
    iris_status_t status;
    int bad = 0;

    iris_tensor_options_init(&options);
    if (fuzz_one_in(fuzz, 2)) {
        options.dtype = fuzz_one_in(fuzz, 3)
                            ? (int)fuzz_edge(fuzz)
                            : (int)fuzz_choose(fuzz, IRIS_DTYPE_COMPLEX128 + 1);
        bad = options.dtype != IRIS_DTYPE_DEFAULT &&
              iris_dtype_size((iris_dtype_t)options.dtype) == 0;
    }
    status = create(fuzz, values, &options, &made);
    bad |= !is_value(values[0]) || !is_value(values[1]) || !is_value(values[2]);
    EXPECT("creation", status, !bad || status == IRIS_ERR_INVALID);
    if (made.owner != NULL) {
        (void)iris_tensor_free(fuzz->iris, &made);
    }
}

/* ---- Streams and addresses ---- */

static void call_stream(struct fuzz *fuzz, void *place, int64_t bytes)
{
    iris_stream_t *none = (iris_stream_t *)fuzz->host;
    int rank = (int)fuzz_edge(fuzz), n = iris_num_ranks(fuzz->iris);
    int is_rank = rank >= 0 && rank < n;
    iris_tensor_t range = fuzz_buffer(place, IRIS_DTYPE_U8, bytes);
    enum verdict verdict = fuzz_judge(fuzz, &range);
    iris_status_t status = iris_stream_synchronize(fuzz->iris, none);

    EXPECT("iris_stream_synchronize", status, status == IRIS_ERR_INVALID);
    if (bytes != 0 && (fuzz_is_bad(verdict) || verdict == BLOCK)) {
        status =
            iris_memcpy(fuzz->iris, place, fuzz->block, (size_t)bytes, NULL);
        EXPECT("iris_memcpy", status,
               fuzz_is_bad(verdict) ? status == IRIS_ERR_INVALID : 1);
        fuzz_wait(fuzz);
        status = iris_memset(fuzz->iris, place, 1, (size_t)bytes, NULL);
        EXPECT("iris_memset", status,
               status == (fuzz_is_bad(verdict) ? IRIS_ERR_INVALID : IRIS_OK));
    }
    if (!is_rank || fuzz_is_bad(verdict)) {
        status = iris_put_on_stream(fuzz->iris, place, fuzz->host,
                                    (size_t)bytes, rank, NULL);
        EXPECT("iris_put_on_stream", status, status == IRIS_ERR_INVALID);
        status = iris_get_on_stream(fuzz->iris, fuzz->host, place,
                                    (size_t)bytes, rank, NULL);
        EXPECT("iris_get_on_stream", status, status == IRIS_ERR_INVALID);
    }
    status =
        iris_wait_on_stream(fuzz->iris, (uint64_t *)fuzz->block,
                            (iris_cmp_t)(6 + fuzz_choose(fuzz, 9)), 0, NULL);
    EXPECT("iris_wait_on_stream", status, status == IRIS_ERR_INVALID);
    status = iris_signal_on_stream(fuzz->iris, (uint64_t *)(fuzz->block + 1), 1,
                                   0, NULL);
    EXPECT("iris_signal_on_stream", status, status == IRIS_ERR_INVALID);
}

/* struct iris_heap_stats, by its size; addresses. */
void fuzz_streams(struct fuzz *fuzz)
{
    void *place = fuzz_place(fuzz, fuzz->block);
    int64_t bytes =
        fuzz_one_in(fuzz, 2) ? fuzz_edge(fuzz) : fuzz_choose(fuzz, 256);
    void *remote = NULL, *symmetric = NULL;
    struct iris_heap_stats stats;
    iris_tensor_t range = fuzz_buffer(place, IRIS_DTYPE_U8, bytes);
    enum verdict verdict = fuzz_judge(fuzz, &range);
    iris_status_t status;

    if (fuzz_one_in(fuzz, 2)) {
        call_stream(fuzz, place, bytes);
        return;
    }
    status = iris_as_remote(fuzz->iris, place, (int)fuzz_edge(fuzz), &remote);
    EXPECT("iris_as_remote", status, (status == IRIS_OK) == (remote != NULL));
    if (fuzz_is_bad(verdict)) {
        status = iris_as_symmetric(fuzz->iris, place, (size_t)bytes, &symmetric,
                                   NULL);
        EXPECT("iris_as_symmetric", status, status == IRIS_ERR_INVALID);
    }
    if (place != NULL && place != fuzz->block) {
        status = iris_free(fuzz->iris, place);
        EXPECT("iris_free", status, status == IRIS_ERR_INVALID);
        status = iris_free_later(fuzz->iris, place);
        EXPECT("iris_free_later", status, status == IRIS_ERR_INVALID);
    }
    status = iris_heap_stats_sized(fuzz->iris, &stats,
                                   fuzz_choose(fuzz, sizeof stats.size));
    EXPECT("iris_heap_stats_sized", status, status == IRIS_ERR_INVALID);
    status = iris_malloc_aligned(fuzz->iris, (size_t)bytes,
                                 3 + 2 * fuzz_choose(fuzz, 99), &symmetric);
    EXPECT("iris_malloc_aligned", status, status == IRIS_ERR_INVALID);
}
