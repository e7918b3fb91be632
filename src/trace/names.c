/* SPDX-License-Identifier: MIT
 *
 * Names of kernels, copied at their first use, and of the library's and the
 * program's events.
 */
#include "config.h"

#include "trace/internal.h"

#include <iris/device/watch/op.h>

#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t iris_i_trace_kernel(struct iris_trace *trace, const char *name)
{
    unsigned i = 0;

    if (name == NULL) {
        return 0;
    }
    pthread_mutex_lock(&trace->lock);
    while (i < trace->num_kernels && strcmp(trace->kernels[i], name) != 0) {
        i++;
    }
    if (i == trace->num_kernels && i < IRIS_TRACE_KERNELS) {
        trace->kernels[i] = strdup(name);
        trace->num_kernels += trace->kernels[i] != NULL;
    }
    i = i < trace->num_kernels ? i + 1 : 0;
    pthread_mutex_unlock(&trace->lock);
    return i;
}

/* ---- Events ---- */

static const struct {
    int event;
    const char *name;
} own_names[] = {
    {IRIS_OP_LOAD, "load"},
    {IRIS_OP_STORE, "store"},
    {IRIS_OP_GET, "get"},
    {IRIS_OP_PUT, "put"},
    {IRIS_OP_COPY, "copy"},
    {IRIS_OP_ATOMIC_ADD, "atomic_add"},
    {IRIS_OP_ATOMIC_SUB, "atomic_sub"},
    {IRIS_OP_ATOMIC_CAS, "atomic_cas"},
    {IRIS_OP_ATOMIC_XCHG, "atomic_xchg"},
    {IRIS_OP_ATOMIC_XOR, "atomic_xor"},
    {IRIS_OP_ATOMIC_AND, "atomic_and"},
    {IRIS_OP_ATOMIC_OR, "atomic_or"},
    {IRIS_OP_ATOMIC_MIN, "atomic_min"},
    {IRIS_OP_ATOMIC_MAX, "atomic_max"},
    {IRIS_TRACE_FETCH, "fetch"},
    {IRIS_TRACE_COMPUTE, "compute"},
    {IRIS_TRACE_REDUCE, "reduce"},
    {IRIS_TRACE_WAIT, "wait"},
    {IRIS_TRACE_BARRIER, "barrier"},
    {IRIS_OP_COLLECTIVE, "workgroup collective"},
};

/* The program's own name of the event, or NULL. The lock is held. */
static char *own_name(struct iris_trace *trace, int event)
{
    for (unsigned i = 0; i < trace->num_names; i++) {
        if (trace->names[i].event == event) {
            return trace->names[i].name;
        }
    }
    return NULL;
}

const char *iris_i_trace_event_name(struct iris_trace *trace, int event,
                                    char text[IRIS_TRACE_NAME_BYTES])
{
    const char *own;

    pthread_mutex_lock(&trace->lock);
    own = own_name(trace, event);
    snprintf(text, IRIS_TRACE_NAME_BYTES, "%s", own != NULL ? own : "");
    pthread_mutex_unlock(&trace->lock);
    if (own != NULL) {
        return text;
    }
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++) {
        if (own_names[i].event == event) {
            return own_names[i].name;
        }
    }
    snprintf(text, IRIS_TRACE_NAME_BYTES, "unknown_%d", event);
    return text;
}

/* The peer whose heap contains the address, as mapped on this rank; -1:
 * none. */
static int peer_at(const struct iris_heap *heap, const void *address)
{
    size_t offset;
    int rank = iris_i_heap_owner(&heap->memory, address, &offset);

    return rank == heap->log->rank ? -1 : rank;
}

int iris_i_trace_target(const struct iris_trace *trace,
                        const struct iris_trace_call *call)
{
    const struct iris_heap *heap = iris_i_heap(trace->iris);
    int rank = call->event.target_rank;

    if (rank >= 0 || call->user != 0 ||
        (call->event.op != IRIS_HOST_COPY && call->event.op != IRIS_HOST_SET)) {
        return rank;
    }
    rank = peer_at(heap, call->event.address);
    return rank >= 0 || call->event.op == IRIS_HOST_SET
               ? rank
               : peer_at(heap, call->event.source);
}

