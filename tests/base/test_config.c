/* SPDX-License-Identifier: MIT
 *
 * The program's configuration across versions of the header, and fields set by
 * name.
 */
#include "config.h"

#include "base/base.h"
#include "support/harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One choice is a list, too. */
enum kind { STRING, CHOICE, BYTES, MS, COUNT, RANK, FLAG, LIST = CHOICE };

static int clear(void **state)
{
#define ROW(field, kind, env, value, choices, help) unsetenv(env);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
    return 0;
}

/* A configuration with space for fields that a newer header may add. */
union space {
    struct iris_config config;
    unsigned char bytes[sizeof(struct iris_config) + 64];
};

static TEST(an_older_programs_struct_ends_earlier)
{
    size_t size = offsetof(struct iris_config, heap_bases_prefix);
    struct iris_settings settings;
    union space space;

    memset(&space, 0x5a, sizeof space);
    iris_config_init_sized(&space.config, size);
    for (size_t i = size; i < sizeof space; i++) {
        assert_int_equal(space.bytes[i], 0x5a);
    }
    space.config.heap_bytes = 4 << 20;
    assert_int_equal(iris_i_settings_load(&space.config, &settings), IRIS_OK);
    assert_int_equal(settings.heap_bytes.number, 4 << 20);
    assert_int_equal(settings.heap_bases_prefix.origin, IRIS_ORIGIN_DEFAULT);
    assert_int_equal(settings.num_ranks.origin, IRIS_ORIGIN_DEFAULT);
    assert_int_equal(iris_config_set(&space.config, "num_ranks", "3"),
                     IRIS_ERR_CONFIG);
    assert_true(harness_message_has("ends before num_ranks"));
    assert_int_equal(space.bytes[size], 0x5a);
}

static TEST(a_newer_programs_fields_may_not_be_set)
{
    struct iris_settings settings;
    union space space;

    iris_config_init_sized(&space.config, sizeof space.bytes);
    space.config.rank = 2;
    assert_int_equal(iris_i_settings_load(&space.config, &settings), IRIS_OK);
    assert_int_equal(settings.rank.number, 2);
    assert_int_equal(iris_config_set(&space.config, "rank", "1"), IRIS_OK);
    for (size_t i = sizeof space.config; i < sizeof space.bytes; i++) {
        space.bytes[i] = 0;
        assert_int_equal(iris_i_settings_load(&space.config, &settings),
                         IRIS_ERR_CONFIG);
        assert_true(harness_message_has("after version " PACKAGE_VERSION));
        assert_int_equal(settings.rank.origin, IRIS_ORIGIN_DEFAULT);
        space.bytes[i] = 0xff;
    }
}

static TEST(a_configuration_nobody_made_is_refused)
{
    static const size_t sizes[] = {0, 7, 1 << 20, SIZE_MAX};
    struct iris_settings settings;
    struct iris_config config;

    iris_config_init_sized(&config, 0);
    memset(&config, 0, sizeof config);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        config.size = sizes[i];
        assert_int_equal(iris_i_settings_load(&config, &settings),
                         IRIS_ERR_CONFIG);
        assert_true(harness_message_has("call iris_config_init on it first"));
        assert_int_equal(iris_config_set(&config, "rank", "1"),
                         IRIS_ERR_CONFIG);
        assert_int_equal(config.rank, 0);
    }
}

/* A value of each kind, as a text and as the field has it. */
static const struct {
    const char *text;
    int64_t number;
} samples[] = {
    [STRING] = {"some text", 0}, [CHOICE] = {NULL, 0},
    [BYTES] = {"64M", 64 << 20}, [MS] = {"250", 250},
    [COUNT] = {"7", 7},          [RANK] = {"5", 5},
    [FLAG] = {"yes", 1},
};

static void check_set(struct iris_config *config, const char *name,
                      enum kind kind, const char *choices, const void *field)
{
    char first[32];
    const char *text = samples[kind].text;

    snprintf(first, sizeof first, "%.*s", (int)strcspn(choices, " "), choices);
    text = kind == CHOICE ? first : text;
    iris_config_init(config);
    assert_int_equal(iris_config_set(config, name, text), IRIS_OK);
    if (kind == STRING || kind == CHOICE) {
        assert_ptr_equal(*(const char *const *)field, text);
        assert_int_equal(iris_config_set(config, name, NULL), IRIS_OK);
        assert_null(*(const char *const *)field);
    } else {
        assert_int_equal(*(const int64_t *)field, samples[kind].number);
        assert_int_equal(iris_config_set(config, name, "none"),
                         IRIS_ERR_CONFIG);
        assert_true(harness_message_has("it takes: "));
        assert_int_equal(*(const int64_t *)field, samples[kind].number);
        assert_int_equal(iris_config_set(config, name, NULL), IRIS_OK);
        assert_int_equal(*(const int64_t *)field, -1);
    }
}

/* Its name, in the case that `change` gives. */
static const char *in_case(const char *name, int (*change)(int), char *buffer)
{
    size_t i = 0;

    for (; name[i] != '\0'; i++) {
        buffer[i] = (char)change((unsigned char)name[i]);
    }
    buffer[i] = '\0';
    return buffer;
}

static TEST(every_field_has_its_own_name_and_its_variables)
{
    struct iris_config config;
    char name[64];

    iris_config_init(&config);
#define CHECK_NAME(name, kind, choices, field) \
    check_set(&config, name, kind, choices, field)
#define ROW(field, kind, env, value, choices, help)                            \
    CHECK_NAME(in_case(#field, tolower, name), kind, choices, &config.field);  \
    CHECK_NAME(in_case(#field, toupper, name), kind, choices, &config.field);  \
    CHECK_NAME(in_case(&env[5], tolower, name), kind, choices, &config.field); \
    CHECK_NAME(in_case(&env[5], toupper, name), kind, choices, &config.field);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
}

static TEST(a_name_of_no_field_is_answered_with_all)
{
    static const char *const wrong[] = {"", "heap", "IRIS_HEAP_SIZE",
                                        "heap size", "size"};
    struct iris_config config, before;

    iris_config_init(&config);
    before = config;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(iris_config_set(&config, wrong[i], "1"),
                         IRIS_ERR_CONFIG);
#define ROW(field, kind, env, value, choices, help) \
    assert_true(harness_message_has(" " #field));
        IRIS_CONFIG_ROWS(ROW)
#undef ROW
    }
    assert_int_equal(iris_config_set(&config, "allocator", "bucket"),
                     IRIS_ERR_CONFIG);
    assert_true(harness_message_has("allocator=\"bucket\" does not parse"));
    assert_true(harness_message_has("pool torch vmem"));
    assert_int_equal(iris_config_set(NULL, "rank", "1"), IRIS_ERR_INVALID);
    assert_int_equal(iris_config_set(&config, NULL, "1"), IRIS_ERR_INVALID);
    assert_memory_equal(&config, &before, sizeof config);
}

TEST_GROUP_WITH(clear, NULL, unit);
