/* SPDX-License-Identifier: MIT
 *
 * iris trace resolve: names the allocations of addresses in a trace or in a
 * list.
 */
#include "config.h"

#include "trace/trace.h"
#include "trace_figures.h"
#include "trace_parts.h"
#include "trace_places.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
static int resolve(const struct trace_spaces *spaces, uint64_t address,
                   int is_tried)
{
    static const struct trace_moment unknown;
    struct trace_place place, last = {.rank = -1};
    int found = 0;

    for (int i = 0; i < spaces->count; i++) {
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
static int next_number(const char **at_p, int with_0x, uint64_t *number_p)
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

        while (next_number(&at, with_0x, &number)) {
            if (resolve(spaces, number, 1)) {
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
        if (next_number(&at, 1, &number)) {
            (void)resolve(spaces, number, 0);
        } else {
            fputs(line, stdout);
        }
    }
    free(line);
}

/* The state of resolve_event(). */
struct events {
    const struct trace_spaces *spaces;
    struct iris_trace_file file; /* properties from the first reading */
};

static int resolve_event(void *arg, const struct iris_event *event)
{
    const struct events *events = arg;
    const struct trace_space *space;
    struct trace_moment moment;
    struct trace_place place;

    if (event->address == 0 || strcmp(event->cat, "iris") != 0) {
        return 0;
    }
    printf("%s by rank %d at 0x%llx: ", event->name, event->pid,
           (unsigned long long)event->address);
    space =
        trace_place_of(events->spaces, &events->file, event, &moment, &place);
    if (space == NULL) {
        printf("on no rank's heap\n");
        return 0;
    }
    print_place(space, &place, &moment);
    printf("\n");
    return 0;
}

/* The first reading finds the accuracy of times, which files have at their end. */
static int resolve_trace(const struct trace_spaces *spaces, const char *path)
{
    struct trace_figures figures = {.first_ns = INT64_MAX}, again = figures;
    struct events events = {.spaces = spaces};
    int ret = trace_read(path, &figures, NULL, NULL);

    if (ret == 0) {
        events.file = figures.file;
        ret = trace_read(path, &again, resolve_event, &events);
    }
    trace_free(&figures);
    trace_free(&again);
    return ret;
}

static int resolve_file(const struct trace_spaces *spaces, const char *path)
{
    FILE *file;

    if (iris_i_out_ending(path) != NULL) {
        return resolve_trace(spaces, path);
    }
    file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "iris trace: %s: %s\n", path, strerror(errno));
        return -1;
    }
    resolve_lines(spaces, file);
    fclose(file);
    return 0;
}

int trace_resolve(void)
{
    struct trace_spaces spaces = {0};
    const char *prefix =
        trace_options.bases != NULL ? trace_options.bases : "iris";
    int ret = trace_spaces_read(&spaces, prefix);

    ret = ret != 0 ? ret : trace_spaces_need(&spaces, prefix);
    if (ret == 0 && trace_options.num_files == 0) {
        resolve_lines(&spaces, stdin);
    } else if (ret == 0) {
        ret = resolve_file(&spaces, trace_options.files[0]);
    }
    trace_spaces_free(&spaces);
    return ret != 0 ? 1 : trace_close(stdout);
}
