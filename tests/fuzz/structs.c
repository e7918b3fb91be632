/* SPDX-License-Identifier: MIT
 *
 * What all cases share: choices, the tensors and the verdict about them.
 */
#include "config.h"

#include "fuzz/structs.h"

#include <iris/constants.h>

__extension__ typedef __int128 wide;

#define SPAN_MAX (INT64_MAX / 2) /* bytes that a tensor spans at most */
#define PATIENCE 4096            /* elements */

int fuzz_open(struct fuzz *fuzz, iris_t *iris)
{
    struct iris_heap_stats stats;
    void *block;

    memset(fuzz, 0, sizeof *fuzz);
    if (iris_heap_stats(iris, &stats) != IRIS_OK ||
        iris_calloc(iris, 1, FUZZ_BYTES, &block) != IRIS_OK ||
        posix_memalign((void **)&fuzz->host, 256, FUZZ_BYTES) != 0) {
        return 1;
    }
    memset(fuzz->host, 0, FUZZ_BYTES);
    fuzz->iris = iris;
    fuzz->block = block;
    fuzz->heap = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];
    fuzz->heap_bytes = stats.heap_bytes;
    return 0;
}

void fuzz_close(struct fuzz *fuzz)
{
    (void)iris_free(fuzz->iris, fuzz->block);
    free(fuzz->host);
}

void fuzz_expect(struct fuzz *fuzz, int right, const char *call,
                 iris_status_t status)
{
    if (!right) {
        fuzz->failures++;
        fprintf(stderr, "%s: wrong, with %s; last message: %s\n", call,
                iris_status_string(status), iris_last_error());
    }
}

unsigned fuzz_choose(struct fuzz *fuzz, unsigned count)
{
    return (unsigned)(input_number(&fuzz->input, 2) % count);
}

int64_t fuzz_edge(struct fuzz *fuzz)
{
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    8,
                                    9,
                                    -8,
                                    255,
                                    4096,
                                    INT32_MIN,
                                    INT32_MAX,
                                    INT64_MIN,
                                    INT64_MAX,
                                    INT64_MIN + 1,
                                    (int64_t)1 << 40,
                                    (int64_t)1 << 60,
                                    (int64_t)1 << 61,
                                    (int64_t)1 << 62,
                                    -((int64_t)1 << 62),
                                    99};
    unsigned at = fuzz_choose(fuzz, 2 * sizeof edges / sizeof edges[0]);

    return at < sizeof edges / sizeof edges[0]
               ? edges[at]
               : (int64_t)input_number(&fuzz->input, 1 + at % 8);
}

/* ---- Tensors ---- */

/* Sizes and dtype. Returns whether they are right, and how many elements. */
static int judge_shape(const iris_tensor_t *tensor, wide *numel_p)
{
    wide most = 1; /* with sizes of 0 counted as 1 */

    *numel_p = 1;
    if (tensor->ndim < 0 || tensor->ndim > IRIS_TENSOR_DIMS_MAX ||
        iris_dtype_size(tensor->dtype) == 0) {
        return 0;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0) {
            return 0;
        }
        *numel_p *= tensor->shape[i];
        most *= tensor->shape[i] > 1 ? tensor->shape[i] : 1;
        if (most > SPAN_MAX) {
            return 0;
        }
    }
    return most * (wide)iris_dtype_size(tensor->dtype) <= SPAN_MAX;
}

static enum verdict judge_place(const struct fuzz *fuzz, wide first, wide end)
{
    wide heap = (wide)(uintptr_t)fuzz->heap;
    wide heap_end = heap + (wide)fuzz->heap_bytes;
    wide block = (wide)(uintptr_t)fuzz->block;
    wide host = (wide)(uintptr_t)fuzz->host;

    if ((first >= block && end <= block + FUZZ_BYTES) ||
        (first >= host && end <= host + FUZZ_BYTES)) {
        return BLOCK;
    }
    if (first < heap - HEAP_AHEAD || first > heap_end) {
        return UNKNOWN;
    }
    return first >= heap && end <= heap_end ? ON_HEAP : LEAVES;
}

enum verdict fuzz_judge(const struct fuzz *fuzz, const iris_tensor_t *tensor)
{
    size_t width = iris_dtype_size(tensor->dtype);
    wide numel, low = 0, high = 1, data = (wide)(uintptr_t)tensor->data;
    enum verdict verdict;

