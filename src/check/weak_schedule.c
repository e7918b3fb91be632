/* SPDX-License-Identifier: MIT
 *
 * The schedule of workgroups, and its choices.
 *
 * The schedule chooses only when all candidates are present: each host waits
 * for an event that only kernels or other hosts cause, and all workgroups of
 * each running kernel wait for their turn. Then the choice does not depend on
 * time. A workgroup waits, runs, and waits again, until it leaves; at most one
 * runs.
 *
 * Choices come from a seed, from a file, or from an explorer's script. Each
 * has a name: the nth turn after one of the workgroup's, or its nth read. So it
 * keeps its name if others are left out. Answers other than 0 are recorded.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Choices ---- */

/* Identifies the nth turn after one of the workgroup's, or the workgroup's nth
 * read with a choice. So a choice keeps its name if others are left out. An
 * explorer's have no name: they are its answers in their order. */
struct iris_weak_decision {
    bool is_read;
    struct iris_weak_who who;
    uint64_t nth;
    struct iris_weak_who next; /* of a turn */
    unsigned behind;           /* for a read: number of newer writes */
};

struct iris_weak_count {
    struct iris_weak_who who;
    uint64_t of[2]; /* counts of turns and of reads */
};

static uint64_t draw_random(struct iris_weak_choices *choices)
{
    uint64_t z = choices->random += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static unsigned draw_answer(struct iris_weak_choices *choices,
                            enum iris_weak_choice choice, unsigned count)
{
    unsigned one_in = choice == IRIS_WEAK_GO_ON  ? choices->stay
                      : choice == IRIS_WEAK_READ ? 2
                                                 : 1;

    if (draw_random(choices) % one_in != 0) {
        return 0;
    }
    return choice == IRIS_WEAK_TURN
               ? (unsigned)(draw_random(choices) % count)
               : 1 + (unsigned)(draw_random(choices) % (count - 1));
}

static int compare_who(struct iris_weak_who a, struct iris_weak_who b)
{
    int order = IRIS_COMPARE(a.rank, b.rank);

    order = order != 0 ? order : IRIS_COMPARE(a.stream, b.stream);
    return order != 0 ? order : IRIS_COMPARE(a.workgroup, b.workgroup);
}

/* The number of the decision among the workgroup's, from 1. */
static uint64_t count_decision(struct iris_weak_choices *choices,
                               struct iris_weak_who who, bool is_read)
{
    struct iris_weak_count *count = NULL;

    for (size_t i = 0; i < choices->num_counts && count == NULL; i++) {
        if (compare_who(choices->counts[i].who, who) == 0) {
            count = &choices->counts[i];
        }
    }
    if (count == NULL) {
        count =
            iris_i_grow(&choices->counts, &choices->num_counts, sizeof *count);
        if (count == NULL) {
            return 0;
        }
        count->who = who;
    }
    return ++count->of[is_read];
}

static int compare_decisions(const void *left, const void *right)
{
    const struct iris_weak_decision *a = left, *b = right;
    int order = a->is_read - b->is_read;

    order = order != 0 ? order : compare_who(a->who, b->who);
    return order != 0 ? order : IRIS_COMPARE(a->nth, b->nth);
}

/* The index of the workgroup in the line; 0: it does not wait for its turn. */
static unsigned find_index(const struct iris_weak_question *question,
                           struct iris_weak_who who)
{
    unsigned i = question->count;

    while (i > 0 && compare_who(question->next[i - 1], who) != 0) {
        i--;
    }
    return i == 0 ? 0 : i - 1;
}

static unsigned follow_told(const struct iris_weak_question *question,
                            const struct iris_weak_decision *told)
{
    if (told == NULL || told->is_read != (question->next == NULL)) {
        return 0;
    }
    return !told->is_read                   ? find_index(question, told->next)
           : told->behind < question->count ? told->behind
                                            : 0;
}

/* The explorer's answer. */
static unsigned explore_step(struct iris_weak_choices *choices,
                             const struct iris_weak_question *question)
{
    const struct iris_weak_decision *told =
        choices->next_followed < choices->num_follow
            ? &choices->follow[choices->next_followed]
            : NULL;

    choices->next_followed +=
        told != NULL && told->is_read == (question->next == NULL);
    return follow_told(question, told);
}

static unsigned follow_decision(const struct iris_weak_choices *choices,
                                const struct iris_weak_question *question,
                                uint64_t nth)
{
    const struct iris_weak_decision key = {
        .is_read = question->next == NULL, .who = question->who, .nth = nth};

    return follow_told(question,
                       bsearch(&key, choices->follow, choices->num_follow,
                               sizeof key, compare_decisions));
}

/* Records every answer, together with the possible ones. */
static void record_step(FILE *file, const struct iris_weak_question *question,
                        unsigned answer)
{
    const struct iris_weak_who *next = question->next;

    if (next == NULL) {
        fprintf(file, "step old %u of %u\n", answer, question->count);
        return;
    }
    fprintf(file, "step run %d %u %u of", next[answer].rank,
            next[answer].stream, next[answer].workgroup);
    for (unsigned i = 0; i < question->count; i++) {
        fprintf(file, " %d %u %u,", next[i].rank, next[i].stream,
                next[i].workgroup);
    }
    fprintf(file, "\n");
}

void iris_i_weak_tell(const struct iris_weak_choices *choices, const char *text)
{
    if (choices->explores && choices->record != NULL) {
        fprintf(choices->record, "step %s\n", text);
    }
}

static void record_answer(FILE *file, const struct iris_weak_question *question,
                          uint64_t nth, unsigned answer)
{
    const struct iris_weak_who *who = &question->who, *next;

    fprintf(file, "%s %d %u %u %llu ", question->next == NULL ? "read" : "turn",
            who->rank, who->stream, who->workgroup, (unsigned long long)nth);
    if (question->next == NULL) {
        fprintf(file, "old %u of %u\n", answer, question->count);
    } else {
        next = &question->next[answer];
        fprintf(file, "to %d %u %u\n", next->rank, next->stream,
                next->workgroup);
    }
}

unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            const struct iris_weak_question *question)
{
    unsigned answer = choices->explores ? explore_step(choices, question) : 0;
    uint64_t nth;

    if (choices->explores && choices->record != NULL) {
        record_step(choices->record, question, answer);
    }
    if (question->count <= 1 ||
        (choices->newest && question->choice == IRIS_WEAK_READ)) {
        return 0;
    }
    choices->num_decisions++;
    nth = count_decision(choices, question->who, question->next == NULL);
    if (!choices->explores) {
        answer = choices->follow == NULL
                     ? draw_answer(choices, question->choice, question->count)
                     : follow_decision(choices, question, nth);
    }
    if (choices->record != NULL && answer != 0) {
        record_answer(choices->record, question, nth, answer);
    }
    return answer;
}

