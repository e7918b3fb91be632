/* SPDX-License-Identifier: MIT
 *
 * Calls without data: no function of C gets a null pointer, not even with 0 bytes.
 */
#include "config.h"

#include "support/harness.h"

#include "base/link.h"

#include <string.h>

static int num_nulls;

/* In place of the C library's for all of this program. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    const void *volatile places[] = {to, from}; /* no compiler knows them */

    num_nulls += places[0] == NULL || places[1] == NULL;
    return memmove(to, from, bytes);
}

static TEST(records_without_data_copy_nothing)
{
    struct iris_session session;

    num_nulls = 0;
    assert_true(iris_i_session_open(&session, 64));
    assert_true(iris_i_session_put(&session, "head", 4, NULL, 0));
    assert_true(iris_i_session_put(&session, NULL, 0, NULL, 0));
    assert_true(iris_i_session_lend(&session, NULL, 0, "data", 4));
    assert_true(iris_i_session_put_end(&session));
    iris_i_session_close(&session);
    assert_int_equal(num_nulls, 0);
}

TEST_GROUP(unit);
