/* SPDX-License-Identifier: MIT
 *
 * Monotonic time and deadlines.
 */
#ifndef IRIS_SRC_BASE_CLOCK_H
#define IRIS_SRC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t iris_i_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The time `timeout_ms` from now; 0 means never. */
static inline int64_t iris_i_deadline(int64_t timeout_ms)
{
    return timeout_ms == 0 ? INT64_MAX : iris_i_now_ns() + timeout_ms * 1000000;
}

#endif /* IRIS_SRC_BASE_CLOCK_H */
