/* SPDX-License-Identifier: MIT
 *
 * The public fused operations: checks a call, finds its memory, and enqueues it
 * as products and collectives.
 *
 * The workspace is the program's, or the default one that the first call of all
 * ranks makes. It holds the streams of calls in chunks, and one call uses it at
 * a time, in stream order.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/ccl.h>
#include <iris/constants.h>
#include <iris/device/kernels/ops_args.h>

#include "backend/backend.h"
#include "base/processor.h"
#include "context/context.h"
#include "control/control.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <stdlib.h>

/* ---- Workspaces: the program's, and the default one for all ranks ---- */

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

static void drop_workspace(iris_t *iris, struct iris_ops_workspace *workspace)
{
    iris_i_stream_mark_forget(iris_i_queue(iris), &workspace->used);
    for (int i = 0; i < SIDE_STREAMS && workspace->side[i] != NULL; i++) {
        iris_i_stream_destroy(iris_i_queue(iris), workspace->side[i]);
    }
    if (workspace->memory != NULL) {
        iris_i_heap_drop(iris_i_heap(iris), workspace->memory);
    }
}

static void shrink_ops(struct iris_extension *extension, iris_t *iris)
{
    struct iris_ops *ops = (struct iris_ops *)extension;

    for (struct iris_ops_workspace *w = ops->workspaces; w != NULL;
         w = w->next) {
        drop_workspace(iris, w);
    }
    drop_workspace(iris, &ops->own);
}

static struct iris_ops *ops_of(iris_t *iris)
{
    struct iris_ops *ops =
        (struct iris_ops *)iris_i_extension(iris, IRIS_EXTENSION_OPS);

    if (ops == NULL) {
        ops = calloc(1, sizeof *ops);
        if (ops != NULL) {
            ops->extension.close = close_ops;
            ops->extension.shrink = shrink_ops;
            iris_i_extend(iris, IRIS_EXTENSION_OPS, &ops->extension);
        }
    }
    return ops;
}

