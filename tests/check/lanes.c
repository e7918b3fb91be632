/* SPDX-License-Identifier: MIT
 *
 * Races between the lanes of one workgroup, of programs that `iriscc --check`
 * compiles: arguments and names are as in threads.c. Of
 * tests/check/run_threads.sh.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 64

struct args {
    const int64_t *context;
    int number;
    int wrong;
    int32_t *x; /* 256 elements of the rank's heap: results begin at 128 */
    uint64_t *flag;
};

/* A case: `next` and `last` are the ranks next to this one. */
#define CASE(name)                                            \
    static void run_##name(                                   \
        IRIS_UNUSED iris_wg_t wg, IRIS_UNUSED iris_dev_t dev, \
        IRIS_UNUSED const struct args *a, int32_t *x, IRIS_UNUSED int next)
#define MEET_UNLESS_WRONG    \
    if (!a->wrong) {         \
        iris_wg_barrier(wg); \
    }

/* The leader signals for what all lanes have stored. */
CASE(signal_of_leader)
{
    IRIS_WG_LANES (wg, i, LANES) {
        iris_store(dev, &x[i], 7, next); /* bug signal_of_leader */
    }
    MEET_UNLESS_WRONG
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, a->flag, 1, next);
    }
    iris_wait_until(dev, a->flag, IRIS_CMP_EQ, 1);
    IRIS_WG_LANES (wg, i, LANES) {
        x[128 + i] = x[i]; /* bug signal_of_leader */
    }
}

/* The same by a lane of a loop, with ordinary stores. */
CASE(signal_of_lane)
{
    int32_t *there = iris_dev_as_remote(dev, x, next);

    IRIS_WG_LANES (wg, i, LANES) {
        there[i] = 7; /* bug signal_of_lane */
    }
    MEET_UNLESS_WRONG
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        if (lane == 0) {
            iris_signal_set(dev, a->flag, 1, next);
        }
    }
    iris_wait_until(dev, a->flag, IRIS_CMP_EQ, 1);
    IRIS_WG_LANES (wg, i, LANES) {
        x[128 + i] = x[i]; /* bug signal_of_lane */
    }
}

/* The leader reads what the others have written. */
CASE(sum_of_leader)
{
    IRIS_WG_LANES (wg, i, LANES) {
        x[i] = 1; /* bug sum_of_leader */
    }
    MEET_UNLESS_WRONG
    if (iris_wg_leader(wg)) {
        for (int i = 0; i < LANES; i++) {
            x[128] += x[i]; /* bug sum_of_leader */
        }
    }
}

/* Lane 0 of a loop does. */
CASE(lane_zero)
{
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        x[lane] = 1; /* bug lane_zero */
    }
    MEET_UNLESS_WRONG
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        if (lane == 0) {
            x[128] = x[33]; /* bug lane_zero */
        }
    }
}

/* All lanes read what lane 0 has written. */
CASE(value_of_lane_zero)
{
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        if (lane == 0) {
            x[0] = 7; /* bug value_of_lane_zero */
        }
    }
    MEET_UNLESS_WRONG
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        x[128 + lane] = x[0]; /* bug value_of_lane_zero */
    }
}

/* They do so in the same loop. */
CASE(same_loop)
{
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        if (lane == 0) {
            x[0] = 7; /* bug same_loop */
        }
        if (a->wrong) {
            x[128 + lane] = x[0]; /* bug same_loop */
        }
    }
}

/* Each lane reads its neighbour's element. */
CASE(neighbour)
{
    IRIS_WG_LANES (wg, i, LANES) {
        x[i] = (int32_t)i; /* bug neighbour */
    }
    MEET_UNLESS_WRONG
    IRIS_WG_LANES (wg, i, LANES) {
        x[128 + i] = x[(i + 1) % LANES]; /* bug neighbour */
    }
}

/* It moves the elements by one, in place. */
CASE(in_place)
{
    IRIS_WG_LANES (wg, i, LANES) {
        if (a->wrong) {
            x[i] = x[i + 1]; /* bug in_place */
        } else {
            x[128 + i] = x[i + 1];
        }
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, LANES) {
        if (!a->wrong) {
            x[i] = x[128 + i];
        }
    }
}

