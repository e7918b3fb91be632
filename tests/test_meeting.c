/* SPDX-License-Identifier: MIT
 *
 * The meeting of rank processes when something is wrong with one of them:
 * everyone learns what, and at once.
 */
#include "config.h"

#include "harness.h"
#include "leaks.h"
#include "procs.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3

/* What one process finds in its environment besides what procs_start() sets. */
struct variable {
    int process;
    const char *name;
    const char *value;
};

#define END            \
    {                  \
        -1, NULL, NULL \
    }

static void set_variables(int process, const struct variable *variables)
{
    for (; variables->name != NULL; variables++) {
        if (variables->process == process) {
            setenv(variables->name, variables->value, 1);
        }
    }
}

/* Init, a barrier, finalize. */
static void join(int process, struct proc_report *report, void *arg)
{
    iris_t *iris;

    set_variables(process, arg);
    iris = proc_init(report);
    if (iris != NULL) {
        report->value = iris_rank(iris);
        proc_note(report, iris_barrier(iris, NULL, NULL));
        proc_finalize(report, iris);
    }
}

/* Every process ends with `status` and a message that has `text`. */
static void expect(int count, const struct variable *variables,
                   iris_status_t status, const char *text)
{
    struct procs procs;

    procs_start(&procs, count, join, (void *)(uintptr_t)variables);
    procs_join(&procs);
    for (int i = 0; i < count; i++) {
        const struct proc_report *report = &procs.reports[i];

        if (report->status != status ||
            (status != IRIS_OK && strstr(report->message, text) == NULL)) {
            print_error("process %d: %s: %s\n", i,
                        iris_status_string(report->status), report->message);
        }
        assert_int_equal(report->status, status);
        if (status != IRIS_OK) {
            assert_non_null(strstr(report->message, text));
            assert_int_equal(report->message[0], '[');
        }
    }
    procs_free(&procs);
}

static void forked_processes_meet_by_environment(void **state)
{
    static const struct variable torch[] = {{0, "IRIS_RANK", ""},
                                            {1, "IRIS_RANK", ""},
                                            {2, "IRIS_RANK", ""},
                                            {0, "RANK", "2"},
                                            {1, "RANK", "0"},
                                            {2, "RANK", "1"},
                                            {0, "WORLD_SIZE", "3"},
                                            {1, "WORLD_SIZE", "3"},
                                            {2, "WORLD_SIZE", "3"},
                                            {0, "IRIS_BOOTSTRAP", "env"},
                                            {1, "IRIS_BOOTSTRAP", "env"},
                                            {2, "IRIS_BOOTSTRAP", "env"},
                                            END};
    static const struct variable none[] = {END};

    (void)state;
    for (int count = 1; count <= PROCS_MAX; count++) {
        expect(count, none, IRIS_OK, "");
    }
    expect(RANKS, torch, IRIS_OK, "");
}

static void a_bad_value_on_one_rank_reaches_all_at_once(void **state)
{
    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        const struct variable size[] = {{rank, "IRIS_HEAP_SIZE", "big"}, END};
        const struct variable cus[] = {{rank, "IRIS_SIM_CUS", "0"}, END};
        const struct variable backend[] = {{rank, "IRIS_BACKEND", "quantum"},
                                           END};
        const struct variable prefix[] = {
            {rank, "IRIS_HEAP_BASES_PREFIX", "/no/such/folder/x"}, END};

        expect(RANKS, size, IRIS_ERR_CONFIG, "IRIS_HEAP_SIZE=\"big\"");
        expect(RANKS, cus, IRIS_ERR_CONFIG, "IRIS_SIM_CUS=\"0\"");
        expect(RANKS, backend, IRIS_ERR_BACKEND, "\"quantum\"");
        expect(RANKS, prefix, IRIS_ERR_SYSTEM, "IRIS_HEAP_BASES_PREFIX");
    }
}

