/* SPDX-License-Identifier: MIT
 *
 * Agreement of a group's ranks, the primitive under every collective call.
 *
 *   post     a rank describes its call, and posts it at the group's place
 *   wait     until all members have posted, one of them is lost, one has given
 *            up, the ranks wait for each other in a cycle, or the deadline
 *   compare  every member compares all calls, and gets the same verdict
 *
 * - The members' `seq` counts agreements. A rank posts agreement k+2 only after
 *   all have posted k+1, so two posts of each rank are enough.
 * - A member that gives up marks the place, once and for all members. Posts at a
 *   marked place no longer match, so its group cannot go on.
 * - The posts of other ranks may contain anything.
 */
#include "config.h"

#include "control/internal.h"

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

/* ---- Calls, as they are posted ---- */

/* "iris_malloc(bytes, alignment, offset)" */
static void write_signature(const struct iris_call_type *type,
                            char signature[IRIS_SIGNATURE_BYTES + 1])
{
    const size_t space = IRIS_SIGNATURE_BYTES + 1;
    size_t length = (size_t)snprintf(signature, space, "%s(", type->name);

    for (int i = 0;
         i < IRIS_CALL_FIELDS && type->fields[i].name != NULL && length < space;
         i++) {
        length += (size_t)snprintf(signature + length, space - length, "%s%s",
                                   i == 0 ? "" : ", ", type->fields[i].name);
    }
}

/* Drafts a call whose type differs from the last one's. */
static void draft_type(struct iris_draft *draft,
                       const struct iris_call_type *type)
{
    char signature[IRIS_SIGNATURE_BYTES + 1];
    struct iris_call_head head = {0};
    size_t at;

    while (head.num_fields < IRIS_CALL_FIELDS &&
           type->fields[head.num_fields].name != NULL) {
        head.num_fields++;
    }
    write_signature(type, signature);
    head.signature_bytes = (uint16_t)strlen(signature);
    at = sizeof head + head.num_fields * sizeof(uint64_t);
    memcpy(draft->data, &head, sizeof head);
    memcpy(draft->data + at, signature, head.signature_bytes);
    draft->bytes = at + head.signature_bytes;
    draft->type = type;
}

/* Programs mostly repeat the same calls. A repeated call only writes the parts
 * that may differ. */
static struct iris_draft *draft_of(struct iris_drafts *drafts,
                                   const struct iris_call_type *type)
{
    struct iris_draft *draft;

    for (int i = 0; i < IRIS_DRAFTS; i++) {
        if (drafts->of[i].type == type) {
            return &drafts->of[i];
        }
    }
    draft = &drafts->of[drafts->next++ % IRIS_DRAFTS];
    draft_type(draft, type);
    return draft;
}

static const struct iris_draft *make_draft(struct iris_drafts *drafts,
                                           const struct iris_call *call)
{
    struct iris_draft *draft = draft_of(drafts, call->type);
    struct iris_call_head head;

    memcpy(&head, draft->data, sizeof head);
    head.status = call->status;
    memcpy(draft->data, &head, sizeof head);
    memcpy(draft->data + sizeof head, call->fields,
           head.num_fields * sizeof call->fields[0]);
    return draft;
}

static size_t parse_call(const void *data, size_t bytes,
                         struct iris_posted_call *call_p)
{
    const unsigned char *next = data;
    size_t fields, all;

    memset(call_p, 0, sizeof *call_p);
    if (bytes < sizeof call_p->head) {
        return bytes;
    }
    memcpy(&call_p->head, next, sizeof call_p->head);
    next += sizeof call_p->head;
    fields = call_p->head.num_fields * sizeof call_p->fields[0];
    all = sizeof call_p->head + fields + call_p->head.signature_bytes;
    if (call_p->head.num_fields > IRIS_CALL_FIELDS ||
        call_p->head.signature_bytes > IRIS_SIGNATURE_BYTES || all > bytes) {
        call_p->head = (struct iris_call_head){.status = call_p->head.status};
        return bytes;
    }
    memcpy(call_p->fields, next, fields);
    memcpy(call_p->signature, next + fields, call_p->head.signature_bytes);
    return all;
}

