/* SPDX-License-Identifier: MIT
 *
 * Bugs of signals and barriers: those that come too early, that nobody waits
 * for, or that say something else; and buffers that are used again too early.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_FLAGS_H
#define IRIS_TESTS_CHECK_BUGS_FLAGS_H

#include "check/bug.h"

/* ---- Signals ---- */

BUG(flag_lost, NULL, 1, 2)
{
    if (d.rank == 0) {
        send(d, x, f);
    } else if (d.rank == 1) {
        if (!wrong) {
            wait_for(d, f, 1);
        }
        consume(d, x);
    }
}

/* Rank 0 is late: otherwise the test may hold, and all is well. */
BUG(flag_tested_once, NULL, 1, 2)
{
    if (d.rank == 0) {
        be_late(d, &f[1], wrong);
        send(d, x, f);
    } else if (d.rank == 1) {
        while (!iris_test(d, f, IRIS_CMP_EQ, 1) && !wrong) {
        }
        consume(d, x);
        iris_atomic_store(d, &f[1], 1, 0, RLX, SYS);
    }
}

/* Rank 1 tests the flag. When this returns the flag is set, perhaps later. */
static inline void test_flag(iris_dev_t d, uint64_t *f, int wrong)
{
    while (iris_atomic_load(d, f, 1, ACQ, SYS) == 0 && !wrong) {
    }
    iris_atomic_store(d, &f[1], 1, 0, RLX, SYS);
    while (iris_atomic_add(d, &f[2], 0, 1, RLX, SYS) == 0) {
    }
}

/* The test comes amid the loads of a loop. One of them reads the value that the
 * flag has by then. */
BUG(flag_tested_in_loop, NULL, 1, 2)
{
    if (d.rank == 0) {
        be_late(d, &f[1], wrong);
        send(d, x, f);
        iris_atomic_store(d, &f[2], 1, 1, RLX, SYS);
    } else if (d.rank == 1) {
        iris_store(d, &x[20], 1, 1);
        for (int i = 1; i < 40; i++) {
            (void)iris_load(d, &x[i], 1);
            if (i == 10) {
                test_flag(d, f, wrong);
            }
        }
        consume(d, x);
    }
}

BUG(flag_compared_wrongly, NULL, 1, 2)
{
    if (d.rank == 0) {
        be_late(d, &f[1], wrong);
        send(d, x, f);
    } else if (d.rank == 1) {
        iris_wait_until(d, f, wrong ? IRIS_CMP_LE : IRIS_CMP_EQ, 1);
        consume(d, x);
        iris_atomic_store(d, &f[1], 1, 0, RLX, SYS);
    }
}

BUG(flag_of_another, NULL, 1, 2)
{
    if (d.rank == 0) {
        iris_signal_set(d, &f[1], 1, 1);
        produce(d, x);
        iris_signal_set(d, &f[0], 1, 1);
    } else if (d.rank == 1) {
        wait_for(d, &f[wrong ? 1 : 0], 1);
        consume(d, x);
    }
}

BUG(flag_plain, "atomic flag", 1, 2)
{
    if (d.rank == 0) {
        produce(d, x);
        if (wrong) {
            CHANGE(iris_store(d, f, 1, 1));
        } else {
            iris_signal_set(d, f, 1, 1);
        }
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}

BUG(flag_put_plainly, "atomic flag", 1, 2)
{
    uint64_t one = 1;

    if (d.rank == 0) {
        produce(d, x);
        if (wrong) {
            CHANGE(iris_put(d, &one, f, 1));
        } else {
            iris_signal_set(d, f, one, 1);
        }
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}

BUG(flag_ahead, NULL, 1, 2)
{
    if (d.rank == 0) {
        if (wrong) {
            CHANGE(iris_signal_set(d, f, 1, 1));
        }
        produce(d, x);
        if (!wrong) {
            iris_signal_set(d, f, 1, 1);
        }
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}

BUG(flag_ahead_of_bulk, NULL, 1, 2)
{
    if (d.rank == 0 && wrong) {
        CHANGE(iris_signal_set(d, f, 1, 1));
        ONE(iris_wg_put(wg, d, x, x, 64, 1));
    } else if (d.rank == 0) {
        iris_wg_put_signal(wg, d, x, x, 64, f, 1, 1);
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, &x[15], 1));
    }
}

BUG(flag_ahead_of_tile, NULL, 1, 2)
{
    iris_tile_t tile = iris_tile(x, 4, 4, 8, 4);

    if (d.rank == 0 && wrong) {
        CHANGE(iris_signal_set(d, f, 1, 1));
        ONE(iris_wg_tile_put(wg, d, tile, tile, 1));
    } else if (d.rank == 0) {
        iris_wg_tile_put_signal(wg, d, tile, tile, f, 1, 1);
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, &x[25], 1));
    }
}

