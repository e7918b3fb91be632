/* SPDX-License-Identifier: MIT
 *
 * The heap allocator: two-level segregated fit (Masmano et al., ECRTS 2004)
 * over offsets, its block records in one array beside the heap.
 */
#include "config.h"

#include "heap/internal.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Number of free blocks that a search examines before it takes a class in which
 * every block fits. Bounds the time of take and stats. */
#define SEARCH_MAX 64

#define RECORDS_FIRST 64
#define RECORDS_LIMIT (1u << 30)

/* Lists of a class, and of a bucket. Writes to record 0's links are harmless
 * and save the test for the end of the list. */

static void push_block(struct iris_alloc *alloc, uint32_t *first,
                       uint32_t index)
{
    struct record *records = alloc->records;

    records[index].list_next = *first;
    records[index].list_prev = 0;
    records[*first].list_prev = index;
    *first = index;
}

static void unlink_block(struct iris_alloc *alloc, uint32_t *first,
                         uint32_t index)
{
    struct record *records = alloc->records;
    uint32_t next = records[index].list_next;
    uint32_t prev = records[index].list_prev;

    records[next].list_prev = prev;
    if (prev == 0) {
        *first = next;
    } else {
        records[prev].list_next = next;
    }
}

static void insert_free(struct iris_alloc *alloc, uint32_t index)
{
    unsigned class = class_of(block_units(alloc, index));
    unsigned row = class / ROW_CLASSES;

    alloc->records[index].is_free = 1;
    push_block(alloc, &alloc->class_first[class], index);
    alloc->row_maps[row] |= (uint64_t)1 << class % ROW_CLASSES;
    alloc->row_map |= 1u << row;
}

static void remove_free(struct iris_alloc *alloc, uint32_t index)
{
    unsigned class = class_of(block_units(alloc, index));
    unsigned row = class / ROW_CLASSES;

    alloc->records[index].is_free = 0;
    unlink_block(alloc, &alloc->class_first[class], index);
    if (alloc->class_first[class] == 0) {
        alloc->row_maps[row] &= ~((uint64_t)1 << class % ROW_CLASSES);
    }
    if (alloc->row_maps[row] == 0) {
        alloc->row_map &= ~(1u << row);
    }
}

/* The bucket of a live block that starts at `start`. The mixer is Wellons'
 * lowbias32: starts come in regular strides, which must not share buckets. */
static uint32_t *get_bucket(const struct iris_alloc *alloc, uint32_t start)
{
    uint32_t hash = start;

    hash = (hash ^ hash >> 16) * 0x7feb352du;
    hash = (hash ^ hash >> 15) * 0x846ca68bu;
    hash ^= hash >> 16;
    return &alloc->records[(uint64_t)hash * alloc->capacity >> 32].bucket_first;
}

/* The live block that starts at byte `offset`, or 0. */
static uint32_t find_live(const struct iris_alloc *alloc, size_t offset)
{
    size_t start = offset >> alloc->unit_shift;
    uint32_t index;

    if (start >= alloc->units || start << alloc->unit_shift != offset) {
        return 0;
    }
    index = *get_bucket(alloc, (uint32_t)start);
    while (index != 0 && alloc->records[index].start != start) {
        index = alloc->records[index].list_next;
    }
    return index;
}

/* Makes room for `count` more records. Without memory, nothing changes. Each
 * record has a bucket, so the live blocks move to new buckets. */
static iris_status_t reserve_records(struct iris_alloc *alloc, uint32_t count)
{
    uint32_t capacity = alloc->capacity;
    struct record *records;

    if (alloc->in_use + count <= capacity) {
        return IRIS_OK;
    }
    capacity += capacity / 4;
    if (capacity > RECORDS_LIMIT) {
        return IRIS_ERR_NO_MEMORY;
    }
    records = realloc(alloc->records, capacity * sizeof(*records));
    if (!records) {
        return IRIS_ERR_NO_MEMORY;
    }
    alloc->records = records;
    alloc->capacity = capacity;
    for (uint32_t index = 0; index < capacity; index++) {
        records[index].bucket_first = 0;
    }
    for (uint32_t index = 1; index < alloc->touched; index++) {
        if (!records[index].is_free) {
            push_block(alloc, get_bucket(alloc, records[index].start), index);
        }
    }
    return IRIS_OK;
}

