/* SPDX-License-Identifier: MIT
 *
 * Tensors so large that the CPU stores them past its cache: every element, and
 * nothing beside them.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#include <iris/device.h>

#define BYTES ((size_t)17 << 20)
#define STEP (1.0 / 1024)

/* Element `i` of what make() makes. */
static void expect(iris_dtype_t dtype, size_t i, unsigned char *element_p)
{
    float f32 = (float)((double)i * STEP);
    double f64 = (double)i * STEP;
    iris_f16_t f16 = iris_f16_from_f32(f32);
    iris_bf16_t bf16 = iris_bf16_from_f32(f32);

    switch (dtype) {
    case IRIS_DTYPE_F16:
        memcpy(element_p, &f16, sizeof f16);
        break;
    case IRIS_DTYPE_BF16:
        memcpy(element_p, &bf16, sizeof bf16);
        break;
    case IRIS_DTYPE_F32:
        memcpy(element_p, &f32, sizeof f32);
        break;
    case IRIS_DTYPE_F64:
        memcpy(element_p, &f64, sizeof f64);
        break;
    default:
        memset(element_p, 42, 1);
        break;
    }
}

static iris_status_t make(iris_t *iris, struct iris_tensor_options *options)
{
    int64_t count = iris_tensor_numel(options->out);
    iris_tensor_t tensor;

    if (options->dtype == IRIS_DTYPE_I8) {
        return iris_full(iris, IRIS_SHAPE(count), iris_value_int(42), options,
                         &tensor);
    }
    return iris_arange(iris, iris_value_int(0),
                       iris_value_float((double)count * STEP),
                       iris_value_float(STEP), options, &tensor);
}

/* From the second element of another tensor to the last but one. */
static int check_dtype(iris_t *iris, iris_dtype_t dtype, unsigned char *host)
{
    size_t size = iris_dtype_size(dtype), count = BYTES / size + 3, wrong = 0;
    unsigned char wanted[8];
    struct iris_tensor_options options;
    iris_tensor_t base, part;

    iris_tensor_options_init(&options);
    options.dtype = (int)dtype;
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE((int64_t)count + 2), &options, &base));
    CHECK_OK(iris_tensor_slice(&base, 0, 1, (int64_t)count + 1, 1, &part));
    options.out = &part;
    CHECK_OK(make(iris, &options));
    CHECK_OK(harness_read(iris, host, base.data, (count + 2) * size));
    CHECK_OK(iris_tensor_free(iris, &base));
    for (size_t i = 0; i < count; i++) {
        expect(dtype, i, wanted);
        wrong += memcmp(host + (i + 1) * size, wanted, size) != 0;
    }
    memset(wanted, 0, sizeof wanted);
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(memcmp(host, wanted, size), 0);
    CHECK_EQUAL(memcmp(host + (count + 1) * size, wanted, size), 0);
    return 0;
}

static RANK_TEST(large_tensors_are_filled_element_by_element, 1)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_I8, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16, IRIS_DTYPE_F32,
                                          IRIS_DTYPE_F64};
    unsigned char *host = malloc(BYTES + 64);

    CHECK(host != NULL);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        CHECK_EQUAL(check_dtype(iris, dtypes[i], host), 0);
    }
    free(host);
    return 0;
}

static int set_up(void **state)
{
    setenv("IRIS_HEAP_SIZE", "32M", 1);
    return harness_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, rank);
