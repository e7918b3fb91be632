/* SPDX-License-Identifier: MIT
 *
 * Writes reports of races.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"
#include "heap/heap.h"

#include <stdio.h>
#include <string.h>

/* ---- The missing order ---- */

static bool is_host(const struct iris_race_shared *shared,
                    const struct iris_race_access *access)
{
    return shared->sites[access->site].host_op >= 0;
}

/* No chain orders the two accesses. */
static enum iris_race_lack lack_of_order(const struct iris_race_shared *shared,
                                         const struct iris_race_access *before,
                                         const struct iris_race_access *now,
                                         bool later)
{
    const struct iris_race_lane *a = &shared->lanes[before->lane];
    const struct iris_race_lane *b = &shared->lanes[now->lane];

    if (((before->kind ^ now->kind) & IRIS_RACE_IS_ATOMIC) != 0) {
        return IRIS_RACE_LACKS_MIXED;
    }
    if (a->rank == b->rank && a->stream != b->stream) {
        return IRIS_RACE_LACKS_STREAM;
    }
    if (later) {
        return IRIS_RACE_LACKS_LATER;
    }
    if ((now->kind & IRIS_RACE_IS_WRITE) == 0) {
        return IRIS_RACE_LACKS_WAIT;
    }
    return (before->kind & IRIS_RACE_IS_WRITE) != 0 ? IRIS_RACE_LACKS_WRITERS
                                                    : IRIS_RACE_LACKS_ANSWER;
}

/* The site of the release that lane `reader` acquired and that was the last
 * before the access; 0: it acquired another one, or none. */
static uint32_t release_ahead(const struct iris_race_memory *memory,
                              uint32_t reader,
                              const struct iris_race_access *access)
{
    struct iris_race_lane *lanes = memory->shared->lanes;
    struct iris_race_lane *lane = &lanes[access->lane];
    const struct iris_race_moment *moment;
    uint32_t acquired, site = 0;

    iris_i_race_spin_lock(memory->shared, &lanes[reader].lock);
    moment = iris_i_race_moment(memory, &lanes[reader].clock, access->lane);
    acquired = moment == NULL ? 0 : moment->strict;
    iris_i_race_spin_unlock(&lanes[reader].lock);
    if (acquired == 0 || acquired + 1 != access->clock) {
        return 0;
    }
    iris_i_race_spin_lock(memory->shared, &lane->lock);
    for (unsigned i = 0; site == 0 && i < IRIS_RACE_RELEASES; i++) {
        site = lane->releases[i].clock == acquired ? lane->releases[i].site : 0;
    }
    iris_i_race_spin_unlock(&lane->lock);
    return site;
}

static struct iris_race_edge find_lack(const struct iris_race_memory *memory,
                                       const struct iris_race_access *before,
                                       const struct iris_race_access *now)
{
    const struct iris_race_shared *shared = memory->shared;
    const struct iris_race_moment *moment = iris_i_race_moment(
        memory, &shared->lanes[now->lane].clock, before->lane);
    struct iris_race_edge edge = {IRIS_RACE_LACKS_NOTHING, 0, 0};

    if (((before->kind | now->kind) & IRIS_RACE_IS_FREE) != 0) {
        edge.lack = IRIS_RACE_LACKS_LIFE;
    } else if ((before->kind & now->kind & IRIS_RACE_IS_ATOMIC) != 0) {
        edge.lack = before->mask == now->mask ? IRIS_RACE_LACKS_SCOPE
                                              : IRIS_RACE_LACKS_SIZE;
    } else if (moment != NULL && moment->loose >= before->clock &&
               moment->why != 0) {
        edge = shared->edges[moment->why];
    } else {
        edge.release = (before->kind & IRIS_RACE_IS_WRITE) != 0
                           ? release_ahead(memory, now->lane, before)
                           : release_ahead(memory, before->lane, now);
        edge.lack = lack_of_order(shared, before, now,
                                  edge.release != 0 &&
                                      (before->kind & IRIS_RACE_IS_WRITE) != 0);
    }
    return edge;
}

