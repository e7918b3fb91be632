/* SPDX-License-Identifier: MIT
 *
 * Cases of tensors: views, calls that read or write them, creation, DLPack.
 */
#include "config.h"

#include "fuzz/structs.h"

#include <iris/dlpack.h>

#include "tensor/internal.h"

#define EXPECT(call, status, right) fuzz_expect(fuzz, right, call, status)

static iris_shape_t shape_of(struct fuzz *fuzz)
{
    iris_shape_t shape = {.ndim = (int)fuzz_choose(fuzz, 5)};

    for (int i = 0; i < IRIS_TENSOR_DIMS_MAX; i++) {
        shape.sizes[i] = (int64_t)fuzz_choose(fuzz, 4);
    }
    if (fuzz_choose(fuzz, 3) == 0) {
        shape.ndim = (int)fuzz_edge(fuzz);
    }
    if (fuzz_choose(fuzz, 3) == 0) {
        shape.sizes[fuzz_choose(fuzz, IRIS_TENSOR_DIMS_MAX)] = fuzz_edge(fuzz);
    }
    return shape;
}

static int is_shape(const iris_shape_t *shape)
{
    int right = shape->ndim >= 0 && shape->ndim <= IRIS_TENSOR_DIMS_MAX;

    for (int i = 0; right && i < shape->ndim; i++) {
        right = shape->sizes[i] >= 0;
    }
    return right;
}

/* ---- Without a context ---- */

static iris_status_t take_view(struct fuzz *fuzz, const iris_tensor_t *tensor,
                               iris_tensor_t *view_p)
{
    int order[IRIS_TENSOR_DIMS_MAX];
    int64_t start = fuzz_edge(fuzz), stop = fuzz_edge(fuzz);

    for (int i = 0; i < IRIS_TENSOR_DIMS_MAX; i++) {
        order[i] = (int)fuzz_choose(fuzz, 10) - 2;
    }
    switch (fuzz_choose(fuzz, 5)) {
    case 0:
        return iris_tensor_slice(tensor, order[0], start, stop, fuzz_edge(fuzz),
                                 view_p);
    case 1:
        return iris_tensor_select(tensor, order[0], start, view_p);
    case 2:
        return iris_tensor_permute(
            tensor, fuzz_choose(fuzz, 8) == 0 ? NULL : order, view_p);
    case 3:
        return iris_tensor_reshape(tensor, shape_of(fuzz), view_p);
    default:
        return iris_tensor_reshape(tensor, IRIS_SHAPE(-1), view_p);
    }
}

/* What a right tensor gives is right, and lies where that is. */
void fuzz_views(struct fuzz *fuzz)
{
    iris_tensor_t tensor = fuzz_tensor(fuzz), view = {.ndim = -77};
    enum verdict verdict = fuzz_judge(fuzz, &tensor), seen;
    int none = fuzz_choose(fuzz, 16) == 0;
    iris_status_t status =
        take_view(fuzz, none ? NULL : &tensor, none ? &tensor : &view);

    if (status != IRIS_OK) {
        EXPECT("a view", status,
               status == IRIS_ERR_INVALID && view.ndim == -77);
    } else {
        seen = fuzz_judge(fuzz, &view);
        EXPECT("a view", status,
               !none && verdict != MALFORMED && seen != MALFORMED &&
                   (verdict != BLOCK || seen == BLOCK));
    }
    if (verdict == MALFORMED) {
        EXPECT("iris_tensor_is_contiguous", IRIS_OK,
               !iris_tensor_is_contiguous(&tensor, IRIS_FORMAT_CONTIGUOUS));
    }
    EXPECT("iris_tensor_numel", IRIS_OK,
           iris_tensor_numel(&tensor) >= 0 && iris_tensor_numel(NULL) == 0 &&
               iris_tensor_bytes(NULL) == 0 &&
               (verdict == MALFORMED ||
                iris_tensor_bytes(&tensor) <= PTRDIFF_MAX));
    status = iris_tensor_wrap(tensor.data, tensor.dtype, shape_of(fuzz), &view);
    EXPECT("iris_tensor_wrap", status,
           status == IRIS_ERR_INVALID ||
               (status == IRIS_OK && fuzz_judge(fuzz, &view) != MALFORMED));
}

/* ---- With one ---- */

