/* SPDX-License-Identifier: MIT
 *
 * The fake cuBLASLt, or with FAKEBLAS_HIP the fake hipBLASLt.
 */
#include "config.h"

#include "fakeblas.h"
#include "fakehip/fakehip.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The values and sizes are as the libraries' headers have them. */
#ifdef FAKEBLAS_HIP
#define CALL(name) hipblasLt##name
#define ONE_STREAM 1 /* that may use a handle */
enum {
    COMPUTE_32F = 2,
    OP_N = 111,
    OP_T = 112,
    TRANSA = 0,
    TRANSB = 1,
    EPILOGUE = 2,
    BIAS_POINTER = 3,
    BIAS_TYPE = 4,
    MAX_WORKSPACE = 1,
    REDUCTIONS = 99, /* there is none */
    ALIGNMENT = 100, /* nor this */
    INVALID = 3,
    EXECUTION_FAILED = 5,
    NOT_SUPPORTED = 7,
    ALGORITHM_WORDS = 3,
};
#else
#define CALL(name) cublasLt##name
#define ONE_STREAM 0
enum {
    COMPUTE_32F = 68,
    OP_N = 0,
    OP_T = 1,
    TRANSA = 3,
    TRANSB = 4,
    EPILOGUE = 7,
    BIAS_POINTER = 8,
    BIAS_TYPE = 26,
    MAX_WORKSPACE = 1,
    REDUCTIONS = 3,
    ALIGNMENT = 5,
    INVALID = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15,
    ALGORITHM_WORDS = 8,
};
#endif

struct layout {
    int type;
    uint64_t rows;
    uint64_t cols;
    int64_t ld;
};

struct handle {
    void *stream; /* of its first product */
};

struct desc {
    int op_a;
    int op_b;
    int epilogue;
    int bias_type;
    const void *bias;
};

struct preference {
    uint64_t workspace;
    uint32_t alignment[4];
    uint32_t reductions;
};

struct algorithm {
    uint64_t data[ALGORITHM_WORDS];
};

