/* SPDX-License-Identifier: MIT
 *
 * A rank's heap: its memory, the window of external memory behind it, the mappings
 * of the peers' heaps, and its beginning and end.
 *
 * Memory is committed in pieces. A piece is `committed` or not; while a collective
 * allocation is under way, a piece that it has committed is also `fresh`. Every
 * iris_i_heap_commit() ends by iris_i_heap_end_commit(), so
 * outside of an allocation no piece is fresh. Only the thread that makes the
 * context's collective calls commits; any thread may ask whether a range has memory,
 * so the bits are atomic.
 *
 * External memory is mapped behind the heap at offsets from an allocator of its own.
 * An allocation of the program may be shared in several parts; the last part to go
 * unmaps it. The window's lock guards the list of parts.
 *
 * A heap opens with this rank's memory alone. Connecting maps the peers' heaps; a
 * rank whose heap cannot be mapped has base 0. The ranks then agree on the
 * pairs that reach each other, so that both sides see the same. Closing undoes all of
 * it.
 */
#include "config.h"

#include "heap/internal.h"

#include "backend/calls.h"
#include "base/base.h"
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

/* Free ranges of at least this size give their memory back. */
#define GIVE_BACK_BYTES ((size_t)1 << 20)

/* The backend reserves addresses for all of the size that the heap may grow to,
 * so that no base ever moves, and an allocation puts memory there. So a job may
 * reserve more than there is memory. */
static iris_status_t check_reserve(const struct iris_heap_memory *memory,
                                   const struct iris_device_info *info,
                                   size_t bytes)
{
    return bytes == memory->size_bytes || info->heaps_grow
               ? IRIS_OK
               : iris_i_fail(memory->log, IRIS_ERR_CONFIG,
                             "a heap of %zu bytes cannot grow to %zu "
                             "(IRIS_HEAP_RESERVE) on %s with this allocator; "
                             "set IRIS_ALLOCATOR=vmem, or unset "
                             "IRIS_HEAP_RESERVE and raise IRIS_HEAP_SIZE",
                             memory->size_bytes, bytes, info->name);
}

/* Consecutive pieces. */
struct run {
    size_t first;
    size_t end;
};

/* Allocates this rank's heap. The caller closes it even if this fails. */
static iris_status_t open_memory(struct iris_heap_memory *memory, size_t bytes)
{
    struct iris_device_info info;
    iris_status_t status;
    size_t pieces;

    iris_i_device_info(memory->backend, &info);
    status = check_reserve(memory, &info, bytes);
    if (status == IRIS_OK) {
        status = iris_i_memory_alloc(memory->backend, bytes, &memory->region);
    }
    if (status != IRIS_OK) {
        return status;
    }
    memory->piece_bytes = info.page_bytes > IRIS_COMMIT_BYTES
                              ? info.page_bytes
                              : IRIS_COMMIT_BYTES;
    pieces = memory->region.bytes / memory->piece_bytes + 1;
    memory->committed = calloc(pieces / 64 + 1, sizeof memory->committed[0]);
    memory->fresh = calloc(pieces / 64 + 1, sizeof memory->fresh[0]);
    memory->starts = calloc(pieces / 64 + 1, sizeof memory->starts[0]);
    if (memory->region.commit == IRIS_COMMIT_NOTHING) {
        memory->num_committed = pieces;
    }
    return memory->committed == NULL || memory->fresh == NULL ||
                   memory->starts == NULL
               ? iris_i_fail(memory->log, IRIS_ERR_NO_MEMORY,
                             "no memory for the heap's own records")
               : IRIS_OK;
}

static void close_memory(struct iris_heap_memory *memory)
{
    if (memory->region.base != NULL) {
        iris_i_memory_free(memory->backend, &memory->region);
    }
    free(memory->starts);
    free(memory->fresh);
    free(memory->committed);
    free(memory->reachable);
    free(memory->bases);
    free(memory->nodes);
}

/* ---- Pieces ---- */

