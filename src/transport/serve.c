/* SPDX-License-Identifier: MIT
 *
 * Executes requests of other nodes' ranks on this rank's heap. Their atomics
 * there are all done by the proxy.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/core/amo.h>
#include <iris/device/core/ring.h>

#include "base/processor.h"
#include "heap/heap.h"

#include <string.h>

/* Kernels of this rank, and peers, may access all committed memory. */
static int is_allowed(struct iris_heap *heap,
                      const struct iris_far_message *request)
{
    const struct iris_heap_memory *memory = &heap->memory;
    size_t offset = (size_t)request->offset, bytes = request->bytes;

    if (bytes > IRIS_RING_BYTES) {
        return 0;
    }
    if (offset < iris_i_heap_bytes(memory)) {
        return bytes <= iris_i_heap_bytes(memory) - offset &&
               iris_i_heap_is_committed(memory, offset, bytes);
    }
    return iris_i_heap_bytes_from(heap, iris_i_heap_base(memory) + offset) >=
           bytes;
}

static int is_word(const struct iris_far_message *request)
{
    uint32_t bytes = request->bytes;

    return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) &&
           request->offset % bytes == 0;
}

/* Elements arrive undivided, as from a store. */
static void serve_put(char *place, const struct iris_far_message *request,
                      const void *data)
{
    uint64_t value = 0;

    if (is_word(request)) {
        memcpy(&value, data, request->bytes);
        iris_d_store(place, request->bytes, value,
                     iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
    } else {
        memcpy(place, data, request->bytes);
    }
}

static uint64_t serve_update(char *place,
                             const struct iris_far_message *request)
{
    iris_d_amo_t how = iris_d_amo_of((enum iris_op)request->op,
                                     (enum iris_d_kind)request->kind, 0,
                                     IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);

    switch (request->op) {
    case IRIS_OP_LOAD:
        return iris_d_load(place, request->bytes,
                           iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
    case IRIS_OP_STORE:
        iris_d_store(place, request->bytes, request->value,
                     iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
        return 0;
    case IRIS_OP_ATOMIC_CAS:
        return iris_d_cas(place, request->bytes, request->expected,
                          request->value, how.order);
    default:
        return iris_d_amo_at(place, request->value, how);
    }
}

static int is_atomic(const struct iris_far_message *request)
{
    return is_word(request) &&
           request->bytes ==
               iris_d_kind_bytes((enum iris_d_kind)request->kind) &&
           (request->op <= IRIS_OP_STORE ||
            (request->op >= IRIS_OP_ATOMIC_ADD &&
             request->op <= IRIS_OP_ATOMIC_MAX));
}

void iris_i_serve(struct iris_heap *heap,
                  const struct iris_far_message *request, const void *data,
                  struct iris_far_message *answer_p, const void **data_p)
{
    char *place = iris_i_heap_base(&heap->memory) + request->offset;

    *answer_p = *request;
    answer_p->answers =
        request->op != IRIS_OP_PUT && request->op != IRIS_OP_STORE;
    answer_p->data = 0;
    *data_p = NULL;
    if (request->op == IRIS_OP_FENCE) {
        return;
    }
    if (!is_allowed(heap, request)) {
        answer_p->refused = 1;
    } else if (request->op == IRIS_OP_PUT && request->data == request->bytes) {
        serve_put(place, request, data);
    } else if (request->op == IRIS_OP_GET) {
        answer_p->data = request->bytes;
        *data_p = place;
    } else if (is_atomic(request)) {
        uint64_t fp = iris_i_fp_enter(); /* as in a kernel */

        answer_p->value = serve_update(place, request);
        iris_i_fp_leave(fp);
    } else {
        answer_p->refused = 1;
    }
}
