/* SPDX-License-Identifier: MIT
 *
 * Streams: created and destroyed.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include <stdlib.h>

iris_status_t iris_i_sim_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct sim_backend *sim = (struct sim_backend *)backend;
    struct sim_stream *stream = calloc(1, sizeof *stream);
    iris_status_t status;

    if (stream == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a stream");
    }
    stream->base.backend = backend;
    stream->sim = sim;
    status = iris_i_sim_queue_open(stream);
    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&sim->lock);
    stream->next = sim->streams;
    sim->streams = stream;
    pthread_mutex_unlock(&sim->lock);
    *stream_p = &stream->base;
    return IRIS_OK;
}

static void unlist(struct sim_stream *stream)
{
    struct sim_backend *sim = stream->sim;
    struct sim_stream **link = &sim->streams;

    pthread_mutex_lock(&sim->lock);
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    if (sim->stop.origin == stream) {
        sim->stop.origin = NULL;
    }
    pthread_mutex_unlock(&sim->lock);
}

void iris_i_sim_stream_destroy(struct iris_stream *base)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_backend *sim = stream->sim;
    bool known = iris_i_fault_check(&sim->base) != IRIS_OK;
    bool finished = iris_i_sim_wait_all(stream);
    iris_status_t status = iris_i_sim_fault(sim);

    /* A rank that leaves on purpose ends its kernels itself. */
    if (!known && status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_i_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                     sim->params.rank, iris_last_error());
    }
    unlist(stream);
    if (!finished) { /* a kernel is still running: the heaps stay */
        sim->abandoned = true;
    }
    iris_i_sim_queue_close(stream, finished);
}
