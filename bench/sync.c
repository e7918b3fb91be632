/* SPDX-License-Identifier: MIT
 *
 * Measures signals back and forth, and barriers of all ranks: on the host, on
 * the stream, and inside one kernel.
 */
#include "config.h"

#include <iris/device.h>

#include "bench.h"

#include <stdlib.h>

#define CHECK_ROUNDS 20
#define MAX_ENQUEUED 1000

/* The latency of a word of GPU memory depends on its address. So signals use
 * PLACES places, one after the other, batch by batch. */
#define PLACES 16
#define PLACE_WORDS ((size_t)8720)

enum { PINGPONG, FLAG, HOST_BARRIER, DEVICE_BARRIER, KERNEL_BARRIER };

static const char *const sync_names[] = {
    "pingpong", "flag", "barrier", "device_barrier", "kernel_barrier", NULL};

/* All pointers are into the heap. */
struct sync {
    uint64_t *signal;
    uint64_t *slots; /* the round that each rank last announced */
    uint64_t *wrong;
    uint64_t turns; /* signals sent so far; the same on both ends */
    size_t place;   /* place of the current signal */
};

struct pingpong_args {
    const int64_t *context;
    uint64_t *signal;
    uint64_t from; /* value of the signal before the first turn */
    uint32_t turns;
    int32_t peer;
    int32_t answers; /* 1: wait before each signal */
    int32_t relaxed; /* 1: send a flag alone, which orders nothing before it */
};

IRIS_KERNEL(sync_pingpong, struct pingpong_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t end = args->from + args->turns;

    if (!iris_wg_leader(wg)) {
        return;
    }
    for (uint64_t turn = args->from + 1; turn <= end; turn++) {
        if (args->answers) {
            iris_wait_until(dev, args->signal, IRIS_CMP_GE, turn);
        }
        if (args->relaxed) {
            iris_atomic_store(dev, args->signal, turn, args->peer, IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
        } else {
            iris_signal_set(dev, args->signal, turn, args->peer);
        }
        if (!args->answers) {
            iris_wait_until(dev, args->signal, IRIS_CMP_GE, turn);
        }
    }
}

struct barrier_args {
    const int64_t *context;
    struct iris_dev_group *group;
    uint32_t reps;
};

IRIS_KERNEL(sync_barriers, struct barrier_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint32_t i = 0; i < args->reps; i++) {
        iris_dev_barrier(wg, dev, args->group);
    }
}

struct mark_args {
    const int64_t *context;
    struct iris_dev_group *group; /* NULL: no barrier between the two halves */
    uint64_t *slots;
    uint64_t *wrong;
    uint64_t round;
    int32_t announce;
    int32_t check;
};

/* Announces a round to every rank, and counts the ranks whose announcement has
 * not arrived. Accesses are plain, because the barrier in between must order
 * them. */
IRIS_KERNEL(sync_mark, struct mark_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    size_t num_ranks = (size_t)dev.num_ranks;
    uint64_t wrong = 0;

    if (args->announce) {
        IRIS_WG_LANES (wg, i, num_ranks)
            iris_store(dev, &args->slots[dev.rank], args->round, (int)i);
    }
    if (args->group != NULL) {
        iris_wg_barrier(wg);
        iris_dev_barrier(wg, dev, args->group);
    }
    if (args->check) {
        IRIS_WG_LANES (wg, i, num_ranks)
            wrong += iris_load(dev, &args->slots[i], dev.rank) != args->round;
        iris_atomic_add(dev, args->wrong, wrong, dev.rank, IRIS_RELAXED,
                        IRIS_SCOPE_AGENT);
    }
}

