/* SPDX-License-Identifier: MIT
 *
 * Code for all modules of GPU libraries: finds the library, and converts
 * row-major matrices to the library's column-major view.
 */
#include "config.h"

#include "ops/internal.h"

#include "base/base.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Finding the library ---- */

static void append(char *why, const char *text)
{
    size_t used = strlen(why);

    snprintf(why + used, IRIS_BLAS_WHY_BYTES - used, "%s%.200s",
             used > 0 ? ", " : "", text);
}

static void *load_by_name(const struct iris_blas_places *places,
                          int only_loaded)
{
    void *library = NULL;

    for (const char *const *name = places->names;
         library == NULL && *name != NULL; name++) {
        library = iris_i_loader_library(*name, only_loaded);
    }
    return library;
}

static void *load_from(const struct iris_blas_places *places,
                       const char *folder)
{
    void *library = NULL;
    char path[1024];

    for (const char *const *name = places->names;
         library == NULL && *name != NULL; name++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, *name) <
            (int)sizeof path) {
            library = iris_i_loader_library(path, 0);
        }
    }
    return library;
}

static void *load_from_toolkit(const struct iris_blas_places *places,
                               const char *variable, char *why)
{
    static const char *const folders[] = {"lib64", "lib"};
    const char *toolkit = getenv(variable);
    void *library = NULL;
    char path[1024];

    if (toolkit == NULL || toolkit[0] == '\0') {
        snprintf(path, sizeof path, "$%s (not set)", variable);
        append(why, path);
        return NULL;
    }
    for (size_t i = 0; library == NULL && i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", toolkit, folders[i]);
        library = load_from(places, path);
        append(why, path);
    }
    return library;
}

/* Returns 0 if the pattern begins with an unset variable. */
static int expand(const char *pattern, char *path, size_t bytes)
{
    const char *rest = strchr(pattern, '/');
    char name[64];
    const char *value;

    if (pattern[0] != '$') {
        snprintf(path, bytes, "%s", pattern);
        return 1;
    }
    snprintf(name, sizeof name, "%.*s", (int)(rest - pattern - 1), pattern + 1);
    value = getenv(name);
    snprintf(path, bytes, "%s%s", value == NULL ? "" : value, rest);
    return value != NULL && value[0] != '\0';
}

static void *load_from_pattern(const struct iris_blas_places *places,
                               const char *pattern, char *why)
{
    void *library = NULL;
    char path[1024];
    glob_t found;

    if (!expand(pattern, path, sizeof path)) {
        return NULL;
    }
    append(why, path);
    if (glob(path, 0, NULL, &found) != 0) {
        return NULL;
    }
    for (size_t i = 0; library == NULL && i < found.gl_pathc; i++) {
        library = load_from(places, found.gl_pathv[i]);
    }
    globfree(&found);
    return library;
}

void *iris_i_blas_find(const struct iris_blas_places *places, char *why)
{
    void *library = load_by_name(places, 1);
    char tried[IRIS_BLAS_WHY_BYTES] = "";

    for (const char *const *name = places->variables;
         library == NULL && *name != NULL; name++) {
        library = load_from_toolkit(places, *name, tried);
    }
    if (library == NULL) {
        append(tried, "the loader's path");
        library = load_by_name(places, 0);
    }
    for (const char *const *pattern = places->patterns;
         library == NULL && *pattern != NULL; pattern++) {
        library = load_from_pattern(places, *pattern, tried);
    }
    if (library == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "%s was not found; tried %.440s",
                 places->names[0], tried);
    }
    return library;
}

void *iris_i_blas_symbol(void *library, const char *prefix, const char *name,
                         char *why)
{
    char symbol[80];
    void *address;

    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    address = dlsym(library, symbol);
    if (address == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "the library has no %s", symbol);
    }
    return address;
}

const char *iris_i_blas_path(const void *symbol)
{
    Dl_info info;

    return dladdr(symbol, &info) != 0 && info.dli_fname != NULL
               ? info.dli_fname
               : "an unknown file";
}

/* ---- Matrices ---- */

/* The alignment of every column, whichever the first one is. */
static int alignment_of(const void *data, int64_t column_bytes)
{
    uint64_t bits = (uint64_t)(uintptr_t)data | (uint64_t)column_bytes |
                    IRIS_BLAS_ALIGNMENT;

    return (int)(bits & -bits);
}

/* Whether the elements of a line are contiguous and lines do not overlap. With
 * a single line, its stride does not matter. */
static int is_dense(int64_t inner_stride, int64_t inner, int64_t stride,
                    int64_t lines)
{
    return (inner_stride == 1 || inner == 1) && (stride >= inner || lines == 1);
}

static struct iris_blas_columns columns(const struct iris_blas_product *what,
                                        const struct iris_d_matrix *matrix,
                                        int64_t rows, int64_t cols)
{
    int by_row = is_dense(matrix->col, cols, matrix->row, rows);
    int64_t stride = by_row ? matrix->row : matrix->col;
    int64_t inner = by_row ? cols : rows;
    struct iris_blas_columns columns = {
        .is_transposed = !by_row,
        .rows = inner,
        .cols = by_row ? rows : cols,
        .ld = stride >= inner ? stride : inner,
        .data = matrix->data,
    };

    columns.alignment = alignment_of(
        matrix->data, columns.ld * (what->dtype == IRIS_DTYPE_F32 ? 4 : 2));
    return columns;
}

static int is_taken(const struct iris_d_matrix *matrix, int64_t rows,
                    int64_t cols)
{
    return is_dense(matrix->col, cols, matrix->row, rows) ||
           is_dense(matrix->row, rows, matrix->col, cols);
}

iris_status_t iris_i_blas_operands(const struct iris_blas_product *what,
                                   struct iris_blas_operands *operands_p,
                                   char *why)
{
    const struct iris_d_matrix out = {what->out, what->out_row, 1};

    if (!is_taken(&what->a, what->m, what->k) ||
        !is_taken(&what->b, what->k, what->n) ||
        !is_dense(1, what->n, what->out_row, what->m)) {
        snprintf(why, IRIS_BLAS_WHY_BYTES,
                 "it takes no matrix whose rows and columns both have gaps "
                 "(a: %lld, %lld; b: %lld, %lld; out: %lld, 1)",
                 (long long)what->a.row, (long long)what->a.col,
                 (long long)what->b.row, (long long)what->b.col,
                 (long long)what->out_row);
        return IRIS_ERR_UNSUPPORTED;
    }
    operands_p->first = columns(what, &what->b, what->k, what->n);
    operands_p->second = columns(what, &what->a, what->m, what->k);
    operands_p->out = columns(what, &out, what->m, what->n);
    return IRIS_OK;
}

void iris_i_blas_no_multiply(void *state, const struct iris_blas_f32 *what)
{
    (void)state, (void)what;
}