static size_t words_bytes(const iris_t *iris)
{
    size_t bytes =
        2 * (size_t)iris_i_num_ranks(iris) * sizeof(struct iris_ops_words);

    return (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
}

/* `bytes` is the same on all ranks. No peer writes there before this rank's
 * next call has begun. */
static iris_status_t allocate_memory(iris_t *iris,
                                     const struct iris_ops_call *call,
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

/* Makes a workspace for a call. `checked`: the status of the caller's own
 * checks. */
static iris_status_t make_workspace(iris_t *iris,
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
        status = allocate_memory(iris, call, bytes, &workspace->memory);
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
static struct iris_ops_workspace **
find_live(iris_t *iris, const iris_ops_workspace_t *workspace)
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
    link = find_live(iris, workspace);
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
static iris_status_t grow_workspace(iris_t *iris,
                                    const struct iris_ops_call *call,
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
    status = allocate_memory(iris, call, call->workspace, &memory);
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
static iris_status_t use_workspace(iris_t *iris, struct iris_ops_call *call,
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

/* Finds the memory for a checked call. */
static iris_status_t find_workspace(iris_t *iris, struct iris_ops_call *call)
{
    struct iris_ops_workspace *workspace = call->options.workspace;
    struct iris_ops *ops = ops_of(iris);
    iris_status_t status = IRIS_OK;

    if (ops == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "%s: no memory for a workspace", call->name);
    }
    if (workspace != NULL && find_live(iris, workspace) == NULL) {
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
            status = grow_workspace(iris, call, workspace);
        }
    }
    return status == IRIS_OK ? use_workspace(iris, call, workspace) : status;
}

/* ---- Steps ---- */

static struct iris_ccl_options collective_of(const struct iris_ops_call *call)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = call->options.stream;
    options.group = call->options.group;
    return options;
}

/* The gaps between a product's rows if each member has a place for the same
 * number of rows: one row is left free behind each share that has one row
 * less. */
static struct iris_blas_gaps between_shares(const struct iris_ops_call *call)
{
    int64_t most = iris_i_ops_most(call, call->m);
    int64_t longer = call->m % call->members;
    struct iris_blas_gaps gaps = {
        longer == 0 ? call->m : longer * most + most - 1, most - 1};

    return gaps;
}

static iris_status_t copy_matrix(iris_t *iris, const struct iris_ops_call *call,
                                 iris_tensor_t to, iris_tensor_t from)
{
    return iris_i_ops_copy(iris, to, from, call->options.stream);
}

static iris_status_t gather_parts(iris_t *iris,
                                  const struct iris_ops_call *call,
                                  const void *in, char *memory,
                                  int64_t elements)
{
    struct iris_ccl_options options = collective_of(call);
    size_t bytes = (size_t)elements * iris_dtype_size(call->b->dtype);

    return iris_all_gather(
        iris, in == NULL ? memory + (size_t)call->index * bytes : in, memory,
        (size_t)elements, call->b->dtype, &options);
}

/* Fails ahead of the call's collective. Members of a first call have agreed on
 * the failure. */
static iris_status_t refuse_call(iris_t *iris, const struct iris_ops_call *call,
                                 iris_status_t status)
{
    struct iris_ccl_options options = collective_of(call);

    return call->is_first || call->members == 1
               ? status
               : iris_i_ops_refuse(iris, &options, status);
}

/* Whether a collective of `elements` elements can use the matrix in place.
 * Otherwise some members may still copy their input through the workspace. All
 * members choose the same variant, since the workspace is on the heap, too. */
static int is_whole(const iris_t *iris, const iris_tensor_t *matrix,
                    int64_t elements)
{
    return iris_tensor_numel(matrix) == elements &&
           iris_tensor_is_contiguous(matrix, IRIS_FORMAT_CONTIGUOUS) &&
           iris_i_heap_bytes_from(iris_i_heap(iris), matrix->data) > 0;
}

/* Gathers the members' `a`. Each has a place for `elements` elements; `own` is
 * this member's. */
static iris_status_t gather_a(iris_t *iris, const struct iris_ops_call *call,
                              iris_tensor_t own, int64_t elements)
{
    int whole = is_whole(iris, call->a, elements);
    iris_status_t status =
        whole ? IRIS_OK : copy_matrix(iris, call, own, *call->a);

    return status == IRIS_OK
               ? gather_parts(iris, call, whole ? call->a->data : NULL,
                              call->memory, elements)
               : refuse_call(iris, call, status);
}

/* ---- The operations ---- */

static iris_status_t matmul_all_reduce(iris_t *iris,
                                       const struct iris_ops_call *call)
{
    struct iris_ccl_options options = collective_of(call);
    iris_tensor_t products = iris_i_ops_kept(call, 0, call->m, call->n);
    iris_tensor_t sums = call->direct ? *call->out
                         : call->apart
                             ? iris_i_ops_kept(call, call->m, call->m, call->n)
                             : products;
    iris_status_t status;

    products = call->direct && !call->apart ? sums : products;
    status =
        iris_i_ops_multiply(iris, call, *call->a, iris_i_ops_dense(products));
    if (status != IRIS_OK) {
        return refuse_call(iris, call, status);
    }
    status = iris_all_reduce(iris, products.data, sums.data,
                             (size_t)(call->m * call->n), call->b->dtype,
                             IRIS_REDUCE_SUM, &options);
    return status == IRIS_OK && !call->direct
               ? copy_matrix(iris, call, *call->out, sums)
               : status;
}

/* Gathers the members' shares of the rows of `all`. This member's share is
 * `in`, or in place (NULL). */
static iris_status_t gather_shares(iris_t *iris,
                                   const struct iris_ops_call *call,
                                   const void *in, const iris_tensor_t *all)
{
    struct iris_ccl_options options = collective_of(call);
    struct iris_ops_share share = iris_i_ops_share(call, call->m, call->index);
    iris_tensor_t own = iris_i_ops_part(all, 0, share);
    size_t *counts;
    iris_status_t status;

    if (call->m % call->members == 0) {
        return gather_parts(iris, call, in, all->data, iris_tensor_numel(&own));
    }
    counts = calloc((size_t)call->members, sizeof *counts);
    if (counts == NULL) {
        status =
            iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                        "%s: no memory for the sizes of shares", call->name);
        return refuse_call(iris, call, status);
    }
    for (int64_t i = 0; i < call->members; i++) {
        counts[i] =
            (size_t)(iris_i_ops_share(call, call->m, i).rows * all->shape[1]);
    }
    status = iris_all_gatherv(iris, in == NULL ? own.data : in, all->data,
                              counts, NULL, all->dtype, &options);
    free(counts);
    return status;
}

static iris_status_t matmul_all_gather(iris_t *iris,
                                       const struct iris_ops_call *call)
{
    struct iris_ops_share share = iris_i_ops_share(call, call->m, call->index);
    iris_tensor_t all =
        call->direct ? *call->out : iris_i_ops_kept(call, 0, call->m, call->n);
    iris_tensor_t own = iris_i_ops_part(&all, 0, share);
    iris_status_t status =
        iris_i_ops_multiply(iris, call, *call->a, iris_i_ops_dense(own));

    status = status == IRIS_OK ? gather_shares(iris, call, NULL, &all)
                               : refuse_call(iris, call, status);
    return status == IRIS_OK && !call->direct
               ? copy_matrix(iris, call, *call->out, all)
               : status;
}

static iris_status_t gather_rows(iris_t *iris, const struct iris_ops_call *call)
{
    struct iris_ops_share share = iris_i_ops_share(call, call->m, call->index);
    iris_tensor_t all = iris_i_ops_kept(call, 0, call->m, call->k);
    int whole = is_whole(iris, call->a, share.rows * call->k);
    iris_status_t status =
        whole ? IRIS_OK
              : copy_matrix(iris, call, iris_i_ops_part(&all, 0, share),
                            *call->a);

    status = status == IRIS_OK
                 ? gather_shares(iris, call, whole ? call->a->data : NULL, &all)
                 : refuse_call(iris, call, status);
    return status == IRIS_OK ? iris_i_ops_multiply(iris, call, all,
                                                   iris_i_ops_dense(*call->out))
                             : status;
}

/* The members' columns are joined behind the place where they were gathered. */
static iris_status_t gather_columns(iris_t *iris,
                                    const struct iris_ops_call *call)
{
    int64_t most = iris_i_ops_most(call, call->k);
    iris_tensor_t whole = iris_i_ops_whole(call);
    iris_status_t status = gather_a(
        iris, call, iris_i_ops_kept_columns(call, call->index), call->m * most);

    for (int64_t i = 0; i < call->members && status == IRIS_OK; i++) {
        status = copy_matrix(
            iris, call,
            iris_i_ops_part(&whole, 1, iris_i_ops_share(call, call->k, i)),
            iris_i_ops_kept_columns(call, i));
    }
    return status == IRIS_OK ? iris_i_ops_multiply(iris, call, whole,
                                                   iris_i_ops_dense(*call->out))
                             : status;
}

static iris_status_t matmul_reduce_scatter(iris_t *iris,
                                           const struct iris_ops_call *call)
{
    struct iris_ccl_options options = collective_of(call);
    int64_t most = iris_i_ops_most(call, call->m);
    int whole = is_whole(iris, call->out, most * call->n);
    iris_tensor_t own =
        iris_i_ops_kept(call, call->index * most, call->out->shape[0], call->n);
    struct iris_ops_rows spread = {iris_i_ops_kept(call, 0, call->m, call->n),
                                   between_shares(call)};
    iris_status_t status = iris_i_ops_multiply(iris, call, *call->a, spread);

    if (status != IRIS_OK) {
        return refuse_call(iris, call, status);
    }
    status = iris_reduce_scatter(
        iris, call->memory, whole ? call->out->data : own.data,
        (size_t)(most * call->n), own.dtype, IRIS_REDUCE_SUM, &options);
    return status == IRIS_OK && !whole
               ? copy_matrix(iris, call, *call->out, own)
               : status;
}

static iris_status_t enqueue_operation(iris_t *iris,
                                       const struct iris_ops_call *call)
{
    if (call->members == 1) {
        return iris_i_ops_multiply(iris, call, *call->a,
                                   iris_i_ops_dense(*call->out));
    }
    if (iris_i_ops_in_chunks(&call->plan)) {
        return iris_i_ops_chunks(iris, call);
    }
    switch (call->op) {
    case IRIS_OPS_MATMUL_ALL_REDUCE:
        return matmul_all_reduce(iris, call);
    case IRIS_OPS_ALL_GATHER_MATMUL:
        return call->by_column ? gather_columns(iris, call)
                               : gather_rows(iris, call);
    case IRIS_OPS_MATMUL_ALL_GATHER:
        return matmul_all_gather(iris, call);
    default:
        return matmul_reduce_scatter(iris, call);
    }
}

/* Makes the collective's members compare the whole operation: the collective's
 * count depends on M times N only, and not on K. */
static iris_status_t enqueue_compared(iris_t *iris, struct iris_ops_call *call)
{
    const struct iris_fused fused = {
        .compared = {.op = IRIS_COMPARED_MATMUL_ALL_REDUCE + (int)call->op,
                     .dtype = (int)call->b->dtype,
                     .root = call->plan.parts,
                     .sizes = {(uint64_t)call->m, (uint64_t)call->n,
                               (uint64_t)call->k}},
        .stream = call->options.stream};
    iris_status_t status;

    iris_i_fused_set(&fused);
    status = iris_i_ops_first(iris, call);
    status = status == IRIS_OK ? enqueue_operation(iris, call)
                               : refuse_call(iris, call, status);
    iris_i_fused_set(NULL);
    return status;
}

static iris_status_t run_operation(iris_t *iris, struct iris_ops_call *call,
                                   const struct iris_ops_options *options)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_FUSED, .target_rank = -1, .kernel = call->name};
    uint64_t fp = iris_i_fp_enter(); /* for the choice of a way */
    iris_status_t status;

    status = iris_i_ops_check(iris, call, options);
    if (status != IRIS_OK) {
        iris_i_fp_leave(fp);
        return status;
    }
    iris_i_hooks_before(iris_i_hooks(iris), &event);
    status = find_workspace(iris, call);
    status = status == IRIS_OK ? enqueue_compared(iris, call) : status;
    iris_i_fp_leave(fp);
    return iris_i_hooks_after(iris_i_hooks(iris), &event, status);
}

