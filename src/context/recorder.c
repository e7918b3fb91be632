/* SPDX-License-Identifier: MIT
 *
 * The flight recorder: an observer that keeps host calls and the waits of
 * kernels. It is always on, so it takes no lock.
 */
#include "config.h"

#include "context/internal.h"

#include "base/base.h"
#include "control/records.h"
#include "heap/heap.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

static struct iris_record *get_record(const iris_t *iris)
{
    return iris->control == NULL ? NULL : iris->control->record;
}

/* ---- Host calls ---- */

static uint64_t find_offset(const iris_t *iris, const void *address, int rank)
{
    const int64_t *bases = iris_i_heap_bases(&iris->heap.memory);
    size_t bytes = iris_i_heap_bytes(&iris->heap.memory);
    uint64_t at = iris_i_heap_offset(&iris->heap.memory, address);

    if (at < bytes) {
        return at;
    }
    if (rank < 0 || rank >= iris->log.num_ranks || bases == NULL) {
        return IRIS_RECORD_NOWHERE;
    }
    at = (uintptr_t)address - (uint64_t)bases[rank];
    return at < bytes ? at : IRIS_RECORD_NOWHERE;
}

static void count_bytes(struct iris_record *record,
                        const struct iris_host_event *event)
{
    int peer = event->target_rank < IRIS_RECORD_PEERS ? event->target_rank
                                                      : IRIS_RECORD_PEERS - 1;

    if (event->op == IRIS_HOST_COPY && event->status == IRIS_OK && peer >= 0) {
        atomic_fetch_add_explicit(&record->peer_bytes[peer], event->bytes,
                                  memory_order_relaxed);
    }
}

static void count_heap(iris_t *iris, struct iris_record *record)
{
    struct iris_heap_stats stats;

    iris_i_heap_stats(&iris->heap, &stats);
    atomic_store_explicit(&record->heap_used, stats.used_bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&record->heap_bytes, stats.heap_bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&record->heap_mapped, stats.mapped_bytes,
                          memory_order_relaxed);
}

/* Counts a launch. Its stream is not NULL. */
static void count_launch(const iris_t *iris, struct iris_record *record,
                         const struct iris_host_event *event)
{
    const void *stream =
        event->stream == NULL ? iris->queue.streams : event->stream;
    int slot;

    if (event->op != IRIS_HOST_LAUNCH || event->status != IRIS_OK) {
        return;
    }
    slot = iris_i_record_stream_slot(record, (uintptr_t)stream);
    if (slot >= 0) {
        iris_i_record_launched(record, slot);
    }
}

void iris_i_recorder_failed(iris_t *iris, iris_status_t status)
{
    if (status == IRIS_ERR_TIMEOUT) {
        iris_i_peers_name_stopped(iris->control);
    }
    if (status == IRIS_ERR_TIMEOUT || status == IRIS_ERR_PEER_LOST) {
        iris_i_report_incident(iris->control, iris->settings->report.text);
    } else if (status == IRIS_ERR_MISMATCH) {
        iris_i_report_mismatch(iris->control, iris->settings->report.text);
    }
}

/* The value kept for a call; for a collective, the number of its group. */
static uint64_t get_value(const struct iris_host_event *event)
{
    const struct iris_group *group = event->group;

    if (event->op != IRIS_HOST_COLLECTIVE && event->op != IRIS_HOST_BARRIER) {
        return event->value;
    }
    return group == NULL ? 0 : (uint64_t)group->members.place;
}

/* Calls that do not wait do not read the clock at their end: that would take as
 * long as they do. */
static void end_call(iris_t *iris, struct iris_record *record,
                     const struct iris_host_event *event)
{
    iris_i_record_end(record, event,
                      find_offset(iris, event->address, event->target_rank),
                      iris_i_host_op_waits((int)event->op));
    iris_i_recorder_failed(iris, event->status);
    count_bytes(record, event);
    if (event->op == IRIS_HOST_ALLOC || event->op == IRIS_HOST_FREE) {
        count_heap(iris, record);
    }
    count_launch(iris, record, event);
}

/* ---- Runs of kernels on the CPU: one at a time on each stream ---- */

static void record_kernel(struct iris_record *record,
                          const struct iris_host_event *event)
{
    const struct iris_stream *stream = event->stream;
    int slot = iris_i_record_stream_slot(record, (uintptr_t)stream);

    if (slot >= 0 && event->after) {
        iris_i_record_kernel_done(record, slot);
    } else if (slot >= 0) {
        iris_i_record_kernel(record, slot, event, stream->number);
    }
}

