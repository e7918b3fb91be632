/* SPDX-License-Identifier: MIT
 *
 * Meetings of a group's ranks in the control segment.
 */
#include "config.h"

#include "control/agree.h"

#include "base/clock.h"
#include "context/context.h"
#include "base/futex.h"
#include "base/log.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* How a waiting rank spends its time: rounds of looking, most of them giving
 * the core away, then sleep; peers are checked on whenever a sleep ends. */
#define SPIN_ROUNDS 64
#define SLEEP_NS (10 * 1000000)

static const struct call_row {
    const char *name;
    const char *args[3];
} call_rows[] = {[IRIS_CALL_NONE] = {"nothing", {NULL, NULL, NULL}},
#define CALL_ROW(kind, name, a, b, c) [IRIS_CALL_##kind] = {name, {a, b, c}},
                 IRIS_CALL_ROWS(CALL_ROW)
#undef CALL_ROW
};

#define NUM_CALL_ROWS (sizeof call_rows / sizeof call_rows[0])

/* The posts of another rank are shared memory: trust no index in them. */
static const struct call_row *row_of(unsigned kind)
{
    return &call_rows[kind < NUM_CALL_ROWS ? kind : IRIS_CALL_NONE];
}

static struct iris_control_slot *
slot_of(iris_t *iris, const struct iris_group *group, int rank)
{
    struct iris_control_group *shared =
        iris_i_control_group(iris->control, group->slot);

    return &shared->slots[2 * rank + (int)(group->seq % 2)];
}

/* Sequentially consistent with the sleeper's announcement, so that one of the
 * two sees the other. */
static void wake_all(struct iris_control_group *shared)
{
    atomic_fetch_add(&shared->wakes, 1);
    if (atomic_load(&shared->sleepers) != 0) {
        iris_i_futex_wake(&shared->wakes);
    }
}

void iris_i_meet_begin(iris_t *iris, enum iris_call_kind kind)
{
    atomic_store_explicit(
        &iris_i_control_rank(iris->control, iris->rank)->doing, kind,
        memory_order_relaxed);
}

static void post(iris_t *iris, struct iris_group *group,
                 const struct iris_call *call)
{
    struct iris_control_group *shared =
        iris_i_control_group(iris->control, group->slot);
    struct iris_control_rank *self =
        iris_i_control_rank(iris->control, iris->rank);
    struct iris_control_slot *slot;

    group->seq++;
    slot = slot_of(iris, group, iris->rank);
    slot->kind = call->kind;
    slot->status = call->status;
    memcpy(slot->args, call->args, sizeof slot->args);
    slot->payload_bytes = 0;
    if (call->status != IRIS_OK) {
        snprintf((char *)slot->payload, IRIS_MESSAGE_BYTES, "%s",
                 iris_last_error());
    } else if (call->payload_bytes != 0) {
        memcpy(slot->payload, call->payload, call->payload_bytes);
        slot->payload_bytes = (uint32_t)call->payload_bytes;
    }
    iris_i_meet_begin(iris, call->kind);
    atomic_store_explicit(&self->last, call->kind, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->calls, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->seq, group->seq, memory_order_release);
    /* Only the last to come wakes the others, each once. */
    if ((atomic_fetch_add(&shared->posts, 1) + 1) % (unsigned)group->count ==
        0) {
        wake_all(shared);
    }
}

/* Has this member posted the meeting we are in? */
static int has_come(iris_t *iris, const struct iris_group *group, int rank)
{
    return atomic_load_explicit(&slot_of(iris, group, rank)->seq,
                                memory_order_acquire) >= group->seq;
}

/* The rank a member of the group gave up on, or -1. */
static int given_up_on(iris_t *iris, const struct iris_group *group,
                       iris_status_t *status_p)
{
    unsigned mark = atomic_load_explicit(
        &iris_i_control_group(iris->control, group->slot)->gave_up,
        memory_order_acquire);

    *status_p = (iris_status_t)(-(int)(mark >> 16));
    return (int)(mark & 0xffff) - 1;
}

/* Once one member has given up, the group's posts no longer pair up. */
static iris_status_t check_gave_up(iris_t *iris, const struct iris_group *group)
{
    iris_status_t status;
    int rank = given_up_on(iris, group, &status);

    if (rank < 0) {
        return IRIS_OK;
    }
    if (status == IRIS_ERR_PEER_LOST && rank < iris->num_ranks &&
        iris_i_peers_check(iris, rank) != IRIS_OK) {
        return status;
    }
    return iris_i_fail(&iris->log, status,
                       "rank %d%s came too late to an earlier collective call "
                       "of this group (%s); the group cannot go on: finalize "
                       "and restart the job",
                       rank, rank == iris->rank ? ", this one," : "",
                       iris_status_text(status));
}

