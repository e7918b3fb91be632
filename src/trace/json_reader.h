/* SPDX-License-Identifier: MIT
 *
 * Reading JSON of any size token by token, from a file that may be compressed.
 */
#ifndef IRIS_SRC_TRACE_JSON_READER_H
#define IRIS_SRC_TRACE_JSON_READER_H

#include <stddef.h>
#include <stdint.h>

#define IRIS_JSON_DEPTH 64
#define IRIS_JSON_TEXT 4096
#define IRIS_JSON_KEPT (1 << 20) /* bytes that are kept at most */

enum iris_json_token {
    IRIS_JSON_END, /* of the whole */
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

/* What reads. `text` is that of the last key, string, number or word, cut at
 * its size. */
struct iris_json {
    const char *path;
    int fd;
    void *gz;
    uint64_t base; /* where in the file, uncompressed, the buffer begins */
    size_t position;
    size_t filled;
    int depth;
    char stack[IRIS_JSON_DEPTH]; /* '{' or '[' */
    int state;                   /* what may come next; see json_reader.c */
    int ended;                   /* the file has */
    size_t length;
    char text[IRIS_JSON_TEXT];
    char error[256]; /* with the offset */
    /* What has been read since iris_json_keep(), as it is in the file. */
    char *kept;
    size_t kept_bytes, kept_capacity, kept_from;
    int keeping;
    char buffer[1 << 16];
};

/* Opens the file, compressed or not, whatever its name is. 0, or -1 with the
 * reason in json->error. */
int iris_i_json_open(struct iris_json *json, const char *path);
void iris_i_json_close(struct iris_json *json);

enum iris_json_token iris_i_json_next(struct iris_json *json);

/* Reads the rest of a value whose first token was `token`. IRIS_JSON_ERROR, or
 * its last token. */
enum iris_json_token iris_i_json_skip(struct iris_json *json,
                                      enum iris_json_token token);

/* Bytes read so far, which is where the next token is looked for. */
uint64_t iris_i_json_offset(const struct iris_json *json);

/* Begins to keep what is read, from the last character of the last token on;
 * then the text so far. */
void iris_i_json_keep(struct iris_json *json);
const char *iris_i_json_kept(struct iris_json *json, size_t *bytes_p);

/* An error of the reader's user at the present place. */
enum iris_json_token iris_i_json_fail(struct iris_json *json, const char *what);

#endif /* IRIS_SRC_TRACE_JSON_READER_H */
