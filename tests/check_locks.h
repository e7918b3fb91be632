/* SPDX-License-Identifier: MIT
 *
 * What tests/check_locks.sh includes before each file of src, so that clang checks
 * the locks: the attributes, and pthread's locks with attributes in place of
 * pthread's own, which have none. */
#ifndef IRIS_TESTS_CHECK_LOCKS_H
#define IRIS_TESTS_CHECK_LOCKS_H

#include <pthread.h>

/* In C, `&lock` of a member is that lock of any struct of the type. */
#define IRIS_GUARDED_BY(lock) __attribute__((guarded_by(&lock)))
#define IRIS_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define IRIS_SHARES(...) \
    __attribute__((requires_shared_capability(__VA_ARGS__)))
#define IRIS_ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define IRIS_RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#define IRIS_TRIES(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define IRIS_ACQUIRED_BEFORE(...) __attribute__((acquired_before(__VA_ARGS__)))
#define IRIS_UNCHECKED __attribute__((no_thread_safety_analysis))

struct __attribute__((capability("mutex"))) checked_mutex {
    pthread_mutex_t mutex;
};
struct __attribute__((capability("mutex"))) checked_rwlock {
    pthread_rwlock_t rwlock;
};

/* A lock that is being made or destroyed has one user, who needs not take it. */
#define HOLDS(lock) __attribute__((assert_capability(lock)))
int checked_init(struct checked_mutex *lock,
                 const pthread_mutexattr_t *attributes) HOLDS(lock);
int checked_destroy(struct checked_mutex *lock) HOLDS(lock);
int checked_consistent(struct checked_mutex *lock) IRIS_REQUIRES(lock);
int checked_lock(struct checked_mutex *lock) IRIS_ACQUIRES(lock);
int checked_trylock(struct checked_mutex *lock)
    __attribute__((try_acquire_capability(0, lock)));
int checked_unlock(struct checked_mutex *lock) IRIS_RELEASES(lock);
int checked_wait(pthread_cond_t *cond, struct checked_mutex *lock)
    IRIS_REQUIRES(lock);
int checked_timedwait(pthread_cond_t *cond, struct checked_mutex *lock,
                      const struct timespec *end) IRIS_REQUIRES(lock);
int checked_rw_init(struct checked_rwlock *lock,
                    const pthread_rwlockattr_t *attributes) HOLDS(lock);
int checked_rw_destroy(struct checked_rwlock *lock) HOLDS(lock);
int checked_rdlock(struct checked_rwlock *lock)
    __attribute__((acquire_shared_capability(lock)));
int checked_wrlock(struct checked_rwlock *lock) IRIS_ACQUIRES(lock);
int checked_rwunlock(struct checked_rwlock *lock)
    __attribute__((release_generic_capability(lock)));

#define pthread_mutex_t struct checked_mutex
#define pthread_rwlock_t struct checked_rwlock
#define pthread_mutex_init checked_init
#define pthread_mutex_destroy checked_destroy
#define pthread_mutex_consistent checked_consistent
#define pthread_mutex_lock checked_lock
#define pthread_mutex_trylock checked_trylock
#define pthread_mutex_unlock checked_unlock
#define pthread_cond_wait checked_wait
#define pthread_cond_timedwait checked_timedwait
#define pthread_rwlock_init checked_rw_init
#define pthread_rwlock_destroy checked_rw_destroy
#define pthread_rwlock_rdlock checked_rdlock
#define pthread_rwlock_wrlock checked_wrlock
#define pthread_rwlock_unlock checked_rwunlock

#endif
