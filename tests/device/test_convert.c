/* SPDX-License-Identifier: MIT
 *
 * The conversions of 16-bit floats in kernels: the same bits as on the host,
 * also where a GPU does them by instructions.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdlib.h>
#include <string.h>

#define HALVES 65536u
#define FLOATS 262144u /* in a launch */

struct convert_args {
    uint32_t first;   /* bits of the first float */
    uint32_t step;    /* from one to the next */
    uint32_t *floats; /* of every half, by its bits */
    uint16_t *halves; /* of every float, f16 and bf16 */
};

IRIS_KERNEL(halves_to_floats, struct convert_args)
{
    IRIS_LANES (wg, i, HALVES) {
        iris_f16_t half;
        iris_d_f32_t value;

        half.bits = (uint16_t)i;
        value.value = iris_f16_to_f32(half);
        args->floats[i] = value.bits;
    }
}

IRIS_KERNEL(floats_to_halves, struct convert_args)
{
    IRIS_LANES (wg, i, FLOATS) {
        iris_d_f32_t value;

        value.bits = args->first + (uint32_t)i * args->step;
        args->halves[2 * i] = iris_f16_from_f32(value.value).bits;
        args->halves[2 * i + 1] = iris_bf16_from_f32(value.value).bits;
    }
}

static int check_floats(iris_t *iris, struct convert_args *args, void *host)
{
    const uint32_t *floats = (const uint32_t *)host;

    CHECK_OK(
        iris_launch(iris, halves_to_floats, 8, 256, args, sizeof *args, NULL));
    CHECK_OK(harness_read(iris, host, args->floats, HALVES * sizeof *floats));
    for (uint32_t bits = 0; bits < HALVES; bits++) {
        iris_f16_t half;
        iris_d_f32_t want;

        half.bits = (uint16_t)bits;
        want.value = iris_f16_to_f32(half);
        CHECK_EQUAL(floats[bits], want.bits);
    }
    return 0;
}

static int check_halves(iris_t *iris, struct convert_args *args, void *host)
{
    const uint16_t *halves = (const uint16_t *)host;

    CHECK_OK(
        iris_launch(iris, floats_to_halves, 8, 256, args, sizeof *args, NULL));
    CHECK_OK(
        harness_read(iris, host, args->halves, FLOATS * 2 * sizeof *halves));
    for (uint32_t i = 0; i < FLOATS; i++) {
        iris_d_f32_t value;

        value.bits = args->first + i * args->step;
        CHECK_EQUAL(halves[2 * i], iris_f16_from_f32(value.value).bits);
        CHECK_EQUAL(halves[2 * i + 1], iris_bf16_from_f32(value.value).bits);
    }
    return 0;
}

/* Floats from everywhere, and all around the ends of f16's subnormal and normal
 * numbers. */
static RANK_TEST(kernels_convert_as_the_host_does, 1)
{
    static const uint32_t starts[] = {0x32ff0000, 0x387f0000, 0x477d0000,
                                      0x7f7f0000, 0xb2ff0000, 0xff7f0000};
    struct convert_args args = {0, 4294967291u / FLOATS, NULL, NULL};
    void *host = malloc(FLOATS * 2 * sizeof *args.halves);
    int ret;

    CHECK(host != NULL);
    CHECK_OK(iris_malloc_typed(iris, HALVES, &args.floats));
    CHECK_OK(iris_malloc_typed(iris, FLOATS * 2, &args.halves));
    ret = check_floats(iris, &args, host) || check_halves(iris, &args, host);
    args.step = 1;
    for (unsigned i = 0; ret == 0 && i < sizeof starts / sizeof *starts; i++) {
        args.first = starts[i];
        ret = check_halves(iris, &args, host);
    }
    free(host);
    return ret;
}

TEST_GROUP(rank);
