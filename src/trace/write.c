/* SPDX-License-Identifier: MIT
 *
 * One rank's file: Chrome trace events in upstream Iris's schema 1.1, with
 * additional members of our own.
 *
 * The file is written in pieces, compressed if its name says so, and gets its
 * name when it is complete. An error is kept in struct iris_out; later pieces
 * are dropped, and closing reports it.
 */
#include "config.h"

#include "trace/internal.h"

#include <iris/device/watch/record.h>

#include "trace/trace.h"
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
 * A file that is written in pieces. It is compressed if its name says so, and
 * gets its name when it is complete.
 */

#if HAVE_ZLIB
#include <zlib.h>
#endif

#define BUFFER_BYTES ((size_t)1 << 16)

static const char *find_end(const char *path, const char *end)
{
    size_t length = strlen(path), bytes = strlen(end);

    return length > bytes && strcmp(path + length - bytes, end) == 0
               ? path + length - bytes
               : NULL;
}

const char *iris_i_out_ending(const char *path)
{
    const char *ending = find_end(path, ".json.gz");

    return ending != NULL ? ending : find_end(path, ".json");
}

int iris_i_out_is_gz(const char *path)
{
    return find_end(path, ".gz") != NULL;
}

static void fail_out(struct iris_out *out, int error)
{
    if (out->failed == 0) {
        out->failed = error != 0 ? error : EIO;
    }
}

static void open_gz(struct iris_out *out)
{
#if HAVE_ZLIB
    int fd = dup(out->file.fd);

    out->gz = fd < 0 ? NULL : gzdopen(fd, "wb3");
    if (out->gz == NULL) {
        fail_out(out, fd < 0 ? errno : ENOMEM);
        if (fd >= 0) {
            close(fd);
        }
    }
#else
    fail_out(out, ENOTSUP);
#endif
}

/* A cookie's write. */
static ssize_t write_out(void *cookie, const char *text, size_t bytes)
{
    struct iris_out *out = cookie;
    size_t done = 0;

    while (done < bytes && out->failed == 0) {
        ssize_t ret = -1;

        errno = 0;
#if HAVE_ZLIB
        if (out->gz != NULL) {
            int put = gzwrite(out->gz, text + done, (unsigned)(bytes - done));

            ret = put == 0 ? -1 : put;
        }
#endif
        if (out->gz == NULL) {
            ret = write(out->file.fd, text + done, bytes - done);
        }
        if (ret < 0 && errno != EINTR) {
            fail_out(out, errno);
        }
        done += ret > 0 ? (size_t)ret : 0;
    }
    return (ssize_t)done;
}

void iris_i_out_open(struct iris_out *out, const char *path)
{
    static const cookie_io_functions_t functions = {.write = write_out};
    int error;

    out->path = path;
    out->gz = NULL;
    out->failed = 0;
    out->num_elements = 0;
    error = iris_i_file_open(path, &out->file);
    if (error != 0) {
        fail_out(out, error);
    } else if (iris_i_out_is_gz(path)) {
        open_gz(out);
    }
    out->text = fopencookie(out, "w", functions);
    if (out->text == NULL) {
        fail_out(out, ENOMEM);
    } else {
        (void)setvbuf(out->text, NULL, _IOFBF, BUFFER_BYTES);
    }
}

void iris_i_out_write(struct iris_out *out, const char *text, size_t bytes)
{
    if (out->text != NULL) {
        (void)fwrite(text, 1, bytes, out->text);
    }
}

void iris_i_out_print(struct iris_out *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (out->text != NULL) {
        (void)vfprintf(out->text, format, args);
    }
    va_end(args);
}

/* The text in quotes, escaped. Bytes that are not UTF-8 become the characters
 * with their numbers. */
static void put_string(struct iris_out *out, const char *text)
{
    if (out->text != NULL) {
        iris_i_json_string(out->text, text);
    }
}

void iris_i_out_next(struct iris_out *out)
{
    iris_i_out_print(out, out->num_elements++ == 0 ? "\n" : ",\n");
}

/* Writes nanoseconds as microseconds with three decimals. */
static void put_us(struct iris_out *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    iris_i_out_print(out, "%s%llu.%03llu", ns < 0 ? "-" : "",
                     (unsigned long long)(size / 1000),
                     (unsigned long long)(size % 1000));
}

