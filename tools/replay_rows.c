/* SPDX-License-Identifier: MIT
 *
 * Selects the operations that matter: fences, and operations on memory that
 * several workgroups use and at least one of them writes. If a read saw an old
 * value or there is a race, only operations on that memory and on memory that
 * orders accesses matter.
 */
#include "config.h"

#include "replay_rows.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 40
#define MOST_OPS 20000 /* limit; earlier operations are left out */

static bool overlaps(const struct replay_op *a, const struct replay_op *b)
{
    return a->target >= 0 && a->target == b->target &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool is_same_lane(const struct replay_op *a, const struct replay_op *b)
{
    return a->rank == b->rank && a->workgroup == b->workgroup;
}

/* Whether another workgroup also uses the memory, and one of the two writes it. */
static bool is_shared(const struct replay_schedule *schedule, size_t first,
                      const struct replay_op *op)
{
    for (size_t i = first; i < schedule->num_ops; i++) {
        const struct replay_op *other = &schedule->ops[i];

        if (!is_same_lane(op, other) && overlaps(op, other) &&
            (op->writes || other->writes)) {
            return true;
        }
    }
    return false;
}

/* ---- Races ---- */

/* Finds the byte that the report of a race names. */
static bool find_race(const char *output, struct replay_op *place)
{
    static const char mark[] = "data race on ";
    const char *at = strstr(output, mark);
    unsigned long long byte = 0, start;
    const char *heap;

    if (at == NULL) {
        return false;
    }
    at += sizeof mark - 1;
    (void)sscanf(at, "byte %llu", &byte);
    heap = strstr(at, "heap offset ");
    if (heap == NULL || sscanf(heap, "heap offset %llu on rank %d", &start,
                               &place->target) != 2) {
        return false;
    }
    place->offset = start + byte;
    place->bytes = 1;
    return true;
}

/* ---- Columns ---- */

static int compare_columns(const void *left, const void *right)
{
    const struct replay_column *a = left, *b = right;

    return a->rank != b->rank
               ? (a->rank > b->rank) - (a->rank < b->rank)
               : (a->workgroup > b->workgroup) - (a->workgroup < b->workgroup);
}

static void add_column(struct replay_rows *rows, const struct replay_op *op)
{
    const struct replay_column column = {op->rank, op->workgroup};

    for (size_t i = 0; i < rows->num_columns; i++) {
        if (compare_columns(&rows->columns[i], &column) == 0) {
            return;
        }
    }
    rows->columns =
        replay_grow(rows->columns, rows->num_columns, sizeof *rows->columns);
    rows->columns[rows->num_columns++] = column;
}

static void set_columns(struct replay_rows *rows)
{
    rows->num_columns = 0;
    for (size_t i = 0; i < rows->num_rows; i++) {
        rows->rows[i].column = 0;
        add_column(rows, rows->rows[i].op);
    }
    qsort(rows->columns, rows->num_columns, sizeof *rows->columns,
          compare_columns);
    for (size_t i = 0; i < rows->num_rows; i++) {
        const struct replay_op *op = rows->rows[i].op;
        const struct replay_column column = {op->rank, op->workgroup};

        while (compare_columns(&rows->columns[rows->rows[i].column], &column)) {
            rows->rows[i].column++;
        }
    }
}

/* ---- The writes that reads saw ---- */

/* A read at row `at` sees the write at row `from`. So its column has now also
 * seen the earlier writes that it missed. */
static void see(struct replay_rows *rows, size_t at, size_t from)
{
    for (size_t i = 0; i <= from && i < at; i++) {
        struct replay_row *row = &rows->rows[i];

        if (row->late != REPLAY_NEVER && row->seen == REPLAY_NEVER &&
            rows->rows[row->late].column == rows->rows[at].column &&
            overlaps(row->op, rows->rows[at].op)) {
            row->seen = at;
        }
    }
}

static void trace_read(struct replay_rows *rows, size_t at)
{
    struct replay_row *row = &rows->rows[at];
    unsigned behind = row->op->behind;

    for (size_t i = at; i-- > 0;) {
        struct replay_row *write = &rows->rows[i];

        if (!write->op->writes || !overlaps(write->op, row->op)) {
            continue;
        }
        if (behind == 0) {
            row->from = write->column == row->column ? REPLAY_NEVER : i;
            see(rows, at, i);
            return;
        }
        behind--;
        row->missed = i;
        if (write->late == REPLAY_NEVER) {
            write->late = at;
        }
    }
}

/* ---- Rows ---- */

/* Whether the row before in this column is an equal poll. If it is, counts the
 * operation there. */
static bool is_poll(const struct replay_rows *rows, const struct replay_op *op)
{
    for (size_t i = rows->num_rows; i-- > 0;) {
        const struct replay_op *before = rows->rows[i].op;

        if (is_same_lane(before, op)) {
            if (op->writes || before->code != op->code ||
                !replay_is_same(before, op) || before->behind != op->behind) {
                return false;
            }
            rows->rows[i].count++;
            return true;
        }
    }
    return false;
}

static void collect(struct replay_rows *rows,
                    const struct replay_schedule *schedule,
                    const struct replay_op *race)
{
    size_t first =
        schedule->num_ops > MOST_OPS ? schedule->num_ops - MOST_OPS : 0;

    for (size_t i = first; i < schedule->num_ops; i++) {
        const struct replay_op *op = &schedule->ops[i];

        if ((op->target >= 0 && !is_shared(schedule, first, op)) ||
            is_poll(rows, op)) {
            continue;
        }
        rows->rows =
            replay_grow(rows->rows, rows->num_rows, sizeof *rows->rows);
        rows->rows[rows->num_rows++] =
            (struct replay_row){.op = op,
                                .count = 1,
                                .from = REPLAY_NEVER,
                                .missed = REPLAY_NEVER,
                                .late = REPLAY_NEVER,
                                .seen = REPLAY_NEVER,
                                .is_race = race != NULL && overlaps(op, race)};
    }
}

static bool is_marked(const struct replay_row *row)
{
    return row->late != REPLAY_NEVER || row->missed != REPLAY_NEVER ||
           row->is_race;
}

static bool is_ordered(const struct replay_row *row)
{
    return strstr(row->op->deed, "acquire") != NULL ||
           strstr(row->op->deed, "release") != NULL;
}

/* Whether the row matters. It does if it accesses memory of a marked row or of
 * an ordered access, or if it is a fence in the column of a marked row. */
static bool matters(const struct replay_rows *rows,
                    const struct replay_row *row)
{
    for (size_t i = 0; i < rows->num_rows; i++) {
        const struct replay_row *other = &rows->rows[i];

        if (row->op->target < 0
                ? is_marked(other) && other->column == row->column
                : (is_marked(other) || is_ordered(other)) &&
                      overlaps(row->op, other->op)) {
            return true;
        }
    }
    return false;
}

/* If there are marked rows, drops all rows that do not matter for them. */
static void filter(struct replay_rows *rows)
{
    struct replay_row *kept = replay_alloc(NULL, rows->num_rows * sizeof *kept);
    bool has_marks = false;
    size_t count = 0;

    for (size_t i = 0; i < rows->num_rows; i++) {
        has_marks |= is_marked(&rows->rows[i]);
    }
    for (size_t i = 0; i < rows->num_rows; i++) {
        if (!has_marks || matters(rows, &rows->rows[i])) {
            kept[count++] = rows->rows[i];
        }
    }
    free(rows->rows);
    rows->rows = kept;
    rows->left_out += rows->num_rows - count;
    rows->num_rows = count;
}

/* Keeps at most MOST_ROWS rows, up to the last marked one. */
static void cut(struct replay_rows *rows)
{
    size_t first = 0, last = rows->num_rows;

    while (last > 0 && !is_marked(&rows->rows[last - 1])) {
        last--;
    }
    last = last == 0 ? rows->num_rows : last;
    first = last > MOST_ROWS ? last - MOST_ROWS : 0;
    rows->left_out += rows->num_rows - (last - first);
    rows->num_rows = last - first;
    memmove(rows->rows, rows->rows + first,
            rows->num_rows * sizeof *rows->rows);
}

static void trace_reads(struct replay_rows *rows)
{
    for (size_t i = 0; i < rows->num_rows; i++) {
        struct replay_row *row = &rows->rows[i];

        row->from = row->missed = row->late = row->seen = REPLAY_NEVER;
    }
    for (size_t i = 0; i < rows->num_rows; i++) {
        if (rows->rows[i].op->reads) {
            trace_read(rows, i);
        }
    }
}

void replay_rows_open(struct replay_rows *rows,
                      const struct replay_result *result)
{
    struct replay_op race = {.target = -1};
    bool has_race = find_race(result->output, &race);

    *rows = (struct replay_rows){0};
    collect(rows, &result->schedule, has_race ? &race : NULL);
    if (rows->num_rows == 0) {
        return;
    }
    set_columns(rows);
    trace_reads(rows);
    filter(rows);
    trace_reads(rows); /* row numbers have changed */
    cut(rows);
    set_columns(rows);
    trace_reads(rows);
}

void replay_rows_close(struct replay_rows *rows)
{
    free(rows->rows);
    free(rows->columns);
}
