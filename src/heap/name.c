/* SPDX-License-Identifier: MIT
 *
 * Allocations with their names and lives, and the file that lists them, for
 * tools that look up an address later.
 */
#include "config.h"

#include "heap/heap.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A live allocation of the program. */
struct life {
    struct life *next; /* in its bucket */
    size_t start;
    int64_t born_ns; /* UNKNOWN: there was no memory to note it */
    char name[IRIS_NAME_BYTES];
};
#define UNKNOWN INT64_MIN

/* By start. The number of buckets is a power of two. */
struct iris_heap_lives {
    size_t count;
    size_t num_buckets;
    struct life **buckets;
};

/* The latest allocations that were freed, for the list. */
#define NUM_FREED 1024
#define NUM_FREED_MAX 16384
struct freed {
    size_t start;
    size_t bytes;
    int64_t born_ns, died_ns;
    char name[IRIS_NAME_BYTES];
};
struct iris_heap_freed {
    size_t count; /* so far */
    size_t capacity;
    struct freed *all; /* a ring, once it has its full size */
};

/* ---- Lives; all under the lock ---- */

static struct life **bucket_of(const struct iris_heap_lives *lives,
                               size_t start)
{
    uint64_t hash = (uint64_t)(start / IRIS_ALIGNMENT) * 0x9e3779b97f4a7c15u;

    return &lives->buckets[(size_t)(hash >> 32) & (lives->num_buckets - 1)];
}

/* The link to the life that began at `start`; NULL: there is none. */
static struct life **find_life(const struct iris_heap *heap, size_t start)
{
    struct life **link;

    if (heap->lives == NULL) {
        return NULL;
    }
    link = bucket_of(heap->lives, start);
    while (*link != NULL && (*link)->start != start) {
        link = &(*link)->next;
    }
    return *link == NULL ? NULL : link;
}

static const char *name_of(const struct iris_heap *heap, size_t start)
{
    struct life **life = find_life(heap, start);

    return life == NULL ? "" : (*life)->name;
}

/* 0; -1: no memory, and everything is as before. */
static int rehash(struct iris_heap_lives *lives, size_t num_buckets)
{
    struct iris_heap_lives wide = {lives->count, num_buckets,
                                   calloc(num_buckets, sizeof *wide.buckets)};
    struct life *life, *next, **to;

    if (wide.buckets == NULL) {
        return -1;
    }
    for (size_t i = 0; i < lives->num_buckets; i++) {
        for (life = lives->buckets[i]; life != NULL; life = next) {
            next = life->next;
            to = bucket_of(&wide, life->start);
            life->next = *to;
            *to = life;
        }
    }
    free(lives->buckets);
    *lives = wide;
    return 0;
}

/* A life from now on; NULL: no memory. */
static struct life *add_life(struct iris_heap *heap, size_t start)
{
    struct iris_heap_lives *lives = heap->lives;
    struct life *life, **to;

    if (lives == NULL) {
        heap->lives = lives = calloc(1, sizeof *lives);
    }
    if (lives == NULL ||
        (lives->count >= lives->num_buckets &&
         rehash(lives, lives->num_buckets == 0 ? 64 : 2 * lives->num_buckets) !=
             0 &&
         lives->num_buckets == 0)) {
        return NULL;
    }
    life = calloc(1, sizeof *life);
    if (life != NULL) {
        to = bucket_of(lives, start);
        life->start = start;
        life->born_ns = UNKNOWN;
        life->next = *to;
        *to = life;
        lives->count++;
    }
    return life;
}

static void remove_life(struct iris_heap *heap, struct life **link)
{
    struct life *life = *link;

    *link = life->next;
    heap->lives->count--;
    free(life);
}

void iris_i_heap_note_alloc(struct iris_heap *heap, size_t start)
{
    struct life *life;

    pthread_mutex_lock(&heap->names_lock);
    life = add_life(heap, start);
    if (life != NULL) {
        life->born_ns = iris_i_now_ns();
    }
    pthread_mutex_unlock(&heap->names_lock);
}

/* ---- Deaths ---- */

/* Where the next one goes; NULL: the list has no memory. */
static struct freed *next_freed(struct iris_heap *heap)
{
    struct iris_heap_freed *freed = heap->freed;
    size_t capacity;
    void *more;

    if (freed == NULL) {
        heap->freed = freed = calloc(1, sizeof *freed);
    }
    if (freed != NULL && freed->count == freed->capacity &&
        freed->capacity < NUM_FREED_MAX) {
        capacity = freed->capacity == 0 ? NUM_FREED : 2 * freed->capacity;
        more = realloc(freed->all, capacity * sizeof *freed->all);
        if (more != NULL) {
            freed->all = more;
            freed->capacity = capacity;
        }
    }
    return freed == NULL || freed->capacity == 0
               ? NULL
               : &freed->all[freed->count++ % freed->capacity];
}

void iris_i_heap_note_free(struct iris_heap *heap, size_t offset)
{
    struct life **life;
    struct freed *freed;
    size_t start, bytes;

    if (iris_i_alloc_find(heap->alloc, offset, &start, &bytes) != IRIS_OK) {
        return;
    }
    pthread_mutex_lock(&heap->names_lock);
    life = find_life(heap, start);
    freed = next_freed(heap);
    if (freed != NULL) {
        freed->start = start;
        freed->bytes = bytes;
        freed->born_ns = life == NULL ? UNKNOWN : (*life)->born_ns;
        freed->died_ns = iris_i_now_ns();
        snprintf(freed->name, sizeof freed->name, "%s",
                 life == NULL ? "" : (*life)->name);
    }
    if (life != NULL) {
        remove_life(heap, life);
    }
    pthread_mutex_unlock(&heap->names_lock);
}

