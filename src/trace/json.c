/* SPDX-License-Identifier: MIT
 *
 * Reads JSON of any size token by token, from a file that may be compressed.
 *
 * The reader holds one token and a buffer; it never holds the document. It ends
 * at the first error, whose place it keeps for the message. Callers descend by
 * themselves, or read the members of an object into a struct by a table.
 */
#include "config.h"

#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
 * Reads JSON of any size token by token, from a file that may be compressed.
 */

#if HAVE_ZLIB
#include <zlib.h>
#endif

/* The tokens that may come next.
 *   VALUE   a value
 *   FIRST   the first value of an array, or its end
 *   KEY     a key
 *   NAMES   the first key of an object, or its end
 *   AFTER   a comma, or the end of the open value
 *   DONE    white space only */
enum { VALUE, FIRST, KEY, NAMES, AFTER, DONE };

uint64_t iris_i_json_offset(const struct iris_json *json)
{
    return json->base + json->position;
}

enum iris_json_token iris_i_json_fail(struct iris_json *json, const char *what)
{
    if (json->error[0] == '\0') {
        snprintf(json->error, sizeof json->error, "%.120s: byte %llu: %.100s",
                 json->path, (unsigned long long)iris_i_json_offset(json),
                 what);
    }
    return IRIS_JSON_ERROR;
}

/* ---- Bytes ---- */

/* Saves the kept text before the buffer is filled again. There is a limit: a
 * few compressed kilobytes may contain one string of hundreds of megabytes. */
static int save_kept(struct iris_json *json)
{
    size_t bytes = json->filled - json->kept_from;
    char *kept;

    if (json->kept_bytes + bytes > IRIS_JSON_KEPT) {
        iris_i_json_fail(json, "an event of more than 1 MiB");
        return -1;
    }
    if (json->kept_bytes + bytes + 1 > json->kept_capacity) {
        size_t capacity = 2 * (json->kept_bytes + bytes) + 4096;

        kept = realloc(json->kept, capacity);
        if (kept == NULL) {
            iris_i_json_fail(json, "no memory");
            return -1;
        }
        json->kept = kept;
        json->kept_capacity = capacity;
    }
    memcpy(json->kept + json->kept_bytes, json->buffer + json->kept_from,
           bytes);
    json->kept_bytes += bytes;
    json->kept_from = 0;
    return 0;
}

static int fill_buffer(struct iris_json *json)
{
    long got = 0;

    if (json->ended || (json->keeping && save_kept(json) != 0)) {
        return 0;
    }
    json->base += json->filled;
    json->position = json->filled = 0;
#if HAVE_ZLIB
    got = gzread(json->gz, json->buffer, sizeof json->buffer);
#else
    do {
        got = read(json->fd, json->buffer, sizeof json->buffer);
    } while (got < 0 && errno == EINTR);
#endif
    if (got < 0) {
        iris_i_json_fail(json, "the file cannot be read, or its compressed "
                               "data is damaged");
    }
    json->ended = got <= 0;
    json->filled = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* The next byte, without consuming it; -1: the file's end. */
static int peek_byte(struct iris_json *json)
{
    return json->position < json->filled || fill_buffer(json)
               ? (unsigned char)json->buffer[json->position]
               : -1;
}

static int take_byte(struct iris_json *json)
{
    int c = peek_byte(json);

    json->position += c >= 0;
    return c;
}

static void put_byte(struct iris_json *json, int c)
{
    if (json->length + 1 < sizeof json->text) {
        json->text[json->length++] = (char)c;
    }
}

/* ---- Strings, numbers, words ---- */

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Four hexadecimal digits; -1: an error. */
static long take_code(struct iris_json *json)
{
    long code = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(take_byte(json));

        if (digit < 0) {
            return -1;
        }
        code = code << 4 | digit;
    }
    return code;
}

static void put_utf8(struct iris_json *json, long code)
{
    if (code < 0x80) {
        put_byte(json, (int)code);
    } else if (code < 0x800) {
        put_byte(json, (int)(0xc0 | code >> 6));
        put_byte(json, (int)(0x80 | (code & 0x3f)));
    } else {
        put_byte(json, (int)(0xe0 | code >> 12));
        put_byte(json, (int)(0x80 | (code >> 6 & 0x3f)));
        put_byte(json, (int)(0x80 | (code & 0x3f)));
    }
}

static int take_escape(struct iris_json *json)
{
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    int c = take_byte(json);
    const char *name = c > 0 ? strchr(names, c) : NULL;
    long code;

    if (name != NULL) {
        put_byte(json, codes[name - names]);
        return 0;
    }
    code = c == 'u' ? take_code(json) : -1;
    if (code < 0) {
        return -1;
    }
    put_utf8(json, code);
    return 0;
}

