/* SPDX-License-Identifier: MIT
 *
 * Writes JSON documents and JSON text.
 */
#include "config.h"

#include "base/base.h"

/* ---- Text ---- */

size_t iris_i_utf8_char(const char *text, uint32_t *code_p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    size_t bytes = c[0] < 0x80   ? 1
                   : c[0] < 0xc0 ? 0
                   : c[0] < 0xe0 ? 2
                   : c[0] < 0xf0 ? 3
                   : c[0] < 0xf8 ? 4
                                 : 0;
    uint32_t code = bytes <= 1 ? c[0] : c[0] & (0x7fu >> bytes);

    for (size_t i = 1; i < bytes; i++) {
        /* The terminating 0 is no such byte either. */
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (c[i] & 0x3fu);
    }
    *code_p = code;
    return bytes == 0 || code < least[bytes] || code > 0x10ffff ||
                   (code >= 0xd800 && code < 0xe000)
               ? 0
               : bytes;
}

void iris_i_json_escape(const char *text, iris_json_sink_t sink, void *arg)
{
    const char *from = text;

    sink(arg, "\"", 1);
    while (*text != '\0') {
        uint32_t code;
        size_t bytes = iris_i_utf8_char(text, &code);
        char escape[8];

        if (bytes != 0 && code >= 0x20 && code != 0x7f && code != '"' &&
            code != '\\') {
            text += bytes;
            continue;
        }
        sink(arg, from, (size_t)(text - from));
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text);
        if (*text == '"' || *text == '\\') {
            snprintf(escape, sizeof escape, "\\%c", *text);
        }
        sink(arg, escape, escape[1] == 'u' ? 6 : 2);
        from = ++text;
    }
    sink(arg, from, (size_t)(text - from));
    sink(arg, "\"", 1);
}

static void to_file(void *arg, const char *text, size_t bytes)
{
    fwrite(text, 1, bytes, arg);
}

void iris_i_json_string(FILE *file, const char *text)
{
    iris_i_json_escape(text, to_file, file);
}

/* ---- Documents ---- */

struct iris_json_writer iris_i_json_writer(FILE *file)
{
    return (struct iris_json_writer){.file = file, .is_empty = 1};
}

static void begin_value(struct iris_json_writer *json, const char *name,
                        int own_line)
{
    if (!json->is_empty) {
        fputs(own_line ? "," : ", ", json->file);
    }
    if (own_line && json->depth > 0) {
        fprintf(json->file, "\n%*s", json->depth, "");
    }
    if (name != NULL) {
        iris_i_json_string(json->file, name);
        fputs(": ", json->file);
    }
    json->is_empty = 0;
}

void iris_i_json_begin(struct iris_json_writer *json, const char *name,
                       char kind)
{
    begin_value(json, name, 1);
    json->open[json->depth++] = kind;
    json->is_empty = 1;
    fputc(kind, json->file);
}

void iris_i_json_end(struct iris_json_writer *json)
{
    json->is_empty = 0;
    fputc(json->open[--json->depth] == '{' ? '}' : ']', json->file);
    if (json->depth == 0) {
        fputc('\n', json->file);
    }
}

void iris_i_json_text(struct iris_json_writer *json, const char *name,
                      const char *text)
{
    begin_value(json, name, 0);
    if (text == NULL) {
        fputs("null", json->file);
    } else {
        iris_i_json_string(json->file, text);
    }
}

void iris_i_json_bool(struct iris_json_writer *json, const char *name,
                      int value)
{
    begin_value(json, name, 0);
    fputs(value ? "true" : "false", json->file);
}

void iris_i_json_int(struct iris_json_writer *json, const char *name,
                     int64_t value)
{
    begin_value(json, name, 0);
    fprintf(json->file, "%lld", (long long)value);
}

void iris_i_json_uint(struct iris_json_writer *json, const char *name,
                      uint64_t value)
{
    begin_value(json, name, 0);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void iris_i_json_real(struct iris_json_writer *json, const char *name,
                      double value)
{
    char text[32];

    begin_value(json, name, 0);
    if (value - value == 0) {
        iris_i_print(text, sizeof text, "%.6g", value);
        fputs(text, json->file);
    } else {
        fputs("null", json->file);
    }
}