/* Cuts block `index` at `start`. The new block is the part behind `start`. The
 * caller has reserved the record and puts both blocks into their lists. */
static uint32_t split_block(struct iris_alloc *alloc, uint32_t index,
                            uint32_t start)
{
    struct record *records = alloc->records;
    uint32_t next = records[index].next;
    uint32_t behind = alloc->spare;

    if (behind != 0) {
        alloc->spare = records[behind].list_next;
    } else {
        behind = alloc->touched++;
    }
    alloc->in_use++;
    records[behind].start = start;
    records[behind].is_free = 0;
    records[behind].prev = index;
    records[behind].next = next;
    records[index].next = behind;
    records[next].prev = behind;
    return behind;
}

/* Joins block `index` with the one behind it; neither is in a list. */
static void join_block(struct iris_alloc *alloc, uint32_t index)
{
    struct record *records = alloc->records;
    uint32_t behind = records[index].next;
    uint32_t next = records[behind].next;

    records[index].next = next;
    records[next].prev = index;
    records[behind].is_free = 1;
    records[behind].list_next = alloc->spare;
    alloc->spare = behind;
    alloc->in_use--;
}

/* Takes [start, start + need) out of free block `index`, as a block in no list.
 * The rests in front and behind become free blocks. */
static uint32_t carve_block(struct iris_alloc *alloc, uint32_t index,
                            uint32_t start, uint32_t need)
{
    uint32_t front = index;

    remove_free(alloc, index);
    if (start > alloc->records[front].start) {
        index = split_block(alloc, front, start);
        insert_free(alloc, front);
    }
    if (need < block_units(alloc, index)) {
        insert_free(alloc, split_block(alloc, index, start + need));
    }
    return index;
}

/* Start of a place in block `index`: a multiple of `align` with `need` units
 * behind it; UINT64_MAX if it has no such place. All in units. */
static uint64_t place_in(const struct iris_alloc *alloc, uint32_t index,
                         uint32_t need, uint64_t align)
{
    const struct record *record = &alloc->records[index];
    uint64_t start = (record->start + align - 1) & ~(align - 1);

    if (start + need > alloc->records[record->next].start) {
        return UINT64_MAX;
    }
    return start;
}

/* A free block with room for `need` units at a multiple of `align`, or 0. The
 * smallest classes come first, for a good fit; their blocks may turn out too
 * small. After SEARCH_MAX of them, it takes the first block of a class in which
 * every block is large enough. To stay constant in time, this may miss a fit
 * behind SEARCH_MAX others. largest_fit() follows the same rule. */
static uint32_t find_fit(const struct iris_alloc *alloc, uint32_t need,
                         uint64_t align)
{
    uint64_t enough = need + align - 1;
    unsigned class = next_class(alloc, class_of(need));
    uint32_t index = 0;

    for (unsigned looks = 0; class < CLASSES && looks < SEARCH_MAX; looks++) {
        index = index ? index : alloc->class_first[class];
        if (place_in(alloc, index, need, align) != UINT64_MAX) {
            return index;
        }
        index = alloc->records[index].list_next;
        if (index == 0) {
            class = next_class(alloc, class + 1);
        }
    }
    if (class == CLASSES || enough > alloc->units) {
        return 0;
    }
    class = next_class(alloc, class_of((uint32_t)enough - 1) + 1);
    return class < CLASSES ? alloc->class_first[class] : 0;
}

/* Units of the largest block that find_fit() finds for the least alignment. It
 * examines the same blocks of the top class. */
