/* SPDX-License-Identifier: MIT
 *
 * The slower part of the host's only wait: everything after its first turns.
 */
#include "config.h"

#include "base/base.h"

#include <iris/context.h>

#include <poll.h>
#include <sched.h>
#include <time.h>

/* Turns between readings of the clock in a wait that never sleeps. */
#define TURNS_PER_LOOK 16

static const struct iris_pace_row *pace_of(const struct iris_wait *wait)
{
    return &iris_i_paces[wait->type->pace];
}

static int64_t after_ms(const struct iris_wait *wait, int64_t ms)
{
    return ms == 0 ? INT64_MAX : wait->begin_ns + ms * IRIS_NS_PER_MS;
}

void iris_i_wait_start(struct iris_wait *wait)
{
    const struct iris_waiter *waiter = wait->waiter;

    wait->now_ns = iris_i_now_ns();
    wait->nap_ns = pace_of(wait)->nap_ns;
    wait->ask_ns = wait->now_ns + pace_of(wait)->ask_ns;
    wait->begin_ns = wait->begin_ns ? wait->begin_ns : wait->now_ns;
    wait->deadline_ns = wait->deadline_ns ? wait->deadline_ns
                                          : after_ms(wait, waiter->timeout_ms);
    if (waiter->by_ns != 0 && waiter->by_ns < wait->deadline_ns) {
        wait->deadline_ns = waiter->by_ns;
    }
    wait->warn_ns =
        wait->warn_ns ? wait->warn_ns : after_ms(wait, waiter->warn_ms);
}

/* ---- Sleeping ---- */

static void sleep_for(const struct iris_wait *wait, int64_t ns)
{
    const struct timespec nap = {ns / IRIS_NS_PER_S, ns % IRIS_NS_PER_S};
    struct pollfd pollfd = {.fd = wait->fd, .events = POLLIN};

    if (wait->type->sleep != NULL) {
        wait->type->sleep(wait->arg, ns);
    } else if (wait->fd >= 0) {
        (void)ppoll(&pollfd, 1, &nap, NULL);
    } else {
        nanosleep(&nap, NULL);
    }
}

/* Lets time pass, but not beyond the deadline. Returns whether to read the
 * clock. */
static int sleep_once(struct iris_wait *wait)
{
    int64_t most = pace_of(wait)->most_ns, ns = wait->nap_ns;
    int64_t left = wait->deadline_ns - wait->now_ns;

    if (most == 0) {
        sched_yield();
        return ++wait->yields % TURNS_PER_LOOK == 0;
    }
    wait->nap_ns = 2 * ns < most ? 2 * ns : most;
    sleep_for(wait, ns < left ? ns : left > 0 ? left : 0);
    return 1;
}

/* ---- The wait check: an interpreter runs its handlers of signals while a
 * thread of it waits in the library ---- */

static _Thread_local struct {
    int (*check)(void *arg);
    void *arg;
    int64_t next_ns; /* time of the next call */
    int busy;        /* paused, or the check is running */
} wait_check;

void iris_set_wait_check(int (*check)(void *arg), void *arg)
{
    wait_check.check = check;
    wait_check.arg = arg;
    wait_check.next_ns = 0;
}

/* Whether this thread's check wants to end the wait. The caller holds no
 * lock. */
static int is_ended_by_check(void)
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

/* ---- Whether to go on ---- */

static void describe_wait(const struct iris_wait *wait, char *text,
                          size_t bytes)
{
    const struct iris_waiter *waiter = wait->waiter;

    text[0] = '\0';
    if (wait->type->describe != NULL) {
        wait->type->describe(wait->arg, text, bytes);
    } else if (waiter->describe != NULL) {
        waiter->describe(waiter->arg, text, bytes);
    }
}

static iris_status_t fail_interrupted(const struct iris_wait *wait)
{
    const struct iris_waiter *waiter = wait->waiter;

    if (waiter->interrupted != NULL) {
        return iris_i_fail(waiter->log, IRIS_ERR_INTERRUPTED,
                           "rank %d was interrupted (iris_interrupt); only "
                           "iris_finalize may follow",
                           waiter->log == NULL ? -1 : waiter->log->rank);
    }
    return iris_i_fail(waiter->log, IRIS_ERR_INTERRUPTED,
                       "%s was interrupted while it waited for other ranks: "
                       "the wait check said so (iris_set_wait_check)",
                       wait->what);
}

