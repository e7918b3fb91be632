/* SPDX-License-Identifier: MIT
 *
 * Random tensors, number by number: Philox's published answers, what the calls
 * make of its words, and that nothing but seed, sequence and offset decides.
 */
#include "config.h"

#include "tensor/draw.h"

#include <stdlib.h>
#include <string.h>

#include <iris/device.h>

#include "tensor/kernels.h"

#define MANY ((size_t)10007) /* of no round number of blocks */

/* The lines "philox4x32 10" of Random123's kat_vectors: counter, key, answer.
 */
static const uint32_t answers[][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
     0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
     0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
};

static RANK_TEST(words_are_those_that_random123_publishes, 1)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const uint32_t *line = answers[i];
        struct draw draw = {
            .kind = DRAW_INTEGER,
            .dtype = IRIS_DTYPE_U32,
            .generator = {.seed = (uint64_t)line[5] << 32 | line[4],
                          .sequence = (uint64_t)line[3] << 32 | line[2],
                          .offset = (uint64_t)line[1] << 32 | line[0]},
            .high = (int64_t)1 << 32};
        uint64_t offset = draw.generator.offset;
        uint32_t got[4];

        CHECK_OK(draw_numbers(iris, &draw, 4, got));
        for (int j = 0; j < 4; j++) {
            CHECK_EQUAL(got[j], line[6 + j]);
        }
        CHECK(draw.generator.offset == offset + 1);
    }
    return 0;
}

/* ---- What is made of the words ---- */

/* Whether `bits` is what word or double word `i` gives, as <iris/random.h> has
 * it; and so it is never 1. */
static int is_uniform(const struct draw *draw, const void *numbers, size_t i)
{
    const iris_generator_t from = {draw->generator.seed,
                                   draw->generator.sequence, 0};
    uint32_t word = draw_word(from, i);

    switch (draw->dtype) {
    case IRIS_DTYPE_F64:
    case IRIS_DTYPE_COMPLEX128:
        return ((const double *)numbers)[i] ==
               (double)(draw_double_word(from, i) >> 11) * 0x1p-53;
    case IRIS_DTYPE_F16:
        return ((const iris_f16_t *)numbers)[i].bits ==
               iris_f16_from_f32((float)(word >> 21) * 0x1p-11f).bits;
    case IRIS_DTYPE_BF16:
        return ((const iris_bf16_t *)numbers)[i].bits ==
               iris_bf16_from_f32((float)(word >> 24) * 0x1p-8f).bits;
    default:
        return ((const float *)numbers)[i] == (float)(word >> 8) * 0x1p-24f;
    }
}

static RANK_TEST(uniform_numbers_have_all_bits_of_their_type, 1)
{
    static const struct {
        iris_dtype_t dtype;
        size_t parts, blocks;
    } cases[] = {
        {IRIS_DTYPE_F16, 1, (MANY + 3) / 4},
        {IRIS_DTYPE_BF16, 1, (MANY + 3) / 4},
        {IRIS_DTYPE_F32, 1, (MANY + 3) / 4},
        {IRIS_DTYPE_COMPLEX64, 2, (MANY + 1) / 2},
        {IRIS_DTYPE_F64, 1, (MANY + 1) / 2},
        {IRIS_DTYPE_COMPLEX128, 2, MANY},
    };
    double *numbers = malloc(2 * MANY * sizeof *numbers);

    CHECK(numbers != NULL);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct draw draw = {DRAW_UNIFORM, cases[c].dtype, {99, 3, 0}, 0, 0};
        size_t wrong = 0;

        CHECK_OK(draw_numbers(iris, &draw, MANY, numbers));
        for (size_t i = 0; i < cases[c].parts * MANY; i++) {
            wrong += !is_uniform(&draw, numbers, i);
        }
        CHECK_EQUAL(wrong, 0);
        CHECK_EQUAL(draw.generator.offset, cases[c].blocks);
    }
    free(numbers);
    return 0;
}

/* ---- What does not matter ---- */

static const struct draw kinds[] = {
    {DRAW_UNIFORM, IRIS_DTYPE_F16, {1, 2, 3}, 0, 0},
    {DRAW_UNIFORM, IRIS_DTYPE_BF16, {1, 2, 3}, 0, 0},
    {DRAW_UNIFORM, IRIS_DTYPE_F32, {1, 2, 3}, 0, 0},
    {DRAW_UNIFORM, IRIS_DTYPE_F64, {1, 2, 3}, 0, 0},
    {DRAW_UNIFORM, IRIS_DTYPE_COMPLEX128, {1, 2, 3}, 0, 0},
    {DRAW_NORMAL, IRIS_DTYPE_F16, {1, 2, 3}, 0, 0},
    {DRAW_NORMAL, IRIS_DTYPE_BF16, {1, 2, 3}, 0, 0},
    {DRAW_NORMAL, IRIS_DTYPE_F32, {1, 2, 3}, 0, 0},
    {DRAW_NORMAL, IRIS_DTYPE_F64, {1, 2, 3}, 0, 0},
    {DRAW_NORMAL, IRIS_DTYPE_COMPLEX64, {1, 2, 3}, 0, 0},
    {DRAW_NORMAL, IRIS_DTYPE_COMPLEX128, {1, 2, 3}, 0, 0},
    {DRAW_INTEGER, IRIS_DTYPE_U8, {1, 2, 3}, 0, 100},
    {DRAW_INTEGER, IRIS_DTYPE_I64, {1, 2, 3}, -3, (int64_t)3 << 60},
};

