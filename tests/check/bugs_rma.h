/* SPDX-License-Identifier: MIT
 *
 * Bugs of programs that use host calls only, in the manner of OpenSHMEM: put,
 * get, signal, wait, barrier. iris_stream_synchronize() is their quiet. Here:
 * barriers, signals and waits.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_RMA_H
#define IRIS_TESTS_CHECK_BUGS_RMA_H

#include "check/bug.h"
#include "support/harness.h"

/* A rank's part. The heap has an inbox x, what is sent and what is received. */
struct rma {
    iris_t *iris;
    const struct bug_args *a;
    int rank, wrong;
    int32_t *x, *out, *in;
    uint64_t *f;
    iris_stream_t *s, *t;
};

#define BYTES 64

/* Macros: a report names the line of the call. */
#define put(r, to, rank, stream) \
    iris_put_on_stream((r)->iris, to, (r)->out, BYTES, rank, stream)
#define get(r, from, rank, stream) \
    iris_get_on_stream((r)->iris, (r)->in, from, BYTES, rank, stream)
#define put_set(r, to, value, rank)                                          \
    iris_put_signal_on_stream((r)->iris, to, (r)->out, BYTES, (r)->f, value, \
                              IRIS_SIGNAL_SET, rank, (r)->s)
#define read_own(r, from, stream) \
    iris_memcpy((r)->iris, (r)->in, from, BYTES, stream)
#define write_own(r, to, stream) iris_memset((r)->iris, to, 1, BYTES, stream)

#define set(r, flag, rank, stream) \
    iris_signal_on_stream((r)->iris, &(r)->f[flag], 1, rank, stream)
#define await(r, flag, value, stream) \
    iris_wait_on_stream((r)->iris, &(r)->f[flag], IRIS_CMP_GE, value, stream)

static iris_status_t quiet(const struct rma *r, iris_stream_t *stream)
{
    return iris_stream_synchronize(r->iris, stream);
}

/* Of the hosts: on a stream that has no work. */
static iris_status_t meet(const struct rma *r)
{
    return iris_barrier(r->iris, NULL, NULL);
}

static int with_streams(iris_t *iris, const struct bug_args *a, int32_t *x,
                        int (*part)(const struct rma *r))
{
    struct rma r = {iris,   a,       iris_rank(iris), a->wrong, x,
                    &x[64], &x[128], a->flags,        NULL,     NULL};
    int failed;

    CHECK_OK(iris_stream_create(iris, &r.s));
    CHECK_OK(iris_stream_create(iris, &r.t));
    failed = part(&r);
    iris_stream_destroy(iris, r.s);
    iris_stream_destroy(iris, r.t);
    return failed;
}

#define RMA_BUG(name, ...)                            \
    static int name##_part(const struct rma *r);      \
    HOST_BUG(name, __VA_ARGS__)                       \
    {                                                 \
        return with_streams(iris, a, x, name##_part); \
    }                                                 \
    static int name##_part(const struct rma *r)

/* ---- Quiet and barrier ---- */

static int put_it(const struct rma *r, int rank)
{
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, rank, r->s));
    }
    return 0;
}

