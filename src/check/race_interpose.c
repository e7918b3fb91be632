/* SPDX-License-Identifier: MIT
 *
 * Calls that order the threads of a host, of programs compiled by `iriscc --check`:
 * the program's definitions of these functions take the place of those of the C
 * library, of libgomp and of libomp, tell the race checker, and call the originals.
 *
 * A call by libiris itself goes through untold. The threads that the program's own
 * code creates, and those of a parallel region, have a begin and an end. A call
 * that may wait in a way that nobody sees acquires from all threads. Nothing is
 * told before the program has a second thread.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include <iris/device/watch/cpu.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !IRIS_TSAN
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-declarations"

atomic_bool iris_i_race_has_threads;

/* The addresses of the program's own code, and of libiris. */
static struct iris_cpu_range program, library;

static pthread_key_t end_key;

static int note_file(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    uintptr_t at = (uintptr_t)iris_cpu_order;
    struct iris_cpu_range range = {UINTPTR_MAX, 0};
    bool *is_next_p = arg;

    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD) {
            range.low = low < range.low ? low : range.low;
            range.high = low + part->p_memsz;
        }
    }
    if (!*is_next_p) { /* the program comes first */
        program = range;
    }
    if (at >= range.low && at < range.high) {
        library = range;
    }
    *is_next_p = true;
    return 0;
}

/* A thread tells its end behind the program's own destructors, in the last round of
 * them. */
static void end_thread(void *rounds)
{
    uintptr_t left = (uintptr_t)rounds;

    if (left > 1) {
        pthread_setspecific(end_key, (void *)(left - 1));
    } else {
        iris_cpu_order(IRIS_CPU_END, (void *)pthread_self(), 0);
    }
}

void iris_i_race_interpose(void)
{
    bool is_next = false;

    if (library.high == 0) {
        dl_iterate_phdr(note_file, &is_next);
        (void)pthread_key_create(&end_key, end_thread);
        iris_cpu_thread()->is_known = 1; /* the main thread */
    }
}

static bool is_in(const struct iris_cpu_range *range, const void *caller)
{
    return (uintptr_t)caller >= range->low && (uintptr_t)caller < range->high;
}

/* ---- All calls alike ---- */

/* The functions have up to 12 arguments, and these are numbers or pointers. The
 * calling conventions of x86-64 and AArch64 allow a call to pass more of them. */
#define PARAMS                                                              \
    long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, \
        long a8, long a9, long a10, long a11
#define ARGS a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11
typedef long (*call_t)(PARAMS);

static call_t find_real(_Atomic call_t *real_p, const char *name)
{
    call_t real = atomic_load(real_p);

    if (real == NULL) {
        real = (call_t)dlsym(RTLD_NEXT, name);
        atomic_store(real_p, real);
    }
    if (real == NULL) {
        abort(); /* the linker has found the name, but nobody defines it */
    }
    return real;
}

/* Whether the checker is told of the call. */
static bool is_call_told(const void *caller)
{
    return atomic_load(&iris_i_race_has_threads) && !is_in(&library, caller);
}

static void tell_edge(enum iris_cpu_edge edge, const void *key)
{
    int error = errno;

    iris_cpu_order(edge, key, 0);
    errno = error;
}

static const char critical, atomic; /* keys of the unnamed ones */

/* The team of the thread's innermost parallel region. */
struct team {
    void (*run)(void *arg);
    void *arg;
    struct iris_cpu_thread creator;
    char tasks; /* a key, as the team itself, `end` and `turns` */
    char end;
    char turns;
};
static _Thread_local struct team *team;
static _Thread_local unsigned
    num_serial; /* libomp's regions of this thread alone */

extern int omp_get_num_threads(void) __attribute__((weak));

static void arrive_team(void)
{
    if (team != NULL && num_serial == 0 && omp_get_num_threads != NULL) {
        iris_cpu_order(IRIS_CPU_ARRIVE, team, (unsigned)omp_get_num_threads());
    }
}

static void leave_team(void)
{
    if (team != NULL && num_serial == 0) {
        tell_edge(IRIS_CPU_ACQUIRE, team);
        tell_edge(IRIS_CPU_ACQUIRE, &team->tasks);
    }
}