static uint32_t largest_fit(const struct iris_alloc *alloc)
{
    uint32_t largest = 0, index;
    unsigned row;

    if (alloc->row_map == 0) {
        return 0;
    }
    row = top_bit(alloc->row_map);
    index =
        alloc->class_first[row * ROW_CLASSES + top_bit(alloc->row_maps[row])];
    for (unsigned looks = 0; index != 0 && looks < SEARCH_MAX; looks++) {
        uint32_t units = block_units(alloc, index);

        largest = units > largest ? units : largest;
        index = alloc->records[index].list_next;
    }
    return largest;
}

iris_status_t iris_i_alloc_create(size_t bytes, struct iris_alloc **alloc_p)
{
    struct iris_alloc *alloc = calloc(1, sizeof(*alloc));

    if (!alloc) {
        return IRIS_ERR_NO_MEMORY;
    }
    alloc->records = calloc(RECORDS_FIRST, sizeof(*alloc->records));
    if (!alloc->records) {
        free(alloc);
        return IRIS_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&alloc->lock, NULL);
    /* Units are counted in 32 bits: in heaps beyond 1 TiB, units become
     * larger. */
    alloc->unit_shift = top_bit(IRIS_ALIGNMENT);
    while (bytes >> alloc->unit_shift > UINT32_MAX) {
        alloc->unit_shift++;
    }
    alloc->units = (uint32_t)(bytes >> alloc->unit_shift);
    alloc->capacity = RECORDS_FIRST;
    alloc->touched = 1;
    alloc->in_use = 1;
    alloc->records[0].start = alloc->units;
    if (alloc->units > 0) {
        insert_free(alloc, split_block(alloc, 0, 0));
    }
    *alloc_p = alloc;
    return IRIS_OK;
}

void iris_i_alloc_destroy(struct iris_alloc *alloc)
{
    if (alloc) {
        pthread_mutex_destroy(&alloc->lock);
        free(alloc->records);
        free(alloc);
    }
}

iris_status_t iris_i_alloc_take(struct iris_alloc *alloc, size_t bytes,
                                size_t alignment, size_t *offset_p)
{
    uint32_t index, need, start;
    uint64_t align;

    if (bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return IRIS_ERR_INVALID;
    }
    if (bytes > to_bytes(alloc, alloc->units - alloc->used_units)) {
        return IRIS_ERR_NO_MEMORY;
    }
    need = (uint32_t)((bytes - 1) >> alloc->unit_shift) + 1;
    align = alignment >> alloc->unit_shift;
    align = align ? align : 1;
    pthread_mutex_lock(&alloc->lock);
    index = find_fit(alloc, need, align);
    /* At most a front and a rear remainder need records: reserve them before
     * the first change. */
    if (index == 0 || reserve_records(alloc, 2) != IRIS_OK) {
        pthread_mutex_unlock(&alloc->lock);
        return IRIS_ERR_NO_MEMORY;
    }
    start = (uint32_t)place_in(alloc, index, need, align);
    alloc->undo_before = alloc->records[index].list_prev;
    alloc->undo_peak_units = alloc->peak_units;
    index = carve_block(alloc, index, start, need);
    push_block(alloc, get_bucket(alloc, start), index);
    alloc->records[index].mark = 0;
    alloc->num_live++;
    alloc->used_units += need;
    if (alloc->used_units > alloc->peak_units) {
        alloc->peak_units = alloc->used_units;
    }
    pthread_mutex_unlock(&alloc->lock);
    *offset_p = to_bytes(alloc, start);
    return IRIS_OK;
}

/* Frees live block `index`, joined with free neighbours. It becomes the first
 * of its class. */
static uint32_t release_block(struct iris_alloc *alloc, uint32_t index)
{
    uint32_t prev = alloc->records[index].prev;
    uint32_t next = alloc->records[index].next;

    unlink_block(alloc, get_bucket(alloc, alloc->records[index].start), index);
    alloc->num_live--;
    alloc->used_units -= block_units(alloc, index);
    if (alloc->records[next].is_free) {
        remove_free(alloc, next);
        join_block(alloc, index);
    }
    if (alloc->records[prev].is_free) {
        remove_free(alloc, prev);
        join_block(alloc, prev);
        index = prev;
    }
    insert_free(alloc, index);
    return index;
}

