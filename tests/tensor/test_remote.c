/* SPDX-License-Identifier: MIT
 *
 * Tensors and heaps: which are symmetric, a peer's, and the program's own
 * memory as a tensor of the heap.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- is_symmetric ---- */

static int is_symmetric(iris_t *iris, void *arg)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F16, IRIS_DTYPE_F32,
                                          IRIS_DTYPE_F64, IRIS_DTYPE_I32,
                                          IRIS_DTYPE_I64};
    const iris_shape_t shapes[] = {IRIS_SHAPE(100), IRIS_SHAPE(10, 10),
                                   IRIS_SHAPE(2, 5, 10),
                                   IRIS_SHAPE(2, 5, 2, 5)};
    struct iris_tensor_options options;
    double memory[100];
    iris_tensor_t tensors[20], outside, view;

    iris_tensor_options_init(&options);
    for (int i = 0; i < 20; i++) {
        options.dtype = (int)dtypes[i % 5];
        CHECK_OK(iris_full(iris, shapes[i / 5], iris_value_int(i), &options,
                           &tensors[i]));
    }
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(iris_tensor_is_symmetric(iris, &tensors[i]), 1);
        CHECK_OK(iris_tensor_slice(&tensors[i], 0, 1, 2, 1, &view));
        CHECK_EQUAL(iris_tensor_is_symmetric(iris, &view), 1);
        CHECK_OK(
            iris_tensor_wrap(memory, dtypes[i % 5], shapes[i / 5], &outside));
        CHECK_EQUAL(iris_tensor_is_symmetric(iris, &outside), 0);
        CHECK_OK(iris_tensor_free(iris, &tensors[i]));
    }
    CHECK_OK(iris_tensor_wrap(NULL, IRIS_DTYPE_F32, IRIS_SHAPE(0), &outside));
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &outside), 1);
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, NULL), 0);
    CHECK_EQUAL(iris_tensor_is_symmetric(NULL, &outside), 0);
    return 0;
}

static TEST(tensors_of_the_heap_are_symmetric_and_others_not)
{
    harness_run_all(is_symmetric, NULL);
}

/* Every element counts, wherever its strides lead. */
static RANK_TEST(a_tensor_that_leaves_the_heap_is_not_symmetric, 2)
{
    struct iris_heap_stats stats = {0};
    iris_tensor_t tensor, view;
    char *base = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];

    iris_heap_stats(iris, &stats);
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(8), NULL, &tensor));
    view = tensor;
    view.data = base + stats.heap_bytes - 32;
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &view), 1);
    view.shape[0] = 9;
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &view), 0);
    view = tensor;
    view.data = base + 28;
    view.strides[0] = -1;
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &view), 1);
    view.data = base + 24;
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &view), 0);
    return iris_tensor_free(iris, &tensor) != IRIS_OK;
}

static RANK_TEST(each_context_knows_its_own_tensors, 1)
{
    struct iris_config config;
    iris_tensor_t own, other;
    iris_t *second;

    if (iris_num_ranks(iris) != 1 || harness_launched() != 0) {
        return 0;
    }
    iris_config_init(&config);
    config.bootstrap = "env";
    config.rank = 0;
    config.num_ranks = 1;
    config.job_id = "tensor-second";
    CHECK_OK(iris_init(&config, &second));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4), NULL, &own));
    CHECK_OK(iris_zeros(second, IRIS_SHAPE(4), NULL, &other));
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &own), 1);
    CHECK_EQUAL(iris_tensor_is_symmetric(second, &own), 0);
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &other), 0);
    CHECK_EQUAL(iris_tensor_is_symmetric(second, &other), 1);
    CHECK_OK(iris_tensor_free(second, &other));
    CHECK_OK(iris_finalize(second));
    return iris_tensor_free(iris, &own) != IRIS_OK;
}

/* ---- as_remote ---- */