/* Nobody may use the group any more, on account of `rank`. */
static iris_status_t give_up(iris_t *iris, const struct iris_group *group,
                             int rank, iris_status_t status)
{
    struct iris_control_group *shared =
        iris_i_control_group(iris->control, group->slot);
    unsigned none = 0;
    unsigned mark = ((unsigned)-status << 16) | ((unsigned)rank + 1);

    atomic_compare_exchange_strong(&shared->gave_up, &none, mark);
    wake_all(shared);
    return status;
}

static iris_status_t fail_late(iris_t *iris, int rank,
                               const struct iris_call *call)
{
    struct iris_control_rank *late = iris_i_control_rank(iris->control, rank);
    unsigned doing = atomic_load_explicit(&late->doing, memory_order_relaxed);
    unsigned last = atomic_load_explicit(&late->last, memory_order_relaxed);
    unsigned long long calls =
        atomic_load_explicit(&late->calls, memory_order_relaxed);
    int waits = atomic_load_explicit(&late->waiting, memory_order_relaxed) > 0;

    return iris_i_fail(
        &iris->log, IRIS_ERR_TIMEOUT,
        "rank %d has not come to %s within %lld ms (IRIS_TIMEOUT_MS): after "
        "%llu collective calls it is %s %s%s; %s",
        rank, row_of(call->kind)->name, (long long)iris->timeout_ms, calls,
        doing != 0 ? "busy in"
        : waits    ? "waiting for a stream since its"
                   : "outside the library since its",
        doing != 0 || last != 0 ? row_of(doing != 0 ? doing : last)->name
                                : "start",
        doing != 0 && waits ? ", waiting for a stream" : "",
        waits ? "look at what its kernels wait for (IRIS_DEVICE_TIMEOUT_MS "
                "makes them tell)"
              : "does every rank make this call?");
}

/* The first member that has not come, or -1. */
static int first_absent(iris_t *iris, const struct iris_group *group)
{
    for (int i = 0; i < group->count; i++) {
        if (!has_come(iris, group, group->members[i])) {
            return group->members[i];
        }
    }
    return -1;
}

/* 1 if a member is lost, this thread's message saying which. One that has come
 * and is lost since counts, too: nobody should go on waiting for the rest. But
 * if all have come, the call is done. */
static int is_one_lost(iris_t *iris, const struct iris_group *group)
{
    for (int i = 0; i < group->count; i++) {
        if (group->members[i] != iris->rank &&
            iris_i_peers_check(iris, group->members[i]) != IRIS_OK) {
            return first_absent(iris, group) >= 0;
        }
    }
    return 0;
}

/* Why to stop waiting, if there is a reason. */
static iris_status_t check_on(iris_t *iris, const struct iris_group *group,
                              const struct iris_call *call, int64_t deadline)
{
    int lost = is_one_lost(iris, group), late, absent;
    iris_status_t status;

    /* After the look at the members: one may have left because it gave up. */
    late = given_up_on(iris, group, &status);
    if (late >= 0 && late < iris->num_ranks && status == IRIS_ERR_TIMEOUT &&
        !has_come(iris, group, late)) {
        return fail_late(iris, late, call);
    }
    if (late >= 0) {
        return check_gave_up(iris, group);
    }
    if (lost) {
        return give_up(iris, group, iris_i_peers_lost(iris),
                       IRIS_ERR_PEER_LOST);
    }
    absent = first_absent(iris, group);
    if (iris_i_now_ns() < deadline || absent < 0) {
        return IRIS_OK;
    }
    return give_up(iris, group, absent, fail_late(iris, absent, call));
}

static void sleep_until_woken(iris_t *iris, const struct iris_group *group)
{
    struct iris_control_group *shared =
        iris_i_control_group(iris->control, group->slot);
    unsigned seen;

    atomic_fetch_add(&shared->sleepers, 1);
    seen = atomic_load(&shared->wakes);
    if (first_absent(iris, group) >= 0) {
        iris_i_futex_wait(&shared->wakes, seen, SLEEP_NS);
    }
    atomic_fetch_sub(&shared->sleepers, 1);
}

