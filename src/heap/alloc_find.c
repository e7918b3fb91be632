/* SPDX-License-Identifier: MIT
 *
 * The allocation at or near an offset, for messages.
 */
#include "config.h"

#include "heap/alloc.h"

#include "heap/alloc_record.h"

iris_status_t iris_i_alloc_find(struct iris_alloc *alloc, size_t offset,
                                size_t *start_p, size_t *bytes_p)
{
    size_t unit = offset >> alloc->unit_shift;
    const struct record *records;
    uint32_t index;
    int is_live;

    if (unit >= alloc->units) {
        return IRIS_ERR_INVALID;
    }
    pthread_mutex_lock(&alloc->lock);
    records = alloc->records;
    index = records[0].next;
    while (records[records[index].next].start <= unit) {
        index = records[index].next;
    }
    is_live = !records[index].is_free;
    if (is_live) {
        *start_p = to_bytes(alloc, records[index].start);
        *bytes_p = to_bytes(alloc, block_units(alloc, index));
    }
    pthread_mutex_unlock(&alloc->lock);
    return is_live ? IRIS_OK : IRIS_ERR_INVALID;
}

/* Units between a block and `unit`; 0: it is in the block. */
static uint32_t distance(const struct iris_alloc *alloc, uint32_t index,
                         uint32_t unit)
{
    uint32_t start = alloc->records[index].start;
    uint32_t end = start + block_units(alloc, index);

    return unit < start ? start - unit : unit >= end ? unit - end + 1 : 0;
}

int iris_i_alloc_nearest(struct iris_alloc *alloc, size_t offset,
                         size_t *start_p, size_t *bytes_p)
{
    uint32_t unit = (uint32_t)(offset >> alloc->unit_shift), nearest = 0;

    if (pthread_mutex_trylock(&alloc->lock) != 0) {
        return 0;
    }
    for (uint32_t i = alloc->records[0].next; i != 0;
         i = alloc->records[i].next) {
        if (!alloc->records[i].is_free &&
            (nearest == 0 ||
             distance(alloc, i, unit) < distance(alloc, nearest, unit))) {
            nearest = i;
        }
    }
    if (nearest != 0) {
        *start_p = to_bytes(alloc, alloc->records[nearest].start);
        *bytes_p = to_bytes(alloc, block_units(alloc, nearest));
    }
    pthread_mutex_unlock(&alloc->lock);
    return nearest != 0;
}

void iris_i_alloc_each(struct iris_alloc *alloc,
                       void (*call)(void *arg, size_t start, size_t bytes),
                       void *arg)
{
    pthread_mutex_lock(&alloc->lock);
    for (uint32_t i = alloc->records[0].next; i != 0;
         i = alloc->records[i].next) {
        if (!alloc->records[i].is_free) {
            call(arg, to_bytes(alloc, alloc->records[i].start),
                 to_bytes(alloc, block_units(alloc, i)));
        }
    }
    pthread_mutex_unlock(&alloc->lock);
}
