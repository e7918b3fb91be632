/* SPDX-License-Identifier: MIT
 *
 * The interface of src/base: settings, messages, files, sockets, time; it
 * knows ranks only as numbers.
 */
#ifndef IRIS_SRC_BASE_BASE_H
#define IRIS_SRC_BASE_BASE_H

#include <iris/context.h>
#include <iris/device/core/atomic.h>
#include <iris/device/watch/cpu.h>
#include <iris/log.h>
#include <iris/status.h>
#include <iris/types.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- Locks, as clang checks them ------------------------------------------
 *
 * Nothing else than tests/check_locks.sh defines these. A guarded member or
 * variable is accessed with the lock held; in C a member's lock is that of any
 * struct of the type. A function requires a lock that its callers hold, returns
 * with it or without it, or is not checked, for a reason that its comment has.
 * Members and variables without one have one writer, are atomic, or are set
 * before any other thread sees them. */
#ifndef IRIS_GUARDED_BY
#define IRIS_GUARDED_BY(lock)
#define IRIS_REQUIRES(...)
#define IRIS_SHARES(lock)
#define IRIS_ACQUIRES(lock)
#define IRIS_RELEASES(lock)
#define IRIS_TRIES(success, lock)
#define IRIS_ACQUIRED_BEFORE(lock)
#define IRIS_UNCHECKED
#endif

/* ---- Monotonic time and deadlines ---- */

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

/* ---- constants.c ---- */

/* Name of a reduction, such as "sum"; "?" for an unknown value. Static. */
const char *iris_i_reduce_op_name(iris_reduce_op_t op);

/* ---- error.c ---- */

#define IRIS_MESSAGE_BYTES 1024

/* The rank that logs, and its level. */
struct iris_log {
    int rank;
    int num_ranks;
    atomic_int level; /* iris_log_level_t; the least severe that is printed */
};

/* The first function that decides which error it is calls this. It sets the
 * thread's message, with "[rank/num_ranks] " in front if `log` is known, logs
 * it at debug level, and returns `status`. `log` may be NULL. */