/* The first piece from `piece` on and before `end` whose bit is `value`, else
 * `end`. Takes 64 pieces at a time, since most of a large heap may be free. Any
 * thread may check whether the range of its work is committed. */
static size_t find_bit(const _Atomic uint64_t *bits, int value, size_t piece,
                       size_t end)
{
    while (piece < end) {
        uint64_t word =
            atomic_load_explicit(&bits[piece / 64], memory_order_relaxed);

        word = (value ? word : ~word) >> piece % 64;
        if (word != 0) {
            piece += top_bit(word & -word); /* the lowest bit set */
            return piece < end ? piece : end;
        }
        piece += 64 - piece % 64;
    }
    return end;
}

static void set_bit(_Atomic uint64_t *bits, size_t piece, int value)
{
    uint64_t bit = UINT64_C(1) << piece % 64;

    if (value) {
        atomic_fetch_or_explicit(&bits[piece / 64], bit, memory_order_relaxed);
    } else {
        atomic_fetch_and_explicit(&bits[piece / 64], ~bit,
                                  memory_order_relaxed);
    }
}

static void flip_bits(_Atomic uint64_t *bits, const struct run *run)
{
    for (size_t piece = run->first; piece < run->end; piece++) {
        atomic_fetch_xor_explicit(&bits[piece / 64],
                                  UINT64_C(1) << (piece % 64),
                                  memory_order_relaxed);
    }
}

/* Finds the first run, after run->end and before `end`, of pieces whose bit is
 * `value`. Returns 1, or 0 if no piece has it. */
static int find_run(const _Atomic uint64_t *bits, int value, size_t end,
                    struct run *run)
{
    run->first = find_bit(bits, value, run->end, end);
    run->end = find_bit(bits, !value, run->first, end);
    return run->first < end;
}

/* The piece after the range that ends at `offset`. */
static size_t find_end(const struct iris_heap_memory *memory, size_t offset)
{
    return offset == 0 ? 0 : (offset - 1) / memory->piece_bytes + 1;
}

/* The heap may end within its last piece. A heap that grows is not affected. */
static size_t count_bytes(const struct iris_heap_memory *memory,
                          const struct run *run)
{
    size_t start = run->first * memory->piece_bytes;
    size_t bytes = (run->end - run->first) * memory->piece_bytes;

    return memory->region.commit == IRIS_COMMIT_SHARED &&
                   bytes > memory->region.bytes - start
               ? memory->region.bytes - start
               : bytes;
}

static void *get_address(const struct iris_heap_memory *memory,
                         const struct run *run)
{
    return iris_i_heap_base(memory) + run->first * memory->piece_bytes;
}

/* Memory that peers map goes back by whole commits. So the pieces that the range
 * may share with its neighbours are commits of their own. The library's own
 * range, at offset 0, is one: peers get it with the heap. */
static void cut_run(const struct iris_heap_memory *memory, size_t offset,
                    size_t bytes, struct run *run)
{
    size_t first = find_end(memory, offset);
    size_t end = (offset + bytes) / memory->piece_bytes;

    if (offset == 0 || memory->region.commit != IRIS_COMMIT_PRIVATE) {
        return;
    }
    if (run->first < first && first < run->end) {
        run->end = first;
    } else if (run->first < end && end < run->end) {
        run->end = end;
    }
}

/* Finds the first fresh commit after run->end. */
static int find_fresh(const struct iris_heap_memory *memory, size_t end,
                      struct run *run)
{
    int found = find_run(memory->fresh, 1, end, run);

    run->end = find_bit(memory->starts, 1, run->first + 1, run->end);
    return found;
}

iris_status_t iris_i_heap_commit(struct iris_heap_memory *memory, size_t offset,
                                 size_t bytes)
{
    struct run run = {.end = offset / memory->piece_bytes};

    if (memory->region.commit == IRIS_COMMIT_NOTHING) {
        return IRIS_OK;
    }
    memory->first_fresh = run.end;
    while (find_run(memory->committed, 0, find_end(memory, offset + bytes),
                    &run)) {
        iris_status_t status;

        cut_run(memory, offset, bytes, &run);
        status =
            iris_i_memory_commit(memory->backend, get_address(memory, &run),
                                 count_bytes(memory, &run));

        if (status != IRIS_OK) {
            iris_i_heap_end_commit(memory, 0);
            return status;
        }
        flip_bits(memory->committed, &run);
        set_bit(memory->starts, run.first, 1);
        memory->num_committed += run.end - run.first;
        flip_bits(memory->fresh, &run);
        memory->num_fresh += run.end - run.first;
    }
    return IRIS_OK;
}

