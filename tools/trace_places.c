/* SPDX-License-Identifier: MIT
 *
 * Finds the allocation of an address, from the metadata of a trace or from files
 * of heap bases; and iris trace resolve, which names the allocations of addresses
 * in a trace or in a list.
 *
 * A space has the memory of one rank. Its allocations are sorted by offset.
 * A place points to allocations of its space.
 */
#include "config.h"

#include "iris.h"
#include "trace.h"
#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RANKS 4096

/* ---- Reading files and traces ---- */

/* Returns -1 without memory, or if there are too many ranks. */
static int set_base(struct trace_space *space, int rank, uint64_t base)
{
    while (rank >= 0 && (size_t)rank >= space->num_bases) {
        if (rank >= MAX_RANKS || iris_i_grow(&space->bases, &space->num_bases,
                                             sizeof *space->bases) == NULL) {
            return -1;
        }
    }
    if (rank >= 0) {
        space->bases[rank] = base;
    }
    return 0;
}

/* Returns 0, 1 if the file does not exist, or -1 after printing a message. */
static int read_bases(const char *path, struct trace_space *space)
{
    struct iris_json *json;
    enum iris_json_token token;
    int is_bases = 0, ret = 0;

    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return 1;
    }
    json = malloc(sizeof *json);
    if (json == NULL || iris_i_json_open(json, path) != 0) {
        fprintf(stderr, "iris trace: %s\n", json ? json->error : "no memory");
        free(json);
        return -1;
    }
    while (ret == 0 && (token = iris_i_json_next(json)) > IRIS_JSON_ERROR) {
        if (token == IRIS_JSON_KEY) {
            is_bases = strcmp(json->text, "heap_bases") == 0;
        } else if (is_bases && token == IRIS_JSON_STRING) {
            ret = set_base(space, (int)space->num_bases,
                           strtoull(json->text, NULL, 0));
        }
    }
    if (ret != 0 || token != IRIS_JSON_END || space->num_bases == 0) {
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

    return IRIS_COMPARE(a->offset, b->offset);
}

static void sort_allocations(struct trace_space *space)
{
    uint64_t most = 0;

    iris_i_sort(space->allocations, space->num_allocations,
                sizeof *space->allocations, compare_allocations);
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

/* Returns NULL without memory. */
static struct trace_space *find_or_add_space(struct trace_spaces *spaces,
                                             int rank)
{
    struct trace_space *space;

    for (size_t i = spaces->count; i > 0; i--) {
        if (spaces->spaces[i - 1].rank == rank) {
            return &spaces->spaces[i - 1];
        }
    }
    space = iris_i_grow(&spaces->spaces, &spaces->count, sizeof *space);
    if (space != NULL) {
        space->rank = rank;
    }
    return space;
}

static int add_allocation(struct trace_space *space,
                          const struct iris_event *event)
{
    struct trace_allocation one = {.offset = event->offset,
                                   .bytes = event->payload,
                                   .is_freed =
                                       strcmp(event->name, "iris_freed") == 0,
                                   .born_ns = event->born_ns,
                                   .died_ns = event->died_ns};
    struct trace_allocation *kept =
        iris_i_grow(&space->allocations, &space->num_allocations, sizeof *kept);

    if (kept == NULL) {
        return -1;
    }
    *kept = one;
    memcpy(kept->name, event->label, sizeof kept->name);
    return 0;
}

int trace_spaces_add(struct trace_spaces *spaces,
                     const struct iris_event *event)
{
    int is_heap = strcmp(event->name, "iris_heap") == 0;
    struct trace_space *space;

    if (!is_heap && strcmp(event->name, "iris_allocation") != 0 &&
        strcmp(event->name, "iris_freed") != 0) {
        return 0;
    }
    space = find_or_add_space(spaces, event->pid);
    if (space == NULL) {
        return -1;
    }
    if (!is_heap) {
        return add_allocation(space, event);
    }
    space->heap_bytes = event->payload;
    space->reserved_bytes = event->offset;
    return set_base(space, event->target_rank, event->address);
}

void trace_spaces_sort(struct trace_spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++) {
        sort_allocations(&spaces->spaces[i]);
    }
}

/* Takes the memory of a trace. */
static int read_traced(struct trace_spaces *spaces, const char *path)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    int ret = trace_read(path, &figures, NULL, NULL);

    *spaces = figures.spaces;
    figures.spaces = (struct trace_spaces){0};
    trace_free(&figures);
    return ret;
}

