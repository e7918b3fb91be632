/* SPDX-License-Identifier: MIT
 *
 * The same in the manner of GASPI (notifications of writes and reads) and of MPI's
 * windows (fences; post, start, complete and wait; locks).
 */
#ifndef IRIS_TESTS_CHECK_BUGS_EPOCHS_H
#define IRIS_TESTS_CHECK_BUGS_EPOCHS_H

#include "check/bugs_rma.h"

static int fence(const struct rma *r)
{
    CHECK_OK(quiet(r, r->s));
    CHECK_OK(meet(r));
    return 0;
}

/* ---- Notifications ---- */

/* A list of two writes, and a notification of the first. */
RMA_BUG(notified_ahead_of_the_last_write, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(put(r, r->x, 1, r->s));
        if (r->wrong) {
            CHECK_OK(set(r, 0, 1, r->s));
        }
        ONE_OK(put(r, &r->x[16], 1, r->s));
        if (!r->wrong) {
            CHECK_OK(set(r, 0, 1, r->s));
        }
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, &r->x[16], r->s));
    }
    return 0;
}

/* Both neighbours write their halves of the halo; each has a notification. */
RMA_BUG(halo_of_one_neighbour, NULL, 1, 3)
{
    if (r->rank != 1) {
        if (r->rank < 3) {
            ONE_OK(put(r, &r->x[8 * r->rank], 1, r->s));
            CHECK_OK(set(r, r->rank, 1, r->s));
        }
        return 0;
    }
    CHECK_OK(await(r, 0, 1, r->s));
    if (!r->wrong) {
        CHECK_OK(await(r, 2, 1, r->s));
    }
    OTHER_OK(read_own(r, &r->x[16], r->s));
    return 0;
}

/* The owner is told that its data was read while the read still runs. */
RMA_BUG(read_notified_too_early, NULL, 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(get(r, r->x, 1, r->s));
        CHECK_OK(set(r, 0, 1, r->wrong ? r->t : r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(write_own(r, r->x, r->s));
    }
    return 0;
}

#define put_add(r, to, rank)                                             \
    iris_put_signal_on_stream((r)->iris, to, (r)->out, BYTES, (r)->f, 1, \
                              IRIS_SIGNAL_ADD, rank, (r)->s)

/* Two notifications are counted in one word. */
RMA_BUG(counted_to_one, NULL, 1, 3)
{
    if (r->rank == 0 || r->rank == 2) {
        ONE_OK(put_add(r, &r->x[8 * r->rank], 1));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, r->wrong ? 1 : 2, r->s));
        OTHER_OK(iris_memcpy(r->iris, r->in, r->x, 2 * BYTES, r->s));
    }
    return 0;
}

/* ---- Fences ---- */

RMA_BUG(epoch_unclosed, NULL, 1, 2)
{
    CHECK(fence(r) == 0);
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, r->s));
    }
    if (!r->wrong) {
        CHECK(fence(r) == 0);
    }
    if (r->rank == 1) {
        OTHER_OK(read_own(r, r->x, r->s));
    }
    CHECK(fence(r) == 0);
    return 0;
}

/* The target stores to its window in the epoch of a put to the same place. */
RMA_BUG(store_in_an_epoch, "order of writers", 1, 2)
{
    CHECK(fence(r) == 0);
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, r->s));
    } else if (r->rank == 1) {
        OTHER_OK(write_own(r, &r->x[r->wrong ? 8 : 16], r->s));
    }
    CHECK(fence(r) == 0);
    return 0;
}

/* ---- Post, start, complete and wait; locks ---- */

/* The target posts its window once it has read the epoch before. */
RMA_BUG(started_unposted, NULL, 1, 2)
{
    if (r->rank == 0) {
        if (!r->wrong) {
            CHECK_OK(await(r, 0, 1, r->s));
        }
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(set(r, 1, 1, r->s));
    } else if (r->rank == 1) {
        OTHER_OK(read_own(r, r->x, r->s));
        CHECK_OK(set(r, 0, 0, r->s));
        CHECK_OK(await(r, 1, 1, r->s));
    }
    return 0;
}

RMA_BUG(completed_ahead_of_the_put, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(await(r, 0, 1, r->s));
        ONE_OK(put(r, r->x, 1, r->t));
        if (!r->wrong) {
            CHECK_OK(quiet(r, r->t));
        }
        CHECK_OK(set(r, 1, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(set(r, 0, 0, r->s));
        CHECK_OK(await(r, 1, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* The lock goes from rank 0 to rank 1; the window is rank 2's. */
RMA_BUG(unlocked_ahead_of_the_put, NULL, 1, 3)
{
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 2, r->s));
        CHECK_OK(set(r, 0, 1, r->wrong ? r->t : r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(put(r, r->x, 2, r->s));
    }
    return 0;
}

#endif /* IRIS_TESTS_CHECK_BUGS_EPOCHS_H */
