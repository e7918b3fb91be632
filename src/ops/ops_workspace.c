/* SPDX-License-Identifier: MIT
 *
 * Workspaces of fused operations: the program's, and the default one for calls
 * of all ranks.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/ops_args.h>

#include "context/context.h"
#include "control/control.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <stdlib.h>

#define SIDE_STREAMS 3

/* The words of chunks come before the bytes that calls use. */
struct iris_ops_workspace {
    struct iris_ops_workspace *next;
    char *memory;
    size_t bytes;                           /* for calls */
    struct iris_stream_mark used;           /* its last use */
    struct iris_stream *side[SIDE_STREAMS]; /* streams of calls in chunks,
                                             * made by the first one; else
                                             * NULL */
};

/* The state of a context. */
struct iris_ops {
    struct iris_extension extension;
    struct iris_ops_workspace *workspaces; /* the program's workspaces */
    struct iris_ops_workspace own;         /* memory NULL: it does not exist
                                            * yet */
};

/* Each operation's agreements: on the size, which ranks may not know, and on
 * the allocation. */
static const struct preamble {
    struct iris_call_type size;
    struct iris_call_type allocation;
} preambles[] = {
#define TYPE(op, call)                                                  \
    [IRIS_OPS_##op] = {.size = {.name = (call)},                        \
                       .allocation = {.name = (call),                   \
                                      .fields = {{.name = "bytes"},     \
                                                 {.name = "alignment"}, \
                                                 {.name = "offset"}}}}
    TYPE(MATMUL_ALL_REDUCE, "iris_matmul_all_reduce_preamble"),
    TYPE(ALL_GATHER_MATMUL, "iris_all_gather_matmul_preamble"),
    TYPE(MATMUL_ALL_GATHER, "iris_matmul_all_gather_preamble"),
    TYPE(MATMUL_REDUCE_SCATTER, "iris_matmul_reduce_scatter_preamble"),
#undef TYPE
};

static void close_ops(struct iris_extension *extension)
{
    struct iris_ops *ops = (struct iris_ops *)extension;

    while (ops->workspaces != NULL) {
        struct iris_ops_workspace *workspace = ops->workspaces;

        ops->workspaces = workspace->next;
        free(workspace);
    }
    free(ops);
}

static struct iris_ops *ops_of(iris_t *iris)
{
    struct iris_ops *ops =
        (struct iris_ops *)iris_i_extension(iris, IRIS_EXTENSION_OPS);

    if (ops == NULL) {
        ops = calloc(1, sizeof *ops);
        if (ops != NULL) {
            ops->extension.close = close_ops;
            iris_i_extend(iris, IRIS_EXTENSION_OPS, &ops->extension);
        }
    }
    return ops;
}

static size_t words_bytes(const iris_t *iris)
{
    size_t bytes =
        (size_t)iris_i_num_ranks(iris) * sizeof(struct iris_ops_words);

    return (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
}

/* `bytes` is the same on all ranks. No peer writes there before this rank's
 * next call has begun. */
static iris_status_t allocate(iris_t *iris, const struct iris_ops_call *call,
                              size_t bytes, char **memory_p)
{
    size_t words = words_bytes(iris);
    struct iris_heap_request request = {.type = &preambles[call->op].allocation,
                                        .bytes = words + bytes,
                                        .alignment = IRIS_ALIGNMENT};
    void *memory;
    iris_status_t status =
        iris_i_heap_allocate(iris_i_heap(iris), &request, &memory);

    if (status == IRIS_OK) {
        *memory_p = memory;
        status = iris_i_heap_clear(&iris_i_heap(iris)->memory, memory, words);
    }
    return status;
}

static iris_status_t make_streams(iris_t *iris,
                                  struct iris_ops_workspace *workspace)
{
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < SIDE_STREAMS && status == IRIS_OK; i++) {
        if (workspace->side[i] == NULL) {
            status =
                iris_i_stream_create(iris_i_queue(iris), &workspace->side[i]);
        }
    }
    return status;
}

/* The heap is the same on all ranks, but ranks of different groups need
 * different sizes, and a rank without a group needs none. All allocate the
 * largest size, at least 1 byte, so that all ranks do the same. */
static iris_status_t agree_bytes(iris_t *iris, const struct iris_ops_call *call,
                                 iris_status_t checked, size_t *bytes_p)
{
    struct iris_members *world = &iris_i_world(iris)->members;
    uint64_t bytes = call->workspace == 0 ? 1 : call->workspace;
    const struct iris_call post = {.type = &preambles[call->op].size,
                                   .status = checked,
                                   .payload = &bytes,
                                   .payload_bytes = sizeof bytes};
    iris_status_t status = iris_i_agree(world, &post);
    size_t most = bytes;

    for (int rank = 0; rank < world->count && status == IRIS_OK; rank++) {
        (void)iris_i_agree_payload(world, rank, &bytes, sizeof bytes);
        most = bytes > most ? bytes : most;
    }
    *bytes_p = most;
    return status;
}

