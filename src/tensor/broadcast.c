/* SPDX-License-Identifier: MIT
 *
 * Broadcast of numbers and of tensors: the root sends the address of its
 * elements, and the others' devices fetch them.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/broadcast.h>
#include <iris/constants.h>

#include "context/context.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

iris_status_t iris_broadcast_value(iris_t *iris, iris_value_t *value_p,
                                   int root, iris_group_t *group)
{
    static const struct iris_call_type type = {"iris_broadcast_value",
                                               IRIS_BROADCAST_FIELDS};
    struct iris_call call = {.type = &type};
    iris_value_t value;
    iris_status_t status = iris_i_enter(iris, type.name);

    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, group, &group);
    }
    if (status != IRIS_OK) {
        return status;
    }
    memset(&value, 0, sizeof value);
    call.status = iris_i_group_check_root(iris, group, type.name, root);
    if (call.status == IRIS_OK && value_p == NULL) {
        call.status = iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                                  "%s: value_p is NULL; pass a value, or where "
                                  "to put it",
                                  type.name);
    }
    if (call.status == IRIS_OK && group->index == root) {
        value = *value_p;
        if (value.kind < IRIS_VALUE_BOOL || value.kind > IRIS_VALUE_COMPLEX) {
            call.status = iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                                      "%s: the root's value has the unknown "
                                      "kind %d; make it with IRIS_VALUE",
                                      type.name, (int)value.kind);
        }
    }
    status = iris_i_group_broadcast(group, &call, &value, sizeof value, root);
    if (status == IRIS_OK) {
        *value_p = value;
    }
    return status;
}

/* ---- Tensors ---- */

/* A tensor as the root describes it to the others, whose heaps have other
 * addresses: its address is replaced by the offset in the heap. */
static iris_tensor_t name_tensor(const iris_t *iris,
                                 const iris_tensor_t *tensor)
{
    iris_tensor_t named = *tensor;

    named.data =
        (void *)iris_i_heap_offset(&iris_i_heap(iris)->memory, tensor->data);
    named.owner = NULL;
    return named;
}

/* The tensor at the same offset of this rank's heap. */
static iris_tensor_t own_tensor(const iris_t *iris, const iris_tensor_t *named)
{
    iris_tensor_t tensor = *named;

    tensor.data =
        (void *)((uintptr_t)iris_i_heap_base(&iris_i_heap(iris)->memory) +
                 (uintptr_t)named->data);
    return tensor;
}

struct broadcast {
    iris_t *iris;
    const struct iris_call_type *type;
    struct iris_group *group;
    int root;
    struct iris_stream *stream;
};

#define TENSOR_FIELDS                                                 \
    {                                                                 \
        {.name = "root"}, {.name = "dtype", .kind = IRIS_FIELD_TEXT}, \
            {.name = "dimensions"},                                   \
        {                                                             \
            .name = "elements"                                        \
        }                                                             \
    }

/* This rank's part before the agreement: waits for the root's stream, so that
 * its writes are complete. */
static iris_status_t prepare(const struct broadcast *cast,
                             const iris_tensor_t *tensor)
{
    iris_t *iris = cast->iris;
    const struct iris_named_argument argument = {iris_i_log(iris),
                                                 cast->type->name, "tensor"};
    iris_status_t status = iris_i_tensor_check(&argument, tensor);

    if (status != IRIS_OK) {
        return status;
    }
    if (cast->group->index != cast->root) {
        return IRIS_OK;
    }
    if (!iris_tensor_is_symmetric(iris, tensor)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the root's tensor, at %p, is not on the "
                           "symmetric heap; pass one that a creation call made",
                           cast->type->name, tensor->data);
    }
    return iris_i_stream_synchronize(iris_i_queue(iris), cast->stream);
}

/* Fetches the elements of a rank of another node, which has no address here: by
 * way of memory of this rank, with everything between the first element and the
 * last. `from` has the symmetric address. Waits for the stream. */
