/* SPDX-License-Identifier: MIT
 *
 * Deferred free where something is wrong: with what is released, with the call
 * that memory would go at, with a peer. Nothing is lost, and nothing freed
 * twice.
 */
#include "config.h"

#include "support/harness.h"
#include "support/procs.h"

#include <string.h>
#include <unistd.h>

static RANK_TEST(a_release_that_makes_no_sense_is_refused, 1, 2)
{
    char *ptr, *second;

    CHECK_OK(iris_malloc(iris, 4096, (void **)&ptr));
    CHECK_OK(iris_malloc(iris, 4096, (void **)&second));
    CHECK_OK(iris_free_later(iris, NULL));
    CHECK_BAD(iris, iris_free_later(iris, &ptr), IRIS_ERR_INVALID,
              "iris_free_later of", "pass the address from iris_malloc");
    CHECK_BAD(iris, iris_free_later(iris, ptr + 256), IRIS_ERR_INVALID,
              "256 bytes into", "pass its start");
    CHECK_BAD(iris, iris_free_later(iris, (void *)iris_device_context(iris)),
              IRIS_ERR_INVALID, "nothing is allocated", "once");
    CHECK_EQUAL(harness_stats(iris).num_deferred, 0);
    CHECK_OK(iris_free_later(iris, ptr));
    CHECK_BAD(iris, iris_free_later(iris, ptr), IRIS_ERR_INVALID,
              "given to iris_free_later before", "free an allocation once");
    CHECK_BAD(iris, iris_free(iris, ptr), IRIS_ERR_INVALID,
              "given to iris_free_later before", "free an allocation once");
    CHECK_EQUAL(harness_stats(iris).num_deferred, 1);
    CHECK_OK(iris_free_deferred(iris));
    CHECK_BAD(iris, iris_free_later(iris, ptr), IRIS_ERR_INVALID,
              "nothing is allocated", "was it freed before?");
    CHECK_OK(iris_free(iris, second));
    CHECK_EQUAL(harness_stats(iris).num_allocs, 0);
    CHECK_STATUS(iris_free_later(NULL, ptr), IRIS_ERR_INVALID);
    CHECK_STATUS(iris_free_deferred(NULL), IRIS_ERR_INVALID);
    return 0;
}

/* One rank frees at once what the other has released. */
static RANK_TEST(freed_by_one_rank_and_released_by_another_is_an_error, 2)
{
    void *ptr;

    CHECK_OK(iris_malloc(iris, 64, &ptr));
    if (iris_rank(iris) == 1) {
        CHECK_OK(iris_free_later(iris, ptr));
    }
    CHECK_STATUS(iris_free(iris, ptr), IRIS_ERR_INVALID);
    CHECK_MESSAGE("given to iris_free_later before");
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_free_later(iris, ptr));
    }
    CHECK_OK(iris_free_deferred(iris));
    CHECK_EQUAL(harness_stats(iris).num_allocs, 0);
    return 0;
}

static RANK_TEST(a_call_in_which_ranks_differ_frees_and_loses_nothing, 2)
{
    void *ptrs[8], *ptr;
    int rank = iris_rank(iris);

    for (int i = 0; i < 8; i++) {
        CHECK_OK(iris_malloc(iris, 64, &ptrs[i]));
    }
    for (int i = 0; i < 8; i++) {
        CHECK_OK(iris_free_later(iris, ptrs[rank == 0 ? i : 7 - i]));
    }
    CHECK_STATUS(iris_malloc(iris, rank == 0 ? 64 : 128, &ptr),
                 IRIS_ERR_MISMATCH);
    CHECK_STATUS(rank == 0 ? iris_barrier(iris, NULL, NULL)
                           : iris_free_deferred(iris),
                 IRIS_ERR_MISMATCH);
    CHECK_STATUS(iris_malloc(iris, rank == 0 ? 0 : 64, &ptr), IRIS_ERR_INVALID);
    CHECK_EQUAL(harness_stats(iris).num_allocs, 8);
    CHECK_EQUAL(harness_stats(iris).num_deferred, 8);
    CHECK_OK(iris_free_deferred(iris));
    CHECK_EQUAL(harness_stats(iris).num_allocs, 0);
    CHECK_EQUAL(harness_stats(iris).num_deferred, 0);
    return 0;
}

/* ---- A rank that dies ---- */

#define RELEASED 1

static void die_with_pending(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);
    void *ptrs[4];
    iris_status_t status = iris == NULL ? IRIS_ERR_STATE : IRIS_OK;

    for (int i = 0; i < 4 && status == IRIS_OK; i++) {
        status = iris_malloc(iris, 64, &ptrs[i]);
    }
    for (int i = 0; i < 4 && status == IRIS_OK; i++) {
        status = iris_free_later(iris, ptrs[i]);
    }
    if (status == IRIS_OK) {
        proc_reach(report, RELEASED);
        while (rank == 1) { /* until it is killed */
            pause();
        }
        proc_note(report, iris_free_deferred(iris));
        report->value = (int64_t)harness_stats(iris).num_deferred;
    }
    proc_finalize(report, iris);
}

static TEST(a_rank_that_dies_takes_nothing_from_the_others)
{
    struct procs procs;

    if (harness_launched() != 0) {
        skip();
    }
    procs_start(&procs, 3, die_with_pending, NULL);
    for (int rank = 0; rank < 3; rank++) {
        procs_await(&procs, rank, RELEASED);
    }
    procs_kill(&procs, 1);
    procs_join(&procs);
    for (int rank = 0; rank < 3; rank += 2) {
        assert_int_equal(procs.reports[rank].status, IRIS_ERR_PEER_LOST);
        assert_non_null(strstr(procs.reports[rank].message, "rank 1"));
        assert_int_equal(procs.reports[rank].value, 4);
    }
    procs_free(&procs);
}

/* ---- The end ---- */

static TEST(after_finalize_nothing_can_be_released)
{
    iris_t *iris;
    void *ptr;

    if (harness_launched() != 0) {
        skip();
    }
    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    assert_int_equal(iris_malloc(iris, 64, &ptr), IRIS_OK);
    assert_int_equal(iris_free_later(iris, ptr), IRIS_OK);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(iris_free_later(iris, ptr), IRIS_ERR_STATE);
    assert_int_equal(iris_free_deferred(iris), IRIS_ERR_STATE);
}

TEST_GROUP(unit);
