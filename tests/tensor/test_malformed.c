/* SPDX-License-Identifier: MIT
 *
 * Malformed tensors, one by one: every call with a tensor names the argument
 * and says what is wrong. tests/fuzz/test_structs has them in all mixtures.
 */
#include "config.h"

#include "support/harness.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/dlpack.h>

#include <stdlib.h>
#include <string.h>

/* A good matrix of f32 on the heap, and what is wrong with a copy of it. */
struct bad {
    const char *what; /* part of the message */
    void (*spoil)(iris_tensor_t *tensor);
};

static void no_memory(iris_tensor_t *tensor)
{
    tensor->data = NULL;
}

static void misaligned(iris_tensor_t *tensor)
{
    tensor->data = (char *)tensor->data + 2;
}

static void many_dimensions(iris_tensor_t *tensor)
{
    tensor->ndim = IRIS_TENSOR_DIMS_MAX + 1;
}

static void negative_dimensions(iris_tensor_t *tensor)
{
    tensor->ndim = -1;
}

static void no_dtype(iris_tensor_t *tensor)
{
    tensor->dtype = (iris_dtype_t)99;
}

static void negative_size(iris_tensor_t *tensor)
{
    tensor->shape[1] = -1;
}

static void many_elements(iris_tensor_t *tensor)
{
    tensor->shape[0] = tensor->shape[1] = (int64_t)1 << 32;
}

static void many_elements_and_none(iris_tensor_t *tensor)
{
    tensor->ndim = 3;
    tensor->shape[0] = tensor->shape[2] = (int64_t)1 << 32;
    tensor->shape[1] = 0;
    tensor->strides[2] = 1;
}

/* 4 times 2^62 elements is 0 in 64 bits. */
static void wrapping_stride(iris_tensor_t *tensor)
{
    tensor->shape[0] = 5;
    tensor->strides[0] = (int64_t)1 << 62;
}

static void lowest_stride(iris_tensor_t *tensor)
{
    tensor->strides[0] = INT64_MIN;
}

static void end_of_addresses(iris_tensor_t *tensor)
{
    tensor->data = (void *)(UINTPTR_MAX - 7);
}

static const struct bad bads[] = {
    {"data is NULL", no_memory},
    {"is not aligned to elements of f32", misaligned},
    {"has 9 dimensions; pass 0 to 8", many_dimensions},
    {"has -1 dimensions; pass 0 to 8", negative_dimensions},
    {"has dtype 99, which does not exist", no_dtype},
    {"has size -1; pass 0 or more", negative_size},
    {"more elements of 4 bytes than memory can hold", many_elements},
    {"more elements of 4 bytes than memory can hold", many_elements_and_none},
    {"span more than the address space", wrapping_stride},
    {"span more than the address space", lowest_stride},
    {"beyond the address space", end_of_addresses},
};

#define REFUSED(call, name)                   \
    do {                                      \
        CHECK_STATUS(call, IRIS_ERR_INVALID); \
        CHECK_MESSAGE(bad->what);             \
        CHECK_MESSAGE(name);                  \
    } while (0)

static int refuse_views(const struct bad *bad, const iris_tensor_t *tensor)
{
    const int order[IRIS_TENSOR_DIMS_MAX] = {1, 0};
    iris_tensor_t view = {.ndim = 5};

    REFUSED(iris_tensor_slice(tensor, 0, 0, 1, 1, &view), "tensor");
    REFUSED(iris_tensor_select(tensor, 0, 0, &view), "tensor");
    REFUSED(iris_tensor_permute(tensor, order, &view), "tensor");
    REFUSED(iris_tensor_reshape(tensor, IRIS_SHAPE(-1), &view), "tensor");
    CHECK_EQUAL(view.ndim, 5);
    CHECK(!iris_tensor_is_contiguous(tensor, IRIS_FORMAT_CONTIGUOUS));
    CHECK(iris_tensor_numel(tensor) >= 0);
    CHECK(iris_tensor_bytes(tensor) <= PTRDIFF_MAX);
    return 0;
}

static int refuse_calls(iris_t *iris, const struct bad *bad,
                        const iris_tensor_t *good, iris_tensor_t *tensor)
{
    struct DLManagedTensorVersioned *managed = NULL;
    struct iris_tensor_options options;
    iris_tensor_t made = {.ndim = 5};
    char text[8];

    iris_tensor_options_init(&options);
    options.out = tensor;
    REFUSED(iris_zeros(iris, IRIS_SHAPE(2, 3), &options, &made), "output");
    REFUSED(iris_zeros_like(iris, tensor, NULL, &made), "like");
    CHECK(!iris_tensor_is_symmetric(iris, tensor));
    REFUSED(iris_tensor_as_remote(iris, tensor, 0, &made), "tensor");
    REFUSED(iris_tensor_as_symmetric(iris, tensor, &made, NULL), "tensor");
    REFUSED(iris_tensor_copy(iris, good, tensor, NULL), "from");
    REFUSED(iris_tensor_copy(iris, tensor, good, NULL), "to");
    REFUSED(iris_tensor_format(iris, tensor, text, sizeof text, NULL),
            "tensor");
    REFUSED(iris_tensor_to_dlpack(iris, tensor, &managed), "tensor");
    REFUSED(iris_matmul_all_reduce(iris, tensor, good, good, NULL), "a");
    REFUSED(iris_matmul_all_gather(iris, good, tensor, good, NULL), "b");
    REFUSED(iris_all_gather_matmul(iris, good, good, tensor, NULL), "out");
    CHECK(managed == NULL);
    CHECK_EQUAL(made.ndim, 5);
    return 0;
}

