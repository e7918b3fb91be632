/* SPDX-License-Identifier: MIT
 *
 * Bugs of hosts: streams, copies, barriers and memory that is freed.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_HOSTS_H
#define IRIS_TESTS_CHECK_BUGS_HOSTS_H

#include "check/bug.h"
#include "support/harness.h"

enum { STORE_TO_PEER, LOAD_OWN, STORE_OWN, LOAD_PEER };

/* One access of one rank; the host's steps are made of them. */
IRIS_KERNEL(access_once, struct bug_args)
{
    iris_dev_t d = iris_dev_init(args->context);

    if (d.rank == 0 && args->step == STORE_TO_PEER) {
        ONE(iris_store(d, args->data, 1, 1));
    } else if (d.rank == 1 && args->step == LOAD_OWN) {
        OTHER(iris_load(d, args->data, 1));
    } else if (d.rank == 1 && args->step == STORE_OWN) {
        OTHER(iris_store(d, args->data, 2, 1));
    } else if (d.rank == 0 && args->step == LOAD_PEER) {
        OTHER(iris_load(d, args->data, 1));
    }
}

static int enqueue(iris_t *iris, const struct bug_args *a, int step,
                   iris_stream_t *stream)
{
    struct bug_args args = *a;

    args.step = step;
    CHECK_OK(iris_launch(iris, access_once, 1, 64, &args, sizeof args, stream));
    return 0;
}

/* ---- Barriers ---- */

/* Rank 0's store, a barrier, rank 1's load, all on one stream but the barrier's
 * own. */
static int store_then_load(iris_t *iris, const struct bug_args *a,
                           iris_stream_t *stream, iris_stream_t *barrier,
                           iris_group_t *group)
{
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, stream), 0);
    CHECK_OK(iris_barrier(iris, barrier, group));
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, stream), 0);
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

HOST_BUG(barrier_of_a_wrong_stream, NULL, 1, 2)
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_EQUAL(
        store_then_load(iris, a, stream, a->wrong ? NULL : stream, NULL), 0);
    iris_stream_destroy(iris, stream);
    return 0;
}

HOST_BUG(barrier_of_a_wrong_group, NULL, 1, 2)
{
    iris_group_t *alone, *all;
    int ranks[64], rank = iris_rank(iris);

    for (int i = 0; i < iris_num_ranks(iris); i++) {
        ranks[i] = i;
    }
    CHECK_OK(iris_group_create(iris, &rank, 1, &alone));
    CHECK_OK(iris_group_create(iris, ranks, iris_num_ranks(iris), &all));
    return store_then_load(iris, a, NULL, NULL, a->wrong ? alone : all);
}

HOST_BUG(barrier_missing, NULL, 1, 2)
{
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    if (!a->wrong) {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

HOST_BUG(device_barrier_of_a_wrong_stream, NULL, 1, 2)
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, stream), 0);
    CHECK_OK(iris_device_barrier(iris, a->wrong ? NULL : stream, NULL));
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, stream), 0);
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

