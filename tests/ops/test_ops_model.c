/* SPDX-License-Identifier: MIT
 *
 * What fused operations are expected to take, and how many chunks follow from
 * that.
 */
#include "config.h"

#include "support/harness.h"

#include "ops/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const devices[] = {"NVIDIA H100 80GB HBM3", "NVIDIA H200",
                                      "AMD Instinct MI300X", "another", "CPU"};
#define NUM_DEVICES 5
static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                      IRIS_DTYPE_BF16};

static struct iris_ops_rates rates_of(int device)
{
    return iris_i_ops_default_rates(devices[device], device < NUM_DEVICES - 1);
}

static struct iris_ops_size size_of(int op, int64_t m, int64_t n, int64_t k)
{
    struct iris_ops_size size = {.m = m,
                                 .n = n,
                                 .k = k,
                                 .members = 4,
                                 .rows = m,
                                 .op = op,
                                 .dtype = IRIS_DTYPE_BF16};

    return size;
}

typedef void (*visit_fn)(const struct iris_ops_rates *rates,
                         const struct iris_ops_size *size);

/* Each operation and type, of sizes from 1 to 16384, on each device. */
static void each_case(visit_fn visit)
{
    for (int i = 0; i < NUM_DEVICES * 4 * 3; i++) {
        struct iris_ops_rates rates = rates_of(i % NUM_DEVICES);
        int op = i / NUM_DEVICES % 4;

        rates.at[IRIS_RATE_HIDDEN] = i % 3 * 0.45;
        rates.at[IRIS_RATE_HIDDEN_SUMS] = rates.at[IRIS_RATE_HIDDEN];

        for (int64_t side = 1; side <= 16384; side *= 2) {
            for (int64_t members = 2; members <= 8; members *= 2) {
                struct iris_ops_size size =
                    size_of(op, side, side / 2 + 1, 2 * side);

                size.members = members;
                size.dtype = dtypes[i / NUM_DEVICES / 4];
                visit(&rates, &size);
            }
        }
    }
}

static double best_us(const struct iris_ops_rates *rates,
                      const struct iris_ops_size *size)
{
    struct iris_ops_times times = iris_i_ops_expect(rates, size);

    return times.us[times.best];
}

/* Chunks never cost more than they are expected to save, and no call is faster
 * than the longer of its parts. */
static void check_choice(const struct iris_ops_rates *rates,
                         const struct iris_ops_size *size)
{
    struct iris_ops_times times = iris_i_ops_expect(rates, size);

    assert_in_range(times.best, 1, times.most);
    assert_true(times.best <= rates->at[IRIS_RATE_MOST]);
    assert_true(times.most <= size->rows);
    assert_true(times.us[times.best] <= times.us[1]);
    for (int n = 2; n <= times.most; n++) {
        assert_true(times.us[n] >= times.product_us);
        assert_true(times.us[n] >= times.collective_us);
        assert_true(n > rates->at[IRIS_RATE_MOST] ||
                    size->m % (n * rates->block) != 0 ||
                    times.us[times.best] <= times.us[n] ||
                    times.us[n] >= IRIS_OPS_WORTH * times.us[1]);
    }
    if (rates->at[IRIS_RATE_HIDDEN] <= 0) {
        assert_int_equal(times.best, 1);
    }
}

static void a_choice_is_never_slower_than_no_chunks(void **state)
{
    (void)state;
    each_case(check_choice);
}

#define MORE(field)                                                   \
    {                                                                 \
        struct iris_ops_size more = *size;                            \
                                                                      \
        more.field += more.field / 3 + 1;                             \
        assert_true(iris_i_ops_expect(rates, &more).us[1] >=          \
                    iris_i_ops_expect(rates, size).us[1] * 0.999999); \
    }

static void check_larger(const struct iris_ops_rates *rates,
                         const struct iris_ops_size *size)
{
    MORE(m);
    MORE(n);
    MORE(k);
}

