/* SPDX-License-Identifier: MIT
 *
 * Races by ordinary accesses, which `iriscc --check` has the compiler report:
 * `plain N` shows bug N at the lines that say so, `plain -N` is its correct
 * twin. Of tests/check/run_plain.sh.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <stdlib.h>
#include <string.h>

struct args {
    const int64_t *context;
    int bug;   /* from 1; of its twin, too */
    int wrong; /* 0: the twin */
    int32_t *data;
    uint64_t *flag;
    iris_stream_t *other;
};

static void signal_if(iris_dev_t dev, const struct args *args, int yes)
{
    if (yes) {
        iris_signal_set(dev, args->flag, 1, 1);
    }
}

/* Rank 0's side; `there` is rank 1's data. */
static void send(iris_dev_t dev, const struct args *args, int32_t *there)
{
    uint64_t *flag = iris_dev_as_remote(dev, args->flag, 1);

    switch (args->bug) {
    case 1: /* a signal ahead of its data */
        signal_if(dev, args, args->wrong);
        there[3] = 7; /* bug 1 */
        signal_if(dev, args, !args->wrong);
        break;
    case 2:           /* a flag of the program's own that releases nothing */
        there[3] = 7; /* bug 2 */
        if (args->wrong) {
            __atomic_store_n(flag, 1, __ATOMIC_RELAXED); /* bug 2 */
        } else {
            __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        }
        break;
    case 3: /* a bulk copy that is not covered */
        signal_if(dev, args, args->wrong);
        memcpy(there, args->data, 256); /* bug 3 */
        signal_if(dev, args, !args->wrong);
        break;
    case 4: /* two translated pointers to one place */
        there[args->wrong ? 5 : 6] = 1; /* bug 4 */
        break;
    case 5: /* an atomic and an ordinary access */
        __atomic_fetch_add(&there[3], 1, __ATOMIC_RELAXED); /* bug 5 */
        break;
    default:
        break;
    }
}

/* Rank 1's side. */
static void receive(iris_dev_t dev, const struct args *args, int32_t *here)
{
    switch (args->bug) {
    case 1:
    case 3:
        iris_wait_until(dev, args->flag, IRIS_CMP_EQ, 1);
        here[20] = here[3]; /* bug 1, bug 3 */
        break;
    case 2:
        while (__atomic_load_n(args->flag, __ATOMIC_ACQUIRE) == 0) {
        }
        here[20] = here[3]; /* bug 2 */
        break;
    case 4:
        here[5] = 2; /* bug 4 */
        break;
    case 5:
        if (args->wrong) {
            here[3] = 2; /* bug 5 */
        } else {
            __atomic_fetch_add(&here[3], 2, __ATOMIC_RELAXED);
        }
        break;
    default:
        here[20] = args->bug < 9 ? here[3] : 0; /* bug 6, bug 7, bug 8 */
        break;
    }
}

IRIS_KERNEL(access, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (dev.rank == 0) {
        send(dev, args, iris_dev_as_remote(dev, args->data, 1));
    } else if (dev.rank == 1) {
        receive(dev, args, iris_dev_as_remote(dev, args->data, 1));
    }
}

/* Arrays of the host, on its stack, which copies on a stream read or write. */
static int use_local(iris_t *iris, const struct args *args)
{
    volatile int32_t local[16] = {1};
    void *here = (void *)local, *there = &args->data[32];
    int is_put = args->bug == 9;
    iris_stream_t *on = args->other;
    iris_status_t status =
        is_put ? iris_put_on_stream(iris, there, here, 64, 1, on)  /* bug 9 */
               : iris_get_on_stream(iris, here, there, 64, 1, on); /* bug 10 */

    if (status == IRIS_OK && !args->wrong) {
        status = iris_stream_synchronize(iris, args->other);
    }
    if (is_put) {
        local[3] = 2; /* bug 9 */
    } else {
        local[4] = local[3] + 1; /* bug 10 */
    }
    return status != IRIS_OK ? status
                             : iris_stream_synchronize(iris, args->other);
}

/* Hosts: rank 1's own, and rank 0's by a pointer to rank 1's heap. */
static int use_early(iris_t *iris, const struct args *args)
{
    iris_status_t status = IRIS_OK;
    void *there = args->data;

    if (args->bug >= 9 && iris_rank(iris) == 0) {
        status = use_local(iris, args);
    } else if (args->bug == 6 && iris_rank(iris) == 1) {
        status = args->wrong ? IRIS_OK : iris_stream_synchronize(iris, NULL);
        args->data[20] = 2; /* bug 6 */
    } else if (args->bug == 8 && iris_rank(iris) == 1) {
        status =
            iris_stream_synchronize(iris, args->wrong ? args->other : NULL);
        args->data[20] += 1; /* bug 8 */
    } else if (args->bug == 7 && iris_rank(iris) == 0) {
        status = iris_as_remote(iris, args->data, 1, &there);
        if (status == IRIS_OK) {
            ((int32_t *)there)[args->wrong ? 3 : 4] = 1; /* bug 7 */
        }
    }
    return status == IRIS_OK ? 0 : 1;
}

static int run(iris_t *iris, void *arg)
{
    struct args args = *(const struct args *)arg;
    void *data, *flag;

    if (iris_calloc(iris, 1, 256, &data) != IRIS_OK ||
        iris_calloc(iris, 1, 64, &flag) != IRIS_OK) {
        return 1;
    }
    args.context = iris_device_context(iris);
    args.data = data;
    args.flag = flag;
    if (iris_stream_create(iris, &args.other) != IRIS_OK) {
        return 1;
    }
    args.data[3] = 1; /* orderly: the barrier is behind it */
    memset(&args.data[40], 1, 40);
    if (iris_barrier(iris, NULL, NULL) != IRIS_OK ||
        iris_launch(iris, access, 1, 64, &args, sizeof args, NULL) != IRIS_OK) {
        return 1;
    }
    if (use_early(iris, &args) != 0 ||
        iris_stream_synchronize(iris, NULL) != IRIS_OK) {
        return 1;
    }
    /* Here the weak mode shows the old value. */
    return args.bug == 2 && iris_rank(iris) == 1 && args.data[20] != 7;
}

int main(int argc, char **argv)
{
    int number = argc > 1 ? atoi(argv[1]) : 0;
    int ranks = argc > 2 ? atoi(argv[2]) : 2;
    struct args args = {.bug = abs(number), .wrong = number > 0};
    iris_status_t status = iris_spawn(NULL, ranks, run, &args);

    return status == IRIS_OK ? 0 : status == IRIS_ERR_RACE ? 3 : 1;
}
