/* SPDX-License-Identifier: MIT
 *
 * The table of groups, and the loop over the selected operations and points.
 */
#include "config.h"

#include "bench.h"

#include <string.h>

const struct bench_group *const bench_groups[] = {
    &bench_lanes,         &bench_bulk,     &bench_depth,
    &bench_kernels,       &bench_atomics,  &bench_collectives,
    &bench_messages,      &bench_nodes,    &bench_fused,
    &bench_tile_products, &bench_wg_tiles, &bench_sketch,
    &bench_sync,          &bench_launch,   &bench_stream,
    &bench_heap,          &bench_fill,     &bench_random,
    &bench_plan,          &bench_init,     NULL};

const char *const bench_type_names[] = {"u32", "u64", "f32", NULL};
const char *const bench_pairs_names[] = {"ring", "all", "one", NULL};
const char *const bench_calls_names[] = {"graph", "eager", "waited", NULL};
/* clang-format off */
const char *const bench_dtype_names[] = {
#define NAME(NAME, value, name, bytes) [value] = name,
    IRIS_DTYPE_ROWS(NAME)
#undef NAME
    NULL};
const char *const bench_variant_names[] = {
#define NAME(NAME, value, name) [value] = name,
    IRIS_CCL_VARIANT_ROWS(NAME)
#undef NAME
    NULL};
/* clang-format on */

/* Numbers of workgroups to measure, powers of two. */
static const char *const grid_names[] = {"1 wg",  "2 wg",   "4 wg",
                                         "8 wg",  "16 wg",  "32 wg",
                                         "64 wg", "128 wg", "256 wg"};

/* Whether one item of the list selects the operation. */
static bool stands_for(const char *item, size_t length,
                       const struct bench_group *group, const char *name)
{
    const char *const names[] = {"all", group->name, name};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length &&
            strncmp(names[i], item, length) == 0) {
            return true;
        }
    }
    return false;
}

bool bench_selected(const char *ops, const struct bench_group *group,
                    const char *name)
{
    for (;;) {
        size_t length = strcspn(ops, ",");

        if (stands_for(ops, length, group, name)) {
            return true;
        }
        if (ops[length] == '\0') {
            return false;
        }
        ops += length + 1;
    }
}

bool bench_is_known(const char *item, size_t length)
{
    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        for (size_t op = 0; bench_groups[g]->ops[op] != NULL; op++) {
            if (stands_for(item, length, bench_groups[g],
                           bench_groups[g]->ops[op])) {
                return true;
            }
        }
    }
    return false;
}

/* Returns the i-th set bit of a mask. Subtracts from *i the set bits that it
 * passes. */
static int nth_bit(unsigned mask, size_t *i)
{
    for (int bit = 0; bit < 32; bit++) {
        if ((mask >> bit & 1) != 0 && (*i)-- == 0) {
            return bit;
        }
    }
    return -1;
}

static unsigned count_bits(unsigned mask)
{
    size_t i = 32;

    (void)nth_bit(mask, &i);
    return (unsigned)(32 - i);
}

/* Sets the i-th point of a collective. The ways to call vary fastest, then
 * variants, element types and sizes. */
static bool call_point(const struct bench *b, size_t op, size_t i,
                       struct bench_row *row_p)
{
    const struct bench_options *options = &b->options;
    unsigned calls = options->calls;
    unsigned variants = 0;
    size_t sizes, dtype;

    for (int v = 0; v < 32; v++) {
        bool is_asked = (options->variants >> v & 1) != 0;

        if (is_asked && bench_ccl_has((enum bench_ccl_op)op,
                                      (iris_ccl_variant_t)v, false)) {
            variants |= 1u << v;
        }
    }
    if (!options->graph && (calls & BENCH_GRAPH) != 0) {
        calls = (calls & ~(unsigned)BENCH_GRAPH) | BENCH_EAGER;
    }
    if (variants == 0) {
        return false;
    }
    sizes = i / count_bits(calls) / count_bits(variants);
    dtype = sizes % count_bits(options->dtypes);
    sizes /= count_bits(options->dtypes);
    row_p->bytes = options->min_bytes << ((size_t)options->size_shift * sizes);
    row_p->dtype = (iris_dtype_t)nth_bit(options->dtypes, &dtype);
    sizes = i % count_bits(calls);
    i = i / count_bits(calls) % count_bits(variants);
    row_p->calls = bench_calls_names[nth_bit(calls, &sizes)];
    row_p->how = (iris_ccl_variant_t)nth_bit(variants, &i);
    row_p->variant = iris_ccl_variant_name(row_p->how);
    return row_p->bytes <= options->max_bytes;
}