static void record_event(void *self, const struct iris_host_event *event)
{
    iris_t *iris = self;
    struct iris_record *record = get_record(iris);

    if (event->op == IRIS_HOST_KERNEL) {
        record_kernel(record, event);
    } else if (event->op >= IRIS_HOST_RUN_COPY) {
        return; /* commands of a stream itself */
    } else if (event->after) {
        end_call(iris, record, event);
    } else {
        iris_i_record_begin(
            record, event,
            find_offset(iris, event->address, event->target_rank),
            get_value(event));
    }
}

/* ---- Waits in kernels ---- */

/* A word of 4 or 8 bytes, in the format of reports. A rank may write it by any
 * means meanwhile, so this is no atomic, which a sanitizer would pair with those. */
__attribute__((no_sanitize_thread)) static int64_t
read_word(uintptr_t at, const struct iris_wait_note *note)
{
    if (note->bytes == sizeof(uint64_t)) {
        return *(const volatile int64_t *)at;
    }
    return note->is_unsigned ? (int64_t) * (const volatile uint32_t *)at
                             : *(const volatile int32_t *)at;
}

/* Finds the peers whose word at the same offset satisfies the wait. The awaited
 * signal may have gone to the wrong rank. Only if the host can read heaps. */
static uint64_t find_holders(const iris_t *iris,
                             const struct iris_wait_note *note,
                             const struct iris_record_wait *wait)
{
    uint64_t at = wait->offset - wait->alloc, held = 0;

    if (iris->placement.type->is_gpu || wait->alloc_bytes == 0 ||
        (note->bytes != 4 && note->bytes != 8) ||
        wait->offset % note->bytes != 0 ||
        at + note->bytes > wait->alloc_bytes) {
        return 0;
    }
    for (int rank = 0; rank < iris->log.num_ranks && rank < 64; rank++) {
        uint64_t base = (uint64_t)iris_i_heap_bases(&iris->heap.memory)[rank];

        if (rank != iris->log.rank && base != 0 &&
            iris_i_record_holds(
                wait, read_word((uintptr_t)(base + wait->offset), note))) {
            held |= (uint64_t)1 << rank;
        }
    }
    return held;
}

/* Allocations are at the same offsets on every rank. */
static void find_allocation(iris_t *iris, struct iris_record_wait *wait)
{
    char name[IRIS_NAME_BYTES + 4];
    size_t start = 0, bytes = 0, length;

    if (!iris_i_heap_find(&iris->heap.names, wait->offset, &start, &bytes)) {
        return;
    }
    wait->alloc = start;
    wait->alloc_bytes = bytes;
    iris_i_heap_describe(&iris->heap.names, start, name); /* in quotes */
    length = strlen(name);
    if (length > 3) {
        memcpy(wait->word, name + 2, length - 3);
    }
}

/* Finds the word's place, and the member whose arrival it may be. */
static void find_word(iris_t *iris, const struct iris_wait_note *note,
                      struct iris_record_wait *wait)
{
    size_t offset;

    wait->kind = note->op == 0 ? IRIS_WAIT_SPIN : IRIS_WAIT_KERNEL;
    wait->word_rank =
        find_offset(iris, note->address, -1) != IRIS_RECORD_NOWHERE
            ? iris->log.rank
            : iris_i_heap_owner(&iris->heap.memory, note->address, &offset);
    wait->offset = find_offset(iris, note->address, wait->word_rank);
    if (note->address == NULL || wait->offset == IRIS_RECORD_NOWHERE) {
        wait->offset = IRIS_RECORD_NOWHERE;
        return;
    }
    if (note->op != 0) {
        iris_i_group_note(iris, note->address, wait);
    }
    if (wait->group < 0) {
        find_allocation(iris, wait);
    }
}

/* Notices a new wait, or a change of the value since the last note. */
static void follow_note(struct iris_wait_note *note)
{
    if (!note->is_known) {
        note->is_known = 1;
        note->first_seen = note->seen;
        note->change_ns = 0;
        note->last_seen = note->seen;
    }
    if (note->seen != note->last_seen) {
        note->last_seen = note->seen;
        note->change_ns = note->now_ns;
    }
}