/* The edges before and after a call. */
#define KEY ((const void *)a0)
#define NOTHING (void)0
#define ACQUIRE(key) tell_edge(IRIS_CPU_ACQUIRE, key)
#define RELEASE(key) tell_edge(IRIS_CPU_RELEASE, key)
#define ACQUIRE_ALL tell_edge(IRIS_CPU_ACQUIRE_ALL, NULL)
#define MERGE tell_edge(IRIS_CPU_MERGE, NULL)
#define CALLS_OF_THREADS(X)                                                \
    X(pthread_mutex_lock, NOTHING, ACQUIRE(KEY))                           \
    X(pthread_mutex_trylock, NOTHING, ACQUIRE(KEY))                        \
    X(pthread_mutex_timedlock, NOTHING, ACQUIRE(KEY))                      \
    X(pthread_mutex_clocklock, NOTHING, ACQUIRE(KEY))                      \
    X(pthread_mutex_unlock, RELEASE(KEY), NOTHING)                         \
    X(pthread_rwlock_rdlock, NOTHING, ACQUIRE(KEY))                        \
    X(pthread_rwlock_tryrdlock, NOTHING, ACQUIRE(KEY))                     \
    X(pthread_rwlock_timedrdlock, NOTHING, ACQUIRE(KEY))                   \
    X(pthread_rwlock_clockrdlock, NOTHING, ACQUIRE(KEY))                   \
    X(pthread_rwlock_wrlock, NOTHING, ACQUIRE(KEY))                        \
    X(pthread_rwlock_trywrlock, NOTHING, ACQUIRE(KEY))                     \
    X(pthread_rwlock_timedwrlock, NOTHING, ACQUIRE(KEY))                   \
    X(pthread_rwlock_clockwrlock, NOTHING, ACQUIRE(KEY))                   \
    X(pthread_rwlock_unlock, RELEASE(KEY), NOTHING)                        \
    X(pthread_spin_lock, NOTHING, ACQUIRE(KEY))                            \
    X(pthread_spin_trylock, NOTHING, ACQUIRE(KEY))                         \
    X(pthread_spin_unlock, RELEASE(KEY), NOTHING)                          \
    X(pthread_cond_wait, RELEASE((void *)a1), WAIT_ENDS)                   \
    X(pthread_cond_timedwait, RELEASE((void *)a1), WAIT_ENDS)              \
    X(pthread_cond_clockwait, RELEASE((void *)a1), WAIT_ENDS)              \
    X(pthread_cond_signal, RELEASE(KEY), NOTHING)                          \
    X(pthread_cond_broadcast, RELEASE(KEY), NOTHING)                       \
    X(pthread_barrier_wait, tell_edge(IRIS_CPU_ARRIVE, KEY), ACQUIRE(KEY)) \
    X(pthread_once, NOTHING, ACQUIRE_ALL)                                  \
    X(pthread_join, NOTHING, ACQUIRE(KEY))                                 \
    X(pthread_tryjoin_np, NOTHING, ACQUIRE(KEY))                           \
    X(pthread_timedjoin_np, NOTHING, ACQUIRE(KEY))                         \
    X(pthread_clockjoin_np, NOTHING, ACQUIRE(KEY))                         \
    X(sem_wait, NOTHING, ACQUIRE(KEY))                                     \
    X(sem_trywait, NOTHING, ACQUIRE(KEY))                                  \
    X(sem_timedwait, NOTHING, ACQUIRE(KEY))                                \
    X(sem_clockwait, NOTHING, ACQUIRE(KEY))                                \
    X(sem_getvalue, NOTHING, ACQUIRE(KEY))                                 \
    X(sem_post, RELEASE(KEY), NOTHING)                                     \
    X(mtx_lock, NOTHING, ACQUIRE(KEY))                                     \
    X(mtx_trylock, NOTHING, ACQUIRE(KEY))                                  \
    X(mtx_timedlock, NOTHING, ACQUIRE(KEY))                                \
    X(mtx_unlock, RELEASE(KEY), NOTHING)                                   \
    X(cnd_wait, RELEASE((void *)a1), WAIT_ENDS)                            \
    X(cnd_timedwait, RELEASE((void *)a1), WAIT_ENDS)                       \
    X(cnd_signal, RELEASE(KEY), NOTHING)                                   \
    X(cnd_broadcast, RELEASE(KEY), NOTHING)                                \
    X(call_once, NOTHING, ACQUIRE_ALL)                                     \
    X(thrd_join, NOTHING, ACQUIRE(KEY))
#define WAIT_ENDS (ACQUIRE(KEY), ACQUIRE((void *)a1))