/* Looks for an interrupt. The wait check counts as one. */
static iris_status_t check_interrupts(const struct iris_wait *wait)
{
    const struct iris_waiter *waiter = wait->waiter;
    int ended;

    if (waiter->heedless != NULL && atomic_load(waiter->heedless) != 0) {
        return IRIS_OK;
    }
    ended = is_ended_by_check();
    if (waiter->interrupted != NULL) {
        if (ended) {
            atomic_store_explicit(waiter->interrupted, 1, memory_order_relaxed);
        }
        ended = atomic_load_explicit(waiter->interrupted, memory_order_relaxed);
    }
    return ended ? fail_interrupted(wait) : IRIS_OK;
}

static iris_status_t ask_fate(const struct iris_wait *wait)
{
    const struct iris_waiter *waiter = wait->waiter;

    if (wait->type->fate != NULL) {
        return wait->type->fate(wait->arg);
    }
    return waiter->fate != NULL ? waiter->fate(waiter->arg) : IRIS_OK;
}

/* Logs one line if a wait takes long. */
static void warn_once(struct iris_wait *wait)
{
    char text[400];

    describe_wait(wait, text, sizeof text);
    if (text[0] == '\0') {
        return;
    }
    wait->warn_ns = INT64_MAX;
    iris_i_warning(wait->waiter->log,
                   "%s has waited %lld s for %s; it waits %s", wait->what,
                   (long long)((wait->now_ns - wait->begin_ns) / IRIS_NS_PER_S),
                   text,
                   wait->deadline_ns == INT64_MAX ? "on without a deadline"
                                                  : "on until IRIS_TIMEOUT_MS");
}

static iris_status_t fail_late(const struct iris_wait *wait)
{
    char text[400];

    if (wait->type->late != NULL) {
        return wait->type->late(wait);
    }
    describe_wait(wait, text, sizeof text);
    return iris_i_fail(
        wait->waiter->log, IRIS_ERR_TIMEOUT,
        "%s has waited %lld ms (IRIS_TIMEOUT_MS)%s%s", wait->what,
        (long long)((wait->now_ns - wait->begin_ns) / IRIS_NS_PER_MS),
        text[0] == '\0' ? "" : " for ", text);
}

/* Whether to go on. IRIS_ERR_TIMEOUT has no message yet, since the awaited
 * event may have happened. */
static iris_status_t ask_to_end(struct iris_wait *wait)
{
    iris_status_t status = check_interrupts(wait);

    iris_i_wait_note(wait, IRIS_WAIT_GOES_ON);
    wait->by_fate = status == IRIS_OK && (status = ask_fate(wait)) != IRIS_OK;
    if (status == IRIS_OK && wait->now_ns >= wait->warn_ns) {
        warn_once(wait);
    }
    if (status == IRIS_OK && wait->now_ns >= wait->deadline_ns) {
        status = IRIS_ERR_TIMEOUT;
    }
    return status;
}

/* ---- The wait ---- */

iris_status_t iris_i_wait_turn(struct iris_wait *wait)
{
    if (wait->ending != IRIS_OK) {
        return wait->ending == IRIS_ERR_TIMEOUT && !wait->by_fate
                   ? fail_late(wait)
                   : wait->ending;
    }
    if (wait->now_ns == 0 && wait->yields != 0) {
        wait->yields--;
        sched_yield();
        return IRIS_OK;
    }
    if (wait->now_ns == 0) {
        iris_i_wait_start(wait);
    }
    if (sleep_once(wait)) {
        wait->now_ns = iris_i_now_ns();
        if (wait->now_ns >= wait->ask_ns || wait->now_ns >= wait->deadline_ns) {
            wait->ask_ns = wait->now_ns + pace_of(wait)->ask_ns;
            wait->ending = ask_to_end(wait);
        }
    }
    return IRIS_OK;
}

/* ---- Short waits ---- */

static iris_status_t fail_moment(const struct iris_wait *wait)
{
    (void)wait;
    return IRIS_ERR_TIMEOUT;
}

void iris_i_wait_moment(struct iris_wait *wait, int64_t ms)
{
    static const struct iris_wait_type type = {.pace = IRIS_PACE_MOMENT,
                                               .late = fail_moment};
    static const atomic_int always = 1;
    static const struct iris_waiter nobody = {.heedless = &always};

    iris_i_wait_begin(wait, &type, &nobody, "", NULL);
    iris_i_wait_start(wait);
    wait->deadline_ns = wait->begin_ns + ms * IRIS_NS_PER_MS;
}

void iris_i_wait_apart(int64_t ms)
{
    struct iris_wait wait;

    iris_i_wait_moment(&wait, ms);
    while (iris_i_wait_tick(&wait) == IRIS_OK) {
    }
}
