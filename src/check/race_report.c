/* SPDX-License-Identifier: MIT
 *
 * Races that were found: each once, with the order that it lacks.
 *
 * iris_i_race_note() adds a race under the common lock, and from then on only its
 * count changes. The rank that found it prints it once, without the lock, and
 * marks it if a line of IRIS_CHECK_SUPPRESSIONS matches. At the end, when all
 * ranks have ended their work, rank 0 writes <prefix>_races.json, and
 * <prefix>_races.sarif for code hosts and editors.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include "base/base.h"
#include "heap/heap.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IRIS_RACE_LINE_BYTES 160

/* The texts of a race. */
struct iris_race_story {
    char place[256];
    char accesses[2][320]; /* the earlier one, the later one */
    const char *missing;   /* "release" */
    char lack[480];        /* the necessary change */
};

/* ---- Suppressions ---- */

#define KIND "race:"

static iris_status_t add_pattern(const struct iris_log *log,
                                 const char *pattern, unsigned line,
                                 struct iris_race_suppressions *list)
{
    struct iris_race_suppression *larger =
        iris_i_order_grow(list->list, list->count, sizeof *larger);
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
static iris_status_t read_pattern(const struct iris_log *log, const char *path,
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
    return add_pattern(log, text + strlen(KIND), line, list);
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
        status = read_pattern(log, path, text, line, list_p);
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

static bool is_suppressed(const struct iris_race_suppressions *list,
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

static void tell_unused(const struct iris_race_suppressions *list,
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

/* ---- The missing order ---- */

/* No chain orders the two accesses. */
static enum iris_order_lack judge_order(const struct iris_order_shared *shared,
                                        const struct iris_race_access *before,
                                        const struct iris_race_access *now,
                                        bool later)
{
    const struct iris_order_lane *a = &shared->lanes[before->lane];
    const struct iris_order_lane *b = &shared->lanes[now->lane];

    if (((before->kind ^ now->kind) & IRIS_RACE_IS_ATOMIC) != 0) {
        return IRIS_ORDER_LACKS_MIXED;
    }
    if (a->rank == b->rank && a->stream != b->stream) {
        return IRIS_ORDER_LACKS_STREAM;
    }
    if (later) {
        return IRIS_ORDER_LACKS_LATER;
    }
    if ((now->kind & IRIS_RACE_IS_WRITE) == 0) {
        return IRIS_ORDER_LACKS_WAIT;
    }
    return (before->kind & IRIS_RACE_IS_WRITE) != 0 ? IRIS_ORDER_LACKS_WRITERS
                                                    : IRIS_ORDER_LACKS_ANSWER;
}

/* The site of the release that lane `reader` acquired and that was the last
 * before the access; 0: it acquired another one, or none. */
static uint32_t find_release(const struct iris_order *order, uint32_t reader,
                             const struct iris_race_access *access)
{
    struct iris_order_lane *lanes = order->shared->lanes;
    struct iris_order_lane *lane = &lanes[access->lane];
    const struct iris_order_moment *moment;
    uint32_t acquired, site = 0;

    iris_i_order_spin_lock(order->shared, &lanes[reader].lock);
    moment = iris_i_order_moment(order, &lanes[reader].clock, access->lane);
    acquired = moment == NULL ? 0 : moment->strict;
    iris_i_order_spin_unlock(&lanes[reader].lock);
    if (acquired == 0 || acquired + 1 != access->clock) {
        return 0;
    }
    iris_i_order_spin_lock(order->shared, &lane->lock);
    for (unsigned i = 0; site == 0 && i < IRIS_ORDER_RELEASES; i++) {
        site = lane->releases[i].clock == acquired ? lane->releases[i].site : 0;
    }
    iris_i_order_spin_unlock(&lane->lock);
    return site;
}

static struct iris_order_edge find_lack(const struct iris_order *order,
                                        const struct iris_race_access *before,
                                        const struct iris_race_access *now)
{
    const struct iris_order_shared *shared = order->shared;
    const struct iris_order_moment *moment = iris_i_order_moment(
        order, &shared->lanes[now->lane].clock, before->lane);
    struct iris_order_edge edge = {IRIS_ORDER_LACKS_NOTHING, 0, 0};

    if (((before->kind | now->kind) & IRIS_RACE_IS_FREE) != 0) {
        edge.lack = IRIS_ORDER_LACKS_LIFE;
    } else if ((before->kind & now->kind & IRIS_RACE_IS_ATOMIC) != 0) {
        edge.lack = before->mask == now->mask ? IRIS_ORDER_LACKS_SCOPE
                                              : IRIS_ORDER_LACKS_SIZE;
    } else if (moment != NULL && moment->loose >= before->clock &&
               moment->why != 0) {
        edge = shared->edges[moment->why];
    } else {
        edge.release = (before->kind & IRIS_RACE_IS_WRITE) != 0
                           ? find_release(order, now->lane, before)
                           : find_release(order, before->lane, now);
        edge.lack = judge_order(shared, before, now,
                                edge.release != 0 &&
                                    (before->kind & IRIS_RACE_IS_WRITE) != 0);
    }
    return edge;
}

/* Adds `times` races of that kind. */
static void note_race(struct iris_race *race,
                      const struct iris_race_caught_one *one)
{
    const struct iris_race_access *before = &one->before, *now = &one->now;
    struct iris_race_shared *shared = race->shared;
    unsigned i, count = atomic_load(&shared->num_found);

    for (i = 0; i < count; i++) {
        uint32_t a = shared->found[i].accesses[0].site;
        uint32_t b = shared->found[i].accesses[1].site;

        if ((a == before->site && b == now->site) ||
            (b == before->site && a == now->site)) {
            shared->found[i].count += one->times;
            return;
        }
    }
    if (i == IRIS_RACE_REPORTS) {
        return;
    }
    shared->found[i] = (struct iris_race_found){
        .accesses = {*before, *now},
        .edge = find_lack(&race->order, before, now),
        .rank = one->rank,
        .finder = race->heap->log->rank,
        .offset = one->offset,
        .count = one->times,
    };
    while (
        ((before->mask & now->mask) >> (shared->found[i].offset - one->offset) &
         1) == 0) {
        shared->found[i].offset++;
    }
    atomic_store(&shared->num_found, i + 1);
}

void iris_i_race_note(struct iris_race *race,
                      const struct iris_race_caught *caught)
{
    iris_i_order_spin_lock(race->order.shared, &race->shared->lock);
    for (unsigned i = 0; i < caught->count; i++) {
        note_race(race, &caught->races[i]);
    }
    iris_i_order_spin_unlock(&race->shared->lock);
}

/* ---- Text ---- */

/* 'store by rank 0, kernel send, workgroup 1 (send.c:12)' */
static void describe_access(const struct iris_race *race,
                            const struct iris_race_access *access, char *text,
                            size_t bytes)
{
    const struct iris_race_shared *shared = race->shared;
    const struct iris_race_site *site = &shared->sites[access->site];
    char line[IRIS_RACE_LINE_BYTES], deed[80];

    iris_i_race_line(site, line, sizeof line);
    iris_i_race_deed(site, deed, sizeof deed);
    if (site->host_op >= 0) {
        snprintf(text, bytes, "%s%s%s of rank %d", line,
                 line[0] == '\0' ? "" : ": ", deed,
                 race->order.shared->lanes[access->lane].rank);
    } else if (site->kernel[0] == '\0') {
        snprintf(text, bytes, "%s: %s by rank %d, host", line, deed,
                 race->order.shared->lanes[access->lane].rank);
    } else {
        snprintf(text, bytes, "%s: %s by rank %d, kernel %s, workgroup %u",
                 line, deed, race->order.shared->lanes[access->lane].rank,
                 site->kernel, access->workgroup);
    }
}

static void describe_place(const struct iris_race *race,
                           const struct iris_race_found *found, char *text,
                           size_t bytes)
{
    char name[IRIS_NAME_BYTES + 4];
    size_t start, size;

    if (iris_i_heap_find(&race->heap->names, found->offset, &start, &size)) {
        snprintf(text, bytes,
                 "byte %zu of the allocation%s of %zu bytes at heap offset "
                 "%zu on rank %d",
                 (size_t)found->offset - start,
                 iris_i_heap_describe(&race->heap->names, start, name), size,
                 start, found->rank);
    } else {
        snprintf(text, bytes, "heap offset %zu on rank %d",
                 (size_t)found->offset, found->rank);
    }
}

/* The names of the lacks, and the advice, at the line of the release or of the
 * acquire, or at none. */
static const struct {
    const char *missing;
    enum { NOWHERE, AT_RELEASE, AT_ACQUIRE } at;
    const char *advice;
    const char *behind; /* text behind the release's deed; NULL: without it */
} lacks[] = {
    [IRIS_ORDER_LACKS_NOTHING] = {"order", NOWHERE, NULL, NULL},
    [IRIS_ORDER_LACKS_RELEASE] = {"release", AT_RELEASE, "the ",
                                  " releases nothing; pass IRIS_RELEASE"},
    [IRIS_ORDER_LACKS_ACQUIRE] = {"acquire", AT_ACQUIRE,
                                  "it acquires nothing; pass IRIS_ACQUIRE, or "
                                  "use iris_wait_until",
                                  NULL},
    [IRIS_ORDER_LACKS_RELEASE_SCOPE] = {"wider scope", AT_RELEASE, "the ",
                                        " is too narrow; pass "
                                        "IRIS_SCOPE_SYSTEM"},
    [IRIS_ORDER_LACKS_ACQUIRE_SCOPE] = {"wider scope", AT_ACQUIRE,
                                        "its scope is too narrow; pass "
                                        "IRIS_SCOPE_SYSTEM",
                                        NULL},
    [IRIS_ORDER_LACKS_ATOMIC] = {"atomic flag", AT_RELEASE,
                                 "the flag is written by a plain ",
                                 "; use iris_signal_set"},
    [IRIS_ORDER_LACKS_LIFE] = {"life", NOWHERE,
                               "the memory is freed: synchronize every rank's "
                               "streams, then iris_free",
                               NULL},
    [IRIS_ORDER_LACKS_MIXED] = {"atomic access", NOWHERE,
                                "one is atomic, the other plain: make both "
                                "atomic (iris_signal_set, iris_atomic_*)",
                                NULL},
    [IRIS_ORDER_LACKS_SCOPE] = {"wider scope", NOWHERE,
                                "the scope of one does not span the other: "
                                "pass IRIS_SCOPE_SYSTEM between ranks",
                                NULL},
    [IRIS_ORDER_LACKS_SIZE] = {"one size", NOWHERE,
                               "atomics of one word must have its address and "
                               "size",
                               NULL},
    [IRIS_ORDER_LACKS_LATER] = {"later release", AT_RELEASE,
                                "that release comes before the access and does "
                                "not cover it; move it behind",
                                NULL},
    [IRIS_ORDER_LACKS_STREAM] = {"stream order", NOWHERE,
                                 "streams are not ordered with each other or "
                                 "the host: call iris_stream_synchronize "
                                 "between the two",
                                 NULL},
    [IRIS_ORDER_LACKS_ANSWER] = {"answer", NOWHERE,
                                 "it overwrites what was read: the reader must "
                                 "signal that it is done, and the writer wait "
                                 "for that",
                                 NULL},
    [IRIS_ORDER_LACKS_WRITERS] = {"order of writers", NOWHERE,
                                  "two write, in no order: give each bytes of "
                                  "its own, or let one wait for the other's "
                                  "signal",
                                  NULL},
    [IRIS_ORDER_LACKS_WAIT] = {"wait", NOWHERE, NULL, NULL},
};

static void describe_lack(const struct iris_race *race,
                          const struct iris_order_edge *edge, char *text,
                          size_t bytes)
{
    const struct iris_race_site *sites = race->shared->sites;
    const char *advice = lacks[edge->lack].advice;
    const char *behind = lacks[edge->lack].behind;
    bool at = lacks[edge->lack].at != NOWHERE;
    char line[IRIS_RACE_LINE_BYTES] = "", deed[80] = "";

    if (at || (edge->lack == IRIS_ORDER_LACKS_ANSWER && edge->release != 0)) {
        iris_i_race_line(
            &sites[lacks[edge->lack].at == AT_ACQUIRE ? edge->acquire
                                                      : edge->release],
            line, sizeof line);
    }
    if (behind != NULL) {
        iris_i_race_deed(&sites[edge->release], deed, sizeof deed);
    } else if (edge->lack == IRIS_ORDER_LACKS_ANSWER && edge->release != 0) {
        snprintf(text, bytes,
                 "%s; or change %s: move it behind what should have been read",
                 advice, line);
        return;
    }
    snprintf(text, bytes, "%s%s%s%s%s%s", at ? "change " : "", at ? line : "",
             at ? ": " : "",
             advice != NULL ? advice
                            : "no signal or barrier is between them: signal "
                              "behind the write, and wait for that ahead of "
                              "the read",
             deed, behind != NULL ? behind : "");
}

static void tell_race(const struct iris_race *race,
                      const struct iris_race_found *found,
                      struct iris_race_story *story_p)
{
    describe_place(race, found, story_p->place, sizeof story_p->place);
    for (int i = 0; i < 2; i++) {
        describe_access(race, &found->accesses[i], story_p->accesses[i],
                        sizeof story_p->accesses[i]);
    }
    story_p->missing = lacks[found->edge.lack].missing;
    describe_lack(race, &found->edge, story_p->lack, sizeof story_p->lack);
}

void iris_i_race_print(struct iris_race *race)
{
    struct iris_race_shared *shared = race->shared;

    unsigned seen = atomic_load(&race->num_seen);

    while (seen < atomic_load(&shared->num_found)) {
        struct iris_race_found *found = &shared->found[seen];
        struct iris_race_story story;

        if (!atomic_compare_exchange_strong(&race->num_seen, &seen, seen + 1)) {
            continue; /* another thread prints it */
        }
        seen++;
        if (found->finder != race->heap->log->rank) {
            continue;
        }
        tell_race(race, found, &story);
        if (is_suppressed(&race->suppressions, &story)) {
            atomic_store(&found->suppressed, true);
            continue;
        }
        iris_i_error(race->heap->log,
                     "data race on %s\n    %s\n    %s, before that\n    "
                     "missing: %s; %s",
                     story.place, story.accesses[1], story.accesses[0],
                     story.missing, story.lack);
    }
}

/* ---- JSON ---- */

static void write_access(struct iris_json_writer *json,
                         const struct iris_race *race,
                         const struct iris_race_access *access)
{
    const struct iris_race_shared *shared = race->shared;
    const struct iris_race_site *site = &shared->sites[access->site];
    char text[IRIS_RACE_LINE_BYTES];

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_int(json, "rank", race->order.shared->lanes[access->lane].rank);
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

    tell_race(race, found, &story);
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
    const struct iris_race_shared *shared = race->shared;
    unsigned count = atomic_load(&shared->num_found);

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_begin(json, "races", '[');
    for (unsigned i = 0; i < count; i++) {
        write_race(json, race, &shared->found[i]);
    }
    iris_i_json_end(json);
    iris_i_json_end(json);
}

/* ---- SARIF 2.1.0, which code hosts and editors show at the lines ---- */

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

    iris_i_race_line(&race->shared->sites[access->site], line, sizeof line);
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
    char text[800];

    tell_race(race, found, &story);
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
    const struct iris_race_shared *shared = race->shared;
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
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    bool failed = stream == NULL;

    snprintf(path, sizeof path, "%s%s", race->params.prefix, ending);
    if (!failed) {
        json = iris_i_json_writer(stream);
        write(&json, race);
        failed = fclose(stream) != 0 || text == NULL ||
                 iris_i_file_write(path, text, bytes) != 0;
    }
    if (failed) {
        iris_i_warning(race->heap->log, "IRIS_CHECK=race: cannot write %s",
                       path);
    }
    free(text);
}

/* ---- The verdict ---- */

/* Number of lines in the suppressions file that some rank used. */
static unsigned count_suppressed(struct iris_race *race)
{
    const struct iris_race_shared *shared = race->shared;
    unsigned num_found = atomic_load(&shared->num_found), count = 0;

    for (unsigned i = 0; i < num_found; i++) {
        const struct iris_race_found *found = &shared->found[i];

        if (atomic_load(&found->suppressed)) {
            struct iris_race_story story;

            count++;
            tell_race(race, found, &story);
            (void)is_suppressed(&race->suppressions, &story);
        }
    }
    return count;
}

iris_status_t iris_i_race_verdict(struct iris_race *race)
{
    const struct iris_log *log;
    unsigned count, suppressed;

    if (race == NULL) {
        return IRIS_OK;
    }
    log = race->heap->log;
    suppressed = count_suppressed(race);
    count = atomic_load(&race->shared->num_found) - suppressed;
    if (log->rank == 0 && race->order.shared->blind) {
        iris_i_warning(log, "IRIS_CHECK=race: there was more to keep than "
                            "there is room for; races may have been missed");
    }
    if (log->rank == 0 && race->suppressions.count != 0) {
        iris_i_info(log, "IRIS_CHECK=race: %u of the races are suppressed",
                    suppressed);
        tell_unused(&race->suppressions, log, race->params.suppressions);
    }
    if (log->rank == 0 && race->params.prefix[0] != '\0') {
        write_file(race, "_races.json", write_races);
        write_file(race, "_races.sarif", write_sarif);
    }
    if (log->rank == 0 && count == 0 && !race->params.is_scheduled) {
        iris_i_info(log, "IRIS_CHECK=race: no race in this run; another one "
                         "may show one: see `iris check`, or set IRIS_SEED");
    }
    return count == 0 ? IRIS_OK
                      : iris_i_fail(log, IRIS_ERR_RACE,
                                    "IRIS_CHECK=race: %u data race%s found; "
                                    "the log says where",
                                    count, count == 1 ? " was" : "s were");
}
