/* SPDX-License-Identifier: MIT
 *
 * Loads, stores, gets, puts and copies by size: lane loops in alternation with
 * the same loops over plain pointers, and bulk copies in alternation with
 * memcpy.
 */
#include "config.h"

#include "bench.h"
#include "rma_kernels.h"

#include <stdlib.h>
#include <string.h>

/* The contents of destinations before an operation, and of the guard bytes
 * behind them afterwards. */
#define UNTOUCHED 0xa5
#define GUARD_BYTES 64

/* The direction of the access; it determines the right contents of a
 * destination. */
enum direction { LOAD, STORE, GET, PUT, COPY };

struct rma_op {
    const struct iris_kernel *kernel;
    const struct iris_kernel *reference;
    enum direction direction;
};

static const struct rma_op lane_ops[] = {
    {rma_load, rma_load_plain, LOAD}, {rma_store, rma_store_plain, STORE},
    {rma_get, rma_get_plain, GET},    {rma_put, rma_put_plain, PUT},
    {rma_copy, rma_copy_plain, COPY},
};

static const struct rma_op bulk_ops[] = {
    {rma_wg_put, rma_memcpy_put, PUT},
    {rma_wg_get, rma_memcpy_get, GET},
    {rma_wg_copy, rma_memcpy_copy, COPY},
};

static const struct rma_op depth_ops[] = {
    {rma_put_d0, NULL, PUT},  {rma_put_d4, NULL, PUT},  {rma_put_d8, NULL, PUT},
    {rma_put_d12, NULL, PUT}, {rma_get_d0, NULL, GET},  {rma_get_d4, NULL, GET},
    {rma_get_d8, NULL, GET},  {rma_get_d12, NULL, GET},
};

/* Buffers on the heap, and one in host memory to fill and check them. */
struct rma {
    char *src;
    char *dst; /* num_slots slots of slot_bytes */
    uint64_t *sum;
    uint64_t *host;
    size_t slot_bytes;
    int num_slots;
    uint32_t round; /* number of the fill, so that old data looks wrong */
};

/* One launch for each operation. */
static const struct rma_op kernel_ops[] = {
    {rma_wg_put, NULL, PUT},
    {rma_wg_get, NULL, GET},
};

/* Bytes for which one more workgroup is worth it. */
#define KERNEL_WG_BYTES 4096

/* One point, which run() gets as `arg`. */
struct rma_point {
    const struct rma_op *op;
    struct rma_args args;
    unsigned grid;
    bool launches; /* one launch for each operation */
};

static iris_status_t rma_open(struct bench *b)
{
    struct rma *rma = calloc(1, sizeof *rma);
    iris_status_t status;

    if (rma == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = rma;
    rma->slot_bytes = (b->options.max_bytes + 2 * GUARD_BYTES - 1) /
                      GUARD_BYTES * GUARD_BYTES;
    rma->num_slots = b->options.pairs == BENCH_ALL ? b->num_ranks : 1;
    rma->host = malloc(rma->slot_bytes);
    if (rma->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = iris_malloc(b->iris, rma->slot_bytes, (void **)&rma->src);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, rma->slot_bytes * (size_t)rma->num_slots,
                             (void **)&rma->dst);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, sizeof *rma->sum, (void **)&rma->sum);
    }
    return status;
}

static void rma_close(struct bench *b)
{
    struct rma *rma = b->state;

    if (rma == NULL) {
        return;
    }
    if (iris_free(b->iris, rma->sum) == IRIS_OK &&
        iris_free(b->iris, rma->dst) == IRIS_OK) {
        iris_free(b->iris, rma->src);
    }
    free(rma->host);
    free(rma);
}

/* Element i of a rank's source is this value plus i. */
static uint64_t base_of(const struct rma *rma, int rank)
{
    return ((uint64_t)rank + 1) << 48 | (uint64_t)rma->round << 32;
}

static iris_status_t fill_rma(struct bench *b, size_t bytes)
{
    struct rma *rma = b->state;
    size_t count = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    const uint64_t zero = 0;
    iris_status_t status;

    rma->round++;
    for (size_t i = 0; i < count; i++) {
        rma->host[i] = base_of(rma, b->rank) + i;
    }
    status = bench_copy(b, rma->src, rma->host, bytes);
    for (int slot = 0; slot < rma->num_slots && status == IRIS_OK; slot++) {
        status = iris_memset(b->iris, rma->dst + (size_t)slot * rma->slot_bytes,
                             UNTOUCHED, bytes + GUARD_BYTES, NULL);
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, rma->sum, &zero, sizeof zero);
    }
    return status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
}