static int are_calls_same(const struct iris_posted_call *a,
                          const struct iris_posted_call *b)
{
    return strcmp(a->signature, b->signature) == 0 &&
           memcmp(a->fields, b->fields, sizeof a->fields) == 0;
}

/* Whether they are allocations that differ in their size. */
static int is_uneven(const struct iris_posted_call *a,
                     const struct iris_posted_call *b)
{
    return strcmp(a->signature, b->signature) == 0 &&
           strstr(a->signature, "(bytes, alignment") != NULL &&
           a->fields[0] != b->fields[0] && a->fields[1] == b->fields[1];
}

static void describe_call(const struct iris_posted_call *call, char *text,
                          size_t bytes)
{
    const char *next = call->signature;
    const char *end = next + strlen(next);
    size_t length = strcspn(next, "(");
    int field = 0;

    snprintf(text, bytes, "%.*s(", (int)length, next);
    next += length + (next + length < end);
    while (next < end && field < IRIS_CALL_FIELDS) {
        int name = (int)strcspn(next, ",");
        size_t at = strlen(text);

        snprintf(text + at, bytes - at, "%s%.*s %lld", field ? ", " : "", name,
                 next, (long long)call->fields[field]);
        next += name;
        next += strspn(next, ", ");
        field++;
    }
    length = strlen(text);
    snprintf(text + length, bytes - length, ")");
}

/* ---- The posts of an agreement ---- */

static struct iris_post_id make_post_id(const struct iris_members *members,
                                        int rank)
{
    return (struct iris_post_id){members->place, rank, members->seq};
}

static struct iris_place *place_of(const struct iris_members *members)
{
    return iris_i_segment_place(members->control->records, members->place);
}

static int has_posted(const struct iris_members *members, int rank)
{
    const struct iris_post_id id = make_post_id(members, rank);

    return iris_i_control_posted(members->control, &id);
}

static size_t collect_post(const struct iris_members *members, int rank,
                           size_t at, void *to, size_t bytes)
{
    const struct iris_post_id id = make_post_id(members, rank);

    return iris_i_place_collect(place_of(members), &id, at, to, bytes);
}

static size_t parse_post(const struct iris_members *members, int rank,
                         struct iris_posted_call *call_p)
{
    unsigned char data[IRIS_DRAFT_BYTES];
    size_t bytes = collect_post(members, rank, 0, data, sizeof data);

    return parse_call(data, bytes, call_p);
}

size_t iris_i_agree_payload(const struct iris_members *members, int rank,
                            void *to, size_t bytes)
{
    struct iris_call_head head = {0};
    size_t at, all = collect_post(members, rank, 0, &head, sizeof head);

    at =
        sizeof head + head.num_fields * sizeof(uint64_t) + head.signature_bytes;
    if (head.status != IRIS_OK || at >= all) {
        return 0;
    }
    (void)collect_post(members, rank, at, to, bytes);
    return all - at < IRIS_PAYLOAD_BYTES ? all - at : IRIS_PAYLOAD_BYTES;
}

int iris_i_agree_all_called(const struct iris_members *members)
{
    struct iris_posted_call own, theirs;

    (void)parse_post(members, members->control->rank, &own);
    for (int i = 0; i < members->count; i++) {
        (void)parse_post(members, members->ranks[i], &theirs);
        if (own.signature[0] == '\0' ||
            strcmp(own.signature, theirs.signature) != 0) {
            return 0;
        }
    }
    return 1;
}

/* ---- Cycles: ranks of different groups that wait for each other ---- */

/* Longer cycles end at the deadline. */
#define WAITS_MAX 16

/* The contents of a board's `waits`: place, awaited rank, and agreement. 0: the
 * rank does not wait. */
#define PLACE_BITS 8
#define RANK_BITS 16

static int get_rank(uint64_t word)
{
    return (int)(word & ((1u << RANK_BITS) - 1)) - 1;
}

static int get_place(uint64_t word)
{
    return (int)(word >> RANK_BITS & ((1u << PLACE_BITS) - 1));
}