void iris_i_note_wait(void *core, struct iris_wait_note *note)
{
    iris_t *iris = core;
    struct iris_record_wait wait = {
        .ended = note->ended,
        .begin_ns = note->begin_ns,
        .update_ns = note->now_ns,
        .stream = (uintptr_t)note->stream,
        .value = note->value,
        .seen = note->seen,
        .cmp = (int32_t)note->cmp,
        .is_unsigned = note->is_unsigned,
        .workgroup = note->workgroup,
        .grid = note->grid,
        .begun = note->begun,
        .done = note->done,
        .own = note->own,
        .group = -1,
    };

    if (!note->is_known) { /* the thread that calls runs a kernel it knows */
        note->site = note->kernel == NULL || note->own
                         ? 0
                         : iris_i_record_site(get_record(iris));
    }
    wait.site = note->site;
    follow_note(note);
    wait.first_seen = note->first_seen;
    wait.change_ns = note->change_ns;
    snprintf(wait.name, sizeof wait.name, "%s",
             note->kernel == NULL ? "" : note->kernel);
    find_word(iris, note, &wait);
    if (note->kernel == NULL) {
        iris_i_record_launched_names(get_record(iris), wait.name);
        wait.own = wait.group >= 0;
    }
    if (wait.kind == IRIS_WAIT_KERNEL &&
        (note->ended ||
         note->now_ns - note->begin_ns > IRIS_OLD_MS * IRIS_NS_PER_MS)) {
        wait.held = find_holders(iris, note, &wait);
    }
    note->slot = iris_i_record_wait(get_record(iris), note->slot, &wait);
}

void iris_i_wait_over(void *core, struct iris_wait_note *note)
{
    iris_i_record_wait_over(get_record(core), note->slot, note->ended);
    note->slot = -1;
}

#define NOT_NOTED (-2) /* a slot */

/* Keeps where the program waits for a stream. The stream's own waits name the word;
 * a thread of the library has no such place. */
void iris_i_recorder_note_wait(struct iris_wait *wait,
                               enum iris_wait_phase phase)
{
    struct iris_record *record = get_record(wait->waiter->arg);
    struct iris_record_wait noted = {.kind = IRIS_WAIT_STREAM,
                                     .begin_ns = wait->begin_ns,
                                     .update_ns = wait->now_ns,
                                     .offset = IRIS_RECORD_NOWHERE,
                                     .word_rank = -1,
                                     .group = -1};

    if (phase != IRIS_WAIT_GOES_ON) {
        iris_i_record_wait_over(record, wait->slot,
                                phase == IRIS_WAIT_WAS_ENDED);
        return;
    }
    if (wait->slot == -1) {
        wait->site = iris_i_record_site(record);
    }
    noted.site = wait->site;
    wait->slot = noted.site == 0
                     ? NOT_NOTED
                     : iris_i_record_wait(record, wait->slot, &noted);
}

void iris_i_recorder_describe_wait(void *arg, char *text, size_t bytes)
{
    iris_t *iris = arg;
    struct iris_record_wait wait;
    char what[300] = "its work runs on, and does not wait as far as is known";

    if (iris_i_record_find_wait(get_record(iris), &wait)) {
        iris_i_describe_wait(&wait, what, sizeof what);
    }
    snprintf(text, bytes, "a stream: %s (iris top %ld shows all ranks)", what,
             (long)iris->pid);
}

/* ---- Opening and closing ---- */

iris_status_t iris_i_recorder_open(iris_t *iris)
{
    struct iris_record *record = get_record(iris);

    iris->recorder = (struct iris_observer){.host = record_event, .self = iris};
    if (record == NULL) {
        return IRIS_OK;
    }
    record->num_cus = iris->device.num_cus;
    record->heap_reserved = iris_i_heap_bytes(&iris->heap.memory);
    count_heap(iris, record);
    iris_i_record_open(record, iris->log.rank, iris->settings->job_id.text);
    iris_i_report_watch(iris->control, iris->settings->report.text);
    return iris_i_hooks_add(&iris->hooks, &iris->recorder);
}

void iris_i_recorder_close(iris_t *iris)
{
    iris_i_hooks_remove(&iris->hooks, &iris->recorder);
    iris_i_report_unwatch(iris->control);
}

void iris_i_recorder_clear(iris_t *iris)
{
    iris_i_record_forget(get_record(iris));
    iris_i_records_forget(iris->control->records, iris->log.rank);
}
