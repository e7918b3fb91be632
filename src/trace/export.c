/* SPDX-License-Identifier: MIT
 *
 * Export: the files of all ranks, the merged file, and IRIS_TRACE.
 *
 * All ranks export together: each writes its own file, then rank 0 merges them
 * into one, which takes their place. With IRIS_TRACE the trace begins with the
 * context, each rank writes its part when it leaves the job, and the last rank
 * merges the parts. Parts stay if nobody can merge them. list_lock guards the
 * contexts of this process that IRIS_TRACE traces.
 */
#include "config.h"

#include "trace/internal.h"

#include "base/base.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
 * Export: the files of all ranks, and the merged file.
 */

static const struct iris_call_type export_call = {
    .name = "iris_trace_export",
    .fields = {{.name = "file"}, {.name = "merge"}},
};

/* The name of one rank's file, from the name of the merged file. */
static void make_rank_path(const char *file, int rank, char path[PATH_MAX])
{
    const char *ending = iris_i_out_ending(file);

    snprintf(path, PATH_MAX, "%.*s_rank%d%s", (int)(ending - file), file, rank,
             ending);
}

/* Whether a trace can be written under this name. IRIS_ERR_INVALID,
 * IRIS_ERR_UNSUPPORTED */
static iris_status_t check_file(const iris_t *iris, const char *file)
{
    if (file == NULL || iris_i_out_ending(file) == NULL ||
        strlen(file) > PATH_MAX - 64) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_trace_export: file is %.200s; pass a name "
                           "that ends in .json or .json.gz",
                           file == NULL ? "NULL" : file);
    }
    if (iris_i_out_is_gz(file) && !HAVE_ZLIB) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_UNSUPPORTED,
                           "iris_trace_export: this build of Iris has no zlib, "
                           "so it cannot write %.200s; leave .gz out of the "
                           "name, or build with zlib1g-dev",
                           file);
    }
    return IRIS_OK;
}

static uint64_t hash_text(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325u;

    while (text != NULL && *text != '\0') {
        sum = (sum ^ (unsigned char)*text++) * 0x100000001b3u;
    }
    return sum >> 1; /* fields are printed as signed numbers */
}

/* All ranks get the first error of any of them. */
static iris_status_t agree_export(iris_t *iris, iris_status_t status,
                                  const char *file, int merge)
{
    struct iris_call call = {.type = &export_call, .status = status};

    call.fields[0] = hash_text(file);
    call.fields[1] = merge != 0;
    return iris_i_agree(&iris_i_world(iris)->members, &call);
}

/* Replaces the ranks' files by one. If two ranks try at once, the one that
 * renames the first file does it. */
static iris_status_t join_files(iris_t *iris, const char *file, char **paths,
                                int count)
{
    struct iris_merge_report report;
    char claimed[PATH_MAX], *first = paths[0];
    int ret;

    make_rank_path(file, iris_i_num_ranks(iris), claimed);
    if (rename(first, claimed) != 0) {
        return IRIS_OK;
    }
    paths[0] = claimed;
    ret = iris_i_merge(paths, count, file, &report);
    if (ret != 0) {
        (void)rename(claimed, first);
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_SYSTEM,
                           "iris_trace_export: %s; free some space there, or "
                           "choose another file; iris trace merge makes one "
                           "trace of the ranks' files",
                           report.error);
    }
    for (int i = 0; i < count; i++) {
        (void)unlink(paths[i]);
    }
    if (count == iris_i_num_ranks(iris)) {
        iris_i_info(iris_i_log(iris), "wrote trace %s of all ranks", file);
    } else {
        iris_i_warning(iris_i_log(iris),
                       "trace %s lacks %d ranks, which ended before they wrote "
                       "their events",
                       file, iris_i_num_ranks(iris) - count);
    }
    return IRIS_OK;
}

