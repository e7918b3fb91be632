/* SPDX-License-Identifier: MIT
 *
 * Launches collectives: the kernel, the number of workgroups, the arguments;
 * and the parts that each pair of members exchanges in a call of messages.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/constants.h>
#include <iris/device/core/value.h>

#include "ccl/kernels.h"
#include "backend/backend.h"
#include "context/context.h"
#include "queue/kernels.h"

#include <string.h>

/* ---------------------------------------------------------------------------
 * Calls of messages as routes: the data to and from each member.
 */

/* Index of a member's first element. */
static size_t displ_of(const size_t *counts, const size_t *displs,
                       uint32_t member)
{
    size_t at = 0;

    if (displs != NULL) {
        return displs[member];
    }
    for (uint32_t m = 0; m < member; m++) {
        at += counts[m];
    }
    return at;
}

void iris_i_ccl_route_to(const struct iris_ccl_call *call, uint32_t member,
                         struct iris_ccl_route *route_p)
{
    size_t element = iris_dtype_size(call->dtype);
    int self = call->group->index, m = (int)member;

    route_p->in_at = route_p->in_bytes = 0;
    switch (call->op) {
    case IRIS_CCL_GATHER_TO:
        route_p->in_bytes = m == call->root ? call->bytes : 0;
        break;
    case IRIS_CCL_SCATTER_FROM:
        route_p->in_at = self == call->root ? member * call->bytes : 0;
        route_p->in_bytes = self == call->root ? call->bytes : 0;
        break;
    case IRIS_CCL_ALL_GATHERV:
        route_p->in_bytes = call->out_counts[self] * element;
        break;
    case IRIS_CCL_ALL_TO_ALLV:
        route_p->in_at =
            displ_of(call->in_counts, call->in_displs, member) * element;
        route_p->in_bytes = call->in_counts[member] * element;
        break;
    default:
        route_p->in_bytes = m == call->to ? call->count * element : 0;
        break;
    }
}

void iris_i_ccl_route_from(const struct iris_ccl_call *call, uint32_t member,
                           struct iris_ccl_route *route_p)
{
    size_t element = iris_dtype_size(call->dtype);
    int self = call->group->index, m = (int)member;

    route_p->out_at = route_p->out_bytes = 0;
    switch (call->op) {
    case IRIS_CCL_GATHER_TO:
        route_p->out_at = self == call->root ? member * call->bytes : 0;
        route_p->out_bytes = self == call->root ? call->bytes : 0;
        break;
    case IRIS_CCL_SCATTER_FROM:
        route_p->out_bytes = m == call->root ? call->bytes : 0;
        break;
    case IRIS_CCL_ALL_GATHERV:
    case IRIS_CCL_ALL_TO_ALLV:
        route_p->out_at =
            displ_of(call->out_counts, call->out_displs, member) * element;
        route_p->out_bytes = call->out_counts[member] * element;
        break;
    default:
        route_p->out_bytes = m == call->from ? call->out_count * element : 0;
        break;
    }
}

/* A hash of the counts of an all_gatherv, which are the same on all members. */
static uint32_t hash_route(const struct iris_ccl_call *call)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;

    for (int m = 0; m < call->group->members.count; m++) {
        hash = (hash ^ call->out_counts[m]) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static iris_status_t check_peer(const iris_t *iris,
                                const struct iris_ccl_call *call,
                                const char *name, int peer)
{
    int members = call->group->members.count;
    int both = call->op == IRIS_CCL_SEND_RECV && call->to == call->from &&
               call->count == call->out_count;

    if (peer >= 0 && peer < members && (peer != call->group->index || both)) {
        return IRIS_OK;
    }
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                       "%s: %s is %d; pass the index of another member of the "
                       "group, 0 to %d, or of this one in iris_send_recv for "
                       "both, with equal counts",
                       call->name, name, peer, members - 1);
}

static iris_status_t check_peers(const iris_t *iris,
                                 const struct iris_ccl_call *call)
{
    iris_status_t status = IRIS_OK;

    if (call->op == IRIS_CCL_SEND || call->op == IRIS_CCL_SEND_RECV) {
        status = check_peer(iris, call, "to", call->to);
    }
    if (status == IRIS_OK &&
        (call->op == IRIS_CCL_RECV || call->op == IRIS_CCL_SEND_RECV)) {
        status = check_peer(iris, call, "from", call->from);
    }
    return status;
}

