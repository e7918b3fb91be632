/* SPDX-License-Identifier: MIT
 *
 * Checks a fused operation, and plans it.
 *
 * The number of parts is the first of these that is set: the call's option,
 * IRIS_OPS_CHUNKS, the table. The parts of a product of several members' rows
 * are their shares, which are cut into chunks if there are to be more. The table is a pure function of the sizes, the
 * number of members and the kind of device, which members have in common. So
 * all members make the same plan, and no rank asks another.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/ccl.h>
#include <iris/constants.h>

#include "ops/kernels.h"
#include "base/base.h"
#include "context/context.h"
#include "queue/queue.h"

#include <string.h>

/* A product computes this number of rows at once. Chunks that are not whole
 * blocks took up to 14 % longer than one product on two H100. */
#define BLOCK_ROWS 128

#define CUBE(side) (2.0 * (side) * (side) * (side))

/* A share of fewer rows has too few tiles for all processors of the GPU. */
#define SHARE_ROWS 1024

/* Calls that overlap. Each has `members` members, or more than half of them, at
 * least `operations` (2 M N K), and at most `per_element` multiplications for each
 * element that moves: beyond that, the product takes nearly all of the time. A call
 * that no row fits is done in one part: it was not measured, or slower in more.
 * docs/lab/performance.md has the measurements (bf16). */
struct overlap_row {
    enum iris_ops_op op;
    int members;
    double operations;
    int64_t per_element;
    int parts;
};

static const struct overlap_row overlaps[] = {
    {IRIS_OPS_ALL_GATHER_MATMUL, 2, CUBE(4096), 8192, 4},
    {IRIS_OPS_ALL_GATHER_MATMUL, 4, CUBE(4096), 8192, 4},
    {IRIS_OPS_MATMUL_ALL_GATHER, 2, CUBE(6144), 8192, 2},
    {IRIS_OPS_MATMUL_REDUCE_SCATTER, 2, CUBE(4096) / 2, 8192, 4},
    {IRIS_OPS_MATMUL_REDUCE_SCATTER, 4, CUBE(4096), 8192, 4},
    {IRIS_OPS_MATMUL_ALL_REDUCE, 4, CUBE(7168), 8192, 4},
};

/* Devices on which these rows hold: a part of the device's name. H200 has the
 * processors and copy engines of H100. No other GPU has been measured. On a
 * CPU the same cores do both, so nothing overlaps. */
static const char *const overlapping[] = {"H100", "H200"};

static int is_overlapping(const char *device)
{
    int found = 0;

    for (size_t i = 0; i < sizeof overlapping / sizeof overlapping[0]; i++) {
        found |= strstr(device, overlapping[i]) != NULL;
    }
    return found;
}

/* The chunks of each share, or of all rows, in this number of parts. */
static int count_chunks(const struct iris_ops_size *size, int parts)
{
    return (int)((parts + size->cuts - 1) / size->cuts);
}

/* Whether all chunks of all members are whole blocks of rows. */
static int is_even(const struct iris_ops_size *size, int parts)
{
    int64_t shares = size->rows == size->m ? 1 : size->members;

    return size->m % (shares * count_chunks(size, parts) * BLOCK_ROWS) == 0;
}

int iris_i_ops_table_parts(const struct iris_ops_size *size, const char *device)
{
    double operations = 2 * (double)size->m * (double)size->n * (double)size->k;
    int64_t per_element =
        size->op == IRIS_OPS_ALL_GATHER_MATMUL ? size->n : size->k;

    /* Kernels join the columns, and f32 was not measured. */
    if (!is_overlapping(device) || size->by_column ||
        size->dtype == IRIS_DTYPE_F32) {
        return 1;
    }
    for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++) {
        const struct overlap_row *row = &overlaps[i];

        if ((int)row->op == size->op && size->members <= row->members &&
            2 * size->members > row->members &&
            size->m >= size->members * SHARE_ROWS &&
            operations >= row->operations && per_element <= row->per_element &&
            is_even(size, row->parts)) {
            return row->parts;
        }
    }
    return 1;
}

/* Whether parts of a product by rows have the bits of the whole. With a CPU's
 * library they do not. */
static iris_status_t may_part(iris_t *iris, int *may_p)
{
    const struct iris_blas *blas;
    void *state;
    iris_status_t status = iris_i_ops_blas(iris, &blas, &state);

    *may_p = status == IRIS_OK && (blas == NULL || blas->on_gpu);
    return status;
}

/* `asked` is the call's own number of parts, from 1 to IRIS_OPS_CHUNKS_MOST;
 * 0: not set. May load the BLAS library, and fails if that fails. */
