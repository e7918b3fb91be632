/* SPDX-License-Identifier: MIT
 *
 * A job of one rank on a fake GPU.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device.h>

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000
/* More than the backend stages at once. */
#define LARGE ((size_t)8 << 20)

struct add_args {
    uint32_t *words;
    size_t count;
    uint32_t value;
};

IRIS_KERNEL(add, struct add_args)
{
    IRIS_LANES (wg, i, args->count) {
        args->words[i] += args->value;
    }
}

int hip_setup(void **state)
{
    setenv("IRIS_BACKEND", "hip", 1);
    unsetenv("IRIS_SIM_DEVICE");
    unsetenv("FAKEHIP_DEVICES");
    (void)fakehip_fail(NULL);
    return harness_setup(state);
}

void hip_note(struct hip_held *held_p)
{
    fakehip_count(&held_p->counts);
    leaks_note(&held_p->leaks);
}

int hip_found(const struct hip_held *before)
{
    struct fakehip_counts now;

    fakehip_count(&now);
    if (now.allocations <= before->counts.allocations &&
        now.handles <= before->counts.handles &&
        now.rooms <= before->counts.rooms &&
        now.imports <= before->counts.imports &&
        now.streams <= before->counts.streams &&
        now.graphs <= before->counts.graphs) {
        return leaks_found(&before->leaks);
    }
    fprintf(stderr,
            "left behind: allocations %d -> %d, handles %d -> %d, rooms %d -> "
            "%d, imports %d -> %d, streams %d -> %d, graphs %d -> %d\n",
            before->counts.allocations, now.allocations, before->counts.handles,
            now.handles, before->counts.rooms, now.rooms,
            before->counts.imports, now.imports, before->counts.streams,
            now.streams, before->counts.graphs, now.graphs);
    return 1;
}

/* What a step works with. */
struct job {
    iris_t *iris;
    int rank; /* its own */
    iris_stream_t *stream;
    uint32_t *words; /* COUNT, symmetric */
    uint64_t *signal;
    char *large;
    char *host; /* LARGE bytes, pageable */
    iris_graph_t *graph;
};

static iris_status_t allocate(struct job *job)
{
    iris_status_t status =
        iris_calloc(job->iris, COUNT, sizeof(uint32_t), (void **)&job->words);

    if (status == IRIS_OK) {
        status =
            iris_calloc(job->iris, 1, sizeof(uint64_t), (void **)&job->signal);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(job->iris, LARGE, (void **)&job->large);
    }
    return status == IRIS_OK ? iris_stream_create(job->iris, &job->stream)
                             : status;
}

static iris_status_t launch(struct job *job, uint32_t value)
{
    struct add_args args = {job->words, COUNT, value};

    return iris_launch(job->iris, add, 5, 64, &args, sizeof args, job->stream);
}

/* Adds 1 to each word by a kernel, by way of the signal. */
static iris_status_t enqueue(struct job *job)
{
    iris_status_t status = launch(job, 1);

    if (status == IRIS_OK) {
        status = iris_signal_on_stream(job->iris, job->signal, 3, job->rank,
                                       job->stream);
    }
    if (status == IRIS_OK) {
        status = iris_wait_on_stream(job->iris, job->signal, IRIS_CMP_GE, 2,
                                     job->stream);
    }
    return status == IRIS_OK ? iris_device_barrier(job->iris, job->stream, NULL)
                             : status;
}

static iris_status_t copy(struct job *job)
{
    iris_status_t status =
        iris_memset(job->iris, job->large, 7, LARGE, job->stream);

    if (status == IRIS_OK) {
        status = iris_put_on_stream(job->iris, job->large, job->host, 100,
                                    job->rank, job->stream);
    }
    if (status == IRIS_OK) {
        status = iris_get_on_stream(job->iris, job->host, job->large, LARGE,
                                    job->rank, job->stream);
    }
    return status == IRIS_OK
               ? iris_put_on_stream(job->iris, job->large, job->words, COUNT,
                                    job->rank, job->stream)
               : status;
}

static iris_status_t capture(struct job *job)
{
    iris_status_t status = iris_capture_begin(job->iris, job->stream), end;
    char message[IRIS_MESSAGE_BYTES];

    if (status != IRIS_OK) {
        return status;
    }
    status = enqueue(job);
    if (status == IRIS_OK) {
        status = iris_put_on_stream(job->iris, job->large, job->words, COUNT,
                                    job->rank, job->stream);
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    end = iris_capture_end(job->iris, job->stream, &job->graph);
    return status == IRIS_OK ? end : iris_i_fail_again(status, message);
}

static iris_status_t replay(struct job *job)
{
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < 3 && status == IRIS_OK; i++) {
        status = iris_graph_launch(job->iris, job->graph, job->stream);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(job->iris, job->stream);
    }
    if (status == IRIS_OK) {
        iris_graph_destroy(job->iris, job->graph);
    }
    return status;
}

/* 1 by enqueue(), 3 by its replays. */
static iris_status_t check(struct job *job)
{
    uint32_t *words = (uint32_t *)(void *)job->host;
    iris_status_t status = iris_memcpy(job->iris, words, job->words,
                                       COUNT * sizeof *words, job->stream);

    if (status == IRIS_OK) {
        status = iris_stream_synchronize(job->iris, job->stream);
    }
    for (size_t i = 0; i < COUNT && status == IRIS_OK; i++) {
        if (words[i] != 4) {
            return iris_i_fail(NULL, IRIS_ERR_SYSTEM, "word %zu is %u", i,
                               (unsigned)words[i]);
        }
    }
    return status;
}

iris_status_t hip_work(iris_t *iris)
{
    static iris_status_t (*const steps[])(struct job *) = {
        allocate, enqueue, copy, capture, replay, check};
    struct job job = {
        .iris = iris, .rank = iris_rank(iris), .host = calloc(1, LARGE)};
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        status = status == IRIS_OK ? steps[i](&job) : status;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    /* The stream first: it may still copy to the host. */
    iris_stream_destroy(iris, job.stream);
    free(job.host);
    return status == IRIS_OK ? IRIS_OK : iris_i_fail_again(status, message);
}

iris_status_t hip_job(void)
{
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t status, end;
    iris_t *iris;

    status = iris_init(NULL, &iris);
    if (status != IRIS_OK) {
        return status;
    }
    status = hip_work(iris);
    snprintf(message, sizeof message, "%s", iris_last_error());
    end = iris_finalize(iris);
    return status == IRIS_OK ? end : iris_i_fail_again(status, message);
}

int hip_make_word(iris_t *iris, uint64_t **word_p, iris_stream_t **stream_p)
{
    uint64_t three = 3;

    CHECK_OK(iris_malloc(iris, sizeof three, (void **)word_p));
    CHECK_OK(harness_write(iris, *word_p, &three, sizeof three));
    CHECK_OK(iris_stream_create(iris, stream_p));
    return 0;
}

struct wait_args {
    const int64_t *context;
    uint64_t *word;
    uint64_t value;
};

IRIS_KERNEL(wait_for, struct wait_args)
{
    (void)iris_wait_until_u64(iris_dev_init(args->context), args->word,
                              IRIS_CMP_EQ, args->value);
}

iris_status_t hip_wait_for(iris_t *iris, uint64_t *word, uint64_t value,
                           iris_stream_t *stream)
{
    struct wait_args args = {iris_device_context(iris), word, value};

    return iris_launch(iris, wait_for, 1, 1, &args, sizeof args, stream);
}