#define NUM_KINDS (sizeof kinds / sizeof *kinds)

static uint64_t hash_of(const void *bytes, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Hashes of MANY numbers of each kind, as first made on a CPU by gcc: whatever
 * this runs on, and with however many ranks, has to make the same bits. */
static const uint64_t hashes[NUM_KINDS] = {
    0x9aaae6b41e346d22, 0x93b962e69a7e47ab, 0x8f6e3d34037faa69,
    0x029039ccdb154336, 0x694651c584cffabc, 0x4d883b667a8e8825,
    0x174caf19e3c84510, 0xf4dbfd3461db5ea4, 0xae31ae70012e201a,
    0x998cc311d295a0d2, 0x66be4e7c6aaedf3c, 0xcffd9bc451757a0c,
    0x46b07cf6190ea013};

static RANK_TEST(bits_are_the_same_on_every_rank_of_any_job, ALL_RANKS)
{
    unsigned char *numbers = malloc(16 * MANY);

    CHECK(numbers != NULL);
    for (size_t k = 0; k < NUM_KINDS; k++) {
        struct draw draw = kinds[k];

        CHECK_OK(draw_numbers(iris, &draw, MANY, numbers));
        CHECK_EQUAL(hash_of(numbers, MANY * iris_dtype_size(draw.dtype)),
                    hashes[k]);
    }
    free(numbers);
    return 0;
}

/* The kernels themselves, with grids and blocks of the test's. */
static RANK_TEST(grid_and_block_do_not_matter, 1)
{
    static const struct {
        unsigned grid, block;
    } shapes[] = {{1, 1}, {1, 64}, {3, 7}, {2, 1024}, {37, 32}, {5000, 3}};
    const struct iris_kernel *kernel =
        iris_i_random_kernel(IRIS_RANDOM_NORMAL, IRIS_DTYPE_F32).kernel;
    float *first = malloc(MANY * sizeof *first), *numbers = malloc(MANY * 4);
    struct draw draw = {DRAW_NORMAL, IRIS_DTYPE_F32, {5, 6, 7}, 0, 0};
    float *data;

    CHECK(first != NULL && numbers != NULL);
    CHECK_OK(draw_numbers(iris, &draw, MANY, first));
    CHECK_OK(iris_calloc_typed(iris, MANY + 1, &data));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        /* At an odd address a GPU writes no block at once. */
        const struct iris_random_args args = {.data = data + i % 2,
                                              .count = MANY,
                                              .seed = 5,
                                              .sequence = 6,
                                              .offset = 7};

        CHECK_OK(iris_memset(iris, data, 0, (MANY + 1) * 4, NULL));
        CHECK_OK(iris_launch(iris, kernel, shapes[i].grid, shapes[i].block,
                             &args, sizeof args, NULL));
        CHECK_OK(harness_read(iris, numbers, data + i % 2, MANY * 4));
        CHECK_EQUAL(memcmp(first, numbers, MANY * 4), 0);
    }
    CHECK_OK(iris_free(iris, data));
    free(first);
    free(numbers);
    return 0;
}

/* In pieces of whole blocks, at any address, as a program may that has memory
 * for a part. */
static RANK_TEST(pieces_make_up_the_whole, 1)
{
    static const size_t pieces[] = {4, 8, 3000, 4096, 24};
    unsigned char *whole = malloc(16 * MANY), *parts = malloc(16 * MANY);

    CHECK(whole != NULL && parts != NULL);
    for (size_t k = 0; k < NUM_KINDS; k++) {
        struct draw draw = kinds[k];
        size_t size = iris_dtype_size(draw.dtype), at = 0;

        CHECK_OK(draw_numbers(iris, &draw, MANY, whole));
        draw = kinds[k];
        for (size_t p = 0; at < MANY; p++) {
            size_t count = p < 5 ? pieces[p] : MANY - at;

            CHECK_OK(draw_numbers(iris, &draw, count, parts + at * size));
            at += count;
        }
        CHECK_EQUAL(memcmp(whole, parts, MANY * size), 0);
    }
    free(whole);
    free(parts);
    return 0;
}

/* Index of element `i` in memory. */
static size_t place_of(const iris_tensor_t *tensor, size_t i)
{
    int64_t place = 0;

    for (int d = tensor->ndim - 1; d >= 0; d--) {
        place += (int64_t)i % tensor->shape[d] * tensor->strides[d];
        i /= (size_t)tensor->shape[d];
    }
    return (size_t)place;
}

/* Elements of `tensor`, whose memory begins where its data does, against those
 * of one that is dense; nothing beside them is written. */
