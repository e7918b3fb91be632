/* SPDX-License-Identifier: MIT
 *
 * The heap, tensors, and random numbers.
 */
#include "calls.h"

static void use_heap(iris_t *iris)
{
    int peer = 1 - iris_rank(iris);

    void *ptr, *aligned, *zeros;
    check(iris_malloc(iris, 4096, &ptr)); /* all ranks call this */
    check(iris_malloc_aligned(iris, 4096, 65536, &aligned));
    check(iris_calloc(iris, 1024, sizeof(float), &zeros));

    float *x, *y; /* the same without casts */
    check(iris_malloc_typed(iris, 1024, &x));
    check(iris_calloc_typed(iris, 1024, &y));
    check(iris_name(iris, x, "x")); /* in messages and traces */

    if (iris_is_reachable(iris, peer)) {
        void *there, *back;
        check(iris_as_remote(iris, x, peer, &there));
        check(iris_translate(iris, there, peer, iris_rank(iris), &back));
        EXPECT(back == x && iris_is_symmetric(iris, x));
    }

    struct iris_heap_stats stats;
    check(iris_heap_stats(iris, &stats));
    printf("%zu of %zu bytes are free\n", stats.free_bytes, stats.heap_bytes);

    check(iris_free(iris, y));       /* all ranks, in the same order */
    check(iris_free_later(iris, x)); /* each rank when it likes */
    check(iris_free_deferred(iris)); /* now, if every rank has released it */

    size_t freed;
    check(iris_heap_trim(iris, &freed)); /* gives unused memory back */

    float mine[256] = {0};
    void *symmetric;
    int shared;
    check(iris_as_symmetric(iris, mine, sizeof mine, &symmetric, &shared));
    check(iris_free(iris, symmetric));
}

static void use_tensors(iris_t *iris)
{
    struct iris_tensor_options options;
    iris_tensor_t a, b, c, d, e, f, g;
    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_F16;
    check(iris_empty(iris, IRIS_SHAPE(4, 256), &options, &a));
    check(iris_zeros(iris, IRIS_SHAPE(4, 256), NULL, &b));
    check(iris_ones(iris, IRIS_SHAPE(4, 256), NULL, &c));
    check(iris_full(iris, IRIS_SHAPE(8), IRIS_VALUE(2.5), NULL, &d));
    check(iris_zeros_like(iris, &a, NULL, &e));

    check(iris_arange(iris, iris_value_int(0), iris_value_uint(10),
                      iris_value_int(2), NULL, &f)); /* 0 2 4 6 8 */
    check(iris_linspace(iris, iris_value_float(0), iris_value_float(1), 5, NULL,
                        &g)); /* 0 0.25 0.5 0.75 1 */

    EXPECT(iris_tensor_numel(&b) == 1024 && iris_tensor_bytes(&b) == 4096);
    EXPECT(iris_tensor_is_contiguous(&b, IRIS_FORMAT_CONTIGUOUS));
    EXPECT(iris_tensor_is_symmetric(iris, &b));

    iris_tensor_t row, half, columns, flat;
    int order[2] = {1, 0};
    check(iris_tensor_select(&b, 0, 2, &row));         /* b[2] */
    check(iris_tensor_slice(&b, 1, 0, 128, 1, &half)); /* b[:, 0:128] */
    check(iris_tensor_permute(&b, order, &columns));   /* b.T */
    check(iris_tensor_reshape(&b, IRIS_SHAPE(-1), &flat));

    float mine[6] = {1, 2, 3, 4, 5, 6};
    iris_tensor_t view, symmetric;
    int shared;
    check(iris_tensor_wrap(mine, IRIS_DTYPE_F32, IRIS_SHAPE(2, 3), &view));
    check(iris_tensor_as_symmetric(iris, &view, &symmetric, &shared));

    iris_tensor_t theirs;
    check(iris_tensor_as_remote(iris, &b, 1 - iris_rank(iris), &theirs));
    check(iris_tensor_copy(iris, &c, &theirs, NULL)); /* a get */
    check(iris_barrier(iris, NULL, NULL));

    char text[256];
    check(iris_tensor_format(iris, &f, text, sizeof text, NULL));
    printf("%s\n", text);

    iris_tensor_t *all[] = {&a, &b, &c, &d, &e, &f, &g, &symmetric};
    for (int i = 0; i < 8; i++)
        check(iris_tensor_free(iris, all[i]));
}

static void use_random(iris_t *iris)
{
    iris_generator_t generator = iris_generator_make(42, 0);
    struct iris_tensor_options options;
    iris_tensor_t uniform, normal, whole;
    iris_tensor_options_init(&options);
    options.generator = &generator; /* the same numbers on all ranks */
    check(iris_rand(iris, IRIS_SHAPE(512), &options, &uniform));

    iris_default_generator(iris)->seed = 7;
    check(iris_randn(iris, IRIS_SHAPE(512), NULL, &normal));
    check(iris_randint(iris, 0, 10, IRIS_SHAPE(512), NULL, &whole));
}

static void use_values(iris_t *iris)
{
    iris_value_t values[] = {iris_value_bool(1), iris_value_int(-3),
                             iris_value_uint(3), iris_value_float(0.5),
                             iris_value_complex(1, -1)};
    iris_tensor_t tensor; /* complex64 */
    check(iris_full(iris, IRIS_SHAPE(4), values[4], NULL, &tensor));
}

static void use_dlpack(iris_t *iris)
{
    static float numbers[2][16]; /* one row for each rank */
    struct DLManagedTensorVersioned *managed;
    iris_tensor_t tensor, imported;
    int shared;

    check(iris_tensor_wrap(numbers[iris_rank(iris)], IRIS_DTYPE_F32,
                           IRIS_SHAPE(16), &tensor));
    check(iris_tensor_to_dlpack(iris, &tensor, &managed));
    check(iris_tensor_from_dlpack(iris, managed, &imported, &shared));
    check(iris_tensor_free(iris, &imported));
}

static int rank_main(iris_t *iris, void *arg)
{
    use_heap(iris);
    use_tensors(iris);
    use_random(iris);
    use_values(iris);
    use_dlpack(iris);
    return arg == NULL ? 0 : 1;
}

int main(void)
{
    check(iris_spawn(NULL, 2, rank_main, NULL));
    return 0;
}
