/* SPDX-License-Identifier: MIT
 *
 * Groups: their making and their end, their words on the heap, and the calls that
 * all members make, which are barriers and broadcast.
 *
 * The first range of every heap is the library's own: the word by which peers know
 * the heap, the device context, and a place for each group's device half. The
 * members of a new group agree on a place that is free on all of them. From then on
 * a group is live on every member, until its members have agreed on its end; a
 * destroyed group's place is free again. The world is made with the context and ends
 * with it.
 *
 * groups_lock guards the context's list of groups, which other threads look through
 * when they describe a wait. The struct of a live group changes only in its members'
 * collective calls.
 */
#include "config.h"

#include "context/context.h"

#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"
#include "transport/transport.h"
#include <iris/device/core/ring.h>
#include <iris/device/layout.h>
#include <iris/sync.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- The library's own part of a heap ---- */

#define MAX_DELAY_US 1000000 /* below 2^32 ticks of every clock */

static size_t round_up(size_t bytes)
{
    return (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
}

static size_t count_context(int num_ranks)
{
    return round_up(IRIS_CONTEXT_ALL_WORDS(num_ranks) * sizeof(int64_t));
}

static size_t count_group(int num_ranks)
{
    return round_up(iris_i_group_bytes((size_t)num_ranks));
}

IRIS_STATIC_ASSERT(IRIS_RANKS_MAX <= IRIS_CONTEXT_READABLE &&
                       IRIS_CONTEXT_READABLE <=
                           IRIS_PLACES * 2 * IRIS_DEV_GROUP_LANES,
                   "kernels read no heap base from behind the heap");

/* Everything but the ring of a GPU's kernels, which is last. */
static size_t count_groups(int num_ranks)
{
    return IRIS_CONTEXT_OFFSET + count_context(num_ranks) +
           IRIS_PLACES * count_group(num_ranks);
}

static size_t count_layout(int num_ranks)
{
    return count_groups(num_ranks) + round_up(sizeof(struct iris_dev_ring));
}

/* If the program sets the size of its memory, that memory begins at a multiple
 * of the largest alignment. So alignment costs the program nothing. */
struct iris_layout_sizes
iris_i_layout_sizes(const struct iris_settings *settings, int num_ranks)
{
    size_t size = (size_t)settings->heap_bytes.number;
    size_t reserve = (size_t)settings->heap_reserve.number;
    size_t more = reserve > size ? reserve - size : 0;
    struct iris_layout_sizes sizes = {.heap_bytes = size,
                                      .own_bytes = count_layout(num_ranks)};

    if (settings->heap_usable.number) {
        sizes.own_bytes =
            (sizes.own_bytes + IRIS_ALIGNMENT_MAX - 1) & -IRIS_ALIGNMENT_MAX;
        sizes.heap_bytes = round_up(sizes.heap_bytes) + sizes.own_bytes;
    }
    if (settings->trace.text[0] != '\0' &&
        !iris_i_settings_mark(settings)) { /* the program loses no memory */
        sizes.heap_bytes += IRIS_TRACE_HEAP_BYTES;
    }
    sizes.reserve_bytes = sizes.heap_bytes + more;
    return sizes;
}

iris_status_t iris_i_layout_check(const struct iris_settings *settings,
                                  const struct iris_log *log, int num_ranks)
{
    size_t size = (size_t)settings->heap_bytes.number;
    size_t reserve = (size_t)settings->heap_reserve.number;
    size_t least =
        settings->heap_usable.number ? 1 : 2 * count_layout(num_ranks);

    if (size < least) {
        return iris_i_fail(log, IRIS_ERR_CONFIG,
                           "a heap of %zu bytes (IRIS_HEAP_SIZE) is too small: "
                           "with %d rank%s it takes at least %zu, half of them "
                           "the library's own; raise it",
                           size, num_ranks, num_ranks == 1 ? "" : "s", least);
    }
    return reserve == 0 || reserve >= size
               ? IRIS_OK
               : iris_i_fail(log, IRIS_ERR_CONFIG,
                             "a heap of %zu bytes (IRIS_HEAP_SIZE) may grow to "
                             "%zu (IRIS_HEAP_RESERVE), which is less; raise "
                             "IRIS_HEAP_RESERVE, or unset it",
                             size, reserve);
}

/* Address of the device half of the group with this index. */
static struct iris_dev_group *get_device_half(const iris_t *iris, int place)
{
    return (void *)(iris_i_heap_base(&iris->heap.memory) + IRIS_CONTEXT_OFFSET +
                    count_context(iris->log.num_ranks) +
                    (size_t)place * count_group(iris->log.num_ranks));
}

size_t iris_i_layout_id_offset(int num_ranks)
{
    return IRIS_CONTEXT_OFFSET +
           IRIS_CONTEXT_OWN(num_ranks, IRIS_CONTEXT_OWN_ID) * sizeof(int64_t);
}

iris_status_t iris_i_layout_write_id(iris_t *iris, uint64_t *id_p)
{
    char *place = iris_i_heap_base(&iris->heap.memory);
    uint64_t id;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) {
        return iris_i_fail_errno(&iris->log, IRIS_ERR_SYSTEM, errno,
                                 "no random number for the heap");
    }
    *id_p = id | 1; /* differs from that of empty memory */
    return iris_i_heap_copy(&iris->heap.memory,
                            place +
                                iris_i_layout_id_offset(iris->log.num_ranks),
                            id_p, sizeof *id_p);
}

