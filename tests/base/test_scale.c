/* SPDX-License-Identifier: MIT
 *
 * How IRIS_TEST_SCALE and IRIS_TEST_LONG set the rounds of the tests' loops.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>

static void scale_divides_rounds_and_leaves_one(void **state)
{
    unsetenv("IRIS_TEST_LONG");
    unsetenv("IRIS_TEST_SCALE");
    assert_int_equal(harness_count(5000, 250), 250);
    setenv("IRIS_TEST_SCALE", "100", 1);
    assert_int_equal(harness_count(5000, 250), 3);
    assert_int_equal(harness_count(5000, 100), 1);
    assert_int_equal(harness_count(5000, 7), 1);
    assert_int_equal(harness_count(5000, 0), 0);
    setenv("IRIS_TEST_LONG", "1", 1);
    assert_int_equal(harness_count(5000, 250), 50);
}

static void a_scale_that_is_no_number_changes_nothing(void **state)
{
    unsetenv("IRIS_TEST_LONG");
    setenv("IRIS_TEST_SCALE", "", 1);
    assert_int_equal(harness_count(5000, 250), 250);
    setenv("IRIS_TEST_SCALE", "0", 1);
    assert_int_equal(harness_count(5000, 250), 250);
}

static int TEST_FILE(unit)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_divides_rounds_and_leaves_one),
        cmocka_unit_test(a_scale_that_is_no_number_changes_nothing),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
