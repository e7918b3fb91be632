/* SPDX-License-Identifier: MIT
 *
 * Copies, fills, puts, gets, signals and waits on streams, of ranges and of tiles.
 *
 * Each call resolves its stream first, then checks its ranges, and enqueues nothing
 * unless all of them are valid. A rank whose heap is mapped here is reached by the
 * stream's own copies; a rank of another node by a kernel, which the proxy serves.
 * Observers see a transfer by copies as one event, and else the kernel.
 */
#include "config.h"

#include "queue/queue.h"

#include "heap/heap.h"
#include "queue/kernels.h"

static iris_status_t check_ranges(struct iris_queue *queue,
                                  const struct iris_host_event *event)
{
    const char *call =
        event->op == IRIS_HOST_COPY ? "iris_memcpy" : "iris_memset";
    /* Host memory is copied and filled by the host, if need be. */
    const struct iris_heap_range to = {call,         "dst", event->address,
                                       event->bytes, 1,     0};
    const struct iris_heap_range from = {call,         "src", event->source,
                                         event->bytes, 0,     0};
    iris_status_t status = iris_i_heap_check_range(queue->heap, &to);

    return status == IRIS_OK && event->op == IRIS_HOST_COPY
               ? iris_i_heap_check_range(queue->heap, &from)
               : status;
}

/* A copy or fill. The event describes it, except for the target. */
static iris_status_t enqueue_bytes(struct iris_queue *queue,
                                   struct iris_host_event *event, void *dst,
                                   iris_stream_t *stream)
{
    iris_status_t status;

    event->rank = queue->log->rank;
    event->stream = stream;
    event->address = dst;
    status = iris_i_stream_resolve(queue, stream, &stream);
    if (status != IRIS_OK || event->bytes == 0) {
        return status;
    }
    iris_i_hooks_before(queue->hooks, event);
    status = check_ranges(queue, event);
    if (status == IRIS_OK) {
        status =
            event->op == IRIS_HOST_COPY
                ? iris_i_queue_copy(stream, dst, event->source, event->bytes)
                : iris_i_queue_set(stream, dst, (int)event->value,
                                   event->bytes);
    }
    return iris_i_hooks_after(queue->hooks, event,
                              iris_i_fail_on(queue->log, status));
}

iris_status_t iris_i_copy(struct iris_queue *queue, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_COPY, .source = src, .bytes = bytes, .target_rank = -1};

    return enqueue_bytes(queue, &event, dst, stream);
}

iris_status_t iris_i_fill(struct iris_queue *queue, void *dst, int value,
                          size_t bytes, iris_stream_t *stream)
{
    struct iris_host_event event = {.op = IRIS_HOST_SET,
                                    .value = (uint64_t)value,
                                    .bytes = bytes,
                                    .target_rank = -1};

    return enqueue_bytes(queue, &event, dst, stream);
}

/* Finds the far side, which must be entirely in the program's part of this
 * rank's heap. Resolves the stream first. NULL: only kernels reach the rank. */
static iris_status_t find_remote(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    size_t left = iris_i_heap_bytes_from(queue->heap, what->symmetric);
    char *base = iris_i_heap_base(&queue->heap->memory);
    iris_status_t status = iris_i_stream_resolve(queue, *stream_p, stream_p);

    if (status != IRIS_OK) {
        return status;
    }
    if (left == 0) {
        return iris_i_fail(
            queue->log, IRIS_ERR_INVALID,
            "%s: %zu bytes at %s %p are not on this rank's "
            "heap (%p to %p); pass memory from iris_malloc",
            what->call, what->bytes, what->name, what->symmetric, (void *)base,
            (void *)(base + iris_i_heap_bytes(&queue->heap->memory)));
    }
    if (what->bytes > left) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes at %s %p go past the end: this "
                           "rank's heap has only %zu bytes from there on; pass "
                           "fewer bytes",
                           what->call, what->bytes, what->name, what->symmetric,
                           left);
    }
    if (iris_i_heap_is_by_proxy(queue->heap, what->rank)) {
        *remote_p = NULL;
        return IRIS_OK;
    }
    return iris_i_heap_translate(queue->heap, what->call, what->symmetric,
                                 what->rank, remote_p);
}

