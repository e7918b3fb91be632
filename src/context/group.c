/* SPDX-License-Identifier: MIT
 *
 * Groups: creation by agreement of the whole job, and their device halves.
 */
#include "config.h"

#include "context/group.h"

#include <iris/device/layout.h>

#include "context/context.h"
#include "heap/heap.h"
#include "base/log.h"
#include "control/agree.h"

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
    size_t count = (size_t)group->count;
    size_t from = (size_t)((uintptr_t)word - (uintptr_t)group->device);
    size_t first = iris_i_group_arrivals(count);

    return from >= first && from < iris_i_group_bytes(count)
               ? group->members[(from - first) / sizeof(uint64_t)]
               : -1;
}

void iris_i_group_describe_late(void *core, const void *word, char *text,
                                size_t bytes)
{
    iris_t *iris = core;
    const struct iris_group *group = iris->world;
    int late;

    text[0] = '\0';
    pthread_mutex_lock(&iris->groups_lock);
    late = find_late(group, word);
    for (group = iris->groups; group != NULL && late < 0; group = group->next) {
        late = find_late(group, word);
    }
    if (late >= 0) {
        snprintf(text, bytes, "rank %d has not come to it", late);
    }
    pthread_mutex_unlock(&iris->groups_lock);
}

/* Writes the device half: epochs 0, nobody has arrived. */
static iris_status_t write_device(iris_t *iris, struct iris_group *group)
{
    size_t count = (size_t)group->count, bytes = iris_i_group_bytes(count);
    struct iris_dev_group *device = calloc(1, bytes);
    uint64_t offset; /* of the arrivals in every member's heap */
    iris_status_t status;

    if (device == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a group");
    }
    group->device = iris_i_heap_group(iris, group->slot);
    offset = (uint64_t)(uintptr_t)group->device + iris_i_group_arrivals(count) -
             (uint64_t)iris->heap_bases[iris->rank];
    device->count = group->count;
    device->index = group->index;
    device->arrivals = (uint64_t)iris->heap_bases[iris->rank] + offset;
    for (size_t i = 0; i < count; i++) {
        int rank = group->members[i];

        device->words[2 * i] = (uint64_t)iris->heap_bases[rank] + offset +
                               (uint64_t)group->index * sizeof device->words[0];
        iris_i_group_ranks(device)[i] = (uint64_t)rank;
    }
    status = iris_i_heap_write(iris, group->device, device, bytes);
    free(device);
    return status;
}

static struct iris_group *make(iris_t *iris, int count)
{
    struct iris_group *group =
        calloc(1, sizeof *group + (size_t)count * sizeof group->members[0]);

    if (group != NULL) {
        group->iris = iris;
        group->count = count;
    }
    return group;
}

iris_status_t iris_i_group_open_world(iris_t *iris)
{
    struct iris_group *world = make(iris, iris->num_ranks);

    if (world == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a group");
    }
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        world->members[rank] = rank;
    }
    world->index = iris->rank;
    iris->world = world;
    return write_device(iris, world);
}

void iris_i_group_close_all(iris_t *iris)
{
    while (iris->groups != NULL) {
        struct iris_group *group = iris->groups;

        iris->groups = group->next;
        free(group);
    }
    free(iris->world);
}

/* This rank's own list: in range, nobody twice, itself among them. */
static iris_status_t check_list(const iris_t *iris, const int *ranks, int count)
{
    int index = -1;

    if (count < 0 || count > iris->num_ranks || (count > 0 && ranks == NULL)) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "a group of %d members in a job of %d ranks; list each "
            "member once, or pass count 0",
            count, iris->num_ranks);
    }
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= iris->num_ranks) {
            return iris_i_fail(
                &iris->log, IRIS_ERR_INVALID,
                "member %d of the group is rank %d; list ranks 0 "
                "to %d",
                i, ranks[i], iris->num_ranks - 1);
        }
        for (int j = 0; j < i; j++) {
            if (ranks[j] == ranks[i]) {
                return iris_i_fail(
                    &iris->log, IRIS_ERR_INVALID,
                    "rank %d is in the group twice; list it once", ranks[i]);
            }
        }
        index = ranks[i] == iris->rank ? i : index;
    }
    if (count > 0 && index < 0) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "rank %d is not in the list it passes; pass the "
                           "group it will be in, or count 0 for none",
                           iris->rank);
    }
    return IRIS_OK;
}

/* Every rank looks at every list, so all come to the same verdict: a rank in a
 * list must have posted that very list. */
static iris_status_t compare_lists(iris_t *iris)
{
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        size_t bytes;
        const int *list = iris_i_meet_payload(iris, iris->world, rank, &bytes);

        for (size_t i = 0; i < bytes / sizeof *list; i++) {
            size_t other_bytes = 0;
            int other_rank = list[i];
            const int *other = iris_i_meet_payload(iris, iris->world,
                                                   other_rank, &other_bytes);

            if (other_bytes != bytes || memcmp(other, list, bytes) != 0) {
                return iris_i_fail(&iris->log, IRIS_ERR_MISMATCH,
                                   "iris_group_create: rank %d lists rank %d, "
                                   "which passed another list; members of one "
                                   "group pass the same ranks in the same "
                                   "order",
                                   rank, other_rank);
            }
        }
    }
    return IRIS_OK;
}

/* A place in the control segment behind `slot` that nobody holds, made ready.
 */
static iris_status_t find_slot(iris_t *iris, int *slot)
{
    while (++*slot < IRIS_GROUP_SLOTS) {
        struct iris_control_group *shared =
            iris_i_control_group(iris->control, *slot);
        iris_status_t status = iris_i_control_back_group(iris->control, *slot);

        if (status != IRIS_OK) {
            return status;
        }
        if (atomic_load_explicit(&shared->users, memory_order_acquire) == 0) {
            atomic_store(&shared->gave_up, 0);
            atomic_store(&shared->posts, 0);
            return IRIS_OK;
        }
    }
    return iris_i_fail(&iris->log, IRIS_ERR_LIMIT,
                       "%d groups are live already; free some",
                       IRIS_GROUP_SLOTS - 1);
}

