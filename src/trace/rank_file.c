/* SPDX-License-Identifier: MIT
 *
 * One rank's file: Chrome trace events in upstream Iris's schema 1.1, with
 * additional members of our own.
 */
#include "config.h"

#include "trace/internal.h"

#include <iris/device/watch/record.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CUS_PER_XCC 256

/* ---- Names of processes and tracks ---- */

static void write_process(struct iris_writer *writer)
{
    int rank = iris_i_writer_rank(writer);

    iris_i_out_next(writer->out);
    iris_i_out_print(writer->out,
                     "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                     "\"args\":{\"name\":\"Rank %d\"}},\n"
                     "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,"
                     "\"args\":{\"sort_index\":%d}}",
                     rank, rank, rank, rank);
}

static void track_of(struct iris_writer *writer, unsigned xcc, unsigned cu,
                     char track[32])
{
    char name[64];

    snprintf(track, 32, "XCC%u_CU%u", xcc, cu);
    if (iris_i_device(writer->trace->iris)->clock_khz == 0) {
        snprintf(name, sizeof name, "workgroups, thread %u", cu);
    } else {
        snprintf(name, sizeof name, "XCC %u, CU %u", xcc, cu);
    }
    iris_i_writer_name_track(
        writer, &writer->seen[(xcc * CUS_PER_XCC + cu) % IRIS_WRITER_TRACKS],
        track, name);
}

/* ---- Operations of kernels ---- */

/* Whether others may wait for the written word. */
static int is_signal(uint64_t what)
{
    iris_sem_t sem = (iris_sem_t)(what >> IRIS_D_SEM_SHIFT & IRIS_D_FIELD_MASK);
    iris_scope_t scope =
        (iris_scope_t)(what >> IRIS_D_SCOPE_SHIFT & IRIS_D_FIELD_MASK);

    return (what & IRIS_D_WRITE) != 0 && scope == IRIS_SCOPE_SYSTEM &&
           (sem == IRIS_RELEASE || sem == IRIS_ACQ_REL) &&
           what >> IRIS_D_BYTES_SHIFT >= sizeof(uint32_t);
}

/* Our members in addition to upstream's schema. */
static void write_own(struct iris_writer *writer, const int64_t *row,
                      const struct iris_trace_note *note)
{
    const struct iris_trace *trace = writer->trace;
    const struct iris_heap_memory *memory = &iris_i_heap(trace->iris)->memory;
    uint64_t what = (uint64_t)row[IRIS_TRACE_WHAT];
    uint64_t address = (uint64_t)row[IRIS_TRACE_ADDRESS];
    uint64_t offset = iris_i_heap_offset(memory, (void *)(uintptr_t)address);

    if (address != 0 && offset < iris_i_heap_bytes(memory)) {
        iris_i_out_print(writer->out, ",\"offset\":%llu",
                         (unsigned long long)offset);
    }
    if (is_signal(what) || (what & IRIS_D_HELD) != 0) {
        iris_i_out_print(writer->out, ",\"%s\":1,\"value\":\"0x%llx\"",
                         is_signal(what) ? "signal" : "held",
                         (unsigned long long)row[IRIS_TRACE_VALUE]);
    }
    if (note->lanes > 1) {
        iris_i_out_print(writer->out, ",\"lanes\":%u", note->lanes);
    }
    if (note->kernel != 0) {
        iris_i_out_print(writer->out, ",\"launch\":%llu,\"kernel\":",
                         (unsigned long long)note->launch);
        iris_i_out_string(writer->out, trace->kernels[note->kernel - 1]);
    }
}

static void write_args(struct iris_writer *writer, const int64_t *row,
                       const struct iris_trace_note *note)
{
    static const struct {
        const char *name;
        enum iris_trace_column column;
    } plain[] = {
        {"program_id", IRIS_TRACE_PID},
        {"pid_m", IRIS_TRACE_PID_M},
        {"pid_n", IRIS_TRACE_PID_N},
        {"target_rank", IRIS_TRACE_TARGET_RANK},
        {"xcc_id", IRIS_TRACE_XCC_ID},
        {"cu_id", IRIS_TRACE_CU_ID},
        {"op_index", IRIS_TRACE_OP_INDEX},
        {"payload_size", IRIS_TRACE_PAYLOAD},
    };

    iris_i_out_print(writer->out, ",\"args\":{\"address\":\"0x%llx\"",
                     (unsigned long long)row[IRIS_TRACE_ADDRESS]);
    for (size_t k = 0; k < sizeof plain / sizeof plain[0]; k++) {
        iris_i_out_print(writer->out, ",\"%s\":%lld", plain[k].name,
                         (long long)row[plain[k].column]);
    }
    write_own(writer, row, note);
    iris_i_out_print(writer->out, "}}");
}

