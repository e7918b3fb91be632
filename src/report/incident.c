/* SPDX-License-Identifier: MIT
 *
 * The report that a job writes about itself: once, after a deadline or the
 * death of a rank, by the first rank that meets it. (The lowest live rank may
 * be stopped, or may not wait for anything and never notice.)
 */
#include "config.h"

#include "report/report.h"

#include "base/base.h"
#include "control/records.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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
static char *render(const struct iris_report *report,
                    void (*print)(const struct iris_report *report, FILE *out),
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
    char *text = render(report, iris_i_report_json, &bytes);
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

static void print(struct iris_control *control,
                  const struct iris_report *report, const char *prefix)
{
    size_t bytes;
    char *text = render(report, iris_i_report_text, &bytes);

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
        print(control, report, prefix);
        free(report);
    }
    (void)iris_i_fail_again(IRIS_OK, message);
}

/* A rank that fails while another one reports, on this host or another, stays
 * until it is in the report: otherwise the report would say that it left. */
static void stay(const struct iris_control *control)
{
    struct iris_wait wait;

    iris_i_wait_moment(&wait, IRIS_STAY_MS);
    while (iris_i_records_is_reporting(control->records) &&
           iris_i_wait_tick(&wait) == IRIS_OK) {
    }
    if (iris_i_records_has_far(control->records)) {
        iris_i_wait_moment(&wait, 4 * IRIS_ROW_MS);
        while (iris_i_wait_tick(&wait) == IRIS_OK) {
        }
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
    stay(control);
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

/* Guards starting and stopping; guards the list, which the thread walks. */
static pthread_mutex_t starts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *watched;
static pthread_t thread; /* runs while any job is watched */
static int ends;         /* under the lock: the thread has to end */
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

/* The thread receives none of the program's signals. */
static int start(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_attr_t attributes;
    sigset_t all, before;
    int ret;

    ends = 0;
    sem_init(&asked, 0, 0);
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&thread, &attributes, print_reports, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (ret != 0) {
        return 0;
    }
    pthread_setname_np(thread, "iris-report");
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR2, &action, NULL);
    return 1;
}

/* The program may have replaced the handler. An earlier signal still finds the
 * semaphore, which is never destroyed. */
static void stop(void)
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
    if (w != NULL && control->records != NULL &&
        (watched != NULL || (is_free() && start()))) {
        *w = (struct watched){watched, control, prefix};
        pthread_mutex_lock(&watched_lock);
        watched = w;
        pthread_mutex_unlock(&watched_lock);
        w = NULL;
    }
    pthread_mutex_unlock(&starts_lock);
    free(w);
}

void iris_i_report_unwatch(struct iris_control *control)
{
    struct watched **link = &watched, *w;

    pthread_mutex_lock(&starts_lock);
    pthread_mutex_lock(&watched_lock);
    while (*link != NULL && (*link)->control != control) {
        link = &(*link)->next;
    }
    w = *link;
    if (w != NULL) {
        *link = w->next;
    }
    ends = watched == NULL;
    pthread_mutex_unlock(&watched_lock);
    if (w != NULL && watched == NULL) {
        stop();
    }
    pthread_mutex_unlock(&starts_lock);
    free(w);
}
