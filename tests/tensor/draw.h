/* SPDX-License-Identifier: MIT
 *
 * Random numbers as tests ask for them: made on the device, read by the host.
 */
#ifndef IRIS_TESTS_TENSOR_DRAW_H
#define IRIS_TESTS_TENSOR_DRAW_H

#include "support/harness.h"

#include <Random123/philox.h>

enum draw_kind { DRAW_UNIFORM, DRAW_NORMAL, DRAW_INTEGER };

struct draw {
    enum draw_kind kind;
    iris_dtype_t dtype;
    iris_generator_t generator;
    int64_t low; /* of integers */
    int64_t high;
};

/* The call, with these options otherwise. */
static inline iris_status_t draw_tensor(iris_t *iris, struct draw *draw,
                                        iris_shape_t shape,
                                        struct iris_tensor_options *options,
                                        iris_tensor_t *tensor_p)
{
    options->dtype = (int)draw->dtype;
    options->generator = &draw->generator;
    switch (draw->kind) {
    case DRAW_UNIFORM:
        return iris_rand(iris, shape, options, tensor_p);
    case DRAW_NORMAL:
        return iris_randn(iris, shape, options, tensor_p);
    default:
        return iris_randint(iris, draw->low, draw->high, shape, options,
                            tensor_p);
    }
}

/* `count` of them in host memory; the generator goes on. */
static inline iris_status_t draw_numbers(iris_t *iris, struct draw *draw,
                                         size_t count, void *host)
{
    struct iris_tensor_options options;
    iris_tensor_t tensor;
    iris_status_t status;

    iris_tensor_options_init(&options);
    status =
        draw_tensor(iris, draw, IRIS_SHAPE((int64_t)count), &options, &tensor);
    if (status == IRIS_OK) {
        status =
            harness_read(iris, host, tensor.data, iris_tensor_bytes(&tensor));
        (void)iris_tensor_free(iris, &tensor);
    }
    return status;
}

/* Philox's words, by Random123 on the host: word i of the sequence. */
static inline philox4x32_ctr_t draw_block(iris_generator_t generator,
                                          uint64_t block)
{
    uint64_t at = generator.offset + block;
    philox4x32_ctr_t counter = {{(uint32_t)at, (uint32_t)(at >> 32),
                                 (uint32_t)generator.sequence,
                                 (uint32_t)(generator.sequence >> 32)}};
    philox4x32_key_t key = {
        {(uint32_t)generator.seed, (uint32_t)(generator.seed >> 32)}};

    return philox4x32_R(10, counter, key);
}

static inline uint32_t draw_word(iris_generator_t generator, uint64_t i)
{
    return draw_block(generator, i / 4).v[i % 4];
}

static inline uint64_t draw_double_word(iris_generator_t generator, uint64_t i)
{
    return (uint64_t)draw_word(generator, 2 * i + 1) << 32 |
           draw_word(generator, 2 * i);
}

#endif /* IRIS_TESTS_TENSOR_DRAW_H */
