/* SPDX-License-Identifier: MIT
 *
 * Settings: defaults, environment, arguments, and which goes first.
 */
#include "config.h"

#include "base/base.h"
#include "support/harness.h"

#include <stdio.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* One choice is a list, too. */
enum kind { STRING, CHOICE, BYTES, MS, COUNT, RANK, FLAG, LIST = CHOICE };

#define KINDS 7

/* A value of each kind that no row has as its default, as text and number, and
 * another one. Choices are the row's own: see sample(). */
static const struct {
    const char *text;
    int64_t number;
    const char *other_text;
    int64_t other_number;
} samples[KINDS] = {
    [STRING] = {"some text", 0, "other text", 0},
    [BYTES] = {"3M", 3 << 20, "4096", 4096},
    [MS] = {"0", 0, "123", 123},
    [COUNT] = {"7", 7, "2147483647", 2147483647},
    [RANK] = {"5", 5, "6", 6},
    [FLAG] = {"yes", 1, "0", 0},
};

/* The last word of a list of choices, or the first. */
static void choice(const char *choices, int last, char *text, size_t bytes)
{
    const char *space = strrchr(choices, ' ');
    const char *word = last && space != NULL ? space + 1 : choices;

    snprintf(text, bytes, "%.*s", (int)strcspn(word, " "), word);
}

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

static void check_default(const struct iris_setting *setting, const char *value)
{
    assert_string_equal(setting->text, value);
    assert_int_equal(setting->origin, IRIS_ORIGIN_DEFAULT);
}

static void defaults_are_the_tables(void **state)
{
    struct iris_settings settings;
    struct iris_config config;

    iris_config_init(&config);
    for (int pass = 0; pass < 2; pass++) {
        load(pass == 0 ? NULL : &config, &settings);
#define ROW(field, kind, env, value, choices, help) \
    check_default(&settings.field, value);
        IRIS_CONFIG_ROWS(ROW)
#undef ROW
        assert_int_equal(settings.heap_bytes.number, 1 << 30);
        assert_int_equal(settings.timeout_ms.number, 300000);
        assert_int_equal(settings.sim_cus.number, 4);
        assert_int_equal(settings.rank.number, 0);
        assert_int_equal(settings.num_ranks.number, 1);
    }
}

static void check_given(const struct iris_setting *setting, enum kind kind,
                        int other, enum iris_origin origin)
{
    if (kind != STRING && kind != CHOICE) {
        assert_int_equal(setting->number, other ? samples[kind].other_number
                                                : samples[kind].number);
    }
    assert_int_equal(setting->origin, origin);
}

/* One row, by itself: environment, then an argument over it. `text` and
 * `number` point to the field of `config`, whichever it is. */
static void check_row(enum kind kind, const char *env, const char *choices,
                      struct iris_config *config, void *field,
                      const struct iris_setting *setting,
                      struct iris_settings *settings)
{
    char first[64], last[64];

    snprintf(first, sizeof first, "%s",
             kind == CHOICE ? "" : samples[kind].text);
    snprintf(last, sizeof last, "%s",
             kind == CHOICE ? "" : samples[kind].other_text);
    if (kind == CHOICE) {
        choice(choices, 0, first, sizeof first);
        choice(choices, 1, last, sizeof last);
    }
    iris_config_init(config);
    setenv(env, first, 1);
    load(config, settings);
    check_given(setting, kind, 0, IRIS_ORIGIN_ENVIRONMENT);
    assert_string_equal(setting->text, first);
    if (kind == STRING || kind == CHOICE) {
        *(const char **)field = last;
    } else {
        *(int64_t *)field = samples[kind].other_number;
    }
    load(config, settings);
    check_given(setting, kind, 1, IRIS_ORIGIN_ARGUMENT);
    if (kind == STRING || kind == CHOICE) {
        assert_string_equal(setting->text, last);
    }
    unsetenv(env);
}

static void arguments_go_before_the_environment_before_defaults(void **state)
{
    static struct iris_settings settings;
    struct iris_config config;

#define ROW(field, kind, env, value, choices, help)                        \
    check_row(kind, env, choices, &config, &config.field, &settings.field, \
              &settings);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
}

