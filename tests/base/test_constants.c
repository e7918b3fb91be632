/* SPDX-License-Identifier: MIT
 *
 * Constants as functions say what the headers say, and element types as values
 * are the element types.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/constants.h>
#include <iris/device/layout.h>

#include "base/base.h"

#include <string.h>

static TEST(every_element_type_is_a_dtype_of_its_size)
{
    int found = 0, rows = 0;

#define TYPE(type, c_type, unused)                                  \
    rows++;                                                         \
    for (int i = 0; iris_dtype_size((iris_dtype_t)i) != 0; i++) {   \
        if (strcmp(iris_dtype_name((iris_dtype_t)i), #type) == 0) { \
            assert_int_equal(iris_dtype_size((iris_dtype_t)i),      \
                             sizeof(c_type));                       \
            found++;                                                \
        }                                                           \
    }
    IRIS_TYPES(TYPE, )
#undef TYPE
    assert_int_equal(found, rows);
}

/* Programs have them compiled in. */
static TEST(values_stay_what_they_are)
{
    assert_int_equal(IRIS_DTYPE_BOOL, 0);
    assert_int_equal(IRIS_DTYPE_I64, 4);
    assert_int_equal(IRIS_DTYPE_U8, 5);
    assert_int_equal(IRIS_DTYPE_F64, 12);
    assert_int_equal(IRIS_DTYPE_COMPLEX128, 14);
    assert_int_equal(IRIS_REDUCE_SUM, 0);
    assert_int_equal(IRIS_REDUCE_MAX, 3);
    assert_int_equal(IRIS_REDUCE_BXOR, 6);
    assert_int_equal(IRIS_REDUCE_AVG, 7);
    assert_int_equal(iris_dtype_size(IRIS_DTYPE_COMPLEX64), 8);
    assert_int_equal(iris_dtype_size(IRIS_DTYPE_COMPLEX128), 16);
    assert_int_equal(IRIS_DTYPE_F8E4M3, 15);
    assert_int_equal(IRIS_DTYPE_F8E5M2, 16);
    assert_int_equal(iris_dtype_size(IRIS_DTYPE_F8E5M2), 1);
    assert_string_equal(iris_dtype_name(IRIS_DTYPE_BF16), "bf16");
    assert_string_equal(iris_i_reduce_op_name(IRIS_REDUCE_PRODUCT), "product");
}

static TEST(what_is_no_type_has_no_size)
{
    static const int none[] = {-1, 17, 1 << 20};

    for (int i = 0; i < 3; i++) {
        assert_int_equal(iris_dtype_size((iris_dtype_t)none[i]), 0);
        assert_string_equal(iris_dtype_name((iris_dtype_t)none[i]), "?");
        assert_string_equal(iris_i_reduce_op_name((iris_reduce_op_t)none[i]),
                            "?");
    }
    assert_string_equal(iris_i_reduce_op_name((iris_reduce_op_t)8), "?");
}

static TEST(functions_say_what_the_headers_say)
{
    assert_int_equal(iris_config_size(), sizeof(struct iris_config));
    assert_int_equal(iris_context_words(0), 0);
    assert_int_equal(iris_context_words(-5), 0);
    assert_int_equal(iris_context_words(8), IRIS_CONTEXT_WORDS(8));
    assert_int_equal(iris_alignment(), IRIS_ALIGNMENT);
}

TEST_GROUP_WITH(NULL, NULL, unit);
