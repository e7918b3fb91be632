/* SPDX-License-Identifier: MIT
 *
 * Code for all instances: their fault.
 */
#include "config.h"

#include "backend/backend.h"

#include <stdio.h>

void iris_i_backend_made(struct iris_backend *backend)
{
    atomic_init(&backend->fault.status, IRIS_OK);
    pthread_mutex_init(&backend->fault.lock, NULL);
}

iris_status_t iris_i_fault_set(struct iris_backend *backend,
                               iris_status_t status, const char *message)
{
    struct iris_fault *fault = &backend->fault;

    pthread_mutex_lock(&fault->lock);
    if (atomic_load(&fault->status) == IRIS_OK) {
        snprintf(fault->message, sizeof fault->message, "%s", message);
        atomic_store(&fault->status, status);
    }
    status = (iris_status_t)atomic_load(&fault->status);
    pthread_mutex_unlock(&fault->lock);
    return status;
}

iris_status_t iris_i_fault_check(const struct iris_backend *backend)
{
    /* A const instance does not promise that the lock does not change. */
    struct iris_fault *fault = (struct iris_fault *)(uintptr_t)&backend->fault;
    iris_status_t status;

    if (atomic_load_explicit(&fault->status, memory_order_acquire) == IRIS_OK) {
        return IRIS_OK;
    }
    pthread_mutex_lock(&fault->lock);
    status = (iris_status_t)atomic_load(&fault->status);
    if (status != IRIS_OK) {
        iris_i_fail_again(status, fault->message);
    }
    pthread_mutex_unlock(&fault->lock);
    return status;
}

void iris_i_fault_clear(struct iris_backend *backend)
{
    pthread_mutex_lock(&backend->fault.lock);
    atomic_store(&backend->fault.status, IRIS_OK);
    pthread_mutex_unlock(&backend->fault.lock);
}
