/* SPDX-License-Identifier: MIT
 *
 * Agreement of a group's ranks, over the control plane.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "control/records.h"

#include <stdio.h>
#include <string.h>

/* The state of a rank's wait. */
struct waiting {
    struct iris_members *members;
    const struct iris_call *call;
    int num_come; /* number of leading members that are known to have posted */
};

/* Every sleep ends with a check of all members, on every member. So a rank
 * sleeps one pace longer for each group of this many members. */
#define MEMBERS_PER_PACE 64

/* ---- Posting ---- */

/* Names are string constants of the calls' types, so a pointer identifies a
 * name. */
static unsigned show_call(struct iris_control *control, const char *name)
{
    size_t length;

    if (control->called == name) {
        return 0;
    }
    length = strnlen(name, sizeof control->own.name - 1);
    control->called = name;
    memcpy(control->own.name, name, length);
    control->own.name[length] = '\0';
    return IRIS_SHOW_NAME;
}

static void show_busy(struct iris_control *control,
                      const struct iris_call_type *type, unsigned also)
{
    control->own.busy = 1;
    control->ops->publish(
        control, show_call(control, type->name) | IRIS_SHOW_BUSY | also,
        &control->own);
}

void iris_i_agree_begin(struct iris_control *control,
                        const struct iris_call_type *type)
{
    show_busy(control, type, 0);
}

void iris_i_agree_reset(struct iris_control *control)
{
    control->own.calls = 0;
    control->ops->publish(control, show_call(control, "") | IRIS_SHOW_CALLS,
                          &control->own);
}

static void post(struct iris_members *members, const struct iris_call *call)
{
    struct iris_control *control = members->control;
    struct iris_part parts[2];
    struct iris_post_id id;

    members->seq++;
    id = iris_i_posts_id(members, control->rank);
    members->draft = iris_i_call_draft(&members->drafts, call);
    parts[0] = (struct iris_part){members->draft->data, members->draft->bytes};
    parts[1] = (struct iris_part){call->payload, call->payload_bytes};
    if (call->status != IRIS_OK) {
        parts[1].data = iris_last_error();
        parts[1].bytes = strlen(iris_last_error());
    }
    control->own.calls++;
    show_busy(control, call->type, IRIS_SHOW_CALLS);
    control->ops->post(control, &id, parts, members->count);
}

/* The first member that has not posted, or -1. Members that have posted are not
 * checked again. */
static int first_absent(struct waiting *waiting)
{
    const struct iris_members *members = waiting->members;
    int i = waiting->num_come;

    while (i < members->count &&
           iris_i_agree_has_come(members, members->ranks[i])) {
        i++;
    }
    waiting->num_come = i;
    return i < members->count ? members->ranks[i] : -1;
}

static int are_all_here(void *arg)
{
    return first_absent(arg) < 0;
}

/* ---- Giving up ---- */

/* The rank on which a member of the group gave up, or -1. */
static int given_up_on(const struct iris_members *members,
                       iris_status_t *status_p)
{
    unsigned mark =
        members->control->ops->fail(members->control, members->place, 0);

    *status_p = (iris_status_t)(-(int)(mark >> 16));
    return (int)(mark & 0xffff) - 1;
}

/* Once one member has given up, the group's posts no longer match. */
static iris_status_t check_gave_up(const struct iris_members *members)
{
    struct iris_control *control = members->control;
    iris_status_t status;
    int rank = given_up_on(members, &status);

    if (rank < 0) {
        return IRIS_OK;
    }
    if (status == IRIS_ERR_PEER_LOST && rank < control->num_ranks) {
        return iris_i_peers_check(control, rank) != IRIS_OK
                   ? status
                   : iris_i_peers_fail_ended(control, rank);
    }
    if (status == IRIS_ERR_INTERRUPTED) {
        return iris_i_fail(control->log, status,
                           "rank %d%s was interrupted (iris_interrupt) in a "
                           "collective call of this group; the group cannot go "
                           "on: finalize",
                           rank, rank == control->rank ? ", this one," : "");
    }
    if (status == IRIS_ERR_MISMATCH) {
        return iris_i_circle_told(members, rank);
    }
    return iris_i_fail(control->log, status,
                       "rank %d%s came too late to an earlier collective call "
                       "of this group (%s); the group cannot go on: finalize "
                       "and restart the job",
                       rank, rank == control->rank ? ", this one," : "",
                       iris_status_text(status));
}

