/* SPDX-License-Identifier: MIT
 *
 * Names that a program gives its allocations, and the file that lists what is
 * allocated, for whoever looks for an address later.
 */
#include "config.h"

#include "heap/heap.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct iris_heap_name {
    struct iris_heap_name *next;
    size_t start;
    char text[IRIS_NAME_BYTES];
};

/* The latest allocations that were freed, for the list. */
#define NUM_FREED 1024
struct iris_heap_freed {
    unsigned count; /* so far */
    struct {
        size_t start;
        size_t bytes;
        char name[IRIS_NAME_BYTES];
    } all[NUM_FREED]; /* a ring */
};

/* The link to the name of the allocation at `start`, or to where it would be.
 * Under the lock. */
static struct iris_heap_name **link_of(struct iris_heap *heap, size_t start)
{
    struct iris_heap_name **link = &heap->names;

    while (*link != NULL && (*link)->start != start) {
        link = &(*link)->next;
    }
    return link;
}

static void unname(struct iris_heap *heap, size_t start)
{
    struct iris_heap_name **link, *name;

    pthread_mutex_lock(&heap->names_lock);
    link = link_of(heap, start);
    name = *link;
    if (name != NULL) {
        *link = name->next;
        free(name);
    }
    pthread_mutex_unlock(&heap->names_lock);
}

/* Under the lock. Without memory the list lacks what was freed. */
static void note_freed(struct iris_heap *heap, size_t start, size_t bytes)
{
    const struct iris_heap_name *name = *link_of(heap, start);
    unsigned at;

    if (heap->freed == NULL) {
        heap->freed = calloc(1, sizeof *heap->freed);
    }
    if (heap->freed != NULL) {
        at = heap->freed->count++ % NUM_FREED;
        heap->freed->all[at].start = start;
        heap->freed->all[at].bytes = bytes;
        snprintf(heap->freed->all[at].name, IRIS_NAME_BYTES, "%s",
                 name != NULL ? name->text : "");
    }
}

void iris_i_heap_note_free(struct iris_heap *heap, size_t offset)
{
    size_t start, bytes;

    if (iris_i_alloc_find(heap->alloc, offset, &start, &bytes) == IRIS_OK) {
        pthread_mutex_lock(&heap->names_lock);
        note_freed(heap, start, bytes);
        pthread_mutex_unlock(&heap->names_lock);
        unname(heap, start);
    }
}

void iris_i_heap_names_close(struct iris_heap *heap)
{
    while (heap->names != NULL) {
        unname(heap, heap->names->start);
    }
    free(heap->freed);
    heap->freed = NULL;
}

static iris_status_t set_name(struct iris_heap *heap, size_t start,
                              const char *text)
{
    struct iris_heap_name **link, *name;

    pthread_mutex_lock(&heap->names_lock);
    link = link_of(heap, start);
    if (*link == NULL) {
        *link = calloc(1, sizeof **link);
    }
    name = *link;
    if (name != NULL) {
        name->start = start;
        snprintf(name->text, sizeof name->text, "%s", text);
    }
    pthread_mutex_unlock(&heap->names_lock);
    return name != NULL ? IRIS_OK
                        : iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                                      "iris_name: no memory for a name");
}

iris_status_t iris_i_heap_set_name(struct iris_heap *heap, const void *ptr,
                                   const char *text)
{
    size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)heap->region.base);
    size_t start, bytes;

    if (offset >= heap->region.bytes || offset < heap->reserved_bytes ||
        iris_i_alloc_find(heap->alloc, offset, &start, &bytes) != IRIS_OK) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "iris_name of %p, where nothing is allocated on "
                           "this rank's heap; pass what iris_malloc gave",
                           ptr);
    }
    if (text != NULL && strlen(text) >= IRIS_NAME_BYTES) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "iris_name: name has %zu characters; pass at most "
                           "%d",
                           strlen(text), IRIS_NAME_BYTES - 1);
    }
    if (text == NULL || text[0] == '\0') {
        unname(heap, start);
        return IRIS_OK;
    }
    return set_name(heap, start, text);
}

const char *iris_i_heap_describe(const struct iris_heap *heap, size_t start,
                                 char text[IRIS_NAME_BYTES + 4])
{
    struct iris_heap *own = (struct iris_heap *)(uintptr_t)heap;
    struct iris_heap_name *name;

    pthread_mutex_lock(&own->names_lock);
    name = *link_of(own, start);
    snprintf(text, IRIS_NAME_BYTES + 4, name != NULL ? " \"%s\"" : "%s",
             name != NULL ? name->text : "");
    pthread_mutex_unlock(&own->names_lock);
    return text;
}

/* ---- The list ---- */

struct list {
    struct iris_heap *heap;
    FILE *file;
    int count;
};

static void print_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        fprintf(file,
                c < 0x20 || c >= 0x7f || c == '"' || c == '\\' ? "\\u%04x"
                                                               : "%c",
                c);
    }
}

static void print_one(struct list *list, size_t start, size_t bytes,
                      const char *name)
{
    fprintf(list->file, "%s\n    {\"offset\": %zu, \"bytes\": %zu",
            list->count++ == 0 ? "" : ",", start, bytes);
    if (name != NULL && name[0] != '\0') {
        fprintf(list->file, ", \"name\": \"");
        print_text(list->file, name);
        fprintf(list->file, "\"");
    }
    fprintf(list->file, "}");
}

static void print_live(void *arg, size_t start, size_t bytes)
{
    struct list *list = arg;
    struct iris_heap_name *name;

    if (start < list->heap->reserved_bytes) {
        return;
    }
    pthread_mutex_lock(&list->heap->names_lock);
    name = *link_of(list->heap, start);
    print_one(list, start, bytes, name != NULL ? name->text : NULL);
    pthread_mutex_unlock(&list->heap->names_lock);
}

/* The latest first. */
static void print_freed(struct list *list)
{
    const struct iris_heap_freed *freed = list->heap->freed;
    unsigned count = freed == NULL ? 0 : freed->count;

    for (unsigned i = 0; i < count && i < NUM_FREED; i++) {
        unsigned at = (count - 1 - i) % NUM_FREED;

        print_one(list, freed->all[at].start, freed->all[at].bytes,
                  freed->all[at].name);
    }
}

/* For the caller to free; NULL: no memory. */
static char *print_list(struct iris_heap *heap, size_t *bytes_p)
{
    char *text = NULL;
    struct list list = {.heap = heap, .file = open_memstream(&text, bytes_p)};

    if (list.file == NULL) {
        return NULL;
    }
    fprintf(list.file,
            "{\n  \"rank\": %d,\n  \"num_ranks\": %d,\n  \"heap_bytes\": %zu,\n"
            "  \"reserved_bytes\": %zu,\n  \"allocations\": [",
            heap->log->rank, heap->log->num_ranks, heap->region.bytes,
            heap->reserved_bytes);
    iris_i_alloc_each(heap->alloc, print_live, &list);
    fprintf(list.file, "\n  ],\n  \"freed\": [");
    list.count = 0;
    print_freed(&list);
    fprintf(list.file, "\n  ]\n}\n");
    if (fclose(list.file) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

iris_status_t iris_i_allocations_write(struct iris_heap *heap, const char *path)
{
    size_t bytes = 0;
    char *text = print_list(heap, &bytes);
    int ret;

    if (text == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the list of allocations");
    }
    ret = iris_i_file_write(path, text, bytes);
    free(text);
    return ret == 0 ? IRIS_OK
                    : iris_i_fail_errno(heap->log, IRIS_ERR_SYSTEM, ret,
                                        "cannot write %.600s", path);
}
