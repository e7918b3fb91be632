/* SPDX-License-Identifier: MIT
 *
 * The public calls about groups: collective creation by the whole job,
 * destruction, and queries.
 */
#include "config.h"

#include "context/context.h"

#include <stdlib.h>
#include <string.h>

static const struct iris_call_type create_call = {.name = "iris_group_create"};
static const struct iris_call_type destroy_call = {.name =
                                                       "iris_group_destroy"};

/* This rank's own list: ranks in range, no duplicates, and this rank among
 * them. */
static iris_status_t check_list(const iris_t *iris, const int *ranks, int count)
{
    int index = -1;

    if (count < 0 || count > iris->log.num_ranks ||
        (count > 0 && ranks == NULL)) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "a group of %d members in a job of %d ranks; list each "
            "member once, or pass count 0",
            count, iris->log.num_ranks);
    }
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= iris->log.num_ranks) {
            return iris_i_fail(
                &iris->log, IRIS_ERR_INVALID,
                "member %d of the group is rank %d; list ranks 0 "
                "to %d",
                i, ranks[i], iris->log.num_ranks - 1);
        }
        for (int j = 0; j < i; j++) {
            if (ranks[j] == ranks[i]) {
                return iris_i_fail(
                    &iris->log, IRIS_ERR_INVALID,
                    "rank %d is in the group twice; list it once", ranks[i]);
            }
        }
        index = ranks[i] == iris->log.rank ? i : index;
    }
    if (count > 0 && index < 0) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "rank %d is not in the list it passes; pass the "
                           "group it will be in, or count 0 for no group",
                           iris->log.rank);
    }
    return IRIS_OK;
}

/* Posts of ranks (a list), and of rank 0 (places). */
_Static_assert(IRIS_RANKS_MAX * sizeof(uint16_t) <= IRIS_PAYLOAD_BYTES,
               "a payload names every rank");

static size_t posted(const iris_t *iris, int rank,
                     uint16_t list[IRIS_RANKS_MAX])
{
    return iris_i_agree_payload(&iris->world->members, rank, list,
                                IRIS_RANKS_MAX * sizeof *list) /
           sizeof *list;
}

/* Every rank checks every list, so all come to the same verdict: a rank in a
 * list must have posted that very list. */
static iris_status_t compare_lists(const iris_t *iris)
{
    uint16_t list[IRIS_RANKS_MAX], other[IRIS_RANKS_MAX];

    for (int rank = 0; rank < iris->log.num_ranks; rank++) {
        size_t count = posted(iris, rank, list), other_count;

        for (size_t i = 0; i < count; i++) {
            other_count = list[i] < iris->log.num_ranks
                              ? posted(iris, list[i], other)
                              : 0;
            if (other_count != count ||
                memcmp(other, list, count * sizeof *list) != 0) {
                return iris_i_fail(&iris->log, IRIS_ERR_MISMATCH,
                                   "iris_group_create: rank %d lists rank %d, "
                                   "which passed another list; members of one "
                                   "group pass the same ranks in the same "
                                   "order",
                                   rank, list[i]);
            }
        }
    }
    return IRIS_OK;
}

/* Finds a free place after `place` and prepares it. */
static iris_status_t find_place(iris_t *iris, int *place)
{
    while (++*place < IRIS_PLACES) {
        int is_free = 0;
        iris_status_t status =
            iris_i_control_place_prepare(iris->control, *place, &is_free);

        if (status != IRIS_OK || is_free) {
            return status;
        }
    }
    return iris_i_fail(&iris->log, IRIS_ERR_LIMIT,
                       "%d groups are live already; destroy some",
                       IRIS_PLACES - 1);
}

/* Rank 0's part: a place for each list that the ranks have just posted, written
 * for each rank of the list; 0 for a rank in no group. */
static iris_status_t assign_places(iris_t *iris, uint16_t *places)
{
    uint16_t list[IRIS_RANKS_MAX];
    int place = 0;

    for (int rank = 0; rank < iris->log.num_ranks; rank++) {
        size_t count = posted(iris, rank, list);
        iris_status_t status;

        if (count == 0 || list[0] != rank) {
            continue;
        }
        status = find_place(iris, &place);
        if (status != IRIS_OK) {
            return status;
        }
        for (size_t i = 0; i < count; i++) {
            places[list[i]] = (uint16_t)place;
        }
    }
    return IRIS_OK;
}

/* Rank 0 picks a place for each group, and all ranks learn theirs. */
static iris_status_t agree_on_place(iris_t *iris, int *place_p)
{
    struct iris_call call = {.type = &create_call};
    uint16_t places[iris->log.num_ranks], places_of_all[IRIS_RANKS_MAX];
    iris_status_t status;

    if (iris->log.rank == 0) {
        memset(places, 0, sizeof places);
        call.status = assign_places(iris, places);
        call.payload = places;
        call.payload_bytes = sizeof places;
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status == IRIS_OK) {
        (void)posted(iris, 0, places_of_all);
        *place_p = places_of_all[iris->log.rank];
    }
    return status;
}