static void write_operation(struct iris_writer *writer, const int64_t *row,
                            const struct iris_trace_note *note)
{
    struct iris_trace *trace = writer->trace;
    int64_t end = row[IRIS_TRACE_END];
    int64_t begin =
        iris_i_trace_device_ns(&trace->clock, row[IRIS_TRACE_TIMESTAMP]);
    char text[IRIS_TRACE_NAME_BYTES], track[32];

    track_of(writer, (unsigned)row[IRIS_TRACE_XCC_ID],
             (unsigned)row[IRIS_TRACE_CU_ID], track);
    iris_i_out_next(writer->out);
    iris_i_out_print(writer->out, "{\"name\":");
    iris_i_out_string(
        writer->out,
        iris_i_trace_event_name(trace, (int)row[IRIS_TRACE_EVENT_ID], text));
    iris_i_out_print(writer->out,
                     ",\"cat\":\"iris\",\"pid\":%d,\"tid\":\"%s\",",
                     (int)row[IRIS_TRACE_CUR_RANK], track);
    end = end == 0 ? 0 : iris_i_trace_device_ns(&trace->clock, end);
    iris_i_writer_times(writer, begin, end == begin ? begin + 1 : end);
    write_args(writer, row, note);
    iris_i_writer_count_bytes(writer, (int)row[IRIS_TRACE_TARGET_RANK],
                              (uint64_t)row[IRIS_TRACE_PAYLOAD], begin);
}

static iris_status_t write_operations(struct iris_writer *writer)
{
    const struct iris_trace *trace = writer->trace;
    struct iris_trace_chunk chunk = {.memory = NULL};
    int64_t row[IRIS_TRACE_COLUMNS];
    iris_status_t status = iris_i_trace_chunk_open(trace, &chunk);

    for (size_t i = 0; status == IRIS_OK && i < writer->num_device &&
                       writer->out->failed == 0;
         i++) {
        if (i % IRIS_TRACE_CHUNK == 0) {
            status = iris_i_trace_chunk_read(trace, &chunk, i,
                                             writer->num_device - i);
        }
        if (status == IRIS_OK) {
            iris_i_trace_row(&chunk, i, row);
            write_operation(writer, row, &trace->notes[i]);
        }
    }
    free(chunk.memory);
    return status;
}

/* ---- The file's metadata ---- */

static void write_command_line(struct iris_writer *writer)
{
    char text[1024];
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t bytes = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);

    if (file != NULL) {
        fclose(file);
    }
    for (size_t i = 0; i + 1 < bytes; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[bytes] = '\0';
    iris_i_out_string(writer->out, text);
}

static void write_fields(struct iris_out *out)
{
    static const char *const fields[][2] = {
        {"name", "Event type name (e.g., 'put', 'get', 'load', 'store')"},
        {"cat", "iris: of a kernel; iris_host: a call; iris_user: the "
                "program's own"},
        {"ts", "Start in microseconds since timestamp_offset"},
        {"pid", "Rank"},
        {"tid", "XCC{id}_CU{id}, on the CPU its thread; host_{thread}"},
        {"ph", "X: it has ended; i: it has not; C, M, s, f: as in Chrome"},
        {"dur", "Duration in microseconds"},
    };

    iris_i_out_print(out, ",\n\"fields\":{");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        iris_i_out_print(out, "%s\"%s\":\"%s\"", i == 0 ? "" : ",",
                         fields[i][0], fields[i][1]);
    }
    iris_i_out_print(out, "}");
}