static void ranks_that_want_different_jobs_are_told(void **state)
{
    static const struct variable heap[] = {{1, "IRIS_HEAP_SIZE", "32M"}, END};
    static const struct variable heap0[] = {{0, "IRIS_HEAP_SIZE", "32M"}, END};
    static const struct variable count[] = {{2, "IRIS_NUM_RANKS", "7"}, END};
    static const struct variable count0[] = {{0, "IRIS_NUM_RANKS", "2"}, END};
    static const struct variable twice[] = {{2, "IRIS_RANK", "1"}, END};

    (void)state;
    expect(RANKS, heap, IRIS_ERR_MISMATCH,
           "rank 1 has a heap of 33554432 bytes, rank 0 of 16777216; set "
           "IRIS_HEAP_SIZE");
    expect(RANKS, heap0, IRIS_ERR_MISMATCH, "rank 0 of 33554432");
    expect(RANKS, count, IRIS_ERR_MISMATCH,
           "rank 2 believes in a job of 7 ranks, rank 0 in one of 3");
    expect(RANKS, count0, IRIS_ERR_MISMATCH,
           "rank 0 in one of 2; give all the same IRIS_NUM_RANKS");
    expect(RANKS, twice, IRIS_ERR_BOOTSTRAP, "rank 1 came twice: pid ");
}

static void a_second_rank_0_is_told_who_the_first_is(void **state)
{
    static const struct variable twice[] = {{2, "IRIS_RANK", "0"}, END};
    struct procs procs;
    int refused = -1;

    (void)state;
    /* Processes 0 and 1, or 2 and 1, wait for rank 2, which never comes. */
    setenv("IRIS_TIMEOUT_MS", "800", 1);
    procs_start(&procs, RANKS, join, (void *)(uintptr_t)twice);
    procs_join(&procs);
    for (int i = 0; i < RANKS; i++) {
        const struct proc_report *report = &procs.reports[i];

        if (strstr(report->message, "is already there: pid ") != NULL) {
            assert_int_equal(report->status, IRIS_ERR_BOOTSTRAP);
            assert_non_null(strstr(report->message, "IRIS_JOB_ID"));
            assert_int_equal(refused, -1);
            refused = i;
        } else {
            assert_int_equal(report->status, IRIS_ERR_TIMEOUT);
            assert_non_null(strstr(report->message, "missing: rank 2"));
        }
    }
    assert_true(refused == 0 || refused == 2);
    procs_free(&procs);
    setenv("IRIS_TIMEOUT_MS", "60000", 1);
}

/* The rank *arg never gets as far as iris_init(). */
static void stay_away(int rank, struct proc_report *report, void *arg)
{
    static const struct variable none[] = {END};

    if (rank != *(int *)arg) {
        join(rank, report, (void *)(uintptr_t)none);
    }
}

static void a_rank_that_does_not_come_is_named(void **state)
{
    (void)state;
    setenv("IRIS_TIMEOUT_MS", "400", 1);
    for (int absent = 0; absent < RANKS; absent++) {
        struct procs procs;

        procs_start(&procs, RANKS, stay_away, &absent);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            const char *message = procs.reports[rank].message;
            char text[64];

            if (rank == absent) {
                continue;
            }
            assert_int_equal(procs.reports[rank].status, IRIS_ERR_TIMEOUT);
            snprintf(text, sizeof text,
                     absent == 0 ? "rank 0 of job \"job-"
                                 : "2 of 3 ranks came before the deadline "
                                   "(IRIS_TIMEOUT_MS); missing: rank %d",
                     absent);
            assert_non_null(strstr(message, text));
            assert_non_null(strstr(message, "IRIS_TIMEOUT_MS"));
        }
        procs_free(&procs);
    }
    setenv("IRIS_TIMEOUT_MS", "60000", 1);
}

/* The socket where rank 0 of `job` listens or would, bound or connected. */
static int squat(const char *job, uid_t uid, int bind_it)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    socklen_t length;
    int ret;

    length =
        (socklen_t)snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                            "iris/%ld/job-%s", (long)uid, job) +
        (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
    ret = bind_it ? bind(sock, (struct sockaddr *)&address, length)
                  : connect(sock, (struct sockaddr *)&address, length);
    if (ret != 0) {
        close(sock);
        return -1;
    }
    return sock;
}

