/* SPDX-License-Identifier: MIT
 *
 * Views: shapes, strides and addresses. No context takes part.
 */
#include "config.h"

#include "support/harness.h"

#include <string.h>

static int32_t memory[240]; /* element i is i */

static iris_tensor_t numbers(iris_shape_t shape)
{
    iris_tensor_t tensor;

    for (int i = 0; i < 240; i++) {
        memory[i] = i;
    }
    assert_int_equal(iris_tensor_wrap(memory, IRIS_DTYPE_I32, shape, &tensor),
                     IRIS_OK);
    return tensor;
}

static int32_t at(const iris_tensor_t *tensor, int64_t i, int64_t j)
{
    return ((int32_t *)
                tensor->data)[i * tensor->strides[0] + j * tensor->strides[1]];
}

static void says(const char *text)
{
    if (strstr(iris_last_error(), text) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", iris_last_error(), text);
    }
}

static TEST(slices_follow_pythons_rules)
{
    static const struct {
        int64_t start, stop, step, size, first;
    } cases[] = {
        {0, 10, 1, 10, 0},  {2, 5, 1, 3, 2},          {-3, INT64_MAX, 1, 3, 7},
        {0, -1, 1, 9, 0},   {1, 10, 3, 3, 1},         {1, 11, 3, 3, 1},
        {-99, 99, 4, 3, 0}, {5, 5, 1, 0, 0},          {7, 3, 1, 0, 0},
        {9, 10, 5, 1, 9},   {10, INT64_MAX, 1, 0, 0}, {0, 10, 99, 1, 0},
    };
    iris_tensor_t row = numbers(IRIS_SHAPE(10)), view;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(iris_tensor_slice(&row, 0, cases[i].start,
                                           cases[i].stop, cases[i].step, &view),
                         IRIS_OK);
        assert_int_equal(view.shape[0], cases[i].size);
        for (int64_t k = 0; k < view.shape[0]; k++) {
            assert_int_equal(((int32_t *)view.data)[k * view.strides[0]],
                             cases[i].first + k * cases[i].step);
        }
        assert_null(view.owner);
    }
    assert_int_equal(iris_tensor_slice(&row, 0, 0, 5, 0, &view),
                     IRIS_ERR_INVALID);
    says("step 0; pass 1 or more");
    assert_int_equal(iris_tensor_slice(&row, 1, 0, 5, 1, &view),
                     IRIS_ERR_INVALID);
    says("dim 1 of a tensor of 1 dimensions; pass -1 to 0");
    assert_int_equal(iris_tensor_slice(NULL, 0, 0, 5, 1, &view),
                     IRIS_ERR_INVALID);
    says("tensor is NULL");
    assert_int_equal(iris_tensor_slice(&row, 0, 0, 5, 1, NULL),
                     IRIS_ERR_INVALID);
    says("view_p is NULL");
}

static TEST(a_selected_dimension_is_gone)
{
    iris_tensor_t cube = numbers(IRIS_SHAPE(4, 5, 6)), view;

    assert_int_equal(iris_tensor_select(&cube, 1, -2, &view), IRIS_OK);
    assert_int_equal(view.ndim, 2);
    assert_int_equal(view.shape[1], 6);
    assert_int_equal(at(&view, 2, 4), 2 * 30 + 3 * 6 + 4);
    assert_int_equal(iris_tensor_select(&view, -1, 5, &view), IRIS_OK);
    assert_int_equal(iris_tensor_select(&view, 0, 3, &view), IRIS_OK);
    assert_int_equal(view.ndim, 0);
    assert_int_equal(iris_tensor_numel(&view), 1);
    assert_int_equal(*(int32_t *)view.data, 3 * 30 + 3 * 6 + 5);
    assert_int_equal(iris_tensor_select(&cube, 0, 4, &view), IRIS_ERR_INVALID);
    says("index 4 of dimension 0, which has 4");
    assert_int_equal(iris_tensor_select(&cube, 0, -5, &view), IRIS_ERR_INVALID);
}

static TEST(dimensions_change_places)
{
    const int order[] = {2, 0, -2}, twice[] = {0, 1, 0}, far[] = {0, 1, 3};
    iris_tensor_t cube = numbers(IRIS_SHAPE(2, 3, 4)), view;

    assert_int_equal(iris_tensor_permute(&cube, order, &view), IRIS_OK);
    assert_int_equal(view.shape[0], 4);
    assert_int_equal(view.shape[1], 2);
    assert_int_equal(view.shape[2], 3);
    assert_int_equal(view.strides[0], 1);
    assert_int_equal(view.strides[1], 12);
    assert_int_equal(view.strides[2], 4);
    assert_false(iris_tensor_is_contiguous(&view, IRIS_FORMAT_CONTIGUOUS));
    assert_int_equal(iris_tensor_permute(&cube, twice, &view),
                     IRIS_ERR_INVALID);
    says("order[2]");
    assert_int_equal(iris_tensor_permute(&cube, far, &view), IRIS_ERR_INVALID);
    assert_int_equal(iris_tensor_permute(&cube, NULL, &view), IRIS_ERR_INVALID);
}