static iris_status_t plan_call(iris_t *iris, const struct iris_ops_size *size,
                               int asked, struct iris_ops_plan *plan_p)
{
    const struct iris_device_info *device = iris_i_device(iris);
    int is_shared = iris->placement.ranks_on_device > 1;
    int parts = asked, may = 1;
    iris_status_t status = IRIS_OK;

    if (parts == 0) {
        parts = (int)iris_i_settings(iris)->ops_chunks.number;
    }
    if (size->m == 0 || size->n == 0 || size->k == 0) {
        parts = 1; /* There is nothing to overlap. */
    }
    if (parts == 0) { /* Ranks that share a GPU wait for each other. */
        parts = device->wavefront > 1 && !is_shared
                    ? iris_i_ops_table_parts(size, device->name)
                    : 1;
    }
    if (parts > size->rows * size->cuts) {
        parts = (int)(size->rows * size->cuts);
    }
    if (parts > 1 && size->members > 1) {
        status = may_part(iris, &may);
    }
    plan_p->parts = size->members == 1 || !may ? 1 : parts;
    plan_p->chunks = count_chunks(size, plan_p->parts);
    return status;
}

/* ---- The arguments: options, tensors, sizes ---- */

void iris_ops_options_init_sized(struct iris_ops_options *options, size_t size)
{
    (void)iris_i_sized_init(options, size, 0);
}

static iris_status_t take_options(iris_t *iris, struct iris_ops_call *call,
                                  const struct iris_ops_options *options)
{
    iris_status_t status;

    iris_ops_options_init(&call->options);
    status =
        iris_i_sized_take(iris_i_log(iris), call->name, "iris_ops_options_init",
                          options, &call->options);
    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, call->options.group, &call->group);
    }
    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris_i_queue(iris), call->options.stream,
                                       &call->options.stream);
    }
    if (status == IRIS_OK && (unsigned)call->options.bias_by_row > 1) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: bias_by_row is %d; pass 0 or 1", call->name,
                           call->options.bias_by_row);
    }
    if (status == IRIS_OK && (call->options.chunks < 0 ||
                              call->options.chunks > IRIS_OPS_CHUNKS_MOST)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: chunks is %d; pass 1 to %d, or 0 for as many "
                           "as are worth it",
                           call->name, call->options.chunks,
                           IRIS_OPS_CHUNKS_MOST);
    }
    return status;
}

/* ---- Tensors ---- */

static iris_status_t check_matrix(const iris_t *iris,
                                  const struct iris_ops_call *call,
                                  const char *name, const iris_tensor_t *tensor)
{
    const struct iris_named_argument argument = {iris_i_log(iris), call->name,
                                                 name};
    iris_status_t status =
        iris_i_tensor_check_access(iris_i_heap(iris), &argument, tensor,
                                   IRIS_BY_KERNEL + (tensor == call->out));

    if (status != IRIS_OK) {
        return status;
    }
    if (tensor->ndim != 2) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: %s has %d dimensions; pass a matrix, of two",
                           call->name, name, tensor->ndim);
    }
    return iris_i_matmul_kernel(tensor->dtype) != NULL &&
                   (call->b == NULL || tensor->dtype == call->b->dtype)
               ? IRIS_OK
               : iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "%s: %s is of %s; pass f32, f16 or bf16, the same "
                             "for a, b and out",
                             call->name, name, iris_dtype_name(tensor->dtype));
}

/* Whether two checked tensors overlap. */
static int do_overlap(const iris_tensor_t *one, const iris_tensor_t *other)
{
    struct iris_tensor_extent a = iris_i_tensor_extent(one);
    struct iris_tensor_extent b = iris_i_tensor_extent(other);

    return a.bytes != 0 && b.bytes != 0 && a.start < b.start + b.bytes &&
           b.start < a.start + a.bytes;
}

static iris_status_t check_tensors(const iris_t *iris,
                                   const struct iris_ops_call *call)
{
    const iris_tensor_t *out = call->out;
    iris_status_t status = check_matrix(iris, call, "b", call->b);

    if (status == IRIS_OK) {
        status = check_matrix(iris, call, "a", call->a);
    }
    if (status == IRIS_OK) {
        status = check_matrix(iris, call, "out", out);
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (out->shape[1] > 1 && out->strides[1] != 1) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the elements of a row of out are %lld apart; "
                           "pass one with contiguous rows",
                           call->name, (long long)out->strides[1]);
    }
    if (out->shape[0] > 1 && out->strides[0] < out->shape[1]) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: rows of out, %lld apart, overlap", call->name,
                           (long long)out->strides[0]);
    }
    if (do_overlap(out, call->a) || do_overlap(out, call->b)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: out overlaps a or b; pass another", call->name);
    }
    return IRIS_OK;
}

