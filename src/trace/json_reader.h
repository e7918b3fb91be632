/* SPDX-License-Identifier: MIT
 *
 * Reads JSON of any size token by token, from a file that may be compressed.
 */
#ifndef IRIS_SRC_TRACE_JSON_READER_H
#define IRIS_SRC_TRACE_JSON_READER_H

#include <stddef.h>
#include <stdint.h>

#define IRIS_JSON_DEPTH 64
#define IRIS_JSON_TEXT 4096
#define IRIS_JSON_KEPT (1 << 20) /* most bytes that are kept */

enum iris_json_token {
    IRIS_JSON_END, /* end of the document */
    IRIS_JSON_ERROR,
    IRIS_JSON_OBJECT,
    IRIS_JSON_OBJECT_END,
    IRIS_JSON_ARRAY,
    IRIS_JSON_ARRAY_END,
    IRIS_JSON_KEY,
    IRIS_JSON_STRING,
    IRIS_JSON_NUMBER,
    IRIS_JSON_WORD, /* true, false, null */
};

/* The reader. `text` is the text of the last key, string, number or word, cut
 * at its size. */
struct iris_json {
    const char *path;
    int fd;
    void *gz;
    uint64_t base; /* offset of the buffer in the uncompressed file */
    size_t position;
    size_t filled;
    int depth;
    char stack[IRIS_JSON_DEPTH]; /* '{' or '[' */
    int state;                   /* tokens that may come next; see
                                  * json_reader.c */
    int ended;                   /* the file has ended */
    size_t length;
    char text[IRIS_JSON_TEXT];
    char error[256]; /* including the offset */
    /* The text of the file since iris_json_keep(). */
    char *kept;
    size_t kept_bytes, kept_capacity, kept_from;
    int keeping;
    char buffer[1 << 16];
};

/* Opens the file, compressed or not, with any name. Returns 0, or -1 with the
 * reason in json->error. */
int iris_i_json_open(struct iris_json *json, const char *path);
void iris_i_json_close(struct iris_json *json);

enum iris_json_token iris_i_json_next(struct iris_json *json);

/* Reads the rest of a value with the first token `token`. Returns its last
 * token, or IRIS_JSON_ERROR. */
enum iris_json_token iris_i_json_skip(struct iris_json *json,
                                      enum iris_json_token token);

/* Number of bytes read so far: the offset of the next token. */
uint64_t iris_i_json_offset(const struct iris_json *json);

/* Starts to keep the text, from the last character of the last token on;
 * returns the text so far. */
void iris_i_json_keep(struct iris_json *json);
const char *iris_i_json_kept(struct iris_json *json, size_t *bytes_p);

/* Reports an error of the caller at the current offset. */
enum iris_json_token iris_i_json_fail(struct iris_json *json, const char *what);

#endif /* IRIS_SRC_TRACE_JSON_READER_H */
