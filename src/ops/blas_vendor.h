/* SPDX-License-Identifier: MIT
 *
 * What the modules of GPU libraries share: finding the library, and matrices by
 * rows as a library that has them by columns sees them.
 */
#ifndef IRIS_SRC_OPS_BLAS_VENDOR_H
#define IRIS_SRC_OPS_BLAS_VENDOR_H

#include "ops/blas.h"

/* Where a library may be. Lists end with NULL. */
struct iris_blas_places {
    const char *const *names;     /* of the file, the best one first */
    const char *const *variables; /* that name the toolkit's folder */
    const char *const *patterns;  /* of other folders; a $NAME at the start is
                                   * an environment variable */
};

/* Loads the library: one that the process has loaded, one in a folder that a
 * variable names, one that the loader finds, one in another folder. NULL: `why`
 * says what was tried. */
void *iris_i_blas_find(const struct iris_blas_places *places, char *why);

/* The address of <prefix><name>, or NULL with why. */
void *iris_i_blas_symbol(void *library, const char *prefix, const char *name,
                         char *why);

/* The file that has this symbol of the library's, for people. */
const char *iris_i_blas_path(const void *symbol);

/* A matrix by rows is its transpose by columns. */
struct iris_blas_columns {
    int is_transposed; /* the library has to transpose that once more */
    int64_t rows;      /* as they are in memory */
    int64_t cols;
    int64_t ld; /* elements from one column to the next */
    const void *data;
    int alignment; /* in bytes, of every column: 16 at most */
};

/* out^T = b^T * a^T: the operands of the library's product, which has n rows, m
 * columns and a depth of k. */
struct iris_blas_operands {
    struct iris_blas_columns first;  /* b */
    struct iris_blas_columns second; /* a */
    struct iris_blas_columns out;
};

/* IRIS_ERR_UNSUPPORTED, with why: a matrix has strides that no library takes.
 */
iris_status_t iris_i_blas_operands(const struct iris_blas_product *what,
                                   struct iris_blas_operands *operands_p,
                                   char *why);

/* A slot of struct iris_blas for libraries of GPUs. */
void iris_i_blas_no_multiply(void *state, const struct iris_blas_f32 *what);

#endif /* IRIS_SRC_OPS_BLAS_VENDOR_H */
