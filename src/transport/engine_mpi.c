/* SPDX-License-Identifier: MIT
 *
 * The engine of MPI: packets are two-sided messages. Blocks may go into a window
 * over every heap (passive target), locked once, as long as it is open. MPI
 * orders puts by flushes only, so a block that overlaps an earlier one waits for a
 * flush.
 */
#include "config.h"

#include "transport/internal.h"

#include "base/base.h"

#if HAVE_MPI

#include "control/control.h"
#include "heap/heap.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MPI has no descriptor to wait for. An idle proxy polls after a pause, which
 * doubles up to this value. */
#define NAP_NS_MIN (50 * IRIS_NS_PER_US)
#define NAP_NS_MAX (800 * IRIS_NS_PER_US)

struct mpi_engine {
    struct iris_engine base;
    const struct iris_log *log;
    struct iris_control *control;
    MPI_Comm comm;
    struct mpi_window *window; /* NULL: everything goes by messages */
    int64_t nap_ns;            /* the next pause */
};

_Static_assert(sizeof(MPI_Request) <=
                   sizeof(((struct iris_packet *)0)->request),
               "a packet holds MPI's request");

static struct mpi_engine *mpi_of(struct iris_engine *engine)
{
    return (struct mpi_engine *)engine;
}

static MPI_Request *request_of(struct iris_packet *packet)
{
    return (MPI_Request *)(void *)&packet->request;
}

/* ---- The window ---- */

/* Smaller puts go by messages: a packet holds many of them, and they need no
 * flush. */
#define BLOCK_BYTES 1024

/* Number of copies of blocks in flight. */
#define NUM_COPIES 64

/* The range of the heap to which blocks have gone since the last flush. */
struct unflushed {
    uint64_t begin;
    uint64_t end; /* 0: no block */
};

struct mpi_window {
    struct iris_heap *heap;
    MPI_Win win;
    struct unflushed *unflushed; /* for each rank */
    unsigned char *copies;       /* NUM_COPIES of IRIS_RING_BYTES */
    unsigned num_copies;         /* copies in use */
};

/* 1 if `good` holds on all ranks. */
static int agree_on(MPI_Comm comm, int good)
{
    int all = 0;

    return MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm) ==
               MPI_SUCCESS &&
           all;
}

/* Leaves no window on failure, unless MPI made one on some ranks only: freeing
 * it takes all ranks. */
static int open_win(void *base, size_t bytes, MPI_Comm comm, MPI_Win *win_p)
{
    int made, good;

    made = MPI_Win_create(base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, comm,
                          win_p) == MPI_SUCCESS;
    if (!agree_on(comm, made)) {
        return 0;
    }
    MPI_Win_set_errhandler(*win_p, MPI_ERRORS_RETURN);
    good = MPI_Win_lock_all(MPI_MODE_NOCHECK, *win_p) == MPI_SUCCESS;
    if (agree_on(comm, good)) {
        return 1;
    }
    if (good) {
        MPI_Win_unlock_all(*win_p);
    }
    MPI_Win_free(win_p);
    return 0;
}

static void close_win(MPI_Win *win)
{
    MPI_Win_unlock_all(*win);
    MPI_Win_free(win);
}

static int holds_heap(const unsigned char *bytes, unsigned char value)
{
    for (size_t i = 0; i < IRIS_RING_BYTES; i++) {
        if (bytes[i] != value) {
            return 0;
        }
    }
    return 1;
}

/* Tests the window: each rank puts two blocks to the next, which must have
 * arrived after a flush. */
static int blocks_arrive(MPI_Win win, MPI_Comm comm, unsigned char *memory)
{
    unsigned char *source = memory + 2 * IRIS_RING_BYTES;
    int rank, num_ranks, good, next, last;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &num_ranks);
    next = (rank + 1) % num_ranks;
    last = (rank + num_ranks - 1) % num_ranks;
    memset(source, 1 + rank % 255, IRIS_RING_BYTES);
    good = 1;
    for (size_t i = 0; i < 2; i++) {
        good &= MPI_Put(source, IRIS_RING_BYTES, MPI_BYTE, next,
                        (MPI_Aint)(i * IRIS_RING_BYTES), IRIS_RING_BYTES,
                        MPI_BYTE, win) == MPI_SUCCESS;
    }
    good &= MPI_Win_flush(next, win) == MPI_SUCCESS;
    good = agree_on(comm, good);
    MPI_Win_sync(win);
    good &= holds_heap(memory, (unsigned char)(1 + last % 255));
    good &=
        holds_heap(memory + IRIS_RING_BYTES, (unsigned char)(1 + last % 255));
    return agree_on(comm, good);
}

