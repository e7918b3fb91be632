/* SPDX-License-Identifier: MIT
 *
 * The public collectives, on streams and for workgroups of kernels: checks the
 * call, finds a workspace and a variant, and enqueues it.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/ccl.h>
#include <iris/ccl_device.h>
#include <iris/constants.h>
#include <iris/device/core/value.h>

#include "base/processor.h"
#include "context/context.h"
#include "queue/kernels.h"
#include "queue/queue.h"

/* ---------------------------------------------------------------------------
 * Handles for collectives of workgroups: a workspace with a part for each
 * workgroup.
 */

#define SLOT_BYTES ((size_t)4096)
/* Slots hold at least a few elements, and halves of slots hold whole shares. */
#define SLOT_GRAIN ((size_t)64)

static iris_status_t check_numbers(const iris_t *iris, const char *call,
                                   int max_wgs, size_t *slot_bytes)
{
    if (max_wgs < 1) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: max_wgs is %d; pass 1 to iris_num_cus()", call,
                           max_wgs);
    }
    if (*slot_bytes > (size_t)1 << 30) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: slot_bytes is %zu; pass at most 1 GiB", call,
                           *slot_bytes);
    }
    *slot_bytes = *slot_bytes == 0 ? SLOT_BYTES
                                   : (*slot_bytes + SLOT_GRAIN - 1) /
                                         SLOT_GRAIN * SLOT_GRAIN;
    return IRIS_OK;
}

iris_status_t iris_ccl_device_create(iris_t *iris, iris_group_t *group,
                                     int max_wgs, size_t slot_bytes,
                                     iris_ccl_device_t *handle_p)
{
    const char *call = "iris_ccl_device_create";
    struct iris_ccl_workspace wanted, *workspace = NULL;
    iris_status_t status =
        iris_i_enter_output(iris, call, handle_p, "handle_p");

    if (status == IRIS_OK) {
        status = check_numbers(iris, call, max_wgs, &slot_bytes);
    }
    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, group, &group);
    }
    if (status == IRIS_OK && !iris_i_group_is_far(iris, group)) {
        status = iris_i_group_check_reachable(iris, group, call);
    }
    if (status == IRIS_OK) {
        wanted = (struct iris_ccl_workspace){
            .group = group, .parts = max_wgs, .slot_bytes = slot_bytes};
        status = iris_i_ccl_make(iris, &wanted, &workspace);
    }
    if (status == IRIS_OK) {
        *handle_p = (iris_ccl_device_t){
            .context = iris_i_queue_context(iris_i_queue(iris)),
            .spaces = workspace->device,
            .stride = workspace->part_bytes,
            .piece = workspace->slot_bytes,
            .max_wgs = (uint32_t)max_wgs,
            .far = (uint32_t)iris_i_group_is_far(iris, group)};
    }
    return status;
}

/* The live workspace of a handle, or NULL. */
static struct iris_ccl_workspace *find_handle(const iris_t *iris,
                                              const iris_ccl_device_t *handle)
{
    struct iris_ccl_workspace *workspace =
        iris_i_extension(iris, IRIS_EXTENSION_CCL) == NULL
            ? NULL
            : iris_i_ccl_of(iris)->workspaces;

    while (workspace != NULL && (workspace->parts == 0 ||
                                 (void *)workspace->device != handle->spaces)) {
        workspace = workspace->next;
    }
    return workspace;
}

iris_status_t iris_ccl_device_destroy(iris_t *iris,
                                      const iris_ccl_device_t *handle)
{
    struct iris_ccl_workspace *workspace;
    iris_status_t status = iris_i_enter(iris, "iris_ccl_device_destroy");

    if (status != IRIS_OK || handle == NULL) {
        return status;
    }
    workspace = find_handle(iris, handle);
    if (workspace == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_ccl_device_destroy: no live handle; pass one "
                           "from iris_ccl_device_create, once");
    }
    return iris_ccl_workspace_destroy(iris, workspace);
}

/* ---------------------------------------------------------------------------
 * The public collectives: checks the call, finds a workspace and a variant, and
 * enqueues it.
 */

/* Whether a reduction can have NaNs. Results have only one bit pattern for
 * NaN. */
static int has_nans(const struct iris_ccl_call *call)
{
    return iris_i_ccl_kinds[call->op].reduces &&
           (call->kind == IRIS_D_KIND_f16 || call->kind == IRIS_D_KIND_bf16 ||
            call->kind == IRIS_D_KIND_f32 || call->kind == IRIS_D_KIND_f64 ||
            call->kind == IRIS_D_KIND_f8e4m3 ||
            call->kind == IRIS_D_KIND_f8e5m2);
}

