/* SPDX-License-Identifier: MIT
 *
 * Broadcast of numbers and tensors: any root, any group, any strides, and ranks
 * that do not know what will come.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 64

/* ---- Numbers ---- */

static int same_value(iris_value_t a, iris_value_t b)
{
    return a.kind == b.kind &&
           memcmp(&a.as, &b.as,
                  a.kind == IRIS_VALUE_COMPLEX ? sizeof a.as : 8) == 0;
}

static int values_of_group(iris_t *iris, iris_group_t *group)
{
    const iris_value_t values[] = {
        iris_value_bool(1),          iris_value_int(-5),
        iris_value_int(INT64_MIN),   iris_value_uint(UINT64_MAX),
        iris_value_float(-0.0),      iris_value_float(1e300),
        iris_value_complex(1.5, -2),
    };

    for (int root = 0; root < iris_group_size(iris, group); root++) {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            int is_root = iris_group_index(iris, group) == root;
            iris_value_t value = is_root ? values[i] : IRIS_VALUE(7);

            CHECK_OK(iris_broadcast_value(iris, &value, root, group));
            CHECK(same_value(value, values[i]));
        }
    }
    return 0;
}

/* The ranks of this one's parity, backwards. */
static iris_status_t make_half(iris_t *iris, iris_group_t **half_p)
{
    int ranks[MAX_RANKS], count = 0;

    for (int rank = iris_num_ranks(iris); rank-- > 0;) {
        if (rank % 2 == iris_rank(iris) % 2) {
            ranks[count++] = rank;
        }
    }
    return iris_group_create(iris, ranks, count, half_p);
}

