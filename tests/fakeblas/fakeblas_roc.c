/* SPDX-License-Identifier: MIT
 *
 * The fake rocBLAS.
 */
#include "config.h"

#include "fakeblas.h"

#include <stdatomic.h>
#include <stdlib.h>

/* As in rocblas-types.h. */
enum {
    NONE = 111,
    TRANSPOSE = 112,
    F16 = 150,
    F32 = 151,
    BF16 = 168,
    NOT_IMPLEMENTED = 2,
    INVALID_SIZE = 4,
    INTERNAL_ERROR = 6,
    INVALID_VALUE = 11,
};

struct handle {
    void *stream;
    int atomics; /* rocBLAS allows them at first */
};

FAKEBLAS_EXPORT int rocblas_create_handle(void **handle_p);
int rocblas_create_handle(void **handle_p)
{
    int status = fakeblas_fails("create_handle");
    struct handle *handle;

    if (status == 0) {
        handle = calloc(1, sizeof *handle);
        handle->atomics = 1;
        *handle_p = handle;
        atomic_fetch_add(&fakeblas.live, 1);
    }
    return status;
}

FAKEBLAS_EXPORT int rocblas_destroy_handle(void *handle);
int rocblas_destroy_handle(void *handle)
{
    atomic_fetch_sub(&fakeblas.live, 1);
    free(handle);
    return 0;
}

FAKEBLAS_EXPORT int rocblas_set_stream(struct handle *handle, void *stream);
int rocblas_set_stream(struct handle *handle, void *stream)
{
    handle->stream = stream;
    return fakeblas_fails("set_stream");
}

FAKEBLAS_EXPORT int rocblas_set_atomics_mode(struct handle *handle, int mode);
int rocblas_set_atomics_mode(struct handle *handle, int mode)
{
    handle->atomics = mode;
    return fakeblas_fails("set_atomics_mode");
}

static int is_valid(const struct fakeblas_product *p)
{
    return p->lda >= (p->trans_a ? p->k : p->m) &&
           p->ldb >= (p->trans_b ? p->n : p->k) && p->ldc >= p->m &&
           p->ldd >= p->m;
}

FAKEBLAS_EXPORT int rocblas_gemm_ex(struct handle *handle, int op_a, int op_b,
                                    int m, int n, int k, const float *alpha,
                                    const void *a, int a_type, int lda,
                                    const void *b, int b_type, int ldb,
                                    const float *beta, const void *c,
                                    int c_type, int ldc, void *d, int d_type,
                                    int ldd, int compute, int algorithm,
                                    int32_t solution, uint32_t flags);
int rocblas_gemm_ex(struct handle *handle, int op_a, int op_b, int m, int n,
                    int k, const float *alpha, const void *a, int a_type,
                    int lda, const void *b, int b_type, int ldb,
                    const float *beta, const void *c, int c_type, int ldc,
                    void *d, int d_type, int ldd, int compute, int algorithm,
                    int32_t solution, uint32_t flags)
{
    struct fakeblas_product product = {.a = a,
                                       .b = b,
                                       .c = c,
                                       .d = d,
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .lda = lda,
                                       .ldb = ldb,
                                       .ldc = ldc,
                                       .ldd = ldd,
                                       .trans_a = op_a == TRANSPOSE,
                                       .trans_b = op_b == TRANSPOSE,
                                       .alpha = *alpha,
                                       .beta = *beta,
                                       .element = d_type == F32   ? 4
                                                  : d_type == F16 ? 2
                                                                  : 3};
    int status = fakeblas_fails("gemm_ex");

    if (status != 0 || fakeblas_has_none()) {
        return status != 0 ? status : NOT_IMPLEMENTED;
    }
    if ((op_a != NONE && op_a != TRANSPOSE) ||
        (op_b != NONE && op_b != TRANSPOSE) || a_type != d_type ||
        b_type != d_type || c_type != d_type ||
        (d_type != F16 && d_type != F32 && d_type != BF16) || compute != F32 ||
        algorithm != 0 || solution != 0 || flags != 0 || handle->atomics) {
        return INVALID_VALUE;
    }
    if (!is_valid(&product)) {
        return INVALID_SIZE;
    }
    return fakeblas_enqueue(&product, handle->stream) ? 0 : INTERNAL_ERROR;
}
