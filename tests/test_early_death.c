/* SPDX-License-Identifier: MIT
 *
 * Ranks killed with SIGKILL before and during init, at every moment of it.
 */
#include "config.h"

#include "harness.h"
#include "leaks.h"
#include "procs.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define RANKS 4
#define TIMEOUT_MS 1000
#define BOUND_NS 2000000000
#define SAMPLE_ROUNDS 24
#define MANY_ROUNDS 1000
/* The last moment to be killed at; init takes a few milliseconds. */
#define LAST_NS 4000000

static void body(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris;
    void *ptr;

    (void)rank;
    (void)arg;
    proc_reach(report, 1);
    iris = proc_init(report);
    while (iris != NULL && report->status == IRIS_OK) {
        iris_status_t status = iris_malloc(iris, 64, &ptr);

        proc_note(report, status == IRIS_OK ? iris_free(iris, ptr) : status);
    }
    if (iris != NULL) {
        proc_finalize(report, iris);
    }
}

/* A rank killed before rank 0 has heard of it cannot be known: then the
 * deadline tells that it is missing. */
static void check_survivor(const struct proc_report *report, int victim,
                           int64_t start_ns, int64_t death_ns)
{
    int64_t bound_ns = death_ns + BOUND_NS;
    char text[32];

    snprintf(text, sizeof text, "rank %d", victim);
    if (report->status == IRIS_ERR_TIMEOUT) {
        bound_ns += TIMEOUT_MS * 1000000LL;
        bound_ns -= death_ns - start_ns;
    }
    if ((report->status != IRIS_ERR_PEER_LOST &&
         report->status != IRIS_ERR_TIMEOUT) ||
        strstr(report->message, text) == NULL || report->end_ns > bound_ns) {
        print_error("victim %d: %s: %s\n", victim,
                    iris_status_string(report->status), report->message);
        fail();
    }
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void a_rank_may_die_at_any_moment_of_init(void **state)
{
    size_t rounds = harness_count(MANY_ROUNDS, SAMPLE_ROUNDS);
    uint64_t random = 7;
    char kept[32];

    (void)state;
    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", "1000", 1);
    for (size_t round = 0; round < rounds; round++) {
        int victim = (int)(round % RANKS);
        struct timespec delay = {.tv_nsec = next_random(&random) % LAST_NS};
        int64_t start_ns, death_ns;
        struct procs procs;

        procs_start(&procs, RANKS, body, NULL);
        procs_await(&procs, victim, 1);
        start_ns = procs_now_ns();
        nanosleep(&delay, NULL); /* the moment is the test's input */
        death_ns = procs_kill(&procs, victim);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            if (rank != victim) {
                check_survivor(&procs.reports[rank], victim, start_ns,
                               death_ns);
            }
        }
        procs_free(&procs);
    }
    setenv("IRIS_TIMEOUT_MS", kept, 1);
}

/* Counts the forks of iris_spawn(); the child of one of them dies at once. */
static int forks_until_death = -1;

static void before_fork(void)
{
    forks_until_death -= forks_until_death >= 0;
}

static void in_child(void)
{
    if (forks_until_death == 0) {
        kill(getpid(), SIGKILL);
    }
}

static int never(iris_t *iris, void *arg)
{
    (void)iris;
    (void)arg;
    return harness_failed(__FILE__, __LINE__, "the function ran", 1, 0);
}

static void spawn_does_not_wait_for_a_child_that_died_before_init(void **state)
{
    struct iris_config config;
    struct leaks before;
    char text[64];

    (void)state;
    pthread_atfork(before_fork, NULL, in_child);
    iris_config_init(&config);
    config.spawn = "processes";
    config.timeout_ms = 0; /* none: waiting would be for ever */
    leaks_note(&before);
    for (int victim = 0; victim < RANKS; victim++) {
        forks_until_death = victim + 1;
        assert_int_equal(iris_spawn(&config, RANKS, never, NULL),
                         IRIS_ERR_PEER_LOST);
        snprintf(text, sizeof text, "rank %d (pid ", victim);
        assert_true(harness_message_has(text));
        assert_true(harness_message_has("was killed by signal 9"));
    }
    forks_until_death = -1;
    assert_int_equal(leaks_found(&before), 0);
    assert_int_equal(leaks_found_files(), 0);
}

/* Connects to where rank 0 of the job listens, once it does. */
static int visit(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    int length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                 "iris/%ld/job-%s", (long)getuid(), getenv("IRIS_JOB_ID"));

    while (connect(sock, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
                       (socklen_t)length) != 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return sock;
}

struct visit {
    int bytes; /* what the visitor says */
    atomic_int over;
};

/* Process 2 is a visitor: it says something or nothing, and goes. Rank 1 comes
 * after it. */
static void body_visited(int rank, struct proc_report *report, void *arg)
{
    struct visit *this = arg;
    char words[100] = "hello";
    iris_t *iris;
    int sock;

    setenv("IRIS_NUM_RANKS", "2", 1);
    if (rank == 2) {
        sock = visit();
        if (this->bytes > 0) {
            (void)!send(sock, words, (size_t)this->bytes, MSG_NOSIGNAL);
        }
        close(sock);
        atomic_store(&this->over, 1);
        return;
    }
    while (rank == 1 && atomic_load(&this->over) == 0) {
        poll(NULL, 0, 1);
    }
    iris = proc_init(report);
    if (iris != NULL) {
        proc_finalize(report, iris);
    }
}

static void receive_visitor(int bytes, iris_status_t expected, const char *text)
{
    struct visit *visit = mmap(NULL, sizeof *visit, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct procs procs;

    visit->bytes = bytes;
    procs_start(&procs, 3, body_visited, visit);
    procs_join(&procs);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(procs.reports[rank].status, expected);
        if (expected != IRIS_OK) {
            assert_non_null(strstr(procs.reports[rank].message, text));
        }
    }
    procs_free(&procs);
    munmap(visit, sizeof *visit);
}

static void visitors_that_say_nothing_are_nobody(void **state)
{
    (void)state;
    receive_visitor(0, IRIS_OK, "");
}

static void visitors_that_talk_nonsense_end_the_meeting(void **state)
{
    (void)state;
    receive_visitor(5, IRIS_ERR_BOOTSTRAP,
                    "a message of 5 bytes in the meeting");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_may_die_at_any_moment_of_init),
        cmocka_unit_test(spawn_does_not_wait_for_a_child_that_died_before_init),
        cmocka_unit_test(visitors_that_say_nothing_are_nobody),
        cmocka_unit_test(visitors_that_talk_nonsense_end_the_meeting),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
