/* SPDX-License-Identifier: MIT
 *
 * The parts of the interface that every backend uses, the library's and a module's
 * alike: the fault of an instance, the calls that members compare, and the slots for
 * features that a backend lacks.
 *
 * An instance's fault is set once, by the first reason that ends its work, and stays
 * until it is cleared. Reading the status takes no lock; the fault's lock guards the
 * message, and setting both.
 */
#include "config.h"

#include "backend/backend.h"

#include "base/base.h"
#include <iris/ccl.h>
#include <iris/constants.h>

#include <stdio.h>
#include <string.h>

/* ---- The fault of an instance ---- */

void iris_i_backend_made(struct iris_backend *backend)
{
    atomic_init(&backend->fault.status, IRIS_OK);
    pthread_mutex_init(&backend->fault.lock, NULL);
}

iris_status_t iris_i_fault_set(struct iris_backend *backend,
                               iris_status_t status, const char *message)
{
    struct iris_fault *fault = &backend->fault;

    pthread_mutex_lock(&fault->lock);
    if (atomic_load(&fault->status) == IRIS_OK) {
        snprintf(fault->message, sizeof fault->message, "%s", message);
        atomic_store(&fault->status, status);
    }
    status = (iris_status_t)atomic_load(&fault->status);
    pthread_mutex_unlock(&fault->lock);
    return status;
}

iris_status_t iris_i_fault_check(const struct iris_backend *backend)
{
    /* A const instance does not promise that the lock does not change. */
    struct iris_fault *fault = (struct iris_fault *)(uintptr_t)&backend->fault;
    iris_status_t status;

    if (atomic_load_explicit(&fault->status, memory_order_acquire) == IRIS_OK) {
        return IRIS_OK;
    }
    pthread_mutex_lock(&fault->lock);
    status = (iris_status_t)atomic_load(&fault->status);
    if (status != IRIS_OK) {
        iris_i_fail_again(status, fault->message);
    }
    pthread_mutex_unlock(&fault->lock);
    return status;
}

void iris_i_fault_clear(struct iris_backend *backend)
{
    pthread_mutex_lock(&backend->fault.lock);
    atomic_store(&backend->fault.status, IRIS_OK);
    pthread_mutex_unlock(&backend->fault.lock);
}

/* ---- Collective calls that differ ---- */

#define CALL_TEXT 256

struct iris_dev_call iris_i_compared_pack(const struct iris_compared *call)
{
    struct iris_dev_call packed = {
        .what = (uint64_t)(call->op & 0xff) |
                (uint64_t)(call->dtype & 0xff) << IRIS_DEV_CALL_DTYPE |
                (uint64_t)(call->reduce & 0xff) << IRIS_DEV_CALL_REDUCE |
                (uint64_t)(call->variant & 0xff) << IRIS_DEV_CALL_VARIANT |
                (uint64_t)(call->root & 0xffff) << IRIS_DEV_CALL_ROOT};

    memcpy(packed.sizes, call->sizes, sizeof packed.sizes);
    return packed;
}

static struct iris_compared unpack_call(const struct iris_dev_call *packed)
{
    struct iris_compared call = {
        .op = (int)(packed->what & 0xff),
        .dtype = (int)(packed->what >> IRIS_DEV_CALL_DTYPE & 0xff),
        .reduce = (int)(packed->what >> IRIS_DEV_CALL_REDUCE & 0xff),
        .variant = (int)(packed->what >> IRIS_DEV_CALL_VARIANT & 0xff),
        .root = (int)(packed->what >> IRIS_DEV_CALL_ROOT & 0xffff)};

    memcpy(call.sizes, packed->sizes, sizeof call.sizes);
    return call;
}

static const char *op_name(int op)
{
    static const char *const names[] = {
#define ROW(NAME, name) name,
        IRIS_COMPARED_ROWS(ROW)
#undef ROW
    };

    return op < IRIS_COMPARED_NUM_OPS ? names[op] : "another call";
}

