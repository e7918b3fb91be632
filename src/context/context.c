/* SPDX-License-Identifier: MIT
 *
 * The context: init, finalize, and the checks between.
 */
#include "config.h"

#include "context/context.h"

#include "base/environment.h"
#include "queue/graph.h"
#include "heap/heap.h"
#include "control/agree.h"
#include "queue/stream.h"
#include "control/rendezvous.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO_MAGIC 0x49726973u
#define HELLO_VERSION 2u

/* Finalized contexts. They are never freed, but for what is large in them: a
 * call on one is caught however late it comes, and no new context has the
 * address of an old one. Leak checkers find them through this list. */
static _Atomic(iris_t *) finalized;

static void retire(iris_t *iris)
{
    free(iris->settings);
    iris->settings = NULL;
    iris->next_finalized = atomic_load(&finalized);
    while (!atomic_compare_exchange_weak(&finalized, &iris->next_finalized,
                                         iris)) {
    }
}

iris_status_t iris_i_enter(const iris_t *iris, const char *call)
{
    if (iris == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "%s: the context is NULL; call iris_init first",
                           call);
    }
    if (atomic_load_explicit(&iris->life, memory_order_acquire) !=
        IRIS_LIFE_LIVE) {
        return iris_i_fail(NULL, IRIS_ERR_STATE,
                           "%s: the context has been finalized; no call may "
                           "follow iris_finalize",
                           call);
    }
    if (iris->pid != getpid()) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "%s: the context belongs to process %ld, which "
                           "forked this one; call iris_init in the child, or "
                           "fork before it",
                           call, (long)iris->pid);
    }
    return IRIS_OK;
}

iris_status_t iris_i_keep_waiting(void *core)
{
    const iris_t *iris = core;

    /* A rank that leaves waits for nobody. */
    if (atomic_load_explicit(&iris->life, memory_order_acquire) !=
        IRIS_LIFE_LIVE) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "this rank has left the job");
    }
    return iris_i_peers_check_all(iris);
}

void iris_i_observe(iris_t *iris, iris_cpu_observe_t observe, void *self)
{
    iris->observer.observe = observe;
    iris->observer.self = self;
}

static void set_state(iris_t *iris, enum iris_rank_state state)
{
    struct iris_control_rank *self;

    if (iris->control != NULL) {
        self = iris_i_control_rank(iris->control, iris->rank);
        atomic_store_explicit(&self->blames,
                              (unsigned)(iris_i_peers_lost(iris) + 1),
                              memory_order_relaxed);
        atomic_store_explicit(&self->state, state, memory_order_release);
    }
}

/* After it nothing of this rank's runs. */
static void close_streams(iris_t *iris)
{
    while (iris->stream != NULL) {
        struct iris_stream *stream = iris->stream;

        iris->stream = stream->next;
        iris_i_stream_end(stream);
    }
    iris_i_graph_close_all(iris); /* no launch of any runs now */
}

/* Frees what there is, in reverse order of making. */
static void close_all(iris_t *iris)
{
    close_streams(iris);
    iris_i_group_close_all(iris);
    iris_i_heap_close(iris);
    iris_i_device_close(iris->backend);
    iris_i_peers_close(iris->peers);
    iris_i_control_release(iris->control);
}

/* Rank 0 says what the simulation runs on, where there was a choice. */
static void report_simulation(const iris_t *iris)
{
    int gpu = iris->placement.type->is_gpu;

    if (iris->rank == 0 && iris->placement.simulation &&
        strcmp(iris->settings->sim_device.text, "auto") == 0 && HAVE_HIP) {
        iris_i_info(&iris->log, "simulation on the %s%s%s",
                    gpu ? "GPU " : "CPU", gpu ? iris->device.name : "",
                    gpu ? "" : "; IRIS_SIM_DEVICE=gpu says why not the GPU");
    }
}

static iris_status_t open_backend(iris_t *iris,
                                  const struct iris_bootstrap *bootstrap)
{
    static const struct iris_core_ops core_ops = {
        .keep_waiting = iris_i_keep_waiting,
        .describe_late = iris_i_group_describe_late,
    };
    const struct iris_settings *settings = iris->settings;
    struct iris_backend_params params = {
        .rank = iris->rank,
        .num_ranks = iris->num_ranks,
        .num_cus = (int)settings->sim_cus.number,
        .vmem = strcmp(settings->allocator.text, "vmem") == 0,
        .heap_bytes = (size_t)settings->heap_bytes.number,
        .timeout_ms = settings->timeout_ms.number,
        .device_timeout_ms = settings->device_timeout_ms.number,
        .log = &iris->log,
        .core_ops = &core_ops,
        .core = iris,
        .observer = &iris->observer,
    };
    iris_status_t status = iris_i_place(settings, bootstrap, &iris->placement);

    if (status == IRIS_OK) {
        params.device = iris->placement.device;
        params.ranks_on_device = iris->placement.ranks_on_device;
        status =
            iris_i_device_open(iris->placement.type, &params, &iris->backend);
    }
    if (status == IRIS_OK) {
        iris_i_device_info(iris->backend, &iris->device);
        status = iris_i_stream_make(iris->backend, &iris->stream);
    }
    if (status == IRIS_OK) {
        report_simulation(iris);
    }
    return status;
}

