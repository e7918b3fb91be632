/* SPDX-License-Identifier: MIT
 *
 * Contexts that ranks finalize in different orders: an error at once, where
 * each would wait for the other.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"

#include <string.h>

#define CONTEXTS 3

static int open_all(iris_t *iris, iris_t *contexts[CONTEXTS])
{
    for (int i = 0; i < CONTEXTS; i++) {
        CHECK_EQUAL(harness_open_again(iris, NULL, &contexts[i]), 0);
    }
    return 0;
}

/* Every rank begins with another one. Who is told first has left by the time
 * the others come there. */
static int turned(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris), count = iris_num_ranks(iris);
    iris_t *contexts[CONTEXTS];

    CHECK_EQUAL(open_all(iris, contexts), 0);
    for (int i = 0; i < CONTEXTS; i++) {
        iris_status_t status = iris_finalize(contexts[(rank + i) % count]);

        CHECK(status != IRIS_ERR_TIMEOUT);
        if (status == IRIS_ERR_MISMATCH) {
            CHECK_MESSAGE("in the same order on every rank");
        }
    }
    return iris_barrier(iris, NULL, NULL);
}

/* The first finalize of at least one rank is refused. */
static int crossed(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris), words[2] = {0, 0};
    iris_t *contexts[CONTEXTS];
    iris_status_t status;

    CHECK_EQUAL(open_all(iris, contexts), 0);
    status = iris_finalize(contexts[rank]);
    words[rank] = status;
    CHECK(status != IRIS_ERR_TIMEOUT);
    (void)iris_finalize(contexts[1 - rank]);
    for (int root = 0; root < 2; root++) {
        CHECK_OK(
            iris_broadcast(iris, &words[root], sizeof words[root], root, NULL));
    }
    CHECK(words[0] == IRIS_ERR_MISMATCH || words[1] == IRIS_ERR_MISMATCH);
    return iris_finalize(contexts[2]);
}

/* In one order all is well, also with others alive. */
static RANK_TEST(finalizing_in_one_order_works_with_others_alive, 3)
{
    iris_t *contexts[CONTEXTS];

    CHECK_EQUAL(open_all(iris, contexts), 0);
    CHECK_OK(iris_finalize(contexts[1]));
    CHECK_OK(iris_finalize(contexts[2]));
    CHECK_OK(iris_barrier(contexts[0], NULL, NULL));
    return iris_finalize(contexts[0]);
}

static TEST(finalizing_in_different_orders_is_an_error_at_once)
{
    harness_run(2, crossed, NULL);
    harness_run(3, turned, NULL);
}

TEST_GROUP(unit);