_Static_assert(IRIS_PLACES <= 1 << PLACE_BITS, "a word names every place");

static void show_wait(const struct iris_members *members, uint64_t word)
{
    struct iris_control *control = members->control;

    if (control->own.waits == word) {
        return;
    }
    control->own.waits = word;
    iris_i_control_publish(control, IRIS_SHOW_WAITS, &control->own);
}

/* The waits of the other ranks in a cycle, starting with the awaited rank. */
struct cycle {
    int count;
    uint64_t words[WAITS_MAX];
};

/* The rank for which `rank` waits, if that one has not posted there; else -1.
 * This stays true until the awaited rank posts, or a member gives up. */
static int find_awaited(struct iris_control *control, int rank,
                        uint64_t *word_p)
{
    struct iris_shown shown;
    struct iris_post_id id;

    iris_i_control_read(control, rank, IRIS_SHOW_WAITS, &shown);
    id = (struct iris_post_id){get_place(shown.waits), get_rank(shown.waits),
                               shown.waits >> (PLACE_BITS + RANK_BITS)};
    if (shown.waits == 0 || id.rank < 0 || id.rank >= control->num_ranks ||
        id.place >= IRIS_PLACES || iris_i_control_posted(control, &id)) {
        return -1;
    }
    *word_p = shown.waits;
    return id.rank;
}

/* Follows the waits from `absent`. Returns whether they lead back to this
 * rank. */
static int follow_waits(struct iris_control *control, int absent,
                        struct cycle *cycle_p)
{
    cycle_p->count = 0;
    while (absent >= 0 && absent != control->rank) {
        if (cycle_p->count == WAITS_MAX) {
            return 0;
        }
        absent =
            find_awaited(control, absent, &cycle_p->words[cycle_p->count++]);
    }
    return absent >= 0;
}

/* "group 1 (ranks 0, 2)", in at least 32 bytes. */
static void print_group(const struct iris_members *members, char *text,
                        size_t bytes)
{
    size_t length =
        (size_t)snprintf(text, bytes, "group %d (ranks", members->place);

    for (int i = 0; i < members->count && length < bytes; i++) {
        length += (size_t)snprintf(text + length, bytes - length, "%s %d",
                                   i == 0 ? "" : ",", members->ranks[i]);
    }
    if (length + 2 < bytes) {
        snprintf(text + length, bytes - length, ")");
    } else {
        snprintf(text + bytes - 6, 6, " ...)");
    }
}

static iris_status_t fail_cycle(const struct iris_members *members,
                                const char *call, int absent,
                                const struct cycle *cycle)
{
    struct iris_control *control = members->control;
    unsigned mark =
        ((unsigned)-IRIS_ERR_MISMATCH << 16) | ((unsigned)control->rank + 1);
    struct iris_shown shown;
    char text[600], group[100];
    size_t length;

    print_group(members, group, sizeof group);
    length = (size_t)snprintf(text, sizeof text,
                              "rank %d waits in %s of %s for rank %d",
                              control->rank, call, group, absent);
    for (int i = 0; i < cycle->count; i++) {
        iris_i_control_read(control, absent, IRIS_SHOW_NAME, &shown);
        absent = get_rank(cycle->words[i]);
        if (length + 100 < sizeof text) {
            length += (size_t)snprintf(
                text + length, sizeof text - length,
                ", which waits in %s of group %d for rank %d", shown.name,
                get_place(cycle->words[i]), absent);
        }
    }
    /* Marks our own place first: a member that learns of another place may go
     * on to this one. */
    iris_i_control_fail(control, members->place, mark);
    for (int i = 0; i < cycle->count; i++) {
        iris_i_control_fail(control, get_place(cycle->words[i]), mark);
    }
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "%s: these calls are of different groups, and none of "
                       "them can end; make the same calls in the same order on "
                       "every rank",
                       text);
}

static iris_status_t fail_told(const struct iris_members *members, int rank)
{
    struct iris_control *control = members->control;
    char group[100];

    print_group(members, group, sizeof group);
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "rank %d%s calls, or finalizes its contexts, in another "
                       "order than its peers, one of which waits in %s; make "
                       "the same calls in the same order on every rank",
                       rank, rank == control->rank ? ", this one," : "", group);
}

