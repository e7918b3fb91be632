/* SPDX-License-Identifier: MIT
 *
 * Creating tensors: what they hold, on every rank.
 */
#include "config.h"

#include "support/harness.h"

static int first(iris_t *iris, void *arg)
{
    iris_tensor_t tensor;
    int64_t seen[5];
    float floats[6];

    (void)arg;
    CHECK_OK(iris_arange(iris, iris_value_int(iris_rank(iris)),
                         iris_value_int(iris_rank(iris) + 20),
                         iris_value_int(4), NULL, &tensor));
    CHECK_EQUAL(iris_tensor_numel(&tensor), 5);
    CHECK_OK(harness_read(iris, seen, tensor.data, sizeof seen));
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(seen[i], iris_rank(iris) + 4 * i);
    }
    CHECK_OK(iris_tensor_free(iris, &tensor));
    CHECK_OK(iris_full(iris, IRIS_SHAPE(2, 3), iris_value_float(2.5), NULL,
                       &tensor));
    CHECK_OK(harness_read(iris, floats, tensor.data, sizeof floats));
    for (int i = 0; i < 6; i++) {
        CHECK(floats[i] == 2.5f);
    }
    CHECK_OK(iris_tensor_free(iris, &tensor));
    return 0;
}

static void tensors_hold_what_they_are_asked_to(void **state)
{
    (void)state;
    harness_run_all(first, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_hold_what_they_are_asked_to),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
