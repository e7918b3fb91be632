/* SPDX-License-Identifier: MIT
 *
 * Workspaces: each group's memory for collectives, on each member.
 *
 * All ranks allocate a context's memory for collectives together, once. Each
 * rank then takes pieces of it by itself: only members make a group's calls. A
 * group's workspace is made before its first call is enqueued, and lives as
 * long as the group.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/constants.h>

#include "base/processor.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
 * A context's memory for collectives, and the rules of the tuning file. The
 * memory is one allocation on every heap, from which each rank takes pieces by
 * itself.
 */

/* The most bytes of a slot. On a GPU, packets in one step are the fastest way
 * up to a megabyte. On the CPU, copies from memory are faster. */
#define GPU_SLOT_BYTES_MAX ((size_t)1 << 20)
#define CPU_SLOT_BYTES_MAX ((size_t)64 << 10)

static const struct iris_call_type prepare_call = {
    .name = "iris_ccl_prepare",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};

/* IRIS_ERR_NO_MEMORY, with its message. */
static iris_status_t fail_memory(const iris_t *iris)
{
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                       "no memory for collectives");
}

static void close_ccl(struct iris_extension *extension)
{
    struct iris_ccl *ccl = (struct iris_ccl *)extension;

    while (ccl->workspaces != NULL) {
        struct iris_ccl_workspace *workspace = ccl->workspaces;

        ccl->workspaces = workspace->next;
        free(workspace);
    }
    iris_i_alloc_destroy(ccl->alloc);
    free(ccl);
}

/* This rank's part, before the agreement. The caller owns the result even if
 * the tuning file is wrong. */
static iris_status_t make_ccl(iris_t *iris, size_t bytes,
                              struct iris_ccl **ccl_p)
{
    struct iris_ccl_tuning *tuning;
    struct iris_ccl *ccl = calloc(1, sizeof *ccl);
    iris_status_t status = ccl == NULL
                               ? IRIS_ERR_NO_MEMORY
                               : iris_i_alloc_create(bytes, &ccl->alloc);

    if (status != IRIS_OK) {
        free(ccl);
        return fail_memory(iris);
    }
    ccl->extension.close = close_ccl;
    ccl->bytes = bytes;
    ccl->most_slot_bytes = iris_i_device(iris)->wavefront > 1
                               ? GPU_SLOT_BYTES_MAX
                               : CPU_SLOT_BYTES_MAX;
    ccl->stages = iris_i_device(iris)->wavefront <= 1;
    *ccl_p = ccl;
    status = iris_i_ccl_tuning(iris, &tuning);
    if (status == IRIS_OK) {
        ccl->tuning = tuning;
    }
    return status;
}

/* Allocates the memory and reads the rules, once. Collective over the job. */
static iris_status_t prepare_memory(iris_t *iris)
{
    size_t most = iris_i_heap_size(&iris_i_heap(iris)->memory) / 8;
    size_t asked = (size_t)iris_i_settings(iris)->ccl_bytes.number;
    struct iris_heap_request request = {
        .type = &prepare_call, .alignment = IRIS_ALIGNMENT, .is_lazy = 1};
    struct iris_ccl *ccl = NULL;
    void *memory;
    iris_status_t status;

    request.bytes = asked < most ? asked : most;
    request.checked = make_ccl(iris, request.bytes, &ccl);
    status = iris_i_heap_allocate(iris_i_heap(iris), &request, &memory);
    if (status != IRIS_OK) {
        if (ccl != NULL) {
            close_ccl(&ccl->extension);
        }
        return status;
    }
    ccl->queue = iris_i_queue(iris);
    ccl->memory = memory;
    iris_i_extend(iris, IRIS_EXTENSION_CCL, &ccl->extension);
    return IRIS_OK;
}

iris_status_t iris_ccl_prepare(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_ccl_prepare");

    return status == IRIS_OK &&
                   iris_i_extension(iris, IRIS_EXTENSION_CCL) == NULL
               ? prepare_memory(iris)
               : status;
}

/* ---------------------------------------------------------------------------
 * Workspaces: each group's memory for collectives on each member. They are
 * pieces of memory that all ranks allocated together: only members make a
 * group's calls.
 */

/* A group's. */
struct group_space {
    struct iris_extension extension; /* attached to the group */
    struct iris_ccl *ccl;
    struct iris_group *group;
};

