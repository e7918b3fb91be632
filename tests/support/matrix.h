/* SPDX-License-Identifier: MIT
 *
 * What the tests of the device API share: values that say where they come from,
 * meetings between rounds, and one word that keeps what a kernel found wrong.
 */
#ifndef IRIS_TESTS_MATRIX_H
#define IRIS_TESTS_MATRIX_H

#include "support/harness.h"

#include <iris/device.h>

#define MATRIX_MAX_RANKS 8

/* Heap memory for a test, and where its kernels say what is wrong. */
struct matrix {
    iris_t *iris;
    uint64_t *wrong; /* 0: nothing yet */
    uint64_t round;  /* meetings so far */
};

/* 64 bits that no other rank, index or round has. */
IRIS_DEVICE uint64_t matrix_mark(int rank, uint64_t index, uint64_t round)
{
    uint64_t mark = ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u +
                    index * 0xd1342543de82ef95u + round * 0xaf251af3b0f025b5u;

    mark = (mark ^ mark >> 32) * 0xbf58476d1ce4e5b9u;
    return mark ^ mark >> 29;
}

/* Byte `i` of the object whose low byte comes first. */
IRIS_DEVICE unsigned char matrix_byte(uint64_t bits, size_t i)
{
    return (unsigned char)(bits >> 8 * i);
}

/* Notes where something was not as expected; any lane of this rank. `where` is
 * the test's own, less than 2^63. The notes overwrite each other. */
IRIS_DEVICE void matrix_expect(iris_dev_t dev, uint64_t *wrong,
                               iris_bool_t good, uint64_t where)
{
    if (!good) {
        iris_store_volatile_u64(dev, wrong, where | (uint64_t)1 << 63,
                                dev.rank);
    }
}

static inline int matrix_open(iris_t *iris, struct matrix *matrix_p)
{
    void *wrong;

    CHECK_OK(iris_calloc(iris, 1, sizeof(uint64_t), &wrong));
    matrix_p->iris = iris;
    matrix_p->wrong = (uint64_t *)wrong;
    matrix_p->round = 0;
    return 0;
}

/* All ranks meet: on their streams, on the host twice, on their streams. */
static inline iris_status_t matrix_meet(struct matrix *matrix)
{
    uint64_t round = matrix->round++;

    return ((round ^ round >> 1) & 1) == 0
               ? iris_device_barrier(matrix->iris, NULL, NULL)
               : iris_barrier(matrix->iris, NULL, NULL);
}

/* Finishes the stream; *where_p is what matrix_expect() noted, else 0. */
static inline int matrix_result(struct matrix *matrix, uint64_t *where_p)
{
    CHECK_OK(
        harness_read(matrix->iris, where_p, matrix->wrong, sizeof *where_p));
    return 0;
}

#endif /* IRIS_TESTS_MATRIX_H */
