/* SPDX-License-Identifier: MIT
 *
 * Opening and closing the connections of the control plane over sockets.
 */
#include "config.h"

#include <poll.h>

#include "control/hub.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/shm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void iris_i_hub_wake(struct iris_hub *hub)
{
    uint64_t one = 1;

    (void)!write(hub->wake, &one, sizeof one);
}

void iris_i_hub_close_listener(struct iris_hub *hub)
{
    if (hub->listener >= 0) {
        close(hub->listener);
        hub->listener = -1;
    }
    if (hub->spare >= 0) {
        close(hub->spare);
        hub->spare = -1;
    }
}

static iris_status_t start(struct iris_hub *hub)
{
    sigset_t all, before;
    int ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&hub->thread, NULL, iris_i_hub_run, hub);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ret != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_LIMIT, ret,
                                 "no thread for the control plane");
    }
    pthread_setname_np(hub->thread, "iris-control");
    return IRIS_OK;
}

static void free_all(struct iris_hub *hub)
{
    for (int i = 0; hub->links != NULL && i < hub->num_links; i++) {
        iris_i_link_close(&hub->links[i]);
    }
    if (hub->wake >= 0) {
        close(hub->wake);
    }
    free(hub->links);
    free(hub->polled);
    free(hub->ended);
    iris_i_segment_release(hub->copy);
    hub->copy = NULL;
}

static iris_status_t make(struct iris_hub *hub)
{
    size_t num_links;

    hub->num_links = hub->rank == 0 ? hub->num_ranks + IRIS_HUB_STRANGERS : 1;
    num_links = (size_t)hub->num_links;
    hub->links = calloc(num_links, sizeof *hub->links);
    hub->polled = calloc(num_links + 2, sizeof *hub->polled);
    hub->ended = calloc((size_t)hub->num_ranks, sizeof *hub->ended);
    if (hub->rank != 0) {
        hub->wake =
            iris_i_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (hub->wake < 0) {
            return iris_i_fail_fd(errno, "cannot make an eventfd");
        }
    }
    if (hub->links == NULL || hub->polled == NULL || hub->ended == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for %d connections", hub->num_links);
    }
    for (int i = 0; i < hub->num_links; i++) {
        iris_i_link_open(&hub->links[i], -1, -1);
    }
    return iris_i_segment_private(hub->num_ranks, &hub->copy);
}

iris_status_t iris_i_hub_open(struct iris_hub *hub,
                              const struct iris_control_fds *fds, int sock)
{
    iris_status_t status;

    hub->wake = hub->rank == 0 ? fds->wake : -1;
    hub->listener = hub->rank == 0 ? fds->listener : -1;
    hub->spare = hub->rank == 0 ? fds->spare : -1;
    pthread_mutex_init(&hub->lock, NULL);
    status = make(hub);
    if (status == IRIS_OK && hub->rank != 0) {
        iris_i_link_open(&hub->links[0], sock, 0);
    }
    if (status == IRIS_OK) {
        status = start(hub);
    }
    if (status != IRIS_OK) {
        hub->wake = hub->rank == 0 ? -1 : hub->wake;
        if (hub->links != NULL) {
            hub->links[0].sock = -1;
        }
        free_all(hub);
    }
    return status;
}

void iris_i_hub_close(struct iris_hub *hub, int stay_ms)
{
    hub->close_by_ns = iris_i_deadline(stay_ms);
    atomic_store(&hub->closing, 1);
    iris_i_hub_wake(hub);
    pthread_join(hub->thread, NULL);
    iris_i_hub_close_listener(hub);
    free_all(hub);
    pthread_mutex_destroy(&hub->lock);
}
