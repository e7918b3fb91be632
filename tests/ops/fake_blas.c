/* SPDX-License-Identifier: MIT
 *
 * A module whose library multiplies nothing. A call on a matrix `a` that begins
 * with 1 never returns. Any other call sets each element to how many calls this
 * rank has made.
 */
#include "config.h"

#include "ops/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void describe(void *state, char *text)
{
    (void)state;
    strcpy(text, "a library for tests");
}

static iris_status_t open_library(int threads, void **state_p, char *why)
{
    (void)threads;
    (void)why;
    *state_p = calloc(1, sizeof(float));
    return *state_p == NULL ? IRIS_ERR_NO_MEMORY : IRIS_OK;
}

static void close_library(void *state)
{
    free(state);
}

static void multiply(void *state, const struct iris_blas_f32 *what)
{
    float *calls = state;

    while (what->a[0] == 1) {
        pause();
    }
    *calls += 1;
    for (int64_t i = 0; i < what->m; i++) {
        for (int64_t j = 0; j < what->n; j++) {
            what->out[i * what->out_row + j] = *calls;
        }
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
