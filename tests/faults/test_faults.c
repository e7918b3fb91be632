/* SPDX-License-Identifier: MIT
 *
 * Jobs of processes whose calls on sockets are cut short, interrupted and
 * delayed, or end a rank: they give the right values, or each rank is told in
 * time which rank is lost. hosts.sh runs the jobs on several hosts
 * (IRIS_TEST_SPACES), and there a call may end the host's link, too.
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
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define COUNT 3000

/* From the end of a rank or of a host's link, or from the deadline, until the
 * others know. */
#define BOUND_NS INT64_C(2000000000)
#define HOST_BOUND_NS INT64_C(5000000000)

/* The deadline of jobs with a rank that stops, and of all others. */
#define SHORT_MS 1200
#define LONG_MS 20000
#define KILL_MS 2500
#define HOST_MS 8000

#define CUT 0 /* instead of a signal */

/* Moments of a rank at which it is killed or stopped; its last call on a socket
 * comes earlier. */
#define MOMENTS 1000
#define SAMPLES 2

#if IRIS_ON_CPU

struct way {
    const char *name;
    int by_tcp;
    const char *nodes;
    const char *hosts; /* the host of each rank; NULL: this one */
};

static const struct way ways[] = {
    {"shared memory", 0, "1", NULL}, {"shared memory after TCP", 1, "1", NULL},
    {"nodes", 0, "3", NULL},         {"two nodes", 0, "2", NULL},
    {"nodes by TCP", 1, "2", NULL},  {"2 hosts", 1, NULL, "0011"},
    {"3 hosts", 1, NULL, "0112"},
};
#define WAYS (sizeof ways / sizeof ways[0])

/* Set by set_way(). */
static const struct way *way;
static int num_ranks;

/* The next way that this run takes, beginning with `way`; NULL: no more. */
static const struct way *find_way(const struct way *from)
{
    int on_hosts = getenv("IRIS_TEST_SPACES") != NULL;

    while (from < ways + WAYS && (from->hosts != NULL) != on_hosts) {
        from++;
    }
    return from < ways + WAYS ? from : NULL;
}

#define FOR_WAYS(each)                                          \
    for (const struct way *each = find_way(ways); each != NULL; \
         each = find_way(each + 1))

/* ---- Hosts ---- */

/* Host 0 is the network namespace PREFIX-0, and the switch PREFIX-n. */
static void name_space(char host, char path[200])
{
    snprintf(path, 200, "/run/netns/%s-%c", getenv("IRIS_TEST_SPACES"), host);
}

/* The calling process becomes one of its rank's host. */
static void enter_host(int rank)
{
    const char *hosts = way->hosts;
    char path[200], name[16];
    int space;

    if (hosts == NULL) {
        return;
    }
    name_space(hosts[rank], path);
    space = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(name, sizeof name, "host%c", hosts[rank]);
    if (setns(space, CLONE_NEWNET) != 0 || unshare(CLONE_NEWUTS) != 0 ||
        sethostname(name, strlen(name)) != 0) {
        fprintf(stderr, "rank %d cannot enter %s\n", rank, path);
        _exit(1);
    }
    close(space);
}

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

    enter_host(rank);
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

static void set_way(const struct way *now, int timeout_ms)
{
    char text[32], root[32];

    way = now;
    num_ranks = way->hosts != NULL ? (int)strlen(way->hosts) : 3;
    snprintf(root, sizeof root, "127.0.0.1:%d", 20000 + (int)getpid() % 10000);
    unsetenv("IRIS_ROOT");
    if (way->by_tcp) {
        setenv("IRIS_ROOT", way->hosts != NULL ? "10.79.0.1:29400" : root, 1);
    }
    if (way->nodes != NULL) {
        setenv("IRIS_NODES", way->nodes, 1);
    }
    snprintf(text, sizeof text, "%d", timeout_ms);
    unsetenv("IRIS_TEST_FAULT_EVERY");
    unsetenv("IRIS_TEST_FAULT_AT");
    unsetenv("IRIS_TEST_FAULT_RANK");
    unsetenv("IRIS_TEST_FAULT_LINK");
    setenv("IRIS_LOG_LEVEL", "error", 1); /* a report for each lost rank */
    setenv("IRIS_TIMEOUT_MS", text, 1);
}

static void set_number(const char *variable, long value)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", value);
    setenv(variable, text, 1);
}

/* ---- Calls that are cut short, interrupted and delayed ---- */