/* The rank whose source must be in a slot of this rank's destination; -1: no
 * rank. */
static int rma_source_of(const struct bench *b, enum direction direction,
                         int slot)
{
    int before = (b->rank + b->num_ranks - 1) % b->num_ranks;

    switch (direction) {
    case GET:
        return bench_is_peer(b, b->rank, slot) ? slot : -1;
    case COPY:
        return bench_is_peer(b, slot, before) ? before : -1;
    case STORE:
    case PUT:
        return bench_is_peer(b, slot, b->rank) ? slot : -1;
    default:
        return -1;
    }
}

/* Checks that a slot has the data of rank `source`, and that the bytes behind
 * it are untouched. */
static iris_status_t check_slot(struct bench *b, const struct rma_point *point,
                                int slot, int source, uint64_t *wrong_p)
{
    struct rma *rma = b->state;
    size_t place = rma->num_slots == 1 ? 0 : (size_t)slot, i;
    size_t bytes = point->args.bytes;
    const unsigned char *got = (const unsigned char *)rma->host;
    iris_status_t status = bench_copy(
        b, rma->host, rma->dst + place * rma->slot_bytes, bytes + GUARD_BYTES);

    for (i = 0; i < bytes && status == IRIS_OK; i += sizeof(uint64_t)) {
        uint64_t want = base_of(rma, source) + i / sizeof(uint64_t);
        size_t left = bytes - i < sizeof want ? bytes - i : sizeof want;

        *wrong_p += memcmp(got + i, &want, left) != 0;
    }
    for (i = bytes; i < bytes + GUARD_BYTES && status == IRIS_OK; i++) {
        *wrong_p += got[i] != UNTOUCHED;
    }
    return status;
}

static iris_status_t check_sum(struct bench *b, const struct rma_point *point,
                               uint64_t *wrong_p)
{
    struct rma *rma = b->state;
    uint64_t count = point->args.bytes / sizeof(uint64_t);
    uint64_t want = 0, got;
    iris_status_t status = bench_copy(b, &got, rma->sum, sizeof got);

    for (int rank = 0; rank < b->num_ranks; rank++) {
        if (bench_is_peer(b, b->rank, rank)) {
            want += count * base_of(rma, rank) + count * (count - 1) / 2;
        }
    }
    *wrong_p += status == IRIS_OK && got != want;
    return status;
}

static iris_status_t launch_rma(struct bench *b, const struct rma_point *point,
                                uint32_t reps, int reference)
{
    struct rma_args args = point->args;

    args.reps = reps;
    return iris_launch(b->iris,
                       reference ? point->op->reference : point->op->kernel,
                       point->grid, b->options.block, &args, sizeof args, NULL);
}

static iris_status_t enqueue_rma(struct bench *b, const void *arg)
{
    return launch_rma(b, arg, 1, false);
}

static iris_status_t run_rma(struct bench *b, const void *arg, uint32_t reps,
                             int reference)
{
    const struct rma_point *point = arg;
    iris_status_t status;

    if (point->args.num_peers == 0) {
        return IRIS_OK;
    }
    if (point->launches) {
        return bench_enqueue(b, enqueue_rma, point, reps);
    }
    status = launch_rma(b, point, reps, reference);
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}

