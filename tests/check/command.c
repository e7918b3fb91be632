/* SPDX-License-Identifier: MIT
 *
 * A double buffer whose sender waits for no credit: `command bug`; `command right`
 * is its correct twin. `command fails` ends with status 3, `command stale` reads an
 * old value under some seeds of the weak mode. Of tests/check/run_command.sh.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <string.h>

#define ROUNDS 4

struct args {
    const int64_t *context;
    int32_t *slots; /* two */
    uint64_t *flag;
    uint64_t *credit;
    int32_t *result;
    int waits;    /* the sender waits for a credit */
    int releases; /* its flag does */
};

IRIS_KERNEL(stream_rounds, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (dev.rank == 0) {
            if (args->waits && round > 2) {
                iris_wait_until(dev, args->credit, IRIS_CMP_GE, round - 2);
            }
            iris_store(dev, &args->slots[round % 2], (int)round, 1); /* put */
            iris_atomic_store(dev, args->flag, round, 1,
                              args->releases ? IRIS_RELEASE : IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
        } else if (dev.rank == 1) {
            iris_wait_until(dev, args->flag, IRIS_CMP_GE, round);
            *args->result +=
                iris_load(dev, &args->slots[round % 2], 1); /* use */
            iris_signal_set(dev, args->credit, round, 0);
        }
    }
}

static int run(iris_t *iris, void *arg)
{
    const char *kind = arg;
    struct args args = {.waits = strcmp(kind, "bug") != 0,
                        .releases = strcmp(kind, "stale") != 0};
    void *slots, *flags;
    int32_t result = 0;

    if (iris_calloc(iris, 1, 64, &slots) != IRIS_OK ||
        iris_calloc(iris, 1, 256, &flags) != IRIS_OK) {
        return 1;
    }
    args.context = iris_device_context(iris);
    args.slots = slots;
    args.flag = flags;
    args.credit = (uint64_t *)flags + 16;
    args.result = &result;
    if (iris_launch(iris, stream_rounds, 1, 64, &args, sizeof args, NULL) !=
            IRIS_OK ||
        iris_stream_synchronize(iris, NULL) != IRIS_OK) {
        return 1;
    }
    return strcmp(kind, "stale") == 0 && iris_rank(iris) == 1 &&
           result != ROUNDS * (ROUNDS + 1) / 2;
}

int main(int argc, char **argv)
{
    static char right[] = "right";
    char *kind = argc > 1 ? argv[1] : right;
    iris_status_t status = iris_spawn(NULL, 0, run, kind);

    return strcmp(kind, "fails") == 0 ? 3 : status != IRIS_OK;
}
