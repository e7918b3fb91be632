/* SPDX-License-Identifier: MIT
 *
 * Products by a BLAS library, which is in a loadable module, so that Iris runs
 * without one: what the core and such a module tell each other.
 */
#ifndef IRIS_SRC_OPS_BLAS_H
#define IRIS_SRC_OPS_BLAS_H

#include <iris/context.h>
#include <iris/device/kernels/matmul_args.h>
#include <iris/status.h>
#include <iris/types.h>

/* Both sides are built together. A change of what is below counts it up. */
#define IRIS_BLAS_VERSION "iris " PACKAGE_VERSION " blas 3"

/* Where the rows of a matrix are that has places left free between them: one
 * behind the first `first` rows, then one behind every `each` rows. */
struct iris_blas_gaps {
    int64_t first; /* at least the number of rows: no place is free */
    int64_t each;
};

/* How many places are before that of row `row`. */
static inline int64_t iris_i_blas_place(struct iris_blas_gaps gaps, int64_t row)
{
    return row < gaps.first ? row : row + 1 + (row - gaps.first) / gaps.each;
}

/* out = a * b + bias. The elements of a row of `out` are dense. The rows are
 * those of a product of `whole` rows from row `begin` on. */
struct iris_blas_product {
    struct iris_d_matrix a;
    struct iris_d_matrix b;
    struct iris_d_matrix bias; /* data NULL: none */
    void *out;
    int64_t out_row;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t begin;
    int64_t whole;
    iris_dtype_t dtype;         /* f32, f16 or bf16 */
    int adds;                   /* on a GPU: to what is in out */
    struct iris_blas_gaps gaps; /* in out; on a CPU only, where begin is 0 and
                                 * whole is m */
};

/* Matrices of f32 that a CPU library takes as they are: rows of `a` and `out`
 * are dense, and those of `b`, or its columns if b_by_column is set. */
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

/* Why open or product failed. */
#define IRIS_BLAS_WHY_BYTES 512

/* A library. Static and const; slots are thread-safe but on one state, and none
 * is NULL. */
struct iris_blas {
    const char *name; /* what users type */
    int on_gpu;       /* product is called, else multiply */
    int takes_bias;   /* on a GPU: product adds one that has a number for each
                       * column, dense and aligned to IRIS_BLAS_ALIGNMENT */

    /* Writes which library it is, for people: IRIS_BLAS_WHY_BYTES at most. */
    void (*describe)(void *state, char *text);

    /* Makes what a context keeps; the core closes it once its work is done.
     * `threads`: that the library may use in this process, at least 1. On a GPU
     * the context's device is current. */
    iris_status_t (*open)(int threads, void **state_p, char *why);
    void (*close)(void *state);

    /* On a CPU, in a kernel's thread: out = a * b. Each element's bits depend
     * on m, n, k, b_by_column, its row, its column and on nothing but the
     * numbers that it is made of. */
    void (*multiply)(void *state, const struct iris_blas_f32 *what);

    /* On a GPU, whose device is current: enqueues the product on the runtime's
     * stream, which may be captured. Products on several streams, and launches
     * of graphs, share no memory of the library's. IRIS_ERR_UNSUPPORTED: the
     * library does not take such matrices, so the core's own kernel multiplies;
     * nothing is enqueued. */
    iris_status_t (*product)(void *state, const struct iris_blas_product *what,
                             void *stream, char *why);
};

/* The one symbol a module exports. NULL: built for another core. */
#define IRIS_BLAS_SYMBOL "iris_blas_module"
typedef const struct iris_blas *(*iris_blas_entry_t)(const char *version);

/* The library that multiplies for this context, and its state; NULL: the core's
 * own kernels do. The first call loads it. */
iris_status_t iris_i_ops_blas(iris_t *iris, const struct iris_blas **blas_p,
                              void **state_p);

#endif /* IRIS_SRC_OPS_BLAS_H */
