/* SPDX-License-Identifier: MIT
 *
 * Finds the allocation of an address, from a program's files of heap bases and
 * allocations.
 */
#include "config.h"

#include "trace_places.h"
#include "base/base.h"
#include "trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RANKS 4096

/* ---- Reading the files ---- */

static int read_bases(struct iris_json *json, struct trace_space *space)
{
    enum iris_json_token token;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_STRING ||
           token == IRIS_JSON_NUMBER) {
        void *more = space->num_bases == MAX_RANKS
                         ? NULL
                         : iris_i_grow(space->bases, space->num_bases,
                                       sizeof *space->bases);

        if (more == NULL) {
            return -1;
        }
        space->bases = more;
        space->bases[space->num_bases++] = strtoull(json->text, NULL, 0);
    }
    return token == IRIS_JSON_ARRAY_END ? 0 : -1;
}

static void set_time(const struct iris_json *json, void *to, size_t bytes)
{
    int64_t ns = strtoll(json->text, NULL, 10);

    (void)bytes;
    *(int64_t *)to = ns > TRACE_ALWAYS    ? TRACE_ALWAYS
                     : ns < -TRACE_ALWAYS ? -TRACE_ALWAYS
                                          : ns;
}

static int read_allocation(struct iris_json *json, struct trace_space *space,
                           int is_freed)
{
#define FIELD(name, set) IRIS_JSON_FIELD(struct trace_allocation, name, set)
    static const struct iris_json_field fields[] = {
        FIELD(offset, iris_i_json_set_number),
        FIELD(bytes, iris_i_json_set_number),
        FIELD(born_ns, set_time),
        FIELD(died_ns, set_time),
        FIELD(name, iris_i_json_set_text),
        {.name = NULL},
    };
#undef FIELD
    struct trace_allocation one = {.is_freed = is_freed,
                                   .born_ns = -TRACE_ALWAYS,
                                   .died_ns = TRACE_ALWAYS};
    void *more = iris_i_json_members(json, fields, &one) != 0
                     ? NULL
                     : iris_i_grow(space->allocations, space->num_allocations,
                                   sizeof one);

    if (more == NULL) {
        return -1;
    }
    space->allocations = more;
    space->allocations[space->num_allocations++] = one;
    return 0;
}

static int read_allocations(struct iris_json *json, struct trace_space *space,
                            int is_freed)
{
    enum iris_json_token token;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_OBJECT) {
        if (read_allocation(json, space, is_freed) != 0) {
            return -1;
        }
    }
    return token == IRIS_JSON_ARRAY_END ? 0 : -1;
}

static int read_member(struct iris_json *json, struct trace_space *space)
{
#define FIELD(name) \
    IRIS_JSON_FIELD(struct trace_space, name, iris_i_json_set_number)
    static const struct iris_json_field fields[] = {
        FIELD(rank), FIELD(heap_bytes), FIELD(reserved_bytes), {.name = NULL}};
#undef FIELD
    const struct iris_json_field *field = iris_i_json_find(json, fields);
    int is_bases = strcmp(json->text, "heap_bases") == 0;
    int is_freed = strcmp(json->text, "freed") == 0;
    int is_live = strcmp(json->text, "allocations") == 0;
    enum iris_json_token token = iris_i_json_next(json);

    if (token == IRIS_JSON_ARRAY && is_bases) {
        return read_bases(json, space);
    }
    if (token == IRIS_JSON_ARRAY && (is_freed || is_live)) {
        return read_allocations(json, space, is_freed);
    }
    return iris_i_json_set(json, token, field, space) == IRIS_JSON_ERROR ? -1
                                                                         : 0;
}

