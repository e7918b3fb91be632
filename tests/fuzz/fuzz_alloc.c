/* SPDX-License-Identifier: MIT
 *
 * The heap allocator under any sequence of calls, against a map of its units
 * and a twin that sees only the calls that count.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include "heap/heap.h"

#define UNIT ((size_t)IRIS_ALIGNMENT)
#define UNITS_MAX 512
#define BLOCKS_MAX 256
/* Up to so many free blocks a search looks at all of them. */
#define LEFT_OUT_MAX 64

struct model {
    struct iris_alloc *alloc;
    struct iris_alloc *twin; /* sees no call that fails or is undone */
    size_t units;
    unsigned short owner[UNITS_MAX]; /* block + 1; 0: free */
    size_t starts[BLOCKS_MAX];       /* in units */
    size_t sizes[BLOCKS_MAX];        /* in units; 0: no block */
    size_t num_live, used;
};

static void fill(struct model *model, size_t block, unsigned short owner)
{
    size_t start = model->starts[block], end = start + model->sizes[block];

    REQUIRE(end <= model->units);
    for (size_t unit = start; unit < end; unit++) {
        REQUIRE((model->owner[unit] == 0) == (owner != 0));
        model->owner[unit] = owner;
    }
}

/* Is there a gap of `need` units at a multiple of `align`, and how many gaps?
 */
static int has_gap(const struct model *model, size_t need, size_t align,
                   size_t *num_gaps_p)
{
    size_t gap = 0, start = 0;
    int found = 0;

    *num_gaps_p = 0;
    for (size_t unit = 0; unit < model->units; unit++) {
        gap = model->owner[unit] == 0 ? gap + 1 : 0;
        *num_gaps_p += gap == 1;
        start = unit + 1 - gap;
        start = (start + align - 1) / align * align;
        found |= gap > 0 && start + need <= unit + 1;
    }
    return found;
}

static size_t free_slot(const struct model *model)
{
    size_t block = 0;

    while (block < BLOCKS_MAX && model->sizes[block] != 0) {
        block++;
    }
    return block;
}

/* A take that must fail fails; one that must not does not. */
static iris_status_t take(struct model *model, size_t bytes, size_t alignment,
                          size_t *offset_p)
{
    size_t align = alignment < UNIT ? 1 : alignment / UNIT, num_gaps, need;
    iris_status_t status =
        iris_i_alloc_take(model->alloc, bytes, alignment, offset_p);

    if (bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        REQUIRE(status == IRIS_ERR_INVALID);
        return status;
    }
    need = bytes / UNIT + (bytes % UNIT != 0);
    if (need <= model->units && has_gap(model, need, align, &num_gaps)) {
        REQUIRE(status == IRIS_OK || num_gaps > LEFT_OUT_MAX);
    } else {
        REQUIRE(status == IRIS_ERR_NO_MEMORY);
    }
    return status;
}

static void try_take(struct model *model, struct input *input, int undo)
{
    size_t block = free_slot(model), offset = SIZE_MAX, twins = SIZE_MAX;
    unsigned how = (unsigned)input_number(input, 1);
    size_t bytes = (how % 4 + 1) * UNIT; /* often alike: blocks of one class */
    size_t alignment = how & 4 ? UNIT : UNIT << how / 8 % 4;

    if (how % 64 >= 60) { /* sizes and alignments of any kind */
        bytes = input_number(input, 8);
        alignment = input_number(input, 8);
    } else if (how % 64 >= 40) {
        bytes = input_number(input, 3) % (UNITS_MAX * UNIT);
    }
    if (block == BLOCKS_MAX ||
        take(model, bytes, alignment, &offset) != IRIS_OK) {
        REQUIRE(offset == SIZE_MAX);
        return;
    }
    REQUIRE(offset % UNIT == 0 && offset % alignment == 0);
    model->starts[block] = offset / UNIT;
    model->sizes[block] = (bytes + UNIT - 1) / UNIT;
    fill(model, block, (unsigned short)(block + 1));
    if (undo) {
        iris_i_alloc_untake(model->alloc, offset);
        fill(model, block, 0);
        model->sizes[block] = 0;
        return;
    }
    REQUIRE(iris_i_alloc_take(model->twin, bytes, alignment, &twins) ==
            IRIS_OK);
    REQUIRE(offset == twins);
    model->num_live++;
    model->used += model->sizes[block];
}