/* Rank 0's part: a slot for each list the ranks have just posted, written for
 * each rank of the list; 0 for a rank in no group. */
static iris_status_t assign_slots(iris_t *iris, int *slots)
{
    iris_status_t status;
    size_t bytes;
    int slot = 0;

    for (int rank = 0; rank < iris->num_ranks; rank++) {
        const int *list = iris_i_meet_payload(iris, iris->world, rank, &bytes);

        if (bytes == 0 || list[0] != rank) {
            continue;
        }
        status = find_slot(iris, &slot);
        if (status != IRIS_OK) {
            return status;
        }
        for (size_t i = 0; i < bytes / sizeof *list; i++) {
            slots[list[i]] = slot;
        }
    }
    return IRIS_OK;
}

/* Rank 0 picks a slot for each group, all learn theirs. */
static iris_status_t agree_on_slot(iris_t *iris, int *slot_p)
{
    struct iris_call call = {.kind = IRIS_CALL_GROUP_SLOT};
    int slots[iris->num_ranks];
    iris_status_t status;
    size_t bytes;

    if (iris->rank == 0) {
        memset(slots, 0, sizeof slots);
        call.status = assign_slots(iris, slots);
        call.payload = slots;
        call.payload_bytes = sizeof slots;
    }
    status = iris_i_meet(iris, iris->world, &call);
    if (status == IRIS_OK) {
        const int *posted = iris_i_meet_payload(iris, iris->world, 0, &bytes);

        *slot_p = posted[iris->rank];
    }
    return status;
}

/* Takes the slot, clearing what its last holders left of ours. */
static iris_status_t take_slot(iris_t *iris, struct iris_group *group)
{
    struct iris_control_group *shared =
        iris_i_control_group(iris->control, group->slot);

    for (int parity = 0; parity < 2; parity++) {
        atomic_store_explicit(&shared->slots[2 * iris->rank + parity].seq, 0,
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
    return write_device(iris, group);
}

static void drop_slot(iris_t *iris, const struct iris_group *group)
{
    atomic_fetch_sub_explicit(
        &iris_i_control_group(iris->control, group->slot)->users, 1,
        memory_order_release);
}

/* After the lists agree: a slot, then everyone's word that it is set up. */
static iris_status_t establish(iris_t *iris, struct iris_group *group)
{
    struct iris_call call = {.kind = IRIS_CALL_GROUP_CREATE};
    iris_status_t status = agree_on_slot(iris, &group->slot);

    if (status != IRIS_OK) {
        return status;
    }
    if (group->count > 0) {
        call.status = take_slot(iris, group);
    }
    status = iris_i_meet(iris, iris->world, &call);
    if (status != IRIS_OK && group->count > 0) {
        drop_slot(iris, group);
    }
    return status;
}

iris_status_t iris_group_create(iris_t *iris, const int *ranks, int count,
                                iris_group_t **group_p)
{
    struct iris_call call = {.kind = IRIS_CALL_GROUP_CREATE};
    iris_status_t status = iris_i_enter(iris, "iris_group_create");
    struct iris_group *group = NULL;

    if (status != IRIS_OK) {
        return status;
    }
    call.status =
        group_p == NULL
            ? iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                          "group_p is NULL; pass where to put the group")
            : check_list(iris, ranks, count);
    if (call.status == IRIS_OK) {
        group = make(iris, count);
        call.payload = ranks;
        call.payload_bytes = (size_t)count * sizeof *ranks;
    }
    if (call.status == IRIS_OK && group == NULL) {
        call.status = iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                                  "no memory for a group");
    }
    status = iris_i_meet(iris, iris->world, &call);
    if (status == IRIS_OK) {
        status = compare_lists(iris);
    }
    if (status == IRIS_OK) {
        for (int i = 0; i < count; i++) {
            group->members[i] = ranks[i];
            group->index = ranks[i] == iris->rank ? i : group->index;
        }
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

iris_status_t iris_group_destroy(iris_t *iris, iris_group_t *group)
{
    struct iris_call call = {.kind = IRIS_CALL_GROUP_FREE};
    iris_status_t status = iris_i_enter(iris, "iris_group_destroy");
    struct iris_group **link;

    if (status != IRIS_OK || group == NULL) {
        return status;
    }
    status = iris_i_group_resolve(iris, group, &group);
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_meet(iris, group, &call);
    pthread_mutex_lock(&iris->groups_lock);
    for (link = &iris->groups; *link != group; link = &(*link)->next) {
    }
    *link = group->next;
    pthread_mutex_unlock(&iris->groups_lock);
    drop_slot(iris, group);
    free(group);
    return status;
}

static const struct iris_group *look_up(const iris_t *iris,
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
    const struct iris_group *found = look_up(iris, group);

    return found == NULL ? -1 : found->count;
}

int iris_group_index(const iris_t *iris, const iris_group_t *group)
{
    const struct iris_group *found = look_up(iris, group);

    return found == NULL ? -1 : found->index;
}

int iris_group_member(const iris_t *iris, const iris_group_t *group, int index)
{
    const struct iris_group *found = look_up(iris, group);

    return found == NULL || index < 0 || index >= found->count
               ? -1
               : found->members[index];
}

struct iris_dev_group *iris_group_device(const iris_t *iris,
                                         const iris_group_t *group)
{
    const struct iris_group *found = look_up(iris, group);

    return found == NULL ? NULL : found->device;
}