struct result {
    struct algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

/* ---- Handles and descriptors ---- */

static int make(const char *call, void **object_p, size_t bytes)
{
    int status = fakeblas_fails(call);

    if (status == 0) {
        *object_p = calloc(1, bytes);
        atomic_fetch_add(&fakeblas.live, 1);
    }
    return status;
}

static int drop(void *object)
{
    atomic_fetch_sub(&fakeblas.live, 1);
    free(object);
    return 0;
}

FAKEBLAS_EXPORT int CALL(Create)(void **handle);
int CALL(Create)(void **handle)
{
    struct fakehip_counts counts;

    fakehip_count(&counts);
    if (ONE_STREAM && counts.captures > 0) {
        exit(EXIT_FAILURE); /* as hipBLASLt does */
    }
    return make("Create", handle, sizeof(struct handle));
}

FAKEBLAS_EXPORT int CALL(Destroy)(void *handle);
int CALL(Destroy)(void *handle)
{
    return drop(handle);
}

FAKEBLAS_EXPORT int CALL(MatrixLayoutCreate)(void **layout_p, int type,
                                             uint64_t rows, uint64_t cols,
                                             int64_t ld);
int CALL(MatrixLayoutCreate)(void **layout_p, int type, uint64_t rows,
                             uint64_t cols, int64_t ld)
{
    struct layout layout = {type, rows, cols, ld};
    int status = make("MatrixLayoutCreate", layout_p, sizeof layout);

    if (status == 0) {
        *(struct layout *)*layout_p = layout;
    }
    return status;
}

FAKEBLAS_EXPORT int CALL(MatrixLayoutDestroy)(void *layout);
int CALL(MatrixLayoutDestroy)(void *layout)
{
    return drop(layout);
}

FAKEBLAS_EXPORT int CALL(MatmulDescCreate)(void **desc_p, int compute,
                                           int scale);
int CALL(MatmulDescCreate)(void **desc_p, int compute, int scale)
{
    struct desc desc = {OP_N, OP_N, 1, -1, NULL};
    int status;

    if (compute != COMPUTE_32F || scale != 0) {
        return INVALID;
    }
    status = make("MatmulDescCreate", desc_p, sizeof desc);
    if (status == 0) {
        *(struct desc *)*desc_p = desc;
    }
    return status;
}

FAKEBLAS_EXPORT int CALL(MatmulDescDestroy)(void *desc);
int CALL(MatmulDescDestroy)(void *desc)
{
    return drop(desc);
}

FAKEBLAS_EXPORT int CALL(MatmulDescSetAttribute)(void *desc, int attribute,
                                                 const void *value,
                                                 size_t bytes);
int CALL(MatmulDescSetAttribute)(void *desc, int attribute, const void *value,
                                 size_t bytes)
{
    struct desc *to = desc;
    void *fields[] = {&to->op_a, &to->op_b, &to->epilogue, &to->bias_type,
                      &to->bias};
    static const int attributes[] = {TRANSA, TRANSB, EPILOGUE, BIAS_TYPE,
                                     BIAS_POINTER};
    int status = fakeblas_fails("MatmulDescSetAttribute");

    for (int i = 0; i < 5 && status == 0; i++) {
        if (attributes[i] == attribute &&
            bytes == (i < 4 ? 4 : sizeof(void *))) {
            memcpy(fields[i], value, bytes);
            return 0;
        }
    }
    return status != 0 ? status : INVALID;
}

/* ---- Algorithms ---- */

FAKEBLAS_EXPORT int CALL(MatmulPreferenceCreate)(void **pref_p);
int CALL(MatmulPreferenceCreate)(void **pref_p)
{
    int status =
        make("MatmulPreferenceCreate", pref_p, sizeof(struct preference));

    if (status == 0) { /* all schemes are allowed, as in the real library */
        ((struct preference *)*pref_p)->reductions = 7;
    }
    return status;
}

FAKEBLAS_EXPORT int CALL(MatmulPreferenceDestroy)(void *pref);
int CALL(MatmulPreferenceDestroy)(void *pref)
{
    return drop(pref);
}

FAKEBLAS_EXPORT int CALL(MatmulPreferenceSetAttribute)(void *pref,
                                                       int attribute,
                                                       const void *value,
                                                       size_t bytes);
int CALL(MatmulPreferenceSetAttribute)(void *pref, int attribute,
                                       const void *value, size_t bytes)
{
    struct preference *to = pref;

    if (attribute == MAX_WORKSPACE && bytes == sizeof to->workspace) {
        memcpy(&to->workspace, value, bytes);
        return 0;
    }
    if (attribute == REDUCTIONS && bytes == sizeof to->reductions) {
        memcpy(&to->reductions, value, bytes);
        return 0;
    }
    if (attribute >= ALIGNMENT && attribute < ALIGNMENT + 4 &&
        bytes == sizeof to->alignment[0]) {
        memcpy(&to->alignment[attribute - ALIGNMENT], value, bytes);
        return 0;
    }
    return INVALID;
}

/* Sizes that fit together, of one type. */
static int is_valid(const struct desc *desc, const struct layout *a,
                    const struct layout *b, const struct layout *d)
{
    uint64_t m = desc->op_a == OP_N ? a->rows : a->cols;
    uint64_t k = desc->op_a == OP_N ? a->cols : a->rows;
    uint64_t n = desc->op_b == OP_N ? b->cols : b->rows;
    uint64_t depth = desc->op_b == OP_N ? b->rows : b->cols;

    return (desc->op_a == OP_N || desc->op_a == OP_T) &&
           (desc->op_b == OP_N || desc->op_b == OP_T) && k == depth &&
           m == d->rows && n == d->cols && a->ld >= (int64_t)a->rows &&
           b->ld >= (int64_t)b->rows && d->ld >= (int64_t)d->rows &&
           a->type == d->type && b->type == d->type &&
           (desc->epilogue == 1 ||
            (desc->epilogue == 4 && desc->bias_type == d->type));
}

FAKEBLAS_EXPORT int CALL(MatmulAlgoGetHeuristic)(void *handle, void *desc,
                                                 void *a, void *b, void *c,
                                                 void *d, void *pref, int want,
                                                 struct result *results,
                                                 int *num_p);
int CALL(MatmulAlgoGetHeuristic)(void *handle, void *desc, void *a, void *b,
                                 void *c, void *d, void *pref, int want,
                                 struct result *results, int *num_p)
{
    int status = fakeblas_fails("MatmulAlgoGetHeuristic");

