/* SPDX-License-Identifier: MIT
 *
 * The module of CBLAS, with the library that the linker chose: OpenBLAS or
 * another. There are many versions of its header, so this file uses only the
 * standard names.
 */
#include "config.h"

#include "ops/internal.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Guards the number of threads, which is global in the library. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int threads_now IRIS_GUARDED_BY(lock);

/* If address space is limited, open() makes the library allocate a caller's
 * memory at once. Then one thread at a time calls it, and it needs no more. */
static pthread_mutex_t one_caller = PTHREAD_MUTEX_INITIALIZER;
static int is_limited;

static void describe_cblas(void *state, char *text)
{
    char *(*config)(void) = NULL;

    (void)state;
    *(void **)&config = dlsym(RTLD_DEFAULT, "openblas_get_config");
    snprintf(text, IRIS_BLAS_WHY_BYTES, "%s",
             config == NULL ? "CBLAS" : config());
}

/* Small products allocate no memory. A product of this size allocates that of
 * the library's threads and of a caller, and the library keeps it. */
#define SIDE 256
static iris_status_t take_memory(char *why)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    float *zeros;

    getrlimit(RLIMIT_AS, &limit);
    is_limited = limit.rlim_cur != RLIM_INFINITY;
    if (!is_limited) {
        return IRIS_OK;
    }
    zeros = calloc((size_t)2 * SIDE * SIDE, sizeof *zeros);
    if (zeros == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "no memory for a first product");
        return IRIS_ERR_NO_MEMORY;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1,
                zeros, SIDE, zeros, SIDE, 0, zeros + SIDE * SIDE, SIDE);
    free(zeros);
    return IRIS_OK;
}

/* Ranks that are threads all open it with the same number of threads, most of
 * them while others are at work. */
static iris_status_t open_cblas(int threads, void **state_p, char *why)
{
    void (*set)(int) = NULL;
    iris_status_t status = IRIS_OK;

    pthread_mutex_lock(&lock);
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (set != NULL && threads != threads_now) {
        set(threads);
    }
    if (threads_now == 0) {
        status = take_memory(why);
    }
    threads_now = status == IRIS_OK ? threads : 0;
    pthread_mutex_unlock(&lock);
    *state_p = NULL;
    return status;
}

static void close_library(void *state)
{
    (void)state;
}

static void multiply_f32(void *state,
                         const struct iris_blas_f32 *what) IRIS_UNCHECKED
{
    (void)state;
    if (is_limited) {
        pthread_mutex_lock(&one_caller);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans,
                what->b_by_column ? CblasTrans : CblasNoTrans, (int)what->m,
                (int)what->n, (int)what->k, 1, what->a, (int)what->a_row,
                what->b, (int)what->b_line, 0, what->out, (int)what->out_row);
    if (is_limited) {
        pthread_mutex_unlock(&one_caller);
    }
}

static iris_status_t refuse_product(void *state,
                                    const struct iris_blas_product *what,
                                    void *stream, char *why)
{
    (void)state;
    (void)what;
    (void)stream;
    snprintf(why, IRIS_BLAS_WHY_BYTES, "CBLAS has no GPU's stream");
    return IRIS_ERR_UNSUPPORTED;
}

static const struct iris_blas blas = {
    .name = "cblas",
    .on_gpu = 0,
    .describe = describe_cblas,
    .open = open_cblas,
    .close = close_library,
    .multiply = multiply_f32,
    .product = refuse_product,
};

const struct iris_blas *iris_blas_module(const char *version);
__attribute__((visibility("default"))) const struct iris_blas *
iris_blas_module(const char *version)
{
    return strcmp(version, IRIS_BLAS_VERSION) == 0 ? &blas : NULL;
}
