/* SPDX-License-Identifier: MIT
 *
 * The end of a context.
 *
 * A context is LIVE, then LEAVING if a thread of the library finalizes it, then
 * FINALIZED; its struct is never freed, so that later calls are caught. It ends by
 * agreement with its peers, which the board shows, or it is abandoned after an error
 * and its peers lose it. Either way its parts are freed in reverse order of their
 * creation, those that exist.
 *
 * live_lock guards the list of live contexts. exit_lock is held for reading while a
 * leaving thread uses the device, so that the process's exit waits for it.
 */
#include "config.h"

#include "context/internal.h"

#include "base/base.h"
#include "check/check.h"
#include "heap/heap.h"
#include "queue/queue.h"
#include "transport/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Finalized contexts. Their structs are never freed; only their large parts
 * are. So the library recognises any later call on such a context, and no new
 * context gets the address of an old one. Leak checkers find them through this
 * list. */
static _Atomic(iris_t *) finalized;

static void retire_context(iris_t *iris)
{
    free(iris->settings);
    iris->settings = NULL;
    iris->next_finalized = atomic_load(&finalized);
    while (!atomic_compare_exchange_weak(&finalized, &iris->next_finalized,
                                         iris)) {
    }
}

/* Live contexts of this process. The thread that made them matters: one thread
 * can finalize only one at a time. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static iris_t *live IRIS_GUARDED_BY(live_lock);

void iris_i_enlist(iris_t *iris)
{
    pthread_mutex_lock(&live_lock);
    iris->next_live = live;
    live = iris;
    pthread_mutex_unlock(&live_lock);
}

static void delist_context(iris_t *iris)
{
    iris_t **link = &live;

    pthread_mutex_lock(&live_lock);
    while (*link != NULL && *link != iris) {
        link = &(*link)->next_live;
    }
    if (*link != NULL) {
        *link = iris->next_live;
    }
    pthread_mutex_unlock(&live_lock);
}

/* Whether the same thread made both, in this process. */
static int is_sibling(const iris_t *iris, const iris_t *other)
{
    return other != iris && other->pid == iris->pid &&
           pthread_equal(other->owner, iris->owner) &&
           pthread_equal(iris->owner, pthread_self());
}

static uint64_t find_id(const iris_t *iris)
{
    struct iris_shown shown;

    iris_i_control_read(iris->control, 0, IRIS_SHOW_ID, &shown);
    return shown.id;
}

/* Shows in this thread's other contexts which one it is finalizing; 0: none. */
static void show_elsewhere(const iris_t *iris, uint64_t id)
{
    pthread_mutex_lock(&live_lock);
    for (iris_t *other = live; other != NULL; other = other->next_live) {
        if (is_sibling(iris, other)) {
            other->control->own.elsewhere = id;
            iris_i_control_publish(other->control, IRIS_SHOW_ELSEWHERE,
                                   &other->control->own);
        }
    }
    pthread_mutex_unlock(&live_lock);
}

static int has_sibling(const iris_t *iris, uint64_t id)
{
    const iris_t *other;

    pthread_mutex_lock(&live_lock);
    for (other = live; other != NULL; other = other->next_live) {
        if (is_sibling(iris, other) && find_id(other) == id) {
            break;
        }
    }
    pthread_mutex_unlock(&live_lock);
    return other != NULL;
}

/* Detects two ranks that finalize their contexts in different orders: each
 * would wait for the other until the deadline. */
static iris_status_t check_order(void *arg)
{
    iris_t *iris = arg;

    for (int rank = 0; rank < iris->log.num_ranks; rank++) {
        struct iris_shown shown;

        iris_i_control_read(iris->control, rank, IRIS_SHOW_ELSEWHERE, &shown);
        if (rank != iris->log.rank && shown.elsewhere != 0 &&
            has_sibling(iris, shown.elsewhere)) {
            return iris_i_fail(&iris->log, IRIS_ERR_MISMATCH,
                               "iris_finalize: rank %d finalizes another "
                               "context first, which this rank has not "
                               "finalized; finalize contexts in the same order "
                               "on every rank",
                               rank);
        }
    }
    return IRIS_OK;
}

void iris_i_close_all(iris_t *iris)
{
    iris_i_queue_close(&iris->queue);
    iris_i_control_show_quiet(iris->control);
    iris_i_group_close_all(iris);
    for (int slot = IRIS_EXTENSIONS - 1; slot >= 0; slot--) {
        iris_i_extension_close(iris->extensions[slot]);
    }
    iris_i_proxy_close(iris->proxy);
    if (iris->far_listener >= 0) {
        close(iris->far_listener);
    }
    iris_i_ucx_drop(iris->far_ucx);
    iris_i_bounds_destroy(iris->bounds);
    iris_i_race_destroy(iris->race);
    iris_i_weak_destroy(iris->weak);
    iris_i_heap_close(&iris->heap);
    iris_i_device_close(iris->backend);
    iris_i_recorder_close(iris);
    iris_i_control_close(iris->control);
}

