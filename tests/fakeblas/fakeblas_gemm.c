/* SPDX-License-Identifier: MIT
 *
 * What the fake BLAS libraries share: the loop, as a kernel on the fake HIP
 * runtime's stream, and what they are asked for.
 */
#include "config.h"

#include "fakeblas.h"
#include "fakehip/fakehip.h"

#include <iris/device/core/half.h>
#include <iris/device/wg/kernel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define MAX_DEVICES 64
#define MAX_ALGORITHMS 4096

struct fakeblas_seen fakeblas;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

FAKEBLAS_EXPORT const struct fakeblas_seen *fakeblas_seen(void);
const struct fakeblas_seen *fakeblas_seen(void)
{
    return &fakeblas;
}

int fakeblas_fails(const char *call)
{
    static atomic_int calls; /* since there is something to fail */
    const char *fail = getenv("FAKEBLAS_FAIL");
    size_t bytes = strlen(call);
    int status = 0, only = -1, after = 0, device = -1;

    if (fail == NULL || strcmp(fail, "none") == 0) {
        atomic_store(&calls, 0);
        return 0;
    }
    if (strncmp(fail, call, bytes) != 0 || fail[bytes] != ':') {
        return 0;
    }
    (void)sscanf(fail + bytes + 1, "%d@%d+%d", &status, &only, &after);
    (void)hipGetDevice(&device);
    return (only < 0 || only == device) && atomic_fetch_add(&calls, 1) >= after
               ? status
               : 0;
}

int fakeblas_has_none(void)
{
    return getenv("FAKEBLAS_NONE") != NULL;
}

void fakeblas_load(uint64_t algorithm)
{
    static atomic_char loaded[MAX_ALGORITHMS];

    if (getenv("FAKEBLAS_LOAD") != NULL &&
        atomic_exchange(&loaded[algorithm % MAX_ALGORITHMS], 1) == 0) {
        fakehip_wait_for_all();
    }
}

/* ---- The loop ---- */

static float load(const void *data, int64_t at, int element)
{
    return element == 4   ? ((const float *)data)[at]
           : element == 2 ? iris_f16_to_f32(((const iris_f16_t *)data)[at])
                          : iris_bf16_to_f32(((const iris_bf16_t *)data)[at]);
}

static void store(void *data, int64_t at, int element, float value)
{
    if (element == 4) {
        ((float *)data)[at] = value;
    } else if (element == 2) {
        ((iris_f16_t *)data)[at] = iris_f16_from_f32(value);
    } else {
        ((iris_bf16_t *)data)[at] = iris_bf16_from_f32(value);
    }
}

static void run(const void *wg, const void *args)
{
    struct fakeblas_product p = *(const struct fakeblas_product *)args;

    (void)wg;
    for (int64_t j = 0; j < p.n; j++) {
        for (int64_t i = 0; i < p.m; i++) {
            float sum = 0;

            for (int64_t k = 0; k < p.k; k++) {
                sum += load(p.a, p.trans_a ? i * p.lda + k : k * p.lda + i,
                            p.element) *
                       load(p.b, p.trans_b ? k * p.ldb + j : j * p.ldb + k,
                            p.element);
            }
            sum *= p.alpha;
            if (p.beta != 0) {
                sum += p.beta * load(p.c, j * p.ldc + i, p.element);
            }
            if (p.bias != NULL) {
                sum += load(p.bias, i, p.element);
            }
            store(p.d, j * p.ldd + i, p.element, sum);
        }
    }
}

static const struct iris_kernel kernel[1] = {{IRIS_KERNEL_VERSION, "fakeblas",
                                              sizeof(struct fakeblas_product),
                                              run, kernel, NULL}};

static hipFunction_t function_on(int device)
{
    static hipFunction_t functions[MAX_DEVICES];
    hipModule_t module;

    if (functions[device] == NULL &&
        (hipModuleLoadData(&module, kernel) != hipSuccess ||
         hipModuleGetFunction(&functions[device], module, "fakeblas_gpu") !=
             hipSuccess)) {
        return NULL;
    }
    return functions[device];
}

int fakeblas_enqueue(const struct fakeblas_product *product, void *stream)
{
    struct fakeblas_product args = *product;
    size_t bytes = sizeof args;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &args,
                     HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    hipFunction_t function;
    int device = 0, done;

    pthread_mutex_lock(&lock);
    done = hipGetDevice(&device) == hipSuccess;
    function = done ? function_on(device) : NULL;
    done = function != NULL &&
           hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL,
                                 extra) == hipSuccess;
    if (done) {
        fakeblas.last = *product;
        fakeblas.stream = stream;
        fakeblas.device = device;
        fakeblas.products++;
    }
    pthread_mutex_unlock(&lock);
    return done;
}
