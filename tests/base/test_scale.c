/* SPDX-License-Identifier: MIT
 *
 * How IRIS_TEST_SCALE and IRIS_TEST_LONG set the rounds of the tests' loops.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>

static TEST(scale_divides_rounds_and_leaves_one)
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

static TEST(a_scale_that_is_no_number_changes_nothing)
{
    unsetenv("IRIS_TEST_LONG");
    setenv("IRIS_TEST_SCALE", "", 1);
    assert_int_equal(harness_count(5000, 250), 250);
    setenv("IRIS_TEST_SCALE", "0", 1);
    assert_int_equal(harness_count(5000, 250), 250);
}

TEST_GROUP(unit);
