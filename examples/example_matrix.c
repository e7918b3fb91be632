/* SPDX-License-Identifier: MIT
 *
 * The matrices of examples that multiply.
 */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

int example_fill_matrix(iris_t *iris, iris_tile_t matrix, int seed, size_t row,
                        size_t col)
{
    size_t count = (size_t)matrix.rows * matrix.cols;
    iris_f16_t *host = malloc(count * sizeof *host);
    int ret;

    if (host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        host[i] = iris_f16_from_f32(
            example_number(seed, row + i / matrix.cols, col + i % matrix.cols));
    }
    ret = example_copy(iris, matrix.data, host, count * sizeof *host);
    free(host);
    return ret;
}

float example_product(int a, int b, size_t r, size_t c, size_t k)
{
    float sum = 0;

    for (size_t i = 0; i < k; i++) {
        sum += example_number(a, r, i) * example_number(b, i, c);
    }
    return sum;
}

int example_check_product(iris_t *iris, const float *matrix, size_t rows,
                          size_t cols, int a, int b, size_t k)
{
    float *host = malloc(rows * cols * sizeof *host);
    int ret;

    if (host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    ret = example_copy(iris, host, matrix, rows * cols * sizeof *host);
    for (size_t i = 0; ret == 0 && i < rows * cols; i++) {
        float want = example_product(a, b, i / cols, i % cols, k);

        if (host[i] != want) {
            ret = example_wrong(iris, "product", i, host[i], want);
        }
    }
    free(host);
    return ret;
}

int example_ok(iris_t *iris, const char *what, size_t rows, size_t cols,
               size_t k)
{
    int ret = iris_barrier(iris, NULL, NULL); /* all have found theirs right */

    if (ret == 0 && iris_rank(iris) == 0) {
        printf("  size %zu x %zu, k %zu, %d ranks: %s ok\n", rows, cols, k,
               iris_num_ranks(iris), what);
    }
    return ret;
}
