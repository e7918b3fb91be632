/* SPDX-License-Identifier: MIT
 *
 * The tuning file: which variant is best on this machine, one rule a line.
 * docs/collectives.md has its format.
 */
#include "config.h"

#include "ccl/tuning.h"

#include "ccl/choose.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 6 };
#define FIELD_BYTES 32

struct line {
    const char *path;
    int number;
    char fields[FIELDS + 1][FIELD_BYTES]; /* and one that is too many */
};

static iris_status_t reject(const iris_t *iris, const struct line *line,
                            const char *field, const char *accepts)
{
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                       "IRIS_CCL_TUNING: %s:%d: '%s' is not %s", line->path,
                       line->number, field, accepts);
}

/* A number, or `any`, which is the greatest that `most` allows. */
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

static iris_status_t parse(const iris_t *iris, const struct line *line,
                           struct iris_ccl_rule *rule_p)
{
    const char(*fields)[FIELD_BYTES] = line->fields;
    int op = iris_i_ccl_find_op(fields[0]);
    size_t members, bytes, cus;

    if (op < 0) {
        return reject(iris, line, fields[0],
                      "a collective: all_reduce, all_gather, reduce_scatter, "
                      "all_to_all or broadcast");
    }
    rule_p->op = (enum iris_ccl_op)op;
    rule_p->on_gpu = strcmp(fields[1], "gpu") == 0;
    if (!rule_p->on_gpu && strcmp(fields[1], "cpu") != 0) {
        return reject(iris, line, fields[1], "a device: gpu or cpu");
    }
    if (!parse_number(fields[2], INT_MAX, &members) || members == 0) {
        return reject(iris, line, fields[2],
                      "a number of members: 1 or more, or any");
    }
    if (!parse_number(fields[3], SIZE_MAX, &bytes)) {
        return reject(iris, line, fields[3], "a number of bytes, or any");
    }
    rule_p->variant = iris_i_ccl_find_variant(rule_p->op, fields[4]);
    if (rule_p->variant == IRIS_CCL_AUTO) {
        return reject(iris, line, fields[4],
                      "a variant of it that keeps the order of addition "
                      "(docs/collectives.md)");
    }
    if (!parse_number(fields[5], INT_MAX, &cus) || cus == INT_MAX) {
        return reject(iris, line, fields[5],
                      "a number of workgroups, 0 for as many as are worth it");
    }
    rule_p->members = (int)members;
    rule_p->bytes = bytes;
    rule_p->cus = (int)cus;
    return IRIS_OK;
}

static iris_status_t add(const iris_t *iris, const struct iris_ccl_rule *rule,
                         struct iris_ccl_tuning *tuning)
{
    struct iris_ccl_rule *rules =
        realloc(tuning->rules, (tuning->count + 1) * sizeof *rules);
    const uint64_t words[] = {(uint64_t)rule->op,      (uint64_t)rule->on_gpu,
                              (uint64_t)rule->members, rule->bytes,
                              (uint64_t)rule->variant, (uint64_t)rule->cus};

    if (rules == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "no memory for the rules of IRIS_CCL_TUNING");
    }
    rules[tuning->count++] = *rule;
    tuning->rules = rules;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        tuning->hash = (tuning->hash ^ words[i]) * 0xd6e8feb86659fd93u;
        tuning->hash ^= tuning->hash >> 32;
    }
    return IRIS_OK;
}

/* One line without its comment: a rule, or nothing. */
static iris_status_t take_line(const iris_t *iris, struct line *line,
                               char *text, struct iris_ccl_tuning *tuning)
{
    static const char blanks[] = " \t\r\n";
    struct iris_ccl_rule rule = {0};
    char *rest = text, *field;
    int count = 0;
    iris_status_t status;

    text[strcspn(text, "#")] = '\0';
    while (count <= FIELDS && (field = strsep(&rest, blanks)) != NULL) {
        if (field[0] != '\0') {
            snprintf(line->fields[count++], FIELD_BYTES, "%s", field);
        }
    }
    if (count == 0) {
        return IRIS_OK;
    }
    if (count != FIELDS) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                           "IRIS_CCL_TUNING: %s:%d: %d words or more; a rule "
                           "has %d: op device members bytes variant cus",
                           line->path, line->number, count, FIELDS);
    }
    status = parse(iris, line, &rule);
    return status == IRIS_OK ? add(iris, &rule, tuning) : status;
}

iris_status_t iris_i_ccl_read_tuning(const iris_t *iris,
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
                           "file that iris-bench --tune wrote, or none",
                           line.path, strerror(errno));
    }
    while (status == IRIS_OK && getline(&text, &bytes, file) >= 0) {
        line.number++;
        status = take_line(iris, &line, text, tuning_p);
    }
    if (status == IRIS_OK && ferror(file)) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                             "IRIS_CCL_TUNING: %s cannot be read: %s; name a "
                             "file that iris-bench --tune wrote, or none",
                             line.path, strerror(errno));
    }
    free(text);
    fclose(file);
    return status;
}