static int values_body(iris_t *iris, void *arg)
{
    iris_value_t value = iris_value_int(iris_rank(iris));
    iris_group_t *half;

    (void)arg;
    CHECK_OK(make_half(iris, &half));
    CHECK_EQUAL(values_of_group(iris, NULL), 0);
    CHECK_EQUAL(values_of_group(iris, half), 0);
    CHECK_OK(iris_group_destroy(iris, half));
    CHECK_STATUS(iris_broadcast_value(iris, &value, -1, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_broadcast_value(iris, NULL, 0, NULL), IRIS_ERR_INVALID);
    value.kind = (iris_value_kind_t)77;
    CHECK_STATUS(iris_broadcast_value(iris, &value, 0, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE("kind 77");
    if (iris_num_ranks(iris) > 1) {
        value = iris_value_int(3);
        CHECK_STATUS(
            iris_broadcast_value(iris, &value, iris_rank(iris) == 1, NULL),
            IRIS_ERR_MISMATCH);
        CHECK_MESSAGE("root 1");
    }
    CHECK_EQUAL(value.as.i, iris_num_ranks(iris) > 1 ? 3 : iris_rank(iris));
    return 0;
}

static void values_come_with_their_kind(void **state)
{
    (void)state;
    harness_run_all(values_body, NULL);
}

/* ---- Tensors ---- */

/* A tensor of 2 x 3 x 4, laid out in one of several ways in memory of this
 * rank's own choice, and what frees it. */
static iris_status_t make_tensor(iris_t *iris, int dtype, int how,
                                 iris_tensor_t *base_p, iris_tensor_t *view_p)
{
    static const int order[] = {2, 0, 1};
    struct iris_tensor_options options;
    iris_status_t status;

    iris_tensor_options_init(&options);
    options.dtype = dtype;
    status = iris_zeros(iris, IRIS_SHAPE(3, 4, 50), &options, base_p);
    if (status != IRIS_OK) {
        return status;
    }
    switch (how % 3) {
    case 0: /* dense, further on */
        (void)iris_tensor_reshape(base_p, IRIS_SHAPE(25, 2, 3, 4), view_p);
        return iris_tensor_select(view_p, 0, 7, view_p);
    case 1: /* every third of the last dimension */
        (void)iris_tensor_permute(base_p, order, view_p);
        return iris_tensor_slice(view_p, 0, 1, 7, 3, view_p);
    default: /* the same with dimensions in another order */
        (void)iris_tensor_slice(base_p, 2, 40, 42, 1, view_p);
        return iris_tensor_permute(view_p, order, view_p);
    }
}

#define NUMEL 24

/* Rank `rank`'s elements, on the host. */
static void elements_of(int rank, int round, unsigned char *elements,
                        size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        elements[i] =
            (unsigned char)(i * 7 + (size_t)rank * 31 + (size_t)round * 13 + 1);
    }
}

/* The tensor's elements in their order, by way of a dense one on the heap. */
static int check_elements(iris_t *iris, const iris_tensor_t *tensor,
                          const iris_tensor_t *dense, int rank, int round)
{
    unsigned char seen[16 * NUMEL], expected[16 * NUMEL];
    size_t bytes = iris_tensor_bytes(tensor);

    CHECK_OK(iris_tensor_copy(iris, dense, tensor, NULL));
    CHECK_OK(harness_read(iris, seen, dense->data, bytes));
    elements_of(rank, round, expected, bytes);
    CHECK_EQUAL(memcmp(seen, expected, bytes), 0);
    return 0;
}

/* Each root in turn; its tensor is written by its stream just before, and again
 * at once when the call is over. */
static int broadcasts(iris_t *iris, iris_group_t *group, int dtype,
                      iris_stream_t *stream)
{
    int size = iris_group_size(iris, group), rank = iris_rank(iris);
    struct iris_tensor_options options;
    iris_tensor_t base, tensor, dense;
    unsigned char elements[16 * NUMEL];

    iris_tensor_options_init(&options);
    options.dtype = dtype;
    CHECK_OK(make_tensor(iris, dtype, rank, &base, &tensor));
    CHECK_OK(iris_empty(iris, IRIS_SHAPE(2, 3, 4), &options, &dense));
    for (int round = 0; round < 3 * size; round++) {
        int root = round % size, from = iris_group_member(iris, group, root);

        elements_of(rank, round, elements, sizeof elements);
        CHECK_OK(iris_memcpy(iris, dense.data, elements,
                             iris_tensor_bytes(&dense), stream));
        CHECK_OK(iris_tensor_copy(iris, &tensor, &dense, stream));
        CHECK_OK(iris_tensor_broadcast(iris, &tensor, root, group, stream));
        CHECK_EQUAL(check_elements(iris, &tensor, &dense, from, round), 0);
    }
    CHECK_OK(iris_tensor_free(iris, &base));
    CHECK_OK(iris_tensor_free(iris, &dense));
    return 0;
}

static int tensors_body(iris_t *iris, void *arg)
{
    iris_group_t *half;
    iris_stream_t *stream;

    (void)arg;
    CHECK_OK(make_half(iris, &half));
    CHECK_OK(iris_stream_create(iris, &stream));
    for (int dtype = 0; dtype <= IRIS_DTYPE_COMPLEX128; dtype++) {
        CHECK_EQUAL(broadcasts(iris, dtype % 2 ? half : NULL, dtype,
                               dtype % 3 ? stream : NULL),
                    0);
    }
    iris_stream_destroy(iris, stream);
    CHECK_OK(iris_group_destroy(iris, half));
    return 0;
}

static void tensors_of_any_strides_come_from_any_root(void **state)
{
    (void)state;
    harness_run_all(tensors_body, NULL);
}

/* ---- Tensors that the others do not know ---- */

static int new_of(iris_t *iris, const iris_tensor_t *source, int root,
                  int round)
{
    iris_tensor_t made;
    void *first;

    CHECK_OK(iris_tensor_broadcast_new(
        iris, iris_rank(iris) == root ? source : NULL, root, &made));
    CHECK_EQUAL(made.dtype, source->dtype);
    CHECK_EQUAL(made.ndim, 3);
    CHECK_EQUAL(made.shape[1], 3);
    CHECK(iris_tensor_is_contiguous(&made, IRIS_FORMAT_CONTIGUOUS));
    CHECK(made.owner != NULL && made.data != source->data);
    CHECK_EQUAL(check_elements(iris, &made, &made, root, round), 0);
    first = (void *)((uintptr_t)made.data -
                     (uintptr_t)iris_heap_bases(iris)[iris_rank(iris)]);
    CHECK_OK(iris_broadcast(iris, &first, sizeof first, 0, NULL));
    CHECK((uintptr_t)first ==
          (uintptr_t)made.data -
              (uintptr_t)iris_heap_bases(iris)[iris_rank(iris)]);
    CHECK_OK(iris_tensor_free(iris, &made));
    return 0;
}

static int new_body(iris_t *iris, void *arg)
{
    unsigned char elements[16 * NUMEL];
    struct iris_heap_stats before, after;

    (void)arg;
    CHECK_OK(iris_heap_stats(iris, &before));
    for (int root = 0; root < iris_num_ranks(iris); root++) {
        iris_tensor_t base, tensor, dense;

        CHECK_OK(make_tensor(iris, IRIS_DTYPE_F64, root, &base, &tensor));
        elements_of(root, root, elements, sizeof elements);
        CHECK_OK(iris_tensor_wrap(elements, IRIS_DTYPE_F64, IRIS_SHAPE(2, 3, 4),
                                  &dense));
        CHECK_EQUAL(new_of(iris, &dense, root, root), 0);
        {
            iris_tensor_t heap;
            struct iris_tensor_options options;

            iris_tensor_options_init(&options);
            options.dtype = IRIS_DTYPE_F64;
            CHECK_OK(iris_empty(iris, IRIS_SHAPE(2, 3, 4), &options, &heap));
            CHECK_OK(harness_write(iris, heap.data, elements, 8 * NUMEL));
            CHECK_OK(iris_tensor_copy(iris, &tensor, &heap, NULL));
            CHECK_OK(iris_tensor_free(iris, &heap));
        }
        CHECK_EQUAL(new_of(iris, &tensor, root, root), 0);
        CHECK_OK(iris_tensor_free(iris, &base));
    }
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    return 0;
}

static void tensors_come_to_ranks_that_do_not_know_them(void **state)
{
    (void)state;
    harness_run_all(new_body, NULL);
}

/* ---- What is refused, on every member, and leaves nothing behind ---- */

static int refused_body(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris);
    float host[6] = {0};
    struct iris_tensor_options options;
    iris_tensor_t tensor, other, wrapped, made;
    struct iris_heap_stats before, after;

    (void)arg;
    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_I32;
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(2, 3), NULL, &tensor));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(2, 3), &options, &other));
    CHECK_OK(
        iris_tensor_wrap(host, IRIS_DTYPE_F32, IRIS_SHAPE(2, 3), &wrapped));
    CHECK_OK(iris_heap_stats(iris, &before));
    CHECK_STATUS(iris_tensor_broadcast(iris, &tensor, 9, NULL, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("root 9");
    CHECK_STATUS(
        iris_tensor_broadcast(iris, rank == 1 ? NULL : &tensor, 0, NULL, NULL),
        IRIS_ERR_INVALID);
    CHECK_MESSAGE("tensor is NULL");
    CHECK_STATUS(iris_tensor_broadcast(iris, rank == 0 ? &wrapped : &tensor, 0,
                                       NULL, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("not on the symmetric heap");
    CHECK_STATUS(iris_tensor_broadcast(iris, rank == 1 ? &other : &tensor, 0,
                                       NULL, NULL),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("dtype i32");
    CHECK_OK(iris_tensor_reshape(&other, IRIS_SHAPE(3, 2), &wrapped));
    CHECK_STATUS(iris_tensor_broadcast(iris, rank == 1 ? &wrapped : &other, 0,
                                       NULL, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("shape");
    CHECK_STATUS(iris_tensor_broadcast_new(iris, &tensor, -1, &made),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(
        iris_tensor_broadcast_new(iris, rank == 1 ? NULL : &tensor, 1, &made),
        IRIS_ERR_INVALID);
    CHECK_MESSAGE("root's tensor is NULL");
    CHECK_STATUS(
        iris_tensor_broadcast_new(iris, &tensor, 0, rank == 1 ? NULL : &made),
        IRIS_ERR_INVALID);
    CHECK_MESSAGE("tensor_p is NULL");
    CHECK_OK(iris_tensor_broadcast(iris, &tensor, 1, NULL, NULL));
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    CHECK_OK(iris_tensor_free(iris, &tensor));
    CHECK_OK(iris_tensor_free(iris, &other));
    return 0;
}

static void what_makes_no_sense_is_refused_on_every_member(void **state)
{
    (void)state;
    harness_run(2, refused_body, NULL);
    harness_run(4, refused_body, NULL);
}

/* Ranks 0 and 1 are on one node, 2 and 3 on the other. */
static int nodes_body(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris), pair[2] = {rank / 2 * 2, rank / 2 * 2 + 1};
    struct iris_heap_stats before, after;
    iris_value_t value = iris_value_int(rank);
    iris_tensor_t tensor, made;
    iris_group_t *node;
    float seen;

    (void)arg;
    CHECK_OK(iris_group_create(iris, pair, 2, &node));
    CHECK_OK(iris_full(iris, IRIS_SHAPE(5), IRIS_VALUE(1.5f + (float)rank),
                       NULL, &tensor));
    /* Numbers come from everywhere, tensors within a node. */
    CHECK_OK(iris_broadcast_value(iris, &value, 3, NULL));
    CHECK_EQUAL(value.as.i, 3);
    CHECK_OK(iris_tensor_broadcast(iris, &tensor, 1, node, NULL));
    CHECK_OK(harness_read(iris, &seen, tensor.data, sizeof seen));
    CHECK(seen == 1.5f + (float)pair[1]);
    CHECK_OK(iris_heap_stats(iris, &before));
    for (int root = 0; root < 4; root++) {
        CHECK_STATUS(iris_tensor_broadcast(iris, &tensor, root, NULL, NULL),
                     IRIS_ERR_UNREACHABLE);
        CHECK_MESSAGE("heap is not mapped on rank");
        CHECK_STATUS(iris_tensor_broadcast_new(iris, &tensor, root, &made),
                     IRIS_ERR_UNREACHABLE);
        CHECK_MESSAGE("heap is not mapped on rank");
    }
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    CHECK_OK(iris_tensor_free(iris, &tensor));
    return iris_group_destroy(iris, node);
}

static void a_root_out_of_reach_is_an_error_of_every_member(void **state)
{
    (void)state;
    setenv("IRIS_NODES", "2", 1);
    setenv("IRIS_TRANSPORT", "none", 1);
    harness_run(4, nodes_body, NULL);
    unsetenv("IRIS_TRANSPORT");
    unsetenv("IRIS_NODES");
}

static void tensors_come_from_other_nodes(void **state)
{
    (void)state;
    if (harness_has_gpu()) {
        print_message("left out: GPUs reach only heaps that are mapped\n");
        return;
    }
    setenv("IRIS_NODES", "2", 1);
    harness_run(2, tensors_body, NULL);
    harness_run(4, tensors_body, NULL);
    harness_run(4, new_body, NULL);
    unsetenv("IRIS_NODES");
}

static int TEST_FILE(rank, one_node)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_with_their_kind),
        cmocka_unit_test(tensors_of_any_strides_come_from_any_root),
        cmocka_unit_test(tensors_come_to_ranks_that_do_not_know_them),
        cmocka_unit_test(what_makes_no_sense_is_refused_on_every_member),
        cmocka_unit_test(a_root_out_of_reach_is_an_error_of_every_member),
        cmocka_unit_test(tensors_come_from_other_nodes),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
