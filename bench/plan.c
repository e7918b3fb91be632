/* SPDX-License-Identifier: MIT
 *
 * Measures how far copies that a kernel starts overlap with that kernel: a ring
 * of iris_plan_* behind products of tiles, against the longer of the two alone.
 */
#include "config.h"

#include "bench.h"

#define IRIS_MAX_LANES 256 /* for registers */
#include <iris/device.h>

#include <stdlib.h>
#include <string.h>

#define BATCHES 8u
#define DEPTH 128u
/* Bytes of a batch for each product of a workgroup: about as long on an H100. */
#define BYTES_PER_PRODUCT ((size_t)160000)

struct plan_args {
    const int64_t *context;
    struct iris_dev_plan *plan; /* NULL: nothing is published */
    void *tiles;                /* the factors */
    float *sums;                /* of each workgroup */
    uint32_t rounds;            /* products before each batch; 0: none */
    uint32_t epoch;
};

IRIS_KERNEL(multiply_and_publish, struct plan_args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);
    iris_tile_t a = iris_tile(args->tiles, IRIS_SUMS_ROWS, DEPTH, DEPTH, 2);
    iris_tile_t b =
        iris_tile(args->tiles, DEPTH, IRIS_SUMS_COLS, IRIS_SUMS_COLS, 2);
    float *to = args->sums + (size_t)wg.id * IRIS_SUMS_ROWS * IRIS_SUMS_COLS;

    iris_wg_tile_sums_zero(wg, sums);
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        for (uint32_t i = 0; i < args->rounds; i++) {
            iris_wg_tile_product(wg, sums, a, b, IRIS_DTYPE_F16);
        }
        if (args->plan != NULL) {
            iris_plan_publish(wg, dev, args->plan, batch, args->epoch,
                              wg.num_wgs);
        }
    }
    iris_wg_tile_sums_put(wg, dev, sums,
                          iris_tile(to, IRIS_SUMS_ROWS, IRIS_SUMS_COLS,
                                    IRIS_SUMS_COLS, sizeof *to),
                          IRIS_DTYPE_F32, (int)dev.rank);
}

struct ring {
    char *memory; /* on the heap: tiles, sums, source, target */
    size_t tiles;
    size_t sums;
    size_t bytes; /* the largest size of the source */
};

struct ring_point {
    iris_plan_t *plan;
    char *src;
    size_t bytes;
    struct plan_args args;
};