/* While this walks from wait to wait, one may end and another begin. A second
 * walk with the same result shows that none has ended. This rank's own wait may
 * have ended, too: `absent` has posted since, and waits for this rank in its
 * next call. It posts before it waits, so its post has arrived by now. */
iris_status_t iris_i_cycle_check(const struct iris_members *members,
                                 const char *call, int absent)
{
    struct iris_control *control = members->control;
    struct cycle cycle, again;

    show_wait(members, members->seq << (PLACE_BITS + RANK_BITS) |
                           (uint64_t)members->place << RANK_BITS |
                           ((uint64_t)absent + 1));
    return follow_waits(control, absent, &cycle) &&
                   follow_waits(control, absent, &again) &&
                   cycle.count == again.count &&
                   memcmp(cycle.words, again.words,
                          (size_t)cycle.count * sizeof cycle.words[0]) == 0 &&
                   !has_posted(members, absent)
               ? fail_cycle(members, call, absent, &cycle)
               : IRIS_OK;
}

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
    iris_i_control_publish(
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
    iris_i_control_publish(control, show_call(control, "") | IRIS_SHOW_CALLS,
                           &control->own);
}

static void post_call(struct iris_members *members,
                      const struct iris_call *call)
{
    struct iris_control *control = members->control;
    struct iris_part parts[2];
    struct iris_post_id id;

    members->seq++;
    id = make_post_id(members, control->rank);
    members->draft = make_draft(&members->drafts, call);
    parts[0] = (struct iris_part){members->draft->data, members->draft->bytes};
    parts[1] = (struct iris_part){call->payload, call->payload_bytes};
    if (call->status != IRIS_OK) {
        parts[1].data = iris_last_error();
        parts[1].bytes = strlen(iris_last_error());
    }
    control->own.calls++;
    show_busy(control, call->type, IRIS_SHOW_CALLS);
    iris_i_control_post(control, &id, parts, members->count);
}

/* The first member that has not posted, or -1. Members that have posted are not
 * checked again. */
