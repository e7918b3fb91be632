/* SPDX-License-Identifier: MIT
 *
 * iris trace report: one page with a timeline, the matrix and the longest
 * waits. It needs nothing but a browser (trace_page.html).
 *
 * The files are read twice. The first reading finds the begin, the end, names
 * and signals. The second one draws: slices on tracks, and arrows between
 * them. Until the page fits into PAGE_BYTES, the slices that are shorter than the
 * grain are joined, and the grain doubles.
 */
#include "config.h"

#include "iris.h"
#include "trace.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES ((size_t)300000)

#define MAX_TRACKS 4096
#define MAX_SLICES ((size_t)1 << 16)
#define MAX_ARROWS 4096
#define MAX_LABELS 512 /* further memory has no label */
#define MAX_ROWS 256   /* further operations share one */
#define MAX_RANKS 32   /* of the matrix */
#define FIRST_GRAIN 16 /* ns */

/* One event, or several short ones. Times are in ns since the first event. */
struct timeline_slice {
    int track;
    int64_t kind; /* that of the longest event */
    int64_t begin, end, longest;
    uint64_t count, bytes;
    int64_t spread; /* of a barrier: from the first to come to the last */
};

struct timeline_track {
    int pid;
    char tid[20];
    uint64_t call; /* the public call of the latest kernels */
    struct timeline_slice of_call;
};

/* From a signal to the wait that it ended, or from a launch to the kernel's
 * run. */
#define TIMELINE_NO_PUT -1
#define TIMELINE_LAUNCH -2
struct timeline_arrow {
    int from_track, to_track;
    int64_t from, to;
    int64_t
        put; /* the time of the put before the signal, or one of the above */
};

struct timeline {
    struct trace_figures figures; /* result of the first reading */
    struct iris_flows flows;
    struct trace_barriers barriers;
    struct iris_flow_end launch; /* the latest one */
    struct timeline_track tracks[MAX_TRACKS];
    int num_tracks, latest;
    int left_out; /* whether there are more tracks */
    struct timeline_slice slices[MAX_SLICES];
    size_t num_slices;
    int64_t grain; /* 0: every event is a slice */
    char labels[MAX_LABELS][TRACE_LABEL];
    size_t num_labels;
    struct timeline_arrow *arrows;
    size_t num_arrows;
};

static int64_t find_time(const struct timeline *timeline, int64_t ns)
{
    return ns - timeline->figures.first_ns;
}

/* ---- Tracks ---- */

/* Returns -1 if there are too many. Tracks differ in the first 19 letters, like
 * the ends of arrows. */
static int find_or_add_track(struct timeline *timeline, int pid,
                             const char *tid)
{
    struct timeline_track *track;

    for (int i = 0; i < timeline->num_tracks; i++) {
        int at = (i + timeline->latest) % timeline->num_tracks;

        track = &timeline->tracks[at];
        if (track->pid == pid &&
            strncmp(track->tid, tid, sizeof track->tid - 1) == 0) {
            timeline->latest = at;
            return at;
        }
    }
    if (timeline->num_tracks == MAX_TRACKS) {
        timeline->left_out = 1;
        return -1;
    }
    track = &timeline->tracks[timeline->num_tracks];
    track->pid = pid;
    snprintf(track->tid, sizeof track->tid, "%.19s", tid);
    return timeline->num_tracks++;
}

/* Signals and waits name the word. -1: the event's memory has no name. */
static int find_or_add_label(struct timeline *timeline,
                             const struct iris_event *event)
{
    char text[TRACE_LABEL];

    if (!trace_label(&timeline->figures.spaces, &timeline->figures.file, event,
                     event->signal || trace_is_wait(event), text)) {
        return -1;
    }
    /* Operations come in runs on the same memory: the latest is the likeliest. */
    for (size_t i = timeline->num_labels; i > 0; i--) {
        if (strcmp(timeline->labels[i - 1], text) == 0) {
            return (int)(i - 1);
        }
    }
    if (timeline->num_labels == MAX_LABELS) {
        return -1;
    }
    memcpy(timeline->labels[timeline->num_labels], text, sizeof text);
    return (int)timeline->num_labels++;
}

/* One number for the operation, the rank that it accessed, the rank whose signal
 * ended this wait, and the label of the memory. A member without a value is -1;
 * the page takes the number apart. */
