/* SPDX-License-Identifier: MIT
 *
 * The schedule chooses only when all candidates are present: each host waits
 * for an event that only kernels or other hosts cause, and all workgroups of
 * each running kernel wait for their turn. Then the choice does not depend on
 * time.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* If nothing has happened for this time, the schedule chooses among the
 * workgroups that are present. The run may then not replay. */
#define PATIENCE_MS 300

struct iris_weak_slot {
    struct iris_weak_slot *next; /* sorted by rank, stream and workgroup */
    struct stream *stream;
    unsigned workgroup;
    bool waits; /* it waits for its turn */
    pthread_cond_t turn;
};

/* A stream and its kernels. */
struct stream {
    struct stream *next;
    int rank;
    unsigned number; /* number in the rank */
    const void *stream;
    unsigned pending; /* number of enqueued kernels that are not done */
    uint64_t run;     /* id of the running kernel; 0: none */
    bool is_own;
    unsigned left;    /* number of its workgroups that have not ended */
    unsigned waiting; /* number that wait for their turn */
};

struct host {
    const void *waits; /* the stream that the host waits for */
    uint64_t meets;
    uint64_t met; /* number of calls so far */
    bool left;
};

struct iris_weak_schedule {
    pthread_mutex_t lock;
    int num_ranks;
    unsigned threads;
    struct host *hosts;
    struct stream *streams;
    struct iris_weak_slot *slots;
    struct iris_weak_slot *running;
    struct iris_weak_slot *last;
    bool last_polled;
    uint64_t steps; /* number of events so far */
    struct iris_weak_choices choices;
};

void iris_i_weak_lock(struct iris_weak_schedule *schedule)
{
    pthread_mutex_lock(&schedule->lock);
}

void iris_i_weak_unlock(struct iris_weak_schedule *schedule)
{
    pthread_mutex_unlock(&schedule->lock);
}

struct iris_weak_choices *
iris_i_weak_choices(struct iris_weak_schedule *schedule)
{
    return &schedule->choices;
}

/* ---- The next workgroup ---- */

/* Whether the host waits for a stream that has work. */
static bool waits_for_stream(const struct iris_weak_schedule *schedule,
                             int rank)
{
    for (const struct stream *one = schedule->streams; one != NULL;
         one = one->next) {
        if (one->rank == rank && one->stream == schedule->hosts[rank].waits &&
            one->pending != 0) {
            return true;
        }
    }
    return false;
}

/* Whether a rank has not come to the meeting. One that still waits for its
 * stream, as in a barrier, has not. */
static bool waits_for_others(const struct iris_weak_schedule *schedule,
                             uint64_t meets)
{
    for (int i = 0; meets != 0 && i < schedule->num_ranks; i++) {
        const struct host *other = &schedule->hosts[i];

        if (other->met < meets ||
            (other->meets == meets && waits_for_stream(schedule, i))) {
            return true;
        }
    }
    return false;
}

static bool is_blocked(const struct iris_weak_schedule *schedule, int rank)
{
    const struct host *host = &schedule->hosts[rank];

    if (host->waits != NULL) {
        return waits_for_stream(schedule, rank);
    }
    return waits_for_others(schedule, host->meets) || host->left;
}

static bool is_complete(const struct iris_weak_schedule *schedule)
{
    for (int rank = 0; rank < schedule->num_ranks; rank++) {
        if (!is_blocked(schedule, rank)) {
            return false;
        }
    }
    for (const struct stream *one = schedule->streams; one != NULL;
         one = one->next) {
        unsigned threads =
            one->left < schedule->threads ? one->left : schedule->threads;

        if (one->pending != 0 && (one->run == 0 || one->waiting != threads)) {
            return false;
        }
    }
    return true;
}

static int compare(const struct iris_weak_slot *a,
                   const struct iris_weak_slot *b)
{
    if (a->stream->rank != b->stream->rank) {
        return a->stream->rank < b->stream->rank ? -1 : 1;
    }
    if (a->stream->number != b->stream->number) {
        return a->stream->number < b->stream->number ? -1 : 1;
    }
    return a->workgroup < b->workgroup ? -1 : a->workgroup > b->workgroup;
}

/* The next waiting workgroup in line: from `slot` on, and then from the
 * first. */
