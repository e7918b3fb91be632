/* SPDX-License-Identifier: MIT
 *
 * A GPU's library whose product fails on one member: the call ends on all
 * members, and none of them waits for the deadline.
 */
#include "config.h"

#include "fakeblas/toolkit.h"

#include <stdio.h>

#define DEPTH 4
#define COLUMNS 8
#define MOST_ROWS 48
#define ODD 1 /* the rank whose product fails */

struct operation {
    const char *name;
    iris_status_t (*call)(iris_t *, const iris_tensor_t *,
                          const iris_tensor_t *, const iris_tensor_t *,
                          const struct iris_ops_options *);
    iris_status_t (*preamble)(iris_t *, const iris_tensor_t *,
                              const iris_tensor_t *, const iris_tensor_t *,
                              const struct iris_ops_options *,
                              iris_ops_workspace_t **);
    int whole_a;
    int whole_out;
    int gathers_first; /* no member waits for another one's product */
};
#define ROW(which, a, out, first)                                    \
    {                                                                \
#which, iris_##which, iris_##which##_preamble, a, out, first \
    }
static const struct operation operations[] = {
    ROW(matmul_all_reduce, 1, 1, 0),
    ROW(all_gather_matmul, 0, 1, 1),
    ROW(matmul_all_gather, 0, 1, 0),
    ROW(matmul_reduce_scatter, 1, 0, 0),
};
#undef ROW
#define OPERATIONS (sizeof operations / sizeof operations[0])

struct kind {
    const struct operation *operation;
    int64_t rows;
    int chunks;
    int after; /* the products that succeed first */
};

static iris_status_t make(iris_t *iris, int64_t rows, int64_t columns,
                          iris_tensor_t *matrix)
{
    iris_status_t status =
        iris_ones(iris, IRIS_SHAPE(MOST_ROWS, columns), NULL, matrix);

    matrix->shape[0] = rows;
    return status;
}

static int64_t share(const iris_t *iris, int64_t rows)
{
    int64_t n = iris_num_ranks(iris);

    return rows / n + (iris_rank(iris) < rows % n);
}

/* The signals of a call that failed must not count in the next one. */
static int call_again(iris_t *iris, const struct operation *operation,
                      const iris_tensor_t *tensors,
                      const struct iris_ops_options *options)
{
    iris_status_t status;

    setenv("FAKEBLAS_FAIL", "none", 1);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (options->chunks == 1) {
        return 0;
    }
    status =
        operation->call(iris, &tensors[0], &tensors[1], &tensors[2], options);
    status = status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
    CHECK_STATUS(status, IRIS_ERR_INVALID);
    CHECK_MESSAGE("one that used it did not end");
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

static int fail_body(iris_t *iris, void *arg)
{
    const struct kind *kind = arg;
    const struct operation *operation = kind->operation;
    int rank = iris_rank(iris), n = iris_num_ranks(iris), ranks[8];
    int64_t own = share(iris, kind->rows);
    struct iris_ops_options options;
    iris_tensor_t a, b, out;
    iris_status_t status;
    char fail[32];

    toolkit_be_a_gpu(iris);
    iris_ops_options_init(&options);
    for (int i = 0; i < n; i++) {
        ranks[i] = i;
    }
    CHECK_OK(iris_group_create(iris, ranks, n, &options.group));
    CHECK_OK(make(iris, DEPTH, COLUMNS, &b));
    CHECK_OK(make(iris, operation->whole_a ? kind->rows : own, DEPTH, &a));
    CHECK_OK(
        make(iris, operation->whole_out ? kind->rows : own, COLUMNS, &out));
    options.chunks = kind->chunks;
    CHECK_OK(
        operation->preamble(iris, &a, &b, &out, &options, &options.workspace));
    CHECK_OK(operation->call(iris, &a, &b, &out, &options));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    snprintf(fail, sizeof fail, "Matmul:13@%d+%d", ODD, kind->after);
    setenv("FAKEBLAS_FAIL", fail, 1);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    status = operation->call(iris, &a, &b, &out, &options);
    if (rank == ODD) {
        CHECK_STATUS(status, IRIS_ERR_DEVICE);
        CHECK_MESSAGE("cublasLtMatmul returned CUBLAS_STATUS_EXECUTION_FAILED");
        (void)iris_stream_synchronize(iris, NULL);
    } else {
        /* The news may come while the call still enqueues. */
        status =
            status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
        if (!operation->gathers_first) {
            CHECK_STATUS(status, IRIS_ERR_DEVICE);
            CHECK_MESSAGE("failed on rank 1");
            CHECK_MESSAGE(operation->name);
        }
    }
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(
        call_again(iris, operation, (iris_tensor_t[]){a, b, out}, &options), 0);
    CHECK_OK(iris_ops_workspace_destroy(iris, options.workspace));
    CHECK_OK(iris_group_destroy(iris, options.group));
    /* Other workspaces work. */
    options.group = NULL;
    options.workspace = NULL;
    CHECK_OK(operation->call(iris, &a, &b, &out, &options));
    return iris_stream_synchronize(iris, NULL);
}

static void run_all(void)
{
    toolkit_use("cublaslt", harness_folder());
    setenv("IRIS_TIMEOUT_MS", "20000", 1);
    setenv("FAKEBLAS_FAIL", "none", 1); /* ranks only replace it */
    for (size_t i = 0; i < OPERATIONS * 2 * 3; i++) {
        /* By shares, and in two chunks of each share. */
        static const int chunks[] = {1, 2, 8};

        struct kind kind = {&operations[i % OPERATIONS],
                            i / OPERATIONS % 2 ? 41 : 40,
                            chunks[i / OPERATIONS / 2], 0};

        kind.after = kind.chunks == 8;
        harness_run(4, fail_body, &kind);
    }
    unsetenv("FAKEBLAS_FAIL");
}

static void a_failed_product_ends_the_call_of_rank_threads(void **state)
{
    run_all();
}

static void a_failed_product_ends_the_call_of_processes(void **state)
{
    setenv("IRIS_SPAWN", "processes", 1);
    run_all();
    unsetenv("IRIS_SPAWN");
}

static int TEST_FILE(hip)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_product_ends_the_call_of_rank_threads),
        cmocka_unit_test(a_failed_product_ends_the_call_of_processes),
    };

    return cmocka_run_group_tests(tests, toolkit_setup, toolkit_teardown);
}