static int identity(iris_t *iris, iris_dtype_t dtype)
{
    struct iris_tensor_options options;
    const int64_t *bases = iris_heap_bases(iris);
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    const int swapped[] = {1, 0};
    iris_tensor_t tensor, part, view;

    iris_tensor_options_init(&options);
    options.dtype = (int)dtype;
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(6, 8), &options, &tensor));
    CHECK_OK(iris_tensor_slice(&tensor, 1, 2, 8, 3, &part));
    CHECK_OK(iris_tensor_permute(&part, swapped, &part));
    for (int r = 0; r < num_ranks; r++) {
        CHECK_OK(iris_tensor_as_remote(iris, &part, r, &view));
        CHECK_EQUAL((intptr_t)view.data - bases[r],
                    (intptr_t)part.data - bases[rank]);
        CHECK_EQUAL(view.dtype, dtype);
        CHECK_EQUAL(view.shape[0], 2);
        CHECK_EQUAL(view.strides[0], 3);
        CHECK_EQUAL(view.strides[1], 8);
        CHECK(view.owner == NULL);
        CHECK(r != rank || view.data == part.data);
    }
    return iris_tensor_free(iris, &tensor) != IRIS_OK;
}

static int as_remote(iris_t *iris, void *arg)
{
    int num_ranks = iris_num_ranks(iris);
    float memory[4];
    iris_tensor_t tensor, outside, none, view = {.ndim = 5};

    CHECK_EQUAL(identity(iris, IRIS_DTYPE_F16), 0);
    CHECK_EQUAL(identity(iris, IRIS_DTYPE_BF16), 0);
    CHECK_EQUAL(identity(iris, IRIS_DTYPE_F32), 0);
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4), NULL, &tensor));
    CHECK_OK(iris_tensor_wrap(memory, IRIS_DTYPE_F32, IRIS_SHAPE(4), &outside));
    /* Not symmetric comes before no rank. */
    CHECK_BAD(iris, iris_tensor_as_remote(iris, &outside, -1, &view),
              IRIS_ERR_INVALID, "is not on the symmetric heap",
              "a creation call made");
    CHECK_BAD(iris, iris_tensor_as_remote(iris, &tensor, num_ranks, &view),
              IRIS_ERR_INVALID, "is out of range", "pass one of them");
    CHECK_BAD(iris, iris_tensor_as_remote(iris, &tensor, -1, &view),
              IRIS_ERR_INVALID, "rank -1 is out of range", "pass one of them");
    CHECK_BAD(iris, iris_tensor_as_remote(iris, &tensor, 0, NULL),
              IRIS_ERR_INVALID, "view_p", "pass");
    CHECK_EQUAL(view.ndim, 5);
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(0, 3), NULL, &none));
    CHECK_OK(iris_tensor_as_remote(iris, &none, num_ranks - 1, &view));
    CHECK_EQUAL(iris_tensor_numel(&view), 0);
    CHECK_OK(iris_tensor_free(iris, &none));
    return iris_tensor_free(iris, &tensor) != IRIS_OK;
}

static TEST(a_peers_tensor_is_at_the_same_place_of_its_heap)
{
    harness_run_all(as_remote, NULL);
}

struct add_args {
    float *data;
    int64_t stride;
    float value;
};

IRIS_KERNEL(add_to_tensor, struct add_args)
{
    IRIS_LANES (wg, i, 16) {
        args->data[(int64_t)i * args->stride] += args->value + (float)i;
    }
}

/* Each rank's kernel adds to every second element of the next rank's. */
static RANK_TEST(kernels_write_a_peers_tensor_through_its_strides, ALL_RANKS)
{
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    int before = (rank + num_ranks - 1) % num_ranks;
    struct add_args args;
    iris_tensor_t tensor, part, view;
    float seen[32];

    CHECK_OK(iris_full(iris, IRIS_SHAPE(32), iris_value_float(1000.0 * rank),
                       NULL, &tensor));
    CHECK_OK(iris_tensor_slice(&tensor, 0, 1, 32, 2, &part));
    CHECK_OK(iris_tensor_as_remote(iris, &part, (rank + 1) % num_ranks, &view));
    args.data = view.data;
    args.stride = view.strides[0];
    args.value = 100.0f * (float)(rank + 1);
    CHECK_OK(iris_launch(iris, add_to_tensor, 2, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, seen, tensor.data, sizeof seen));
    for (int i = 0; i < 32; i++) {
        int added = i % 2 == 0 ? 0 : 100 * (before + 1) + i / 2;

        CHECK(seen[i] == (float)(1000 * rank + added));
    }
    return iris_tensor_free(iris, &tensor) != IRIS_OK;
}