/* Every rank has to be told if the arguments are wrong on one. A rank without
 * matrices needs no memory itself. */
static iris_status_t prepare_operation(iris_t *iris, struct iris_ops_call *call,
                                       const struct iris_ops_options *options,
                                       iris_ops_workspace_t **workspace_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, call->name, workspace_p, "workspace_p");
    const struct iris_blas *blas;
    void *state;
    uint64_t fp;

    if (status != IRIS_OK) {
        return status;
    }
    fp = iris_i_fp_enter();
    if (call->a != NULL || call->b != NULL || call->out != NULL) {
        status = iris_i_ops_check(iris, call, options);
    }
    /* Later a stream may capture, and then some libraries cannot be opened. */
    status = status ? status : iris_i_ops_blas(iris, &blas, &state);
    status = make_workspace(iris, call, status, workspace_p);
    iris_i_fp_leave(fp);
    return status;
}

#define OPERATION(which, OP)                                              \
    iris_status_t iris_##which(                                           \
        iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,     \
        const iris_tensor_t *out, const struct iris_ops_options *options) \
    {                                                                     \
        struct iris_ops_call call = {.name = "iris_" #which,              \
                                     .op = IRIS_OPS_##OP,                 \
                                     .a = a,                              \
                                     .b = b,                              \
                                     .out = out};                         \
                                                                          \
        return run_operation(iris, &call, options);                       \
    }                                                                     \
                                                                          \
    iris_status_t iris_##which##_preamble(                                \
        iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,     \
        const iris_tensor_t *out, const struct iris_ops_options *options, \
        iris_ops_workspace_t **workspace_p)                               \
    {                                                                     \
        struct iris_ops_call call = {.name = "iris_" #which "_preamble",  \
                                     .op = IRIS_OPS_##OP,                 \
                                     .a = a,                              \
                                     .b = b,                              \
                                     .out = out};                         \
                                                                          \
        return prepare_operation(iris, &call, options, workspace_p);      \
    }

OPERATION(matmul_all_reduce, MATMUL_ALL_REDUCE)
OPERATION(all_gather_matmul, ALL_GATHER_MATMUL)
OPERATION(matmul_all_gather, MATMUL_ALL_GATHER)
OPERATION(matmul_reduce_scatter, MATMUL_REDUCE_SCATTER)