static iris_status_t check_bias(const iris_t *iris,
                                const struct iris_ops_call *call, int64_t rows)
{
    const iris_tensor_t *bias = call->options.bias;
    const struct iris_named_argument argument = {iris_i_log(iris), call->name,
                                                 "bias"};
    int64_t count = call->options.bias_by_row ? rows : call->n;
    iris_status_t status = IRIS_OK;

    if (bias != NULL) {
        status = iris_i_tensor_check_access(iris_i_heap(iris), &argument, bias,
                                            IRIS_BY_KERNEL);
    }
    if (bias == NULL || status != IRIS_OK ||
        (bias->ndim == 1 && bias->dtype == call->b->dtype &&
         bias->shape[0] == count && !do_overlap(call->out, bias))) {
        return status;
    }
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                       "%s: bias has to be a tensor of %lld elements of %s, "
                       "one for each %s, apart from out",
                       call->name, (long long)count,
                       iris_dtype_name(call->b->dtype),
                       call->options.bias_by_row ? "row" : "column");
}

/* ---- Sizes ---- */

struct iris_ops_share iris_i_ops_share(const struct iris_ops_call *call,
                                       int64_t rows, int64_t member)
{
    int64_t each = rows / call->members, more = rows % call->members;
    struct iris_ops_share share = {each * member +
                                       (member < more ? member : more),
                                   each + (member < more)};

    return share;
}

int64_t iris_i_ops_most(const struct iris_ops_call *call, int64_t rows)
{
    return (rows + call->members - 1) / call->members;
}

/* Finds which of the sizes are shares, and checks that all of them fit. */
static iris_status_t check_sizes(const iris_t *iris, struct iris_ops_call *call)
{
    const int64_t *a = call->a->shape, *b = call->b->shape;
    const int64_t *out = call->out->shape;
    int64_t rows, columns, out_rows;

    call->k = b[0];
    call->n = b[1];
    call->m = call->op == IRIS_OPS_MATMUL_REDUCE_SCATTER ? a[0] : out[0];
    rows = iris_i_ops_share(call, call->m, call->index).rows;
    columns = iris_i_ops_share(call, call->k, call->index).rows;
    /* If the first member's share is one column, it is all of K. */
    call->by_column = call->op == IRIS_OPS_ALL_GATHER_MATMUL &&
                      a[0] == call->m && (a[1] != call->k || a[0] != rows);
    out_rows = call->op == IRIS_OPS_MATMUL_REDUCE_SCATTER ? rows : call->m;
    if (call->op == IRIS_OPS_MATMUL_ALL_REDUCE || call->by_column ||
        call->op == IRIS_OPS_MATMUL_REDUCE_SCATTER) {
        rows = call->m;
    }
    columns = call->by_column ? columns : call->k;
    if (a[0] == rows && a[1] == columns && out[0] == out_rows &&
        out[1] == call->n) {
        /* If the matrix has one element, a share does not tell its
         * direction. */
        call->by_column = call->by_column && call->m * call->k > 1;
        return check_bias(iris, call,
                          call->op == IRIS_OPS_ALL_GATHER_MATMUL ? call->m
                                                                 : rows);
    }
    return iris_i_fail(
        iris_i_log(iris), IRIS_ERR_INVALID,
        "%s: a (%lld, %lld), b (%lld, %lld) and out (%lld, "
        "%lld) do not fit; for this b and member %lld of %lld a "
        "has to be (%lld, %lld) and out (%lld, %lld)",
        call->name, (long long)a[0], (long long)a[1], (long long)b[0],
        (long long)b[1], (long long)out[0], (long long)out[1],
        (long long)call->index, (long long)call->members, (long long)rows,
        (long long)columns, (long long)out_rows, (long long)call->n);
}

/* Whether the collective can use `out` in place: its rows are contiguous. The
 * same on all members. */
static int is_direct(const struct iris_ops_call *call)
{
    const iris_tensor_t *out = call->out;

    return out->shape[0] <= 1 || out->strides[0] == out->shape[1];
}

/* Whether IRIS_CCL sets a variant of all_reduce whose `in` and `out` must be
 * different memory. */
static int asks_apart(iris_ccl_variant_t variant)
{
    return variant == IRIS_CCL_ONE_SHOT || variant == IRIS_CCL_ATOMIC ||
           variant == IRIS_CCL_SPINLOCK;
}

/* Whether streams can do the call's transport: they reach only one node, and
 * add in the group's order. */