/* The signal covers the first of two puts. */
BUG(flag_between_puts, NULL, 1, 2)
{
    if (d.rank == 0) {
        iris_store(d, &x[1], 7, 1);
        if (wrong) {
            CHANGE(iris_signal_set(d, f, 1, 1));
        }
        produce(d, x);
        iris_signal_set(d, &f[wrong], 1, 1);
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        iris_load(d, &x[1], 1);
        consume(d, x);
    }
}

/* Rank 0 signals rank 1, but writes to rank 2, who hears from rank 1. */
BUG(flag_of_third_early, NULL, 1, 3)
{
    if (d.rank == 0) {
        ONE(iris_store(d, x, 7, 2));
        iris_signal_set(d, f, 1, 1);
    } else if (d.rank == 1) {
        if (!wrong) {
            wait_for(d, f, 1);
        }
        iris_signal_set(d, f, 1, 2);
    } else if (d.rank == 2) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 2));
    }
}

/* Each of two senders has a signal; one wait is for either. */
BUG(any_instead_of_all, NULL, 1, 3)
{
    if (d.rank == 0 || d.rank == 2) {
        ONE(iris_store(d, &x[d.rank], 7, 1));
        iris_signal_set(d, &f[d.rank / 2], 1, 1);
    } else if (d.rank == 1) {
        if (wrong) {
            iris_wait_until_any(d, f, 1, NULL, IRIS_CMP_EQ, 1);
        } else {
            iris_wait_until_all(d, f, 2, NULL, IRIS_CMP_EQ, 1);
        }
        OTHER(iris_load(d, &x[2], 1));
    }
}

/* ---- Reuse ---- */

BUG(reused_early, NULL, 1, 2)
{
    if (d.rank == 0) {
        iris_store(d, x, 1, 1);
        iris_signal_set(d, f, 1, 1);
        if (!wrong) {
            wait_for(d, &f[1], 1);
        }
        ONE(iris_store(d, x, 2, 1));
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 1));
        iris_signal_set(d, &f[1], 1, 0);
    }
}

BUG(answered_early, NULL, 1, 2)
{
    if (d.rank == 0) {
        iris_signal_set(d, f, 1, 1);
        wait_for(d, &f[1], 1);
        ONE(iris_store(d, x, 2, 1));
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        if (wrong) {
            iris_signal_set(d, &f[1], 1, 0);
        }
        OTHER(iris_load(d, x, 1));
        if (!wrong) {
            iris_signal_set(d, &f[1], 1, 0);
        }
    }
}

/* A ring of two buffers, with a flag for each message: rank 0 may be so many
 * messages ahead of the answers. */
static inline void pass_ring(iris_dev_t d, int32_t *x, uint64_t *f,
                             uint64_t credits)
{
    for (uint64_t i = 0; i < 4 && d.rank < 2; i++) {
        int32_t *slot = &x[i % 2];

        if (d.rank == 0 && i >= credits) {
            wait_for(d, &f[1], i - credits + 1);
        }
        if (d.rank == 0) {
            ONE(iris_store(d, slot, 7, 1));
            iris_signal_set(d, &f[2 + i], 1, 1);
        } else {
            wait_for(d, &f[2 + i], 1);
            OTHER(iris_load(d, slot, 1));
            iris_signal_set(d, &f[1], i + 1, 0);
        }
    }
}

BUG(ring_without_credits, NULL, 1, 2)
{
    pass_ring(d, x, f, wrong ? 4 : 2);
}

