/* SPDX-License-Identifier: MIT
 *
 * iris trace report: one page with a timeline, the matrix and the longest
 * waits. It needs nothing but a browser.
 */
#include "config.h"

#include "base/base.h"
#include "trace_page.h"
#include "trace_parts.h"
#include "trace_timeline.h"

#include <limits.h>
#include <string.h>

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

static int is_same(const struct timeline_slice *a,
                   const struct timeline_slice *b)
{
    return a->row == b->row && a->target == b->target && a->label == b->label;
}

/* Runs of equal bins: [first, how many, row, target, label]. */
static void print_track(FILE *file, const struct timeline_track *track)
{
    int first = 1;

    fprintf(file, "{\"rank\":%d,\"name\":", track->pid);
    print_text(file, track->tid);
    fprintf(file, ",\"runs\":[");
    for (int i = 0; i < TIMELINE_BINS;) {
        const struct timeline_slice *slice = &track->slices[i];
        int end = i + 1;

        while (end < TIMELINE_BINS && is_same(&track->slices[end], slice)) {
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
static void print_arrows(FILE *file, const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->num_arrows; i++) {
        const struct timeline_arrow *arrow = &timeline->arrows[i];

        fprintf(file, "%s\n[%d,%.3f,%d,%.3f,%.3f]", i == 0 ? "" : ",",
                arrow->from_track, arrow->from, arrow->to_track, arrow->to,
                arrow->put);
    }
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

static void print_waits(FILE *file, const struct timeline *timeline)
{
    const struct trace_figures *figures = timeline->figures;
    char memory[TRACE_LABEL];

    for (int i = 0; i < figures->num_top; i++) {
        const struct iris_event *event = &figures->top[i];

        fprintf(file, "%s\n[%d,", i == 0 ? "" : ",", event->pid);
        print_text(file, event->name);
        fprintf(file, ",");
        print_text(file, event->kernel);
        if (!trace_label(timeline->spaces, &figures->file, event, 1, memory)) {
            snprintf(memory, sizeof memory, "0x%llx",
                     (unsigned long long)event->address);
        }
        fprintf(file, ",%lld,", (long long)event->program_id);
        print_text(file, memory);
        fprintf(file, ",%.3f,%.3f]",
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
    print_rows(file, figures, &figures->events);
    fprintf(file, "],\"waits\":[");
    print_waits(file, timeline);
    fprintf(file, "],\"labels\":[");
    for (size_t i = 0; i < timeline->num_labels; i++) {
        fprintf(file, "%s", i == 0 ? "" : ",");
        print_text(file, timeline->labels[i]);
    }
    fprintf(file, "],\"arrows\":[");
    print_arrows(file, timeline);
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

/* Reads the names of memory from the files beside the trace, if they exist. */
static int read_spaces(struct trace_spaces *spaces, const char *path)
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
static int draw(struct trace_figures *figures, struct timeline *timeline)
{
    const char *path = trace_options.files[0];
    struct trace_figures again = {.first_ns = INT64_MAX};
    int ret = trace_read(path, &again, timeline_add, timeline);

    trace_free(&again);
    if (ret != 0 || timeline_finish(timeline) != 0) {
        return -1;
    }
    if (figures->num_events == 0) {
        figures->first_ns = figures->last_ns;
    }
    return write_page(timeline);
}

int trace_report(void)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct trace_spaces spaces = {0};
    struct timeline timeline;
    const char *path = trace_options.files[0];
    int ret = read_spaces(&spaces, path);

    if (ret == 0) {
        ret = trace_read(path, &figures, NULL, NULL);
    }
    if (timeline_open(&timeline, &figures, &spaces) != 0) {
        fprintf(stderr, "iris trace: no memory\n");
        ret = -1;
    }
    if (ret == 0) {
        trace_sort(&figures.events);
        ret = draw(&figures, &timeline);
    }
    timeline_close(&timeline);
    trace_spaces_free(&spaces);
    trace_free(&figures);
    return ret != 0;
}
