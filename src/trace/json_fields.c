/* SPDX-License-Identifier: MIT
 *
 * Reads members of JSON objects into structs.
 */
#include "config.h"

#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

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