static void give_block(struct model *model, size_t block)
{
    size_t offset = model->starts[block] * UNIT;

    if (model->sizes[block] == 0) {
        return;
    }
    REQUIRE(iris_i_alloc_give(model->alloc, offset) == IRIS_OK);
    REQUIRE(iris_i_alloc_give(model->twin, offset) == IRIS_OK);
    fill(model, block, 0);
    model->num_live--;
    model->used -= model->sizes[block];
    model->sizes[block] = 0;
}

/* An offset that is no block's start is refused; find() names what it is in. */
static void look_at(struct model *model, size_t offset)
{
    size_t unit = offset / UNIT, start = SIZE_MAX, bytes = SIZE_MAX, block;
    unsigned owner = unit < model->units ? model->owner[unit] : 0;
    int is_start = owner != 0 && model->starts[owner - 1] * UNIT == offset;
    iris_status_t status =
        iris_i_alloc_find(model->alloc, offset, &start, &bytes);

    REQUIRE((iris_i_alloc_mark(model->alloc, offset, -1) >= 0) == is_start);
    if (!is_start) {
        REQUIRE(iris_i_alloc_give(model->alloc, offset) == IRIS_ERR_INVALID);
    }
    REQUIRE(status == (owner != 0 ? IRIS_OK : IRIS_ERR_INVALID));
    if (owner != 0) {
        block = owner - 1;
        REQUIRE(start == model->starts[block] * UNIT);
        REQUIRE(bytes == model->sizes[block] * UNIT);
    }
}

static void check_figures(struct model *model)
{
    struct iris_heap_stats stats = {0}, twins = {0};
    size_t num_gaps;

    iris_i_alloc_stats(model->alloc, &stats);
    iris_i_alloc_stats(model->twin, &twins);
    REQUIRE(stats.used_bytes == model->used * UNIT);
    REQUIRE(stats.free_bytes == (model->units - model->used) * UNIT);
    REQUIRE(stats.num_allocs == model->num_live);
    REQUIRE(stats.largest_free_bytes == twins.largest_free_bytes);
    REQUIRE(stats.peak_bytes == twins.peak_bytes);
    if (stats.largest_free_bytes > 0) {
        REQUIRE(has_gap(model, stats.largest_free_bytes / UNIT, 1, &num_gaps));
        REQUIRE(
            num_gaps > LEFT_OUT_MAX ||
            !has_gap(model, stats.largest_free_bytes / UNIT + 1, 1, &num_gaps));
    } else {
        REQUIRE(model->used == model->units);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct model model;
    struct input input = {data, size};
    size_t bytes;

    memset(&model, 0, sizeof model);
    bytes = input_number(&input, 3) % (UNITS_MAX * UNIT + 1);
    model.units = bytes / UNIT;
    REQUIRE(iris_i_alloc_create(bytes, &model.alloc) == IRIS_OK);
    REQUIRE(iris_i_alloc_create(bytes, &model.twin) == IRIS_OK);
    while (input.left > 0) {
        switch (input_number(&input, 1) % 8) {
        case 0:
        case 1:
        case 2:
            give_block(&model, input_number(&input, 1) % BLOCKS_MAX);
            break;
        case 3:
            look_at(&model, input_number(&input, 3));
            break;
        case 4:
            look_at(&model, input_number(&input, 2) * UNIT);
            break;
        case 5:
            try_take(&model, &input, 1);
            break;
        default:
            try_take(&model, &input, 0);
        }
        check_figures(&model);
    }
    iris_i_alloc_destroy(model.alloc);
    iris_i_alloc_destroy(model.twin);
    return 0;
}
