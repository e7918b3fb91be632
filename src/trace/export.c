/* SPDX-License-Identifier: MIT
 *
 * Export: the files of all ranks, and the merged file.
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

static const struct iris_call_type export_call = {
    .name = "iris_trace_export",
    .fields = {{.name = "file"}, {.name = "merge"}},
};

void iris_i_trace_rank_path(const char *file, int rank, char path[PATH_MAX])
{
    const char *ending = iris_i_out_ending(file);

    snprintf(path, PATH_MAX, "%.*s_rank%d%s", (int)(ending - file), file, rank,
             ending);
}

iris_status_t iris_i_trace_check_file(const iris_t *iris, const char *file)
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

static uint64_t hash(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325u;

    while (text != NULL && *text != '\0') {
        sum = (sum ^ (unsigned char)*text++) * 0x100000001b3u;
    }
    return sum >> 1; /* fields are printed as signed numbers */
}

/* All ranks get the first error of any of them. */
static iris_status_t agree(iris_t *iris, iris_status_t status, const char *file,
                           int merge)
{
    struct iris_call call = {.type = &export_call, .status = status};

    call.fields[0] = hash(file);
    call.fields[1] = merge != 0;
    return iris_i_agree(&iris_i_world(iris)->members, &call);
}

iris_status_t iris_i_trace_merge(iris_t *iris, const char *file)
{
    size_t num_ranks = (size_t)iris_i_num_ranks(iris);
    char *memory = malloc(num_ranks * PATH_MAX);
    char **paths = malloc(num_ranks * sizeof *paths);
    struct iris_merge_report report;
    iris_status_t status = IRIS_OK;

    if (memory == NULL || paths == NULL) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                             "no memory to merge traces");
    }
    for (size_t i = 0; status == IRIS_OK && i < num_ranks; i++) {
        paths[i] = memory + i * PATH_MAX;
        iris_i_trace_rank_path(file, (int)i, paths[i]);
    }
    if (status == IRIS_OK &&
        iris_i_merge(paths, (int)num_ranks, file, &report) != 0) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_SYSTEM,
                             "iris_trace_export: %s; free some space there, or "
                             "choose another file",
                             report.error);
    }
    free(paths);
    free(memory);
    return status;
}

/* Writes the data that iris trace resolve needs, with the times of the
 * trace. */
static iris_status_t write_beside(iris_t *iris, const struct iris_trace *trace,
                                  const char *file)
{
    int64_t start_ns = -iris_i_trace_host_ns(&trace->clock, 0);
    char prefix[PATH_MAX - 64], path[PATH_MAX];
    iris_status_t status;

    snprintf(prefix, sizeof prefix, "%.*s",
             (int)(iris_i_out_ending(file) - file), file);
    status = iris_i_bases_write(&iris_i_heap(iris)->memory, prefix);
    snprintf(path, sizeof path, "%s_rank_%d_allocations.json", prefix,
             iris_i_rank(iris));
    return status == IRIS_OK ? iris_i_allocations_write(
                                   &iris_i_heap(iris)->names, path, start_ns)
                             : status;
}

static iris_status_t write_files(iris_t *iris, struct iris_trace *trace,
                                 const char *file)
{
    char path[PATH_MAX];
    iris_status_t status;

    iris_i_trace_rank_path(file, iris_i_rank(iris), path);
    status = iris_i_trace_write(trace, path);
    if (status == IRIS_OK) {
        status = write_beside(iris, trace, file);
    }
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

iris_status_t iris_i_trace_write_own(struct iris_trace *trace, const char *file)
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

iris_status_t iris_i_trace_write_now(struct iris_trace *trace, const char *file)
{
    iris_t *iris = trace->iris;

    if (is_idle(iris_i_heap(iris))) {
        return iris_i_trace_write_own(trace, file);
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
    if (iris_i_trace_write_own(trace, file) == IRIS_OK) {
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
    iris_status_t checked = iris_i_trace_check_file(iris, file);
    iris_status_t status = agree(iris, checked, file, 1);

    if (status == IRIS_OK) {
        status = iris_i_trace_measure_ranks(trace, 0, IRIS_OK);
    }
    if (status != IRIS_OK) {
        return checked == IRIS_OK ? write_alone(iris, trace, file, status)
                                  : status;
    }
    status = agree(iris, iris_i_trace_write_own(trace, file), file, 1);
    if (status == IRIS_OK) {
        status =
            iris_i_rank(iris) == 0 ? iris_i_trace_merge(iris, file) : IRIS_OK;
        status = agree(iris, status, file, 1);
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
    status = iris_i_trace_check_file(iris, file);
    return status == IRIS_OK ? iris_i_trace_write_own(trace, file) : status;
}
