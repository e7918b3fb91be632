/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/ops: matrix products fused with collectives.
 */
#ifndef IRIS_SRC_OPS_INTERNAL_H
#define IRIS_SRC_OPS_INTERNAL_H

#include <iris/ccl.h>
#include <iris/context.h>
#include <iris/device/kernels/matmul_args.h>
#include <iris/device/kernels/ops_args.h>
#include <iris/ops.h>
#include <iris/status.h>
#include <iris/tensor.h>
#include <iris/types.h>

#include "backend/backend.h"
#include "ccl/ccl.h"
#include "context/context.h"

/* All members of a group get the same plan. */
struct iris_ops_plan {
    int parts;  /* parts that were asked for or are worth it; 1: the call is a
                 * product and a collective */
    int chunks; /* chunks of each share, or of all rows */
};

/* Whether a call uses its own streams. */
static inline int iris_i_ops_in_chunks(const struct iris_ops_plan *plan)
{
    return plan->parts > 1;
}

enum iris_ops_op {
    IRIS_OPS_MATMUL_ALL_REDUCE,
    IRIS_OPS_ALL_GATHER_MATMUL,
    IRIS_OPS_MATMUL_ALL_GATHER,
    IRIS_OPS_MATMUL_REDUCE_SCATTER,
};

struct iris_ops_call {
    const char *name; /* the public function */
    enum iris_ops_op op;
    const iris_tensor_t *a;
    const iris_tensor_t *b;
    const iris_tensor_t *out;
    struct iris_ops_options options;

    /* Values derived from those above. */
    struct iris_group *group;
    int64_t members;
    int64_t index;
    int64_t m; /* sizes of the whole product */
    int64_t n;
    int64_t k;
    int by_column; /* all_gather_matmul: a is a share of columns */
    int direct;    /* the collective works in `out` */
    int apart;     /* all_reduce: in and out are different memory */
    struct iris_ops_plan plan;
    size_t workspace; /* bytes that it needs; the same on all members */
    char *memory;     /* there */
    int is_first;     /* its products may load kernels (steps.c) */

    /* For a call with its own streams, besides options.stream. */
    struct iris_stream *products[2]; /* chunks take turns */
    struct iris_stream *transport;
    struct iris_ops_words *words; /* on each rank, for its chunks */
};

/* ---- check.c ---- */

/* The inputs of a plan, the same on all members. */
struct iris_ops_size {
    int64_t m; /* rows of the whole product */
    int64_t n;
    int64_t k;
    int64_t members;
    int64_t rows;  /* rows that are cut into chunks: a share's, or all */
    int64_t cuts;  /* number of these in a product: shares, or 1 */
    int op;        /* enum iris_ops_op */
    int by_column; /* for an all_gather_matmul */
    iris_dtype_t dtype;
};

/* The number of parts for sizes of several members on a device of that name
 * for each of them, if the program sets none. A pure function. */
int iris_i_ops_table_parts(const struct iris_ops_size *size,
                           const char *device);

/* Copies the options, checks the tensors, and sets all derived values except
 * the memory. */
iris_status_t iris_i_ops_check(iris_t *iris, struct iris_ops_call *call,
                               const struct iris_ops_options *options);

/* A member's share of `rows` rows. */
struct iris_ops_share {
    int64_t begin;
    int64_t rows;
};
struct iris_ops_share iris_i_ops_share(const struct iris_ops_call *call,
                                       int64_t rows, int64_t member);

/* The largest number of rows of a member. */
int64_t iris_i_ops_most(const struct iris_ops_call *call, int64_t rows);

/* ---- product.c ---- */

/* The interface between the core and the modules of BLAS libraries. These
 * modules are loadable, so that Iris runs without a library. */

/* The core and modules are built together. Increase the number with every
 * change below. */
#define IRIS_BLAS_VERSION "iris " PACKAGE_VERSION " blas 4"

/* Gaps between the rows of a matrix: one row is left free behind the first
 * `first` rows, then one behind every `each` rows. */
struct iris_blas_gaps {
    int64_t first; /* at least the number of rows: no gap */
    int64_t each;
};

/* The place of row `row`, with the free places counted. */
static inline int64_t iris_i_blas_place(struct iris_blas_gaps gaps, int64_t row)
{
    return row < gaps.first ? row : row + 1 + (row - gaps.first) / gaps.each;
}

/* out = a * b + bias. The elements of a row of `out` are contiguous. The rows
 * are those of a product of `whole` rows, from row `begin` on. */