void iris_i_heap_unmap(struct iris_heap_memory *memory, size_t offset)
{
    for (int rank = 0; rank < memory->log->num_ranks; rank++) {
        if (memory->bases != NULL && memory->bases[rank] != 0 &&
            iris_i_control_is_remote(memory->control, rank)) {
            iris_i_memory_decommit(
                memory->backend,
                (char *)(uintptr_t)memory->bases[rank] + offset, 0);
        }
    }
    iris_i_memory_decommit(memory->backend, iris_i_heap_base(memory) + offset,
                           0);
}

/* Decommits a run. If peers map each commit, it is one commit. */
static void decommit_run(struct iris_heap_memory *memory, const struct run *run)
{
    if (memory->region.commit == IRIS_COMMIT_PRIVATE) {
        iris_i_heap_unmap(memory, run->first * memory->piece_bytes);
    } else {
        iris_i_memory_decommit(memory->backend, get_address(memory, run),
                               count_bytes(memory, run));
    }
    flip_bits(memory->committed, run);
    set_bit(memory->starts, run->first, 0);
    memory->num_committed -= run->end - run->first;
}

void iris_i_heap_end_commit(struct iris_heap_memory *memory, int keep)
{
    struct run run = {.end = memory->first_fresh};

    while (memory->num_fresh != 0) {
        (void)find_fresh(memory, find_end(memory, memory->region.bytes), &run);
        if (!keep) {
            decommit_run(memory, &run);
        }
        flip_bits(memory->fresh, &run);
        memory->num_fresh -= run.end - run.first;
    }
}

int iris_i_heap_next_run(const struct iris_heap_memory *memory, int fresh,
                         size_t end, struct iris_heap_run *run)
{
    struct run pieces = {.end = run->bytes != 0
                                    ? find_end(memory, run->offset + run->bytes)
                                : fresh ? memory->first_fresh
                                        : run->offset / memory->piece_bytes};
    int found =
        fresh ? find_fresh(memory, find_end(memory, end), &pieces)
              : find_run(memory->fresh, 0, find_end(memory, end), &pieces);

    run->offset = pieces.first * memory->piece_bytes;
    run->bytes = count_bytes(memory, &pieces);
    return found;
}

/* Keeps memory in which small allocations come and go: committing takes longer
 * than allocating. Keeps a GPU's memory, too, since unmapping it can wait for
 * kernels.
 * A free range of GIVE_BACK_BYTES or more has no committed piece. So only the
 * freed allocation can have some, and that much memory on each side of it: the
 * time does not depend on the size of the heap. */
void iris_i_heap_give_back(struct iris_heap_memory *memory,
                           const struct iris_heap_run *freed,
                           const struct iris_heap_run *joined)
{
    size_t first = joined->offset, last = joined->offset + joined->bytes;
    size_t end = freed->offset + freed->bytes;
    struct run run;

    if (joined->bytes < GIVE_BACK_BYTES ||
        memory->region.commit != IRIS_COMMIT_SHARED) {
        return;
    }
    if (freed->offset - first > GIVE_BACK_BYTES) {
        first = freed->offset - GIVE_BACK_BYTES;
    }
    if (last - end > GIVE_BACK_BYTES) {
        last = end + GIVE_BACK_BYTES;
    }
    run.end = find_end(memory, first);
    while (find_run(memory->committed, 1, last / memory->piece_bytes, &run)) {
        decommit_run(memory, &run);
    }
}

