/* SPDX-License-Identifier: MIT
 *
 * What tests/check/run_replay.sh runs under schedules: a message without its
 * release, among other work, and the same with it.
 *
 *     replay BUG RANKS [FILE]
 *
 * Exit status: 0; 3 if a rank read an old value, 4 if Iris returned an error.
 * "fickle" does so only while it can remove a letter from the end of FILE.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUM_WORDS 8
#define SYS IRIS_SCOPE_SYSTEM

struct replay_args {
    const int64_t *context;
    uint64_t *inbox;
    uint64_t *flag;
    uint64_t *counts;
    int is_right;
};

static atomic_int num_old;

/* Rank 0 sends, rank 1 receives; all ranks count, which does not matter. */
IRIS_KERNEL(send_message, struct replay_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int i = 0; i < NUM_WORDS; i++) {
        iris_atomic_add(dev, &args->counts[i], 1, 0, IRIS_RELAXED, SYS);
    }
    if (dev.rank == 0) {
        iris_store(dev, args->inbox, 7, 1);      /* data */
        iris_atomic_store(dev, args->flag, 1, 1, /* flag */
                          args->is_right ? IRIS_RELEASE : IRIS_RELAXED, SYS);
    } else if (dev.rank == 1) {
        iris_wait_until(dev, args->flag, IRIS_CMP_EQ, 1); /* wait */
        if (iris_load(dev, args->inbox, 1) != 7) {        /* old */
            atomic_fetch_add(&num_old, 1);
        }
    }
    for (int i = 0; i < NUM_WORDS; i++) {
        iris_atomic_add(dev, &args->counts[i], 1, 0, IRIS_RELAXED, SYS);
    }
}

static void *allocate(iris_t *iris, const char *name)
{
    void *memory = NULL;

    if (iris_calloc(iris, NUM_WORDS, sizeof(uint64_t), &memory) != IRIS_OK ||
        iris_name(iris, memory, name) != IRIS_OK) {
        exit(4);
    }
    return memory;
}

static int run_rank(iris_t *iris, void *arg)
{
    struct replay_args args = {.is_right = *(const int *)arg,
                               .context = iris_device_context(iris)};

    args.inbox = allocate(iris, "inbox");
    args.flag = allocate(iris, "flag");
    args.counts = allocate(iris, "counts");
    return iris_launch(iris, send_message, 1, 64, &args, sizeof args, NULL) ==
                       IRIS_OK &&
                   iris_stream_synchronize(iris, NULL) == IRIS_OK
               ? 0
               : 1;
}

/* Whether FILE had a letter left. */
static int take_letter(const char *path)
{
    FILE *file = fopen(path, "r");
    long size;

    if (file == NULL) {
        return 0;
    }
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    fclose(file);
    return size > 0 && truncate(path, size - 1) == 0;
}

int main(int argc, char **argv)
{
    int is_right = argc > 1 && strcmp(argv[1], "right") == 0;

    if (argc < 3 ||
        iris_spawn(NULL, atoi(argv[2]), run_rank, &is_right) != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
        return 4;
    }
    if (strcmp(argv[1], "fickle") == 0 && !take_letter(argv[3])) {
        return 0;
    }
    if (atomic_load(&num_old) != 0) {
        printf("rank 1 read an old value\n");
        return 3;
    }
    return 0;
}
