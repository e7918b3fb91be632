/* SPDX-License-Identifier: MIT
 *
 * The module of rocBLAS, for AMD GPUs that hipBLASLt does not support. The
 * module finds the library at run time, so a build needs neither the library
 * nor its headers. rocBLAS chooses an algorithm for every call, so the bits of
 * a part may differ from the whole product's.
 */
#include "config.h"

#include "ops/blas_vendor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"librocblas.so.5", "librocblas.so.4",
                                    "librocblas.so.3", "librocblas.so.0",
                                    "librocblas.so",   NULL};
static const char *const variables[] = {"ROCM_PATH", "ROCM_HOME", NULL};
static const char *const patterns[] = {
    "/opt/rocm/lib",
    "/opt/rocm-*/lib",
    "$VIRTUAL_ENV/lib/python3*/site-packages/torch/lib",
    "$CONDA_PREFIX/lib",
    "$CONDA_PREFIX/lib/python3*/site-packages/torch/lib",
    "$HOME/.local/lib/python3*/site-packages/torch/lib",
    "/usr/local/lib/python3*/*-packages/torch/lib",
    NULL,
};
static const struct iris_blas_places places = {names, variables, patterns};

static const char *const status_names[] = {
    [1] = "rocblas_status_invalid_handle",
    [2] = "rocblas_status_not_implemented",
    [3] = "rocblas_status_invalid_pointer",
    [4] = "rocblas_status_invalid_size",
    [5] = "rocblas_status_memory_error",
    [6] = "rocblas_status_internal_error",
    [7] = "rocblas_status_perf_degraded",
    [11] = "rocblas_status_invalid_value",
    [14] = "rocblas_status_excluded_from_build",
    [15] = "rocblas_status_arch_mismatch",
};
#define NUM_STATUSES ((int)(sizeof status_names / sizeof status_names[0]))

/* Values of the enums in rocblas-types.h. */
enum {
    OP_NONE = 111,
    OP_TRANSPOSE = 112,
    TYPE_F16 = 150,
    TYPE_F32 = 151,
    TYPE_BF16 = 168,
    ALGORITHM_STANDARD = 0,
    NO_ATOMICS = 0,
    NOT_IMPLEMENTED = 2,
    MEMORY_ERROR = 5,
};

struct functions {
    int (*create_handle)(void **handle);
    int (*destroy_handle)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*set_atomics_mode)(void *handle, int mode);
    int (*gemm_ex)(void *handle, int op_a, int op_b, int m, int n, int k,
                   const void *alpha, const void *a, int a_type, int lda,
                   const void *b, int b_type, int ldb, const void *beta,
                   const void *c, int c_type, int ldc, void *d, int d_type,
                   int ldd, int compute_type, int algorithm, int32_t solution,
                   uint32_t flags);
};

/* A handle has memory that only one stream at a time may use, so each stream
 * has its own handle. */
struct handle {
    struct handle *next;
    void *stream;
    void *native;
};

struct rocblas {
    struct functions call;
    pthread_mutex_t lock; /* guards the list, and calls with handles */
    struct handle *handles;
};

static iris_status_t check(int status, const char *call, char *why)
{
    const char *name =
        status > 0 && status < NUM_STATUSES ? status_names[status] : NULL;

    if (status == 0) {
        return IRIS_OK;
    }
    snprintf(why, IRIS_BLAS_WHY_BYTES, "rocblas_%s returned %s (%d)", call,
             name == NULL ? "an unknown status" : name, status);
    return status == NOT_IMPLEMENTED ? IRIS_ERR_UNSUPPORTED
           : status == MEMORY_ERROR  ? IRIS_ERR_NO_MEMORY
                                     : IRIS_ERR_DEVICE;
}

/* ---- Handles ---- */

/* The lock is held. */
static iris_status_t add_handle(struct rocblas *state, void *stream,
                                struct handle **handle_p, char *why)
{
    struct handle *handle = calloc(1, sizeof *handle);
    iris_status_t status;

    if (handle == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "no memory");
        return IRIS_ERR_NO_MEMORY;
    }
    status =
        check(state->call.create_handle(&handle->native), "create_handle", why);
    if (status != IRIS_OK) {
        free(handle);
        return status;
    }
    status = check(state->call.set_stream(handle->native, stream), "set_stream",
                   why);
    status =
        status ? status
               : check(state->call.set_atomics_mode(handle->native, NO_ATOMICS),
                       "set_atomics_mode", why);
    if (status != IRIS_OK) {
        (void)state->call.destroy_handle(handle->native);
        free(handle);
        return status;
    }
    handle->stream = stream;
    handle->next = state->handles;
    state->handles = *handle_p = handle;
    return IRIS_OK;
}