/* A workspace takes at most this fraction of the available bytes. Its slots
 * have at least this number of bytes. */
#define WORKSPACES 4
#define SLOT_BYTES_MIN ((size_t)256)
/* On CPUs, a group's workspaces on all ranks take at most this multiple of the
 * bytes that one rank has for all of its own. Their sum grows with the square
 * of the members, and the system clears it before the first collective. */
#define CPU_RANKS_MOST 4
/* Number of slots in a stage. Pieces of a stage stay in a processor's caches,
 * and are large enough to justify the meeting for each of them. */
#define STAGE_SLOTS 8

static const struct iris_call_type workspace_call = {
    .name = "iris_all_reduce_preamble",
    .fields = {{.name = "IRIS_CCL_TUNING"}}};
static const struct iris_call_type parts_call = {
    .name = "iris_ccl_device_create",
    .fields = {{.name = "max_wgs"}, {.name = "slot_bytes"}}};
static const struct iris_call_type destroy_call = {
    .name = "iris_ccl_workspace_destroy"};

/* The data about themselves that members exchange. */
struct share {
    uint64_t num_cus;
    uint64_t best_cus;
    uint64_t offset; /* offset of the workspace, from the heap's start */
};

/* Number of workgroups of this rank that can have a processor each. */
static uint64_t best_cus(const iris_t *iris)
{
    long each = sysconf(_SC_NPROCESSORS_ONLN) / iris_i_num_ranks(iris);
    long most = iris_i_device(iris)->num_cus;

    if (iris_i_device(iris)->wavefront > 1 || each > most) {
        return (uint64_t)most;
    }
    return each < 1 ? 1 : (uint64_t)each;
}

static struct share find_posted(const struct iris_group *group, int member)
{
    struct share share = {0};

    (void)iris_i_agree_payload(&group->members, group->ranks[member], &share,
                               sizeof share);
    return share;
}

/* The minimum of the members' values. */
static struct share find_least(const struct iris_group *group)
{
    struct share least = find_posted(group, 0);

    for (int i = 1; i < group->members.count; i++) {
        struct share share = find_posted(group, i);

        least.num_cus =
            share.num_cus < least.num_cus ? share.num_cus : least.num_cus;
        least.best_cus =
            share.best_cus < least.best_cus ? share.best_cus : least.best_cus;
    }
    return least;
}

/* Bytes of a stage: several slots', and for every workgroup at least the
 * minimum for an all_reduce. Between nodes, sums are in the stages on GPUs,
 * too. */
static int64_t stage_bytes(const struct iris_ccl *ccl,
                           const struct iris_ccl_space *space)
{
    int64_t least = space->max_wgs * (space->count + 1) * IRIS_CCL_STAGE_GRAIN;
    int64_t best = space->slot_bytes * STAGE_SLOTS;

    return !ccl->stages && space->rail_bytes == 0 ? 0
           : best < least                         ? least
                                                  : best;
}

/* Lays out a workspace with the largest slots that are possible. */
static struct iris_ccl_space lay_out(const struct iris_ccl *ccl,
                                     const struct iris_group *group,
                                     uint64_t max_wgs, int far)
{
    struct iris_ccl_space space = {.count = group->members.count,
                                   .index = group->index,
                                   .max_wgs = (int64_t)max_wgs,
                                   .slot_bytes = (int64_t)ccl->most_slot_bytes,
                                   .pair_wgs = far ? 1
                                               : ccl->stages
                                                   ? IRIS_CCL_PAIR_CPU_WGS
                                                   : IRIS_CCL_PAIR_WGS};
    uint64_t fp = iris_i_fp_enter(); /* for the factor of averages */
    size_t most = ccl->bytes / WORKSPACES;
    size_t each = ccl->bytes * CPU_RANKS_MOST / (size_t)space.count;

    most = ccl->stages && each < most ? each : most;
    space.rail_bytes = far ? space.slot_bytes * 2 : 0;
    space.stage_bytes = stage_bytes(ccl, &space);
    iris_i_ccl_lay_out(&space);
    while (space.slot_bytes > (int64_t)SLOT_BYTES_MIN &&
           (size_t)space.bytes > most) {
        space.slot_bytes /= 2;
        space.rail_bytes /= 2;
        space.stage_bytes = stage_bytes(ccl, &space);
        iris_i_ccl_lay_out(&space);
    }
    iris_i_fp_leave(fp);
    return space;
}

