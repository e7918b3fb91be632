/* SPDX-License-Identifier: MIT
 *
 * What the JSON writer writes is what the reader reads.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "support/harness.h"
#include "trace/trace.h"

/* Reads the file's tokens; returns how many there were. */
static size_t read_tokens(const char *path, enum iris_json_token *tokens,
                          char (*texts)[64], size_t most)
{
    struct iris_json *json = malloc(sizeof *json);
    size_t count = 0;

    assert_non_null(json);
    assert_int_equal(iris_i_json_open(json, path), 0);
    do {
        assert_true(count < most);
        tokens[count] = iris_i_json_next(json);
        snprintf(texts[count], sizeof texts[count], "%.63s", json->text);
    } while (tokens[count] != IRIS_JSON_END &&
             tokens[count++] != IRIS_JSON_ERROR);
    assert_string_equal(json->error, "");
    iris_i_json_close(json);
    free(json);
    return count;
}

static TEST(any_bytes_become_a_string_that_the_reader_takes)
{
    /* What is written, and what is read: bytes that are not UTF-8 become the
     * characters of their numbers. */
    static const char *const texts[][2] = {
        {"plain", "plain"},
        {"a \"quote\" and \\", "a \"quote\" and \\"},
        {"tab\tnew\nline\x01\x7f", "tab\tnew\nline\x01\x7f"},
        {"\u00fcber \u65e5\u672c \U0001f600",
         "\u00fcber \u65e5\u672c \U0001f600"},
        {"\xc0\xaf", "\u00c0\u00af"}, /* a longer form than needed */
        {"\xed\xa0\x80", "\u00ed\u00a0\xc2\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80",
         "\u00f4\xc2\x90\xc2\x80\xc2\x80"}, /* beyond U+10FFFF */
        {"cut \xe2\x82", "cut \u00e2\xc2\x82"},
        {"\xff", "\u00ff"},
        {"", ""},
    };
    enum { COUNT = sizeof texts / sizeof texts[0] };
    enum iris_json_token tokens[COUNT + 8];
    char path[300], read[COUNT + 8][64];
    struct iris_json_writer json;
    FILE *file;

    snprintf(path, sizeof path, "%s/texts.json", harness_folder());
    file = fopen(path, "we");
    assert_non_null(file);
    json = iris_i_json_writer(file);
    iris_i_json_begin(&json, NULL, '[');
    for (size_t i = 0; i < COUNT; i++) {
        iris_i_json_text(&json, NULL, texts[i][0]);
    }
    iris_i_json_end(&json);
    fclose(file);
    assert_int_equal(read_tokens(path, tokens, read, COUNT + 8), COUNT + 2);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(tokens[i + 1], IRIS_JSON_STRING);
        assert_string_equal(read[i + 1], texts[i][1]);
    }
    unlink(path);
}

static TEST(a_document_has_commas_where_they_belong)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    struct iris_json_writer json = iris_i_json_writer(file);

    iris_i_json_begin(&json, NULL, '{');
    iris_i_json_begin(&json, "none", '[');
    iris_i_json_end(&json);
    iris_i_json_int(&json, "least", INT64_MIN);
    iris_i_json_uint(&json, "most", UINT64_MAX);
    iris_i_json_begin(&json, "rows", '[');
    for (int i = 0; i < 2; i++) {
        iris_i_json_begin(&json, NULL, '{');
        iris_i_json_bool(&json, "is", i);
        iris_i_json_real(&json, "x", i == 0 ? 0.5 : (double)INFINITY);
        iris_i_json_text(&json, "text", NULL);
        iris_i_json_end(&json);
    }
    iris_i_json_end(&json);
    iris_i_json_end(&json);
    fclose(file);
    assert_string_equal(text,
                        "{\n \"none\": [], \"least\": -9223372036854775808, "
                        "\"most\": 18446744073709551615,\n"
                        " \"rows\": [\n"
                        "  {\"is\": false, \"x\": 0.5, \"text\": null},\n"
                        "  {\"is\": true, \"x\": null, \"text\": null}]}\n");
    free(text);
}

TEST_GROUP(unit);
