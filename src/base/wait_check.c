/* SPDX-License-Identifier: MIT
 *
 * iris_set_wait_check(): an interpreter runs its handlers of signals while a
 * thread of it waits in the library.
 */
#include "config.h"

#include "base/wait_check.h"

#include <iris/context.h>

#include "base/clock.h"
#include "base/timing.h"

static _Thread_local struct {
    int (*check)(void *arg);
    void *arg;
    int64_t next_ns; /* when it is asked again */
    int busy;        /* paused, or it is being asked */
} wait_check;

void iris_set_wait_check(int (*check)(void *arg), void *arg)
{
    wait_check.check = check;
    wait_check.arg = arg;
    wait_check.next_ns = 0;
}

int iris_i_wait_is_ended(void)
{
    int ended;

    if (wait_check.check == NULL || wait_check.busy ||
        iris_i_now_ns() < wait_check.next_ns) {
        return 0;
    }
    wait_check.busy = 1;
    ended = wait_check.check(wait_check.arg) != 0;
    wait_check.busy = 0;
    wait_check.next_ns = iris_i_now_ns() + IRIS_WAIT_CHECK_MS * IRIS_NS_PER_MS;
    return ended;
}

void iris_i_wait_pause(void)
{
    wait_check.busy = 1;
}

void iris_i_wait_resume(void)
{
    wait_check.busy = 0;
}
