/* SPDX-License-Identifier: MIT
 *
 * The product of two matrices on a stream, by a library or by Iris's own
 * kernel.
 *
 * A context chooses its library at the first product and keeps it. On a GPU the
 * library enqueues by itself. On a CPU a kernel of one workgroup calls it, so
 * that the product runs in the stream's order. The bits of a part of a product
 * are those of the whole, except with a CPU's library, whose blocks are never
 * cut.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/core/half.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/kernels/matmul_args.h>

#include "ops/kernels.h"
#include "base/base.h"
#include "base/processor.h"
#include "context/context.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- A context's library, and its module ---- */

/* A context's library. */
struct choice {
    struct iris_extension extension;
    const struct iris_blas *blas; /* NULL: the core's own kernels */
    void *state;
};

/* The libraries, one for each kind of device. The library's module sets `blas`
 * once. */
static struct entry {
    const char *name;
    int built;
    const char *remedy;           /* if the module is missing */
    enum iris_memory_kind memory; /* kind of its devices */
    const struct iris_blas *blas;
} entries[] = {
    {"cblas", HAVE_CBLAS,
     HAVE_CBLAS ? "install OpenBLAS (libopenblas0), or a wheel that holds it"
                : "build Iris where libopenblas-dev is installed",
     IRIS_MEMORY_HOST, NULL},
    {"cublaslt", HAVE_CUBLASLT,
     HAVE_CUBLASLT ? "install CUDA's libcublas, or pip install nvidia-cublas"
                   : "build Iris with --with-backend=hip for NVIDIA",
     IRIS_MEMORY_CUDA, NULL},
    {"hipblaslt", HAVE_HIPBLASLT,
     HAVE_HIPBLASLT ? "install ROCm's hipblaslt"
                    : "build Iris with --with-backend=hip for AMD",
     IRIS_MEMORY_ROCM, NULL},
};
#define NUM_ENTRIES (sizeof entries / sizeof entries[0])

/* Guards the members of the entries that change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Modules ---- */

/* Bytes that OpenBLAS takes for each thread: for its own threads when it is
 * loaded, and for a caller at its first product. Without this memory it tries
 * forever. */
#define BLAS_THREAD_BYTES ((size_t)160 << 20)

/* Whether the limit on address space leaves the library enough: for its
 * threads, one on each processor, and for a caller. */
static int has_room(char *why, size_t bytes)
{
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    size_t need = BLAS_THREAD_BYTES * (size_t)(threads < 1 ? 2 : threads + 1);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    void *trial;

    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) {
        return 1;
    }
    trial = mmap(NULL, need, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (trial != MAP_FAILED) {
        munmap(trial, need);
        return 1;
    }
    snprintf(why, bytes,
             "the limit on address space (ulimit -v), %llu bytes, does not "
             "leave the %zu bytes that it takes; raise it",
             (unsigned long long)limit.rlim_cur, need);
    return 0;
}

/* The result of the module's entry function, or NULL with the reason in
 * `why`. */
static const struct iris_blas *load_module(const char *name, const char *folder,
                                           char *why, size_t bytes)
{
    const struct iris_blas *blas;
    iris_blas_entry_t enter;
    struct iris_loader loader;
    /* The library's threads inherit the environment of this one. */
    uint64_t fp = iris_i_fp_enter();

    *(void **)&enter =
        iris_i_loader_open(&loader, folder, name, IRIS_BLAS_SYMBOL);
    iris_i_fp_leave(fp);
    if (loader.handle == NULL) {
        snprintf(why, bytes, "%s", loader.why);
        return NULL;
    }
    blas = enter == NULL ? NULL : enter(IRIS_BLAS_VERSION);
    if (blas == NULL) {
        snprintf(why, bytes, "%.400s belongs to another build of Iris",
                 loader.path);
        iris_i_loader_close(&loader);
    }
    return blas;
}

static const struct iris_blas *blas_of(const iris_t *iris, struct entry *entry,
                                       char *why, size_t bytes)
{
    const struct iris_blas *blas;

    if (!entry->built) {
        snprintf(why, bytes, "this build has no module of it");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (entry->blas == NULL &&
        (entry->memory != IRIS_MEMORY_HOST || has_room(why, bytes))) {
        entry->blas = load_module(
            entry->name, iris_i_settings(iris)->module_dir.text, why, bytes);
    }
    blas = entry->blas;
    pthread_mutex_unlock(&lock);
    return blas;
}

/* ---- The choice ---- */

/* Ranks of this machine divide its processors, with the same number of threads
 * each. */
static int threads_of(const iris_t *iris)
{
    long each = sysconf(_SC_NPROCESSORS_ONLN) / iris_i_num_ranks(iris);

    return each < 1 ? 1 : (int)each;
}

/* Says it once on each node. */
static void say_missing(const iris_t *iris, const struct entry *entry,
                        const char *why)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const struct iris_heap_memory *memory = &iris->heap.memory;
    int first = 0;

    while (iris_i_heap_is_far(memory, first)) {
        first++;
    }
    if (first == iris_i_rank(iris) && !atomic_flag_test_and_set(&said)) {
        iris_i_info(iris_i_log(iris),
                    "products of matrices take the library's own loop, which "
                    "is slow: no %s: %s; %s",
                    entry->name, why, entry->remedy);
    }
}

