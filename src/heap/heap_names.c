/* SPDX-License-Identifier: MIT
 *
 * Allocations with their names and lifetimes, for tools that look up an address
 * later: the file of heap bases, and metadata events of a trace.
 */
#include "config.h"

#include "heap/heap.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A live allocation of the program. */
struct life {
    struct life *next; /* next in its bucket */
    size_t start;
    int64_t born_ns; /* UNKNOWN: there was no memory to record it */
    char name[IRIS_NAME_BYTES];
};
#define UNKNOWN INT64_MIN

/* Indexed by start. The number of buckets is a power of two. */
struct iris_heap_lives {
    size_t count;
    size_t num_buckets;
    struct life **buckets;
};

/* The number of freed allocations that the list keeps. */
#define NUM_FREED 1024
#define NUM_FREED_MAX 16384
struct record {
    size_t start;
    size_t bytes;
    int64_t born_ns, died_ns; /* UNKNOWN: not recorded, or still alive */
    char name[IRIS_NAME_BYTES];
};
struct iris_heap_freed {
    size_t count; /* so far */
    size_t capacity;
    struct record *all; /* a ring, allocated at its full size */
};

iris_status_t iris_i_heap_names_open(struct iris_heap_names *names,
                                     const struct iris_heap_memory *memory)
{
    iris_status_t status;
    size_t offset;

    names->memory = memory;
    pthread_mutex_init(&names->lock, NULL);
    status = iris_i_alloc_create(iris_i_heap_bytes(memory), &names->alloc);
    return status ? status
                  : iris_i_alloc_take(names->alloc, names->reserved_bytes,
                                      IRIS_ALIGNMENT, &offset);
}

int iris_i_heap_find(const struct iris_heap_names *names, size_t offset,
                     size_t *start_p, size_t *bytes_p)
{
    return !iris_i_heap_is_own(names, offset) &&
           iris_i_alloc_find(names->alloc, offset, start_p, bytes_p) == IRIS_OK;
}

/* ---- Lifetimes ---- */

static struct life **find_bucket(const struct iris_heap_lives *lives,
                                 size_t start)
{
    uint64_t hash = (uint64_t)(start / IRIS_ALIGNMENT) * 0x9e3779b97f4a7c15u;

    return &lives->buckets[(size_t)(hash >> 32) & (lives->num_buckets - 1)];
}

/* The link to the life that began at `start`; NULL: there is none. */
static struct life **find_life(const struct iris_heap_names *names,
                               size_t start) IRIS_REQUIRES(names->lock)
{
    struct life **link;

    if (names->lives == NULL) {
        return NULL;
    }
    link = find_bucket(names->lives, start);
    while (*link != NULL && (*link)->start != start) {
        link = &(*link)->next;
    }
    return *link == NULL ? NULL : link;
}

/* Returns 0, or -1 without memory; then nothing has changed. */
static int rehash_lives(struct iris_heap_lives *lives, size_t num_buckets)
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
            to = find_bucket(&wide, life->start);
            life->next = *to;
            *to = life;
        }
    }
    free(lives->buckets);
    *lives = wide;
    return 0;
}

/* Adds an allocation that lives from now on; NULL: no memory. */
static struct life *add_life(struct iris_heap_names *names, size_t start)
    IRIS_REQUIRES(names->lock)
{
    struct iris_heap_lives *lives = names->lives;
    struct life *life, **to;

    if (lives == NULL) {
        names->lives = lives = calloc(1, sizeof *lives);
    }
    if (lives == NULL ||
        (lives->count >= lives->num_buckets &&
         rehash_lives(lives,
                      lives->num_buckets == 0 ? 64 : 2 * lives->num_buckets) !=
             0 &&
         lives->num_buckets == 0)) {
        return NULL;
    }
    life = calloc(1, sizeof *life);
    if (life != NULL) {
        to = find_bucket(lives, start);
        life->start = start;
        life->born_ns = UNKNOWN;
        life->next = *to;
        *to = life;
        lives->count++;
    }
    return life;
}

static void remove_life(struct iris_heap_names *names, struct life **link)
    IRIS_REQUIRES(names->lock)
{
    struct life *life = *link;

    *link = life->next;
    names->lives->count--;
    free(life);
}

void iris_i_heap_note_alloc(struct iris_heap_names *names, size_t start)
{
    struct life *life;

    pthread_mutex_lock(&names->lock);
    life = add_life(names, start);
    if (life != NULL) {
        life->born_ns = iris_i_now_ns();
    }
    pthread_mutex_unlock(&names->lock);
}

/* The record of the allocation at `start`. */
static struct record read_life(const struct iris_heap_names *names,
                               size_t start, size_t bytes)
    IRIS_REQUIRES(names->lock)
{
    struct record read = {start, bytes, UNKNOWN, UNKNOWN, ""};
    struct life **life = find_life(names, start);

    if (life != NULL) {
        read.born_ns = (*life)->born_ns;
        memcpy(read.name, (*life)->name, sizeof read.name);
    }
    return read;
}