iris_status_t iris_i_alloc_give_joined(struct iris_alloc *alloc, size_t offset,
                                       size_t *start_p, size_t *bytes_p)
{
    uint32_t index = find_live(alloc, offset);

    if (index == 0) {
        return IRIS_ERR_INVALID;
    }
    pthread_mutex_lock(&alloc->lock);
    index = release_block(alloc, index);
    *start_p = to_bytes(alloc, alloc->records[index].start);
    *bytes_p = to_bytes(alloc, block_units(alloc, index));
    pthread_mutex_unlock(&alloc->lock);
    return IRIS_OK;
}

void iris_i_alloc_untake(struct iris_alloc *alloc, size_t offset)
{
    struct record *records = alloc->records;
    uint32_t before = alloc->undo_before, index, *first;

    pthread_mutex_lock(&alloc->lock);
    index = release_block(alloc, find_live(alloc, offset));
    alloc->peak_units = alloc->undo_peak_units;
    if (before != 0) {
        first = &alloc->class_first[class_of(block_units(alloc, index))];
        unlink_block(alloc, first, index);
        push_block(alloc, &records[before].list_next, index);
        records[index].list_prev = before;
    }
    pthread_mutex_unlock(&alloc->lock);
}

int iris_i_alloc_mark(struct iris_alloc *alloc, size_t offset, int mark)
{
    uint32_t index;

    pthread_mutex_lock(&alloc->lock);
    index = find_live(alloc, offset);
    if (index != 0 && mark >= 0) {
        alloc->records[index].mark = (unsigned)mark & 3;
    }
    mark = index == 0 ? -1 : (int)alloc->records[index].mark;
    pthread_mutex_unlock(&alloc->lock);
    return mark;
}

size_t iris_i_alloc_stats(struct iris_alloc *alloc,
                          struct iris_heap_stats *stats_p)
{
    const struct record *last;
    uint32_t end;

    pthread_mutex_lock(&alloc->lock);
    last = &alloc->records[alloc->records[0].prev];
    end = last->is_free ? last->start : alloc->units;
    stats_p->heap_bytes = to_bytes(alloc, alloc->units);
    stats_p->used_bytes = to_bytes(alloc, alloc->used_units);
    stats_p->free_bytes = stats_p->heap_bytes - stats_p->used_bytes;
    stats_p->largest_free_bytes = to_bytes(alloc, largest_fit(alloc));
    stats_p->peak_bytes = to_bytes(alloc, alloc->peak_units);
    stats_p->metadata_bytes =
        sizeof(*alloc) + alloc->capacity * sizeof(*alloc->records);
    stats_p->num_allocs = alloc->num_live;
    pthread_mutex_unlock(&alloc->lock);
    return to_bytes(alloc, end);
}

/* ---- For messages ---- */

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
    index = find_live(alloc, offset);
    if (index == 0) { /* not the start of an allocation, as in most calls */
        index = records[0].next;
        while (records[records[index].next].start <= unit) {
            index = records[index].next;
        }
    }
    is_live = !records[index].is_free;
    if (is_live) {
        *start_p = to_bytes(alloc, records[index].start);
        *bytes_p = to_bytes(alloc, block_units(alloc, index));
    }
    pthread_mutex_unlock(&alloc->lock);
    return is_live ? IRIS_OK : IRIS_ERR_INVALID;
}

/* Units between a block and `unit`; 0: the block contains it. */
static uint32_t measure_gap(const struct iris_alloc *alloc, uint32_t index,
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
    nearest = find_live(alloc, offset);
    for (uint32_t i = nearest == 0 ? alloc->records[0].next : 0; i != 0;
         i = alloc->records[i].next) {
        if (!alloc->records[i].is_free &&
            (nearest == 0 ||
             measure_gap(alloc, i, unit) < measure_gap(alloc, nearest, unit))) {
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
