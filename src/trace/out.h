/* SPDX-License-Identifier: MIT
 *
 * A file that is written in pieces. It is compressed if its name says so, and
 * gets its name when it is complete.
 */
#ifndef IRIS_SRC_TRACE_OUT_H
#define IRIS_SRC_TRACE_OUT_H

#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "base/file.h"

struct iris_out {
    const char *path;      /* owned by the caller */
    struct iris_file file; /* fd -1: not open */
    void *gz;              /* zlib's state; NULL: not compressed */
    int failed;            /* errno of the first failure; 0: no failure */
    int num_elements;      /* elements of the array that is being written */
    size_t used;
    char buffer[1 << 16];
};

/* Start of .json or .json.gz in the name; NULL: it has neither ending. */
const char *iris_i_out_ending(const char *path);

/* Whether the name asks for compression, which builds with HAVE_ZLIB
 * support. */
int iris_i_out_is_gz(const char *path);

/* Opens the file, which has no name yet. iris_i_out_close() reports the first
 * failure here or in the functions below. */
void iris_i_out_open(struct iris_out *out, const char *path);

void iris_i_out_write(struct iris_out *out, const char *text, size_t bytes);
void iris_i_out_print(struct iris_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text in quotes, escaped. Bytes that are not UTF-8 become the characters
 * with their numbers. */
void iris_i_out_string(struct iris_out *out, const char *text);

/* Begins the next element of the array, on a new line. */
void iris_i_out_next(struct iris_out *out);

/* Writes nanoseconds as microseconds with three decimals. */
void iris_i_out_us(struct iris_out *out, int64_t ns);

/* Gives the file its name; with `keep` 0, or after a failure, removes it.
 * Returns 0 or an errno. */
int iris_i_out_close(struct iris_out *out, int keep);

#endif /* IRIS_SRC_TRACE_OUT_H */
