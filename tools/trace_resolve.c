/* SPDX-License-Identifier: MIT
 *
 * iris-trace resolve: what addresses are, by the files of heap bases and
 * allocations of the program that had them.
 */
#include "config.h"

#include "trace.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RANKS 4096

struct allocation {
    uint64_t offset;
    uint64_t bytes;
    int is_freed;
    char name[64];
};

/* One rank's files. */
struct space {
    int rank;
    uint64_t *bases;
    size_t num_bases;
    uint64_t heap_bytes; /* 0: not known */
    uint64_t reserved_bytes;
    struct allocation *allocations;
    size_t num_allocations;
};

struct spaces {
    struct space *spaces;
    int count;
};

/* Whose heap an address is on. */
struct place {
    int rank;
    uint64_t offset;
    const struct allocation *allocation; /* NULL: none is known there */
    int is_own;                          /* the library's */
};

/* ---- Reading the files ---- */

static int grow(void **array, size_t count, size_t size)
{
    void *more;

    if ((count & (count - 1)) != 0) { /* there is space to the next power */
        return 0;
    }
    more = realloc(*array, (count == 0 ? 1 : 2 * count) * size);
    if (more == NULL) {
        return -1;
    }
    *array = more;
    return 0;
}

static int read_bases(struct iris_json *json, struct space *space)
{
    enum iris_json_token token;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_STRING ||
           token == IRIS_JSON_NUMBER) {
        if (space->num_bases == MAX_RANKS ||
            grow((void **)&space->bases, space->num_bases,
                 sizeof *space->bases) != 0) {
            return -1;
        }
        space->bases[space->num_bases++] = strtoull(json->text, NULL, 0);
    }
    return token == IRIS_JSON_ARRAY_END ? 0 : -1;
}

static int read_allocation(struct iris_json *json, struct space *space,
                           int is_freed)
{
    struct allocation one = {.is_freed = is_freed};
    enum iris_json_token token;
    char key[32];

    while ((token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        snprintf(key, sizeof key, "%.31s", json->text);
        token = iris_i_json_next(json);
        if (strcmp(key, "offset") == 0) {
            one.offset = strtoull(json->text, NULL, 0);
        } else if (strcmp(key, "bytes") == 0) {
            one.bytes = strtoull(json->text, NULL, 0);
        } else if (strcmp(key, "name") == 0) {
            snprintf(one.name, sizeof one.name, "%.63s", json->text);
        }
        if (iris_i_json_skip(json, token) == IRIS_JSON_ERROR) {
            return -1;
        }
    }
    if (token != IRIS_JSON_OBJECT_END ||
        grow((void **)&space->allocations, space->num_allocations,
             sizeof one) != 0) {
        return -1;
    }
    space->allocations[space->num_allocations++] = one;
    return 0;
}

static int read_allocations(struct iris_json *json, struct space *space,
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

static int read_member(struct iris_json *json, struct space *space)
{
    enum iris_json_token token;
    char key[32];

    snprintf(key, sizeof key, "%.31s", json->text);
    token = iris_i_json_next(json);
    if (strcmp(key, "heap_bases") == 0 && token == IRIS_JSON_ARRAY) {
        return read_bases(json, space);
    }
    if (strcmp(key, "allocations") == 0 && token == IRIS_JSON_ARRAY) {
        return read_allocations(json, space, 0);
    }
    if (strcmp(key, "freed") == 0 && token == IRIS_JSON_ARRAY) {
        return read_allocations(json, space, 1);
    }
    if (strcmp(key, "rank") == 0) {
        space->rank = (int)strtol(json->text, NULL, 10);
    } else if (strcmp(key, "heap_bytes") == 0) {
        space->heap_bytes = strtoull(json->text, NULL, 0);
    } else if (strcmp(key, "reserved_bytes") == 0) {
        space->reserved_bytes = strtoull(json->text, NULL, 0);
    }
    return iris_i_json_skip(json, token) == IRIS_JSON_ERROR ? -1 : 0;
}

/* 0; 1: there is no such file; -1, having complained. */
static int read_space(const char *path, struct space *space)
{
    struct iris_json *json = malloc(sizeof *json);
    enum iris_json_token token = IRIS_JSON_ERROR;
    int ret = -1;

    if (access(path, F_OK) != 0 && errno == ENOENT) {
        free(json);
        return 1;
    }
    if (json == NULL || iris_i_json_open(json, path) != 0) {
        fprintf(stderr, "iris-trace: %s\n", json ? json->error : "no memory");
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
        iris_i_json_fail(json, "not what a program with Iris writes");
        fprintf(stderr, "iris-trace: %s\n", json->error);
        ret = -1;
    }
    iris_i_json_close(json);
    free(json);
    return ret;
}

static int read_rank(struct spaces *spaces, int rank)
{
    struct space space = {.rank = rank};
    char path[PATH_MAX];
    int ret;

    snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json",
             trace_options.bases, rank);
    ret = read_space(path, &space);
    if (ret != 0) {
        return ret;
    }
    snprintf(path, sizeof path, "%.3000s_rank_%d_allocations.json",
             trace_options.bases, rank);
    if (read_space(path, &space) < 0 ||
        grow((void **)&spaces->spaces, (size_t)spaces->count, sizeof space) !=
            0) {
        free(space.bases);
        free(space.allocations);
        return -1;
    }
    spaces->spaces[spaces->count++] = space;
    return 0;
}

static int read_spaces(struct spaces *spaces)
{
    size_t num_ranks = 1;

    for (size_t rank = 0; rank < num_ranks; rank++) {
        if (read_rank(spaces, (int)rank) < 0) {
            return -1;
        }
        if (spaces->count > 0 && spaces->spaces[0].num_bases > num_ranks) {
            num_ranks = spaces->spaces[0].num_bases;
        }
    }
    if (spaces->count == 0) {
        fprintf(stderr,
                "iris-trace resolve: there is no %s_rank_0_heap_bases.json; "
                "name the files by --bases=PREFIX\n",
                trace_options.bases);
        return -1;
    }
    return 0;
}

static void free_spaces(struct spaces *spaces)
{
    for (int i = 0; i < spaces->count; i++) {
        free(spaces->spaces[i].bases);
        free(spaces->spaces[i].allocations);
    }
    free(spaces->spaces);
}

/* ---- Addresses ---- */

static const struct allocation *allocation_at(const struct space *space,
                                              uint64_t offset)
{
    for (size_t i = 0; i < space->num_allocations; i++) {
        if (offset - space->allocations[i].offset <
            space->allocations[i].bytes) {
            return &space->allocations[i];
        }
    }
    return NULL;
}

/* Whether the address is on a heap as this rank has them mapped. Without the
 * size of heaps the nearest base below it counts. Allocations are at the same
 * offsets on all ranks. */
static int find(const struct space *space, uint64_t address,
                struct place *place_p)
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
    place_p->rank = best;
    place_p->offset = address - space->bases[best];
    place_p->allocation = allocation_at(space, place_p->offset);
    place_p->is_own = place_p->offset < space->reserved_bytes;
    return 1;
}

