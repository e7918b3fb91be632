/* SPDX-License-Identifier: MIT
 *
 * iris_finalize_later(): each rank lets go of its contexts in an order of its
 * own, and at a time of its own.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"

#include "context/context.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXTS 4

/* Finalized contexts stay, so that this can be asked. */
static int has_ended(const iris_t *context)
{
    return atomic_load(&context->life) == IRIS_LIFE_FINALIZED;
}

static int await_end(const iris_t *context)
{
    for (int ms = 0; ms < 60000 && !has_ended(context); ms++) {
        poll(NULL, 0, 1);
    }
    return has_ended(context);
}

/* Every rank begins with another one, and one rank waits now and then. */
static RANK_TEST(contexts_can_be_let_go_of_in_any_order, 2, 4)
{
    int rank = iris_rank(iris);
    iris_t *contexts[CONTEXTS], *waits;

    for (int i = 0; i < CONTEXTS; i++) {
        CHECK_EQUAL(harness_open_again(iris, NULL, &contexts[i]), 0);
    }
    CHECK_EQUAL(harness_open_again(iris, NULL, &waits), 0);
    for (int i = 0; i < CONTEXTS; i++) {
        iris_t *context = contexts[(rank + i) % CONTEXTS];

        CHECK_OK(i % 2 == 1 && rank == 1 ? iris_finalize(context)
                                         : iris_finalize_later(context));
    }
    CHECK_OK(iris_finalize(waits));
    for (int i = 0; i < CONTEXTS; i++) {
        CHECK(await_end(contexts[i]));
    }
    return 0;
}

/* Rank 0 lets go of a context whose stream yet waits for rank 1, which uses
 * rank 0's heap meanwhile. */