static iris_status_t wait_for_all(iris_t *iris, const struct iris_group *group,
                                  const struct iris_call *call)
{
    int64_t deadline = iris_i_deadline(iris->timeout_ms);

    for (unsigned round = 0; first_absent(iris, group) >= 0; round++) {
        iris_status_t status;

        if (round < SPIN_ROUNDS) {
            sched_yield();
            continue;
        }
        sleep_until_woken(iris, group);
        status = check_on(iris, group, call, deadline);
        if (status != IRIS_OK) {
            return status;
        }
    }
    return IRIS_OK;
}

static void describe(const struct iris_control_slot *slot, char *text,
                     size_t text_bytes)
{
    const struct call_row *row = row_of(slot->kind);
    size_t length = (size_t)snprintf(text, text_bytes, "%s(", row->name);

    for (int i = 0; i < 3 && row->args[i] != NULL && length < text_bytes; i++) {
        length += (size_t)snprintf(text + length, text_bytes - length,
                                   "%s%s %lld", i == 0 ? "" : ", ",
                                   row->args[i], (long long)slot->args[i]);
    }
    if (length < text_bytes) {
        snprintf(text + length, text_bytes - length, ")");
    }
}

static int same_call(const struct iris_control_slot *a,
                     const struct iris_control_slot *b)
{
    return a->kind == b->kind && memcmp(a->args, b->args, sizeof a->args) == 0;
}

/* Told the same on every rank: what each rank called, as far as it fits. */
static iris_status_t fail_mismatch(iris_t *iris, const struct iris_group *group)
{
    char text[640] = "", call[128];
    size_t length = 0;

    for (int i = 0; i < group->count && length + 160 < sizeof text; i++) {
        int rank = group->members[i];
        const struct iris_control_slot *slot = slot_of(iris, group, rank);

        if (i > 0 &&
            same_call(slot, slot_of(iris, group, group->members[i - 1]))) {
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       ", rank %d the same", rank);
            continue;
        }
        describe(slot, call, sizeof call);
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%srank %d called %s", i == 0 ? "" : ", ",
                                   rank, call);
    }
    return iris_i_fail(&iris->log, IRIS_ERR_MISMATCH,
                       "collective call %llu of the group differs: %s; make "
                       "the same calls in the same order on every rank",
                       (unsigned long long)group->seq, text);
}

/* The verdict is a function of the posts alone, so every rank comes to the
 * same. */
static iris_status_t judge(iris_t *iris, const struct iris_group *group)
{
    const struct iris_control_slot *own = slot_of(iris, group, iris->rank);

    for (int i = 0; i < group->count; i++) {
        int rank = group->members[i];
        const struct iris_control_slot *slot = slot_of(iris, group, rank);

        if (slot->status != IRIS_OK) {
            return iris_i_fail(&iris->log, (iris_status_t)slot->status,
                               "rank %d failed in %s: %.700s", rank,
                               row_of(slot->kind)->name,
                               (const char *)slot->payload);
        }
    }
    for (int i = 0; i < group->count; i++) {
        if (!same_call(own, slot_of(iris, group, group->members[i]))) {
            return fail_mismatch(iris, group);
        }
    }
    return IRIS_OK;
}

iris_status_t iris_i_meet(iris_t *iris, struct iris_group *group,
                          const struct iris_call *call)
{
    struct iris_control_rank *self =
        iris_i_control_rank(iris->control, iris->rank);
    char own_message[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    /* This rank's own failure is what its caller wants to hear of. */
    snprintf(own_message, sizeof own_message, "%s", iris_last_error());
    if (given_up_on(iris, group, &status) >= 0) {
        status = check_gave_up(iris, group);
    } else {
        post(iris, group, call);
        status = wait_for_all(iris, group, call);
        if (status == IRIS_OK) {
            status = judge(iris, group);
        }
        atomic_store_explicit(&self->doing, IRIS_CALL_NONE,
                              memory_order_relaxed);
    }
    return call->status == IRIS_OK
               ? status
               : iris_i_fail_again(call->status, own_message);
}

const void *iris_i_meet_payload(iris_t *iris, const struct iris_group *group,
                                int rank, size_t *bytes_p)
{
    const struct iris_control_slot *slot = slot_of(iris, group, rank);

    *bytes_p = slot->payload_bytes <= IRIS_PAYLOAD_BYTES ? slot->payload_bytes
                                                         : IRIS_PAYLOAD_BYTES;
    return slot->payload;
}
