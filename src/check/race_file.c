/* SPDX-License-Identifier: MIT
 *
 * Writes the files of races.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- JSON ---- */

static void write_access(struct iris_json_writer *json,
                         const struct iris_race *race,
                         const struct iris_race_access *access)
{
    const struct iris_race_shared *shared = race->memory.shared;
    const struct iris_race_site *site = &shared->sites[access->site];
    char text[IRIS_RACE_LINE_BYTES];

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_int(json, "rank", shared->lanes[access->lane].rank);
    iris_i_json_text(json, "kernel",
                     site->kernel[0] != '\0' ? site->kernel : NULL);
    iris_i_json_uint(json, "workgroup", access->workgroup);
    iris_i_race_line(site, text, sizeof text);
    iris_i_json_text(json, "line", text);
    iris_i_race_deed(site, text, sizeof text);
    iris_i_json_text(json, "operation", text);
    iris_i_json_bool(json, "writes", (access->kind & IRIS_RACE_IS_WRITE) != 0);
    iris_i_json_end(json);
}

static void write_race(struct iris_json_writer *json,
                       const struct iris_race *race,
                       const struct iris_race_found *found)
{
    struct iris_race_story story;

    iris_i_race_tell(race, found, &story);
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_int(json, "rank", found->rank);
    iris_i_json_uint(json, "offset", found->offset);
    iris_i_json_text(json, "place", story.place);
    iris_i_json_uint(json, "count", found->count);
    iris_i_json_bool(json, "suppressed", atomic_load(&found->suppressed));
    iris_i_json_text(json, "missing", story.missing);
    iris_i_json_text(json, "advice", story.lack);
    iris_i_json_begin(json, "accesses", '[');
    write_access(json, race, &found->accesses[0]);
    write_access(json, race, &found->accesses[1]);
    iris_i_json_end(json);
    iris_i_json_end(json);
}

static void write_races(struct iris_json_writer *json,
                        const struct iris_race *race)
{
    const struct iris_race_shared *shared = race->memory.shared;
    unsigned count = atomic_load(&shared->num_found);

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_begin(json, "races", '[');
    for (unsigned i = 0; i < count; i++) {
        write_race(json, race, &shared->found[i]);
    }
    iris_i_json_end(json);
    iris_i_json_end(json);
}

/* ---- SARIF 2.1.0, which code hosts and editors show at the source lines
 * ---- */

static void write_message(struct iris_json_writer *json, const char *text)
{
    iris_i_json_begin(json, "message", '{');
    iris_i_json_text(json, "text", text);
    iris_i_json_end(json);
}

/* An unknown line gets no location, only text. */
static void write_location(struct iris_json_writer *json,
                           const struct iris_race *race,
                           const struct iris_race_access *access,
                           const char *text)
{
    char line[IRIS_RACE_LINE_BYTES];
    char *colon;
    int number;

    iris_i_race_line(&race->memory.shared->sites[access->site], line,
                     sizeof line);
    colon = strrchr(line, ':');
    number = colon == NULL ? 0 : atoi(colon + 1);
    iris_i_json_begin(json, NULL, '{');
    write_message(json, text);
    if (number > 0) {
        *colon = '\0';
        iris_i_json_begin(json, "physicalLocation", '{');
        iris_i_json_begin(json, "artifactLocation", '{');
        iris_i_json_text(json, "uri", line);
        iris_i_json_end(json);
        iris_i_json_begin(json, "region", '{');
        iris_i_json_int(json, "startLine", number);
        iris_i_json_end(json);
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
}

static void write_result(struct iris_json_writer *json,
                         const struct iris_race *race,
                         const struct iris_race_found *found)
{
    struct iris_race_story story;
    char text[640];

    iris_i_race_tell(race, found, &story);
    snprintf(text, sizeof text, "data race on %s; missing: %s; %s", story.place,
             story.missing, story.lack);
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_text(json, "ruleId", "data-race");
    iris_i_json_text(json, "level", "error");
    write_message(json, text);
    iris_i_json_uint(json, "occurrenceCount", found->count);
    iris_i_json_begin(json, "suppressions", '[');
    if (atomic_load(&found->suppressed)) {
        iris_i_json_begin(json, NULL, '{');
        iris_i_json_text(json, "kind", "external");
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
    iris_i_json_begin(json, "locations", '[');
    write_location(json, race, &found->accesses[1], story.accesses[1]);
    iris_i_json_end(json);
    iris_i_json_begin(json, "relatedLocations", '[');
    write_location(json, race, &found->accesses[0], story.accesses[0]);
    iris_i_json_end(json);
    iris_i_json_end(json);
}

static void write_sarif(struct iris_json_writer *json,
                        const struct iris_race *race)
{
    const struct iris_race_shared *shared = race->memory.shared;
    unsigned count = atomic_load(&shared->num_found);

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_text(json, "$schema",
                     "https://json.schemastore.org/sarif-2.1.0.json");
    iris_i_json_text(json, "version", "2.1.0");
    iris_i_json_begin(json, "runs", '[');
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_begin(json, "tool", '{');
    iris_i_json_begin(json, "driver", '{');
    iris_i_json_text(json, "name", "Iris IRIS_CHECK=race");
    iris_i_json_end(json);
    iris_i_json_end(json);
    iris_i_json_begin(json, "results", '[');
    for (unsigned i = 0; i < count; i++) {
        write_result(json, race, &shared->found[i]);
    }
    iris_i_json_end(json);
    iris_i_json_end(json);
    iris_i_json_end(json);
    iris_i_json_end(json);
}

/* ---- Files ---- */

static void write_file(const struct iris_race *race, const char *ending,
                       void (*write)(struct iris_json_writer *json,
                                     const struct iris_race *race))
{
    struct iris_json_writer json;
    char path[PATH_MAX];
    struct iris_file file;
    int ret, copy;
    FILE *stream;

    snprintf(path, sizeof path, "%s%s", race->prefix, ending);
    ret = iris_i_file_open(path, &file);
    copy = ret == 0 ? dup(file.fd) : -1;
    stream = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (stream != NULL) {
        int whole;

        json = iris_i_json_writer(stream);
        write(&json, race);
        whole = fclose(stream) == 0;
        ret = iris_i_file_close(&file, path, whole);
        ret = whole ? ret : -1;
    } else {
        if (copy >= 0) {
            close(copy);
        }
        if (ret == 0) {
            (void)iris_i_file_close(&file, path, 0);
        }
        ret = -1;
    }
    if (ret != 0) {
        iris_i_warning(race->heap->log, "IRIS_CHECK=race: cannot write %s",
                       path);
    }
}

void iris_i_race_write_file(const struct iris_race *race)
{
    write_file(race, "_races.json", write_races);
    write_file(race, "_races.sarif", write_sarif);
}