static void an_empty_variable_counts_as_unset(void **state)
{
    struct iris_settings settings;

#define ROW(field, kind, env, value, choices, help) setenv(env, "", 1);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
    load(NULL, &settings);
    assert_int_equal(settings.heap_bytes.origin, IRIS_ORIGIN_DEFAULT);
    assert_int_equal(settings.rank.origin, IRIS_ORIGIN_DEFAULT);
    assert_string_equal(settings.spawn.text, "threads");
}

static void simulation_means_the_sim_backend_and_only_that(void **state)
{
    static const char *const fine[] = {"", "sim", "SIM"};
    struct iris_settings settings;

    setenv("IRIS_SIMULATION", "1", 1);
    for (size_t i = 0; i < 3; i++) {
        setenv("IRIS_BACKEND", fine[i], 1);
        load(NULL, &settings);
        assert_string_equal(settings.backend.text, "sim");
    }
    setenv("IRIS_BACKEND", "hip", 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_SIMULATION"));
    assert_true(harness_message_has("IRIS_BACKEND for \"hip\""));
    setenv("IRIS_SIMULATION", "0", 1);
    load(NULL, &settings);
    assert_string_equal(settings.backend.text, "hip");
    setenv("IRIS_SIMULATION", "on", 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_SIMULATION=\"on\""));
    unsetenv("IRIS_SIMULATION");
}

static void a_list_takes_choices_with_commas(void **state)
{
    static const char *const wrong[] = {"all_reduce", "all_reduce=push",
                                        "all_reduce=ring,", ",all_reduce=ring",
                                        "all_reduce=ring broadcast=pull"};
    struct iris_settings settings;

    setenv("IRIS_CCL", "all_reduce=RING,broadcast=pull", 1);
    load(NULL, &settings);
    assert_string_equal(settings.ccl.text, "all_reduce=ring,broadcast=pull");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("IRIS_CCL", wrong[i], 1);
        assert_int_equal(iris_i_settings_load(NULL, &settings),
                         IRIS_ERR_CONFIG);
        assert_true(harness_message_has("IRIS_CCL="));
    }
}

static void help_has_every_row_with_its_origin(void **state)
{
    struct iris_settings settings;
    struct iris_setting_row row;
    size_t count = 0;

    setenv("IRIS_RANK", "0", 1);
    load(NULL, &settings);
    for (; iris_i_settings_row(&settings, count, &row); count++) {
        int is_rank = strcmp(row.env, "IRIS_RANK") == 0;

        assert_non_null(row.setting);
        assert_true(strlen(row.help) > 0);
        assert_string_equal(iris_i_origin_string(row.setting->origin),
                            is_rank ? "environment" : "default");
    }
    assert_int_equal(count, sizeof settings / sizeof settings.rank);
    assert_int_equal(iris_i_settings_row(NULL, 0, &row), 1);
    assert_null(row.setting);
}

/* Sets the variable of a field, in capitals. */
static void set_choice(const char *field, const char *word)
{
    char text[64];
    size_t i = 0;

    for (; word[i] != '\0' && i + 1 < sizeof text; i++) {
        text[i] = (char)toupper((unsigned char)word[i]);
    }
    text[i] = '\0';
#define ROW(name, kind, env, value, choices, help) \
    if (strcmp(field, #name) == 0) {               \
        setenv(env, text, 1);                      \
    }
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
}

static void choices_are_numbered_as_the_table_has_them(void **state)
{
    static struct iris_settings settings;

#define CHECK_CHOICE(field, NAME, value, word)      \
    set_choice(#field, word);                       \
    load(NULL, &settings);                          \
    assert_int_equal(settings.field.number, value); \
    assert_string_equal(settings.field.text, word);
    IRIS_CHOICE_ROWS(CHECK_CHOICE)
#undef CHECK_CHOICE
}

static int TEST_FILE(unit, valgrind)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, clear, clear)
    const struct CMUnitTest tests[] = {
        TEST(choices_are_numbered_as_the_table_has_them),
        TEST(defaults_are_the_tables),
        TEST(arguments_go_before_the_environment_before_defaults),
        TEST(an_empty_variable_counts_as_unset),
        TEST(simulation_means_the_sim_backend_and_only_that),
        TEST(a_list_takes_choices_with_commas),
        TEST(help_has_every_row_with_its_origin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