static struct iris_weak_slot *in_line(const struct iris_weak_schedule *schedule,
                                      struct iris_weak_slot *slot)
{
    while (slot != NULL && !slot->waits) {
        slot = slot->next;
    }
    for (slot = slot != NULL ? slot : schedule->slots; !slot->waits;) {
        slot = slot->next;
    }
    return slot;
}

struct iris_weak_who iris_i_weak_who(const struct iris_weak_slot *slot)
{
    return slot == NULL
               ? (struct iris_weak_who){.rank = -1}
               : (struct iris_weak_who){slot->stream->rank,
                                        slot->stream->number, slot->workgroup};
}

static void choose_next(struct iris_weak_schedule *schedule)
{
    struct iris_weak_slot *last = schedule->last, *slot;
    bool goes_on = last != NULL && !schedule->last_polled && last->waits;
    struct iris_weak_question question = {.choice = goes_on ? IRIS_WEAK_GO_ON
                                                            : IRIS_WEAK_TURN,
                                          .who = iris_i_weak_who(last)};
    struct iris_weak_who *next;
    unsigned chosen = 0;

    for (slot = schedule->slots; slot != NULL; slot = slot->next) {
        question.count += slot->waits;
    }
    if (question.count == 0) {
        return;
    }
    slot = in_line(schedule, goes_on || last == NULL ? last : last->next);
    next = malloc(question.count * sizeof *next);
    if (next != NULL) { /* otherwise the first in line is next */
        for (unsigned i = 0; i < question.count; i++) {
            next[i] = iris_i_weak_who(slot);
            slot = in_line(schedule, slot->next);
        }
        question.next = next;
        chosen = iris_i_weak_decide(&schedule->choices, &question);
        free(next);
    }
    for (; chosen > 0; chosen--) {
        slot = in_line(schedule, slot->next);
    }
    if (slot->stream->is_own) {
        iris_i_weak_tell(&schedule->choices, "own");
    }
    slot->waits = false;
    slot->stream->waiting--;
    schedule->running = slot;
    pthread_cond_signal(&slot->turn);
}

static void advance(struct iris_weak_schedule *schedule)
{
    schedule->steps++;
    if (schedule->running == NULL && is_complete(schedule)) {
        choose_next(schedule);
    }
}

static void wait_for_turn(struct iris_weak_schedule *schedule,
                          struct iris_weak_slot *slot)
{
    slot->waits = true;
    slot->stream->waiting++;
    advance(schedule);
    while (slot->waits) {
        uint64_t steps = schedule->steps;
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PATIENCE_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&slot->turn, &schedule->lock, &until) ==
                ETIMEDOUT &&
            slot->waits && steps == schedule->steps &&
            schedule->running == NULL) {
            schedule->steps++;
            iris_i_weak_early(&schedule->choices);
            choose_next(schedule);
        }
    }
}

/* ---- Workgroups ---- */

struct iris_weak_slot *iris_i_weak_enter(struct iris_weak_schedule *schedule,
                                         int rank, uint64_t run,
                                         unsigned workgroup, bool *is_own_p)
{
    struct iris_weak_slot *slot = calloc(1, sizeof *slot), **at;
    struct stream *stream = schedule->streams;

    while (stream != NULL && (stream->rank != rank || stream->run != run)) {
        stream = stream->next;
    }
    *is_own_p = stream == NULL || stream->is_own;
    if (slot == NULL || stream == NULL) {
        free(slot);
        return NULL;
    }
    slot->stream = stream;
    slot->workgroup = workgroup;
    pthread_cond_init(&slot->turn, NULL);
    for (at = &schedule->slots; *at != NULL && compare(*at, slot) < 0;) {
        at = &(*at)->next;
    }
    slot->next = *at;
    *at = slot;
    wait_for_turn(schedule, slot);
    return slot;
}

static void stop_running(struct iris_weak_schedule *schedule,
                         struct iris_weak_slot *slot, bool polls)
{
    if (schedule->running == slot) {
        schedule->running = NULL;
    }
    schedule->last = slot;
    schedule->last_polled = polls;
}

void iris_i_weak_yield(struct iris_weak_schedule *schedule,
                       struct iris_weak_slot *slot, bool polls)
{
    stop_running(schedule, slot, polls);
    wait_for_turn(schedule, slot);
}

