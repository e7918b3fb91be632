/* SPDX-License-Identifier: MIT
 *
 * Message passing with loads, stores and atomic flags: each rank fills an inbox
 * on the next rank, round after round, and checks its own.
 */
#include "example.h"

static const char title[] =
    "Messages by load and store: each rank to the next, one round";

/* Messages of one launch. */
#define ROUNDS 20

/* A flag's values: the state of its tile of the inbox. */
enum { EMPTY, FULL };

struct message_args {
    const int64_t *context;
    uint32_t *inbox; /* symmetric */
    uint32_t *flags; /* symmetric: one for each tile of the inbox */
    uint32_t *wrong; /* counts values that were not as expected */
    size_t count;
    uint64_t launch; /* from 1 */
};

/* Fills a tile of the next rank's inbox, then says that it is full. The release
 * keeps the stores before the flag: a rank that acquires the flag sees them. The
 * barrier puts all lanes' stores before it, not only the leader's.
 * The loop is for want of a wait for a peer's word: on a GPU nobody could end
 * it, should that peer die. Example 07 keeps that word at home. */
IRIS_DEVICE void send_tile(iris_wg_t wg, iris_dev_t dev,
                           const struct message_args *args, size_t tile,
                           int round)
{
    int next = (dev.rank + 1) % dev.num_ranks;
    size_t first = tile * EXAMPLE_TILE;
    uint32_t *inbox = args->inbox;

    if (iris_wg_leader(wg)) {
        while (iris_atomic_load(dev, &args->flags[tile], next, IRIS_ACQUIRE,
                                IRIS_SCOPE_SYSTEM) != EMPTY) {
        }
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, example_tile_count(args->count, tile)) {
        iris_store(dev, &inbox[first + i],
                   example_value(dev.rank, first + i, round), next);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        (void)iris_atomic_cas(dev, &args->flags[tile], EMPTY, FULL, next,
                              IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    }
}

/* Waits until a tile of this rank's inbox is full, checks it, gives it back. */
IRIS_DEVICE void receive(iris_wg_t wg, iris_dev_t dev,
                         const struct message_args *args, size_t tile,
                         int round)
{
    int previous = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;
    size_t first = tile * EXAMPLE_TILE;
    const uint32_t *inbox = args->inbox;
    uint32_t wrong = 0;

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, &args->flags[tile], IRIS_CMP_EQ, FULL);
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, example_tile_count(args->count, tile)) {
        wrong += iris_load(dev, &inbox[first + i], dev.rank) !=
                 example_value(previous, first + i, round);
    }
    if (wrong != 0) {
        (void)iris_atomic_add(dev, args->wrong, wrong, dev.rank, IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_atomic_store(dev, &args->flags[tile], EMPTY, dev.rank,
                          IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    }
}

/* Workgroup w of each rank has the same tiles, and sends before it receives, so
 * it waits only for workgroups of the same number: those run or have run. */
IRIS_KERNEL(pass_messages, struct message_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    size_t tiles = example_tiles(args->count);

    for (int step = 0; step < ROUNDS; step++) {
        int round = (int)args->launch * ROUNDS + step;

        for (size_t tile = wg.id; tile < tiles; tile += wg.num_wgs) {
            send_tile(wg, dev, args, tile, round);
        }
        for (size_t tile = wg.id; tile < tiles; tile += wg.num_wgs) {
            receive(wg, dev, args, tile, round);
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
                                     sizeof *args, &args->launch, &seconds)) !=
            0 ||
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
    void *inbox, *flags, *wrong;
    int ret;

    /* Flags begin as zero, which is EMPTY. */
    if ((ret = iris_malloc(iris, options->bytes, &inbox)) != 0 ||
        (ret = iris_calloc(iris, tiles, sizeof(uint32_t), &flags)) != 0 ||
        (ret = iris_calloc(iris, 1, sizeof(uint32_t), &wrong)) != 0 ||
        (ret = example_table_create(iris, num_sizes, iris_num_ranks(iris),
                                    &table)) != 0) {
        return ret;
    }
    args.inbox = inbox;
    args.flags = flags;
    args.wrong = wrong;

    for (int row = 0; ret == 0 && row < num_sizes; row++) {
        args.count = sizes[row] / sizeof(uint32_t);
        ret = measure(iris, options, &args, &table, row);
    }
    if (ret != 0 ||
        (ret = example_print_times(iris, &table, title, sizes)) != 0 ||
        (ret = iris_free(iris, wrong)) != 0 ||
        (ret = iris_free(iris, flags)) != 0 ||
        (ret = iris_free(iris, inbox)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1 << 20, .iterations = 10};

    example_options(argc, argv,
                    "Each rank passes messages to the next by load and store; "
                    "prints times by size.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
