/* SPDX-License-Identifier: MIT
 *
 * Reads the posts of a group's members for an agreement.
 */
#include "config.h"

#include "control/control.h"

#include <string.h>

struct iris_post_id iris_i_posts_id(const struct iris_members *members,
                                    int rank)
{
    return (struct iris_post_id){members->place, rank, members->seq};
}

int iris_i_agree_has_come(const struct iris_members *members, int rank)
{
    const struct iris_post_id id = iris_i_posts_id(members, rank);

    return members->control->ops->posted(members->control, &id);
}

size_t iris_i_posts_collect(const struct iris_members *members, int rank,
                            size_t at, void *to, size_t bytes)
{
    const struct iris_post_id id = iris_i_posts_id(members, rank);

    return members->control->ops->collect(members->control, &id, at, to, bytes);
}

size_t iris_i_posts_take_apart(const struct iris_members *members, int rank,
                               struct iris_posted_call *call_p)
{
    unsigned char data[IRIS_DRAFT_BYTES];
    size_t bytes = iris_i_posts_collect(members, rank, 0, data, sizeof data);

    return iris_i_call_take_apart(data, bytes, call_p);
}

size_t iris_i_agree_payload(const struct iris_members *members, int rank,
                            void *to, size_t bytes)
{
    struct iris_call_head head = {0};
    size_t at, all = iris_i_posts_collect(members, rank, 0, &head, sizeof head);

    at =
        sizeof head + head.num_fields * sizeof(uint64_t) + head.signature_bytes;
    if (head.status != IRIS_OK || at >= all) {
        return 0;
    }
    (void)iris_i_posts_collect(members, rank, at, to, bytes);
    return all - at < IRIS_PAYLOAD_BYTES ? all - at : IRIS_PAYLOAD_BYTES;
}

int iris_i_agree_all_called(const struct iris_members *members)
{
    struct iris_posted_call own, theirs;

    (void)iris_i_posts_take_apart(members, members->control->rank, &own);
    for (int i = 0; i < members->count; i++) {
        (void)iris_i_posts_take_apart(members, members->ranks[i], &theirs);
        if (own.signature[0] == '\0' ||
            strcmp(own.signature, theirs.signature) != 0) {
            return 0;
        }
    }
    return 1;
}