/* ---- Files ---- */

/* Whether the first line of a file has this program's name, number of ranks and
 * check. */
static iris_status_t compare_header(const struct iris_check_params *params,
                                    bool newest, const char *line)
{
    const char *own_check = newest ? "race" : "weak";
    int num_ranks = params->heap->log->num_ranks;
    char check[16], program[256];
    int ranks;

    if (sscanf(line, "schedule seed %*u check %15s ranks %d program %255[^\n]",
               check, &ranks, program) != 3 ||
        (strcmp(check, own_check) == 0 && ranks == num_ranks &&
         strcmp(program, program_invocation_short_name) == 0)) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "IRIS_REPLAY: %s was recorded by %s with %d ranks and "
                       "IRIS_CHECK=%s; this is %s with %d ranks and "
                       "IRIS_CHECK=%s",
                       params->follow, program, ranks, check,
                       program_invocation_short_name, num_ranks, own_check);
}

static bool read_decision(const char *line, bool explores,
                          struct iris_weak_decision *told)
{
    unsigned long long nth = 0;
    struct iris_weak_who *who = &told->who, *next = &told->next;

    *told = (struct iris_weak_decision){.is_read = line[explores ? 5 : 0] ==
                                                   (explores ? 'o' : 'r')};
    if (explores) {
        return sscanf(line, "step run %d %u %u", &next->rank, &next->stream,
                      &next->workgroup) == 3 ||
               sscanf(line, "step old %u", &told->behind) == 1;
    }
    if (sscanf(line, "turn %d %u %u %llu to %d %u %u", &who->rank, &who->stream,
               &who->workgroup, &nth, &next->rank, &next->stream,
               &next->workgroup) != 7 &&
        sscanf(line, "read %d %u %u %llu old %u", &who->rank, &who->stream,
               &who->workgroup, &nth, &told->behind) != 5) {
        return false;
    }
    told->nth = nth;
    return true;
}