/* What this rank can do by itself, before it meets the others. */
static iris_status_t prepare(iris_t *iris,
                             const struct iris_bootstrap *bootstrap,
                             struct iris_hello *hello)
{
    iris_status_t status = open_backend(iris, bootstrap);

    if (status == IRIS_OK) {
        status = iris_i_heap_open(iris, hello);
    }
    if (status == IRIS_OK) {
        snprintf(hello->backend, sizeof hello->backend, "%s%s",
                 iris->placement.name,
                 iris->placement.ranks_on_device > 1 ? " on a GPU" : "");
        snprintf(hello->message, sizeof hello->message, "%s",
                 iris->placement.no_gpu);
        hello->heap_bytes = iris->heap.bytes;
    } else {
        snprintf(hello->message, sizeof hello->message, "%s",
                 iris_last_error());
    }
    return status;
}

/* What this rank does with what the meeting gave it. */
static iris_status_t connect_peers(iris_t *iris,
                                   const struct iris_meeting *meeting)
{
    int pids[iris->num_ranks];
    iris_status_t status;

    for (int rank = 0; rank < iris->num_ranks; rank++) {
        pids[rank] = meeting->hellos[rank].pid;
    }
    iris->control = meeting->control;
    status = iris_i_peers_open(iris->control, pids, iris->rank, &iris->peers);
    if (status == IRIS_OK) {
        status = iris_i_heap_connect(iris, meeting);
    }
    if (status == IRIS_OK) {
        status = iris_i_group_open_world(iris);
    }
    return status;
}

/* Written by every rank in simulation; elsewhere when asked for by name. A
 * prefix nobody chose may name a folder that cannot be written to. */
static iris_status_t write_bases(iris_t *iris)
{
    const struct iris_setting *prefix = &iris->settings->heap_bases_prefix;
    int asked = prefix->origin != IRIS_ORIGIN_DEFAULT;
    iris_status_t status;

    if (!iris->settings->heap_bases_files.number ||
        (!iris->placement.simulation && !asked)) {
        return IRIS_OK;
    }
    status = iris_i_bases_write(iris, prefix->text);
    if (status != IRIS_OK && !asked) {
        iris_i_warning(&iris->log, "no heap-bases file: %s", iris_last_error());
        return IRIS_OK;
    }
    return status;
}

/* Everyone meets, whatever their own preparation gave (`status`), so that all
 * learn of a failure at once. */