/* After the lists agree: a place, then an agreement that every rank has set it
 * up. */
static iris_status_t establish(iris_t *iris, struct iris_group *group)
{
    struct iris_control *control = iris->control;
    struct iris_call call = {.type = &create_call};
    int takes_part = group->members.count > 0;
    iris_status_t status = agree_on_place(iris, &group->members.place);

    if (status != IRIS_OK) {
        return status;
    }
    if (takes_part) {
        call.status = iris_i_control_place_hold(control, group->members.place,
                                                group->members.ranks,
                                                group->members.count);
    }
    if (takes_part && call.status == IRIS_OK) {
        call.status = iris_i_group_write_device(iris, group);
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status != IRIS_OK && takes_part) {
        iris_i_control_place_release(control, group->members.place);
    }
    return status;
}

/* This rank's part: checks its list and allocates the group. */
static iris_status_t prepare(iris_t *iris, const int *ranks, int count,
                             uint16_t *list, struct iris_group **made_p)
{
    iris_status_t status = check_list(iris, ranks, count);

    if (status != IRIS_OK) {
        return status;
    }
    *made_p = iris_i_group_make(iris, ranks, count);
    if (*made_p == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (int i = 0; i < count; i++) {
        list[i] = (uint16_t)ranks[i];
    }
    return IRIS_OK;
}

static iris_status_t create(iris_t *iris, const int *ranks, int count,
                            iris_group_t **group_p)
{
    struct iris_call call = {.type = &create_call};
    struct iris_group *group = NULL;
    uint16_t list[IRIS_RANKS_MAX];
    iris_status_t status;

    call.status =
        group_p == NULL
            ? iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                          "group_p is NULL; pass where to put the group")
            : prepare(iris, ranks, count, list, &group);
    if (call.status == IRIS_OK) {
        call.payload = list;
        call.payload_bytes = (size_t)count * sizeof list[0];
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status == IRIS_OK) {
        status = compare_lists(iris);
    }
    if (status == IRIS_OK) {
        status = establish(iris, group);
    }
    if (status != IRIS_OK || count == 0) {
        free(group);
        group = NULL;
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (group != NULL) {
        pthread_mutex_lock(&iris->groups_lock);
        group->next = iris->groups;
        iris->groups = group;
        pthread_mutex_unlock(&iris->groups_lock);
    }
    *group_p = group;
    return IRIS_OK;
}

iris_status_t iris_group_create(iris_t *iris, const int *ranks, int count,
                                iris_group_t **group_p)
{
    struct iris_host_event event = {.op = IRIS_HOST_GROUP_CREATE,
                                    .target_rank = -1};
    iris_status_t status = iris_i_enter(iris, "iris_group_create");

    if (status != IRIS_OK) {
        return status;
    }
    event.rank = iris->log.rank;
    iris_i_hooks_before(&iris->hooks, &event);
    status = create(iris, ranks, count, group_p);
    event.group = status == IRIS_OK ? *group_p : NULL;
    return iris_i_hooks_after(&iris->hooks, &event, status);
}

/* Errors that leave the group unchanged on every member, so that they may go
 * on. */
static int may_go_on(iris_status_t status)
{
    return status != IRIS_OK && status != IRIS_ERR_PEER_LOST &&
           status != IRIS_ERR_TIMEOUT && status != IRIS_ERR_INTERRUPTED;
}

static iris_status_t destroy(iris_t *iris, struct iris_group *group)
{
    struct iris_call call = {.type = &destroy_call};
    struct iris_group **link;
    iris_status_t status = iris_i_agree(&group->members, &call);

    if (may_go_on(status)) {
        return status;
    }
    pthread_mutex_lock(&iris->groups_lock);
    for (link = &iris->groups; *link != group; link = &(*link)->next) {
    }
    *link = group->next;
    pthread_mutex_unlock(&iris->groups_lock);
    iris_i_control_place_release(iris->control, group->members.place);
    iris_i_extension_close(group->ccl);
    iris_i_extension_close(group->ops);
    free(group);
    return status;
}

iris_status_t iris_group_destroy(iris_t *iris, iris_group_t *group)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_GROUP_DESTROY, .target_rank = -1, .group = group};
    struct iris_group *found;
    iris_status_t status =
        iris_i_group_enter(iris, "iris_group_destroy", group, &found);

    if (status != IRIS_OK || group == NULL) {
        return status;
    }
    event.rank = iris->log.rank;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(&iris->hooks, &event, destroy(iris, found));
}

/* ---- Queries ---- */

static const struct iris_group *find_group(const iris_t *iris,
                                           const iris_group_t *group)
{
    struct iris_group *found = NULL;

    (void)iris_i_group_enter(iris, "a group call", group, &found);
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