/* Reads the longest delay of this rank's operations from IRIS_DEVICE_DELAY. */
static iris_status_t read_delay(iris_t *iris, int64_t *us_p)
{
    const char *text = iris->settings->device_delay.text;
    int64_t us = 0;

    while (*text != '\0') {
        int rank, most, length = 0;

        if (sscanf(text, "%9d:%9d%n", &rank, &most, &length) != 2 || rank < 0 ||
            most < 0 || most > MAX_DELAY_US ||
            (text[length] != '\0' && text[length] != ',')) {
            return iris_i_fail(&iris->log, IRIS_ERR_CONFIG,
                               "IRIS_DEVICE_DELAY: \"%s\" does not begin with "
                               "RANK:MICROSECONDS, of at most %d microseconds",
                               text, MAX_DELAY_US);
        }
        us = rank == iris->log.rank ? most : us;
        text += length + (text[length] == ',');
    }
    *us_p = us;
    return IRIS_OK;
}

/* The part of the ring that is in the memory of a GPU's kernels; none of them
 * has run yet. *place_p is its address. */
static iris_status_t write_ring(iris_t *iris, int64_t *place_p)
{
    const struct iris_dev_ring ring = {
        .requests =
            (struct iris_dev_requests *)(uintptr_t)iris_i_proxy_requests(
                iris->proxy)};
    char *place = iris_i_heap_base(&iris->heap.memory) +
                  count_groups(iris->log.num_ranks);

    *place_p = (int64_t)(uintptr_t)place;
    return iris_i_heap_copy(&iris->heap.memory, place, &ring, sizeof ring);
}

/* Leaves out the id, which peers may be reading. */
iris_status_t iris_i_layout_write_context(iris_t *iris)
{
    int num_ranks = iris->log.num_ranks;
    size_t bytes = iris_i_layout_id_offset(num_ranks) - IRIS_CONTEXT_OFFSET;
    int64_t delay_us = 0, *own, *words;
    iris_status_t status = read_delay(iris, &delay_us);

    if (status != IRIS_OK) {
        return status;
    }
    words = calloc(1, bytes);
    if (words == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    words[IRIS_CONTEXT_RANK] = iris->log.rank;
    words[IRIS_CONTEXT_NUM_RANKS] = num_ranks;
    memcpy(&words[IRIS_CONTEXT_HEAP_BASES],
           iris_i_heap_bases(&iris->heap.memory),
           (size_t)num_ranks * sizeof(int64_t));
    own = words + IRIS_CONTEXT_WORDS(num_ranks);
    own[IRIS_CONTEXT_OWN_WATCH] = (int64_t)iris->device.watch;
    own[IRIS_CONTEXT_OWN_TIMEOUT] =
        iris->settings->device_timeout_ms.number * iris->device.clock_khz;
    own[IRIS_CONTEXT_OWN_NOTE] = IRIS_OLD_MS * iris->device.clock_khz;
    own[IRIS_CONTEXT_OWN_DELAY] = delay_us * iris->device.clock_khz / 1000;
    iris->device_context =
        (void *)(iris_i_heap_base(&iris->heap.memory) + IRIS_CONTEXT_OFFSET);
    iris->queue.context = iris->device_context;
    if (iris->queue.is_far) {
        status = write_ring(iris, &own[IRIS_CONTEXT_OWN_RING]);
    }
    if (status == IRIS_OK) {
        status = iris_i_heap_copy(&iris->heap.memory, iris->device_context,
                                  words, bytes);
    }
    free(words);
    return status;
}

iris_status_t iris_i_layout_write_tracing(iris_t *iris, const int64_t *words,
                                          struct iris_stream *stream)
{
    int64_t *place =
        iris->device_context + IRIS_CONTEXT_TRACE_ENABLED + iris->log.num_ranks;
    iris_status_t status = iris_i_stream_synchronize(&iris->queue, stream);

    if (status == IRIS_OK) {
        status = iris_i_fail_on(
            &iris->log,
            iris_i_queue_copy(stream, place, words,
                              IRIS_CONTEXT_TAIL_WORDS * sizeof *words));
    }
    return status == IRIS_OK ? iris_i_stream_synchronize(&iris->queue, stream)
                             : status;
}

/* ---- Groups ---- */

iris_status_t iris_i_group_resolve(const iris_t *iris,
                                   const iris_group_t *group,
                                   struct iris_group **group_p)
{
    /* A const context does not promise that the lock does not change. */
    iris_t *own = (iris_t *)(uintptr_t)iris;
    struct iris_group *g;

    if (group == NULL) {
        *group_p = iris->world;
        return IRIS_OK;
    }
    pthread_mutex_lock(&own->groups_lock);
    for (g = own->groups; g != NULL && g != group; g = g->next) {
    }
    pthread_mutex_unlock(&own->groups_lock);
    if (g == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "group %p is not a live group of this context; pass "
                           "one that iris_group_create gave, or NULL",
                           (const void *)group);
    }
    *group_p = g;
    return IRIS_OK;
}

