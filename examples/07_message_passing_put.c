/* SPDX-License-Identifier: MIT
 *
 * Message passing with a workgroup's put and signals that count: each rank puts
 * into an inbox on the next rank, message after message, and checks its own.
 */
#include "example.h"

static const char title[] = "Messages by put: each rank to the next, one round";

/* Messages of one launch. */
#define ROUNDS 20

/* All symmetric; the arrays after `wrong` have one element for each tile. */
struct message_args {
    const int64_t *context;
    uint32_t *outbox, *inbox;
    uint32_t *wrong;   /* counts values that were not as expected */
    uint64_t *arrived; /* signal: messages in this rank's inbox so far */
    uint64_t *read;    /* signal: messages the next rank has read so far */
    uint64_t *done;    /* messages this rank has sent and read so far */
    size_t count;
};

/* Counts only grow, so nothing is ever reset: message n may be put once message
 * n - 1 has been read. iris_wg_put_signal() copies with all lanes, meets in a
 * barrier, and sets the signal with a release: a rank that sees n also sees the
 * message. */
IRIS_DEVICE void send_tile(iris_wg_t wg, iris_dev_t dev,
                           const struct message_args *args, size_t tile,
                           uint64_t n)
{
    int next = (dev.rank + 1) % dev.num_ranks;
    size_t first = tile * EXAMPLE_TILE;
    size_t count = example_tile_count(args->count, tile);
    uint32_t *outbox = args->outbox;

    IRIS_WG_LANES (wg, i, count) {
        outbox[first + i] = example_value(dev.rank, first + i, (int)n);
    }
    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, &args->read[tile], IRIS_CMP_GE, n - 1);
    }
    iris_wg_barrier(wg);
    iris_wg_put_signal(wg, dev, &outbox[first], &args->inbox[first],
                       count * sizeof *outbox, &args->arrived[tile], n, next);
}

IRIS_DEVICE void receive(iris_wg_t wg, iris_dev_t dev,
                         const struct message_args *args, size_t tile,
                         uint64_t n)
{
    int previous = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;
    size_t first = tile * EXAMPLE_TILE;
    const uint32_t *inbox = args->inbox;
    uint32_t wrong = 0;

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, &args->arrived[tile], IRIS_CMP_GE, n);
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, example_tile_count(args->count, tile)) {
        wrong += inbox[first + i] != example_value(previous, first + i, (int)n);
    }
    if (wrong != 0) {
        (void)iris_atomic_add(dev, args->wrong, wrong, dev.rank, IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        args->done[tile] = n;
        iris_signal_set(dev, &args->read[tile], n, previous);
    }
    iris_wg_barrier(wg);
}

/* Workgroup w of each rank has the same tiles, and sends before it receives, so
 * it waits only for workgroups of the same number: those run or have run. */
IRIS_KERNEL(pass_messages, struct message_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    size_t tiles = example_tiles(args->count);

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t tile = wg.id; tile < tiles; tile += wg.num_wgs) {
            send_tile(wg, dev, args, tile, args->done[tile] + 1);
        }
        for (size_t tile = wg.id; tile < tiles; tile += wg.num_wgs) {
            receive(wg, dev, args, tile, args->done[tile] + 1);
        }
    }
}

/* One row of the table: the time of a round. */
static int measure(iris_t *iris, const struct example_options *options,
                   struct message_args *args, const struct example_table *table,
                   int row)
{
    double seconds;
    int ret;

    if ((ret = example_time_together(iris, options, pass_messages, args,
                                     sizeof *args, NULL, &seconds)) != 0 ||
        (ret = example_check(iris, "number of wrong values", args->wrong, 1,
                             example_zero, 0, 0)) != 0) {
        return ret;
    }
    return example_record(iris, table, row, iris_rank(iris), seconds / ROUNDS);
}

static int run(iris_t *iris, void *arg)
{
    const struct example_options *options = arg;
    struct message_args args = {.context = iris_device_context(iris)};
    size_t sizes[EXAMPLE_MAX_SIZES];
    int num_sizes = example_sizes(options->bytes, sizes);
    size_t tiles = example_tiles(options->bytes / sizeof(uint32_t));
    struct example_table table;
    void *boxes, *wrong, *counts;
    int ret = 0;

    if ((ret = iris_calloc(iris, 2, options->bytes, &boxes)) != 0 ||
        (ret = iris_calloc(iris, 1, sizeof(uint32_t), &wrong)) != 0 ||
        (ret = iris_calloc(iris, 3 * tiles, sizeof(uint64_t), &counts)) != 0 ||
        (ret = example_table_create(iris, num_sizes, iris_num_ranks(iris),
                                    &table)) != 0) {
        return ret;
    }
    args.outbox = boxes;
    args.inbox = args.outbox + options->bytes / sizeof(uint32_t);
    args.wrong = wrong;
    args.arrived = counts;
    args.read = args.arrived + tiles;
    args.done = args.read + tiles;

    for (int row = 0; ret == 0 && row < num_sizes; row++) {
        args.count = sizes[row] / sizeof(uint32_t);
        ret = measure(iris, options, &args, &table, row);
    }
    if (ret != 0 ||
        (ret = example_print_times(iris, &table, title, sizes)) != 0 ||
        (ret = iris_free(iris, counts)) != 0 ||
        (ret = iris_free(iris, wrong)) != 0 ||
        (ret = iris_free(iris, boxes)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1 << 20, .iterations = 10};

    example_options(argc, argv,
                    "Each rank passes messages to the next by put and signal; "
                    "prints times by size.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
