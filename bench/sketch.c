/* SPDX-License-Identifier: MIT
 *
 * The least that an all_reduce of packets takes, in alternation with
 * iris_all_reduce(): one kernel over the peers' mapped memory, which compares no
 * calls, has no deadline, and stops for no peer that died.
 *
 * A packet is two words of 8 bytes; the upper half of each is the step, the lower
 * half data. A lane sends its packets to all peers, and waits for theirs. Two
 * sets of packets are used in turn: a rank sends for step s + 2 after it has
 * received all packets of step s + 1, which peers sent after reading those of s.
 */
#include "config.h"

#include "bench.h"

#include <iris/device.h>
#include <iris/device/core/vector.h>

#include <sched.h>
#include <stdlib.h>

#define MAX_RANKS 8
#define MAX_BYTES ((size_t)64 << 10)
#define PACKET_BYTES 8 /* of data; the packet has twice as many */
#define MAX_PACKETS (MAX_BYTES / PACKET_BYTES)
#define MAX_ENQUEUED 200
#define GRAPH_OPS 50

static const char *const names[] = {"sketch", NULL};

struct sketch_args {
    const float *in;
    float *out;
    uint64_t *steps;              /* one for each workgroup */
    uint64_t *packets[MAX_RANKS]; /* each rank's, as this rank maps them */
    uint64_t count;               /* packets of the call */
    uint32_t rank;
    uint32_t num_ranks;
};

/* Where packet i of a rank is among those of a step. */
IRIS_DEVICE iris_d_u64_t *sketch_at(const struct sketch_args *args,
                                    uint32_t receiver, uint64_t step,
                                    uint32_t sender, size_t i)
{
    size_t slot = (step & 1) * MAX_RANKS + sender;

    return (iris_d_u64_t *)args->packets[receiver] +
           2 * (slot * MAX_PACKETS + i);
}

/* Waits for packet i of all peers, whose loads are under way together. Nobody ends
 * the wait of a bare kernel: it ends after this many polls (some seconds) with wrong
 * values, and the program reports them. */
#define MOST_POLLS (1u << 24)

IRIS_DEVICE void sketch_receive(const struct sketch_args *args, uint64_t step,
                                size_t i, uint64_t data[MAX_RANKS][2])
{
    uint32_t polls = 0;
    iris_bool_t waits;

    do {
        waits = 0;
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < MAX_RANKS; k++) {
            data[k][0] = data[k][1] = step << 32;
            if (k < args->num_ranks && k != args->rank) {
                iris_d_load_pair(sketch_at(args, args->rank, step, k, i),
                                 &data[k][0], &data[k][1]);
            }
        }
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < MAX_RANKS; k++) {
            waits |= data[k][0] >> 32 != step || data[k][1] >> 32 != step;
        }
#if IRIS_ON_CPU
        if (waits) {
            (void)sched_yield(); /* the peer may need this core */
        }
#endif
    } while (waits && ++polls < MOST_POLLS);
}

union sketch_word {
    float number;
    uint32_t bits;
};

IRIS_KERNEL(sketch_all_reduce, struct sketch_args)
{
    uint64_t step = args->steps[wg.id] + 1, data[MAX_RANKS][2];
    union sketch_word own[2], other;
    float sums[2];

    IRIS_LANES (wg, i, args->count) {
        own[0].number = args->in[2 * i];
        own[1].number = args->in[2 * i + 1];
        for (uint32_t k = 1; k < args->num_ranks; k++) {
            uint32_t to = (args->rank + k) % args->num_ranks;

            iris_d_store_pair(sketch_at(args, to, step, args->rank, i),
                              step << 32 | own[0].bits,
                              step << 32 | own[1].bits);
        }
    }
    IRIS_LANES (wg, i, args->count) {
        sketch_receive(args, step, i, data);
        sums[0] = sums[1] = 0;
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < MAX_RANKS; k++) {
            for (int half = 0; half < 2 && k < args->num_ranks; half++) {
                other.bits = (uint32_t)data[k][half];
                sums[half] +=
                    k == args->rank ? args->in[2 * i + half] : other.number;
            }
        }
        args->out[2 * i] = sums[0];
        args->out[2 * i + 1] = sums[1];
    }
    iris_wg_barrier(wg); /* every lane has read the step */
    if (iris_wg_leader(wg)) {
        args->steps[wg.id] = step;
    }
}

