/* SPDX-License-Identifier: MIT
 *
 * DLPack from C: the structs are the header's, what they say of a tensor, when
 * they may be let go of, and what is taken from others.
 */
#include "config.h"

#include "support/harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/internal.h"
#include "tensor/dlpack_layout.h"

/* ---- The structs ---- */

static TEST(structs_are_those_of_the_header)
{
    static const struct dlpack_layout own = {
        .tensor = {DLPACK_TENSOR_LAYOUT(struct dlpack_tensor, device_type,
                                        device_id)},
        .versioned = {DLPACK_VERSIONED_LAYOUT(major, minor, context, tensor)},
        .values = {DLPACK_CPU, DLPACK_CUDA, DLPACK_CUDA_HOST, DLPACK_ROCM,
                   DLPACK_ROCM_HOST, DLPACK_CUDA_MANAGED, DLPACK_INT,
                   DLPACK_UINT, DLPACK_FLOAT, DLPACK_BFLOAT, DLPACK_COMPLEX,
                   sizeof(struct dlpack_dtype),
                   offsetof(struct dlpack_dtype, bits),
                   offsetof(struct dlpack_dtype, lanes)},
    };

    /* What version 1.0 laid down, header or not. */
    assert_int_equal(own.tensor[0], 48);
    assert_int_equal(own.versioned[0], 80);
    assert_int_equal(own.versioned[6], 32);
    if (dlpack_layout.tensor[0] == 0) {
        print_message("not compared: no <dlpack/dlpack.h>\n");
        return;
    }
    assert_memory_equal(own.tensor, dlpack_layout.tensor, sizeof own.tensor);
    assert_memory_equal(own.values, dlpack_layout.values, sizeof own.values);
    if (dlpack_layout.versioned[0] == 0) {
        print_message("versioned struct not compared: DLPack before 1.0\n");
        return;
    }
    assert_memory_equal(own.versioned, dlpack_layout.versioned,
                        sizeof own.versioned);
}

/* ---- To others ---- */

static int check_struct(const iris_t *iris, const iris_tensor_t *tensor,
                        const struct dlpack_tensor *seen)
{
    CHECK(seen->data == tensor->data);
    if (!harness_on_gpu(iris) || strcmp(iris_backend_name(iris), "sim") == 0) {
        CHECK_EQUAL(seen->device_id, 0);
    }
    CHECK_EQUAL(seen->ndim, tensor->ndim);
    CHECK_EQUAL(seen->byte_offset, 0);
    CHECK_EQUAL((size_t)seen->dtype.bits * seen->dtype.lanes,
                8 * iris_dtype_size(tensor->dtype));
    for (int i = 0; i < tensor->ndim; i++) {
        CHECK_EQUAL(seen->shape[i], tensor->shape[i]);
        CHECK_EQUAL(seen->strides[i], tensor->strides[i]);
    }
    return 0;
}

static RANK_TEST(a_struct_says_what_the_tensor_is, 2)
{
    static const int codes[] = {6, 0, 0, 0, 0, 1, 1,  1, 1,
                                2, 4, 2, 2, 5, 5, 10, 12};

    for (int dtype = 0; dtype <= IRIS_DTYPE_F8E5M2; dtype++) {
        struct DLManagedTensorVersioned *managed, *other;
        struct iris_tensor_options options;
        iris_tensor_t tensor, view;

        iris_tensor_options_init(&options);
        options.dtype = dtype;
        CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4, 6), &options, &tensor));
        CHECK_OK(iris_tensor_slice(&tensor, 1, 1, 6, 2, &view));
        CHECK_OK(iris_tensor_to_dlpack(iris, &view, &managed));
        CHECK_OK(iris_tensor_to_dlpack(iris, &view, &other));
        CHECK_EQUAL(managed->major, 1);
        CHECK_EQUAL(managed->flags, 0);
        CHECK_EQUAL(managed->tensor.dtype.code, codes[dtype]);
        CHECK_EQUAL(check_struct(iris, &view, &managed->tensor), 0);
        other->deleter(other);
        CHECK_EQUAL(check_struct(iris, &view, &managed->tensor), 0);
        managed->deleter(managed);
        CHECK_OK(iris_tensor_free(iris, &tensor));
    }
    return 0;
}