/* Calls of this rank alone. */
static void call_alone(struct fuzz *fuzz, const iris_tensor_t *tensor,
                       enum verdict verdict)
{
    iris_tensor_t view, to = *tensor;
    char text[64];
    int symmetric = iris_tensor_is_symmetric(fuzz->iris, tensor);
    int rank = (int)fuzz_choose(fuzz, 4) - 1;
    iris_status_t status;

    EXPECT("iris_tensor_is_symmetric", IRIS_OK,
           fuzz_is_bad(verdict) || verdict == UNKNOWN ? !symmetric
           : verdict == ON_HEAP                       ? symmetric
                                                      : 1);
    status = iris_tensor_as_remote(fuzz->iris, tensor, rank, &view);
    if (!symmetric || iris_tensor_numel(tensor) != 0) {
        int is_rank = rank >= 0 && rank < iris_num_ranks(fuzz->iris);

        EXPECT("iris_tensor_as_remote", status,
               status == (symmetric && is_rank ? IRIS_OK : IRIS_ERR_INVALID));
    }
    if (!fuzz_is_bad(verdict) && verdict != BLOCK) {
        return;
    }
    status = iris_tensor_format(fuzz->iris, tensor, text, sizeof text, NULL);
    EXPECT("iris_tensor_format", status,
           status == (fuzz_is_bad(verdict) ? IRIS_ERR_INVALID : IRIS_OK));
    if (verdict == BLOCK && iris_tensor_numel(tensor) != 0) {
        iris_tensor_wrap(fuzz->host + FUZZ_BYTES / 2, tensor->dtype,
                         (iris_shape_t){.ndim = 0}, &to);
        for (int i = 0; i < tensor->ndim; i++) {
            to.shape[i] = tensor->shape[i];
        }
        to.ndim = tensor->ndim; /* with strides of 0 */
    }
    status = iris_tensor_copy(fuzz->iris, &to, tensor, NULL);
    EXPECT("iris_tensor_copy", status,
           status == (fuzz_is_bad(verdict) ? IRIS_ERR_INVALID : IRIS_OK));
    status = iris_stream_synchronize(fuzz->iris, NULL);
    EXPECT("iris_stream_synchronize", status, status == IRIS_OK);
}

/* Calls of all ranks. */
static void call_together(struct fuzz *fuzz, const iris_tensor_t *tensor,
                          enum verdict verdict)
{
    iris_tensor_t made = {.owner = NULL};
    iris_status_t status;

    if (fuzz_one_in(fuzz, 2)) {
        status = iris_zeros_like(fuzz->iris, tensor, NULL, &made);
        EXPECT("iris_zeros_like", status,
               verdict != MALFORMED || status == IRIS_ERR_INVALID);
    } else if (!fuzz_is_bad(verdict) && verdict != BLOCK) {
        return;
    } else {
        status = iris_tensor_as_symmetric(fuzz->iris, tensor, &made, NULL);
        EXPECT("iris_tensor_as_symmetric", status,
               !fuzz_is_bad(verdict) || status == IRIS_ERR_INVALID);
    }
    if (made.owner != NULL) {
        status = iris_tensor_free(fuzz->iris, &made);
        EXPECT("iris_tensor_free", status, status == IRIS_OK);
    }
}

void fuzz_tensor_calls(struct fuzz *fuzz)
{
    iris_tensor_t tensor = fuzz_tensor(fuzz);
    enum verdict verdict = fuzz_judge(fuzz, &tensor);

    if (fuzz_choose(fuzz, 2) == 0) {
        call_alone(fuzz, &tensor, verdict);
    } else {
        call_together(fuzz, &tensor, verdict);
    }
}