static void close_gz(struct iris_out *out)
{
#if HAVE_ZLIB
    if (out->gz != NULL) {
        errno = 0;
        if (gzclose(out->gz) != Z_OK) {
            fail_out(out, errno);
        }
    }
#endif
    out->gz = NULL;
}

int iris_i_out_close(struct iris_out *out, int keep)
{
    if (out->text != NULL) {
        (void)fclose(out->text);
    }
    close_gz(out);
    if (out->file.fd >= 0) {
        int error =
            iris_i_file_close(&out->file, out->path, keep && out->failed == 0);

        if (error != 0) {
            fail_out(out, error);
        }
    }
    return out->failed;
}

/* ---------------------------------------------------------------------------
 * Matches each wait with the signal that ended it, and each signal with the put
 * before it.
 */

/* A workgroup's latest put to a rank. Two puts with the same slot lose an
 * arrow. */
#define NUM_PUTS 65536
struct iris_flow_put {
    int64_t program_id;
    uint64_t launch;
    int target;
    struct iris_flow_end at;
};

int iris_i_flows_open(struct iris_flows *flows)
{
    memset(flows, 0, sizeof *flows);
    flows->puts = calloc(NUM_PUTS, sizeof *flows->puts);
    return flows->puts == NULL ? -1 : 0;
}

void iris_i_flows_close(struct iris_flows *flows)
{
    free(flows->puts);
    free(flows->signals.points);
    free(flows->waits.points);
}

static struct iris_flow_put *put_of(struct iris_flows *flows,
                                    const struct iris_event *event)
{
    uint64_t key = (uint64_t)event->pid * 1000003 + event->launch;

    key = key * 1000003 + (uint64_t)event->program_id;
    key = (key * 1000003 + (uint64_t)event->target_rank) * 0x9e3779b97f4a7c15u;
    return &flows->puts[key >> 48];
}

struct iris_flow_end iris_i_flow_end(const struct iris_event *event, int64_t ns)
{
    struct iris_flow_end end = {.pid = event->pid, .ns = ns};

    snprintf(end.tid, sizeof end.tid, "%.19s", event->tid);
    return end;
}