static const char *variant_name(int variant)
{
    switch (variant) {
#define ROW(NAME, value, name) \
    case value:                \
        return name;
        IRIS_CCL_VARIANT_ROWS(ROW)
#undef ROW
    default:
        return "?";
    }
}

static int is_product(const struct iris_compared *call)
{
    return call->op > IRIS_COMPARED_BROADCAST &&
           call->op < IRIS_COMPARED_GATHER;
}

/* "iris_all_reduce of 500 f32": the values in which most calls differ. */
static void describe_call(const struct iris_compared *call,
                          char text[CALL_TEXT])
{
    const unsigned long long sizes[] = {call->sizes[0], call->sizes[1],
                                        call->sizes[2]};
    const char *dtype = iris_dtype_name((iris_dtype_t)call->dtype);
    size_t element = iris_dtype_size((iris_dtype_t)call->dtype);

    if (call->op > IRIS_COMPARED_REDUCE && element != 0) {
        snprintf(text, CALL_TEXT, "%s of %llu %s", op_name(call->op),
                 sizes[0] / element, dtype);
    } else if (is_product(call)) {
        snprintf(text, CALL_TEXT, "%s of %s, M %llu, N %llu, K %llu",
                 op_name(call->op), dtype, sizes[0], sizes[1], sizes[2]);
    } else if (sizes[1] != 0) {
        snprintf(text, CALL_TEXT, "%s of %llu rows of %llu %s",
                 op_name(call->op), sizes[1], sizes[0], dtype);
    } else {
        snprintf(text, CALL_TEXT, "%s of %llu %s", op_name(call->op), sizes[0],
                 dtype);
    }
}

/* "sum" or "sum times 0.5". */
static const char *say_reduction(const struct iris_compared *call,
                                 char text[CALL_TEXT])
{
    const char *name = iris_i_reduce_op_name((iris_reduce_op_t)call->reduce);
    double scale;

    memcpy(&scale, &call->sizes[2], sizeof scale);
    if (scale == 0) {
        return name;
    }
    iris_i_print(text, CALL_TEXT, "%s times %.17g", name, scale);
    return text;
}

/* If those are equal in both calls, adds the other values. */
static void say_more(const struct iris_compared *call, char text[CALL_TEXT])
{
    size_t used = strlen(text);
    char reduction[CALL_TEXT];

    if (call->op == IRIS_COMPARED_GATHER_TO ||
        call->op == IRIS_COMPARED_SCATTER_FROM) {
        snprintf(text + used, CALL_TEXT - used, " (root %d)", call->root);
    } else if (call->op == IRIS_COMPARED_ALL_GATHERV) {
        snprintf(text + used, CALL_TEXT - used, " (counts %08x)",
                 (unsigned)call->sizes[1]);
    } else if (call->op > IRIS_COMPARED_REDUCE) {
        return; /* messages of pairs have no other values */
    } else if (call->op == IRIS_COMPARED_REDUCE) {
        snprintf(text + used, CALL_TEXT - used, " (%s, root %d, variant %s)",
                 say_reduction(call, reduction), call->root,
                 variant_name(call->variant));
    } else if (call->op == IRIS_COMPARED_ALL_REDUCE ||
               call->op == IRIS_COMPARED_REDUCE_SCATTER) {
        snprintf(text + used, CALL_TEXT - used, " (%s, variant %s)",
                 say_reduction(call, reduction), variant_name(call->variant));
    } else if (call->op == IRIS_COMPARED_BROADCAST ||
               call->op == IRIS_COMPARED_GATHER) {
        snprintf(text + used, CALL_TEXT - used, " (root %d, variant %s)",
                 call->root, variant_name(call->variant));
    } else if (is_product(call)) {
        snprintf(text + used, CALL_TEXT - used, " (chunks %d)", call->root);
    } else {
        snprintf(text + used, CALL_TEXT - used, " (variant %s)",
                 variant_name(call->variant));
    }
}