/* A transfer with a rank that only kernels reach. Observers see the kernel. */
static iris_status_t enqueue_far(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream)
{
    const struct iris_heap_range near = {
        what->call,  what->gets ? "dst" : "src",
        what->other, what->bytes,
        what->gets,  1};
    const struct iris_transfer_rows one = {.count = 1};
    iris_status_t status = iris_i_heap_check_range(queue->heap, &near);

    return status == IRIS_OK ? iris_i_kernel_transfer(queue, what, &one, stream)
                             : status;
}

iris_status_t iris_i_enqueue_transfer(struct iris_queue *queue,
                                      const struct iris_transfer *what,
                                      iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_COPY, .bytes = what->bytes, .target_rank = what->rank};
    void *remote = NULL;
    iris_status_t status;

    if (what->bytes == 0) { /* touches no memory */
        status = iris_i_heap_check_rank(queue->heap, what->rank);
        return status == IRIS_OK ? iris_i_stream_resolve(queue, stream, &stream)
                                 : status;
    }
    status = find_remote(queue, what, &stream, &remote);
    if (status == IRIS_OK && remote == NULL) {
        return iris_i_fail_on(queue->log, enqueue_far(queue, what, stream));
    }
    event.source = what->gets ? remote : what->other;
    return status == IRIS_OK
               ? enqueue_bytes(queue, &event, what->gets ? what->other : remote,
                               stream)
               : status;
}

/* Also checks that it is one whole word of the program's memory. */
static iris_status_t find_signal(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    const struct iris_heap_range range = {
        what->call, "signal", what->symmetric, sizeof(uint64_t), 1, 0};
    iris_status_t status;

    if ((uintptr_t)what->symmetric % sizeof(uint64_t) != 0) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: signal %p is not a multiple of %zu; pass an "
                           "aligned uint64_t",
                           what->call, what->symmetric, sizeof(uint64_t));
    }
    status = find_remote(queue, what, stream_p, remote_p);
    return status == IRIS_OK ? iris_i_heap_check_range(queue->heap, &range)
                             : status;
}

iris_status_t iris_i_enqueue_check_signal(struct iris_queue *queue,
                                          const struct iris_transfer *what,
                                          iris_stream_t *stream)
{
    void *remote;

    return find_signal(queue, what, &stream, &remote);
}

static iris_status_t enqueue_signal(struct iris_queue *queue,
                                    const struct iris_transfer *what,
                                    void *remote, iris_stream_t *stream)
{
    /* No queue can add by itself, or reach another node. */
    iris_status_t status =
        what->adds || remote == NULL
            ? IRIS_ERR_UNSUPPORTED
            : iris_i_queue_signal(stream, remote, what->value);

    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_signal(queue, what, stream)
               : status;
}

static iris_status_t enqueue_wait(struct iris_queue *queue,
                                  const struct iris_transfer *what, void *own,
                                  iris_stream_t *stream)
{
    iris_status_t status =
        iris_i_queue_wait(stream, own, what->cmp, what->value);

    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_wait(queue, what, stream)
               : status;
}

iris_status_t iris_i_enqueue_word(struct iris_queue *queue,
                                  enum iris_host_op op,
                                  const struct iris_transfer *what,
                                  iris_stream_t *stream)
{
    struct iris_host_event event = {.op = op,
                                    .rank = queue->log->rank,
                                    .target_rank = what->rank,
                                    .stream = stream,
                                    .address = what->symmetric,
                                    .bytes = what->bytes,
                                    .value = what->value,
                                    .cmp = what->cmp};
    void *word = NULL;
    iris_status_t status = find_signal(queue, what, &stream, &word);

    if (status == IRIS_OK && op == IRIS_HOST_WAIT &&
        (what->cmp < IRIS_CMP_EQ || what->cmp > IRIS_CMP_GE)) {
        status = iris_i_fail(queue->log, IRIS_ERR_INVALID,
                             "%s: cmp %d is no comparison; pass IRIS_CMP_EQ to "
                             "IRIS_CMP_GE",
                             what->call, (int)what->cmp);
    }
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_hooks_before(queue->hooks, &event);
    status = op == IRIS_HOST_WAIT ? enqueue_wait(queue, what, word, stream)
                                  : enqueue_signal(queue, what, word, stream);
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}

