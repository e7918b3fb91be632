/* SPDX-License-Identifier: MIT
 *
 * iris trace report: one page with a timeline, the matrix and the longest
 * waits. It needs nothing but a browser (trace_page.html).
 *
 * The file is read twice. The first reading finds the begin, the end and the
 * names; the second one draws: tracks of slices in bins of time, and arrows
 * between them.
 */
#include "config.h"

#include "iris.h"
#include "trace.h"
#include "base/base.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMELINE_BINS 8192 /* so that a reader can zoom in */

/* The content of a bin. A member without a value is -1. */
struct timeline_slice {
    short row;    /* of figures.events */
    short target; /* the rank that the operation accessed */
    short label;  /* of its memory */
};

/* Each bin shows the operation that took most of it. */
struct timeline_track {
    int pid;
    char tid[32];
    float share[TIMELINE_BINS]; /* the part of the bin that it took */
    struct timeline_slice slices[TIMELINE_BINS];
};

/* From a signal to the wait that it ended, or from a launch to the kernel's run.
 * Positions are in bins. */
#define TIMELINE_NO_PUT -1
#define TIMELINE_LAUNCH -2
struct timeline_arrow {
    int from_track, to_track;
    double from, to;
    double put; /* the put before the signal, or one of the above */
};

struct timeline_launch {
    struct iris_flow_end from, to;
};

struct timeline {
    const struct trace_figures *figures; /* figures of the first reading */
    const struct trace_spaces *spaces;   /* names of memory */
    struct iris_flows flows;
    struct iris_flow_end launch; /* the latest one */
    struct timeline_launch *launches;
    size_t num_launches;
    struct timeline_track *tracks;
    int count;
    int left_out; /* whether there are more tracks */
    char (*labels)[TRACE_LABEL];
    size_t num_labels;
    struct timeline_arrow *arrows;
    size_t num_arrows;
    int arrows_left_out; /* whether there are more arrows */
};

#define MAX_TRACKS 256
#define MAX_ARROWS 20000
#define MAX_LABELS 4096 /* further memory has no label */

/* Returns 0, or -1 without memory. Close the timeline in either case. */
static int open_timeline(struct timeline *timeline,
                         const struct trace_figures *figures,
                         const struct trace_spaces *spaces)
{
    memset(timeline, 0, sizeof *timeline);
    timeline->figures = figures;
    timeline->spaces = spaces;
    timeline->tracks = malloc(MAX_TRACKS * sizeof *timeline->tracks);
    return timeline->tracks == NULL || iris_i_flows_open(&timeline->flows) != 0
               ? -1
               : 0;
}

static void close_timeline(struct timeline *timeline)
{
    iris_i_flows_close(&timeline->flows);
    free(timeline->tracks);
    free(timeline->labels);
    free(timeline->launches);
    free(timeline->arrows);
}

static int report_no_memory(void)
{
    fprintf(stderr, "iris trace: no memory\n");
    return -1;
}

/* In bins, from the beginning of the trace. */
static double find_position(const struct timeline *timeline, int64_t ns)
{
    const struct trace_figures *figures = timeline->figures;

    return (double)(ns - figures->first_ns) * TIMELINE_BINS /
           (double)(figures->last_ns - figures->first_ns + 1);
}

/* To a thousandth of a bin, rounded down: it stays in its bin. */
static double find_arrow_position(const struct timeline *timeline, int64_t ns)
{
    return (double)(int64_t)(find_position(timeline, ns) * 1000) / 1000;
}

/* ---- Slices ---- */

/* Returns -1 if the track is not drawn. Ends of arrows have the first 19
 * letters of a name. */
static int find_track(const struct timeline *timeline, int pid, const char *tid,
                      size_t most)
{
    for (int i = 0; i < timeline->count; i++) {
        const struct timeline_track *track = &timeline->tracks[i];

        if (track->pid == pid && strncmp(track->tid, tid, most) == 0) {
            return i;
        }
    }
    return -1;
}

