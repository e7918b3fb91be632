/* SPDX-License-Identifier: MIT
 *
 * Bugs of programs of host calls with collectives on streams: what they order,
 * and their buffers.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_COLLECTIVES_H
#define IRIS_TESTS_CHECK_BUGS_COLLECTIVES_H

#include "check/bugs_rma.h"

static inline struct iris_ccl_options options_of(iris_stream_t *stream)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = stream;
    return options;
}

/* ---- What they order ---- */

/* `to` reads what rank 0 has put there, with a collective between the two. The
 * bug is its root, or its stream `at`. */
#define COLLECTIVE(name, ranks, to, at, call)             \
    RMA_BUG(name, NULL, 1, ranks)                         \
    {                                                     \
        struct iris_ccl_options options = options_of(at); \
        const int32_t *part = &r->x[192];                 \
        int32_t *result = &r->x[208];                     \
                                                          \
        CHECK_EQUAL(put_it(r, to), 0);                    \
        CHECK_OK(call);                                   \
        CHECK_EQUAL(read_it(r, to), 0);                   \
        return 0;                                         \
    }
#define OTHER_STREAM (r->wrong ? r->t : r->s)

COLLECTIVE(broadcast_of_the_reader, 2, 1, r->s,
           iris_ccl_broadcast(r->iris, part, result, 4, IRIS_DTYPE_I32,
                              r->wrong ? 1 : 0, &options))
COLLECTIVE(broadcast_of_a_third_rank, 3, 1, r->s,
           iris_ccl_broadcast(r->iris, part, result, 4, IRIS_DTYPE_I32,
                              r->wrong ? 2 : 0, &options))
COLLECTIVE(scatter_of_the_reader, 2, 1, r->s,
           iris_scatter(r->iris, part, result, 4, IRIS_DTYPE_I32,
                        r->wrong ? 1 : 0, &options))
COLLECTIVE(reduce_to_the_writer, 2, 1, r->s,
           iris_reduce(r->iris, part, result, 4, IRIS_DTYPE_I32,
                       IRIS_REDUCE_SUM, r->wrong ? 0 : 1, &options))
COLLECTIVE(gather_to_the_writer, 2, 1, r->s,
           iris_gather(r->iris, part, result, 4, IRIS_DTYPE_I32,
                       r->wrong ? 0 : 1, &options))
COLLECTIVE(gather_to_a_third_rank, 3, 1, r->s,
           iris_gather(r->iris, part, result, 4, IRIS_DTYPE_I32,
                       r->wrong ? 2 : 1, &options))
COLLECTIVE(all_gather_on_another_stream, 2, 1, OTHER_STREAM,
           iris_all_gather(r->iris, part, result, 4, IRIS_DTYPE_I32, &options))
COLLECTIVE(reduce_scatter_on_another_stream, 2, 1, OTHER_STREAM,
           iris_reduce_scatter(r->iris, part, result, 4, IRIS_DTYPE_I32,
                               IRIS_REDUCE_SUM, &options))
COLLECTIVE(all_to_all_on_another_stream, 2, 1, OTHER_STREAM,
           iris_all_to_all(r->iris, part, result, 4, IRIS_DTYPE_I32, &options))

static const size_t fours[64] = {4, 4, 4, 4};

COLLECTIVE(all_gatherv_on_another_stream, 2, 1, OTHER_STREAM,
           iris_all_gatherv(r->iris, part, result, fours, NULL, IRIS_DTYPE_I32,
                            &options))
COLLECTIVE(all_to_allv_on_another_stream, 2, 1, OTHER_STREAM,
           iris_all_to_allv(r->iris, part, fours, NULL, result, fours, NULL,
                            IRIS_DTYPE_I32, &options))

/* Ranks 0 and 1 alone; the group has its workspace already. */
static inline iris_status_t message(const struct rma *r, int from,
                                    const struct iris_ccl_options *options)
{
    if (r->rank > 1) {
        return IRIS_OK;
    }
    return r->rank == from ? iris_send(r->iris, &r->x[192], 4, IRIS_DTYPE_I32,
                                       1 - from, options)
                           : iris_recv(r->iris, &r->x[208], 4, IRIS_DTYPE_I32,
                                       from, options);
}