/* Runs the operation once and checks every byte. */
static iris_status_t verify_rma(struct bench *b, struct rma_point *point,
                                uint64_t *wrong_p)
{
    struct rma *rma = b->state;
    iris_status_t status = fill_rma(b, point->args.bytes);

    point->args.base = base_of(rma, b->rank);
    if (status == IRIS_OK) {
        status = run_rma(b, point, 1, false);
    }
    if (status == IRIS_OK) {
        status = iris_barrier(b->iris, NULL, NULL);
    }
    if (status == IRIS_OK && point->op->direction == LOAD) {
        status = check_sum(b, point, wrong_p);
    }
    for (int slot = 0; slot < b->num_ranks && status == IRIS_OK; slot++) {
        int source = rma_source_of(b, point->op->direction, slot);

        if (source >= 0) {
            status = check_slot(b, point, slot, source, wrong_p);
        }
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

/* Measures a point. `point` has the operation, the grid, and the way to launch
 * it. */
static iris_status_t run_point(struct bench *b, struct rma_point *point,
                               struct bench_row *row_p)
{
    struct rma *rma = b->state;
    struct bench_peers peers = bench_peers_of(b, b->rank);
    bool on_cpu = iris_stream_native(b->iris, NULL) == NULL;
    struct bench_work work = {.run = run_rma, .arg = point};
    iris_status_t status;

    if (b->options.pairs == BENCH_ALL && b->num_ranks > 1) {
        work.per_rep = (uint32_t)b->num_ranks - 1;
    }
    /* A GPU has no memcpy to compare bulk copies with, and heaps of other nodes
     * have no address. */
    work.references = point->op->reference != NULL &&
                      iris_num_nodes(b->iris) == 1 &&
                      (on_cpu || row_p->group == bench_lanes.name);
    point->args = (struct rma_args){
        .context = iris_device_context(b->iris),
        .src = (uint64_t *)rma->src,
        .dst = (uint64_t *)rma->dst,
        .sum = rma->sum,
        .bytes = row_p->bytes,
        .slot_words =
            rma->num_slots == 1 ? 0 : rma->slot_bytes / sizeof(uint64_t),
        .slot_by_peer = point->op->direction == GET,
        .first_peer = peers.first,
        .num_peers = peers.count,
    };
    status = verify_rma(b, point, &row_p->wrong);
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    return status;
}

static iris_status_t run_lanes(struct bench *b, size_t op,
                               struct bench_row *row_p)
{
    struct rma_point point = {.op = &lane_ops[op], .grid = b->workgroups};
    iris_status_t status = run_point(b, &point, row_p);

    bench_rate_bytes(row_p, row_p->bytes,
                     row_p->reference_rate > 0 ? "plain" : NULL);
    return status;
}

static iris_status_t run_bulk(struct bench *b, size_t op,
                              struct bench_row *row_p)
{
    struct rma_point point = {.op = &bulk_ops[op], .grid = b->workgroups};
    iris_status_t status = run_point(b, &point, row_p);

    bench_rate_bytes(row_p, row_p->bytes,
                     row_p->reference_rate > 0 ? "memcpy" : NULL);
    return status;
}

static iris_status_t run_kernels(struct bench *b, size_t op,
                                 struct bench_row *row_p)
{
    struct rma_point point = {.op = &kernel_ops[op], .launches = true};
    size_t most = (size_t)iris_num_cus(b->iris);
    size_t grid = row_p->bytes / KERNEL_WG_BYTES;
    iris_status_t status;

    point.grid = (unsigned)(grid > most ? most : grid > 0 ? grid : 1);
    status = run_point(b, &point, row_p);
    bench_rate_bytes(row_p, row_p->bytes, NULL);
    return status;
}

static iris_status_t run_depths(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    struct rma_point point = {.op = &depth_ops[op], .grid = row_p->grid};
    const struct rma *rma = b->state;
    void *remote;
    iris_status_t status = iris_as_remote(
        b->iris, rma->dst, bench_peers_of(b, b->rank).first, &remote);

    status = status == IRIS_OK ? run_point(b, &point, row_p) : status;
    bench_rate_bytes(row_p, row_p->bytes, NULL);
    return status;
}

static const char *const lane_names[] = {"load", "store", "get",
                                         "put",  "copy",  NULL};
static const char *const bulk_names[] = {"wg_put", "wg_get", "wg_copy", NULL};
static const char *const kernel_names[] = {"kernel_put", "kernel_get", NULL};

static const char *const depth_names[] = {"put_d0",  "put_d4",  "put_d8",
                                          "put_d12", "get_d0",  "get_d4",
                                          "get_d8",  "get_d12", NULL};

const struct bench_group bench_lanes = {
    .name = "lanes",
    .text = "one 8-byte element a lane, in lane loops; plain: the same loop "
            "over iris_dev_as_remote() pointers",
    .ops = lane_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = sizeof(uint64_t),
    .open = rma_open,
    .run = run_lanes,
    .close = rma_close,
};

const struct bench_group bench_bulk = {
    .name = "bulk",
    .text = "iris_wg_put, iris_wg_get, iris_wg_copy; memcpy: between the same "
            "buffers, by the same threads",
    .ops = bulk_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 1,
    .open = rma_open,
    .run = run_bulk,
    .close = rma_close,
};

const struct bench_group bench_kernels = {
    .name = "kernels",
    .text = "a kernel that does one bulk copy, each operation a launch; its "
            "grid grows with the bytes, up to the compute units",
    .ops = kernel_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 1,
    .open = rma_open,
    .run = run_kernels,
    .close = rma_close,
};

const struct bench_group bench_depth = {
    .name = "depth",
    .text = "one bulk copy of the largest size by ever more workgroups, whose "
            "lanes load 0 (no rounds), 4, 8 or 12 words ahead; GPUs differ",
    .ops = depth_names,
    .axis = BENCH_BY_GRID,
    .min_bytes = 1,
    .open = rma_open,
    .run = run_depths,
    .close = rma_close,
};