/* The workgroup copies what its lanes have just written. */
CASE(bulk_source)
{
    IRIS_WG_LANES (wg, i, LANES) {
        x[i] = 7; /* bug bulk_source */
    }
    MEET_UNLESS_WRONG
    iris_wg_put(wg, dev, x, &x[192], 4 * LANES, next); /* bug bulk_source */
}

/* A buffer is filled again while other lanes read it. */
CASE(filled_again)
{
    for (int round = 0; round < 3; round++) {
        IRIS_WG_LANES (wg, i, LANES) {
            x[i] = round; /* bug filled_again */
        }
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, LANES) {
            x[128 + i] += x[LANES - 1 - i]; /* bug filled_again */
        }
        MEET_UNLESS_WRONG
    }
}

/* The same element is the same lane's. */
CASE(clean_same_lane)
{
    IRIS_LANES (wg, i, LANES) {
        x[i] = 1;
    }
    IRIS_LANES (wg, i, LANES) {
        x[128 + i] = x[i];
    }
}

/* A loop that a jump ends; every lane stores and reads the same then. */
CASE(clean_jump)
{
    IRIS_WG_LANES (wg, i, LANES) {
        if (i == 9) {
            break;
        }
        x[i] = 1;
    }
    x[100] = 3;
    IRIS_WG_LANES (wg, i, LANES) {
        x[128 + i] = x[100];
    }
}

/* The last lane to count uses what the others wrote. */
CASE(clean_counter)
{
    IRIS_WG_LANES (wg, lane, wg.num_lanes) {
        uint64_t before;

        x[lane] = 1;
        before = iris_atomic_add(dev, a->flag, 1, dev.rank, IRIS_ACQ_REL,
                                 IRIS_SCOPE_WG);
        if (before == wg.num_lanes - 1) {
            x[128] = x[3] + x[33];
        }
    }
}

CASE(clean_waves)
{
    IRIS_WG_LANES (wg, i, LANES) {
        x[i] = 1;
    }
    IRIS_WAVE_LANES(wg, i, LANES)
    {
        x[128 + i] = x[i];
    }
}

/* clang-format off */
#define CASES(X)                                                           \
    X(signal_of_leader) X(signal_of_lane) X(sum_of_leader) X(lane_zero)    \
    X(value_of_lane_zero) X(same_loop) X(neighbour) X(in_place)            \
    X(bulk_source) X(filled_again) X(clean_same_lane) X(clean_jump)        \
    X(clean_counter) X(clean_waves)
/* clang-format on */

#define ROW(name) #name,
static const char *const names[] = {CASES(ROW)};
#undef ROW
#define NUM_CASES ((int)(sizeof names / sizeof *names))

enum {
#define ROW(name) CASE_##name,
    CASES(ROW)
#undef ROW
};

IRIS_KERNEL(show, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int next = (dev.rank + 1) % dev.num_ranks;

    switch (args->number) {
#define ROW(name)                                 \
    case CASE_##name:                             \
        run_##name(wg, dev, args, args->x, next); \
        break;
        CASES(ROW)
#undef ROW
    default:
        break;
    }
}

static int run(iris_t *iris, void *arg)
{
    struct args args = *(const struct args *)arg;

    if (iris_calloc(iris, 1, 1024, (void **)&args.x) != IRIS_OK ||
        iris_calloc(iris, 1, 64, (void **)&args.flag) != IRIS_OK) {
        return 1;
    }
    args.context = iris_device_context(iris);
    return iris_launch(iris, show, 1, LANES, &args, sizeof args, NULL) !=
               IRIS_OK ||
           iris_stream_synchronize(iris, NULL) != IRIS_OK ||
           iris_barrier(iris, NULL, NULL) != IRIS_OK;
}

int main(int argc, char **argv)
{
    int ranks = argc > 3 ? atoi(argv[3]) : 2;
    struct args args = {.wrong = argc > 2 && atoi(argv[2]) != 0};
    iris_status_t status;

    while (args.number < NUM_CASES &&
           (argc < 2 || strcmp(names[args.number], argv[1]) != 0)) {
        if (argc < 2) {
            puts(names[args.number]);
        }
        args.number++;
    }
    if (args.number == NUM_CASES) {
        return argc < 2 ? 0 : 1;
    }
    status = iris_spawn(NULL, ranks, run, &args);
    return status == IRIS_OK ? 0 : status == IRIS_ERR_RACE ? 3 : 1;
}
