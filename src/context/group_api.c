/* SPDX-License-Identifier: MIT
 *
 * What programs ask about groups.
 */
#include "config.h"

#include "context/context.h"

static const struct iris_group *find_group(const iris_t *iris,
                                           const iris_group_t *group)
{
    struct iris_group *found = NULL;

    if (iris_i_enter(iris, "a group call") == IRIS_OK) {
        iris_i_group_resolve(iris, group, &found);
    }
    return found;
}

int iris_group_size(const iris_t *iris, const iris_group_t *group)
{
    const struct iris_group *found = find_group(iris, group);

    return found == NULL ? -1 : found->members.count;
}

int iris_group_index(const iris_t *iris, const iris_group_t *group)
{
    const struct iris_group *found = find_group(iris, group);

    return found == NULL ? -1 : found->index;
}

int iris_group_member(const iris_t *iris, const iris_group_t *group, int index)
{
    const struct iris_group *found = find_group(iris, group);

    return found == NULL || index < 0 || index >= found->members.count
               ? -1
               : found->ranks[index];
}

struct iris_dev_group *iris_group_device(const iris_t *iris,
                                         const iris_group_t *group)
{
    const struct iris_group *found = find_group(iris, group);

    return found == NULL ? NULL : found->device;
}

int iris_group_translate(const iris_t *iris, const iris_group_t *from,
                         int index, const iris_group_t *to)
{
    const struct iris_group *found = find_group(iris, to);
    int rank = iris_group_member(iris, from, index);

    for (int i = 0; found != NULL && rank >= 0 && i < found->members.count;
         i++) {
        if (found->ranks[i] == rank) {
            return i;
        }
    }
    return -1;
}