static int try_window(MPI_Comm comm)
{
    unsigned char *memory = calloc(3, IRIS_RING_BYTES);
    int good = agree_on(comm, memory != NULL);
    MPI_Win win;

    good = good && open_win(memory, (size_t)2 * IRIS_RING_BYTES, comm, &win);
    if (good) {
        good = blocks_arrive(win, comm, memory);
        close_win(&win);
    }
    free(memory);
    return good;
}

static struct mpi_window *open_window(struct iris_heap *heap, MPI_Comm comm)
{
    struct mpi_window *window = calloc(1, sizeof *window);
    int good = window != NULL;

    if (good) {
        window->heap = heap;
        window->unflushed =
            calloc((size_t)heap->log->num_ranks, sizeof window->unflushed[0]);
        window->copies = malloc((size_t)NUM_COPIES * IRIS_RING_BYTES);
        good = window->unflushed != NULL && window->copies != NULL;
    }
    if (agree_on(comm, good) && try_window(comm) &&
        open_win(iris_i_heap_base(&heap->memory),
                 iris_i_heap_bytes(&heap->memory), comm, &window->win)) {
        return window;
    }
    if (window != NULL) {
        free(window->unflushed);
        free(window->copies);
    }
    free(window);
    return NULL;
}

static int flush_window(struct mpi_window *window, int rank)
{
    if (window->unflushed[rank].end != 0 &&
        MPI_Win_flush(rank, window->win) != MPI_SUCCESS) {
        return 0;
    }
    window->unflushed[rank].end = 0;
    return 1;
}

static int put_block(struct mpi_window *window, int rank, uint64_t offset,
                     const void *data, size_t bytes)
{
    const struct iris_heap_memory *memory = &window->heap->memory;
    size_t heap_bytes = iris_i_heap_bytes(memory);
    struct unflushed *range = &window->unflushed[rank];
    unsigned char *copy;

    if (bytes < BLOCK_BYTES || bytes > heap_bytes ||
        offset > heap_bytes - bytes ||
        !iris_i_heap_is_committed(memory, (size_t)offset, bytes)) {
        return 0;
    }
    if (range->end > offset && range->begin < offset + bytes &&
        !flush_window(window, rank)) {
        return 0;
    }
    if (window->num_copies == NUM_COPIES) {
        if (MPI_Win_flush_local_all(window->win) != MPI_SUCCESS) {
            return 0;
        }
        window->num_copies = 0;
    }
    copy = window->copies + (size_t)window->num_copies * IRIS_RING_BYTES;
    memcpy(copy, data, bytes);
    if (MPI_Put(copy, (int)bytes, MPI_BYTE, rank, (MPI_Aint)offset, (int)bytes,
                MPI_BYTE, window->win) != MPI_SUCCESS) {
        return 0;
    }
    window->num_copies++;
    range->begin =
        range->end == 0 || offset < range->begin ? offset : range->begin;
    range->end = offset + bytes > range->end ? offset + bytes : range->end;
    return 1;
}

static void close_window(struct mpi_window *window)
{
    if (window == NULL) {
        return;
    }
    close_win(&window->win);
    free(window->unflushed);
    free(window->copies);
    free(window);
}

/* ---- Packets ---- */

static int mpi_enter(struct iris_engine *engine)
{
    (void)engine;
    iris_i_mpi_enter();
    return iris_i_mpi_is_up();
}

static void mpi_leave(struct iris_engine *engine)
{
    (void)engine;
    iris_i_mpi_leave();
}

static int mpi_send(struct iris_engine *engine, int rank,
                    struct iris_packet *packet)
{
    return MPI_Isend(packet->data, (int)packet->bytes, MPI_BYTE, rank, 0,
                     mpi_of(engine)->comm, request_of(packet)) == MPI_SUCCESS;
}

