/* SPDX-License-Identifier: MIT
 *
 * Agreement of a group's ranks, over the control plane.
 */
#include "config.h"

#include "control/agree.h"

#include "base/clock.h"
#include "control/circle.h"
#include "control/peers.h"
#include "control/record.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* How a waiting rank spends its time: rounds of polling, in which it gives the
 * core away, then sleep; peers are checked on whenever a sleep ends. */
#define POLL_ROUNDS 16 /* of them before it does */
#define SPIN_ROUNDS 80
#define SLEEP_NS (10 * 1000000)

/* One wait under way. */
struct wait {
    struct iris_members *members;
    const struct iris_call *call;
    int64_t begin;
    int64_t deadline;
    int64_t warn_at; /* INT64_MAX: not any more */
    int note;        /* its slot in the flight record; -1: none */
};

/* ---- Describing calls ---- */

/* "iris_malloc(bytes, alignment, offset)"; fields of kind TEXT end in '$'. */
static void sign(const struct iris_call_type *type,
                 char signature[IRIS_SIGNATURE_BYTES])
{
    size_t length =
        (size_t)snprintf(signature, IRIS_SIGNATURE_BYTES, "%s(", type->name);

    for (int i = 0; i < IRIS_CALL_FIELDS && type->fields[i].name != NULL &&
                    length < IRIS_SIGNATURE_BYTES;
         i++) {
        length += (size_t)snprintf(
            signature + length, IRIS_SIGNATURE_BYTES - length, "%s%s%s",
            i == 0 ? "" : ", ", type->fields[i].name,
            type->fields[i].kind == IRIS_FIELD_TEXT ? "$" : "");
    }
}

/* A peer's post as people read it: "iris_malloc(bytes 64, alignment 256)". */
static void describe(const struct iris_post *post, char *text, size_t bytes)
{
    const char *next = post->signature;
    const char *end = next + strnlen(next, sizeof post->signature);
    size_t length = strcspn(next, "(");
    int field = 0;

    snprintf(text, bytes, "%.*s(", (int)length, next);
    next += length + (next + length < end);
    while (next < end && field < IRIS_CALL_FIELDS) {
        int name = (int)strcspn(next, ",$");
        size_t at = strlen(text);

        if (next[name] == '$') {
            snprintf(text + at, bytes - at, "%s%.*s %.8s", field ? ", " : "",
                     name, next, (const char *)&post->fields[field]);
        } else {
            snprintf(text + at, bytes - at, "%s%.*s %lld", field ? ", " : "",
                     name, next, (long long)post->fields[field]);
        }
        next += strcspn(next, ",");
        next += strspn(next, ", ");
        field++;
    }
    length = strlen(text);
    snprintf(text + length, bytes - length, ")");
}

/* ---- Posting ---- */

static struct iris_board *own_board(struct iris_control *control)
{
    return control->ops->board(control, control->rank);
}

void iris_i_agree_begin(struct iris_control *control,
                        const struct iris_call_type *type)
{
    struct iris_board *board = own_board(control);

    iris_i_peers_write_call(board, type->name);
    atomic_store_explicit(&board->busy, 1, memory_order_relaxed);
}

void iris_i_agree_reset(struct iris_control *control)
{
    struct iris_board *board = own_board(control);

    iris_i_peers_write_call(board, "");
    atomic_store_explicit(&board->calls, 0, memory_order_relaxed);
}

static void post(struct iris_members *members, const struct iris_call *call)
{
    struct iris_control *control = members->control;
    const struct iris_call_type **drafted;
    struct iris_post *own;

    members->seq++;
    drafted = &members->drafted[members->seq % 2];
    own = control->ops->draft(control, members->place, members->seq);
    if (*drafted != call->type) { /* a call is mostly made over and over */
        sign(call->type, own->signature);
        *drafted = call->type;
    }
    own->status = call->status;
    /* Peers have what is not written in their caches yet. */
    if (memcmp(own->fields, call->fields, sizeof own->fields) != 0) {
        memcpy(own->fields, call->fields, sizeof own->fields);
    }
    own->payload_bytes = 0;
    if (call->status != IRIS_OK) {
        snprintf((char *)own->payload, IRIS_MESSAGE_BYTES, "%s",
                 iris_last_error());
    } else if (call->payload_bytes != 0) {
        memcpy(own->payload, call->payload, call->payload_bytes);
        own->payload_bytes = (uint32_t)call->payload_bytes;
    }
    iris_i_agree_begin(control, call->type);
    atomic_fetch_add_explicit(&own_board(control)->calls, 1,
                              memory_order_relaxed);
    control->ops->post(control, members->place, members->seq, members->count);
}