static void larger_calls_take_no_less_time(void **state)
{
    (void)state;
    each_case(check_larger);
}

static void check_rates(const struct iris_ops_rates *rates,
                        const struct iris_ops_size *size)
{
    const int per_second[] = {IRIS_RATE_LINK, IRIS_RATE_PAIR, IRIS_RATE_MEMORY};
    const int waits[] = {IRIS_RATE_LAUNCH, IRIS_RATE_SIGNAL};
    struct iris_ops_rates other;

    for (int i = 0; i < 3; i++) {
        other = *rates;
        other.at[per_second[i]] *= 2;
        assert_true(best_us(&other, size) <=
                    iris_i_ops_expect(rates, size).us[1]);
    }
    for (int i = 0; i < 2; i++) {
        other = *rates;
        other.at[waits[i]] *= 2;
        assert_true(iris_i_ops_expect(&other, size).us[1] >=
                    iris_i_ops_expect(rates, size).us[1]);
    }
    other = *rates;
    other.at[IRIS_RATE_HIDDEN] = other.at[IRIS_RATE_HIDDEN_SUMS] = 1;
    for (int n = 2; n <= iris_i_ops_expect(rates, size).most; n++) {
        assert_true(iris_i_ops_expect(&other, size).us[n] <=
                    iris_i_ops_expect(rates, size).us[n]);
    }
}

static void better_rates_take_no_more_time(void **state)
{
    (void)state;
    each_case(check_rates);
}

/* A product and a transport of about the same time gain most by chunks, those of
 * which one is nothing do not, and neither do small ones. */
static void chunks_are_for_large_calls_of_two_parts(void **state)
{
    struct iris_ops_rates h200 = rates_of(1);
    struct iris_ops_size even =
        size_of(IRIS_OPS_MATMUL_ALL_REDUCE, 8192, 8192, 2048);
    struct iris_ops_size deep =
        size_of(IRIS_OPS_MATMUL_ALL_REDUCE, 8192, 512, 65536);
    struct iris_ops_size small =
        size_of(IRIS_OPS_MATMUL_ALL_REDUCE, 64, 64, 64);

    (void)state;
    assert_int_equal(iris_i_ops_expect(&h200, &even).best, 1);
    h200.at[IRIS_RATE_HIDDEN_SUMS] = 0.9; /* as if it had been measured */
    h200.at[IRIS_RATE_MOST] = IRIS_OPS_CHUNKS_MOST;
    assert_in_range(iris_i_ops_expect(&h200, &even).best, 2,
                    IRIS_OPS_CHUNKS_MOST);
    assert_int_equal(iris_i_ops_expect(&h200, &deep).best, 1);
    assert_int_equal(iris_i_ops_expect(&h200, &small).best, 1);
    even.members = 1;
    assert_int_equal(iris_i_ops_expect(&h200, &even).best, 1);
    assert_true(iris_i_ops_expect(&h200, &even).collective_us <= 0);
}

/* bf16 on two H100: in two chunks these shapes took so many percent of one
 * chunk's time; 0: not measured. The library takes two where that is less, and
 * never where it is more. */
