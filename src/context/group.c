/* SPDX-License-Identifier: MIT
 *
 * Groups: creation by agreement of the whole job, and their device halves.
 */
#include "config.h"

#include "context/group.h"

#include <iris/device/layout.h>

#include "context/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iris_status_t iris_i_group_resolve(const iris_t *iris,
                                   const iris_group_t *group,
                                   struct iris_group **group_p)
{
    /* The lock is no part of what a const context promises to keep. */
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&iris->groups_lock;
    struct iris_group *g;

    if (group == NULL) {
        *group_p = iris->world;
        return IRIS_OK;
    }
    pthread_mutex_lock(lock);
    for (g = iris->groups; g != NULL && g != group; g = g->next) {
    }
    pthread_mutex_unlock(lock);
    if (g == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "group %p is not a live group of this context; pass "
                           "one that iris_group_create gave, or NULL",
                           (const void *)group);
    }
    *group_p = g;
    return IRIS_OK;
}

/* The member whose arrival the word is; -1: none's. */
static int find_late(const struct iris_group *group, const void *word)
{
    size_t count = (size_t)group->members.count;
    size_t from = (size_t)((uintptr_t)word - (uintptr_t)group->device);
    size_t first = iris_i_group_arrivals(count);

    return from >= first && from < iris_i_group_bytes(count)
               ? group->ranks[(from - first) / sizeof(uint64_t)]
               : -1;
}

static int note(const struct iris_group *group, const void *word,
                struct iris_record_wait *wait)
{
    int late = find_late(group, word);

    if (late < 0 &&
        (uintptr_t)word - group->workspace >= group->workspace_bytes) {
        return 0;
    }
    if (late >= 0) {
        wait->kind = IRIS_WAIT_BARRIER;
        wait->num_expected = 1;
        wait->expected[0] = (int16_t)late;
    }
    wait->group = group->members.place;
    iris_i_record_members(wait, group->ranks, group->members.count);
    return 1;
}

void iris_i_group_note(iris_t *iris, const void *word,
                       struct iris_record_wait *wait)
{
    const struct iris_group *group = iris->world;
    int found;

    pthread_mutex_lock(&iris->groups_lock);
    found = note(group, word, wait);
    for (group = iris->groups; group != NULL && !found; group = group->next) {
        found = note(group, word, wait);
    }
    pthread_mutex_unlock(&iris->groups_lock);
}

void iris_i_group_set_workspace(iris_t *iris, struct iris_group *group,
                                const void *memory, size_t bytes)
{
    pthread_mutex_lock(&iris->groups_lock);
    group->workspace = (uintptr_t)memory;
    group->workspace_bytes = bytes;
    pthread_mutex_unlock(&iris->groups_lock);
}

void iris_i_group_describe_late(void *core, const void *word, char *text,
                                size_t bytes)
{
    struct iris_record_wait wait = {.num_expected = 0};

    iris_i_group_note(core, word, &wait);
    text[0] = '\0';
    if (wait.num_expected > 0) {
        snprintf(text, bytes, "rank %d has not come to it", wait.expected[0]);
    }
}

static const struct iris_call_type create_call = {.name = "iris_group_create"};
static const struct iris_call_type destroy_call = {.name =
                                                       "iris_group_destroy"};

/* Writes the device half: epochs 0, nobody has arrived. */
static iris_status_t write_device(iris_t *iris, struct iris_group *group)
{
    size_t count = (size_t)group->members.count,
           bytes = iris_i_group_bytes(count);
    struct iris_dev_group *device = calloc(1, bytes);
    uint64_t offset; /* of the arrivals in every member's heap */
    iris_status_t status;

    if (device == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a group");
    }
    group->device = iris_i_layout_group(iris, group->members.place);
    offset = (uint64_t)(uintptr_t)group->device + iris_i_group_arrivals(count) -
             (uint64_t)iris->heap.bases[iris->log.rank];
    device->count = group->members.count;
    device->index = group->index;
    device->arrivals = (uint64_t)iris->heap.bases[iris->log.rank] + offset;
    for (size_t i = 0; i < count; i++) {
        int rank = group->ranks[i];

        iris_i_group_ranks(device)[i] = (uint64_t)rank;
        if (iris->heap.bases[rank] == 0) {
            group->unreachable = rank;
            continue;
        }
        device->words[2 * i] = (uint64_t)iris->heap.bases[rank] + offset +
                               (uint64_t)group->index * sizeof device->words[0];
    }
    status = iris_i_heap_copy(&iris->heap, group->device, device, bytes);
    free(device);
    return status;
}

