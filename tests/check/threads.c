/* SPDX-License-Identifier: MIT
 *
 * Races between threads of one host, of programs that `iriscc --check` compiles:
 * `threads NAME 1 RANKS` shows the bug at the lines that name it, `threads NAME 0
 * RANKS` is its correct twin, `threads` lists the names. Of
 * tests/check/run_threads.sh. A case that has no bug begins with "clean_".
 */
#define _GNU_SOURCE
#include <iris/iris.h>

#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

/* One rank's. Two threads run a case: `first` and `second`. */
struct box {
    iris_t *iris;
    int wrong;
    volatile int
        ready;      /* orders, as every volatile access does: unused in bugs */
    int32_t *x;     /* 16 elements of the rank's own heap */
    int32_t *there; /* of the next rank's */
    iris_stream_t *stream;
    pthread_t thread;
    int is_joined;
    pthread_mutex_t lock, other;
    pthread_rwlock_t rw;
    pthread_spinlock_t spin;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    pthread_once_t once;
    sem_t sem, done;
    mtx_t mutex;
    omp_lock_t omp;
    _Atomic int flag, turn;
    int is_set;
    int ends[2];
};

static int32_t fixed[64][16]; /* static memory on no heap, of each rank */

static void join_second(struct box *b)
{
    if (!b->is_joined) {
        pthread_join(b->thread, NULL);
        b->is_joined = 1;
    }
}

/* Waits, in no order, until two have come. */
static void meet(struct box *b)
{
    atomic_fetch_add_explicit(&b->turn, 1, memory_order_relaxed);
    while (atomic_load_explicit(&b->turn, memory_order_relaxed) < 2) {
    }
}

/* ---- pthreads ---- */

#define FIRST(name) static void first_##name(struct box *b)
#define SECOND(name) static void second_##name(struct box *b)
#define LOCK(which) pthread_mutex_lock(&b->which)
#define UNLOCK(which) pthread_mutex_unlock(&b->which)

/* Read before the thread is joined. */
FIRST(join)
{
    if (!b->wrong) {
        join_second(b);
    }
    b->x[1] = b->x[0]; /* bug join */
}
SECOND(join)
{
    b->x[0] = 7; /* bug join */
}

/* Written behind the begin of the thread that reads. */
FIRST(create)
{
    if (b->wrong) {
        b->x[0] = 7; /* bug create */
    }
}
SECOND(create)
{
    b->x[1] = b->x[0]; /* bug create */
}

/* One of two does not take the lock. */
FIRST(lock)
{
    LOCK(lock);
    b->x[0]++; /* bug lock */
    UNLOCK(lock);
}
SECOND(lock)
{
    if (!b->wrong) {
        LOCK(lock);
    }
    b->x[0]++; /* bug lock */
    if (!b->wrong) {
        UNLOCK(lock);
    }
}

/* Two locks for one place. */
FIRST(two_locks)
{
    LOCK(lock);
    b->x[0]++; /* bug two_locks */
    UNLOCK(lock);
}
SECOND(two_locks)
{
    pthread_mutex_t *lock = b->wrong ? &b->other : &b->lock;

    pthread_mutex_lock(lock);
    b->x[0]++; /* bug two_locks */
    pthread_mutex_unlock(lock);
}

/* The value is used behind the unlock. */
FIRST(early_unlock)
{
    LOCK(lock);
    if (b->wrong) {
        UNLOCK(lock);
    }
    b->x[0] = 1; /* bug early_unlock */
    if (!b->wrong) {
        UNLOCK(lock);
    }
}
SECOND(early_unlock)
{
    LOCK(lock);
    b->x[0] = 2; /* bug early_unlock */
    UNLOCK(lock);
}

/* A trylock whose failure nobody looks at. */
FIRST(trylock)
{
    LOCK(lock);
    sem_post(&b->sem);
    sem_wait(&b->done);
    b->x[0] = 1; /* bug trylock */
    UNLOCK(lock);
}
SECOND(trylock)
{
    sem_wait(&b->sem);
    (void)pthread_mutex_trylock(&b->lock);
    sem_post(&b->done);
    if (!b->wrong) {
        LOCK(lock);
    }
    b->x[0] = 2; /* bug trylock */
    if (!b->wrong) {
        UNLOCK(lock);
    }
}

