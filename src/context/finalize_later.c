/* SPDX-License-Identifier: MIT
 *
 * iris_finalize_later(): contexts that end in whatever order each rank lets go
 * of them. Each has a thread, which waits for its peers.
 */
#include "config.h"

#include "context/context.h"

#include "control/peers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Threads hold it for reading while they use the device. The end of the process
 * takes it for good, so that no thread does once runtimes are taken down; a
 * fork has no such threads, whatever its copy of the lock says. */
static pthread_rwlock_t exit_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t process;

static void at_exit(void)
{
    if (process == getpid()) {
        pthread_rwlock_wrlock(&exit_lock);
    }
}

static void prepare(void)
{
    process = getpid();
    atexit(at_exit);
}

static int is_idle(iris_t *iris, int anew)
{
    int idle;

    pthread_rwlock_rdlock(&exit_lock);
    idle = iris->heap.fence.query(iris->heap.fence.arg, anew);
    pthread_rwlock_unlock(&exit_lock);
    return idle;
}

/* A wait that is ended early leaves it to the streams to say why. */
static iris_status_t finish_streams(iris_t *iris)
{
    static const struct iris_wait_type for_streams = {.pace = IRIS_PACE_MOMENT};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_streams, &iris->waiter, "iris_finalize_later",
                      NULL);
    for (int anew = 1; status == IRIS_OK && !is_idle(iris, anew); anew = 0) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    pthread_rwlock_rdlock(&exit_lock);
    status = iris_i_stream_synchronize_all(&iris->queue);
    pthread_rwlock_unlock(&exit_lock);
    return status;
}

/* As iris_finalize() does, but that this rank is no loss from its first post
 * on: it uses nobody's memory any more. */
static iris_status_t part(iris_t *iris)
{
    struct iris_call call = {.type = &iris_i_finalize_call};
    iris_status_t status;

    iris_i_agree_begin(iris->control, call.type);
    iris->control->timeout_ms = 0;
    call.status = finish_streams(iris);
    pthread_rwlock_rdlock(&exit_lock);
    iris_i_life_ops.ending(iris, call.status == IRIS_OK);
    pthread_rwlock_unlock(&exit_lock);
    if (call.status == IRIS_OK) {
        iris_i_peers_set_state(iris->control, IRIS_RANK_FINALIZED);
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status == IRIS_OK) {
        pthread_rwlock_rdlock(&exit_lock);
        iris_i_queue_close(&iris->queue);
        iris_i_heap_disconnect(&iris->heap);
        pthread_rwlock_unlock(&exit_lock);
        (void)iris_i_agree(&iris->world->members, &call);
    }
    return status;
}

static void *leave(void *arg)
{
    iris_t *iris = arg;
    iris_status_t status = part(iris);

    if (status != IRIS_OK) {
        iris_i_warning(&iris->log, "iris_finalize_later: %s",
                       iris_last_error());
    }
    pthread_rwlock_rdlock(&exit_lock);
    iris_i_end(iris, status == IRIS_OK ? IRIS_RANK_FINALIZED : IRIS_RANK_LEFT);
    pthread_rwlock_unlock(&exit_lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(iris_t *iris)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int ret;

    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&thread, &attributes, leave, iris);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return ret;
}

iris_status_t iris_finalize_later(iris_t *iris)
{
    unsigned live = IRIS_LIFE_LIVE;
    iris_status_t status;
    int ret;

    if (iris == NULL) {
        return IRIS_OK;
    }
    status = iris_i_enter(iris, "iris_finalize_later");
    if (status != IRIS_OK) {
        return status;
    }
    if (!atomic_compare_exchange_strong(&iris->life, &live,
                                        IRIS_LIFE_LEAVING)) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "iris_finalize_later: the context is being "
                           "finalized by another thread");
    }
    pthread_once(&once, prepare);
    iris_i_delist(iris);
    ret = start_thread(iris);
    if (ret != 0) {
        iris_i_enlist(iris);
        atomic_store(&iris->life, IRIS_LIFE_LIVE);
        return iris_i_fail_errno(&iris->log, IRIS_ERR_LIMIT, ret,
                                 "iris_finalize_later: no thread to finalize "
                                 "in; call iris_finalize");
    }
    return IRIS_OK;
}