static RANK_TEST(every_call_refuses_a_malformed_tensor, 2)
{
    iris_tensor_t good, tensor;

    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(2, 3), NULL, &good));
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        tensor = good;
        bads[i].spoil(&tensor);
        CHECK_EQUAL(refuse_views(&bads[i], &tensor), 0);
        CHECK_EQUAL(refuse_calls(iris, &bads[i], &good, &tensor), 0);
    }
    return iris_tensor_free(iris, &good) != IRIS_OK;
}

/* ---- Memory at the edges of a heap ---- */

static iris_tensor_t matrix_at(char *data)
{
    iris_tensor_t tensor = {.data = data,
                            .dtype = IRIS_DTYPE_F32,
                            .ndim = 2,
                            .shape = {4, 4},
                            .strides = {4, 1}};

    return tensor;
}

static int refuse_edges(iris_t *iris, void *arg)
{
    char *base = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];
    struct iris_heap_stats stats;
    iris_tensor_t good, result;
    iris_tensor_t edges[4];

    CPU_ONLY(iris, "nothing is known of what is ahead of a GPU's heap");
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4, 4), NULL, &good));
    edges[0] = matrix_at(base - 64); /* up to the heap */
    edges[1] = matrix_at(base - 8);  /* into it */
    edges[2] = matrix_at(base + stats.heap_bytes - 8);
    edges[3] = matrix_at(base + stats.heap_bytes);
    for (int i = 0; i < 4; i++) {
        const iris_tensor_t *edge = &edges[i];

        CHECK_STATUS(iris_tensor_copy(iris, &good, edge, NULL),
                     IRIS_ERR_INVALID);
        CHECK_MESSAGE(i < 2 ? "ahead of rank" : "past the end of rank");
        CHECK_STATUS(iris_tensor_as_symmetric(iris, edge, &result, NULL),
                     IRIS_ERR_INVALID);
        CHECK_STATUS(iris_matmul_all_reduce(iris, edge, &good, &good, NULL),
                     IRIS_ERR_INVALID);
        CHECK_MESSAGE("from a ");
        CHECK_STATUS(iris_matmul_all_reduce(iris, &good, &good, edge, NULL),
                     IRIS_ERR_INVALID);
        CHECK_MESSAGE("from out ");
        CHECK(!iris_tensor_is_symmetric(iris, edge));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return iris_tensor_free(iris, &good) != IRIS_OK;
}

static TEST(memory_at_the_edges_of_a_heap_is_refused)
{
    harness_run(2, refuse_edges, NULL);
    setenv("IRIS_CHECK", "bounds", 1);
    harness_run(2, refuse_edges, NULL);
    unsetenv("IRIS_CHECK");
}

/* ---- NULL, and what another library hands over ---- */

static RANK_TEST(a_malformed_dlpack_tensor_is_refused, 2)
{
    float numbers[4] = {0};
    struct DLManagedTensorVersioned managed = {
        .major = DLPACK_ABI_MAJOR,
        .tensor = {.data = numbers,
                   .device_type = DLPACK_CPU,
                   .ndim = 2,
                   .dtype = {DLPACK_FLOAT, 32, 1}}};
    iris_tensor_t made;

    CHECK_STATUS(iris_tensor_from_dlpack(iris, &managed, &made, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("its shape is NULL");
    managed.tensor.ndim = 0;
    managed.tensor.byte_offset = UINT64_MAX;
    CHECK_STATUS(iris_tensor_from_dlpack(iris, &managed, &made, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("overflows");
    managed.tensor.byte_offset = 2;
    CHECK_STATUS(iris_tensor_from_dlpack(iris, &managed, &made, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("is not aligned");
    return 0;
}

static TEST(no_tensor_has_no_elements)
{
    assert_int_equal(iris_tensor_numel(NULL), 0);
    assert_int_equal(iris_tensor_bytes(NULL), 0);
    assert_int_equal(iris_tensor_is_contiguous(NULL, IRIS_FORMAT_CONTIGUOUS),
                     0);
}

TEST_GROUP(rank);
