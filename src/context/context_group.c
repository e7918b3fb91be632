/* SPDX-License-Identifier: MIT
 *
 * Groups inside the library: lookup, their device halves, and data exchange
 * between members.
 */
#include "config.h"

#include "context/context.h"

#include <iris/device/layout.h>

#include "heap/heap.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iris_status_t iris_i_group_resolve(const iris_t *iris,
                                   const iris_group_t *group,
                                   struct iris_group **group_p)
{
    /* A const context does not promise that the lock does not change. */
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

iris_status_t iris_i_group_enter(const iris_t *iris, const char *call,
                                 const iris_group_t *group,
                                 struct iris_group **group_p)
{
    iris_status_t status = iris_i_enter(iris, call);

    return status == IRIS_OK ? iris_i_group_resolve(iris, group, group_p)
                             : status;
}

/* The member whose arrival the word records; -1: none. */
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
    int silent =
        word == NULL ? iris_i_proxy_silent(((iris_t *)core)->proxy) : -1;

    text[0] = '\0';
    if (silent >= 0) {
        snprintf(text, bytes, "rank %d, on another node, has not answered",
                 silent);
    }
    if (word != NULL) {
        iris_i_group_note(core, word, &wait);
    }
    if (wait.num_expected > 0) {
        snprintf(text, bytes, "rank %d has not come to it", wait.expected[0]);
    }
}

iris_status_t iris_i_group_write_device(iris_t *iris, struct iris_group *group)
{
    size_t count = (size_t)group->members.count,
           bytes = iris_i_group_bytes(count);
    struct iris_dev_group *device = calloc(1, bytes);
    uint64_t offset; /* offset of the arrivals in every member's heap */
    iris_status_t status;

    if (device == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a group");
    }
    group->device = iris_i_layout_group(iris, group->members.place);
    offset = (uint64_t)(uintptr_t)group->device + iris_i_group_arrivals(count) -
             (uint64_t)iris_i_heap_bases(&iris->heap.memory)[iris->log.rank];
    device->count = group->members.count;
    device->index = group->index;
    device->arrivals =
        (uint64_t)iris_i_heap_bases(&iris->heap.memory)[iris->log.rank] +
        offset;
    for (size_t i = 0; i < count; i++) {
        int rank = group->ranks[i];

        iris_i_group_ranks(device)[i] = (uint64_t)rank;
        if (iris_i_heap_bases(&iris->heap.memory)[rank] == 0) {
            group->unreachable = rank;
            continue;
        }
        device->words[2 * i] =
            (uint64_t)iris_i_heap_bases(&iris->heap.memory)[rank] + offset +
            (uint64_t)group->index * sizeof device->words[0];
    }
    status = iris_i_heap_copy(&iris->heap.memory, group->device, device, bytes);
    free(device);
    return status;
}

struct iris_group *iris_i_group_make(iris_t *iris, const int *ranks, int count)
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
    for (int i = 0; i < count; i++) {
        group->ranks[i] = ranks == NULL ? i : ranks[i];
        group->index = group->ranks[i] == iris->log.rank ? i : group->index;
    }
    return group;
}

int iris_i_group_is_far(const iris_t *iris, const struct iris_group *group)
{
    return group->unreachable >= 0 && iris->heap.has_proxy;
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
        iris_i_extension_close(group->ops);
        free(group);
    }
    if (iris->world != NULL) {
        iris_i_extension_close(iris->world->ccl);
        iris_i_extension_close(iris->world->ops);
    }
    free(iris->world);
}

iris_status_t iris_i_group_check_root(const iris_t *iris,
                                      const struct iris_group *group,
                                      const char *call, int root)
{
    return root >= 0 && root < group->members.count
               ? IRIS_OK
               : iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                             "%s: root %d is no index of a group of %d; pass 0 "
                             "to %d",
                             call, root, group->members.count,
                             group->members.count - 1);
}

uint64_t iris_i_group_key(const void *arg)
{
    const struct iris_group *group = arg;
    uint64_t key = 1;

    for (int i = 0; i < group->members.count; i++) {
        key = (key + (uint64_t)group->ranks[i]) * UINT64_C(0x9e3779b97f4a7c15);
        key ^= key >> 29;
    }
    return key | 1;
}

int iris_i_group_count(const void *group)
{
    return ((const struct iris_group *)group)->members.count;
}

/* The root sends the data one payload at a time. */
iris_status_t iris_i_group_broadcast(struct iris_group *group,
                                     struct iris_call *call, void *ptr,
                                     size_t bytes, int root)
{
    char *data = ptr;
    size_t position = 0;

    do {
        size_t left = bytes - position;
        size_t piece =
            left < IRIS_PAYLOAD_BYTES ? left : (size_t)IRIS_PAYLOAD_BYTES;
        iris_status_t status;

        call->fields[0] = bytes;
        call->fields[1] = (uint64_t)root;
        call->fields[2] = position;
        if (group->index == root && piece != 0) {
            call->payload = data == NULL ? NULL : data + position;
            call->payload_bytes = piece;
        }
        status = iris_i_agree(&group->members, call);
        if (status != IRIS_OK) {
            return status;
        }
        if (group->index != root && piece != 0) {
            (void)iris_i_agree_payload(&group->members, group->ranks[root],
                                       data + position, piece);
        }
        position += piece;
    } while (position < bytes);
    return IRIS_OK;
}
