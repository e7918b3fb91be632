/* SPDX-License-Identifier: MIT
 *
 * Jobs of processes whose calls on sockets are cut short, interrupted and
 * delayed, or end a rank: they give the right values, or each rank is told in
 * time which rank is lost.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"

#include "faults/socket_faults.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "base/base.h"
#endif

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define RANKS 3
#define COUNT 3000

/* From the end of a rank, or from the deadline, until the others know. */
#define BOUND_NS INT64_C(2000000000)

/* The deadline of jobs with a rank that stops, and of all others. */
#define SHORT_MS 1200
#define LONG_MS 20000

/* Moments of a rank at which it is killed or stopped; its last call on a socket
 * comes earlier. */
#define MOMENTS 1000
#define SAMPLES 2

#if IRIS_ON_CPU

struct way {
    const char *name;
    const char *control;
    const char *nodes;
};

static const struct way ways[] = {
    {"shared memory", "shm", "1"}, {"sockets", "socket", "1"},
    {"TCP", "tcp", "1"},           {"nodes", "shm", "3"},
    {"nodes by TCP", "tcp", "2"},
};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

/* ---- The job ---- */

struct put_args {
    const int64_t *context;
    uint64_t *words; /* symmetric, one of each rank */
};

IRIS_KERNEL(put_to_all, struct put_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    (void)wg;
    for (int rank = 0; rank < dev.num_ranks; rank++) {
        iris_store(dev, &args->words[dev.rank], 100 + (uint64_t)dev.rank, rank);
    }
}

/* IRIS_OK, or the first failure; IRIS_ERR_SYSTEM: wrong values. */
static iris_status_t put(iris_t *iris)
{
    struct put_args args = {.context = iris_device_context(iris)};
    iris_status_t status = iris_malloc(iris, 4096, (void **)&args.words);

    if (status == IRIS_OK) {
        status = iris_launch(iris, put_to_all, 1, 1, &args, sizeof args, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_barrier(iris, NULL, NULL);
    }
    for (int rank = 0; status == IRIS_OK && rank < iris_num_ranks(iris);
         rank++) {
        if (args.words[rank] != 100 + (uint64_t)rank) {
            status = iris_i_fail(NULL, IRIS_ERR_SYSTEM, "wrong word %d", rank);
        }
    }
    return status;
}

static iris_status_t reduce(iris_t *iris)
{
    int num_ranks = iris_num_ranks(iris);
    float host[COUNT], *all;
    iris_status_t status =
        iris_malloc(iris, COUNT * sizeof *all, (void **)&all);

    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)(iris_rank(iris) + i % 7);
    }
    if (status == IRIS_OK) {
        status = iris_memcpy_sync(iris, all, host, sizeof host);
    }
    if (status == IRIS_OK) {
        status = iris_all_reduce(iris, all, all, COUNT, IRIS_DTYPE_F32,
                                 IRIS_REDUCE_SUM, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_memcpy_sync(iris, host, all, sizeof host);
    }
    for (int i = 0; status == IRIS_OK && i < COUNT; i++) {
        if (host[i] !=
            (float)(num_ranks * (num_ranks - 1) / 2 + num_ranks * (i % 7))) {
            status = iris_i_fail(NULL, IRIS_ERR_SYSTEM, "wrong sum %d", i);
        }
    }
    return status;
}

static void body(int rank, struct proc_report *report, void *arg)
{
    iris_status_t status;
    iris_t *iris;

    (void)rank;
    (void)arg;
    socket_faults_begin();
    report->value = procs_now_ns();
    iris = proc_init(report);
    if (iris == NULL) {
        return;
    }
    status = put(iris);
    status = status == IRIS_OK ? reduce(iris) : status;
    if (status != IRIS_OK) {
        proc_note(report, status);
        proc_finalize(report, iris);
    } else {
        proc_note(report, iris_finalize(iris));
    }
    socket_faults_end();
}

