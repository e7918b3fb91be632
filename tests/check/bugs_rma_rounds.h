/* SPDX-License-Identifier: MIT
 *
 * Bugs of programs of host calls: rounds, answers, rings, and words that are
 * both flags and data.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_RMA_ROUNDS_H
#define IRIS_TESTS_CHECK_BUGS_RMA_ROUNDS_H

#include "check/bugs_rma_memory.h"

/* ---- Waits that prove too little ---- */

/* Ranks 0 and 2 send, and rank 1 hears of one of them. */
RMA_BUG(wait_for_one_of_two, NULL, 1, 3)
{
    if (r->rank == 0) {
        CHECK_OK(put(r, &r->x[16], 1, r->s));
        CHECK_OK(set(r, 0, 1, r->s));
    } else if (r->rank == 2) {
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(set(r, 1, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        if (!r->wrong) {
            CHECK_OK(await(r, 1, 1, r->s));
        }
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* Of a flag that nobody sets. */
RMA_BUG(wait_that_holds_at_once, NULL, 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(put_set(r, r->x, 1, 1));
    } else if (r->rank == 1) {
        CHECK_OK(r->wrong ? await(r, 1, 0, r->s) : await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

#define PUT_TILE(tile) \
    iris_tiles_on_stream(r->iris, IRIS_PUT, tile, tile, 1, 1, r->s)
RMA_BUG(tile_unwaited, NULL, 1, 2)
{
    iris_tile_t tile = {.data = r->x,
                        .elem_bytes = 4,
                        .rows = 2,
                        .cols = 4,
                        .row_stride = 8,
                        .col_stride = 1};

    if (r->rank == 0) {
        ONE_OK(PUT_TILE(&tile));
        CHECK_OK(set(r, 0, 1, r->s));
    } else if (r->rank == 1) {
        if (!r->wrong) {
            CHECK_OK(await(r, 0, 1, r->s));
        }
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* It waits for this rank's stream, not for the peer's. */
RMA_BUG(blocking_copy_as_barrier, NULL, 1, 2)
{
    CHECK_EQUAL(put_it(r, 1), 0);
    CHECK_OK(quiet(r, r->s));
    if (!r->wrong) {
        CHECK_OK(meet(r));
    }
    if (r->rank == 1) {
        OTHER_OK(iris_memcpy_sync(r->iris, r->in, r->x, BYTES));
    }
    return 0;
}

RMA_BUG(barrier_on_another_stream_than_get, NULL, 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(get(r, r->x, 1, r->s));
    }
    CHECK_OK(iris_barrier(r->iris, r->wrong ? r->t : r->s, NULL));
    if (r->rank == 1) {
        OTHER_OK(write_own(r, r->x, r->s));
    }
    return 0;
}

/* ---- Rounds ---- */

/* Two slots, three rounds. */
RMA_BUG(slot_reused_unanswered, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(put_set(r, r->x, 1, 1));
        CHECK_OK(put_set(r, &r->x[16], 2, 1));
        if (!r->wrong) {
            CHECK_OK(await(r, 1, 1, r->s));
        }
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(set(r, 2, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
        CHECK_OK(set(r, 1, 0, r->s));
        CHECK_OK(await(r, 0, 2, r->s));
        CHECK_OK(read_own(r, &r->x[16], r->s));
        CHECK_OK(await(r, 2, 1, r->s));
        CHECK_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* The owner fills the next round's data while the peer still gets this one's. */
RMA_BUG(filled_ahead_of_answer, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(write_own(r, r->x, r->s));
        CHECK_OK(set(r, 0, 1, r->s));
        if (!r->wrong) {
            CHECK_OK(await(r, 1, 1, r->s));
        }
        ONE_OK(write_own(r, r->x, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(get(r, r->x, 0, r->s));
        CHECK_OK(set(r, 1, 0, r->s));
    }
    return 0;
}

/* Rank 0 sends to both others, and takes rank 2's answer for rank 1's. */
RMA_BUG(answer_of_another_rank, NULL, 1, 3)
{
    if (r->rank == 0) {
        CHECK_OK(put_set(r, r->x, 1, 1));
        CHECK_OK(put_set(r, r->x, 1, 2));
        CHECK_OK(await(r, r->wrong ? 2 : 1, 1, r->s));
        ONE_OK(put(r, r->x, 1, r->s));
    } else if (r->rank < 3) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
        CHECK_OK(set(r, r->rank, 0, r->s));
    }
    return 0;
}

/* Each rank sends its data on while its neighbour writes there. */
RMA_BUG(ring_in_place, NULL, 1, 2)
{
    int32_t *to = r->wrong ? r->x : &r->x[16];
    int next = (r->rank + 1) % iris_num_ranks(r->iris);

    ONE_OK(move(r, to, r->x, next, r->s));
    return 0;
}

/* ---- Words that are flags and data ---- */

RMA_BUG(signal_read_plainly, "atomic access", 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(set(r, 0, 1, r->s));
    } else if (r->rank == 1) {
        if (!r->wrong) {
            CHECK_OK(await(r, 0, 1, r->s));
        }
        OTHER_OK(iris_memcpy(r->iris, r->in, r->f, sizeof *r->f, r->s));
    }
    return 0;
}

RMA_BUG(put_over_flags, "atomic access", 1, 3)
{
    void *to = r->wrong ? (void *)r->f : r->x;

    if (r->rank == 0) {
        ONE_OK(move(r, to, r->out, 1, r->s));
    } else if (r->rank == 2) {
        OTHER_OK(set(r, 3, 1, r->s));
    }
    return 0;
}

/* The put's second half is where the owner fills. */
RMA_BUG(fill_of_a_half, "order of writers", 1, 2)
{
    CHECK_EQUAL(put_it(r, 1), 0);
    if (r->rank == 1) {
        OTHER_OK(write_own(r, &r->x[r->wrong ? 8 : 16], r->s));
    }
    return 0;
}

#endif /* IRIS_TESTS_CHECK_BUGS_RMA_ROUNDS_H */
