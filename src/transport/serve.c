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

int iris_i_target_is_word(const char *at, size_t bytes)
{
    return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) &&
           (uintptr_t)at % bytes == 0;
}

/* ---- The memory of CPUs ---- */

static iris_status_t copy_up(struct iris_target *target, char *at,
                             const void *data, size_t bytes)
{
    uint64_t value = 0;

    (void)target;
    if (iris_i_target_is_word(at, bytes)) {
        memcpy(&value, data, bytes);
        iris_d_store(at, bytes, value,
                     iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
    } else {
        memcpy(at, data, bytes);
    }
    return IRIS_OK;
}

static iris_status_t copy_down(struct iris_target *target, const char *at,
                               size_t bytes, const void **data_p)
{
    (void)target, (void)bytes;
    *data_p = at;
    return IRIS_OK;
}

static iris_status_t write_word(struct iris_target *target, char *at,
                                uint64_t value, size_t bytes)
{
    (void)target;
    iris_d_store(at, bytes, value,
                 iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    return IRIS_OK;
}

static iris_status_t fetch_word(struct iris_target *target, char *at,
                                const struct iris_far_message *request,
                                uint64_t *old_p)
{
    iris_d_amo_t how = iris_d_amo_of((enum iris_op)request->op,
                                     (enum iris_d_kind)request->kind, 0,
                                     IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);
    uint64_t fp = iris_i_fp_enter(); /* as in a kernel */

    (void)target;
    if (request->op == IRIS_OP_LOAD) {
        *old_p = iris_d_load(at, request->bytes,
                             iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
    } else {
        *old_p = iris_d_amo_any(at, request->value, request->expected, how);
    }
    iris_i_fp_leave(fp);
    return IRIS_OK;
}

static iris_status_t settle_nothing(struct iris_target *target)
{
    (void)target;
    return IRIS_OK;
}

const struct iris_target_ops iris_i_target_cpu = {.copy_up = copy_up,
                                                  .copy_down = copy_down,
                                                  .write_word = write_word,
                                                  .fetch_word = fetch_word,
                                                  .settle = settle_nothing};

/* ---- Requests ---- */

static int is_atomic(const char *at, const struct iris_far_message *request)
{
    return iris_i_target_is_word(at, request->bytes) &&
           request->bytes ==
               iris_d_kind_bytes((enum iris_d_kind)request->kind) &&
           (request->op <= IRIS_OP_STORE ||
            (request->op >= IRIS_OP_ATOMIC_ADD &&
             request->op <= IRIS_OP_ATOMIC_MAX));
}

static iris_status_t serve_request(struct iris_target *target, char *at,
                                   const struct iris_far_message *request,
                                   const void *data,
                                   struct iris_far_message *answer,
                                   const void **data_p)
{
    const struct iris_target_ops *ops = target->ops;

    if (request->op == IRIS_OP_PUT && request->data == request->bytes) {
        return ops->copy_up(target, at, data, request->bytes);
    }
    if (request->op == IRIS_OP_GET) {
        answer->data = request->bytes;
        return ops->copy_down(target, at, request->bytes, data_p);
    }
    if (!is_atomic(at, request)) {
        return IRIS_ERR_INVALID;
    }
    return request->op == IRIS_OP_STORE
               ? ops->write_word(target, at, request->value, request->bytes)
               : ops->fetch_word(target, at, request, &answer->value);
}

void iris_i_serve(struct iris_target *target,
                  const struct iris_far_message *request, const void *data,
                  struct iris_far_message *answer_p, const void **data_p)
{
    char *at = iris_i_heap_base(&target->heap->memory) + request->offset;
    iris_status_t status = IRIS_ERR_INVALID;

    *answer_p = *request;
    answer_p->answers =
        request->op != IRIS_OP_PUT && request->op != IRIS_OP_STORE;
    answer_p->data = 0;
    *data_p = NULL;
    (void)atomic_load_explicit(&target->heap->memory.control->posts,
                               memory_order_acquire);
    if (request->op == IRIS_OP_FENCE) {
        status = target->ops->settle(target);
    } else if (is_allowed(target->heap, request)) {
        status = serve_request(target, at, request, data, answer_p, data_p);
    }
    if (status != IRIS_OK) {
        answer_p->refused = 1;
        answer_p->data = 0;
    }
}