/* An array of counts of a call. */
struct counts {
    const char *name;
    const size_t *counts;
    const size_t *displs;
};

/* Checks an array of counts, and sums it up. */
static iris_status_t check_counts(const iris_t *iris,
                                  const struct iris_ccl_call *call,
                                  const struct counts *array, size_t *sum_p)
{
    int members = call->group->members.count;
    size_t most = PTRDIFF_MAX / iris_dtype_size(call->dtype);

    if (array->counts == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: %s is NULL; pass a number for each of the "
                           "group's %d members",
                           call->name, array->name, members);
    }
    *sum_p = 0;
    for (int m = 0; m < members; m++) {
        size_t at = array->displs == NULL ? *sum_p : array->displs[m];
        size_t count = array->counts[m];

        if (count > most || at > most - count || *sum_p > most - count) {
            return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                               "%s: %s[%d] is %zu, from element %zu on: more "
                               "than memory can hold; check counts and "
                               "displacements",
                               call->name, array->name, m, count, at);
        }
        *sum_p += count;
    }
    return IRIS_OK;
}

/* Computes the size of each buffer from its first byte to its last. */
static void measure_extent(struct iris_ccl_call *call)
{
    struct iris_ccl_route route;

    call->in_bytes = call->out_bytes = 0;
    for (int m = 0; m < call->group->members.count; m++) {
        iris_i_ccl_route_to(call, (uint32_t)m, &route);
        iris_i_ccl_route_from(call, (uint32_t)m, &route);
        if (route.in_bytes > 0 &&
            route.in_at + route.in_bytes > call->in_bytes) {
            call->in_bytes = route.in_at + route.in_bytes;
        }
        if (route.out_bytes > 0 &&
            route.out_at + route.out_bytes > call->out_bytes) {
            call->out_bytes = route.out_at + route.out_bytes;
        }
    }
}

iris_status_t iris_i_ccl_route_sizes(const iris_t *iris,
                                     struct iris_ccl_call *call)
{
    size_t element = iris_dtype_size(call->dtype);
    size_t most = PTRDIFF_MAX / element / (size_t)call->group->members.count;
    struct counts in = {"in_counts", call->in_counts, call->in_displs};
    struct counts out = {call->op == IRIS_CCL_ALL_GATHERV ? "counts"
                                                          : "out_counts",
                         call->out_counts, call->out_displs};
    size_t received = 0;
    iris_status_t status = check_peers(iris, call);

    if (status == IRIS_OK && call->op == IRIS_CCL_ALL_TO_ALLV) {
        status = check_counts(iris, call, &in, &call->count);
    }
    if (status == IRIS_OK && (call->op == IRIS_CCL_ALL_TO_ALLV ||
                              call->op == IRIS_CCL_ALL_GATHERV)) {
        status = check_counts(iris, call, &out, &received);
        call->count = call->op == IRIS_CCL_ALL_GATHERV ? received : call->count;
    } else if (status == IRIS_OK &&
               (call->count > most || call->out_count > most)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: count %zu of %s is more than memory can hold; "
                           "check the count",
                           call->name,
                           call->count > most ? call->count : call->out_count,
                           iris_dtype_name(call->dtype));
    }
    if (status == IRIS_OK) {
        call->bytes = call->count * element;
        call->work_bytes = call->bytes;
        measure_extent(call);
    }
    return status;
}

/* ---------------------------------------------------------------------------
 * Launches collectives: chooses the kernel, the number of workgroups, and the
 * arguments.
 */

/* Lanes of a workgroup, and the work that justifies another workgroup: on a GPU
 * one access of each lane, on the CPU more time than waking a thread takes. */
#define LANES 512
#define LEAST_LANES 64
#define CPU_BYTES_PER_WG ((size_t)128 << 10)

static size_t bytes_per_wg(const iris_t *iris, size_t access)
{
    return iris_i_device(iris)->wavefront > 1 ? LANES * access
                                              : CPU_BYTES_PER_WG;
}

