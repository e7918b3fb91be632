/* SPDX-License-Identifier: MIT
 *
 * A GPU's library that loads a kernel at the first product of its sizes, and
 * then waits for all kernels of the process: rank threads go on.
 */
#include "config.h"

#include "fakeblas/toolkit.h"

#include <time.h>

#define DEPTH 4
#define COLUMNS 8
#define MOST_ROWS 48

/* Of as many rows as this rank needs; all ranks take the same memory. */
static iris_status_t make(iris_t *iris, int64_t rows, int64_t columns,
                          iris_tensor_t *matrix)
{
    iris_status_t status =
        iris_ones(iris, IRIS_SHAPE(MOST_ROWS, columns), NULL, matrix);

    matrix->shape[0] = rows;
    return status;
}

/* The rows of this rank's share. */
static int64_t share(const iris_t *iris, int64_t rows)
{
    int64_t n = iris_num_ranks(iris);

    return rows / n + (iris_rank(iris) < rows % n);
}

/* Whether every element of this rank's `rows` rows is that sum. */
static int check_out(iris_t *iris, const iris_tensor_t *out, int64_t rows,
                     float sum)
{
    float got[MOST_ROWS * COLUMNS];

    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(harness_read(iris, got, out->data, (size_t)(rows * COLUMNS) * 4));
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        CHECK(got[i] == sum);
    }
    return 0;
}

/* Calls each operation with that number of rows. One rank is late, so the other
 * one's collective waits for it while it loads. */
static int each_operation(iris_t *iris, int64_t rows, int chunks, int late)
{
    typedef iris_status_t (*operation_fn)(
        iris_t *, const iris_tensor_t *, const iris_tensor_t *,
        const iris_tensor_t *, const struct iris_ops_options *);
    static const struct {
        operation_fn call;
        int whole_a;
        int whole_out;
        int sums;
    } operations[] = {
        {iris_matmul_all_reduce, 1, 1, 1},
        {iris_all_gather_matmul, 0, 1, 0},
        {iris_matmul_all_gather, 0, 1, 0},
        {iris_matmul_reduce_scatter, 1, 0, 1},
    };
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
    struct iris_ops_options options;
    iris_tensor_t a, b, out;

    iris_ops_options_init(&options);
    options.chunks = chunks;
    CHECK_OK(make(iris, DEPTH, COLUMNS, &b));
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        int64_t own = share(iris, rows);
        int64_t out_rows = operations[i].whole_out ? rows : own;

        CHECK_OK(make(iris, operations[i].whole_a ? rows : own, DEPTH, &a));
        CHECK_OK(make(iris, out_rows, COLUMNS, &out));
        if (iris_rank(iris) == late) {
            nanosleep(&moment, NULL);
        }
        CHECK_OK(operations[i].call(iris, &a, &b, &out, &options));
        CHECK_EQUAL(
            check_out(
                iris, &out, out_rows,
                DEPTH * (operations[i].sums ? (float)iris_num_ranks(iris) : 1)),
            0);
    }
    return 0;
}

/* Rows that ranks share, with one more on the first, and fewer than ranks. */
static int first_body(iris_t *iris, void *arg)
{
    static const int64_t rows[] = {16, 17, 1, 40};

    (void)arg;
    toolkit_be_a_gpu(iris);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQUAL(each_operation(iris, rows[i], 1, (int)i % 2), 0);
        CHECK_EQUAL(each_operation(iris, rows[i] + 1, 3, (int)i % 2), 0);
    }
    return 0;
}

static void rank_threads_go_on_while_a_kernel_is_loaded(void **state)
{
    toolkit_use("cublaslt", harness_folder());
    setenv("FAKEBLAS_LOAD", "1", 1);
    setenv("IRIS_TIMEOUT_MS", "10000", 1); /* the load ends with the waits */
    harness_run(2, first_body, NULL);
    harness_run(3, first_body, NULL);
    unsetenv("FAKEBLAS_LOAD");
}

static int mismatch_body(iris_t *iris, void *arg)
{
    struct iris_ops_options options;
    iris_tensor_t a, b, out;

    (void)arg;
    toolkit_be_a_gpu(iris);
    iris_ops_options_init(&options);
    options.chunks = 1 + iris_rank(iris);
    /* The workspace is large enough for both. */
    CHECK_EQUAL(each_operation(iris, 40, 3, 0), 0);
    CHECK_OK(make(iris, 24, DEPTH, &a));
    CHECK_OK(make(iris, DEPTH, COLUMNS, &b));
    CHECK_OK(make(iris, 24, COLUMNS, &out));
    CHECK_STATUS(iris_matmul_all_reduce(iris, &a, &b, &out, &options),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("chunks 2");
    return 0;
}

static void a_first_call_compares_chunks(void **state)
{
    toolkit_use("cublaslt", harness_folder());
    harness_run(2, mismatch_body, NULL);
}

static int TEST_FILE(hip)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_threads_go_on_while_a_kernel_is_loaded),
        cmocka_unit_test(a_first_call_compares_chunks),
    };

    return cmocka_run_group_tests(tests, toolkit_setup, toolkit_teardown);
}