/* These may wait for another thread's message, of which the C library says
 * nothing. */
/* clang-format off */
#define CALLS_THAT_WAIT(X)                                                   \
    X(read) X(readv) X(recv) X(recvfrom) X(recvmsg) X(poll) X(ppoll)         \
    X(select) X(pselect) X(epoll_wait) X(epoll_pwait) X(accept) X(accept4)   \
    X(syscall) X(fgets) X(fgetc) X(getc) X(getline) X(getdelim) X(fread)     \
    X(__read_chk) X(__recv_chk) X(__recvfrom_chk) X(__poll_chk)              \
    X(__ppoll_chk) X(__fgets_chk) X(__fread_chk) X(eventfd_read) X(msgrcv)   \
    X(mq_receive) X(mq_timedreceive) X(sigwait) X(sigwaitinfo)               \
    X(sigtimedwait) X(sigsuspend) X(pause) X(wait) X(waitpid) X(waitid)      \
    X(flock) X(lockf) X(fcntl) X(semop) X(semtimedop) X(aio_suspend)         \
    X(GOMP_single_copy_start) X(GOMP_doacross_wait)                          \
    X(GOMP_doacross_ull_wait) X(GOMP_taskwait_depend)                        \
    X(GOMP_workshare_task_reduction_unregister)
/* clang-format on */

#define TEAM_TURNS (team == NULL ? (const void *)&critical : &team->turns)
#define CALLS_OF_OPENMP(X)                              \
    X(omp_set_lock, NOTHING, ACQUIRE(KEY))              \
    X(omp_set_nest_lock, NOTHING, ACQUIRE(KEY))         \
    X(omp_test_lock, NOTHING, ACQUIRE(KEY))             \
    X(omp_test_nest_lock, NOTHING, ACQUIRE(KEY))        \
    X(omp_unset_lock, RELEASE(KEY), NOTHING)            \
    X(omp_unset_nest_lock, RELEASE(KEY), NOTHING)       \
    X(GOMP_critical_start, NOTHING, ACQUIRE(&critical)) \
    X(GOMP_critical_end, RELEASE(&critical), NOTHING)   \
    X(GOMP_critical_name_start, NOTHING, ACQUIRE(KEY))  \
    X(GOMP_critical_name_end, RELEASE(KEY), NOTHING)    \
    X(GOMP_atomic_start, NOTHING, ACQUIRE(&atomic))     \
    X(GOMP_atomic_end, RELEASE(&atomic), NOTHING)       \
    X(GOMP_ordered_start, NOTHING, ACQUIRE(TEAM_TURNS)) \
    X(GOMP_ordered_end, RELEASE(TEAM_TURNS), NOTHING)   \
    X(GOMP_barrier, arrive_team(), leave_team())        \
    X(GOMP_loop_end, arrive_team(), leave_team())       \
    X(GOMP_sections_end, arrive_team(), leave_team())   \
    X(GOMP_taskwait, NOTHING, leave_team())             \
    X(GOMP_taskgroup_end, NOTHING, leave_team())        \
    X(GOMP_cancel, MERGE, NOTHING)                      \
    X(GOMP_barrier_cancel, MERGE, NOTHING)              \
    X(GOMP_loop_end_cancel, MERGE, NOTHING)             \
    X(GOMP_sections_end_cancel, MERGE, NOTHING)         \
    X(GOMP_taskloop, MERGE, NOTHING)                    \
    X(GOMP_taskloop_ull, MERGE, NOTHING)                \
    X(GOMP_target_ext, MERGE, NOTHING)                  \
    X(GOMP_target_update_ext, MERGE, NOTHING)           \
    X(GOMP_target_enter_exit_data, MERGE, NOTHING)      \
    X(GOMP_parallel_start, MERGE, NOTHING)              \
    X(GOMP_parallel_reductions, MERGE, NOTHING)

/* libomp's calls, which clang makes, begin with the place in the code and the
 * thread's number. A lock of a reduction may be the runtime's own order. */