/* lay_out() for one part. Its stages are for blocks of tiles, one for each
 * member. */
static struct iris_ccl_space
lay_out_part(const struct iris_ccl_workspace *workspace)
{
    struct iris_ccl_space space = {.count = workspace->group->members.count,
                                   .index = workspace->group->index,
                                   .max_wgs = 1,
                                   .slot_bytes =
                                       (int64_t)workspace->slot_bytes};
    uint64_t fp;

    space.stage_bytes = space.count * space.slot_bytes;
    fp = iris_i_fp_enter();
    iris_i_ccl_lay_out(&space);
    iris_i_fp_leave(fp);
    space.bytes = iris_i_ccl_line(space.bytes);
    return space;
}

/* This rank's share: takes and clears the memory, before any member can have
 * sent a packet. */
static iris_status_t take_memory(iris_t *iris, struct iris_ccl *ccl,
                                 struct iris_ccl_workspace *workspace)
{
    size_t parts = workspace->parts == 0 ? 1 : (size_t)workspace->parts;
    size_t bytes = parts * workspace->part_bytes;
    iris_status_t status = iris_i_alloc_take(ccl->alloc, bytes, IRIS_ALIGNMENT,
                                             &workspace->offset);

    if (status != IRIS_OK) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "a workspace of %zu bytes for collectives of %d "
                           "ranks does not fit into the rest of %zu; raise "
                           "IRIS_CCL_SIZE or IRIS_HEAP_SIZE, or destroy groups",
                           bytes, workspace->group->members.count, ccl->bytes);
    }
    workspace->device = (void *)(ccl->memory + workspace->offset);
    iris_i_group_set_workspace(iris, workspace->group, workspace->device,
                               bytes);
    status =
        iris_i_heap_clear(&iris_i_heap(iris)->memory, workspace->device, bytes);
    if (status != IRIS_OK) {
        (void)iris_i_alloc_give(ccl->alloc, workspace->offset);
    }
    return status;
}

/* The constants that kernels get as arguments. */
static struct iris_ccl_near near_of(const iris_t *iris,
                                    const struct iris_group *group,
                                    struct iris_ccl_space *space)
{
    const int64_t *bases = iris_i_heap_bases(&iris_i_heap(iris)->memory);
    struct iris_ccl_near near = {.slots = (uint64_t)space->slots,
                                 .hellos = (uint64_t)space->hellos,
                                 .byes = (uint64_t)space->byes,
                                 .call = (uint64_t)space->call,
                                 .epochs = (uint64_t)space->epochs,
                                 .slot_bytes = (uint64_t)space->slot_bytes,
                                 .max_wgs = (uint32_t)space->max_wgs,
                                 .count = (uint32_t)space->count,
                                 .index = (uint32_t)space->index};

    for (size_t i = 0; i < near.count && i < IRIS_CCL_NEAR; i++) {
        near.members[i] = (uint64_t)iris_i_ccl_members(space)[i];
        near.heaps[i] = (uint64_t)bases[group->ranks[i]];
    }
    return near;
}

static int find_node(const iris_t *iris, const struct iris_group *group,
                     int member)
{
    return iris_i_heap_node(&iris_i_heap(iris)->memory, group->ranks[member]);
}

/* Whether sums cannot go from each of these nodes to the next: some pair of
 * members would have several rails, and less room than it needs. */
static int are_uneven(const struct iris_ccl_nodes *levels,
                      const int64_t *firsts)
{
    int64_t before = 0;

    for (uint32_t node = 0; node < levels->nodes; node++) {
        int64_t size = firsts[node + 1] - firsts[node], common = size;

        if (node > 0) { /* the least common multiple of the two sizes */
            while (common % before != 0) {
                common += size;
            }
            if (common < levels->rails) {
                return 1;
            }
        }
        before = size;
    }
    return 0;
}

/* Lists the members by nodes, which come in the order of their first
 * members. */
