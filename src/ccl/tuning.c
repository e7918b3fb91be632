/* SPDX-License-Identifier: MIT
 *
 * The tuning file: the best variants on this machine, and its rates, one on
 * each line. docs/collectives.md has its format.
 */
#include "config.h"

#include "ccl/ccl.h"

#include <iris/constants.h>

#include "base/fp_env.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 6 };
#define FORMAT 2 /* a file without a format line has format 1, without rates */
#define FIELD_BYTES 32

struct line {
    const char *path;
    int number;
    char fields[FIELDS + 1][FIELD_BYTES]; /* one more than allowed */
};

static iris_status_t reject(const iris_t *iris, const struct line *line,
                            const char *field, const char *accepts)
{
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                       "IRIS_CCL_TUNING: %s:%d: '%s' is not %s", line->path,
                       line->number, field, accepts);
}

/* A number, or `any`, which means the maximum `most`. */
static int parse_number(const char *text, size_t most, size_t *number_p)
{
    char *end;
    unsigned long long number;

    if (strcmp(text, "any") == 0) {
        *number_p = most;
        return 1;
    }
    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        number > most) {
        return 0;
    }
    *number_p = (size_t)number;
    return 1;
}

static iris_status_t parse_device(const iris_t *iris, const struct line *line,
                                  int *on_gpu_p)
{
    *on_gpu_p = strcmp(line->fields[1], "gpu") == 0;
    return *on_gpu_p || strcmp(line->fields[1], "cpu") == 0
               ? IRIS_OK
               : reject(iris, line, line->fields[1], "a device: gpu or cpu");
}

/* "=4": exactly four members. "4": one to four. */
static iris_status_t parse_members(const iris_t *iris, const struct line *line,
                                   struct iris_ccl_rule *rule_p)
{
    const char *text = line->fields[2];
    size_t members;

    if (!parse_number(text + (text[0] == '='), INT_MAX, &members) ||
        members == 0 || strcmp(text, "=any") == 0) {
        return reject(iris, line, text,
                      "a number of members: 1 or more, or any; with = ahead "
                      "of it: no fewer");
    }
    rule_p->members = text[0] == '=' ? -(int)members : (int)members;
    return IRIS_OK;
}

static iris_status_t parse_way(const iris_t *iris, const struct line *line,
                               struct iris_ccl_rule *rule_p)
{
    const char(*fields)[FIELD_BYTES] = line->fields;
    size_t cus;

    if (!parse_number(fields[3], SIZE_MAX, &rule_p->bytes)) {
        return reject(iris, line, fields[3], "a number of bytes, or any");
    }
    rule_p->variant = iris_i_ccl_find_variant(rule_p->op, fields[4]);
    if (rule_p->variant == IRIS_CCL_AUTO && strcmp(fields[4], "auto") != 0) {
        return reject(iris, line, fields[4],
                      "auto, or a variant of it that keeps the order of "
                      "addition (docs/collectives.md)");
    }
    if (!parse_number(fields[5], INT_MAX, &cus) || cus == INT_MAX) {
        return reject(iris, line, fields[5],
                      "a number of workgroups, 0 for as many as are worth it");
    }
    rule_p->cus = (int)cus;
    return IRIS_OK;
}

static iris_status_t parse_rule(const iris_t *iris, const struct line *line,
                                struct iris_ccl_rule *rule_p)
{
    int op = iris_i_ccl_find_op(line->fields[0]);
    iris_status_t status;

    if (op < 0) {
        return reject(iris, line, line->fields[0],
                      "format, rate or a collective: all_reduce, all_gather, "
                      "reduce_scatter, all_to_all or broadcast");
    }
    rule_p->op = (enum iris_ccl_op)op;
    status = parse_device(iris, line, &rule_p->on_gpu);
    if (status == IRIS_OK) {
        status = parse_members(iris, line, rule_p);
    }
    return status == IRIS_OK ? parse_way(iris, line, rule_p) : status;
}

/* Digits, with or without a decimal point, independent of the locale; at least
 * `least`. */
static int parse_amount(const char *text, double least, double *amount_p)
{
    double amount = 0, parts = 0;
    uint64_t fp;

    if (text[0] < '0' || text[0] > '9') {
        return 0;
    }
    for (; *text != '\0'; text++) {
        if (*text == '.' && parts < 1) {
            parts = 1;
        } else if (*text >= '0' && *text <= '9') {
            amount = 10 * amount + (*text - '0');
            parts *= 10;
        } else {
            return 0;
        }
    }
    fp = iris_i_fp_enter();
    *amount_p = parts > 1 ? amount / parts : amount;
    iris_i_fp_leave(fp);
    return *amount_p >= least;
}