static iris_status_t refuse_library(const iris_t *iris, const char *name,
                                    const char *why)
{
    return iris_i_fail(
        iris_i_log(iris), IRIS_ERR_BACKEND,
        "IRIS_BLAS=%s cannot be used: %s. Install the missing file "
        "(IRIS_MODULE_DIR names the folder of modules), or unset IRIS_BLAS",
        name, why);
}

/* The arguments of a library's open(), and the thread that calls it. */
struct opening {
    struct choice *choice;
    const struct iris_blas *blas;
    int threads;
    char why[IRIS_BLAS_WHY_BYTES];
};

static iris_status_t open_for_context(void *native, void *what)
{
    struct opening *opening = what;

    (void)native;
    return opening->blas->open(opening->threads, &opening->choice->state,
                               opening->why);
}

static iris_status_t open_on_gpu(iris_t *iris, struct opening *opening)
{
    struct iris_stream *stream;
    iris_status_t status =
        iris_i_stream_resolve(iris_i_queue(iris), NULL, &stream);

    status = status ? status
                    : iris_i_queue_call(stream, open_for_context, opening,
                                        opening->blas->opens_apart);
    if (status != IRIS_OK && opening->why[0] == '\0') {
        snprintf(opening->why, sizeof opening->why, "%.500s",
                 iris_last_error());
    }
    return status;
}

/* Tries to open an entry's library. IRIS_OK: the library is chosen. */
static iris_status_t try_entry(iris_t *iris, struct entry *entry,
                               struct choice *choice, char *why, size_t bytes)
{
    int is_gpu = iris_i_device(iris)->memory != IRIS_MEMORY_HOST;
    struct opening opening = {.choice = choice, .threads = threads_of(iris)};
    char text[IRIS_BLAS_WHY_BYTES];
    iris_status_t status;

    if ((entry->memory != IRIS_MEMORY_HOST) != is_gpu) {
        snprintf(why, bytes, "it is not for this rank's device, %s",
                 iris_i_device(iris)->name);
        return IRIS_ERR_BACKEND;
    }
    opening.blas = blas_of(iris, entry, why, bytes);
    if (opening.blas == NULL) {
        return IRIS_ERR_BACKEND;
    }
    status =
        is_gpu ? open_on_gpu(iris, &opening) : open_for_context(NULL, &opening);
    if (status != IRIS_OK) {
        snprintf(why, bytes, "%s", opening.why);
        return status;
    }
    choice->blas = opening.blas;
    choice->blas->describe(choice->state, text);
    iris_i_debug(iris_i_log(iris), "products of matrices by %s: %s",
                 choice->blas->name, text);
    return IRIS_OK;
}

/* Whether other ranks of this process use the same GPU. Loading a library's
 * kernel waits there for all running kernels, and one of these may wait for
 * this rank (docs/known-limits.md). */
static int shares_gpu(const iris_t *iris)
{
    if (iris->placement.ranks_on_device < 2) {
        return 0;
    }
    for (int rank = 0; rank < iris_i_num_ranks(iris); rank++) {
        if (rank != iris_i_rank(iris) &&
            !iris_i_control_is_remote(iris->control, rank)) {
            return 1;
        }
    }
    return 0;
}

/* The device's library, if it works. IRIS_ERR_STATE: not during a capture. */
static iris_status_t choose_any(iris_t *iris, struct choice *choice)
{
    enum iris_memory_kind memory = iris_i_device(iris)->memory;
    char why[IRIS_BLAS_WHY_BYTES];
    iris_status_t status = IRIS_OK;

    if (memory != IRIS_MEMORY_HOST && shares_gpu(iris)) {
        iris_i_debug(iris_i_log(iris),
                     "products of matrices take the library's own loop: other "
                     "rank threads use this GPU, and a vendor's library could "
                     "hang there; IRIS_BLAS=<name> uses it all the same");
        return IRIS_OK;
    }
    for (size_t i = 0; i < NUM_ENTRIES && status != IRIS_ERR_STATE; i++) {
        if (entries[i].memory != memory) {
            continue;
        }
        status = try_entry(iris, &entries[i], choice, why, sizeof why);
        if (status != IRIS_OK && status != IRIS_ERR_STATE) {
            iris_i_debug(iris_i_log(iris), "no products of matrices by %s: %s",
                         entries[i].name, why);
            say_missing(iris, &entries[i], why);
        }
    }
    return status == IRIS_ERR_STATE ? status : IRIS_OK;
}