/* ---- Tiles, as copies of rows ---- */

/* The steps of a copy along rows or columns; strides are in bytes. */
struct steps {
    size_t count;
    int64_t dst;
    int64_t src;
};

/* A copy: `apart` rows of contiguous bytes. */
struct plan {
    char *dst;
    const char *src;
    size_t row_bytes;
    struct steps rows;
    struct steps apart;
};

/* One tile of a call: the part that both sides have, and the memory of each. */
struct tile_copy {
    iris_tile_t dst;
    iris_tile_t src;
    struct iris_heap_range to;
    struct iris_heap_range from;
    bool is_by_proxy; /* the far side is on another node: its address is the
                       * symmetric one of this rank */
};

/* ---- The plan ---- */

static void swap_steps(struct plan *plan)
{
    struct steps rows = plan->rows;

    plan->rows = plan->apart;
    plan->apart = rows;
}

/* If steps are negative on both sides, starts from the other end. */
static void turn_steps(struct plan *plan, struct steps *steps)
{
    int64_t last = (int64_t)steps->count - 1;

    if (steps->dst < 0 && steps->src < 0) {
        plan->dst += last * steps->dst;
        plan->src += last * steps->src;
        steps->dst = -steps->dst;
        steps->src = -steps->src;
    }
}

/* Whether the steps are between pieces that are contiguous on both sides. */
static bool are_close(const struct steps *steps, size_t bytes)
{
    return steps->dst == (int64_t)bytes && steps->src == (int64_t)bytes;
}

/* Joins contiguous pieces to larger ones. */
static void join_rows(struct plan *plan, struct steps *steps)
{
    if (are_close(steps, plan->row_bytes)) {
        plan->row_bytes *= steps->count;
        steps->count = 1;
    }
}

/* Whether one copy of rows can do the steps. */
static bool are_rows(const struct plan *plan, const struct steps *steps)
{
    return steps->count > 1 && steps->dst >= (int64_t)plan->row_bytes &&
           steps->src >= (int64_t)plan->row_bytes;
}

static struct plan make_plan(const struct tile_copy *copy)
{
    int64_t bytes = copy->dst.elem_bytes;
    struct plan plan = {
        .dst = copy->dst.data,
        .src = copy->src.data,
        .row_bytes = (size_t)bytes,
        .rows = {copy->dst.rows, copy->dst.row_stride * bytes,
                 copy->src.row_stride * bytes},
        .apart = {copy->dst.cols, copy->dst.col_stride * bytes,
                  copy->src.col_stride * bytes},
    };

    turn_steps(&plan, &plan.rows);
    turn_steps(&plan, &plan.apart);
    join_rows(&plan, &plan.apart);
    join_rows(&plan, &plan.rows);
    join_rows(&plan, &plan.apart);
    if (!are_rows(&plan, &plan.rows) ||
        (are_rows(&plan, &plan.apart) && plan.apart.count > plan.rows.count)) {
        swap_steps(&plan);
    }
    return plan;
}

/* ---- Enqueueing ---- */

static iris_status_t enqueue_each(iris_stream_t *stream,
                                  const struct iris_copy_rows *rows,
                                  const struct steps *steps)
{
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < steps->count && status == IRIS_OK; i++) {
        status = iris_i_queue_copy(
            stream, (char *)rows->dst + (int64_t)i * steps->dst,
            (const char *)rows->src + (int64_t)i * steps->src, rows->row_bytes);
    }
    return status;
}