/* The row with that name; -1: not found. */
static int find_kind(const char *name)
{
    static const char *const names[] = {
#define NAME(NAME, name) [IRIS_RATE_##NAME] = (name),
        IRIS_RATE_ROWS(NAME)
#undef NAME
    };
    int kind = IRIS_RATE_KINDS - 1;

    while (kind >= 0 && strcmp(names[kind], name) != 0) {
        kind--;
    }
    return kind;
}

/* An element type of matrices. */
static int parse_dtype(const char *name, iris_dtype_t *dtype_p)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16};

    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(iris_dtype_name(dtypes[i]), name) == 0) {
            *dtype_p = dtypes[i];
            return 1;
        }
    }
    return 0;
}

/* "rate gpu product bf16 17179869184 687", "rate gpu link any any 364". */
static iris_status_t parse_rate(const iris_t *iris, const struct line *line,
                                struct iris_rate *rate_p)
{
    const char(*fields)[FIELD_BYTES] = line->fields;
    int kind = find_kind(fields[2]);
    int is_product = kind == IRIS_RATE_PRODUCT;
    int is_share = kind == IRIS_RATE_HIDDEN || kind == IRIS_RATE_HIDDEN_SUMS;
    int may_be_0 = is_share || kind == IRIS_RATE_CHUNK;

    if (kind < 0) {
        return reject(iris, line, fields[2],
                      "a rate: product, link, pair, memory, launch, signal, "
                      "hidden, hidden_all_reduce, chunk or most");
    }
    rate_p->kind = (enum iris_rate_kind)kind;
    if (is_product ? !parse_dtype(fields[3], &rate_p->dtype)
                   : strcmp(fields[3], "any") != 0) {
        return reject(iris, line, fields[3],
                      "a type: f32, f16 or bf16 of a product, else any");
    }
    if (is_product ? !parse_amount(fields[4], 1, &rate_p->size)
                   : strcmp(fields[4], "any") != 0) {
        return reject(iris, line, fields[4],
                      "a size: the operations of a product, else any");
    }
    if (!parse_amount(fields[5], may_be_0 ? 0 : 1e-9, &rate_p->value) ||
        (is_share && rate_p->value > 1)) {
        return reject(
            iris, line, fields[5],
            "a number above 0; of a share that is hidden, from 0 to 1");
    }
    return parse_device(iris, line, &rate_p->on_gpu);
}

static void mix(struct iris_ccl_tuning *tuning, const uint64_t *words,
                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tuning->hash = (tuning->hash ^ words[i]) * 0xd6e8feb86659fd93u;
        tuning->hash ^= tuning->hash >> 32;
    }
}

/* Resizes an array to this number of bytes. NULL, with a message, if there is
 * no memory. */
static void *grow(const iris_t *iris, void *array, size_t bytes)
{
    void *grown = realloc(array, bytes);

    if (grown == NULL) {
        (void)iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                          "no memory for the rules of IRIS_CCL_TUNING");
    }
    return grown;
}

static iris_status_t add_rule(const iris_t *iris,
                              const struct iris_ccl_rule *rule,
                              struct iris_ccl_tuning *tuning)
{
    const uint64_t words[] = {(uint64_t)rule->op,      (uint64_t)rule->on_gpu,
                              (uint64_t)rule->members, rule->bytes,
                              (uint64_t)rule->variant, (uint64_t)rule->cus};
    struct iris_ccl_rule *rules =
        grow(iris, tuning->rules, (tuning->count + 1) * sizeof *rules);

    if (rules == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    rules[tuning->count++] = *rule;
    tuning->rules = rules;
    mix(tuning, words, sizeof words / sizeof words[0]);
    return IRIS_OK;
}

static iris_status_t add_rate(const iris_t *iris, const struct iris_rate *rate,
                              struct iris_ccl_tuning *tuning)
{
    uint64_t words[] = {(uint64_t)rate->kind, (uint64_t)rate->on_gpu,
                        (uint64_t)rate->dtype, 0, 0};
    struct iris_rate *rates =
        grow(iris, tuning->rates, (tuning->num_rates + 1) * sizeof *rates);