BUG(ring_with_a_credit_too_many, NULL, 1, 2)
{
    pass_ring(d, x, f, wrong ? 3 : 2);
}

/* A peer that gets what its owner overwrites. */
BUG(overwritten_while_read, NULL, 1, 2)
{
    int32_t value;

    if (d.rank == 0) {
        if (!wrong) {
            wait_for(d, f, 1);
        }
        ONE(iris_store(d, x, 2, 0));
    } else if (d.rank == 1) {
        OTHER(iris_get(d, x, &value, 0));
        iris_signal_set(d, f, 1, 0);
    }
}

/* ---- Barriers in kernels ---- */

BUG(device_barrier_missing, NULL, 1, 2)
{
    if (d.rank == 0) {
        produce(d, x);
    }
    if (!wrong) {
        iris_dev_barrier(wg, d, a->all);
    }
    if (d.rank == 1) {
        consume(d, x);
    }
}

BUG(device_barrier_early, NULL, 1, 2)
{
    if (wrong) {
        iris_dev_barrier(wg, d, a->all);
    }
    if (d.rank == 0) {
        produce(d, x);
    }
    if (!wrong) {
        iris_dev_barrier(wg, d, a->all);
    }
    if (d.rank == 1) {
        consume(d, x);
    }
}

/* The second round's store needs a barrier after the first round's load. */
BUG(second_barrier_missing, NULL, 1, 2)
{
    if (d.rank == 0) {
        iris_store(d, x, 1, 1);
    }
    iris_dev_barrier(wg, d, a->all);
    if (d.rank == 1) {
        OTHER(iris_load(d, x, 1));
    }
    if (!wrong) {
        iris_dev_barrier(wg, d, a->all);
    }
    if (d.rank == 0) {
        ONE(iris_store(d, x, 2, 1));
    }
}

/* A barrier of one workgroup does not cover what another one wrote. */
BUG(device_barrier_of_one_workgroup, NULL, 2, 2)
{
    if (wg.id == 1) {
        if (d.rank == 0) {
            ONE(iris_store(d, x, 7, 1));
        }
        iris_signal_set(d, f, 1, d.rank);
        return;
    }
    if (!wrong) {
        wait_for(d, f, 1);
    }
    iris_dev_barrier(wg, d, a->all);
    if (d.rank == 1) {
        OTHER(iris_load(d, x, 1));
    }
}

/* ---- Collectives in kernels ---- */

/* It gives the result, but orders no other accesses. */
BUG(collective_as_barrier, NULL, 1, 2)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &a->ccl, 0);

    if (d.rank == 0) {
        produce(d, x);
    }
    iris_wg_all_reduce(wg, &ccl, &x[64], &x[80], 4, IRIS_DTYPE_I32,
                       IRIS_REDUCE_SUM);
    iris_wg_ccl_end(wg, &ccl);
    if (!wrong) {
        iris_dev_barrier(wg, d, a->all);
    }
    if (d.rank == 1) {
        consume(d, x);
    }
}

/* A peer stores to what a collective reads. */
BUG(collective_reads_what_is_written, NULL, 1, 2)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &a->ccl, 0);
    const iris_dtype_t type = IRIS_DTYPE_I32;
    const int32_t *in = &x[64];
    int32_t *out = &x[80];

    if (d.rank == 0) {
        ONE(iris_store(d, &x[wrong ? 64 : 68], 7, 1));
    }
    OTHER(iris_wg_all_reduce(wg, &ccl, in, out, 4, type, IRIS_REDUCE_SUM));
    iris_wg_ccl_end(wg, &ccl);
}

/* A peer reads what a collective writes. */
BUG(collective_writes_what_is_read, NULL, 1, 2)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &a->ccl, 0);

    if (d.rank == 0 && wrong) {
        ONE(iris_load(d, &x[81], 1));
    }
    OTHER(iris_wg_all_gather(wg, &ccl, &x[64], &x[80], 4));
    iris_wg_ccl_end(wg, &ccl);
    iris_dev_barrier(wg, d, a->all);
    if (d.rank == 0 && !wrong) {
        iris_load(d, &x[81], 1);
    }
}

#endif /* IRIS_TESTS_CHECK_BUGS_FLAGS_H */