static int64_t make_kind(const struct timeline *timeline, int row, int target,
                         int by, int label)
{
    int ranks = timeline->figures.num_ranks;

    target = target >= 0 && target < ranks ? target : -1;
    by = by >= 0 && by < ranks ? by : -1;
    return (((int64_t)row * (ranks + 1) + target + 1) * (ranks + 1) + by + 1) *
               (MAX_LABELS + 1) +
           label + 1;
}

static int find_operation(const struct timeline *timeline, const char *name,
                          const char *cat)
{
    const struct trace_rows *rows = &timeline->figures.events;
    const struct trace_row *row = trace_find(rows, name, cat);
    int at = row == NULL ? -1 : (int)(row - rows->rows);

    return at < MAX_ROWS ? at : MAX_ROWS;
}

/* ---- Slices ---- */

static int compare_slices(const void *left, const void *right)
{
    const struct timeline_slice *a = left, *b = right;

    return a->track != b->track ? a->track - b->track
                                : IRIS_COMPARE(a->begin, b->begin);
}

/* Whether both are short, and begin in the same grain. */
static int is_joined(const struct timeline *timeline,
                     const struct timeline_slice *a,
                     const struct timeline_slice *b)
{
    return timeline->grain > 0 && a->track == b->track &&
           a->longest < timeline->grain && b->longest < timeline->grain &&
           a->begin / timeline->grain == b->begin / timeline->grain;
}

static void join_slices(struct timeline *timeline)
{
    struct timeline_slice *slices = timeline->slices;
    size_t count = 0;

    iris_i_sort(slices, timeline->num_slices, sizeof *slices, compare_slices);
    for (size_t i = 0; i < timeline->num_slices; i++) {
        struct timeline_slice *last = &slices[count - (count > 0)];
        const struct timeline_slice one = slices[i];

        if (count == 0 || !is_joined(timeline, last, &one)) {
            slices[count++] = one;
            continue;
        }
        last->end = one.end > last->end ? one.end : last->end;
        last->count += one.count;
        last->bytes += one.bytes;
        if (one.longest > last->longest) {
            last->longest = one.longest;
            last->kind = one.kind;
        }
    }
    timeline->num_slices = count;
}

/* Joins more than before. */
static void coarsen_timeline(struct timeline *timeline)
{
    timeline->grain = timeline->grain > 0 ? 2 * timeline->grain : FIRST_GRAIN;
    join_slices(timeline);
}

static void add_slice(struct timeline *timeline,
                      const struct timeline_slice *slice)
{
    while (timeline->num_slices == MAX_SLICES) {
        coarsen_timeline(timeline);
    }
    timeline->slices[timeline->num_slices++] = *slice;
}

/* The kernels of a public call are parts of one slice. */
static void end_call(struct timeline *timeline, struct timeline_track *track)
{
    if (track->call != 0) {
        add_slice(timeline, &track->of_call);
    }
    track->call = 0;
}

/* Adds a kernel's run to the slice of its call. */
static void add_to_call(struct timeline *timeline, struct timeline_track *track,
                        const struct iris_event *event,
                        const struct timeline_slice *run)
{
    int row;

    if (event->call != track->call) {
        end_call(timeline, track);
        row = find_operation(timeline, event->call_name, "iris_host");
        track->of_call = *run;
        track->of_call.kind = make_kind(timeline, row, -1, -1, -1);
        track->call = row < 0 ? 0 : event->call;
    }
    track->of_call.end = run->end;
    track->of_call.longest = run->end - track->of_call.begin;
}

/* The signal that ended the wait, or NULL. */
static const struct iris_flow_point *
find_signal(const struct timeline *timeline, const struct iris_event *event)
{
    const struct iris_flow_point wait = {.rank = event->pid,
                                         .offset = event->offset,
                                         .value = event->value,
                                         .end_ns =
                                             event->ts_ns + event->dur_ns};

    return event->ph == 'X' && event->held && !event->signal &&
                   event->offset != IRIS_EVENT_NOWHERE
               ? iris_i_flows_signal_of(&timeline->flows, &wait)
               : NULL;
}

/* Adds an arrow if both tracks are drawn and differ. Returns 0, or -1 without
 * memory. */
