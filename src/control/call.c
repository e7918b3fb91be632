/* SPDX-License-Identifier: MIT
 *
 * The format of a posted call: writes, reads and describes it.
 */
#include "config.h"

#include "control/control.h"

#include <stdio.h>
#include <string.h>

uint64_t iris_i_call_text(const char *text)
{
    uint64_t word = 0;

    memcpy(&word, text, strnlen(text, sizeof word));
    return word;
}

/* Fields of kind TEXT end in '$'. "iris_malloc(bytes, alignment, offset)" */
static void sign(const struct iris_call_type *type,
                 char signature[IRIS_SIGNATURE_BYTES + 1])
{
    const size_t space = IRIS_SIGNATURE_BYTES + 1;
    size_t length = (size_t)snprintf(signature, space, "%s(", type->name);

    for (int i = 0;
         i < IRIS_CALL_FIELDS && type->fields[i].name != NULL && length < space;
         i++) {
        length += (size_t)snprintf(
            signature + length, space - length, "%s%s%s", i == 0 ? "" : ", ",
            type->fields[i].name,
            type->fields[i].kind == IRIS_FIELD_TEXT ? "$" : "");
    }
}

/* Drafts a call whose type differs from the last one's. */
static void draft_type(struct iris_draft *draft,
                       const struct iris_call_type *type)
{
    char signature[IRIS_SIGNATURE_BYTES + 1];
    struct iris_call_head head = {0};
    size_t at;

    while (head.num_fields < IRIS_CALL_FIELDS &&
           type->fields[head.num_fields].name != NULL) {
        head.num_fields++;
    }
    sign(type, signature);
    head.signature_bytes = (uint16_t)strlen(signature);
    at = sizeof head + head.num_fields * sizeof(uint64_t);
    memcpy(draft->data, &head, sizeof head);
    memcpy(draft->data + at, signature, head.signature_bytes);
    draft->bytes = at + head.signature_bytes;
    draft->type = type;
}

/* Programs mostly repeat the same calls. A repeated call only writes the parts
 * that may differ. */
static struct iris_draft *draft_of(struct iris_drafts *drafts,
                                   const struct iris_call_type *type)
{
    struct iris_draft *draft;

    for (int i = 0; i < IRIS_DRAFTS; i++) {
        if (drafts->of[i].type == type) {
            return &drafts->of[i];
        }
    }
    draft = &drafts->of[drafts->next++ % IRIS_DRAFTS];
    draft_type(draft, type);
    return draft;
}

const struct iris_draft *iris_i_call_draft(struct iris_drafts *drafts,
                                           const struct iris_call *call)
{
    struct iris_draft *draft = draft_of(drafts, call->type);
    struct iris_call_head head;

    memcpy(&head, draft->data, sizeof head);
    head.status = call->status;
    memcpy(draft->data, &head, sizeof head);
    memcpy(draft->data + sizeof head, call->fields,
           head.num_fields * sizeof call->fields[0]);
    return draft;
}

size_t iris_i_call_take_apart(const void *data, size_t bytes,
                              struct iris_posted_call *call_p)
{
    const unsigned char *next = data;
    size_t fields, all;

    memset(call_p, 0, sizeof *call_p);
    if (bytes < sizeof call_p->head) {
        return bytes;
    }
    memcpy(&call_p->head, next, sizeof call_p->head);
    next += sizeof call_p->head;
    fields = call_p->head.num_fields * sizeof call_p->fields[0];
    all = sizeof call_p->head + fields + call_p->head.signature_bytes;
    if (call_p->head.num_fields > IRIS_CALL_FIELDS ||
        call_p->head.signature_bytes > IRIS_SIGNATURE_BYTES || all > bytes) {
        call_p->head = (struct iris_call_head){.status = call_p->head.status};
        return bytes;
    }
    memcpy(call_p->fields, next, fields);
    memcpy(call_p->signature, next + fields, call_p->head.signature_bytes);
    return all;
}

int iris_i_call_is_same(const struct iris_posted_call *a,
                        const struct iris_posted_call *b)
{
    return strcmp(a->signature, b->signature) == 0 &&
           memcmp(a->fields, b->fields, sizeof a->fields) == 0;
}

void iris_i_call_describe(const struct iris_posted_call *call, char *text,
                          size_t bytes)
{
    const char *next = call->signature;
    const char *end = next + strlen(next);
    size_t length = strcspn(next, "(");
    int field = 0;

    snprintf(text, bytes, "%.*s(", (int)length, next);
    next += length + (next + length < end);
    while (next < end && field < IRIS_CALL_FIELDS) {
        int name = (int)strcspn(next, ",$");
        size_t at = strlen(text);

        if (next[name] == '$') {
            snprintf(text + at, bytes - at, "%s%.*s %.8s", field ? ", " : "",
                     name, next, (const char *)&call->fields[field]);
        } else {
            snprintf(text + at, bytes - at, "%s%.*s %lld", field ? ", " : "",
                     name, next, (long long)call->fields[field]);
        }
        next += strcspn(next, ",");
        next += strspn(next, ", ");
        field++;
    }
    length = strlen(text);
    snprintf(text + length, bytes - length, ")");
}