/* iris_i_enter(), then iris_i_group_resolve(). */
static iris_status_t enter_group(const iris_t *iris, const char *call,
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

static int note_word(const struct iris_group *group, const void *word,
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
    found = note_word(group, word, wait);
    for (group = iris->groups; group != NULL && !found; group = group->next) {
        found = note_word(group, word, wait);
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
    group->device = get_device_half(iris, group->members.place);
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

void iris_i_group_close_all(iris_t *iris) IRIS_UNCHECKED
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

/* The group of all ranks has had more members. */
void iris_i_group_shrink(iris_t *iris) IRIS_UNCHECKED
{
    struct iris_group *world = iris->world;

    iris->world = NULL;
    iris_i_group_close_all(iris);
    iris_i_extension_close(world->ccl);
    iris_i_extension_close(world->ops);
    iris->world = world;
    *world = (struct iris_group){.members = {.control = iris->control,
                                             .ranks = world->ranks,
                                             .count = iris->log.num_ranks},
                                 .index = iris->log.rank,
                                 .unreachable = -1};
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

/* ---- The calls of groups ---- */

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

static size_t read_post(const iris_t *iris, int rank,
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
        size_t count = read_post(iris, rank, list), other_count;

        for (size_t i = 0; i < count; i++) {
            other_count = list[i] < iris->log.num_ranks
                              ? read_post(iris, list[i], other)
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
        size_t count = read_post(iris, rank, list);
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
        (void)read_post(iris, 0, places_of_all);
        *place_p = places_of_all[iris->log.rank];
    }
    return status;
}

/* After the lists agree: a place, then an agreement that every rank has set it
 * up. */
static iris_status_t establish_group(iris_t *iris, struct iris_group *group)
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
static iris_status_t prepare_group(iris_t *iris, const int *ranks, int count,
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

static iris_status_t create_group(iris_t *iris, const int *ranks, int count,
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
            : prepare_group(iris, ranks, count, list, &group);
    if (call.status == IRIS_OK) {
        call.payload = list;
        call.payload_bytes = (size_t)count * sizeof list[0];
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status == IRIS_OK) {
        status = compare_lists(iris);
    }
    if (status == IRIS_OK) {
        status = establish_group(iris, group);
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
    status = create_group(iris, ranks, count, group_p);
    event.group = status == IRIS_OK ? *group_p : NULL;
    return iris_i_hooks_after(&iris->hooks, &event, status);
}

/* Errors that leave the group unchanged on every member, so that they may go
 * on. */
static int may_go_on(iris_status_t status)
{
    return status != IRIS_OK && status != IRIS_ERR_PEER_LOST &&
           status != IRIS_ERR_TIMEOUT && status != IRIS_ERR_INTERRUPTED &&
           status != IRIS_ERR_REVOKED;
}

static iris_status_t destroy_group(iris_t *iris, struct iris_group *group)
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
        enter_group(iris, "iris_group_destroy", group, &found);

    if (status != IRIS_OK || group == NULL) {
        return status;
    }
    event.rank = iris->log.rank;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(&iris->hooks, &event, destroy_group(iris, found));
}

/* ---- Queries ---- */

static const struct iris_group *find_group(const iris_t *iris,
                                           const iris_group_t *group)
{
    struct iris_group *found = NULL;

    (void)enter_group(iris, "a group call", group, &found);
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

/* ---- Barriers and broadcast ---- */

static const struct iris_call_type barrier_call = {.name = "iris_barrier"};
static const struct iris_call_type broadcast_call = {
    .name = "iris_broadcast",
    .fields = IRIS_BROADCAST_FIELDS,
};

static struct iris_host_event
make_event(const iris_t *iris, enum iris_host_op op, const iris_group_t *group)
{
    struct iris_host_event event = {
        .op = op, .rank = iris->log.rank, .target_rank = -1, .group = group};

    return event;
}

static iris_status_t wait_for_members(iris_t *iris, iris_stream_t *stream,
                                      struct iris_group *group)
{
    struct iris_call call = {.type = &barrier_call};
    struct iris_deferred_plan plan;
    iris_status_t status;

    iris_i_agree_begin(iris->control, call.type);
    call.status = iris_i_stream_resolve(&iris->queue, stream, &stream);
    if (call.status == IRIS_OK) {
        call.status = iris_i_stream_synchronize(&iris->queue, stream);
    }
    if (group != iris->world) {
        return iris_i_agree(&group->members, &call);
    }
    /* All ranks make this call together, so deferred frees may follow. */
    status = iris_i_deferred_agree(&iris->heap, &call, &plan);
    if (status == IRIS_OK) {
        (void)iris_i_deferred_follow(&iris->heap, &plan);
    }
    return status;
}

iris_status_t iris_barrier(iris_t *iris, iris_stream_t *stream,
                           iris_group_t *group)
{
    struct iris_host_event event;
    iris_status_t status = enter_group(iris, "iris_barrier", group, &group);

    if (status != IRIS_OK) {
        return status;
    }
    event = make_event(iris, IRIS_HOST_BARRIER, group);
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(&iris->hooks, &event,
                              wait_for_members(iris, stream, group));
}

iris_status_t iris_device_barrier(iris_t *iris, iris_stream_t *stream,
                                  iris_group_t *group)
{
    struct iris_host_event event;
    iris_status_t status =
        enter_group(iris, "iris_device_barrier", group, &group);

    if (status == IRIS_OK && !iris_i_group_is_far(iris, group)) {
        status =
            iris_i_group_check_reachable(iris, group, "iris_device_barrier");
    }
    if (status != IRIS_OK) {
        return status;
    }
    event = make_event(iris, IRIS_HOST_BARRIER, group);
    event.stream = stream == NULL ? iris->queue.streams : stream;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(
        &iris->hooks, &event,
        iris_i_kernel_barrier(&iris->queue, group->device, stream));
}

static iris_status_t check_broadcast(const iris_t *iris, const void *data,
                                     size_t bytes, int root,
                                     const struct iris_group *group)
{
    iris_status_t status =
        iris_i_group_check_root(iris, group, "iris_broadcast", root);

    if (status != IRIS_OK) {
        return status;
    }
    if (bytes > PTRDIFF_MAX) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_broadcast: %zu bytes are more than memory can "
                           "hold; check the size",
                           bytes);
    }
    if (data == NULL && bytes != 0) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "iris_broadcast: data is NULL; pass memory of %zu bytes", bytes);
    }
    return IRIS_OK;
}

iris_status_t iris_broadcast(iris_t *iris, void *data, size_t bytes, int root,
                             iris_group_t *group)
{
    struct iris_call call = {.type = &broadcast_call};
    struct iris_host_event event;
    iris_status_t status = enter_group(iris, "iris_broadcast", group, &group);

    if (status != IRIS_OK) {
        return status;
    }
    call.status = check_broadcast(iris, data, bytes, root, group);
    event = make_event(iris, IRIS_HOST_BROADCAST, group);
    event.address = data;
    event.bytes = bytes;
    event.target_rank = call.status == IRIS_OK ? group->ranks[root] : -1;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(
        &iris->hooks, &event,
        iris_i_group_broadcast(group, &call, data, bytes, root));
}
