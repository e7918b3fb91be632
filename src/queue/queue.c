/* SPDX-License-Identifier: MIT
 *
 * A rank's streams and graphs, and the launch of kernels on them.
 *
 * The queue has a list of streams, of which the default one is first and stays, and
 * a list of graphs. Its lock guards both lists; work on a stream is the backend's.
 * Streams have numbers that are never used again, so a mark {stream, waits} names a
 * point in a stream's work for as long as anybody remembers it.
 *
 * Memory that only one stream at a time may use has such a mark: its last user. The
 * next user takes it if that work is done, or if it is on the same stream. A stream
 * that captures takes nothing; its graph notes the memory, each launch takes all of
 * it, and the graph goes stale when some of it is freed.
 */
#include "config.h"

#include "queue/queue.h"

#include "queue/kernels.h"
#include <iris/device/kernels/signal_args.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Graphs, and memory for one stream at a time ---- */

static void free_graph(struct iris_graph *graph)
{
    if (graph != NULL) {
        free(graph->uses);
        free(graph);
    }
}

/* Drops the graph that the stream is capturing, if any.
 * Several threads may wait for a stream at once. */
static void drop_capture(struct iris_stream *stream)
{
    if (atomic_load_explicit(&stream->capturing, memory_order_relaxed) !=
        NULL) {
        free_graph(atomic_exchange(&stream->capturing, NULL));
    }
}

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   struct iris_stream *stream)
{
    struct iris_graph *graph = calloc(1, sizeof *graph);
    iris_status_t status;

    if (graph == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a graph");
    }
    status = iris_i_queue_capture_begin(stream);
    if (status != IRIS_OK) {
        free_graph(graph);
        return iris_i_fail_on(queue->log, status);
    }
    drop_capture(stream);
    stream->capturing = graph;
    return IRIS_OK;
}

iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 struct iris_stream *stream,
                                 struct iris_graph **graph_p)
{
    struct iris_graph *graph = atomic_exchange(&stream->capturing, NULL);
    iris_status_t status;

    /* The program may have begun the capture by a call of its runtime. */
    graph = graph == NULL ? calloc(1, sizeof *graph) : graph;
    if (graph == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a graph");
    }
    status = iris_i_queue_capture_end(stream, &graph->native);
    if (status != IRIS_OK) {
        free_graph(graph);
        return iris_i_fail_on(queue->log, status);
    }
    pthread_mutex_lock(&queue->lock);
    graph->next = queue->graphs;
    queue->graphs = graph;
    pthread_mutex_unlock(&queue->lock);
    *graph_p = graph;
    return IRIS_OK;
}

/* ---- Memory that one stream at a time may use ---- */

static struct iris_stream_mark make_mark(struct iris_stream *stream)
{
    struct iris_stream_mark mark = {
        stream->number + 1,
        atomic_load_explicit(&stream->waits, memory_order_relaxed)};

    return mark;
}

/* Whether the stream's work up to the mark is done, as far as the host knows:
 * it has since waited for the stream, or destroyed it. */
static int is_mark_done(struct iris_queue *queue,
                        const struct iris_stream_mark *mark)
{
    struct iris_stream *s;
    int done;

    pthread_mutex_lock(&queue->lock);
    for (s = queue->streams; s != NULL && mark->stream != s->number + 1;
         s = s->next) {
    }
    done = s == NULL || make_mark(s).waits != mark->waits;
    pthread_mutex_unlock(&queue->lock);
    return done;
}

static int may_take(struct iris_queue *queue,
                    const struct iris_stream_mark *mark,
                    const struct iris_stream *stream)
{
    return mark->stream == stream->number + 1 || is_mark_done(queue, mark);
}

/* Notes that launches of the graph will use the memory; 0: no memory for the
 * note. */
static int note_use(struct iris_graph *graph, struct iris_stream_mark *mark)
{
    struct iris_stream_mark **uses;

    for (size_t i = 0; i < graph->num_uses; i++) {
        if (graph->uses[i] == mark) {
            return 1;
        }
    }
    uses = realloc(graph->uses, (graph->num_uses + 1) * sizeof(*uses));
    if (uses != NULL) {
        graph->uses = uses;
        uses[graph->num_uses++] = mark;
    }
    return uses != NULL;
}

int iris_i_stream_mark_take(struct iris_queue *queue,
                            struct iris_stream_mark *mark,
                            struct iris_stream *stream)
{
    if (stream->capturing != NULL && note_use(stream->capturing, mark)) {
        return 1;
    }
    if (!may_take(queue, mark, stream)) {
        return 0;
    }
    *mark = make_mark(stream);
    return 1;
}