static struct timeline_track *find_or_add_track(struct timeline *timeline,
                                                const struct iris_event *event)
{
    static const struct timeline_slice nothing = {-1, -1, -1};
    struct timeline_track *track;
    int at = find_track(timeline, event->pid, event->tid, sizeof event->tid);

    if (at >= 0) {
        return &timeline->tracks[at];
    }
    if (timeline->count == MAX_TRACKS) {
        timeline->left_out = 1;
        return NULL;
    }
    track = &timeline->tracks[timeline->count++];
    memset(track, 0, sizeof *track);
    track->pid = event->pid;
    memcpy(track->tid, event->tid, sizeof track->tid);
    for (int i = 0; i < TIMELINE_BINS; i++) {
        track->slices[i] = nothing;
    }
    return track;
}

/* The number of the text, which may be new. -1: the event has no text. */
static int find_or_add_label(struct timeline *timeline,
                             const struct iris_event *event, short *label_p)
{
    char text[TRACE_LABEL];
    void *more;

    if (!trace_label(timeline->spaces, &timeline->figures->file, event, 0,
                     text)) {
        return 0;
    }
    /* Operations come in runs on the same memory: the latest is the likeliest. */
    for (size_t i = timeline->num_labels; i > 0; i--) {
        if (strcmp(timeline->labels[i - 1], text) == 0) {
            *label_p = (short)(i - 1);
            return 0;
        }
    }
    if (timeline->num_labels == MAX_LABELS) {
        return 0;
    }
    more = iris_i_grow(timeline->labels, timeline->num_labels, sizeof(text));
    if (more == NULL) {
        return -1;
    }
    timeline->labels = more;
    *label_p = (short)timeline->num_labels;
    memcpy(timeline->labels[timeline->num_labels++], text, sizeof text);
    return 0;
}

/* The end of an arrow follows its beginning in the file. */
static int add_launch(struct timeline *timeline, const struct iris_event *event)
{
    struct timeline_launch launch = {.from = timeline->launch};
    void *more;

    if (strcmp(event->cat, "iris_launch") != 0) {
        return 0;
    }
    launch.to = iris_i_flow_end(event, event->ts_ns);
    if (event->ph == 's') {
        timeline->launch = launch.to;
        return 0;
    }
    more =
        iris_i_grow(timeline->launches, timeline->num_launches, sizeof launch);
    if (more == NULL) {
        return report_no_memory();
    }
    timeline->launches = more;
    timeline->launches[timeline->num_launches++] = launch;
    return 0;
}

static int add_slice(struct timeline *timeline, const struct iris_event *event)
{
    double begin = find_position(timeline, event->ts_ns);
    double end = find_position(timeline, event->ts_ns + event->dur_ns);
    struct timeline_track *track = find_or_add_track(timeline, event);
    const struct trace_row *row =
        trace_find(&timeline->figures->events, event->name, event->cat);
    struct timeline_slice slice = {-1, (short)event->target_rank, -1};

    if (row == NULL || track == NULL) {
        return 0;
    }
    slice.row = (short)(row - timeline->figures->events.rows);
    if (find_or_add_label(timeline, event, &slice.label) != 0 ||
        iris_i_flows_add(&timeline->flows, event) != 0) {
        return report_no_memory();
    }
    for (int i = (int)begin; i <= (int)end && i < TIMELINE_BINS; i++) {
        double from = begin > i ? begin : i, to = end < i + 1 ? end : i + 1;
        /* An event that encloses others shows only where no other event is. */
        float share = trace_is_run(event) ? 1e-6f : (float)(to - from + 1e-5);

        if (share > track->share[i]) {
            track->share[i] = share;
            track->slices[i] = slice;
        }
    }
    return 0;
}

/* Take an event of the second reading into account. Return 0, or -1 without
 * memory. */
