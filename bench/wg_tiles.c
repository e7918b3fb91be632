/* SPDX-License-Identifier: MIT
 *
 * Measures all_reduce of tiles inside one kernel, in alternation with
 * iris_all_reduce() of the same bytes.
 */
#include "config.h"

#include "bench.h"

#define IRIS_MAX_LANES 256 /* for registers */
#include <iris/device.h>
#include <iris/device/wg_ccl_tile.h>

#include <stdlib.h>

#define SIDE 64u /* side of a tile */
#define TILE_BYTES (SIDE * SIDE * sizeof(float))
#define MAX_ENQUEUED 200
#define GRAPH_OPS 50

enum wg_tiles_how { WG_TILES_ANY, WG_TILES_ONE_SHOT, WG_TILES_TWO_SHOT };

struct wg_tiles_args {
    iris_ccl_device_t handle;
    float *in; /* `high` by `wide` tiles of `rows` by `cols` elements */
    float *out;
    uint32_t high;
    uint32_t wide;
    uint32_t rows;
    uint32_t cols;
    int32_t how; /* enum wg_tiles_how */
};

IRIS_DEVICE iris_tile_t wg_tiles_at(const struct wg_tiles_args *args,
                                    float *data, uint32_t t)
{
    uint32_t width = args->wide * args->cols;
    iris_tile_t all =
        iris_tile(data, args->high * args->rows, width, width, sizeof *data);

    return iris_tile_block(all, t / args->wide, t % args->wide, args->rows,
                           args->cols);
}

IRIS_KERNEL(wg_tiles_reduce, struct wg_tiles_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);
    uint32_t tiles = args->high * args->wide;

    for (uint32_t t = wg.id; t < tiles; t += wg.num_wgs) {
        iris_tile_t in = wg_tiles_at(args, args->in, t);
        iris_tile_t out = wg_tiles_at(args, args->out, t);

        if (args->how == WG_TILES_ANY) {
            iris_wg_tile_all_reduce(wg, &ccl, in, out, IRIS_DTYPE_F32,
                                    IRIS_REDUCE_SUM);
        } else if (args->how == WG_TILES_ONE_SHOT) {
            iris_wg_tile_all_reduce_one_shot(wg, &ccl, in, out, IRIS_DTYPE_F32,
                                             IRIS_REDUCE_SUM);
        } else {
            iris_wg_tile_all_reduce_two_shot(wg, &ccl, in, out, IRIS_DTYPE_F32,
                                             IRIS_REDUCE_SUM);
        }
    }
    iris_wg_ccl_end(wg, &ccl);
}

/* The operations, in the order of their names. */
static const char *const names[] = {"wg_all_reduce", "wg_one_shot",
                                    "wg_two_shot", "wg_strided", NULL};
static const enum wg_tiles_how hows[] = {WG_TILES_ANY, WG_TILES_ONE_SHOT,
                                         WG_TILES_TWO_SHOT, WG_TILES_ANY};
enum { STRIDED = 3 };

struct tiles {
    float *in; /* on the heap, like out */
    float *out;
    void *host;
    iris_ccl_device_t handle;
};

struct point {
    struct wg_tiles_args args;
    unsigned grid;
    struct bench_ccl whole; /* the same call as a collective on the stream */
};

/* Uses a workgroup for each tile, up to the number that run at the same time. */
static iris_status_t tiles_open(struct bench *b)
{
    size_t tiles = (b->options.max_bytes + TILE_BYTES - 1) / TILE_BYTES;
    size_t most = (size_t)iris_num_cus(b->iris);
    struct tiles *own = calloc(1, sizeof *own);
    iris_status_t status;

    b->state = own;
    if (own == NULL || (own->host = malloc(b->options.max_bytes)) == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = iris_malloc(b->iris, b->options.max_bytes, (void **)&own->in);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, b->options.max_bytes, (void **)&own->out);
    }
    if (status == IRIS_OK) {
        status = bench_ccl_prepare(b);
    }
    return status == IRIS_OK
               ? iris_ccl_device_create(b->iris, NULL,
                                        (int)(tiles < most ? tiles : most),
                                        TILE_BYTES, &own->handle)
               : status;
}