static const char *copy_name(const struct iris_trace *trace,
                             const struct iris_trace_call *call)
{
    int target = iris_i_trace_target(trace, call);

    if (target < 0 || target == iris_i_rank(trace->iris)) {
        return "host copy";
    }
    return peer_at(iris_i_heap(trace->iris), call->event.address) >= 0
               ? "put on stream"
               : "get on stream";
}

static const char *plain_name(const struct iris_trace *trace,
                              const struct iris_trace_call *call)
{
    switch (call->event.op) {
    case IRIS_HOST_COPY:
        return copy_name(trace, call);
    case IRIS_HOST_SET:
        return "host set";
    case IRIS_HOST_SIGNAL:
        return "signal on stream";
    case IRIS_HOST_WAIT:
        return "wait on stream";
    case IRIS_HOST_BARRIER:
        return call->event.stream != NULL ? "device barrier" : "host barrier";
    case IRIS_HOST_BROADCAST:
        return "host broadcast";
    default:
        return iris_i_host_op_name((int)call->event.op);
    }
}

/* Names chosen by a program may have any length. */
void iris_i_trace_call_name(const struct iris_trace *trace,
                            const struct iris_trace_call *call,
                            char text[IRIS_TRACE_CALL_BYTES])
{
    const char *kernel =
        call->kernel == 0 ? "" : trace->kernels[call->kernel - 1];

    switch (call->event.op) {
    case IRIS_HOST_KERNEL:
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%.100s", kernel);
        break;
    case IRIS_HOST_LAUNCH:
        snprintf(text, IRIS_TRACE_CALL_BYTES, "launch %.100s", kernel);
        break;
    case IRIS_HOST_COLLECTIVE:
        kernel += strncmp(kernel, "iris_", 5) == 0 ? 5 : 0;
        kernel += strncmp(kernel, "ccl_", 4) == 0 ? 4 : 0;
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%.60s %zu %.20s", kernel,
                 call->event.count, call->event.type);
        break;
    default:
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%s", plain_name(trace, call));
    }
}

static iris_status_t set_name(struct iris_trace *trace, int event,
                              const char *name)
{
    char *own;

    pthread_mutex_lock(&trace->lock);
    own = own_name(trace, event);
    if (own == NULL && trace->num_names < IRIS_TRACE_NAMES) {
        trace->names[trace->num_names].event = event;
        own = trace->names[trace->num_names++].name;
    }
    if (own != NULL) {
        snprintf(own, IRIS_TRACE_NAME_BYTES, "%s", name);
    }
    pthread_mutex_unlock(&trace->lock);
    return own != NULL ? IRIS_OK
                       : iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_LIMIT,
                                     "iris_trace_name: %d events have names "
                                     "already; give several events one id",
                                     IRIS_TRACE_NAMES);
}

iris_status_t iris_trace_name(iris_t *iris, int event, const char *name)
{
    struct iris_trace *trace = iris_i_trace_of(iris, "iris_trace_name");

    if (trace == NULL) {
        return IRIS_ERR_STATE;
    }
    if (event < IRIS_TRACE_EVENT_MIN || event > IRIS_TRACE_EVENT_MAX) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "iris_trace_name: event %d is not for programs; pass %d to %d",
            event, IRIS_TRACE_EVENT_MIN, IRIS_TRACE_EVENT_MAX);
    }
    if (name == NULL || strlen(name) >= IRIS_TRACE_NAME_BYTES) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_trace_name: name is %s; pass at most %d "
                           "characters",
                           name == NULL ? "NULL" : "too long",
                           IRIS_TRACE_NAME_BYTES - 1);
    }
    return set_name(trace, event, name);
}