static void two_h100_take_two_chunks_where_they_were_faster(void **state)
{
    static const int64_t shapes[][3] = {
        {2048, 2048, 2048}, {4096, 4096, 4096},  {8192, 8192, 8192},
        {8192, 4096, 1024}, {16384, 1024, 4096}, {4096, 8192, 8192},
        {3072, 3072, 3072}, {4100, 4096, 4096},  {5000, 5000, 5000},
        {6144, 6144, 6144}, {16384, 4096, 4096}};
    static const int percent[][11] = {
        [IRIS_OPS_MATMUL_ALL_REDUCE] = {131, 110, 103, 112, 110, 105},
        [IRIS_OPS_ALL_GATHER_MATMUL] = {171, 87, 91, 100, 69, 91, 0, 0, 114, 93,
                                        85},
        [IRIS_OPS_MATMUL_ALL_GATHER] = {159, 111, 96, 113, 110, 98, 0, 0, 0, 97,
                                        94},
        [IRIS_OPS_MATMUL_REDUCE_SCATTER] = {302, 91, 91, 94, 92, 91, 112, 109,
                                            108, 92, 89}};
    struct iris_ops_rates h100 = rates_of(0);

    (void)state;
    for (int i = 0; i < 4 * 11; i++) {
        const int64_t *s = shapes[i % 11];
        struct iris_ops_size size = size_of(i / 11, s[0], s[1], s[2]);
        int share = percent[i / 11][i % 11];

        size.members = 2;
        size.rows = size.op == IRIS_OPS_MATMUL_ALL_REDUCE ? s[0] : s[0] / 2;
        assert_int_equal(iris_i_ops_expect(&h100, &size).best,
                         share > 0 && share < 99 ? 2 : 1);
        size.by_column = 1; /* as if it were, which was not measured */
        assert_int_equal(iris_i_ops_expect(&h100, &size).best, 1);
    }
}

/* Chunks whose rows do not fill blocks compute more. */
static void ragged_chunks_are_not_worth_it(void **state)
{
    struct iris_ops_rates h100 = rates_of(0);
    struct iris_ops_size size =
        size_of(IRIS_OPS_ALL_GATHER_MATMUL, 4096, 4096, 4096);

    (void)state;
    size.members = 2;
    size.rows = 2048;
    assert_int_equal(iris_i_ops_expect(&h100, &size).best, 2);
    size.m = 4352;
    size.rows = 2176; /* 17 blocks */
    assert_int_equal(iris_i_ops_expect(&h100, &size).best, 1);
    size.m = 4095; /* the other member has less */
    size.rows = 2048;
    assert_int_equal(iris_i_ops_expect(&h100, &size).best, 1);
}

/* A file's rates stand in for the library's, those of the other kind of device
 * do not; points of products are sorted, and one size counts once. */
static void a_files_rates_come_first(void **state)
{
    struct iris_rate file[] = {
        {IRIS_RATE_LINK, 1, IRIS_DTYPE_F32, 0, 123},
        {IRIS_RATE_PAIR, 0, IRIS_DTYPE_F32, 0, 5},
        {IRIS_RATE_PRODUCT, 1, IRIS_DTYPE_BF16, 2e9, 20},
        {IRIS_RATE_PRODUCT, 1, IRIS_DTYPE_BF16, 1e9, 10},
        {IRIS_RATE_PRODUCT, 1, IRIS_DTYPE_BF16, 2e9, 99},
    };
    struct iris_ccl_tuning tuning = {.rates = file, .num_rates = 5};
    struct iris_ops_rates own = rates_of(1), rates = own;
    const struct iris_ops_curve *curve =
        &rates.product[iris_i_ops_rate_type(IRIS_DTYPE_BF16)];

    (void)state;
    iris_i_ops_apply_rates(&tuning, 1, &rates);
    assert_true(rates.at[IRIS_RATE_LINK] > 122.9);
    assert_true(rates.at[IRIS_RATE_LINK] < 123.1);
    assert_true(rates.at[IRIS_RATE_PAIR] >= own.at[IRIS_RATE_PAIR]);
    assert_int_equal(curve->count, 2);
    assert_true(curve->points[0].size < curve->points[1].size);
    assert_true(curve->points[1].rate < 21);
    assert_int_equal(rates.product[0].count, own.product[0].count);
    assert_string_equal(rates.source, "rates of IRIS_CCL_TUNING");
}

/* ---- In a job ---- */