/* Memory that peers map goes by whole commits, the unit of a handle. */
static void trim_commits(struct iris_heap_memory *memory, size_t first,
                         size_t end)
{
    size_t pieces = find_end(memory, memory->region.bytes), next;
    struct run run;

    while ((run.first = find_bit(memory->starts, 1, first, end)) < end) {
        run.end = find_bit(memory->committed, 0, run.first, pieces);
        next = find_bit(memory->starts, 1, run.first + 1, run.end);
        run.end = next;
        if (run.end <= end) {
            decommit_run(memory, &run);
        }
        first = run.end;
    }
}

void iris_i_heap_trim(struct iris_heap_memory *memory, size_t offset,
                      size_t bytes)
{
    size_t end = (offset + bytes) / memory->piece_bytes;
    struct run run = {.end = find_end(memory, offset)};

    if (offset + bytes == memory->region.bytes) { /* within the last piece */
        end = find_end(memory, offset + bytes);
    }
    if (memory->region.commit == IRIS_COMMIT_PRIVATE) {
        trim_commits(memory, run.end, end);
        return;
    }
    while (memory->region.commit == IRIS_COMMIT_SHARED &&
           find_run(memory->committed, 1, end, &run)) {
        decommit_run(memory, &run);
    }
}

int iris_i_heap_is_committed(const struct iris_heap_memory *memory,
                             size_t offset, size_t bytes)
{
    struct run run = {.end = offset / memory->piece_bytes};

    return memory->region.commit == IRIS_COMMIT_NOTHING ||
           !find_run(memory->committed, 0, find_end(memory, offset + bytes),
                     &run);
}

/* ---- Contents ---- */

iris_status_t iris_i_heap_synchronize(struct iris_heap_memory *memory)
{
    iris_status_t status;

    iris_i_control_wait_stream(memory->control, 1);
    status = iris_i_queue_synchronize(memory->stream);
    iris_i_control_wait_stream(memory->control, -1);
    return iris_i_fail_on(memory->log, status);
}

iris_status_t iris_i_heap_copy(struct iris_heap_memory *memory, void *dst,
                               const void *src, size_t bytes)
{
    iris_status_t status = iris_i_heap_synchronize(memory);

    if (status == IRIS_OK) { /* so that nothing delays the copy for long */
        status = iris_i_queue_copy(memory->stream, dst, src, bytes);
    }
    return status != IRIS_OK ? iris_i_fail_on(memory->log, status)
                             : iris_i_heap_synchronize(memory);
}

/* Waits for work twice. During a capture of the default stream, the first wait
 * fails; otherwise the fill would become part of the capture. */
iris_status_t iris_i_heap_zero(struct iris_heap_memory *memory, size_t offset,
                               size_t bytes)
{
    iris_status_t status = iris_i_heap_synchronize(memory);

    if (status == IRIS_OK) {
        status = iris_i_queue_set(memory->stream,
                                  iris_i_heap_base(memory) + offset, 0, bytes);
    }
    return status != IRIS_OK ? iris_i_fail_on(memory->log, status)
                             : iris_i_heap_synchronize(memory);
}

iris_status_t iris_i_heap_clear(struct iris_heap_memory *memory, void *ptr,
                                size_t bytes)
{
    size_t offset = iris_i_heap_offset(memory, ptr);
    struct iris_heap_run run = {.offset = offset};
    iris_status_t status;

    if (memory->region.commit != IRIS_COMMIT_SHARED) {
        return iris_i_heap_zero(memory, offset, bytes);
    }
    status = iris_i_heap_commit(memory, offset, bytes);
    if (status != IRIS_OK) {
        return iris_i_fail_on(memory->log, status);
    }
    while (status == IRIS_OK &&
           iris_i_heap_next_run(memory, 0, offset + bytes, &run)) {
        size_t first = run.offset, last = run.offset + run.bytes;

        first = first < offset ? offset : first;
        last = last > offset + bytes ? offset + bytes : last;
        status = iris_i_heap_zero(memory, first, last - first);
    }
    iris_i_heap_end_commit(memory, status == IRIS_OK);
    return status;
}

/* ---- Peers ---- */