static enum iris_json_token take_string(struct iris_json *json,
                                        enum iris_json_token token)
{
    int c;

    while ((c = take_byte(json)) != '"') {
        if (c < 0) {
            return iris_i_json_fail(json, "the file ends inside of a string");
        }
        if (c < 0x20) {
            return iris_i_json_fail(json, "a control character in a string");
        }
        if (c != '\\') {
            put_byte(json, c);
        } else if (take_escape(json) != 0) {
            return iris_i_json_fail(json, "an invalid escape");
        }
    }
    json->text[json->length] = '\0';
    return token;
}

static size_t take_digits(struct iris_json *json)
{
    size_t count = 0;

    while (peek_byte(json) >= '0' && peek_byte(json) <= '9') {
        put_byte(json, take_byte(json));
        count++;
    }
    return count;
}

static enum iris_json_token take_number(struct iris_json *json)
{
    int right;

    if (peek_byte(json) == '-') {
        put_byte(json, take_byte(json));
    }
    if (peek_byte(json) == '0') {
        put_byte(json, take_byte(json));
        right = 1;
    } else {
        right = take_digits(json) > 0;
    }
    if (right && peek_byte(json) == '.') {
        put_byte(json, take_byte(json));
        right = take_digits(json) > 0;
    }
    if (right && (peek_byte(json) == 'e' || peek_byte(json) == 'E')) {
        put_byte(json, take_byte(json));
        if (peek_byte(json) == '+' || peek_byte(json) == '-') {
            put_byte(json, take_byte(json));
        }
        right = take_digits(json) > 0;
    }
    json->text[json->length] = '\0';
    return right ? IRIS_JSON_NUMBER
                 : iris_i_json_fail(json, "an invalid number");
}

static enum iris_json_token take_word(struct iris_json *json)
{
    while (peek_byte(json) >= 'a' && peek_byte(json) <= 'z') {
        put_byte(json, take_byte(json));
    }
    json->text[json->length] = '\0';
    if (strcmp(json->text, "true") == 0 || strcmp(json->text, "false") == 0 ||
        strcmp(json->text, "null") == 0) {
        return IRIS_JSON_WORD;
    }
    return iris_i_json_fail(json, iris_i_json_offset(json) == json->length
                                      ? "the file is not JSON; pass another one"
                                      : "neither a value nor the end of one");
}

/* ---- Structure ---- */

static int skip_space(struct iris_json *json)
{
    int c;

    while ((c = peek_byte(json)) == ' ' || c == '\n' || c == '\r' ||
           c == '\t') {
        json->position++;
    }
    return c;
}

static void set_after(struct iris_json *json)
{
    json->state = json->depth == 0 ? DONE : AFTER;
}

static enum iris_json_token open_one(struct iris_json *json, int c)
{
    if (json->depth == IRIS_JSON_DEPTH) {
        return iris_i_json_fail(json, "nested too deep");
    }
    json->stack[json->depth++] = (char)c;
    json->state = c == '{' ? NAMES : FIRST;
    return c == '{' ? IRIS_JSON_OBJECT : IRIS_JSON_ARRAY;
}

static enum iris_json_token close_one(struct iris_json *json, int c)
{
    if (json->stack[json->depth - 1] != (c == '}' ? '{' : '[')) {
        return iris_i_json_fail(json, "the wrong bracket");
    }
    json->depth--;
    set_after(json);
    return c == '}' ? IRIS_JSON_OBJECT_END : IRIS_JSON_ARRAY_END;
}

static enum iris_json_token take_key(struct iris_json *json)
{
    enum iris_json_token token;

    if (take_byte(json) != '"') {
        return iris_i_json_fail(json, "no key where one must be");
    }
    token = take_string(json, IRIS_JSON_KEY);
    if (token == IRIS_JSON_KEY &&
        (skip_space(json) != ':' || take_byte(json) < 0)) {
        return iris_i_json_fail(json, "no colon behind a key");
    }
    json->state = VALUE;
    return token;
}

static enum iris_json_token take_value(struct iris_json *json, int c)
{
    if (c == '{' || c == '[') {
        json->position++;
        return open_one(json, c);
    }
    set_after(json);
    if (c == '"') {
        json->position++;
        return take_string(json, IRIS_JSON_STRING);
    }
    return c == '-' || (c >= '0' && c <= '9') ? take_number(json)
                                              : take_word(json);
}

/* After a value: a comma requires another value. */
static int take_comma(struct iris_json *json)
{
    json->position++;
    json->state = json->stack[json->depth - 1] == '{' ? KEY : VALUE;
    return skip_space(json);
}

enum iris_json_token iris_i_json_next(struct iris_json *json)
{
    int c = skip_space(json);

