/* SPDX-License-Identifier: MIT
 *
 * iris replay --print: the part of a run that matters, as a table. Each
 * workgroup has a column. Each fence has a row, and each operation on memory
 * that several workgroups use and at least one of them writes. If a read saw an
 * old value or there is a race, only operations on that memory and on memory
 * that orders accesses matter.
 */
#include "config.h"

#include "replay.h"
#include "base/base.h"
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER SIZE_MAX

struct row {
    const struct replay_op *op;
    size_t column;
    unsigned count; /* equal polls that this row stands for */
    /* Row numbers, or NEVER: */
    size_t from;   /* the write that was read, in another column */
    size_t missed; /* the first write that the read should have seen */
    size_t late;   /* for a missed write: the read that missed it */
    size_t seen;   /* for a missed write: the read that saw it at last */
    bool is_race;
};

struct column {
    int rank;
    unsigned workgroup;
};

struct table {
    struct row *rows;
    size_t num_rows;
    struct column *columns;
    size_t num_columns;
    size_t left_out; /* operations without a row */
};

#define MOST_ROWS 9    /* fifteen lines with the head, status and cause */
#define MOST_OPS 20000 /* limit; earlier operations are left out */

static bool have_overlap(const struct replay_op *a, const struct replay_op *b)
{
    return a->target >= 0 && a->target == b->target &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool has_same_workgroup(const struct replay_op *a,
                               const struct replay_op *b)
{
    return a->rank == b->rank && a->workgroup == b->workgroup;
}

/* Whether another workgroup also uses the memory, and one of the two writes it. */
static bool is_shared(const struct replay_schedule *schedule, size_t first,
                      const struct replay_op *op)
{
    for (size_t i = first; i < schedule->num_ops; i++) {
        const struct replay_op *other = &schedule->ops[i];

        if (!has_same_workgroup(op, other) && have_overlap(op, other) &&
            (op->writes || other->writes)) {
            return true;
        }
    }
    return false;
}

/* ---- Races ---- */

/* Finds the byte that the report of a race names. */
static bool find_racing_byte(const char *output, struct replay_op *place)
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

/* Whether the line of the report, which ends at a newline, names the access. */
static bool is_access_of(const char *line, const struct replay_op *op)
{
    char text[512];
    const char *at;

    snprintf(text, sizeof text, ": %s by rank %d, kernel %s, workgroup %u",
             op->deed, op->rank, op->kernel, op->workgroup);
    at = strstr(line, text);
    return at != NULL && at < line + strcspn(line, "\n") &&
           (at[strlen(text)] < '0' || at[strlen(text)] > '9');
}

/* Keeps the marks of two accesses to the racing byte, the first that the report
 * names: the later one in its first line, the earlier one in its second. */
static void mark_racing_pair(struct table *rows, const char *output)
{
    const char *later = strchr(strstr(output, "data race on "), '\n');
    const char *earlier = later == NULL ? NULL : strchr(later + 1, '\n');
    size_t first = NEVER, last = NEVER;

    for (size_t i = 0; earlier != NULL && i < rows->num_rows; i++) {
        if (rows->rows[i].is_race && first != NEVER &&
            is_access_of(later + 1, rows->rows[i].op)) {
            last = i;
            break;
        }
        if (rows->rows[i].is_race &&
            is_access_of(earlier + 1, rows->rows[i].op)) {
            first = i;
        }
    }
    for (size_t i = 0; last != NEVER && i < rows->num_rows; i++) {
        rows->rows[i].is_race = i == first || i == last;
    }
}

/* ---- Columns ---- */

static int compare_columns(const void *left, const void *right)
{
    const struct column *a = left, *b = right;

    int order = IRIS_COMPARE(a->rank, b->rank);

    return order != 0 ? order : IRIS_COMPARE(a->workgroup, b->workgroup);
}

static void add_column(struct table *rows, const struct replay_op *op)
{
    const struct column column = {op->rank, op->workgroup};

    for (size_t i = 0; i < rows->num_columns; i++) {
        if (compare_columns(&rows->columns[i], &column) == 0) {
            return;
        }
    }
    *(struct column *)replay_grow(&rows->columns, &rows->num_columns,
                                  sizeof column) = column;
}

static void set_columns(struct table *rows)
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
        const struct column column = {op->rank, op->workgroup};

        while (compare_columns(&rows->columns[rows->rows[i].column], &column)) {
            rows->rows[i].column++;
        }
    }
}

