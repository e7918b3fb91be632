/* SPDX-License-Identifier: MIT
 *
 * The module of CBLAS, whose library the linker chose: OpenBLAS or another. Its
 * header is one of many, so nothing but the standard's names is used of it.
 */
#include "config.h"

#include "ops/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Guards the number of threads, which the library has once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int threads_now;

static const char *describe(void)
{
    static char text[IRIS_BLAS_WHY_BYTES];
    char *(*config)(void) = NULL;

    *(void **)&config = dlsym(RTLD_DEFAULT, "openblas_get_config");
    if (config == NULL) {
        return "CBLAS";
    }
    snprintf(text, sizeof text, "%s", config());
    return text;
}

/* Ranks that are threads all say the same, most of them while others are at
 * work. */
static iris_status_t open_library(int threads, void **state_p, char *why)
{
    void (*set)(int) = NULL;

    (void)why;
    pthread_mutex_lock(&lock);
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (set != NULL && threads != threads_now) {
        set(threads);
        threads_now = threads;
    }
    pthread_mutex_unlock(&lock);
    *state_p = NULL;
    return IRIS_OK;
}

static void close_library(void *state)
{
    (void)state;
}

static void multiply(void *state, const struct iris_blas_f32 *what)
{
    (void)state;
    cblas_sgemm(CblasRowMajor, CblasNoTrans,
                what->b_by_column ? CblasTrans : CblasNoTrans, (int)what->m,
                (int)what->n, (int)what->k, 1, what->a, (int)what->a_row,
                what->b, (int)what->b_line, 0, what->out, (int)what->out_row);
}

static iris_status_t product(void *state, const struct iris_blas_product *what,
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
    .describe = describe,
    .open = open_library,
    .close = close_library,
    .multiply = multiply,
    .product = product,
};

const struct iris_blas *iris_blas_module(const char *version);
__attribute__((visibility("default"))) const struct iris_blas *
iris_blas_module(const char *version)
{
    return strcmp(version, IRIS_BLAS_VERSION) == 0 ? &blas : NULL;
}