static int may_overlap(iris_t *iris, const struct iris_ops_call *call,
                       iris_ccl_variant_t variant)
{
    int adds_otherwise = variant == IRIS_CCL_ATOMIC ||
                         variant == IRIS_CCL_SPINLOCK ||
                         variant == IRIS_CCL_RING;

    /* Tiles count rows and columns in 32 bits. */
    return !iris_i_group_is_far(iris, call->group) && call->m <= UINT32_MAX &&
           call->n <= UINT32_MAX &&
           !(call->op == IRIS_OPS_MATMUL_ALL_REDUCE && adds_otherwise);
}

/* Number of elements kept besides a, b and out, in the layout of operations.c
 * or, for a call in chunks, of chunks.c. */
static int64_t count_elements(const struct iris_ops_call *call)
{
    int64_t columns = call->members * iris_i_ops_most(call, call->k);
    int64_t most = iris_i_ops_most(call, call->m);
    int in_chunks = iris_i_ops_in_chunks(&call->plan);

    if (call->members == 1) {
        return 0;
    }
    switch (call->op) {
    case IRIS_OPS_MATMUL_ALL_GATHER:
        return call->direct && !in_chunks ? 0 : call->m * call->n;
    case IRIS_OPS_ALL_GATHER_MATMUL:
        return call->by_column ? call->m * (columns + call->k)
                               : call->m * call->k;
    case IRIS_OPS_MATMUL_ALL_REDUCE:
        if (!in_chunks) {
            return call->direct && !call->apart
                       ? 0
                       : (2 - (call->direct || !call->apart)) * call->m *
                             call->n;
        }
        /* fall through */
    default:
        return (call->members * most + (in_chunks ? call->m : 0)) * call->n;
    }
}

/* The sizes of a checked call that its plan depends on. Shares are cut into
 * chunks if each member has a share of the rows; otherwise all rows are. A
 * product has all shares, or in matmul_all_gather this member's own. */
static struct iris_ops_size size_call(const struct iris_ops_call *call)
{
    struct iris_ops_size size = {
        .m = call->m,
        .n = call->n,
        .k = call->k,
        .members = call->members,
        .rows = call->by_column ? call->m : iris_i_ops_most(call, call->m),
        .cuts = call->by_column || call->op == IRIS_OPS_MATMUL_ALL_GATHER
                    ? 1
                    : call->members,
        .op = (int)call->op,
        .by_column = call->by_column,
        .dtype = call->b->dtype};

    return size;
}

/* Matrices with strides of 0 may be larger than memory; the size of their
 * copies could overflow. No operation keeps more than this. */
static iris_status_t check_workspace(const iris_t *iris,
                                     const struct iris_ops_call *call)
{
    double wide = (double)(call->n > call->k ? call->n : call->k);
    double members = (double)call->members;

    return (members + 1) * ((double)call->m + members) * (wide + members) <
                   0x1p58
               ? IRIS_OK
               : iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "%s: a product of %lld rows, %lld columns and "
                             "depth %lld needs more memory than there can be; "
                             "check the shapes",
                             call->name, (long long)call->m, (long long)call->n,
                             (long long)call->k);
}

iris_status_t iris_i_ops_check(iris_t *iris, struct iris_ops_call *call,
                               const struct iris_ops_options *options)
{
    iris_status_t status = iris_i_enter(iris, call->name);
    iris_ccl_variant_t variant;
    struct iris_ops_size size;
    int asked;

    if (status == IRIS_OK) {
        status = take_options(iris, call, options);
    }
    if (status == IRIS_OK) {
        status = check_tensors(iris, call);
    }
    if (status != IRIS_OK) {
        return status;
    }
    call->members = call->group->members.count;
    call->index = call->group->index;
    variant = iris_i_ccl_set_variant(iris, IRIS_CCL_ALL_REDUCE);
    status = check_sizes(iris, call);
    if (status == IRIS_OK) {
        status = check_workspace(iris, call);
    }
    if (status == IRIS_OK) {
        size = size_call(call);
        status = plan_call(iris, &size, call->options.chunks, &call->plan);
        if (!may_overlap(iris, call, variant)) {
            call->plan.parts = 1;
        }
        asked = call->options.chunks != 0
                    ? call->options.chunks
                    : (int)iris_i_settings(iris)->ops_chunks.number;
        if (call->plan.parts < asked) {
            iris_i_debug(iris_i_log(iris),
                         "%s: takes %d of the %d chunks asked for: there are "
                         "too few rows or members, or the BLAS library or the "
                         "collective's variant takes no parts",
                         call->name, call->plan.parts, asked);
        }
    }
    if (status == IRIS_OK) {
        call->direct = is_direct(call);
        call->apart =
            call->op == IRIS_OPS_MATMUL_ALL_REDUCE && asks_apart(variant);
        call->workspace =
            (size_t)count_elements(call) * iris_dtype_size(call->b->dtype);
    }
    return status;
}