static int mpi_is_sent(struct iris_engine *engine, struct iris_packet *packet)
{
    int done = 0;

    (void)engine;
    return MPI_Test(request_of(packet), &done, MPI_STATUS_IGNORE) == MPI_SUCCESS
               ? done
               : -1;
}

static int mpi_receive(struct iris_engine *engine, struct iris_packet *packet)
{
    *request_of(packet) = MPI_REQUEST_NULL;
    return MPI_Irecv(packet->data, (int)IRIS_PACKET_BYTES, MPI_BYTE,
                     MPI_ANY_SOURCE, 0, mpi_of(engine)->comm,
                     request_of(packet)) == MPI_SUCCESS;
}

static int mpi_is_received(struct iris_engine *engine,
                           struct iris_packet *packet, int *rank_p)
{
    const struct mpi_engine *m = mpi_of(engine);
    int done = 0, bytes = 0;
    MPI_Status status;

    if (*request_of(packet) == MPI_REQUEST_NULL ||
        MPI_Test(request_of(packet), &done, &status) != MPI_SUCCESS) {
        return -1;
    }
    if (done) {
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        packet->bytes = (size_t)bytes;
        *rank_p = status.MPI_SOURCE;
        if (m->window != NULL) { /* blocks that arrived before it */
            MPI_Win_sync(m->window->win);
        }
    }
    return done;
}

static int mpi_put(struct iris_engine *engine, int rank, uint64_t offset,
                   const void *data, size_t bytes)
{
    return put_block(mpi_of(engine)->window, rank, offset, data, bytes);
}

static int mpi_flush(struct iris_engine *engine, int rank)
{
    return flush_window(mpi_of(engine)->window, rank);
}

static int mpi_is_broken(const struct iris_engine *engine, int rank)
{
    (void)engine, (void)rank;
    return 0;
}

static const char *mpi_explain(const struct iris_engine *engine, int rank)
{
    (void)engine, (void)rank;
    return iris_i_mpi_is_up() ? "a call of MPI has failed"
                              : "MPI was finalized before this context";
}

static void mpi_wait(struct iris_engine *engine, int bell, int timeout_ms)
{
    struct mpi_engine *m = mpi_of(engine);

    (void)timeout_ms;
    m->nap_ns = engine->was_busy ? NAP_NS_MIN : m->nap_ns;
    (void)iris_i_bell_wait(bell, m->nap_ns);
    m->nap_ns *= m->nap_ns < NAP_NS_MAX ? 2 : 1;
}

/* ---- Opening and closing ---- */

static void describe_close(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "all ranks to close their windows of MPI");
}

static iris_status_t late_close(const struct iris_wait *wait)
{
    (void)wait;
    return IRIS_ERR_TIMEOUT;
}

/* Waits until all ranks are here, as long as the end of the context may take;
 * 0: some are not. */
static int all_close(struct mpi_engine *m)
{
    static const struct iris_wait_type to_close = {
        .pace = IRIS_PACE_MPI, .describe = describe_close, .late = late_close};
    const struct iris_waiter waiter = iris_i_peers_waiter(m->control);
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;
    MPI_Request request;
    int done = 0;

    if (MPI_Ibarrier(m->comm, &request) != MPI_SUCCESS) {
        return 0;
    }
    iris_i_wait_begin(&wait, &to_close, &waiter, "iris_finalize", NULL);
    while (status == IRIS_OK &&
           MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           !done) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return done;
}

static int mpi_close(struct iris_engine *engine, int is_clean,
                     struct iris_packet **receives, int count)
{
    struct mpi_engine *m = mpi_of(engine);

    iris_i_mpi_enter();
    is_clean = is_clean && iris_i_mpi_is_up() && all_close(m);
    for (int i = 0; is_clean && i < count; i++) {
        MPI_Cancel(request_of(receives[i]));
        MPI_Wait(request_of(receives[i]), MPI_STATUS_IGNORE);
    }
    if (is_clean) {
        close_window(m->window);
        MPI_Comm_free(&m->comm);
    }
    iris_i_mpi_leave();
    if (is_clean) {
        free(m);
    }
    return is_clean;
}

static const struct iris_engine_ops ops = {
    .name = "MPI",
    .enter = mpi_enter,
    .leave = mpi_leave,
    .send = mpi_send,
    .is_sent = mpi_is_sent,
    .receive = mpi_receive,
    .is_received = mpi_is_received,
    .put = mpi_put,
    .flush = mpi_flush,
    .is_broken = mpi_is_broken,
    .explain = mpi_explain,
    .wait = mpi_wait,
    .close = mpi_close,
};

