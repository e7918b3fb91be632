/* SPDX-License-Identifier: MIT
 *
 * A program for trace.sh that moves a known number of bytes between two ranks:
 * moves KIND FILE, where KIND is puts, gets, stream or collectives. Both ranks
 * put; rank 0 alone gets and uses its stream.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <stdio.h>
#include <string.h>

#define PIECE 256 /* bytes */
#define PIECES 10

struct move_args {
    const int64_t *context;
    char *memory; /* from, to, and a signal */
    int is_get;
};

/* Every rank puts ten pieces, or rank 0 gets them, and a signal for all. */
IRIS_KERNEL(move, struct move_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int partner = (dev.rank + 1) % dev.num_ranks;
    uint64_t *signal = (uint64_t *)(args->memory + 2 * PIECES * PIECE);

    for (size_t i = 0; i < PIECES; i++) {
        char *from = args->memory + i * PIECE;
        char *to = from + PIECES * PIECE;

        if (args->is_get && dev.rank == 0) {
            iris_wg_get(wg, dev, from, to, PIECE, partner);
        } else if (!args->is_get) {
            iris_wg_put(wg, dev, from, to, PIECE, partner);
        }
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, signal, 1, partner);
        (void)iris_wait_until_u64(dev, signal, IRIS_CMP_EQ, 1);
    }
}

static iris_status_t move_in_kernel(iris_t *iris, char *memory, int is_get)
{
    struct move_args args = {iris_device_context(iris), memory, is_get};

    return iris_launch(iris, move, 1, 1, &args, sizeof args, NULL);
}

static iris_status_t move_on_stream(iris_t *iris, char *memory)
{
    int partner = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    iris_status_t status = IRIS_OK;

    if (iris_rank(iris) != 0) {
        return status;
    }

    for (size_t i = 0; status == IRIS_OK && i < PIECES; i++) {
        status = iris_put_on_stream(iris, memory, memory + 4096, PIECE, partner,
                                    NULL);
    }
    return status ? status
                  : iris_get_on_stream(iris, memory, memory + 4096, PIECE,
                                       partner, NULL);
}

static iris_status_t move_together(iris_t *iris, float *memory)
{
    iris_status_t status =
        iris_all_reduce(iris, memory, memory + 1024, 1000, IRIS_DTYPE_F32,
                        IRIS_REDUCE_SUM, NULL);

    status = status ? status
                    : iris_all_gather(iris, memory, memory + 1024, 100,
                                      IRIS_DTYPE_F32, NULL);
    status = status
                 ? status
                 : iris_reduce_scatter(iris, memory, memory + 1024, 50,
                                       IRIS_DTYPE_F32, IRIS_REDUCE_SUM, NULL);
    status = status ? status
                    : iris_all_to_all(iris, memory, memory + 1024, 20,
                                      IRIS_DTYPE_F32, NULL);
    return status ? status
                  : iris_ccl_broadcast(iris, memory, memory + 1024, 10,
                                       IRIS_DTYPE_F32, 1, NULL);
}

struct job {
    const char *kind;
    const char *file;
};

static int rank_main(iris_t *iris, void *arg)
{
    const struct job *job = arg;
    void *memory = NULL;
    iris_status_t status = iris_trace_enable(iris, 10000);

    status = status ? status : iris_calloc(iris, 1, 16384, &memory);
    if (status == IRIS_OK && strcmp(job->kind, "stream") == 0) {
        status = move_on_stream(iris, memory);
    } else if (status == IRIS_OK && strcmp(job->kind, "collectives") == 0) {
        status = move_together(iris, memory);
    } else if (status == IRIS_OK) {
        status = move_in_kernel(iris, memory, strcmp(job->kind, "gets") == 0);
    }
    status = status ? status : iris_stream_synchronize(iris, NULL);
    return (int)(status ? status : iris_trace_export(iris, job->file, 1));
}

int main(int argc, char **argv)
{
    struct job job = {argv[1], argv[2]};
    iris_status_t status =
        argc == 3 ? iris_spawn(NULL, 2, rank_main, &job) : IRIS_ERR_INVALID;

    if (status != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
    }
    return status != IRIS_OK;
}