static void forget_use(struct iris_graph *graph,
                       const struct iris_stream_mark *mark)
{
    for (size_t i = 0; i < graph->num_uses; i++) {
        if (graph->uses[i] == mark) {
            graph->uses[i] = graph->uses[--graph->num_uses];
            graph->is_stale = 1;
            return;
        }
    }
}

void iris_i_stream_mark_forget(struct iris_queue *queue,
                               const struct iris_stream_mark *mark)
{
    pthread_mutex_lock(&queue->lock);
    for (struct iris_graph *g = queue->graphs; g != NULL; g = g->next) {
        forget_use(g, mark);
    }
    for (struct iris_stream *s = queue->streams; s != NULL; s = s->next) {
        if (s->capturing != NULL) {
            forget_use(s->capturing, mark);
        }
    }
    pthread_mutex_unlock(&queue->lock);
}

void iris_i_queue_outdate_graphs(struct iris_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    for (struct iris_graph *g = queue->graphs; g != NULL; g = g->next) {
        g->is_stale = 1;
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Takes all memory that the graph uses for a launch, or none of it. */
static iris_status_t take_uses(struct iris_queue *queue,
                               const struct iris_graph *graph,
                               struct iris_stream *stream)
{
    if (graph->is_stale) {
        return iris_i_fail(
            queue->log, IRIS_ERR_STATE,
            "iris_graph_launch: a workspace that a captured call "
            "uses is gone, or a rank is; capture the calls again");
    }
    for (size_t i = 0; i < graph->num_uses; i++) {
        if (!may_take(queue, graph->uses[i], stream)) {
            return iris_i_fail(
                queue->log, IRIS_ERR_STATE,
                "iris_graph_launch: a workspace that a captured call uses was "
                "last used on another stream, whose work may not be done; call "
                "iris_stream_synchronize for that one, or capture the call "
                "with its own workspace (iris_ccl_workspace_create, the "
                "preamble of a fused operation)");
        }
    }
    for (size_t i = 0; i < graph->num_uses; i++) {
        *graph->uses[i] = make_mark(stream);
    }
    return IRIS_OK;
}

/* ---- Launches ---- */

/* The link to the graph, or NULL; the lock is held. */
static struct iris_graph **find_graph(struct iris_queue *queue,
                                      const struct iris_graph *graph)
    IRIS_REQUIRES(queue->lock)
{
    struct iris_graph **link = &queue->graphs;

    while (*link != NULL && *link != graph) {
        link = &(*link)->next;
    }
    return *link == NULL ? NULL : link;
}

iris_status_t iris_i_graph_launch(struct iris_queue *queue, iris_graph_t *graph,
                                  struct iris_stream *stream)
{
    struct iris_host_event event = {.op = IRIS_HOST_GRAPH,
                                    .rank = queue->log->rank,
                                    .target_rank = -1,
                                    .stream = stream};
    iris_status_t status;
    int known;

    pthread_mutex_lock(&queue->lock);
    known = graph != NULL && find_graph(queue, graph) != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (!known) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_graph_launch: %p is not a live graph of this "
                           "context; pass one that iris_capture_end gave",
                           (void *)graph);
    }
    status = take_uses(queue, graph, stream);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_hooks_before(queue->hooks, &event);
    status = iris_i_queue_graph_launch(stream, graph->native);
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}