/* Opening makes MPI calls that wait for other ranks without limit. A thread
 * makes them. If it does not return in time, the thread and its data are left
 * as they are. */
struct opening {
    struct mpi_engine *engine;
    struct iris_heap *heap;
    int puts;
    int good;
    atomic_int done;
    atomic_int
        abandoned; /* iris_init has failed, and its heap and log are gone */
};

static void open_together(struct opening *opening)
{
    struct mpi_engine *m = opening->engine;

    if (MPI_Comm_dup(MPI_COMM_WORLD, &m->comm) != MPI_SUCCESS ||
        atomic_load(&opening->abandoned)) {
        return;
    }
    MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    opening->good = 1;
    if (opening->puts) {
        m->window = open_window(opening->heap, m->comm);
        m->base.has_window = m->window != NULL;
    }
}

static void *run_opening(void *arg)
{
    struct opening *opening = arg;

    iris_i_mpi_enter();
    open_together(opening);
    iris_i_mpi_leave();
    atomic_store(&opening->done, 1);
    return NULL;
}

static void describe_opening(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "all ranks to open their windows of MPI");
}

static iris_status_t fail_late_ranks(const struct iris_wait *wait)
{
    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "MPI's part of IRIS_TRANSPORT has not opened within "
                       "%lld ms (IRIS_TIMEOUT_MS); set it alike on all ranks, "
                       "or to mpi-messages or socket",
                       (long long)wait->waiter->timeout_ms);
}

static iris_status_t await_ranks(struct opening *opening, pthread_t thread,
                                 const struct iris_waiter *waiter)
{
    static const struct iris_wait_type for_all = {.pace = IRIS_PACE_MPI,
                                                  .describe = describe_opening,
                                                  .late = fail_late_ranks};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_all, waiter, "iris_init", NULL);
    while (status == IRIS_OK && !atomic_load(&opening->done)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    if (status == IRIS_OK) {
        pthread_join(thread, NULL);
    } else {
        atomic_store(&opening->abandoned, 1);
        pthread_detach(thread);
    }
    return status;
}

static iris_status_t start_opening(struct opening *opening, pthread_t *thread)
{
    int ret = iris_i_thread_start(thread, "iris-mpi", 0, run_opening, opening);

    return ret == 0
               ? IRIS_OK
               : iris_i_fail(NULL, IRIS_ERR_LIMIT, "no thread to open MPI");
}

iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p)
{
    const struct iris_log *log = params->heap->log;
    iris_status_t status = iris_i_mpi_check_calls(log->rank, log->num_ranks);
    struct opening *opening;
    struct mpi_engine *m;
    pthread_t thread;

    if (status != IRIS_OK) {
        return status;
    }
    opening = calloc(1, sizeof *opening);
    m = calloc(1, sizeof *m);
    if (opening == NULL || m == NULL) {
        free(opening);
        free(m);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for messages by MPI");
    }
    *m = (struct mpi_engine){.base.ops = &ops,
                             .log = log,
                             .control = params->heap->memory.control,
                             .nap_ns = NAP_NS_MIN};
    *opening = (struct opening){
        .engine = m, .heap = params->heap, .puts = params->puts};
    status = start_opening(opening, &thread);
    if (status != IRIS_OK) {
        free(m);
        free(opening);
        return status;
    }
    status = await_ranks(opening, thread, params->waiter);
    if (status == IRIS_OK && !opening->good) {
        status = iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                             "MPI cannot make a communicator for the proxy; "
                             "set IRIS_TRANSPORT=socket");
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (log->rank == 0) {
        iris_i_info(log, "blocks are sent to other nodes by %s",
                    m->window != NULL ? "MPI_Put (passive target)"
                                      : "MPI's two-sided messages");
    }
    free(opening);
    return iris_i_channel_packets_open(log, &m->base, channel_p);
}

#else /* !HAVE_MPI */

iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p)
{
    (void)params;
    (void)channel_p;
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "IRIS_TRANSPORT asks for MPI, but this library was "
                       "built without it; configure --with-mpi, or set "
                       "IRIS_TRANSPORT=socket");
}

#endif