/* One of the two calls is a member's that failed. */
static iris_status_t describe_failure(const struct iris_dev_mismatch *mismatch,
                                      char *text, size_t bytes)
{
    struct iris_compared own = unpack_call(&mismatch->own);
    int is_own = own.op == IRIS_COMPARED_FAILED;
    iris_status_t status = (iris_status_t)(-(
        int)(is_own ? own.sizes[0] : mismatch->theirs.sizes[0]));
    int failed = is_own ? mismatch->rank : mismatch->other;

    snprintf(text, bytes,
             "rank %d: %s cannot end, because it failed on rank %d (%s), whose "
             "own error says why; call iris_clear_error() and make other "
             "workspaces",
             mismatch->rank, is_own ? "a fused operation" : op_name(own.op),
             failed, iris_status_string(status));
    return status;
}

iris_status_t iris_i_mismatch_describe(const struct iris_dev_mismatch *mismatch,
                                       char *text, size_t bytes)
{
    struct iris_compared own = unpack_call(&mismatch->own);
    struct iris_compared theirs = unpack_call(&mismatch->theirs);
    char mine[CALL_TEXT], other[CALL_TEXT];
    char whose[32] = "this rank";
    const char *hint = "";

    if (mismatch->other < 0) {
        snprintf(text, bytes,
                 "rank %d: the workspace is in use by a collective on another "
                 "stream, or one that used it did not end; give each stream "
                 "its own workspace (iris_ccl_workspace_create)",
                 mismatch->rank);
        return IRIS_ERR_INVALID;
    }
    if (own.op == IRIS_COMPARED_FAILED || theirs.op == IRIS_COMPARED_FAILED) {
        return describe_failure(mismatch, text, bytes);
    }
    describe_call(&own, mine);
    describe_call(&theirs, other);
    if (strcmp(mine, other) == 0) {
        say_more(&own, mine);
        say_more(&theirs, other);
        hint = own.variant != theirs.variant
                   ? ", with buffers on the heap either on all members or on "
                     "no member"
               : strcmp(mine, other) == 0 ? ", with the same options"
                                          : "";
    }
    if (own.op > IRIS_COMPARED_REDUCE && own.sizes[1] != 0 &&
        own.op != IRIS_COMPARED_ALL_GATHERV) {
        snprintf(whose, sizeof whose, "rank %llu",
                 (unsigned long long)own.sizes[1] - 1);
    }
    snprintf(text, bytes,
             "rank %d: members of a group made different collective calls: "
             "rank %d calls %s, %s %s, call %llu of the group; all "
             "members make the same calls in the same order%s",
             mismatch->rank, mismatch->other, other, whose, mine,
             (unsigned long long)(uint32_t)mismatch->count, hint);
    return IRIS_ERR_MISMATCH;
}

/* ---- Slots for backends that lack a feature ---- */

static iris_status_t fail_unsupported(const struct iris_backend *backend,
                                      const char *what, const char *instead)
{
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "the %s backend has no %s; %s", backend->type->name,
                       what, instead);
}

iris_status_t iris_i_no_stream_wrap(struct iris_backend *backend, void *native,
                                    struct iris_stream **stream_p)
{
    (void)native, (void)stream_p;
    return fail_unsupported(backend, "streams of its own to wrap",
                            "use iris_stream_create");
}

void *iris_i_no_native(struct iris_stream *stream)
{
    (void)stream;
    return NULL;
}

iris_status_t iris_i_no_call(struct iris_stream *stream,
                             iris_native_call_t function, void *what, int apart)
{
    (void)function, (void)what, (void)apart;
    return fail_unsupported(stream->backend, "streams that a library could use",
                            "enqueue a kernel");
}