iris_status_t iris_i_fail(const struct iris_log *log, iris_status_t status,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* iris_i_fail() with ": <strerror(errno_value)>" behind the message. */
iris_status_t iris_i_fail_errno(const struct iris_log *log,
                                iris_status_t status, int errno_value,
                                const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes `message` this thread's last error, unchanged. Passes an error from the
 * thread that met it to the one that asks. Returns `status`. */
iris_status_t iris_i_fail_again(iris_status_t status, const char *message);

/* Puts "[rank/num_ranks] " in front of this thread's last error, if the
 * function that set it did not know the rank. Returns `status`; does nothing
 * with IRIS_OK. */
iris_status_t iris_i_fail_on(const struct iris_log *log, iris_status_t status);

/* Lines on stderr; `log` may be NULL. */
void iris_i_debug(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_info(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_warning(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_error(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_log_args(const struct iris_log *log, int level, const char *format,
                     va_list args) __attribute__((format(printf, 3, 0)));

/* Between the two, this thread's lines are kept. It holds a lock, which must not
 * wait for the reader of stderr. */
void iris_i_log_hold(void);
void iris_i_log_release(void);

/* Level named by `text` ("info", ...), or -1. */
int iris_i_log_level(const char *text);

/* ---- Timing ---- */

/* Every duration that paces a wait of the host, with the reason for it. */

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

/* A connection that nothing accepts is tried again after this time. The system
 * repeats a lost packet of it after 1 s only. */
#define IRIS_CONNECT_MS 500

/* Time from a rank 0's bind to its listen. */
#define IRIS_LISTEN_MS 100

/* Rank 0 waits for the other ranks as long as they wait for it. After that it
 * has this time to name the missing ranks. */
#define IRIS_VERDICT_MS 1000

/* After a failure, late ranks have this time to connect and be told. */
#define IRIS_LINGER_MS 1000

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
#define IRIS_STAY_MS 2000

/* A report spends this time on the source lines of its waits, and a check this
 * time on one line. */
#define IRIS_LINES_MS 1500
#define IRIS_LINE_MS 5000

/* All ranks find a mismatch, and a launcher sends a signal to all. One of them
 * reports within this time. */
#define IRIS_TURN_MS 1000

/* Time between two copies of a rank's record to other nodes, and the age from
 * which such a copy does not count. */
#define IRIS_ROW_MS 150
#define IRIS_ROW_OLD_MS 2000

/* From this age on, reports examine a wait closely: they read its word on the
 * peers, and kernels on GPUs note the word that they wait for. */
#define IRIS_OLD_MS 1000

/* ---- host_wait.c ---- */

/* The host's only wait. A loop that waits is
 * 
 *     iris_i_wait_begin(&wait, &type, waiter, "iris_barrier", arg);
 *     while (status == IRIS_OK && !done(arg)) {
 *         status = iris_i_wait_tick(&wait);
 *     }
 *     iris_i_wait_end(&wait, status);
 * 
 * Nothing else in the library spins, sleeps, checks peers, warns or times out. */

struct iris_wait;

enum iris_wait_phase {
    IRIS_WAIT_GOES_ON,
    IRIS_WAIT_IS_OVER,
    IRIS_WAIT_WAS_ENDED, /* by the deadline, a peer's death or an interrupt */
};

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

    /* The wait's note, if its type keeps none. */
    void (*note)(struct iris_wait *wait, enum iris_wait_phase phase);
    void *arg;
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
    uint32_t site;        /* the program's call, in the note; 0: none */
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

/* Keeps or removes the wait's note, if somebody wants one. Inline: modules end
 * waits, too. */
static inline void iris_i_wait_note(struct iris_wait *wait,
                                    enum iris_wait_phase phase)
{
    void (*note)(struct iris_wait * wait, enum iris_wait_phase phase) =
        wait->type->note != NULL ? wait->type->note : wait->waiter->note;

    if (note != NULL) {
        note(wait, phase);
    }
}

/* Removes the note from the flight record. `status` is the wait's. */
static inline void iris_i_wait_end(struct iris_wait *wait, iris_status_t status)
{
    if (wait->slot >= 0) {
        iris_i_wait_note(wait, status == IRIS_OK ? IRIS_WAIT_IS_OVER
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

/* ---- process.c ---- */

/* Every call that makes a descriptor goes through this. A program may have
 * closed its standard streams. If the library's file then got stderr's number,
 * log lines would be written into it, even into a heap. Takes `fd`, or -1 with
 * errno set. Returns the descriptor to use, or -1 with errno set and nothing
 * open. Inline, because modules use it. */
static inline int iris_i_fd_above_stdio(int fd)
{
    int ret, moved;

    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ret = errno;
    close(fd);
    errno = ret;
    return moved;
}

/* Closes a descriptor unless it is -1, and sets it to -1. */
static inline void iris_i_fd_close(int *fd_p)
{
    if (*fd_p >= 0) {
        close(*fd_p);
        *fd_p = -1;
    }
}

/* iris_i_fd_above_stdio() for a socket of this process. A child that fork() makes
 * closes its copy before fork() returns in it: peers know the death of a process
 * on another host by the end of its connections, and a child that lives on would
 * hold them open. A child that runs another program (vfork, posix_spawn) keeps
 * its copies only until then, since all descriptors are close-on-exec. errno is
 * kept. */
int iris_i_fd_socket(int fd);

/* Shared memory without names: files in /dev/shm that no directory lists. No
 * other process can collide with them or squat on them, and nothing remains
 * after a crash. */

/* A new file of `bytes` zero bytes without memory behind it. The caller closes
 * *fd_p; the file disappears with its last descriptor and mapping.
 * IRIS_ERR_LIMIT (no descriptors, or RLIMIT_FSIZE), IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_shm_create(size_t bytes, int *fd_p);

/* Commits memory to [offset, offset + bytes), so that accesses cannot raise
 * SIGBUS. IRIS_ERR_NO_MEMORY: /dev/shm is full; the message says how much is
 * left and suggests a remedy. */
iris_status_t iris_i_shm_commit(int fd, size_t offset, size_t bytes);

/* Gives that memory back to the system; the range reads as zeros. If the range
 * covers a page only in part, that part is zeroed. */
void iris_i_shm_decommit(int fd, size_t offset, size_t bytes);

/* Maps the whole file, at a multiple of the largest power of two up to `bytes`.
 * So an aligned offset of the file is aligned in memory. A page without access
 * (iris_i_shm_guard_bytes()) precedes and follows the mapping. The caller
 * unmaps. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_shm_map(int fd, size_t bytes, void **base_p);
void iris_i_shm_unmap(void *base, size_t bytes);
size_t iris_i_shm_guard_bytes(void);

/* iris_i_fail_errno() for a call that makes descriptors: EMFILE and ENFILE
 * become IRIS_ERR_LIMIT, and the message names the limit. */
iris_status_t iris_i_fail_fd(int errno_value, const char *what);

struct iris_process {
    char state; /* 'R', 'S', 'T', 'Z' and so on, as in ps */
    int parent;
    uint64_t start_ticks; /* together with the number, identifies a process */
};

/* Like getpid(), without a system call for each: every public call asks. A
 * child that shares this process's memory (vfork) gets its parent's id. */
int iris_i_process_id(void);

/* 0: there is no such process, or access is denied. */
int iris_i_process_read(int pid, struct iris_process *process_p);

/* Whether a signal or a debugger has stopped it. */
int iris_i_process_is_stopped(int pid);

/* A pidfd of the process, above the standard streams, which the caller closes;
 * -1 with errno. */
int iris_i_process_watch(int pid);

/* The number of the process's threads, except those that the library has named.
 * 0: there is no such process. */
int iris_i_process_threads(int pid);

/* Starts a thread of the library, under a name that begins with "iris-". It
 * receives no signals but those of its own faults, so that the program's handlers
 * never run on it. stack_bytes 0: the default; thread_p NULL: nobody joins it.
 * Returns 0 or an errno. */
int iris_i_thread_start(pthread_t *thread_p, const char *name,
                        size_t stack_bytes, void *(*run)(void *arg), void *arg);

/* ---- source.c ---- */

#define IRIS_SOURCE_FRAMES 20

/* Return addresses of the calling thread, innermost first, followed by NULL. A
 * shared library leaves out its own frames and keeps one: the program's call. A
 * library that is linked into the program keeps all; later, lines tell which
 * are its own. Empty in a thread of the library. */
struct iris_caller {
    const void *frames[IRIS_SOURCE_FRAMES];
};

/* The same as offsets in the file that contains the code. */
struct iris_source {
    uint64_t offsets[IRIS_SOURCE_FRAMES];
    char file[256]; /* empty: unknown */
};

/* For a function of the library that calls a function of the program: callers
 * are not looked for beyond it. */
#define IRIS_RUNS_PROGRAM __attribute__((noinline, section("iris_program")))

/* Takes some 10 us. */
void iris_i_source_caller(struct iris_caller *caller_p);

/* In this process. Sets the padding, too. */
void iris_i_source_find(const struct iris_caller *caller,
                        struct iris_source *source_p);

/* "file.c:12"; without addr2line or debug information, or if it takes longer than
 * the limit, as _place(). May take about 10 ms, and starts a process. */
void iris_i_source_line(const struct iris_source *source, int limit_ms,
                        char *text, size_t bytes);

/* "program+0x12ab"; empty: unknown. */
void iris_i_source_place(const struct iris_source *source, char *text,
                         size_t bytes);

/* ---- hooks.c ---- */

#define IRIS_MAX_OBSERVERS 8

/* Operations of the host. */
enum iris_host_op {
    IRIS_HOST_LAUNCH,        /* the launch call: kernel, grid, block, stream */
    IRIS_HOST_KERNEL,        /* the kernel's run on the CPU, from the thread
                              * that runs it; value: the id of the launch's
                              * event, or 0 */
    IRIS_HOST_SYNCHRONIZE,   /* stream */
    IRIS_HOST_COPY,          /* address, source, bytes, stream, target_rank */
    IRIS_HOST_SET,           /* address, bytes, value, stream */
    IRIS_HOST_SIGNAL,        /* address, value, stream, target_rank */
    IRIS_HOST_WAIT,          /* address, cmp, value, stream */
    IRIS_HOST_GRAPH,         /* the launch of a graph: stream */
    IRIS_HOST_ALLOC,         /* bytes; afterwards also address */
    IRIS_HOST_FREE,          /* address */
    IRIS_HOST_BARRIER,       /* group; with a stream if it is a device
                              * barrier */
    IRIS_HOST_BROADCAST,     /* address, bytes, group, target_rank (the root) */
    IRIS_HOST_GROUP_CREATE,  /* afterwards: group */
    IRIS_HOST_GROUP_DESTROY, /* group */
    IRIS_HOST_COLLECTIVE,    /* address, source, bytes, group, stream, count,
                              * type, value (a broadcast's root), in_bytes,
                              * out_bytes, tells, hears, source_rank; kernel is
                              * the public call's name; target_rank is the other
                              * member in a call of two members */
    /* The CPU runs a command of a stream, and its thread calls. Only while an
     * observer watches kernels. */
    IRIS_HOST_RUN_COPY, /* address, source, bytes, stream */
    IRIS_HOST_RUN_SET,  /* a fill: address, bytes, stream */
    IRIS_HOST_RUN_MARK, /* a mark: stream; source: the stream that waits for
                         * the mark */
    IRIS_HOST_FUSED,    /* a public call that makes others: kernel is its name.
                         * For traces only. */
};

/* One operation of the host. Unused members are 0 or NULL; an unused rank is
 * -1. */
struct iris_host_event {
    uint64_t id; /* numbered from 1 in each context; a kernel's run from 2^52
                  * + 1, so that all ids are exact as JSON numbers. The
                  * events before and after have the same id, which
                  * iris_i_hooks_before() sets. */
    enum iris_host_op op;
    int after;            /* 0: about to happen; 1: it has happened, or
                           * failed */
    iris_status_t status; /* afterwards: the returned status */
    int rank;             /* the rank of the context */
    int target_rank;      /* the rank whose memory it accesses, besides its
                           * own */
    const void *stream;
    const void *group;
    const char *kernel; /* its name */
    unsigned grid;
    unsigned block;
    const void *address; /* in this rank's address space */
    const void *source;
    size_t bytes;
    uint64_t value;
    iris_cmp_t cmp;
    size_t count;     /* elements */
    const char *type; /* name of the elements' type */
    size_t pitch; /* for a run of a copy of `count` rows of `bytes`: distance
                   * of the rows at address */
    size_t source_pitch; /* and at source */
    size_t in_bytes;     /* bytes that a collective reads at source; 0:
                          * unknown */
    size_t out_bytes;    /* bytes that it writes at address; 0: unknown */
    /* For a collective: whether other members' results depend on this rank's
     * work, and this rank's result on theirs (rule 9 of
     * docs/memory-model.md). */
    bool tells;
    bool hears;
    int source_rank; /* in a call of two members that hears: the other one */
    /* Before a collective of messages: returns the bytes sent to a member of
     * the group, or received from it. Otherwise NULL. */
    uint64_t (*bytes_with)(const void *call, int member, int from);
    const void *call;
};

/* The moments at which a workgroup's thread may be made to wait for others. */
enum iris_turn {
    IRIS_TURN_BEGIN, /* before the kernel is entered */
    IRIS_TURN_POLL,  /* a wait's poll has failed */
    IRIS_TURN_END,   /* the kernel has returned, or was ended */
};

/* An observer. Its functions are called from any thread, several at once; NULL
 * functions are not called. They must not call Iris, and must not wait for
 * other ranks. The one exception is the flight recorder, after a failed
 * call. */
struct iris_observer {
    /* IRIS_OK, or a status that ends the kernel. The stream then returns this
     * status with this thread's message. */
    iris_status_t (*device)(void *self, const struct iris_cpu_event *event);
    /* `device` takes plain accesses to consecutive elements as one event, later
     * (struct iris_cpu_series), and no events after plain accesses. */
    bool takes_series;
    void (*host)(void *self, const struct iris_host_event *event);
    /* This function may wait for other workgroups. */
    void (*turn)(void *self, const struct iris_cpu_wg *cpu,
                 enum iris_turn turn);
    void *self;
};

/* The observers of one context, in the order of their calls. All zero at the
 * start. */
struct iris_hooks {
    atomic_uint num_device; /* observers with a `device` function */
    atomic_uint num_host;
    atomic_uint num_slots; /* no slot from here on was ever used */
    const struct iris_observer *_Atomic observers[IRIS_MAX_OBSERVERS];
    /* The following members have their own cache lines, because they are
     * written: the program's threads count calls, and threads that run kernels
     * count runs. All threads read the members above. */
    char apart[64];
    _Atomic uint64_t last_call;
    char apart_too[64];
    _Atomic uint64_t last_run;
    char from_what_follows[64];
};

/* The caller owns *observer. It must not move until it has been removed.
 * Kernels that already run are not watched. IRIS_ERR_LIMIT */
iris_status_t iris_i_hooks_add(struct iris_hooks *hooks,
                               const struct iris_observer *observer);

/* Calls of the observer may still be running when this returns. None are once
 * the streams are idle and other threads' calls have returned. */
void iris_i_hooks_remove(struct iris_hooks *hooks,
                         const struct iris_observer *observer);

/* Calls all observers for an operation of a kernel. Returns the first status
 * that is not IRIS_OK; calls the remaining observers all the same. */
iris_status_t iris_i_hooks_device(struct iris_hooks *hooks,
                                  const struct iris_cpu_event *event);

/* Whether all observers of operations take series. */
bool iris_i_hooks_take_series(struct iris_hooks *hooks);

/* Called by the thread of a watched workgroup. True if an observer decides
 * which workgroup runs. */
bool iris_i_hooks_turn(struct iris_hooks *hooks, const struct iris_cpu_wg *cpu,
                       enum iris_turn turn);

/* iris_i_hooks_before() and iris_i_hooks_after() if there are observers. */
void iris_i_hooks_host(struct iris_hooks *hooks, struct iris_host_event *event);

/* "atomic add", for messages. */
const char *iris_i_op_name(enum iris_op op);

/* Whether the event's address is translated, so that it must be on the heap.
 * The near side of a get or put, and the word of a wait, may be in any
 * memory. */
bool iris_i_is_translated(const struct iris_cpu_event *event);

/* Sets this thread's error to "rank 1: kernel scale, workgroup 3: atomic add of
 * 4 bytes at 0x7f00 on rank 0: <why>". Returns `status`. */
iris_status_t iris_i_fail_access(const struct iris_cpu_event *event,
                                 iris_status_t status, const char *why);

/* Whether an observer watches kernels; `hooks` may be NULL. */
static inline int iris_i_hooks_watch_device(struct iris_hooks *hooks)
{
    return hooks != NULL &&
           atomic_load_explicit(&hooks->num_device, memory_order_acquire) != 0;
}

/* Call before an operation of the host. Keep *event for the call after it, and
 * add its results before that call. `hooks` may be NULL. */
static inline void iris_i_hooks_before(struct iris_hooks *hooks,
                                       struct iris_host_event *event)
{
    if (hooks != NULL &&
        atomic_load_explicit(&hooks->num_host, memory_order_acquire) != 0) {
        iris_i_hooks_host(hooks, event);
    }
}

/* Call after the operation. Returns `status`. */
static inline iris_status_t iris_i_hooks_after(struct iris_hooks *hooks,
                                               struct iris_host_event *event,
                                               iris_status_t status)
{
    if (event->id != 0) {
        event->after = 1;
        event->status = status;
        iris_i_hooks_host(hooks, event);
    }
    return status;
}

/* ---- file.c ---- */

/* The number of bytes of the valid UTF-8 character at the start of `text`, and
 * its code. 0 if there is no valid one (RFC 3629: shortest form, no surrogates,
 * up to U+10FFFF). A 0 byte is a character of one byte. */
size_t iris_i_utf8_char(const char *text, uint32_t *code_p);

/* Writes the text in quotes, escaped. Valid UTF-8 is unchanged. A
 * byte that is not UTF-8 becomes the character with its number, so the result
 * is always valid. */
void iris_i_json_string(FILE *file, const char *text);

#define IRIS_JSON_WRITER_DEPTH 16

/* A document that is being written to a file. Members are separated by ", "; an
 * object or array within another one begins a line. `name` is NULL for elements
 * of arrays. */
struct iris_json_writer {
    FILE *file;
    int depth;
    int is_empty; /* the innermost object or array is still empty */
    char open[IRIS_JSON_WRITER_DEPTH]; /* '{' or '[' */
};

struct iris_json_writer iris_i_json_writer(FILE *file);

/* Opens an object ('{') or an array ('['); closes the innermost. */
void iris_i_json_begin(struct iris_json_writer *json, const char *name,
                       char kind);
void iris_i_json_end(struct iris_json_writer *json);

/* A NULL text is null. */
void iris_i_json_text(struct iris_json_writer *json, const char *name,
                      const char *text);
void iris_i_json_bool(struct iris_json_writer *json, const char *name,
                      int value);
void iris_i_json_int(struct iris_json_writer *json, const char *name,
                     int64_t value);
void iris_i_json_uint(struct iris_json_writer *json, const char *name,
                      uint64_t value);

/* Six digits; null if the number is infinite or a NaN, which JSON lacks. */
void iris_i_json_real(struct iris_json_writer *json, const char *name,
                      double value);

/* An unfinished file. It has no name until it is complete, so nothing remains
 * if its writer is killed. On a file system without unnamed files, it is a
 * `.iris-*.tmp` file beside its destination, locked by its writer. The next
 * file that is made in the folder removes such files whose writer is gone. */
struct iris_file {
    int fd;
    char aside[PATH_MAX + 32]; /* empty if the file is unnamed */
};

/* Starts a file for `path`, with mode 0644 less the umask. Returns 0 or an
 * errno. */
int iris_i_file_open(const char *path, struct iris_file *file_p);

/* Gives the file the name `path`, and replaces a file or a symbolic link of
 * that name. With `keep` 0, and after a failure, nothing remains. Never follows
 * a symbolic link in the last part of the path, even if others may write to the
 * folder. Returns 0 or an errno. */
int iris_i_file_close(struct iris_file *file, const char *path, int keep);

/* Opens the file, writes these bytes, and closes it. */
int iris_i_file_write(const char *path, const void *data, size_t bytes);

/* ---- settings.c ---- */

#define IRIS_SETTING_BYTES 512

enum iris_origin {
    IRIS_ORIGIN_DEFAULT,
    IRIS_ORIGIN_ENVIRONMENT,
    IRIS_ORIGIN_ARGUMENT,
};

/* Values of CHOICE settings that files other than their parser use: X(setting,
 * NAME, number, word). The number is the word's index among the choices in the
 * table of <iris/context.h>. */
/* clang-format off */
#define IRIS_CHOICE_ROWS(X)                                                    \
    X(allocator,      ALLOCATOR_POOL,           0, "pool")                     \
    X(allocator,      ALLOCATOR_TORCH,          1, "torch")                    \
    X(allocator,      ALLOCATOR_VMEM,           2, "vmem")                     \
    X(sim_device,     SIM_DEVICE_AUTO,          0, "auto")                     \
    X(sim_device,     SIM_DEVICE_CPU,           1, "cpu")                      \
    X(sim_device,     SIM_DEVICE_GPU,           2, "gpu")                      \
    X(check,          CHECK_NONE,               0, "none")                     \
    X(check,          CHECK_BOUNDS,             1, "bounds")                   \
    X(check,          CHECK_RACE,               2, "race")                     \
    X(check,          CHECK_WEAK,               3, "weak")                     \
    X(bootstrap,      BOOTSTRAP_AUTO,           0, "auto")                     \
    X(bootstrap,      BOOTSTRAP_MPI,            1, "mpi")                      \
    X(bootstrap,      BOOTSTRAP_ENV,            2, "env")                      \
    X(spawn,          SPAWN_THREADS,            0, "threads")                  \
    X(spawn,          SPAWN_PROCESSES,          1, "processes")                \
    X(transport,      TRANSPORT_AUTO,           0, "auto")                     \
    X(transport,      TRANSPORT_NONE,           1, "none")                     \
    X(transport,      TRANSPORT_SOCKET,         2, "socket")                   \
    X(transport,      TRANSPORT_MPI,            3, "mpi")                      \
    X(transport,      TRANSPORT_MPI_MESSAGES,   4, "mpi-messages")             \
    X(transport,      TRANSPORT_UCX,            5, "ucx")
/* clang-format on */

enum iris_choice {
#define IRIS_CHOICE_ENUM(setting, NAME, number, word) \
    IRIS_CHOICE_##NAME = number,
    IRIS_CHOICE_ROWS(IRIS_CHOICE_ENUM)
#undef IRIS_CHOICE_ENUM
};

/* One resolved value: text for STRING and CHOICE, else a number (its text is
 * the original spelling). For a CHOICE, the number is its index among the
 * choices, as in enum iris_choice. */
struct iris_setting {
    enum iris_origin origin;
    int64_t number;
    char text[IRIS_SETTING_BYTES];
};

struct iris_settings {
#define IRIS_SETTING_FIELD(field, kind, env, value, choices, help) \
    struct iris_setting field;
    IRIS_CONFIG_ROWS(IRIS_SETTING_FIELD)
#undef IRIS_SETTING_FIELD
};

/* One row of the table, for help texts. `setting` is NULL when there are no
 * settings to show. */
struct iris_setting_row {
    const char *env;
    const char *value; /* the default */
    const char *choices;
    const char *help;
    const char *takes; /* the accepted values */
    const struct iris_setting *setting;
};

/* Resolves every row; `config` may be NULL. IRIS_ERR_CONFIG names the first
 * variable or field that does not parse, and the values that it accepts.
 * *settings_p then holds the default for that row and is otherwise complete, so
 * that the rank can still find its peers and tell them. */
iris_status_t iris_i_settings_load(const struct iris_config *config,
                                   struct iris_settings *settings_p);

/* Row `i` of the table; 0 when there are no more. */
int iris_i_settings_row(const struct iris_settings *settings, size_t i,
                        struct iris_setting_row *row_p);

/* Whether nobody may print the row's value. */
int iris_i_setting_is_secret(const struct iris_setting_row *row);

/* "default", "environment" or "argument". */
const char *iris_i_origin_string(enum iris_origin origin);

/* Public structs that grow at their end. Each begins with `size_t size`, which
 * the caller's header sets. One rule says which sizes are valid. */

/* No such struct is larger. */
#define IRIS_SIZED_MOST 4096

/* Whether a struct of any header version can have this size: from
 * sizeof(size_t) to IRIS_SIZED_MOST, and a multiple of a pointer's size. No
 * field is larger than a pointer and each is aligned, so such a size splits
 * none. */
int iris_i_sized_fits(size_t size);

/* Fills the struct with `unset` bytes and sets its size. Returns 0 and writes
 * nothing if the struct is NULL or the size is not valid. */
int iris_i_sized_init(void *sized, size_t size, int unset);

/* Offset of the first byte that is not `unset` after the `known` bytes that
 * this library knows, or 0 if all those bytes are `unset`. */
size_t iris_i_sized_unknown(const void *sized, size_t known, int unset);

/* Copies options of any header version over *known_p. The struct's init
 * function has filled *known_p, whose size is `known`; unset fields are 0.
 * `options` may be NULL: then nothing is set. IRIS_ERR_INVALID: the size is not
 * valid, or a field is set that this library does not know. `call` and `init`
 * are public names, for the message. */
iris_status_t iris_i_sized_take(const struct iris_log *log, const char *call,
                                const char *init, const void *options,
                                void *known_p);

/* Warns about each non-empty IRIS_* variable that nothing reads, and names the
 * nearest setting. Only the first call in a process does so. */
void iris_i_environment_check(const struct iris_log *log);

/* Whether an entry of environ, "NAME=value", is such a variable. */
int iris_i_environment_is_unknown(const char *variable);

/* Characters to insert, delete or replace between the two, in any case
 * (Levenshtein). */
int iris_i_count_changes(const char *a, const char *b);

/* ---- address.c ---- */

/* A socket address in bind()'s format. Its size is 0 if it is not set. */
struct iris_address {
    uint32_t bytes;
    _Alignas(8) unsigned char data[32];
};

/* Reads "HOST:PORT": a name, an IPv4 address or an IPv6 address in brackets,
 * and a number from 1 to 65535. Asks the system's resolver, and takes an IPv4
 * address if the name has one. Many hosts resolve their own name to the
 * loopback; for such a name the result is an address of
 * an interface, of the same family if there is one.
 * IRIS_ERR_CONFIG */
iris_status_t iris_i_address_parse(const char *text,
                                   struct iris_address *address_p);

/* Whether the address is one of this host's interfaces. */
int iris_i_address_is_own(const struct iris_address *address);

/* The address, with port 0, from which this host reaches another one. Sends
 * nothing. IRIS_ERR_BOOTSTRAP: there is no route. */
iris_status_t iris_i_address_towards(const struct iris_address *other,
                                     struct iris_address *own_p);

/* The address, with port 0, of the first interface that is up and not a
 * loopback: IPv4, else IPv6 but not link-local. IRIS_ERR_BOOTSTRAP: this host has no such interface. */
iris_status_t iris_i_address_of_host(struct iris_address *own_p);

/* The same port on all interfaces of this host. */
void iris_i_address_widen(struct iris_address *address);

/* Takes the port of `from`; 0 if that is not set. */
void iris_i_address_set_port(struct iris_address *address,
                             const struct iris_address *from);

/* A number that only processes of this host and network namespace share.
 * Processes with the same number can connect by local sockets. */
uint64_t iris_i_host_id(void);

/* ---- loader.c ---- */

/* The result of looking for a module. `path` and `why` are for messages. */
struct iris_loader {
    void *handle; /* NULL: not loaded */
    char path[1024];
    char why[512]; /* the reason if it is not loaded */
};

/* Loads iris_<name>.so from `folder`, or from the installation's folder of
 * modules if `folder` is NULL or empty. Returns the address of its only symbol.
 * NULL: it is not loaded, or lacks the symbol because it belongs to another
 * build. The caller checks that both sides use the same interface. */
void *iris_i_loader_open(struct iris_loader *loader, const char *folder,
                         const char *name, const char *symbol);

/* Unloads an unused module; does nothing if none is loaded. */
void iris_i_loader_close(struct iris_loader *loader);

/* Loads a third party's library by its file or name. With `only_loaded`, only
 * finds one that the process has already loaded. NULL: not found. */
void *iris_i_loader_library(const char *file, int only_loaded);

/* ---- images.c ---- */

/* The registry of images of GPU code. An unloaded object takes its images and
 * kernels along, and the next object may have others at the same addresses.
 * Therefore images have serial numbers, which are never used again, and the
 * registry counts removed images. */

typedef void (*iris_image_visit_t)(void *arg, const void *image,
                                   uint64_t serial);

/* Visits each image of GPU code in the program. Other threads may add images
 * during a visit. Removing the visited image waits. Thread-safe. */
void iris_i_each_image(iris_image_visit_t visit, void *arg);

/* The image's serial number; 0: it is not registered. Thread-safe. */
uint64_t iris_i_image_serial(const void *image);
uint64_t iris_i_images_removed(void);

/* ---- C locale ---- */

/* The C locale for this thread, in which numbers have a decimal point. Files
 * and messages of the library look the same in every locale of the program. */

/* Returns the thread's locale, for iris_i_c_locale_leave(). Calls may nest. The
 * C library has an object for this locale, so newlocale() allocates nothing. */
static inline locale_t iris_i_c_locale_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void iris_i_c_locale_leave(locale_t before)
{
    (void)uselocale(before);
}

/* vsnprintf() in the C locale. */
static inline int iris_i_vprint(char *text, size_t bytes, const char *format,
                                va_list args)
    __attribute__((format(printf, 3, 0)));
static inline int iris_i_vprint(char *text, size_t bytes, const char *format,
                                va_list args)
{
    locale_t before = iris_i_c_locale_enter();
    int length = vsnprintf(text, bytes, format, args);

    iris_i_c_locale_leave(before);
    return length;
}

/* snprintf() in the C locale. */
static inline int iris_i_print(char *text, size_t bytes, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));
static inline int iris_i_print(char *text, size_t bytes, const char *format,
                               ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = iris_i_vprint(text, bytes, format, args);
    va_end(args);
    return length;
}

/* ---- Grow ---- */

/* Arrays that grow by one element at a time. */

/* Makes room for one more than `count` elements of `size` bytes. `array_p` is the
 * address of the array's pointer; the array must only grow by these two functions.
 * false: no memory, and nothing has changed. */
static inline bool iris_i_reserve(void *array_p, size_t count, size_t size)
{
    void *array;

    memcpy(&array, array_p, sizeof array);
    /* There is space up to the next power of two. */
    if ((count & (count - 1)) == 0) {
        array = realloc(array, (count == 0 ? 1 : 2 * count) * size);
        if (array == NULL) {
            return false;
        }
        memcpy(array_p, &array, sizeof array);
    }
    return true;
}

/* Adds an element, all zero, and returns it. NULL: no memory. */
static inline void *iris_i_grow(void *array_p, size_t *count_p, size_t size)
{
    char *array;

    if (!iris_i_reserve(array_p, *count_p, size)) {
        return NULL;
    }
    memcpy(&array, array_p, sizeof array);
    return memset(array + (*count_p)++ * size, 0, size);
}

/* ---- Order ---- */

/* For qsort(): below, at or above 0. */
#define IRIS_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* qsort() of an array that may be empty, and NULL then. */
static inline void iris_i_sort(void *array, size_t count, size_t size,
                               int (*compare)(const void *, const void *))
{
    if (count > 1) {
        qsort(array, count, size, compare);
    }
}

/* ---- Futex ---- */

/* Sleeping on a shared word. */

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

#endif /* IRIS_SRC_BASE_BASE_H */
