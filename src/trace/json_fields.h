/* SPDX-License-Identifier: MIT
 *
 * Reads members of JSON objects into structs.
 */
#ifndef IRIS_SRC_TRACE_JSON_FIELDS_H
#define IRIS_SRC_TRACE_JSON_FIELDS_H

#include "trace/json_reader.h"

/* A member of an object, and the struct member that it is read into. */
struct iris_json_field {
    const char *name; /* NULL: end of the list */
    /* Stores the text of a string or a number. */
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
/* Stores into an int, or into a 64-bit integer. */
void iris_i_json_set_number(const struct iris_json *json, void *to,
                            size_t bytes);

/* The field of the key just read; NULL: unknown. The second function then reads
 * a value with the first token `token`, into the struct if there is a field. */
const struct iris_json_field *
iris_i_json_find(const struct iris_json *json,
                 const struct iris_json_field *fields);
enum iris_json_token iris_i_json_set(struct iris_json *json,
                                     enum iris_json_token token,
                                     const struct iris_json_field *field,
                                     void *to);

/* Reads all members of an object whose begin was read. Returns 0, or -1 after
 * an error. */
int iris_i_json_members(struct iris_json *json,
                        const struct iris_json_field *fields, void *to);

#endif /* IRIS_SRC_TRACE_JSON_FIELDS_H */
