/* SPDX-License-Identifier: MIT
 *
 * The one wait of the host. A loop that waits is
 *
 *     iris_i_wait_begin(&wait, &type, waiter, "iris_barrier", arg);
 *     while (status == IRIS_OK && !done(arg)) {
 *         status = iris_i_wait_tick(&wait);
 *     }
 *     iris_i_wait_end(&wait, status);
 *
 * Nothing else in the library spins, sleeps, asks after peers, warns or times
 * out.
 */
#ifndef IRIS_SRC_BASE_HOST_WAIT_H
#define IRIS_SRC_BASE_HOST_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

#include <iris/device/atomic.h>

#include "base/error.h"
#include "base/timing.h"

struct iris_wait;

/* Who waits: what all waits of a rank have in common. Base knows no peers, so
 * `fate` asks whoever does. */
struct iris_waiter {
    const struct iris_log *log; /* NULL: no rank yet */
    int64_t timeout_ms;         /* 0: no deadline */
    int64_t warn_ms;            /* 0: no warning */

    /* Not 0: iris_interrupt() was called. The wait check sets it. NULL: the
     * wait check ends only this wait. */
    atomic_int *interrupted;

    /* Not 0: neither ends a wait now. May be NULL. */
    const atomic_int *heedless;

    /* IRIS_OK to go on; else why not, with this thread's message. NULL: there
     * is nobody to ask after. */
    iris_status_t (*fate)(void *arg);

    /* For whom the rank waits, where the wait's type does not know. */
    void (*describe)(void *arg, char *text, size_t bytes);
    void *arg;
};

enum iris_wait_phase {
    IRIS_WAIT_GOES_ON,
    IRIS_WAIT_IS_OVER,
    IRIS_WAIT_WAS_ENDED, /* by the deadline, a death, an interrupt */
};

/* What is waited for. All but the pace may be left out; `arg` is the wait's. */
struct iris_wait_type {
    enum iris_pace pace;

    /* In place of the waiter's `fate`. */
    iris_status_t (*fate)(void *arg);

    /* "rank 3, which is busy in iris_malloc": ends the sentence of the warning,
     * and of the timeout. An empty text: nothing to say about now. */
    void (*describe)(void *arg, char *text, size_t bytes);

    /* Sets the message of a timeout, and returns IRIS_ERR_TIMEOUT. */
    iris_status_t (*late)(const struct iris_wait *wait);

    /* Sleeps for up to `ns`, less if what is waited for may have come. */
    void (*sleep)(void *arg, int64_t ns);

    /* Keeps the flight record's note of the wait, in wait->slot. */
    void (*note)(struct iris_wait *wait, enum iris_wait_phase phase);
};

/* A wait under way. Times are 0 until the first sleep, which reads the clock
 * for the first time; a caller may set those it knows after begin. */
struct iris_wait {
    unsigned looks; /* turns left of each phase */
    unsigned pauses;
    unsigned yields;
    const struct iris_wait_type *type;
    const struct iris_waiter *waiter;
    const char *what; /* "iris_barrier": begins warning and timeout */
    void *arg;
    int fd;               /* a sleep ends once it can be read; -1: none */
    int slot;             /* the note's; -1: none */
    iris_status_t ending; /* not OK: the next turn returns it */
    int by_fate;          /* it is the fate's, with this thread's message */
    int64_t begin_ns;
    int64_t deadline_ns; /* INT64_MAX: none */
    int64_t warn_ns;     /* INT64_MAX: not, or not any more */
    int64_t ask_ns;      /* of the next question */
    int64_t nap_ns;      /* of the next sleep */
    int64_t now_ns;      /* of the last look at the clock */
};

/* `type` and `waiter` outlive the wait; reads no clock. */
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

/* The rest of iris_i_wait_tick(). */
iris_status_t iris_i_wait_turn(struct iris_wait *wait);

/* Waits a little. IRIS_OK: look whether it is there, and come back if not.
 * Else the wait is to end, for the reason in this thread's message:
 * IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED, or what `fate` said. The caller has
 * always looked once more after that reason came up. */
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

/* Takes the note from the flight record. `status` is the wait's. */
static inline void iris_i_wait_end(struct iris_wait *wait, iris_status_t status)
{
    if (wait->slot >= 0) {
        wait->type->note(wait, status == IRIS_OK ? IRIS_WAIT_IS_OVER
                                                 : IRIS_WAIT_WAS_ENDED);
    }
}

/* Reads the clock at once: the deadline counts from now, through several waits
 * with the same object. */
void iris_i_wait_start(struct iris_wait *wait);

/* Begins a wait for something that is a moment away: only its time ends it,
 * with IRIS_ERR_TIMEOUT, and this thread's message stays as it is. */
void iris_i_wait_moment(struct iris_wait *wait, int64_t ms);

/* Lets time pass, where nothing tells how far things are. */
void iris_i_wait_apart(int64_t ms);

/* Until the second call no wait check ends this thread's waits: what others do
 * with its memory has no other end. */
void iris_i_wait_pause(void);
void iris_i_wait_resume(void);

#endif /* IRIS_SRC_BASE_HOST_WAIT_H */