iris_status_t iris_i_no_follow(struct iris_stream *stream,
                               struct iris_stream *other)
{
    (void)stream, (void)other;
    return IRIS_OK;
}

static iris_status_t no_graphs(const struct iris_stream *stream)
{
    return fail_unsupported(stream->backend, "graphs",
                            "enqueue the work each time, or use a GPU");
}

iris_status_t iris_i_no_capture_begin(struct iris_stream *stream)
{
    return no_graphs(stream);
}

iris_status_t iris_i_no_capture_end(struct iris_stream *stream, void **graph_p)
{
    (void)graph_p;
    return no_graphs(stream);
}

iris_status_t iris_i_no_graph_launch(struct iris_stream *stream, void *graph)
{
    (void)graph;
    return no_graphs(stream);
}

void iris_i_no_graph_destroy(struct iris_backend *backend, void *graph)
{
    (void)backend, (void)graph;
}

iris_status_t iris_i_no_copy_rows(struct iris_stream *stream,
                                  const struct iris_copy_rows *rows)
{
    (void)stream, (void)rows;
    return IRIS_ERR_UNSUPPORTED;
}

iris_status_t iris_i_no_signal(struct iris_stream *stream, uint64_t *place,
                               uint64_t value)
{
    (void)stream, (void)place, (void)value;
    return IRIS_ERR_UNSUPPORTED;
}

iris_status_t iris_i_no_wait(struct iris_stream *stream, uint64_t *place,
                             iris_cmp_t cmp, uint64_t value)
{
    (void)stream, (void)place, (void)cmp, (void)value;
    return IRIS_ERR_UNSUPPORTED;
}

iris_status_t iris_i_no_export_range(struct iris_backend *backend, void *at,
                                     struct iris_heap_handle *handle_p)
{
    (void)at, (void)handle_p;
    return fail_unsupported(backend, "heaps that peers map piece by piece",
                            "import the whole heap");
}

iris_status_t iris_i_no_import_range(struct iris_backend *backend, void *at,
                                     size_t most,
                                     const struct iris_heap_handle *handle)
{
    (void)at, (void)most, (void)handle;
    return fail_unsupported(backend, "heaps that peers map piece by piece",
                            "import the whole heap");
}

iris_status_t iris_i_no_hold_external(struct iris_backend *backend,
                                      const void *ptr, size_t bytes,
                                      struct iris_external *external_p)
{
    (void)ptr, (void)bytes, (void)external_p;
    return fail_unsupported(backend, "way to map memory a second time",
                            "copy it");
}

void iris_i_no_release_external(struct iris_backend *backend,
                                struct iris_external *external)
{
    (void)backend, (void)external;
}

iris_status_t iris_i_no_map_external(struct iris_backend *backend, void *at,
                                     struct iris_external *external)
{
    (void)at, (void)external;
    return fail_unsupported(backend, "way to map memory a second time",
                            "copy it");
}

iris_status_t iris_i_no_pin(struct iris_backend *backend, size_t bytes,
                            struct iris_pinned *pinned_p)
{
    (void)bytes, (void)pinned_p;
    return fail_unsupported(backend, "host memory of its own for kernels",
                            "use any");
}

void iris_i_no_unpin(struct iris_backend *backend, struct iris_pinned *pinned)
{
    (void)backend, (void)pinned;
}

iris_status_t iris_i_all_accessible(struct iris_backend *backend,
                                    const char *name, const void *ptr,
                                    size_t bytes)
{
    (void)backend, (void)name, (void)ptr, (void)bytes;
    return IRIS_OK;
}

iris_status_t iris_i_all_committed(struct iris_backend *backend, void *at,
                                   size_t bytes)
{
    (void)backend, (void)at, (void)bytes;
    return IRIS_OK;
}

void iris_i_no_decommit(struct iris_backend *backend, void *at, size_t bytes)
{
    (void)backend, (void)at, (void)bytes;
}
