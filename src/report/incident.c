/* SPDX-License-Identifier: MIT
 *
 * The verdict about the ranks, and the report that a job writes about itself.
 *
 * A report goes from snapshot to verdict (analyse) to text. A job writes one
 * report for an incident: the first rank that meets a deadline or a death
 * claims it in the table, and the others leave it alone. SIGUSR2 prints one at
 * any time. The handler only posts a semaphore; a thread that waits for it
 * prints the contexts of the list, which watched_lock guards.
 */
#include "config.h"

#include "report/internal.h"

#include "report/report.h"
#include "base/base.h"
#include "control/records.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Finds the ranks that can go on. Unknown ranks count as able to go on: a job
 * is called hung only if no rank remains that could end its waits.
 */

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
        if (iris_i_host_op_waits(rank->open[i].op)) {
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

static int is_free_to_go(const struct iris_report_rank *rank,
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
static void spread_moves(const struct iris_report *report, int stopped,
                         char *moves)
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

static void count_states(const struct iris_report *report, char *moves,
                         char *hung, struct counts *counts)
{
    memset(counts, 0, sizeof *counts);
    spread_moves(report, 0, moves);
    spread_moves(report, 1, hung);
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
        rank->is_free = (char)is_free_to_go(rank, &before->ranks[i]);
    }
    iris_i_report_find_places(report);
    count_states(report, moves, hung, &counts);
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

/* ---------------------------------------------------------------------------
 * The report that a job writes about itself: once, after a deadline or the
 * death of a rank, by the first rank that meets it. (The lowest live rank may
 * be stopped, or may not wait for anything and never notice.)
 */

/* Log lines have a limited length, and so have the pieces of a longer one. */
static void log_lines(const struct iris_log *log, char *text)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        iris_i_error(log, "%s", line);
    }
}

/* The output of `print`, which the caller frees; NULL: no memory. */
static char *render_report(const struct iris_report *report,
                           void (*print)(const struct iris_report *report,
                                         FILE *out),
                           size_t *bytes_p)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes_p);

    if (out == NULL) {
        return NULL;
    }
    print(report, out);
    return fclose(out) == 0 ? text : NULL;
}

static void write_json(const struct iris_control *control,
                       const struct iris_report *report, const char *prefix)
{
    unsigned long long n = iris_i_records_number(control->records);
    size_t bytes = 0;
    char *text = render_report(report, iris_i_report_json, &bytes);
    char path[4096];
    int ret = 0;

    if ((size_t)snprintf(path, sizeof path, "%s_report_%llu.json", prefix, n) <
            sizeof path &&
        text != NULL) {
        ret = iris_i_file_write(path, text, bytes);
    }
    if (ret != 0) {
        iris_i_warning(control->log, "the report is not in %s: %s", path,
                       strerror(ret));
    }
    free(text);
}

static void print_report(struct iris_control *control,
                         const struct iris_report *report, const char *prefix)
{
    size_t bytes;
    char *text = render_report(report, iris_i_report_text, &bytes);

    if (text != NULL) {
        log_lines(control->log, text);
    }
    free(text);
    if (prefix[0] != '\0') {
        write_json(control, report, prefix);
    }
}

/* Leaves the thread's message unchanged: the caller is about to return it. If
 * `is_mismatch` is set, the message is the cause. */
static void write_report(struct iris_control *control, const char *prefix,
                         int is_mismatch)
{
    char message[IRIS_MESSAGE_BYTES];
    struct iris_report *report;

    snprintf(message, sizeof message, "%s", iris_last_error());
    if (iris_i_report_make(control->records->fd, IRIS_APART_MS, &report) !=
        IRIS_OK) {
        iris_i_warning(control->log, "no report of the ranks: %s",
                       iris_last_error());
    } else {
        /* A rank that has left since then left because of it. */
        if (is_mismatch) {
            report->verdict = IRIS_VERDICT_MISMATCH;
            snprintf(report->cause, sizeof report->cause, "%.*s",
                     IRIS_REPORT_CAUSE - 1, message);
        }
        print_report(control, report, prefix);
        free(report);
    }
    (void)iris_i_fail_again(IRIS_OK, message);
}

/* A rank that fails while another one reports, on this host or another, stays
 * until it is in the report: otherwise the report would say that it left. */
static void stay_for_report(const struct iris_control *control)
{
    struct iris_wait wait;

    iris_i_wait_moment(&wait, IRIS_STAY_MS);
    while (iris_i_records_is_reporting(control->records) &&
           iris_i_wait_tick(&wait) == IRIS_OK) {
    }
    if (iris_i_records_has_far(control->records)) {
        iris_i_wait_apart(4 * IRIS_ROW_MS);
    }
}