/* Frees the context. Its peers see `state` from now on. */
static void end_context(iris_t *iris, enum iris_rank_state state)
{
    iris_i_peers_set_state(iris->control, state);
    atomic_store_explicit(&iris->life, IRIS_LIFE_FINALIZED,
                          memory_order_release);
    delist_context(iris);
    iris->life_ops->ended(iris, state);
    iris_i_close_all(iris);
    retire_context(iris);
}

void iris_i_abandon(iris_t *iris)
{
    iris->life_ops->ending(iris, 0);
    end_context(iris, IRIS_RANK_LEFT);
}

/* ---- The end of the process ---- */

/* Threads of iris_finalize_later() hold it for reading while they use the
 * device. The end of the process takes it forever, so that none of these
 * threads uses the device after runtimes are shut down. A forked child has no
 * such threads, so it ignores its copy of the lock. */
static pthread_rwlock_t exit_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t process;

/* Number of contexts in iris_finalize_later() through which ranks of other
 * processes reach each other, the last of them, and its deadline. */
static atomic_int num_serving;
static _Atomic(const iris_t *) serving;
static _Atomic int64_t serving_timeout_ms;

static void describe_others(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes,
             "the other ranks to finalize, which this process "
             "connects to other nodes");
}

/* The process ends after the others have left, too, or after the deadline. */
static void await_others(void)
{
    static const struct iris_wait_type for_others = {
        .pace = IRIS_PACE_MOMENT, .describe = describe_others};
    static const atomic_int always = 1; /* true: the program has ended */
    const iris_t *iris = atomic_load(&serving);
    iris_status_t status = IRIS_OK;
    struct iris_waiter waiter = {.heedless = &always};
    struct iris_wait wait;

    if (iris == NULL) {
        return;
    }
    waiter.log = &iris->log;
    waiter.timeout_ms = atomic_load(&serving_timeout_ms);
    waiter.warn_ms = iris->waiter.warn_ms;
    iris_i_wait_begin(&wait, &for_others, &waiter, "iris_finalize_later", NULL);
    while (status == IRIS_OK && atomic_load(&num_serving) != 0) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    if (status != IRIS_OK) {
        iris_i_warning(&iris->log, "%s; they lose this rank now",
                       iris_last_error());
    }
}

/* Called before the thread starts, because the thread changes the deadline of
 * its own waits. */
static void note_serving(const iris_t *iris)
{
    if (iris->control->serves) {
        atomic_store(&serving_timeout_ms, iris->waiter.timeout_ms);
        atomic_store(&serving, iris);
        atomic_fetch_add(&num_serving, 1);
    }
}

static void at_exit(void) IRIS_UNCHECKED
{
    if (process == getpid()) {
        await_others();
        pthread_rwlock_wrlock(&exit_lock);
    }
}

static void watch_exit(void)
{
    process = getpid();
    atexit(at_exit);
}

/* Other threads take no lock here: the program may finalize in such a
 * handler. */
static void hold_exit(const iris_t *iris) IRIS_UNCHECKED
{
    if (atomic_load(&iris->life) == IRIS_LIFE_LEAVING) {
        pthread_rwlock_rdlock(&exit_lock);
    }
}

static void release_exit(const iris_t *iris) IRIS_UNCHECKED
{
    if (atomic_load(&iris->life) == IRIS_LIFE_LEAVING) {
        pthread_rwlock_unlock(&exit_lock);
    }
}

/* ---- Leaving ---- */

static const struct iris_call_type finalize_call = {.name = "iris_finalize"};

/* The collective part before a context ends. It is this rank's last collective
 * call. */
static iris_status_t part_from_peers(iris_t *iris, struct iris_call *call)
{
    iris_status_t status = iris_i_agree(&iris->world->members, call);

    if (status == IRIS_OK) {
        /* Frees no memory that a peer still has mapped: GPUs' handles require
         * that. A rank that dies here does not affect the ranks that have
         * agreed; one that stops may still use this rank's memory. */
        hold_exit(iris);
        iris_i_queue_close(&iris->queue);
        iris_i_proxy_close(iris->proxy);
        iris->proxy = NULL;
        iris_i_heap_disconnect(&iris->heap);
        release_exit(iris);
        status = iris_i_agree(&iris->world->members, call);
        status = status == IRIS_ERR_TIMEOUT ? status
                                            : iris_i_race_verdict(iris->race);
    }
    return status;
}

static iris_status_t leave_job(iris_t *iris)
{
    struct iris_call call = {
        .type = &finalize_call, .keep_waiting = check_order, .arg = iris};

    iris->control->by_ns = iris_i_deadline(iris->control->timeout_ms);
    iris->waiter.by_ns = iris->control->by_ns;
    iris_i_weak_last_call(iris->weak);
    iris_i_agree_begin(iris->control, call.type);
    call.status = iris_i_stream_synchronize_all(&iris->queue);
    if (iris_i_peers_interrupted(iris->control)) {
        /* Without this, peers would take this call for one that they should
         * make. */
        return iris_i_fail(&iris->log, IRIS_ERR_INTERRUPTED,
                           "rank %d, this one, was interrupted "
                           "(iris_interrupt) and leaves the job",
                           iris->log.rank);
    }
    return part_from_peers(iris, &call);
}

