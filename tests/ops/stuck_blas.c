/* SPDX-License-Identifier: MIT
 *
 * A module whose library's call never returns.
 */
#include "config.h"

#include "ops/blas.h"

#include <string.h>
#include <unistd.h>

static void describe(void *state, char *text)
{
    (void)state;
    strcpy(text, "a library that gets stuck");
}

static iris_status_t open_library(int threads, void **state_p, char *why)
{
    (void)threads;
    (void)why;
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
    (void)what;
    for (;;) {
        pause();
    }
}

static iris_status_t product(void *state, const struct iris_blas_product *what,
                             void *stream, char *why)
{
    (void)state;
    (void)what;
    (void)stream;
    (void)why;
    return IRIS_ERR_UNSUPPORTED;
}

static const struct iris_blas blas = {
    .name = "cblas",
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