static iris_status_t fetch_far(const struct broadcast *cast,
                               const iris_tensor_t *tensor, iris_tensor_t from)
{
    iris_t *iris = cast->iris;
    const struct iris_tensor_extent extent = iris_i_tensor_extent(&from);
    const struct iris_transfer transfer = {
        .call = cast->type->name,
        .name = "the root's tensor",
        .symmetric = extent.start,
        .other = malloc(extent.bytes + (extent.bytes == 0)),
        .bytes = extent.bytes,
        .rank = cast->group->ranks[cast->root],
        .gets = 1};
    iris_status_t status, done;

    if (transfer.other == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "%s: no memory for %zu bytes of rank %d's tensor",
                           transfer.call, extent.bytes, transfer.rank);
    }
    from.data =
        (char *)transfer.other + ((char *)from.data - (char *)extent.start);
    status = extent.bytes == 0
                 ? IRIS_OK
                 : iris_i_enqueue_transfer(iris_i_queue(iris), &transfer,
                                           cast->stream);
    if (status == IRIS_OK) {
        status = iris_tensor_copy(iris, tensor, &from, cast->stream);
    }
    done = iris_i_stream_synchronize(iris_i_queue(iris), cast->stream);
    free(transfer.other);
    return status == IRIS_OK ? done : status;
}

/* A receiver's part: fetches the elements. */
static iris_status_t fetch(const struct broadcast *cast,
                           const iris_tensor_t *tensor)
{
    iris_t *iris = cast->iris;
    int rank = cast->group->ranks[cast->root];
    iris_tensor_t named = {0};
    iris_tensor_t from;
    iris_status_t status;

    (void)iris_i_agree_payload(&cast->group->members, rank, &named,
                               sizeof named);
    if (memcmp(named.shape, tensor->shape,
               (size_t)tensor->ndim * sizeof *named.shape) != 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the tensor has not the shape that rank %d's "
                           "has, which is the root; pass one that has",
                           cast->type->name, rank);
    }
    from = own_tensor(iris, &named);
    if (iris_i_heap_is_by_proxy(iris_i_heap(iris), rank)) {
        return fetch_far(cast, tensor, from);
    }
    status = iris_tensor_as_remote(iris, &from, rank, &from);
    if (status == IRIS_OK) {
        status = iris_tensor_copy(iris, tensor, &from, cast->stream);
    }
    return status == IRIS_OK
               ? iris_i_stream_synchronize(iris_i_queue(iris), cast->stream)
               : status;
}

/* The members agree twice: that the root's elements are ready, and that all
 * have them. `checked`: the status of the caller's own checks. */
static iris_status_t run(const struct broadcast *cast,
                         const iris_tensor_t *tensor, iris_status_t checked)
{
    struct iris_members *members = &cast->group->members;
    int is_root = cast->group->index == cast->root;
    iris_tensor_t named;
    struct iris_call call = {.type = cast->type, .status = checked};
    iris_status_t status;

    iris_i_agree_begin(cast->iris->control, cast->type);
    if (call.status == IRIS_OK) {
        call.status = prepare(cast, tensor);
    }
    call.fields[0] = (uint64_t)cast->root;
    if (call.status == IRIS_OK) {
        call.fields[1] = iris_i_call_text(iris_dtype_name(tensor->dtype));
        call.fields[2] = (uint64_t)tensor->ndim;
        call.fields[3] = (uint64_t)iris_tensor_numel(tensor);
    }
    if (call.status == IRIS_OK && is_root) {
        named = name_tensor(cast->iris, tensor);
        call.payload = &named;
        call.payload_bytes = sizeof named;
    }
    status = iris_i_agree(members, &call);
    if (status != IRIS_OK) {
        return status;
    }
    call.payload = NULL;
    call.payload_bytes = 0;
    call.status = is_root ? IRIS_OK : fetch(cast, tensor);
    return iris_i_agree(members, &call);
}

