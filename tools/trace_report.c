/* SPDX-License-Identifier: MIT
 *
 * iris-trace report: one page with a timeline, the matrix and the longest
 * waits. It needs nothing but a browser.
 */
#include "config.h"

#include "base/json_writer.h"
#include "trace_figures.h"
#include "trace_page.h"
#include "trace_parts.h"

#include <stdlib.h>
#include <string.h>

#define BINS 8192 /* so that a reader can zoom in */
#define MAX_TRACKS 256

/* One track of the timeline: what took most of each bin, and how much of it. */
struct track {
    int pid;
    char tid[32];
    float share[BINS];
    short row[BINS]; /* of figures.events; -1: nothing */
};

struct timeline {
    const struct trace_figures *figures; /* of the first reading */
    struct track *tracks;
    int count;
    int left_out; /* tracks for which there was no space */
};

static struct track *track_of(struct timeline *timeline,
                              const struct iris_event *event)
{
    struct track *track;

    for (int i = 0; i < timeline->count; i++) {
        track = &timeline->tracks[i];
        if (track->pid == event->pid && strcmp(track->tid, event->tid) == 0) {
            return track;
        }
    }
    if (timeline->count == MAX_TRACKS) {
        timeline->left_out = 1;
        return NULL;
    }
    track = &timeline->tracks[timeline->count++];
    memset(track, 0, sizeof *track);
    track->pid = event->pid;
    memcpy(track->tid, event->tid, sizeof track->tid);
    for (int i = 0; i < BINS; i++) {
        track->row[i] = -1;
    }
    return track;
}

static int draw(void *arg, const struct iris_event *event)
{
    struct timeline *timeline = arg;
    const struct trace_figures *figures = timeline->figures;
    double width = (double)(figures->last_ns - figures->first_ns + 1) / BINS;
    double begin = (double)(event->ts_ns - figures->first_ns) / width;
    double end =
        (double)(event->ts_ns + event->dur_ns - figures->first_ns) / width;
    struct track *track = track_of(timeline, event);
    const struct trace_row *row =
        trace_find(&figures->events, event->name, event->cat);

    for (int i = (int)begin; track != NULL && i <= (int)end && i < BINS; i++) {
        double from = begin > i ? begin : i, to = end < i + 1 ? end : i + 1;
        /* What encloses others shows only where nothing else is. */
        float share = trace_is_run(event) ? 1e-6f : (float)(to - from + 1e-5);

        if (share > track->share[i]) {
            track->share[i] = share;
            track->row[i] =
                row == NULL ? -1 : (short)(row - figures->events.rows);
        }
    }
    return 0;
}

static int compare_tracks(const void *left, const void *right)
{
    const struct track *a = left, *b = right;

    return a->pid != b->pid ? a->pid - b->pid : strcmp(a->tid, b->tid);
}

/* ---- The page ---- */

/* JSON inside of a script: no text may end that. */
static void print_text(FILE *file, const char *text)
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

/* Runs of bins with the same row: [first, how many, row]. */
static void print_track(FILE *file, const struct track *track)
{
    int first = 1;

    fprintf(file, "{\"rank\":%d,\"name\":", track->pid);
    print_text(file, track->tid);
    fprintf(file, ",\"runs\":[");
    for (int i = 0; i < BINS;) {
        int end = i + 1;

        while (end < BINS && track->row[end] == track->row[i]) {
            end++;
        }
        if (track->row[i] >= 0) {
            fprintf(file, "%s[%d,%d,%d]", first ? "" : ",", i, end - i,
                    track->row[i]);
            first = 0;
        }
        i = end;
    }
    fprintf(file, "]}");
}

static void print_rows(FILE *file, const struct trace_figures *figures,
                       const struct trace_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct trace_row *row = &rows->rows[i];

        fprintf(file, "%s\n[", i == 0 ? "" : ",");
        print_text(file, row->name);
        fprintf(file, ",%llu,%llu,%.3f,%.3f,%.3f,%.3f]",
                (unsigned long long)row->count, (unsigned long long)row->bytes,
                trace_us(figures, row->ns),
                trace_us(figures, trace_percentile(row, 50)),
                trace_us(figures, trace_percentile(row, 99)),
                trace_us(figures, row->max_ns));
    }
}

static void print_waits(FILE *file, const struct trace_figures *figures)
{
    for (int i = 0; i < figures->num_top; i++) {
        const struct iris_event *event = &figures->top[i];

        fprintf(file, "%s\n[%d,", i == 0 ? "" : ",", event->pid);
        print_text(file, event->name);
        fprintf(file, ",");
        print_text(file, event->kernel);
        fprintf(file, ",%lld,\"0x%llx\",%.3f,%.3f]",
                (long long)event->program_id,
                (unsigned long long)event->address,
                trace_us(figures, (uint64_t)(event->ts_ns - figures->first_ns)),
                trace_us(figures, (uint64_t)event->dur_ns));
    }
}

static void print_data(FILE *file, const struct timeline *timeline)
{
    const struct trace_figures *figures = timeline->figures;
    size_t cells = (size_t)figures->num_ranks * (size_t)figures->num_ranks;

    fprintf(file,
            "{\"us\":%.3f,\"bins\":%d,\"ranks\":%d,\"events\":%llu,"
            "\"wait_us\":%.3f,\"left_out\":%d,\"matrix\":[",
            trace_us(figures, (uint64_t)(figures->last_ns - figures->first_ns)),
            BINS, figures->num_ranks, (unsigned long long)figures->num_events,
            trace_us(figures, figures->wait_ns), timeline->left_out);
    for (size_t i = 0; i < cells; i++) {
        fprintf(file, "%s%llu", i == 0 ? "" : ",",
                (unsigned long long)figures->matrix[i]);
    }
    fprintf(file, "],\"rows\":[");
    print_rows(file, figures, &figures->events);
    fprintf(file, "],\"waits\":[");
    print_waits(file, figures);
    fprintf(file, "],\"tracks\":[");
    for (int i = 0; i < timeline->count; i++) {
        fprintf(file, "%s\n", i == 0 ? "" : ",");
        print_track(file, &timeline->tracks[i]);
    }
    fprintf(file, "]}");
}

static int write_page(const struct timeline *timeline)
{
    FILE *file = trace_open();

    if (file == NULL) {
        return 1;
    }
    fputs(trace_page_begin, file);
    print_data(file, timeline);
    fputs(trace_page_end, file);
    return trace_close(file);
}

/* The second reading draws, once the first has said from when to when. */
int trace_report(void)
{
    struct trace_figures figures = {.first_ns = INT64_MAX}, again = figures;
    struct timeline timeline = {.figures = &figures};
    const char *path = trace_options.files[0];
    int ret = trace_read(path, &figures, NULL, NULL);

    if (ret == 0) {
        trace_sort(&figures.events);
        timeline.tracks = malloc(MAX_TRACKS * sizeof *timeline.tracks);
        ret = timeline.tracks == NULL
                  ? -1
                  : trace_read(path, &again, draw, &timeline);
    }
    if (ret == 0) {
        if (figures.num_events == 0) {
            figures.first_ns = figures.last_ns;
        }
        qsort(timeline.tracks, (size_t)timeline.count, sizeof *timeline.tracks,
              compare_tracks);
        ret = write_page(&timeline);
    }
    free(timeline.tracks);
    trace_free(&figures);
    trace_free(&again);
    return ret != 0;
}