static int read_it(const struct rma *r, int rank)
{
    if (r->rank == rank) {
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* Rank 0 puts, and rank 1 reads behind what is between. */
#define PUT_THEN_READ(name, between)           \
    RMA_BUG(name, NULL, 1, 2)                  \
    {                                          \
        CHECK_EQUAL(put_it(r, 1), 0);          \
        between CHECK_EQUAL(read_it(r, 1), 0); \
        return 0;                              \
    }

PUT_THEN_READ(quiet_missing, {
    if (!r->wrong) {
        CHECK_OK(quiet(r, r->s));
    }
    CHECK_OK(meet(r));
})

PUT_THEN_READ(quiet_of_another_stream, {
    CHECK_OK(quiet(r, r->wrong ? r->t : r->s));
    CHECK_OK(meet(r));
})

PUT_THEN_READ(quiet_without_barrier, {
    CHECK_OK(quiet(r, r->s));
    if (!r->wrong) {
        CHECK_OK(meet(r));
    }
})

PUT_THEN_READ(quiet_behind_barrier, {
    if (r->wrong) {
        CHECK_OK(meet(r));
    }
    CHECK_OK(quiet(r, r->s));
    if (!r->wrong) {
        CHECK_OK(meet(r));
    }
})

PUT_THEN_READ(quiet_missing_before_broadcast, {
    int value = 0;

    if (!r->wrong) {
        CHECK_OK(quiet(r, r->s));
    }
    CHECK_OK(iris_broadcast(r->iris, &value, sizeof value, 0, NULL));
})

PUT_THEN_READ(barrier_on_another_stream, {
    CHECK_OK(iris_barrier(r->iris, r->wrong ? r->t : r->s, NULL));
})

PUT_THEN_READ(device_barrier_on_another_stream, {
    CHECK_OK(iris_device_barrier(r->iris, r->wrong ? r->t : r->s, NULL));
})

PUT_THEN_READ(reduction_on_another_stream, {
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = r->wrong ? r->t : r->s;
    CHECK_OK(iris_all_reduce(r->iris, &r->in[64], &r->in[96], 4, IRIS_DTYPE_I32,
                             IRIS_REDUCE_SUM, &options));
})
#undef PUT_THEN_READ

RMA_BUG(put_behind_barrier, NULL, 1, 2)
{
    if (r->wrong) {
        CHECK_OK(meet(r));
    }
    CHECK_EQUAL(put_it(r, 1), 0);
    CHECK_OK(quiet(r, r->s));
    if (!r->wrong) {
        CHECK_OK(meet(r));
    }
    CHECK_EQUAL(read_it(r, 1), 0);
    return 0;
}

/* The barrier is of the first two ranks, but the third one reads. */
RMA_BUG(barrier_without_the_reader, NULL, 1, 3)
{
    int all[64], pair = r->rank < 2, first = pair ? 0 : r->rank;
    iris_group_t *group;

    for (int i = 0; i < iris_num_ranks(r->iris); i++) {
        all[i] = i;
    }
    CHECK_OK(
        r->wrong
            ? iris_group_create(r->iris, &all[first], pair ? 2 : 1, &group)
            : iris_group_create(r->iris, all, iris_num_ranks(r->iris), &group));
    CHECK_EQUAL(put_it(r, 2), 0);
    CHECK_OK(iris_barrier(r->iris, r->s, group));
    CHECK_EQUAL(read_it(r, 2), 0);
    return 0;
}

/* A stream that ends has done its work; the peers must hear of it after that. */
RMA_BUG(stream_ended_behind_barrier, NULL, 1, 2)
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(r->iris, &stream));
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, stream));
    }
    if (!r->wrong) {
        iris_stream_destroy(r->iris, stream);
    }
    CHECK_OK(meet(r));
    if (r->rank == 1) {
        OTHER_OK(read_own(r, r->x, r->s));
    }
    if (r->wrong) {
        iris_stream_destroy(r->iris, stream);
    }
    return 0;
}

/* ---- Signals and waits ---- */