static iris_status_t join(iris_t *iris, const struct iris_bootstrap *bootstrap,
                          iris_status_t status)
{
    struct iris_hello hello = {.magic = HELLO_MAGIC,
                               .version = HELLO_VERSION,
                               .rank = iris->rank,
                               .num_ranks = iris->num_ranks,
                               .pid = getpid(),
                               .handle = {.fd = -1}};
    struct iris_meeting meeting;

    snprintf(hello.message, sizeof hello.message, "%s", iris_last_error());
    hello.status = iris_i_wire_open(bootstrap, iris->timeout_ms, &meeting);
    if (hello.status != IRIS_OK) {
        return status == IRIS_OK ? (iris_status_t)hello.status
                                 : iris_i_fail_again(status, hello.message);
    }
    if (status == IRIS_OK) {
        status = prepare(iris, bootstrap, &hello);
    }
    hello.status = status;
    status = iris_i_wire_meet(&meeting, &hello);
    if (hello.status != IRIS_OK) {
        return iris_i_fail_again((iris_status_t)hello.status, hello.message);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = connect_peers(iris, &meeting);
    if (status == IRIS_OK) {
        status = write_bases(iris);
    }
    if (status == IRIS_OK) {
        set_state(iris, IRIS_RANK_RUNNING);
    }
    return iris_i_wire_agree(&meeting, status);
}

static iris_t *make(const struct iris_bootstrap *bootstrap,
                    const struct iris_settings *settings)
{
    iris_t *iris = calloc(1, sizeof *iris);
    struct iris_settings *kept = malloc(sizeof *kept);

    if (iris == NULL || kept == NULL) {
        free(iris);
        free(kept);
        iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a context");
        return NULL;
    }
    iris->pid = getpid();
    iris->rank = bootstrap->rank;
    iris->num_ranks = bootstrap->num_ranks;
    *kept = *settings;
    iris->settings = kept;
    iris->timeout_ms = settings->timeout_ms.number;
    iris->log.rank = iris->rank;
    iris->log.num_ranks = iris->num_ranks;
    atomic_init(&iris->log.level, iris_i_log_level(settings->log_level.text));
    atomic_init(&iris->life, IRIS_LIFE_LIVE);
    pthread_mutex_init(&iris->streams_lock, NULL);
    pthread_mutex_init(&iris->groups_lock, NULL);
    pthread_mutex_init(&iris->adopted_lock, NULL);
    return iris;
}

static iris_status_t start(const struct iris_settings *settings,
                           const struct iris_bootstrap *bootstrap,
                           iris_status_t status, iris_t **iris_p)
{
    iris_t *iris = make(bootstrap, settings);

    if (iris == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    if (iris->rank == 0) {
        iris_i_environment_check(&iris->log);
    }
    status = join(iris, bootstrap, status);
    if (status != IRIS_OK) {
        iris_i_fail_on(&iris->log, status);
        set_state(iris, IRIS_RANK_LEFT);
        close_all(iris);
        free(iris->settings);
        free(iris);
        return status;
    }
    iris_i_debug(&iris->log,
                 "ready: backend %s, heap %zu bytes at %p, bootstrap %s",
                 iris->placement.name, iris->heap.bytes, iris->heap.base,
                 bootstrap->how);
    *iris_p = iris;
    return IRIS_OK;
}

iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p)
{
    struct iris_settings settings;
    iris_status_t status = iris_i_settings_load(config, &settings);

    return start(&settings, bootstrap, status, iris_p);
}

iris_status_t iris_init(const struct iris_config *config, iris_t **iris_p)
{
    struct iris_settings settings;
    struct iris_bootstrap bootstrap;
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t loaded, status;

    if (iris_p == NULL) {
        return iris_i_fail(
            NULL, IRIS_ERR_INVALID,
            "iris_init: iris_p is NULL; pass where to put the context");
    }
    loaded = iris_i_settings_load(config, &settings);
    snprintf(message, sizeof message, "%s", iris_last_error());
    status = iris_i_bootstrap(&settings, &bootstrap);
    if (loaded != IRIS_OK) {
        iris_i_fail_again(loaded, message);
    }
    if (status != IRIS_OK) {
        return loaded != IRIS_OK ? loaded : status;
    }
    return start(&settings, &bootstrap, loaded, iris_p);
}

static void end(iris_t *iris, enum iris_rank_state state)
{
    set_state(iris, state);
    atomic_store_explicit(&iris->life, IRIS_LIFE_FINALIZED,
                          memory_order_release);
    close_all(iris);
    retire(iris);
}

void iris_i_abandon(iris_t *iris)
{
    end(iris, IRIS_RANK_LEFT);
}

iris_status_t iris_finalize(iris_t *iris)
{
    struct iris_call call = {.kind = IRIS_CALL_FINALIZE};
    iris_status_t status;
    char message[IRIS_MESSAGE_BYTES];

    if (iris == NULL) {
        return IRIS_OK;
    }
    status = iris_i_enter(iris, "iris_finalize");
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_meet_begin(iris, call.kind);
    call.status = iris_i_stream_synchronize_all(iris);
    status = iris_i_meet(iris, iris->world, &call);
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (status == IRIS_OK) {
        /* No memory is freed that a peer has mapped yet: GPUs' handles want it
         * so. Who dies on the way takes nothing from those who agreed. */
        close_streams(iris);
        iris_i_heap_disconnect(iris);
        (void)iris_i_meet(iris, iris->world, &call);
    }
    end(iris, status == IRIS_OK ? IRIS_RANK_FINALIZED : IRIS_RANK_LEFT);
    return status == IRIS_OK ? IRIS_OK : iris_i_fail_again(status, message);
}

iris_status_t iris_clear_error(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_clear_error");

    return status == IRIS_OK
               ? iris_i_fail_on(&iris->log,
                                iris_i_device_clear_fault(iris->backend))
               : status;
}

int iris_rank(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_rank") == IRIS_OK ? iris->rank : -1;
}

int iris_num_ranks(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_ranks") == IRIS_OK ? iris->num_ranks
                                                           : -1;
}

int iris_device_id(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_id") == IRIS_OK
               ? iris->device.device_id
               : -1;
}

int iris_num_cus(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_cus") == IRIS_OK ? iris->device.num_cus
                                                         : -1;
}

const char *iris_backend_name(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_backend_name") == IRIS_OK
               ? iris->placement.name
               : NULL;
}

const int64_t *iris_heap_bases(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_heap_bases") == IRIS_OK ? iris->heap_bases
                                                            : NULL;
}

const int64_t *iris_device_context(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_context") == IRIS_OK
               ? iris->device_context
               : NULL;
}