static TEST(shapes_change_where_no_copy_is_needed)
{
    const int swapped[] = {1, 0};
    iris_tensor_t all = numbers(IRIS_SHAPE(4, 6)), view, part;

    assert_int_equal(iris_tensor_reshape(&all, IRIS_SHAPE(2, -1, 3), &view),
                     IRIS_OK);
    assert_int_equal(view.shape[1], 4);
    assert_int_equal(view.strides[0], 12);
    assert_int_equal(view.strides[1], 3);
    assert_int_equal(iris_tensor_reshape(&view, IRIS_SHAPE(24), &view),
                     IRIS_OK);
    assert_int_equal(view.strides[0], 1);
    /* Columns 1 to 4: rows stay apart, but each can be split. */
    assert_int_equal(iris_tensor_slice(&all, 1, 1, 5, 1, &part), IRIS_OK);
    assert_int_equal(
        iris_tensor_reshape(&part, IRIS_SHAPE(2, 2, 1, 2, 2), &view), IRIS_OK);
    assert_int_equal(view.strides[0], 12);
    assert_int_equal(view.strides[1], 6);
    assert_int_equal(view.strides[3], 2);
    assert_int_equal(iris_tensor_reshape(&part, IRIS_SHAPE(16), &view),
                     IRIS_ERR_INVALID);
    says("its strides allow no view of that shape");
    assert_int_equal(iris_tensor_reshape(&part, IRIS_SHAPE(8, 2), &view),
                     IRIS_ERR_INVALID);
    assert_int_equal(iris_tensor_permute(&all, swapped, &part), IRIS_OK);
    assert_int_equal(iris_tensor_reshape(&part, IRIS_SHAPE(6, 2, 2), &view),
                     IRIS_OK);
    assert_int_equal(iris_tensor_reshape(&part, IRIS_SHAPE(4, 6), &view),
                     IRIS_ERR_INVALID);
    assert_int_equal(iris_tensor_reshape(&all, IRIS_SHAPE(5, 5), &view),
                     IRIS_ERR_INVALID);
    says("of 24 elements: the shape has another number of elements");
    assert_int_equal(iris_tensor_reshape(&all, IRIS_SHAPE(-1, -1), &view),
                     IRIS_ERR_INVALID);
    says("-1 twice");
    assert_int_equal(iris_tensor_reshape(&all, IRIS_SHAPE(-1, 5), &view),
                     IRIS_ERR_INVALID);
    assert_int_equal(iris_tensor_reshape(&all, IRIS_SHAPE(-2, 12), &view),
                     IRIS_ERR_INVALID);
}

static TEST(no_elements_and_no_dimensions_have_views)
{
    iris_tensor_t none = numbers(IRIS_SHAPE(0, 3)), one, view;

    assert_int_equal(iris_tensor_numel(&none), 0);
    assert_int_equal(iris_tensor_bytes(&none), 0);
    assert_true(iris_tensor_is_contiguous(&none, IRIS_FORMAT_CONTIGUOUS));
    assert_int_equal(iris_tensor_reshape(&none, IRIS_SHAPE(7, 0), &view),
                     IRIS_OK);
    assert_int_equal(iris_tensor_reshape(&none, IRIS_SHAPE(0, -1), &view),
                     IRIS_ERR_INVALID);
    assert_int_equal(iris_tensor_reshape(&none, IRIS_SCALAR_SHAPE, &view),
                     IRIS_ERR_INVALID);
    assert_int_equal(
        iris_tensor_wrap(memory, IRIS_DTYPE_I32, IRIS_SCALAR_SHAPE, &one),
        IRIS_OK);
    assert_int_equal(iris_tensor_numel(&one), 1);
    assert_int_equal(iris_tensor_reshape(&one, IRIS_SHAPE(1, 1), &view),
                     IRIS_OK);
    assert_int_equal(view.ndim, 2);
    assert_int_equal(iris_tensor_slice(&one, 0, 0, 1, 1, &view),
                     IRIS_ERR_INVALID);
    assert_int_equal(
        iris_tensor_wrap(NULL, IRIS_DTYPE_I32, IRIS_SHAPE(2), &one),
        IRIS_ERR_INVALID);
    says("data is NULL");
    assert_int_equal(iris_tensor_wrap((char *)memory + 2, IRIS_DTYPE_I32,
                                      IRIS_SHAPE(2), &one),
                     IRIS_ERR_INVALID);
    says("not aligned to elements of i32");
    assert_int_equal(
        iris_tensor_wrap(memory, IRIS_DTYPE_I32, IRIS_SHAPE(2, -1), &one),
        IRIS_ERR_INVALID);
    says("dimension 1 of the shape has size -1");
}

TEST_GROUP(unit);