/* Lines with other words are for people. */
static iris_status_t read_choices(struct iris_weak_choices *choices,
                                  const struct iris_check_params *params)
{
    const char *path = params->follow;
    struct iris_weak_decision *one;
    iris_status_t status = IRIS_OK;
    FILE *file = fopen(path, "re");
    char line[512];
    bool has_memory;

    if (file == NULL) {
        return iris_i_fail_errno(NULL, IRIS_ERR_CONFIG, errno,
                                 "IRIS_REPLAY: cannot read %s", path);
    }
    has_memory = iris_i_reserve(&choices->follow, 0, sizeof *one);
    while (has_memory && fgets(line, sizeof line, file) != NULL) {
        struct iris_weak_decision told;

        if (strncmp(line, "schedule ", 9) == 0) {
            status = compare_header(params, choices->newest, line);
        }
        choices->explores |= strcmp(line, "explore\n") == 0;
        if (!read_decision(line, choices->explores, &told)) {
            continue;
        }
        one = iris_i_grow(&choices->follow, &choices->num_follow, sizeof *one);
        has_memory = one != NULL;
        if (has_memory) {
            *one = told;
        }
    }
    fclose(file);
    if (!has_memory) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the choices in %s", path);
    }
    if (choices->explores) {
        return status;
    }
    qsort(choices->follow, choices->num_follow, sizeof *choices->follow,
          compare_decisions);
    return status;
}

static iris_status_t open_choices(const struct iris_check_params *params,
                                  struct iris_weak_choices *choices)
{
    choices->random = params->seed;
    choices->stay = 1 + (unsigned)(draw_random(choices) % 4);
    if (params->follow[0] != '\0') {
        iris_status_t status = read_choices(choices, params);

        if (status != IRIS_OK) {
            return status;
        }
    }
    if (params->record[0] == '\0') {
        return IRIS_OK;
    }
    choices->record = fopen(params->record, "we");
    if (choices->record == NULL) {
        return iris_i_fail_errno(NULL, IRIS_ERR_CONFIG, errno,
                                 "IRIS_SCHEDULE: cannot write %s",
                                 params->record);
    }
    /* After a crash, the file has complete lines. */
    setvbuf(choices->record, NULL, _IOLBF, 0);
    fprintf(choices->record,
            "schedule seed %llu check %s ranks %d program %s\n",
            (unsigned long long)params->seed, choices->newest ? "race" : "weak",
            params->heap->log->num_ranks, program_invocation_short_name);
    return IRIS_OK;
}

static void close_choices(struct iris_weak_choices *choices)
{
    if (choices->record != NULL) {
        int failed;

        fprintf(choices->record, "end %llu\n",
                (unsigned long long)choices->num_decisions);
        failed = ferror(choices->record);
        if (fclose(choices->record) != 0 || failed) {
            iris_i_warning(NULL, "IRIS_SCHEDULE: the file is not complete; "
                                 "is the disk full?");
        }
    }
    free(choices->follow);
    free(choices->counts);
}

/* ---- Schedule ---- */

/* If nothing has happened for this time, the schedule chooses among the
 * workgroups that are present. The run may then not replay. Each time halves the
 * patience until all are present again: a host that polls never waits. A workgroup
 * that runs outside of operations and makes no step for STALL_NS lets others run,
 * too. */
#define PATIENCE_US 300000
#define LEAST_PATIENCE_US 1000
#define STALL_NS INT64_C(1000000000)