/* Starts with this rank's own heap, which is the likeliest. */
int iris_i_heap_owner(const struct iris_heap_memory *memory,
                      const void *address, size_t *offset_p)
{
    int num_ranks = memory->bases == NULL ? 0 : memory->log->num_ranks;

    for (int i = 0; i < num_ranks; i++) {
        int rank = (memory->log->rank + i) % num_ranks;
        uintptr_t base = (uintptr_t)memory->bases[rank];

        *offset_p = (size_t)((uintptr_t)address - base);
        if (base != 0 && *offset_p < memory->region.bytes) {
            return rank;
        }
    }
    return -1;
}

/* ---- External memory in the window ---- */

/* The caller closes it even if this fails. IRIS_ERR_NO_MEMORY */
static iris_status_t open_window(struct iris_heap_window *window,
                                 struct iris_heap_memory *memory)
{
    window->memory = memory;
    pthread_mutex_init(&window->lock, NULL);
    return memory->region.window_bytes == 0
               ? IRIS_OK
               : iris_i_alloc_create(memory->region.window_bytes,
                                     &window->alloc);
}

/* Drops the remaining records; the backend unmaps the memory. */
static void close_window(struct iris_heap_window *window)
{
    while (window->ranges != NULL) {
        struct iris_external_range *one = window->ranges;

        window->ranges = one->next;
        free(one);
    }
    iris_i_alloc_destroy(window->alloc);
}

static void *get_external(const struct iris_heap_window *window, size_t offset)
{
    return iris_i_heap_base(window->memory) + window->memory->region.window +
           offset;
}

void *iris_i_window_add(struct iris_heap_window *window,
                        struct iris_external_range *record)
{
    record->name = iris_i_heap_bytes(window->memory) + window->num_shared++;
    pthread_mutex_lock(&window->lock);
    record->next = window->ranges;
    window->ranges = record;
    pthread_mutex_unlock(&window->lock);
    return get_external(window, record->offset);
}

size_t iris_i_window_bytes_from(const struct iris_heap_window *window,
                                size_t offset)
{
    struct iris_heap_window *own = (struct iris_heap_window *)(uintptr_t)window;
    const struct iris_external_range *one;
    size_t bytes = 0;

    pthread_mutex_lock(&own->lock);
    for (one = own->ranges; one != NULL; one = one->next) {
        size_t into = offset - one->offset;

        if (into < one->bytes && one->bytes - into > bytes) {
            bytes = one->bytes - into;
        }
    }
    pthread_mutex_unlock(&own->lock);
    return bytes;
}

/* The lock is held, or no other thread changes the list. */
static struct iris_external_range *
find_by_name(const struct iris_heap_window *window, size_t name)
{
    struct iris_external_range *one = window->ranges;

    while (one != NULL && one->name != name) {
        one = one->next;
    }
    return one;
}

/* The newest is the first in the list. */
int iris_i_window_find(struct iris_heap_window *window, const void *ptr,
                       int newest, size_t *name_p)
{
    size_t offset =
        iris_i_heap_offset(window->memory, ptr) - window->memory->region.window;
    const struct iris_external_range *one;
    int mark = -1;

    pthread_mutex_lock(&window->lock);
    for (one = window->ranges; one != NULL && (mark != 0 || !newest);
         one = one->next) {
        if (one->offset == offset && (one->mark == 0 || mark != 0)) {
            mark = one->mark;
            *name_p = one->name;
        }
    }
    pthread_mutex_unlock(&window->lock);
    return mark;
}

int iris_i_window_mark(struct iris_heap_window *window, size_t name, int mark)
{
    struct iris_external_range *one;
    int is = -1;

    pthread_mutex_lock(&window->lock);
    one = find_by_name(window, name);
    if (one != NULL) {
        one->mark = mark < 0 ? one->mark : mark;
        is = one->mark;
    }
    pthread_mutex_unlock(&window->lock);
    return is;
}

void *iris_i_window_address(const struct iris_heap_window *window, size_t name)
{
    return get_external(window, find_by_name(window, name)->offset);
}