static void write_end(struct iris_out *out, const struct iris_flow_arrow *arrow,
                      char phase, const struct iris_flow_end *end)
{
    iris_i_out_next(out);
    iris_i_out_print(out,
                     "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"%c\","
                     "\"id\":%llu,\"pid\":%d,\"tid\":\"%s\",\"ts\":",
                     arrow->name, arrow->cat, phase,
                     (unsigned long long)arrow->id, end->pid, end->tid);
    put_us(out, end->ns);
    iris_i_out_print(out, phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

void iris_i_flow_write(struct iris_out *out,
                       const struct iris_flow_arrow *arrow)
{
    write_end(out, arrow, 's', &arrow->from);
    write_end(out, arrow, 'f', &arrow->to);
}

static int append_point(struct iris_flow_list *list,
                        const struct iris_flow_point *point)
{
    struct iris_flow_point *one =
        iris_i_grow(&list->points, &list->count, sizeof *one);

    if (one == NULL) {
        return -1;
    }
    *one = *point;
    return 0;
}

static int add_signal(struct iris_flows *flows, const struct iris_event *event,
                      struct iris_flow_point *point)
{
    struct iris_flow_put *put = put_of(flows, event);

    point->rank = event->target_rank;
    point->at = iris_i_flow_end(event, event->ts_ns);
    point->put.pid = -1;
    if (put->at.tid[0] != '\0' && put->at.pid == event->pid &&
        put->launch == event->launch && put->program_id == event->program_id &&
        put->target == event->target_rank) {
        point->put = put->at;
        put->at.tid[0] = '\0'; /* the put does not belong to the next signal */
    }
    return append_point(&flows->signals, point);
}

int iris_i_flows_add(struct iris_flows *flows, const struct iris_event *event)
{
    struct iris_flow_point point = {.offset = event->offset,
                                    .value = event->value,
                                    .begin_ns = event->ts_ns,
                                    .end_ns = event->ts_ns + event->dur_ns};

    if (event->ph != 'X') {
        return 0;
    }
    if (strcmp(event->name, "put") == 0 && event->target_rank >= 0) {
        struct iris_flow_put *put = put_of(flows, event);

        put->program_id = event->program_id;
        put->launch = event->launch;
        put->target = event->target_rank;
        put->at = iris_i_flow_end(event, event->ts_ns);
    }
    if (event->signal && event->offset != IRIS_EVENT_NOWHERE) {
        return add_signal(flows, event, &point);
    }
    if (event->held && event->offset != IRIS_EVENT_NOWHERE) {
        point.rank = event->pid;
        point.at = iris_i_flow_end(event, point.end_ns > event->ts_ns
                                              ? point.end_ns - 1
                                              : point.end_ns);
        return append_point(&flows->waits, &point);
    }
    return 0;
}

/* ---- Finding ---- */

static int compare_words(const struct iris_flow_point *a,
                         const struct iris_flow_point *b)
{
    int order = IRIS_COMPARE(a->rank, b->rank);

    order = order != 0 ? order : IRIS_COMPARE(a->offset, b->offset);
    return order != 0 ? order : IRIS_COMPARE(a->value, b->value);
}

static int compare_points(const void *left, const void *right)
{
    const struct iris_flow_point *a = left, *b = right;
    int order = compare_words(a, b);

    return order != 0 ? order : IRIS_COMPARE(a->at.ns, b->at.ns);
}

void iris_i_flows_sort(struct iris_flows *flows)
{
    iris_i_sort(flows->signals.points, flows->signals.count,
                sizeof *flows->signals.points, compare_points);
}

const struct iris_flow_point *
iris_i_flows_signal_of(const struct iris_flows *flows,
                       const struct iris_flow_point *wait)
{
    const struct iris_flow_point *points = flows->signals.points;
    size_t low = 0, high = flows->signals.count;

    /* The first signal after the wait's end. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_words(&points[middle], wait);

        if (order < 0 || (order == 0 && points[middle].at.ns <= wait->end_ns)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0 && compare_words(&points[low - 1], wait) == 0) {
        return &points[low - 1];
    }
    return low < flows->signals.count && compare_words(&points[low], wait) == 0
               ? &points[low]
               : NULL;
}

/* ---------------------------------------------------------------------------
 * The parts of events in one rank's file: calls of the host, kernels' runs on
 * the CPU, and arrows from launches to runs.
 */

/* The shortest time between two values of the counter of bytes to a peer. */
#define COUNTER_NS 20000

/* Names the track, unless *seen says that it has a name. */
static void name_track(struct iris_writer *writer, unsigned char *seen,
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

/* "ph", "ts" and "dur". An event that has not ended becomes an instant
 * event. */
static void write_times(struct iris_writer *writer, int64_t begin, int64_t end)
{
    iris_i_out_print(writer->out,
                     "\"ph\":\"%s\",\"ts\":", end > begin ? "X" : "i");
    put_us(writer->out, begin);
    if (end > begin) {
        iris_i_out_print(writer->out, ",\"dur\":");
        put_us(writer->out, end - begin);
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
    put_us(writer->out, ns);
    iris_i_out_print(writer->out, ",\"args\":{\"bytes\":%llu}}",
                     (unsigned long long)peer->bytes);
    peer->written = peer->bytes;
    peer->next_ns = ns + COUNTER_NS;
}

/* Counts bytes to or from another rank. */
static void count_bytes(struct iris_writer *writer, int rank, uint64_t bytes,
                        int64_t ns)
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

/* Called before the end of the file. */
static void write_last_counters(struct iris_writer *writer)
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
        name_track(writer, &writer->seen_streams[number], track, name);
    } else {
        snprintf(track, bytes, "host_%u", call->thread);
        snprintf(name, sizeof name, "host thread %u", call->thread);
        name_track(writer,
                   &writer->seen_hosts[call->thread % IRIS_WRITER_TRACKS],
                   track, name);
    }
}

/* ---- Arrows from launches to runs ---- */

static int compare_ids(const void *left, const void *right)
{
    const struct iris_trace_call *const *a = left, *const *b = right;

    return IRIS_COMPARE((*a)->event.id, (*b)->event.id);
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

static struct iris_flow_end find_flow_end(struct iris_writer *writer,
                                          const struct iris_trace_call *at)
{
    struct iris_flow_end end = {
        .pid = iris_i_writer_rank(writer),
        .ns = iris_i_trace_host_ns(&writer->trace->clock, at->begin_ns)};

    call_track(writer, at, end.tid, sizeof end.tid);
    return end;
}

/* The launch of a kernel's run; NULL: it is not in the trace. */
static const struct iris_trace_call *
find_launch(const struct iris_writer *writer, const struct iris_trace_call *run)
{
    const struct iris_trace_call key = {.event = {.id = run->event.value}};
    const struct iris_trace_call *wanted = &key, **launch;

    launch = bsearch(&wanted, writer->launches, writer->num_launches,
                     sizeof *writer->launches, compare_ids);
    return launch == NULL ? NULL : *launch;
}

/* The arrow's id is the run's number, with the rank in the upper bits: in
 * merged traces, ids of different ranks must differ. */
static void write_arrow(struct iris_writer *writer,
                        const struct iris_trace_call *run)
{
    const struct iris_trace_call *launch = find_launch(writer, run);
    struct iris_flow_arrow arrow = {.name = "launch",
                                    .cat = "iris_launch",
                                    .id = (run->event.id & UINT32_MAX) |
                                          (uint64_t)iris_i_writer_rank(writer)
                                              << 32};

    if (launch != NULL) {
        arrow.from = find_flow_end(writer, launch);
        arrow.to = find_flow_end(writer, run);
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
        put_string(writer->out, writer->trace->kernels[number - 1]);
    }
}

static void name_call(const struct iris_writer *writer,
                      const struct iris_trace_call *call,
                      char text[IRIS_TRACE_CALL_BYTES])
{
    const struct iris_trace *trace = writer->trace;

    iris_i_trace_call_name(
        trace->iris, &call->event,
        call->kernel == 0 ? "" : trace->kernels[call->kernel - 1], text);
}

/* The public call that launched the kernel, if it was not the program. */
static void write_outer(struct iris_writer *writer,
                        const struct iris_trace_call *run)
{
    const struct iris_trace_call *launch = find_launch(writer, run), *outer;
    char text[IRIS_TRACE_CALL_BYTES];

    if (launch != NULL && launch->outer != 0) {
        outer = &writer->trace->calls[launch->outer - 1];
        name_call(writer, outer, text);
        iris_i_out_print(writer->out, ",\"call\":%llu,\"call_name\":",
                         (unsigned long long)outer->event.id);
        put_string(writer->out, text);
    }
}

static void write_call_args(struct iris_writer *writer,
                            const struct iris_trace_call *call)
{
    const struct iris_host_event *event = &call->event;
    int target = iris_i_trace_target(writer->trace->iris, &call->event);

    iris_i_out_print(writer->out, ",\"args\":{\"id\":%llu,\"status\":%d",
                     (unsigned long long)event->id, (int)event->status);
    write_text(writer, "kernel", call->kernel);
    if (is_run(call)) {
        write_outer(writer, call);
    }
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
        name_call(writer, call, text);
    }
    iris_i_out_print(writer->out, "{\"name\":");
    put_string(writer->out,
               call->user == 0
                   ? text
                   : iris_i_trace_event_name(writer->trace, call->user, own));
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
    write_times(writer, begin,
                call->end_ns == 0 ? 0
                                  : iris_i_trace_host_ns(clock, call->end_ns));
    write_call_args(writer, call);
    if (is_run(call)) {
        write_arrow(writer, call);
    }
    if (call->event.op == IRIS_HOST_COPY && call->user == 0) {
        count_bytes(writer,
                    iris_i_trace_target(writer->trace->iris, &call->event),
                    call->event.bytes, begin);
    }
}

/* Writes all calls of the host. IRIS_ERR_NO_MEMORY */
static iris_status_t write_calls(struct iris_writer *writer)
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

/* ---------------------------------------------------------------------------
 * One rank's file: Chrome trace events in upstream Iris's schema 1.1, with
 * additional members of our own.
 */

#define CUS_PER_XCC 256

/* ---- Names of processes and tracks, and memory ---- */

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
    if (writer->out->text != NULL) {
        iris_i_heap_list(&iris_i_heap(writer->trace->iris)->names,
                         writer->out->text,
                         -iris_i_trace_host_ns(&writer->trace->clock, 0));
    }
}

static void track_of(struct iris_writer *writer, unsigned xcc, unsigned cu,
                     char track[32])
{
    char name[64];

    snprintf(track, 32, "XCC%u_CU%u", xcc, cu);
    if (iris_i_device(writer->trace->iris)->clock_khz == 0) {
        snprintf(name, sizeof name, "worker %u", cu);
    } else {
        snprintf(name, sizeof name, "XCC %u, CU %u", xcc, cu);
    }
    name_track(writer,
               &writer->seen[(xcc * CUS_PER_XCC + cu) % IRIS_WRITER_TRACKS],
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
static void write_own_event(struct iris_writer *writer, const int64_t *row,
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
    if ((what & (IRIS_D_ATOMIC | IRIS_D_HELD)) != 0) {
        iris_i_out_print(writer->out, "%s,\"atomic\":1,\"value\":\"0x%llx\"",
                         is_signal(what)             ? ",\"signal\":1"
                         : (what & IRIS_D_HELD) != 0 ? ",\"held\":1"
                                                     : "",
                         (unsigned long long)row[IRIS_TRACE_VALUE]);
    }
    if (note->lanes > 1) {
        iris_i_out_print(writer->out, ",\"lanes\":%u", note->lanes);
    }
    if (note->kernel != 0) {
        iris_i_out_print(writer->out, ",\"launch\":%llu,\"kernel\":",
                         (unsigned long long)note->launch);
        put_string(writer->out, trace->kernels[note->kernel - 1]);
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
    write_own_event(writer, row, note);
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
    put_string(writer->out, iris_i_trace_event_name(
                                trace, (int)row[IRIS_TRACE_EVENT_ID], text));
    iris_i_out_print(writer->out,
                     ",\"cat\":\"iris\",\"pid\":%d,\"tid\":\"%s\",",
                     (int)row[IRIS_TRACE_CUR_RANK], track);
    end = end == 0 ? 0 : iris_i_trace_device_ns(&trace->clock, end);
    write_times(writer, begin, end == begin ? begin + 1 : end);
    write_args(writer, row, note);
    count_bytes(writer, (int)row[IRIS_TRACE_TARGET_RANK],
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
    put_string(writer->out, text);
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
    put_string(out, program_invocation_short_name);
    iris_i_out_print(out, ",\"command_line\":");
    write_command_line(writer);
    iris_i_out_print(out, ",\"hostname\":");
    put_string(out, host);
    iris_i_out_print(out, ",\"gpu_device_name\":");
    put_string(out, iris_i_device(iris)->name);
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

static void count_calls(struct iris_writer *writer, uint64_t device)
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

static iris_status_t write_events(struct iris_writer *writer, const char *path)
{
    iris_status_t status;
    int error;

    iris_i_out_open(writer->out, path);
    iris_i_out_print(writer->out, "{\"traceEvents\":[");
    write_process(writer);
    status = write_operations(writer);
    if (status == IRIS_OK) {
        status = write_calls(writer);
    }
    write_last_counters(writer);
    write_metadata(writer);
    error = iris_i_out_close(writer->out, status == IRIS_OK);
    return status == IRIS_OK && error != 0
               ? fail_write(writer->trace, path, error)
               : status;
}

iris_status_t iris_i_trace_write(struct iris_trace *trace, const char *path)
{
    struct iris_writer *writer = calloc(1, sizeof *writer);
    struct iris_out out;
    uint64_t device = 0;
    iris_status_t status = iris_i_trace_count(trace, &device);

    if (writer != NULL) {
        writer->out = &out;
        writer->peers = calloc((size_t)iris_i_num_ranks(trace->iris),
                               sizeof *writer->peers);
    }
    if (writer == NULL || writer->peers == NULL) {
        status = iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_NO_MEMORY,
                             "no memory to write the trace");
    } else if (status == IRIS_OK) {
        writer->trace = trace;
        count_calls(writer, device);
        status = write_events(writer, path);
    }
    if (writer != NULL) {
        free(writer->peers);
    }
    free(writer);
    return status;
}