    if (!judge_shape(tensor, &numel)) {
        return MALFORMED;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        wide reach = tensor->shape[i] < 2
                         ? 0
                         : (wide)(tensor->shape[i] - 1) * tensor->strides[i];

        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    low *= (wide)width;
    high *= (wide)width;
    if (high - low > SPAN_MAX) {
        return MALFORMED;
    }
    if (numel == 0) {
        return BLOCK; /* touches nothing */
    }
    if (data == 0 || data % (wide)(width < 8 ? width : 8) != 0 ||
        data + low < 0 || data + high > (wide)UINTPTR_MAX) {
        return MALFORMED;
    }
    verdict = judge_place(fuzz, data + low, data + high);
    return verdict == BLOCK && numel > PATIENCE ? ENDLESS : verdict;
}

void *fuzz_place(struct fuzz *fuzz, void *data)
{
    switch (fuzz_choose(fuzz, 9)) {
    case 0:
        return NULL;
    case 1:
        return (void *)((uintptr_t)data + 1 + fuzz_choose(fuzz, 8));
    case 2:
        return fuzz->heap + fuzz->heap_bytes;
    case 3:
        return fuzz->heap + fuzz->heap_bytes - 8 * (1 + fuzz_choose(fuzz, 16));
    case 4:
        return fuzz->heap - 8 * (1 + fuzz_choose(fuzz, 16));
    case 5:
        return (void *)(UINTPTR_MAX - 7);
    case 6:
        return fuzz->heap;
    case 7:
        return fuzz->host + FUZZ_BYTES - 8;
    default:
        return fuzz->block + 8 * fuzz_choose(fuzz, FUZZ_BYTES / 8);
    }
}

void fuzz_spoil(struct fuzz *fuzz, iris_tensor_t *tensor)
{
    int dim = (int)fuzz_choose(fuzz, IRIS_TENSOR_DIMS_MAX);

    if (tensor->ndim > 0 && tensor->ndim <= IRIS_TENSOR_DIMS_MAX) {
        dim %= tensor->ndim;
    }
    switch (fuzz_choose(fuzz, 5)) {
    case 0:
        tensor->ndim = (int)fuzz_edge(fuzz);
        break;
    case 1:
        tensor->dtype = (iris_dtype_t)fuzz_edge(fuzz);
        break;
    case 2:
        tensor->shape[dim] = fuzz_edge(fuzz);
        break;
    case 3:
        tensor->strides[dim] = fuzz_edge(fuzz);
        break;
    default:
        tensor->data = fuzz_place(fuzz, tensor->data);
        break;
    }
}

/* Contiguous in a block, at most 4 * 4 * 4 elements of 16 bytes. */
iris_tensor_t fuzz_tensor(struct fuzz *fuzz)
{
    iris_tensor_t tensor;
    int64_t stride = 1;
    unsigned spoilt = fuzz_choose(fuzz, 4);

    memset(&tensor, 0, sizeof tensor);
    tensor.data = fuzz_choose(fuzz, 3) == 0 ? fuzz->host : fuzz->block;
    tensor.dtype = (iris_dtype_t)fuzz_choose(fuzz, IRIS_DTYPE_COMPLEX128 + 1);
    tensor.ndim = (int)fuzz_choose(fuzz, 4);
    for (int i = tensor.ndim - 1; i >= 0; i--) {
        tensor.shape[i] = (int64_t)fuzz_choose(fuzz, 5);
        tensor.strides[i] = stride;
        stride *= tensor.shape[i] > 1 ? tensor.shape[i] : 1;
    }
    for (unsigned i = 0; i < spoilt; i++) {
        fuzz_spoil(fuzz, &tensor);
    }
    return tensor;
}

/* ---- Cases ---- */

int fuzz_one_in(struct fuzz *fuzz, unsigned count)
{
    return fuzz_choose(fuzz, count) == 0;
}

int fuzz_is_bad(enum verdict verdict)
{
    return verdict == MALFORMED || verdict == LEAVES;
}

/* Of two; what nobody may touch counts most. */
enum verdict fuzz_worse(enum verdict one, enum verdict other)
{
    if ((!fuzz_is_bad(one) && one != BLOCK) ||
        (!fuzz_is_bad(other) && other != BLOCK)) {
        return UNKNOWN;
    }
    return fuzz_is_bad(one) ? one : other;
}

void fuzz_wait(struct fuzz *fuzz)
{
    iris_status_t status = iris_stream_synchronize(fuzz->iris, NULL);

    fuzz_expect(fuzz, status == IRIS_OK, "iris_stream_synchronize", status);
}

/* A buffer of `count` elements as a tensor. */
iris_tensor_t fuzz_buffer(void *data, iris_dtype_t dtype, int64_t count)
{
    iris_tensor_t tensor = {.data = data,
                            .dtype = dtype,
                            .ndim = 1,
                            .shape = {count},
                            .strides = {1}};

    return tensor;
}

void fuzz_case(struct fuzz *fuzz, const uint8_t *data, size_t size)
{
    static void (*const cases[])(struct fuzz *) = {
        fuzz_views,  fuzz_tensor_calls, fuzz_creation, fuzz_dlpack,
        fuzz_ops,    fuzz_ccl,          fuzz_launch,   fuzz_groups,
        fuzz_config, fuzz_trace,        fuzz_values,   fuzz_streams,
        fuzz_views,  fuzz_tensor_calls, fuzz_ops,      fuzz_dlpack,
        fuzz_plans};

    fuzz->input = (struct input){data, size};
    cases[fuzz_choose(fuzz, sizeof cases / sizeof cases[0])](fuzz);
}