#define LOCK ((const void *)a2)
#define REDUCTION ((const void *)a6)
#define CALLS_OF_LIBOMP(X)                                                    \
    X(__kmpc_critical, NOTHING, ACQUIRE(LOCK))                                \
    X(__kmpc_critical_with_hint, NOTHING, ACQUIRE(LOCK))                      \
    X(__kmpc_end_critical, RELEASE(LOCK), NOTHING)                            \
    X(__kmpc_ordered, NOTHING, ACQUIRE(TEAM_TURNS))                           \
    X(__kmpc_end_ordered, RELEASE(TEAM_TURNS), NOTHING)                       \
    X(__kmpc_barrier, arrive_team(), leave_team())                            \
    X(__kmpc_reduce, RELEASE(REDUCTION), ACQUIRE(REDUCTION))                  \
    X(__kmpc_reduce_nowait, RELEASE(REDUCTION), ACQUIRE(REDUCTION))           \
    X(__kmpc_end_reduce, (RELEASE(LOCK), arrive_team()), leave_team())        \
    X(__kmpc_end_reduce_nowait, RELEASE(LOCK), NOTHING)                       \
    X(__kmpc_serialized_parallel, num_serial++, NOTHING)                      \
    X(__kmpc_end_serialized_parallel, NOTHING, num_serial -= num_serial != 0) \
    X(__kmpc_copyprivate, NOTHING, ACQUIRE_ALL)                               \
    X(__kmpc_doacross_wait, NOTHING, ACQUIRE_ALL)                             \
    X(__kmpc_omp_task_alloc, MERGE, NOTHING)                                  \
    X(__kmpc_omp_target_task_alloc, MERGE, NOTHING)                           \
    X(__kmpc_cancel, MERGE, NOTHING)                                          \
    X(__kmpc_cancel_barrier, MERGE, NOTHING)                                  \
    X(__kmpc_fork_teams, MERGE, NOTHING)                                      \
    X(__kmpc_fork_call_if, MERGE, NOTHING)

