/* SPDX-License-Identifier: MIT
 *
 * Bugs of order: release and acquire that are missing or too narrow.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_ORDER_H
#define IRIS_TESTS_CHECK_BUGS_ORDER_H

#include "check/bug.h"

#define WG IRIS_SCOPE_WG
#define SET(sem, scope) iris_atomic_store(d, f, 1, 1, sem, scope)
#define ADD(sem, scope) iris_atomic_add(d, f, 1, 1, sem, scope)
#define POLL(sem, scope) (iris_atomic_load(d, f, 1, sem, scope) != 0)

/* Rank 0 produces, and after a fence sets the flag by the call to change. Each use
 * is one line: clang gives the last line of a macro, and debuggers the first. */
#define RELEASE_FENCE_BUG(name, missing, fence, flag) \
    BUG(name, missing, 1, 2)                          \
    {                                                 \
        if (d.rank == 0) {                            \
            produce(d, x);                            \
            fence;                                    \
            CHANGE(flag);                             \
        } else if (d.rank == 1) {                     \
            receive(d, x, f);                         \
        }                                             \
    }
#define RELEASE_BUG(name, missing, flag) \
    RELEASE_FENCE_BUG(name, missing, (void)0, flag)
/* Rank 1 polls by the condition to change, and consumes after a fence. */
#define ACQUIRE_FENCE_BUG(name, missing, fence, condition) \
    BUG(name, missing, 1, 2)                               \
    {                                                      \
        if (d.rank == 0) {                                 \
            send(d, x, f);                                 \
        } else if (d.rank == 1) {                          \
            CHANGE(0);                                     \
            while (!(condition)) {                         \
            }                                              \
            fence;                                         \
            consume(d, x);                                 \
        }                                                  \
    }
#define ACQUIRE_BUG(name, missing, condition) \
    ACQUIRE_FENCE_BUG(name, missing, (void)0, condition)

/* clang-format off */
/* ---- Release ---- */

/* The check gets the stores of a loop in few pieces. */
BUG(release_of_loop_missing, "release", 1, 2)
{
    if (d.rank == 0) {
        for (int i = 3; i < 200; i++) {
            ONE(iris_store(d, &x[i], 7, 1));
        }
        CHANGE(iris_atomic_store(d, f, 1, 1, wrong ? RLX : REL, SYS));
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, &x[199], 1));
    }
}
RELEASE_BUG(release_missing, "release", SET(wrong ? RLX : REL, SYS))
RELEASE_BUG(release_of_agent, "wider scope", SET(REL, wrong ? AGENT : SYS))
RELEASE_BUG(release_of_workgroup, "wider scope", SET(REL, wrong ? WG : SYS))

BUG(release_by_volatile, "release", 1, 2)
{
    if (d.rank == 0) {
        produce(d, x);
        if (wrong) {
            CHANGE(iris_store_volatile(d, f, 1, 1));
        } else {
            iris_signal_set(d, f, 1, 1);
        }
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}
RELEASE_BUG(release_by_add, "release", ADD(wrong ? RLX : REL, SYS))
RELEASE_BUG(release_by_exchange, "wider scope", iris_atomic_xchg(d, f, 1, 1, REL, wrong ? AGENT : SYS))
RELEASE_BUG(release_by_swap, "release", iris_atomic_cas(d, f, 0, 1, 1, wrong ? RLX : REL, SYS))
RELEASE_BUG(release_by_max, "release", iris_atomic_max(d, f, 1, 1, wrong ? RLX : REL, SYS))
/* An update that acquires where it should release. */
RELEASE_BUG(release_is_acquire, "release", iris_atomic_or(d, f, 1, 1, wrong ? ACQ : REL, SYS))

/* ---- Acquire ---- */
ACQUIRE_BUG(acquire_missing, "acquire", POLL(wrong ? RLX : ACQ, SYS))
ACQUIRE_BUG(acquire_of_agent, "wider scope", POLL(ACQ, wrong ? AGENT : SYS))
ACQUIRE_BUG(acquire_of_workgroup, "wider scope", POLL(ACQ, wrong ? WG : SYS))

BUG(acquire_by_volatile, "acquire", 1, 2)
{
    if (d.rank == 0) {
        send(d, x, f);
    } else if (d.rank == 1 && wrong) {
        CHANGE_BELOW;
        while (iris_load_volatile(d, f, 1) == 0) {
        }
        consume(d, x);
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}
ACQUIRE_BUG(acquire_by_swap, "acquire", iris_atomic_cas(d, f, 1, 2, 1, wrong ? RLX : ACQ, SYS) == 1)
/* An update that releases where it should acquire. */
ACQUIRE_BUG(acquire_is_release, "acquire", iris_atomic_and(d, f, 1, 1, wrong ? REL : ACQ, SYS) != 0)

/* ---- Fences ---- */
RELEASE_FENCE_BUG(release_fence_missing, "release", iris_fence(wrong ? RLX : REL, SYS), SET(RLX, SYS))
RELEASE_FENCE_BUG(release_fence_of_workgroup, "wider scope", iris_fence(REL, wrong ? WG : SYS), SET(RLX, SYS))
RELEASE_FENCE_BUG(release_fence_of_agent, "wider scope", iris_fence(IRIS_ACQ_REL, wrong ? AGENT : SYS), ADD(RLX, SYS))
RELEASE_FENCE_BUG(release_fences_of_agent, "wider scope", iris_fence(REL, wrong ? AGENT : SYS); iris_fence(REL, AGENT), SET(RLX, SYS))
RELEASE_FENCE_BUG(release_fence_is_acquire, "release", iris_fence(wrong ? ACQ : REL, SYS), SET(RLX, SYS))

BUG(release_fence_late, "release", 1, 2)
{
    if (d.rank == 0) {
        produce(d, x);
        iris_fence(wrong ? RLX : REL, SYS);
        CHANGE(iris_atomic_store(d, f, 1, 1, RLX, SYS));
        iris_fence(REL, SYS);
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}

BUG(release_fence_early, NULL, 1, 2)
{
    if (d.rank == 0) {
        iris_fence(REL, SYS);
        produce(d, x);
        iris_fence(wrong ? RLX : REL, SYS);
        iris_atomic_store(d, f, 1, 1, RLX, SYS);
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}
ACQUIRE_FENCE_BUG(acquire_fence_missing, "acquire", iris_fence(wrong ? RLX : ACQ, SYS), POLL(RLX, SYS))
ACQUIRE_FENCE_BUG(acquire_fence_of_agent, "acquire", iris_fence(ACQ, wrong ? AGENT : SYS), POLL(RLX, SYS))
ACQUIRE_FENCE_BUG(acquire_fence_is_release, "acquire", iris_fence(wrong ? REL : ACQ, SYS), POLL(RLX, SYS))

/* clang-format on */
/* ---- Workgroups of one rank ---- */

BUG(workgroups_release_missing, "release", 2, 2)
{
    iris_sem_t sem = wrong ? RLX : REL;

    if (d.rank == 0 && wg.id == 0) {
        ONE(iris_store(d, x, 7, 0));
        CHANGE(iris_atomic_store(d, f, 1, 0, sem, AGENT));
    } else if (d.rank == 0) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 0));
    }
}

BUG(workgroups_release_narrow, "wider scope", 2, 2)
{
    iris_scope_t scope = wrong ? IRIS_SCOPE_WG : AGENT;

    if (d.rank == 0 && wg.id == 0) {
        ONE(iris_store(d, x, 7, 0));
        CHANGE(iris_atomic_store(d, f, 1, 0, REL, scope));
    } else if (d.rank == 0) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 0));
    }
}