RMA_BUG(get_ahead_of_wait, NULL, 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(write_own(r, r->x, r->s));
        CHECK_OK(set(r, 0, 1, r->s));
    } else if (r->rank == 1 && r->wrong) {
        OTHER_OK(get(r, r->x, 0, r->s));
        CHECK_OK(await(r, 0, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(get(r, r->x, 0, r->s));
    }
    return 0;
}

RMA_BUG(signal_ahead_of_fill, NULL, 1, 2)
{
    if (r->rank == 0 && r->wrong) {
        CHECK_OK(set(r, 0, 1, r->s));
        ONE_OK(write_own(r, r->x, r->s));
    } else if (r->rank == 0) {
        ONE_OK(write_own(r, r->x, r->s));
        CHECK_OK(set(r, 0, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(get(r, r->x, 0, r->s));
    }
    return 0;
}

RMA_BUG(signal_on_another_stream, NULL, 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(set(r, 0, 1, r->wrong ? r->t : r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

RMA_BUG(wait_on_another_stream, NULL, 1, 2)
{
    if (r->rank == 0) {
        ONE_OK(put_set(r, r->x, 1, 1));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->wrong ? r->t : r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* The second put is behind the second signal. */
RMA_BUG(wait_for_an_earlier_signal, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(put_set(r, &r->x[16], 1, 1));
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(set(r, 1, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, r->wrong ? 0 : 1, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* A put of the flag's bytes is no signal. */
RMA_BUG(flag_by_put, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(write_own(r, r->out, r->s));
        ONE_OK(put(r, r->x, 1, r->s));
        CHECK_OK(r->wrong ? iris_put_on_stream(r->iris, r->f, r->out,
                                               sizeof *r->f, 1, r->s)
                          : set(r, 0, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* The receiver clears its flag while a signal may be on its way. */
RMA_BUG(flag_cleared_late, NULL, 1, 2)
{
    if (r->rank == 1) {
        ONE_OK(iris_memset(r->iris, r->f, 0, sizeof *r->f, r->s));
        CHECK_OK(quiet(r, r->s));
    }
    if (!r->wrong) {
        CHECK_OK(meet(r));
    }
    if (r->rank == 0) {
        OTHER_OK(set(r, 0, 1, r->s));
    }
    return 0;
}

/* Data and signals go from rank to rank. */
RMA_BUG(forwarded_unwaited, NULL, 1, 3)
{
    if (r->rank == 0) {
        ONE_OK(put_set(r, r->x, 1, 1));
    } else if (r->rank == 1) {
        if (!r->wrong) {
            CHECK_OK(await(r, 0, 1, r->s));
        }
        CHECK_OK(iris_put_signal_on_stream(r->iris, r->x, r->x, BYTES, r->f, 1,
                                           IRIS_SIGNAL_SET, 2, r->s));
    } else if (r->rank == 2) {
        CHECK_OK(await(r, 0, 1, r->s));
        CHECK_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* Rank 1 hears of rank 0's put from rank 2. */
RMA_BUG(relay_told_too_early, NULL, 1, 3)
{
    if (r->rank == 0) {
        if (r->wrong) {
            CHECK_OK(set(r, 0, 2, r->s));
        }
        ONE_OK(put(r, r->x, 1, r->s));
        if (!r->wrong) {
            CHECK_OK(set(r, 0, 2, r->s));
        }
    } else if (r->rank == 2) {
        CHECK_OK(await(r, 0, 1, r->s));
        CHECK_OK(set(r, 0, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
    }
    return 0;
}

/* The second round overwrites what the first one's reader may still read. */
RMA_BUG(round_unanswered, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(put_set(r, r->x, 1, 1));
        if (!r->wrong) {
            CHECK_OK(await(r, 1, 1, r->s));
        }
        ONE_OK(put(r, r->x, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        OTHER_OK(read_own(r, r->x, r->s));
        CHECK_OK(set(r, 1, 0, r->s));
    }
    return 0;
}

RMA_BUG(answer_ahead_of_read, NULL, 1, 2)
{
    if (r->rank == 0) {
        CHECK_OK(put_set(r, r->x, 1, 1));
        CHECK_OK(await(r, 1, 1, r->s));
        ONE_OK(put(r, r->x, 1, r->s));
    } else if (r->rank == 1) {
        CHECK_OK(await(r, 0, 1, r->s));
        if (r->wrong) {
            CHECK_OK(set(r, 1, 0, r->s));
        }
        OTHER_OK(read_own(r, r->x, r->s));
        if (!r->wrong) {
            CHECK_OK(set(r, 1, 0, r->s));
        }
    }
    return 0;
}

#endif /* IRIS_TESTS_CHECK_BUGS_RMA_H */