static iris_status_t sync_open(struct bench *b)
{
    struct sync *sync = calloc(1, sizeof *sync);
    iris_status_t status;

    if (sync == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = sync;
    status = iris_calloc(b->iris, PLACES * PLACE_WORDS, sizeof *sync->signal,
                         (void **)&sync->signal);
    if (status == IRIS_OK) {
        status = iris_calloc(b->iris, (size_t)b->num_ranks, sizeof *sync->slots,
                             (void **)&sync->slots);
    }
    if (status == IRIS_OK) {
        status =
            iris_calloc(b->iris, 1, sizeof *sync->wrong, (void **)&sync->wrong);
    }
    return status;
}

static void sync_close(struct bench *b)
{
    struct sync *sync = b->state;

    if (sync != NULL && iris_free(b->iris, sync->wrong) == IRIS_OK &&
        iris_free(b->iris, sync->slots) == IRIS_OK) {
        iris_free(b->iris, sync->signal);
    }
    free(sync);
}

/* The rank's partner: 0 and 1 are partners, and so on. A rank left over is its
 * own partner. */
static int partner_of(const struct bench *b)
{
    int partner = b->rank ^ 1;

    if (partner >= b->num_ranks ||
        (b->options.pairs == BENCH_ONE && b->rank > 1)) {
        return b->rank;
    }
    return partner;
}

/* The argument of a ping-pong that uses flags. */
static const char flag_relaxed = 1;

static iris_status_t run_pingpong(struct bench *b, const void *arg,
                                  uint32_t reps, int reference)
{
    struct sync *sync = b->state;
    struct pingpong_args args = {
        .context = iris_device_context(b->iris),
        .from = sync->turns,
        .turns = reps,
        .peer = partner_of(b),
        .answers = b->rank & 1,
        .relaxed = arg == &flag_relaxed,
    };
    iris_status_t status;

    (void)reference;
    if (args.peer == b->rank) {
        return IRIS_OK;
    }
    sync->place = (sync->place + PLACE_WORDS) % (PLACES * PLACE_WORDS);
    args.signal = &sync->signal[sync->place];
    sync->turns += reps;
    status =
        iris_launch(b->iris, sync_pingpong, 1, 1, &args, sizeof args, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}

static iris_status_t run_host_barrier(struct bench *b, const void *arg,
                                      uint32_t reps, int reference)
{
    iris_status_t status = IRIS_OK;

    (void)arg, (void)reference;
    while (reps-- != 0 && status == IRIS_OK) {
        status = iris_barrier(b->iris, NULL, NULL);
    }
    return status;
}

static iris_status_t enqueue_barrier(struct bench *b, const void *arg)
{
    (void)arg;
    return iris_device_barrier(b->iris, NULL, NULL);
}

static iris_status_t run_device_barrier(struct bench *b, const void *arg,
                                        uint32_t reps, int reference)
{
    (void)reference;
    return bench_enqueue(b, enqueue_barrier, arg, reps);
}

static iris_status_t run_kernel_barrier(struct bench *b, const void *arg,
                                        uint32_t reps, int reference)
{
    struct barrier_args args = {
        .context = iris_device_context(b->iris),
        .group = iris_group_device(b->iris, NULL),
        .reps = reps,
    };
    iris_status_t status = iris_launch(
        b->iris, sync_barriers, 1, b->options.block, &args, sizeof args, NULL);

    (void)arg, (void)reference;
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}

static iris_status_t mark_turn(struct bench *b, struct mark_args *args,
                               int announce, int check)
{
    args->announce = announce;
    args->check = check;
    return iris_launch(b->iris, sync_mark, 1, b->options.block, args,
                       sizeof *args, NULL);
}

/* The barrier of `op`, which is between two calls of mark(). */
static iris_status_t run_barrier(struct bench *b, size_t op)
{
    return op == DEVICE_BARRIER ? iris_device_barrier(b->iris, NULL, NULL)
                                : iris_barrier(b->iris, NULL, NULL);
}

/* Each round: announce, barrier, check, barrier. */
static iris_status_t verify_sync(struct bench *b, size_t op, uint64_t *wrong_p)
{
    struct sync *sync = b->state;
    struct mark_args args = {.context = iris_device_context(b->iris),
                             .slots = sync->slots,
                             .wrong = sync->wrong};
    iris_status_t status = IRIS_OK;

    for (uint64_t i = 1; i <= CHECK_ROUNDS && status == IRIS_OK; i++) {
        args.round = i << 8 | op;
        if (op == KERNEL_BARRIER) {
            args.group = iris_group_device(b->iris, NULL);
            status = mark_turn(b, &args, 1, 1);
        } else {
            status = mark_turn(b, &args, 1, 0);
            status = status == IRIS_OK ? run_barrier(b, op) : status;
            status = status == IRIS_OK ? mark_turn(b, &args, 0, 1) : status;
        }
        status = status == IRIS_OK ? run_barrier(b, op) : status;
    }
    if (status == IRIS_OK) {
        status = iris_barrier(b->iris, NULL, NULL);
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, wrong_p, sync->wrong, sizeof *wrong_p);
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

/* Checks on both ends that the last turn's signal has arrived. */
static iris_status_t verify_pingpong(struct bench *b, uint64_t *wrong_p)
{
    struct sync *sync = b->state;
    uint64_t last;
    iris_status_t status =
        bench_copy(b, &last, &sync->signal[sync->place], sizeof last);

    *wrong_p = status == IRIS_OK && last != sync->turns;
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_sync(struct bench *b, size_t op,
                              struct bench_row *row_p)
{
    static const struct bench_work works[] = {
        [PINGPONG] = {.run = run_pingpong, .per_rep = 2},
        [FLAG] = {.run = run_pingpong, .arg = &flag_relaxed, .per_rep = 2},
        [HOST_BARRIER] = {.run = run_host_barrier},
        [DEVICE_BARRIER] = {.run = run_device_barrier,
                            .max_reps = MAX_ENQUEUED},
        [KERNEL_BARRIER] = {.run = run_kernel_barrier},
    };
    iris_status_t status = IRIS_OK;

    if (op <= FLAG && b->num_ranks == 1) {
        return IRIS_OK;
    }
    if (op > FLAG) {
        status = verify_sync(b, op, &row_p->wrong);
    }
    if (status == IRIS_OK) {
        status = bench_measure(b, &works[op], row_p);
    }
    if (status == IRIS_OK && op <= FLAG) {
        status = verify_pingpong(b, &row_p->wrong);
    }
    return status;
}

const struct bench_group bench_sync = {
    .name = "sync",
    .text =
        "one way, ranks in pairs: pingpong, a signal, which releases; flag, "
        "relaxed; barriers of all ranks, each: on the host, enqueued on "
        "the stream, in one kernel",
    .ops = sync_names,
    .axis = BENCH_ONCE,
    .open = sync_open,
    .run = run_sync,
    .close = sync_close,
};
