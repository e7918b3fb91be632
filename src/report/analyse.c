/* SPDX-License-Identifier: MIT
 *
 * Finds the ranks that can go on. Unknown ranks count as able to go on: a job
 * is called hung only if no rank remains that could end its waits.
 */
#include "config.h"

#include "report/internal.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* The same wait in the earlier reading; NULL: it is new. */
static const struct iris_record_wait *
find_same(const struct iris_report_rank *before,
          const struct iris_record_wait *wait)
{
    for (int i = 0; i < before->num_waits; i++) {
        const struct iris_record_wait *old = &before->waits[i];

        if (old->begin_ns == wait->begin_ns && old->stream == wait->stream &&
            old->workgroup == wait->workgroup) {
            return old;
        }
    }
    return NULL;
}

/* A wait is live if its time advances, or if its rank is stopped or lost. */
static void find_live(struct iris_report_rank *rank,
                      const struct iris_report_rank *before)
{
    int stands = iris_i_rank_is_stopped(rank) || iris_i_rank_is_lost(rank);

    for (int i = 0; i < rank->num_waits; i++) {
        const struct iris_record_wait *old = find_same(before, &rank->waits[i]);

        rank->waits_live[i] =
            (char)(stands ||
                   (old != NULL && rank->waits[i].update_ns > old->update_ns));
    }
}

/* ---- Whether any part of a rank may go on ---- */

static int waits_moved(const struct iris_report_rank *rank,
                       const struct iris_report_rank *before)
{
    for (int i = 0; i < rank->num_waits; i++) {
        const struct iris_record_wait *wait = &rank->waits[i];
        const struct iris_record_wait *old = find_same(before, wait);

        if (old != NULL &&
            (old->begun != wait->begun || old->done != wait->done ||
             old->seen != wait->seen)) {
            return 1;
        }
    }
    return 0;
}

/* Whether the rank did anything between the readings. That may have ended a
 * wait whose rank has not noticed yet. */
static int has_moved(const struct iris_report_rank *rank,
                     const struct iris_report_rank *before)
{
    if (rank->host_calls != before->host_calls ||
        rank->calls != before->calls || rank->busy != before->busy ||
        rank->finished.id != before->finished.id ||
        rank->num_streams != before->num_streams) {
        return 1;
    }
    for (int i = 0; i < rank->num_streams; i++) {
        if (rank->streams[i].begun != before->streams[i].begun ||
            rank->streams[i].done != before->streams[i].done) {
            return 1;
        }
    }
    return waits_moved(rank, before);
}

/* Work that a deadline or a death has ended does not go on. */
static int has_ended(const struct iris_report_rank *rank)
{
    int ended = 0;

    for (int i = 0; i < rank->num_waits; i++) {
        ended |= rank->waits[i].ended;
    }
    return ended;
}

static int blocks(int op)
{
    return op == IRIS_HOST_SYNCHRONIZE || op == IRIS_HOST_ALLOC ||
           op == IRIS_HOST_FREE || op == IRIS_HOST_BARRIER ||
           op == IRIS_HOST_BROADCAST || op == IRIS_HOST_GROUP_CREATE ||
           op == IRIS_HOST_GROUP_DESTROY;
}

static int host_is_free(const struct iris_report_rank *rank)
{
    for (int i = 0; i < rank->num_waits; i++) {
        if (iris_i_wait_counts(rank, i)) {
            if (rank->waits[i].kind == IRIS_WAIT_AGREEMENT ||
                rank->waits[i].ended) {
                return 0;
            }
        }
    }
    for (int i = 0; i < rank->num_open; i++) {
        if (blocks(rank->open[i].op)) {
            return 0;
        }
    }
    return !rank->busy;
}

/* Whether some workgroup of the stream's kernel does not wait. */
static int stream_is_free(const struct iris_report_rank *rank,
                          const struct iris_record_stream *stream)
{
    uint32_t waiting = 0, under_way = 0;
    int known = 0;

    if (stream->begun == stream->done) {
        return 0;
    }
    for (int i = 0; i < rank->num_waits; i++) {
        const struct iris_record_wait *wait = &rank->waits[i];

        if (wait->stream != stream->address || !iris_i_wait_counts(rank, i)) {
            continue;
        }
        waiting++;
        if (wait->begun != 0) {
            known = 1;
            under_way = wait->begun - wait->done;
        }
    }
    return waiting == 0 || (known && waiting < under_way);
}

static int is_free(const struct iris_report_rank *rank,
                   const struct iris_report_rank *before)
{
    int waits = 0;

    if (!rank->known || iris_i_rank_is_lost(rank) ||
        iris_i_rank_is_stopped(rank) || rank->state == IRIS_RANK_FINALIZED) {
        return !rank->known && rank->state != IRIS_RANK_LEFT;
    }
    for (int i = 0; i < rank->num_waits; i++) {
        if (iris_i_wait_counts(rank, i) && !rank->waits[i].ended &&
            iris_i_wait_is_of_gpu(&rank->waits[i])) {
            return 1;
        }
        waits += iris_i_wait_counts(rank, i);
    }
    if (waits == 0 || host_is_free(rank) ||
        (!has_ended(rank) && has_moved(rank, before))) {
        return 1;
    }
    for (int i = 0; i < rank->num_streams; i++) {
        if (stream_is_free(rank, &rank->streams[i])) {
            return 1;
        }
    }
    return 0;
}

/* ---- Ranks that can go on eventually ---- */