static int first_absent(struct waiting *waiting)
{
    const struct iris_members *members = waiting->members;
    int i = waiting->num_come;

    while (i < members->count && has_posted(members, members->ranks[i])) {
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
    unsigned mark = iris_i_control_fail(members->control, members->place, 0);

    *status_p = (iris_status_t)(-(int)(mark >> 16));
    return (int)(mark & 0xffff) - 1;
}

/* A member has lost a rank that has not died, and the news has not come here. */
static iris_status_t fail_unreachable(struct iris_control *control, int rank)
{
    char name[IRIS_RANK_NAME_BYTES];
    int nobody = 0;

    atomic_compare_exchange_strong(&control->lost, &nobody, rank + 1);
    iris_i_control_name(control, rank, name);
    return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                       "another rank has found that %s left the job, or that "
                       "its host does not answer; see the output of the other "
                       "ranks, then restart the job",
                       name);
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
    if ((status == IRIS_ERR_PEER_LOST || status == IRIS_ERR_UNREACHABLE) &&
        rank < control->num_ranks) {
        return iris_i_peers_check(control, rank) != IRIS_OK ? IRIS_ERR_PEER_LOST
               : status == IRIS_ERR_PEER_LOST
                   ? iris_i_peers_fail_ended(control, rank)
                   : fail_unreachable(control, rank);
    }
    if (status == IRIS_ERR_INTERRUPTED) {
        return iris_i_fail(control->log, status,
                           "rank %d%s was interrupted (iris_interrupt) in a "
                           "collective call of this group; the group cannot go "
                           "on: finalize",
                           rank, rank == control->rank ? ", this one," : "");
    }
    if (status == IRIS_ERR_MISMATCH) {
        return fail_told(members, rank);
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
    iris_i_control_fail(members->control, members->place,
                        ((unsigned)-status << 16) | ((unsigned)rank + 1));
    return status;
}

/* The mark tells whether the rank has died. */
static iris_status_t give_up_lost(const struct iris_members *members, int rank)
{
    struct iris_shown shown = {.state = IRIS_RANK_JOINING};

    if (rank >= 0) {
        iris_i_control_read(members->control, rank, IRIS_SHOW_STATE, &shown);
    }
    (void)give_up(members, rank,
                  shown.state == IRIS_RANK_LEFT ? IRIS_ERR_UNREACHABLE
                                                : IRIS_ERR_PEER_LOST);
    return IRIS_ERR_PEER_LOST;
}

/* Text such as "after 3 collective calls it is busy in iris_barrier". */
static void describe_absent(struct iris_control *control, int rank, char *text,
                            size_t bytes)
{
    struct iris_shown late;

    iris_i_control_read(control, rank,
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
    const char *why;
    int stopped = iris_i_peers_find_stopped(control, &why);
    char what[200], name[IRIS_RANK_NAME_BYTES];
    struct iris_shown late;

    iris_i_control_read(control, rank, IRIS_SHOW_STREAMS, &late);
    describe_absent(control, rank, what, sizeof what);
    if (stopped >= 0) { /* maybe the one that connects the others */
        iris_i_control_name(control, stopped, name);
        return iris_i_fail(
            control->log, IRIS_ERR_TIMEOUT,
            "rank %d has not come to %s within %lld ms (IRIS_TIMEOUT_MS): %s; "
            "%s %s",
            rank, waiting->call->type->name, (long long)control->timeout_ms,
            what, name, why);
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
           (!iris_i_control_alive(control, rank) &&
            !has_posted(members, rank) &&
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
static iris_status_t find_fate(void *arg)
{
    struct waiting *waiting = arg;
    const struct iris_members *members = waiting->members;
    struct iris_control *control = members->control;
    int lost = is_one_lost(waiting), late, absent, revoked;
    iris_status_t status;

    /* Checked after the members: one may have left because it gave up. */
    late = given_up_on(members, &status);
    if (late >= 0 && late < control->num_ranks && status == IRIS_ERR_TIMEOUT &&
        !has_posted(members, late)) {
        return fail_late(waiting, late);
    }
    if (late >= 0) {
        return check_gave_up(members);
    }
    if (lost) {
        return give_up_lost(members, iris_i_peers_lost(control));
    }
    /* In this order: a member that goes on and revokes has seen all posts. */
    revoked = iris_i_peers_are_revoked(control);
    absent = first_absent(waiting);
    if (absent < 0) {
        return IRIS_OK;
    }
    if (revoked) {
        return iris_i_peers_check_all(control);
    }
    status = iris_i_cycle_check(members, waiting->call->type->name, absent);
    if (status == IRIS_OK && waiting->call->keep_waiting != NULL) {
        status = waiting->call->keep_waiting(waiting->call->arg);
        if (status != IRIS_OK) {
            return give_up(members, absent, status);
        }
    }
    return status;
}

static void print_wait(void *arg, char *text, size_t bytes)
{
    struct waiting *waiting = arg;
    int absent = first_absent(waiting);
    char what[200];

    if (absent >= 0) {
        describe_absent(waiting->members->control, absent, what, sizeof what);
        snprintf(text, bytes, "rank %d: %s", absent, what);
    }
}

static iris_status_t end_late(const struct iris_wait *wait)
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

    iris_i_place_wait(place_of(members), ns * paces, are_all_here, arg);
}

static void list_absent(const struct iris_members *members,
                        struct iris_record_wait *noted)
{
    for (int i = 0; i < members->count; i++) {
        if (has_posted(members, members->ranks[i])) {
            continue;
        }
        if (noted->num_expected < IRIS_RECORD_EXPECTED) {
            noted->expected[noted->num_expected] = (int16_t)members->ranks[i];
        }
        noted->num_expected++;
    }
}

static void note_wait(struct iris_wait *wait, enum iris_wait_phase phase)
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
    if (wait->slot < 0) {
        wait->site = iris_i_record_site(record);
    }
    noted.site = wait->site;
    list_absent(members, &noted);
    iris_i_record_members(&noted, members->ranks, members->count);
    snprintf(noted.name, sizeof noted.name, "%s", wait->what);
    wait->slot = iris_i_record_wait(record, wait->slot, &noted);
}

static iris_status_t wait_for_all(struct iris_members *members,
                                  const struct iris_call *call)
{
    static const struct iris_wait_type for_members = {.pace = IRIS_PACE_AGREE,
                                                      .fate = find_fate,
                                                      .describe = print_wait,
                                                      .late = end_late,
                                                      .sleep = sleep_for,
                                                      .note = note_wait};
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
        show_wait(members, 0);
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
    int uneven = 0, others = 0;

    (void)parse_post(members, control->rank, &own);
    describe_call(&own, call, sizeof call);
    for (int i = 0; i < members->count; i++) {
        (void)parse_post(members, members->ranks[i], &theirs);
        if (!are_calls_same(&own, &theirs) &&
            iris_i_peers_check_leaving(control, members->ranks[i], call)) {
            return IRIS_ERR_PEER_LOST;
        }
    }
    for (int i = 0; i < members->count && length + 160 < sizeof text; i++) {
        int rank = members->ranks[i];

        before = theirs;
        (void)parse_post(members, rank, &theirs);
        if (is_uneven(&own, &theirs)) {
            uneven++;
        } else {
            others += !are_calls_same(&own, &theirs);
        }
        if (i > 0 && are_calls_same(&theirs, &before)) {
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       ", rank %d the same", rank);
            continue;
        }
        describe_call(&theirs, call, sizeof call);
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%srank %d called %s", i == 0 ? "" : ", ",
                                   rank, call);
    }
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "collective call %llu of the group differs: %s; %s",
                       (unsigned long long)members->seq, text,
                       uneven > 0 && others == 0
                           ? "allocate the largest share on every rank, "
                             "and use part of it"
                           : "make the same calls in the same order on "
                             "every rank");
}