#define MESSAGE(name, from, at)                                      \
    RMA_BUG(name, NULL, 1, 3)                                        \
    {                                                                \
        struct iris_ccl_options options = options_of(at);            \
                                                                     \
        CHECK_OK(iris_all_gather(r->iris, &r->x[192], &r->x[208], 4, \
                                 IRIS_DTYPE_I32, &options));         \
        CHECK_EQUAL(put_it(r, 1), 0);                                \
        CHECK_OK(message(r, from, &options));                        \
        CHECK_EQUAL(read_it(r, 1), 0);                               \
        return 0;                                                    \
    }

MESSAGE(message_the_other_way, r->wrong ? 1 : 0, r->s)
MESSAGE(message_on_another_stream, 0, OTHER_STREAM)
#undef MESSAGE
#undef COLLECTIVE
#undef OTHER_STREAM

RMA_BUG(reduction_of_another_group, NULL, 1, 2)
{
    struct iris_ccl_options options = options_of(r->s);
    int all[64], first = r->wrong ? r->rank : 0;

    for (int i = 0; i < iris_num_ranks(r->iris); i++) {
        all[i] = i;
    }
    CHECK_OK(iris_group_create(r->iris, &all[first],
                               r->wrong ? 1 : iris_num_ranks(r->iris),
                               &options.group));
    CHECK_EQUAL(put_it(r, 1), 0);
    CHECK_OK(iris_all_reduce(r->iris, &r->x[192], &r->x[208], 4, IRIS_DTYPE_I32,
                             IRIS_REDUCE_SUM, &options));
    CHECK_EQUAL(read_it(r, 1), 0);
    return 0;
}

/* ---- Their buffers ---- */

#define sum(r, from, to, options)                                             \
    iris_all_reduce((r)->iris, from, to, 16, IRIS_DTYPE_I32, IRIS_REDUCE_SUM, \
                    options)

RMA_BUG(put_to_an_input, NULL, 1, 2)
{
    struct iris_ccl_options options = options_of(r->s);

    CHECK_EQUAL(put_it(r, 1), 0);
    if (!r->wrong) {
        CHECK_OK(iris_barrier(r->iris, r->s, NULL));
    }
    OTHER_OK(sum(r, r->x, &r->x[192], &options));
    return 0;
}

RMA_BUG(get_of_a_result, NULL, 1, 2)
{
    struct iris_ccl_options options = options_of(r->s);

    ONE_OK(sum(r, &r->x[192], r->x, &options));
    if (!r->wrong) {
        CHECK_OK(iris_barrier(r->iris, r->s, NULL));
    }
    if (r->rank == 0) {
        OTHER_OK(get(r, r->x, 1, r->s));
    }
    return 0;
}

/* The result is sent on from another stream. */
RMA_BUG(result_put_unwaited, "stream order", 1, 2)
{
    struct iris_ccl_options options = options_of(r->s);

    ONE_OK(sum(r, &r->x[192], r->out, &options));
    if (!r->wrong) {
        CHECK_OK(quiet(r, r->s));
    }
    if (r->rank == 0) {
        OTHER_OK(put(r, r->x, 1, r->t));
    }
    return 0;
}

RMA_BUG(input_filled_on_another_stream, "stream order", 1, 2)
{
    struct iris_ccl_options options = options_of(r->s);

    ONE_OK(write_own(r, r->x, r->wrong ? r->t : r->s));
    OTHER_OK(sum(r, r->x, &r->x[192], &options));
    return 0;
}

RMA_BUG(freed_during_a_reduction, "life", 1, 2)
{
    struct iris_ccl_options options = options_of(r->s);

    ONE_OK(sum(r, r->x, &r->x[192], &options));
    CHECK_OK(quiet(r, r->wrong ? r->t : r->s));
    OTHER_OK(iris_free(r->iris, r->x));
    return 0;
}
#undef sum

#endif /* IRIS_TESTS_CHECK_BUGS_COLLECTIVES_H */
