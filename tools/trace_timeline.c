/* SPDX-License-Identifier: MIT
 *
 * The timeline of iris trace report: tracks of slices, and arrows between them.
 */
#include "config.h"

#include "trace_timeline.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TRACKS 256
#define MAX_ARROWS 20000
#define MAX_LABELS 4096 /* further memory has no label */

int timeline_open(struct timeline *timeline,
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

void timeline_close(struct timeline *timeline)
{
    iris_i_flows_close(&timeline->flows);
    free(timeline->tracks);
    free(timeline->labels);
    free(timeline->launches);
    free(timeline->arrows);
}

static int no_memory(void)
{
    fprintf(stderr, "iris trace: no memory\n");
    return -1;
}

/* In bins, from the beginning of the trace. */
static double position(const struct timeline *timeline, int64_t ns)
{
    const struct trace_figures *figures = timeline->figures;

    return (double)(ns - figures->first_ns) * TIMELINE_BINS /
           (double)(figures->last_ns - figures->first_ns + 1);
}

/* To a thousandth of a bin, rounded down: it stays in its bin. */
static double arrow_position(const struct timeline *timeline, int64_t ns)
{
    return (double)(int64_t)(position(timeline, ns) * 1000) / 1000;
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

static struct timeline_track *track_of(struct timeline *timeline,
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
static int label_of(struct timeline *timeline, const struct iris_event *event,
                    short *label_p)
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
        return no_memory();
    }
    timeline->launches = more;
    timeline->launches[timeline->num_launches++] = launch;
    return 0;
}

static int add_slice(struct timeline *timeline, const struct iris_event *event)
{
    double begin = position(timeline, event->ts_ns);
    double end = position(timeline, event->ts_ns + event->dur_ns);
    struct timeline_track *track = track_of(timeline, event);
    const struct trace_row *row =
        trace_find(&timeline->figures->events, event->name, event->cat);
    struct timeline_slice slice = {-1, (short)event->target_rank, -1};

    if (row == NULL || track == NULL) {
        return 0;
    }
    slice.row = (short)(row - timeline->figures->events.rows);
    if (label_of(timeline, event, &slice.label) != 0 ||
        iris_i_flows_add(&timeline->flows, event) != 0) {
        return no_memory();
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

int timeline_add(void *timeline, const struct iris_event *event)
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

static int compare_arrows(const void *left, const void *right)
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
static int add_arrow(struct timeline *timeline,
                     const struct iris_flow_end *from,
                     const struct iris_flow_end *to, double put)
{
    struct timeline_arrow arrow = {.from_track = find_end(timeline, from),
                                   .to_track = find_end(timeline, to),
                                   .from = arrow_position(timeline, from->ns),
                                   .to = arrow_position(timeline, to->ns),
                                   .put = put};
    void *more;

    if (arrow.from_track < 0 || arrow.to_track < 0 ||
        arrow.from_track == arrow.to_track) {
        return 0;
    }
    more = iris_i_grow(timeline->arrows, timeline->num_arrows, sizeof arrow);
    if (more == NULL) {
        return no_memory();
    }
    timeline->arrows = more;
    timeline->arrows[timeline->num_arrows++] = arrow;
    return 0;
}

static int add_wait(struct timeline *timeline,
                    const struct iris_flow_point *wait)
{
    const struct iris_flow_point *signal =
        iris_i_flows_signal_of(&timeline->flows, wait);

    return signal == NULL
               ? 0
               : add_arrow(timeline, &signal->at, &wait->at,
                           signal->put.pid < 0
                               ? TIMELINE_NO_PUT
                               : arrow_position(timeline, signal->put.ns));
}

/* Arrows between the same bins look like one. */
static void merge_arrows(struct timeline *timeline)
{
    size_t count = 0;

    if (timeline->num_arrows > 1) {
        qsort(timeline->arrows, timeline->num_arrows, sizeof *timeline->arrows,
              compare_arrows);
    }
    for (size_t i = 0; i < timeline->num_arrows; i++) {
        if (count == 0 || compare_arrows(&timeline->arrows[count - 1],
                                         &timeline->arrows[i]) != 0) {
            timeline->arrows[count++] = timeline->arrows[i];
        }
    }
    timeline->arrows_left_out = count > MAX_ARROWS;
    timeline->num_arrows = count > MAX_ARROWS ? MAX_ARROWS : count;
}

int timeline_finish(struct timeline *timeline)
{
    qsort(timeline->tracks, (size_t)timeline->count, sizeof *timeline->tracks,
          compare_tracks);
    iris_i_flows_sort(&timeline->flows);
    for (size_t i = 0; i < timeline->flows.waits.count; i++) {
        if (add_wait(timeline, &timeline->flows.waits.points[i]) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < timeline->num_launches; i++) {
        if (add_arrow(timeline, &timeline->launches[i].from,
                      &timeline->launches[i].to, TIMELINE_LAUNCH) != 0) {
            return -1;
        }
    }
    merge_arrows(timeline);
    return 0;
}
