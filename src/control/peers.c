/* SPDX-License-Identifier: MIT
 *
 * Peer liveness, from the processes' states in the control plane and from the
 * ranks' published states.
 */
#include "config.h"

#include "control/internal.h"

#include <stdio.h>
#include <string.h>

enum fate { PRESENT, LEFT, DIED };

static enum fate fate_of(struct iris_control *control, int rank)
{
    /* The order matters: a rank may finalize and then end. */
    int alive = iris_i_control_alive(control, rank);
    struct iris_shown shown;

    iris_i_control_read(control, rank, IRIS_SHOW_STATE, &shown);
    if (shown.state == IRIS_RANK_LEFT) {
        return LEFT;
    }
    return !alive && shown.state != IRIS_RANK_FINALIZED ? DIED : PRESENT;
}

int iris_i_peers_interrupted(const struct iris_control *control)
{
    return control->interrupted != NULL &&
           atomic_load_explicit(control->interrupted, memory_order_relaxed);
}

/* The rank whose loss made `rank` leave, followed to its origin. */
static int find_origin(struct iris_control *control, int rank)
{
    for (int hops = 0; hops < control->num_ranks; hops++) {
        struct iris_shown shown;

        iris_i_control_read(control, rank, IRIS_SHOW_STATE, &shown);
        if (shown.blames == 0 || shown.blames > (unsigned)control->num_ranks ||
            fate_of(control, (int)shown.blames - 1) == PRESENT) {
            break;
        }
        rank = (int)shown.blames - 1;
    }
    return rank;
}

/* Whether this rank has lost its way to another one. */
static iris_status_t check_cut(struct iris_control *control)
{
    int rank = atomic_load(&control->cut) - 1, nobody = 0;
    char name[IRIS_RANK_NAME_BYTES];

    if (rank < 0) {
        return IRIS_OK;
    }
    atomic_compare_exchange_strong(&control->lost, &nobody, rank + 1);
    iris_i_control_name(control, rank, name);
    return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                       "this rank cannot reach %s: %s; the job cannot go on: "
                       "finalize and restart it",
                       name, control->cut_why);
}

void iris_i_peers_lose(struct iris_control *control, int rank, const char *why)
{
    struct iris_shown shown = {.state = IRIS_RANK_LEFT,
                               .blames = (unsigned)rank + 1},
                      theirs;
    char name[IRIS_RANK_NAME_BYTES];

    if (control == NULL || atomic_load(&control->cut) != 0) {
        return;
    }
    iris_i_control_read(control, rank, IRIS_SHOW_STATE, &theirs);
    if (theirs.state == IRIS_RANK_FINALIZED) {
        return;
    }
    iris_i_control_name(control, rank, name);
    snprintf(control->cut_why, sizeof control->cut_why, "%s", why);
    atomic_store(&control->cut, rank + 1);
    iris_i_warning(control->log, "cannot reach %s: %s", name, why);
    snprintf(shown.reason, sizeof shown.reason, "it cannot reach %s: %s", name,
             why);
    iris_i_control_publish(control, IRIS_SHOW_STATE | IRIS_SHOW_REASON, &shown);
}

/* "9 to 15": the ranks that a leader's death cuts off from this one. */
static void list_far(const struct iris_control *control, int leader, char *text,
                     size_t bytes)
{
    int own = control->peers[control->rank].leader, first = -1;
    size_t length = 0;

    /* With the own leader all other nodes are lost. */
    text[0] = '\0';
    for (int rank = 0; rank <= control->num_ranks; rank++) {
        int is_cut = rank < control->num_ranks && rank != leader &&
                     (leader == own ? control->peers[rank].is_far
                                    : control->peers[rank].leader == leader);

        if (is_cut && first < 0) {
            first = rank;
        }
        if (is_cut || first < 0) {
            continue;
        }
        if (length + 24 < bytes) {
            length +=
                (size_t)snprintf(text + length, bytes - length,
                                 first == rank - 1 ? "%s%d" : "%s%d to %d",
                                 length == 0 ? "" : ", ", first, rank - 1);
        }
        first = -1;
    }
}