/* ---- The writes that reads saw ---- */

/* A read at row `at` sees the last of these writes. So its column has now also seen
 * those of them that it missed. */
static void see_writes(struct table *rows, size_t at, const size_t *writes,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct row *row = &rows->rows[writes[i]];

        if (row->late != NEVER && row->seen == NEVER &&
            rows->rows[row->late].column == rows->rows[at].column) {
            row->seen = at;
        }
    }
}

/* The rows above `at` that wrote to its memory, in the order in which all see them:
 * a write may come before ones that ran earlier. Returns their number. */
static size_t order_writes(const struct table *rows, size_t at, size_t *writes)
{
    size_t count = 0;

    for (size_t i = 0; i < at; i++) {
        const struct replay_op *op = rows->rows[i].op;
        size_t behind = op->reads ? 0 : op->behind;

        if (op->writes && have_overlap(op, rows->rows[at].op)) {
            behind = behind < count ? behind : count;
            memmove(&writes[count - behind + 1], &writes[count - behind],
                    behind * sizeof *writes);
            writes[count - behind] = i;
            count++;
        }
    }
    return count;
}

static void trace_read(struct table *rows, size_t at)
{
    struct row *row = &rows->rows[at];
    size_t *writes = replay_alloc(NULL, (at + 1) * sizeof *writes);
    size_t count = order_writes(rows, at, writes), behind = row->op->behind;

    behind = behind < count ? behind : count;
    for (size_t i = count; i-- > count - behind;) {
        struct row *write = &rows->rows[writes[i]];

        row->missed = writes[i];
        if (write->late == NEVER) {
            write->late = at;
        }
    }
    if (behind < count) {
        size_t from = writes[count - behind - 1];

        row->from = rows->rows[from].column == row->column ? NEVER : from;
        see_writes(rows, at, writes, count - behind);
    }
    free(writes);
}

/* ---- Rows ---- */

/* Whether the row before in this column is an equal poll. If it is, counts the
 * operation there. */
