/* SPDX-License-Identifier: MIT
 *
 * Members of JSON objects that become those of structs.
 */
#ifndef IRIS_SRC_TRACE_JSON_FIELDS_H
#define IRIS_SRC_TRACE_JSON_FIELDS_H

#include "trace/json_reader.h"

/* A member of an object that becomes one of a struct. */
struct iris_json_field {
    const char *name; /* NULL: the end of a list */
    /* Takes the text of a string or a number. */
    void (*set)(const struct iris_json *json, void *to, size_t bytes);
    size_t offset, bytes;
};
#define IRIS_JSON_FIELD_OF(type, name, member, set)                    \
    {                                                                  \
        name, set, offsetof(type, member), sizeof(((type *)0)->member) \
    }
#define IRIS_JSON_FIELD(type, member, set) \
    IRIS_JSON_FIELD_OF(type, #member, member, set)

void iris_i_json_set_text(const struct iris_json *json, void *to, size_t bytes);
/* To an int, or to a number of 64 bits. */
void iris_i_json_set_number(const struct iris_json *json, void *to,
                            size_t bytes);

/* Once a key has been read: its field; NULL: there is none. Then reads a value
 * whose first token was `token`, into the struct if there is a field. */
const struct iris_json_field *
iris_i_json_find(const struct iris_json *json,
                 const struct iris_json_field *fields);
enum iris_json_token iris_i_json_set(struct iris_json *json,
                                     enum iris_json_token token,
                                     const struct iris_json_field *field,
                                     void *to);

/* Reads all members of an object that has begun. 0; -1: an error. */
int iris_i_json_members(struct iris_json *json,
                        const struct iris_json_field *fields, void *to);

#endif /* IRIS_SRC_TRACE_JSON_FIELDS_H */