/* Marks the group as unusable, because of `rank`. */
static iris_status_t give_up(const struct iris_members *members, int rank,
                             iris_status_t status)
{
    members->control->ops->fail(members->control, members->place,
                                ((unsigned)-status << 16) |
                                    ((unsigned)rank + 1));
    return status;
}

/* Text such as "after 3 collective calls it is busy in iris_barrier". */
static void describe_absent(struct iris_control *control, int rank, char *text,
                            size_t bytes)
{
    struct iris_shown late;

    control->ops->read(control, rank,
                       IRIS_SHOW_BUSY | IRIS_SHOW_STREAMS | IRIS_SHOW_CALLS |
                           IRIS_SHOW_NAME,
                       &late);
    snprintf(text, bytes, "after %llu collective calls it is %s %s%s",
             late.calls,
             late.busy      ? "busy in"
             : late.streams ? "waiting for a stream since its"
                            : "outside the library since its",
             late.name[0] != '\0' ? late.name : "start",
             late.busy && late.streams ? ", waiting for a stream" : "");
}

static iris_status_t fail_late(const struct waiting *waiting, int rank)
{
    struct iris_control *control = waiting->members->control;
    int stopped = iris_i_mail_find_stopped(control->mail);
    char what[200], name[IRIS_RANK_NAME_BYTES];
    struct iris_shown late;

    control->ops->read(control, rank, IRIS_SHOW_STREAMS, &late);
    describe_absent(control, rank, what, sizeof what);
    if (stopped >= 0) { /* maybe the one that connects the others */
        control->ops->name(control, stopped, name);
        return iris_i_fail(
            control->log, IRIS_ERR_TIMEOUT,
            "rank %d has not come to %s within %lld ms (IRIS_TIMEOUT_MS): %s; "
            "%s is stopped by a signal or a debugger",
            rank, waiting->call->type->name, (long long)control->timeout_ms,
            what, name);
    }
    return iris_i_fail(
        control->log, IRIS_ERR_TIMEOUT,
        "rank %d has not come to %s within %lld ms (IRIS_TIMEOUT_MS): %s; %s",
        rank, waiting->call->type->name, (long long)control->timeout_ms, what,
        late.streams ? "find out why its kernels wait (IRIS_DEVICE_TIMEOUT_MS "
                       "makes them report)"
                     : "does every rank make this call?");
}

/* 1 if a rank can no longer post. A rank that finalized is not lost, unless its
 * process ended before it posted. */
static int is_lost(const struct iris_members *members, int rank)
{
    struct iris_control *control = members->control;

    return iris_i_peers_check(control, rank) != IRIS_OK ||
           (!control->ops->alive(control, rank) &&
            !iris_i_agree_has_come(members, rank) &&
            iris_i_peers_fail_ended(control, rank) != IRIS_OK);
}

/* 1 if a member is lost; this thread's message names it. A member that was lost
 * after its post counts, too: no rank should go on waiting for the others. But
 * if all have posted, the call is complete. */
static int is_one_lost(struct waiting *waiting)
{
    const struct iris_members *members = waiting->members;
    struct iris_control *control = members->control;

    for (int i = 0; i < members->count; i++) {
        if (members->ranks[i] != control->rank &&
            is_lost(members, members->ranks[i])) {
            return first_absent(waiting) >= 0;
        }
    }
    return 0;
}

/* ---- Waiting ---- */