static void order_members(const iris_t *iris,
                          struct iris_ccl_workspace *workspace, int64_t *order,
                          int64_t *firsts)
{
    const struct iris_group *group = workspace->group;
    struct iris_ccl_nodes *levels = &workspace->levels;
    int n = group->members.count, placed = 0;

    *levels = (struct iris_ccl_nodes){.in_order = 1};
    for (int i = 0; i < n; i++) {
        int node = find_node(iris, group, i), first = 0;

        while (find_node(iris, group, first) != node) {
            first++;
        }
        if (first < i) {
            continue;
        }
        firsts[levels->nodes] = placed;
        for (int m = i; m < n; m++) {
            if (find_node(iris, group, m) != node) {
                continue;
            }
            if (m == group->index) {
                levels->node = levels->nodes;
                levels->place = (uint32_t)(placed - firsts[levels->nodes]);
            }
            levels->in_order &= m == placed;
            order[placed++] = m;
        }
        firsts[++levels->nodes] = placed;
        if (placed - firsts[levels->nodes - 1] > levels->rails) {
            levels->rails = (uint32_t)(placed - firsts[levels->nodes - 1]);
        }
    }
    levels->is_even = !are_uneven(levels, firsts);
}

/* Writes the constants of a part: the layout, and the members' addresses. */
static iris_status_t write_part(iris_t *iris,
                                const struct iris_ccl_space *space,
                                struct iris_ccl_workspace *workspace,
                                size_t part)
{
    size_t at = part * workspace->part_bytes;
    struct iris_group *group = workspace->group;
    size_t n = (size_t)group->members.count;
    size_t bytes =
        sizeof *space + (IRIS_CCL_MEMBER_WORDS * n + 1) * sizeof(int64_t);
    struct iris_ccl_space *copy = calloc(1, bytes);
    iris_status_t status;

    if (copy == NULL) {
        return fail_memory(iris);
    }
    *copy = *space;
    for (size_t i = 0; i < n; i++) {
        iris_i_ccl_members(copy)[i] =
            iris_i_heap_bases(&iris_i_heap(iris)->memory)[group->ranks[i]] +
            (int64_t)(find_posted(group, (int)i).offset + at);
        iris_i_ccl_members(copy)[n + i] = group->ranks[i];
    }
    order_members(iris, workspace, &iris_i_ccl_members(copy)[2 * n],
                  &iris_i_ccl_members(copy)[3 * n]);
    if (part == 0) {
        workspace->near = near_of(iris, group, copy);
    }
    status = iris_i_heap_copy(&iris_i_heap(iris)->memory,
                              (char *)workspace->device + at, copy, bytes);
    free(copy);
    return status;
}

static iris_status_t write_device(iris_t *iris,
                                  const struct iris_ccl_space *space,
                                  struct iris_ccl_workspace *workspace)
{
    iris_status_t status = write_part(iris, space, workspace, 0);

    for (int i = 1; i < workspace->parts && status == IRIS_OK; i++) {
        status = write_part(iris, space, workspace, (size_t)i);
    }
    return status;
}

/* Workgroups that use the workspace at once wait for their peers. So all of
 * them have to run at the same time on every member. */
static iris_status_t check_resident(const iris_t *iris,
                                    const struct iris_ccl_workspace *workspace)
{
    if (workspace->parts <= workspace->max_cus) {
        return IRIS_OK;
    }
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                       "%s: max_wgs is %d, but %d workgroups run at once on "
                       "every member; pass 1 to %d",
                       parts_call.name, workspace->parts, workspace->max_cus,
                       workspace->max_cus);
}

/* The members' three agreements: on their sizes, on the addresses of their
 * memory, and that everything is written. */
static iris_status_t agree_on(iris_t *iris, struct iris_ccl *ccl,
                              struct iris_ccl_workspace *workspace)
{
    struct iris_group *group = workspace->group;
    struct share share = {.num_cus = (uint64_t)iris_i_device(iris)->num_cus,
                          .best_cus = best_cus(iris)};
    int of_parts = workspace->parts != 0;
    struct iris_call call = {
        .type = of_parts ? &parts_call : &workspace_call,
        .fields = {of_parts ? (uint64_t)workspace->parts : ccl->tuning->hash,
                   workspace->slot_bytes},
        .payload = &share,
        .payload_bytes = sizeof share};
    struct iris_ccl_space space;
    int taken;
    iris_status_t status = iris_i_agree(&group->members, &call);