static const struct iris_post *peek(const struct iris_members *members,
                                    int rank)
{
    return members->control->ops->peek(members->control, members->place, rank,
                                       members->seq);
}

/* The first member that has not come, or -1. */
static int first_absent(const struct iris_members *members)
{
    for (int i = 0; i < members->count; i++) {
        if (peek(members, members->ranks[i]) == NULL) {
            return members->ranks[i];
        }
    }
    return -1;
}

static int are_all_here(void *arg)
{
    return first_absent(arg) < 0;
}

/* ---- Giving up ---- */

/* The rank a member of the group gave up on, or -1. */
static int given_up_on(const struct iris_members *members,
                       iris_status_t *status_p)
{
    unsigned mark =
        members->control->ops->fail(members->control, members->place, 0);

    *status_p = (iris_status_t)(-(int)(mark >> 16));
    return (int)(mark & 0xffff) - 1;
}

/* Once one member has given up, the group's posts no longer pair up. */
static iris_status_t check_gave_up(const struct iris_members *members)
{
    struct iris_control *control = members->control;
    iris_status_t status;
    int rank = given_up_on(members, &status);

    if (rank < 0) {
        return IRIS_OK;
    }
    if (status == IRIS_ERR_PEER_LOST && rank < control->num_ranks &&
        iris_i_peers_check(control, rank) != IRIS_OK) {
        return status;
    }
    if (status == IRIS_ERR_INTERRUPTED) {
        return iris_i_fail(control->log, status,
                           "rank %d%s was interrupted (iris_interrupt) in a "
                           "collective call of this group; the group cannot go "
                           "on: finalize",
                           rank, rank == control->rank ? ", this one," : "");
    }
    if (status == IRIS_ERR_MISMATCH) {
        return iris_i_fail(control->log, status,
                           "rank %d%s calls, or finalizes its contexts, in "
                           "another order than its peers; make the same calls "
                           "in the same order on every rank",
                           rank, rank == control->rank ? ", this one," : "");
    }
    return iris_i_fail(control->log, status,
                       "rank %d%s came too late to an earlier collective call "
                       "of this group (%s); the group cannot go on: finalize "
                       "and restart the job",
                       rank, rank == control->rank ? ", this one," : "",
                       iris_status_text(status));
}

/* Nobody may use the group any more, on account of `rank`. */
static iris_status_t give_up(const struct iris_members *members, int rank,
                             iris_status_t status)
{
    members->control->ops->fail(members->control, members->place,
                                ((unsigned)-status << 16) |
                                    ((unsigned)rank + 1));
    return status;
}

/* "after 3 collective calls it is busy in iris_barrier". */
static void describe_absent(struct iris_control *control, int rank, char *text,
                            size_t bytes)
{
    const struct iris_board *late = control->ops->board(control, rank);
    int busy = atomic_load_explicit(&late->busy, memory_order_relaxed) != 0;
    int waits = atomic_load_explicit(&late->waiting, memory_order_relaxed) > 0;
    unsigned long long calls =
        atomic_load_explicit(&late->calls, memory_order_relaxed);
    char name[64];

    iris_i_peers_read_call(late, name);
    snprintf(text, bytes, "after %llu collective calls it is %s %s%s", calls,
             busy    ? "busy in"
             : waits ? "waiting for a stream since its"
                     : "outside the library since its",
             name[0] != '\0' ? name : "start",
             busy && waits ? ", waiting for a stream" : "");
}