static void *let_go(void *arg)
{
    struct DLManagedTensorVersioned *managed = arg;

    managed->deleter(managed);
    return NULL;
}

/* Each rank's struct, for after its context. */
static struct DLManagedTensorVersioned *kept[2];

static int keep_body(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris);
    struct DLManagedTensorVersioned *other;
    iris_tensor_t tensor;
    pthread_t thread;

    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(3), NULL, &tensor));
    CHECK_OK(iris_tensor_to_dlpack(iris, &tensor, &kept[rank]));
    CHECK_OK(iris_tensor_to_dlpack(iris, &tensor, &other));
    CHECK_EQUAL(pthread_create(&thread, NULL, let_go, other), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    return 0;
}

/* One rank exports its tensor, the other releases its own. */
static RANK_TEST(letting_go_of_a_tensor_that_owns_memory_frees_it, 1, 2)
{
    struct DLManagedTensorVersioned *owning, *borrowing;
    size_t before = harness_stats(iris).num_allocs;
    iris_tensor_t tensor;
    pthread_t thread;

    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(3), NULL, &tensor));
    if (iris_rank(iris) == 0) {
        CHECK_BAD(iris, iris_tensor_to_dlpack(iris, &tensor, NULL),
                  IRIS_ERR_INVALID, "managed_p", "NULL");
        CHECK(tensor.owner != NULL);
        CHECK_OK(iris_tensor_to_dlpack(iris, &tensor, &owning));
        CHECK(tensor.owner == NULL);
        CHECK_OK(iris_tensor_to_dlpack(iris, &tensor, &borrowing));
        borrowing->deleter(borrowing);
        CHECK_EQUAL(harness_stats(iris).num_deferred, 0);
        CHECK_EQUAL(pthread_create(&thread, NULL, let_go, owning), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    } else {
        CHECK_OK(iris_free_later(iris, tensor.owner));
    }
    CHECK_EQUAL(harness_stats(iris).num_deferred, 1);
    CHECK_OK(iris_free_deferred(iris));
    CHECK_EQUAL(harness_stats(iris).num_allocs, before);
    CHECK_EQUAL(harness_stats(iris).num_deferred, 0);
    return 0;
}

static TEST(letting_go_needs_neither_thread_nor_context)
{
    memset(kept, 0, sizeof kept);
    harness_run(2, keep_body, NULL);
    /* Ranks that are processes have kept theirs to themselves. */
    for (int rank = 0; rank < 2; rank++) {
        if (kept[rank] != NULL) {
            let_go(kept[rank]);
        }
    }
}

/* ---- From others ---- */

/* Somebody else's tensor, of 3 x 2 elements beginning a few bytes in, with the
 * rows `stride` apart. */
struct outsider {
    struct DLManagedTensorVersioned managed;
    int16_t data[64];
    int64_t shape[2];
    int64_t strides[2];
    int deleted;
};

static void outsider_deleter(struct DLManagedTensorVersioned *self)
{
    ((struct outsider *)self->context)->deleted++;
}

static void make_outsider(struct outsider *outsider, int rank)
{
    struct dlpack_tensor *tensor = &outsider->managed.tensor;

    memset(outsider, 0, sizeof *outsider);
    for (int i = 0; i < 64; i++) {
        outsider->data[i] = (int16_t)(100 * rank + i);
    }
    outsider->shape[0] = 3;
    outsider->shape[1] = 2;
    outsider->strides[0] = 10;
    outsider->strides[1] = 3;
    outsider->managed.major = 1;
    outsider->managed.minor = 9;
    outsider->managed.context = outsider;
    outsider->managed.deleter = outsider_deleter;
    tensor->data = outsider->data;
    tensor->device_type = DLPACK_CPU;
    tensor->ndim = 2;
    tensor->dtype = (struct dlpack_dtype){DLPACK_INT, 16, 1};
    tensor->shape = outsider->shape;
    tensor->strides = outsider->strides;
    tensor->byte_offset = 8;
}