    if (status != IRIS_OK) {
        return status;
    }
    workspace->max_cus = (int)find_least(group).num_cus;
    workspace->best_cus = (int)find_least(group).best_cus;
    status = check_resident(iris, workspace);
    if (status != IRIS_OK) {
        return status;
    }
    space = of_parts ? lay_out_part(workspace)
                     : lay_out(ccl, group, (uint64_t)workspace->max_cus,
                               iris_i_group_is_far(iris, group));
    workspace->slot_bytes = (size_t)space.slot_bytes;
    workspace->stage_bytes = (size_t)space.stage_bytes;
    workspace->rail_bytes = (size_t)space.rail_bytes;
    workspace->part_bytes = (size_t)space.bytes;
    workspace->pair_wgs = (int)space.pair_wgs;
    call.status = take_memory(iris, ccl, workspace);
    taken = call.status == IRIS_OK;
    share.offset =
        iris_i_heap_offset(&iris_i_heap(iris)->memory, workspace->device);
    status = iris_i_agree(&group->members, &call);
    if (status == IRIS_OK) {
        call.payload_bytes = 0;
        call.status = write_device(iris, &space, workspace);
        status = iris_i_agree(&group->members, &call);
    }
    if (status != IRIS_OK && taken) {
        (void)iris_i_alloc_give(ccl->alloc, workspace->offset);
    }
    return status;
}

/* Removes a workspace. */
static void drop_workspace(struct iris_ccl *ccl,
                           struct iris_ccl_workspace *workspace)
{
    struct iris_ccl_workspace **link = &ccl->workspaces;

    iris_i_stream_mark_forget(ccl->queue, &workspace->used);
    while (*link != workspace) {
        link = &(*link)->next;
    }
    *link = workspace->next;
    (void)iris_i_alloc_give(ccl->alloc, workspace->offset);
    free(workspace);
}

static void close_group(struct iris_extension *extension)
{
    struct group_space *space = (struct group_space *)extension;
    struct iris_ccl_workspace *next, *workspace = space->ccl->workspaces;

    for (; workspace != NULL; workspace = next) {
        next = workspace->next;
        if (workspace->group == space->group) {
            drop_workspace(space->ccl, workspace);
        }
    }
    free(space);
}

/* Makes the workspaces of a group end with the group. */
static iris_status_t watch_group(const iris_t *iris, struct iris_group *group)
{
    struct group_space *space;

    if (group->ccl != NULL) {
        return IRIS_OK;
    }
    space = calloc(1, sizeof *space);
    if (space == NULL) {
        return fail_memory(iris);
    }
    space->extension.close = close_group;
    space->ccl = iris_i_ccl_of(iris);
    space->group = group;
    group->ccl = &space->extension;
    return IRIS_OK;
}

iris_status_t iris_i_ccl_make(iris_t *iris,
                              const struct iris_ccl_workspace *wanted,
                              struct iris_ccl_workspace **workspace_p)
{
    struct iris_group *group = wanted->group;
    struct iris_ccl_workspace *workspace;
    struct iris_ccl *ccl;
    iris_status_t status = IRIS_OK;

    if (iris_i_extension(iris, IRIS_EXTENSION_CCL) == NULL) {
        if (group->members.count < iris_i_num_ranks(iris)) {
            return iris_i_fail(
                iris_i_log(iris), IRIS_ERR_STATE,
                "collectives of a group of %d of %d ranks need memory that all "
                "ranks make together; call iris_ccl_prepare on all of them "
                "first",
                group->members.count, iris_i_num_ranks(iris));
        }
        status = prepare_memory(iris);
    }
    if (status == IRIS_OK) {
        status = watch_group(iris, group);
    }
    workspace = status == IRIS_OK ? calloc(1, sizeof *workspace) : NULL;
    if (workspace == NULL) {
        return status != IRIS_OK ? status : fail_memory(iris);
    }
    ccl = iris_i_ccl_of(iris);
    *workspace = *wanted;
    iris_i_agree_begin(iris->control,
                       wanted->parts != 0 ? &parts_call : &workspace_call);
    status = agree_on(iris, ccl, workspace);
    if (status != IRIS_OK) {
        free(workspace);
        return status;
    }
    workspace->next = ccl->workspaces;
    ccl->workspaces = workspace;
    *workspace_p = workspace;
    return IRIS_OK;
}