/* Joins the files of all ranks. If they export `together`, all files have to be
 * there. Otherwise a rank that was lost before it wrote its file is left out, and
 * nothing happens before all others have written theirs. */
static iris_status_t merge_exported(iris_t *iris, const char *file,
                                    int together)
{
    int num_ranks = iris_i_num_ranks(iris), count = 0, writes = 0;
    char *memory = malloc((size_t)num_ranks * PATH_MAX);
    char **paths = malloc((size_t)num_ranks * sizeof *paths);
    iris_status_t status = IRIS_OK;

    for (int i = 0; memory != NULL && paths != NULL && i < num_ranks; i++) {
        char *path = memory + (size_t)i * PATH_MAX;

        make_rank_path(file, i, path);
        if (access(path, F_OK) == 0) {
            paths[count++] = path;
        } else if (iris_i_peers_check(iris->control, i) == IRIS_OK) {
            writes = 1;
        }
    }
    if (memory == NULL || paths == NULL) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                             "no memory to merge traces");
    } else if (count < num_ranks && together) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_SYSTEM,
                             "iris_trace_export: rank 0 sees the files of %d "
                             "of %d ranks; use a folder that all nodes share, "
                             "or join the files with iris trace merge",
                             count, num_ranks);
    } else if (count > 0 && !writes) {
        status = join_files(iris, file, paths, count);
    }
    free(paths);
    free(memory);
    return status;
}

static iris_status_t write_files(iris_t *iris, struct iris_trace *trace,
                                 const char *file)
{
    char path[PATH_MAX];
    iris_status_t status;

    make_rank_path(file, iris_i_rank(iris), path);
    status = iris_i_trace_write(trace, path);
    if (status == IRIS_OK) {
        iris_i_info(iris_i_log(iris),
                    "wrote trace %s; clocks are exact to %lld ns between ranks "
                    "and %lld ns to the device",
                    path, (long long)trace->clock.rank_error_ns,
                    (long long)trace->clock.device_error_ns);
    }
    return status;
}

/* Reads and writes although the device has a fault, and restores the fault
 * afterwards: a GPU copies nothing while it has one. When the fault is cleared,
 * none of the old work runs any more. */
static iris_status_t write_past_fault(iris_t *iris, struct iris_trace *trace,
                                      const char *file)
{
    iris_status_t fault = iris_i_fault_check(iris_i_backend(iris)), status;
    char message[IRIS_MESSAGE_BYTES];

    if (fault == IRIS_OK || !iris_i_is_gpu(iris)) {
        return write_files(iris, trace, file);
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    status = iris_i_device_clear_fault(iris_i_backend(iris));
    if (status != IRIS_OK) {
        return iris_i_fail_on(iris_i_log(iris), status);
    }
    status = write_files(iris, trace, file);
    (void)iris_i_fault_set(iris_i_backend(iris), fault, message);
    return status;
}

/* Writes once streams are done, or the wait for them has ended (`ended`). A
 * trace is wanted especially after errors that end work, such as the loss of a
 * peer. They are not errors of this call. */
static iris_status_t write_ended(struct iris_trace *trace, const char *file,
                                 iris_status_t ended)
{
    iris_t *iris = trace->iris;
    iris_status_t status;

    atomic_fetch_add(&iris->heedless, 1);
    if (ended == IRIS_OK) {
        ended = iris_i_trace_measure_device(trace, 0);
    }
    if (ended != IRIS_OK) {
        iris_i_warning(iris_i_log(iris),
                       "the trace is written, though work of this rank has "
                       "ended: %s",
                       iris_last_error());
    }
    status = write_past_fault(iris, trace, file);
    atomic_fetch_sub(&iris->heedless, 1);
    return status;
}

/* Writes this rank's files of `file`, which check_file() has
 * checked. Works even after a fault of the device. */
static iris_status_t export_own(struct iris_trace *trace, const char *file)
{
    return write_ended(
        trace, file, iris_i_stream_synchronize_all(iris_i_queue(trace->iris)));
}

/* Whether streams are done, now or within a short time. */
static int is_idle(const struct iris_heap *heap)
{
    struct iris_wait wait;
    int idle = iris_i_heap_is_idle(heap, 1);

    iris_i_wait_moment(&wait, IRIS_IDLE_MS);
    while (!idle && iris_i_wait_tick(&wait) == IRIS_OK) {
        idle = iris_i_heap_is_idle(heap, 0);
    }
    return idle;
}

/* export_own() without waiting for streams. IRIS_ERR_STATE if
 * records would have to be copied from a GPU that is not idle. */
static iris_status_t write_now(struct iris_trace *trace, const char *file)
{
    iris_t *iris = trace->iris;

    if (is_idle(iris_i_heap(iris))) {
        return export_own(trace, file);
    }
    if (iris_i_is_gpu(iris)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                           "no trace is written while kernels run; call "
                           "iris_stream_synchronize before the program ends");
    }
    return write_past_fault(iris, trace, file);
}