static iris_status_t fail_late(const struct wait *wait, int rank)
{
    struct iris_control *control = wait->members->control;
    const struct iris_board *late = control->ops->board(control, rank);
    int waits = atomic_load_explicit(&late->waiting, memory_order_relaxed) > 0;
    char what[200];

    describe_absent(control, rank, what, sizeof what);
    return iris_i_fail(
        control->log, IRIS_ERR_TIMEOUT,
        "rank %d has not come to %s within %lld ms (IRIS_TIMEOUT_MS): %s; %s",
        rank, wait->call->type->name, (long long)control->timeout_ms, what,
        waits ? "look at what its kernels wait for (IRIS_DEVICE_TIMEOUT_MS "
                "makes them report)"
              : "does every rank make this call?");
}

/* One line when a wait takes long. */
static void warn_late(struct wait *wait)
{
    struct iris_control *control = wait->members->control;
    int absent = first_absent(wait->members);
    char what[200];

    if (iris_i_now_ns() < wait->warn_at || absent < 0) {
        return;
    }
    wait->warn_at = INT64_MAX;
    describe_absent(control, absent, what, sizeof what);
    iris_i_warning(control->log,
                   "%s has waited %lld s for rank %d: %s; it waits on until "
                   "IRIS_TIMEOUT_MS",
                   wait->call->type->name,
                   (long long)((iris_i_now_ns() - wait->begin) / 1000000000),
                   absent, what);
}

/* 1 if a rank can come no more. One that finalized is no loss, unless its
 * process ended before it came here. */
static int is_lost(const struct iris_members *members, int rank)
{
    struct iris_control *control = members->control;

    return iris_i_peers_check(control, rank) != IRIS_OK ||
           (!control->ops->alive(control, rank) &&
            peek(members, rank) == NULL &&
            iris_i_peers_fail_ended(control, rank) != IRIS_OK);
}

/* 1 if a member is lost, this thread's message saying which. One that has come
 * and is lost since counts, too: nobody should go on waiting for the rest. But
 * if all have come, the call is done. */
static int is_one_lost(const struct iris_members *members)
{
    struct iris_control *control = members->control;

    for (int i = 0; i < members->count; i++) {
        if (members->ranks[i] != control->rank &&
            is_lost(members, members->ranks[i])) {
            return first_absent(members) >= 0;
        }
    }
    return 0;
}

/* Why to stop waiting, if there is a reason. */
static iris_status_t check_on(struct wait *wait)
{
    const struct iris_members *members = wait->members;
    struct iris_control *control = members->control;
    int lost = is_one_lost(members), late, absent;
    iris_status_t status;

    /* After the members were checked: one may have left because it gave up. */
    late = given_up_on(members, &status);
    if (late >= 0 && late < control->num_ranks && status == IRIS_ERR_TIMEOUT &&
        peek(members, late) == NULL) {
        return fail_late(wait, late);
    }
    if (late >= 0) {
        return check_gave_up(members);
    }
    if (lost) {
        return give_up(members, iris_i_peers_lost(control), IRIS_ERR_PEER_LOST);
    }
    absent = first_absent(members);
    if (absent < 0) {
        return IRIS_OK;
    }
    status = iris_i_circle_check(members, wait->call->type->name, absent);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_peers_ask(control);
    if (iris_i_peers_interrupted(control)) {
        (void)give_up(members, control->rank, IRIS_ERR_INTERRUPTED);
        return check_gave_up(members);
    }
    if (wait->call->keep_waiting != NULL) {
        status = wait->call->keep_waiting(wait->call->arg);
        if (status != IRIS_OK) {
            return give_up(members, absent, status);
        }
    }
    warn_late(wait);
    return iris_i_now_ns() < wait->deadline
               ? IRIS_OK
               : give_up(members, absent, fail_late(wait, absent));
}

static iris_status_t wait_for_all(struct iris_members *members,
                                  const struct iris_call *call)
{
    struct iris_control *control = members->control;
    struct wait wait = {.members = members, .call = call, .note = -1};
    iris_status_t status = IRIS_OK;

    for (unsigned round = 0; status == IRIS_OK && first_absent(members) >= 0;
         round++) {
        if (round < SPIN_ROUNDS) {
            if (round >= POLL_ROUNDS) {
                sched_yield();
            }
            continue;
        }
        if (wait.begin == 0) {
            wait.begin = iris_i_now_ns();
            wait.deadline = iris_i_deadline(control->timeout_ms);
            wait.warn_at = iris_i_deadline(control->warn_ms);
        }
        control->ops->wait(control, members->place, SLEEP_NS, are_all_here,
                           members);
        wait.note =
            iris_i_agree_note(members, call->type->name, wait.begin, wait.note);
        status = check_on(&wait);
    }
    if (wait.begin != 0) {
        iris_i_circle_leave(members);
    }
    iris_i_record_wait_over(control->record, wait.note, status != IRIS_OK);
    return status;
}