struct iris_blas_product {
    struct iris_d_matrix a;
    struct iris_d_matrix b;
    struct iris_d_matrix bias; /* data NULL: no bias */
    void *out;
    int64_t out_row;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t begin;
    int64_t whole;
    iris_dtype_t dtype;         /* f32, f16 or bf16 */
    int adds;                   /* on a GPU: adds to the contents of out */
    struct iris_blas_gaps gaps; /* gaps in out; on a CPU only, with begin 0
                                 * and whole m */
};

/* Matrices of f32 in the layout of a CPU library: the rows of `a` and `out` are
 * contiguous, and the rows of `b`, or its columns if b_by_column is set. */
struct iris_blas_f32 {
    const float *a;
    const float *b;
    float *out;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t a_row;
    int64_t b_line; /* elements from one row, or column, of b to the next */
    int64_t out_row;
    int b_by_column;
};

#define IRIS_BLAS_ALIGNMENT 16

/* Size of the text that says why open or product failed. */
#define IRIS_BLAS_WHY_BYTES 512

/* A library. Static and const. Slots are thread-safe for different states, and
 * all are filled. */
struct iris_blas {
    const char *name; /* its name in settings */
    int on_gpu;       /* 1: product is called, else multiply */
    int opens_apart;  /* 1: open may end the process while a stream captures */

    /* Writes the library's name and version for users: at most
     * IRIS_BLAS_WHY_BYTES. */
    void (*describe)(void *state, char *text);

    /* Makes the state of a context; the core closes it when its work is done.
     * `threads` is the number of threads that the library may use in this
     * process, at least 1. On a GPU, the context's device is current. */
    iris_status_t (*open)(int threads, void **state_p, char *why);
    void (*close)(void *state);

    /* On a CPU, in a kernel's thread: out = a * b. Each element's bits depend
     * only on m, n, k, b_by_column, its row, its column, and the numbers from
     * which it is computed. */
    void (*multiply)(void *state, const struct iris_blas_f32 *what);

    /* On a GPU, whose device is current: enqueues the product on the runtime's
     * stream, which may be capturing. A bias has one number for each column,
     * contiguous and aligned to IRIS_BLAS_ALIGNMENT. Products on several
     * streams, and launches of graphs, share no memory of the library.
     * IRIS_ERR_UNSUPPORTED: the library cannot multiply such matrices, and has
     * enqueued nothing; the core's own kernel multiplies them. */
    iris_status_t (*product)(void *state, const struct iris_blas_product *what,
                             void *stream, char *why);
};

/* The only exported symbol of a module. NULL: built for another core. */
#define IRIS_BLAS_SYMBOL "iris_blas_module"
typedef const struct iris_blas *(*iris_blas_entry_t)(const char *version);

/* The library that multiplies for this context, and its state; NULL: the core's
 * own kernels multiply. The first call loads it. */
iris_status_t iris_i_ops_blas(iris_t *iris, const struct iris_blas **blas_p,
                              void **state_p);

/* out = a * b + bias. Rows of `out` may have gaps between them. If `whole` is
 * not 0, the rows are those from `begin` on of a product of `whole` rows, and
 * have its bits; not with a CPU's library. */
struct iris_ops_product {
    iris_tensor_t a;
    iris_tensor_t b;
    iris_tensor_t out;
    const iris_tensor_t *bias; /* NULL: none */
    int bias_by_row;
    struct iris_blas_gaps gaps;
    int64_t begin;
    int64_t whole;
};

/* Enqueues it. The bits do not depend on the gaps. */
iris_status_t iris_i_ops_product(iris_t *iris,
                                 const struct iris_ops_product *product,
                                 iris_stream_t *stream);

struct iris_blas_cpu_args {
    const struct iris_blas *blas;
    void *state;
    struct iris_backend *backend; /* reports a lack of memory */
    struct iris_blas_product what;
};

/* ---- steps.c ---- */

/* Sets call->is_first: the group has not made this call with these sizes yet,
 * and it uses a GPU's library that loads kernels by and by. The same on all
 * members. */
iris_status_t iris_i_ops_first(iris_t *iris, struct iris_ops_call *call);

/* In a first call, waits until every member has come to this place, and gives
 * all of them the status of the one that failed. Otherwise returns `status`. */
iris_status_t iris_i_ops_meet(const struct iris_ops_call *call,
                              iris_status_t status);

/* A share of the tensor's rows (dim 0) or columns (1). */
iris_tensor_t iris_i_ops_part(const iris_tensor_t *tensor, int dim,
                              struct iris_ops_share share);

/* Rows of the workspace, with this number of columns. */
iris_tensor_t iris_i_ops_kept(const struct iris_ops_call *call, int64_t begin,
                              int64_t rows, int64_t columns);

/* The place for member i's columns, a separate matrix. */
iris_tensor_t iris_i_ops_kept_columns(const struct iris_ops_call *call,
                                      int64_t i);

/* The place behind those, in which they are joined. */
iris_tensor_t iris_i_ops_whole(const struct iris_ops_call *call);

