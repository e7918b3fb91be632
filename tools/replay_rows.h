/* SPDX-License-Identifier: MIT
 *
 * The part of a run that matters, as a table. Each workgroup has a column. Each
 * operation on memory that several workgroups use has a row.
 */
#ifndef IRIS_TOOLS_REPLAY_ROWS_H
#define IRIS_TOOLS_REPLAY_ROWS_H

#include "replay_run.h"

#include <stdio.h>

#define REPLAY_NEVER SIZE_MAX

struct replay_row {
    const struct replay_op *op;
    size_t column;
    unsigned count; /* equal polls that this row stands for */
    /* Row numbers, or REPLAY_NEVER: */
    size_t from;   /* the write that was read, in another column */
    size_t missed; /* the first write that the read should have seen */
    size_t late;   /* for a missed write: the read that missed it */
    size_t seen;   /* for a missed write: the read that saw it at last */
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
    size_t left_out; /* operations without a row */
};

void replay_rows_open(struct replay_rows *rows,
                      const struct replay_result *result);
void replay_rows_close(struct replay_rows *rows);

/* Prints the table. */
void replay_print(const struct replay_rows *rows);

#endif /* IRIS_TOOLS_REPLAY_ROWS_H */