/* A rank that is lost or late posts no more: this rank writes its own part all
 * the same. Returns `status`, with its message. */
static iris_status_t write_alone(iris_t *iris, struct iris_trace *trace,
                                 const char *file, iris_status_t status)
{
    char message[IRIS_MESSAGE_BYTES];

    if (status != IRIS_ERR_PEER_LOST && status != IRIS_ERR_TIMEOUT &&
        status != IRIS_ERR_STATE) {
        return status;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (export_own(trace, file) == IRIS_OK) {
        iris_i_warning(iris_i_log(iris),
                       "iris_trace_export: only this rank's own file of %s is "
                       "written; iris trace merge makes one of all there are",
                       file);
    }
    return iris_i_fail_again(status, message);
}

static iris_status_t export_all(iris_t *iris, struct iris_trace *trace,
                                const char *file)
{
    iris_status_t checked = check_file(iris, file);
    iris_status_t status = agree_export(iris, checked, file, 1);

    if (status == IRIS_OK) {
        status = iris_i_trace_measure_ranks(trace, 0, IRIS_OK);
    }
    if (status != IRIS_OK) {
        return checked == IRIS_OK ? write_alone(iris, trace, file, status)
                                  : status;
    }
    status = agree_export(iris, export_own(trace, file), file, 1);
    if (status == IRIS_OK) {
        status =
            iris_i_rank(iris) == 0 ? merge_exported(iris, file, 1) : IRIS_OK;
        status = agree_export(iris, status, file, 1);
    }
    return status;
}

iris_status_t iris_trace_export(iris_t *iris, const char *file, int merge)
{
    struct iris_trace *trace = iris_i_trace_of(iris, "iris_trace_export");
    iris_status_t status;

    if (trace == NULL) {
        return IRIS_ERR_STATE;
    }
    if (merge) {
        return export_all(iris, trace, file);
    }
    status = check_file(iris, file);
    return status == IRIS_OK ? export_own(trace, file) : status;
}

/* ---------------------------------------------------------------------------
 * IRIS_TRACE: a trace of any program. It is enabled when a context begins. Each
 * rank writes its part when it leaves the job, and the last rank merges the
 * parts.
 */

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
static struct automatic *list IRIS_GUARDED_BY(list_lock);
static atomic_int process; /* the process of these contexts, or of the latest
                            * ones */

static struct automatic *find_automatic(const iris_t *iris)
    IRIS_REQUIRES(list_lock)
{
    struct automatic *one = list;

    while (one != NULL && (one->iris != iris || one->iris->pid != getpid())) {
        one = one->next;
    }
    return one;
}

/* Does not change the program's errors. */
static void write_automatic(const struct automatic *one, int waits)
{
    iris_t *iris = one->iris;
    struct iris_trace *trace =
        (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE);
    char message[IRIS_MESSAGE_BYTES];

    if (trace == NULL) { /* an iris_trace_enable() of the program failed */
        return;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    if ((waits ? export_own(trace, one->file) : write_now(trace, one->file)) !=
        IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: %s", iris_last_error());
    }
    (void)iris_i_fail_again(IRIS_OK, message);
}

/* If ranks leave one by one, the last one merges: it finds the files of all
 * others. */
static void merge_if_complete(const struct automatic *one)
{
    iris_t *iris = one->iris;
    char message[IRIS_MESSAGE_BYTES];

    snprintf(message, sizeof message, "%s", iris_last_error());
    if (merge_exported(iris, one->file, 0) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: %s", iris_last_error());
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
            write_automatic(one, 0);
        }
        merge_if_complete(one); /* its thread will not get to that */
    }
    pthread_mutex_unlock(&list_lock);
}

static void register_exit(void)
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

    make_rank_path(file, iris_i_rank(iris), path);
    (void)unlink(path);
    if (iris_i_rank(iris) == 0) {
        (void)unlink(file);
        make_rank_path(file, iris_i_num_ranks(iris), path); /* a cut merge */
        (void)unlink(path);
    }
}

