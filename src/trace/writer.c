/* SPDX-License-Identifier: MIT
 *
 * The parts of events in one rank's file: calls of the host, kernels' runs on
 * the CPU, and arrows from launches to runs.
 */
#include "config.h"

#include "trace/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* The shortest time between two values of the counter of bytes to a peer. */
#define COUNTER_NS 20000

void iris_i_writer_name_track(struct iris_writer *writer, unsigned char *seen,
                              const char *track, const char *name)
{
    if (*seen) {
        return;
    }
    *seen = 1;
    iris_i_out_next(writer->out);
    iris_i_out_print(writer->out,
                     "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,"
                     "\"tid\":\"%s\",\"args\":{\"name\":\"%s\"}}",
                     iris_i_writer_rank(writer), track, name);
}

/* ---- Times and bytes ---- */

void iris_i_writer_times(struct iris_writer *writer, int64_t begin, int64_t end)
{
    iris_i_out_print(writer->out,
                     "\"ph\":\"%s\",\"ts\":", end > begin ? "X" : "i");
    iris_i_out_us(writer->out, begin);
    if (end > begin) {
        iris_i_out_print(writer->out, ",\"dur\":");
        iris_i_out_us(writer->out, end - begin);
    } else {
        iris_i_out_print(writer->out, ",\"s\":\"t\"");
    }
    writer->last_ns = begin > writer->last_ns ? begin : writer->last_ns;
}

static void write_counter(struct iris_writer *writer, int rank, int64_t ns)
{
    struct iris_writer_peer *peer = &writer->peers[rank];

    iris_i_out_next(writer->out);
    iris_i_out_print(writer->out,
                     "{\"name\":\"bytes with rank %d\",\"cat\":\"iris\","
                     "\"ph\":\"C\",\"pid\":%d,\"ts\":",
                     rank, iris_i_writer_rank(writer));
    iris_i_out_us(writer->out, ns);
    iris_i_out_print(writer->out, ",\"args\":{\"bytes\":%llu}}",
                     (unsigned long long)peer->bytes);
    peer->written = peer->bytes;
    peer->next_ns = ns + COUNTER_NS;
}

void iris_i_writer_count_bytes(struct iris_writer *writer, int rank,
                               uint64_t bytes, int64_t ns)
{
    if (rank < 0 || rank >= iris_i_num_ranks(writer->trace->iris) ||
        rank == iris_i_writer_rank(writer) || bytes == 0) {
        return;
    }
    writer->peers[rank].bytes += bytes;
    if (ns >= writer->peers[rank].next_ns) {
        write_counter(writer, rank, ns);
    }
}

void iris_i_writer_last_counters(struct iris_writer *writer)
{
    for (int rank = 0; rank < iris_i_num_ranks(writer->trace->iris); rank++) {
        if (writer->peers[rank].bytes != writer->peers[rank].written) {
            write_counter(writer, rank, writer->last_ns);
        }
    }
}

/* ---- Calls of the host ---- */

static int is_run(const struct iris_trace_call *call)
{
    return call->user == 0 && call->event.op == IRIS_HOST_KERNEL;
}

/* Streams are numbered in the order of their use; the last number is for all
 * others. */
static unsigned stream_of(struct iris_writer *writer, const void *stream)
{
    unsigned i = 0;

    while (i < writer->num_streams && writer->streams[i] != stream) {
        i++;
    }
    if (i == writer->num_streams && i < IRIS_WRITER_STREAMS) {
        writer->streams[writer->num_streams++] = stream;
    }
    return i;
}

/* A kernel's run is on the track of its stream, a call on the track of its
 * thread. */
static void call_track(struct iris_writer *writer,
                       const struct iris_trace_call *call, char *track,
                       size_t bytes)
{
    char name[64];
    unsigned number;

    if (is_run(call)) {
        number = stream_of(writer, call->event.stream);
        snprintf(track, bytes, "stream_%u", number);
        snprintf(name, sizeof name, "stream %u%s", number,
                 call->event.stream ==
                         iris_i_default_stream(writer->trace->iris)
                     ? ", the default"
                     : "");
        iris_i_writer_name_track(writer, &writer->seen_streams[number], track,
                                 name);
    } else {
        snprintf(track, bytes, "host_%u", call->thread);
        snprintf(name, sizeof name, "host, thread %u", call->thread);
        iris_i_writer_name_track(
            writer, &writer->seen_hosts[call->thread % IRIS_WRITER_TRACKS],
            track, name);
    }
}

/* ---- Arrows from launches to runs ---- */

static int compare_ids(const void *left, const void *right)
{
    const struct iris_trace_call *const *a = left, *const *b = right;

    return ((*a)->event.id > (*b)->event.id) -
           ((*a)->event.id < (*b)->event.id);
}

static iris_status_t list_launches(struct iris_writer *writer)
{
    const struct iris_trace *trace = writer->trace;
    size_t count = 0;

    writer->launches =
        malloc((writer->num_calls + 1) * sizeof *writer->launches);
    if (writer->launches == NULL) {
        return iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_NO_MEMORY,
                           "no memory to write the trace");
    }
    for (uint64_t i = 0; i < writer->num_calls; i++) {
        if (trace->calls[i].user == 0 &&
            trace->calls[i].event.op == IRIS_HOST_LAUNCH) {
            writer->launches[count++] = &trace->calls[i];
        }
    }
    qsort(writer->launches, count, sizeof *writer->launches, compare_ids);
    writer->num_launches = count;
    return IRIS_OK;
}