/* ---- The device context as a tensor ---- */

static RANK_TEST(the_context_has_its_length_and_fields, ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris);
    size_t count = iris_context_words(num_ranks);
    iris_tensor_t words;
    int64_t seen[2 + 64 + 64];

    CHECK(count <= sizeof seen / sizeof seen[0]);
    CHECK_OK(iris_tensor_wrap((void *)(uintptr_t)iris_device_context(iris),
                              IRIS_DTYPE_I64, IRIS_SHAPE((int64_t)count),
                              &words));
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &words), 1);
    CHECK_OK(harness_read(iris, seen, words.data, iris_tensor_bytes(&words)));
    CHECK_EQUAL(seen[IRIS_CONTEXT_RANK], iris_rank(iris));
    CHECK_EQUAL(seen[IRIS_CONTEXT_NUM_RANKS], num_ranks);
    for (int r = 0; r < num_ranks; r++) {
        CHECK_EQUAL(seen[IRIS_CONTEXT_HEAP_BASES + r],
                    iris_heap_bases(iris)[r]);
    }
    return 0;
}

/* ---- as_symmetric ---- */

/* Rows 1 and 3, columns 2, 4 and 6 of a matrix of the program's, which other
 * ranks then read. */
static RANK_TEST(a_strided_tensor_of_the_host_is_copied_to_the_heap, ALL_RANKS)
{
    int rank = iris_rank(iris), next = (rank + 1) % iris_num_ranks(iris);
    int32_t matrix[5][8], bytes[27], shared = 7;
    iris_tensor_t all, part, twin[2], view;

    for (int i = 0; i < 40; i++) {
        matrix[i / 8][i % 8] = 1000 * rank + i;
    }
    CHECK_OK(iris_tensor_wrap(matrix, IRIS_DTYPE_I32, IRIS_SHAPE(5, 8), &all));
    CHECK_OK(iris_tensor_slice(&all, 0, 1, 5, 2, &part));
    CHECK_OK(iris_tensor_slice(&part, 1, 2, 7, 2, &part));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_tensor_as_symmetric(iris, &part, &twin[i], &shared));
        CHECK_EQUAL(shared, 0);
        CHECK_EQUAL(iris_tensor_is_symmetric(iris, &twin[i]), 1);
        CHECK_EQUAL(twin[i].shape[1], 3);
        CHECK_EQUAL(twin[i].strides[0], 16);
        CHECK_EQUAL(twin[i].strides[1], 2);
        CHECK_OK(iris_tensor_as_remote(iris, &twin[i], next, &view));
        CHECK_OK(harness_read(iris, bytes, view.data, 21 * sizeof(int32_t)));
        for (int k = 0; k < 6; k++) {
            CHECK_EQUAL(bytes[16 * (k / 3) + 2 * (k % 3)],
                        1000 * next + 8 * (1 + 2 * (k / 3)) + 2 + 2 * (k % 3) +
                            500 * i);
        }
        /* A second copy is of what is there then. */
        for (int k = 0; k < 40; k++) {
            matrix[k / 8][k % 8] += 500;
        }
    }
    CHECK(twin[0].data != twin[1].data);
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &part), 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_tensor_free(iris, &twin[0]));
    CHECK_OK(iris_tensor_free(iris, &twin[1]));
    CHECK_OK(iris_tensor_slice(&all, 0, 2, 2, 1, &part));
    CHECK_OK(iris_tensor_as_symmetric(iris, &part, &twin[0], &shared));
    CHECK_EQUAL(iris_tensor_numel(&twin[0]), 0);
    CHECK_OK(iris_tensor_free(iris, &twin[0]));
    CHECK_STATUS(iris_tensor_as_symmetric(iris, NULL, &twin[0], NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("tensor is NULL");
    CHECK_STATUS(iris_tensor_as_symmetric(iris, &all, NULL, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("symmetric_p is NULL");
    return 0;
}

#define PIECE ((size_t)2 << 20) /* what GPUs map memory in */

/* Two slices of one allocation, and one of them twice. */
static int share_twice(iris_t *iris, void *arg)
{
    int (*map)(int device, size_t bytes, int exportable, void **ptr_p);
    void (*unmap)(void *ptr, size_t bytes);
    void *fake = dlopen("libfakehip.so", RTLD_NOW | RTLD_NOLOAD), *ptr;
    const char *quirks = getenv("FAKEHIP_QUIRKS");
    iris_tensor_t all, part[3], twin[3];
    int shared, rank = iris_rank(iris);

    if (!harness_on_gpu(iris) || fake == NULL) {
        return harness_left_out(__func__, "only the fake runtime tells");
    }
    if (quirks != NULL && strstr(quirks, "set-access-from-first") != NULL) {
        return harness_left_out(__func__, "such a HIP cannot map it");
    }
    *(void **)&map = dlsym(fake, "fakehip_map");
    *(void **)&unmap = dlsym(fake, "fakehip_unmap");
    CHECK_EQUAL(map(iris_device_id(iris), PIECE, 1, &ptr), 0);
    CHECK_OK(
        iris_tensor_wrap(ptr, IRIS_DTYPE_U8, IRIS_SHAPE((int64_t)PIECE), &all));
    CHECK_OK(iris_tensor_slice(&all, 0, 512, 1024, 1, &part[0]));
    part[1] = part[0];
    CHECK_OK(iris_tensor_slice(&all, 0, 768, 4096, 2, &part[2]));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_tensor_as_symmetric(iris, &part[i], &twin[i], &shared));
        CHECK_EQUAL(shared, 1);
    }
    CHECK(twin[1].data == twin[0].data);
    CHECK((char *)twin[2].data == (char *)twin[0].data + 256);
    CHECK_OK(iris_memset(iris, (char *)ptr + 768, 10 + rank, 256, NULL));
    CHECK(harness_holds(iris, (char *)twin[0].data + 256, 256, 10 + rank));
    /* As often to be freed: what is left stays. */
    CHECK_OK(iris_tensor_free(iris, &twin[0]));
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &twin[1]), 1);
    CHECK(harness_holds(iris, (char *)twin[1].data + 256, 256, 10 + rank));
    CHECK_OK(iris_tensor_free(iris, &twin[1]));
    CHECK_EQUAL(iris_tensor_is_symmetric(iris, &twin[2]), 1);
    unmap(ptr, PIECE);
    /* Other memory, maybe at the same address, is not taken for the first. */
    CHECK_EQUAL(map(iris_device_id(iris), PIECE, 1, &ptr), 0);
    CHECK_OK(
        iris_tensor_wrap(ptr, IRIS_DTYPE_U8, IRIS_SHAPE((int64_t)PIECE), &all));
    CHECK_OK(iris_tensor_slice(&all, 0, 512, 1024, 1, &part[0]));
    CHECK_OK(iris_tensor_as_symmetric(iris, &part[0], &twin[0], &shared));
    CHECK_EQUAL(shared, 1);
    CHECK_OK(iris_memset(iris, twin[0].data, 1, 512, NULL));
    CHECK(harness_holds(iris, twin[2].data, 256, 10 + rank));
    CHECK_OK(iris_tensor_free(iris, &twin[2]));
    CHECK_OK(iris_tensor_free(iris, &twin[0]));
    unmap(ptr, PIECE);
    return 0;
}

static int gpu; /* there is one */
static char allocator[32];

static int use_vmem(void **state)
{
    const char *before = getenv("IRIS_ALLOCATOR");

    snprintf(allocator, sizeof allocator, "%s", before == NULL ? "" : before);
    return gpu ? setenv("IRIS_ALLOCATOR", "vmem", 1) : 0;
}

static int use_what_was(void **state)
{
    return setenv("IRIS_ALLOCATOR", allocator, 1);
}

static TEST_WITH(memory_that_is_shared_again_is_mapped_once, use_vmem,
                 use_what_was)
{
    if (!gpu) {
        print_message("left out: sharing needs a GPU\n");
        skip();
    }
    harness_run(1, share_twice, NULL);
    harness_run(2, share_twice, NULL);
    harness_run(4, share_twice, NULL);
}

static int set_up(void **state)
{
    gpu = harness_has_gpu(); /* before this process uses one */
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    return harness_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, matrix, one_node);
