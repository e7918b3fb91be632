/* SPDX-License-Identifier: MIT
 *
 * A product by a CPU library, as a kernel of one workgroup, so that it runs in
 * the stream's order. Each block of rows is one call of the library. Rows that
 * the library cannot use in place, such as rows with a gap between them, are
 * copied. A block is never cut: with another number of rows, the library gives
 * a row other bits.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/core/half.h>
#include <iris/device/wg/kernel.h>

#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS 256
/* Number of elements of a matrix b that are converted at a time. */
#define PANEL_ELEMENTS ((int64_t)4 << 20)

/* The buffers of one call, and its position in the product. */
struct work {
    const struct iris_blas_cpu_args *args;
    const struct iris_blas_product *what;
    float *a;      /* BLOCK_ROWS by k; NULL: a is not converted */
    float *b;      /* a panel; NULL: b is not converted */
    float *out;    /* BLOCK_ROWS by the panel's width */
    int64_t width; /* of panels */
    int64_t col;   /* the panel */
    int64_t cols;
    int64_t row; /* the block */
    int64_t rows;
};

/* ---- Numbers ---- */

static float load(const void *data, int64_t at, iris_dtype_t dtype)
{
    switch (dtype) {
    case IRIS_DTYPE_F16:
        return iris_f16_to_f32(((const iris_f16_t *)data)[at]);
    case IRIS_DTYPE_BF16:
        return iris_bf16_to_f32(((const iris_bf16_t *)data)[at]);
    default:
        return ((const float *)data)[at];
    }
}

static void store(void *data, int64_t at, iris_dtype_t dtype, float value)
{
    switch (dtype) {
    case IRIS_DTYPE_F16:
        ((iris_f16_t *)data)[at] = iris_f16_from_f32(value);
        break;
    case IRIS_DTYPE_BF16:
        ((iris_bf16_t *)data)[at] = iris_bf16_from_f32(value);
        break;
    default:
        ((float *)data)[at] = value;
    }
}

/* Elements of a matrix, `stride` apart. */
struct line {
    const void *data;
    int64_t at;
    int64_t stride;
    int64_t count;
};