struct iris_weak_slot {
    struct iris_weak_slot *next; /* sorted by rank, stream and workgroup */
    struct stream *stream;
    unsigned workgroup;
    bool waits;     /* it waits for its turn */
    bool is_inside; /* it is in an operation: memory has that one's values */
    bool is_away;   /* it ran for too long, and counts as waiting */
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
    uint64_t steps;  /* number of events so far */
    int64_t step_ns; /* time of the latest one */
    long patience_us;
    struct iris_weak_choices choices;
};

void iris_i_weak_lock(struct iris_weak_schedule *schedule)
    IRIS_ACQUIRES(schedule->lock)
{
    pthread_mutex_lock(&schedule->lock);
}

void iris_i_weak_unlock(struct iris_weak_schedule *schedule)
    IRIS_RELEASES(schedule->lock)
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

/* The next waiting workgroup in line: from `slot` on, and then from the
 * first. */
static struct iris_weak_slot *
find_in_line(const struct iris_weak_schedule *schedule,
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
    slot = find_in_line(schedule, goes_on || last == NULL ? last : last->next);
    next = malloc(question.count * sizeof *next);
    if (next != NULL) { /* otherwise the first in line is next */
        for (unsigned i = 0; i < question.count; i++) {
            next[i] = iris_i_weak_who(slot);
            slot = find_in_line(schedule, slot->next);
        }
        question.next = next;
        chosen = iris_i_weak_decide(&schedule->choices, &question);
        free(next);
    }
    for (; chosen > 0; chosen--) {
        slot = find_in_line(schedule, slot->next);
    }
    if (slot->stream->is_own) {
        iris_i_weak_tell(&schedule->choices, "own");
    }
    slot->waits = false;
    slot->stream->waiting--;
    schedule->running = slot;
    pthread_cond_signal(&slot->turn);
}

static void advance_schedule(struct iris_weak_schedule *schedule)
{
    schedule->steps++;
    schedule->step_ns = iris_i_now_ns();
    if (schedule->running == NULL && is_complete(schedule)) {
        schedule->patience_us = PATIENCE_US;
        choose_next(schedule);
    }
}

/* The workgroup that runs has made no step for long, or a host has not come to
 * wait: another workgroup runs, in an order that the choices do not decide on. */
static void hand_over(struct iris_weak_schedule *schedule)
{
    struct iris_weak_slot *away = schedule->running;

    if (away != NULL) {
        away->is_away = true;
        away->stream->waiting++;
        schedule->running = NULL;
    }
    schedule->steps++;
    schedule->step_ns = iris_i_now_ns();
    if (schedule->choices.record != NULL) { /* it may not replay */
        fprintf(schedule->choices.record, "early\n");
    }
    if (schedule->patience_us > 2 * LEAST_PATIENCE_US) {
        schedule->patience_us /= 2;
    }
    choose_next(schedule);
}

static void wait_for_turn(struct iris_weak_schedule *schedule,
                          struct iris_weak_slot *slot)
    IRIS_REQUIRES(schedule->lock)
{
    slot->waits = true;
    slot->stream->waiting += !slot->is_away;
    slot->is_away = false;
    advance_schedule(schedule);
    while (slot->waits) {
        uint64_t steps = schedule->steps;
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += schedule->patience_us * 1000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&slot->turn, &schedule->lock, &until) ==
                ETIMEDOUT &&
            slot->waits && steps == schedule->steps &&
            (schedule->running == NULL ||
             (!schedule->running->is_inside &&
              iris_i_now_ns() - schedule->step_ns > STALL_NS))) {
            hand_over(schedule);
        }
    }
}

/* ---- Workgroups ---- */

struct iris_weak_slot *iris_i_weak_enter(struct iris_weak_schedule *schedule,
                                         int rank, uint64_t run,
                                         unsigned workgroup, bool *is_own_p)
    IRIS_REQUIRES(schedule->lock)
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
    for (at = &schedule->slots;
         *at != NULL &&
         compare_who(iris_i_weak_who(*at), iris_i_weak_who(slot)) < 0;) {
        at = &(*at)->next;
    }
    slot->next = *at;
    *at = slot;
    wait_for_turn(schedule, slot);
    return slot;
}