/* The condition is told ahead of the data. */
FIRST(condition)
{
    if (!b->wrong) {
        b->x[0] = 7;
    }
    LOCK(lock);
    b->is_set = 1;
    pthread_cond_signal(&b->cond);
    UNLOCK(lock);
    if (b->wrong) {
        b->x[0] = 7; /* bug condition */
    }
}
SECOND(condition)
{
    LOCK(lock);
    while (!b->is_set) {
        pthread_cond_wait(&b->cond, &b->lock);
    }
    UNLOCK(lock);
    b->x[1] = b->x[0]; /* bug condition */
}

/* One writes behind the barrier what the other reads there. */
FIRST(barrier)
{
    if (!b->wrong) {
        b->x[0] = 7;
    }
    pthread_barrier_wait(&b->barrier);
    if (b->wrong) {
        b->x[0] = 7; /* bug barrier */
    }
    pthread_barrier_wait(&b->barrier);
}
SECOND(barrier)
{
    pthread_barrier_wait(&b->barrier);
    b->x[1] = b->x[0]; /* bug barrier */
    pthread_barrier_wait(&b->barrier);
}

/* Rounds with one barrier where two are needed. */
FIRST(rounds)
{
    for (int round = 0; round < 3; round++) {
        b->x[0] = round; /* bug rounds */
        pthread_barrier_wait(&b->barrier);
        if (!b->wrong) {
            pthread_barrier_wait(&b->barrier);
        }
    }
}
SECOND(rounds)
{
    for (int round = 0; round < 3; round++) {
        pthread_barrier_wait(&b->barrier);
        b->x[1] += b->x[0]; /* bug rounds */
        if (!b->wrong) {
            pthread_barrier_wait(&b->barrier);
        }
    }
}

/* The semaphore is raised ahead of the data. */
FIRST(semaphore)
{
    if (b->wrong) {
        sem_post(&b->sem);
    }
    b->x[0] = 7; /* bug semaphore */
    if (!b->wrong) {
        sem_post(&b->sem);
    }
}
SECOND(semaphore)
{
    sem_wait(&b->sem);
    b->x[1] = b->x[0]; /* bug semaphore */
}

/* A reader's lock around a write. */
FIRST(read_lock)
{
    pthread_rwlock_rdlock(&b->rw);
    b->x[1] = b->x[0]; /* bug read_lock */
    pthread_rwlock_unlock(&b->rw);
}
SECOND(read_lock)
{
    if (!b->wrong) {
        pthread_rwlock_wrlock(&b->rw);
    }
    b->x[0] = 7; /* bug read_lock */
    if (!b->wrong) {
        pthread_rwlock_unlock(&b->rw);
    }
}

FIRST(spin_lock)
{
    pthread_spin_lock(&b->spin);
    b->x[0] = 1; /* bug spin_lock */
    pthread_spin_unlock(&b->spin);
}
SECOND(spin_lock)
{
    if (!b->wrong) {
        pthread_spin_lock(&b->spin);
    }
    b->x[0] = 2; /* bug spin_lock */
    if (!b->wrong) {
        pthread_spin_unlock(&b->spin);
    }
}

/* Threads of standard C. */
FIRST(mtx)
{
    mtx_lock(&b->mutex);
    b->x[0] = 1; /* bug mtx */
    mtx_unlock(&b->mutex);
}
static int run_mtx(void *arg)
{
    struct box *b = arg;

    if (!b->wrong) {
        mtx_lock(&b->mutex);
    }
    b->x[0] = 2; /* bug mtx */
    if (!b->wrong) {
        mtx_unlock(&b->mutex);
    }
    return 0;
}
SECOND(mtx)
{
    thrd_t thread;

    if (thrd_create(&thread, run_mtx, b) == thrd_success) {
        thrd_join(thread, NULL);
    }
}

/* ---- Atomics on no heap ---- */