static int draw_arrow(struct timeline *timeline,
                      const struct iris_flow_end *from,
                      const struct iris_flow_end *to, int64_t put)
{
    struct timeline_arrow arrow = {
        .from_track = find_or_add_track(timeline, from->pid, from->tid),
        .to_track = find_or_add_track(timeline, to->pid, to->tid),
        .from = find_time(timeline, from->ns),
        .to = find_time(timeline, to->ns),
        .put = put};
    struct timeline_arrow *one;

    if (arrow.from_track < 0 || arrow.to_track < 0 ||
        arrow.from_track == arrow.to_track) {
        return 0;
    }
    one = iris_i_grow(&timeline->arrows, &timeline->num_arrows, sizeof arrow);
    if (one == NULL) {
        return trace_fail_memory();
    }
    *one = arrow;
    return 0;
}

/* The rank that came last to this barrier takes the place of a signal's. */
static void mark_last(struct timeline *timeline, const struct iris_event *event,
                      int row, struct timeline_slice *slice)
{
    const struct trace_meeting *meeting =
        trace_barriers_next(&timeline->barriers, event);

    if (meeting != NULL) {
        slice->kind = make_kind(timeline, row, -1, meeting->last, -1);
        slice->spread = meeting->last_ns - meeting->first_ns;
    }
}

static int draw_event(struct timeline *timeline, const struct iris_event *event)
{
    int at = find_or_add_track(timeline, event->pid, event->tid);
    const struct iris_flow_point *signal = find_signal(timeline, event);
    int row = find_operation(timeline, event->name, event->cat);
    struct timeline_slice slice = {.track = at,
                                   .begin = find_time(timeline, event->ts_ns),
                                   .longest = event->dur_ns,
                                   .count = 1,
                                   .bytes = event->payload};
    struct timeline_track *track;
    struct iris_flow_end to;

    if (at < 0 || row < 0) {
        return 0;
    }
    track = &timeline->tracks[at];
    slice.kind = make_kind(timeline, row, event->target_rank,
                           signal == NULL ? -1 : signal->at.pid,
                           find_or_add_label(timeline, event));
    slice.end = slice.begin + event->dur_ns;
    mark_last(timeline, event, row, &slice);
    if (trace_is_run(event)) {
        add_to_call(timeline, track, event, &slice);
    }
    add_slice(timeline, &slice);
    if (signal == NULL) {
        return 0;
    }
    to = iris_i_flow_end(event,
                         event->ts_ns + event->dur_ns - (event->dur_ns > 0));
    return draw_arrow(timeline, &signal->at, &to,
                      signal->put.pid < 0
                          ? TIMELINE_NO_PUT
                          : find_time(timeline, signal->put.ns));
}

/* The end of a launch's arrow follows its beginning in the file. */
static int draw_launch(struct timeline *timeline,
                       const struct iris_event *event)
{
    const struct iris_flow_end end = iris_i_flow_end(event, event->ts_ns);

    if (strcmp(event->cat, "iris_launch") != 0) {
        return 0;
    }
    if (event->ph == 's') {
        timeline->launch = end;
        return 0;
    }
    return draw_arrow(timeline, &timeline->launch, &end, TIMELINE_LAUNCH);
}

/* ---- The readings ---- */

static int collect_event(void *arg, const struct iris_event *event)
{
    struct timeline *timeline = arg;

    return iris_i_flows_add(&timeline->flows, event) == 0 &&
                   trace_barriers_add(&timeline->barriers, event) == 0
               ? 0
               : trace_fail_memory();
}

static int draw_any(void *arg, const struct iris_event *event)
{
    return event->ph == 's' || event->ph == 'f' ? draw_launch(arg, event)
                                                : draw_event(arg, event);
}

static int read_files(struct timeline *timeline, char **files, int num_files,
                      int (*more)(void *arg, const struct iris_event *event))
{
    struct trace_figures again = {.first_ns = INT64_MAX};
    struct trace_figures *figures =
        more == collect_event ? &timeline->figures : &again;
    int ret = 0;

    for (int i = 0; ret == 0 && i < num_files; i++) {
        ret = trace_read(files[i], figures, more, timeline);
    }
    trace_free(&again);
    return ret;
}