/* All ranks compute the same values, as iris_trace_enable() requires. */
static iris_status_t enable_automatic(iris_t *iris)
{
    size_t events = MAX_EVENTS;
    iris_status_t status = iris_trace_enable(iris, events);

    while (status == IRIS_ERR_NO_MEMORY && events > LEAST_EVENTS) {
        events /= 8;
        status = iris_trace_enable(iris, events);
    }
    return status;
}

static void begin_automatic(iris_t *iris)
{
    const char *file = iris_i_settings(iris)->trace.text;
    struct automatic *one;

    if (iris_i_settings_mark(iris_i_settings(iris))) {
        iris_i_trace_mark_calls(iris);
        return;
    }
    if (file[0] == '\0') {
        return;
    }
    one = calloc(1, sizeof *one);
    if (one == NULL || check_file(iris, file) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: %s",
                       one == NULL ? "no memory" : iris_last_error());
        free(one);
        return;
    }
    one->iris = iris;
    set_path(one, file);
    remove_old(iris, one->file);
    if (enable_automatic(iris) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE: nothing is recorded: %s",
                       iris_last_error());
        free(one);
        return;
    }
    (void)pthread_once(&once, register_exit);
    atomic_store(&process, getpid());
    pthread_mutex_lock(&list_lock);
    one->next = list;
    list = one;
    pthread_mutex_unlock(&list_lock);
}

static void end_automatic(iris_t *iris, int waits)
{
    struct automatic *one;

    pthread_mutex_lock(&list_lock);
    one = find_automatic(iris);
    if (one == NULL || one->state != RECORDS) {
        pthread_mutex_unlock(&list_lock);
        return;
    }
    one->state = WRITES;
    pthread_mutex_unlock(&list_lock);
    write_automatic(one, waits);
    pthread_mutex_lock(&list_lock);
    one->state = WRITTEN;
    pthread_cond_broadcast(&written);
    pthread_mutex_unlock(&list_lock);
}

static struct automatic *take_automatic(const iris_t *iris)
{
    struct automatic **link = &list, *one;

    pthread_mutex_lock(&list_lock);
    one = find_automatic(iris);
    while (one != NULL && *link != one) {
        link = &(*link)->next;
    }
    if (one != NULL) {
        *link = one->next;
    }
    pthread_mutex_unlock(&list_lock);
    return one;
}

static void finish_automatic(iris_t *iris, enum iris_rank_state state)
{
    struct automatic *one = take_automatic(iris);

    if (one != NULL &&
        (state != IRIS_RANK_FINALIZED || iris_i_rank(iris) == 0)) {
        merge_if_complete(one);
    }
    free(one);
}

const struct iris_life_ops iris_i_life_ops = {
    .begun = begin_automatic,
    .ending = end_automatic,
    .ended = finish_automatic,
};