FIRST(relaxed_flag)
{
    b->x[0] = 7; /* bug relaxed_flag */
    atomic_store_explicit(
        &b->flag, 1, b->wrong ? memory_order_relaxed : memory_order_release);
}
SECOND(relaxed_flag)
{
    while (atomic_load_explicit(&b->flag, memory_order_acquire) == 0) {
    }
    b->x[1] = b->x[0]; /* bug relaxed_flag */
}

FIRST(relaxed_poll)
{
    b->x[0] = 7; /* bug relaxed_poll */
    atomic_store_explicit(&b->flag, 1, memory_order_release);
}
SECOND(relaxed_poll)
{
    while (atomic_load_explicit(&b->flag, b->wrong
                                              ? memory_order_relaxed
                                              : memory_order_acquire) == 0) {
    }
    b->x[1] = b->x[0]; /* bug relaxed_poll */
}

FIRST(no_fence)
{
    b->x[0] = 7; /* bug no_fence */
    if (!b->wrong) {
        atomic_thread_fence(memory_order_release);
    }
    atomic_store_explicit(&b->flag, 1, memory_order_relaxed);
}
SECOND(no_fence)
{
    while (atomic_load_explicit(&b->flag, memory_order_relaxed) == 0) {
    }
    atomic_thread_fence(memory_order_acquire);
    b->x[1] = b->x[0]; /* bug no_fence */
}

FIRST(flag_ahead)
{
    if (b->wrong) {
        b->flag = 1;
    }
    b->x[0] = 7; /* bug flag_ahead */
    if (!b->wrong) {
        b->flag = 1;
    }
}
SECOND(flag_ahead)
{
    while (b->flag == 0) {
    }
    b->x[1] = b->x[0]; /* bug flag_ahead */
}

/* The last to count uses what the others wrote. */
static void count(struct box *b, int i)
{
    b->x[i] = i; /* bug counter */
    if (atomic_fetch_add_explicit(&b->turn, 1,
                                  b->wrong ? memory_order_relaxed
                                           : memory_order_acq_rel) == 1) {
        b->x[8] = b->x[0] + b->x[1]; /* bug counter */
    }
}
FIRST(counter)
{
    count(b, 0);
}
SECOND(counter)
{
    count(b, 1);
}