iris_status_t iris_tensor_broadcast(iris_t *iris, const iris_tensor_t *tensor,
                                    int root, iris_group_t *group,
                                    iris_stream_t *stream)
{
    static const struct iris_call_type type = {"iris_tensor_broadcast",
                                               TENSOR_FIELDS};
    struct broadcast cast = {.iris = iris, .type = &type, .root = root};
    struct iris_host_event event = {.op = IRIS_HOST_BROADCAST,
                                    .target_rank = -1};
    iris_status_t checked, status = iris_i_enter(iris, type.name);

    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, group, &cast.group);
    }
    if (status != IRIS_OK) {
        return status;
    }
    checked = iris_i_group_check_root(iris, cast.group, type.name, root);
    event.rank = iris_i_rank(iris);
    event.group = cast.group;
    event.target_rank = checked == IRIS_OK ? cast.group->ranks[root] : -1;
    if (tensor != NULL) {
        event.address = tensor->data;
        event.bytes = iris_tensor_bytes(tensor);
    }
    if (checked == IRIS_OK) {
        checked =
            iris_i_stream_resolve(iris_i_queue(iris), stream, &cast.stream);
    }
    iris_i_hooks_before(iris_i_hooks(iris), &event);
    return iris_i_hooks_after(iris_i_hooks(iris), &event,
                              run(&cast, tensor, checked));
}

/* ---- Into new tensors ---- */

/* Checks this rank's arguments; on the root, also the tensor. */
static iris_status_t check_new(const struct broadcast *cast,
                               const iris_tensor_t *tensor,
                               const iris_tensor_t *tensor_p,
                               iris_tensor_t *named_p)
{
    iris_t *iris = cast->iris;
    const char *call = cast->type->name;
    const struct iris_named_argument argument = {iris_i_log(iris), call,
                                                 "the root's tensor"};
    iris_status_t status =
        iris_i_group_check_root(iris, cast->group, call, cast->root);

    if (status == IRIS_OK && tensor_p == NULL) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "%s: tensor_p is NULL; pass where to put the "
                             "tensor",
                             call);
    }
    if (status != IRIS_OK || cast->group->index != cast->root) {
        return status;
    }
    status =
        iris_i_tensor_check_access(iris_i_heap(iris), &argument, tensor, 0);
    if (status == IRIS_OK) {
        *named_p = name_tensor(iris, tensor);
    }
    return status;
}

/* Collective: fills the new tensors, or frees them on all ranks. */
static iris_status_t fill_new(struct broadcast *cast,
                              const iris_tensor_t *tensor, iris_tensor_t *made)
{
    static const struct iris_call_type type = {"iris_tensor_broadcast_new",
                                               TENSOR_FIELDS};
    iris_t *iris = cast->iris;
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t status = IRIS_OK;

    cast->type = &type;
    if (cast->group->index == cast->root) {
        status = iris_tensor_copy(iris, made, tensor, cast->stream);
    }
    status = run(cast, made, status);
    if (status != IRIS_OK) {
        snprintf(message, sizeof message, "%s", iris_last_error());
        (void)iris_tensor_free(iris, made);
        (void)iris_i_fail_again(IRIS_OK, message);
    }
    return status;
}

iris_status_t iris_tensor_broadcast_new(iris_t *iris,
                                        const iris_tensor_t *tensor, int root,
                                        iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_tensor_broadcast_new",
                                               IRIS_BROADCAST_FIELDS};
    struct broadcast cast = {.iris = iris, .type = &type, .root = root};
    struct iris_call call = {.type = &type};
    struct iris_tensor_options options;
    iris_tensor_t named;
    iris_tensor_t made;
    iris_status_t status = iris_i_enter(iris, type.name);

    if (status != IRIS_OK) {
        return status;
    }
    cast.group = iris_i_world(iris);
    memset(&named, 0, sizeof named);
    call.status = check_new(&cast, tensor, tensor_p, &named);
    status =
        iris_i_group_broadcast(cast.group, &call, &named, sizeof named, root);
    if (status != IRIS_OK) {
        return status;
    }
    made = own_tensor(iris, &named);
    iris_tensor_options_init(&options);
    options.dtype = (int)made.dtype;
    status = iris_empty(iris, iris_i_tensor_shape(&made), &options, &made);
    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris_i_queue(iris), NULL, &cast.stream);
    }
    if (status == IRIS_OK) {
        status = fill_new(&cast, tensor, &made);
    }
    if (status == IRIS_OK) {
        *tensor_p = made;
    }
    return status;
}