/* Sets the choice. While bounds are checked, no library is used: accesses by a
 * library's thread beyond an allocation would look like the program's. */
static iris_status_t choose_library(iris_t *iris, struct choice *choice)
{
    const char *wanted = iris_i_settings(iris)->blas.text;
    char why[IRIS_BLAS_WHY_BYTES] = "";
    iris_status_t status = IRIS_OK;

    if (iris->bounds != NULL || strcmp(wanted, "none") == 0) {
        return IRIS_OK;
    }
    if (strcmp(wanted, "auto") == 0) {
        status = choose_any(iris, choice);
    }
    for (size_t i = 0; i < NUM_ENTRIES; i++) {
        if (strcmp(wanted, entries[i].name) == 0) {
            status = try_entry(iris, &entries[i], choice, why, sizeof why);
        }
    }
    return status == IRIS_OK          ? IRIS_OK
           : status == IRIS_ERR_STATE ? iris_i_fail_on(iris_i_log(iris), status)
                                      : refuse_library(iris, wanted, why);
}

static void close_choice(struct iris_extension *extension)
{
    struct choice *choice = (struct choice *)extension;

    if (choice->blas != NULL) {
        choice->blas->close(choice->state);
    }
    free(choice);
}

iris_status_t iris_i_ops_blas(iris_t *iris, const struct iris_blas **blas_p,
                              void **state_p)
{
    struct choice *choice =
        (struct choice *)iris_i_extension(iris, IRIS_EXTENSION_BLAS);
    iris_status_t status = IRIS_OK;

    if (choice == NULL) {
        choice = calloc(1, sizeof *choice);
        if (choice == NULL) {
            return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                               "no memory for a product's library");
        }
        choice->extension.close = close_choice;
        status = choose_library(iris, choice);
        if (status != IRIS_OK) {
            free(choice);
            return status;
        }
        iris_i_extend(iris, IRIS_EXTENSION_BLAS, &choice->extension);
    }
    *blas_p = choice->blas;
    *state_p = choice->state;
    return IRIS_OK;
}

/* ---------------------------------------------------------------------------
 * A product by a CPU library, as a kernel of one workgroup, so that it runs in
 * the stream's order. Each block of rows is one call of the library. Rows that
 * the library cannot use in place, such as rows with a gap between them, are
 * copied. A block is never cut: with another number of rows, the library gives
 * a row other bits.
 */

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

static float load_block(const void *data, int64_t at, iris_dtype_t dtype)
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

static void store_number(void *data, int64_t at, iris_dtype_t dtype,
                         float value)
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
#define LOAD_LINE(DTYPE)                                         \
    for (int64_t i = 0; i < line.count; i++) {                   \
        to[i] = load_block(line.data, line.at + i * line.stride, \
                           IRIS_DTYPE_##DTYPE);                  \
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

static int fits_stride(int64_t stride, int64_t least)
{
    return stride >= least && stride <= INT32_MAX;
}

/* ---- Matrices in the library's format ---- */

static int a_is_fine(const struct iris_blas_product *what)
{
    return what->dtype == IRIS_DTYPE_F32 && what->a.col == 1 &&
           fits_stride(what->a.row, what->k);
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
               ? fits_stride(what->b.col, what->k)
               : what->b.col == 1 && fits_stride(what->b.row, what->n);
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
                value += load_block(
                    bias->data, row * bias->row + col * bias->col, what->dtype);
            }
            store_number(what->out, place * what->out_row + col, what->dtype,
                         value);
        }
    }
}

/* ---- The product ---- */

/* A matrix with only one row or column is copied: the library may use another
 * algorithm that depends on strides. */
static int is_used_in_place(const struct work *work)
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
    int direct = is_used_in_place(work);
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
    if (direct && fits_stride(what->out_row, work->cols)) {
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
static iris_status_t multiply_blocks(const struct iris_blas_cpu_args *args)
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
    if (multiply_blocks(args) != IRIS_OK) {
        iris_i_fault_set(args->backend, IRIS_ERR_NO_MEMORY,
                         "no memory to convert matrices for a product by a "
                         "BLAS library; use IRIS_BLAS=none");
    }
}

