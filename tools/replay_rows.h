/* SPDX-License-Identifier: MIT
 *
 * The part of a run that matters, as a table: a column for each workgroup, a row
 * for each operation on memory that several of them use.
 */
#ifndef IRIS_TOOLS_REPLAY_ROWS_H
#define IRIS_TOOLS_REPLAY_ROWS_H

#include "replay_run.h"

#include <stdio.h>

#define REPLAY_NEVER SIZE_MAX

struct replay_row {
    const struct replay_op *op;
    size_t column;
    unsigned count; /* polls that read the same */
    /* Rows, or REPLAY_NEVER. */
    size_t from;   /* that wrote the value read, in another column */
    size_t missed; /* the first write that the read should have seen */
    size_t late;   /* of a write that a read missed: that read */
    size_t seen;   /* of such a write: where that column saw it at last */
    bool is_race;
};

struct replay_column {
    int rank;
    unsigned workgroup;
};

struct replay_rows {
    struct replay_row *rows;
    size_t num_rows;
    struct replay_column *columns;
    size_t num_columns;
    size_t left_out; /* operations that are no rows */
};

void replay_rows_open(struct replay_rows *rows,
                      const struct replay_result *result);
void replay_rows_close(struct replay_rows *rows);

/* "rank 1, workgroup 0"; "x := 7", what a cell says; "send.c:12, kernel send:
 * store; ...", what stands beside it. */
void replay_describe_column(const struct replay_rows *rows, size_t column,
                            char *text, size_t bytes);
void replay_describe_cell(const struct replay_row *row, char *text,
                          size_t bytes);
void replay_describe_row(const struct replay_rows *rows, size_t row, char *text,
                         size_t bytes);

/* Prints the table. */
void replay_print(const struct replay_rows *rows);

/* Draws it as SVG. 0; -1: a message has been printed. */
int replay_draw(const struct replay_rows *rows, const char *path);

#endif /* IRIS_TOOLS_REPLAY_ROWS_H */