iris_status_t iris_finalize(iris_t *iris)
{
    iris_status_t status;
    char message[IRIS_MESSAGE_BYTES];

    if (iris == NULL) {
        return IRIS_OK;
    }
    status = iris_i_enter(iris, "iris_finalize");
    if (status != IRIS_OK) {
        return status;
    }
    iris->life_ops->ending(iris, 1);
    show_elsewhere(iris, find_id(iris));
    status = leave_job(iris);
    iris_i_recorder_failed(iris, status);
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (status == IRIS_ERR_TIMEOUT) {
        iris_i_peers_leave(iris->control, message);
    }
    end_context(iris, status == IRIS_OK ? IRIS_RANK_FINALIZED : IRIS_RANK_LEFT);
    show_elsewhere(iris, 0);
    return status == IRIS_OK ? IRIS_OK : iris_i_fail_again(status, message);
}

/* ---- iris_finalize_later(): a thread of the library waits for the peers
 * ---- */

static int is_idle(iris_t *iris, int anew)
{
    int idle;

    hold_exit(iris);
    idle = iris_i_heap_is_idle(&iris->heap, anew);
    release_exit(iris);
    return idle;
}

static iris_status_t fail_late(const struct iris_wait *wait)
{
    return iris_i_fail(wait->waiter->log, IRIS_ERR_TIMEOUT,
                       "the streams are not done after %lld ms "
                       "(IRIS_TIMEOUT_MS)",
                       (long long)wait->waiter->timeout_ms);
}

/* If a wait is ended early, the streams end their own work and report why. The
 * exception is the deadline: they would wait for it once more. */
static iris_status_t finish_streams(iris_t *iris)
{
    static const struct iris_wait_type for_streams = {.pace = IRIS_PACE_MOMENT,
                                                      .late = fail_late};
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t late = IRIS_OK, status;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_streams, &iris->waiter, "iris_finalize_later",
                      NULL);
    for (int anew = 1; late == IRIS_OK && !is_idle(iris, anew); anew = 0) {
        late = iris_i_wait_tick(&wait);
    }
    /* Collectives leave messages behind, and this process may end. */
    while (late == IRIS_OK && !iris_i_proxy_flush(iris->proxy)) {
        late = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, late);
    snprintf(message, sizeof message, "%s", iris_last_error());
    iris->waiter.timeout_ms =
        late == IRIS_ERR_TIMEOUT ? 1 : iris->waiter.timeout_ms;
    hold_exit(iris);
    status = iris_i_stream_synchronize_all(&iris->queue);
    release_exit(iris);
    return late == IRIS_ERR_TIMEOUT ? iris_i_fail_again(late, message) : status;
}

/* From its first post on, losing this rank is no error: it no longer uses other
 * ranks' memory. */
static iris_status_t leave_later(iris_t *iris)
{
    struct iris_call call = {.type = &finalize_call};

    iris_i_agree_begin(iris->control, call.type);
    iris->control->timeout_ms = 0;
    call.status = finish_streams(iris);
    hold_exit(iris);
    iris->life_ops->ending(iris, call.status == IRIS_OK);
    release_exit(iris);
    if (call.status == IRIS_OK) {
        iris_i_peers_set_state(iris->control, IRIS_RANK_FINALIZED);
    }
    return part_from_peers(iris, &call);
}

static void *leaver_main(void *arg)
{
    iris_t *iris = arg;
    int serves = iris->control->serves;
    iris_status_t status = leave_later(iris);

    if (status != IRIS_OK) {
        iris_i_warning(&iris->log, "iris_finalize_later: %s",
                       iris_last_error());
    }
    pthread_rwlock_rdlock(&exit_lock); /* for longer than the context's life */
    end_context(iris, status == IRIS_OK ? IRIS_RANK_FINALIZED : IRIS_RANK_LEFT);
    pthread_rwlock_unlock(&exit_lock);
    atomic_fetch_sub(&num_serving, serves);
    return NULL;
}

iris_status_t iris_finalize_later(iris_t *iris)
{
    unsigned life = IRIS_LIFE_LIVE;
    iris_status_t status;
    int ret;

    if (iris == NULL) {
        return IRIS_OK;
    }
    status = iris_i_enter(iris, "iris_finalize_later");
    if (status != IRIS_OK) {
        return status;
    }
    if (!atomic_compare_exchange_strong(&iris->life, &life,
                                        IRIS_LIFE_LEAVING)) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "iris_finalize_later: the context is being "
                           "finalized by another thread");
    }
    pthread_once(&once, watch_exit);
    delist_context(iris);
    note_serving(iris);
    ret = iris_i_thread_start(NULL, "iris-leave", 0, leaver_main, iris);
    if (ret != 0) {
        atomic_fetch_sub(&num_serving, iris->control->serves);
        iris_i_enlist(iris);
        atomic_store(&iris->life, IRIS_LIFE_LIVE);
        return iris_i_fail_errno(&iris->log, IRIS_ERR_LIMIT, ret,
                                 "iris_finalize_later: no thread to finalize "
                                 "in; call iris_finalize");
    }
    return IRIS_OK;
}