static bool is_same(const struct iris_race_found *found, uint32_t a, uint32_t b)
{
    uint32_t first = found->accesses[0].site, second = found->accesses[1].site;

    return (first == a && second == b) || (first == b && second == a);
}

void iris_i_race_note(void *arg, const struct iris_race_access *before,
                      const struct iris_race_access *now, int rank,
                      size_t offset)
{
    struct iris_race *race = arg;
    struct iris_race_shared *shared = race->memory.shared;
    unsigned i, count = atomic_load(&shared->num_found);

    for (i = 0; i < count; i++) {
        if (is_same(&shared->found[i], before->site, now->site)) {
            shared->found[i].count++;
            return;
        }
    }
    if (i == IRIS_RACE_REPORTS) {
        return;
    }
    shared->found[i] = (struct iris_race_found){
        .accesses = {*before, *now},
        .edge = find_lack(&race->memory, before, now),
        .rank = rank,
        .finder = race->heap->log->rank,
        .offset = offset,
        .count = 1,
    };
    while (((before->mask & now->mask) >> (shared->found[i].offset - offset) &
            1) == 0) {
        shared->found[i].offset++;
    }
    atomic_store(&shared->num_found, i + 1);
}

/* ---- Text ---- */

/* 'store by rank 0, kernel send, workgroup 1 (send.c:12)' */
static void describe_access(const struct iris_race *race,
                            const struct iris_race_access *access, char *text,
                            size_t bytes)
{
    const struct iris_race_shared *shared = race->memory.shared;
    const struct iris_race_site *site = &shared->sites[access->site];
    char line[IRIS_RACE_LINE_BYTES], deed[80];

    iris_i_race_line(site, line, sizeof line);
    iris_i_race_deed(site, deed, sizeof deed);
    if (is_host(shared, access)) {
        snprintf(text, bytes, "%s%s%s of rank %d", line,
                 line[0] == '\0' ? "" : ": ", deed,
                 shared->lanes[access->lane].rank);
    } else if (site->kernel[0] == '\0') {
        snprintf(text, bytes, "%s: %s by rank %d, host", line, deed,
                 shared->lanes[access->lane].rank);
    } else {
        snprintf(text, bytes, "%s: %s by rank %d, kernel %s, workgroup %u",
                 line, deed, shared->lanes[access->lane].rank, site->kernel,
                 access->workgroup);
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

static const char *const lacks[] = {
    [IRIS_RACE_LACKS_NOTHING] = "order",
    [IRIS_RACE_LACKS_RELEASE] = "release",
    [IRIS_RACE_LACKS_ACQUIRE] = "acquire",
    [IRIS_RACE_LACKS_RELEASE_SCOPE] = "wider scope",
    [IRIS_RACE_LACKS_ACQUIRE_SCOPE] = "wider scope",
    [IRIS_RACE_LACKS_ATOMIC] = "atomic flag",
    [IRIS_RACE_LACKS_LIFE] = "life",
    [IRIS_RACE_LACKS_MIXED] = "atomic access",
    [IRIS_RACE_LACKS_SCOPE] = "wider scope",
    [IRIS_RACE_LACKS_SIZE] = "one size",
    [IRIS_RACE_LACKS_LATER] = "later release",
    [IRIS_RACE_LACKS_STREAM] = "stream order",
    [IRIS_RACE_LACKS_ANSWER] = "answer",
    [IRIS_RACE_LACKS_WRITERS] = "order of writers",
    [IRIS_RACE_LACKS_WAIT] = "wait",
};

/* The advice for a lack whose line is unknown. */
static const char *advise(enum iris_race_lack lack)
{
    switch (lack) {
    case IRIS_RACE_LACKS_LIFE:
        return "the memory is freed: synchronize every rank's streams, then "
               "iris_free";
    case IRIS_RACE_LACKS_MIXED:
        return "one is atomic, the other plain: make both atomic "
               "(iris_signal_set, iris_atomic_*)";
    case IRIS_RACE_LACKS_SCOPE:
        return "the scope of one does not span the other: pass "
               "IRIS_SCOPE_SYSTEM between ranks";
    case IRIS_RACE_LACKS_SIZE:
        return "atomics of one word must have its address and size";
    case IRIS_RACE_LACKS_STREAM:
        return "streams are not ordered with each other or the host: call "
               "iris_stream_synchronize between the two";
    case IRIS_RACE_LACKS_ANSWER:
        return "it overwrites what was read: the reader must signal that it "
               "is done, and the writer wait for that";
    case IRIS_RACE_LACKS_WRITERS:
        return "two write, in no order: give each bytes of its own, or let "
               "one wait for the other's signal";
    default:
        return "no signal or barrier is between them: signal behind the "
               "write, and wait for that ahead of the read";
    }
}

static void describe_lack(const struct iris_race *race,
                          const struct iris_race_edge *edge, char *text,
                          size_t bytes)
{
    const struct iris_race_site *sites = race->memory.shared->sites;
    char release[IRIS_RACE_LINE_BYTES], acquire[IRIS_RACE_LINE_BYTES], deed[80];

    iris_i_race_line(&sites[edge->release], release, sizeof release);
    iris_i_race_line(&sites[edge->acquire], acquire, sizeof acquire);
    iris_i_race_deed(&sites[edge->release], deed, sizeof deed);
    switch (edge->lack) {
    case IRIS_RACE_LACKS_RELEASE:
        snprintf(text, bytes,
                 "change %s: the %s releases nothing; pass "
                 "IRIS_RELEASE",
                 release, deed);
        break;
    case IRIS_RACE_LACKS_RELEASE_SCOPE:
        snprintf(text, bytes,
                 "change %s: the %s is too narrow; pass "
                 "IRIS_SCOPE_SYSTEM",
                 release, deed);
        break;
    case IRIS_RACE_LACKS_ACQUIRE:
        snprintf(text, bytes,
                 "change %s: it acquires nothing; pass "
                 "IRIS_ACQUIRE, or use iris_wait_until",
                 acquire);
        break;
    case IRIS_RACE_LACKS_ACQUIRE_SCOPE:
        snprintf(text, bytes,
                 "change %s: its scope is too narrow; pass "
                 "IRIS_SCOPE_SYSTEM",
                 acquire);
        break;
    case IRIS_RACE_LACKS_ATOMIC:
        snprintf(text, bytes,
                 "change %s: the flag is written by a plain %s; "
                 "use iris_signal_set",
                 release, deed);
        break;
    case IRIS_RACE_LACKS_LATER:
        snprintf(text, bytes,
                 "change %s: that release comes before the "
                 "access and does not cover it; move it behind",
                 release);
        break;
    case IRIS_RACE_LACKS_ANSWER:
        snprintf(text, bytes, "%s%s%s%s", advise(edge->lack),
                 edge->release == 0 ? "" : "; or change ", release,
                 edge->release == 0
                     ? ""
                     : ": move it behind what should have been read");
        break;
    default:
        snprintf(text, bytes, "%s", advise(edge->lack));
    }
}

void iris_i_race_tell(const struct iris_race *race,
                      const struct iris_race_found *found,
                      struct iris_race_story *story_p)
{
    describe_place(race, found, story_p->place, sizeof story_p->place);
    for (int i = 0; i < 2; i++) {
        describe_access(race, &found->accesses[i], story_p->accesses[i],
                        sizeof story_p->accesses[i]);
    }
    story_p->missing = lacks[found->edge.lack];
    describe_lack(race, &found->edge, story_p->lack, sizeof story_p->lack);
}

void iris_i_race_print(struct iris_race *race)
{
    struct iris_race_shared *shared = race->memory.shared;

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
        iris_i_race_tell(race, found, &story);
        if (iris_i_race_is_suppressed(&race->suppressions, &story)) {
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