BUG(workgroups_acquire_missing, "acquire", 2, 2)
{
    if (d.rank == 0 && wg.id == 0) {
        ONE(iris_store(d, x, 7, 0));
        iris_atomic_store(d, f, 1, 0, REL, AGENT);
    } else if (d.rank == 0) {
        CHANGE_BELOW;
        while (iris_atomic_load(d, f, 0, wrong ? RLX : ACQ, AGENT) == 0) {
        }
        OTHER(iris_load(d, x, 0));
    }
}

/* ---- Chains and locks ---- */

BUG(chain_release_missing, "release", 1, 3)
{
    iris_sem_t sem = wrong ? RLX : REL;

    if (d.rank == 0) {
        ONE(iris_store(d, x, 7, 2));
        iris_signal_set(d, f, 1, 1);
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        CHANGE(iris_atomic_store(d, f, 1, 2, sem, SYS));
    } else if (d.rank == 2) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 2));
    }
}

BUG(chain_acquire_narrow, "wider scope", 1, 3)
{
    if (d.rank == 0) {
        ONE(iris_store(d, x, 7, 2));
        iris_signal_set(d, f, 1, 1);
    } else if (d.rank == 1) {
        CHANGE_BELOW;
        while (iris_atomic_load(d, f, 1, ACQ, wrong ? AGENT : SYS) == 0) {
        }
        iris_signal_set(d, f, 1, 2);
    } else if (d.rank == 2) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 2));
    }
}

/* A store, unlike an update, does not carry on what was released before. */
BUG(chain_broken_by_store, "release", 1, 3)
{
    if (d.rank == 0) {
        ONE(iris_store(d, x, 7, 2));
        iris_signal_set(d, f, 1, 2);
    } else if (d.rank == 1) {
        while (iris_atomic_load(d, f, 2, RLX, SYS) == 0) {
        }
        if (wrong) {
            CHANGE(iris_atomic_store(d, f, 2, 2, RLX, SYS));
        } else {
            iris_atomic_add(d, f, 1, 2, RLX, SYS);
        }
    } else if (d.rank == 2) {
        wait_for(d, f, 2);
        OTHER(iris_load(d, x, 2));
    }
}

/* Ranks 0 and 1 add to an element of rank 1 under a lock. */
static inline void add_locked(iris_dev_t d, int32_t *x, uint64_t *f,
                              iris_sem_t lock, iris_sem_t unlock,
                              iris_scope_t scope)
{
    if (d.rank > 1) {
        return;
    }
    while (iris_atomic_cas(d, f, 0, 1, 1, lock, SYS) != 0) {
    }
    ONE(iris_store(d, x, d.rank, 1));
    CHANGE(iris_atomic_store(d, f, 0, 1, unlock, scope));
}

BUG(unlock_releases_nothing, "release", 1, 2)
{
    add_locked(d, x, f, ACQ, wrong ? RLX : REL, SYS);
}

BUG(unlock_of_agent, "wider scope", 1, 2)
{
    add_locked(d, x, f, ACQ, REL, wrong ? AGENT : SYS);
}

BUG(lock_acquires_nothing, "acquire", 1, 2)
{
    add_locked(d, x, f, wrong ? RLX : ACQ, REL, SYS);
    atomic_store(&bug_lines[2], 0); /* the report names the lock */
}

#endif /* IRIS_TESTS_CHECK_BUGS_ORDER_H */
