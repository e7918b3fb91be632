/* SPDX-License-Identifier: MIT
 *
 * Kernels that wait for too long or for the dead: the word that ends them, and
 * the report of the lane that gave up (struct iris_dev_watch).
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <iris/device/op.h>

#include <stdio.h>
#include <string.h>

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip)
{
    void *watch = NULL, *device = NULL;
    hipError_t error = hipHostMalloc(
        &watch, sizeof *hip->watch,
        hipHostMallocMapped | hipHostMallocCoherent | hipHostMallocPortable);

    if (error == hipSuccess) {
        memset(watch, 0, sizeof *hip->watch);
        hip->watch = watch;
        error = hipHostGetDevicePointer(&device, watch, 0);
    }
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d gets no host memory that GPU %d maps",
                               hip->params.rank, hip->device);
    }
    hip->info.watch = (uint64_t)(uintptr_t)device;
    return IRIS_OK;
}

void iris_i_hip_watch_close(struct hip_backend *hip)
{
    iris_i_hip_free(hip, hip->watch, true);
}

/* A word of the watch, as the host shares it with kernels. */
static _Atomic uint32_t *shared(uint32_t *word)
{
    return (_Atomic uint32_t *)word;
}

static void set_fault(struct hip_backend *hip, iris_status_t status,
                      const char *message)
{
    pthread_mutex_lock(&hip->lock);
    hip->num_faults++;
    hip->fault = status;
    snprintf(hip->fault_message, sizeof hip->fault_message, "%s", message);
    pthread_mutex_unlock(&hip->lock);
}

void iris_i_hip_stop(struct hip_backend *hip, iris_status_t status)
{
    /* In this order: a stream that gets work in between has the fault. */
    iris_i_hip_stop_again(hip);
    set_fault(hip, status, iris_last_error());
}

void iris_i_hip_stop_again(struct hip_backend *hip)
{
    atomic_store(shared(&hip->watch->stop), 1);
}

bool iris_i_hip_stopped(const struct hip_backend *hip)
{
    return atomic_load(shared(&hip->watch->stop)) != 0;
}

static const char *comparison(int cmp)
{
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};

    return cmp >= 0 && cmp < 6 ? names[cmp] : "?";
}

/* The word in device memory that lanes compete for goes back to 0. */
static void free_claim(struct hip_backend *hip)
{
    int64_t *words = hip->heap.base;
    size_t place =
        IRIS_CONTEXT_OWN(hip->params.num_ranks, IRIS_CONTEXT_OWN_CLAIM);

    if (words != NULL && hipMemsetAsync(&words[place], 0, sizeof *words,
                                        hip->service) == hipSuccess) {
        (void)hipStreamSynchronize(hip->service);
    }
}

void iris_i_hip_collect(struct hip_backend *hip)
{
    struct iris_dev_watch report;

    if (atomic_load(shared(&hip->watch->stop)) == 0) {
        return;
    }
    if (atomic_load(shared(&hip->watch->ready)) != 0) {
        report = *hip->watch;
        iris_i_fail(
            NULL, IRIS_ERR_TIMEOUT,
            "rank %d: a kernel waited for %lld ms (IRIS_DEVICE_TIMEOUT_MS) and "
            "was ended: lane %u of workgroup %u, in a %s, waited for the word "
            "at heap offset %llu to be %s %lld and last saw %lld. Look at who "
            "should have written it",
            report.rank,
            (long long)(report.waited / (uint64_t)hip->info.clock_khz),
            report.lane, report.workgroup,
            report.op == IRIS_OP_BARRIER ? "barrier" : "wait",
            (unsigned long long)report.offset, comparison(report.cmp),
            (long long)report.expected, (long long)report.seen);
        set_fault(hip, IRIS_ERR_TIMEOUT, iris_last_error());
    }
    free_claim(hip);
    atomic_store(shared(&hip->watch->ready), 0);
    atomic_store(shared(&hip->watch->stop), 0);
}
