/* SPDX-License-Identifier: MIT
 *
 * Writes JSON documents and JSON text.
 */
#ifndef IRIS_SRC_BASE_JSON_WRITER_H
#define IRIS_SRC_BASE_JSON_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The number of bytes of the valid UTF-8 character at the start of `text`, and
 * its code. 0 if there is no valid one (RFC 3629: shortest form, no surrogates,
 * up to U+10FFFF). A 0 byte is a character of one byte. */
size_t iris_i_utf8_char(const char *text, uint32_t *code_p);

/* Receives a piece of text. */
typedef void (*iris_json_sink_t)(void *arg, const char *text, size_t bytes);

/* Passes the text to the sink in quotes, escaped. Valid UTF-8 is unchanged. A
 * byte that is not UTF-8 becomes the character with its number, so the result
 * is always valid. */
void iris_i_json_escape(const char *text, iris_json_sink_t sink, void *arg);
void iris_i_json_string(FILE *file, const char *text);

#define IRIS_JSON_WRITER_DEPTH 16

/* A document that is being written to a file. Members are separated by ", "; an
 * object or array within another one begins a line. `name` is NULL for elements
 * of arrays. */
struct iris_json_writer {
    FILE *file;
    int depth;
    int is_empty; /* the innermost object or array is still empty */
    char open[IRIS_JSON_WRITER_DEPTH]; /* '{' or '[' */
};

struct iris_json_writer iris_i_json_writer(FILE *file);

/* Opens an object ('{') or an array ('['); closes the innermost. */
void iris_i_json_begin(struct iris_json_writer *json, const char *name,
                       char kind);
void iris_i_json_end(struct iris_json_writer *json);

/* A NULL text is null. */
void iris_i_json_text(struct iris_json_writer *json, const char *name,
                      const char *text);
void iris_i_json_bool(struct iris_json_writer *json, const char *name,
                      int value);
void iris_i_json_int(struct iris_json_writer *json, const char *name,
                     int64_t value);
void iris_i_json_uint(struct iris_json_writer *json, const char *name,
                      uint64_t value);

/* Six digits; null if the number is infinite or a NaN, which JSON lacks. */
void iris_i_json_real(struct iris_json_writer *json, const char *name,
                      double value);

#endif /* IRIS_SRC_BASE_JSON_WRITER_H */