/* struct iris_tensor_options, iris_shape_t, struct iris_generator */
void fuzz_creation(struct fuzz *fuzz)
{
    union {
        struct iris_tensor_options known;
        char bytes[4096]; /* as of a newer header, at most */
    } options;
    iris_generator_t generator = {(uint64_t)fuzz_edge(fuzz), 0,
                                  (uint64_t)fuzz_edge(fuzz)};
    iris_shape_t shape = shape_of(fuzz);
    iris_tensor_t out = fuzz_tensor(fuzz), made = {.owner = NULL};
    int bad = !is_shape(&shape);
    iris_status_t status;

    memset(&options, 0, sizeof options);
    iris_tensor_options_init(&options.known);
    if (fuzz_choose(fuzz, 4) == 0) {
        options.known.size = (size_t)fuzz_edge(fuzz);
        bad |= options.known.size < sizeof options.known.size ||
               options.known.size > sizeof options ||
               options.known.size % sizeof(void *) != 0;
    }
    if (fuzz_choose(fuzz, 4) == 0) {
        options.known.format = (iris_memory_format_t)fuzz_edge(fuzz);
        bad |= options.known.size == sizeof options.known &&
               (unsigned)options.known.format > IRIS_FORMAT_CHANNELS_LAST_3D;
    }
    if (fuzz_choose(fuzz, 4) == 0 &&
        options.known.size == sizeof options.known &&
        (fuzz_is_bad(fuzz_judge(fuzz, &out)) ||
         fuzz_judge(fuzz, &out) == BLOCK)) {
        options.known.out = &out;
        bad |= fuzz_is_bad(fuzz_judge(fuzz, &out));
    }
    options.known.generator = &generator;
    status = fuzz_choose(fuzz, 2) == 0
                 ? iris_rand(fuzz->iris, shape, &options.known, &made)
                 : iris_ones(fuzz->iris, shape, &options.known, &made);
    EXPECT("creation", status, !bad || status == IRIS_ERR_INVALID);
    if (made.owner != NULL) {
        (void)iris_tensor_free(fuzz->iris, &made);
    }
    (void)iris_stream_synchronize(fuzz->iris, NULL);
}

/* ---- DLPack ---- */

static void import(struct fuzz *fuzz, struct DLManagedTensorVersioned *managed,
                   int bad)
{
    iris_tensor_t made = {.owner = NULL};
    iris_status_t status =
        iris_tensor_from_dlpack(fuzz->iris, managed, &made, NULL);

    EXPECT("iris_tensor_from_dlpack", status,
           !bad || status == IRIS_ERR_INVALID);
    if (made.owner != NULL) {
        (void)iris_tensor_free(fuzz->iris, &made);
    }
}

static void export(struct fuzz *fuzz, iris_tensor_t *tensor, int bad)
{
    struct DLManagedTensorVersioned *managed = NULL;
    iris_status_t status = iris_tensor_to_dlpack(fuzz->iris, tensor, &managed);

    EXPECT("iris_tensor_to_dlpack", status,
           status == (bad ? IRIS_ERR_INVALID : IRIS_OK));
    if (managed != NULL) {
        managed->deleter(managed);
    }
}

/* struct DLManagedTensorVersioned */
void fuzz_dlpack(struct fuzz *fuzz)
{
    static const struct dlpack_dtype bytes_of_i8 = {DLPACK_INT, 8, 1};
    iris_tensor_t tensor = fuzz_tensor(fuzz);
    struct DLManagedTensorVersioned managed = {.major = DLPACK_ABI_MAJOR};
    struct dlpack_tensor *own = &managed.tensor;
    enum verdict verdict;
    int bad = 0;

    if (fuzz_choose(fuzz, 3) == 0) {
        export(fuzz, &tensor, fuzz_judge(fuzz, &tensor) == MALFORMED);
        return;
    }
    tensor.dtype = IRIS_DTYPE_I8;
    verdict = fuzz_judge(fuzz, &tensor);
    if (!fuzz_is_bad(verdict) && verdict != BLOCK) {
        return;
    }
    own->data = tensor.data;
    own->device_type = DLPACK_CPU;
    own->ndim = tensor.ndim;
    own->dtype = bytes_of_i8;
    own->shape = tensor.shape;
    own->strides = tensor.strides;
    switch (fuzz_choose(fuzz, 6)) {
    case 0:
        own->shape = NULL;
        bad = own->ndim != 0;
        break;
    case 1:
        own->dtype.bits = (uint8_t)fuzz_edge(fuzz);
        own->dtype.lanes = (uint16_t)(2 + fuzz_choose(fuzz, 9));
        bad = 1;
        break;
    case 2:
        own->device_type = 77;
        bad = 1;
        break;
    case 3:
        own->byte_offset = UINT64_MAX - fuzz_choose(fuzz, 2);
        bad = own->data != NULL; /* else it has no elements, or is bad */
        break;
    default:
        break;
    }
    import(fuzz, &managed, bad || fuzz_is_bad(verdict));
}