/* ---- Freed allocations ---- */

/* The slot for the next one; NULL: the list has no memory. */
static struct record *next_freed(struct iris_heap_names *names)
    IRIS_REQUIRES(names->lock)
{
    struct iris_heap_freed *freed = names->freed;
    size_t capacity;
    void *more;

    if (freed == NULL) {
        names->freed = freed = calloc(1, sizeof *freed);
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

void iris_i_heap_note_free(struct iris_heap_names *names, size_t start)
{
    struct record *freed;
    struct life **life;
    size_t bytes;

    if (!iris_i_heap_find(names, start, &start, &bytes)) {
        return;
    }
    pthread_mutex_lock(&names->lock);
    freed = next_freed(names);
    if (freed != NULL) {
        *freed = read_life(names, start, bytes);
        freed->died_ns = iris_i_now_ns();
    }
    life = find_life(names, start);
    if (life != NULL) {
        remove_life(names, life);
    }
    pthread_mutex_unlock(&names->lock);
}

void iris_i_heap_names_close(struct iris_heap_names *names) IRIS_UNCHECKED
{
    struct iris_heap_lives *lives = names->lives;

    for (size_t i = 0; lives != NULL && i < lives->num_buckets; i++) {
        while (lives->buckets[i] != NULL) {
            remove_life(names, &lives->buckets[i]);
        }
    }
    if (lives != NULL) {
        free(lives->buckets);
    }
    if (names->freed != NULL) {
        free(names->freed->all);
    }
    free(lives);
    free(names->freed);
    iris_i_alloc_destroy(names->alloc);
}

/* ---- Names ---- */

iris_status_t iris_i_heap_set_name(struct iris_heap_names *names,
                                   const void *ptr, const char *text)
{
    size_t offset = iris_i_heap_offset(names->memory, ptr), start, bytes;
    const struct iris_log *log = names->memory->log;
    struct life **link, *life;

    if (!iris_i_heap_find(names, offset, &start, &bytes)) {
        return iris_i_fail(
            log, IRIS_ERR_INVALID,
            "iris_name of %p, where nothing is allocated on "
            "this rank's heap; pass the address from iris_malloc",
            ptr);
    }
    if (text != NULL && strlen(text) >= IRIS_NAME_BYTES) {
        return iris_i_fail(log, IRIS_ERR_INVALID,
                           "iris_name: name has %zu characters; pass at most "
                           "%d",
                           strlen(text), IRIS_NAME_BYTES - 1);
    }
    pthread_mutex_lock(&names->lock);
    link = find_life(names, start);
    life = link != NULL ? *link : add_life(names, start);
    if (life != NULL) {
        snprintf(life->name, sizeof life->name, "%s", text ? text : "");
    }
    pthread_mutex_unlock(&names->lock);
    return life != NULL ? IRIS_OK
                        : iris_i_fail(log, IRIS_ERR_NO_MEMORY,
                                      "iris_name: no memory for a name");
}

const char *iris_i_heap_describe(const struct iris_heap_names *names,
                                 size_t start, char text[IRIS_NAME_BYTES + 4])
{
    struct iris_heap_names *own = (struct iris_heap_names *)(uintptr_t)names;
    struct life **life;

    pthread_mutex_lock(&own->lock);
    life = find_life(own, start);
    snprintf(text, IRIS_NAME_BYTES + 4,
             life != NULL && (*life)->name[0] != '\0' ? " \"%s\"" : "%.0s",
             life != NULL ? (*life)->name : "");
    pthread_mutex_unlock(&own->lock);
    return text;
}

/* ---- Files ---- */

/* A file whose text is printed in memory first. */
struct text {
    FILE *file; /* NULL: no memory */
    char *text;
    size_t bytes;
};

/* Returns the errno of a failed write; -1: there was no memory for the text. */
static int write_text(struct text *text, const char *path)
{
    int ret = -1;

    if (text->file != NULL && fclose(text->file) == 0) {
        ret = iris_i_file_write(path, text->text, text->bytes);
    }
    free(text->text);
    return ret;
}

static void print_bases(FILE *file, const struct iris_heap_memory *memory)
{
    fprintf(file, "{\n  \"rank\": %d,\n  \"num_ranks\": %d,\n",
            memory->log->rank, memory->log->num_ranks);
    fprintf(file, "  \"heap_bases\": [");
    for (int rank = 0; rank < memory->log->num_ranks; rank++) {
        fprintf(file, "%s\n    \"0x%llx\"", rank == 0 ? "" : ",",
                (unsigned long long)memory->bases[rank]);
    }
    fprintf(file, "\n  ]");
    if (iris_i_heap_size(memory) < iris_i_heap_bytes(memory)) {
        fprintf(file,
                ",\n  \"heap_bytes\": %zu,\n  \"reserved_bytes\": %zu,\n"
                "  \"mapped_bytes\": %zu",
                iris_i_heap_size(memory), iris_i_heap_bytes(memory),
                iris_i_heap_backed(memory));
    }
    if (memory->num_nodes > 1) { /* upstream's file has no such list */
        fprintf(file, ",\n  \"nodes\": [");
        for (int rank = 0; rank < memory->log->num_ranks; rank++) {
            fprintf(file, "%s\n    %d", rank == 0 ? "" : ",",
                    iris_i_heap_node(memory, rank));
        }
        fprintf(file, "\n  ]");
    }
    fprintf(file, "\n}");
}

static iris_status_t fail_bases(const struct iris_log *log, int ret,
                                const char *path)
{
    const char *remedy = ret == ENOSPC || ret == EDQUOT
                             ? "free some space there, or choose another"
                             : "choose another";

    if (ret < 0) {
        return iris_i_fail(log, IRIS_ERR_NO_MEMORY,
                           "no memory for the heap-bases file");
    }
    if (ret == EMFILE || ret == ENFILE) {
        return iris_i_fail_fd(ret, "cannot write the heap-bases file");
    }
    return iris_i_fail_errno(log, IRIS_ERR_SYSTEM, ret,
                             "cannot write %.600s; %s IRIS_HEAP_BASES_PREFIX, "
                             "or set IRIS_HEAP_BASES_FILES=0 to write no files",
                             path, remedy);
}

iris_status_t iris_i_bases_write(const struct iris_heap_memory *memory,
                                 const char *prefix)
{
    struct text text = {.text = NULL};
    char path[PATH_MAX];
    int ret;

    snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json", prefix,
             memory->log->rank);
    text.file = open_memstream(&text.text, &text.bytes);
    if (text.file != NULL) {
        print_bases(text.file, memory);
    }
    ret = write_text(&text, path);
    return ret == 0 ? IRIS_OK : fail_bases(memory->log, ret, path);
}

/* ---- Metadata events of a trace ---- */

struct list {
    struct iris_heap_names *names;
    FILE *file;
    int64_t start_ns; /* time 0 */
};

static void print_time(const struct list *list, const char *name, int64_t ns)
{
    if (ns != UNKNOWN) {
        fprintf(list->file, ",\"%s\":%lld", name,
                (long long)(ns - list->start_ns));
    }
}

static void print_record(const struct list *list, const char *kind,
                         const struct record *life)
{
    fprintf(list->file,
            ",\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"args\":{"
            "\"offset\":%zu,\"payload_size\":%zu",
            kind, list->names->memory->log->rank, life->start, life->bytes);
    if (life->name[0] != '\0') {
        fprintf(list->file, ",\"label\":");
        iris_i_json_string(list->file, life->name);
    }
    print_time(list, "born_ns", life->born_ns);
    print_time(list, "died_ns", life->died_ns);
    fprintf(list->file, "}}");
}

static void print_live(void *arg, size_t start, size_t bytes)
{
    struct list *list = arg;
    struct record life;

    if (!iris_i_heap_is_own(list->names, start)) {
        pthread_mutex_lock(&list->names->lock);
        life = read_life(list->names, start, bytes);
        pthread_mutex_unlock(&list->names->lock);
        print_record(list, "iris_allocation", &life);
    }
}

/* The latest first. */
static void print_freed(const struct list *list)
    IRIS_REQUIRES(list->names->lock)
{
    const struct iris_heap_freed *freed = list->names->freed;
    size_t count = freed == NULL ? 0 : freed->count;

    for (size_t i = 0; i < count && i < freed->capacity; i++) {
        print_record(list, "iris_freed",
                     &freed->all[(count - 1 - i) % freed->capacity]);
    }
}

void iris_i_heap_list(struct iris_heap_names *names, FILE *file,
                      int64_t start_ns)
{
    struct list list = {.names = names, .file = file, .start_ns = start_ns};
    const struct iris_heap_memory *memory = names->memory;

    for (int rank = 0; rank < memory->log->num_ranks; rank++) {
        fprintf(file,
                ",\n{\"name\":\"iris_heap\",\"ph\":\"M\",\"pid\":%d,"
                "\"args\":{\"target_rank\":%d,\"address\":\"0x%llx\","
                "\"payload_size\":%zu,\"offset\":%zu}}",
                memory->log->rank, rank,
                (unsigned long long)memory->bases[rank],
                iris_i_heap_bytes(memory), names->reserved_bytes);
    }
    iris_i_alloc_each(names->alloc, print_live, &list);
    pthread_mutex_lock(&list.names->lock);
    print_freed(&list);
    pthread_mutex_unlock(&list.names->lock);
}
