/* SPDX-License-Identifier: MIT
 *
 * Sleeping on a shared word.
 */
#ifndef IRIS_SRC_BASE_FUTEX_H
#define IRIS_SRC_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is `seen`, at most `ns`. May return early. */
static inline void iris_i_futex_wait(atomic_uint *word, unsigned seen,
                                     int64_t ns)
{
    struct timespec timeout = {.tv_sec = ns / 1000000000,
                               .tv_nsec = ns % 1000000000};

    syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

static inline void iris_i_futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif /* IRIS_SRC_BASE_FUTEX_H */
