/* SPDX-License-Identifier: MIT
 *
 * The same of buffers: used too early, by two at once, or freed.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_RMA_MEMORY_H
#define IRIS_TESTS_CHECK_BUGS_RMA_MEMORY_H

#include "check/bugs_rma.h"

/* ---- Local completion ---- */

RMA_BUG(source_reused, "stream order", 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, r->s));
        if (!r->wrong) {
            CHECK_OK(quiet(r, r->s));
        }
        OTHER_OK(write_own(r, r->out, r->t));
    }
    return 0;
}

RMA_BUG(got_too_early, "stream order", 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(get(r, r->x, 1, r->s));
        if (!r->wrong) {
            CHECK_OK(quiet(r, r->s));
        }
        OTHER_OK(iris_memcpy(r->iris, r->out, r->in, BYTES, r->t));
    }
    return 0;
}

#define move(r, to, from, rank, stream) \
    iris_put_on_stream((r)->iris, to, from, BYTES, rank, stream)

/* One stream gets and hands over to another one by a signal to itself. */
RMA_BUG(handed_over_unwaited, "stream order", 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(get(r, r->x, 1, r->s));
        CHECK_OK(set(r, 0, 0, r->s));
        if (!r->wrong) {
            CHECK_OK(await(r, 0, 1, r->t));
        }
        OTHER_OK(move(r, &r->x[16], r->in, 1, r->t));
    }
    return 0;
}

/* ---- Two that access one place ---- */

RMA_BUG(puts_of_two_ranks, "order of writers", 1, 2)
{
    if (r->rank < 2) {
        ONE_OK(put(r, &r->x[r->wrong ? 0 : 16 * r->rank], 0, r->s));
    }
    return 0;
}

/* Each rank's place of 64 bytes begins in the middle of another's. */
RMA_BUG(places_too_near, "order of writers", 1, 2)
{
    ONE_OK(put(r, &r->x[(r->wrong ? 8 : 16) * r->rank], 0, r->s));
    return 0;
}

/* Columns of one matrix, of 4 rows of 16. */
RMA_BUG(columns_overlap, "order of writers", 1, 2)
{
    int32_t *to = &r->x[r->rank == 0 ? 0 : r->wrong ? 4 : 8];
    const iris_tile_t dst = {.data = to,
                             .elem_bytes = 4,
                             .rows = 4,
                             .cols = 8,
                             .row_stride = 16,
                             .col_stride = 1};
    const iris_tile_t src = {.data = r->out,
                             .elem_bytes = 4,
                             .rows = 4,
                             .cols = 8,
                             .row_stride = 8,
                             .col_stride = 1};

    if (r->rank < 2) {
        ONE_OK(iris_tiles_on_stream(r->iris, IRIS_PUT, &dst, &src, 1, 0, r->s));
    }
    return 0;
}

/* Rank 0's part, then a quiet and, in the twin, a barrier; then rank 1's. */
#define TWO_IN_ORDER(name, missing, first, second) \
    RMA_BUG(name, missing, 1, 2)                   \
    {                                              \
        if (r->rank == 0) {                        \
            ONE_OK(first);                         \
            CHECK_OK(quiet(r, r->s));              \
        }                                          \
        if (!r->wrong) {                           \
            CHECK_OK(meet(r));                     \
        }                                          \
        if (r->rank == 1) {                        \
            OTHER_OK(second);                      \
        }                                          \
        return 0;                                  \
    }

#define PUT_TO(rank) put(r, r->x, rank, r->s)
#define GET_FROM(rank) get(r, r->x, rank, r->s)
#define FILL_OWN write_own(r, r->x, r->s)
#define READ_OWN read_own(r, r->x, r->s)
TWO_IN_ORDER(put_against_local_fill, "order of writers", PUT_TO(1), FILL_OWN)
TWO_IN_ORDER(local_read_against_put, NULL, READ_OWN, PUT_TO(0))
TWO_IN_ORDER(get_against_local_fill, NULL, GET_FROM(1), FILL_OWN)
TWO_IN_ORDER(local_fill_against_get, NULL, FILL_OWN, GET_FROM(0))
#undef TWO_IN_ORDER

/* Rank 2 gets from rank 1 what rank 0 puts there. */
RMA_BUG(get_of_a_third_rank, NULL, 1, 3)
{
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(set(r, 0, 2, r->s));
    } else if (r->rank == 2) {
        if (!r->wrong) {
            CHECK_OK(await(r, 0, 1, r->s));
        }
        OTHER_OK(get(r, r->x, 1, r->s));
    }
    return 0;
}

/* ---- Memory that is freed ---- */

#define FREED(name, work, ahead)            \
    RMA_BUG(name, "life", 1, 2)             \
    {                                       \
        if (r->rank == 0) {                 \
            ONE_OK(work);                   \
        }                                   \
        CHECK_OK(ahead);                    \
        OTHER_OK(iris_free(r->iris, r->x)); \
        return 0;                           \
    }

#define OTHER_IF_WRONG (r->wrong ? r->t : r->s)
#define MEET_ON(stream) iris_barrier(r->iris, stream, NULL)
FREED(freed_during_put, PUT_TO(1), quiet(r, OTHER_IF_WRONG))
FREED(freed_during_get, GET_FROM(1), quiet(r, OTHER_IF_WRONG))
FREED(freed_behind_a_wrong_barrier, PUT_TO(1), MEET_ON(OTHER_IF_WRONG))
#undef FREED

RMA_BUG(put_to_freed_memory, "life", 1, 2)
{
    if (r->wrong) {
        OTHER_OK(iris_free(r->iris, r->x));
    }
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(quiet(r, r->s));
    }
    if (!r->wrong) {
        CHECK_OK(iris_free(r->iris, r->x));
    }
    return 0;
}

/* The twin uses the same bytes again, as another allocation. The order of the
 * run decides whether the put races with the free or with what fills the new
 * allocation. */
RMA_BUG(freed_and_allocated_again, NULL, 1, 2)
{
    void *again;

    CHECK_EQUAL(put_it(r, 1), 0);
    CHECK_OK(iris_barrier(r->iris, r->wrong ? r->t : r->s, NULL));
    CHECK_OK(iris_free(r->iris, r->x));
    CHECK_OK(iris_calloc(r->iris, 1, 1024, &again));
    CHECK_OK(write_own(r, again, r->s));
    return 0;
}

#endif /* IRIS_TESTS_CHECK_BUGS_RMA_MEMORY_H */