/* The chunks that a call of these sizes is planned with. */
static int planned(iris_t *iris, int chunks, int *planned_p)
{
    iris_tensor_t matrix = {.dtype = IRIS_DTYPE_F32,
                            .ndim = 2,
                            .shape = {512, 512},
                            .strides = {512, 1}};
    iris_tensor_t tensors[] = {matrix, matrix, matrix};
    struct iris_ops_options options;
    struct iris_ops_call call = {.name = "test",
                                 .op = IRIS_OPS_MATMUL_ALL_REDUCE,
                                 .a = &tensors[0],
                                 .b = &tensors[1],
                                 .out = &tensors[2]};

    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_malloc(iris, 512 * 512 * 4, &tensors[i].data));
    }
    iris_ops_options_init(&options);
    options.chunks = chunks;
    CHECK_OK(iris_i_ops_check(iris, &call, &options));
    *planned_p = call.plan.chunks;
    return 0;
}

/* On a machine that hides all of a transport that takes as long as the product,
 * a call has chunks where ranks have devices of their own; the environment's and
 * the call's numbers come first. */
static int planned_body(iris_t *iris, void *arg)
{
    int expected = *(int *)arg, chunks, shared = harness_on_gpu(iris);

    CHECK_EQUAL(planned(iris, 0, &chunks), 0);
    CHECK_EQUAL(chunks, shared && expected == 8 ? 1 : expected);
    CHECK_EQUAL(planned(iris, 5, &chunks), 0);
    CHECK_EQUAL(chunks, 5);
    return 0;
}

static void the_file_and_the_environment_decide(void **state)
{
    static const char rates[] = "format 2\n"
                                "rate cpu hidden_all_reduce any any 1\n"
                                "rate cpu launch any any 0.001\n"
                                "rate cpu signal any any 0.001\n"
                                "rate cpu memory any any 100000\n"
                                "rate cpu link any any 10\n"
                                "rate cpu pair any any 10\n"
                                "rate cpu product f32 1000 1.3\n";
    int eight = 8, three = 3, one = 1;
    char path[256];
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/rates", harness_folder());
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(rates, file) >= 0);
    assert_int_equal(fclose(file), 0);
    /* A CPU library's products of parts have other bits. */
    setenv("IRIS_BLAS", "none", 1);
    harness_run(2, planned_body, &one);
    setenv("IRIS_CCL_TUNING", path, 1);
    harness_run(2, planned_body, &eight);
    setenv("IRIS_OPS_CHUNKS", "3", 1);
    harness_run(2, planned_body, &three);
    unsetenv("IRIS_OPS_CHUNKS");
    unsetenv("IRIS_CCL_TUNING");
    unsetenv("IRIS_BLAS");
}

static int wrong_body(iris_t *iris, void *arg)
{
    iris_tensor_t empty = {.dtype = IRIS_DTYPE_F32, .ndim = 2};

    (void)arg;
    empty.shape[0] = empty.shape[1] = empty.strides[0] = empty.strides[1] = 1;
    CHECK_OK(iris_malloc(iris, 64, &empty.data));
    CHECK_BAD(
        iris,
        iris_matmul_all_reduce(iris, &empty, &empty,
                               &(iris_tensor_t){.data = (char *)empty.data + 32,
                                                .dtype = IRIS_DTYPE_F32,
                                                .ndim = 2,
                                                .shape = {1, 1},
                                                .strides = {1, 1}},
                               NULL),
        IRIS_ERR_CONFIG, "/nonexistent/rates", "iris-bench --tune");
    return 0;
}

static void a_file_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    setenv("IRIS_CCL_TUNING", "/nonexistent/rates", 1);
    harness_run(2, wrong_body, NULL);
    unsetenv("IRIS_CCL_TUNING");
}

static int TEST_FILE(unit, one_node)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_is_never_slower_than_no_chunks),
        cmocka_unit_test(larger_calls_take_no_less_time),
        cmocka_unit_test(better_rates_take_no_more_time),
        cmocka_unit_test(chunks_are_for_large_calls_of_two_parts),
        cmocka_unit_test(two_h100_take_two_chunks_where_they_were_faster),
        cmocka_unit_test(ragged_chunks_are_not_worth_it),
        cmocka_unit_test(a_files_rates_come_first),
        cmocka_unit_test(the_file_and_the_environment_decide),
        cmocka_unit_test(a_file_that_cannot_be_read_is_an_error),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