    if (status != 0) {
        return status;
    }
    if (handle == NULL || want < 1 || c == NULL || !is_valid(desc, a, b, d)) {
        return INVALID;
    }
    if (fakeblas_has_none()) {
        *num_p = 0;
        return NOT_SUPPORTED;
    }
    fakeblas.workspaces += ((struct preference *)pref)->workspace > 0;
    memset(results, 0, sizeof *results);
    results->algorithm.data[0] = (uint64_t)++fakeblas.heuristics;
    results->algorithm.data[1] = ((struct layout *)d)->cols;
    results->algorithm.data[2] = ((struct preference *)pref)->reductions;
    *num_p = 1;
    return 0;
}

/* hipBLASLt: products of two streams by one handle deadlock. */
static int may_use(struct handle *handle, void *stream)
{
    if (handle->stream == NULL) {
        handle->stream = stream;
    }
    return !ONE_STREAM || handle->stream == stream;
}

FAKEBLAS_EXPORT int
    CALL(Matmul)(void *handle, void *desc, const float *alpha, const void *a,
                 void *a_layout, const void *b, void *b_layout,
                 const float *beta, const void *c, void *c_layout, void *d,
                 void *d_layout, const struct algorithm *algorithm,
                 void *workspace, size_t workspace_bytes, void *stream);
int CALL(Matmul)(void *handle, void *desc, const float *alpha, const void *a,
                 void *a_layout, const void *b, void *b_layout,
                 const float *beta, const void *c, void *c_layout, void *d,
                 void *d_layout, const struct algorithm *algorithm,
                 void *workspace, size_t workspace_bytes, void *stream)
{
    const struct desc *how = desc;
    const struct layout *la = a_layout, *lb = b_layout, *lc = c_layout,
                        *ld = d_layout;
    int status = fakeblas_fails("Matmul");
    struct fakeblas_product product = {
        .a = a,
        .b = b,
        .c = c,
        .d = d,
        .bias = how->epilogue == 4 ? how->bias : NULL,
        .m = (int64_t)ld->rows,
        .n = (int64_t)ld->cols,
        .k = (int64_t)(how->op_a == OP_N ? la->cols : la->rows),
        .lda = la->ld,
        .ldb = lb->ld,
        .ldc = lc->ld,
        .ldd = ld->ld,
        .trans_a = how->op_a == OP_T,
        .trans_b = how->op_b == OP_T,
        .alpha = *alpha,
        .beta = *beta,
        .element = ld->type == 0   ? 4
                   : ld->type == 2 ? 2
                                   : 3};

    if (status != 0) {
        return status;
    }
    if (handle == NULL || !may_use(handle, stream) ||
        !is_valid(how, la, lb, ld) || algorithm->data[0] == 0 ||
        algorithm->data[0] > (uint64_t)fakeblas.heuristics) {
        return INVALID;
    }
    fakeblas_load(algorithm->data[0]);
    fakeblas.workspaces += workspace != NULL || workspace_bytes != 0;
    fakeblas.algorithm = (int)algorithm->data[0];
    fakeblas.rows = (int)algorithm->data[1];
    fakeblas.reductions = (int)algorithm->data[2];
    return fakeblas_enqueue(&product, stream) ? 0 : EXECUTION_FAILED;
}
