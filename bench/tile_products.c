/* SPDX-License-Identifier: MIT
 *
 * Measures the product of two tiles in each workgroup of a kernel, in
 * alternation with the same product in the order of a plain loop.
 */
#include "config.h"

#include "bench.h"

#define IRIS_MAX_LANES 256 /* for registers */
#include <iris/device.h>

#include <stdlib.h>

#define DEPTH 128u /* depth of a product */
#define MAX_ENQUEUED 200

/* Products in a launch, which adds them all up. There are enough that the
 * launch itself takes little of the time. */
#define CPU_ROUNDS 4u
#define GPU_ROUNDS 64u

struct tile_products_args {
    const int64_t *context;
    void *a;  /* IRIS_SUMS_ROWS rows of DEPTH elements */
    void *b;  /* DEPTH rows of IRIS_SUMS_COLS elements */
    float *c; /* the sums of each workgroup */
    uint32_t rounds;
    int32_t in_order;
};

/* `dtype` is a constant in each kernel, as in programs. */
IRIS_DEVICE void multiply_tiles(iris_wg_t wg,
                                const struct tile_products_args *args,
                                iris_tile_sums_t *sums, iris_dtype_t dtype)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t bytes = dtype == IRIS_DTYPE_F32 ? 4 : 2;
    iris_tile_t a = iris_tile(args->a, IRIS_SUMS_ROWS, DEPTH, DEPTH, bytes);
    iris_tile_t b =
        iris_tile(args->b, DEPTH, IRIS_SUMS_COLS, IRIS_SUMS_COLS, bytes);
    float *c = args->c + (size_t)wg.id * IRIS_SUMS_ROWS * IRIS_SUMS_COLS;

    iris_wg_tile_sums_zero(wg, sums);
    for (uint32_t i = 0; i < args->rounds; i++) {
        if (args->in_order) {
            iris_wg_tile_product_in_order(wg, sums, a, b, dtype);
        } else {
            iris_wg_tile_product(wg, sums, a, b, dtype);
        }
    }
    iris_wg_tile_sums_put(
        wg, dev, sums,
        iris_tile(c, IRIS_SUMS_ROWS, IRIS_SUMS_COLS, IRIS_SUMS_COLS, sizeof *c),
        IRIS_DTYPE_F32, dev.rank);
}

IRIS_KERNEL(multiply_f32, struct tile_products_args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);

    multiply_tiles(wg, args, sums, IRIS_DTYPE_F32);
}

IRIS_KERNEL(multiply_f16, struct tile_products_args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);

    multiply_tiles(wg, args, sums, IRIS_DTYPE_F16);
}

IRIS_KERNEL(multiply_bf16, struct tile_products_args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);

    multiply_tiles(wg, args, sums, IRIS_DTYPE_BF16);
}

/* The operations, in the order of their names. */
static const char *const names[] = {"tile_product_f32", "tile_product_f16",
                                    "tile_product_bf16", NULL};
static const struct tile_products_op {
    const struct iris_kernel *kernel;
    iris_dtype_t dtype;
} ops[] = {{multiply_f32, IRIS_DTYPE_F32},
           {multiply_f16, IRIS_DTYPE_F16},
           {multiply_bf16, IRIS_DTYPE_BF16}};

struct products {
    char *memory; /* on the heap: a, b, c */
    char *host;
    size_t bytes; /* bytes of a and b */
};

struct point {
    const struct tile_products_op *op;
    unsigned grid;
    unsigned block;
    struct tile_products_args args[2]; /* the second one is in order */
};

#define A_BYTES (IRIS_SUMS_ROWS * DEPTH * sizeof(float))
#define B_BYTES (DEPTH * IRIS_SUMS_COLS * sizeof(float))
#define C_COUNT (IRIS_SUMS_ROWS * IRIS_SUMS_COLS)

