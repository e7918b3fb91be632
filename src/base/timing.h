/* SPDX-License-Identifier: MIT
 *
 * Every duration that paces a wait of the host, with the reason for it.
 */
#ifndef IRIS_SRC_BASE_TIMING_H
#define IRIS_SRC_BASE_TIMING_H

#include <stdint.h>

#define IRIS_NS_PER_US INT64_C(1000)
#define IRIS_NS_PER_MS INT64_C(1000000)
#define IRIS_NS_PER_S INT64_C(1000000000)

/* A wait spends its time in this order:
 *
 *   looks    turns that only count: a pause takes 25 to 50 ns
 *   pauses   turns that only pause the processor: no clock, no system call
 *   yields   turns that yield the core
 *   nap_us   the first sleep after that; 0: yields the core forever
 *   most_us  each sleep is twice as long as the one before, up to this
 *   ask_us   time between the questions whether to go on
 *
 * X(name, looks, pauses, yields, nap_us, most_us, ask_us) */
/* clang-format off */
#define IRIS_PACE_ROWS(X)                                                      \
    /* Members of a barrier come within 0.3 us. A post wakes those that sleep,\
     * so a sleep is as long as a death may go unnoticed. */                   \
    X(AGREE, 16, 0, 64, 10000, 10000, 10000)                                      \
    /* A message ends the sleep. */                                            \
    X(MESSAGE, 0, 0, 0, 10000, 10000, 10000)                                      \
    /* A peer's socket is full: it reads within a millisecond. */              \
    X(FULL, 0, 0, 0, 1000, 1000, 10000)                                           \
    /* A stream of CPU threads: spins for longer than a futex takes to wake,  \
     * since a host that launches and synchronizes in a loop would pay that   \
     * each time. The stream wakes those that sleep. */                        \
    X(STREAM, 0, 30, 100, 10000, 10000, 10000)                                    \
    /* A queue of a GPU, whose every poll asks the runtime, which takes 0.1 to \
     * 0.6 us: spins for 0.2 to 1 ms, since launches are short, then sleeps    \
     * shortly, since nothing wakes it. */                                     \
    X(QUEUE, 0, 1500, 0, 20, 20, 2000)                                            \
    /* Work that was told to end, which looks every few microseconds. */       \
    X(GRACE, 0, 0, 0, 100, 1000, 1000)                                            \
    /* A workgroup on a CPU thread: the rank it waits for may need the core. */\
    X(WORKGROUP, 0, 100, 0, 0, 0, 5000)                                           \
    /* MPI makes progress only while it is called. */                          \
    X(MPI, 0, 0, 0, 0, 0, 5000)                                                   \
    /* Streams that nobody waits for otherwise (iris_free_later()): fences    \
     * cost a call of the runtime each time. */                                \
    X(FENCE, 0, 0, 0, 50, 1000, 10000)                                            \
    /* A rank that starts: processes take milliseconds to come, and a message \
     * ends the sleep. */                                                      \
    X(SOCKET, 0, 0, 0, 50000, 50000, 50000)                                       \
    /* A listener that is not there yet: nothing tells when it comes. */       \
    X(CONNECT, 0, 0, 0, 100, 10000, 10000)                                        \
    /* Another process or thread that needs about a millisecond. */            \
    X(MOMENT, 0, 0, 0, 1000, 1000, 10000)
/* clang-format on */

enum iris_pace {
#define IRIS_PACE_MEMBER(name, looks, pauses, yields, nap, most, ask) \
    IRIS_PACE_##name,
    IRIS_PACE_ROWS(IRIS_PACE_MEMBER)
#undef IRIS_PACE_MEMBER
};

struct iris_pace_row {
    unsigned looks;
    unsigned pauses;
    unsigned yields;
    int64_t nap_ns;
    int64_t most_ns;
    int64_t ask_ns;
};

static const struct iris_pace_row iris_i_paces[] = {
#define IRIS_PACE_ROW(name, looks, pauses, yields, nap_us, most_us, ask_us) \
    {looks,                                                                 \
     pauses,                                                                \
     yields,                                                                \
     (nap_us)*IRIS_NS_PER_US,                                               \
     (most_us)*IRIS_NS_PER_US,                                              \
     (ask_us)*IRIS_NS_PER_US},
    IRIS_PACE_ROWS(IRIS_PACE_ROW)
#undef IRIS_PACE_ROW
};

/* ---- Single durations, in milliseconds ---- */

/* Time between two calls of a thread's wait check, which may take an
 * interpreter's lock. */
#define IRIS_WAIT_CHECK_MS 50

/* Time from the end of a process's memory to the end of the process. A peer
 * that cannot be mapped may have died. */
#define IRIS_DEATH_MS 100

/* Time that the other side of a connection has to read or write. */
#define IRIS_SOCKET_PATIENCE_MS 2000

/* A connection to an unreachable host fails within this time. */
#define IRIS_CUT_MS 4000

/* Time from a rank 0's bind to its listen. */
#define IRIS_LISTEN_MS 100

/* Rank 0 waits for the other ranks as long as they wait for it. After that it
 * has this time to name the missing ranks. */
#define IRIS_VERDICT_MS 1000

/* After a failure, late ranks have this time to connect and be told. */
#define IRIS_LINGER_MS 2000

/* If rank 0 cannot have its key, ranks that wait for it ask within this
 * time. */
#define IRIS_REFUSAL_MS 1000

/* Time before rank 0 accepts again after it found no free descriptor: the
 * process's other threads hold them. */
#define IRIS_DESCRIPTORS_MS 50

/* Time between checks of children that the system cannot watch. */
#define IRIS_CHILDREN_MS 50

/* Time that a trace at the end of a program waits for streams. */
#define IRIS_IDLE_MS 100

/* Time between a report's two readings. Notes of waits are written every 5 or
 * 10 ms, on a busy machine less often. */
#define IRIS_APART_MS 100

/* If a rank fails while another one writes the report, it stays for this time
 * to be seen in it. The limit is needed because the writer may have been
 * killed. */
#define IRIS_STAY_MS 1000

/* All ranks find a mismatch, and a launcher sends a signal to all. One of them
 * reports within this time. */
#define IRIS_TURN_MS 1000

/* Time that ranks of other hosts have to answer a report's query. A report asks
 * twice, and other ranks of this host stay for it (IRIS_STAY_MS). */
#define IRIS_ANSWER_MS 400

/* A rank that fails stays for this time after a query of another host, whose
 * report asks again after IRIS_APART_MS. */
#define IRIS_WANTED_MS 300

/* From this age on, reports examine a wait closely: they read its word on the
 * peers, and kernels on GPUs note the word that they wait for. */
#define IRIS_OLD_MS 1000

#endif /* IRIS_SRC_BASE_TIMING_H */
