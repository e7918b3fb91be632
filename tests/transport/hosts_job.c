/* SPDX-License-Identifier: MIT
 *
 * A job for hosts.sh: hosts_job ROUNDS. Each round a kernel puts a value to
 * every rank, and all meet. With 0 rounds it runs until a call fails, prints
 * why, and exits with 0. The rank IRIS_TEST_WRONG puts wrong values. After the
 * first round, a kernel of rank IRIS_TEST_HANG waits for a signal that no rank
 * sends.
 */

#include <iris/device.h>
#include <iris/iris.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct job_args {
    const int64_t *context;
    uint64_t *words; /* symmetric, one of each rank */
    uint64_t value;
};

IRIS_KERNEL(put_to_all, struct job_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    (void)wg;
    for (int rank = 0; rank < dev.num_ranks; rank++) {
        iris_store(dev, &args->words[dev.rank], args->value, rank);
    }
}

IRIS_KERNEL(wait_for_nobody, struct job_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    (void)wg;
    (void)iris_wait_until(dev, args->words, IRIS_CMP_GE, args->value);
}

/* Whether this rank's number is in the variable. */
static int is_named(const iris_t *iris, const char *variable)
{
    const char *number = getenv(variable);

    return number != NULL && atoi(number) == iris_rank(iris);
}

static iris_status_t hang(iris_t *iris, uint64_t *words)
{
    struct job_args args = {iris_device_context(iris), words, UINT64_MAX};
    iris_status_t status =
        iris_launch(iris, wait_for_nobody, 1, 1, &args, sizeof args, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

static iris_status_t play_round(iris_t *iris, uint64_t *words, uint64_t round,
                                int *wrong_p)
{
    struct job_args args = {iris_device_context(iris), words,
                            1000 * round + (uint64_t)iris_rank(iris) +
                                (uint64_t)is_named(iris, "IRIS_TEST_WRONG")};
    iris_status_t status =
        iris_launch(iris, put_to_all, 1, 1, &args, sizeof args, NULL);

    status = status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
    status = status == IRIS_OK ? iris_barrier(iris, NULL, NULL) : status;
    for (int rank = 0; status == IRIS_OK && rank < iris_num_ranks(iris);
         rank++) {
        *wrong_p += words[rank] != 1000 * round + (uint64_t)rank;
    }
    return status == IRIS_OK ? iris_barrier(iris, NULL, NULL) : status;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    iris_status_t status;
    uint64_t *words;
    iris_t *iris;
    int wrong = 0, rank;

    if (iris_init(NULL, &iris) != IRIS_OK) {
        printf("init: %s\n", iris_last_error());
        return 1;
    }
    rank = iris_rank(iris);
    status = iris_malloc(iris, 64 * sizeof *words, (void **)&words);
    for (long round = 1; status == IRIS_OK && (rounds == 0 || round <= rounds);
         round++) {
        status = play_round(iris, words, (uint64_t)round, &wrong);
        if (round == 1) {
            printf("rank %d is pid %ld on node %d of %d\n", rank,
                   (long)getpid(), iris_node(iris), iris_num_nodes(iris));
            fflush(stdout);
            status = status == IRIS_OK && is_named(iris, "IRIS_TEST_HANG")
                         ? hang(iris, words)
                         : status;
        }
    }
    if (status != IRIS_OK) {
        printf("rank %d: %s: %s\n", rank, iris_status_string(status),
               iris_last_error());
    } else {
        printf("rank %d: %d wrong\n", rank, wrong);
    }
    iris_finalize(iris);
    return rounds == 0 ? status == IRIS_OK : status != IRIS_OK || wrong != 0;
}