/* The live workspace `asked`, or the group's own; NULL: it does not exist. */
static struct iris_ccl_workspace *find_live(const iris_t *iris,
                                            const iris_ccl_workspace_t *asked,
                                            const struct iris_group *group)
{
    struct iris_ccl_workspace *workspace =
        iris_i_extension(iris, IRIS_EXTENSION_CCL) == NULL
            ? NULL
            : iris_i_ccl_of(iris)->workspaces;

    while (workspace != NULL &&
           (asked != NULL ? workspace != asked || workspace->is_own
                          : workspace->group != group || !workspace->is_own)) {
        workspace = workspace->next;
    }
    return workspace;
}

iris_status_t iris_i_ccl_known_workspace(const iris_t *iris,
                                         struct iris_ccl_call *call)
{
    iris_ccl_workspace_t *asked = call->options.workspace;
    struct iris_ccl_workspace *workspace = find_live(iris, asked, call->group);

    if (asked != NULL &&
        (workspace == NULL || workspace->group != call->group)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: workspace %p is not a live one of this group; "
                           "pass one from iris_ccl_workspace_create, "
                           "or NULL",
                           call->name, (void *)asked);
    }
    call->workspace = workspace;
    return IRIS_OK;
}

/* Whether kernels reach all members. */
static iris_status_t check_members(const iris_t *iris,
                                   const struct iris_group *group,
                                   const char *call)
{
    return iris_i_group_is_far(iris, group)
               ? IRIS_OK
               : iris_i_group_check_reachable(iris, group, call);
}

iris_status_t iris_i_ccl_workspace(iris_t *iris, struct iris_ccl_call *call)
{
    struct iris_ccl_workspace own = {.group = call->group, .is_own = 1};
    iris_status_t status = iris_i_ccl_known_workspace(iris, call);

    if (status != IRIS_OK || call->workspace != NULL) {
        return status;
    }
    status = check_members(iris, call->group, call->name);
    return status == IRIS_OK ? iris_i_ccl_make(iris, &own, &call->workspace)
                             : status;
}

iris_status_t iris_i_ccl_set_epoch(iris_t *iris,
                                   struct iris_ccl_workspace *workspace,
                                   uint64_t epoch)
{
    struct iris_ccl_space space = lay_out(
        iris_i_ccl_of(iris), workspace->group, (uint64_t)workspace->max_cus,
        iris_i_group_is_far(iris, workspace->group));
    char *device = (char *)workspace->device;
    uint64_t none = 0;
    iris_status_t status = IRIS_OK;

    for (int w = 0; w < workspace->max_cus && status == IRIS_OK; w++) {
        status = iris_i_heap_copy(&iris_i_heap(iris)->memory,
                                  device + space.epochs + 8 * w, &epoch,
                                  sizeof epoch);
    }
    /* Erase the call described at that step: the steps come again, with other
     * calls. */
    return status == IRIS_OK
               ? iris_i_heap_copy(&iris_i_heap(iris)->memory,
                                  device + space.call + 8 * IRIS_CCL_CALL_BEGUN,
                                  &none, sizeof none)
               : status;
}

/* ---- Public calls ---- */

iris_status_t iris_ccl_workspace_create(iris_t *iris, iris_group_t *group,
                                        iris_ccl_workspace_t **workspace_p)
{
    const char *call = "iris_ccl_workspace_create";
    struct iris_ccl_workspace wanted = {.group = NULL};
    iris_status_t status =
        iris_i_enter_output(iris, call, workspace_p, "workspace_p");

    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, group, &group);
    }
    if (status == IRIS_OK) {
        status = check_members(iris, group, call);
    }
    wanted.group = group;
    return status == IRIS_OK ? iris_i_ccl_make(iris, &wanted, workspace_p)
                             : status;
}

iris_status_t iris_ccl_workspace_destroy(iris_t *iris,
                                         iris_ccl_workspace_t *workspace)
{
    struct iris_call call = {.type = &destroy_call};
    iris_status_t status = iris_i_enter(iris, "iris_ccl_workspace_destroy");

    if (status != IRIS_OK || workspace == NULL) {
        return status;
    }
    if (find_live(iris, workspace, NULL) == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_ccl_workspace_destroy: %p is not a live "
                           "workspace; pass one from "
                           "iris_ccl_workspace_create, once",
                           (void *)workspace);
    }
    status = iris_i_agree(&workspace->group->members, &call);
    if (status == IRIS_OK) {
        drop_workspace(iris_i_ccl_of(iris), workspace);
    }
    return status;
}
