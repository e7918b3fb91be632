/* SPDX-License-Identifier: MIT
 *
 * Calls without data: no function of C gets a null pointer, not even with 0 bytes,
 * which UndefinedBehaviorSanitizer finds.
 */
#include "config.h"

#include "support/harness.h"

#include "base/link.h"

static TEST(records_without_data_copy_nothing)
{
    struct iris_session session;

    assert_true(iris_i_session_open(&session, 64));
    assert_true(iris_i_session_put(&session, "head", 4, NULL, 0));
    assert_true(iris_i_session_put(&session, NULL, 0, NULL, 0));
    assert_true(iris_i_session_lend(&session, NULL, 0, "data", 4));
    assert_true(iris_i_session_put_end(&session));
    iris_i_session_close(&session);
}

TEST_GROUP(unit);