/* To be launched with a grid and a block of 1. */
static const struct iris_kernel *find_blas_kernel(void)
{
    return iris_k_cblas_sgemm;
}

/* Whether the sizes fit into the libraries' integers. */
static int fits_library(const struct iris_blas_product *what)
{
    return what->n <= INT32_MAX && what->k <= INT32_MAX;
}

/* ---------------------------------------------------------------------------
 * The product of two matrices on a stream.
 */

#define LANES 256
#define WGS_PER_CU 8
/* Number of elements of the result that justify a workgroup: on a GPU those of
 * its lanes, on the CPU a tile. */
#define CPU_ELEMENTS_PER_WG 2048

static struct iris_d_matrix matrix_of(const iris_tensor_t *tensor)
{
    struct iris_d_matrix matrix = {tensor->data, tensor->strides[0],
                                   tensor->strides[1]};

    return matrix;
}

static struct iris_d_matrix bias_of(const struct iris_ops_product *product)
{
    struct iris_d_matrix matrix = {0};
    int64_t stride;

    if (product->bias != NULL) {
        stride = product->bias->strides[0];
        matrix.row = product->bias_by_row ? stride : 0;
        matrix.data = product->bias->data;
        matrix.col = product->bias_by_row ? 0 : stride;
    }
    return matrix;
}

static unsigned grid_for(const iris_t *iris, uint64_t elements)
{
    uint64_t each =
        iris_i_device(iris)->wavefront > 1 ? LANES : CPU_ELEMENTS_PER_WG;
    uint64_t grid = (elements + each - 1) / each;
    uint64_t most = (uint64_t)iris_i_device(iris)->num_cus * WGS_PER_CU;

    return (unsigned)(grid < most ? grid : most);
}

/* Multiplies by the library's own kernels. */
static iris_status_t launch_plain(iris_t *iris,
                                  const struct iris_blas_product *what,
                                  iris_stream_t *stream)
{
    struct iris_matmul_args args = {.a = what->a,
                                    .b = what->b,
                                    .bias = what->bias,
                                    .out = what->out,
                                    .out_row = what->out_row,
                                    .m = (uint64_t)what->m,
                                    .n = (uint64_t)what->n,
                                    .k = (uint64_t)what->k};
    struct iris_launch_request request = {iris_i_matmul_kernel(what->dtype),
                                          grid_for(iris, args.m * args.n),
                                          LANES,
                                          &args,
                                          sizeof args,
                                          true};

    return iris_i_launch(iris_i_queue(iris), &request, stream);
}

static iris_status_t launch_on_cpu(iris_t *iris,
                                   const struct iris_blas_cpu_args *args,
                                   iris_stream_t *stream)
{
    /* Not as a kernel of the library: a waiting host may run those itself. A
     * third party's library may never return, and the deadline has to pass
     * then. */
    struct iris_launch_request request = {find_blas_kernel(), 1,    1, args,
                                          sizeof *args,       false};

    return iris_i_launch(iris_i_queue(iris), &request, stream);
}

/* ---- By a GPU's library ---- */

struct gpu_call {
    const struct iris_blas_cpu_args *args;
    char why[IRIS_BLAS_WHY_BYTES]; /* empty: the library was not called */
};

static iris_status_t call_library(void *native, void *what)
{
    struct gpu_call *call = what;

    return call->args->blas->product(call->args->state, &call->args->what,
                                     native, call->why);
}

static void say_own(const iris_t *iris, const struct gpu_call *call)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const struct iris_blas_product *what = &call->args->what;

    if (!atomic_flag_test_and_set(&said)) {
        iris_i_debug(iris_i_log(iris),
                     "a product of %lld by %lld by %lld takes the library's "
                     "own kernel, which is slow: %s: %s",
                     (long long)what->m, (long long)what->n, (long long)what->k,
                     call->args->blas->name, call->why);
    }
}

static int library_adds(const struct iris_blas_product *what)
{
    return what->bias.row == 0 && (what->bias.col == 1 || what->n == 1) &&
           (uintptr_t)what->bias.data % IRIS_BLAS_ALIGNMENT == 0;
}

/* Copies any other bias to out ahead of the sums, which are added to it in
 * f32. */
