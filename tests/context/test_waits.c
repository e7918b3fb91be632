/* SPDX-License-Identifier: MIT
 *
 * Every wait of the host: each warns, and each is ended by its deadline, by the
 * loss of a rank and by an interrupt.
 */
/* clang-format off */
/* The types of waits, and which row below has each; tests/check_structure.sh
 * finds those that are missing:
 *
 * src/base/host_wait.c type: moments, which end by themselves (tests/base)
 * src/backend/workgroup.c for_word: "a kernel", "a device barrier"
 * src/backend_hip/stream.c work_wait: "a stream", where hip runs
 * src/backend_sim/stream.c work_wait: "a stream", "a heap's stream"
 * src/context/finalize.c for_streams: "iris_finalize_later"
 * src/context/finalize.c for_others: tests/context/test_finalize_later has it,
 *     since only the end of a process waits so
 * src/control/agree.c for_members: "a collective call"
 * src/control/bootstrap_mpi.c for_world: none, since it needs a launcher
 * src/control/hub.c for_leader: none, for it is over before a test
 *     could come between; rank 0's death closes the connection
 * src/control/exchange.c for_offers: none, since only processes exchange memory
 * src/control/rendezvous.c for_root, for_word, for_verdict: "rank 0", "verdict"
 * src/control/rendezvous.c for_joint: none; short, after a failure
 * src/control/rendezvous.c for_host: none; as for_verdict, just behind it
 * src/control/rendezvous_root.c for_ranks: "other ranks"
 * src/control/rendezvous_root.c for_last: none; it is as for_verdict
 * src/control/rendezvous_root.c to_tell: none; short, after a failure
 * src/control/shrink.c for_survivors: tests/context/test_shrink has it
 * src/heap/malloc.c for_streams: "iris_free_deferred"
 * src/ops/plan.c plan_wait: tests/ops/test_plan.c has its deadline and the loss
 * src/transport/engine_mpi.c for_all, to_close: none, since they need a launcher
 * src/transport/channel_socket.c for_peers: none; as for_verdict, short before it
 */
/* clang-format on */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU
#include "context/context.h"
#include "control/control.h"
#include "support/wait_kernel.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARN_MS 10
#define DEADLINE_MS 150

enum ending { BY_DEADLINE, BY_DEATH, BY_INTERRUPT, ENDINGS };

static const iris_status_t statuses[ENDINGS] = {
    IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST, IRIS_ERR_INTERRUPTED};

/* What a wait under test and those who end it share. */
static struct {
    enum ending ending;
    _Atomic(iris_t *) contexts[2];
    atomic_int failed;  /* as struct iris_bootstrap has it */
    atomic_int stopped; /* what the wait check says */
    atomic_int over;    /* rank 1 may go */
    iris_status_t status;
    char message[IRIS_MESSAGE_BYTES];
    char key[IRIS_KEY_BYTES];
} now;

struct row {
    const char *name;
    iris_status_t (*wait)(iris_t *iris, uint64_t *word); /* of a context */
    int joins; /* of the meeting: the rank that waits; -1: not that */
    int64_t device_timeout_ms; /* its deadline, in place of the host's */
    const char *line;          /* that warns */
};

static void keep(iris_status_t status)
{
    now.status = status;
    snprintf(now.message, sizeof now.message, "%s", iris_last_error());
}

/* ---- Waits of a context ---- */