static void tiles_close(struct bench *b)
{
    struct tiles *own = b->state;

    if (own == NULL) {
        return;
    }
    if (own->handle.max_wgs == 0 ||
        iris_ccl_device_destroy(b->iris, &own->handle) == IRIS_OK) {
        if (iris_free(b->iris, own->out) == IRIS_OK) {
            iris_free(b->iris, own->in);
        }
    }
    free(own->host);
    free(own);
}

static iris_status_t enqueue_tiles(struct bench *b, const void *arg)
{
    const struct point *p = arg;

    unsigned block = b->options.block;

    return iris_launch(b->iris, wg_tiles_reduce, p->grid,
                       block < IRIS_MAX_LANES ? block : IRIS_MAX_LANES,
                       &p->args, sizeof p->args, NULL);
}

static iris_status_t enqueue_all_reduce(struct bench *b, const void *arg)
{
    const struct point *p = arg;

    return bench_ccl_enqueue(b, &p->whole);
}

static iris_status_t run_batch_of_tiles(struct bench *b, const void *arg,
                                        uint32_t reps, int reference)
{
    return bench_enqueue(b, reference ? enqueue_all_reduce : enqueue_tiles, arg,
                         reps);
}

/* Runs each way once, and checks `out`. */
static iris_status_t verify_tiles(struct bench *b, const struct point *p,
                                  int reference, uint64_t *wrong_p)
{
    struct tiles *own = b->state;
    iris_status_t status =
        iris_memset(b->iris, own->out, 0xff, b->options.max_bytes, NULL);

    if (status == IRIS_OK) {
        status = bench_ccl_fill(b, &p->whole, own->host);
    }
    status = status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
    status =
        status == IRIS_OK ? run_batch_of_tiles(b, p, 1, reference) : status;
    return status == IRIS_OK ? bench_ccl_check(b, &p->whole, own->host, wrong_p)
                             : status;
}

/* Makes the tiles of the row's bytes, one below the other or, if strided, side
 * by side. A tile of fewer bytes has fewer rows. */
static struct point point_of(const struct bench *b, size_t op,
                             const struct bench_row *row)
{
    const struct tiles *own = b->state;
    size_t count = row->bytes / sizeof(float);
    struct point p = {.args = {.handle = own->handle,
                               .in = own->in,
                               .out = own->out,
                               .how = (int32_t)hows[op]},
                      .whole = {.num_ranks = b->num_ranks,
                                .op = BENCH_ALL_REDUCE,
                                .count = count,
                                .dtype = IRIS_DTYPE_F32,
                                .in = own->in,
                                .out = own->out}};
    size_t tiles;

    p.args.cols = count < SIDE ? (uint32_t)count : SIDE;
    p.args.rows = count < SIDE * SIDE ? (uint32_t)count / p.args.cols : SIDE;
    tiles = count / p.args.rows / p.args.cols;
    p.args.wide = 1;
    while (op == STRIDED && (size_t)p.args.wide * p.args.wide < tiles) {
        p.args.wide *= 2;
    }
    p.args.high = (uint32_t)(tiles / p.args.wide);
    p.grid =
        tiles < own->handle.max_wgs ? (unsigned)tiles : own->handle.max_wgs;
    return p;
}

static iris_status_t run_tiles(struct bench *b, size_t op,
                               struct bench_row *row_p)
{
    struct point p = point_of(b, op, row_p);
    struct bench_work work = {.run = run_batch_of_tiles,
                              .arg = &p,
                              .max_reps = MAX_ENQUEUED,
                              .references = 1};
    iris_status_t status = verify_tiles(b, &p, false, &row_p->wrong);

    if (status == IRIS_OK) {
        status = verify_tiles(b, &p, true, &row_p->wrong);
    }
    status = status == IRIS_OK ? bench_sum(b, &row_p->wrong) : status;
    b->graph_ops = GRAPH_OPS;
    if (b->options.graph && !b->no_graph) {
        work.step = GRAPH_OPS;
    }
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes, "iris_all_reduce");
    return status;
}

const struct bench_group bench_wg_tiles = {
    .name = "tiles",
    .text = "all_reduce of 64x64 f32 tiles by the workgroups of one kernel, by "
            "bytes of all tiles; beside one iris_all_reduce() of them",
    .ops = names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = sizeof(float),
    .open = tiles_open,
    .run = run_tiles,
    .close = tiles_close,
};