/* On the heap: the buffers, a step for each workgroup, the packets of two steps. */
struct sketch {
    float in[MAX_BYTES / sizeof(float)], out[MAX_BYTES / sizeof(float)];
    uint64_t steps[MAX_PACKETS];
    uint64_t packets[2 * MAX_RANKS][MAX_PACKETS][2];
};

struct point {
    struct sketch_args args;
    unsigned grid;
    struct bench_ccl whole; /* the same call of the library */
};

static iris_status_t sketch_open(struct bench *b)
{
    iris_status_t status;

    b->state = NULL;
    status = iris_calloc(b->iris, 1, sizeof(struct sketch), &b->state);
    return status == IRIS_OK ? bench_ccl_prepare(b) : status;
}

static void sketch_close(struct bench *b)
{
    iris_free(b->iris, b->state);
}

static iris_status_t enqueue_sketch(struct bench *b, const void *arg)
{
    const struct point *p = arg;

    return iris_launch(b->iris, sketch_all_reduce, p->grid, b->options.block,
                       &p->args, sizeof p->args, NULL);
}

static iris_status_t enqueue_whole(struct bench *b, const void *arg)
{
    return bench_ccl_enqueue(b, &((const struct point *)arg)->whole);
}

static iris_status_t run_sketches(struct bench *b, const void *arg,
                                  uint32_t reps, int reference)
{
    return bench_enqueue(b, reference ? enqueue_whole : enqueue_sketch, arg,
                         reps);
}

/* Makes one call in each way, and checks `out`. */
static iris_status_t verify_sketch(struct bench *b, const struct point *p,
                                   int reference, uint64_t *wrong_p)
{
    void *host = malloc(MAX_BYTES);
    iris_status_t status =
        host == NULL ? IRIS_ERR_NO_MEMORY
                     : iris_memset(b->iris, p->args.out, 0xff, MAX_BYTES, NULL);

    status = status == IRIS_OK ? bench_ccl_fill(b, &p->whole, host) : status;
    status = status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
    status = status == IRIS_OK ? run_sketches(b, p, 1, reference) : status;
    status = status == IRIS_OK ? bench_ccl_check(b, &p->whole, host, wrong_p)
                               : status;
    free(host);
    return status;
}

/* Returns the number of ranks whose packets this rank can reach. */
static int make_point(const struct bench *b, size_t bytes, struct point *p_p)
{
    struct sketch *own = b->state;
    int reached = 0;

    *p_p = (struct point){.args = {.in = own->in,
                                   .out = own->out,
                                   .steps = own->steps,
                                   .count = bytes / PACKET_BYTES,
                                   .rank = (uint32_t)b->rank,
                                   .num_ranks = (uint32_t)b->num_ranks},
                          .whole = {.num_ranks = b->num_ranks,
                                    .op = BENCH_ALL_REDUCE,
                                    .count = bytes / sizeof(float),
                                    .dtype = IRIS_DTYPE_F32,
                                    .in = own->in,
                                    .out = own->out}};
    p_p->grid =
        (unsigned)((p_p->args.count + b->options.block - 1) / b->options.block);
    for (int rank = 0; rank < b->num_ranks && rank < MAX_RANKS; rank++) {
        reached += iris_as_remote(b->iris, own->packets, rank,
                                  (void **)&p_p->args.packets[rank]) == IRIS_OK;
    }
    return reached;
}

static iris_status_t run_sketch(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    struct bench_work work = {
        .run = run_sketches, .max_reps = MAX_ENQUEUED, .references = 1};
    struct point p;
    double is_left_out;
    iris_status_t status;

    (void)op;
    if (row_p->bytes > MAX_BYTES) {
        return IRIS_OK;
    }
    is_left_out = make_point(b, row_p->bytes, &p) < b->num_ranks;
    status = bench_max(b, &is_left_out, 1);
    if (status != IRIS_OK || is_left_out > 0) {
        return status;
    }
    for (int reference = 0; reference < 2 && status == IRIS_OK; reference++) {
        status = verify_sketch(b, &p, reference, &row_p->wrong);
    }
    status = status == IRIS_OK ? bench_sum(b, &row_p->wrong) : status;
    work.arg = &p;
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

const struct bench_group bench_sketch = {
    .name = "sketches",
    .text =
        "an all_reduce of f32 by one bare kernel of packets, up to 64K on at "
        "most 8 ranks of a node; the ratio is iris_all_reduce()'s time over "
        "its time",
    .ops = names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = PACKET_BYTES,
    .open = sketch_open,
    .run = run_sketch,
    .close = sketch_close,
};