/* Element types that products support. */
#define PRODUCT_DTYPES \
    (1u << IRIS_DTYPE_F32 | 1u << IRIS_DTYPE_F16 | 1u << IRIS_DTYPE_BF16)

static bool shape_point(const struct bench_options *options, size_t i,
                        struct bench_row *row_p)
{
    unsigned dtypes = options->dtypes & PRODUCT_DTYPES;
    size_t at = i % options->num_shapes, dtype = i / options->num_shapes;

    if (dtype >= count_bits(dtypes)) {
        return false;
    }
    row_p->shape = &options->shapes[at];
    row_p->variant = row_p->shape->text;
    row_p->dtype = (iris_dtype_t)nth_bit(dtypes, &dtype);
    return true;
}

/* Sets the i-th point of a group's operation (size, type or grid). Returns
 * false if there are fewer points. */
static bool set_point(const struct bench *b, const struct bench_group *group,
                      size_t op, size_t i, struct bench_row *row_p)
{
    const struct bench_options *options = &b->options;
    size_t bytes = options->min_bytes;
    size_t type = 0;

    switch (group->axis) {
    case BENCH_BY_SIZE:
        bytes = bytes < group->min_bytes ? group->min_bytes : bytes;
        row_p->bytes = bytes << ((size_t)options->size_shift * i);
        return row_p->bytes <= options->max_bytes;
    case BENCH_BY_TYPE:
        for (; type < BENCH_NUM_TYPES; type++) {
            if (options->types[type] && i-- == 0) {
                row_p->variant = bench_type_names[type];
                return true;
            }
        }
        return false;
    case BENCH_BY_GRID:
        if (i >= sizeof grid_names / sizeof grid_names[0] ||
            (i > 0 && 1 << i > iris_num_cus(b->iris))) {
            return false;
        }
        row_p->bytes = options->max_bytes;
        row_p->grid = 1u << i;
        row_p->variant = grid_names[i];
        return true;
    case BENCH_BY_SHAPE:
        return shape_point(options, i, row_p);
    case BENCH_BY_CALL:
        return call_point(b, op, i, row_p);
    default:
        return i == 0;
    }
}

static size_t count_points(const struct bench *b)
{
    struct bench_row row;
    size_t points = 0;

    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        const struct bench_group *group = bench_groups[g];

        for (size_t op = 0; group->ops[op] != NULL; op++) {
            size_t i = 0;

            while (bench_selected(b->options.ops, group, group->ops[op]) &&
                   set_point(b, group, op, i, &row)) {
                i++;
            }
            points += i;
        }
    }
    return points;
}

/* Rank 0 alone adds to the shared count, because every rank's row has the sum
 * over all ranks and the ranks may share the count. */
static void count_wrong_rows(struct bench *b, const struct bench_row *row)
{
    if (b->rank == 0) {
        b->shared->wrong += row->wrong;
    }
}

static iris_status_t run_points(struct bench *b,
                                const struct bench_group *group, size_t op,
                                bench_row_fn row_fn)
{
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; status == IRIS_OK; i++) {
        struct bench_row row = {.group = group->name,
                                .op = group->ops[op],
                                .variant = "",
                                .rate_unit = "",
                                .pairs = b->options.pairs};

        if (!set_point(b, group, op, i, &row)) {
            break;
        }
        bench_progress(b, &row);
        b->no_graph = false;
        b->graph_ops = 0;
        status = group->run(b, op, &row);
        bench_graphs_drop(b);
        b->points_done++;
        if (status == IRIS_OK && row.median_us > 0) {
            count_wrong_rows(b, &row);
            row_fn(b, &row);
        }
    }
    return status;
}

iris_status_t bench_run_op(struct bench *b, const struct bench_group *group,
                           size_t op, bench_row_fn row_fn)
{
    iris_status_t status = IRIS_OK;

    b->state = NULL;
    if (group->open != NULL) {
        status = group->open(b);
    }
    if (status == IRIS_OK) {
        status = run_points(b, group, op, row_fn);
    }
    /* The calls of close() are collective, and peers of a rank that failed are
     * elsewhere: they would hide its message. */
    if (status == IRIS_OK && group->close != NULL) {
        group->close(b);
    }
    b->state = NULL;
    return status;
}

iris_status_t bench_run(struct bench *b)
{
    iris_status_t status = b->options.peer ? bench_peer_open(b) : IRIS_OK;

    b->points = count_points(b);
    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        const struct bench_group *group = bench_groups[g];

        for (size_t op = 0; group->ops[op] != NULL && status == IRIS_OK; op++) {
            if (bench_selected(b->options.ops, group, group->ops[op])) {
                status = bench_run_op(b, group, op, bench_report_row);
            }
        }
    }
    bench_progress(b, NULL);
    bench_peer_close(b);
    return status;
}