/* A message that a member sends to itself. */
static iris_status_t keep_rows(iris_t *iris, const struct iris_ccl_call *call)
{
    struct iris_ccl_route own;
    const char *from;
    char *to;

    iris_i_ccl_route_to(call, 0, &own);
    iris_i_ccl_route_from(call, 0, &own);
    from = (const char *)call->in + own.in_at;
    to = (char *)call->out + own.out_at;
    if (own.in_bytes != own.out_bytes) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the only member sends itself %zu bytes and "
                           "receives %zu; pass equal counts",
                           call->name, (size_t)own.in_bytes,
                           (size_t)own.out_bytes);
    }
    return from == to || own.in_bytes == 0
               ? IRIS_OK
               : iris_i_copy(iris_i_queue(iris), to, from, own.in_bytes,
                             call->options.stream);
}

/* With one member, the output is the input, row by row. */
static iris_status_t copy_own(iris_t *iris, const struct iris_ccl_call *call)
{
    size_t rows = call->options.rows == 0 ? 1 : call->options.rows;
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < rows && status == IRIS_OK; i++) {
        char *to = (char *)call->out + i * call->out_pitch;
        const char *from = (const char *)call->in + i * call->in_pitch;

        if (has_nans(call)) {
            status = iris_i_ccl_launch_alone(iris, call, i);
        } else if (to != from) {
            status = iris_i_copy(iris_i_queue(iris), to, from, call->bytes,
                                 call->options.stream);
        }
    }
    return status;
}

/* The stream that orders the call. For a part of a fused operation on an
 * internal stream, this is the operation's stream. */
static struct iris_stream *order_of(const struct iris_ccl_call *call)
{
    return iris_i_fused() == NULL ? call->options.stream
                                  : iris_i_fused()->stream;
}

/* Enqueues a call, whose workspace exists. A collective without elements is
 * only a meeting, in which the members find out whether others have elements.
 *
 * One stream at a time uses a workspace. Another stream may take it over once
 * the host knows that the last stream's work is done.
 *
 * Peers read a broadcast's `in` in place, or the root sends it from there. An
 * `in` off the heap is copied to the root's own `out` first, where the data
 * belongs anyway, unless the kernel stages it (ccl_stage.h). */
static iris_status_t enqueue_call(iris_t *iris, struct iris_ccl_call *call)
{
    int alone = call->group->members.count == 1;
    int far = iris_i_group_is_far(iris, call->group);
    int pairs = iris_i_ccl_kinds[call->op].pairs;
    int is_empty = call->count == 0 && call->op < IRIS_CCL_ALL_TO_ALLV;
    iris_status_t status = is_empty ? IRIS_OK : iris_i_ccl_choose(iris, call);

    if (status != IRIS_OK || alone) {
        return status != IRIS_OK || is_empty ? status
               : pairs                       ? keep_rows(iris, call)
                                             : copy_own(iris, call);
    }
    if (!iris_i_stream_mark_take(iris_i_queue(iris), &call->workspace->used,
                                 order_of(call))) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                           "%s: the workspace was last used on another stream, "
                           "whose work may not be done; call "
                           "iris_stream_synchronize for that one, or give this "
                           "one its own workspace "
                           "(iris_ccl_workspace_create)",
                           call->name);
    }
    if (is_empty) {
        return iris_i_ccl_launch_meeting(iris, call, far);
    }
    if (pairs) {
        return iris_i_ccl_launch_pairs(iris, call, far);
    }
    if (far) {
        return iris_i_ccl_launch_far(iris, call);
    }
    if (call->op == IRIS_CCL_BROADCAST && call->variant != IRIS_CCL_PACKET &&
        !call->in_on_heap && !call->staged) {
        status = copy_own(iris, call);
        call->in = call->out;
    }
    return status == IRIS_OK ? iris_i_ccl_launch(iris, call) : status;
}

/* The other rank in a call of two members, or -1. */
static int other_rank(const struct iris_ccl_call *call)
{
    int member = call->op == IRIS_CCL_RECV  ? call->from
                 : call->op < IRIS_CCL_SEND ? -1
                                            : call->to;

    return member < 0 ? -1 : call->group->ranks[member];
}

/* Whether each of its buffers is one range that the call reads or writes
 * completely. */