/* The values that members compare, and that messages describe. In an
 * all_to_allv, each pair of members compares its own bytes. */
static struct iris_compared describe_compared(const struct iris_ccl_call *call)
{
    struct iris_compared compared = {
        .op = call->op < IRIS_CCL_REDUCE
                  ? (int)call->op
                  : IRIS_COMPARED_REDUCE + (int)(call->op - IRIS_CCL_REDUCE),
        .dtype = (int)call->dtype,
        .reduce = (int)call->reduce,
        .variant = (int)call->variant,
        .root = call->root,
        .sizes = {call->count, call->options.rows}};

    memcpy(&compared.sizes[2], &call->options.scale, sizeof(double));

    if (iris_i_ccl_kinds[call->op].pairs) {
        compared.sizes[0] = call->op == IRIS_CCL_ALL_TO_ALLV ? 0 : call->bytes;
        compared.sizes[1] =
            call->op == IRIS_CCL_ALL_GATHERV ? hash_route(call) : 0;
    }
    return iris_i_fused() == NULL ? compared : iris_i_fused()->compared;
}

/* A hash of the call. Members that make different calls have the same one only
 * by chance. */
static uint32_t call_number(const struct iris_ccl_call *call, unsigned grid,
                            const struct iris_dev_call *what)
{
    /* Small values share a word: hashing a word takes time. */
    const uint64_t small = (uint64_t)call->op | (uint64_t)call->variant << 4 |
                           (uint64_t)call->options.distribution << 12 |
                           (uint64_t)call->options.own_rows << 16 |
                           (uint64_t)call->options.num_rings << 20 |
                           (uint64_t)call->options.async << 24 |
                           (uint64_t)grid << 32;
    /* In an all_to_allv, each member has its own count. */
    const uint64_t count = iris_i_ccl_kinds[call->op].pairs ? 0 : call->count;
    const uint64_t words[] = {small,           count,         call->in_pitch,
                              call->out_pitch, what->what,    what->sizes[0],
                              what->sizes[1],  what->sizes[2]};
    uint64_t hash = 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static struct iris_ccl_start make_start(const iris_t *iris,
                                        const struct iris_ccl_call *call,
                                        unsigned grid, uint32_t steps)
{
    struct iris_compared what = describe_compared(call);
    struct iris_ccl_start start;

    start.context = iris_i_queue_context(iris_i_queue(iris));
    start.space = call->workspace->device;
    start.what = iris_i_compared_pack(&what);
    start.call = call_number(call, grid, &start.what);
    start.steps = steps;
    return start;
}

/* The operation that kernels do: an average is a scaled sum. */
static int32_t kernel_op(const struct iris_ccl_call *call)
{
    return call->reduce == IRIS_REDUCE_AVG ? IRIS_REDUCE_SUM
                                           : (int32_t)call->reduce;
}

static struct iris_ccl_scale kernel_scale(const struct iris_ccl_call *call)
{
    struct iris_ccl_scale scale = {call->scale, (float)call->scale, 0};

    return scale;
}

/* Number of lanes that a workgroup can use: a few more wavefronts take longer
 * to start than a small message to arrive. The same on all members. */
static unsigned lanes_for(const struct iris_ccl_call *call, unsigned grid)
{
    size_t accesses =
        (call->bytes + IRIS_CCL_UNIT_BYTES - 1) / IRIS_CCL_UNIT_BYTES;

    if (grid > 1 || accesses >= LANES) {
        return LANES;
    }
    return accesses <= LEAST_LANES ? LEAST_LANES
                                   : (unsigned)(accesses + LEAST_LANES - 1) /
                                         LEAST_LANES * LEAST_LANES;
}

/* Ends the call on the other members, which wait for this one, after a failure
 * here. In a call of all members it makes another call, which they find; in a
 * call of pairs it refuses the partners' messages. Returns `status`, with this
 * thread's message. */
static iris_status_t refuse_call(iris_t *iris, const struct iris_ccl_call *call,
                                 iris_status_t status)
{
    const struct iris_compared own = describe_compared(call);
    const struct iris_compared failed = {
        .op = IRIS_COMPARED_FAILED,
        .sizes = {(uint64_t) - (int)status, iris_i_compared_pack(&own).what}};
    const struct iris_kernel *kernel = iris_i_group_is_far(iris, call->group)
                                           ? iris_i_ccl_far_pairs_kernel
                                           : iris_i_ccl_pairs_kernel;
    int members = call->group->members.count, index = call->group->index;
    int meets = call->op < IRIS_CCL_ALL_TO_ALLV;
    struct iris_ccl_pairs_args args = {
        .start = make_start(iris, call, 1, (uint32_t)meets),
        .bytes_per_wg = 1,
        .most_wgs = 1,
        .meets = meets,
        .count = !meets,
        .fails = !meets};
    struct iris_launch_request request = {
        kernel, 1, lanes_for(call, 1), &args, kernel->args_bytes, true};
    char message[IRIS_MESSAGE_BYTES];

    args.start.what = iris_i_compared_pack(&failed);
    args.start.call = call_number(call, 1, &args.start.what);
    snprintf(message, sizeof message, "%s", iris_last_error());
    for (int i = 1; i < (meets ? 2 : members); i++) {
        int member = (index + i) % members;

        args.first = meets ? 0 : (uint32_t)i;
        if (call->op <= IRIS_CCL_ALL_TO_ALLV || member == call->to ||
            member == call->from) {
            (void)iris_i_launch(iris_i_queue(iris), &request,
                                call->options.stream);
        }
    }
    return iris_i_fail_again(status, message);
}

static iris_status_t launch_kernel(iris_t *iris,
                                   const struct iris_ccl_call *call,
                                   const struct iris_kernel *kernel,
                                   unsigned grid, const void *args)
{
    struct iris_launch_request request = {
        kernel, grid, lanes_for(call, grid), args, kernel->args_bytes, true};
    iris_status_t status =
        iris_i_launch(iris_i_queue(iris), &request, call->options.stream);

    return status == IRIS_OK || call->group->members.count == 1
               ? status
               : refuse_call(iris, call, status);
}

/* The part of the buffers that a variant combines at a time. */
static enum iris_ccl_shape shape_of(const struct iris_ccl_call *call)
{
    switch (call->variant) {
    case IRIS_CCL_ONE_SHOT:
        return IRIS_CCL_WHOLE;
    case IRIS_CCL_TWO_SHOT:
        return IRIS_CCL_TO_ALL;
    case IRIS_CCL_ATOMIC:
        return IRIS_CCL_ADDED;
    case IRIS_CCL_SPINLOCK:
        return IRIS_CCL_LOCKED;
    case IRIS_CCL_RING:
        return IRIS_CCL_RINGED;
    default:
        return call->options.own_rows ? IRIS_CCL_TO_ALL : IRIS_CCL_SCATTER;
    }
}

/* How the call's input goes through the workspace, if some member's input is
 * off the heap. Only that member knows whether it is. `slots` is the number of
 * pieces for which a workgroup has room; each part has `parts` of them. Avoids
 * divisions for small calls. */
static struct iris_ccl_staging make_staging(const struct iris_ccl_call *call,
                                            unsigned grid, size_t slots,
                                            size_t parts)
{
    const size_t grain = IRIS_CCL_STAGE_GRAIN;
    size_t bytes = (call->bytes + grain - 1) / grain * grain;
    struct iris_ccl_staging staging = {call->workspace->stage_bytes, bytes, 1,
                                       call->staged, 0};

    if (staging.region == 0 || (grid == 1 && bytes < staging.region &&
                                bytes * slots <= staging.region)) {
        return staging;
    }
    staging.region = staging.region / grid / grain * grain;
    staging.piece = staging.region / slots / grain * grain * parts;
    bytes = (bytes / grain + grid - 1) / grid * grain;
    staging.pieces = (bytes + staging.piece - 1) / staging.piece;
    return staging;
}

static iris_status_t launch_reduce(iris_t *iris,
                                   const struct iris_ccl_call *call,
                                   const struct iris_kernel *kernel)
{
    uint32_t members = (uint32_t)call->group->members.count;
    enum iris_ccl_shape shape = shape_of(call);
    int shares = shape == IRIS_CCL_TO_ALL || shape == IRIS_CCL_RINGED;
    struct iris_ccl_reduce_args args;
    unsigned grid = iris_i_ccl_grid(
        iris, call, shares ? call->work_bytes / members : call->work_bytes,
        bytes_per_wg(iris, IRIS_CCL_DEVICE_BLOCK));

    /* In an all_reduce, a piece has a share for each member, and room for
     * sums. */
    args.staging = shape == IRIS_CCL_SCATTER
                       ? make_staging(call, grid, members, 1)
                       : make_staging(call, grid, members + 1, members);
    args.start = make_start(iris, call, grid,
                            shape == IRIS_CCL_RINGED
                                ? 2 * members - 1
                                : (uint32_t)args.staging.pieces + 2);
    args.in = call->in;
    args.out = call->out;
    args.bytes = call->bytes;
    args.kind = call->kind;
    args.op = kernel_op(call);
    args.scale = kernel_scale(call);
    args.shape = (int32_t)shape;
    args.async = call->options.async;
    args.rows = call->options.rows;
    args.in_pitch = call->in_pitch;
    args.out_pitch = call->out_pitch;
    args.striding = call->options.distribution == IRIS_CCL_STRIDING;
    args.own_rows = call->options.own_rows;
    args.rings = call->options.num_rings;
    args.root = call->op == IRIS_CCL_REDUCE ? call->root : -1;
    args.near = call->workspace->near;
    return launch_kernel(iris, call, kernel, grid, &args);
}

static iris_status_t launch_move(iris_t *iris, const struct iris_ccl_call *call)
{
    struct iris_ccl_move_args args;
    unsigned grid = iris_i_ccl_grid(iris, call, call->work_bytes,
                                    bytes_per_wg(iris, IRIS_CCL_DEVICE_BLOCK));
    int pull = call->variant == IRIS_CCL_PULL;
    int all_to_all = call->op == IRIS_CCL_ALL_TO_ALL;
    int parts = call->op != IRIS_CCL_BROADCAST;
    size_t part;

    args.staging = make_staging(
        call, grid, all_to_all ? (size_t)call->group->members.count : 1, 1);
    args.start =
        make_start(iris, call, grid, (uint32_t)args.staging.pieces + 1);
    args.in = call->in;
    args.out = call->out;
    args.bytes = call->bytes;
    part = call->op == IRIS_CCL_ALL_GATHER && call->options.rows != 0
               ? call->options.rows * call->out_pitch
               : call->bytes;
    args.rows = call->options.rows;
    args.in_pitch = call->in_pitch;
    args.out_pitch = call->out_pitch;
    args.in_of_peer = all_to_all && !pull ? call->bytes : 0;
    args.in_of_self = all_to_all && pull ? call->bytes : 0;
    args.out_of_peer = parts && pull ? part : 0;
    args.out_of_self = parts && !pull ? part : 0;
    args.pull = pull;
    args.root = call->op == IRIS_CCL_BROADCAST ? call->root : -1;
    args.async = pull && call->options.async;
    args.near = call->workspace->near;
    return launch_kernel(iris, call,
                         args.near.count > IRIS_CCL_NEAR
                             ? iris_i_ccl_move_kernel
                             : iris_i_ccl_move_near_kernel,
                         grid, &args);
}

static iris_status_t launch_packet(iris_t *iris,
                                   const struct iris_ccl_call *call)
{
    size_t piece = iris_i_ccl_step_bytes(call, call->variant);
    size_t members = (size_t)call->group->members.count;
    int shares = call->variant == IRIS_CCL_TWO_SHOT_PACKET;
    struct iris_ccl_packet_args args;
    unsigned grid;

    args.in = call->in;
    args.out = call->out;
    args.bytes = call->bytes;
    args.piece = piece < call->bytes ? piece : call->bytes;
    args.kind = call->kind;
    args.op = kernel_op(call);
    args.scale = kernel_scale(call);
    args.exchange =
        shares ? (int)IRIS_CCL_REDUCE_TWO : iris_i_ccl_kinds[call->op].exchange;
    args.root = call->root;
    args.to_root = call->op == IRIS_CCL_REDUCE;
    grid =
        iris_i_ccl_grid(iris, call, shares ? args.piece / members : args.piece,
                        bytes_per_wg(iris, IRIS_CCL_UNIT_BYTES));
    args.start =
        make_start(iris, call, grid,
                   (uint32_t)((call->bytes + args.piece - 1) / args.piece));
    args.near = call->workspace->near;
    return launch_kernel(iris, call,
                         members > IRIS_CCL_NEAR
                             ? iris_i_ccl_packet_kernel
                             : iris_i_ccl_packet_near(&args),
                         grid, &args);
}

/* Number of workgroups for a message of this size. */
static uint64_t message_wgs(const struct iris_ccl_pairs_args *args,
                            uint64_t bytes)
{
    uint64_t wgs = (bytes + args->bytes_per_wg - 1) / args->bytes_per_wg;

    return wgs < args->most_wgs ? wgs : args->most_wgs;
}

/* The routes of the members from args->first on. Returns the workgroups that
 * they need. */
static unsigned fill_routes(const struct iris_ccl_call *call,
                            struct iris_ccl_pairs_args *args)
{
    uint32_t members = (uint32_t)call->group->members.count;
    uint32_t index = (uint32_t)call->group->index, left = members - args->first;
    uint64_t wgs, grid = 1;

    args->count = left < IRIS_CCL_ROUTES ? left : IRIS_CCL_ROUTES;
    for (uint32_t r = 0; r < args->count; r++) {
        struct iris_ccl_route *route = &args->routes[r];
        uint32_t i = args->first + r;

        iris_i_ccl_route_to(call, (index + i) % members, route);
        iris_i_ccl_route_from(call, (index + members - i) % members, route);
        wgs = message_wgs(args, route->in_bytes > route->out_bytes
                                    ? route->in_bytes
                                    : route->out_bytes);
        grid = wgs > grid ? wgs : grid;
    }
    return (unsigned)grid;
}

/* The route, from this member on, of a message without elements. 0: there is
 * none. A message to this rank itself needs none. */
static uint32_t empty_route(const struct iris_ccl_call *call, int member,
                            size_t count, int from)
{
    int n = call->group->members.count, index = call->group->index;

    return member < 0 || count > 0
               ? 0
               : (uint32_t)((from ? index - member : member - index) + n) %
                     (uint32_t)n;
}

iris_status_t iris_i_ccl_launch_pairs(iris_t *iris,
                                      const struct iris_ccl_call *call, int far)
{
    const struct iris_kernel *kernel =
        far ? iris_i_ccl_far_pairs_kernel : iris_i_ccl_pairs_kernel;
    int best = call->cus > 0 ? call->cus : call->workspace->best_cus;
    int most = call->workspace->pair_wgs;
    int meets = call->op < IRIS_CCL_SEND;
    struct iris_ccl_pairs_args args = {
        .in = call->in,
        .out = call->out,
        .bytes_per_wg = bytes_per_wg(iris, IRIS_CCL_DEVICE_BLOCK),
        .most_wgs = far           ? 1u
                    : best < most ? (uint32_t)best
                                  : (uint32_t)most,
        .meets = meets,
        .checks = call->op == IRIS_CCL_ALL_TO_ALLV,
        .empty_to = empty_route(call, call->to, call->count, 0),
        .empty_from = empty_route(call, call->from, call->out_count, 1),
        .reads = call->in_on_heap};
    int members = call->group->members.count;
    iris_status_t status = IRIS_OK;

    args.start = make_start(iris, call, args.most_wgs, (uint32_t)meets);
    for (int i = 0; i < members && status == IRIS_OK; i += IRIS_CCL_ROUTES) {
        unsigned grid;

        args.first = (uint32_t)i;
        grid = fill_routes(call, &args);
        status = launch_kernel(iris, call, kernel, grid, &args);
    }
    return status;
}

iris_status_t iris_i_ccl_launch_meeting(iris_t *iris,
                                        const struct iris_ccl_call *call,
                                        int far)
{
    const struct iris_kernel *kernel =
        far ? iris_i_ccl_far_pairs_kernel : iris_i_ccl_pairs_kernel;
    struct iris_ccl_pairs_args args = {.start = make_start(iris, call, 1, 1),
                                       .bytes_per_wg = 1,
                                       .most_wgs = 1,
                                       .meets = 1};

    return launch_kernel(iris, call, kernel, 1, &args);
}

/* The most bytes of an all_reduce whose input is gathered: one step more takes
 * longer than to send them to all. Also the most bytes from a node to a member
 * of another node in an all_to_all that goes by rails. */
#define FEW_BYTES ((size_t)8192)

/* Bytes of a sum for each byte of an element: sums that travel are not
 * rounded. */
static size_t find_widening(const struct iris_ccl_call *call)
{
    switch (call->kind) {
    case IRIS_D_KIND_f16:
    case IRIS_D_KIND_bf16:
        return 2;
    case IRIS_D_KIND_f8e4m3:
    case IRIS_D_KIND_f8e5m2:
        return 4;
    default:
        return 1;
    }
}

/* Whether the operation gives the same bits in any order. */
static int is_exact(const struct iris_ccl_call *call)
{
    switch (call->kind) {
    case IRIS_D_KIND_f32:
    case IRIS_D_KIND_f64:
        return 0;
    default:
        return find_widening(call) == 1;
    }
}

/* Chooses the way by levels for a part of args->bytes of each member. 0: it
 * goes the general way. The same on all members. */
static int choose_levels(const struct iris_ccl_call *call,
                         struct iris_ccl_levels_args *args)
{
    const struct iris_ccl_workspace *workspace = call->workspace;
    size_t members = (size_t)call->group->members.count, share;
    int may_chain;

    args->piece = workspace->rail_bytes;
    if (call->op == IRIS_CCL_ALL_GATHER || call->op == IRIS_CCL_BROADCAST) {
        args->way = call->op == IRIS_CCL_BROADCAST ? IRIS_CCL_LEVELS_SPREAD
                                                   : IRIS_CCL_LEVELS_GATHER;
        return 1;
    }
    if (call->op == IRIS_CCL_ALL_TO_ALL) {
        share = args->rails > args->nodes ? args->rails : args->nodes;
        args->way = IRIS_CCL_LEVELS_SWAP;
        return members == (size_t)args->nodes * args->rails &&
               args->bytes * args->rails <= FEW_BYTES &&
               args->bytes * share <= args->piece;
    }
    if (call->op != IRIS_CCL_ALL_REDUCE &&
        call->op != IRIS_CCL_REDUCE_SCATTER) {
        return 0;
    }
    may_chain = workspace->levels.is_even &&
                (workspace->levels.in_order || is_exact(call));
    args->wider = (uint32_t)find_widening(call);
    args->way = IRIS_CCL_LEVELS_SCATTER;
    if (call->op == IRIS_CCL_REDUCE_SCATTER) {
        args->piece /= args->wider;
        return may_chain;
    }
    if (args->bytes <= FEW_BYTES || !may_chain) {
        args->way = IRIS_CCL_LEVELS_FEW;
        share = 2 * workspace->stage_bytes / members;
        share = share / IRIS_CCL_LINE * IRIS_CCL_LINE;
    } else {
        args->way = IRIS_CCL_LEVELS_CHAIN;
        args->piece /= args->wider;
        share = (args->bytes + args->rails - 1) / args->rails;
        share = (share + IRIS_CCL_LINE - 1) / IRIS_CCL_LINE * IRIS_CCL_LINE;
    }
    args->piece = share < args->piece ? share : args->piece;
    return 1;
}

static struct iris_ccl_levels_args
make_levels(const struct iris_ccl_call *call,
            const struct iris_ccl_far_args *args)
{
    const struct iris_ccl_nodes *levels = &call->workspace->levels;
    struct iris_ccl_levels_args by_levels = {.start = args->start,
                                             .in = args->in,
                                             .out = args->out,
                                             .bytes = args->bytes,
                                             .kind = args->kind,
                                             .op = args->op,
                                             .nodes = levels->nodes,
                                             .node = levels->node,
                                             .place = levels->place,
                                             .rails = levels->rails,
                                             .root = (uint32_t)call->root,
                                             .scale = args->scale};

    return by_levels;
}

iris_status_t iris_i_ccl_launch_far(iris_t *iris,
                                    const struct iris_ccl_call *call)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[call->op];
    size_t rows = call->options.rows;
    int scatters_rows = call->op == IRIS_CCL_REDUCE_SCATTER && rows != 0;
    struct iris_ccl_far_args args = {
        .start = make_start(iris, call, 1, 0),
        .in = call->in,
        .out = call->out,
        .bytes = call->bytes,
        .piece = 2 * call->workspace->slot_bytes,
        .rows = rows == 0 ? 1 : rows,
        .in_pitch = call->in_pitch,
        .out_pitch = call->out_pitch,
        .in_of_peer = !kind->in_parts || call->options.own_rows ? 0
                      : scatters_rows ? rows * call->in_pitch
                                      : call->bytes,
        .out_of_peer = call->op == IRIS_CCL_ALL_GATHER && rows != 0
                           ? rows * call->out_pitch
                           : call->bytes,
        .root = kind->has_root ? call->root : -1,
        .reduces = kind->reduces,
        .kind = call->kind,
        .op = kernel_op(call),
        .scale = kernel_scale(call),
        .own_rows = call->options.own_rows,
        .striding = call->options.distribution == IRIS_CCL_STRIDING};
    struct iris_ccl_levels_args by_levels;
    iris_status_t status = IRIS_OK;
    size_t num_calls = 1;

    if (args.in_pitch == args.bytes && args.out_pitch == args.bytes &&
        !args.own_rows && call->op != IRIS_CCL_ALL_TO_ALL) {
        args.bytes *= args.rows; /* the rows are next to each other */
        args.rows = 1;
    }
    if (call->op == IRIS_CCL_ALL_REDUCE && args.bytes > FEW_BYTES) {
        num_calls = args.rows; /* one for each long row */
        args.rows = 1;
    }
    by_levels = make_levels(call, &args);
    if (args.rows > 1 || args.own_rows ||
        (kind->out_parts && args.out_of_peer != args.bytes) ||
        (kind->in_parts && args.in_of_peer != args.bytes) ||
        !choose_levels(call, &by_levels)) {
        return launch_kernel(iris, call, iris_i_ccl_far_kernel, 1, &args);
    }
    for (size_t i = 0; i < num_calls && status == IRIS_OK; i++) {
        by_levels.in = (const char *)args.in + i * args.in_pitch;
        by_levels.out = (char *)args.out + i * args.out_pitch;
        status =
            launch_kernel(iris, call, iris_i_ccl_levels_kernel, 1, &by_levels);
    }
    return status;
}

