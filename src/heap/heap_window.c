/* SPDX-License-Identifier: MIT
 *
 * External memory in the window behind the heap.
 */
#include "config.h"

#include "heap/heap.h"

#include <stdlib.h>

iris_status_t iris_i_window_open(struct iris_heap_window *window,
                                 struct iris_heap_memory *memory)
{
    window->memory = memory;
    pthread_mutex_init(&window->lock, NULL);
    return memory->region.window_bytes == 0
               ? IRIS_OK
               : iris_i_alloc_create(memory->region.window_bytes,
                                     &window->alloc);
}

void iris_i_window_close(struct iris_heap_window *window)
{
    while (window->ranges != NULL) {
        struct iris_external_range *one = window->ranges;

        window->ranges = one->next;
        free(one);
    }
    iris_i_alloc_destroy(window->alloc);
}

static void *at(const struct iris_heap_window *window, size_t offset)
{
    return iris_i_heap_base(window->memory) + window->memory->region.window +
           offset;
}

void *iris_i_window_add(struct iris_heap_window *window,
                        struct iris_external_range *record)
{
    record->name = iris_i_heap_bytes(window->memory) + window->num_shared++;
    pthread_mutex_lock(&window->lock);
    record->next = window->ranges;
    window->ranges = record;
    pthread_mutex_unlock(&window->lock);
    return at(window, record->offset);
}

size_t iris_i_window_bytes_from(const struct iris_heap_window *window,
                                size_t offset)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&window->lock;
    const struct iris_external_range *one;
    size_t bytes = 0;

    pthread_mutex_lock(lock);
    for (one = window->ranges; one != NULL; one = one->next) {
        size_t into = offset - one->offset;

        if (into < one->bytes && one->bytes - into > bytes) {
            bytes = one->bytes - into;
        }
    }
    pthread_mutex_unlock(lock);
    return bytes;
}

/* The lock is held, or no other thread changes the list. */
static struct iris_external_range *
by_name(const struct iris_heap_window *window, size_t name)
{
    struct iris_external_range *one = window->ranges;

    while (one != NULL && one->name != name) {
        one = one->next;
    }
    return one;
}

/* The newest is the first in the list. */
int iris_i_window_find(struct iris_heap_window *window, const void *ptr,
                       int newest, size_t *name_p)
{
    size_t offset =
        iris_i_heap_offset(window->memory, ptr) - window->memory->region.window;
    const struct iris_external_range *one;
    int mark = -1;

    pthread_mutex_lock(&window->lock);
    for (one = window->ranges; one != NULL && (mark != 0 || !newest);
         one = one->next) {
        if (one->offset == offset && (one->mark == 0 || mark != 0)) {
            mark = one->mark;
            *name_p = one->name;
        }
    }
    pthread_mutex_unlock(&window->lock);
    return mark;
}

int iris_i_window_mark(struct iris_heap_window *window, size_t name, int mark)
{
    struct iris_external_range *one;
    int is = -1;

    pthread_mutex_lock(&window->lock);
    one = by_name(window, name);
    if (one != NULL) {
        one->mark = mark < 0 ? one->mark : mark;
        is = one->mark;
    }
    pthread_mutex_unlock(&window->lock);
    return is;
}

void *iris_i_window_address(const struct iris_heap_window *window, size_t name)
{
    return at(window, by_name(window, name)->offset);
}

void iris_i_window_release(struct iris_heap_window *window, size_t name)
{
    struct iris_external_range *record = by_name(window, name);
    struct iris_external_range **link = &window->ranges;
    const struct iris_external_range *rest;

    pthread_mutex_lock(&window->lock);
    while (*link != record) {
        link = &(*link)->next;
    }
    *link = record->next;
    pthread_mutex_unlock(&window->lock);
    for (rest = window->ranges; rest != NULL && rest->start != record->start;
         rest = rest->next) {
    }
    if (rest == NULL) {
        iris_i_heap_unmap(window->memory,
                          window->memory->region.window + record->start);
        iris_i_alloc_give(window->alloc, record->start);
    }
    free(record);
}