static int add_to_timeline(void *timeline, const struct iris_event *event)
{
    return event->ph == 's' || event->ph == 'f' ? add_launch(timeline, event)
                                                : add_slice(timeline, event);
}

/* ---- Arrows ---- */

static int compare_tracks(const void *left, const void *right)
{
    const struct timeline_track *a = left, *b = right;

    return a->pid != b->pid ? a->pid - b->pid : strcmp(a->tid, b->tid);
}

static int compare_places(int from_track, double from, int to_track, double to)
{
    return from_track != to_track
               ? from_track - to_track
               : ((int)from > (int)to) - ((int)from < (int)to);
}

static int compare_timeline_arrows(const void *left, const void *right)
{
    const struct timeline_arrow *a = left, *b = right;
    int order = compare_places(a->to_track, a->to, b->to_track, b->to);

    return order != 0
               ? order
               : compare_places(a->from_track, a->from, b->from_track, b->from);
}

static int find_end(const struct timeline *timeline,
                    const struct iris_flow_end *end)
{
    return find_track(timeline, end->pid, end->tid, sizeof end->tid - 1);
}

/* Adds an arrow if both tracks are drawn and differ. Returns 0, or -1 without
 * memory. */
static int add_timeline_arrow(struct timeline *timeline,
                              const struct iris_flow_end *from,
                              const struct iris_flow_end *to, double put)
{
    struct timeline_arrow arrow = {.from_track = find_end(timeline, from),
                                   .to_track = find_end(timeline, to),
                                   .from =
                                       find_arrow_position(timeline, from->ns),
                                   .to = find_arrow_position(timeline, to->ns),
                                   .put = put};
    void *more;

    if (arrow.from_track < 0 || arrow.to_track < 0 ||
        arrow.from_track == arrow.to_track) {
        return 0;
    }
    more = iris_i_grow(timeline->arrows, timeline->num_arrows, sizeof arrow);
    if (more == NULL) {
        return report_no_memory();
    }
    timeline->arrows = more;
    timeline->arrows[timeline->num_arrows++] = arrow;
    return 0;
}

static int add_wait_arrow(struct timeline *timeline,
                          const struct iris_flow_point *wait)
{
    const struct iris_flow_point *signal =
        iris_i_flows_signal_of(&timeline->flows, wait);

    return signal == NULL
               ? 0
               : add_timeline_arrow(
                     timeline, &signal->at, &wait->at,
                     signal->put.pid < 0
                         ? TIMELINE_NO_PUT
                         : find_arrow_position(timeline, signal->put.ns));
}

/* Arrows between the same bins look like one. */
static void merge_arrows(struct timeline *timeline)
{
    size_t count = 0;

    if (timeline->num_arrows > 1) {
        qsort(timeline->arrows, timeline->num_arrows, sizeof *timeline->arrows,
              compare_timeline_arrows);
    }
    for (size_t i = 0; i < timeline->num_arrows; i++) {
        if (count == 0 || compare_timeline_arrows(&timeline->arrows[count - 1],
                                                  &timeline->arrows[i]) != 0) {
            timeline->arrows[count++] = timeline->arrows[i];
        }
    }
    timeline->arrows_left_out = count > MAX_ARROWS;
    timeline->num_arrows = count > MAX_ARROWS ? MAX_ARROWS : count;
}

/* Sorts the tracks and finds the arrows, after the last event. Returns 0, or -1
 * without memory. */