HOST_BUG(round_without_second_barrier, NULL, 1, 2)
{
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, NULL), 0);
    if (!a->wrong) {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* Only a barrier waits for a stream: a broadcast orders hosts. */
HOST_BUG(broadcast_as_barrier, NULL, 1, 2)
{
    int value = 0;

    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    if (a->wrong) {
        CHECK_OK(iris_broadcast(iris, &value, sizeof value, 0, NULL));
    } else {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* ---- Memory that is freed ---- */

HOST_BUG(freed_while_used, "life", 1, 2)
{
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    if (!a->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    OTHER_OK(iris_free(iris, x));
    return 0;
}

HOST_BUG(freed_then_used, "life", 1, 2)
{
    if (a->wrong) {
        OTHER_OK(iris_free(iris, x));
    }
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    if (!a->wrong) {
        OTHER_OK(iris_free(iris, x));
    }
    return 0;
}

HOST_BUG(freed_while_copied, "life", 1, 2)
{
    static int32_t out[256];
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    ONE_OK(iris_memcpy(iris, out, x, sizeof out, stream));
    if (!a->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, stream));
    }
    OTHER_OK(iris_free(iris, x));
    iris_stream_destroy(iris, stream);
    return 0;
}

/* ---- Copies on streams ---- */

/* Work of rank 1 on a stream of its own, then a kernel on the default one. */
#define BESIDE(name, work, kernel_step)                      \
    HOST_BUG(name, "stream order", 1, 2)                     \
    {                                                        \
        static int32_t out[256];                             \
        iris_stream_t *stream;                               \
                                                             \
        (void)out;                                           \
        CHECK_OK(iris_stream_create(iris, &stream));         \
        if (iris_rank(iris) == 1) {                          \
            ONE_OK(work);                                    \
        }                                                    \
        if (!a->wrong) {                                     \
            CHECK_OK(iris_stream_synchronize(iris, stream)); \
        }                                                    \
        CHECK_EQUAL(enqueue(iris, a, kernel_step, NULL), 0); \
        CHECK_OK(iris_stream_synchronize(iris, NULL));       \
        iris_stream_destroy(iris, stream);                   \
        return 0;                                            \
    }

BESIDE(copy_out_unwaited, iris_memcpy(iris, out, x, 256, stream), STORE_OWN)
BESIDE(copy_in_unwaited, iris_memcpy(iris, x, out, 256, stream), LOAD_OWN)
BESIDE(fill_unwaited, iris_memset(iris, x, 1, 256, stream), LOAD_OWN)
#define PUT_ROW(to, from, rank) \
    iris_put_on_stream(iris, to, from, 64, rank, stream)
#define GET_ROW(from, to) iris_get_on_stream(iris, from, to, 64, 0, stream)
BESIDE(put_unwaited, PUT_ROW(x, &x[64], 1), LOAD_OWN)
BESIDE(put_source_unwaited, PUT_ROW(&x[64], x, 0), STORE_OWN)
BESIDE(get_unwaited, GET_ROW(x, &x[64]), LOAD_OWN)
#undef GET_ROW
#undef PUT_ROW
#undef BESIDE

HOST_BUG(fills_of_two_streams, "stream order", 1, 2)
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    ONE_OK(iris_memset(iris, x, 1, 256, stream));
    OTHER_OK(iris_memset(iris, x, 2, 256, a->wrong ? NULL : stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

#define PUT(signal)                                                            \
    iris_put_signal_on_stream(iris, x, &x[64], 64, signal, 1, IRIS_SIGNAL_SET, \
                              1, NULL)

/* Rank 0 puts to rank 1, which hears of it by a signal. */
HOST_BUG(put_signal_unwaited, NULL, 1, 2)
{
    if (iris_rank(iris) == 0) {
        ONE_OK(PUT(a->flags));
    } else if (iris_rank(iris) == 1 && !a->wrong) {
        CHECK_OK(iris_wait_on_stream(iris, a->flags, IRIS_CMP_EQ, 1, NULL));
    }
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

HOST_BUG(signal_ahead_of_put, NULL, 1, 2)
{
    if (iris_rank(iris) == 0 && a->wrong) {
        CHECK_OK(iris_signal_on_stream(iris, a->flags, 1, 1, NULL));
        ONE_OK(iris_put_on_stream(iris, x, &x[64], 64, 1, NULL));
    } else if (iris_rank(iris) == 0) {
        ONE_OK(PUT(a->flags));
    } else if (iris_rank(iris) == 1) {
        CHECK_OK(iris_wait_on_stream(iris, a->flags, IRIS_CMP_EQ, 1, NULL));
    }
    CHECK_EQUAL(enqueue(iris, a, LOAD_OWN, NULL), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* ---- Collectives on streams ---- */

#define SUM(in, out) \
    iris_all_reduce(iris, in, out, 4, IRIS_DTYPE_I32, IRIS_REDUCE_SUM, NULL)

static int reduce_beside(iris_t *iris, const struct bug_args *a, int step,
                         iris_stream_t *stream)
{
    int32_t *x = a->data;

    ONE_OK(SUM(x, &x[64]));
    CHECK_EQUAL(enqueue(iris, a, step, stream), 0);
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* The input of a collective is written while it may still read. */
HOST_BUG(collective_input_reused, "stream order", 1, 2)
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_EQUAL(reduce_beside(iris, a, STORE_OWN, a->wrong ? stream : NULL), 0);
    iris_stream_destroy(iris, stream);
    return 0;
}

/* A peer writes to the input, with no order. */
HOST_BUG(collective_input_of_a_peer, NULL, 1, 2)
{
    CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    if (!a->wrong) {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    OTHER_OK(SUM(x, &x[64]));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* The result is read by another stream. */
HOST_BUG(collective_result_unwaited, "stream order", 1, 2)
{
    struct bug_args args = *a;
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    ONE_OK(SUM(&x[64], x));
    if (!a->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    CHECK_EQUAL(enqueue(iris, &args, LOAD_OWN, stream), 0);
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

#undef SUM
#undef PUT

#endif /* IRIS_TESTS_CHECK_BUGS_HOSTS_H */