static int is_whole(const struct iris_ccl_call *call)
{
    return call->options.rows == 0 && call->in_displs == NULL &&
           call->out_displs == NULL;
}

static uint64_t bytes_with(const void *call, int member, int from)
{
    struct iris_ccl_route route = {0};

    if (from) {
        iris_i_ccl_route_from(call, (uint32_t)member, &route);
        return route.out_bytes;
    }
    iris_i_ccl_route_to(call, (uint32_t)member, &route);
    return route.in_bytes;
}

/* Finds the senders and receivers of the data: the call orders only these. */
static void find_order(const struct iris_ccl_call *call,
                       struct iris_host_event *event)
{
    bool is_root = call->group->index == call->root;

    event->tells = event->hears = true;
    switch (call->op) {
    case IRIS_CCL_BROADCAST:
    case IRIS_CCL_SCATTER_FROM:
        event->tells = is_root;
        event->hears = !is_root;
        break;
    case IRIS_CCL_REDUCE:
    case IRIS_CCL_GATHER_TO:
        event->tells = !is_root;
        event->hears = is_root;
        break;
    case IRIS_CCL_SEND:
    case IRIS_CCL_RECV:
    case IRIS_CCL_SEND_RECV:
        event->tells = call->to >= 0;
        event->hears = call->from >= 0;
        event->source_rank = event->hears ? call->group->ranks[call->from] : -1;
        break;
    default:
        break;
    }
}

static iris_status_t enqueue_watched(iris_t *iris, struct iris_ccl_call *call)
{
    struct iris_host_event event = {.op = IRIS_HOST_COLLECTIVE,
                                    .rank = iris_i_rank(iris),
                                    .target_rank = other_rank(call),
                                    .stream = call->options.stream,
                                    .group = call->group,
                                    .kernel = call->name,
                                    .address = call->out,
                                    .source = call->in,
                                    .bytes = call->work_bytes,
                                    .value = (uint64_t)call->root,
                                    .count = call->count,
                                    .type = iris_dtype_name(call->dtype),
                                    .call = call};
    int is_root = call->group->index == call->root;

    if (is_whole(call)) {
        event.in_bytes =
            call->op == IRIS_CCL_BROADCAST && !is_root ? 0 : call->in_bytes;
        event.out_bytes =
            call->op == IRIS_CCL_REDUCE && !is_root ? 0 : call->out_bytes;
    }

    find_order(call, &event);
    event.bytes_with = iris_i_ccl_kinds[call->op].pairs ? bytes_with : NULL;
    iris_i_hooks_before(iris_i_hooks(iris), &event);
    return iris_i_hooks_after(iris_i_hooks(iris), &event,
                              enqueue_call(iris, call));
}

/* A group's first call makes its workspace, together with the other members,
 * before anything is enqueued or observed. A group of one member needs none,
 * but accepts the same options as larger groups. Scales, and the figures that
 * choose a variant, are the same on all members only in the same floating-point
 * environment. */
static iris_status_t run_call(iris_t *iris, struct iris_ccl_call *call,
                              const struct iris_ccl_options *options)
{
    iris_status_t status = iris_i_enter(iris, call->name);
    uint64_t fp = iris_i_fp_enter();

    if (status == IRIS_OK) {
        status = iris_i_ccl_take_options(iris, call, options);
    }
    if (status == IRIS_OK) {
        status = iris_i_ccl_check(iris, call);
    }
    if (status == IRIS_OK) {
        status = call->group->members.count == 1
                     ? iris_i_ccl_known_workspace(iris, call)
                     : iris_i_ccl_workspace(iris, call);
    }
    status = status == IRIS_OK ? enqueue_watched(iris, call) : status;
    iris_i_fp_leave(fp);
    return status;
}

static struct iris_ccl_call call_of(enum iris_ccl_op op, const void *in,
                                    void *out, size_t count, iris_dtype_t dtype)
{
    struct iris_ccl_call call = {.name = iris_i_ccl_kinds[op].name,
                                 .op = op,
                                 .in = in,
                                 .out = out,
                                 .count = count,
                                 .dtype = dtype,
                                 .to = -1,
                                 .from = -1};

    return call;
}

iris_status_t iris_all_reduce(iris_t *iris, const void *in, void *out,
                              size_t count, iris_dtype_t dtype,
                              iris_reduce_op_t op,
                              const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_ALL_REDUCE, in, out, count, dtype);

    call.reduce = op;
    return run_call(iris, &call, options);
}

