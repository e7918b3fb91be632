/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND "race:"

static iris_status_t add(const struct iris_log *log, const char *pattern,
                         unsigned line, struct iris_race_suppressions *list)
{
    struct iris_race_suppression *larger =
        realloc(list->list, (list->count + 1) * sizeof *larger);
    struct iris_race_suppression one = {.line = line};

    list->list = larger == NULL ? list->list : larger;
    if (larger == NULL || asprintf(&one.pattern, "*%s*", pattern) < 0) {
        return iris_i_fail(log, IRIS_ERR_NO_MEMORY,
                           "no memory for IRIS_CHECK_SUPPRESSIONS");
    }
    list->list[list->count++] = one;
    return IRIS_OK;
}

/* One line; `#` begins a comment. */
static iris_status_t read_line(const struct iris_log *log, const char *path,
                               char *text, unsigned line,
                               struct iris_race_suppressions *list)
{
    size_t length = strcspn(text, "\n#");

    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        length--;
    }
    text[length] = '\0';
    text += strspn(text, " \t");
    if (*text == '\0') {
        return IRIS_OK;
    }
    if (strncmp(text, KIND, strlen(KIND)) != 0 || text[strlen(KIND)] == '\0') {
        return iris_i_fail(log, IRIS_ERR_CONFIG,
                           "IRIS_CHECK_SUPPRESSIONS: %s:%u: '%s' is not "
                           "race:PATTERN",
                           path, line, text);
    }
    return add(log, text + strlen(KIND), line, list);
}

iris_status_t
iris_i_race_suppressions_open(const struct iris_log *log, const char *path,
                              struct iris_race_suppressions *list_p)
{
    iris_status_t status = IRIS_OK;
    char text[512];
    FILE *file;

    if (path[0] == '\0') {
        return IRIS_OK;
    }
    file = fopen(path, "re");
    if (file == NULL) {
        return iris_i_fail_errno(log, IRIS_ERR_CONFIG, errno,
                                 "IRIS_CHECK_SUPPRESSIONS: cannot read %s",
                                 path);
    }
    for (unsigned line = 1;
         status == IRIS_OK && fgets(text, sizeof text, file) != NULL; line++) {
        status = read_line(log, path, text, line, list_p);
    }
    fclose(file);
    return status;
}

void iris_i_race_suppressions_close(struct iris_race_suppressions *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->list[i].pattern);
    }
    free(list->list);
}

bool iris_i_race_is_suppressed(const struct iris_race_suppressions *list,
                               const struct iris_race_story *story)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *pattern = list->list[i].pattern;

        if (fnmatch(pattern, story->place, 0) == 0 ||
            fnmatch(pattern, story->accesses[0], 0) == 0 ||
            fnmatch(pattern, story->accesses[1], 0) == 0) {
            list->list[i].used = true;
            return true;
        }
    }
    return false;
}

void iris_i_race_tell_unused(const struct iris_race_suppressions *list,
                             const struct iris_log *log, const char *path)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct iris_race_suppression *one = &list->list[i];

        if (!one->used) {
            iris_i_warning(log,
                           "IRIS_CHECK_SUPPRESSIONS: %s:%u: no race is like "
                           "%.*s; delete the line",
                           path, one->line, (int)strlen(one->pattern) - 2,
                           one->pattern + 1);
        }
    }
}