void iris_i_window_release(struct iris_heap_window *window, size_t name)
{
    struct iris_external_range *record = find_by_name(window, name);
    struct iris_external_range **link = &window->ranges;
    const struct iris_external_range *rest;

    pthread_mutex_lock(&window->lock);
    while (*link != record) {
        link = &(*link)->next;
    }
    *link = record->next;
    pthread_mutex_unlock(&window->lock);
    for (rest = window->ranges; rest != NULL && rest->start != record->start;
         rest = rest->next) {
    }
    if (rest == NULL) {
        iris_i_heap_unmap(window->memory,
                          window->memory->region.window + record->start);
        iris_i_alloc_give(window->alloc, record->start);
    }
    free(record);
}

/* ---- The heap's beginning and end, and the peers' heaps ---- */

iris_status_t iris_i_heap_open(struct iris_heap *heap,
                               const struct iris_heap_params *params)
{
    struct iris_heap_memory *memory = &heap->memory;
    iris_status_t status;

    heap->log = memory->log = params->log;
    memory->backend = params->backend;
    memory->stream = params->stream;
    heap->hooks = params->hooks;
    heap->names.reserved_bytes = params->reserved_bytes;
    heap->names.red_zone_bytes = params->red_zone_bytes;
    pthread_mutex_init(&heap->deferred.lock, NULL);
    memory->size_bytes = params->size_bytes;
    status = open_memory(memory, params->bytes);
    if (status != IRIS_OK) {
        return status;
    }
    heap->offers =
        calloc(memory->region.commit == IRIS_COMMIT_PRIVATE
                   ? memory->region.bytes / memory->piece_bytes / 2 + 3
                   : 1,
               sizeof heap->offers[0]);
    if (iris_i_heap_names_open(&heap->names, memory) != IRIS_OK ||
        open_window(&heap->window, memory) != IRIS_OK || heap->offers == NULL) {
        return iris_i_fail(memory->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the heap's own records");
    }
    status = iris_i_heap_commit(memory, 0, params->reserved_bytes);
    if (status == IRIS_OK) { /* peers get it with the heap */
        iris_i_heap_end_commit(memory, 1);
    }
    return status;
}

iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p)
{
    return iris_i_memory_export(heap->memory.backend, &heap->memory.region,
                                handle_p);
}

/* Reports a failed import. If the peer died, its memory is gone with it. */
static iris_status_t fail_import(const struct iris_heap *heap,
                                 iris_status_t status)
{
    char message[IRIS_MESSAGE_BYTES];
    struct iris_wait wait;
    iris_status_t lost;

    snprintf(message, sizeof message, "%s", iris_last_error());
    iris_i_wait_moment(&wait, IRIS_DEATH_MS);
    do {
        lost = iris_i_peers_check_all(heap->memory.control);
    } while (lost == IRIS_OK && iris_i_wait_tick(&wait) == IRIS_OK);
    return lost != IRIS_OK ? lost : iris_i_fail_again(status, message);
}

static iris_status_t map_peer(struct iris_heap *heap, int rank,
                              const struct iris_heap_handle *handle,
                              void **base_p)
{
    if (rank == heap->log->rank) {
        *base_p = iris_i_heap_base(&heap->memory);
        return IRIS_OK;
    }
    if (iris_i_heap_is_far(&heap->memory, rank)) {
        return iris_i_fail(heap->log, IRIS_ERR_UNREACHABLE,
                           "rank %d is on another node than rank %d, whose "
                           "memory cannot be mapped here",
                           rank, heap->log->rank);
    }
    return iris_i_memory_import(heap->memory.backend, handle,
                                iris_i_heap_bytes(&heap->memory), base_p);
}

/* Some drivers have mapped other memory, without an error (ROCm/rocm-systems
 * #11892). *wrong_p: this is not the peer's heap. */