/* A matrix, and the gaps between its rows. */
struct iris_ops_rows {
    iris_tensor_t matrix;
    struct iris_blas_gaps gaps;
};
struct iris_ops_rows iris_i_ops_dense(iris_tensor_t matrix);

/* out = a * b and the bias on the call's stream. */
iris_status_t iris_i_ops_multiply(iris_t *iris,
                                  const struct iris_ops_call *call,
                                  iris_tensor_t a, struct iris_ops_rows out);

/* A part of the product on any stream: the rows from `begin` on of `whole`. */
struct iris_ops_piece {
    iris_tensor_t a;
    iris_tensor_t out;
    int64_t begin;
    int64_t whole;
};
iris_status_t iris_i_ops_multiply_part(iris_t *iris,
                                       const struct iris_ops_call *call,
                                       const struct iris_ops_piece *piece,
                                       struct iris_stream *stream);

/* Enqueues a copy on the stream; nothing for empty tensors. */
iris_status_t iris_i_ops_copy(iris_t *iris, iris_tensor_t to,
                              iris_tensor_t from, struct iris_stream *stream);

/* Ends the call on the other members, which wait for this one in a collective
 * with these options, after a failure here. Returns `status`, with this
 * thread's message. */
iris_status_t iris_i_ops_refuse(iris_t *iris,
                                const struct iris_ccl_options *options,
                                iris_status_t status);

/* ---- blas_lt.c ---- */

/* The places to look for a library. Lists end with NULL. */
struct iris_blas_places {
    const char *const *names;     /* names of the file, the best one first */
    const char *const *variables; /* environment variables with the toolkit's
                                   * folder */
    const char *const *patterns;  /* other folders; a $NAME at the start is
                                   * an environment variable */
};

/* A row-major matrix is the transpose of a column-major one. */
struct iris_blas_columns {
    int is_transposed; /* the library has to transpose it again */
    int64_t rows;      /* rows of the column-major view */
    int64_t cols;
    int64_t ld; /* elements from one column to the next */
    const void *data;
    int alignment; /* alignment of every column in bytes: at most 16 */
};

/* out^T = b^T * a^T: the operands of the library's product, which has n rows, m
 * columns and a depth of k. */
struct iris_blas_operands {
    struct iris_blas_columns first;  /* b */
    struct iris_blas_columns second; /* a */
    struct iris_blas_columns out;
};

/* A slot of struct iris_blas, for libraries of GPUs. */
void iris_i_blas_no_multiply(void *state, const struct iris_blas_f32 *what);

/* Size of an algorithm in the result of the library's heuristics. */
#define IRIS_LT_RESULT_BYTES 96

/* One library's names, and the values of its enums. Static and const. */
struct iris_lt_dialect {
    const char *name;   /* for people */
    const char *prefix; /* prefix of functions */
    struct iris_blas_places places;

    /* Of a context. 1: streams may share it; else each stream has its own, as
     * far as they go. */
    int num_handles;

    /* The result of a heuristic has three parts: an algorithm, a size_t with
     * the bytes of workspace, and a status. */
    size_t algorithm_bytes;

    int type_f32;
    int type_f16;
    int type_bf16;
    int compute_f32; /* sums in f32, without TF32 */
    int op_none;
    int op_transpose;
    int desc_trans_a;
    int desc_trans_b;
    int desc_epilogue;
    int desc_bias;
    int desc_bias_type;
    int epilogue_bias;
    int pref_workspace;
    int pref_alignment[4]; /* for A, B, C and D; -1: not supported */
    /* The mask of allowed ways to add the parts of a sum over k, and the value
     * that allows them in f32 only. -1: the library has no such mask. */
    int pref_reduction;
    uint32_t reduction_f32;

    int status_no_memory;
    int status_invalid;
    int status_unsupported;
    const char *const *status_names; /* number: `num_statuses`; NULL: no such
                                      * status */
    int num_statuses;
};

/* Slots of struct iris_blas. A state is handles and the chosen algorithms.
 * Only open() uses the dialect. */
iris_status_t iris_i_lt_open(const struct iris_lt_dialect *dialect,
                             void **state_p, char *why);
void iris_i_lt_close(void *state);
void iris_i_lt_describe(void *state, char *text);
iris_status_t iris_i_lt_product(void *state,
                                const struct iris_blas_product *what,
                                void *stream, char *why);

/* ---- chunks.c ---- */

/* Enqueues the call of several members, if its plan says so. The call's stream
 * waits for all of the work; the host does not wait. */
iris_status_t iris_i_ops_chunks(iris_t *iris, const struct iris_ops_call *call);

#endif /* IRIS_SRC_OPS_INTERNAL_H */
