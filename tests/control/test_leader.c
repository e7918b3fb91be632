/* SPDX-License-Identifier: MIT
 *
 * The death of a leader, by which its node reaches the others: calls that need
 * both nodes name it and the ranks behind it.
 */
#include "config.h"

#include "support/harness.h"
#include "support/procs.h"

#include "context/context.h"
#include "control/control.h"

#include <string.h>

#define RANKS 4
#define VICTIM 2 /* leads ranks 2 and 3 */
#define WAITING 1
#define BOUND_NS INT64_C(2000000000)

/* Ranks 0 and 3 wait for each other: neither is the victim. */
static void wait_across(int rank, struct proc_report *report, void *arg)
{
    static const struct iris_call_type type = {.name = "across"};
    const struct iris_call call = {.type = &type};
    iris_t *iris = proc_init(report);
    const int ends[] = {0, 3};
    int is_member = rank == 0 || rank == 3;
    iris_group_t *group = NULL;

    if (iris == NULL) {
        return;
    }
    proc_note(report, iris_group_create(iris, ends, is_member ? 2 : 0, &group));
    proc_reach(report, WAITING);
    while (is_member && report->status == IRIS_OK) {
        proc_note(report, iris_i_agree(&group->members, &call));
    }
    while (!is_member && report->status == IRIS_OK) {
        proc_note(report, iris_i_peers_check_all(iris->control));
    }
    proc_finalize(report, iris);
}

static void check_message(const struct proc_report *report, const char *text)
{
    if (strstr(report->message, text) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", report->message, text);
        fail();
    }
}

static TEST(the_ranks_behind_a_dead_leader_are_named)
{
    struct procs procs;
    int64_t death_ns;

    setenv("IRIS_NODES", "2", 1);
    procs_start(&procs, RANKS, wait_across, NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        procs_await(&procs, rank, WAITING);
    }
    death_ns = procs_kill(&procs, VICTIM);
    procs_join(&procs);
    unsetenv("IRIS_NODES");
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != VICTIM) {
            assert_int_equal(procs.reports[rank].status, IRIS_ERR_PEER_LOST);
            assert_true(procs.reports[rank].end_ns - death_ns < BOUND_NS);
            check_message(&procs.reports[rank], "rank 2 (pid");
        }
    }
    check_message(&procs.reports[0],
                  "leader of its node, died: ranks 3 cannot be reached");
    check_message(&procs.reports[3],
                  "leader of its node, died: ranks 0 to 1 cannot be reached");
    procs_free(&procs);
}

TEST_GROUP(unit);
