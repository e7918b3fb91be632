/* SPDX-License-Identifier: MIT
 *
 * The program of docs/tensors.md.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <string.h>

/* Each rank makes a matrix of its own number, puts its second row into the next
 * rank's first, and prints what it has then. */
static iris_status_t exchange_rows(iris_t *iris, char *text, size_t bytes)
{
    int next = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    iris_tensor_t matrix, row, peer, first;
    iris_status_t status = iris_full(
        iris, IRIS_SHAPE(2, 4), IRIS_VALUE(iris_rank(iris)), NULL, &matrix);

    if (status != IRIS_OK) {
        return status;
    }
    (void)iris_tensor_select(&matrix, 0, 1, &row);
    status = iris_tensor_as_remote(iris, &matrix, next, &peer);
    if (status == IRIS_OK) {
        (void)iris_tensor_select(&peer, 0, 0, &first);
        status = iris_tensor_copy(iris, &first, &row, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_barrier(iris, NULL, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_tensor_format(iris, &matrix, text, bytes, NULL);
    }
    return status == IRIS_OK ? iris_tensor_free(iris, &matrix) : status;
}

static RANK_TEST(the_pages_program_does_what_it_says, 1, 2, 4)
{
    int rank = iris_rank(iris);
    int before = (rank + iris_num_ranks(iris) - 1) % iris_num_ranks(iris);
    char text[256], wanted[256];

    CHECK_OK(exchange_rows(iris, text, sizeof text));
    snprintf(wanted, sizeof wanted,
             "i64 (2, 4)\n[[%d, %d, %d, %d],\n [%d, %d, %d, %d]]", before,
             before, before, before, rank, rank, rank, rank);
    CHECK(strcmp(text, wanted) == 0);
    return 0;
}

TEST_GROUP(rank, one_node);