/* The reason to stop waiting, if there is one. */
static iris_status_t fate(void *arg)
{
    struct waiting *waiting = arg;
    const struct iris_members *members = waiting->members;
    struct iris_control *control = members->control;
    int lost = is_one_lost(waiting), late, absent;
    iris_status_t status;

    /* Checked after the members: one may have left because it gave up. */
    late = given_up_on(members, &status);
    if (late >= 0 && late < control->num_ranks && status == IRIS_ERR_TIMEOUT &&
        !iris_i_agree_has_come(members, late)) {
        return fail_late(waiting, late);
    }
    if (late >= 0) {
        return check_gave_up(members);
    }
    if (lost) {
        return give_up(members, iris_i_peers_lost(control), IRIS_ERR_PEER_LOST);
    }
    absent = first_absent(waiting);
    if (absent < 0) {
        return IRIS_OK;
    }
    status = iris_i_circle_check(members, waiting->call->type->name, absent);
    if (status == IRIS_OK && waiting->call->keep_waiting != NULL) {
        status = waiting->call->keep_waiting(waiting->call->arg);
        if (status != IRIS_OK) {
            return give_up(members, absent, status);
        }
    }
    return status;
}

static void describe(void *arg, char *text, size_t bytes)
{
    struct waiting *waiting = arg;
    int absent = first_absent(waiting);
    char what[200];

    if (absent >= 0) {
        describe_absent(waiting->members->control, absent, what, sizeof what);
        snprintf(text, bytes, "rank %d: %s", absent, what);
    }
}

static iris_status_t late(const struct iris_wait *wait)
{
    struct waiting *waiting = wait->arg;
    int absent = first_absent(waiting);

    return absent < 0
               ? IRIS_OK
               : give_up(waiting->members, absent, fail_late(waiting, absent));
}

static void sleep_for(void *arg, int64_t ns)
{
    struct iris_members *members = ((struct waiting *)arg)->members;
    int paces = 1 + members->count / MEMBERS_PER_PACE;

    members->control->ops->wait(members->control, members->place, ns * paces,
                                are_all_here, arg);
}

static void list_absent(const struct iris_members *members,
                        struct iris_record_wait *noted)
{
    for (int i = 0; i < members->count; i++) {
        if (iris_i_agree_has_come(members, members->ranks[i])) {
            continue;
        }
        if (noted->num_expected < IRIS_RECORD_EXPECTED) {
            noted->expected[noted->num_expected] = (int16_t)members->ranks[i];
        }
        noted->num_expected++;
    }
}

static void note(struct iris_wait *wait, enum iris_wait_phase phase)
{
    struct iris_members *members = ((struct waiting *)wait->arg)->members;
    struct iris_record *record = members->control->record;
    struct iris_record_wait noted = {
        .kind = IRIS_WAIT_AGREEMENT,
        .begin_ns = wait->begin_ns,
        .update_ns = wait->now_ns,
        .offset = IRIS_RECORD_NOWHERE,
        .value = members->place,
        .seen = (int64_t)members->seq,
        .word_rank = -1,
        .group = members->place,
    };

    if (phase != IRIS_WAIT_GOES_ON) {
        iris_i_record_wait_over(record, wait->slot,
                                phase == IRIS_WAIT_WAS_ENDED);
        return;
    }
    list_absent(members, &noted);
    iris_i_record_members(&noted, members->ranks, members->count);
    snprintf(noted.name, sizeof noted.name, "%s", wait->what);
    wait->slot = iris_i_record_wait(record, wait->slot, &noted);
}

static iris_status_t wait_for_all(struct iris_members *members,
                                  const struct iris_call *call)
{
    static const struct iris_wait_type for_members = {.pace = IRIS_PACE_AGREE,
                                                      .fate = fate,
                                                      .describe = describe,
                                                      .late = late,
                                                      .sleep = sleep_for,
                                                      .note = note};
    struct iris_waiter waiter = iris_i_peers_waiter(members->control);
    struct waiting waiting = {members, call, 0};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_members, &waiter, call->type->name, &waiting);
    while (status == IRIS_OK && first_absent(&waiting) >= 0) {
        status = iris_i_wait_tick(&wait);
    }
    /* Peers know of it, even if the others have posted since. */
    if (wait.by_fate) {
        status = wait.ending;
    }
    if (wait.begin_ns != 0) {
        iris_i_circle_leave(members);
    }
    iris_i_wait_end(&wait, status);
    if (status == IRIS_ERR_INTERRUPTED && !wait.by_fate) {
        (void)give_up(members, members->control->rank, status);
        status = check_gave_up(members);
    }
    return status;
}