static int finish_timeline(struct timeline *timeline)
{
    qsort(timeline->tracks, (size_t)timeline->count, sizeof *timeline->tracks,
          compare_tracks);
    iris_i_flows_sort(&timeline->flows);
    for (size_t i = 0; i < timeline->flows.waits.count; i++) {
        if (add_wait_arrow(timeline, &timeline->flows.waits.points[i]) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < timeline->num_launches; i++) {
        if (add_timeline_arrow(timeline, &timeline->launches[i].from,
                               &timeline->launches[i].to,
                               TIMELINE_LAUNCH) != 0) {
            return -1;
        }
    }
    merge_arrows(timeline);
    return 0;
}

/* ---- The page ---- */

/* JSON inside of a script: no text may end that. */
static void write_text(FILE *file, const char *text)
{
    char safe[128];
    size_t length = 0;

    for (; *text != '\0' && length + 1 < sizeof safe; text++) {
        safe[length++] =
            *text == '<' || *text == '>' || *text == '&' ? '_' : *text;
    }
    safe[length] = '\0';
    iris_i_json_string(file, safe);
}

static int is_same_slice(const struct timeline_slice *a,
                         const struct timeline_slice *b)
{
    return a->row == b->row && a->target == b->target && a->label == b->label;
}

/* Runs of equal bins: [first, how many, row, target, label]. */
static void write_track(FILE *file, const struct timeline_track *track)
{
    int first = 1;

    fprintf(file, "{\"rank\":%d,\"name\":", track->pid);
    write_text(file, track->tid);
    fprintf(file, ",\"runs\":[");
    for (int i = 0; i < TIMELINE_BINS;) {
        const struct timeline_slice *slice = &track->slices[i];
        int end = i + 1;

        while (end < TIMELINE_BINS &&
               is_same_slice(&track->slices[end], slice)) {
            end++;
        }
        if (slice->row >= 0) {
            fprintf(file, "%s[%d,%d,%d,%d,%d]", first ? "" : ",", i, end - i,
                    slice->row, slice->target, slice->label);
            first = 0;
        }
        i = end;
    }
    fprintf(file, "]}");
}

/* [track, bin] of the signal and of the wait's end, and the bin of the put. */
static void write_arrows(FILE *file, const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->num_arrows; i++) {
        const struct timeline_arrow *arrow = &timeline->arrows[i];

        fprintf(file, "%s\n[%d,%.3f,%d,%.3f,%.3f]", i == 0 ? "" : ",",
                arrow->from_track, arrow->from, arrow->to_track, arrow->to,
                arrow->put);
    }
}

static void write_rows(FILE *file, const struct trace_figures *figures,
                       const struct trace_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct trace_row *row = &rows->rows[i];

        fprintf(file, "%s\n[", i == 0 ? "" : ",");
        write_text(file, row->name);
        fprintf(file, ",%llu,%llu,%.3f,%.3f,%.3f,%.3f]",
                (unsigned long long)row->count, (unsigned long long)row->bytes,
                trace_us(figures, row->ns),
                trace_us(figures, trace_percentile(row, 50)),
                trace_us(figures, trace_percentile(row, 99)),
                trace_us(figures, row->max_ns));
    }
}

static void write_waits(FILE *file, const struct timeline *timeline)
{
    const struct trace_figures *figures = timeline->figures;
    char memory[TRACE_LABEL];

    for (int i = 0; i < figures->num_top; i++) {
        const struct iris_event *event = &figures->top[i];

        fprintf(file, "%s\n[%d,", i == 0 ? "" : ",", event->pid);
        write_text(file, event->name);
        fprintf(file, ",");
        write_text(file, event->kernel);
        if (!trace_label(timeline->spaces, &figures->file, event, 1, memory)) {
            snprintf(memory, sizeof memory, "0x%llx",
                     (unsigned long long)event->address);
        }
        fprintf(file, ",%lld,", (long long)event->program_id);
        write_text(file, memory);
        fprintf(file, ",%.3f,%.3f]",
                trace_us(figures, (uint64_t)(event->ts_ns - figures->first_ns)),
                trace_us(figures, (uint64_t)event->dur_ns));
    }
}