/* A lock of the program's own, on a futex. */
static void take_own(struct box *b)
{
    int none = 0;

    while (!atomic_compare_exchange_strong_explicit(
        &b->flag, &none, 1, memory_order_acquire, memory_order_relaxed)) {
        syscall(SYS_futex, &b->flag, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        none = 0;
    }
}
static void give_own(struct box *b)
{
    atomic_store_explicit(&b->flag, 0, memory_order_release);
    syscall(SYS_futex, &b->flag, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
FIRST(clean_futex)
{
    for (int i = 0; i < 20; i++) {
        take_own(b);
        b->x[0]++;
        give_own(b);
    }
}
SECOND(clean_futex)
{
    first_clean_futex(b);
}

/* Spin locks without atomics' orders on x86, as old programs have them. */
FIRST(clean_volatile)
{
    b->x[0] = 7;
    b->ready = 1;
}
SECOND(clean_volatile)
{
    while (!b->ready) {
    }
    b->x[1] = b->x[0];
}

FIRST(clean_pipe)
{
    b->x[0] = 7;
    if (write(b->ends[1], "x", 1) != 1) {
        b->x[3] = 1;
    }
}
SECOND(clean_pipe)
{
    char c;

    if (read(b->ends[0], &c, 1) == 1) {
        b->x[1] = b->x[0];
    }
}

static __thread struct box *initial;
static void init_once(void)
{
    initial->x[0] = 7;
}
FIRST(clean_once)
{
    initial = b;
    pthread_once(&b->once, init_once);
    LOCK(lock);
    b->x[1] += b->x[0];
    UNLOCK(lock);
}
SECOND(clean_once)
{
    first_clean_once(b);
}

/* ---- Iris ---- */

#define PUT(b, from, rank) \
    iris_put_on_stream(b->iris, &b->x[32], from, 64, rank, b->stream)

/* A static array that a stream reads, written once the thread that enqueued the
 * copy is joined, which is not its end. */
FIRST(static_array)
{
    int rank = iris_rank(b->iris);

    join_second(b);
    if (!b->wrong && iris_stream_synchronize(b->iris, b->stream) != IRIS_OK) {
        return;
    }
    fixed[rank][3] = 2; /* bug static_array */
}
SECOND(static_array)
{
    int rank = iris_rank(b->iris);
    int32_t *from = fixed[rank];

    (void)PUT(b, from, rank); /* bug static_array */
}

/* A thread fills a buffer on the stack that another thread's copy reads. */
static _Atomic(int32_t *) stacks[64];
FIRST(stack_array)
{
    volatile int32_t local[16] = {0};
    int rank = iris_rank(b->iris);
    void *from = (void *)local;
    iris_status_t status;

    status = PUT(b, from, rank); /* bug stack_array */
    if (status != IRIS_OK) {
        return;
    }
    if (!b->wrong && iris_stream_synchronize(b->iris, b->stream) != IRIS_OK) {
        return;
    }
    atomic_store(&stacks[rank], (int32_t *)local);
    join_second(b);
    (void)iris_stream_synchronize(b->iris, b->stream);
}
SECOND(stack_array)
{
    int32_t *local;

    while ((local = atomic_load(&stacks[iris_rank(b->iris)])) == NULL) {
    }
    local[5] = 1; /* bug stack_array */
}

/* The put of one thread, and the other's use of its source on the heap. */
FIRST(put_source)
{
    int rank = iris_rank(b->iris);

    (void)PUT(b, b->x, rank); /* bug put_source */
    if (!b->wrong) {
        (void)iris_stream_synchronize(b->iris, b->stream);
    }
    sem_post(&b->sem);
}
SECOND(put_source)
{
    sem_wait(&b->sem);
    b->x[2] = 1; /* bug put_source */
}

/* The host writes to another rank, with two threads. */
FIRST(remote)
{
    LOCK(lock);
    b->there[48] = 1; /* bug remote */
    UNLOCK(lock);
}
SECOND(remote)
{
    if (!b->wrong) {
        LOCK(lock);
    }
    b->there[48] = 2; /* bug remote */
    if (!b->wrong) {
        UNLOCK(lock);
    }
}

/* ---- Limits: the correct twins are bugs, too, which the check does not find ---- */

/* Of rank 0 alone: locks of all ranks share a table. */
static pthread_mutex_t many_locks[8193];
FIRST(limit_of_locks)
{
    int count = b->wrong ? 8000 : 8193;

    if (iris_rank(b->iris) == 0) {
        for (int i = 0; i < count; i++) {
            pthread_mutex_init(&many_locks[i], NULL);
            pthread_mutex_lock(&many_locks[i]);
            pthread_mutex_unlock(&many_locks[i]);
        }
        meet(b);
        b->x[0]++; /* bug limit_of_locks */
    }
}
SECOND(limit_of_locks)
{
    if (iris_rank(b->iris) == 0) {
        meet(b);
        b->x[0]++; /* bug limit_of_locks */
    }
}

static void *stay(void *arg)
{
    struct box *b = arg;

    sem_post(&b->sem);
    sem_wait(&b->done);
    return NULL;
}

/* With the second, 512 or 513 threads besides the rank's own. */
FIRST(limit_of_threads)
{
    int count = iris_rank(b->iris) != 0 ? 0 : b->wrong ? 511 : 512;
    pthread_t threads[512];

    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, stay, b) != 0) {
            abort();
        }
        sem_wait(&b->sem);
    }
    meet(b);
    b->x[0] += count; /* bug limit_of_threads */
    for (int i = 0; i < count; i++) {
        sem_post(&b->done);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}
SECOND(limit_of_threads)
{
    meet(b);
    if (iris_rank(b->iris) == 0) {
        b->x[0]++; /* bug limit_of_threads */
    }
}

/* ---- OpenMP: run by one thread of a rank ---- */

#define OMP(name) static void first_##name(struct box *b)
#define TWO _Pragma("omp parallel num_threads(2)")

OMP(omp_sum)
{
    TWO
    {
        if (b->wrong) {
            b->x[0] += 1; /* bug omp_sum */
        } else {
#pragma omp critical
            b->x[0] += 1;
        }
    }
}

OMP(omp_names)
{
    TWO
    {
        if (b->wrong && omp_get_thread_num() == 1) {
#pragma omp critical(one)
            b->x[0] += 1; /* bug omp_names */
        } else {
#pragma omp critical(two)
            b->x[0] += 1; /* bug omp_names */
        }
    }
}

OMP(omp_nowait)
{
    TWO
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 4; i++) {
            b->x[i] = i; /* bug omp_nowait */
        }
        if (!b->wrong) {
#pragma omp barrier
        }
#pragma omp for schedule(static)
        for (int i = 0; i < 4; i++) {
            b->x[8 + i] = b->x[3 - i]; /* bug omp_nowait */
        }
    }
}