static iris_status_t enqueue_plan(iris_stream_t *stream,
                                  const struct plan *plan)
{
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < plan->apart.count && status == IRIS_OK; i++) {
        const struct iris_copy_rows rows = {
            .dst = plan->dst + (int64_t)i * plan->apart.dst,
            .src = plan->src + (int64_t)i * plan->apart.src,
            .dst_pitch = (size_t)plan->rows.dst,
            .src_pitch = (size_t)plan->rows.src,
            .row_bytes = plan->row_bytes,
            .rows = plan->rows.count,
        };

        status = are_rows(plan, &plan->rows)
                     ? iris_i_queue_copy_rows(stream, &rows)
                     : IRIS_ERR_UNSUPPORTED;
        if (status == IRIS_ERR_UNSUPPORTED) {
            status = enqueue_each(stream, &rows, &plan->rows);
        }
    }
    return status;
}

/* A kernel for each of the fewer steps. Observers see the kernels. */
static iris_status_t enqueue_far_rows(struct iris_queue *queue,
                                      const struct iris_tile_transfer *what,
                                      struct plan plan, iris_stream_t *stream)
{
    iris_status_t status = IRIS_OK;

    if (plan.apart.count > plan.rows.count) {
        swap_steps(&plan);
    }
    for (size_t i = 0; i < plan.apart.count && status == IRIS_OK; i++) {
        char *dst = plan.dst + (int64_t)i * plan.apart.dst;
        char *src = (char *)(uintptr_t)plan.src + (int64_t)i * plan.apart.src;
        const struct iris_transfer row = {.symmetric = what->gets ? src : dst,
                                          .other = what->gets ? dst : src,
                                          .bytes = plan.row_bytes,
                                          .rank = what->rank,
                                          .gets = what->gets};
        const struct iris_transfer_rows rows = {
            (unsigned)plan.rows.count,
            what->gets ? plan.rows.src : plan.rows.dst,
            what->gets ? plan.rows.dst : plan.rows.src};

        status = iris_i_kernel_transfer(queue, &row, &rows, stream);
    }
    return iris_i_fail_on(queue->log, status);
}

static iris_status_t enqueue_tile(struct iris_queue *queue,
                                  const struct iris_tile_transfer *what,
                                  const struct tile_copy *copy,
                                  iris_stream_t *stream)
{
    const struct plan plan = make_plan(copy);
    struct iris_host_event event = {.op = IRIS_HOST_COPY,
                                    .rank = queue->log->rank,
                                    .target_rank = what->rank,
                                    .stream = stream,
                                    .address = copy->to.ptr,
                                    .source = copy->from.ptr,
                                    .count = plan.rows.count * plan.apart.count,
                                    .bytes = plan.row_bytes * plan.rows.count *
                                             plan.apart.count};
    iris_status_t status;

    if (copy->is_by_proxy) {
        return enqueue_far_rows(queue, what, plan, stream);
    }
    iris_i_hooks_before(queue->hooks, &event);
    status = enqueue_plan(stream, &plan);
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}

/* ---- Checks ---- */

/* Bytes from a tile's first element to its last along rows or columns; false:
 * too large. */
static bool find_reach(uint32_t count, int64_t stride, uint32_t elem_bytes,
                       int64_t *reach_p)
{
    int64_t steps = (int64_t)count - 1;
    int64_t most = steps == 0 ? 0 : INT64_MAX / 4 / steps / elem_bytes;

    if (steps != 0 && (stride > most || stride < -most)) {
        return false;
    }
    *reach_p = steps == 0 ? 0 : steps * stride * elem_bytes;
    return true;
}

/* Computes a tile's lowest address, and the bytes from there to its end. */
static iris_status_t find_range(struct iris_queue *queue,
                                const iris_tile_t *tile,
                                struct iris_heap_range *range)
{
    int64_t down, across, low;

    if (!find_reach(tile->rows, tile->row_stride, tile->elem_bytes, &down) ||
        !find_reach(tile->cols, tile->col_stride, tile->elem_bytes, &across)) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: the tile at %s %p, of %u by %u elements with "
                           "strides %lld and %lld, is larger than any memory",
                           range->call, range->name, tile->data, tile->rows,
                           tile->cols, (long long)tile->row_stride,
                           (long long)tile->col_stride);
    }
    low = (down < 0 ? down : 0) + (across < 0 ? across : 0);
    range->ptr = (char *)((uintptr_t)tile->data + (uintptr_t)low);
    range->bytes =
        (size_t)((down < 0 ? -down : down) + (across < 0 ? -across : across)) +
        tile->elem_bytes;
    return IRIS_OK;
}