static bool count_poll(const struct table *rows, const struct replay_op *op)
{
    for (size_t i = rows->num_rows; i-- > 0;) {
        const struct replay_op *before = rows->rows[i].op;

        if (has_same_workgroup(before, op)) {
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

static void collect_rows(struct table *rows,
                         const struct replay_schedule *schedule,
                         const struct replay_op *race)
{
    size_t first =
        schedule->num_ops > MOST_OPS ? schedule->num_ops - MOST_OPS : 0;

    for (size_t i = first; i < schedule->num_ops; i++) {
        const struct replay_op *op = &schedule->ops[i];
        struct row *row;

        if ((op->target >= 0 && !is_shared(schedule, first, op)) ||
            count_poll(rows, op)) {
            continue;
        }
        row = replay_grow(&rows->rows, &rows->num_rows, sizeof *row);
        *row = (struct row){.op = op,
                            .count = 1,
                            .from = NEVER,
                            .missed = NEVER,
                            .late = NEVER,
                            .seen = NEVER,
                            .is_race = race != NULL && have_overlap(op, race)};
    }
}

static bool is_marked(const struct row *row)
{
    return row->late != NEVER || row->missed != NEVER || row->is_race;
}

static bool is_ordered(const struct row *row)
{
    return strstr(row->op->deed, "acquire") != NULL ||
           strstr(row->op->deed, "release") != NULL;
}

/* Whether the row matters. It does if it accesses memory of a marked row or of
 * an ordered access, or if it is a fence in the column of a marked row. */
static bool is_row_needed(const struct table *rows, const struct row *row)
{
    for (size_t i = 0; i < rows->num_rows; i++) {
        const struct row *other = &rows->rows[i];

        if (row->op->target < 0
                ? is_marked(other) && other->column == row->column
                : (is_marked(other) || is_ordered(other)) &&
                      have_overlap(row->op, other->op)) {
            return true;
        }
    }
    return false;
}

/* If there are marked rows, drops all rows that do not matter for them. */
static void filter_rows(struct table *rows)
{
    struct row *kept = replay_alloc(NULL, rows->num_rows * sizeof *kept);
    bool has_marks = false;
    size_t count = 0;

    for (size_t i = 0; i < rows->num_rows; i++) {
        has_marks |= is_marked(&rows->rows[i]);
    }
    for (size_t i = 0; i < rows->num_rows; i++) {
        if (!has_marks || is_row_needed(rows, &rows->rows[i])) {
            kept[count++] = rows->rows[i];
        }
    }
    free(rows->rows);
    rows->rows = kept;
    rows->left_out += rows->num_rows - count;
    rows->num_rows = count;
}

/* Keeps at most MOST_ROWS rows, up to the last marked one: marked ones, then the
 * others that are closest to the last. */
static void cut_rows(struct table *rows)
{
    size_t last = rows->num_rows, room, kept = 0;
    bool *stays;

    while (last > 0 && !is_marked(&rows->rows[last - 1])) {
        last--;
    }
    last = last == 0 ? rows->num_rows : last;
    room = last < MOST_ROWS ? last : MOST_ROWS;
    stays = replay_alloc(NULL, (last + 1) * sizeof *stays);
    memset(stays, 0, (last + 1) * sizeof *stays);
    for (int marked = 1; marked >= 0; marked--) {
        for (size_t i = last; room > 0 && i-- > 0;) {
            if (!stays[i] && (is_marked(&rows->rows[i]) || !marked)) {
                stays[i] = true;
                room--;
            }
        }
    }
    for (size_t i = 0; i < last; i++) {
        if (stays[i]) {
            rows->rows[kept++] = rows->rows[i];
        }
    }
    free(stays);
    rows->left_out += rows->num_rows - kept;
    rows->num_rows = kept;
}

static void trace_reads(struct table *rows)
{
    for (size_t i = 0; i < rows->num_rows; i++) {
        struct row *row = &rows->rows[i];

        row->from = row->missed = row->late = row->seen = NEVER;
    }
    for (size_t i = 0; i < rows->num_rows; i++) {
        if (rows->rows[i].op->reads) {
            trace_read(rows, i);
        }
    }
}

static void open_table(struct table *rows, const struct replay_result *result)
{
    struct replay_op race = {.target = -1};
    bool has_race = find_racing_byte(result->output, &race);

    *rows = (struct table){0};
    collect_rows(rows, &result->schedule, has_race ? &race : NULL);
    if (rows->num_rows == 0) {
        return;
    }
    if (has_race) {
        mark_racing_pair(rows, result->output);
    }
    set_columns(rows);
    trace_reads(rows);
    filter_rows(rows);
    trace_reads(rows); /* row numbers have changed */
    cut_rows(rows);
    set_columns(rows);
    trace_reads(rows);
}

static void close_table(struct table *rows)
{
    free(rows->rows);
    free(rows->columns);
}

/* ---- Text ---- */

/* x@1 is x on rank 1's heap; x+8@1 is 8 bytes after x. */
static void describe_place(const struct replay_op *op, char *text, size_t bytes)
{
    const char *place = op->place + (op->place[0] == '"');
    size_t length = strcspn(place, "\"");

    if (op->place[0] == '"' && strcmp(place + length, "\"+0") == 0) {
        snprintf(text, bytes, "%.*s@%d", (int)length, place, op->target);
    } else if (op->place[0] == '"') {
        snprintf(text, bytes, "%.*s%s@%d", (int)length, place,
                 place + length + 1, op->target);
    } else {
        snprintf(text, bytes, "%s@%d", place, op->target);
    }
}

static void add_value(const struct replay_op *op, const char *sign,
                      uint64_t value, char *text, size_t bytes)
{
    size_t at = strlen(text);

    if (op->bytes > 8) {
        snprintf(text + at, bytes - at, "%s %llu bytes", sign,
                 (unsigned long long)op->bytes);
    } else {
        snprintf(text + at, bytes - at,
                 value >> 32 == 0 ? "%s %llu" : "%s 0x%llx", sign,
                 (unsigned long long)value);
    }
}

/* "x := 7" */
static void describe_cell(const struct row *row, char *text, size_t bytes)
{
    const struct replay_op *op = row->op;

    if (op->target < 0) {
        snprintf(text, bytes, "fence");
        return;
    }
    describe_place(op, text, bytes);
    if (op->reads) {
        add_value(op, " ==", op->seen, text, bytes);
    }
    if (op->writes) {
        add_value(op, " :=", op->written, text, bytes);
    }
}

/* "rank 1, workgroup 0" */
static void describe_column(const struct table *rows, size_t column, char *text,
                            size_t bytes)
{
    const struct column *it = &rows->columns[column];
    bool is_alone = (column == 0 || it[-1].rank != it->rank) &&
                    (column + 1 == rows->num_columns || it[1].rank != it->rank);

    if (is_alone) {
        snprintf(text, bytes, "rank %d", it->rank);
    } else {
        snprintf(text, bytes, "rank %d, workgroup %u", it->rank, it->workgroup);
    }
}

/* Adds when a missed write was seen, or which write a read missed. */
static void add_remark(const struct table *rows, const struct row *row,
                       char *text, size_t bytes)
{
    size_t at = strlen(text);
    char column[64];

    if (row->late != NEVER) {
        describe_column(rows, rows->rows[row->late].column, column,
                        sizeof column);
        if (row->seen == NEVER) {
            snprintf(text + at, bytes - at, "; late: %s never sees it", column);
        } else {
            snprintf(text + at, bytes - at, "; late: %s sees it in line %zu",
                     column, row->seen + 1);
        }
    }
    at = strlen(text);
    if (row->missed != NEVER) {
        snprintf(text + at, bytes - at, "; old: line %zu is not visible yet",
                 row->missed + 1);
    } else if (row->from != NEVER) {
        snprintf(text + at, bytes - at, "; from line %zu", row->from + 1);
    }
    at = strlen(text);
    if (!row->op->reads && row->op->behind != 0) {
        snprintf(text + at, bytes - at, "; it comes before %u write%s above",
                 row->op->behind, row->op->behind == 1 ? "" : "s");
    }
    at = strlen(text);
    if (row->count > 1) {
        snprintf(text + at, bytes - at, "; %u times", row->count);
    }
    at = strlen(text);
    if (row->is_race) {
        snprintf(text + at, bytes - at, "; RACE");
    }
}

/* "send.c:12, kernel send: store; from line 3" */
static void describe_row(const struct table *rows, size_t number, char *text,
                         size_t bytes)
{
    const struct row *row = &rows->rows[number];
    const struct replay_op *op = row->op;
    struct iris_source source = {.offsets = {op->code}};
    char line[160];

    snprintf(source.file, sizeof source.file, "%s", op->file);
    iris_i_source_line(&source, IRIS_LINE_MS, line, sizeof line);
    snprintf(text, bytes, "%s, kernel %s: %s", line, op->kernel, op->deed);
    add_remark(rows, row, text, bytes);
}

/* The width of the widest cell. */
static int find_width(const struct table *rows)
{
    size_t width = 8;
    char text[256];

    for (size_t i = 0; i < rows->num_columns; i++) {
        describe_column(rows, i, text, sizeof text);
        width = strlen(text) > width ? strlen(text) : width;
    }
    for (size_t i = 0; i < rows->num_rows; i++) {
        describe_cell(&rows->rows[i], text, sizeof text);
        width = strlen(text) > width ? strlen(text) : width;
    }
    return (int)width;
}

static void print_table(const struct table *rows)
{
    int width = find_width(rows);
    char text[512];

    printf("     ");
    for (size_t i = 0; i < rows->num_columns; i++) {
        describe_column(rows, i, text, sizeof text);
        printf("  %-*s", i + 1 == rows->num_columns ? 0 : width, text);
    }
    printf("\n");
    if (rows->left_out != 0) {
        printf("      %zu other operations are left out\n", rows->left_out);
    }
    for (size_t i = 0; i < rows->num_rows; i++) {
        printf("%4zu ", i + 1);
        for (size_t column = 0; column < rows->num_columns; column++) {
            text[0] = '\0';
            if (column == rows->rows[i].column) {
                describe_cell(&rows->rows[i], text, sizeof text);
            }
            printf("  %-*s", width, text);
        }
        describe_row(rows, i, text, sizeof text);
        printf("  %s\n", text);
    }
}

/* The line of the first race's report that says why nothing orders the two. */
static void print_missing(const char *output)
{
    const char *race = strstr(output, "data race on ");
    const char *missing = race == NULL ? NULL : strstr(race, "missing: ");

    if (missing != NULL) {
        printf("%.*s\n", (int)strcspn(missing, "\n"), missing);
    }
}

void replay_print(const struct replay_result *result)
{
    struct table rows;

    open_table(&rows, result);
    print_table(&rows);
    print_missing(result->output);
    close_table(&rows);
}
