/* SPDX-License-Identifier: MIT
 *
 * The threads of a stream: their start, and the time that they spin while they
 * wait for each other.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include <iris/device/core/atomic.h>

#include "base/base.h"

#include <sched.h>
#include <stdio.h>

/* Turns of a wait before it yields the core, turns between readings of the
 * clock after that, and the total time. It is longer than a futex wake-up
 * takes, so that a host that launches and synchronizes in a loop avoids one. It
 * is short, since there may be many ranks and few cores. */
#define SPIN_PAUSES 30
#define SPIN_TURNS_PER_LOOK 8
#define SPIN_NS 50000

bool iris_i_sim_spin(struct sim_spin *spin)
{
    int64_t now;

    if (spin->turns++ < SPIN_PAUSES) {
        iris_d_pause();
        return true;
    }
    sched_yield();
    if (spin->turns % SPIN_TURNS_PER_LOOK != 0) {
        return true;
    }
    now = iris_i_now_ns();
    if (spin->end_ns == 0) {
        spin->end_ns = now + SPIN_NS;
    }
    return now < spin->end_ns;
}

iris_status_t iris_i_sim_thread_start(const struct iris_backend_params *params,
                                      void *(*entry)(void *), void *argument,
                                      pthread_t *thread_p)
{
    sigset_t all;
    sigset_t before;
    char name[16];
    int ret;

    sigfillset(&all);
    iris_i_sim_signals_unblock(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(thread_p, NULL, entry, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ret != 0) {
        return iris_i_fail_errno(
            NULL, IRIS_ERR_LIMIT, ret,
            "rank %d cannot start a thread for its stream; raise the limit on "
            "threads (ulimit -u, the container's pids limit) or lower "
            "IRIS_SIM_CUS, now %d",
            params->rank, params->num_cus);
    }
    snprintf(name, sizeof name, "iris-s%d", params->rank);
    pthread_setname_np(*thread_p, name);
    return IRIS_OK;
}