void iris_i_heap_names_close(struct iris_heap *heap)
{
    struct iris_heap_lives *lives = heap->lives;

    for (size_t i = 0; lives != NULL && i < lives->num_buckets; i++) {
        while (lives->buckets[i] != NULL) {
            remove_life(heap, &lives->buckets[i]);
        }
    }
    if (lives != NULL) {
        free(lives->buckets);
    }
    if (heap->freed != NULL) {
        free(heap->freed->all);
    }
    free(lives);
    free(heap->freed);
    heap->lives = NULL;
    heap->freed = NULL;
}

/* ---- Names ---- */

static iris_status_t set_name(struct iris_heap *heap, size_t start,
                              const char *text)
{
    struct life **link, *life;

    pthread_mutex_lock(&heap->names_lock);
    link = find_life(heap, start);
    life = link != NULL ? *link : add_life(heap, start);
    if (life != NULL) {
        snprintf(life->name, sizeof life->name, "%s", text);
    }
    pthread_mutex_unlock(&heap->names_lock);
    return life != NULL ? IRIS_OK
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
    return set_name(heap, start, text == NULL ? "" : text);
}

const char *iris_i_heap_describe(const struct iris_heap *heap, size_t start,
                                 char text[IRIS_NAME_BYTES + 4])
{
    struct iris_heap *own = (struct iris_heap *)(uintptr_t)heap;
    const char *name;

    pthread_mutex_lock(&own->names_lock);
    name = name_of(own, start);
    snprintf(text, IRIS_NAME_BYTES + 4, name[0] != '\0' ? " \"%s\"" : "%s",
             name);
    pthread_mutex_unlock(&own->names_lock);
    return text;
}

/* ---- The list ---- */

struct list {
    struct iris_heap *heap;
    struct iris_json_writer json;
    int64_t start_ns; /* time 0 */
};

static void print_time(struct list *list, const char *name, int64_t ns)
{
    if (ns != UNKNOWN) {
        iris_i_json_int(&list->json, name, ns - list->start_ns);
    }
}

/* One that has not died has UNKNOWN as its death. */
static void print_one(struct list *list, const struct freed *one)
{
    iris_i_json_begin(&list->json, NULL, '{');
    iris_i_json_uint(&list->json, "offset", one->start);
    iris_i_json_uint(&list->json, "bytes", one->bytes);
    if (one->name[0] != '\0') {
        iris_i_json_text(&list->json, "name", one->name);
    }
    print_time(list, "born_ns", one->born_ns);
    print_time(list, "died_ns", one->died_ns);
    iris_i_json_end(&list->json);
}

static void print_live(void *arg, size_t start, size_t bytes)
{
    struct list *list = arg;
    struct freed one = {start, bytes, UNKNOWN, UNKNOWN, ""};
    struct life **life;

    if (start < list->heap->reserved_bytes) {
        return;
    }
    pthread_mutex_lock(&list->heap->names_lock);
    life = find_life(list->heap, start);
    if (life != NULL) {
        one.born_ns = (*life)->born_ns;
        snprintf(one.name, sizeof one.name, "%s", (*life)->name);
    }
    pthread_mutex_unlock(&list->heap->names_lock);
    print_one(list, &one);
}

/* The latest first. */
static void print_freed(struct list *list)
{
    const struct iris_heap_freed *freed = list->heap->freed;
    size_t count = freed == NULL ? 0 : freed->count;

    for (size_t i = 0; i < count && i < freed->capacity; i++) {
        print_one(list, &freed->all[(count - 1 - i) % freed->capacity]);
    }
}

/* For the caller to free; NULL: no memory. */
static char *print_list(struct iris_heap *heap, int64_t start_ns,
                        size_t *bytes_p)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, bytes_p);
    struct list list = {
        .heap = heap, .json = iris_i_json_writer(file), .start_ns = start_ns};

    if (file == NULL) {
        return NULL;
    }
    iris_i_json_begin(&list.json, NULL, '{');
    iris_i_json_int(&list.json, "rank", heap->log->rank);
    iris_i_json_int(&list.json, "num_ranks", heap->log->num_ranks);
    iris_i_json_uint(&list.json, "heap_bytes", heap->region.bytes);
    iris_i_json_uint(&list.json, "reserved_bytes", heap->reserved_bytes);
    iris_i_json_begin(&list.json, "allocations", '[');
    iris_i_alloc_each(heap->alloc, print_live, &list);
    iris_i_json_end(&list.json);
    iris_i_json_begin(&list.json, "freed", '[');
    pthread_mutex_lock(&heap->names_lock);
    print_freed(&list);
    pthread_mutex_unlock(&heap->names_lock);
    iris_i_json_end(&list.json);
    iris_i_json_end(&list.json);
    if (fclose(file) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

iris_status_t iris_i_allocations_write(struct iris_heap *heap, const char *path,
                                       int64_t start_ns)
{
    size_t bytes = 0;
    char *text = print_list(heap, start_ns, &bytes);
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