/* ---- The verdict ---- */

/* The same text on every rank: each rank's call, or the rank that leaves and
 * its reason. */
static iris_status_t fail_mismatch(const struct iris_members *members)
{
    struct iris_control *control = members->control;
    struct iris_posted_call own, theirs, before;
    char text[640] = "", call[128];
    size_t length = 0;

    (void)iris_i_posts_take_apart(members, control->rank, &own);
    iris_i_call_describe(&own, call, sizeof call);
    for (int i = 0; i < members->count; i++) {
        (void)iris_i_posts_take_apart(members, members->ranks[i], &theirs);
        if (!iris_i_call_is_same(&own, &theirs) &&
            iris_i_peers_check_leaving(control, members->ranks[i], call)) {
            return IRIS_ERR_PEER_LOST;
        }
    }
    for (int i = 0; i < members->count && length + 160 < sizeof text; i++) {
        int rank = members->ranks[i];

        before = theirs;
        (void)iris_i_posts_take_apart(members, rank, &theirs);
        if (i > 0 && iris_i_call_is_same(&theirs, &before)) {
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       ", rank %d the same", rank);
            continue;
        }
        iris_i_call_describe(&theirs, call, sizeof call);
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%srank %d called %s", i == 0 ? "" : ", ",
                                   rank, call);
    }
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "collective call %llu of the group differs: %s; make "
                       "the same calls in the same order on every rank",
                       (unsigned long long)members->seq, text);
}

/* A rank whose own preparation failed posts the reason as its payload. */
static iris_status_t fail_of(const struct iris_members *members, int rank,
                             const struct iris_posted_call *post,
                             size_t payload_at)
{
    char why[IRIS_MESSAGE_BYTES];
    size_t all =
        iris_i_posts_collect(members, rank, payload_at, why, sizeof why - 1);
    size_t length = all > payload_at ? all - payload_at : 0;

    why[length < sizeof why ? length : sizeof why - 1] = '\0';
    return iris_i_fail(members->control->log, (iris_status_t)post->head.status,
                       "rank %d failed in %.*s: %.700s", rank,
                       (int)strcspn(post->signature, "("), post->signature,
                       why);
}

/* Whether all posts equal this rank's call, byte for byte. */
static int all_agree(const struct iris_members *members)
{
    unsigned char theirs[IRIS_DRAFT_BYTES];

    for (int i = 0; i < members->count; i++) {
        if (members->ranks[i] != members->control->rank &&
            (iris_i_posts_collect(members, members->ranks[i], 0, theirs,
                                  members->draft->bytes) <
                 members->draft->bytes ||
             memcmp(theirs, members->draft->data, members->draft->bytes) !=
                 0)) {
            return 0;
        }
    }
    return 1;
}

/* The verdict depends only on the posts, and on the reasons that leaving
 * members gave before their posts. So every rank gets the same verdict. */
static iris_status_t judge(const struct iris_members *members,
                           const struct iris_call *call)
{
    struct iris_posted_call theirs;

    if (call->status == IRIS_OK && all_agree(members)) {
        return IRIS_OK;
    }
    for (int i = 0; i < members->count; i++) {
        size_t payload_at =
            iris_i_posts_take_apart(members, members->ranks[i], &theirs);

        if (theirs.head.status != IRIS_OK) {
            return fail_of(members, members->ranks[i], &theirs, payload_at);
        }
    }
    return fail_mismatch(members);
}

iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call)
{
    struct iris_control *control = members->control;
    char own_message[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    /* The caller needs to know of this rank's own failure. */
    snprintf(own_message, sizeof own_message, "%s", iris_last_error());
    if (given_up_on(members, &status) >= 0) {
        status = check_gave_up(members);
    } else {
        post(members, call);
        status = wait_for_all(members, call);
        if (status == IRIS_OK) {
            status = judge(members, call);
        }
        control->own.busy = 0;
        control->ops->publish(control, IRIS_SHOW_BUSY, &control->own);
    }
    return call->status == IRIS_OK
               ? status
               : iris_i_fail_again(call->status, own_message);
}