OMP(omp_master)
{
    TWO
    {
#pragma omp master
        b->x[0] = 7; /* bug omp_master */
        if (!b->wrong) {
#pragma omp barrier
        }
        b->x[4 + omp_get_thread_num()] = b->x[0]; /* bug omp_master */
    }
}

OMP(omp_carried)
{
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 8; i++) {
        b->x[i + (i < 7 && b->wrong)] = b->x[i] + 1; /* bug omp_carried */
    }
}

OMP(omp_lock)
{
    TWO
    {
        int locks = !b->wrong || omp_get_thread_num() == 0;

        if (locks) {
            omp_set_lock(&b->omp);
        }
        b->x[0]++; /* bug omp_lock */
        if (locks) {
            omp_unset_lock(&b->omp);
        }
    }
}

OMP(omp_sections)
{
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            meet(b);
            b->x[0] = 1; /* bug omp_sections */
        }
#pragma omp section
        {
            meet(b);
            b->x[b->wrong ? 0 : 1] = 2; /* bug omp_sections */
        }
    }
}

OMP(omp_atomic)
{
    TWO
    {
        if (b->wrong && omp_get_thread_num() == 1) {
            b->x[0] += 1; /* bug omp_atomic */
        } else {
#pragma omp atomic
            b->x[0] += 1; /* bug omp_atomic */
        }
    }
}

OMP(omp_task)
{
    TWO
#pragma omp single
    {
#pragma omp task
        b->x[0] = 7; /* bug omp_task */
        if (!b->wrong) {
#pragma omp taskwait
        }
        b->x[1] = b->x[0]; /* bug omp_task */
    }
}

OMP(omp_two_tasks)
{
    TWO
#pragma omp single
    {
#pragma omp task
        b->x[0] = 7; /* bug omp_two_tasks */
        if (!b->wrong) {
#pragma omp taskwait
        }
#pragma omp task
        b->x[0] = 8; /* bug omp_two_tasks */
    }
}

OMP(omp_taskgroup)
{
    TWO
#pragma omp single
    {
        if (b->wrong) {
#pragma omp task
            b->x[0] = 7; /* bug omp_taskgroup */
        } else {
#pragma omp taskgroup
            {
#pragma omp task
                b->x[0] = 7;
            }
        }
        b->x[1] = b->x[0]; /* bug omp_taskgroup */
    }
}

OMP(clean_omp_tasks)
{
    int first = b->x[0];

    TWO
#pragma omp single
    {
#pragma omp task depend(out : first)
        b->x[0] = 7;
#pragma omp task depend(in : first)
        b->x[1] = b->x[0];
#pragma omp taskwait
#pragma omp task if (0)
        b->x[2] = 3;
        b->x[3] = b->x[2];
    }
    b->x[4] = first;
}

OMP(clean_omp_loops)
{
    int sum = 0;

#pragma omp parallel for num_threads(2) schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 8; i++) {
        b->x[i] = i;
        sum += i;
    }
    b->x[0] = sum;
    TWO
    {
#pragma omp for schedule(guided)
        for (int i = 0; i < 8; i++) {
            b->x[i]++;
        }
#pragma omp for schedule(dynamic, 1) ordered
        for (int i = 0; i < 8; i++) {
#pragma omp ordered
            b->x[9] += i;
        }
        int got;
#pragma omp single copyprivate(got)
        got = b->x[9];
        b->x[10 + omp_get_thread_num()] = got;
    }
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop
    for (int i = 0; i < 8; i++) {
        b->x[i]++;
    }
}

