/* SPDX-License-Identifier: MIT
 *
 * Common bugs, with the advice that a colleague would give.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_COMMON_H
#define IRIS_TESTS_CHECK_BUGS_COMMON_H

#include "check/bugs_hosts.h"

#define COMMON_ROUNDS 4

/* Two slots, and no credit before a slot is written again. */
BUG(double_buffer_without_credit, "credit", 1, 2,
    "rank 1 may still read the place when rank 0 writes it: let rank 1 signal "
    "behind"
    " the read, and rank 0 wait for that credit ahead of the write")
{
    for (uint64_t round = 1; round <= COMMON_ROUNDS; round++) {
        if (d.rank == 0) {
            if (!wrong && round > 2) {
                wait_for(d, &f[1], round - 2);
            }
            ONE(iris_store(d, &x[round % 2], (int)round, 1));
            iris_signal_set(d, f, round, 1);
        } else if (d.rank == 1) {
            wait_for(d, f, round);
            OTHER(iris_load(d, &x[round % 2], 1));
            iris_signal_set(d, &f[1], round, 0);
        }
    }
}

/* The last workgroup to count reads what all have written. */
BUG(counter_relaxed_in_the_last_block, "release", 2, 2,
    "releases nothing; pass IRIS_RELEASE; pass IRIS_ACQ_REL to a counter whose "
    "last"
    " user reads what the others wrote")
{
    if (d.rank == 0) {
        uint64_t before;

        ONE(iris_store(d, &x[wg.id], 1, 1));
        CHANGE_BELOW;
        before = iris_atomic_add(d, f, 1, 1, wrong ? RLX : IRIS_ACQ_REL, SYS);
        for (unsigned i = 0; before == wg.num_wgs - 1 && i < wg.num_wgs; i++) {
            (void)iris_load(d, &x[i], 1);
        }
    }
}

/* A barrier of this rank alone, between a peer's write and the read. */
BUG(barrier_of_the_wrong_group, "member of the barrier", 1, 2,
    "does not order them: rank 0 is not in its group")
{
    if (d.rank == 0) {
        produce(d, x);
    }
    iris_dev_barrier(wg, d, wrong ? a->alone : a->all);
    if (d.rank == 1) {
        consume(d, x);
    }
}

/* The consumer trusts a tail that is raised to reserve a slot. */
BUG(queue_that_trusts_its_tail, "later release", 1, 2,
    "a counter that is raised ahead of the data does not say that the data is "
    "there")
{
    if (d.rank == 0) {
        for (int i = 0; i < 4; i++) {
            if (wrong) {
                CHANGE(iris_atomic_add(d, f, 1, 1, REL, SYS));
            }
            ONE(iris_store(d, &x[i], 7, 1));
            if (!wrong) {
                iris_atomic_add(d, f, 1, 1, REL, SYS);
            }
        }
    } else if (d.rank == 1) {
        uint64_t head = 0;

        while (head < 4) { /* goes by the value that the wait returns */
            uint64_t tail = iris_wait_until(d, f, IRIS_CMP_GT, head);

            for (; head < tail; head++) {
                OTHER(iris_load(d, &x[head], 1));
            }
        }
    }
}

/* The reader waits for the signal of the round before. */
BUG(epoch_off_by_one, NULL, 1, 2, "wait")
{
    for (uint64_t round = 1; round <= COMMON_ROUNDS; round++) {
        if (d.rank == 0) {
            wait_for(d, &f[1], round - 1);
            ONE(iris_store(d, x, (int)round, 1));
            iris_signal_set(d, f, round, 1);
        } else if (d.rank == 1) {
            wait_for(d, f, wrong ? round - 1 : round);
            OTHER(iris_load(d, x, 1));
            iris_signal_set(d, &f[1], round, 0);
        }
    }
}

/* ---- Hosts ---- */

/* Two streams of one rank. */
HOST_BUG(two_streams, "stream order", 1, 2,
         "synchronize the stream of bugs_common.h:")
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    if (iris_rank(iris) == 0) {
        ONE_OK(iris_put_on_stream(iris, &x[0], &x[64], 64, 1, stream));
        if (!a->wrong) {
            CHECK_OK(iris_stream_synchronize(iris, stream));
        }
        OTHER_OK(iris_get_on_stream(iris, &x[64], &x[128], 64, 1, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

/* A buffer of the host, on no heap, between two streams. */
HOST_BUG(buffer_of_two_streams, "stream order", 1, 2,
         "synchronize the stream of bugs_common.h:")
{
    int32_t buffer[16] = {0};
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    if (iris_rank(iris) == 0) {
        ONE_OK(iris_put_on_stream(iris, &x[0], buffer, 64, 1, stream));
        if (!a->wrong) {
            CHECK_OK(iris_stream_synchronize(iris, stream));
        }
        OTHER_OK(iris_get_on_stream(iris, buffer, &x[128], 64, 1, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

/* The signal overtakes its data, which goes through another stream. */
HOST_BUG(signal_of_another_stream, "order of signal and data", 1, 2,
         "is on another stream or in another workgroup than the write: send it "
         "behind the"
         " write, on its stream")
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    if (iris_rank(iris) == 0) {
        ONE_OK(iris_put_on_stream(iris, &x[0], &x[64], 64, 1, stream));
        CHECK_OK(iris_signal_on_stream(iris, a->flags, 1, 1,
                                       a->wrong ? NULL : stream));
    } else if (iris_rank(iris) == 1) {
        CHECK_OK(iris_wait_on_stream(iris, a->flags, IRIS_CMP_GE, 1, stream));
        OTHER_OK(iris_get_on_stream(iris, &x[64], &x[0], 64, 1, stream));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

/* A host frees what a peer's kernel still stores to. */
HOST_BUG(freed_while_a_peer_uses_it, "life", 1, 2,
         "let every rank call iris_stream_synchronize, then iris_free")
{
    if (iris_rank(iris) == 0) {
        CHECK_EQUAL(enqueue(iris, a, STORE_TO_PEER, NULL), 0);
    }
    if (!a->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    OTHER_OK(iris_free(iris, x));
    return 0;
}

#endif /* IRIS_TESTS_CHECK_BUGS_COMMON_H */