static RANK_TEST(a_heap_stays_until_every_rank_has_left, 2)
{
    int rank = iris_rank(iris);
    uint64_t *words, value = 7;
    iris_t *context;

    CHECK_EQUAL(harness_open_again(iris, NULL, &context), 0);
    CHECK_OK(iris_calloc(context, 2, sizeof *words, (void **)&words));
    if (rank == 0) {
        CHECK_OK(iris_wait_on_stream(context, &words[0], IRIS_CMP_EQ, 1, NULL));
        CHECK_OK(iris_signal_on_stream(context, &words[1], 5, 1, NULL));
        CHECK_OK(iris_finalize_later(context));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK(!has_ended(context));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK(await_end(context));
        return 0;
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(iris_lost_rank(context), -1);
    CHECK_OK(
        iris_put_on_stream(context, &words[1], &value, sizeof value, 0, NULL));
    CHECK_OK(iris_stream_synchronize(context, NULL));
    value = 0;
    CHECK_OK(
        iris_get_on_stream(context, &value, &words[1], sizeof value, 0, NULL));
    CHECK_OK(iris_stream_synchronize(context, NULL));
    CHECK_EQUAL(value, 7);
    CHECK_OK(iris_signal_on_stream(context, &words[0], 1, 0, NULL));
    CHECK_OK(iris_wait_on_stream(context, &words[1], IRIS_CMP_EQ, 5, NULL));
    CHECK_OK(iris_finalize(context));
    return iris_barrier(iris, NULL, NULL);
}

static RANK_TEST(what_was_let_go_of_is_gone_for_this_rank, 1, 3)
{
    iris_t *context;
    void *ptr;

    CHECK_EQUAL(harness_open_again(iris, NULL, &context), 0);
    CHECK_OK(iris_malloc(context, 64, &ptr));
    CHECK_OK(iris_finalize_later(context));
    CHECK_STATUS(iris_finalize_later(context), IRIS_ERR_STATE);
    CHECK_STATUS(iris_finalize(context), IRIS_ERR_STATE);
    CHECK_STATUS(iris_free_later(context, ptr), IRIS_ERR_STATE);
    CHECK_STATUS(iris_barrier(context, NULL, NULL), IRIS_ERR_STATE);
    CHECK_EQUAL(iris_rank(context), -1);
    CHECK_OK(iris_finalize_later(NULL));
    CHECK(await_end(context));
    return 0;
}

/* ---- The deadline ---- */

/* The deadline that the waits for streams begin with. */
struct deadlines {
    const iris_t *context;
    int num_waits;
    int64_t last_ms;
};

static void note_deadline(void *self, const struct iris_host_event *event)
{
    struct deadlines *deadlines = self;

    if (event->op == IRIS_HOST_SYNCHRONIZE && !event->after) {
        deadlines->num_waits++;
        deadlines->last_ms = deadlines->context->waiter.timeout_ms;
    }
}

static int overdue(iris_t *iris, void *arg)
{
    struct deadlines deadlines = {.num_waits = 0};
    struct iris_observer observer = {.host = note_deadline, .self = &deadlines};
    struct iris_config config;
    iris_t *context;
    uint64_t *word;

    iris_config_init(&config);
    config.timeout_ms = 100;
    CHECK_EQUAL(harness_open_again(iris, &config, &context), 0);
    deadlines.context = context;
    CHECK_OK(iris_calloc(context, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_wait_on_stream(context, word, IRIS_CMP_EQ, 1, NULL));
    CHECK_OK(iris_i_hooks_add(&context->hooks, &observer));
    CHECK_OK(iris_finalize_later(context));
    CHECK(await_end(context));
    CHECK_EQUAL(deadlines.num_waits, 1);
    CHECK_EQUAL(deadlines.last_ms, 1);
    return 0;
}

static TEST(the_deadline_is_waited_for_once)
{
    struct harness_capture capture;

    harness_capture(&capture);
    harness_run(1, overdue, NULL);
    assert_non_null(strstr(harness_captured(&capture),
                           "iris_finalize_later: [0/1] the streams are not "
                           "done after 100 ms (IRIS_TIMEOUT_MS)"));
    free(capture.text);
}

/* ---- Processes that end ---- */

#define LET_GO 1

/* Rank 0 lets go and ends. */
static void let_go(iris_t *iris, struct proc_report *report, int killed)
{
    struct iris_control *control = iris->control;
    const struct iris_post_id next = {iris->world->members.place, 0,
                                      iris->world->members.seq + 1};

    proc_note(report, iris_finalize_later(iris));
    while (!iris_i_control_posted(control, &next)) {
        poll(NULL, 0, 1);
    }
    proc_reach(report, LET_GO);
    while (killed) {
        pause();
    }
    exit(0); /* it holds yet what goes with the process */
}

/* The others finalize once rank 0's process has ended. */
static void end_early(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);
    struct iris_shown shown;
    struct iris_control *control;

    if (iris == NULL) {
        return;
    }
    if (rank == 0) {
        let_go(iris, report, *(int *)arg);
    }
    control = iris->control;
    while (iris_i_control_alive(control, 0)) {
        poll(NULL, 0, 1);
    }
    iris_i_control_read(control, 0, IRIS_SHOW_STATE, &shown);
    report->value = shown.state;
    proc_finalize(report, iris);
}

static void run_end_early(int killed)
{
    struct procs procs;

    procs_start(&procs, 3, end_early, &killed);
    procs_await(&procs, 0, LET_GO);
    if (killed) {
        procs_kill(&procs, 0);
    }
    procs_join(&procs);
    for (int rank = 1; rank < 3; rank++) {
        assert_int_equal(procs.reports[rank].value, IRIS_RANK_FINALIZED);
        assert_int_equal(procs.reports[rank].finalize_status, IRIS_OK);
    }
    procs_free(&procs);
}

/* Rank 0, too, if the ranks do not reach each other by way of it. */
static TEST(a_process_that_let_go_may_end_before_the_others)
{
    run_end_early(0);
    run_end_early(1);
}

#define ENDS 2

static struct proc_report *of_rank_0;

static void note_end(void)
{
    proc_reach(of_rank_0, ENDS);
}

/* Rank 0, by which the others reach each other, lets go and ends its process
 * while they still meet. */
static void end_as_hub(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);
    const int others[] = {1, 2};
    iris_group_t *group = NULL;

    of_rank_0 = report - rank;
    if (iris == NULL) {
        return;
    }
    proc_note(report,
              iris_group_create(iris, others, rank == 0 ? 0 : 2, &group));
    if (rank == 0) {
        proc_note(report, iris_finalize_later(iris));
        atexit(note_end); /* before the library's own */
        exit(0);
    }
    while (__atomic_load_n(&of_rank_0->stage, __ATOMIC_ACQUIRE) != ENDS) {
        poll(NULL, 0, 1);
    }
    for (int i = 0; i < 2000 && report->status == IRIS_OK; i++) {
        proc_note(report, iris_barrier(iris, NULL, group));
    }
    proc_finalize(report, iris);
}

static TEST(rank_0_stays_while_the_others_need_its_connections)
{
    struct procs procs;

    setenv("IRIS_NODES", "2", 1);
    procs_start(&procs, 3, end_as_hub, NULL);
    procs_join(&procs);
    unsetenv("IRIS_NODES");
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(procs.reports[rank].status, IRIS_OK);
        assert_int_equal(procs.reports[rank].finalize_status, IRIS_OK);
    }
    procs_free(&procs);
}

/* Rank 1 is killed while rank 0 waits for it behind the scenes. */
static void outlive(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris == NULL) {
        return;
    }
    if (rank == 0) {
        proc_note(report, iris_finalize_later(iris));
    }
    proc_reach(report, LET_GO);
    while (rank == 1) {
        pause();
    }
    report->value = await_end(iris);
}

static TEST(who_let_go_is_not_held_by_a_rank_that_dies)
{
    struct procs procs;

    procs_start(&procs, 2, outlive, NULL);
    procs_await(&procs, 0, LET_GO);
    procs_await(&procs, 1, LET_GO);
    procs_kill(&procs, 1);
    procs_join(&procs);
    assert_int_equal(procs.reports[0].status, IRIS_OK);
    assert_int_equal(procs.reports[0].value, 1);
    procs_free(&procs);
}

TEST_GROUP(unit, one_node);
