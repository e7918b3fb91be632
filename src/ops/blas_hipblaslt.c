/* SPDX-License-Identifier: MIT
 *
 * The module of hipBLASLt, AMD's library of products with the calls of
 * cuBLASLt. The module finds the library at run time, so a build needs neither
 * the library nor its headers, which not every C compiler accepts.
 */
#include "config.h"

#include "ops/internal.h"

#include <string.h>

static const char *const names[] = {"libhipblaslt.so.1", "libhipblaslt.so.0",
                                    "libhipblaslt.so", NULL};
static const char *const variables[] = {"ROCM_PATH", "ROCM_HOME", NULL};

/* Folders of toolkits, then of PyTorch's wheel. */
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

static const char *const status_names[] = {
    [1] = "HIPBLAS_STATUS_NOT_INITIALIZED",
    [2] = "HIPBLAS_STATUS_ALLOC_FAILED",
    [3] = "HIPBLAS_STATUS_INVALID_VALUE",
    [4] = "HIPBLAS_STATUS_MAPPING_ERROR",
    [5] = "HIPBLAS_STATUS_EXECUTION_FAILED",
    [6] = "HIPBLAS_STATUS_INTERNAL_ERROR",
    [7] = "HIPBLAS_STATUS_NOT_SUPPORTED",
    [8] = "HIPBLAS_STATUS_ARCH_MISMATCH",
    [9] = "HIPBLAS_STATUS_HANDLE_IS_NULLPTR",
    [10] = "HIPBLAS_STATUS_INVALID_ENUM",
    [11] = "HIPBLAS_STATUS_UNKNOWN",
};

/* Values of the enums in hipblaslt.h, hipblas-common.h and library_types.h. */
enum {
    TYPE_F32 = 0,
    TYPE_F16 = 2,
    TYPE_BF16 = 14,
    COMPUTE_F32 = 2,
    OP_NONE = 111,
    OP_TRANSPOSE = 112,
    DESC_TRANS_A = 0,
    DESC_TRANS_B = 1,
    DESC_EPILOGUE = 2,
    DESC_BIAS = 3,
    DESC_BIAS_TYPE = 4,
    EPILOGUE_BIAS = 4,
    PREF_WORKSPACE = 1,
    NO_MEMORY = 2,
    INVALID = 3,
    UNSUPPORTED = 7,
    ALGORITHM_BYTES = 24,
    RESULT_BYTES = 56,
};

_Static_assert(RESULT_BYTES <= IRIS_LT_RESULT_BYTES, "a result");

static const struct iris_lt_dialect dialect = {
    .name = "hipBLASLt",
    .prefix = "hipblasLt",
    .places = {names, variables, patterns},
    /* Products of two streams by one handle wait for each other
     * (rocm-libraries #10951). */
    .num_handles = 8,
    .algorithm_bytes = ALGORITHM_BYTES,
    .type_f32 = TYPE_F32,
    .type_f16 = TYPE_F16,
    .type_bf16 = TYPE_BF16,
    .compute_f32 = COMPUTE_F32,
    .op_none = OP_NONE,
    .op_transpose = OP_TRANSPOSE,
    .desc_trans_a = DESC_TRANS_A,
    .desc_trans_b = DESC_TRANS_B,
    .desc_epilogue = DESC_EPILOGUE,
    .desc_bias = DESC_BIAS,
    .desc_bias_type = DESC_BIAS_TYPE,
    .epilogue_bias = EPILOGUE_BIAS,
    .pref_workspace = PREF_WORKSPACE,
    .pref_alignment = {-1, -1, -1, -1},
    /* Without a workspace, it adds parts of a sum only in f32 results. */
    .pref_reduction = -1,
    .status_no_memory = NO_MEMORY,
    .status_invalid = INVALID,
    .status_unsupported = UNSUPPORTED,
    .status_names = status_names,
    .num_statuses = sizeof status_names / sizeof status_names[0],
};

static iris_status_t open_hipblaslt(int threads, void **state_p, char *why)
{
    (void)threads;
    return iris_i_lt_open(&dialect, state_p, why);
}

static const struct iris_blas blas = {
    .name = "hipblaslt",
    .on_gpu = 1,
    .opens_apart = 1, /* rocm-libraries #11838 */
    .describe = iris_i_lt_describe,
    .open = open_hipblaslt,
    .close = iris_i_lt_close,
    .multiply = iris_i_blas_no_multiply,
    .product = iris_i_lt_product,
};

const struct iris_blas *iris_blas_module(const char *version);
__attribute__((visibility("default"))) const struct iris_blas *
iris_blas_module(const char *version)
{
    return strcmp(version, IRIS_BLAS_VERSION) == 0 ? &blas : NULL;
}