/* Returns 0, 1 if the file does not exist, or -1 after printing a message. */
static int read_space(const char *path, struct trace_space *space)
{
    struct iris_json *json = malloc(sizeof *json);
    enum iris_json_token token = IRIS_JSON_ERROR;
    int ret = -1;

    if (access(path, F_OK) != 0 && errno == ENOENT) {
        free(json);
        return 1;
    }
    if (json == NULL || iris_i_json_open(json, path) != 0) {
        fprintf(stderr, "iris trace: %s\n", json ? json->error : "no memory");
        free(json);
        return -1;
    }
    if (iris_i_json_next(json) == IRIS_JSON_OBJECT) {
        ret = 0;
        while (ret == 0 && (token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
            ret = read_member(json, space);
        }
    }
    if (ret != 0 || token != IRIS_JSON_OBJECT_END) {
        iris_i_json_fail(json, "not a file that a program with Iris writes");
        fprintf(stderr, "iris trace: %s\n", json->error);
        ret = -1;
    }
    iris_i_json_close(json);
    free(json);
    return ret;
}

static int compare_allocations(const void *left, const void *right)
{
    const struct trace_allocation *a = left, *b = right;

    return (a->offset > b->offset) - (a->offset < b->offset);
}

static void sort_allocations(struct trace_space *space)
{
    uint64_t most = 0;

    if (space->num_allocations > 1) {
        qsort(space->allocations, space->num_allocations,
              sizeof *space->allocations, compare_allocations);
    }
    for (size_t i = 0; i < space->num_allocations; i++) {
        struct trace_allocation *one = &space->allocations[i];

        one->bytes = one->bytes < UINT64_MAX - one->offset
                         ? one->bytes
                         : UINT64_MAX - one->offset;
        most =
            one->offset + one->bytes > most ? one->offset + one->bytes : most;
        one->most_end = most;
    }
}

static int read_rank(struct trace_spaces *spaces, const char *prefix, int rank)
{
    struct trace_space space = {.rank = rank};
    char path[PATH_MAX];
    void *more;
    int ret;

    snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json", prefix,
             rank);
    ret = read_space(path, &space);
    if (ret != 0) {
        return ret;
    }
    snprintf(path, sizeof path, "%.3000s_rank_%d_allocations.json", prefix,
             rank);
    more =
        read_space(path, &space) < 0
            ? NULL
            : iris_i_grow(spaces->spaces, (size_t)spaces->count, sizeof space);
    if (more == NULL) {
        free(space.bases);
        free(space.allocations);
        return -1;
    }
    spaces->spaces = more;
    sort_allocations(&space);
    spaces->spaces[spaces->count++] = space;
    return 0;
}

int trace_spaces_read(struct trace_spaces *spaces, const char *prefix)
{
    size_t num_ranks = 1;

    for (size_t rank = 0; rank < num_ranks; rank++) {
        if (read_rank(spaces, prefix, (int)rank) < 0) {
            return -1;
        }
        if (spaces->count > 0 && spaces->spaces[0].num_bases > num_ranks) {
            num_ranks = spaces->spaces[0].num_bases;
        }
    }
    return 0;
}

int trace_spaces_need(const struct trace_spaces *spaces, const char *prefix)
{
    if (spaces->count > 0) {
        return 0;
    }
    fprintf(
        stderr,
        "iris trace: %s_rank_0_heap_bases.json does not exist; name the files "
        "by --bases=PREFIX\n",
        prefix);
    return -1;
}

void trace_spaces_free(struct trace_spaces *spaces)
{
    for (int i = 0; i < spaces->count; i++) {
        free(spaces->spaces[i].bases);
        free(spaces->spaces[i].allocations);
    }
    free(spaces->spaces);
}

/* ---- Addresses ---- */

/* How long before its birth or after its death that is; 0: it was alive. */
static int64_t distance(const struct trace_allocation *one, int64_t ns)
{
    return ns < one->born_ns   ? one->born_ns - ns
           : ns > one->died_ns ? ns - one->died_ns
                               : 0;
}

/* Takes an allocation that has had the place into account. */
static void consider(const struct trace_allocation *one,
                     const struct trace_moment *moment,
                     struct trace_place *place)
{
    const struct trace_allocation *best = place->allocation;

