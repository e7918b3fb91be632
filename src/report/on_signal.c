/* SPDX-License-Identifier: MIT
 *
 * SIGUSR2: a thread of the process prints the report of its jobs. The handler
 * only wakes it, whatever the program is doing.
 */
#include "config.h"

#include "report/on_signal.h"

#include "report/incident.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES ((size_t)512 << 10)

struct watched {
    struct watched *next;
    struct iris_control *control;
    const char *prefix;
};

/* Whoever begins or ends to watch; the list, which the thread goes through. */
static pthread_mutex_t starts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *watched;
static pthread_t thread; /* while any is watched */
static int ends;         /* under the lock: the thread is to */
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
            iris_i_report_asked(w->control, w->prefix);
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

/* No signal of the program's comes to the thread. */
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

/* The program may have put a handler of its own in its place. A signal that
 * came before finds the semaphore still: it is never destroyed. */
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