static void set_way(const struct way *way, int timeout_ms)
{
    char text[32];

    snprintf(text, sizeof text, "%d", timeout_ms);
    unsetenv("IRIS_TEST_FAULT_EVERY");
    unsetenv("IRIS_TEST_FAULT_AT");
    unsetenv("IRIS_TEST_FAULT_RANK");
    setenv("IRIS_LOG_LEVEL", "error", 1); /* a report for each lost rank */
    setenv("IRIS_CONTROL", way->control, 1);
    setenv("IRIS_NODES", way->nodes, 1);
    setenv("IRIS_TIMEOUT_MS", text, 1);
}

static void set_number(const char *variable, long value)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", value);
    setenv(variable, text, 1);
}

/* ---- Calls that are cut short, interrupted and delayed ---- */

static void run_whole(const struct way *way, const char *what, int seed)
{
    struct procs procs;

    procs_start(&procs, RANKS, body, NULL);
    procs_join(&procs);
    for (int rank = 0; rank < RANKS; rank++) {
        if (procs.reports[rank].status != IRIS_OK) {
            print_error("%s, %s, seed %d, rank %d: %s: %s\n", way->name, what,
                        seed, rank,
                        iris_status_string(procs.reports[rank].status),
                        procs.reports[rank].message);
            fail();
        }
    }
    procs_free(&procs);
}

static void calls_may_be_cut_short_interrupted_and_delayed(void **state)
{
    int jobs = (int)harness_count(200, 3);

    (void)state;
    for (int i = 0; i < WAYS; i++) {
        set_way(&ways[i], LONG_MS);
        set_number("IRIS_TEST_FAULT_EVERY", 3);
        for (int seed = 1; seed <= jobs; seed++) {
            set_number("IRIS_TEST_FAULT_SEED", seed);
            run_whole(&ways[i], "one fault in three calls", seed);
        }
    }
}

/* ---- A rank that dies or stops ---- */

/* Jobs of one way in which a rank ended, and the longest time until another
 * rank knew it. */
struct tally {
    int jobs;
    int64_t worst_ns;
};

static int read_note(const char *path, int64_t *ns_p)
{
    FILE *file = fopen(path, "re");
    long long ns = 0;
    int got = file != NULL && fscanf(file, "%lld", &ns) == 1;

    if (file != NULL) {
        fclose(file);
    }
    unlink(path);
    *ns_p = ns;
    return got;
}

/* Whether a rank is known to be lost, or that it is missing: it may have ended
 * before it came to rank 0. */
static int is_right(const struct proc_report *report, int victim, int is_stop)
{
    char name[32], missing[32];

    snprintf(name, sizeof name, "rank %d", victim);
    snprintf(missing, sizeof missing, "missing: rank %d", victim);
    if (report->status == IRIS_OK) {
        return 1;
    }
    if (strstr(report->message, name) == NULL) {
        return 0;
    }
    return report->status == IRIS_ERR_PEER_LOST ||
           (report->status == IRIS_ERR_TIMEOUT &&
            (is_stop || strstr(report->message, missing) != NULL ||
             strstr(report->message, "rank 0 of job") != NULL));
}

/* A stopped rank and a missing one are known at the deadline. */
static int64_t late_ns(const struct proc_report *report, int64_t end_ns,
                       int timeout_ms)
{
    int64_t due_ns = report->status == IRIS_ERR_PEER_LOST && timeout_ms == 0
                         ? end_ns
                         : report->value + timeout_ms * INT64_C(1000000);

    return report->status == IRIS_OK ? 0 : report->end_ns - due_ns;
}

