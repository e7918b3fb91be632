/* SPDX-License-Identifier: MIT
 *
 * The module of cuBLASLt, NVIDIA's library of products. The module finds the
 * library at run time, so a build needs neither the library nor its headers. If
 * headers are present, the constants here are checked against them.
 */
#include "config.h"

#include "ops/internal.h"

#include <string.h>

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                    "libcublasLt.so", NULL};
static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", NULL};

/* Folders of toolkits, then of wheels that PyTorch installs, for CUDA 13 and
 * 12. */
static const char *const patterns[] = {
    "/usr/local/cuda/lib64",
    "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/cu*/lib",
    "$CONDA_PREFIX/lib",
    "$CONDA_PREFIX/lib/python3*/site-packages/nvidia/cu*/lib",
    "$HOME/.local/lib/python3*/site-packages/nvidia/cu*/lib",
    "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib",
    "/usr/lib/python3*/*-packages/nvidia/cu*/lib",
    NULL,
};

static const char *const status_names[] = {
    [1] = "CUBLAS_STATUS_NOT_INITIALIZED",
    [3] = "CUBLAS_STATUS_ALLOC_FAILED",
    [7] = "CUBLAS_STATUS_INVALID_VALUE",
    [8] = "CUBLAS_STATUS_ARCH_MISMATCH",
    [11] = "CUBLAS_STATUS_MAPPING_ERROR",
    [13] = "CUBLAS_STATUS_EXECUTION_FAILED",
    [14] = "CUBLAS_STATUS_INTERNAL_ERROR",
    [15] = "CUBLAS_STATUS_NOT_SUPPORTED",
    [16] = "CUBLAS_STATUS_LICENSE_ERROR",
};

/* Values of the enums in cublasLt.h, cublas_api.h and library_types.h. */
enum {
    TYPE_F32 = 0,
    TYPE_F16 = 2,
    TYPE_BF16 = 14,
    COMPUTE_F32 = 68,
    OP_NONE = 0,
    OP_TRANSPOSE = 1,
    DESC_TRANS_A = 3,
    DESC_TRANS_B = 4,
    DESC_EPILOGUE = 7,
    DESC_BIAS = 8,
    DESC_BIAS_TYPE = 26,
    EPILOGUE_BIAS = 4,
    PREF_WORKSPACE = 1,
    PREF_REDUCTION = 3,
    PREF_ALIGNMENT = 5, /* for A; the next ones are for B, C and D */
    REDUCTION_F32 = 2,
    NO_MEMORY = 3,
    INVALID = 7,
    UNSUPPORTED = 15,
    ALGORITHM_BYTES = 64,
    RESULT_BYTES = 96,
};

#if HAVE_CUBLASLT_H
#include <cublasLt.h>
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(TYPE_F32, CUDA_R_32F);
SAME(TYPE_F16, CUDA_R_16F);
SAME(TYPE_BF16, CUDA_R_16BF);
SAME(COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(OP_NONE, CUBLAS_OP_N);
SAME(OP_TRANSPOSE, CUBLAS_OP_T);
SAME(DESC_TRANS_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(DESC_TRANS_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(DESC_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(DESC_BIAS_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(PREF_ALIGNMENT, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(PREF_ALIGNMENT + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(PREF_ALIGNMENT + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(PREF_ALIGNMENT + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(PREF_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(REDUCTION_F32, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(NO_MEMORY, CUBLAS_STATUS_ALLOC_FAILED);
SAME(INVALID, CUBLAS_STATUS_INVALID_VALUE);
SAME(UNSUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(ALGORITHM_BYTES, sizeof(cublasLtMatmulAlgo_t));
SAME(RESULT_BYTES, sizeof(cublasLtMatmulHeuristicResult_t));
SAME(ALGORITHM_BYTES, offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(ALGORITHM_BYTES + sizeof(size_t),
     offsetof(cublasLtMatmulHeuristicResult_t, state));
#undef SAME
#endif
_Static_assert(RESULT_BYTES <= IRIS_LT_RESULT_BYTES, "a result");

static const struct iris_lt_dialect dialect = {
    .name = "cuBLASLt",
    .prefix = "cublasLt",
    .places = {names, variables, patterns},
    .num_handles = 1,
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
    .pref_alignment = {PREF_ALIGNMENT, PREF_ALIGNMENT + 1, PREF_ALIGNMENT + 2,
                       PREF_ALIGNMENT + 3},
    .pref_reduction = PREF_REDUCTION,
    .reduction_f32 = REDUCTION_F32,
    .status_no_memory = NO_MEMORY,
    .status_invalid = INVALID,
    .status_unsupported = UNSUPPORTED,
    .status_names = status_names,
    .num_statuses = sizeof status_names / sizeof status_names[0],
};

static iris_status_t open_cublaslt(int threads, void **state_p, char *why)
{
    (void)threads;
    return iris_i_lt_open(&dialect, state_p, why);
}

static const struct iris_blas blas = {
    .name = "cublaslt",
    .on_gpu = 1,
    .describe = iris_i_lt_describe,
    .open = open_cublaslt,
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