/* ---- All ---- */

/* clang-format off */
#define TWO_THREADS(X)                                                     \
    X(join) X(create) X(lock) X(two_locks) X(early_unlock) X(trylock)      \
    X(condition) X(barrier) X(rounds) X(semaphore) X(read_lock)            \
    X(spin_lock) X(mtx) X(relaxed_flag) X(relaxed_poll) X(no_fence)        \
    X(flag_ahead) X(counter) X(clean_futex) X(clean_volatile)              \
    X(clean_pipe) X(clean_once) X(static_array) X(stack_array)             \
    X(put_source) X(remote) X(limit_of_locks) X(limit_of_threads)
/* clang-format on */
/* clang-format off */
#define ONE_THREAD(X)                                                      \
    X(omp_sum) X(omp_names) X(omp_nowait) X(omp_master) X(omp_carried)     \
    X(omp_lock) X(omp_sections) X(omp_atomic) X(omp_task) X(omp_two_tasks) \
    X(omp_taskgroup) X(clean_omp_tasks) X(clean_omp_loops)
/* clang-format on */

static const struct {
    const char *name;
    void (*first)(struct box *b), (*second)(struct box *b);
} cases[] = {
#define ROW(name) {#name, first_##name, second_##name},
    TWO_THREADS(ROW)
#undef ROW
#define ROW(name) {#name, first_##name, NULL},
        ONE_THREAD(ROW)
#undef ROW
};
#define NUM_CASES ((int)(sizeof cases / sizeof *cases))

struct args {
    int number;
    int wrong;
};

struct second {
    struct box *box;
    void (*run)(struct box *b);
};

static void *run_second(void *arg)
{
    struct second *second = arg;

    second->run(second->box);
    return NULL;
}

static int open_box(iris_t *iris, int wrong, struct box *b)
{
    void *there;

    memset(b, 0, sizeof *b);
    b->iris = iris;
    b->wrong = wrong;
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->other, NULL);
    pthread_rwlock_init(&b->rw, NULL);
    pthread_spin_init(&b->spin, 0);
    pthread_cond_init(&b->cond, NULL);
    pthread_barrier_init(&b->barrier, NULL, 2);
    sem_init(&b->sem, 0, 0);
    sem_init(&b->done, 0, 0);
    mtx_init(&b->mutex, mtx_plain);
    omp_init_lock(&b->omp);
    if (pipe(b->ends) != 0 ||
        iris_calloc(iris, 1, 256, (void **)&b->x) != IRIS_OK ||
        iris_as_remote(iris, b->x, (iris_rank(iris) + 1) % iris_num_ranks(iris),
                       &there) != IRIS_OK ||
        iris_stream_create(iris, &b->stream) != IRIS_OK) {
        return 1;
    }
    b->there = there;
    return iris_barrier(iris, NULL, NULL) != IRIS_OK;
}

static int run(iris_t *iris, void *arg)
{
    const struct args *args = arg;
    struct box b;
    struct second second = {&b, cases[args->number].second};

    if (open_box(iris, args->wrong, &b) != 0 ||
        (second.run != NULL &&
         pthread_create(&b.thread, NULL, run_second, &second) != 0)) {
        return 1;
    }
    cases[args->number].first(&b);
    if (second.run != NULL) {
        join_second(&b);
    }
    return iris_stream_synchronize(iris, b.stream) != IRIS_OK ||
           iris_barrier(iris, NULL, NULL) != IRIS_OK;
}

int main(int argc, char **argv)
{
    int ranks = argc > 3 ? atoi(argv[3]) : 2;
    struct args args = {0, argc > 2 && atoi(argv[2]) != 0};
    iris_status_t status;

    while (args.number < NUM_CASES &&
           (argc < 2 || strcmp(cases[args.number].name, argv[1]) != 0)) {
        if (argc < 2) {
            puts(cases[args.number].name);
        }
        args.number++;
    }
    if (args.number == NUM_CASES) {
        return argc < 2 ? 0 : 1;
    }
    status = iris_spawn(NULL, ranks, run, &args);
    return status == IRIS_OK ? 0 : status == IRIS_ERR_RACE ? 3 : 1;
}
