/* SPDX-License-Identifier: MIT
 *
 * The interface between the core and the modules of BLAS libraries. These
 * modules are loadable, so that Iris runs without a library.
 */
#ifndef IRIS_SRC_OPS_BLAS_H
#define IRIS_SRC_OPS_BLAS_H

#include <iris/context.h>
#include <iris/device/kernels/matmul_args.h>
#include <iris/status.h>
#include <iris/types.h>

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

#endif /* IRIS_SRC_OPS_BLAS_H */