static iris_status_t products_open(struct bench *b)
{
    struct products *own = calloc(1, sizeof *own);

    b->state = own;
    if (own == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    own->bytes = A_BYTES + B_BYTES +
                 (size_t)iris_num_cus(b->iris) * C_COUNT * sizeof(float);
    own->host = malloc(own->bytes);
    return own->host == NULL
               ? IRIS_ERR_NO_MEMORY
               : iris_malloc(b->iris, own->bytes, (void **)&own->memory);
}

static void products_close(struct bench *b)
{
    struct products *own = b->state;

    if (own != NULL) {
        (void)iris_free(b->iris, own->memory);
        free(own->host);
        free(own);
    }
}

/* ---- Values ---- */

/* Small integers, whose sums are exact in f32. */
static int value_a(uint32_t row, uint32_t k)
{
    return (int)((3 * row + 5 * k) % 7) - 3;
}

static int value_b(uint32_t k, uint32_t col)
{
    return (int)((2 * k + 3 * col) % 5) - 2;
}

static void set_element(char *to, iris_dtype_t dtype, size_t i, int value)
{
    if (dtype == IRIS_DTYPE_F32) {
        ((float *)(void *)to)[i] = (float)value;
    } else if (dtype == IRIS_DTYPE_F16) {
        ((iris_f16_t *)(void *)to)[i] = iris_f16_from_f32((float)value);
    } else {
        ((iris_bf16_t *)(void *)to)[i] = iris_bf16_from_f32((float)value);
    }
}

static iris_status_t fill_tiles(struct bench *b, iris_dtype_t dtype)
{
    struct products *own = b->state;

    for (uint32_t k = 0; k < DEPTH; k++) {
        for (uint32_t i = 0; i < IRIS_SUMS_ROWS; i++) {
            set_element(own->host, dtype, i * DEPTH + k, value_a(i, k));
        }
        for (uint32_t j = 0; j < IRIS_SUMS_COLS; j++) {
            set_element(own->host + A_BYTES, dtype, k * IRIS_SUMS_COLS + j,
                        value_b(k, j));
        }
    }
    return bench_copy(b, own->memory, own->host, A_BYTES + B_BYTES);
}

static uint64_t count_wrong_products(const float *sums, uint32_t rounds)
{
    uint64_t wrong = 0;

    for (uint32_t e = 0; e < C_COUNT; e++) {
        int sum = 0;

        for (uint32_t k = 0; k < DEPTH; k++) {
            sum +=
                value_a(e / IRIS_SUMS_COLS, k) * value_b(k, e % IRIS_SUMS_COLS);
        }
        wrong += sums[e] != (float)(sum * (int)rounds);
    }
    return wrong;
}

/* ---- Measuring ---- */

static iris_status_t launch_products(struct bench *b, const struct point *p,
                                     const struct tile_products_args *args)
{
    return iris_launch(b->iris, p->op->kernel, p->grid, p->block, args,
                       sizeof *args, NULL);
}

static iris_status_t enqueue_tile_product(struct bench *b, const void *arg)
{
    const struct point *p = arg;

    return launch_products(b, p, &p->args[0]);
}

static iris_status_t enqueue_in_order(struct bench *b, const void *arg)
{
    const struct point *p = arg;

    return launch_products(b, p, &p->args[1]);
}

static iris_status_t run_batch_of_products(struct bench *b, const void *arg,
                                           uint32_t reps, int reference)
{
    return bench_enqueue(b, reference ? enqueue_in_order : enqueue_tile_product,
                         arg, reps);
}

/* Runs each way once, and checks the sums that each workgroup left. */
static iris_status_t verify_products(struct bench *b, const struct point *p,
                                     int reference, uint64_t *wrong_p)
{
    struct products *own = b->state;
    char *seen = own->host + A_BYTES + B_BYTES;
    size_t bytes = own->bytes - A_BYTES - B_BYTES;
    iris_status_t status =
        iris_memset(b->iris, p->args[0].c, 0xff, bytes, NULL);

    status =
        status == IRIS_OK ? run_batch_of_products(b, p, 1, reference) : status;
    if (status == IRIS_OK) {
        status = bench_copy(b, seen, p->args[0].c, bytes);
    }
    for (unsigned w = 0; w < p->grid && status == IRIS_OK; w++) {
        *wrong_p += count_wrong_products(
            (float *)(void *)seen + (size_t)w * C_COUNT, p->args[0].rounds);
    }
    return status;
}

static struct point product_point_of(struct bench *b, size_t op, unsigned grid)
{
    const struct products *own = b->state;
    unsigned block = b->options.block;
    struct tile_products_args args = {
        .context = iris_device_context(b->iris),
        .a = own->memory,
        .b = own->memory + A_BYTES,
        .c = (float *)(void *)(own->memory + A_BYTES + B_BYTES),
        .rounds = iris_stream_native(b->iris, NULL) != NULL ? GPU_ROUNDS
                                                            : CPU_ROUNDS};
    struct point p = {.op = &ops[op],
                      .grid = grid,
                      .block = block < IRIS_MAX_LANES ? block : IRIS_MAX_LANES,
                      .args = {args, args}};

    p.args[1].in_order = 1;
    return p;
}

static iris_status_t run_products(struct bench *b, size_t op,
                                  struct bench_row *row_p)
{
    struct point p = product_point_of(b, op, row_p->grid);
    struct bench_work work = {.run = run_batch_of_products,
                              .arg = &p,
                              .max_reps = MAX_ENQUEUED,
                              .per_rep = p.args[0].rounds,
                              .references = 1};
    double giga = 2e-3 * C_COUNT * DEPTH * p.grid; /* per microsecond */
    iris_status_t status = fill_tiles(b, p.op->dtype);

    row_p->bytes = 0;
    b->no_graph = true; /* launches are long */
    for (int way = 0; way < 2 && status == IRIS_OK; way++) {
        status = verify_products(b, &p, way, &row_p->wrong);
    }
    status = status == IRIS_OK ? bench_sum(b, &row_p->wrong) : status;
    status = status == IRIS_OK ? bench_measure(b, &work, row_p) : status;
    row_p->rate = row_p->median_us > 0 ? giga / row_p->median_us : 0;
    row_p->rate_unit = "GFLOP/s";
    row_p->reference = "in order";
    row_p->reference_rate *= giga;
    return status;
}

const struct bench_group bench_tile_products = {
    .name = "products",
    .text = "iris_wg_tile_product: 64x64 sums, k = 128, a tile for each "
            "workgroup; in order: iris_wg_tile_product_in_order",
    .ops = names,
    .axis = BENCH_BY_GRID,
    .open = products_open,
    .run = run_products,
    .close = products_close,
};