static int read_spaces(struct trace_spaces *spaces, const char *prefix)
{
    size_t num_ranks = 1;
    char path[PATH_MAX];

    if (iris_i_out_ending(prefix) != NULL) {
        return read_traced(spaces, prefix);
    }
    for (int rank = 0; (size_t)rank < num_ranks; rank++) {
        struct trace_space one = {.rank = rank}, *space;
        int ret;

        snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json", prefix,
                 rank);
        ret = read_bases(path, &one);
        space = ret == 0 ? find_or_add_space(spaces, rank) : NULL;
        if (space == NULL) {
            free(one.bases);
            if (ret <= 0) {
                return -1;
            }
            continue;
        }
        *space = one;
        num_ranks = one.num_bases > num_ranks ? one.num_bases : num_ranks;
    }
    return 0;
}

int trace_spaces_take(struct trace_spaces *spaces, const char *prefix)
{
    int ret;

    trace_spaces_free(spaces);
    *spaces = (struct trace_spaces){0};
    ret = read_spaces(spaces, prefix);
    if (ret == 0 && spaces->count == 0) {
        fprintf(stderr,
                "iris trace: %s has no addresses of heaps; name a trace, or "
                "the prefix of heap-bases files, by --bases\n",
                prefix);
        return -1;
    }
    return ret;
}

void trace_spaces_free(struct trace_spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++) {
        free(spaces->spaces[i].bases);
        free(spaces->spaces[i].allocations);
    }
    free(spaces->spaces);
}

/* ---- Addresses ---- */

/* How long before its birth or after its death that is; 0: it was alive. */
static int64_t find_distance(const struct trace_allocation *one, int64_t ns)
{
    return ns < one->born_ns   ? one->born_ns - ns
           : ns > one->died_ns ? ns - one->died_ns
                               : 0;
}

