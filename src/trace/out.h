/* SPDX-License-Identifier: MIT
 *
 * A file that is written in pieces, compressed if its name says so, and has its
 * name once it is complete.
 */
#ifndef IRIS_SRC_TRACE_OUT_H
#define IRIS_SRC_TRACE_OUT_H

#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "base/file.h"

struct iris_out {
    const char *path;      /* the caller's */
    struct iris_file file; /* fd -1: there is none */
    void *gz;              /* zlib's; NULL: not compressed */
    int failed;            /* errno of the first failure; 0: none */
    int num_elements;      /* of the array that is being written */
    size_t used;
    char buffer[1 << 16];
};

/* Where .json or .json.gz begins in the name; NULL: it ends in neither. */
const char *iris_i_out_ending(const char *path);

/* Whether the name asks for compression, which builds with HAVE_ZLIB can. */
int iris_i_out_is_gz(const char *path);

/* Makes the file, which has no name yet. After any failure here
 * or below iris_i_out_close() says what it was, once. */
void iris_i_out_open(struct iris_out *out, const char *path);

void iris_i_out_write(struct iris_out *out, const char *text, size_t bytes);
void iris_i_out_print(struct iris_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text in quotes, escaped; bytes that are not UTF-8 as the characters of
 * their numbers. */
void iris_i_out_string(struct iris_out *out, const char *text);

/* Begins the next element of the array, on a line of its own. */
void iris_i_out_next(struct iris_out *out);

/* Nanoseconds as microseconds with three decimals. */
void iris_i_out_us(struct iris_out *out, int64_t ns);

/* Gives the file its name; with `keep` 0, or after a failure, removes it. 0, or
 * the errno of what failed. */
int iris_i_out_close(struct iris_out *out, int keep);

#endif /* IRIS_SRC_TRACE_OUT_H */
