/* SPDX-License-Identifier: MIT
 *
 * The host's only wait. A loop that waits is
 *
 *     iris_i_wait_begin(&wait, &type, waiter, "iris_barrier", arg);
 *     while (status == IRIS_OK && !done(arg)) {
 *         status = iris_i_wait_tick(&wait);
 *     }
 *     iris_i_wait_end(&wait, status);
 *
 * Nothing else in the library spins, sleeps, checks peers, warns or times out.
 */
#ifndef IRIS_SRC_BASE_HOST_WAIT_H
#define IRIS_SRC_BASE_HOST_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

#include <iris/device/atomic.h>

#include "base/error.h"
#include "base/timing.h"

struct iris_wait;

/* Everything that the waits of a rank have in common. The folder base does not
 * know peers, so the callback `fate` checks them. */
struct iris_waiter {
    const struct iris_log *log; /* NULL: no rank yet */
    int64_t timeout_ms;         /* 0: no deadline */
    int64_t warn_ms;            /* 0: no warning */
    int64_t by_ns;              /* several waits share this deadline, besides
                                 * each one's own; 0: none */

    /* Not 0 after iris_interrupt(). The wait check sets it, too. If it is NULL,
     * the wait check ends only this wait. */
    atomic_int *interrupted;

    /* Not 0: neither an interrupt nor the wait check ends a wait now. May be
     * NULL. */
    const atomic_int *heedless;

    /* IRIS_OK to go on, else the reason to stop, with this thread's message.
     * NULL: there are no peers to check. */
    iris_status_t (*fate)(void *arg);

    /* Describes the ranks that this rank waits for, if the wait's type
     * cannot. */
    void (*describe)(void *arg, char *text, size_t bytes);
    void *arg;
};

enum iris_wait_phase {
    IRIS_WAIT_GOES_ON,
    IRIS_WAIT_IS_OVER,
    IRIS_WAIT_WAS_ENDED, /* by the deadline, a peer's death or an interrupt */
};

/* One kind of wait. All members except the pace are optional; `arg` is the
 * wait's. */
struct iris_wait_type {
    enum iris_pace pace;

    /* Replaces the waiter's `fate`. */
    iris_status_t (*fate)(void *arg);

    /* Text such as "rank 3, which is busy in iris_malloc": the end of the
     * warning and of the timeout's message. An empty text: unknown at
     * present. */
    void (*describe)(void *arg, char *text, size_t bytes);

    /* Sets the message of a timeout, and returns IRIS_ERR_TIMEOUT. */
    iris_status_t (*late)(const struct iris_wait *wait);

    /* Sleeps for up to `ns`, less if the awaited event may have happened. */
    void (*sleep)(void *arg, int64_t ns);

    /* Keeps the wait's note in the flight record, in wait->slot. */
    void (*note)(struct iris_wait *wait, enum iris_wait_phase phase);
};

/* A wait in progress. Times are 0 until the first sleep, which reads the clock
 * for the first time. A caller may set known times after begin. */
struct iris_wait {
    unsigned looks; /* turns left of each phase */
    unsigned pauses;
    unsigned yields;
    const struct iris_wait_type *type;
    const struct iris_waiter *waiter;
    const char *what; /* "iris_barrier": the start of the warning and the
                       * timeout's message */
    void *arg;
    int fd;               /* a sleep ends once this descriptor is readable;
                           * -1: none */
    int slot;             /* slot of the note; -1: none */
    iris_status_t ending; /* not OK: the next turn returns it */
    int by_fate;          /* `ending` comes from `fate`, with this thread's
                           * message */
    int64_t begin_ns;
    int64_t deadline_ns; /* INT64_MAX: none */
    int64_t warn_ns;     /* INT64_MAX: no warning, or it was given */
    int64_t ask_ns;      /* time of the next question */
    int64_t nap_ns;      /* duration of the next sleep */
    int64_t now_ns;      /* time of the last reading of the clock */
};

/* `type` and `waiter` outlive the wait. Does not read the clock. */
static inline void iris_i_wait_begin(struct iris_wait *wait,
                                     const struct iris_wait_type *type,
                                     const struct iris_waiter *waiter,
                                     const char *what, void *arg)
{
    *wait = (struct iris_wait){.type = type,
                               .waiter = waiter,
                               .what = what,
                               .arg = arg,
                               .fd = -1,
                               .slot = -1,
                               .looks = iris_i_paces[type->pace].looks,
                               .pauses = iris_i_paces[type->pace].pauses,
                               .yields = iris_i_paces[type->pace].yields};
}

/* The slower part of iris_i_wait_tick(). */
iris_status_t iris_i_wait_turn(struct iris_wait *wait);

/* Waits a little. IRIS_OK: check for the event, and call again if it has not
 * happened. Otherwise the wait has to end, for the reason in this thread's
 * message: IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED, or the status of `fate`. The
 * caller has always checked once more after that reason arose. */
static inline iris_status_t iris_i_wait_tick(struct iris_wait *wait)
{
    if (wait->looks != 0) {
        wait->looks--;
        return IRIS_OK;
    }
    if (wait->pauses != 0) {
        wait->pauses--;
        iris_d_pause();
        return IRIS_OK;
    }
    return iris_i_wait_turn(wait);
}

/* Removes the note from the flight record. `status` is the wait's. */
static inline void iris_i_wait_end(struct iris_wait *wait, iris_status_t status)
{
    if (wait->slot >= 0) {
        wait->type->note(wait, status == IRIS_OK ? IRIS_WAIT_IS_OVER
                                                 : IRIS_WAIT_WAS_ENDED);
    }
}

/* Reads the clock at once. The deadline counts from now, through several waits
 * with the same object. */
void iris_i_wait_start(struct iris_wait *wait);

/* Begins a wait for an event that will happen soon. Only its time ends it, with
 * IRIS_ERR_TIMEOUT; it leaves this thread's message alone. */
void iris_i_wait_moment(struct iris_wait *wait, int64_t ms);

/* Sleeps, for events that cannot be observed. */
void iris_i_wait_apart(int64_t ms);

/* Until the second call, no wait check ends this thread's waits. Used while
 * other ranks access its memory and nothing else protects it. */
void iris_i_wait_pause(void);
void iris_i_wait_resume(void);

#endif /* IRIS_SRC_BASE_HOST_WAIT_H */