static iris_status_t find_far(struct iris_queue *queue, int rank,
                              iris_tile_t *tile, struct iris_heap_range *range,
                              iris_stream_t **stream_p)
{
    const struct iris_transfer far = {.call = range->call,
                                      .name = range->name,
                                      .symmetric =
                                          (void *)(uintptr_t)range->ptr,
                                      .bytes = range->bytes,
                                      .rank = rank};
    void *remote = NULL;
    iris_status_t status = find_remote(queue, &far, stream_p, &remote);

    if (status == IRIS_OK && remote != NULL) {
        tile->data =
            (char *)remote + ((char *)tile->data - (const char *)range->ptr);
        range->ptr = remote;
    }
    return status;
}

/* Tile `i` of a call with the far side's addresses, if there are any. If it has no elements,
 * dst.rows is 0, and nothing else is filled in. */
static iris_status_t find_tile(struct iris_queue *queue,
                               const struct iris_tile_transfer *what, size_t i,
                               iris_stream_t **stream_p, struct tile_copy *copy)
{
    iris_tile_t *dst = &copy->dst, *src = &copy->src;
    iris_status_t status;

    *dst = what->dst[i];
    *src = what->src[i];
    dst->rows = src->rows = dst->rows < src->rows ? dst->rows : src->rows;
    dst->cols = src->cols = dst->cols < src->cols ? dst->cols : src->cols;
    if (dst->elem_bytes == 0 || dst->elem_bytes != src->elem_bytes) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: an element of tile %zu has %u bytes in dst and "
                           "%u in src; pass tiles of one type",
                           what->call, i, dst->elem_bytes, src->elem_bytes);
    }
    if (dst->rows == 0 || dst->cols == 0) {
        dst->rows = 0;
        return iris_i_stream_resolve(queue, *stream_p, stream_p);
    }
    copy->to = (struct iris_heap_range){
        .call = what->call, .name = "dst", .writes = 1};
    copy->from = (struct iris_heap_range){.call = what->call, .name = "src"};
    copy->is_by_proxy = iris_i_heap_is_by_proxy(queue->heap, what->rank);
    status = find_range(queue, dst, &copy->to);
    if (status == IRIS_OK) {
        status = find_range(queue, src, &copy->from);
    }
    if (status == IRIS_OK) {
        status = what->gets
                     ? find_far(queue, what->rank, src, &copy->from, stream_p)
                     : find_far(queue, what->rank, dst, &copy->to, stream_p);
    }
    if (status == IRIS_OK) {
        status = iris_i_heap_check_range(queue->heap, &copy->to);
    }
    return status == IRIS_OK ? iris_i_heap_check_range(queue->heap, &copy->from)
                             : status;
}

iris_status_t iris_i_enqueue_tiles(struct iris_queue *queue,
                                   const struct iris_tile_transfer *what,
                                   iris_stream_t *stream)
{
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);
    struct tile_copy copy;

    if (status == IRIS_OK && what->count != 0 &&
        (what->dst == NULL || what->src == NULL)) {
        status = iris_i_fail(queue->log, IRIS_ERR_INVALID,
                             "%s: %s is NULL; pass as many tiles of each side",
                             what->call, what->dst == NULL ? "dst" : "src");
    }
    for (size_t i = 0; i < what->count && status == IRIS_OK; i++) {
        status = find_tile(queue, what, i, &stream, &copy);
    }
    for (size_t i = 0; i < what->count && status == IRIS_OK; i++) {
        status = find_tile(queue, what, i, &stream, &copy);
        if (status == IRIS_OK && copy.dst.rows != 0) {
            status = enqueue_tile(queue, what, &copy, stream);
        }
    }
    return status;
}
