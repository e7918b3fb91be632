/* SPDX-License-Identifier: MIT
 *
 * Elements of the factors, and the expected products and sums.
 */
#include "config.h"

#include "fused_values.h"

#include <iris/device/core/half.h>
#include <string.h>

/* The values of a and b along k. Each row, column and rank begins at a
 * different value. Both lists add up to 0. So a product of depth PAIRS is 0,
 * and one of any depth is between -5 and 5. The last row of b has 1 more, so
 * that no product is 0 everywhere. Sums of 40 ranks are exact in every type. */
#define PAIRS (FUSED_ROWS * FUSED_COLUMNS)
static const signed char a_values[FUSED_ROWS] = {0,  -1, -1, 1, 1, 0, -1,
                                                 -1, 1,  0,  0, 0, 1};
static const signed char b_values[FUSED_COLUMNS] = {0,  1,  1,  1, 1, -1,
                                                    -1, -1, -1, 0, 0};

/* Index of a's value in row i, and of b's in column j. */
static size_t at_a(int rank, int64_t i, int64_t k)
{
    return (size_t)(k + 5 * i + 7 * rank) % FUSED_ROWS;
}

static size_t at_b(int rank, int64_t k, int64_t j)
{
    return (size_t)(k + 4 * j + 3 * rank) % FUSED_COLUMNS;
}

static void encode_element(iris_dtype_t dtype, float value, void *element)
{
    iris_f16_t f16 = iris_f16_from_f32(value);
    iris_bf16_t bf16 = iris_bf16_from_f32(value);

    memcpy(element,
           dtype == IRIS_DTYPE_F16    ? (void *)&f16
           : dtype == IRIS_DTYPE_BF16 ? (void *)&bf16
                                      : (void *)&value,
           iris_dtype_size(dtype));
}

static float decode_element(iris_dtype_t dtype, const void *element)
{
    iris_f16_t f16;
    iris_bf16_t bf16;
    float f32;

    switch (dtype) {
    case IRIS_DTYPE_F16:
        memcpy(&f16, element, sizeof f16);
        return iris_f16_to_f32(f16);
    case IRIS_DTYPE_BF16:
        memcpy(&bf16, element, sizeof bf16);
        return iris_bf16_to_f32(bf16);
    default:
        memcpy(&f32, element, sizeof f32);
        return f32;
    }
}

/* How to fill the rows of a matrix from `first` on: index(rank, row, column)
 * selects one of the values, and `more` is added to it. */
struct values {
    const signed char *at;
    size_t count;
    size_t (*index)(int rank, int64_t i, int64_t j);
    int more;
};
static void fill_matrix(const iris_tensor_t *matrix, int rank, int64_t first,
                        const struct values *values)
{
    size_t size = iris_dtype_size(matrix->dtype);
    int64_t columns = matrix->shape[1];
    char encoded[FUSED_ROWS][4]; /* a's or b's; b has fewer */
    char *element = (char *)matrix->data + first * columns * (int64_t)size;

    for (size_t v = 0; v < values->count; v++) {
        encode_element(matrix->dtype, (float)(values->at[v] + values->more),
                       encoded[v]);
    }
    for (int64_t i = first; i < matrix->shape[0]; i++) {
        for (int64_t j = 0; j < columns; j++, element += size) {
            memcpy(element, encoded[values->index(rank, i, j)], size);
        }
    }
}

void fused_fill_a(const iris_tensor_t *a, int rank)
{
    fill_matrix(a, rank, 0, &(struct values){a_values, FUSED_ROWS, at_a, 0});
}

void fused_fill_b(const iris_tensor_t *b, int rank)
{
    fill_matrix(b, rank, 0, &(struct values){b_values, FUSED_COLUMNS, at_b, 0});
    fill_matrix(b, rank, b->shape[0] - 1,
                &(struct values){b_values, FUSED_COLUMNS, at_b, 1});
}

void fused_add(struct fused_sums *sums, int rank_a, int rank_b, int64_t k)
{
    for (int i = 0; i < FUSED_ROWS; i++) {
        for (int j = 0; j < FUSED_COLUMNS; j++) {
            for (int64_t at = 0; at < k % PAIRS; at++) {
                sums->at[i][j] += a_values[at_a(rank_a, i, at)] *
                                  b_values[at_b(rank_b, at, j)];
            }
            sums->at[i][j] += a_values[at_a(rank_a, i, k - 1)];
        }
    }
}

uint64_t fused_wrong(const struct fused_sums *sums, const iris_tensor_t *rows,
                     int64_t first)
{
    size_t size = iris_dtype_size(rows->dtype);
    const char *element = rows->data;
    uint64_t wrong = 0;

    for (int64_t i = first; i < first + rows->shape[0]; i++) {
        for (int64_t j = 0; j < rows->shape[1]; j++, element += size) {
            wrong += decode_element(rows->dtype, element) !=
                     (float)sums->at[i % FUSED_ROWS][j % FUSED_COLUMNS];
        }
    }
    return wrong;
}
