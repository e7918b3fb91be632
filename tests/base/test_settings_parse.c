/* SPDX-License-Identifier: MIT
 *
 * Settings that do not parse, and those that do in more than one way.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* One choice is a list, too. */
enum kind { STRING, CHOICE, BYTES, MS, COUNT, RANK, FLAG, LIST = CHOICE };

#define KINDS 7

static int clear(void **state)
{
#define ROW(field, kind, env, value, choices, help) unsetenv(env);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
    return 0;
}

static void load(const struct iris_config *config,
                 struct iris_settings *settings_p)
{
    iris_status_t status;

    memset(settings_p, 0xa5, sizeof *settings_p);
    status = iris_i_settings_load(config, settings_p);
    if (status != IRIS_OK) {
        print_error("%s\n", iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
}

/* Values that each kind refuses. */
static const char *const bad[KINDS][12] = {
    [CHOICE] = {"nonsense", "pool vmem", "po", " ", "auto "},
    [BYTES] = {"-1", "0", "+1", "1T", "1Kx", "1.5M", "G", " 1", "1 ", "0x10",
               "9223372036854775808", "8589934592G"},
    [MS] = {"-1", "1s", "abc", "1.5", "2147483648", "99999999999999999999"},
    [COUNT] = {"0", "-3", "4K", "four", "2147483648"},
    [RANK] = {"-1", "1st", "", "0x1", "2147483648"},
    [FLAG] = {"2", "on", "truely", "-1"},
};

static void check_bad(enum kind kind, const char *env)
{
    struct iris_settings settings;

    for (size_t i = 0; i < 12 && bad[kind][i] != NULL; i++) {
        char quoted[64];

        if (bad[kind][i][0] == '\0') {
            continue;
        }
        snprintf(quoted, sizeof quoted, "%s=\"%s\"", env, bad[kind][i]);
        setenv(env, bad[kind][i], 1);
        if (iris_i_settings_load(NULL, &settings) != IRIS_ERR_CONFIG ||
            !harness_message_has(quoted) ||
            !harness_message_has("environment variable") ||
            !harness_message_has("it takes: ")) {
            print_error("%s: %s\n", quoted, iris_last_error());
            fail();
        }
    }
    unsetenv(env);
}

static void every_row_names_itself_when_it_does_not_parse(void **state)
{
#define ROW(field, kind, env, value, choices, help) check_bad(kind, env);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
}

static void a_bad_value_leaves_the_default_and_the_rest(void **state)
{
    struct iris_settings settings;

    setenv("IRIS_SIM_CUS", "none", 1);
    setenv("IRIS_TIMEOUT_MS", "77", 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_int_equal(settings.sim_cus.number, 4);
    assert_int_equal(settings.sim_cus.origin, IRIS_ORIGIN_DEFAULT);
    assert_int_equal(settings.timeout_ms.number, 77);
}

static void of_two_bad_values_the_first_row_is_named(void **state)
{
    struct iris_settings settings;

    setenv("IRIS_NUM_RANKS", "many", 1);
    setenv("IRIS_HEAP_SIZE", "big", 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_HEAP_SIZE=\"big\""));
}

static void sizes_take_units_in_either_case(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {
        {"1", 1},
        {"4096", 4096},
        {"1K", 1024},
        {"1k", 1024},
        {"2M", 2 << 20},
        {"2m", 2 << 20},
        {"3G", 3LL << 30},
        {"64KB", 64 << 10},
        {"64KiB", 64 << 10},
        {"1gib", 1 << 30},
        {"007", 7},
        {"16mb", 16 << 20},
        {"9223372036854775807", INT64_MAX},
        {"8589934591G", 8589934591LL << 30},
    };
    struct iris_settings settings;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        setenv("IRIS_HEAP_SIZE", sizes[i].text, 1);
        load(NULL, &settings);
        assert_int_equal(settings.heap_bytes.number, sizes[i].bytes);
    }
}

static void flags_and_choices_ignore_case(void **state)
{
    static const char *const yes[] = {"1", "true", "TRUE", "Yes"};
    static const char *const no[] = {"0", "False", "NO"};
    struct iris_settings settings;

    setenv("IRIS_LOG_LEVEL", "WARNING", 1);
    for (size_t i = 0; i < 4; i++) {
        setenv("IRIS_REQUIRE_ALL", yes[i], 1);
        load(NULL, &settings);
        assert_int_equal(settings.require_all.number, 1);
        assert_string_equal(settings.log_level.text, "warning");
    }
    for (size_t i = 0; i < 3; i++) {
        setenv("IRIS_REQUIRE_ALL", no[i], 1);
        load(NULL, &settings);
        assert_int_equal(settings.require_all.number, 0);
    }
}

static void bad_arguments_are_told_from_the_environment(void **state)
{
    struct iris_settings settings;
    struct iris_config config;

    setenv("IRIS_HEAP_SIZE", "1G", 1);
    iris_config_init(&config);
    config.heap_bytes = 0;
    assert_int_equal(iris_i_settings_load(&config, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("configuration value for IRIS_HEAP_SIZE"));
    iris_config_init(&config);
    config.rank = -2;
    assert_int_equal(iris_i_settings_load(&config, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_RANK=\"-2\""));
    iris_config_init(&config);
    config.allocator = "";
    assert_int_equal(iris_i_settings_load(&config, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("pool torch vmem"));
}

static void a_text_too_long_is_refused(void **state)
{
    struct iris_settings settings;
    char text[IRIS_SETTING_BYTES + 1];

    memset(text, 'x', sizeof text);
    text[IRIS_SETTING_BYTES] = '\0';
    setenv("IRIS_HEAP_BASES_PREFIX", text, 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_HEAP_BASES_PREFIX"));
    text[IRIS_SETTING_BYTES - 1] = '\0';
    setenv("IRIS_HEAP_BASES_PREFIX", text, 1);
    load(NULL, &settings);
    assert_string_equal(settings.heap_bases_prefix.text, text);
}

static int TEST_FILE(unit)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, clear, clear)
    const struct CMUnitTest tests[] = {
        TEST(every_row_names_itself_when_it_does_not_parse),
        TEST(a_bad_value_leaves_the_default_and_the_rest),
        TEST(of_two_bad_values_the_first_row_is_named),
        TEST(sizes_take_units_in_either_case),
        TEST(flags_and_choices_ignore_case),
        TEST(bad_arguments_are_told_from_the_environment),
        TEST(a_text_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