static void write_data(FILE *file, const struct timeline *timeline)
{
    const struct trace_figures *figures = timeline->figures;
    size_t cells = (size_t)figures->num_ranks * (size_t)figures->num_ranks;

    fprintf(file,
            "{\"us\":%.3f,\"bins\":%d,\"ranks\":%d,\"events\":%llu,"
            "\"wait_us\":%.3f,\"left_out\":%d,\"arrows_left_out\":%d,"
            "\"matrix\":[",
            trace_us(figures, (uint64_t)(figures->last_ns - figures->first_ns)),
            TIMELINE_BINS, figures->num_ranks,
            (unsigned long long)figures->num_events,
            trace_us(figures, figures->wait_ns), timeline->left_out,
            timeline->arrows_left_out);
    for (size_t i = 0; i < cells; i++) {
        fprintf(file, "%s%llu", i == 0 ? "" : ",",
                (unsigned long long)figures->matrix[i]);
    }
    fprintf(file, "],\"rows\":[");
    write_rows(file, figures, &figures->events);
    fprintf(file, "],\"waits\":[");
    write_waits(file, timeline);
    fprintf(file, "],\"labels\":[");
    for (size_t i = 0; i < timeline->num_labels; i++) {
        fprintf(file, "%s", i == 0 ? "" : ",");
        write_text(file, timeline->labels[i]);
    }
    fprintf(file, "],\"arrows\":[");
    write_arrows(file, timeline);
    fprintf(file, "],\"tracks\":[");
    for (int i = 0; i < timeline->count; i++) {
        fprintf(file, "%s\n", i == 0 ? "" : ",");
        write_track(file, &timeline->tracks[i]);
    }
    fprintf(file, "]}");
}

static int write_page(const struct timeline *timeline)
{
    static const char page[] =
#include "tools/trace_page.inc"
        ;
    static const char mark[] = "@DATA@";
    const char *data = strstr(page, mark);
    FILE *file = tool_open("iris trace", trace_options.output);

    if (file == NULL) {
        return 1;
    }
    fwrite(page, 1, (size_t)(data - page), file);
    write_data(file, timeline);
    fputs(data + strlen(mark), file);
    return tool_close("iris trace", trace_options.output, file);
}

/* Reads the names of memory from the files beside the trace, if they exist. */
static int read_names(struct trace_spaces *spaces, const char *path)
{
    const char *ending = iris_i_out_ending(path);
    char prefix[PATH_MAX];
    int ret;

    if (trace_options.bases != NULL) {
        ret = trace_spaces_read(spaces, trace_options.bases);
        return ret != 0 ? ret : trace_spaces_need(spaces, trace_options.bases);
    }
    snprintf(prefix, sizeof prefix, "%.*s",
             (int)(ending != NULL ? ending - path : 0), path);
    return ending == NULL ? 0 : trace_spaces_read(spaces, prefix);
}

/* The first reading finds the begin and the end. The second one draws. */
static int draw_report(const char *path, struct trace_figures *figures,
                       struct timeline *timeline)
{
    struct trace_figures again = {.first_ns = INT64_MAX};
    int ret = trace_read(path, &again, add_to_timeline, timeline);

    trace_free(&again);
    if (ret != 0 || finish_timeline(timeline) != 0) {
        return -1;
    }
    if (figures->num_events == 0) {
        figures->first_ns = figures->last_ns;
    }
    return write_page(timeline);
}

int trace_report(char **files, int num_files)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct trace_spaces spaces = {0};
    struct timeline timeline;
    const char *path = files[0];
    int ret = read_names(&spaces, path);

    (void)num_files;
    if (ret == 0) {
        ret = trace_read(path, &figures, NULL, NULL);
    }
    if (open_timeline(&timeline, &figures, &spaces) != 0) {
        fprintf(stderr, "iris trace: no memory\n");
        ret = -1;
    }
    if (ret == 0) {
        trace_sort(&figures.events);
        ret = draw_report(path, &figures, &timeline);
    }
    close_timeline(&timeline);
    trace_spaces_free(&spaces);
    trace_free(&figures);
    return ret != 0;
}