    if (!moment->is_known) { /* the latest */
        place->num_others += best != NULL;
        if (best == NULL || one->born_ns > best->born_ns ||
            (one->born_ns == best->born_ns && !one->is_freed)) {
            place->allocation = one;
        }
        return;
    }
    if (distance(one, moment->ns) > moment->error_ns) {
        return;
    }
    if (best == NULL ||
        distance(one, moment->ns) < distance(best, moment->ns)) {
        place->allocation = one;
        place->other = best;
    } else {
        place->other = one;
    }
}

static void find_allocation(const struct trace_space *space,
                            const struct trace_moment *moment,
                            struct trace_place *place)
{
    size_t low = 0, high = space->num_allocations;

    while (low < high) { /* the first that begins behind the place */
        size_t middle = low + (high - low) / 2;

        if (space->allocations[middle].offset <= place->offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low > 0 && space->allocations[low - 1].most_end > place->offset) {
        const struct trace_allocation *one = &space->allocations[--low];

        if (place->offset - one->offset < one->bytes) {
            consider(one, moment, place);
        }
    }
}

int trace_find_place(const struct trace_space *space, uint64_t address,
                     const struct trace_moment *moment,
                     struct trace_place *place_p)
{
    int best = -1;

    for (size_t i = 0; i < space->num_bases; i++) {
        uint64_t offset = address - space->bases[i];

        if (space->bases[i] == 0 || address < space->bases[i] ||
            (space->heap_bytes != 0 && offset >= space->heap_bytes)) {
            continue;
        }
        if (best < 0 || space->bases[i] > space->bases[best]) {
            best = (int)i;
        }
    }
    if (best < 0) {
        return 0;
    }
    *place_p = (struct trace_place){.rank = best,
                                    .offset = address - space->bases[best]};
    place_p->is_own = place_p->offset < space->reserved_bytes;
    find_allocation(space, moment, place_p);
    return 1;
}

/* ---- Operations ---- */

/* The times of births and deaths in a rank's list use the clock of its host,
 * like those of events. They may differ by the error of the device's clock. */
const struct trace_space *trace_place_of(const struct trace_spaces *spaces,
                                         const struct iris_trace_file *file,
                                         const struct iris_event *event,
                                         struct trace_moment *moment_p,
                                         struct trace_place *place_p)
{
    *moment_p = (struct trace_moment){
        .is_known = !file->ticks,
        .ns = event->ts_ns,
        .error_ns = file->device_error_ns > 0 ? file->device_error_ns : 0};
    for (int i = 0; i < spaces->count; i++) {
        const struct trace_space *space = &spaces->spaces[i];

        if (space->rank == event->pid &&
            trace_find_place(space, event->address, moment_p, place_p)) {
            if (event->target_rank >= 0 && place_p->rank == event->pid) {
                place_p->rank = event->target_rank;
            }
            return space;
        }
    }
    return NULL;
}

int trace_label(const struct trace_spaces *spaces,
                const struct iris_trace_file *file,
                const struct iris_event *event, int with_offset,
                char label_p[TRACE_LABEL])
{
    struct trace_moment moment;
    struct trace_place place;
    const struct trace_allocation *allocation;
    size_t length;

    if (event->address == 0 || strcmp(event->cat, "iris") != 0 ||
        trace_place_of(spaces, file, event, &moment, &place) == NULL ||
        (!place.is_own && place.allocation == NULL)) {
        return 0;
    }
    allocation = place.allocation;
    if (place.is_own) {
        snprintf(label_p, TRACE_LABEL, "the library's own memory");
        return 1;
    }
    if (allocation->name[0] != '\0') {
        snprintf(label_p, TRACE_LABEL, "%s", allocation->name);
    } else {
        snprintf(label_p, TRACE_LABEL, "allocation at %llu",
                 (unsigned long long)allocation->offset);
    }
    length = strlen(label_p);
    if (with_offset) {
        snprintf(label_p + length, TRACE_LABEL - length, " + %llu",
                 (unsigned long long)(place.offset - allocation->offset));
    }
    return 1;
}