static void check_survivors(const struct way *way, const struct procs *procs,
                            int victim, int at, int64_t end_ns, int is_stop,
                            struct tally *tally)
{
    for (int rank = 0; rank < RANKS; rank++) {
        const struct proc_report *report = &procs->reports[rank];
        int is_lost = !is_stop && report->status == IRIS_ERR_PEER_LOST;
        int64_t late = late_ns(report, end_ns, is_lost ? 0 : SHORT_MS);

        if (rank == victim) {
            continue;
        }
        tally->worst_ns = late > tally->worst_ns ? late : tally->worst_ns;
        if (!is_right(report, victim, is_stop) || late > BOUND_NS) {
            print_error("%s: rank %d %s before call %d; rank %d after %.1f s: "
                        "%s: %s\n",
                        way->name, victim, is_stop ? "stopped" : "died", at,
                        rank, (double)(report->end_ns - end_ns) / 1e9,
                        iris_status_string(report->status), report->message);
            fail();
        }
    }
}

/* 0: the rank made fewer calls. */
static int end_one(const struct way *way, int victim, int at, int number,
                   struct tally *tally)
{
    char note[400];
    struct procs procs;
    int64_t end_ns;
    int has_ended;

    snprintf(note, sizeof note, "%s/note", harness_folder());
    setenv("IRIS_TEST_FAULT_NOTE", note, 1);
    set_number("IRIS_TEST_FAULT_RANK", victim);
    set_number("IRIS_TEST_FAULT_AT", at);
    set_number("IRIS_TEST_FAULT_SIGNAL", number);
    procs_start(&procs, RANKS, body, NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != victim) {
            procs_await(&procs, rank, MOMENTS);
        }
    }
    has_ended = read_note(note, &end_ns);
    if (has_ended) {
        procs_kill(&procs, victim);
    }
    procs_join(&procs);
    if (has_ended) {
        tally->jobs++;
        check_survivors(way, &procs, victim, at, end_ns, number != SIGKILL,
                        tally);
    }
    procs_free(&procs);
    return has_ended;
}

/* A sample of the moments, or all. */
static void end_at_all_calls(int number)
{
    size_t most = harness_count(MOMENTS, SAMPLES);

    for (int i = 0; i < WAYS; i++) {
        struct tally tally = {0};

        set_way(&ways[i], SHORT_MS);
        for (int victim = 0; victim < RANKS; victim++) {
            int step = most != MOMENTS ? 11 : number == SIGKILL ? 1 : 5;
            int at = most == MOMENTS ? 1 : 3 + 5 * i + 2 * victim;

            for (size_t n = 0;
                 n < most && end_one(&ways[i], victim, at, number, &tally);
                 n++) {
                at += step;
            }
        }
        print_message(
            "%s: %d jobs with signal %d, known after %.2f s at most\n",
            ways[i].name, tally.jobs, number, (double)tally.worst_ns / 1e9);
    }
}

static void a_rank_that_dies_before_any_call_is_named(void **state)
{
    (void)state;
    end_at_all_calls(SIGKILL);
}

static void a_rank_that_stops_before_any_call_is_named(void **state)
{
    (void)state;
    end_at_all_calls(SIGSTOP);
}

/* ---- Children of a rank that dies ---- */

static int count_sockets(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char to[64] = "";

        (void)!readlinkat(dirfd(folder), entry->d_name, to, sizeof to - 1);
        count += strncmp(to, "socket:", 7) == 0;
    }
    closedir(folder);
    return count;
}

/* The child of fork() holds no socket of the library; that of a system call
 * holds all. */
static pid_t make_child(int by_system_call, int num_sockets)
{
    pid_t pid = by_system_call ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                               : fork();

    while (pid == 0) {
        if (!by_system_call && count_sockets() != num_sockets) {
            _exit(1);
        }
        pause();
    }
    return pid;
}

/* Rank 1 makes a child and waits to be killed; the others wait for rank 1. */
static void parent_body(int rank, struct proc_report *report, void *arg)
{
    int num_sockets = count_sockets();
    iris_t *iris = proc_init(report);

    if (iris == NULL) {
        return;
    }
    if (rank == 1) {
        report->value = make_child(*(const int *)arg, num_sockets);
        proc_reach(report, 1);
        pause();
    }
    proc_note(report, iris_barrier(iris, NULL, NULL));
    proc_finalize(report, iris);
}

