/* SPDX-License-Identifier: MIT
 *
 * Status codes: the table, its strings, and the thread's last message.
 */
#include "config.h"

#include "support/harness.h"
#include "base/base.h"

#include <pthread.h>
#include <string.h>

static TEST(every_row_has_its_name_value_and_text)
{
#define ROW(name, number, text)                                          \
    assert_int_equal(IRIS_##name, number);                               \
    assert_string_equal(iris_status_string(IRIS_##name), "IRIS_" #name); \
    assert_string_equal(iris_status_text(IRIS_##name), text);
    IRIS_STATUS_ROWS(ROW)
#undef ROW
}

static TEST(values_are_distinct_and_only_success_is_not_negative)
{
    static const int values[] = {
#define ROW(name, value, text) value,
        IRIS_STATUS_ROWS(ROW)
#undef ROW
    };
    size_t count = sizeof values / sizeof values[0];

    assert_int_equal(values[0], 0);
    for (size_t i = 1; i < count; i++) {
        assert_true(values[i] < 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(values[i], values[j]);
        }
    }
}

static TEST(unknown_statuses_have_strings_too)
{
    static const int unknown[] = {1, -1000, 12345};

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        iris_status_t status = (iris_status_t)unknown[i];

        assert_string_equal(iris_status_string(status), "IRIS_ERR_?");
        assert_string_equal(iris_status_text(status), "unknown status");
    }
}

static TEST(the_version_is_the_packages)
{
    assert_string_equal(iris_version(), PACKAGE_VERSION);
}

static void *first_words_of_a_thread(void *arg)
{
    int *wrong = arg;

    *wrong = strcmp(iris_last_error(), "") != 0;
    iris_i_fail(NULL, IRIS_ERR_INVALID, "the other thread's");
    *wrong |= strcmp(iris_last_error(), "the other thread's") != 0;
    return NULL;
}

static TEST(the_last_error_belongs_to_its_thread)
{
    pthread_t thread;
    int wrong = 1;

    iris_i_fail(NULL, IRIS_ERR_INVALID, "this thread's");
    pthread_create(&thread, NULL, first_words_of_a_thread, &wrong);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    assert_string_equal(iris_last_error(), "this thread's");
}

static TEST(a_success_keeps_the_last_error)
{
    assert_int_equal(iris_finalize(NULL), IRIS_OK);
    iris_i_fail(NULL, IRIS_ERR_INVALID, "kept");
    assert_int_equal(iris_finalize(NULL), IRIS_OK);
    assert_string_equal(iris_last_error(), "kept");
}

static TEST(a_failed_system_call_says_which_error)
{
    assert_int_equal(
        iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, 2, "no %s", "luck"),
        IRIS_ERR_SYSTEM);
    assert_string_equal(iris_last_error(),
                        "no luck: No such file or directory");
}

static TEST(a_message_may_be_made_from_the_one_before)
{
    iris_i_fail(NULL, IRIS_ERR_INVALID, "inner");
    iris_i_fail(NULL, IRIS_ERR_INVALID, "outer: %s", iris_last_error());
    assert_string_equal(iris_last_error(), "outer: inner");
}

static TEST(a_long_message_is_cut_and_still_a_string)
{
    char text[3 * IRIS_MESSAGE_BYTES];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, 2, "%s", text);
    assert_true(strlen(iris_last_error()) < IRIS_MESSAGE_BYTES);
    assert_non_null(strstr(iris_last_error(), "No such file"));
}

TEST_GROUP(unit, valgrind);