static iris_status_t put_bias(iris_t *iris, struct iris_blas_product *what,
                              iris_stream_t *stream)
{
    iris_tensor_t bias = {.data = (void *)(uintptr_t)what->bias.data,
                          .dtype = what->dtype,
                          .ndim = 2,
                          .shape = {what->m, what->n},
                          .strides = {what->bias.row, what->bias.col}};
    iris_tensor_t out = {.data = what->out,
                         .dtype = what->dtype,
                         .ndim = 2,
                         .shape = {what->m, what->n},
                         .strides = {what->out_row, 1}};

    what->bias.data = NULL;
    what->adds = 1;
    return iris_tensor_copy(iris, &out, &bias, stream);
}

static iris_status_t enqueue_on_gpu(iris_t *iris,
                                    struct iris_blas_cpu_args *args,
                                    iris_stream_t *stream)
{
    struct iris_blas_product plain = args->what;
    struct gpu_call call = {.args = args};
    struct iris_stream *resolved;
    iris_status_t status =
        iris_i_stream_resolve(iris_i_queue(iris), stream, &resolved);

    if (status == IRIS_OK && plain.bias.data != NULL && !library_adds(&plain)) {
        status = put_bias(iris, &args->what, stream);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_queue_call(resolved, call_library, &call, 0);
    if (status == IRIS_ERR_UNSUPPORTED) {
        say_own(iris, &call);
        return launch_plain(iris, &plain, stream);
    }
    return call.why[0] == '\0'
               ? iris_i_fail_on(iris_i_log(iris), status)
               : iris_i_fail(iris_i_log(iris), status, "a product by %s: %s",
                             args->blas->name, call.why);
}

/* ---- The choice ---- */

/* Multiplies by a GPU's library or the core's own kernels. Their bits do not
 * depend on how rows are cut. */
static iris_status_t enqueue_rows(iris_t *iris, struct iris_blas_cpu_args *args,
                                  iris_stream_t *stream)
{
    return args->blas != NULL && args->blas->on_gpu
               ? enqueue_on_gpu(iris, args, stream)
               : launch_plain(iris, &args->what, stream);
}

/* Number of rows from `row` on without a gap in between. */
static int64_t run_of(struct iris_blas_gaps gaps, int64_t row)
{
    return row < gaps.first ? gaps.first - row
                            : gaps.each - (row - gaps.first) % gaps.each;
}

/* A product for each run of rows without a gap. */
static iris_status_t enqueue_runs(iris_t *iris,
                                  const struct iris_blas_cpu_args *args,
                                  iris_stream_t *stream)
{
    const struct iris_blas_product *what = &args->what;
    int64_t size = (int64_t)iris_dtype_size(what->dtype);
    iris_status_t status = IRIS_OK;

    for (int64_t row = 0; row < what->m && status == IRIS_OK;) {
        struct iris_blas_cpu_args run = *args;
        int64_t rows = run_of(what->gaps, row);

        run.what.begin = what->begin + row;
        run.what.m = rows < what->m - row ? rows : what->m - row;
        run.what.a.data = (const char *)what->a.data + row * what->a.row * size;
        run.what.out = (char *)what->out + iris_i_blas_place(what->gaps, row) *
                                               what->out_row * size;
        if (what->bias.data != NULL) {
            run.what.bias.data =
                (const char *)what->bias.data + row * what->bias.row * size;
        }
        status = enqueue_rows(iris, &run, stream);
        row += run.what.m;
    }
    return status;
}

iris_status_t iris_i_ops_product(iris_t *iris,
                                 const struct iris_ops_product *product,
                                 iris_stream_t *stream)
{
    struct iris_blas_cpu_args args = {
        .backend = iris_i_backend(iris),
        .what = {.a = matrix_of(&product->a),
                 .b = matrix_of(&product->b),
                 .bias = bias_of(product),
                 .out = product->out.data,
                 .out_row = product->out.strides[0],
                 .m = product->out.shape[0],
                 .n = product->out.shape[1],
                 .k = product->a.shape[1],
                 .begin = product->begin,
                 .whole = product->whole == 0 ? product->out.shape[0]
                                              : product->whole,
                 .dtype = product->out.dtype,
                 .gaps = product->gaps}};
    iris_status_t status = IRIS_OK;

    if (args.what.m == 0 || args.what.n == 0) {
        return IRIS_OK;
    }
    status = iris_i_ops_blas(iris, &args.blas, &args.state);
    if (status != IRIS_OK) {
        return status;
    }
    /* Libraries need not write sums of nothing. */
    if (args.blas != NULL && (args.what.k == 0 || !fits_library(&args.what))) {
        args.blas = NULL;
    }
    return args.blas != NULL && !args.blas->on_gpu
               ? launch_on_cpu(iris, &args, stream)
               : enqueue_runs(iris, &args, stream);
}