static void print_place(const struct place *place)
{
    const struct allocation *allocation = place->allocation;

    printf("rank %d, heap offset %llu", place->rank,
           (unsigned long long)place->offset);
    if (place->is_own) {
        printf(", the library's own");
    } else if (allocation != NULL && allocation->name[0] != '\0') {
        printf(", %s%s + %llu of %llu bytes", allocation->name,
               allocation->is_freed ? " (freed since)" : "",
               (unsigned long long)(place->offset - allocation->offset),
               (unsigned long long)allocation->bytes);
    } else if (allocation != NULL) {
        printf(", %s at %llu + %llu of %llu bytes",
               allocation->is_freed ? "freed allocation" : "allocation",
               (unsigned long long)allocation->offset,
               (unsigned long long)(place->offset - allocation->offset),
               (unsigned long long)allocation->bytes);
    }
}

/* Ranks of different processes may have different things at one address: all of
 * them are named. */
static void resolve(const struct spaces *spaces, uint64_t address, int rank)
{
    struct place place, last = {.rank = -1};
    int found = 0;

    printf("0x%llx: ", (unsigned long long)address);
    for (int i = 0; i < spaces->count; i++) {
        if ((rank >= 0 && spaces->spaces[i].rank != rank) ||
            !find(&spaces->spaces[i], address, &place) ||
            (place.rank == last.rank && place.offset == last.offset)) {
            continue;
        }
        if (found++ > 0) {
            printf("; in rank %d's address space ", spaces->spaces[i].rank);
        }
        print_place(&place);
        last = place;
    }
    printf("%s\n", found ? "" : "on no rank's heap");
}

/* ---- What addresses come from ---- */

/* The first number of a line that looks like an address, as profilers print
 * them; a line without one is passed on. */
static int resolve_lines(const struct spaces *spaces, FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;

    while (getline(&line, &capacity, file) > 0) {
        const char *at = strstr(line, "0x");
        char *end;
        uint64_t address;

        at = at == NULL ? line : at;
        while (isspace((unsigned char)*at)) {
            at++;
        }
        errno = 0;
        address = strtoull(at, &end, 16);
        if (end == at || errno != 0) {
            fputs(line, stdout);
        } else {
            resolve(spaces, address, trace_options.rank);
        }
    }
    free(line);
    return 0;
}

/* An event's address is the one that its rank used, on its own heap; whose
 * memory it meant is the target. */
static int resolve_event(void *arg, const struct iris_event *event)
{
    const struct spaces *spaces = arg;
    struct place place;

    if (event->address == 0 || strcmp(event->cat, "iris") != 0) {
        return 0;
    }
    for (int i = 0; i < spaces->count; i++) {
        if (spaces->spaces[i].rank == event->pid &&
            find(&spaces->spaces[i], event->address, &place)) {
            if (event->target_rank >= 0 && place.rank == event->pid) {
                place.rank = event->target_rank;
            }
            printf("%s by rank %d at 0x%llx: ", event->name, event->pid,
                   (unsigned long long)event->address);
            print_place(&place);
            printf("\n");
            return 0;
        }
    }
    printf("%s by rank %d at 0x%llx: on no rank's heap\n", event->name,
           event->pid, (unsigned long long)event->address);
    return 0;
}

static int is_trace(const char *path)
{
    size_t length = strlen(path);

    return (length > 5 && strcmp(path + length - 5, ".json") == 0) ||
           (length > 8 && strcmp(path + length - 8, ".json.gz") == 0);
}

static int resolve_file(const struct spaces *spaces, const char *path)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    FILE *file;
    int ret;

    if (is_trace(path)) {
        ret = trace_read(path, &figures, resolve_event,
                         (void *)(uintptr_t)spaces);
        trace_free(&figures);
        return ret;
    }
    file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "iris-trace: %s: %s\n", path, strerror(errno));
        return -1;
    }
    ret = resolve_lines(spaces, file);
    fclose(file);
    return ret;
}

int trace_resolve(void)
{
    struct spaces spaces = {0};
    int ret = read_spaces(&spaces);

    if (ret == 0) {
        ret = trace_options.num_files == 0
                  ? resolve_lines(&spaces, stdin)
                  : resolve_file(&spaces, trace_options.files[0]);
    }
    free_spaces(&spaces);
    return ret != 0 ? 1 : trace_close(stdout);
}