void iris_i_report_incident(struct iris_control *control, const char *prefix)
{
    if (control->records == NULL) {
        return;
    }
    if (iris_i_records_claim(control->records, control->rank)) {
        write_report(control, prefix, 0);
        iris_i_records_reported(control->records, control->rank);
    }
    stay_for_report(control);
}

/* Unless a rank of the job has done so in the last second. */
static void write_in_turn(struct iris_control *control, const char *prefix,
                          int is_mismatch)
{
    if (control->records != NULL &&
        iris_i_records_take_turn(control->records,
                                 IRIS_TURN_MS * IRIS_NS_PER_MS)) {
        write_report(control, prefix, is_mismatch);
    }
}

void iris_i_report_mismatch(struct iris_control *control, const char *prefix)
{
    write_in_turn(control, prefix, 1);
}

/* ---- SIGUSR2 ---- */

/* A thread of the process prints the report of its jobs. The handler only wakes
 * it, so it works at any point of the program. */
#define STACK_BYTES ((size_t)512 << 10)

struct watched {
    struct watched *next;
    struct iris_control *control;
    const char *prefix;
};

static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
/* Held while the thread is started or stopped. */
static pthread_mutex_t
    starts_lock IRIS_ACQUIRED_BEFORE(watched_lock) = PTHREAD_MUTEX_INITIALIZER;
/* The thread walks it. */
static struct watched *watched IRIS_GUARDED_BY(watched_lock);
/* Runs while any job is watched. */
static pthread_t thread IRIS_GUARDED_BY(starts_lock);
/* The thread has to end. */
static int ends IRIS_GUARDED_BY(watched_lock);
static sem_t asked;

static void on_signal(int number)
{
    int before = errno;

    (void)number;
    (void)sem_post(&asked);
    errno = before;
}

static void *print_reports(void *unused)
{
    int over = 0;

    (void)unused;
    while (!over) {
        while (sem_wait(&asked) != 0) {
        }
        pthread_mutex_lock(&watched_lock);
        over = ends;
        for (struct watched *w = over ? NULL : watched; w != NULL;
             w = w->next) {
            write_in_turn(w->control, w->prefix, 0);
        }
        pthread_mutex_unlock(&watched_lock);
    }
    return NULL;
}

static int is_free(void)
{
    struct sigaction action;

    return sigaction(SIGUSR2, NULL, &action) == 0 &&
           (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

static int start_thread(void) IRIS_REQUIRES(starts_lock, watched_lock)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    ends = 0;
    sem_init(&asked, 0, 0);
    if (iris_i_thread_start(&thread, "iris-report", STACK_BYTES, print_reports,
                            NULL) != 0) {
        return 0;
    }
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR2, &action, NULL);
    return 1;
}

/* The program may have replaced the handler. An earlier signal still finds the
 * semaphore, which is never destroyed. */
static void stop_thread(void) IRIS_REQUIRES(starts_lock)
{
    struct sigaction action, none = {.sa_handler = SIG_DFL};

    if (sigaction(SIGUSR2, NULL, &action) == 0 &&
        (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == on_signal) {
        sigemptyset(&none.sa_mask);
        (void)sigaction(SIGUSR2, &none, NULL);
    }
    (void)sem_post(&asked);
    pthread_join(thread, NULL);
}

void iris_i_report_watch(struct iris_control *control, const char *prefix)
{
    struct watched *w = calloc(1, sizeof *w);

    pthread_mutex_lock(&starts_lock);
    pthread_mutex_lock(&watched_lock);
    if (w != NULL && control->records != NULL &&
        (watched != NULL || (is_free() && start_thread()))) {
        *w = (struct watched){watched, control, prefix};
        watched = w;
        w = NULL;
    }
    pthread_mutex_unlock(&watched_lock);
    pthread_mutex_unlock(&starts_lock);
    free(w);
}

void iris_i_report_unwatch(struct iris_control *control)
{
    struct watched **link = &watched, *w;
    int is_last;

    pthread_mutex_lock(&starts_lock);
    pthread_mutex_lock(&watched_lock);
    while (*link != NULL && (*link)->control != control) {
        link = &(*link)->next;
    }
    w = *link;
    if (w != NULL) {
        *link = w->next;
    }
    is_last = watched == NULL;
    ends = is_last;
    pthread_mutex_unlock(&watched_lock);
    if (w != NULL && is_last) {
        stop_thread();
    }
    pthread_mutex_unlock(&starts_lock);
    free(w);
}
