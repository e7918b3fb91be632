/* SPDX-License-Identifier: MIT
 *
 * Kernels with a bug that the race checker must find, each with a twin that has
 * none. They note at which lines.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_H
#define IRIS_TESTS_CHECK_BUGS_H

#include <iris/device.h>

#include <stdatomic.h>

/* Bugs that one launch on every rank shows. */
enum bug {
    MISSING_RELEASE,
    NARROW_RELEASE,
    MISSING_ACQUIRE,
    NARROW_ACQUIRE,
    MISSING_RELEASE_FENCE,
    NARROW_RELEASE_FENCE,
    MISSING_ACQUIRE_FENCE,
    LOST_FLAG,
    PLAIN_FLAG,
    EARLY_REUSE,
    SIGNAL_AHEAD,
    SIGNAL_AHEAD_OF_BULK,
    OVERLAP,
    MIXED_ATOMIC,
    MIXED_LOAD,
    NARROW_COUNTER,
    TWO_SIZES,
    NARROW_WORKGROUPS,
    WRONG_BARRIER,
    WRONG_STREAM,
    USE_AFTER_FREE,
    UNWAITED_COPY,
    UNWAITED_PUT,
    NUM_BUGS,
};

struct bug_args {
    const int64_t *context;
    enum bug bug;
    int wrong; /* 0: the correct twin */
    int step;
    int32_t *data;
    uint64_t *flags;
};

/* Lines of the two accesses, and of what is to be changed. */
static _Atomic int lines[3];
#define NEXT_LINE(i) atomic_store(&lines[i], __LINE__ + 1)

#define SYSTEM IRIS_SCOPE_SYSTEM

/* What rank 0 does, before rank 1 may read. */
static void store_and_signal(iris_dev_t dev, const struct bug_args *args)
{
    int wrong = args->wrong;
    uint64_t *flag = args->flags;

    if (args->bug == SIGNAL_AHEAD && wrong) {
        NEXT_LINE(2);
        iris_signal_set(dev, flag, 1, 1);
    }
    NEXT_LINE(0);
    iris_store(dev, args->data, 7, 1);
    switch (args->bug) {
    case MISSING_RELEASE:
        NEXT_LINE(2);
        iris_atomic_store(dev, flag, 1, 1, wrong ? IRIS_RELAXED : IRIS_RELEASE,
                          SYSTEM);
        break;
    case NARROW_RELEASE:
        NEXT_LINE(2);
        iris_atomic_store(dev, flag, 1, 1, IRIS_RELEASE,
                          wrong ? IRIS_SCOPE_AGENT : SYSTEM);
        break;
    case MISSING_RELEASE_FENCE:
    case NARROW_RELEASE_FENCE:
        if (args->bug == NARROW_RELEASE_FENCE || !wrong) {
            iris_fence(IRIS_RELEASE, wrong ? IRIS_SCOPE_WG : SYSTEM);
        }
        NEXT_LINE(2);
        iris_atomic_store(dev, flag, 1, 1, IRIS_RELAXED, SYSTEM);
        break;
    case PLAIN_FLAG:
        if (wrong) {
            NEXT_LINE(2);
            iris_store(dev, flag, 1, 1);
            break;
        }
        iris_signal_set(dev, flag, 1, 1);
        break;
    case SIGNAL_AHEAD:
        if (wrong) {
            break;
        }
        iris_signal_set(dev, flag, 1, 1);
        break;
    default:
        iris_signal_set(dev, flag, 1, 1);
        break;
    }
}

/* What rank 1 does. */
static void wait_and_load(iris_dev_t dev, const struct bug_args *args)
{
    int wrong = args->wrong;
    uint64_t *flag = args->flags;

    switch (args->bug) {
    case MISSING_ACQUIRE:
        NEXT_LINE(2);
        while (iris_atomic_load(dev, flag, 1,
                                wrong ? IRIS_RELAXED : IRIS_ACQUIRE,
                                SYSTEM) == 0) {
        }
        break;
    case NARROW_ACQUIRE:
        NEXT_LINE(2);
        while (iris_atomic_load(dev, flag, 1, IRIS_ACQUIRE,
                                wrong ? IRIS_SCOPE_AGENT : SYSTEM) == 0) {
        }
        break;
    case MISSING_ACQUIRE_FENCE:
        NEXT_LINE(2);
        while (iris_atomic_load(dev, flag, 1, IRIS_RELAXED, SYSTEM) == 0) {
        }
        if (!wrong) {
            iris_fence(IRIS_ACQUIRE, SYSTEM);
        }
        break;
    case LOST_FLAG:
        if (wrong) {
            break;
        }
        iris_wait_until(dev, flag, IRIS_CMP_EQ, 1);
        break;
    default:
        iris_wait_until(dev, flag, IRIS_CMP_EQ, 1);
        break;
    }
    NEXT_LINE(1);
    (void)iris_load(dev, args->data, 1);
}