static iris_status_t wait_for_stream(iris_t *iris, uint64_t *word)
{
    iris_status_t status = launch_wait(iris, word);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

static iris_status_t wait_for_heap(iris_t *iris, uint64_t *word)
{
    iris_status_t status = launch_wait(iris, word);
    void *ptr;

    return status == IRIS_OK ? iris_calloc(iris, 64, 1, &ptr) : status;
}

static iris_status_t wait_to_free(iris_t *iris, uint64_t *word)
{
    iris_status_t status = launch_wait(iris, word);

    status = status == IRIS_OK ? iris_free_later(iris, word) : status;
    return status == IRIS_OK ? iris_free_deferred(iris) : status;
}

static iris_status_t wait_for_group(iris_t *iris, uint64_t *word)
{
    return iris_barrier(iris, NULL, NULL);
}

static iris_status_t wait_for_group_on_device(iris_t *iris, uint64_t *word)
{
    iris_status_t status = iris_device_barrier(iris, NULL, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

/* Its thread says how it went in a line, once the other rank finalizes, too. */
static iris_status_t wait_to_finalize(iris_t *iris, uint64_t *word)
{
    static const char *const texts[ENDINGS] = {"(IRIS_TIMEOUT_MS)", "rank 1 ",
                                               "was interrupted"};
    iris_status_t status = launch_wait(iris, word);

    status = status == IRIS_OK ? iris_finalize_later(iris) : status;
    atomic_store(&now.over, now.ending == BY_DEADLINE);
    if (status != IRIS_OK || !harness_await_logged("iris_finalize_later: ") ||
        !harness_await_logged(texts[now.ending])) {
        return status;
    }
    return iris_i_fail(NULL, statuses[now.ending], "%s", texts[now.ending]);
}

static int rank_main(iris_t *iris, void *arg)
{
    const struct row *row = arg;
    uint64_t *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    atomic_store(&now.contexts[iris_rank(iris)], iris);
    if (iris_rank(iris) == 0) {
        keep(row->wait(iris, word));
        atomic_store(&now.over, 1);
    }
    while (!atomic_load(&now.over)) {
        sched_yield();
    }
    if (row->wait == wait_to_finalize && iris_rank(iris) == 1 &&
        now.ending == BY_DEADLINE) {
        iris->control->timeout_ms = 0; /* it waits for the other's deadline */
        (void)iris_finalize(iris);
    }
    return 1; /* leaves, and waits for nobody */
}

static void run_context(const struct row *row)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = "threads";
    config.warn_ms = WARN_MS;
    config.timeout_ms = 20000;
    if (now.ending == BY_DEADLINE && row->device_timeout_ms == 0) {
        config.timeout_ms = DEADLINE_MS;
    } else if (now.ending == BY_DEADLINE) {
        config.device_timeout_ms = row->device_timeout_ms;
    }
    (void)iris_spawn(&config, 2, rank_main, (void *)(uintptr_t)row);
}

/* ---- Waits of the meeting ---- */

static int says_stop(void *arg)
{
    return atomic_load(&now.stopped);
}

/* A rank that only meets: its preparation has failed if it is to come last. */
static iris_status_t meet(int rank)
{
    struct iris_log log = {.rank = rank, .num_ranks = 3};
    struct iris_hello hello = {.magic = 1,
                               .rank = rank,
                               .num_ranks = 3,
                               .backend = "none",
                               .handle = {.fd = -1}};
    struct iris_rendezvous rendezvous;
    struct iris_bootstrap bootstrap;
    struct iris_settings settings;
    iris_status_t status;

    memset(&settings, 0, sizeof settings);
    atomic_init(&log.level, IRIS_LOG_WARNING);
    settings.warn_ms.number = WARN_MS;
    /* Two ranks warn one after the other within one deadline. */
    settings.timeout_ms.number =
        now.ending == BY_DEADLINE ? 8 * DEADLINE_MS : 20000;
    iris_i_bootstrap_thread(now.key, rank, 3, &bootstrap);
    bootstrap.failed = now.ending == BY_DEATH ? &now.failed : NULL;
    iris_set_wait_check(says_stop, NULL);
    status = iris_i_rendezvous_open(&bootstrap, &settings, &log, &rendezvous);
    if (status == IRIS_OK) {
        status = iris_i_rendezvous_join(&rendezvous, &hello);
    }
    iris_set_wait_check(NULL, NULL);
    return status;
}

static void *root_main(void *arg)
{
    (void)meet(0);
    return NULL;
}

/* Rank 2 never comes, nor does rank 0 unless its verdict is waited for. */
static void run_meeting(const struct row *row)
{
    int has_root = row->joins == 2;
    pthread_t root;

    assert_int_equal(iris_i_bootstrap_random_key(now.key), IRIS_OK);
    if (has_root) {
        assert_int_equal(pthread_create(&root, NULL, root_main, NULL), 0);
        /* Else this rank may wait, and warn, for a root that has not come. */
        (void)harness_await_logged("[0/3] iris_init has waited 0 s for rank 1");
    }
    keep(meet(has_root ? 1 : row->joins));
    if (has_root) {
        pthread_join(root, NULL);
    }
}

/* ---- All of them ---- */

static const struct row rows[] = {
    {.name = "a stream",
     .wait = wait_for_stream,
     .line = "[0/2] the host has waited 0 s for a stream: "},
    {.name = "a heap's stream",
     .wait = wait_for_heap,
     .line = "[0/2] the host has waited 0 s for a stream: "},
    {.name = "a kernel",
     .wait = wait_for_stream,
     .device_timeout_ms = 1000, /* from when it has begun */
     .line = "[0/2] the host has waited 0 s for a stream: "},
    {.name = "a device barrier",
     .wait = wait_for_group_on_device,
     .line = "[0/2] the host has waited 0 s for a stream: "},
    {.name = "iris_free_deferred",
     .wait = wait_to_free,
     .line = "[0/2] iris_free_later has waited 0 s for the streams of rank 0"},
    {.name = "iris_finalize_later",
     .wait = wait_to_finalize,
     .line = "[0/2] iris_finalize_later has waited 0 s for a stream: "},
    {.name = "a collective call",
     .wait = wait_for_group,
     .line = "[0/2] iris_barrier has waited 0 s for rank 1: after 1 collective "
             "calls it is outside the library since its iris_calloc; it waits "
             "on until IRIS_TIMEOUT_MS"},
    {.name = "other ranks",
     .joins = 0,
     .line = "[0/3] iris_init has waited 0 s for rank 1, 2, missing yet"},
    {.name = "rank 0",
     .joins = 1,
     .line = "[1/3] iris_init has waited 0 s for rank 0, which has not come"},
    {.name = "verdict",
     .joins = 2,
     .line = "[1/3] iris_init has waited 0 s for rank 0, which waits for other "
             "ranks"},
};

/* The line that warns tells that the rank is in its wait. */
static void *end_wait(void *arg)
{
    const struct row *row = arg;
    iris_t *other;

    if (!harness_await_logged(row->line)) {
        return NULL;
    }
    if (now.ending == BY_DEATH) {
        atomic_store(&now.failed, 2); /* rank 1 */
        while (row->wait != NULL &&
               (other = atomic_load(&now.contexts[1])) == NULL) {
            sched_yield();
        }
        if (row->wait != NULL) {
            iris_i_peers_set_state(other->control, IRIS_RANK_LEFT);
        }
    } else if (now.ending == BY_INTERRUPT) {
        atomic_store(&now.stopped, 1);
        iris_interrupt(atomic_load(&now.contexts[0]));
    }
    return arg;
}

/* Whether the text has the line, once. */
static int is_once(const char *text, const char *line)
{
    const char *first = strstr(text, line);

    return first != NULL && strstr(first + 1, line) == NULL;
}

static int run(const struct row *row, enum ending ending)
{
    struct harness_capture capture;
    void *warned = NULL;
    pthread_t ender;

    memset(&now, 0, sizeof now);
    now.ending = ending;
    harness_capture(&capture);
    assert_int_equal(
        pthread_create(&ender, NULL, end_wait, (void *)(uintptr_t)row), 0);
    if (row->wait != NULL) {
        run_context(row);
    } else {
        run_meeting(row);
    }
    pthread_join(ender, &warned);
    harness_captured(&capture);
    warned = is_once(capture.text, row->line) ? warned : NULL;
    if (warned == NULL || now.status != statuses[ending]) {
        print_error("%s, ending %d: %s, %s: %s\n%s", row->name, (int)ending,
                    warned == NULL ? "not one warning" : "warned",
                    iris_status_string(now.status), now.message, capture.text);
    }
    free(capture.text);
    return warned != NULL && now.status == statuses[ending];
}

static void run_all(enum ending ending)
{
    int failed = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        failed += !run(&rows[i], ending);
    }
    assert_int_equal(failed, 0);
}

static TEST(every_wait_warns_and_has_a_deadline)
{
    run_all(BY_DEADLINE);
}

static TEST(every_wait_warns_and_sees_a_death)
{
    run_all(BY_DEATH);
}

static TEST(every_wait_warns_and_is_interrupted)
{
    run_all(BY_INTERRUPT);
}
#endif

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, waits);
