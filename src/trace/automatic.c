/* SPDX-License-Identifier: MIT
 *
 * IRIS_TRACE: a trace of any program. It is enabled when a context begins. Each
 * rank writes its part when it leaves the job, and the last rank merges the
 * parts.
 */
#include "config.h"

#include "trace/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of events to record. IRIS_TRACE_HEAP_BYTES has space for them. Fewer
 * if memory is short, down to the second number. */
#define MAX_EVENTS ((size_t)1 << 19)
#define LEAST_EVENTS ((size_t)1 << 13)

/* A traced context, from its begin to its end. */
struct automatic {
    struct automatic *next;
    iris_t *iris;
    enum { RECORDS, WRITES, WRITTEN } state;
    char file[PATH_MAX]; /* absolute: the program may change its folder */
};

/* All of this process. If a program exits without iris_finalize(), a handler
 * writes its traces. The handler waits for traces that another thread is
 * writing. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t written = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct automatic *list;
static atomic_int process; /* the process of these contexts, or of the latest
                            * ones */

/* The lock is held. */
static struct automatic *find(const iris_t *iris)
{
    struct automatic *one = list;

    while (one != NULL && (one->iris != iris || one->iris->pid != getpid())) {
        one = one->next;
    }
    return one;
}

/* Does not change the program's errors. */
static void write_own(const struct automatic *one, int waits)
{
    iris_t *iris = one->iris;
    struct iris_trace *trace =
        (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE);
    char message[IRIS_MESSAGE_BYTES];

    if (trace == NULL) { /* an iris_trace_enable() of the program failed */
        return;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    if ((waits ? iris_i_trace_write_own(trace, one->file)
               : iris_i_trace_write_now(trace, one->file)) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: %s", iris_last_error());
    }
    (void)iris_i_fail_again(IRIS_OK, message);
}

/* If ranks leave one by one, the last one merges: it finds the files of all
 * others. If two end at once, both merge, with the same result. */
static void merge_if_complete(const struct automatic *one)
{
    iris_t *iris = one->iris;
    char path[PATH_MAX], message[IRIS_MESSAGE_BYTES];

    for (int rank = 0; rank < iris_i_num_ranks(iris); rank++) {
        iris_i_trace_rank_path(one->file, rank, path);
        if (access(path, F_OK) != 0) {
            return;
        }
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (iris_i_trace_merge(iris, one->file) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: %s", iris_last_error());
    } else {
        iris_i_info(iris_i_log(iris), "wrote trace %s of all ranks", one->file);
    }
    (void)iris_i_fail_again(IRIS_OK, message);
}

static void at_exit(void)
{
    if (atomic_load(&process) != getpid()) { /* a fork without contexts */
        return;
    }
    pthread_mutex_lock(&list_lock);
    for (struct automatic *one = list; one != NULL; one = one->next) {
        if (one->iris->pid != getpid()) {
            continue;
        }
        while (one->state == WRITES) {
            pthread_cond_wait(&written, &list_lock);
        }
        if (one->state == RECORDS) {
            one->state = WRITTEN;
            write_own(one, 0);
        }
        merge_if_complete(one); /* its thread will not get to that */
    }
    pthread_mutex_unlock(&list_lock);
}

static void prepare(void)
{
    (void)atexit(at_exit);
}

/* ---- Begin and end of contexts ---- */

static void set_path(struct automatic *one, const char *file)
{
    char folder[PATH_MAX / 2] = "";

    if (file[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        folder[0] = '\0';
    }
    snprintf(one->file, sizeof one->file, "%s%s%.1500s", folder,
             folder[0] != '\0' ? "/" : "", file);
}

/* Removes files of an earlier run, which could be taken for this one's. */
static void remove_old(const iris_t *iris, const char *file)
{
    char path[PATH_MAX];

    iris_i_trace_rank_path(file, iris_i_rank(iris), path);
    (void)unlink(path);
    if (iris_i_rank(iris) == 0) {
        (void)unlink(file);
    }
}

/* All ranks compute the same values, as iris_trace_enable() requires. */
static iris_status_t enable(iris_t *iris)
{
    size_t events = MAX_EVENTS;
    iris_status_t status = iris_trace_enable(iris, events);

    while (status == IRIS_ERR_NO_MEMORY && events > LEAST_EVENTS) {
        events /= 8;
        status = iris_trace_enable(iris, events);
    }
    return status;
}

static void begun(iris_t *iris)
{
    const char *file = iris_i_settings(iris)->trace.text;
    struct automatic *one;

    if (file[0] == '\0') {
        return;
    }
    one = calloc(1, sizeof *one);
    if (one == NULL || iris_i_trace_check_file(iris, file) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: %s",
                       one == NULL ? "no memory" : iris_last_error());
        free(one);
        return;
    }
    one->iris = iris;
    set_path(one, file);
    remove_old(iris, one->file);
    if (enable(iris) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: nothing is recorded: %s",
                       iris_last_error());
        free(one);
        return;
    }
    (void)pthread_once(&once, prepare);
    atomic_store(&process, getpid());
    pthread_mutex_lock(&list_lock);
    one->next = list;
    list = one;
    pthread_mutex_unlock(&list_lock);
}

static void ending(iris_t *iris, int waits)
{
    struct automatic *one;

    pthread_mutex_lock(&list_lock);
    one = find(iris);
    if (one == NULL || one->state != RECORDS) {
        pthread_mutex_unlock(&list_lock);
        return;
    }
    one->state = WRITES;
    pthread_mutex_unlock(&list_lock);
    write_own(one, waits);
    pthread_mutex_lock(&list_lock);
    one->state = WRITTEN;
    pthread_cond_broadcast(&written);
    pthread_mutex_unlock(&list_lock);
}

static struct automatic *take(const iris_t *iris)
{
    struct automatic **link = &list, *one;

    pthread_mutex_lock(&list_lock);
    one = find(iris);
    while (one != NULL && *link != one) {
        link = &(*link)->next;
    }
    if (one != NULL) {
        *link = one->next;
    }
    pthread_mutex_unlock(&list_lock);
    return one;
}

static void ended(iris_t *iris, enum iris_rank_state state)
{
    struct automatic *one = take(iris);

    if (one != NULL &&
        (state != IRIS_RANK_FINALIZED || iris_i_rank(iris) == 0)) {
        merge_if_complete(one);
    }
    free(one);
}

const struct iris_life_ops iris_i_life_ops = {
    .begun = begun,
    .ending = ending,
    .ended = ended,
};