iris_status_t iris_i_ops_make_workspace(iris_t *iris,
                                        const struct iris_ops_call *call,
                                        iris_status_t checked,
                                        iris_ops_workspace_t **workspace_p)
{
    struct iris_ops *ops = ops_of(iris);
    struct iris_ops_workspace *workspace = calloc(1, sizeof *workspace);
    iris_status_t status = checked;
    size_t bytes;

    if (status == IRIS_OK && (ops == NULL || workspace == NULL)) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                             "%s: no memory for a workspace", call->name);
    }
    status = agree_bytes(iris, call, status, &bytes);
    if (status == IRIS_OK) {
        status = allocate(iris, call, bytes, &workspace->memory);
    }
    if (status != IRIS_OK) {
        free(workspace);
        return status;
    }
    workspace->bytes = bytes;
    if (iris_i_ops_in_chunks(&call->plan)) {
        /* Otherwise the first call makes them. */
        (void)make_streams(iris, workspace);
    }
    workspace->next = ops->workspaces;
    ops->workspaces = workspace;
    *workspace_p = workspace;
    return IRIS_OK;
}

/* The link to a workspace of the program; NULL: not found. */
static struct iris_ops_workspace **find(iris_t *iris,
                                        const iris_ops_workspace_t *workspace)
{
    struct iris_ops *ops =
        (struct iris_ops *)iris_i_extension(iris, IRIS_EXTENSION_OPS);
    struct iris_ops_workspace **link = ops == NULL ? NULL : &ops->workspaces;

    while (link != NULL && *link != workspace) {
        link = *link == NULL ? NULL : &(*link)->next;
    }
    return link;
}

iris_status_t iris_ops_workspace_destroy(iris_t *iris,
                                         iris_ops_workspace_t *workspace)
{
    iris_status_t status = iris_i_enter(iris, "iris_ops_workspace_destroy");
    struct iris_ops_workspace **link;
    char *memory;

    if (status != IRIS_OK || workspace == NULL) {
        return status;
    }
    link = find(iris, workspace);
    if (link == NULL) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "iris_ops_workspace_destroy: %p is not a live "
                             "workspace of this context; pass one that a "
                             "preamble gave",
                             (void *)workspace);
    }
    memory = link == NULL ? NULL : workspace->memory;
    status = iris_i_heap_release(iris_i_heap(iris), memory, status);
    if (status == IRIS_OK) {
        iris_i_stream_mark_forget(iris_i_queue(iris), &workspace->used);
        for (int i = 0; i < SIDE_STREAMS && workspace->side[i] != NULL; i++) {
            iris_i_stream_destroy(iris_i_queue(iris), workspace->side[i]);
        }
        *link = workspace->next;
        free(workspace);
    }
    return status;
}

/* ---- The workspace of a call ---- */

/* Makes the default workspace, or a larger one. The old memory is freed when
 * the work that used it is done. */
static iris_status_t grow(iris_t *iris, const struct iris_ops_call *call,
                          struct iris_ops_workspace *own)
{
    char *memory, *old = own->memory;
    iris_status_t status;

    if (call->members != iris_i_num_ranks(iris)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                           "%s: a group of %lld of %d ranks needs a workspace; "
                           "call %s on all ranks and pass its workspace",
                           call->name, (long long)call->members,
                           iris_i_num_ranks(iris),
                           preambles[call->op].allocation.name);
    }
    status = allocate(iris, call, call->workspace, &memory);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_stream_mark_forget(iris_i_queue(iris), &own->used);
    own->memory = memory;
    own->bytes = call->workspace;
    return iris_free_later(iris, old);
}

static iris_status_t too_small(const iris_t *iris,
                               const struct iris_ops_call *call)
{
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                       "%s: the workspace has %zu bytes, this call needs %zu; "
                       "make one by %s for its sizes",
                       call->name, call->options.workspace->bytes,
                       call->workspace, preambles[call->op].allocation.name);
}

/* As for a collective: one stream at a time uses a workspace. */
static iris_status_t use(iris_t *iris, struct iris_ops_call *call,
                         struct iris_ops_workspace *workspace)
{
    struct iris_stream *stream = call->options.stream;
    iris_status_t status;

    if (!iris_i_stream_mark_take(iris_i_queue(iris), &workspace->used,
                                 stream)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                           "%s: the workspace was last used on another stream, "
                           "whose work may not be done; call "
                           "iris_stream_synchronize for that one, or give this "
                           "one its own workspace (%s)",
                           call->name, preambles[call->op].allocation.name);
    }
    call->memory = workspace->memory + words_bytes(iris);
    call->words = (struct iris_ops_words *)(void *)workspace->memory;
    if (!iris_i_ops_in_chunks(&call->plan)) {
        return IRIS_OK;
    }
    status = make_streams(iris, workspace);
    call->products[0] = workspace->side[0];
    call->products[1] = workspace->side[1];
    call->transport = workspace->side[2];
    return status;
}

iris_status_t iris_i_ops_workspace(iris_t *iris, struct iris_ops_call *call)
{
    struct iris_ops_workspace *workspace = call->options.workspace;
    struct iris_ops *ops = ops_of(iris);
    iris_status_t status = IRIS_OK;

    if (ops == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "%s: no memory for a workspace", call->name);
    }
    if (workspace != NULL && find(iris, workspace) == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: workspace %p is not a live one of this "
                           "context; pass one that a preamble gave, or NULL",
                           call->name, (void *)workspace);
    }
    if (call->workspace == 0) {
        return IRIS_OK;
    }
    if (workspace != NULL && workspace->bytes < call->workspace) {
        return too_small(iris, call);
    }
    if (workspace == NULL) {
        workspace = &ops->own;
        if (workspace->bytes < call->workspace) {
            status = grow(iris, call, workspace);
        }
    }
    return status == IRIS_OK ? use(iris, call, workspace) : status;
}
