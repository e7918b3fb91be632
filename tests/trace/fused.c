/* SPDX-License-Identifier: MIT
 *
 * A program for schedules.sh: fused NAME FILE calls one fused operation on four
 * ranks, twice, and counts what each rank has for each other: its part of what is
 * gathered, scattered, or both.
 */
#include <iris/iris.h>
#include <iris/ops.h>

#include <stdio.h>
#include <string.h>

#define RANKS 4
#define M 64
#define K 32
#define N 48

struct job {
    const char *name;
    const char *file;
};

/* Rows of a and of out, and bytes for each other rank. */
struct kind {
    const char *name;
    iris_status_t (*call)(iris_t *iris, const iris_tensor_t *a,
                          const iris_tensor_t *b, const iris_tensor_t *out,
                          const struct iris_ops_options *options);
    int a_rows, out_rows;
    size_t bytes;
};

static const struct kind kinds[] = {
    {"matmul_all_reduce", iris_matmul_all_reduce, M, M,
     (size_t)2 * M / RANKS *N * 4},
    {"all_gather_matmul", iris_all_gather_matmul, M / RANKS, M,
     (size_t)M / RANKS *K * 4},
    {"matmul_all_gather", iris_matmul_all_gather, M / RANKS, M,
     (size_t)M / RANKS *N * 4},
    {"matmul_reduce_scatter", iris_matmul_reduce_scatter, M, M / RANKS,
     (size_t)M / RANKS *N * 4},
};

static iris_status_t call_twice(iris_t *iris, const struct kind *kind)
{
    iris_tensor_t a, b, out;
    iris_status_t status =
        iris_ones(iris, IRIS_SHAPE(kind->a_rows, K), NULL, &a);

    status = status ? status : iris_ones(iris, IRIS_SHAPE(K, N), NULL, &b);
    status = status
                 ? status
                 : iris_zeros(iris, IRIS_SHAPE(kind->out_rows, N), NULL, &out);
    for (int i = 0; status == IRIS_OK && i < 2; i++) {
        status = kind->call(iris, &a, &b, &out, NULL);
        for (int to = 0; to < RANKS; to++) {
            if (to != iris_rank(iris)) {
                printf("moved %d %d %zu\n", iris_rank(iris), to, kind->bytes);
            }
        }
    }
    return status ? status : iris_stream_synchronize(iris, NULL);
}

static int rank_main(iris_t *iris, void *arg)
{
    const struct job *job = arg;
    iris_status_t status = iris_trace_enable(iris, 10000);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (status == IRIS_OK && strcmp(kinds[i].name, job->name) == 0) {
            status = call_twice(iris, &kinds[i]);
        }
    }
    return (int)(status ? status : iris_trace_export(iris, job->file, 1));
}

int main(int argc, char **argv)
{
    struct job job = {argv[1], argv[2]};
    iris_status_t status =
        argc == 3 ? iris_spawn(NULL, RANKS, rank_main, &job) : IRIS_ERR_INVALID;

    if (status != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
    }
    return status != IRIS_OK;
}