static iris_status_t handle_for(struct rocblas *state, void *stream,
                                struct handle **handle_p, char *why)
{
    for (struct handle *one = state->handles; one != NULL; one = one->next) {
        if (one->stream == stream) {
            *handle_p = one;
            return IRIS_OK;
        }
    }
    return add_handle(state, stream, handle_p, why);
}

/* ---- The slots ---- */

static iris_status_t bind(struct rocblas *state, void *library, char *why)
{
    const struct {
        const char *name;
        void *to;
    } table[] = {
        {"create_handle", &state->call.create_handle},
        {"destroy_handle", &state->call.destroy_handle},
        {"set_stream", &state->call.set_stream},
        {"set_atomics_mode", &state->call.set_atomics_mode},
        {"gemm_ex", &state->call.gemm_ex},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *address =
            iris_i_blas_symbol(library, "rocblas_", table[i].name, why);

        if (address == NULL) {
            return IRIS_ERR_BACKEND;
        }
        memcpy(table[i].to, &address, sizeof address);
    }
    return IRIS_OK;
}

static void close_library(void *pointer)
{
    struct rocblas *state = pointer;
    struct handle *next;

    for (struct handle *one = state->handles; one != NULL; one = next) {
        next = one->next;
        (void)state->call.destroy_handle(one->native);
        free(one);
    }
    pthread_mutex_destroy(&state->lock);
    free(state);
}

/* Creating the first handle shows whether the library works here. */
static iris_status_t open_library(int threads, void **state_p, char *why)
{
    void *library = iris_i_blas_find(&places, why);
    struct handle *first;
    struct rocblas *state;
    iris_status_t status;

    (void)threads;
    if (library == NULL) {
        return IRIS_ERR_BACKEND;
    }
    state = calloc(1, sizeof *state);
    if (state == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "no memory");
        return IRIS_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&state->lock, NULL);
    status = bind(state, library, why);
    status = status ? status : add_handle(state, NULL, &first, why);
    if (status != IRIS_OK) {
        close_library(state);
        return status;
    }
    *state_p = state;
    return IRIS_OK;
}

static void describe(void *pointer, char *text)
{
    const struct rocblas *state = pointer;
    const void *symbol;

    memcpy(&symbol, &state->call.gemm_ex, sizeof symbol);
    snprintf(text, IRIS_BLAS_WHY_BYTES, "rocBLAS in %.400s",
             iris_i_blas_path(symbol));
}

static int op_of(const struct iris_blas_columns *matrix)
{
    return matrix->is_transposed ? OP_TRANSPOSE : OP_NONE;
}

/* Whether the sizes fit into the library's ints. */
static int fits(const struct iris_blas_product *what,
                const struct iris_blas_operands *operands)
{
    return what->m <= INT32_MAX && operands->first.ld <= INT32_MAX &&
           operands->second.ld <= INT32_MAX && operands->out.ld <= INT32_MAX;
}

static iris_status_t product(void *pointer,
                             const struct iris_blas_product *what, void *stream,
                             char *why)
{
    const float alpha = 1, beta = what->adds ? 1 : 0;
    int type = what->dtype == IRIS_DTYPE_F16    ? TYPE_F16
               : what->dtype == IRIS_DTYPE_BF16 ? TYPE_BF16
                                                : TYPE_F32;
    struct rocblas *state = pointer;
    struct iris_blas_operands of;
    struct handle *handle;
    iris_status_t status = iris_i_blas_operands(what, &of, why);

    if (status == IRIS_OK && !fits(what, &of)) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "it counts in 32 bits");
        status = IRIS_ERR_UNSUPPORTED;
    }
    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&state->lock);
    status = handle_for(state, stream, &handle, why);
    if (status == IRIS_OK) {
        status = check(state->call.gemm_ex(
                           handle->native, op_of(&of.first), op_of(&of.second),
                           (int)what->n, (int)what->m, (int)what->k, &alpha,
                           of.first.data, type, (int)of.first.ld,
                           of.second.data, type, (int)of.second.ld, &beta,
                           what->out, type, (int)of.out.ld, what->out, type,
                           (int)of.out.ld, TYPE_F32, ALGORITHM_STANDARD, 0, 0),
                       "gemm_ex", why);
    }
    pthread_mutex_unlock(&state->lock);
    return status;
}

static const struct iris_blas blas = {
    .name = "rocblas",
    .on_gpu = 1,
    .describe = describe,
    .open = open_library,
    .close = close_library,
    .multiply = iris_i_blas_no_multiply,
    .product = product,
};

const struct iris_blas *iris_blas_module(const char *version);
__attribute__((visibility("default"))) const struct iris_blas *
iris_blas_module(const char *version)
{
    return strcmp(version, IRIS_BLAS_VERSION) == 0 ? &blas : NULL;
}
