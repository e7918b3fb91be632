/* SPDX-License-Identifier: MIT
 *
 * The library of a GPU multiplies: it is not there or does not open, it loads a
 * kernel at the first product of its sizes, and its product fails on one member.
 */
#include "config.h"

#include "fakeblas/toolkit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define DEPTH 4
#define COLUMNS 8
#define MOST_ROWS 48
#define ODD 1 /* the rank whose product fails */

/* ---- A library that is not there ---- */

static int small_body(iris_t *iris, void *arg)
{
    const char *expected = arg;
    iris_tensor_t one, out;
    iris_status_t status;
    float first = 0;

    toolkit_be_a_gpu(iris);
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(4, 4), NULL, &one));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4, 4), NULL, &out));
    status = iris_matmul_all_reduce(iris, &one, &one, &out, NULL);
    if (expected != NULL) {
        CHECK_STATUS(status, IRIS_ERR_BACKEND);
        CHECK_MESSAGE(expected);
        return 0;
    }
    CHECK_OK(status);
    CHECK_OK(harness_read(iris, &first, out.data, sizeof first));
    CHECK(first == 4 * (float)iris_num_ranks(iris));
    return 0;
}

static TEST(a_library_that_does_not_open_is_an_error)
{
    for (size_t i = 0; i < NUM_TOOLKIT_LIBRARIES; i++) {
        toolkit_use(toolkit_libraries[i].name, harness_folder());
        setenv("FAKEBLAS_FAIL", toolkit_libraries[i].create_fails, 1);
        harness_run(1, small_body,
                    (void *)(uintptr_t)toolkit_libraries[i].create_error);
        unsetenv("FAKEBLAS_FAIL");
        assert_int_equal(toolkit_seen(&toolkit_libraries[i])->live, 0);
    }
}

/* Runs small_body() at level debug, and expects a line. */
static void log_has(const char *name, const char *folder, const char *fail,
                    const char *line)
{
    char *level = strdup(getenv("IRIS_LOG_LEVEL"));
    struct harness_capture capture;

    toolkit_use(name, folder);
    setenv("IRIS_LOG_LEVEL", "debug", 1);
    if (fail != NULL) {
        setenv("FAKEBLAS_FAIL", fail, 1);
    }
    harness_capture(&capture);
    harness_run(1, small_body, NULL);
    harness_captured(&capture);
    unsetenv("FAKEBLAS_FAIL");
    setenv("IRIS_LOG_LEVEL", level, 1);
    free(level);
    if (strstr(capture.text, line) == NULL) {
        print_error("no line \"%s\" in:\n%s\n", line, capture.text);
        fail_msg("%s", "the line is missing");
    }
    free(capture.text);
}

/* The machine may have the libraries, which do not open without a GPU. */
static TEST(auto_goes_on_without_libraries)
{
    log_has("auto", "/nowhere", NULL, "no products of matrices by hipblaslt: ");
    toolkit_use("hipblaslt", "/nowhere");
    harness_run(1, small_body, (void *)(uintptr_t) "/nowhere/lib");
}

static TEST(auto_takes_the_library_of_the_device)
{
    log_has("auto", harness_folder(), NULL,
            "products of matrices by hipblaslt: hipBLASLt in ");
    log_has("auto", harness_folder(), "Create:1",
            "no products of matrices by hipblaslt: hipblasLtCreate returned ");
}

/* As rank threads on one GPU. Asked for by name, a library is used there. */
static TEST(auto_keeps_away_where_rank_threads_share_a_gpu)
{
    const struct fakeblas_seen *now = toolkit_seen(&toolkit_libraries[1]);
    char *level = strdup(getenv("IRIS_LOG_LEVEL"));
    char *backend = strdup(getenv("IRIS_BACKEND"));
    struct harness_capture capture;
    int before = now->products;

    setenv("IRIS_LOG_LEVEL", "debug", 1);
    toolkit_use("auto", harness_folder());
    harness_run(2, small_body, NULL); /* each has a GPU of its own */
    assert_int_equal(now->products, before + 2);
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "gpu", 1);
    harness_capture(&capture);
    harness_run(2, small_body, NULL);
    harness_captured(&capture);
    assert_int_equal(now->products, before + 2);
    assert_non_null(strstr(capture.text, "other rank threads use this GPU"));
    free(capture.text);
    harness_run(1, small_body, NULL); /* has it to itself */
    assert_int_equal(now->products, before + 3);
    toolkit_use("hipblaslt", harness_folder());
    harness_run(2, small_body, NULL);
    assert_int_equal(now->products, before + 5);
    unsetenv("IRIS_SIM_DEVICE");
    setenv("IRIS_BACKEND", backend, 1);
    setenv("IRIS_LOG_LEVEL", level, 1);
    free(backend);
    free(level);
}