/* The loss of a rank of another node, which may be that of a leader. */
static iris_status_t fail_died(struct iris_control *control, int rank)
{
    int leader = iris_i_control_find_cut(control, rank);
    char name[IRIS_RANK_NAME_BYTES], far[100];

    if (leader < 0) {
        iris_i_control_name(control, rank, name);
        return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                           "%s died; finalize and restart the job, or go on "
                           "without it by iris_shrink",
                           name);
    }
    iris_i_control_name(control, leader, name);
    list_far(control, leader, far, sizeof far);
    return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                       "%s, leader of its node, died: ranks %s cannot be "
                       "reached; the job cannot go on: finalize and restart it",
                       name, far);
}

iris_status_t iris_i_peers_check(struct iris_control *control, int rank)
{
    enum fate fate = fate_of(control, rank);
    char reason[IRIS_REASON_BYTES + 1], name[IRIS_RANK_NAME_BYTES];
    struct iris_shown shown;
    int nobody = 0, cut_by;

    if (fate == PRESENT) {
        return check_cut(control);
    }
    if (fate == LEFT) {
        rank = find_origin(control, rank);
        fate = fate_of(control, rank);
    }
    cut_by = fate == DIED ? iris_i_control_find_cut(control, rank) : -1;
    atomic_compare_exchange_strong(&control->lost, &nobody,
                                   (cut_by < 0 ? rank : cut_by) + 1);
    iris_i_peers_read_reason(control, rank, reason);
    iris_i_control_name(control, rank, name);
    iris_i_control_read(control, rank, IRIS_SHOW_STATE, &shown);
    return fate != LEFT ? fail_died(control, rank)
                        : iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                                      reason[0] != '\0'
                                          ? "%s left the job: %s; see its own "
                                            "output, then restart the job"
                                      : shown.interrupted
                                          ? "%s was interrupted "
                                            "(iris_interrupt) and left the "
                                            "job; restart it%s"
                                          : "%s left the job after an error; "
                                            "see its own message, then restart "
                                            "the job%s",
                                      name, reason);
}

int iris_i_peers_find_stopped(const struct iris_control *control,
                              const char **why_p)
{
    int rank = iris_i_control_find_stopped(control), is_stopped = 1;

    if (rank < 0 && control->records != NULL) {
        rank = iris_i_records_find_silent(control->records->fd,
                                          control->num_ranks, &is_stopped);
    }
    if (rank >= 0 && !is_stopped) { /* a leader brings its node's words */
        rank = control->peers[rank].leader;
    }
    *why_p = is_stopped ? "is stopped by a signal or a debugger"
                        : "does not answer; is it stopped?";
    return rank;
}

void iris_i_peers_name_stopped(struct iris_control *control)
{
    const char *why;
    int rank = iris_i_peers_find_stopped(control, &why);
    char message[IRIS_MESSAGE_BYTES], name[IRIS_RANK_NAME_BYTES];

    if (rank < 0 || strstr(iris_last_error(), "stopped") != NULL) {
        return;
    }
    iris_i_control_name(control, rank, name);
    iris_i_warning(control->log, "%s %s", name, why);
    snprintf(message, sizeof message, "%.900s; %s %s", iris_last_error(), name,
             why);
    (void)iris_i_fail_again(IRIS_ERR_TIMEOUT, message);
}

/* The news of a death may come here by another way than that of the group's
 * failure, and later. */
iris_status_t iris_i_peers_fail_ended(struct iris_control *control, int rank)
{
    char name[IRIS_RANK_NAME_BYTES];
    struct iris_shown shown;
    int nobody = 0;

    iris_i_control_read(control, rank, IRIS_SHOW_STATE, &shown);
    iris_i_control_name(control, rank, name);
    atomic_compare_exchange_strong(&control->lost, &nobody, rank + 1);
    return shown.state == IRIS_RANK_FINALIZED
               ? iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                             "%s has finalized this context and ended; "
                             "no call may count on it",
                             name)
               : fail_died(control, rank);
}

int iris_i_peers_lost(const struct iris_control *control)
{
    return control == NULL ? -1 : atomic_load(&control->lost) - 1;
}