/* A rank whose own preparation failed posts the reason as its payload. */
static iris_status_t fail_of(const struct iris_members *members, int rank,
                             const struct iris_posted_call *post,
                             size_t payload_at)
{
    char why[IRIS_MESSAGE_BYTES];
    size_t all = collect_post(members, rank, payload_at, why, sizeof why - 1);
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
            (collect_post(members, members->ranks[i], 0, theirs,
                          members->draft->bytes) < members->draft->bytes ||
             memcmp(theirs, members->draft->data, members->draft->bytes) !=
                 0)) {
            return 0;
        }
    }
    return 1;
}

/* The verdict depends only on the posts, and on the reasons that leaving
 * members gave before their posts. So every rank gets the same verdict. */
static iris_status_t judge_calls(const struct iris_members *members,
                                 const struct iris_call *call)
{
    struct iris_posted_call theirs;

    if (call->status == IRIS_OK && all_agree(members)) {
        return IRIS_OK;
    }
    for (int i = 0; i < members->count; i++) {
        size_t payload_at = parse_post(members, members->ranks[i], &theirs);

        if (theirs.head.status != IRIS_OK) {
            return fail_of(members, members->ranks[i], &theirs, payload_at);
        }
    }
    return fail_mismatch(members);
}

/* Whether the group can make another call. */
static iris_status_t check_begin(const struct iris_members *members)
{
    iris_status_t status;

    if (given_up_on(members, &status) >= 0) {
        return check_gave_up(members);
    }
    return iris_i_peers_are_revoked(members->control)
               ? iris_i_peers_check_all(members->control)
               : IRIS_OK;
}

iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call)
{
    struct iris_control *control = members->control;
    char own_message[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    /* The caller needs to know of this rank's own failure. */
    snprintf(own_message, sizeof own_message, "%s", iris_last_error());
    status = check_begin(members);
    if (status == IRIS_OK) {
        post_call(members, call);
        status = wait_for_all(members, call);
        if (status == IRIS_OK) {
            status = judge_calls(members, call);
        }
        control->own.busy = 0;
        iris_i_control_publish(control, IRIS_SHOW_BUSY, &control->own);
    }
    return call->status == IRIS_OK
               ? status
               : iris_i_fail_again(call->status, own_message);
}
