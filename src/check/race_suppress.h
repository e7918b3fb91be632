/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK_SUPPRESSIONS: a file of known races that are not reported. Each
 * line is `race:PATTERN`. The pattern may match any part of a report's lines
 * about the place and the two accesses; `*` matches any text.
 */
#ifndef IRIS_SRC_CHECK_RACE_SUPPRESS_H
#define IRIS_SRC_CHECK_RACE_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include <iris/status.h>

struct iris_log;
struct iris_race_story;

struct iris_race_suppression {
    char *pattern;
    unsigned line;
    bool used;
};

/* An empty list is all zero. */
struct iris_race_suppressions {
    struct iris_race_suppression *list;
    size_t count;
};

/* Reads the file; an empty path is allowed. Close *list_p in any case.
 * IRIS_ERR_CONFIG: the file cannot be read, or a line is malformed;
 * IRIS_ERR_NO_MEMORY. */
iris_status_t
iris_i_race_suppressions_open(const struct iris_log *log, const char *path,
                              struct iris_race_suppressions *list_p);
void iris_i_race_suppressions_close(struct iris_race_suppressions *list);

/* Whether a line of the file matches the race. The line then counts as used. */
bool iris_i_race_is_suppressed(const struct iris_race_suppressions *list,
                               const struct iris_race_story *story);

/* Warns about lines that were not used. */
void iris_i_race_tell_unused(const struct iris_race_suppressions *list,
                             const struct iris_log *log, const char *path);

#endif /* IRIS_SRC_CHECK_RACE_SUPPRESS_H */