int iris_i_peers_are_revoked(const struct iris_control *control)
{
    return control->records != NULL &&
           atomic_load_explicit(&control->records->header->revoked,
                                memory_order_acquire) != 0;
}

static iris_status_t check_revoked(const struct iris_control *control)
{
    return !iris_i_peers_are_revoked(control)
               ? IRIS_OK
               : iris_i_fail(
                     control->log, IRIS_ERR_REVOKED,
                     "rank %d revoked the job (iris_revoke or "
                     "iris_shrink); call iris_shrink to go on, or "
                     "finalize",
                     (int)atomic_load(&control->records->header->revoked) - 1);
}

iris_status_t iris_i_peers_check_all(struct iris_control *control)
{
    if (control == NULL) {
        return IRIS_OK;
    }
    if (iris_i_peers_interrupted(control)) {
        return iris_i_fail(control->log, IRIS_ERR_INTERRUPTED,
                           "rank %d was interrupted (iris_interrupt); only "
                           "iris_finalize may follow",
                           control->rank);
    }
    for (int rank = 0; rank < control->num_ranks; rank++) {
        iris_status_t status =
            rank == control->rank ? IRIS_OK : iris_i_peers_check(control, rank);

        if (status != IRIS_OK) {
            return status;
        }
    }
    return check_revoked(control);
}

void iris_i_peers_read_reason(struct iris_control *control, int rank,
                              char reason[IRIS_REASON_BYTES + 1])
{
    struct iris_shown shown;

    iris_i_control_read(control, rank, IRIS_SHOW_REASON, &shown);
    memcpy(reason, shown.reason, sizeof shown.reason);
    for (char *next = reason; *next != '\0'; next++) {
        if ((unsigned char)*next < ' ' || *next == 0x7f) {
            *next = ' ';
        }
    }
}

iris_status_t iris_i_peers_check_leaving(struct iris_control *control, int rank,
                                         const char *call)
{
    char reason[IRIS_REASON_BYTES + 1], name[IRIS_RANK_NAME_BYTES];

    iris_i_peers_read_reason(control, rank, reason);
    iris_i_control_name(control, rank, name);
    return reason[0] == '\0'
               ? IRIS_OK
               : iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                             "%s left the job: %s; this rank "
                             "called %s, which every member has to make",
                             name, reason, call);
}

void iris_i_peers_write_reason(struct iris_control *control, const char *reason)
{
    if (control != NULL) {
        snprintf(control->own.reason, sizeof control->own.reason, "%s", reason);
        iris_i_control_publish(control, IRIS_SHOW_REASON, &control->own);
    }
}

void iris_i_peers_leave(struct iris_control *control, const char *message)
{
    const char *after = message[0] == '[' ? strstr(message, "] ") : NULL;

    if (control != NULL && control->own.reason[0] == '\0' &&
        !iris_i_peers_interrupted(control)) {
        iris_i_peers_write_reason(control, after != NULL ? after + 2 : message);
    }
    iris_i_peers_set_state(control, IRIS_RANK_LEFT);
}

void iris_i_peers_set_state(struct iris_control *control,
                            enum iris_rank_state state)
{
    if (control == NULL ||
        (state == IRIS_RANK_RUNNING && atomic_load(&control->cut) != 0)) {
        return; /* it has left already */
    }
    control->own.interrupted = (unsigned)iris_i_peers_interrupted(control);
    control->own.blames = (unsigned)(iris_i_peers_lost(control) + 1);
    control->own.state = state;
    iris_i_control_publish(control, IRIS_SHOW_STATE, &control->own);
}

static iris_status_t peers_fate(void *arg)
{
    return iris_i_peers_check_all(arg);
}

struct iris_waiter iris_i_peers_waiter(struct iris_control *control)
{
    if (control == NULL) {
        return (struct iris_waiter){.log = NULL};
    }
    return (struct iris_waiter){.log = control->log,
                                .timeout_ms = control->timeout_ms,
                                .warn_ms = control->warn_ms,
                                .by_ns = control->by_ns,
                                .interrupted = control->interrupted,
                                .fate = peers_fate,
                                .arg = control};
}
