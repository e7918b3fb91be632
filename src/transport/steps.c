/* SPDX-License-Identifier: MIT
 *
 * Steps of a proxy, by its thread and by lanes. While lanes take steps, the
 * thread naps, so that no message wakes it. After their last step, puts and
 * messages may have to wait for the end of a nap.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/core/ring.h>

#include "base/base.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* Number of idle turns before the thread listens: messages that follow each
 * other soon do not have to wake it. */
#define IDLE_TURNS 60
#define LISTEN_MS 500

/* The same, ahead of the naps of a thread that nobody wakes. */
#define POLL_TURNS 200

#define NAP_NS (100 * IRIS_NS_PER_US)

/* Time limits for the end: a call of MPI may not return after a death. A thread
 * whose calls return ends far sooner than the least. */
#define STOP_MOST_MS 5000
#define STOP_LEAST_MS 1000

static int begin_step(struct iris_steps *steps)
{
    return atomic_exchange(&steps->stepping, 1) == 0;
}

static void end_step(struct iris_steps *steps)
{
    atomic_store(&steps->stepping, 0);
}

/* -1: another thread is in a step. */
static int take_step(struct iris_steps *steps, unsigned by_lane)
{
    int count;

    if (!begin_step(steps)) {
        return -1;
    }
    atomic_fetch_add(&steps->lane_steps, by_lane);
    count = steps->step(steps->arg);
    end_step(steps);
    return count;
}

/* ---- The thread ---- */

/* Either a posting lane sees that the thread listens, or the thread sees the
 * post. */
static void listen_idle(struct iris_steps *steps)
{
    int has_work;

    atomic_store(&steps->listens, 1);
    if (begin_step(steps)) {
        has_work = steps->has_work(steps->arg);
        end_step(steps);
        if (!has_work && !atomic_load(&steps->quit)) {
            steps->channel->ops->wait(steps->channel, LISTEN_MS);
        }
    }
    atomic_store(&steps->listens, 0);
}

/* 1: a lane has ended it. */
static int take_nap(struct iris_steps *steps)
{
    int was_rung;

    atomic_store(&steps->naps, 1);
    was_rung = iris_i_bell_wait(steps->channel->bell, NAP_NS);
    atomic_store(&steps->naps, 0);
    return was_rung;
}

static void *run_steps(void *arg)
{
    struct iris_steps *steps = arg;
    unsigned seen = 0;
    int idle = 0, count;

    while (!atomic_load(&steps->quit)) {
        unsigned lane_steps = atomic_load(&steps->lane_steps);

        if (lane_steps != seen) {
            seen =
                take_nap(steps) ? atomic_load(&steps->lane_steps) : lane_steps;
            continue;
        }
        count = take_step(steps, 0);
        idle = count > 0 ? 0 : idle + (count == 0);
        if (count == 0 && steps->polls && idle > POLL_TURNS) {
            (void)iris_i_bell_wait(steps->channel->bell, NAP_NS);
        } else if (count == 0 && !steps->polls && idle > IDLE_TURNS) {
            listen_idle(steps);
        } else if (count <= 0) {
            sched_yield();
        }
    }
    return NULL;
}

iris_status_t iris_i_steps_start(struct iris_steps *steps)
{
    int ret =
        iris_i_thread_start(&steps->thread, "iris-proxy", 0, run_steps, steps);

    return ret == 0
               ? IRIS_OK
               : iris_i_fail_errno(NULL, IRIS_ERR_LIMIT, ret,
                                   "no thread for the proxy to other nodes");
}

int iris_i_steps_stop(struct iris_steps *steps, int64_t by_ns)
{
    int64_t ns = STOP_MOST_MS * IRIS_NS_PER_MS;
    int64_t left = by_ns == 0 ? ns : by_ns - iris_i_now_ns();
    struct timespec end;

    ns = left < ns ? left : ns;
    if (ns < STOP_LEAST_MS * IRIS_NS_PER_MS) {
        ns = STOP_LEAST_MS * IRIS_NS_PER_MS;
    }
    atomic_store(&steps->quit, 1);
    iris_i_bell_ring(steps->channel->bell);
    clock_gettime(CLOCK_REALTIME, &end);
    ns += end.tv_nsec;
    end.tv_sec += ns / IRIS_NS_PER_S;
    end.tv_nsec = ns % IRIS_NS_PER_S;
    return pthread_timedjoin_np(steps->thread, NULL, &end) == 0;
}

/* ---- Lanes ---- */

static void wake_thread(struct iris_steps *steps, atomic_int *sleeps)
{
    if (atomic_exchange(sleeps, 0)) {
        iris_i_bell_ring(steps->channel->bell);
    }
}

/* A message that the lane took may be the one for which a request waits, and
 * with which the thread would have woken. */
int iris_i_steps_carry(struct iris_steps *steps)
{
    int count = steps->channel->any_thread ? take_step(steps, 1) : 0;

    if (count > 0) {
        wake_thread(steps, &steps->listens);
    }
    return count > 0 ? count : 0;
}

/* Nobody needs to see a put before the release that follows it, so puts collect
 * until then. The thread sends parts of long puts while the lane copies the
 * next parts. */
void iris_i_steps_posted(struct iris_steps *steps, enum iris_op op,
                         size_t bytes)
{
    if (op != IRIS_OP_PUT) {
        (void)iris_i_steps_carry(steps);
    } else if (bytes == IRIS_RING_BYTES) {
        iris_i_steps_leave(steps);
    }
    wake_thread(steps, &steps->listens);
}

void iris_i_steps_leave(struct iris_steps *steps)
{
    wake_thread(steps, &steps->naps);
}