/* A loop for each type, which the compiler can make vectors of. */
#define LOAD_LINE(DTYPE)                                                    \
    for (int64_t i = 0; i < line.count; i++) {                              \
        to[i] =                                                             \
            load(line.data, line.at + i * line.stride, IRIS_DTYPE_##DTYPE); \
    }
static void load_line(float *to, struct line line, iris_dtype_t dtype)
{
    switch (dtype) {
    case IRIS_DTYPE_F16:
        LOAD_LINE(F16)
        break;
    case IRIS_DTYPE_BF16:
        LOAD_LINE(BF16)
        break;
    default:
        if (line.stride == 1) {
            memcpy(to, (const float *)line.data + line.at,
                   (size_t)line.count * sizeof *to);
            break;
        }
        LOAD_LINE(F32)
    }
}
#undef LOAD_LINE

static int fits(int64_t stride, int64_t least)
{
    return stride >= least && stride <= INT32_MAX;
}

/* ---- Matrices in the library's format ---- */

static int a_is_fine(const struct iris_blas_product *what)
{
    return what->dtype == IRIS_DTYPE_F32 && what->a.col == 1 &&
           fits(what->a.row, what->k);
}

static int b_is_by_column(const struct iris_blas_product *what)
{
    return what->b.col != 1 && what->b.row == 1;
}

static int b_is_fine(const struct iris_blas_product *what)
{
    if (what->dtype != IRIS_DTYPE_F32) {
        return 0;
    }
    return b_is_by_column(what)
               ? fits(what->b.col, what->k)
               : what->b.col == 1 && fits(what->b.row, what->n);
}

/* Converts rows or columns of b, whichever are contiguous. */
static void load_panel(struct work *work)
{
    const struct iris_blas_product *what = work->what;
    int by_column = b_is_by_column(what);
    int64_t lines = by_column ? work->cols : what->k;
    int64_t length = by_column ? what->k : work->cols;

    for (int64_t i = 0; i < lines; i++) {
        struct line line = {what->b.data,
                            work->col * what->b.col +
                                i * (by_column ? what->b.col : what->b.row),
                            by_column ? what->b.row : what->b.col, length};

        load_line(work->b + i * length, line, what->dtype);
    }
}

static void load_rows(struct work *work)
{
    const struct iris_blas_product *what = work->what;

    for (int64_t i = 0; i < work->rows; i++) {
        struct line line = {what->a.data, (work->row + i) * what->a.row,
                            what->a.col, what->k};

        load_line(work->a + i * what->k, line, what->dtype);
    }
}

/* Stores from `sum`, which may be in the result, without gaps between its rows.
 * Begins with the last row, since it moves furthest. */
static void store_rows(const struct work *work, const float *sum,
                       int64_t sum_row)
{
    const struct iris_blas_product *what = work->what;
    const struct iris_d_matrix *bias = &what->bias;

    for (int64_t i = work->rows - 1; i >= 0; i--) {
        int64_t row = work->row + i;
        int64_t place = iris_i_blas_place(what->gaps, row);

        if (bias->data == NULL && what->dtype == IRIS_DTYPE_F32) {
            memmove((float *)what->out + place * what->out_row + work->col,
                    sum + i * sum_row, (size_t)work->cols * sizeof *sum);
            continue;
        }
        for (int64_t j = 0; j < work->cols; j++) {
            int64_t col = work->col + j;
            float value = sum[i * sum_row + j];

            if (bias->data != NULL) {
                value += load(bias->data, row * bias->row + col * bias->col,
                              what->dtype);
            }
            store(what->out, place * what->out_row + col, what->dtype, value);
        }
    }
}

/* ---- The product ---- */

/* A matrix with only one row or column is copied: the library may use another
 * algorithm that depends on strides. */
static int is_direct(const struct work *work)
{
    const struct iris_blas_product *what = work->what;

    return work->rows > 1 && work->cols > 1 && what->dtype == IRIS_DTYPE_F32;
}

/* Whether the rows of the block are contiguous in the result. */
static int is_dense(const struct work *work)
{
    struct iris_blas_gaps gaps = work->what->gaps;

    return iris_i_blas_place(gaps, work->row + work->rows - 1) -
               iris_i_blas_place(gaps, work->row) ==
           work->rows - 1;
}

static void multiply_block(struct work *work)
{
    const struct iris_blas_product *what = work->what;
    int direct = is_direct(work);
    int by_column = b_is_by_column(what);
    struct iris_blas_f32 call = {.a = work->a,
                                 .b = work->b,
                                 .out = work->out,
                                 .m = work->rows,
                                 .n = work->cols,
                                 .k = what->k,
                                 .a_row = what->k,
                                 .b_line = by_column ? what->k : work->cols,
                                 .out_row = work->cols,
                                 .b_by_column = by_column};

    if (direct && a_is_fine(what)) {
        call.a = (const float *)what->a.data + work->row * what->a.row;
        call.a_row = what->a.row;
    } else {
        load_rows(work);
    }
    if (b_is_fine(what)) {
        call.b = what->b.data;
        call.b_line = by_column ? what->b.col : what->b.row;
    }
    if (direct && fits(what->out_row, work->cols)) {
        call.out = (float *)what->out +
                   iris_i_blas_place(what->gaps, work->row) * what->out_row +
                   work->col;
        call.out_row = what->out_row;
    }
    work->args->blas->multiply(work->args->state, &call);
    if (call.out == work->out || what->bias.data != NULL || !is_dense(work)) {
        store_rows(work, call.out, call.out_row);
    }
}

static void multiply_panel(struct work *work)
{
    const struct iris_blas_product *what = work->what;
    for (work->row = 0; work->row < what->m; work->row += BLOCK_ROWS) {
        int64_t left = what->m - work->row;

        work->rows = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        multiply_block(work);
    }
}

/* Columns of a panel: all, or as many as are converted at a time. */
static int64_t panel_width(const struct iris_blas_product *what)
{
    int64_t width = PANEL_ELEMENTS / what->k / 64 * 64;

    if (b_is_fine(what)) {
        return what->n;
    }
    width = width < 64 ? 64 : width;
    return width < what->n ? width : what->n;
}

/* The buffers for conversion are freed at once. */
static iris_status_t multiply(const struct iris_blas_cpu_args *args)
{
    const struct iris_blas_product *what = &args->what;
    struct work work = {.args = args, .what = what};
    int64_t rows = what->m < BLOCK_ROWS ? what->m : BLOCK_ROWS;
    int64_t width = panel_width(what);
    int64_t panel = b_is_fine(what) ? 0 : width * what->k;
    float *memory =
        malloc((size_t)(rows * what->k + rows * width + panel) * sizeof(float));

    if (memory == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    work.a = memory;
    work.out = work.a + rows * what->k;
    work.b = work.out + rows * width;
    for (work.col = 0; work.col < what->n; work.col += width) {
        work.cols = what->n - work.col < width ? what->n - work.col : width;
        if (panel > 0) {
            load_panel(&work);
        }
        multiply_panel(&work);
    }
    free(memory);
    return IRIS_OK;
}

/* The kernel's name tells which call was running if the deadline passes. */
IRIS_KERNEL(iris_k_cblas_sgemm, struct iris_blas_cpu_args)
{
    if (multiply(args) != IRIS_OK) {
        iris_i_fault_set(args->backend, IRIS_ERR_NO_MEMORY,
                         "no memory to convert matrices for a product by a "
                         "BLAS library; use IRIS_BLAS=none");
    }
}

const struct iris_kernel *iris_i_blas_kernel(void)
{
    return iris_k_cblas_sgemm;
}

int iris_i_blas_takes(const struct iris_blas_product *what)
{
    return what->n <= INT32_MAX && what->k <= INT32_MAX;
}
