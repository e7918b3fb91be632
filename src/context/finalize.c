/* SPDX-License-Identifier: MIT
 *
 * The end of a context.
 */
#include "config.h"

#include "context/context.h"

#include "control/peers.h"
#include "heap/bounds.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Live contexts of this process. Which thread made them matters: one thread can
 * finalize only one at a time. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static iris_t *live;

void iris_i_enlist(iris_t *iris)
{
    pthread_mutex_lock(&live_lock);
    iris->next_live = live;
    live = iris;
    pthread_mutex_unlock(&live_lock);
}

void iris_i_delist(iris_t *iris)
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

/* Whether this thread made both, in this process. */
static int is_sibling(const iris_t *iris, const iris_t *other)
{
    return other != iris && other->pid == iris->pid &&
           pthread_equal(other->owner, iris->owner) &&
           pthread_equal(iris->owner, pthread_self());
}

static uint64_t id_of(const iris_t *iris)
{
    struct iris_shown shown;

    iris->control->ops->read(iris->control, 0, IRIS_SHOW_ID, &shown);
    return shown.id;
}

/* Shows in this thread's other contexts which one it is finalizing; 0: none. */
static void show_elsewhere(const iris_t *iris, uint64_t id)
{
    pthread_mutex_lock(&live_lock);
    for (iris_t *other = live; other != NULL; other = other->next_live) {
        if (is_sibling(iris, other)) {
            other->control->own.elsewhere = id;
            other->control->ops->publish(other->control, IRIS_SHOW_ELSEWHERE,
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
        if (is_sibling(iris, other) && id_of(other) == id) {
            break;
        }
    }
    pthread_mutex_unlock(&live_lock);
    return other != NULL;
}

/* Two ranks that each finalize what the other would finalize next would wait
 * for each other until the deadline. */
static iris_status_t check_order(void *arg)
{
    iris_t *iris = arg;

    for (int rank = 0; rank < iris->log.num_ranks; rank++) {
        struct iris_shown shown;

        iris->control->ops->read(iris->control, rank, IRIS_SHOW_ELSEWHERE,
                                 &shown);
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

void iris_i_extension_close(struct iris_extension *extension)
{
    if (extension != NULL) {
        extension->close(extension);
    }
}

void iris_i_close_all(iris_t *iris)
{
    iris_i_queue_close(&iris->queue);
    iris_i_group_close_all(iris);
    iris_i_extension_close(iris->blas);
    iris_i_extension_close(iris->ops);
    iris_i_extension_close(iris->ccl);
    iris_i_extension_close(iris->trace);
    iris_i_bounds_destroy(iris->bounds);
    iris_i_heap_close(&iris->heap);
    iris_i_device_close(iris->backend);
    iris_i_recorder_close(iris);
    iris_i_control_close(iris->control);
}

void iris_i_end(iris_t *iris, enum iris_rank_state state)
{
    iris_i_peers_set_state(iris->control, state);
    atomic_store_explicit(&iris->life, IRIS_LIFE_FINALIZED,
                          memory_order_release);
    iris_i_delist(iris);
    iris_i_life_ops.ended(iris, state);
    iris_i_close_all(iris);
    retire(iris);
}

void iris_i_abandon(iris_t *iris)
{
    iris_i_life_ops.ending(iris, 0);
    iris_i_end(iris, IRIS_RANK_LEFT);
}

const struct iris_call_type iris_i_finalize_call = {.name = "iris_finalize"};

/* What all ranks do together before a context ends; it is this rank's last. */
static iris_status_t part(iris_t *iris)
{
    struct iris_call call = {.type = &iris_i_finalize_call,
                             .keep_waiting = check_order,
                             .arg = iris};
    iris_status_t status;

    iris_i_agree_begin(iris->control, call.type);
    call.status = iris_i_stream_synchronize_all(&iris->queue);
    if (iris_i_peers_interrupted(iris->control)) {
        /* Peers would take this call for one that they should make. */
        return iris_i_fail(&iris->log, IRIS_ERR_INTERRUPTED,
                           "rank %d, this one, was interrupted "
                           "(iris_interrupt) and leaves the job",
                           iris->log.rank);
    }
    status = iris_i_agree(&iris->world->members, &call);
    if (status == IRIS_OK) {
        /* No memory is freed that a peer has mapped yet: GPUs' handles want it
         * so. Who dies on the way takes nothing from those who agreed. */
        iris_i_queue_close(&iris->queue);
        iris_i_heap_disconnect(&iris->heap);
        (void)iris_i_agree(&iris->world->members, &call);
    }
    return status;
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
    iris_i_life_ops.ending(iris, 1);
    show_elsewhere(iris, id_of(iris));
    status = part(iris);
    snprintf(message, sizeof message, "%s", iris_last_error());
    iris_i_recorder_failed(iris, status);
    iris_i_end(iris, status == IRIS_OK ? IRIS_RANK_FINALIZED : IRIS_RANK_LEFT);
    show_elsewhere(iris, 0);
    return status == IRIS_OK ? IRIS_OK : iris_i_fail_again(status, message);
}