static int draw_timeline(struct timeline *timeline, char **files, int num_files)
{
    struct trace_figures *figures = &timeline->figures;

    if (read_files(timeline, files, num_files, collect_event) != 0 ||
        (trace_options.bases != NULL &&
         trace_spaces_take(&figures->spaces, trace_options.bases) != 0)) {
        return -1;
    }
    if (figures->num_events == 0) {
        figures->first_ns = figures->last_ns;
    }
    iris_i_flows_sort(&timeline->flows);
    trace_barriers_rewind(&timeline->barriers);
    trace_sort(&figures->events);
    if (read_files(timeline, files, num_files, draw_any) != 0) {
        return -1;
    }
    for (int i = 0; i < timeline->num_tracks; i++) {
        end_call(timeline, &timeline->tracks[i]);
    }
    return 0;
}

/* ---- The page ---- */

/* JSON inside of a script: no text may end that. */
static void write_text(FILE *file, const char *text)
{
    char safe[128];

    snprintf(safe, sizeof safe, "%s", text);
    for (char *at = safe; (at = strpbrk(at, "<>&")) != NULL;) {
        *at = '_';
    }
    iris_i_json_string(file, safe);
}

/* [time since the last begin, duration, kind, bytes] for each slice, in ns. A
 * slice of several events has -count ahead of the bytes. A barrier has its
 * spread in their place. */
static void write_slices(FILE *file, const struct timeline *timeline, int track)
{
    int64_t last = 0;

    for (size_t i = 0; i < timeline->num_slices; i++) {
        const struct timeline_slice *one = &timeline->slices[i];

        if (one->track != track) {
            continue;
        }
        fprintf(file, "%s%lld,%lld,%lld,", last == 0 ? "" : ",",
                (long long)(one->begin + 1 - last - (last == 0)),
                (long long)(one->end - one->begin), (long long)one->kind);
        if (one->count > 1) {
            fprintf(file, "-%llu,", (unsigned long long)one->count);
        }
        fprintf(file, "%llu",
                one->count > 1 || one->spread == 0
                    ? (unsigned long long)one->bytes
                    : (unsigned long long)one->spread);
        last = one->begin + 1;
    }
}

static void write_tracks(FILE *file, const struct timeline *timeline)
{
    for (int i = 0; i < timeline->num_tracks; i++) {
        const struct timeline_track *track = &timeline->tracks[i];

        fprintf(file, "%s\n{\"rank\":%d,\"tid\":", i == 0 ? "" : ",",
                track->pid);
        write_text(file, track->tid);
        fprintf(file, ",\"s\":[");
        write_slices(file, timeline, i);
        fprintf(file, "]}");
    }
}

static void write_names(FILE *file, const struct trace_figures *figures)
{
    for (size_t i = 0; i < figures->num_names && i < MAX_TRACKS; i++) {
        fprintf(file, "%s[%d,", i == 0 ? "" : ",", figures->names[i].pid);
        write_text(file, figures->names[i].tid);
        fprintf(file, ",");
        write_text(file, figures->names[i].name);
        fprintf(file, "]");
    }
}

/* Only every nth arrow is drawn, if there are too many. */
static size_t count_skipped(const struct timeline *timeline)
{
    return timeline->num_arrows / MAX_ARROWS + 1;
}

/* [track, time] of the signal and of the wait's end, and the time of the
 * put. */
static void write_arrows(FILE *file, const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->num_arrows; i += count_skipped(timeline)) {
        const struct timeline_arrow *arrow = &timeline->arrows[i];

        fprintf(file, "%s\n[%d,%lld,%d,%lld,%lld]", i == 0 ? "" : ",",
                arrow->from_track, (long long)arrow->from, arrow->to_track,
                (long long)arrow->to, (long long)arrow->put);
    }
}

static void write_rows(FILE *file, const struct trace_figures *figures)
{
    const struct trace_rows *rows = &figures->events;

    for (size_t i = 0; i < rows->count && i < MAX_ROWS; i++) {
        const struct trace_row *row = &rows->rows[i];

        fprintf(file, "%s\n[", i == 0 ? "" : ",");
        write_text(file, row->name);
        fprintf(file, ",\"%s\",%llu,%llu,%.3f,%.3f,%.3f,%.3f]", row->cat,
                (unsigned long long)row->count, (unsigned long long)row->bytes,
                trace_us(figures, row->ns),
                trace_us(figures, trace_percentile(row, 50)),
                trace_us(figures, trace_percentile(row, 99)),
                trace_us(figures, row->max_ns));
    }
    if (rows->count > MAX_ROWS) {
        fprintf(file, ",\n[\"%zu others\",\"\",0,0,0,0,0,0]",
                rows->count - MAX_ROWS);
    }
}

