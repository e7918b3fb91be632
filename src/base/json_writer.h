/* SPDX-License-Identifier: MIT
 *
 * Writing JSON, and text as JSON has it.
 */
#ifndef IRIS_SRC_BASE_JSON_WRITER_H
#define IRIS_SRC_BASE_JSON_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the valid UTF-8 character that `text` begins with, and its number; 0
 * if it begins with none (RFC 3629: no longer form than needed, no surrogates,
 * up to U+10FFFF). A 0 byte is a character of one byte. */
size_t iris_i_utf8_char(const char *text, uint32_t *code_p);

/* Takes a piece of text. */
typedef void (*iris_json_sink_t)(void *arg, const char *text, size_t bytes);

/* Gives the sink the text in quotes, escaped. UTF-8 stays as it is; a byte that
 * is not UTF-8 becomes the character of its number, so that the result is valid
 * whatever the text is. */
void iris_i_json_escape(const char *text, iris_json_sink_t sink, void *arg);
void iris_i_json_string(FILE *file, const char *text);

#define IRIS_JSON_WRITER_DEPTH 16

/* A document on its way to a file. Members are separated by ", "; an object or
 * array within another begins a line. `name` is NULL for elements of arrays. */
struct iris_json_writer {
    FILE *file;
    int depth;
    int is_empty; /* nothing is in the innermost object or array yet */
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

/* Six digits; null if it is infinite or not a number, which JSON lacks. */
void iris_i_json_real(struct iris_json_writer *json, const char *name,
                      double value);

#endif /* IRIS_SRC_BASE_JSON_WRITER_H */