static struct iris_group *make(iris_t *iris, int count)
{
    struct iris_group *group =
        calloc(1, sizeof *group + (size_t)count * sizeof group->ranks[0]);

    if (group == NULL) {
        iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY, "no memory for a group");
        return NULL;
    }
    group->members.control = iris->control;
    group->members.ranks = group->ranks;
    group->members.count = count;
    group->unreachable = -1;
    return group;
}

iris_status_t iris_i_group_make_world(iris_t *iris)
{
    struct iris_group *world = make(iris, iris->log.num_ranks);

    if (world == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (int rank = 0; rank < iris->log.num_ranks; rank++) {
        world->ranks[rank] = rank;
    }
    world->index = iris->log.rank;
    iris->world = world;
    return IRIS_OK;
}

iris_status_t iris_i_group_open_world(iris_t *iris)
{
    return write_device(iris, iris->world);
}

iris_status_t iris_i_group_check_reachable(const iris_t *iris,
                                           const struct iris_group *group,
                                           const char *call)
{
    return group->unreachable < 0 ? IRIS_OK
                                  : iris_i_heap_check_reachable(
                                        &iris->heap, call, group->unreachable);
}

void iris_i_group_close_all(iris_t *iris)
{
    while (iris->groups != NULL) {
        struct iris_group *group = iris->groups;

        iris->groups = group->next;
        iris_i_extension_close(group->ccl);
        free(group);
    }
    if (iris->world != NULL) {
        iris_i_extension_close(iris->world->ccl);
    }
    free(iris->world);
}

/* This rank's own list: in range, nobody twice, itself among them. */
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
                           "group it will be in, or count 0 for none",
                           iris->log.rank);
    }
    return IRIS_OK;
}

/* What ranks post of a list, and rank 0 of places. */
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

/* A place behind `place` that nobody holds, made ready. */
static iris_status_t find_place(iris_t *iris, int *place)
{
    while (++*place < IRIS_PLACES) {
        int is_free = 0;
        iris_status_t status =
            iris->control->ops->place_prepare(iris->control, *place, &is_free);

        if (status != IRIS_OK || is_free) {
            return status;
        }
    }
    return iris_i_fail(&iris->log, IRIS_ERR_LIMIT,
                       "%d groups are live already; destroy some",
                       IRIS_PLACES - 1);
}

/* Rank 0's part: a place for each list the ranks have just posted, written for
 * each rank of the list; 0 for a rank in no group. */
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

/* Rank 0 picks a place for each group, all learn theirs. */
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

/* After the lists agree: a place, then everyone's word that it is set up. */
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
        control->ops->place_hold(control, group->members.place);
        call.status = write_device(iris, group);
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status != IRIS_OK && takes_part) {
        control->ops->place_release(control, group->members.place);
    }
    return status;
}

/* This rank's part: its list is in order, and there is memory for the group. */
static iris_status_t prepare(iris_t *iris, const int *ranks, int count,
                             uint16_t *list, struct iris_group **made_p)
{
    iris_status_t status = check_list(iris, ranks, count);

    if (status != IRIS_OK) {
        return status;
    }
    *made_p = make(iris, count);
    if (*made_p == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (int i = 0; i < count; i++) {
        list[i] = (uint16_t)ranks[i];
        (*made_p)->ranks[i] = ranks[i];
        (*made_p)->index = ranks[i] == iris->log.rank ? i : (*made_p)->index;
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

/* What leaves the group as it was, on every member, so that they may go on. */
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
    iris->control->ops->place_release(iris->control, group->members.place);
    iris_i_extension_close(group->ccl);
    free(group);
    return status;
}

iris_status_t iris_group_destroy(iris_t *iris, iris_group_t *group)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_GROUP_DESTROY, .target_rank = -1, .group = group};
    iris_status_t status = iris_i_enter(iris, "iris_group_destroy");

    if (status != IRIS_OK || group == NULL) {
        return status;
    }
    status = iris_i_group_resolve(iris, group, &group);
    if (status != IRIS_OK) {
        return status;
    }
    event.rank = iris->log.rank;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(&iris->hooks, &event, destroy(iris, group));
}