static void write_matrix(FILE *file, const struct trace_figures *figures)
{
    int shown = figures->num_ranks < MAX_RANKS ? figures->num_ranks : MAX_RANKS;

    for (int i = 0; i < shown * shown; i++) {
        fprintf(file, "%s%llu", i == 0 ? "" : ",",
                (unsigned long long)figures
                    ->matrix[i / shown * figures->num_ranks + i % shown]);
    }
    fprintf(file, "],\"shown_ranks\":%d", shown);
}

static void write_data(FILE *file, const struct timeline *timeline)
{
    const struct trace_figures *figures = &timeline->figures;

    fprintf(file,
            "{\"ns\":%lld,\"most_labels\":%d,\"arrow_step\":%zu,\"per_us\":%d,"
            "\"grain\":%lld,"
            "\"ranks\":%d,"
            "\"events\":%llu,\"wait_us\":%.3f,\"left_out\":%d,\"matrix\":[",
            (long long)(figures->last_ns - figures->first_ns), MAX_LABELS,
            count_skipped(timeline), figures->file.ticks ? 100000 : 1000,
            (long long)timeline->grain, figures->num_ranks,
            (unsigned long long)figures->num_events,
            trace_us(figures, figures->wait_ns), timeline->left_out);
    write_matrix(file, figures);
    fprintf(file, ",\"rows\":[");
    write_rows(file, figures);
    fprintf(file, "],\"labels\":[");
    for (size_t i = 0; i < timeline->num_labels; i++) {
        fprintf(file, "%s", i == 0 ? "" : ",");
        write_text(file, timeline->labels[i]);
    }
    fprintf(file, "],\"names\":[");
    write_names(file, figures);
    fprintf(file, "],\"tracks\":[");
    write_tracks(file, timeline);
    fprintf(file, "],\"arrows\":[");
    write_arrows(file, timeline);
    fprintf(file, "]}");
}

/* Joins slices until the text is short enough. Free it. */
static char *print_data(struct timeline *timeline, size_t most)
{
    int64_t ns = find_time(timeline, timeline->figures.last_ns);
    char *text = NULL;
    size_t bytes = 0;

    join_slices(timeline); /* sorts them */
    for (;;) {
        FILE *file = open_memstream(&text, &bytes);

        if (file == NULL) {
            return NULL;
        }
        write_data(file, timeline);
        if (fclose(file) != 0 || timeline->grain > ns || bytes < most) {
            return text;
        }
        free(text);
        coarsen_timeline(timeline);
    }
}

static int write_page(struct timeline *timeline)
{
    static const char page[] =
#include "tools/trace_page.inc"
        ;
    static const char mark[] = "@DATA@";
    const char *data = strstr(page, mark);
    char *text = print_data(timeline, PAGE_BYTES - sizeof page);
    FILE *file =
        text == NULL ? NULL : tool_open("iris trace", trace_options.output);

    if (file == NULL) {
        if (text == NULL) {
            trace_fail_memory();
        }
        free(text);
        return 1;
    }
    fwrite(page, 1, (size_t)(data - page), file);
    fputs(text, file);
    fputs(data + strlen(mark), file);
    free(text);
    return tool_close("iris trace", trace_options.output, file);
}

int trace_report(char **files, int num_files)
{
    static struct timeline timeline = {.figures = {.first_ns = INT64_MAX}};
    int ret = iris_i_flows_open(&timeline.flows) == 0 ? 0 : trace_fail_memory();

    if (ret == 0) {
        ret = draw_timeline(&timeline, files, num_files);
    }
    ret = ret != 0 ? ret : write_page(&timeline);
    iris_i_flows_close(&timeline.flows);
    trace_barriers_free(&timeline.barriers);
    trace_free(&timeline.figures);
    free(timeline.arrows);
    return ret != 0;
}