static void check_child(const struct way *way, int by_system_call)
{
    struct procs procs;
    int64_t end_ns;

    procs_start(&procs, RANKS, parent_body, &by_system_call);
    procs_await(&procs, 1, 1);
    end_ns = procs_kill(&procs, 1);
    for (int rank = 0; rank < RANKS; rank += 2) {
        procs_await(&procs, rank, MOMENTS);
    }
    assert_int_equal(kill((pid_t)procs.reports[1].value, SIGKILL), 0);
    procs_join(&procs);
    for (int rank = 0; rank < RANKS; rank += 2) {
        const struct proc_report *report = &procs.reports[rank];

        if (report->status != IRIS_ERR_PEER_LOST ||
            strstr(report->message, "rank 1 (pid") == NULL ||
            report->end_ns - end_ns > BOUND_NS) {
            print_error("%s: rank %d after %.1f s: %s: %s\n", way->name, rank,
                        (double)(report->end_ns - end_ns) / 1e9,
                        iris_status_string(report->status), report->message);
            fail();
        }
    }
    procs_free(&procs);
}

static void a_death_is_known_though_a_child_of_the_rank_lives(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++) {
        set_way(&ways[i], LONG_MS);
        check_child(&ways[i], 0);
        check_child(&ways[i], 1);
    }
}

/* ---- A profiler's timer ---- */

static void ignore(int number)
{
    (void)number;
}

/* Interrupts system calls of this process each millisecond, or no more. Forked
 * processes have no timer yet. */
static void set_timer(int us)
{
    const struct sigaction action = {.sa_handler = ignore};
    const struct itimerval every = {{0, us}, {0, us}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

static void timed_body(int rank, struct proc_report *report, void *arg)
{
    set_timer(1000);
    body(rank, report, arg);
    set_timer(0);
}

static int timed_rank(iris_t *iris, void *arg)
{
    (void)arg;
    set_timer(1000);
    CHECK_OK(put(iris));
    CHECK_OK(reduce(iris));
    return 0;
}

static void start_processes(const struct way *way)
{
    struct procs procs;

    procs_start(&procs, RANKS, timed_body, NULL);
    procs_join(&procs);
    for (int rank = 0; rank < RANKS; rank++) {
        if (procs.reports[rank].status != IRIS_OK) {
            print_error("%s, rank %d: %s\n", way->name, rank,
                        procs.reports[rank].message);
            fail();
        }
    }
    procs_free(&procs);
}

static void spawn_ranks(const struct way *way, const char *kind)
{
    struct iris_config config;
    iris_status_t status;

    iris_config_init(&config);
    config.spawn = kind;
    set_timer(1000);
    status = iris_spawn(&config, RANKS, timed_rank, NULL);
    set_timer(0);
    if (status != IRIS_OK) {
        print_error("%s, %s: %s\n", way->name, kind, iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
}

static void all_ways_to_start_survive_a_timer(void **state)
{
    int jobs = (int)harness_count(100, 3);

    (void)state;
    for (int i = 0; i < WAYS; i++) {
        set_way(&ways[i], LONG_MS);
        for (int job = 0; job < jobs; job++) {
            start_processes(&ways[i]);
            spawn_ranks(&ways[i], "threads");
            spawn_ranks(&ways[i], "processes");
        }
    }
}

static int TEST_FILE(unit, slow)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_may_be_cut_short_interrupted_and_delayed),
        cmocka_unit_test(all_ways_to_start_survive_a_timer),
        cmocka_unit_test(a_death_is_known_though_a_child_of_the_rank_lives),
        cmocka_unit_test(a_rank_that_dies_before_any_call_is_named),
        cmocka_unit_test(a_rank_that_stops_before_any_call_is_named),
    };

    return cmocka_run_group_tests(tests, harness_cpu_setup, harness_teardown);
}

#else

static int TEST_FILE(unit, slow)
{
    return 77;
}

#endif