static void stop_slot(struct iris_weak_schedule *schedule,
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
    IRIS_REQUIRES(schedule->lock)
{
    stop_slot(schedule, slot, polls);
    wait_for_turn(schedule, slot);
}

void iris_i_weak_exit(struct iris_weak_schedule *schedule,
                      struct iris_weak_slot *slot)
{
    struct iris_weak_slot **at = &schedule->slots;

    stop_slot(schedule, slot, true);
    while (*at != slot) {
        at = &(*at)->next;
    }
    *at = slot->next;
    schedule->last = NULL; /* the first in line is next */
    slot->stream->left -= slot->stream->left != 0;
    slot->stream->waiting -= slot->is_away;
    pthread_cond_destroy(&slot->turn);
    free(slot);
    advance_schedule(schedule);
}

void iris_i_weak_enter_operation(struct iris_weak_slot *slot, bool enters)
{
    slot->is_inside = enters;
}

bool iris_i_weak_is_idle(const struct iris_weak_schedule *schedule)
{
    return schedule->slots == NULL;
}

/* ---- Hosts ---- */

static struct stream *find_stream(struct iris_weak_schedule *schedule, int rank,
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

/* Ends the run of a rank's stream. */
static void end_weak_run(struct iris_weak_schedule *schedule, int rank,
                         uint64_t run)
{
    for (struct stream *one = schedule->streams; one != NULL; one = one->next) {
        if (one->rank == rank && one->run == run) {
            one->run = 0;
            one->pending -= one->pending != 0;
        }
    }
}

void iris_i_weak_host_works(struct iris_weak_schedule *schedule,
                            const struct iris_host_event *event,
                            const void *stream)
{
    struct stream *one =
        event->op == IRIS_HOST_LAUNCH ||
                (event->op == IRIS_HOST_KERNEL && !event->after)
            ? find_stream(schedule, event->rank, stream)
            : NULL;
    bool is_own = event->value == 0; /* a kernel of the library */

    if (event->op == IRIS_HOST_SYNCHRONIZE) {
        schedule->hosts[event->rank].waits = event->after ? NULL : stream;
    } else if (event->op == IRIS_HOST_LAUNCH && one != NULL) {
        one->pending += event->after ? -1u : 1u;
    } else if (event->op == IRIS_HOST_KERNEL && event->after) {
        end_weak_run(schedule, event->rank, event->id);
    } else if (one != NULL) {
        one->pending += is_own;
        one->run = event->id;
        one->is_own = is_own;
        one->left = event->grid;
    }
    advance_schedule(schedule);
}

void iris_i_weak_host_meets(struct iris_weak_schedule *schedule, int rank,
                            uint64_t number)
{
    struct host *host = &schedule->hosts[rank];

    host->meets = number;
    host->met = number > host->met ? number : host->met;
    advance_schedule(schedule);
}

void iris_i_weak_host_left(struct iris_weak_schedule *schedule, int rank)
{
    schedule->hosts[rank].left = true;
    schedule->hosts[rank].met = UINT64_MAX;
    advance_schedule(schedule);
}

/* ---- Creating and destroying ---- */

iris_status_t
iris_i_weak_schedule_create(const struct iris_check_params *params, bool newest,
                            struct iris_weak_schedule **schedule_p)
{
    struct iris_weak_schedule *schedule = calloc(1, sizeof *schedule);
    int num_ranks = params->heap->log->num_ranks;
    struct host *hosts = calloc((size_t)num_ranks, sizeof *hosts);
    iris_status_t status;

    if (schedule == NULL || hosts == NULL) {
        free(schedule);
        free(hosts);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the weak mode");
    }
    schedule->patience_us = PATIENCE_US;
    schedule->hosts = hosts;
    schedule->num_ranks = num_ranks;
    schedule->threads = params->threads;
    pthread_mutex_init(&schedule->lock, NULL);
    schedule->choices.newest = newest;
    status = open_choices(params, &schedule->choices);
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
    close_choices(&schedule->choices);
    free(schedule->hosts);
    pthread_mutex_destroy(&schedule->lock);
    free(schedule);
}
