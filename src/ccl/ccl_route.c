/* SPDX-License-Identifier: MIT
 *
 * Calls of messages as routes: the data to and from each member.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/constants.h>

#include "context/context.h"

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

uint32_t iris_i_ccl_route_hash(const struct iris_ccl_call *call)
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
static void extend(struct iris_ccl_call *call)
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
        extend(call);
    }
    return status;
}
