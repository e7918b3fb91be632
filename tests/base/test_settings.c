/* SPDX-License-Identifier: MIT
 *
 * Settings: defaults, environment, arguments, which goes first, and how they
 * are parsed.
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

static TEST(defaults_are_the_tables)
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

static TEST(arguments_go_before_the_environment_before_defaults)
{
    static struct iris_settings settings;
    struct iris_config config;

#define ROW(field, kind, env, value, choices, help)                        \
    check_row(kind, env, choices, &config, &config.field, &settings.field, \
              &settings);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
}

static TEST(an_empty_variable_counts_as_unset)
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

static TEST(simulation_means_the_sim_backend_and_only_that)
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
}

static TEST(a_list_takes_choices_with_commas)
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

static TEST(help_has_every_row_with_its_origin)
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

static TEST(choices_are_numbered_as_the_table_has_them)
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

/* ---- What does not parse, and what does in more than one way ---- */

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

/* A default is good, though others of its kind may not have that value. */
static void check_bad(enum kind kind, const char *env, const char *value)
{
    struct iris_settings settings;

    for (size_t i = 0; i < 12 && bad[kind][i] != NULL; i++) {
        char quoted[64];

        if (bad[kind][i][0] == '\0' || strcmp(bad[kind][i], value) == 0) {
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

static TEST(every_row_names_itself_when_it_does_not_parse)
{
#define ROW(field, kind, env, value, choices, help) check_bad(kind, env, value);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
}

static TEST(a_bad_value_leaves_the_default_and_the_rest)
{
    struct iris_settings settings;

    setenv("IRIS_SIM_CUS", "none", 1);
    setenv("IRIS_TIMEOUT_MS", "77", 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_int_equal(settings.sim_cus.number, 4);
    assert_int_equal(settings.sim_cus.origin, IRIS_ORIGIN_DEFAULT);
    assert_int_equal(settings.timeout_ms.number, 77);
}

static TEST(of_two_bad_values_the_first_row_is_named)
{
    struct iris_settings settings;

    setenv("IRIS_NUM_RANKS", "many", 1);
    setenv("IRIS_HEAP_SIZE", "big", 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_HEAP_SIZE=\"big\""));
}

static TEST(sizes_take_units_in_either_case)
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

static TEST(flags_and_choices_ignore_case)
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

static TEST(bad_arguments_are_told_from_the_environment)
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

static TEST(a_text_too_long_is_refused)
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

TEST_GROUP_WITH(clear, NULL, unit, valgrind);