void iris_i_graph_destroy(struct iris_queue *queue, iris_graph_t *graph)
{
    struct iris_graph **link;

    pthread_mutex_lock(&queue->lock);
    link = find_graph(queue, graph);
    if (link != NULL) {
        *link = graph->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (link == NULL) {
        iris_i_error(queue->log,
                     "iris_graph_destroy: %p is not a live graph of this "
                     "context",
                     (void *)graph);
        return;
    }
    iris_i_device_graph_destroy(queue->backend, graph->native);
    free_graph(graph);
}

/* ---- Streams ---- */

static iris_status_t list_stream(struct iris_queue *queue, iris_status_t status,
                                 struct iris_stream *stream,
                                 struct iris_stream **stream_p)
{
    if (status != IRIS_OK) {
        return iris_i_fail_on(queue->log, status);
    }
    /* Inserted after the default stream, which stays first. */
    pthread_mutex_lock(&queue->lock);
    stream->number = ++queue->num_streams;
    stream->next = queue->streams->next;
    queue->streams->next = stream;
    pthread_mutex_unlock(&queue->lock);
    *stream_p = stream;
    return IRIS_OK;
}

/* The heap's fence: a point in every stream. A stream created after the fence
 * has a later point. */
static int query_fence(void *arg, int anew)
{
    struct iris_queue *queue = arg;
    int done = 1;

    pthread_mutex_lock(&queue->lock);
    for (struct iris_stream *s = queue->streams; s != NULL; s = s->next) {
        s->fence = anew ? 0 : s->fence;
        done &= iris_i_queue_query(s, &s->fence);
    }
    pthread_mutex_unlock(&queue->lock);
    return done;
}

iris_status_t iris_i_queue_open(struct iris_queue *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    queue->heap->fence = (struct iris_heap_fence){query_fence, queue};
    return iris_i_device_stream_create(queue->backend, &queue->streams);
}

void iris_i_queue_close(struct iris_queue *queue) IRIS_UNCHECKED
{
    while (queue->streams != NULL) {
        struct iris_stream *stream = queue->streams;

        queue->streams = stream->next;
        drop_capture(stream);
        iris_i_device_stream_destroy(stream);
    }
    while (queue->graphs != NULL) { /* no launch of any graph is running now */
        iris_i_graph_destroy(queue, queue->graphs);
    }
}

static int is_listed(struct iris_queue *queue, const iris_stream_t *stream)
{
    const struct iris_stream *s;

    pthread_mutex_lock(&queue->lock);
    for (s = queue->streams; s != NULL && s != stream; s = s->next) {
    }
    pthread_mutex_unlock(&queue->lock);
    return s != NULL;
}

iris_status_t iris_i_stream_resolve(struct iris_queue *queue,
                                    iris_stream_t *stream,
                                    struct iris_stream **stream_p)
{
    if (stream == NULL) {
        *stream_p = queue->streams;
        return IRIS_OK;
    }
    if (!is_listed(queue, stream)) {
        return iris_i_fail(
            queue->log, IRIS_ERR_INVALID,
            "stream %p is not a live stream of this context; pass "
            "one that iris_stream_create gave, or NULL",
            (void *)stream);
    }
    *stream_p = stream;
    return IRIS_OK;
}

iris_status_t iris_i_stream_create(struct iris_queue *queue,
                                   struct iris_stream **stream_p)
{
    struct iris_stream *stream = NULL;
    iris_status_t status = iris_i_device_stream_create(queue->backend, &stream);

    return list_stream(queue, status, stream, stream_p);
}

iris_status_t iris_i_stream_create_around(struct iris_queue *queue,
                                          void *native,
                                          struct iris_stream **stream_p)
{
    struct iris_stream *stream = NULL;
    iris_status_t status =
        iris_i_device_stream_wrap(queue->backend, native, &stream);

    /* A device without a runtime has one default stream, this rank's own. */
    if (status == IRIS_ERR_UNSUPPORTED && native == NULL) {
        *stream_p = queue->streams;
        return IRIS_OK;
    }
    return list_stream(queue, status, stream, stream_p);
}

/* Waits for the stream's work first: observers are told that a destroy does
 * so. */
static void complete_and_free(struct iris_queue *queue, iris_stream_t *stream)
{
    struct iris_host_event event = {.op = IRIS_HOST_SYNCHRONIZE,
                                    .rank = queue->log->rank,
                                    .target_rank = -1,
                                    .stream = stream};

    iris_i_hooks_before(queue->hooks, &event);
    iris_i_device_stream_destroy(stream);
    (void)iris_i_hooks_after(queue->hooks, &event, IRIS_OK);
}

void iris_i_stream_destroy(struct iris_queue *queue, iris_stream_t *stream)
{
    struct iris_stream *before;

    if (stream == queue->streams) { /* the wrapped default stream: it stays */
        (void)iris_i_stream_synchronize(queue, stream);
        return;
    }
    pthread_mutex_lock(&queue->lock);
    for (before = queue->streams; before != NULL && before->next != stream;
         before = before->next) {
    }
    if (before != NULL) {
        before->next = stream->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (before == NULL) {
        iris_i_error(queue->log,
                     "iris_stream_destroy: %p is not a stream the program "
                     "made and still has",
                     (void *)stream);
        return;
    }
    drop_capture(stream);
    complete_and_free(queue, stream);
}

iris_status_t iris_i_stream_synchronize(struct iris_queue *queue,
                                        struct iris_stream *stream)
{
    struct iris_control *control = iris_i_heap_control(&queue->heap->memory);
    struct iris_host_event event = {.op = IRIS_HOST_SYNCHRONIZE,
                                    .rank = queue->log->rank,
                                    .target_rank = -1,
                                    .stream = stream};
    iris_status_t status;

    iris_i_hooks_before(queue->hooks, &event);
    iris_i_control_wait_stream(control, 1);
    status = iris_i_queue_synchronize(stream);
    iris_i_control_wait_stream(control, -1);
    if (status == IRIS_OK) {
        drop_capture(stream); /* a capture that the runtime has ended */
        atomic_fetch_add_explicit(&stream->waits, 1, memory_order_relaxed);
    }
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}

iris_status_t iris_i_stream_synchronize_all(struct iris_queue *queue)
{
    char message[IRIS_MESSAGE_BYTES] = "";
    iris_status_t first = IRIS_OK;

    for (struct iris_stream *s = queue->streams; s != NULL; s = s->next) {
        iris_status_t status = iris_i_stream_synchronize(queue, s);

        if (status != IRIS_OK && first == IRIS_OK) {
            first = status;
            snprintf(message, sizeof message, "%s", iris_last_error());
        }
    }
    return first == IRIS_OK ? IRIS_OK : iris_i_fail_again(first, message);
}

/* ---- Launches ---- */

static iris_status_t check_launch(const struct iris_queue *queue,
                                  const struct iris_launch_request *launch)
{
    const struct iris_kernel *kernel = launch->kernel;

    if (kernel == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch: kernel is NULL; pass a kernel that "
                           "IRIS_KERNEL defined");
    }
    if (kernel->version != IRIS_KERNEL_VERSION) {
        return iris_i_fail(queue->log, IRIS_ERR_UNSUPPORTED,
                           "iris_launch: kernel %s was compiled with Iris "
                           "headers of another version (kernels of version "
                           "%zu, this library takes %d); recompile it",
                           kernel->name, kernel->version, IRIS_KERNEL_VERSION);
    }
    if (kernel->name == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch: the kernel has no name; pass one that "
                           "IRIS_KERNEL defined");
    }
    if (launch->grid == 0 || launch->block == 0 ||
        launch->block > IRIS_LAUNCH_BLOCK_MAX) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: grid %u, block %u; both "
                           "must be at least 1, block at most %d",
                           kernel->name, launch->grid, launch->block,
                           IRIS_LAUNCH_BLOCK_MAX);
    }
    if (launch->args_bytes != kernel->args_bytes ||
        launch->args_bytes > IRIS_LAUNCH_ARGS_MAX) {
        return iris_i_fail(
            queue->log, IRIS_ERR_INVALID,
            "iris_launch of kernel %s: args_bytes is %zu, its "
            "argument struct has %zu (at most %d); pass sizeof the "
            "struct",
            kernel->name, launch->args_bytes, kernel->args_bytes,
            IRIS_LAUNCH_ARGS_MAX);
    }
    if (launch->args == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: args is NULL; pass its "
                           "argument struct",
                           kernel->name);
    }
    return IRIS_OK;
}