static void run_whole(const char *what, int seed)
{
    struct procs procs;

    procs_start(&procs, num_ranks, body, NULL);
    procs_join(&procs);
    for (int rank = 0; rank < num_ranks; rank++) {
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

static TEST(calls_may_be_cut_short_interrupted_and_delayed)
{
    int jobs = (int)harness_count(200, 3);

    FOR_WAYS(each)
    {
        set_way(each, LONG_MS);
        set_number("IRIS_TEST_FAULT_EVERY", 3);
        for (int seed = 1; seed <= jobs; seed++) {
            set_number("IRIS_TEST_FAULT_SEED", seed);
            run_whole("one fault in three calls", seed);
        }
    }
}

/* ---- A rank that dies or stops ---- */

/* Jobs of one way in which a rank ended, and the longest time until another
 * rank knew it. */
struct tally {
    int jobs;
    int wrong;
    int64_t worst_ns;
};

/* The end of a rank, before a call of it on a socket. */
struct end {
    int victim;
    int at;
    int signal; /* CUT: its host's link */
    int64_t ns;
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

/* Whether the message says this of the rank, with its process and its part in
 * between. */
static int says(const char *message, int rank, const char *what)
{
    static const char leader[] = ", leader of its node,";
    char name[32];
    size_t length = (size_t)snprintf(name, sizeof name, "rank %d ", rank);

    for (const char *at = strstr(message, name); at != NULL;
         at = strstr(at + 1, name)) {
        const char *next = at + length;

        if (*next == '(') {
            next = strchr(next, ')');
            next = next == NULL ? " " : next + 1;
            next +=
                strncmp(next, leader, strlen(leader)) == 0 ? strlen(leader) : 0;
            next += *next == ' ';
        }
        if (strncmp(next, what, strlen(what)) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether ranks are known to be missing: these have ended before they came to
 * rank 0. */
static int is_missing_any(const struct proc_report *report)
{
    return report->status == IRIS_ERR_TIMEOUT &&
           (strstr(report->message, "missing: rank") != NULL ||
            strstr(report->message, "rank 0 of job") != NULL);
}

static int is_missing(const struct proc_report *report, int rank)
{
    char missing[32];

    snprintf(missing, sizeof missing,
             rank == 0 ? "rank %d of job" : "missing: rank %d", rank);
    return is_missing_any(report) && strstr(report->message, missing) != NULL;
}

/* Whether a rank that runs was taken for dead or stopped. */
static int blames_another(const struct proc_report *report,
                          const struct end *end)
{
    int is_wrong = 0;

    for (int rank = 0; rank < num_ranks; rank++) {
        is_wrong |=
            rank != end->victim && (says(report->message, rank, "died") ||
                                    says(report->message, rank, "is stopped") ||
                                    says(report->message, rank, "fell silent"));
    }
    return is_wrong;
}

/* A rank on the other side of a cut link is lost. */
static int names_other_side(const struct proc_report *report, int self,
                            const struct end *end)
{
    int is_inside = way->hosts[self] == way->hosts[end->victim], is_named = 0;
    char name[32];

    for (int rank = 0; rank < num_ranks; rank++) {
        snprintf(name, sizeof name, "rank %d", rank);
        is_named |=
            is_inside != (way->hosts[rank] == way->hosts[end->victim]) &&
            strstr(report->message, name) != NULL;
    }
    return is_named;
}

/* Whether a call has waited for the rank in vain, or such a rank left. A kernel
 * names the word that it waits for, and the report the rank. */
static int is_awaited(const struct proc_report *report, int rank)
{
    char far[64], here[64];

    snprintf(far, sizeof far, "rank %d, on another node, has not answered",
             rank);
    snprintf(here, sizeof here, "for rank %d, on another node, to connect",
             rank);
    return says(report->message, rank, "has not connected") ||
           strstr(report->message, here) != NULL ||
           (report->status == IRIS_ERR_TIMEOUT &&
            (strstr(report->message, far) != NULL ||
             strstr(report->message, "the stream is not done") != NULL));
}

static int is_right(const struct proc_report *report, int self,
                    const struct end *end)
{
    if (report->status == IRIS_OK) {
        return 1;
    }
    if (end->signal == CUT) {
        return names_other_side(report, self, end) &&
               (report->status == IRIS_ERR_PEER_LOST
                    ? strstr(report->message, "died") == NULL
                    : is_missing_any(report));
    }
    if (blames_another(report, end)) {
        return 0;
    }
    if (end->signal == SIGKILL) {
        return (report->status == IRIS_ERR_PEER_LOST &&
                says(report->message, end->victim, "died")) ||
               is_missing(report, end->victim);
    }
    return says(report->message, end->victim, "is stopped") ||
           says(report->message, end->victim, "does not answer") ||
           is_missing(report, end->victim) || is_awaited(report, end->victim);
}

/* A loss is known when it happens, a stopped rank and a missing one at the
 * deadline of a call. A rank that needs nothing of the lost one ends by then,
 * too. So does iris_finalize() after a failure. */
static int64_t late_ns(const struct proc_report *report, const struct end *end,
                       int timeout_ms)
{
    int is_told =
        end->signal != SIGSTOP && report->status == IRIS_ERR_PEER_LOST;
    int64_t wait_ns = is_told ? 0 : timeout_ms * INT64_C(1000000);
    int64_t call_ns = report->end_ns - end->ns - wait_ns;
    int64_t last_ns = report->finalized_ns - report->end_ns - wait_ns;

    return call_ns > last_ns ? call_ns : last_ns;
}

static void check_survivors(const struct procs *procs, const struct end *end,
                            int timeout_ms, struct tally *tally)
{
    int64_t bound_ns = end->signal == CUT ? HOST_BOUND_NS : BOUND_NS;
    struct end told = *end;

    if (getenv("IRIS_TEST_WRONG") != NULL) { /* a planted fault */
        told.victim = (end->victim + 1) % num_ranks;
    }
    for (int rank = 0; rank < num_ranks; rank++) {
        const struct proc_report *report = &procs->reports[rank];
        int64_t late = late_ns(report, end, timeout_ms);

        if (rank == end->victim && end->signal != CUT) {
            continue;
        }
        tally->worst_ns = late > tally->worst_ns ? late : tally->worst_ns;
        if (!is_right(report, rank, &told) || late > bound_ns) {
            print_error("%s: rank %d %s before call %d; %s rank %d after "
                        "%.1f s: %s: %s\n",
                        way->name, end->victim,
                        end->signal == CUT       ? "was cut off"
                        : end->signal == SIGKILL ? "died"
                                                 : "stopped",
                        end->at, late > bound_ns ? "too late," : "wrong,", rank,
                        (double)(report->end_ns - end->ns) / 1e9,
                        iris_status_string(report->status), report->message);
            tally->wrong++;
        }
    }
}

/* The link of a rank's host, at the switch. */
static const char *name_link(int rank, char link[220])
{
    char space[200];

    name_space('n', space);
    snprintf(link, 220, "%s:to%c", space, way->hosts[rank]);
    return link;
}

/* 0: the rank made fewer calls. */
static int end_one(struct end *end, int timeout_ms, struct tally *tally)
{
    char note[400], link[220];
    struct procs procs;
    int has_ended;

    snprintf(note, sizeof note, "%s/note", harness_folder());
    setenv("IRIS_TEST_FAULT_NOTE", note, 1);
    set_number("IRIS_TEST_FAULT_RANK", end->victim);
    set_number("IRIS_TEST_FAULT_AT", end->at);
    set_number("IRIS_TEST_FAULT_SIGNAL", end->signal);
    if (end->signal == CUT) {
        setenv("IRIS_TEST_FAULT_LINK", name_link(end->victim, link), 1);
    }
    procs_start(&procs, num_ranks, body, NULL);
    for (int rank = 0; rank < num_ranks; rank++) {
        if (rank != end->victim || end->signal == CUT) {
            procs_await(&procs, rank, MOMENTS);
        }
    }
    has_ended = read_note(note, &end->ns);
    if (has_ended && end->signal != CUT) {
        procs_kill(&procs, end->victim);
    } else if (has_ended) {
        assert_true(socket_faults_set_link(link, 1));
    }
    procs_join(&procs);
    if (has_ended) {
        tally->jobs++;
        check_survivors(&procs, end, timeout_ms, tally);
    }
    procs_free(&procs);
    return has_ended;
}

/* The next call: all of the start, which come first, and a part of those in
 * which the control plane only looks around. IRIS_TEST_FROM is the first one. */
static int next_at(int at, int number)
{
    if (way->hosts == NULL) {
        return at + (number == SIGKILL ? 1 : 5);
    }
    if (at >= 60) {
        return at + (number == CUT ? 97 : 23);
    }
    return at + (number == CUT ? 9 : number == SIGSTOP ? 2 : 1);
}

/* A sample of the calls, or all. */
static void end_at_calls(struct end *end, int timeout_ms, struct tally *tally)
{
    size_t samples = way->hosts != NULL ? 1 : SAMPLES,
           most = harness_count(MOMENTS, samples);

    if (most != MOMENTS) {
        end->at = (way->hosts != NULL ? 18 : 3) + 2 * end->victim +
                  5 * (int)(way - find_way(ways));
    }
    for (size_t n = 0; n < most && end_one(end, timeout_ms, tally); n++) {
        end->at =
            most != MOMENTS ? end->at + 11 : next_at(end->at, end->signal);
    }
}

static void end_all_ways(int number, int timeout_ms)
{
    /* Links: in the short form the last host's. */
    int first = number == CUT && !harness_is_long() ? 3 : 0;
    const char *from = getenv("IRIS_TEST_FROM");
    int num_wrong = 0;

    FOR_WAYS(each)
    {
        struct tally tally = {0};

        set_way(each, timeout_ms);
        for (int victim = first; victim < num_ranks; victim++) {
            struct end end = {.victim = victim,
                              .signal = number,
                              .at = from == NULL ? 1 : atoi(from)};

            end_at_calls(&end, timeout_ms, &tally);
        }
        print_message(
            "%s: %d jobs with signal %d, known after %.2f s at most\n",
            way->name, tally.jobs, number, (double)tally.worst_ns / 1e9);
        num_wrong += tally.wrong;
    }
    assert_int_equal(num_wrong, 0);
}

static TEST(a_rank_that_dies_before_any_call_is_named)
{
    end_all_ways(SIGKILL, KILL_MS);
}

static TEST(a_rank_that_stops_before_any_call_is_named)
{
    end_all_ways(SIGSTOP, SHORT_MS);
}

static TEST(a_host_whose_link_ends_before_any_call_is_named)
{
    if (getenv("IRIS_TEST_SPACES") != NULL) {
        end_all_ways(CUT, HOST_MS);
    }
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
    iris_t *iris;

    enter_host(rank);
    iris = proc_init(report);
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

static void check_child(int by_system_call)
{
    struct procs procs;
    int64_t end_ns;

    procs_start(&procs, num_ranks, parent_body, &by_system_call);
    procs_await(&procs, 1, 1);
    end_ns = procs_kill(&procs, 1);
    for (int rank = 0; rank < num_ranks; rank += 2) {
        procs_await(&procs, rank, MOMENTS);
    }
    assert_int_equal(kill((pid_t)procs.reports[1].value, SIGKILL), 0);
    procs_join(&procs);
    for (int rank = 0; rank < num_ranks; rank += 2) {
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

static TEST(a_death_is_known_though_a_child_of_the_rank_lives)
{
    FOR_WAYS(each)
    {
        set_way(each, LONG_MS);
        check_child(0);
        if (way->hosts == NULL || way->hosts[0] == way->hosts[1]) {
            check_child(1); /* else it holds its host's way to the others */
        }
    }
}

/* ---- A profiler's timer ---- */

static void ignore(int number)
{
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
    set_timer(1000);
    CHECK_OK(put(iris));
    CHECK_OK(reduce(iris));
    return 0;
}

static void start_processes(void)
{
    struct procs procs;

    procs_start(&procs, num_ranks, timed_body, NULL);
    procs_join(&procs);
    for (int rank = 0; rank < num_ranks; rank++) {
        if (procs.reports[rank].status != IRIS_OK) {
            print_error("%s, rank %d: %s\n", way->name, rank,
                        procs.reports[rank].message);
            fail();
        }
    }
    procs_free(&procs);
}

static void spawn_ranks(const char *kind)
{
    struct iris_config config;
    iris_status_t status;

    iris_config_init(&config);
    config.spawn = kind;
    set_timer(1000);
    status = iris_spawn(&config, num_ranks, timed_rank, NULL);
    set_timer(0);
    if (status != IRIS_OK) {
        print_error("%s, %s: %s\n", way->name, kind, iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
}

static TEST(all_ways_to_start_survive_a_timer)
{
    int jobs = (int)harness_count(100, 3);

    FOR_WAYS(each)
    {
        set_way(each, LONG_MS);
        for (int job = 0; job < jobs; job++) {
            start_processes();
            if (way->hosts != NULL) {
                continue;
            }
            spawn_ranks("threads");
            spawn_ranks("processes");
        }
    }
}

#endif

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, slow, waits);