    if (rates == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    rates[tuning->num_rates++] = *rate;
    tuning->rates = rates;
    memcpy(&words[3], &rate->size, sizeof rate->size);
    memcpy(&words[4], &rate->value, sizeof rate->value);
    mix(tuning, words, sizeof words / sizeof words[0]);
    return IRIS_OK;
}

/* "format 2". A later version's --tune may write another number. */
static iris_status_t check_format(const iris_t *iris, const struct line *line)
{
    size_t format;

    return parse_number(line->fields[1], INT_MAX, &format) && format >= 1 &&
                   format <= FORMAT
               ? IRIS_OK
               : iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                             "IRIS_CCL_TUNING: %s:%d: format '%s' is of "
                             "another version of Iris; this one reads 1 to "
                             "%d: write the file anew with iris bench --tune",
                             line->path, line->number, line->fields[1], FORMAT);
}

static iris_status_t take_words(const iris_t *iris, const struct line *line,
                                struct iris_ccl_tuning *tuning)
{
    struct iris_ccl_rule rule = {0};
    struct iris_rate rate = {0};
    iris_status_t status;

    if (strcmp(line->fields[0], "rate") == 0) {
        status = parse_rate(iris, line, &rate);
        return status == IRIS_OK ? add_rate(iris, &rate, tuning) : status;
    }
    status = parse_rule(iris, line, &rule);
    return status == IRIS_OK ? add_rule(iris, &rule, tuning) : status;
}

/* One line without its comment: a rule, a rate, the format, or nothing. */
static iris_status_t take_line(const iris_t *iris, struct line *line,
                               char *text, struct iris_ccl_tuning *tuning)
{
    static const char blanks[] = " \t\r\n";
    char *rest = text, *field;
    int count = 0;

    text[strcspn(text, "#")] = '\0';
    while (count <= FIELDS && (field = strsep(&rest, blanks)) != NULL) {
        if (field[0] != '\0') {
            snprintf(line->fields[count++], FIELD_BYTES, "%s", field);
        }
    }
    if (count == 0) {
        return IRIS_OK;
    }
    if (count == 2 && strcmp(line->fields[0], "format") == 0) {
        return check_format(iris, line);
    }
    if (count != FIELDS) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                           "IRIS_CCL_TUNING: %s:%d: %d words or more; a rule "
                           "has %d: op device members bytes variant cus, and "
                           "so has a rate: rate device name type size value",
                           line->path, line->number, count, FIELDS);
    }
    return take_words(iris, line, tuning);
}

static iris_status_t read_file(const iris_t *iris,
                               struct iris_ccl_tuning *tuning_p)
{
    struct line line = {.path = iris_i_settings(iris)->ccl_tuning.text};
    iris_status_t status = IRIS_OK;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file;

    if (line.path[0] == '\0') {
        return IRIS_OK;
    }
    file = fopen(line.path, "re");
    if (file == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                           "IRIS_CCL_TUNING: %s cannot be opened: %s; name a "
                           "file that iris bench --tune wrote, or unset it",
                           line.path, strerror(errno));
    }
    while (status == IRIS_OK && getline(&text, &bytes, file) >= 0) {
        line.number++;
        status = take_line(iris, &line, text, tuning_p);
    }
    if (status == IRIS_OK && ferror(file)) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                             "IRIS_CCL_TUNING: %s cannot be read: %s; name a "
                             "file that iris bench --tune wrote, or unset it",
                             line.path, strerror(errno));
    }
    free(text);
    fclose(file);
    return status;
}

static void close_tuning(struct iris_extension *extension)
{
    struct iris_ccl_tuning *tuning = (struct iris_ccl_tuning *)extension;

    free(tuning->rules);
    free(tuning->rates);
    free(tuning);
}

iris_status_t iris_i_ccl_tuning(iris_t *iris, struct iris_ccl_tuning **tuning_p)
{
    struct iris_ccl_tuning *tuning =
        (struct iris_ccl_tuning *)iris_i_extension(iris, IRIS_EXTENSION_TUNING);
    iris_status_t status;

    if (tuning == NULL) {
        tuning = calloc(1, sizeof *tuning);
        if (tuning == NULL) {
            return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                               "no memory for the rules of IRIS_CCL_TUNING");
        }
        tuning->extension.close = close_tuning;
        status = read_file(iris, tuning);
        if (status != IRIS_OK) {
            close_tuning(&tuning->extension);
            return status;
        }
        iris_i_extend(iris, IRIS_EXTENSION_TUNING, &tuning->extension);
    }
    *tuning_p = tuning;
    return IRIS_OK;
}