    json->length = 0;
    json->text[0] = '\0';
    if (json->error[0] != '\0') {
        return IRIS_JSON_ERROR;
    }
    if (json->state == DONE) {
        return c < 0 ? IRIS_JSON_END
                     : iris_i_json_fail(json, "something behind the end");
    }
    if (c < 0) {
        return iris_i_json_fail(json, "the file ends too early");
    }
    if ((c == '}' && (json->state == NAMES || json->state == AFTER)) ||
        (c == ']' && (json->state == FIRST || json->state == AFTER))) {
        json->position++;
        return close_one(json, c);
    }
    if (json->state == AFTER) {
        if (c != ',') {
            return iris_i_json_fail(json, "no comma between two values");
        }
        c = take_comma(json);
    }
    return json->state == KEY || json->state == NAMES ? take_key(json)
                                                      : take_value(json, c);
}

enum iris_json_token iris_i_json_skip(struct iris_json *json,
                                      enum iris_json_token token)
{
    int depth = json->depth;

    if (token != IRIS_JSON_OBJECT && token != IRIS_JSON_ARRAY) {
        return token;
    }
    while (json->depth >= depth) {
        token = iris_i_json_next(json);
        if (token == IRIS_JSON_ERROR) {
            break;
        }
    }
    return token;
}

/* ---- Keeping, opening, closing ---- */

void iris_i_json_keep(struct iris_json *json)
{
    json->keeping = 1;
    json->kept_bytes = 0;
    json->kept_from = json->position > 0 ? json->position - 1 : 0;
}

const char *iris_i_json_kept(struct iris_json *json, size_t *bytes_p)
{
    size_t filled = json->filled;

    json->filled = json->position;
    json->keeping = 0;
    *bytes_p = 0;
    if (save_kept(json) == 0) {
        *bytes_p = json->kept_bytes;
    }
    json->filled = filled;
    return json->kept;
}

int iris_i_json_open(struct iris_json *json, const char *path)
{
    memset(json, 0, offsetof(struct iris_json, buffer));
    json->path = path;
    json->fd =
        strcmp(path, "-") == 0 ? dup(0) : open(path, O_RDONLY | O_CLOEXEC);
    if (json->fd < 0) {
        snprintf(json->error, sizeof json->error, "%.120s: %s", path,
                 strerror(errno));
        return -1;
    }
#if HAVE_ZLIB
    json->gz = gzdopen(json->fd, "rb");
    if (json->gz == NULL) {
        close(json->fd);
        snprintf(json->error, sizeof json->error, "no memory");
        return -1;
    }
    (void)gzbuffer(json->gz, 1 << 17);
#endif
    return 0;
}

void iris_i_json_close(struct iris_json *json)
{
#if HAVE_ZLIB
    if (json->gz != NULL) {
        gzclose(json->gz);
    }
#else
    if (json->fd >= 0) {
        close(json->fd);
    }
#endif
    free(json->kept);
    json->kept = NULL;
}

/* ---------------------------------------------------------------------------
 * Reads members of JSON objects into structs.
 */

void iris_i_json_set_text(const struct iris_json *json, void *to, size_t bytes)
{
    size_t length = json->length < bytes - 1 ? json->length : bytes - 1;

    memcpy(to, json->text, length);
    ((char *)to)[length] = '\0';
}

void iris_i_json_set_number(const struct iris_json *json, void *to,
                            size_t bytes)
{
    uint64_t number = strtoull(json->text, NULL, 0); /* or a negative number */

    if (bytes == sizeof number) {
        memcpy(to, &number, sizeof number);
    } else {
        *(int *)to = (int)number;
    }
}

const struct iris_json_field *
iris_i_json_find(const struct iris_json *json,
                 const struct iris_json_field *fields)
{
    while (fields->name != NULL && strcmp(fields->name, json->text) != 0) {
        fields++;
    }
    return fields->name == NULL ? NULL : fields;
}

enum iris_json_token iris_i_json_set(struct iris_json *json,
                                     enum iris_json_token token,
                                     const struct iris_json_field *field,
                                     void *to)
{
    if (field != NULL &&
        (token == IRIS_JSON_STRING || token == IRIS_JSON_NUMBER)) {
        field->set(json, (char *)to + field->offset, field->bytes);
    }
    return iris_i_json_skip(json, token);
}

int iris_i_json_members(struct iris_json *json,
                        const struct iris_json_field *fields, void *to)
{
    enum iris_json_token token;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        const struct iris_json_field *field = iris_i_json_find(json, fields);

        if (iris_i_json_set(json, iris_i_json_next(json), field, to) ==
            IRIS_JSON_ERROR) {
            return -1;
        }
    }
    return token == IRIS_JSON_OBJECT_END ? 0 : -1;
}