iris_status_t iris_i_ccl_launch_alone(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      size_t i)
{
    struct iris_ccl_packet_args args = {
        .start.context = iris_i_queue_context(iris_i_queue(iris)),
        .in = (const char *)call->in + i * call->in_pitch,
        .out = (char *)call->out + i * call->out_pitch,
        .bytes = call->bytes,
        .kind = call->kind,
        .scale = kernel_scale(call),
    };
    unsigned grid = iris_i_ccl_grid(iris, call, args.bytes,
                                    bytes_per_wg(iris, IRIS_CCL_UNIT_BYTES));

    return launch_kernel(iris, call, iris_i_ccl_packet_kernel, grid, &args);
}

iris_status_t iris_i_ccl_launch(iris_t *iris, const struct iris_ccl_call *call)
{
    switch (call->variant) {
    case IRIS_CCL_ONE_SHOT:
    case IRIS_CCL_TWO_SHOT:
    case IRIS_CCL_DIRECT:
        return launch_reduce(
            iris, call,
            call->options.rows == 0
                ? iris_i_ccl_reduce_kernel(call->kind, kernel_op(call),
                                           call->group->members.count)
                : iris_i_ccl_matrix_kernel);
    case IRIS_CCL_ATOMIC:
    case IRIS_CCL_SPINLOCK:
    case IRIS_CCL_RING:
        return launch_reduce(iris, call, iris_i_ccl_unordered_kernel);
    case IRIS_CCL_PUSH:
    case IRIS_CCL_PULL:
        return launch_move(iris, call);
    default: /* variants with packets */
        return launch_packet(iris, call);
    }
}
