/* SPDX-License-Identifier: MIT
 *
 * The agreement on the ranks that go on after a loss. All ranks share one table.
 *
 *   came       this rank's work has ended, and it waits here
 *   quiet      this rank has left the job, and its work has ended
 *   proposed   the ranks that had come, at a moment when all others were gone
 *   decided    the rank whose proposal counts; or the rank that gave up, and why
 *
 * - A rank is gone if its process has ended or if it is quiet. Both are final.
 * - Each rank proposes once at most, on its own board. It then tries to store its
 *   number in `decided`, which a compare-and-swap changes once. So all ranks read
 *   the same proposal, whichever of them die meanwhile.
 * - A rank that stops waiting decides that, too, or follows an earlier decision.
 * - A survivor that dies after the decision is the first loss in the new table.
 */
#include "config.h"

#include "control/internal.h"

#include <stdio.h>
#include <string.h>

/* A decision to give up: the status in the high half, the rank + 1 in the low
 * half. The high half of the other decisions is 0. */
static unsigned make_decision(int rank, iris_status_t status)
{
    return ((unsigned)-(int)status << 16) | ((unsigned)rank + 1);
}

/* One rank in the agreement. */
struct meeting {
    struct iris_control *control;
    int absent; /* the first rank that has not come and is not gone; -1: none */
};

static struct iris_board *pick_board(const struct iris_control *control,
                                     int rank)
{
    return iris_i_records_board(control->records, rank);
}

static void store_decision(struct iris_control *control, iris_status_t status)
{
    unsigned nothing = 0;

    atomic_compare_exchange_strong(&control->records->header->decided, &nothing,
                                   make_decision(control->rank, status));
}

/* A rank that comes is alive then. So if it is gone first, it has not come, or it
 * has died since. */
static int list_survivors(struct iris_control *control,
                          uint64_t survivors[IRIS_SURVIVOR_WORDS])
{
    memset(survivors, 0, IRIS_SURVIVOR_WORDS * sizeof survivors[0]);
    for (int rank = 0; rank < control->num_ranks; rank++) {
        struct iris_board *board = pick_board(control, rank);

        if (rank != control->rank && (!iris_i_control_alive(control, rank) ||
                                      atomic_load(&board->quiet) != 0)) {
            continue;
        }
        if (atomic_load(&board->came) == 0) {
            return rank;
        }
        survivors[rank / 64] |= (uint64_t)1 << rank % 64;
    }
    return -1;
}

/* Whether the ranks have decided. Proposes if that is possible. */
static int has_decision(struct meeting *meeting)
{
    struct iris_control *control = meeting->control;
    uint64_t survivors[IRIS_SURVIVOR_WORDS];

    if (atomic_load(&control->records->header->decided) == 0) {
        meeting->absent = list_survivors(control, survivors);
        if (meeting->absent < 0) {
            memcpy(pick_board(control, control->rank)->proposed, survivors,
                   sizeof survivors);
            store_decision(control, IRIS_OK);
        }
    }
    return atomic_load(&control->records->header->decided) != 0;
}

static void name_absent(void *arg, char *text, size_t bytes)
{
    const struct meeting *meeting = arg;

    snprintf(text, bytes, "rank %d, which has not called iris_shrink",
             meeting->absent);
}

static iris_status_t fail_absent(const struct iris_wait *wait)
{
    const struct meeting *meeting = wait->arg;

    return iris_i_fail(meeting->control->log, IRIS_ERR_TIMEOUT,
                       "rank %d has not come to iris_shrink within %lld ms "
                       "(IRIS_TIMEOUT_MS); every living rank has to call it",
                       meeting->absent,
                       (long long)meeting->control->timeout_ms);
}

static iris_status_t read_decision(const struct iris_control *control,
                                   uint64_t *survivors)
{
    unsigned decided = atomic_load(&control->records->header->decided);
    iris_status_t status = (iris_status_t)(-(int)(decided >> 16));
    int rank = (int)(decided & 0xffff) - 1;

    if (status != IRIS_OK) {
        return iris_i_fail(control->log, status,
                           "rank %d gave up iris_shrink (%s); finalize", rank,
                           iris_status_text(status));
    }
    memcpy(survivors, pick_board(control, rank)->proposed,
           IRIS_SURVIVOR_WORDS * sizeof survivors[0]);
    return iris_i_has_survived(survivors, control->rank)
               ? IRIS_OK
               : iris_i_fail(control->log, IRIS_ERR_SYSTEM,
                             "the other ranks took rank %d for dead, and went "
                             "on without it; finalize",
                             control->rank);
}

iris_status_t
iris_i_control_agree_on_survivors(struct iris_control *control,
                                  uint64_t survivors[IRIS_SURVIVOR_WORDS])
{
    static const struct iris_wait_type for_survivors = {
        .pace = IRIS_PACE_MOMENT, .describe = name_absent, .late = fail_absent};
    struct iris_waiter waiter = iris_i_peers_waiter(control);
    struct meeting meeting = {.control = control, .absent = -1};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    waiter.fate = NULL; /* ranks are lost already */
    atomic_store(&pick_board(control, control->rank)->came, 1);
    iris_i_wait_begin(&wait, &for_survivors, &waiter, "iris_shrink", &meeting);
    while (status == IRIS_OK && !has_decision(&meeting)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    if (status != IRIS_OK) {
        store_decision(control, status);
        if (atomic_load(&control->records->header->decided) ==
            make_decision(control->rank, status)) {
            return status;
        }
    }
    return read_decision(control, survivors);
}

void iris_i_control_revoke(struct iris_control *control)
{
    unsigned nobody = 0;
    uint64_t held = 1; /* the place of all ranks */

    atomic_compare_exchange_strong(&control->records->header->revoked, &nobody,
                                   (unsigned)control->rank + 1);
    for (int rank = 0; rank < control->num_ranks; rank++) {
        held |= atomic_load(&pick_board(control, rank)->holds);
    }
    for (int place = 0; place < IRIS_PLACES; place++) {
        if (held >> place & 1) {
            iris_i_place_wake(iris_i_segment_place(control->records, place));
        }
    }
}

void iris_i_control_show_quiet(struct iris_control *control)
{
    if (control != NULL && control->records != NULL) {
        atomic_store(&pick_board(control, control->rank)->quiet, 1);
    }
}
