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
    char lack[640];        /* the necessary change */
};

/* ---- Suppressions ---- */

#define KIND "race:"

static iris_status_t add_pattern(const struct iris_log *log,
                                 const char *pattern, unsigned line,
                                 struct iris_race_suppressions *list)
{
    struct iris_race_suppression one = {.line = line};

    if (!iris_i_reserve(&list->list, list->count, sizeof one) ||
        asprintf(&one.pattern, "*%s*", pattern) < 0) {
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

/* The time up to which the lane knows the other one; 0: not at all. */
static uint32_t find_known_time(const struct iris_order *order, uint32_t lane,
                                uint32_t other)
{
    struct iris_order_lane *lanes = order->shared->lanes;
    const struct iris_order_moment *moment;
    uint32_t time;

    iris_i_order_spin_lock(order->shared, &lanes[lane].lock);
    moment = iris_i_order_moment(order, &lanes[lane].clock, other);
    time = moment == NULL ? 0 : moment->strict;
    iris_i_order_spin_unlock(&lanes[lane].lock);
    return time;
}

/* The site of the lane's release at that time; 0: unknown. */
static uint32_t find_release(const struct iris_order *order, uint32_t number,
                             uint32_t time)
{
    struct iris_order_lane *lane = &order->shared->lanes[number];
    uint32_t site = 0;

    iris_i_order_spin_lock(order->shared, &lane->lock);
    for (unsigned i = 0; time != 0 && site == 0 && i < IRIS_ORDER_RELEASES;
         i++) {
        site = lane->releases[i].clock == time ? lane->releases[i].site : 0;
    }
    iris_i_order_spin_unlock(&lane->lock);
    return site;
}

/* Whether the lane has acquired from the access's lane during the run that makes
 * the access. */
static bool has_heard(const struct iris_race *race, uint32_t lane,
                      const struct iris_race_access *access)
{
    uint32_t time = find_known_time(&race->order, lane, access->lane);
    const struct iris_order_lane *other =
        &race->order.shared->lanes[access->lane];

    return time != 0 && (race->shared->sites[access->site].host_op >= 0 ||
                         time >= atomic_load(&other->begun));
}

/* The reader has acquired a release of another lane of the writer's rank during
 * that lane's run: the site; 0: it has not. */
static uint32_t find_other_signal(const struct iris_order *order,
                                  uint32_t reader, uint32_t writer)
{
    const struct iris_order_shared *shared = order->shared;
    uint32_t num_lanes = atomic_load(&shared->num_lanes), site = 0;

    for (uint32_t i = 0; site == 0 && i < num_lanes; i++) {
        if (i != writer && shared->lanes[i].stream != 0 &&
            shared->lanes[i].rank == shared->lanes[writer].rank &&
            shared->lanes[i].rank != shared->lanes[reader].rank) {
            site = find_release(order, i, find_known_time(order, reader, i));
        }
    }
    return site;
}

/* A write and a read that nothing orders. The lanes' knowledge of each other tells
 * whether the read is of this write or of an earlier one. */
static struct iris_order_edge judge_read(const struct iris_race *race,
                                         const struct iris_race_access *writer,
                                         const struct iris_race_access *reader,
                                         bool reads_last)
{
    const struct iris_order *order = &race->order;
    struct iris_order_lane *lanes = order->shared->lanes;
    struct iris_order_edge edge = {IRIS_ORDER_LACKS_WAIT, 0, 0};
    uint32_t known = find_known_time(order, reader->lane, writer->lane);
    bool is_heard = has_heard(race, reader->lane, writer);
    bool is_again = (writer->kind & IRIS_RACE_IS_AGAIN) != 0;

    if (reads_last) {
        is_again &= is_heard && (known + 1 < writer->clock ||
                                 !has_heard(race, writer->lane, reader));
    }
    if (!is_again && is_heard && known + 1 == writer->clock) {
        edge.release = find_release(order, writer->lane, known);
    }
    if (edge.release != 0) {
        edge.lack = IRIS_ORDER_LACKS_LATER;
        return edge;
    }
    if (is_again || (is_heard && !reads_last)) {
        edge.lack = IRIS_ORDER_LACKS_CREDIT;
        known = find_known_time(order, writer->lane, reader->lane);
        edge.release = known + 1 == reader->clock
                           ? find_release(order, reader->lane, known)
                           : 0;
        return edge;
    }
    edge.release = find_release(
        order, lanes[writer->lane].first,
        find_known_time(order, reader->lane, lanes[writer->lane].first));
    if (lanes[writer->lane].first != writer->lane && edge.release != 0) {
        edge.lack = IRIS_ORDER_LACKS_COVER;
        return edge;
    }
    edge.release = find_other_signal(order, reader->lane, writer->lane);
    edge.acquire = atomic_load(&lanes[reader->lane].barrier);
    if (edge.release != 0) {
        edge.lack = IRIS_ORDER_LACKS_SIGNAL;
    } else if (edge.acquire != 0 && !is_heard) {
        edge.lack = IRIS_ORDER_LACKS_MEMBER;
    }
    return edge;
}

/* No chain orders the two accesses. */
static struct iris_order_edge judge_order(const struct iris_race *race,
                                          const struct iris_race_access *before,
                                          const struct iris_race_access *now)
{
    const struct iris_order_lane *lanes = race->order.shared->lanes;
    struct iris_order_edge edge = {IRIS_ORDER_LACKS_WRITERS, 0, 0};
    uint32_t known;

    if (((before->kind ^ now->kind) & IRIS_RACE_IS_ATOMIC) != 0) {
        edge.lack = IRIS_ORDER_LACKS_MIXED;
        return edge;
    }
    if (before->lane != now->lane &&
        lanes[before->lane].first == lanes[now->lane].first) {
        edge.lack = IRIS_ORDER_LACKS_MEETING;
        return edge;
    }
    if (lanes[before->lane].rank == lanes[now->lane].rank &&
        before->lane != now->lane && before->clock != 0 &&
        lanes[before->lane].stream == 0 && lanes[now->lane].stream == 0) {
        edge.lack = IRIS_ORDER_LACKS_THREADS;
        return edge;
    }
    if (lanes[before->lane].rank == lanes[now->lane].rank &&
        (before->clock == 0 ||
         before->lane == now->lane || /* work that has not begun */
         lanes[before->lane].stream != lanes[now->lane].stream)) {
        edge.lack = IRIS_ORDER_LACKS_STREAM;
        return edge;
    }
    if ((now->kind & IRIS_RACE_IS_WRITE) == 0) {
        return judge_read(race, before, now, true);
    }
    if ((before->kind & IRIS_RACE_IS_WRITE) == 0) {
        return judge_read(race, now, before, false);
    }
    known = find_known_time(&race->order, now->lane, before->lane);
    edge.release = known + 1 == before->clock
                       ? find_release(&race->order, before->lane, known)
                       : 0;
    edge.lack =
        edge.release != 0 ? IRIS_ORDER_LACKS_LATER : IRIS_ORDER_LACKS_WRITERS;
    return edge;
}

static struct iris_order_edge find_lack(const struct iris_race *race,
                                        const struct iris_race_access *before,
                                        const struct iris_race_access *now)
{
    const struct iris_order_shared *shared = race->order.shared;
    const struct iris_order_moment *moment = iris_i_order_moment(
        &race->order, &shared->lanes[now->lane].clock, before->lane);
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
        edge = judge_order(race, before, now);
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
        .edge = find_lack(race, before, now),
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
    char line[IRIS_RACE_LINE_BYTES], deed[80], thread[32] = "";

    if (access->workgroup != 0) { /* of the host */
        snprintf(thread, sizeof thread, ", thread %u", access->workgroup);
    }
    iris_i_source_line(&site->source, IRIS_LINE_MS, line, sizeof line);
    iris_i_race_deed(site, deed, sizeof deed);
    if (site->host_op >= 0) {
        snprintf(text, bytes, "%s%s%s of rank %d%s", line,
                 line[0] == '\0' ? "" : ": ", deed,
                 race->order.shared->lanes[access->lane].rank, thread);
    } else if (site->kernel[0] == '\0') {
        snprintf(text, bytes, "%s: %s by rank %d, host%s", line, deed,
                 race->order.shared->lanes[access->lane].rank, thread);
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

    if (found->offset >= iris_i_heap_bytes(&race->heap->memory)) {
        snprintf(text, bytes, "memory of rank %d that is on no heap, at 0x%llx",
                 found->rank, (unsigned long long)found->offset);
    } else if (iris_i_heap_find(&race->heap->names, found->offset, &start,
                                &size)) {
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

/* The names of the lacks, and the advice. In the advice %A is the line of the
 * release, %B of the acquire, %D the deed of the release, %1 the line of the earlier
 * access and %2 that of the later one, %W the rank that writes and %R the other
 * one. */
static const struct {
    const char *missing;
    const char *advice;
} lacks[] = {
    [IRIS_ORDER_LACKS_NOTHING] = {"order", ""},
    [IRIS_ORDER_LACKS_RELEASE] =
        {"release", "change %A: the %D releases nothing; pass IRIS_RELEASE"},
    [IRIS_ORDER_LACKS_ACQUIRE] =
        {"acquire", "change %B: it acquires nothing; pass IRIS_ACQUIRE, or use "
                    "iris_wait_until"},
    [IRIS_ORDER_LACKS_RELEASE_SCOPE] = {"wider scope",
                                        "change %A: the %D is too narrow; pass "
                                        "IRIS_SCOPE_SYSTEM"},
    [IRIS_ORDER_LACKS_ACQUIRE_SCOPE] =
        {"wider scope", "change %B: its scope is too narrow; pass "
                        "IRIS_SCOPE_SYSTEM"},
    [IRIS_ORDER_LACKS_ATOMIC] = {"atomic flag",
                                 "change %A: the flag is written by a plain "
                                 "%D; use iris_signal_set"},
    [IRIS_ORDER_LACKS_LIFE] =
        {"life", "the memory is freed while a peer may use it: let every rank "
                 "call iris_stream_synchronize, then iris_free"},
    [IRIS_ORDER_LACKS_MIXED] = {"atomic access",
                                "one is atomic, the other plain: make both "
                                "atomic (iris_signal_set, iris_atomic_*)"},
    [IRIS_ORDER_LACKS_SCOPE] = {"wider scope",
                                "the scope of one does not span the other: "
                                "pass IRIS_SCOPE_SYSTEM between ranks"},
    [IRIS_ORDER_LACKS_SIZE] = {"one size",
                               "atomics of one word must have its address and "
                               "size"},
    [IRIS_ORDER_LACKS_LATER] =
        {"later release", "change %A: that release comes before the access and "
                          "does not cover it; move it behind, or wait for a "
                          "later one"},
    [IRIS_ORDER_LACKS_STREAM] =
        {"stream order", "the streams of a rank are not ordered with each "
                         "other or the host: synchronize the stream of %1, not "
                         "another one, ahead of %2, or use one stream"},
    [IRIS_ORDER_LACKS_THREADS] =
        {"order of threads",
         "threads of rank %W access it in no order: hold one lock at both %1 "
         "and %2, or join the thread of %1 ahead of %2"},
    [IRIS_ORDER_LACKS_MEETING] =
        {"workgroup barrier",
         "lanes of one workgroup go on by themselves: call iris_wg_barrier "
         "between %1 and %2"},
    [IRIS_ORDER_LACKS_COVER] =
        {"workgroup barrier",
         "the signal at %A covers the writes of its own lane only: call "
         "iris_wg_barrier between %1 and %A"},
    [IRIS_ORDER_LACKS_CREDIT] =
        {"credit", "rank %R may still read the place when rank %W writes it: "
                   "let rank %R signal behind the read, and rank %W wait for "
                   "that credit ahead of the write"},
    [IRIS_ORDER_LACKS_SIGNAL] = {"order of signal and data",
                                 "the signal at %A is on another stream or "
                                 "in another workgroup than the write: "
                                 "send it behind the write, on its stream"},
    [IRIS_ORDER_LACKS_MEMBER] = {"member of the barrier",
                                 "the barrier at %B does not order them: rank "
                                 "%W is not in its group, or writes behind "
                                 "it; use a group that has both ranks"},
    [IRIS_ORDER_LACKS_WRITERS] =
        {"order of writers", "two write, in no order: give each bytes of its "
                             "own, or let one wait for the other's signal"},
    [IRIS_ORDER_LACKS_WAIT] =
        {"wait", "no signal or barrier is between them: signal behind the "
                 "write, and wait for that ahead of the read"},
};

static bool is_update(const struct iris_race_site *site)
{
    return site->atomic && site->op >= IRIS_OP_ATOMIC_ADD &&
           site->op <= IRIS_OP_ATOMIC_MAX;
}

/* The text of a letter behind % in an advice. */
static void fill_in(const struct iris_race *race,
                    const struct iris_race_found *found, char letter,
                    char *text, size_t bytes)
{
    const struct iris_race_site *sites = race->shared->sites;
    const struct iris_race_access *access = found->accesses;
    bool first_writes = (access[0].kind & IRIS_RACE_IS_WRITE) != 0;
    unsigned of = (letter == 'W') == first_writes ? 0 : 1;

    switch (letter) {
    case 'A':
        iris_i_source_line(&sites[found->edge.release].source, IRIS_LINE_MS,
                           text, bytes);
        break;
    case 'B':
        iris_i_source_line(&sites[found->edge.acquire].source, IRIS_LINE_MS,
                           text, bytes);
        break;
    case 'D':
        iris_i_race_deed(&sites[found->edge.release], text, bytes);
        break;
    case '1':
    case '2':
        iris_i_source_line(&sites[access[letter - '1'].site].source,
                           IRIS_LINE_MS, text, bytes);
        break;
    default:
        snprintf(text, bytes, "%d",
                 race->order.shared->lanes[access[of].lane].rank);
        break;
    }
}

static void describe_lack(const struct iris_race *race,
                          const struct iris_race_found *found, char *text,
                          size_t bytes)
{
    const struct iris_race_site *release =
        &race->shared->sites[found->edge.release];
    const struct iris_race_site *acquire =
        &race->shared->sites[found->edge.acquire];
    enum iris_order_lack lack = found->edge.lack;
    const char *more = "";
    char part[IRIS_RACE_LINE_BYTES];
    size_t used = 0;

    if (lack == IRIS_ORDER_LACKS_WAIT &&
        (found->accesses[0].kind & IRIS_RACE_IS_WRITE) == 0) {
        more = "; or, if the read is of the value before, signal behind the "
               "read, and wait for that ahead of the write";
    } else if (lack == IRIS_ORDER_LACKS_CREDIT && found->edge.release != 0) {
        more = "; that of %A comes ahead of the read: move it behind";
    } else if ((lack == IRIS_ORDER_LACKS_RELEASE && is_update(release)) ||
               (lack == IRIS_ORDER_LACKS_ACQUIRE && is_update(acquire))) {
        more = "; pass IRIS_ACQ_REL to a counter whose last user reads what "
               "the others wrote";
    } else if (lack == IRIS_ORDER_LACKS_LATER && is_update(release)) {
        more = "; a counter that is raised ahead of the data does not say "
               "that the data is there: give each slot a flag";
    }
    for (const char *at = lacks[lack].advice; *at != '\0' || *more != '\0';) {
        if (*at == '\0') {
            at = more;
            more = "";
        }
        part[0] = *at;
        part[1] = '\0';
        if (*at == '%') {
            fill_in(race, found, *++at, part, sizeof part);
        }
        at++;
        used += (size_t)snprintf(text + used, bytes - used, "%s", part);
        used = used < bytes ? used : bytes - 1;
    }
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
    describe_lack(race, found, story_p->lack, sizeof story_p->lack);
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
    iris_i_source_line(&site->source, IRIS_LINE_MS, text, sizeof text);
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

    iris_i_source_line(&race->shared->sites[access->site].source, IRIS_LINE_MS,
                       line, sizeof line);
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
    char text[1000];

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

/* A run without a race proves little. */
static void tell_clean(const struct iris_log *log)
{
    static const char more[] =
        "another one may show one: see `iris check`, or set IRIS_SEED";

    if (iris_i_race_is_watched()) {
        iris_i_info(log, "IRIS_CHECK=race: no race in this run; %s", more);
    } else {
        iris_i_warning(log,
                       "IRIS_CHECK=race: no race in this run; accesses by "
                       "ordinary pointers were not seen, since `iriscc "
                       "--check` did not compile the program; %s",
                       more);
    }
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
        tell_clean(log);
    }
    return count == 0 ? IRIS_OK
                      : iris_i_fail(log, IRIS_ERR_RACE,
                                    "IRIS_CHECK=race: %u data race%s found; "
                                    "the log says where",
                                    count, count == 1 ? " was" : "s were");
}