static iris_status_t ring_open(struct bench *b)
{
    struct ring *ring = calloc(1, sizeof *ring);

    b->state = ring;
    if (ring == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    ring->tiles = (size_t)IRIS_SUMS_ROWS * DEPTH * 2;
    ring->sums = (size_t)iris_num_cus(b->iris) * IRIS_SUMS_ROWS *
                 IRIS_SUMS_COLS * sizeof(float);
    ring->bytes = b->options.max_bytes;
    return iris_calloc(b->iris, 1, ring->tiles + ring->sums + 2 * ring->bytes,
                       (void **)&ring->memory);
}

static void ring_close(struct bench *b)
{
    struct ring *ring = b->state;

    if (ring != NULL) {
        (void)iris_free(b->iris, ring->memory);
        free(ring);
    }
}

static iris_status_t create_ring(struct bench *b, struct ring_point *p)
{
    struct iris_plan_segment *segments =
        calloc((size_t)b->num_ranks * BATCHES, sizeof *segments);
    size_t count = 0, part = p->bytes / BATCHES;
    iris_status_t status;

    if (segments == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (int rank = 0; rank < b->num_ranks; rank++) {
        for (unsigned batch = 0; batch < BATCHES; batch++) {
            char *src = p->src + batch * part;

            segments[count++] = (struct iris_plan_segment){
                .from_rank = rank,
                .to_rank = (rank + 1) % b->num_ranks,
                .src = src,
                .dst = src + p->bytes,
                .bytes = batch == BATCHES - 1 ? p->bytes - batch * part : part,
                .batch = (int)batch};
        }
    }
    status = iris_plan_create(b->iris, segments, count, NULL, &p->plan);
    free(segments);
    return status;
}

/* Reference 1: the products alone; 2: the ring alone. */
static iris_status_t run_rings(struct bench *b, const void *arg, uint32_t reps,
                               int reference)
{
    const struct ring_point *p = arg;
    struct plan_args args = p->args;
    iris_status_t status = IRIS_OK;
    unsigned grid = (unsigned)iris_num_cus(b->iris);

    args.plan = reference == 1 ? NULL : args.plan;
    args.rounds = reference == 2 ? 0 : args.rounds;
    for (uint32_t i = 0; i < reps && status == IRIS_OK; i++) {
        if (reference != 1) {
            status = iris_plan_begin(b->iris, p->plan, NULL, &args.epoch);
        }
        if (status == IRIS_OK) {
            status = iris_launch(b->iris, multiply_and_publish, grid,
                                 IRIS_MAX_LANES, &args, sizeof args, NULL);
        }
        if (status == IRIS_OK && reference != 1) {
            status = iris_plan_end(b->iris, p->plan);
        }
        if (status == IRIS_OK) {
            status = iris_stream_synchronize(b->iris, NULL);
        }
    }
    return status;
}

/* Runs it once, and counts the bytes that are not the left neighbour's. */
static iris_status_t verify_ring(struct bench *b, const struct ring_point *p,
                                 uint64_t *wrong_p)
{
    int left = (b->rank + b->num_ranks - 1) % b->num_ranks;
    unsigned char *seen = malloc(p->bytes);
    iris_status_t status =
        iris_memset(b->iris, p->src, b->rank + 1, p->bytes, NULL);

    if (status == IRIS_OK) {
        status = iris_stream_synchronize(b->iris, NULL);
    }
    status = status == IRIS_OK ? run_rings(b, p, 1, 0) : status;
    if (status == IRIS_OK && seen != NULL) {
        status = bench_copy(b, seen, p->src + p->bytes, p->bytes);
    }
    for (size_t i = 0; i < p->bytes && status == IRIS_OK; i++) {
        *wrong_p += seen == NULL || seen[i] != (unsigned char)(left + 1);
    }
    free(seen);
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t ring_run(struct bench *b, size_t op,
                              struct bench_row *row_p)
{
    struct ring *ring = b->state;
    struct ring_point p = {.src = ring->memory + ring->tiles + ring->sums,
                           .bytes = row_p->bytes};
    struct bench_work work = {.run = run_rings, .arg = &p, .references = 2};
    iris_status_t status = create_ring(b, &p);
    double longer;

    (void)op;
    p.args = (struct plan_args){
        .context = iris_device_context(b->iris),
        .plan = status == IRIS_OK ? iris_plan_device(b->iris, p.plan) : NULL,
        .tiles = ring->memory,
        .sums = (float *)(void *)(ring->memory + ring->tiles),
        .rounds = (uint32_t)(p.bytes / BATCHES / BYTES_PER_PRODUCT) + 1};
    b->no_graph = true;
    status = status == IRIS_OK ? verify_ring(b, &p, &row_p->wrong) : status;
    status = status == IRIS_OK ? bench_measure(b, &work, row_p) : status;
    if (status == IRIS_OK) {
        status = iris_plan_destroy(b->iris, p.plan);
    }
    longer = row_p->references_us[0] > row_p->references_us[1]
                 ? row_p->references_us[0]
                 : row_p->references_us[1];
    row_p->rate_unit = "GB/s";
    row_p->reference = "longer part";
    if (row_p->median_us > 0 && longer > 0) {
        row_p->rate = (double)p.bytes / row_p->median_us / 1e3;
        row_p->reference_rate = (double)p.bytes / longer / 1e3;
        row_p->ratio = longer / row_p->median_us;
    }
    return status;
}

static const char *const ring_names[] = {"plan_ring", NULL};

const struct bench_group bench_plan = {
    .name = "plan",
    .text = "a ring of iris_plan_* behind products; longer part: the products "
            "or the ring alone",
    .ops = ring_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = BATCHES,
    .open = ring_open,
    .run = ring_run,
    .close = ring_close,
};
