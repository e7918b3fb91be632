/* SPDX-License-Identifier: MIT
 *
 * What is said of given readings: who may go on, and files that are no segment.
 */
#include "config.h"

#include "support/harness.h"

#include "base/base.h"
#include "control/internal.h"
#include "report/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

struct readings {
    struct iris_report *before;
    struct iris_report *now;
};

static struct iris_report *make_report(int num_ranks, int64_t now_ns)
{
    struct iris_report *report =
        calloc(1, sizeof *report + (size_t)num_ranks * sizeof report->ranks[0]);

    assert_non_null(report);
    report->num_ranks = num_ranks;
    report->now_ns = now_ns;
    report->old_ns = SECOND;
    report->root = -1;
    for (int i = 0; i < num_ranks; i++) {
        report->ranks[i].known = 1;
        report->ranks[i].process = 'S';
        report->ranks[i].state = IRIS_RANK_RUNNING;
    }
    return report;
}

static struct readings make(int num_ranks)
{
    return (struct readings){make_report(num_ranks, 9 * SECOND),
                             make_report(num_ranks, 10 * SECOND)};
}

/* Rank `rank` waits for `expected`, or for a signal if that is -1, in both. */
static struct iris_record_wait *add_wait(struct readings *r, int rank,
                                         int expected)
{
    struct iris_report *both[] = {r->before, r->now};
    struct iris_record_wait *wait = NULL;

    for (int i = 0; i < 2; i++) {
        struct iris_report_rank *of = &both[i]->ranks[rank];

        of->busy = 1;
        wait = &of->waits[of->num_waits++];
        wait->kind = expected < 0 ? IRIS_WAIT_KERNEL : IRIS_WAIT_AGREEMENT;
        wait->begin_ns = SECOND;
        wait->update_ns = both[i]->now_ns;
        wait->num_expected = expected >= 0;
        wait->expected[0] = (int16_t)expected;
        wait->group = -1;
        wait->grid = 1;
    }
    return wait;
}

/* Judges, and frees both. */
static enum iris_hang_verdict judge(struct readings *r, const char *cause)
{
    enum iris_hang_verdict verdict;

    iris_i_report_judge(r->now, r->before);
    verdict = r->now->verdict;
    if (strstr(r->now->cause, cause) == NULL) {
        print_error("no \"%s\" in: %s\n", cause, r->now->cause);
        fail();
    }
    free(r->before);
    free(r->now);
    return verdict;
}

static TEST(two_that_wait_for_each_other_are_hung)
{
    struct readings r = make(3);

    add_wait(&r, 0, 1);
    add_wait(&r, 1, 2);
    add_wait(&r, 2, 0);
    assert_int_equal(judge(&r, "a cycle: ranks 0, 1, 2 wait for each other"),
                     IRIS_VERDICT_HUNG);
}

static TEST(who_waits_for_one_outside_is_late)
{
    struct readings r = make(2);

    add_wait(&r, 0, 1);
    assert_int_equal(judge(&r, "rank 1 is outside the library"),
                     IRIS_VERDICT_LATE);
}

static TEST(a_wait_whose_time_stands_still_is_over)
{
    struct readings r = make(2);

    add_wait(&r, 0, 1)->update_ns = r.before->now_ns;
    add_wait(&r, 1, 0);
    assert_int_not_equal(judge(&r, ""), IRIS_VERDICT_HUNG);
}

static TEST(a_rank_that_moved_may_have_ended_the_wait)
{
    for (int how = 0; how < 4; how++) {
        struct readings r = make(2);
        struct iris_report_rank *rank = &r.now->ranks[1];

        add_wait(&r, 0, -1);
        add_wait(&r, 1, 0);
        if (how == 0) {
            rank->host_calls++;
        } else if (how == 1) {
            rank->calls++;
        } else if (how == 2) {
            rank->waits[0].done++;
        } else {
            r.before->ranks[1].num_streams = rank->num_streams = 1;
            rank->streams[0].done = rank->streams[0].begun = 1;
        }
        assert_int_equal(judge(&r, "wait"), IRIS_VERDICT_LATE);
    }
}

/* Rank 1's host waits; of the kernel at work one of two workgroups does. */
static TEST(a_workgroup_that_computes_may_end_the_wait)
{
    for (unsigned under_way = 1; under_way <= 2; under_way++) {
        struct readings r = make(2);
        struct iris_report *both[] = {r.before, r.now};

        add_wait(&r, 0, -1);
        add_wait(&r, 1, -1);
        for (int i = 0; i < 2; i++) {
            struct iris_report_rank *rank = &both[i]->ranks[1];

            rank->num_streams = 1;
            rank->streams[0].address = 64;
            rank->streams[0].begun = 1;
            rank->waits[0].stream = 64;
            rank->waits[0].grid = 2;
            rank->waits[0].begun = 2;
            rank->waits[0].done = 2 - under_way;
        }
        assert_int_equal(judge(&r, "wait"), under_way == 2 ? IRIS_VERDICT_LATE
                                                           : IRIS_VERDICT_HUNG);
    }
}

