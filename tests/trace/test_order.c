/* SPDX-License-Identifier: MIT
 *
 * iris trace order finds accesses without order in traces of GPUs and CPUs, says
 * what would order them, and is silent about the correct programs.
 */
#define IRIS_TRACE 1 /* before the device API */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 2
#define WORDS 64
#define BYTES (WORDS * sizeof(uint64_t))

/* Rank 0 sends to rank 1. */
enum order_bug {
    SIGNAL_AHEAD,
    NO_WAIT,
    NO_CREDIT,
    TWO_WRITERS,
    NO_WAIT_BEFORE, /* in the kernel before */
    NUM_BUGS
};

struct order_args {
    const int64_t *context;
    uint64_t *data; /* the sender's words, and the receiver's */
    uint64_t *flags;
    int bug;
    int wrong;
    int step; /* number of the launch */
};

/* The sender waits until the receiver's kernel runs, which is launched last: its puts
 * are behind both launches, and so are the receiver's loads. */
IRIS_DEVICE void order_send(iris_dev_t dev, iris_wg_t wg,
                            const struct order_args *a)
{
    uint64_t *flag = a->flags, *back = a->flags + 1;

    iris_signal_set(dev, &a->flags[2], 1, 1);
    (void)iris_wait_until_u64(dev, back, IRIS_CMP_GE, 1);
    if (a->bug == SIGNAL_AHEAD && a->wrong) {
        iris_signal_set(dev, flag, 1, 1);
    }
    iris_wg_put(wg, dev, a->data, a->data + WORDS, BYTES, 1);
    if (a->bug != SIGNAL_AHEAD || !a->wrong) {
        iris_signal_set(dev, flag, 1, 1);
    }
    if (a->bug == NO_CREDIT) {
        (void)iris_wait_until_u64(dev, back, IRIS_CMP_GE, a->wrong ? 2 : 3);
        iris_wg_put(wg, dev, a->data, a->data + WORDS, BYTES, 1);
        iris_signal_set(dev, flag, 2, 1);
    }
}

IRIS_DEVICE void order_receive(iris_dev_t dev, const struct order_args *a)
{
    uint64_t *flag = a->flags, *back = a->flags + 1;

    iris_signal_set(dev, back, 1, 0);
    if (a->bug != NO_WAIT || !a->wrong) {
        (void)iris_wait_until_u64(dev, flag, IRIS_CMP_GE, 1);
    }
    iris_signal_set(dev, back, 2, 0);
    if (a->bug == TWO_WRITERS && a->wrong) {
        iris_signal_set(dev, back, 3, 0);
        iris_store(dev, &a->data[WORDS], 1, 0);
    }
    (void)iris_load(dev, &a->data[WORDS], 1);
    if (a->bug == NO_CREDIT) {
        if (!a->wrong) { /* rank 0 might wait so long that it saw this */
            iris_signal_set(dev, back, 3, 0);
        }
        (void)iris_wait_until_u64(dev, flag, IRIS_CMP_GE, 2);
        (void)iris_load(dev, &a->data[WORDS], 1);
    }
}

/* The second kernel's other workgroup reads behind the first one's wait. */
IRIS_DEVICE void order_in_two(iris_dev_t dev, iris_wg_t wg,
                              const struct order_args *a)
{
    if (a->step == 1 && wg.id == 1) {
        (void)iris_load(dev, &a->data[WORDS], 1);
    } else if (a->step == 0 && wg.id == 0) {
        (void)iris_wait_until_u64(dev, &a->flags[2], IRIS_CMP_GE, 1);
        iris_signal_set(dev, &a->flags[1], 1, 0);
        if (!a->wrong) {
            (void)iris_wait_until_u64(dev, a->flags, IRIS_CMP_GE, 1);
        }
    }
}

IRIS_KERNEL(order_kernel, struct order_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (dev.rank == 1 && args->bug == NO_WAIT_BEFORE) {
        order_in_two(dev, wg, args);
    } else if (dev.rank == 0) {
        order_send(dev, wg, args);
        if (args->bug == TWO_WRITERS) {
            (void)iris_wait_until_u64(dev, args->flags + 1, IRIS_CMP_GE,
                                      args->wrong ? 3 : 2);
            iris_store(dev, &args->data[WORDS], 2, 0);
        }
    } else {
        order_receive(dev, args);
    }
}

static char path[400];

/* Launches the kernels of one rank after those of the other. */
static iris_status_t launch_order(iris_t *iris, struct order_args *args)
{
    int later = args->bug == NO_WAIT_BEFORE ? 0 : 1;
    iris_status_t status = IRIS_OK;
    char word = 0;

    for (int turn = 0; status == IRIS_OK && turn < RANKS; turn++) {
        int rank = turn == 0 ? 1 - later : later;
        int last = rank == 1 && later == 0;

        for (args->step = 0;
             status == IRIS_OK && rank == iris_rank(iris) && args->step <= last;
             args->step++) {
            status = iris_launch(iris, order_kernel, 1 + (unsigned)last, 1,
                                 args, sizeof *args, NULL);
        }
        status = status ? status : iris_broadcast(iris, &word, 1, rank, NULL);
    }
    return status;
}

static int record_order(iris_t *iris, void *arg)
{
    struct order_args args = *(const struct order_args *)arg;
    void *data, *flags;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_trace_enable(iris, 10000));
    CHECK_OK(iris_calloc(iris, 2, BYTES, &data));
    CHECK_OK(iris_name(iris, data, "inbox"));
    CHECK_OK(iris_calloc(iris, 3, sizeof(uint64_t), &flags));
    args.data = data;
    args.flags = flags;
    CHECK_OK(launch_order(iris, &args));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_trace_export(iris, path, 1));
    return 0;
}

/* What the command says of the program's trace; -1: it was not recorded. */
static int judge_order(int bug, int wrong, char *text, size_t bytes)
{
    struct order_args args = {.bug = bug, .wrong = wrong};
    char command[500];
    FILE *pipe;
    size_t got;

    snprintf(path, sizeof path, "%s/order.json", harness_folder());
    if (!harness_run(RANKS, record_order, &args)) {
        return -1;
    }
    snprintf(command, sizeof command, "./iris trace order %s 2>&1", path);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    got = fread(text, 1, bytes - 1, pipe);
    text[got] = '\0';
    return pclose(pipe);
}

static TEST(an_access_without_order_is_found_and_its_twin_is_silent)
{
    static const char *const advice[NUM_BUGS] = {
        [SIGNAL_AHEAD] = "set it behind the put",
        [NO_WAIT] = "wait for one ahead of the load",
        [NO_CREDIT] = "rank 1 may still read it: wait for its credit",
        [TWO_WRITERS] = "two write",
        [NO_WAIT_BEFORE] = "rank 0"};
    char text[8192];

    for (int bug = 0; bug < NUM_BUGS; bug++) {
        int ret = judge_order(bug, 1, text, sizeof text);

        if (ret == -1) {
            return;
        }
        print_message("%s", text);
        assert_int_not_equal(ret, 0);
        assert_non_null(strstr(text, advice[bug]));
        assert_non_null(strstr(text, "inbox"));
        ret = judge_order(bug, 0, text, sizeof text);
        print_message("%s", text);
        assert_int_equal(ret, 0);
    }
}

TEST_GROUP(unit);