/* ---- A library that ends the process if it is opened during a capture ---- */

static int capture_body(iris_t *iris, void *prepared)
{
    struct iris_ops_options options;
    iris_ops_workspace_t *workspace;
    iris_tensor_t one, out;
    iris_graph_t *graph;
    iris_status_t status;
    float first = 0;

    toolkit_be_a_gpu(iris);
    iris_ops_options_init(&options);
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(4, 4), NULL, &one));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4, 4), NULL, &out));
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    CHECK_OK(iris_stream_create(iris, &options.stream));
    if (prepared != NULL) { /* for a call of other sizes */
        CHECK_OK(iris_matmul_all_gather_preamble(iris, NULL, NULL, NULL, NULL,
                                                 &workspace));
    }
    CHECK_OK(iris_capture_begin(iris, options.stream));
    status = iris_matmul_all_reduce(iris, &one, &one, &out, &options);
    if (prepared == NULL) {
        CHECK_STATUS(status, IRIS_ERR_STATE);
        CHECK_MESSAGE("the first product");
        CHECK_MESSAGE("before or after the capture");
        return iris_capture_end(iris, options.stream, &graph);
    }
    CHECK_OK(status);
    CHECK_OK(iris_capture_end(iris, options.stream, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, options.stream));
    CHECK_OK(iris_stream_synchronize(iris, options.stream));
    CHECK_OK(harness_read(iris, &first, out.data, sizeof first));
    CHECK(first == 4 * (float)iris_num_ranks(iris));
    return 0;
}

static TEST(a_library_is_opened_ahead_of_captures_or_not_at_all)
{
    static const char *const names[] = {"hipblaslt", "auto"};

    for (int i = 0; i < 2; i++) {
        toolkit_use(names[i], harness_folder());
        harness_run(2, capture_body, NULL);
        harness_run(2, capture_body, "after a preamble");
    }
}

/* ---- Operations ---- */

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
    int sums;
    int gathers_first; /* no member waits for another one's product */
};
#define ROW(which, a, out, sums, first)                                    \
    {                                                                      \
#which, iris_##which, iris_##which##_preamble, a, out, sums, first \
    }
static const struct operation operations[] = {
    ROW(matmul_all_reduce, 1, 1, 1, 0),
    ROW(all_gather_matmul, 0, 1, 0, 1),
    ROW(matmul_all_gather, 0, 1, 0, 0),
    ROW(matmul_reduce_scatter, 1, 0, 1, 0),
};
#undef ROW
#define OPERATIONS (sizeof operations / sizeof operations[0])

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

/* ---- The first product of its sizes ---- */

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
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
    struct iris_ops_options options;
    iris_tensor_t a, b, out;

    iris_ops_options_init(&options);
    options.chunks = chunks;
    CHECK_OK(make(iris, DEPTH, COLUMNS, &b));
    for (size_t i = 0; i < OPERATIONS; i++) {
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

    toolkit_be_a_gpu(iris);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQUAL(each_operation(iris, rows[i], 1, (int)i % 2), 0);
        CHECK_EQUAL(each_operation(iris, rows[i] + 1, 3, (int)i % 2), 0);
    }
    return 0;
}

static TEST(rank_threads_go_on_while_a_kernel_is_loaded)
{
    toolkit_use("cublaslt", harness_folder());
    setenv("FAKEBLAS_LOAD", "1", 1);
    setenv("IRIS_TIMEOUT_MS", "10000", 1); /* the load ends with the waits */
    harness_run(2, first_body, NULL);
    harness_run(3, first_body, NULL);
}

static int mismatch_body(iris_t *iris, void *arg)
{
    struct iris_ops_options options;
    iris_tensor_t a, b, out;

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

static TEST(a_first_call_compares_chunks)
{
    toolkit_use("cublaslt", harness_folder());
    harness_run(2, mismatch_body, NULL);
}

/* ---- A product that fails on one member: the call ends on all, and none
 * waits for the deadline ---- */

struct kind {
    const struct operation *operation;
    int64_t rows;
    int chunks;
    int after; /* the products that succeed first */
};

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

static TEST(a_failed_product_ends_the_call_of_rank_threads)
{
    run_all();
}

static TEST(a_failed_product_ends_the_call_of_processes)
{
    setenv("IRIS_SPAWN", "processes", 1);
    run_all();
    unsetenv("IRIS_SPAWN");
}

TEST_GROUP_WITH(toolkit_setup, toolkit_teardown, hip);