static struct iris_flow_end end_of(struct iris_writer *writer,
                                   const struct iris_trace_call *at)
{
    struct iris_flow_end end = {
        .pid = iris_i_writer_rank(writer),
        .ns = iris_i_trace_host_ns(&writer->trace->clock, at->begin_ns)};

    call_track(writer, at, end.tid, sizeof end.tid);
    return end;
}

/* The arrow's id is the run's number, with the rank in the upper bits: in
 * merged traces, ids of different ranks must differ. */
static void write_arrow(struct iris_writer *writer,
                        const struct iris_trace_call *run)
{
    const struct iris_trace_call key = {.event = {.id = run->event.value}};
    const struct iris_trace_call *wanted = &key, **launch;
    struct iris_flow_arrow arrow = {.name = "launch",
                                    .cat = "iris_launch",
                                    .id = (run->event.id & UINT32_MAX) |
                                          (uint64_t)iris_i_writer_rank(writer)
                                              << 32};

    launch = bsearch(&wanted, writer->launches, writer->num_launches,
                     sizeof *writer->launches, compare_ids);
    if (launch != NULL) {
        arrow.from = end_of(writer, *launch);
        arrow.to = end_of(writer, run);
        iris_i_flow_write(writer->out, &arrow);
    }
}

static void write_pointer(struct iris_writer *writer, const char *name,
                          const void *pointer)
{
    if (pointer != NULL) {
        iris_i_out_print(writer->out, ",\"%s\":\"0x%llx\"", name,
                         (unsigned long long)(uintptr_t)pointer);
    }
}

/* Writes the text with this number; nothing for 0. */
static void write_text(struct iris_writer *writer, const char *name,
                       uint32_t number)
{
    if (number != 0) {
        iris_i_out_print(writer->out, ",\"%s\":", name);
        iris_i_out_string(writer->out, writer->trace->kernels[number - 1]);
    }
}

static void write_call_args(struct iris_writer *writer,
                            const struct iris_trace_call *call)
{
    const struct iris_host_event *event = &call->event;
    int target = iris_i_trace_target(writer->trace, call);

    iris_i_out_print(writer->out, ",\"args\":{\"id\":%llu,\"status\":%d",
                     (unsigned long long)event->id, (int)event->status);
    write_text(writer, "kernel", call->kernel);
    if (event->grid != 0) {
        iris_i_out_print(writer->out, ",\"grid\":%u,\"block\":%u", event->grid,
                         event->block);
    }
    write_text(writer, "members", call->members);
    write_text(writer, "sends", call->sends);
    write_text(writer, "receives", call->receives);
    if (target >= 0) {
        iris_i_out_print(writer->out, ",\"target_rank\":%d", target);
    }
    if (event->bytes != 0) {
        iris_i_out_print(writer->out, ",\"payload_size\":%zu", event->bytes);
    }
    if (event->op == IRIS_HOST_SIGNAL || event->op == IRIS_HOST_WAIT) {
        iris_i_out_print(writer->out, ",\"value\":\"0x%llx\"",
                         (unsigned long long)event->value);
    }
    write_pointer(writer, "address", event->address);
    write_pointer(writer, "source", event->source);
    write_pointer(writer, "stream", event->stream);
    write_pointer(writer, "group", event->group);
    iris_i_out_print(writer->out, "}}");
}

static void write_call_name(struct iris_writer *writer,
                            const struct iris_trace_call *call)
{
    char own[IRIS_TRACE_NAME_BYTES], text[IRIS_TRACE_CALL_BYTES];

    if (call->user == 0) {
        iris_i_trace_call_name(writer->trace, call, text);
    }
    iris_i_out_print(writer->out, "{\"name\":");
    iris_i_out_string(writer->out, call->user == 0
                                       ? text
                                       : iris_i_trace_event_name(
                                             writer->trace, call->user, own));
}

static void write_call(struct iris_writer *writer,
                       const struct iris_trace_call *call)
{
    const struct iris_trace_clock *clock = &writer->trace->clock;
    int64_t begin = iris_i_trace_host_ns(clock, call->begin_ns);
    char track[32];

    call_track(writer, call, track, sizeof track);
    iris_i_out_next(writer->out);
    write_call_name(writer, call);
    iris_i_out_print(writer->out, ",\"cat\":\"%s\",\"pid\":%d,\"tid\":\"%s\",",
                     call->user != 0 ? "iris_user"
                     : is_run(call)  ? "iris_kernel"
                                     : "iris_host",
                     iris_i_writer_rank(writer), track);
    iris_i_writer_times(
        writer, begin,
        call->end_ns == 0 ? 0 : iris_i_trace_host_ns(clock, call->end_ns));
    write_call_args(writer, call);
    if (is_run(call)) {
        write_arrow(writer, call);
    }
    if (call->event.op == IRIS_HOST_COPY && call->user == 0) {
        iris_i_writer_count_bytes(writer,
                                  iris_i_trace_target(writer->trace, call),
                                  call->event.bytes, begin);
    }
}

iris_status_t iris_i_writer_calls(struct iris_writer *writer)
{
    iris_status_t status = list_launches(writer);

    /* The default stream is the first, even without a kernel. */
    (void)stream_of(writer, iris_i_default_stream(writer->trace->iris));
    for (uint64_t i = 0; status == IRIS_OK && i < writer->num_calls; i++) {
        write_call(writer, &writer->trace->calls[i]);
    }
    free(writer->launches);
    return status;
}