iris_status_t iris_all_gather(iris_t *iris, const void *in, void *out,
                              size_t count, iris_dtype_t dtype,
                              const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_ALL_GATHER, in, out, count, dtype);

    return run_call(iris, &call, options);
}

iris_status_t iris_reduce_scatter(iris_t *iris, const void *in, void *out,
                                  size_t count, iris_dtype_t dtype,
                                  iris_reduce_op_t op,
                                  const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_REDUCE_SCATTER, in, out, count, dtype);

    call.reduce = op;
    return run_call(iris, &call, options);
}

iris_status_t iris_all_to_all(iris_t *iris, const void *in, void *out,
                              size_t count, iris_dtype_t dtype,
                              const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_ALL_TO_ALL, in, out, count, dtype);

    return run_call(iris, &call, options);
}

iris_status_t iris_ccl_broadcast(iris_t *iris, const void *in, void *out,
                                 size_t count, iris_dtype_t dtype, int root,
                                 const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_BROADCAST, in, out, count, dtype);

    call.root = root;
    return run_call(iris, &call, options);
}

iris_status_t iris_reduce(iris_t *iris, const void *in, void *out, size_t count,
                          iris_dtype_t dtype, iris_reduce_op_t op, int root,
                          const struct iris_ccl_options *options)
{
    struct iris_ccl_call call = call_of(IRIS_CCL_REDUCE, in, out, count, dtype);

    call.reduce = op;
    call.root = root;
    return run_call(iris, &call, options);
}

iris_status_t iris_gather(iris_t *iris, const void *in, void *out, size_t count,
                          iris_dtype_t dtype, int root,
                          const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_GATHER_TO, in, out, count, dtype);

    call.root = root;
    return run_call(iris, &call, options);
}

iris_status_t iris_scatter(iris_t *iris, const void *in, void *out,
                           size_t count, iris_dtype_t dtype, int root,
                           const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_SCATTER_FROM, in, out, count, dtype);

    call.root = root;
    return run_call(iris, &call, options);
}

iris_status_t iris_all_gatherv(iris_t *iris, const void *in, void *out,
                               const size_t *counts, const size_t *displs,
                               iris_dtype_t dtype,
                               const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_ALL_GATHERV, in, out, 0, dtype);

    call.out_counts = counts;
    call.out_displs = displs;
    return run_call(iris, &call, options);
}

iris_status_t iris_all_to_allv(iris_t *iris, const void *in,
                               const size_t *in_counts, const size_t *in_displs,
                               void *out, const size_t *out_counts,
                               const size_t *out_displs, iris_dtype_t dtype,
                               const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_ALL_TO_ALLV, in, out, 0, dtype);

    call.in_counts = in_counts;
    call.in_displs = in_displs;
    call.out_counts = out_counts;
    call.out_displs = out_displs;
    return run_call(iris, &call, options);
}

iris_status_t iris_send(iris_t *iris, const void *in, size_t count,
                        iris_dtype_t dtype, int to,
                        const struct iris_ccl_options *options)
{
    struct iris_ccl_call call = call_of(IRIS_CCL_SEND, in, NULL, count, dtype);

    call.to = to;
    return run_call(iris, &call, options);
}

iris_status_t iris_recv(iris_t *iris, void *out, size_t count,
                        iris_dtype_t dtype, int from,
                        const struct iris_ccl_options *options)
{
    struct iris_ccl_call call = call_of(IRIS_CCL_RECV, NULL, out, 0, dtype);

    call.out_count = count;
    call.from = from;
    return run_call(iris, &call, options);
}

iris_status_t iris_send_recv(iris_t *iris, const void *in, size_t in_count,
                             int to, void *out, size_t out_count, int from,
                             iris_dtype_t dtype,
                             const struct iris_ccl_options *options)
{
    struct iris_ccl_call call =
        call_of(IRIS_CCL_SEND_RECV, in, out, in_count, dtype);

    call.to = to;
    call.out_count = out_count;
    call.from = from;
    return run_call(iris, &call, options);
}

iris_status_t iris_all_reduce_preamble(iris_t *iris,
                                       const struct iris_ccl_options *options)
{
    struct iris_ccl_call call = {.name = "iris_all_reduce_preamble"};
    iris_status_t status = iris_i_enter(iris, call.name);

    if (status == IRIS_OK) {
        status = iris_i_ccl_take_options(iris, &call, options);
    }
    return status == IRIS_OK ? iris_i_ccl_workspace(iris, &call) : status;
}