/* Bugs whose accesses are others. */
static void reuse_early(iris_dev_t dev, const struct bug_args *args)
{
    if (dev.rank == 0) {
        iris_store(dev, args->data, 1, 1);
        iris_signal_set(dev, &args->flags[0], 1, 1);
        if (!args->wrong) {
            iris_wait_until(dev, &args->flags[1], IRIS_CMP_EQ, 1);
        }
        NEXT_LINE(0);
        iris_store(dev, args->data, 2, 1);
    } else if (dev.rank == 1) {
        iris_wait_until(dev, &args->flags[0], IRIS_CMP_EQ, 1);
        NEXT_LINE(1);
        (void)iris_load(dev, args->data, 1);
        iris_signal_set(dev, &args->flags[1], 1, 0);
    }
}

static void put_bulk(iris_wg_t wg, iris_dev_t dev, const struct bug_args *args)
{
    if (dev.rank == 0 && args->wrong) {
        NEXT_LINE(2);
        iris_signal_set(dev, args->flags, 1, 1);
        NEXT_LINE(0);
        iris_wg_put(wg, dev, args->data, args->data, 64, 1);
    } else if (dev.rank == 0) {
        iris_wg_put_signal(wg, dev, args->data, args->data, 64, args->flags, 1,
                           1);
    } else if (dev.rank == 1) {
        iris_wait_until(dev, args->flags, IRIS_CMP_EQ, 1);
        NEXT_LINE(1);
        (void)iris_load(dev, &args->data[15], 1);
    }
}

/* Ranks 0 and 1 write to neighbouring parts of rank 1's array. */
static void overlap(iris_wg_t wg, iris_dev_t dev, const struct bug_args *args)
{
    if (dev.rank == 0) {
        NEXT_LINE(0);
        iris_wg_put(wg, dev, &args->data[64], args->data, args->wrong ? 68 : 64,
                    1);
    } else if (dev.rank == 1) {
        NEXT_LINE(1);
        iris_wg_put(wg, dev, &args->data[64], &args->data[16], 64, 1);
    }
}

static void count(iris_dev_t dev, const struct bug_args *args)
{
    int wrong = args->wrong;
    iris_scope_t scope =
        args->bug == NARROW_COUNTER && wrong ? IRIS_SCOPE_AGENT : SYSTEM;

    if (dev.rank == 0) {
        NEXT_LINE(0);
        iris_atomic_add(dev, args->flags, 1, 1, IRIS_RELAXED, scope);
    } else if (dev.rank == 1 && args->bug == MIXED_ATOMIC && wrong) {
        NEXT_LINE(1);
        iris_store(dev, args->flags, 1, 1);
    } else if (dev.rank == 1 && args->bug == MIXED_LOAD && wrong) {
        NEXT_LINE(1);
        (void)iris_load(dev, args->flags, 1);
    } else if (dev.rank == 1 && args->bug == TWO_SIZES && wrong) {
        NEXT_LINE(1);
        iris_atomic_add(dev, (uint32_t *)args->flags, 1, 1, IRIS_RELAXED,
                        scope);
    } else if (dev.rank == 1) {
        NEXT_LINE(1);
        iris_atomic_add(dev, args->flags, 1, 1, IRIS_RELAXED, scope);
    }
}

static void pass_on(iris_wg_t wg, iris_dev_t dev, const struct bug_args *args)
{
    iris_scope_t scope = args->wrong ? IRIS_SCOPE_WG : IRIS_SCOPE_AGENT;

    if (dev.rank == 0 && wg.id == 0) {
        NEXT_LINE(0);
        iris_store(dev, args->data, 1, 0);
        NEXT_LINE(2);
        iris_atomic_store(dev, args->flags, 1, 0, IRIS_RELEASE, scope);
    } else if (dev.rank == 0) {
        iris_wait_until(dev, args->flags, IRIS_CMP_EQ, 1);
        NEXT_LINE(1);
        (void)iris_load(dev, args->data, 0);
    }
}

/* Bugs of hosts: a kernel of rank 0 stores, one of rank 1 loads. */
static void store_then_load(iris_dev_t dev, const struct bug_args *args)
{
    if (dev.rank == 0 && args->step == 0) {
        NEXT_LINE(0);
        iris_store(dev, args->data, 1, 1);
    } else if (dev.rank == 1 && args->step == 1) {
        NEXT_LINE(1);
        (void)iris_load(dev, args->data, 1);
    } else if (dev.rank == 1 && args->step == 2) {
        NEXT_LINE(1);
        iris_store(dev, args->data, 2, 1);
    }
}

IRIS_KERNEL(show_bug, struct bug_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    switch (args->bug) {
    case EARLY_REUSE:
        reuse_early(dev, args);
        break;
    case SIGNAL_AHEAD_OF_BULK:
        put_bulk(wg, dev, args);
        break;
    case OVERLAP:
        overlap(wg, dev, args);
        break;
    case MIXED_ATOMIC:
    case MIXED_LOAD:
    case NARROW_COUNTER:
    case TWO_SIZES:
        count(dev, args);
        break;
    case NARROW_WORKGROUPS:
        pass_on(wg, dev, args);
        break;
    case WRONG_BARRIER:
    case WRONG_STREAM:
    case USE_AFTER_FREE:
    case UNWAITED_COPY:
    case UNWAITED_PUT:
        store_then_load(dev, args);
        break;
    default:
        if (dev.rank == 0) {
            store_and_signal(dev, args);
        } else if (dev.rank == 1) {
            wait_and_load(dev, args);
        }
        break;
    }
}

#endif /* IRIS_TESTS_CHECK_BUGS_H */