/* Expands to the program's pthread_mutex_lock() and others. */
#define INTERPOSE(name, before, after)                                     \
    long iris_i_call_##name(PARAMS) __asm__(#name);                        \
    __attribute__((visibility("default"))) long iris_i_call_##name(PARAMS) \
    {                                                                      \
        static _Atomic call_t real;                                        \
        call_t call = find_real(&real, #name);                             \
        bool tells = is_call_told(IRIS_D_CALLER());                        \
        long ret;                                                          \
                                                                           \
        if (tells) {                                                       \
            before;                                                        \
        }                                                                  \
        ret = call(ARGS);                                                  \
        if (tells) {                                                       \
            after;                                                         \
        }                                                                  \
        return ret;                                                        \
    }
#define INTERPOSE_WAIT(name) INTERPOSE(name, NOTHING, ACQUIRE_ALL)
CALLS_OF_THREADS(INTERPOSE)
CALLS_OF_OPENMP(INTERPOSE)
CALLS_OF_LIBOMP(INTERPOSE)
CALLS_THAT_WAIT(INTERPOSE_WAIT)
#undef INTERPOSE
#undef INTERPOSE_WAIT

/* ---- Threads ---- */

struct start {
    union {
        void *(*run)(void *arg);   /* pthread_create() */
        int (*run_int)(void *arg); /* thrd_create() */
    };
    void *arg;
    struct iris_cpu_thread creator;
};

static void begin_thread(struct start *start, struct start *copy_p)
{
    *copy_p = *start;
    iris_cpu_thread()->checker = start->creator.checker;
    iris_cpu_thread()->is_known = 1;
    iris_cpu_order(IRIS_CPU_BEGIN, start, 0);
    free(start);
    pthread_setspecific(end_key,
                        (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
}

static void *run_thread(void *arg)
{
    struct start start;

    begin_thread(arg, &start);
    return start.run(start.arg);
}

static int run_thrd(void *arg)
{
    struct start start;

    begin_thread(arg, &start);
    return start.run_int(start.arg);
}

static struct start *make_start(long run, long arg)
{
    struct start *start = malloc(sizeof *start);

    if (start != NULL) {
        start->run = (void *(*)(void *))run;
        start->arg = (void *)arg;
        start->creator = *iris_cpu_thread();
        atomic_store(&iris_i_race_has_threads, true);
        tell_edge(IRIS_CPU_PUBLISH, start);
    }
    return start;
}

/* A thread of another library keeps its unknown begin. */
#define CREATE(name, at, runs)                                             \
    long iris_i_call_##name(PARAMS) __asm__(#name);                        \
    __attribute__((visibility("default"))) long iris_i_call_##name(PARAMS) \
    {                                                                      \
        static _Atomic call_t real;                                        \
        call_t call = find_real(&real, #name);                             \
        struct start *start = NULL;                                        \
        long ret;                                                          \
                                                                           \
        if (is_in(&program, IRIS_D_CALLER())) {                            \
            start = make_start(a##at, NEXT_OF(at));                        \
        }                                                                  \
        if (start != NULL) {                                               \
            a##at = (long)runs;                                            \
            NEXT_OF(at) = (long)start;                                     \
        }                                                                  \
        ret = call(ARGS);                                                  \
        if ((int)ret != 0) {                                               \
            free(start);                                                   \
        }                                                                  \
        return ret;                                                        \
    }
#define NEXT_OF(at) NEXT_OF_##at
#define NEXT_OF_1 a2
#define NEXT_OF_2 a3
CREATE(pthread_create, 2, run_thread)
CREATE(thrd_create, 1, run_thrd)
#undef CREATE
#undef NEXT_OF
#undef NEXT_OF_1
#undef NEXT_OF_2

long iris_i_call_barrier_init(PARAMS) __asm__("pthread_barrier_init");
__attribute__((visibility("default"))) long iris_i_call_barrier_init(PARAMS)
{
    static _Atomic call_t real;

    if (!is_in(&library, IRIS_D_CALLER())) {
        iris_cpu_order(IRIS_CPU_COUNT, KEY, (unsigned)a2);
    }
    return find_real(&real, "pthread_barrier_init")(ARGS);
}

/* ---- OpenMP ---- */

/* A sequence of operations in this thread. */
static struct iris_cpu_thread
enter_sequence(const struct iris_cpu_thread *creator, const void *key)
{
    struct iris_cpu_thread before = *iris_cpu_thread();

    *iris_cpu_thread() =
        (struct iris_cpu_thread){.checker = creator->checker, .is_known = 1};
    iris_cpu_order(IRIS_CPU_BEGIN, key, 0);
    return before;
}

static void leave_sequence(const struct iris_cpu_thread *before,
                           const void *key)
{
    iris_cpu_order(IRIS_CPU_END, key, 0);
    *iris_cpu_thread() = *before;
}

static void run_member(void *arg)
{
    struct team *own = arg, *outer = team;
    struct iris_cpu_thread before = enter_sequence(&own->creator, own);

    team = own;
    own->run(own->arg);
    team = outer;
    leave_sequence(&before, &own->end);
}

static void begin_team(struct team *own, long run, long arg)
{
    own->run = (void (*)(void *))run;
    own->arg = (void *)arg;
    own->creator = *iris_cpu_thread();
    atomic_store(&iris_i_race_has_threads, true);
    tell_edge(IRIS_CPU_PUBLISH, own);
}

static void end_team(struct team *own)
{
    tell_edge(IRIS_CPU_ACQUIRE, &own->end);
    tell_edge(IRIS_CPU_ACQUIRE, &own->tasks);
}

/* The calls begin with the function of a region and its argument. Expands to
 * GOMP_parallel() and others. */
#define FORK(name)                                                         \
    long iris_i_call_##name(PARAMS) __asm__(#name);                        \
    __attribute__((visibility("default"))) long iris_i_call_##name(PARAMS) \
    {                                                                      \
        static _Atomic call_t real;                                        \
        call_t call = find_real(&real, #name);                             \
        struct team own;                                                   \
        long ret;                                                          \
                                                                           \
        begin_team(&own, a0, a1);                                          \
        a0 = (long)run_member;                                             \
        a1 = (long)&own;                                                   \
        ret = call(ARGS);                                                  \
        end_team(&own);                                                    \
        return ret;                                                        \
    }
FORK(GOMP_parallel)
FORK(GOMP_parallel_sections)
FORK(GOMP_parallel_loop_static)
FORK(GOMP_parallel_loop_dynamic)
FORK(GOMP_parallel_loop_guided)
FORK(GOMP_parallel_loop_runtime)
FORK(GOMP_parallel_loop_nonmonotonic_dynamic)
FORK(GOMP_parallel_loop_nonmonotonic_guided)
FORK(GOMP_parallel_loop_nonmonotonic_runtime)
FORK(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
#undef FORK

/* libomp calls the function with the addresses of two numbers of the thread and the
 * arguments that the program passed; run_forked() with the team in their place. */
#define MOST_FORKED 64
struct forked {
    struct team team;
    void (*run)(int *thread, int *bound, ...);
    void *args[MOST_FORKED];
};

static void run_forked(int *thread, int *bound, struct forked *own)
{
    struct team *outer = team;
    unsigned serial = num_serial;
    void **a = own->args;
    struct iris_cpu_thread before =
        enter_sequence(&own->team.creator, &own->team);

    team = &own->team;
    num_serial = 0;
#define FOUR(i) a[i], a[i + 1], a[i + 2], a[i + 3]
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
    own->run(thread, bound, SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48));
    num_serial = serial;
    team = outer;
    leave_sequence(&before, &own->team.end);
}

void iris_i_call_fork(void *place, int count, void *run,
                      ...) __asm__("__kmpc_fork_call");
__attribute__((visibility("default"))) void
iris_i_call_fork(void *place, int count, void *run, ...)
{
    static _Atomic call_t real;
    call_t call = find_real(&real, "__kmpc_fork_call");
    struct forked own = {.run = (void (*)(int *, int *, ...))(long)run};
    va_list args;

    if (count > MOST_FORKED) {
        fprintf(stderr,
                "iriscc --check: a parallel region shares %d variables, and %d "
                "are possible; put them into a struct\n",
                count, MOST_FORKED);
        abort();
    }
    va_start(args, run);
    for (int i = 0; i < count; i++) {
        own.args[i] = va_arg(args, void *);
    }
    va_end(args);
    begin_team(&own.team, 0, 0);
    ((void (*)(void *, int, void *, ...))(long)call)(place, 1,
                                                     (void *)run_forked, &own);
    end_team(&own.team);
}

/* Of GOMP_task(). */
#define TASK_DEPENDS 8
#define TASK_DETACHES 64

/* Ahead of the task's argument. */
struct task {
    void (*run)(void *arg);
    void (*copy)(void *to, void *from); /* NULL: copies the bytes */
    void *arg;
    size_t bytes;
    size_t ahead; /* bytes of this and the padding */
    struct iris_cpu_thread creator;
    struct team *team;
    const void *key; /* of its creation */
    bool depends;
};

static char task_keys[1024]; /* tasks that share one are ordered behind both
                              * creations */
static atomic_uint num_tasks;
static _Thread_local unsigned num_run; /* tasks that this thread has run */

static void copy_task(void *to, void *from)
{
    const struct task *task = from;

    memcpy(to, task, sizeof *task);
    if (task->copy != NULL) {
        task->copy((char *)to + task->ahead, task->arg);
    } else {
        memcpy((char *)to + task->ahead, task->arg, task->bytes);
    }
}

static void run_task(void *arg)
{
    const struct task *task = arg;
    struct team *outer = team, *own = task->team;
    struct iris_cpu_thread before = enter_sequence(&task->creator, task->key);

    team = own;
    if (task->depends) {
        ACQUIRE_ALL;
    }
    task->run((char *)arg + task->ahead);
    team = outer;
    leave_sequence(&before,
                   own == NULL ? (const void *)task_keys : &own->tasks);
    num_run++;
}

long iris_i_call_task(PARAMS) __asm__("GOMP_task");
__attribute__((visibility("default"))) long iris_i_call_task(PARAMS)
{
    static _Atomic call_t real;
    call_t call = find_real(&real, "GOMP_task");
    size_t align = a4 > 16 ? (size_t)a4 : 16;
    struct task task = {
        .run = (void (*)(void *))a0,
        .copy = (void (*)(void *, void *))a2,
        .arg = (void *)a1,
        .bytes = (size_t)a3,
        .ahead = (sizeof task + align - 1) / align * align,
        .creator = *iris_cpu_thread(),
        .team = team,
        .key = &task_keys[atomic_fetch_add(&num_tasks, 1) % sizeof task_keys],
        .depends = (a6 & TASK_DEPENDS) != 0,
    };
    unsigned before = num_run;
    long ret;

    if (!is_call_told(IRIS_D_CALLER())) {
        return call(ARGS);
    }
    if ((a6 & TASK_DETACHES) != 0) {
        MERGE;
        return call(ARGS);
    }
    RELEASE(task.key);
    a0 = (long)run_task;
    a1 = (long)&task;
    a2 = (long)copy_task;
    a3 = (long)(task.ahead + task.bytes);
    a4 = (long)align;
    ret = call(ARGS);
    if (num_run != before && team != NULL) { /* at once */
        ACQUIRE(&team->tasks);
    } else if (num_run != before) {
        ACQUIRE(task_keys);
    }
    return ret;
}
#endif