static void init_in(const char *job, const char *rank, iris_status_t expected,
                    const char *text)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    iris_config_init(&config);
    config.rank = atoi(rank);
    config.num_ranks = 2;
    config.job_id = job;
    config.timeout_ms = 300;
    leaks_note(&before);
    assert_int_equal(iris_init(&config, &iris), expected);
    if (!harness_message_has(text)) {
        print_error("%s\n", iris_last_error());
        fail();
    }
    assert_null(iris);
    assert_int_equal(leaks_found(&before), 0);
}

static void a_name_that_is_taken_is_told_with_its_holder(void **state)
{
    int sock = squat("taken", getuid(), 1);
    char text[64];

    (void)state;
    assert_true(sock >= 0);
    init_in("taken", "0", IRIS_ERR_BOOTSTRAP, "a process that does not answer");
    init_in("taken", "1", IRIS_ERR_TIMEOUT, "rank 0 of job \"job-taken\"");
    assert_int_equal(listen(sock, 1), 0);
    snprintf(text, sizeof text, "pid %ld of uid %ld", (long)getpid(),
             (long)getuid());
    init_in("taken", "0", IRIS_ERR_BOOTSTRAP, text);
    /* A backlog that is full must not make anybody wait for ever. */
    for (int i = 0; i < 2; i++) {
        init_in("taken", "0", IRIS_ERR_BOOTSTRAP, "IRIS_JOB_ID");
    }
    close(sock);
}

/* Becomes another user, takes the name of root's job, and waits. */
static void __attribute__((noreturn))
hold_as_nobody(uid_t uid, int ready, int done)
{
    int sock;
    char byte = 0;

    if (setresuid(uid, uid, uid) != 0) {
        _exit(1);
    }
    sock = squat("squatted", 0, 1);
    listen(sock, 8);
    (void)!write(ready, &byte, 1);
    (void)!read(done, &byte, 1);
    _exit(sock < 0);
}

static void another_users_job_is_not_joined(void **state)
{
    const struct passwd *nobody = getpwnam("nobody");
    int ready[2], done[2], how;
    char byte, text[64];
    pid_t pid;

    (void)state;
    if (getuid() != 0 || nobody == NULL) {
        print_message("not root: nobody else can hold the name\n");
        return;
    }
    assert_int_equal(pipe(ready) | pipe(done), 0);
    pid = fork();
    if (pid == 0) {
        hold_as_nobody(nobody->pw_uid, ready[1], done[0]);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(text, sizeof text, "uid %ld", (long)nobody->pw_uid);
    init_in("squatted", "0", IRIS_ERR_BOOTSTRAP, text);
    init_in("squatted", "1", IRIS_ERR_BOOTSTRAP, text);
    init_in("squatted", "1", IRIS_ERR_BOOTSTRAP, "IRIS_JOB_ID");
    assert_int_equal(write(done[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

static void names_left_in_shared_memory_do_not_matter(void **state)
{
    static const struct variable job[] = {{0, "IRIS_JOB_ID", "iris-stale"},
                                          {1, "IRIS_JOB_ID", "iris-stale"},
                                          END};
    static const char *const paths[] = {"/dev/shm/iris-stale", "/dev/shm/iris",
                                        "/dev/shm/iris_0_iris-stale"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        close(open(paths[i], O_CREAT | O_RDWR, 0000));
    }
    expect(2, job, IRIS_OK, "");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(unlink(paths[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forked_processes_meet_by_environment),
        cmocka_unit_test(a_bad_value_on_one_rank_reaches_all_at_once),
        cmocka_unit_test(ranks_that_want_different_jobs_are_told),
        cmocka_unit_test(a_second_rank_0_is_told_who_the_first_is),
        cmocka_unit_test(a_rank_that_does_not_come_is_named),
        cmocka_unit_test(a_name_that_is_taken_is_told_with_its_holder),
        cmocka_unit_test(another_users_job_is_not_joined),
        cmocka_unit_test(names_left_in_shared_memory_do_not_matter),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