static int holds(iris_t *iris, const struct draw *start,
                 const iris_tensor_t *tensor, size_t span)
{
    size_t size = iris_dtype_size(start->dtype), wrong = 0;
    size_t count = (size_t)iris_tensor_numel(tensor);
    unsigned char *dense = malloc(count * size), *memory = malloc(span * size);
    struct draw draw = *start;

    CHECK(dense != NULL && memory != NULL);
    CHECK_OK(draw_numbers(iris, &draw, count, dense));
    CHECK_OK(harness_read(iris, memory, tensor->data, span * size));
    for (size_t i = 0; i < count; i++) {
        unsigned char *at = memory + place_of(tensor, i) * size;

        wrong += memcmp(at, dense + i * size, size) != 0;
        memset(at, 0x5a, size);
    }
    CHECK_EQUAL(wrong, 0);
    for (size_t i = 0; i < span * size; i++) {
        CHECK_EQUAL(memory[i], 0x5a);
    }
    free(dense);
    free(memory);
    return 0;
}

static RANK_TEST(an_element_does_not_depend_on_its_place_in_memory, 1)
{
    for (size_t k = 0; k < NUM_KINDS; k++) {
        size_t size = iris_dtype_size(kinds[k].dtype);
        struct iris_tensor_options options;
        struct draw draw = kinds[k];
        iris_tensor_t base, view, tensor;

        iris_tensor_options_init(&options);
        options.format = IRIS_FORMAT_CHANNELS_LAST;
        CHECK_OK(draw_tensor(iris, &draw, IRIS_SHAPE(2, 3, 5, 7), &options,
                             &tensor));
        CHECK_EQUAL(tensor.strides[1], 1);
        CHECK_EQUAL(holds(iris, &kinds[k], &tensor, 210), 0);
        CHECK_OK(iris_tensor_free(iris, &tensor));

        /* Into every second element of a part of another tensor. */
        options.format = IRIS_FORMAT_PRESERVE;
        options.dtype = (int)kinds[k].dtype;
        CHECK_OK(iris_empty(iris, IRIS_SHAPE(50, 41), &options, &base));
        CHECK_OK(iris_memset(iris, base.data, 0x5a, 50 * 41 * size, NULL));
        CHECK_OK(iris_tensor_slice(&base, 1, 1, 40, 2, &view));
        CHECK_OK(iris_tensor_permute(&view, (const int[]){1, 0}, &view));
        draw = kinds[k];
        options.out = &view;
        CHECK_OK(
            draw_tensor(iris, &draw, IRIS_SHAPE(20, 50), &options, &tensor));
        CHECK_EQUAL(holds(iris, &kinds[k], &tensor, 50 * 41 - 1), 0);
        CHECK_OK(iris_tensor_free(iris, &base));
    }
    return 0;
}

/* ---- The context's generator ---- */

static int default_body(iris_t *iris, void *arg)
{
    iris_generator_t *own = iris_default_generator(iris);
    float numbers[6], again[6];
    iris_tensor_t tensor;

    CHECK(own != NULL);
    CHECK_EQUAL(own->seed, 0);
    CHECK_EQUAL(own->sequence, iris_rank(iris));
    CHECK_OK(iris_rand(iris, IRIS_SHAPE(2, 3), NULL, &tensor));
    CHECK_EQUAL(tensor.dtype, IRIS_DTYPE_F32);
    CHECK_EQUAL(own->offset, 2);
    CHECK_OK(harness_read(iris, numbers, tensor.data, sizeof numbers));
    CHECK_OK(iris_tensor_free(iris, &tensor));
    CHECK(numbers[0] ==
          (float)(draw_word(iris_generator_make(0, (uint64_t)iris_rank(iris)),
                            0) >>
                  8) *
              0x1p-24f);
    *own = iris_generator_make(42, 0);
    CHECK_OK(iris_randn(iris, IRIS_SHAPE(6), NULL, &tensor));
    CHECK_OK(harness_read(iris, numbers, tensor.data, sizeof numbers));
    CHECK_OK(iris_tensor_free(iris, &tensor));
    memcpy(again, numbers, sizeof again);
    CHECK_OK(iris_broadcast(iris, again, sizeof again, 0, NULL));
    CHECK_EQUAL(memcmp(again, numbers, sizeof again), 0);
    CHECK_OK(iris_randint(iris, 0, 3, IRIS_SCALAR_SHAPE, NULL, &tensor));
    CHECK_EQUAL(tensor.dtype, IRIS_DTYPE_I64);
    CHECK_OK(iris_tensor_free(iris, &tensor));
    CHECK_OK(iris_rand(iris, IRIS_SHAPE(0, 3), NULL, &tensor));
    CHECK_OK(iris_tensor_free(iris, &tensor));
    CHECK_EQUAL(own->offset, 3);
    return 0;
}

static TEST(ranks_differ_unless_the_generator_is_set)
{
    harness_run_all(default_body, NULL);
    assert_null(iris_default_generator(NULL));
}

TEST_GROUP(rank);