void iris_i_weak_exit(struct iris_weak_schedule *schedule,
                      struct iris_weak_slot *slot)
{
    struct iris_weak_slot **at = &schedule->slots;

    stop_running(schedule, slot, true);
    while (*at != slot) {
        at = &(*at)->next;
    }
    *at = slot->next;
    schedule->last = NULL; /* the first in line is next */
    slot->stream->left -= slot->stream->left != 0;
    pthread_cond_destroy(&slot->turn);
    free(slot);
    advance(schedule);
}

bool iris_i_weak_is_idle(const struct iris_weak_schedule *schedule)
{
    return schedule->slots == NULL;
}

/* ---- Hosts ---- */

static struct stream *stream_of(struct iris_weak_schedule *schedule, int rank,
                                const void *stream)
{
    struct stream **at = &schedule->streams;
    unsigned number = 0;

    while (*at != NULL && ((*at)->rank != rank || (*at)->stream != stream)) {
        number += (*at)->rank == rank;
        at = &(*at)->next;
    }
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at != NULL) {
            (*at)->rank = rank;
            (*at)->stream = stream;
            (*at)->number = number;
        }
    }
    return *at;
}

void iris_i_weak_enqueued(struct iris_weak_schedule *schedule, int rank,
                          const void *stream, int by)
{
    struct stream *one = stream_of(schedule, rank, stream);

    if (one != NULL) {
        one->pending += (unsigned)by;
    }
    advance(schedule);
}

void iris_i_weak_run_begins(struct iris_weak_schedule *schedule, int rank,
                            const void *stream, const struct iris_weak_run *run)
{
    struct stream *one = stream_of(schedule, rank, stream);

    if (one != NULL) {
        one->pending += run->is_own;
        one->run = run->id;
        one->is_own = run->is_own;
        one->left = run->grid;
    }
    advance(schedule);
}

void iris_i_weak_run_ends(struct iris_weak_schedule *schedule, int rank,
                          uint64_t run)
{
    for (struct stream *one = schedule->streams; one != NULL; one = one->next) {
        if (one->rank == rank && one->run == run) {
            one->run = 0;
            one->pending -= one->pending != 0;
        }
    }
    advance(schedule);
}

void iris_i_weak_host_waits(struct iris_weak_schedule *schedule, int rank,
                            const void *stream)
{
    schedule->hosts[rank].waits = stream;
    advance(schedule);
}

void iris_i_weak_host_meets(struct iris_weak_schedule *schedule, int rank,
                            uint64_t number)
{
    struct host *host = &schedule->hosts[rank];

    host->meets = number;
    host->met = number > host->met ? number : host->met;
    advance(schedule);
}

void iris_i_weak_host_left(struct iris_weak_schedule *schedule, int rank)
{
    schedule->hosts[rank].left = true;
    schedule->hosts[rank].met = UINT64_MAX;
    advance(schedule);
}

/* ---- Creating and destroying ---- */

iris_status_t
iris_i_weak_schedule_create(const struct iris_weak_schedule_params *params,
                            struct iris_weak_schedule **schedule_p)
{
    struct iris_weak_schedule *schedule = calloc(1, sizeof *schedule);
    struct host *hosts = calloc((size_t)params->num_ranks, sizeof *hosts);
    iris_status_t status;

    if (schedule == NULL || hosts == NULL) {
        free(schedule);
        free(hosts);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the weak mode");
    }
    schedule->hosts = hosts;
    schedule->num_ranks = params->num_ranks;
    schedule->threads = params->threads;
    pthread_mutex_init(&schedule->lock, NULL);
    status = iris_i_weak_choices_open(&params->choices, &schedule->choices);
    if (status != IRIS_OK) {
        iris_i_weak_schedule_destroy(schedule);
        return status;
    }
    *schedule_p = schedule;
    return IRIS_OK;
}

void iris_i_weak_schedule_destroy(struct iris_weak_schedule *schedule)
{
    if (schedule == NULL) {
        return;
    }
    while (schedule->streams != NULL) {
        struct stream *next = schedule->streams->next;

        free(schedule->streams);
        schedule->streams = next;
    }
    iris_i_weak_choices_close(&schedule->choices);
    free(schedule->hosts);
    pthread_mutex_destroy(&schedule->lock);
    free(schedule);
}