static iris_status_t check_peer(struct iris_heap *heap, int rank,
                                const struct iris_heap_peers *peers,
                                const char *base, int *wrong_p)
{
    uint64_t id = peers->id(peers->arg, rank), seen = 0;
    iris_status_t status = iris_i_heap_copy(
        &heap->memory, &seen, base + peers->id_offset, sizeof seen);

    *wrong_p = status == IRIS_OK && seen != id;
    return *wrong_p
               ? iris_i_fail(heap->log, IRIS_ERR_SYSTEM,
                             "the memory that rank %d mapped as rank %d's heap "
                             "is other memory: it begins with %llx instead of "
                             "%llx; start the job again, or set "
                             "IRIS_ALLOCATOR=vmem",
                             heap->log->rank, rank, (unsigned long long)seen,
                             (unsigned long long)id)
               : status;
}

/* Maps a peer's heap, and tries once more if the wrong memory was mapped. A
 * peer that is a thread of this process is not mapped by a handle: its address
 * is used. */
static iris_status_t map_and_check(struct iris_heap *heap, int rank,
                                   const struct iris_heap_peers *peers,
                                   void **base_p)
{
    const struct iris_heap_handle *handle = peers->handle(peers->arg, rank);
    iris_status_t status = IRIS_OK;
    int wrong = 1;

    for (int tries = 0; wrong && tries < 2; tries++) {
        status = map_peer(heap, rank, handle, base_p);
        if (status != IRIS_OK || rank == heap->log->rank ||
            !iris_i_control_is_remote(heap->memory.control, rank)) {
            return status;
        }
        status = check_peer(heap, rank, peers, *base_p, &wrong);
        if (status != IRIS_OK) {
            iris_i_memory_unimport(heap->memory.backend, *base_p,
                                   iris_i_heap_bytes(&heap->memory));
        }
    }
    return status;
}

static void number_nodes(struct iris_heap_memory *memory,
                         const struct iris_heap_peers *peers)
{
    for (int rank = 0; rank < memory->log->num_ranks; rank++) {
        int first = 0;

        while (first < rank && !peers->same_node(peers->arg, first, rank)) {
            first++;
        }
        memory->nodes[rank] =
            first < rank ? memory->nodes[first] : memory->num_nodes++;
    }
}

iris_status_t iris_i_heap_connect(struct iris_heap *heap,
                                  struct iris_members *world,
                                  const struct iris_heap_peers *peers)
{
    size_t num_ranks = (size_t)heap->log->num_ranks;

    heap->world = world;
    heap->memory.control = world->control;
    heap->memory.bases = calloc(num_ranks, sizeof heap->memory.bases[0]);
    heap->memory.reachable =
        calloc(num_ranks, sizeof heap->memory.reachable[0]);
    heap->memory.nodes = calloc(num_ranks, sizeof heap->memory.nodes[0]);
    if (heap->memory.bases == NULL || heap->memory.reachable == NULL ||
        heap->memory.nodes == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    number_nodes(&heap->memory, peers);
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        void *base = NULL;
        iris_status_t status = map_and_check(heap, rank, peers, &base);

        if (status == IRIS_ERR_UNREACHABLE && !peers->require_all) {
            iris_i_debug(heap->log, "rank %d is unreachable: %s", rank,
                         iris_last_error());
            continue;
        }
        if (status != IRIS_OK) {
            return fail_import(heap, status);
        }
        heap->memory.bases[rank] = (int64_t)(uintptr_t)base;
        heap->memory.reachable[rank] = 1;
    }
    return IRIS_OK;
}

static void unmap_peer(struct iris_heap *heap, int rank)
{
    iris_i_memory_unimport(heap->memory.backend,
                           (void *)(uintptr_t)heap->memory.bases[rank],
                           iris_i_heap_bytes(&heap->memory));
    heap->memory.bases[rank] = 0;
    heap->memory.reachable[rank] = 0;
}

static const struct iris_call_type reach_call = {.name = "iris_init"};

/* Whether `rank` has said that it reaches this rank. */
static int is_reached_by(const struct iris_heap *heap, int rank)
{
    unsigned char theirs[IRIS_PAYLOAD_BYTES];
    size_t bytes =
        iris_i_agree_payload(heap->world, rank, theirs, sizeof theirs);

    return (size_t)heap->log->rank < bytes && theirs[heap->log->rank];
}