/* Takes an allocation that has had the place into account. */
static void consider_allocation(const struct trace_allocation *one,
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
    if (find_distance(one, moment->ns) > moment->error_ns) {
        return;
    }
    if (best == NULL ||
        find_distance(one, moment->ns) < find_distance(best, moment->ns)) {
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
            consider_allocation(one, moment, place);
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
    for (size_t i = 0; i < spaces->count; i++) {
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
    unsigned long long at;
    size_t length;
    int is_word;

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
    at = place.offset - allocation->offset;
    if (!with_offset || allocation->bytes == event->payload) {
        return 1;
    }
    is_word = event->payload <= 8 && event->payload > 0 &&
              at % event->payload == 0 && allocation->name[0] != '\0';
    snprintf(label_p + length, TRACE_LABEL - length,
             is_word ? "[%llu]" : " + %llu",
             is_word ? at / event->payload : at);
    return 1;
}

/* ---- Resolve ---- */

static void print_allocation(const struct trace_place *place,
                             const struct trace_allocation *allocation)
{
    if (allocation->name[0] != '\0') {
        printf("%s%s", allocation->name,
               allocation->is_freed ? " (freed since)" : "");
    } else {
        printf("%s at %llu",
               allocation->is_freed ? "freed allocation" : "allocation",
               (unsigned long long)allocation->offset);
    }
    printf(" + %llu of %llu bytes",
           (unsigned long long)(place->offset - allocation->offset),
           (unsigned long long)allocation->bytes);
}

static void print_place(const struct trace_space *space,
                        const struct trace_place *place,
                        const struct trace_moment *moment)
{
    printf("rank %d, heap offset %llu", place->rank,
           (unsigned long long)place->offset);
    if (place->is_own) {
        printf(", the library's own");
        return;
    }
    if (place->allocation == NULL) {
        printf("%s", moment->is_known && space->num_allocations > 0
                         ? ", where no allocation of the list was alive then"
                         : "");
        return;
    }
    printf(", ");
    print_allocation(place, place->allocation);
    if (place->other != NULL) {
        printf(", or ");
        print_allocation(place, place->other);
        printf(" (the device's clock is exact to %lld ns)",
               (long long)moment->error_ns);
    }
    if (place->num_others > 0) {
        printf("; %d earlier allocation%s had this memory, too",
               place->num_others, place->num_others == 1 ? "" : "s");
    }
}

/* Names the allocations at an address. Ranks of different processes may have
 * different allocations there; all of them are named. An address that is only
 * tried prints nothing unless it is on a heap. Returns the number of places. */
static int resolve_address(const struct trace_spaces *spaces, uint64_t address,
                           int is_tried)
{
    static const struct trace_moment unknown;
    struct trace_place place, last = {.rank = -1};
    int found = 0;

    for (size_t i = 0; i < spaces->count; i++) {
        const struct trace_space *space = &spaces->spaces[i];

        if ((trace_options.rank >= 0 && space->rank != trace_options.rank) ||
            !trace_find_place(space, address, &unknown, &place) ||
            (place.rank == last.rank && place.offset == last.offset)) {
            continue;
        }
        if (found++ > 0) {
            printf("; in rank %d's address space ", space->rank);
        } else {
            printf("0x%llx: ", (unsigned long long)address);
        }
        print_place(space, &place, &unknown);
        last = place;
    }
    if (found) {
        printf("\n");
    } else if (!is_tried) {
        printf("0x%llx: on no rank's heap\n", (unsigned long long)address);
    }
    return found;
}

/* ---- Sources of addresses ---- */

/* Finds the next word of the line that is a number, from *at_p on, with or
 * without 0x ahead. Returns 0 if there are no more. */
static int find_number(const char **at_p, int with_0x, uint64_t *number_p)
{
    const char *at = *at_p;

    while (*at != '\0') {
        size_t prefix = at[0] == '0' && (at[1] == 'x' || at[1] == 'X') ? 2 : 0;
        size_t digits = strspn(at + prefix, "0123456789abcdefABCDEF");
        size_t word = prefix + digits;

        while (isalnum((unsigned char)at[word]) || at[word] == '_') {
            word++;
        }
        if (digits > 0 && word == prefix + digits && (prefix > 0) == with_0x) {
            errno = 0;
            *number_p = strtoull(at + prefix, NULL, 16);
            *at_p = at + word;
            if (errno == 0) {
                return 1;
            }
        }
        at += word > 0 ? word : 1;
    }
    return 0;
}

/* Resolves the first number of the line that is on a heap. Numbers with 0x come
 * first, because sizes, line numbers and times may be ahead of the address. */
static int resolve_one_of(const struct trace_spaces *spaces, const char *line)
{
    uint64_t number;

    for (int with_0x = 1; with_0x >= 0; with_0x--) {
        const char *at = line;

        while (find_number(&at, with_0x, &number)) {
            if (resolve_address(spaces, number, 1)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Resolves lines in the form of profilers. Copies lines without an address. */
static void resolve_lines(const struct trace_spaces *spaces, FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;

    while (getline(&line, &capacity, file) > 0) {
        const char *at = line;
        uint64_t number;

        if (resolve_one_of(spaces, line)) {
            continue;
        }
        if (find_number(&at, 1, &number)) {
            (void)resolve_address(spaces, number, 0);
        } else {
            fputs(line, stdout);
        }
    }
    free(line);
}

static int resolve_event(void *arg, const struct iris_event *event)
{
    const struct trace_figures *figures = arg;
    const struct trace_space *space;
    struct trace_moment moment;
    struct trace_place place;

    if (event->address == 0 || strcmp(event->cat, "iris") != 0) {
        return 0;
    }
    printf("%s by rank %d at 0x%llx: ", event->name, event->pid,
           (unsigned long long)event->address);
    space = trace_place_of(&figures->spaces, &figures->file, event, &moment,
                           &place);
    if (space == NULL) {
        printf("on no rank's heap\n");
        return 0;
    }
    print_place(space, &place, &moment);
    printf("\n");
    return 0;
}

/* The first reading finds the accuracy of times, which files have at their end,
 * and the trace's memory. */
static int resolve_trace(const char *path)
{
    struct trace_figures figures = {.first_ns = INT64_MAX}, again = figures;
    int ret = trace_read(path, &figures, NULL, NULL);

    if (ret == 0 &&
        (trace_options.bases != NULL || figures.spaces.count == 0)) {
        ret = trace_spaces_take(&figures.spaces, trace_options.bases != NULL
                                                     ? trace_options.bases
                                                     : "iris");
    }
    if (ret == 0) {
        ret = trace_read(path, &again, resolve_event, &figures);
    }
    trace_free(&figures);
    trace_free(&again);
    return ret;
}

static int resolve_list(const struct trace_spaces *spaces, const char *path)
{
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        fprintf(stderr, "iris trace: %s: %s\n", path, strerror(errno));
        return -1;
    }
    resolve_lines(spaces, file);
    fclose(file);
    return 0;
}

int trace_resolve(char **files, int num_files)
{
    struct trace_spaces spaces = {0};
    int ret;

    if (num_files > 0 && iris_i_out_ending(files[0]) != NULL) {
        ret = resolve_trace(files[0]);
        return ret != 0 ? 1 : tool_close("iris trace", NULL, stdout);
    }
    ret = trace_spaces_take(
        &spaces, trace_options.bases != NULL ? trace_options.bases : "iris");
    if (ret == 0 && num_files == 0) {
        resolve_lines(&spaces, stdin);
    } else if (ret == 0) {
        ret = resolve_list(&spaces, files[0]);
    }
    trace_spaces_free(&spaces);
    return ret != 0 ? 1 : tool_close("iris trace", NULL, stdout);
}
