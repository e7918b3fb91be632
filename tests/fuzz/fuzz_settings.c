/* SPDX-License-Identifier: MIT
 *
 * Settings from any environment: what is accepted is in range and reads back as
 * itself, what is refused is named and leaves the default.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include "base/base.h"

#include <strings.h>

/* One choice is a list, too. */
enum kind { STRING, CHOICE, BYTES, MS, COUNT, RANK, FLAG, LIST = CHOICE };

static const struct {
    const char *env;
    const char *value;
    const char *choices;
    enum kind kind;
    size_t offset;
} rows[] = {
#define ROW(field, kind, env, value, choices, help) \
    {env, value, choices, kind, offsetof(struct iris_settings, field)},
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
};

#define NUM_ROWS (sizeof rows / sizeof rows[0])

static const struct iris_setting *setting_of(const struct iris_settings *all,
                                             size_t row)
{
    return (const void *)((const char *)all + rows[row].offset);
}

/* Gives a row's variable a text from the input, up to a 0. Returns the row. */
static size_t set_variable(struct input *input, char text[600])
{
    size_t row = input_number(input, 1) % NUM_ROWS, length = 0;

    while (length < 599 && input->left > 0 && *input->data != 0) {
        text[length++] = (char)input_number(input, 1);
    }
    input_number(input, 1);
    text[length] = '\0';
    if (strcasecmp(text, "debug") == 0) {
        text[0] = 'x'; /* a log that tells of every failure is of no use */
    }
    setenv(rows[row].env, text, 1);
    return row;
}

static int in_range(enum kind kind, int64_t number)
{
    switch (kind) {
    case BYTES:
        return number >= 1;
    case COUNT:
        return number >= 1 && number <= INT32_MAX;
    case MS:
    case RANK:
        return number >= 0 && number <= INT32_MAX;
    case FLAG:
        return number == 0 || number == 1;
    case CHOICE:
        return number >= 0 && number < 9; /* its word's place in the table */
    case STRING:
        break;
    }
    return number == 0;
}

/* What a number's text says, by other means than the parser's: digits, and then
 * so many times 1024. Ends with -1 where there is no such number. */
static int64_t number_in(const char *text, int with_units)
{
    size_t digits = strspn(text, "0123456789"), power = 0;
    unsigned __int128 number = 0;
    const char *units = "kmg", *unit = NULL, *rest = text + digits;

    for (size_t i = 0; i < digits && number <= INT64_MAX; i++) {
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    if (digits == 0 || number > INT64_MAX) {
        return -1;
    }
    if (with_units && *rest != '\0') {
        unit = strchr(units, *rest | 0x20);
        power = unit == NULL ? 0 : (size_t)(unit - units) + 1;
        rest += power > 0;
        rest += power > 0 && (*rest | 0x20) == 'i' && (rest[1] | 0x20) == 'b';
        rest += power > 0 && (*rest | 0x20) == 'b' && rest[1] == '\0';
    }
    number <<= 10 * power;
    return *rest != '\0' || number > INT64_MAX ? -1 : (int64_t)number;
}

static void check_row(const struct iris_settings *all, size_t row,
                      const char *text)
{
    const struct iris_setting *setting = setting_of(all, row);
    enum kind kind = rows[row].kind;
    int accepted = setting->origin == IRIS_ORIGIN_ENVIRONMENT;

    REQUIRE(memchr(setting->text, '\0', sizeof setting->text) != NULL);
    /* A default is good, though others of its kind may not have that value. */
    REQUIRE(in_range(kind, setting->number) ||
            setting->number == number_in(rows[row].value, kind == BYTES));
    if (text == NULL || !accepted) {
        return;
    }
    REQUIRE(text[0] != '\0' || strcmp(rows[row].env, "IRIS_BACKEND") == 0);
    if (kind != STRING && kind != CHOICE && kind != FLAG) {
        REQUIRE(setting->number == number_in(text, kind == BYTES));
    }
    if (kind == STRING) {
        REQUIRE(strcmp(setting->text, text) == 0 ||
                strcmp(rows[row].env, "IRIS_BACKEND") == 0);
    }
    if (kind == CHOICE) {
        REQUIRE(strchr(setting->text, ',') != NULL ||
                strstr(rows[row].choices, setting->text) != NULL);
    }
}

/* A number that is in range must not be refused. */
static void check_refused(const struct iris_settings *all, size_t row,
                          const char *text)
{
    enum kind kind = rows[row].kind;
    int64_t number;

    if (setting_of(all, row)->origin == IRIS_ORIGIN_ENVIRONMENT ||
        strlen(text) >= IRIS_SETTING_BYTES) {
        return;
    }
    REQUIRE(strcmp(setting_of(all, row)->text, rows[row].value) == 0 ||
            strcmp(rows[row].env, "IRIS_BACKEND") == 0);
    if (kind == BYTES || kind == COUNT || kind == MS || kind == RANK) {
        number = number_in(text, kind == BYTES);
        REQUIRE(number == -1 || !in_range(kind, number));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct iris_settings all;
    char text[600];
    size_t row = NUM_ROWS;
    iris_status_t status;

    for (size_t i = 0; i < NUM_ROWS; i++) {
        unsetenv(rows[i].env);
    }
    for (int i = 0; i < 3 && input.left > 0; i++) {
        row = set_variable(&input, text);
    }
    memset(&all, 0xa5, sizeof all);
    status = iris_i_settings_load(NULL, &all);
    REQUIRE(status == IRIS_OK || status == IRIS_ERR_CONFIG);
    REQUIRE(status == IRIS_OK || strstr(iris_last_error(), "IRIS_") != NULL);
    for (size_t i = 0; i < NUM_ROWS; i++) {
        check_row(&all, i, i == row ? text : NULL);
    }
    if (row < NUM_ROWS) {
        check_refused(&all, row, text);
    }
    return 0;
}