/* Ends a CPU kernel before it accesses a heap that is not mapped. */
static iris_status_t guard_access(void *self,
                                  const struct iris_cpu_event *event)
{
    const struct iris_heap *heap = self;
    char why[128];

    if (event->after || event->target_rank < 0 ||
        event->target_rank >= heap->log->num_ranks ||
        heap->memory.reachable[event->target_rank]) {
        return IRIS_OK;
    }
    snprintf(why, sizeof why,
             "rank %d's heap is not mapped on rank %d: they are on different "
             "nodes; ask iris_is_reachable() first",
             event->target_rank, heap->log->rank);
    return iris_i_fail_access(event, IRIS_ERR_UNREACHABLE, why);
}

static iris_status_t open_guard(struct iris_heap *heap)
{
    size_t num_ranks = (size_t)heap->log->num_ranks;

    if (memchr(heap->memory.reachable, 0, num_ranks) == NULL ||
        heap->hooks == NULL || heap->has_proxy) {
        return IRIS_OK;
    }
    heap->guard.device = guard_access;
    heap->guard.self = heap;
    return iris_i_hooks_add(heap->hooks, &heap->guard);
}

iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap, int *changed_p)
{
    struct iris_call call = {.type = &reach_call,
                             .payload = heap->memory.reachable,
                             .payload_bytes = (size_t)heap->log->num_ranks};
    iris_status_t status = iris_i_agree(heap->world, &call);

    *changed_p = 0;
    for (int rank = 0; status == IRIS_OK && rank < heap->log->num_ranks;
         rank++) {
        if (heap->memory.reachable[rank] && !is_reached_by(heap, rank)) {
            iris_i_debug(heap->log, "rank %d does not reach rank %d", rank,
                         heap->log->rank);
            unmap_peer(heap, rank);
            *changed_p = 1;
        }
    }
    return status == IRIS_OK ? open_guard(heap) : status;
}

void iris_i_heap_disconnect(struct iris_heap *heap)
{
    const int64_t *bases = heap->memory.bases;

    if (bases == NULL) {
        return;
    }
    /* The reverse order of iris_i_heap_connect(): a backend finds the latest
     * mapping first. */
    for (int rank = heap->log->num_ranks - 1; rank >= 0; rank--) {
        if (rank != heap->log->rank && bases[rank] != 0) {
            unmap_peer(heap, rank);
        }
    }
}

/* Without the lists of pairs that reach each other: one node reaches all. */
void iris_i_heap_shrink(struct iris_heap *heap, const uint64_t *survivors)
{
    struct iris_heap_memory *memory = &heap->memory;
    int kept = 0;

    for (int rank = heap->log->num_ranks - 1; rank >= 0; rank--) {
        if (!iris_i_has_survived(survivors, rank) && memory->bases[rank] != 0) {
            unmap_peer(heap, rank);
        }
    }
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        if (iris_i_has_survived(survivors, rank)) {
            memory->bases[kept] = memory->bases[rank];
            memory->reachable[kept] = memory->reachable[rank];
            memory->nodes[kept++] = memory->nodes[rank];
        }
    }
    heap->deferred.compared = 0;
}

/* Refuses releases from now on. */
static void close_deferred(struct iris_heap *heap)
{
    pthread_mutex_lock(&heap->deferred.lock);
    heap->deferred.closed = 1;
    free(heap->deferred.names);
    heap->deferred.names = NULL;
    heap->deferred.count = 0;
    pthread_mutex_unlock(&heap->deferred.lock);
}

void iris_i_heap_close(struct iris_heap *heap)
{
    close_deferred(heap);
    iris_i_heap_disconnect(heap);
    if (heap->guard.device != NULL) {
        iris_i_hooks_remove(heap->hooks, &heap->guard);
    }
    close_memory(&heap->memory);
    close_window(&heap->window);
    iris_i_heap_names_close(&heap->names);
    free(heap->offers);
}