/* ---- The verdict ---- */

static int same_call(const struct iris_post *a, const struct iris_post *b)
{
    return strncmp(a->signature, b->signature, sizeof a->signature) == 0 &&
           memcmp(a->fields, b->fields, sizeof a->fields) == 0;
}

/* The same on every rank: what each called, or which one leaves and why. */
static iris_status_t fail_mismatch(const struct iris_members *members)
{
    struct iris_control *control = members->control;
    const struct iris_post *own = peek(members, control->rank);
    char text[640] = "", call[128];
    size_t length = 0;

    describe(own, call, sizeof call);
    for (int i = 0; i < members->count; i++) {
        if (!same_call(own, peek(members, members->ranks[i])) &&
            iris_i_peers_check_leaving(control, members->ranks[i], call)) {
            return IRIS_ERR_PEER_LOST;
        }
    }
    for (int i = 0; i < members->count && length + 160 < sizeof text; i++) {
        int rank = members->ranks[i];
        const struct iris_post *post = peek(members, rank);

        if (i > 0 && same_call(post, peek(members, members->ranks[i - 1]))) {
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       ", rank %d the same", rank);
            continue;
        }
        describe(post, call, sizeof call);
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%srank %d called %s", i == 0 ? "" : ", ",
                                   rank, call);
    }
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "collective call %llu of the group differs: %s; make "
                       "the same calls in the same order on every rank",
                       (unsigned long long)members->seq, text);
}

/* The verdict is a function of the posts, and of what leaving members said
 * before theirs, so every rank comes to the same. */
static iris_status_t judge(const struct iris_members *members)
{
    const struct iris_post *own = peek(members, members->control->rank);

    for (int i = 0; i < members->count; i++) {
        int rank = members->ranks[i];
        const struct iris_post *post = peek(members, rank);

        if (post->status != IRIS_OK) {
            return iris_i_fail(members->control->log,
                               (iris_status_t)post->status,
                               "rank %d failed in %.*s: %.700s", rank,
                               (int)strcspn(post->signature, "("),
                               post->signature, (const char *)post->payload);
        }
    }
    for (int i = 0; i < members->count; i++) {
        if (!same_call(own, peek(members, members->ranks[i]))) {
            return fail_mismatch(members);
        }
    }
    return IRIS_OK;
}

iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call)
{
    char own_message[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    /* This rank's own failure is what its caller wants to hear of. */
    snprintf(own_message, sizeof own_message, "%s", iris_last_error());
    if (given_up_on(members, &status) >= 0) {
        status = check_gave_up(members);
    } else {
        post(members, call);
        status = wait_for_all(members, call);
        if (status == IRIS_OK) {
            status = judge(members);
        }
        atomic_store_explicit(&own_board(members->control)->busy, 0,
                              memory_order_relaxed);
    }
    return call->status == IRIS_OK
               ? status
               : iris_i_fail_again(call->status, own_message);
}

const void *iris_i_agree_payload(const struct iris_members *members, int rank,
                                 size_t *bytes_p)
{
    const struct iris_post *post = peek(members, rank);

    *bytes_p = post->payload_bytes <= IRIS_PAYLOAD_BYTES ? post->payload_bytes
                                                         : IRIS_PAYLOAD_BYTES;
    return post->payload;
}

int iris_i_agree_all_called(const struct iris_members *members)
{
    const struct iris_post *own = peek(members, members->control->rank);

    for (int i = 0; i < members->count; i++) {
        const struct iris_post *post = peek(members, members->ranks[i]);

        if (own == NULL || post == NULL ||
            strncmp(own->signature, post->signature, sizeof own->signature) !=
                0) {
            return 0;
        }
    }
    return 1;
}
