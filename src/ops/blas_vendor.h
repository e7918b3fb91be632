/* SPDX-License-Identifier: MIT
 *
 * Code for all modules of GPU libraries: finds the library, and converts
 * row-major matrices to the library's column-major view.
 */
#ifndef IRIS_SRC_OPS_BLAS_VENDOR_H
#define IRIS_SRC_OPS_BLAS_VENDOR_H

#include "ops/blas.h"

/* The places to look for a library. Lists end with NULL. */
struct iris_blas_places {
    const char *const *names;     /* names of the file, the best one first */
    const char *const *variables; /* environment variables with the toolkit's
                                   * folder */
    const char *const *patterns;  /* other folders; a $NAME at the start is
                                   * an environment variable */
};

/* Loads the library. Tries in this order: one that the process has already
 * loaded, a folder that a variable names, the loader's own search, the other
 * folders. NULL: `why` lists the attempts. */
void *iris_i_blas_find(const struct iris_blas_places *places, char *why);

/* The address of <prefix><name>, or NULL with the reason in `why`. */
void *iris_i_blas_symbol(void *library, const char *prefix, const char *name,
                         char *why);

/* The path of the library with this symbol, for messages. */
const char *iris_i_blas_path(const void *symbol);

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

/* IRIS_ERR_UNSUPPORTED, with the reason in `why`: no library supports a
 * matrix's strides. */
iris_status_t iris_i_blas_operands(const struct iris_blas_product *what,
                                   struct iris_blas_operands *operands_p,
                                   char *why);

/* A slot of struct iris_blas, for libraries of GPUs. */
void iris_i_blas_no_multiply(void *state, const struct iris_blas_f32 *what);

#endif /* IRIS_SRC_OPS_BLAS_VENDOR_H */