static int is_rank(const struct iris_report *report, int rank)
{
    return rank >= 0 && rank < report->num_ranks;
}

/* An agreement needs all awaited ranks; a signal may come from any other
 * rank. */
static int can_end(const struct iris_report *report, int rank,
                   const struct iris_record_wait *wait, const char *moves)
{
    if (wait->num_expected > 0) {
        for (uint32_t i = 0; i < wait->num_expected && i < IRIS_RECORD_EXPECTED;
             i++) {
            if (!is_rank(report, wait->expected[i]) ||
                !moves[wait->expected[i]]) {
                return 0;
            }
        }
        return 1;
    }
    for (int other = 0; other < report->num_ranks; other++) {
        if (other != rank && moves[other]) {
            return 1;
        }
    }
    return 0;
}

static int one_can_end(const struct iris_report *report, int rank,
                       const char *moves)
{
    const struct iris_report_rank *r = &report->ranks[rank];

    for (int i = 0; i < r->num_waits; i++) {
        if (iris_i_wait_counts(r, i) &&
            can_end(report, rank, &r->waits[i], moves)) {
            return 1;
        }
    }
    return 0;
}

/* Spreads from ranks that may go on now to the ranks whose waits they may end,
 * until there are no more. With `stopped`, a stopped rank counts as able to go
 * on. */
static void spread(const struct iris_report *report, int stopped, char *moves)
{
    int more = 1;

    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_report_rank *rank = &report->ranks[i];

        moves[i] =
            rank->is_free || (char)(stopped && iris_i_rank_is_stopped(rank) &&
                                    !iris_i_rank_is_lost(rank));
    }
    while (more) {
        more = 0;
        for (int i = 0; i < report->num_ranks; i++) {
            const struct iris_report_rank *rank = &report->ranks[i];

            if (!moves[i] && !iris_i_rank_is_lost(rank) &&
                !iris_i_rank_is_stopped(rank) &&
                one_can_end(report, i, moves)) {
                moves[i] = 1;
                more = 1;
            }
        }
    }
}

/* ---- The verdict ---- */

struct counts {
    int lost;
    int ended;      /* finalized or lost */
    int stopped;    /* number of other ranks that are stopped */
    int waiting_on; /* ranks with an old wait */
    int stuck;      /* ranks that cannot go on unless a stopped one does */
    int hung;       /* nor then */
};

static int has_old_wait(const struct iris_report *report,
                        const struct iris_report_rank *rank)
{
    for (int i = 0; i < rank->num_waits; i++) {
        const struct iris_record_wait *wait = &rank->waits[i];

        if (wait->ended || (rank->waits_live[i] &&
                            report->now_ns - wait->begin_ns > report->old_ns)) {
            return 1;
        }
    }
    return 0;
}

static void count(const struct iris_report *report, char *moves, char *hung,
                  struct counts *counts)
{
    memset(counts, 0, sizeof *counts);
    spread(report, 0, moves);
    spread(report, 1, hung);
    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_report_rank *rank = &report->ranks[i];
        int waits = has_old_wait(report, rank);

        hung[i] = (char)!hung[i];
        counts->lost += iris_i_rank_is_lost(rank);
        counts->ended += iris_i_rank_has_ended(rank);
        counts->stopped +=
            !iris_i_rank_has_ended(rank) && iris_i_rank_is_stopped(rank);
        counts->waiting_on += waits;
        counts->stuck += waits && !moves[i] && !iris_i_rank_is_lost(rank);
        counts->hung += waits && hung[i] && !iris_i_rank_is_lost(rank);
    }
}

void iris_i_report_judge(struct iris_report *report,
                         const struct iris_report *before)
{
    char moves[report->num_ranks], hung[report->num_ranks];
    struct counts counts;
    int all_stopped;

    for (int i = 0; i < report->num_ranks; i++) {
        struct iris_report_rank *rank = &report->ranks[i];

        find_live(rank, &before->ranks[i]);
        rank->is_free = (char)is_free(rank, &before->ranks[i]);
    }
    count(report, moves, hung, &counts);
    all_stopped = counts.stopped > 0 &&
                  counts.stopped + counts.ended == report->num_ranks;
    report->verdict = counts.lost > 0                   ? IRIS_VERDICT_LOST
                      : counts.hung > 0                 ? IRIS_VERDICT_HUNG
                      : counts.stuck > 0 || all_stopped ? IRIS_VERDICT_STOPPED
                      : counts.waiting_on > 0           ? IRIS_VERDICT_LATE
                                                        : IRIS_VERDICT_RUNNING;
    iris_i_explain(report, hung);
}

iris_status_t iris_i_report_make(int fd, int apart_ms,
                                 struct iris_report **report_p)
{
    struct iris_report *before, *report;
    iris_status_t status = iris_i_report_read(fd, &before);

    if (status != IRIS_OK) {
        return status;
    }
    for (int i = 0; i < before->num_ranks; i++) {
        if (before->ranks[i].is_elsewhere && apart_ms < 2 * IRIS_ROW_MS) {
            apart_ms = 2 * IRIS_ROW_MS; /* its hub sends it again */
        }
    }
    iris_i_wait_apart(apart_ms);
    status = iris_i_report_read(fd, &report);
    if (status == IRIS_OK && report->num_ranks == before->num_ranks) {
        iris_i_report_judge(report, before);
        *report_p = report;
    } else if (status == IRIS_OK) {
        free(report);
        status = iris_i_fail(NULL, IRIS_ERR_INVALID,
                             "the control segment changes its size");
    }
    free(before);
    return status;
}