const int64_t *iris_i_queue_context(const struct iris_queue *queue)
{
    return queue->context;
}

int iris_i_queue_is_far(const struct iris_queue *queue)
{
    return queue->is_far;
}

/* The end of a kernel releases its requests to other nodes, too. The CPU's
 * workgroups do that themselves. */
static iris_status_t launch_quiet(struct iris_queue *queue,
                                  iris_stream_t *stream, uint64_t call)
{
    const struct iris_quiet_args args = {queue->context};
    struct iris_launch launch = {.kernel = iris_i_quiet_kernel,
                                 .grid = 1,
                                 .block = 1,
                                 .args = &args,
                                 .own = true,
                                 .call = call};

    return queue->is_far ? iris_i_queue_launch(stream, &launch) : IRIS_OK;
}

static iris_status_t launch_checked(struct iris_queue *queue,
                                    const struct iris_launch_request *request,
                                    iris_stream_t *stream, uint64_t call)
{
    struct iris_launch launch = {.kernel = request->kernel,
                                 .grid = request->grid,
                                 .block = request->block,
                                 .args = request->args,
                                 .own = request->own,
                                 .call = call};
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);

    if (status == IRIS_OK) {
        status = check_launch(queue, request);
    }
    if (status == IRIS_OK) {
        status = iris_i_queue_launch(stream, &launch);
    }
    if (status == IRIS_OK) {
        status = launch_quiet(queue, stream, call);
    }
    return iris_i_fail_on(queue->log, status);
}

iris_status_t iris_i_launch(struct iris_queue *queue,
                            const struct iris_launch_request *request,
                            iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_LAUNCH,
        .rank = queue->log->rank,
        .target_rank = -1,
        .stream = stream,
        .kernel = request->kernel == NULL ? NULL : request->kernel->name,
        .grid = request->grid,
        .block = request->block};

    iris_i_hooks_before(queue->hooks, &event);
    return iris_i_hooks_after(queue->hooks, &event,
                              launch_checked(queue, request, stream, event.id));
}