/* Elements of a peer's symmetric copy. */
static int check_copy(iris_t *iris, const iris_tensor_t *tensor, int rank,
                      const int64_t *strides)
{
    iris_tensor_t remote, dense;
    struct iris_tensor_options options;
    int16_t seen[6];

    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_I16;
    CHECK_OK(iris_empty(iris, IRIS_SHAPE(3, 2), &options, &dense));
    CHECK_OK(iris_tensor_as_remote(iris, tensor, rank, &remote));
    CHECK_OK(iris_tensor_copy(iris, &dense, &remote, NULL));
    CHECK_OK(harness_read(iris, seen, dense.data, sizeof seen));
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(seen[i],
                    100 * rank + 4 + i / 2 * strides[0] + i % 2 * strides[1]);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_tensor_free(iris, &dense) != IRIS_OK;
}

static RANK_TEST(a_tensor_of_others_comes_onto_every_heap, ALL_RANKS)
{
    static const int64_t dense[] = {2, 1};
    struct outsider outsider;
    iris_tensor_t tensor;
    int shared = 7, peer = (iris_rank(iris) + 1) % iris_num_ranks(iris);

    make_outsider(&outsider, iris_rank(iris));
    CHECK_OK(
        iris_tensor_from_dlpack(iris, &outsider.managed, &tensor, &shared));
    CHECK_EQUAL(outsider.deleted, 1);
    CHECK_EQUAL(shared, 0);
    CHECK_EQUAL(tensor.strides[0], 10);
    CHECK_EQUAL(check_copy(iris, &tensor, peer, outsider.strides), 0);
    CHECK_OK(iris_tensor_free(iris, &tensor));

    outsider.managed.tensor.strides = NULL;
    outsider.managed.deleter = NULL;
    CHECK_OK(iris_tensor_from_dlpack(iris, &outsider.managed, &tensor, NULL));
    CHECK_EQUAL(tensor.strides[0], 2);
    CHECK_EQUAL(check_copy(iris, &tensor, peer, dense), 0);
    CHECK_OK(iris_tensor_free(iris, &tensor));
    return 0;
}

/* One rank's tensor is bad: no rank takes its own. */
static int refused(iris_t *iris, struct outsider *outsider, const char *text)
{
    iris_tensor_t tensor;

    CHECK_STATUS(
        iris_tensor_from_dlpack(iris, &outsider->managed, &tensor, NULL),
        IRIS_ERR_INVALID);
    CHECK_MESSAGE(text);
    CHECK_EQUAL(outsider->deleted, 0);
    make_outsider(outsider, iris_rank(iris));
    return 0;
}

static RANK_TEST(what_cannot_be_taken_is_refused_on_every_rank, 2)
{
    int bad = iris_rank(iris) == 1;
    struct outsider outsider;
    struct dlpack_tensor *of = &outsider.managed.tensor;
    iris_tensor_t tensor;

    make_outsider(&outsider, iris_rank(iris));
    outsider.managed.major = bad ? 2 : 1;
    CHECK_EQUAL(refused(iris, &outsider, "version"), 0);
    of->dtype.lanes = bad ? 2 : 1;
    CHECK_EQUAL(refused(iris, &outsider, "2 lanes"), 0);
    of->dtype.code = bad ? 3 : DLPACK_INT;
    CHECK_EQUAL(refused(iris, &outsider, "code 3"), 0);
    of->device_type = bad ? 4 : DLPACK_CPU;
    CHECK_EQUAL(refused(iris, &outsider, "type 4"), 0);
    of->ndim = bad ? 9 : 2;
    CHECK_EQUAL(refused(iris, &outsider, "dimensions"), 0);
    outsider.shape[1] = bad ? -2 : 2;
    CHECK_EQUAL(refused(iris, &outsider, "-2"), 0);
    CHECK_STATUS(iris_tensor_from_dlpack(iris, bad ? NULL : &outsider.managed,
                                         &tensor, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("managed is NULL");
    CHECK_STATUS(iris_tensor_from_dlpack(iris, &outsider.managed,
                                         bad ? NULL : &tensor, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_tensor_to_dlpack(
                     iris, NULL, &(struct DLManagedTensorVersioned *){NULL}),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_tensor_to_dlpack(iris, &tensor, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE("managed_p");
    return 0;
}

TEST_GROUP(rank, one_node);
