/* SPDX-License-Identifier: MIT
 *
 * The texts of the table, and the table as text.
 */
#include "config.h"

#include "replay_rows.h"
#include "check/check.h"

#include <string.h>

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
static void describe_cell(const struct replay_row *row, char *text,
                          size_t bytes)
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
static void describe_column(const struct replay_rows *rows, size_t column,
                            char *text, size_t bytes)
{
    const struct replay_column *it = &rows->columns[column];
    bool is_alone = (column == 0 || it[-1].rank != it->rank) &&
                    (column + 1 == rows->num_columns || it[1].rank != it->rank);

    if (is_alone) {
        snprintf(text, bytes, "rank %d", it->rank);
    } else {
        snprintf(text, bytes, "rank %d, workgroup %u", it->rank, it->workgroup);
    }
}

/* Adds when a missed write was seen, or which write a read missed. */
static void add_remark(const struct replay_rows *rows,
                       const struct replay_row *row, char *text, size_t bytes)
{
    size_t at = strlen(text);
    char column[64];

    if (row->late != REPLAY_NEVER) {
        describe_column(rows, rows->rows[row->late].column, column,
                        sizeof column);
        if (row->seen == REPLAY_NEVER) {
            snprintf(text + at, bytes - at, "; late: %s never sees it", column);
        } else {
            snprintf(text + at, bytes - at, "; late: %s sees it in line %zu",
                     column, row->seen + 1);
        }
    }
    at = strlen(text);
    if (row->missed != REPLAY_NEVER) {
        snprintf(text + at, bytes - at, "; old: line %zu is not visible yet",
                 row->missed + 1);
    } else if (row->from != REPLAY_NEVER) {
        snprintf(text + at, bytes - at, "; from line %zu", row->from + 1);
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
static void describe_row(const struct replay_rows *rows, size_t number,
                         char *text, size_t bytes)
{
    const struct replay_row *row = &rows->rows[number];
    const struct replay_op *op = row->op;
    struct iris_race_site site = {.offsets = {op->code}};
    char line[160];

    snprintf(site.file, sizeof site.file, "%s", op->file);
    iris_i_race_line(&site, line, sizeof line);
    snprintf(text, bytes, "%s, kernel %s: %s", line, op->kernel, op->deed);
    add_remark(rows, row, text, bytes);
}

/* The width of the widest cell. */
static int width_of(const struct replay_rows *rows)
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

void replay_print(const struct replay_rows *rows)
{
    int width = width_of(rows);
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