static void write_metadata(struct iris_writer *writer)
{
    const struct iris_trace *trace = writer->trace;
    const iris_t *iris = trace->iris;
    struct iris_out *out = writer->out;
    char host[256] = "";

    (void)gethostname(host, sizeof host - 1);
    iris_i_out_print(
        out,
        "\n],\n\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"schema_version\":"
        "\"1.1\",\"num_events\":%llu,\"rank\":%d,\"world_size\":%d,"
        "\"max_events\":%zu,\"host_events\":%llu,\"dropped\":%llu,"
        "\"time_unit\":\"us\",\"timestamp_offset\":%lld,"
        "\"clock_offset_ns\":%lld,\"clock_error_ns\":%lld,"
        "\"device_clock_error_ns\":%lld,\"aligned\":\"rank 0's clock\"",
        (unsigned long long)writer->num_device, iris_i_rank(iris),
        iris_i_num_ranks(iris), trace->max_events,
        (unsigned long long)writer->num_calls,
        (unsigned long long)writer->dropped, (long long)trace->clock.start_ns,
        (long long)trace->clock.offset_ns,
        (long long)trace->clock.rank_error_ns,
        (long long)trace->clock.device_error_ns);
    write_fields(out);
    iris_i_out_print(out, ",\n\"process_name\":");
    iris_i_out_string(out, program_invocation_short_name);
    iris_i_out_print(out, ",\"command_line\":");
    write_command_line(writer);
    iris_i_out_print(out, ",\"hostname\":");
    iris_i_out_string(out, host);
    iris_i_out_print(out, ",\"gpu_device_name\":");
    iris_i_out_string(out, iris_i_device(iris)->name);
    iris_i_out_print(out, ",\"gpu_cu_count\":%d,\"gpu_num_xcc\":%d}}\n",
                     iris_i_device(iris)->num_cus,
                     iris_i_device(iris)->num_xccs);
}

/* ---- The whole ---- */

static iris_status_t fail_write(const struct iris_trace *trace,
                                const char *path, int error)
{
    return iris_i_fail_errno(
        iris_i_log(trace->iris), IRIS_ERR_SYSTEM, error,
        "iris_trace_export: cannot write %.600s; %s", path,
        error == ENOSPC || error == EDQUOT
            ? "free some space there, or choose another folder"
            : "choose another file");
}

static void count(struct iris_writer *writer, uint64_t device)
{
    const struct iris_trace *trace = writer->trace;
    uint64_t calls = atomic_load(&trace->num_calls);

    writer->num_device =
        device < trace->max_events ? device : trace->max_events;
    writer->num_calls = calls < trace->max_calls ? calls : trace->max_calls;
    writer->dropped = device + calls - writer->num_device - writer->num_calls;
    if (writer->dropped > 0) {
        iris_i_warning(iris_i_log(trace->iris),
                       "the trace lacks %llu events, for which there was no "
                       "space; pass more to iris_trace_enable",
                       (unsigned long long)writer->dropped);
    }
}

static iris_status_t write_all(struct iris_writer *writer, const char *path)
{
    iris_status_t status;
    int error;

    iris_i_out_open(writer->out, path);
    iris_i_out_print(writer->out, "{\"traceEvents\":[");
    write_process(writer);
    status = write_operations(writer);
    if (status == IRIS_OK) {
        status = iris_i_writer_calls(writer);
    }
    iris_i_writer_last_counters(writer);
    write_metadata(writer);
    error = iris_i_out_close(writer->out, status == IRIS_OK);
    return status == IRIS_OK && error != 0
               ? fail_write(writer->trace, path, error)
               : status;
}

iris_status_t iris_i_trace_write(struct iris_trace *trace, const char *path)
{
    struct iris_writer *writer = calloc(1, sizeof *writer);
    uint64_t device = 0;
    iris_status_t status = iris_i_trace_count(trace, &device);

    if (writer != NULL) {
        writer->out = malloc(sizeof *writer->out);
        writer->peers = calloc((size_t)iris_i_num_ranks(trace->iris),
                               sizeof *writer->peers);
    }
    if (writer == NULL || writer->out == NULL || writer->peers == NULL) {
        status = iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_NO_MEMORY,
                             "no memory to write the trace");
    } else if (status == IRIS_OK) {
        writer->trace = trace;
        count(writer, device);
        status = write_all(writer, path);
    }
    if (writer != NULL) {
        free(writer->peers);
        free(writer->out);
    }
    free(writer);
    return status;
}