static TEST(a_stopped_rank_is_no_hang)
{
    struct readings r = make(3);

    add_wait(&r, 0, 1);
    add_wait(&r, 1, 2);
    r.now->ranks[2].process = 'T';
    assert_int_equal(judge(&r, "rank 2 (pid 0) is stopped"),
                     IRIS_VERDICT_STOPPED);
}

/* Lines of the report that have `text`. */
static int count_lines(const struct iris_report *report, const char *text)
{
    char *all = NULL;
    size_t bytes;
    FILE *out = open_memstream(&all, &bytes);
    int count = 0;

    iris_i_report_text(report, out);
    fclose(out);
    for (const char *c = all; (c = strstr(c, text)) != NULL; c++) {
        count++;
    }
    free(all);
    return count;
}

static TEST(ranks_that_do_the_same_are_one_line)
{
    struct readings r = make(48);

    iris_i_report_judge(r.now, r.before);
    assert_int_equal(count_lines(r.now, "\n"), 3);
    assert_int_equal(
        count_lines(r.now, "  48 ranks (0-47): nothing of them waits\n"), 1);
    for (int i = 0; i < 47; i++) {
        add_wait(&r, i == 7 ? 47 : i, 7);
    }
    r.now->cause[0] = '\0';
    iris_i_report_judge(r.now, r.before);
    assert_int_equal(
        count_lines(r.now, "  47 ranks (0-6, 8-47): each waits in "), 1);
    assert_int_equal(count_lines(r.now, "  rank 7 (pid "), 1);
    (void)judge(&r, "since iris_init (sleeping); ranks 0, 1, 2, 3, ");
}

static TEST(a_rank_that_left_makes_three_lines)
{
    struct readings r = make(4);

    add_wait(&r, 0, 2);
    add_wait(&r, 1, 2);
    add_wait(&r, 3, 2);
    r.now->ranks[2].state = IRIS_RANK_LEFT;
    iris_i_report_judge(r.now, r.before);
    assert_int_equal(count_lines(r.now, "\n"), 3);
    (void)judge(&r, "rank 2 (pid 0) left the job after an error");
}

/* One that waits for nobody, beside one that runs and beside none. */
static TEST(who_is_stopped_is_told_whether_others_wait_or_not)
{
    struct readings r = make(2);

    r.now->ranks[1].process = 'T';
    assert_int_equal(judge(&r, "stopped, by SIGSTOP or a debugger: rank 1"),
                     IRIS_VERDICT_RUNNING);
    r = make(2);
    r.now->ranks[0].state = IRIS_RANK_FINALIZED;
    r.now->ranks[1].process = 't';
    assert_int_equal(judge(&r, "rank 1 is stopped, by SIGSTOP"),
                     IRIS_VERDICT_STOPPED);
}

static TEST(one_that_finalized_is_not_lost_when_it_ends)
{
    for (int finalized = 0; finalized < 2; finalized++) {
        struct readings r = make(2);

        r.now->ranks[1].process = IRIS_PROCESS_GONE;
        if (finalized) {
            r.now->ranks[1].state = IRIS_RANK_FINALIZED;
        }
        assert_int_equal(judge(&r, finalized ? "" : "rank 1 (pid 0) died"),
                         finalized ? IRIS_VERDICT_RUNNING : IRIS_VERDICT_LOST);
    }
}

/* Numbers of another process may be anything. */
static TEST(strange_numbers_do_no_harm)
{
    struct readings r = make(2);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct iris_record_wait *wait;

    wait = add_wait(&r, 0, 1);
    wait->num_expected = UINT32_MAX;
    wait->expected[0] = -7;
    wait->expected[1] = 30000;
    wait = add_wait(&r, 1, -1);
    wait->kind = 77;
    wait->cmp = -9;
    wait->alloc = UINT64_MAX;
    wait->alloc_bytes = 1;
    memset(wait->name, 'x', sizeof wait->name - 1);
    r.now->ranks[1].state = 99;
    r.now->ranks[1].begun.op = 999;
    r.now->ranks[1].begun.id = 1;
    iris_i_report_judge(r.now, r.before);
    iris_i_report_text(r.now, out);
    iris_i_report_json(r.now, out);
    fclose(out);
    assert_non_null(strstr(text, "\"expected\": [-7, 30000"));
    free(text);
    (void)judge(&r, "");
}

/* A header with one thing changed in it. */
static TEST(what_is_no_segment_is_refused)
{
    static const size_t places[] = {
        offsetof(struct iris_records_header, magic),
        offsetof(struct iris_records_header, version),
        offsetof(struct iris_records_header, num_ranks),
        offsetof(struct iris_records_header, bytes),
        offsetof(struct iris_records_header, record_bytes)};
    struct iris_table *segment;
    int num_ranks = 0;

    assert_int_equal(iris_i_segment_create(2, &segment), IRIS_OK);
    assert_int_equal(iris_i_records_check(segment->fd, &num_ranks), IRIS_OK);
    assert_int_equal(num_ranks, 2);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *byte = (char *)segment->header + places[i];

        *byte ^= 0x41;
        assert_int_equal(iris_i_records_check(segment->fd, &num_ranks),
                         i == 1 || i == 4 ? IRIS_ERR_MISMATCH
                                          : IRIS_ERR_INVALID);
        *byte ^= 0x41;
    }
    iris_i_segment_release(segment);
}

TEST_GROUP(unit);
