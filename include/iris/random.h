/* SPDX-License-Identifier: MIT
 *
 * Tensors of random numbers, from Philox4x32-10. CPUs and GPUs give the same
 * numbers, for any grid and any number of ranks.
 *
 *     iris_tensor_t noise;
 *     status = iris_randn(iris, IRIS_SHAPE(512, 512), NULL, &noise);
 */
#ifndef IRIS_RANDOM_H
#define IRIS_RANDOM_H

#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of a random number generator: a plain struct that the caller owns,
 *  and may copy, save and set. Two generators with different seeds or sequences
 *  give independent numbers; two equal generators give the same numbers.
 *  Philox's key is `seed`, and its counter is `sequence` (upper half) and
 *  `offset` (lower half). Two threads must not use one generator at the same
 *  time. (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 *  SC 2011.) */
struct iris_generator {
    uint64_t seed;
    uint64_t sequence;
    uint64_t offset; /**< Blocks of 128 bits used so far. */
};

/** The generator at the start of a sequence. Local, cannot fail.
 *  @use local; never blocks; apart
 *  @param seed  key of the numbers
 *  @param sequence  number of the sequence of this key */
static inline iris_generator_t iris_generator_make(uint64_t seed,
                                                   uint64_t sequence)
{
    iris_generator_t generator;

    generator.seed = seed;
    generator.sequence = sequence;
    generator.offset = 0;
    return generator;
}

/** The context's own generator, which the calls below use unless the options
 *  have another. It starts with seed 0 and the rank as its sequence, so ranks
 *  get different numbers. The caller may set it at any time; with sequence 0 on
 *  all ranks, they all get the same numbers. NULL on a bad context. Local.
 *  @use local; never blocks; apart */
IRIS_API iris_generator_t *iris_default_generator(iris_t *iris);

/* Each call makes a tensor under the rules of creation in <iris/tensor.h>,
 * which include `out`, `format` and `stream`. Each rank makes its own numbers:
 * without `out` the call is collective, but the generators may differ.
 *
 * Element i comes from block offset + i / n of the generator. Elements are
 * counted with the last dimension fastest, in every memory format. A call that
 * succeeds adds the number of blocks it used to the offset. n, the number of
 * elements from a block, is
 *   - 1 for complex128,
 *   - 2 for f64, for complex64, and for integers in a range of more than 2^32,
 *   - 4 otherwise.
 * So a program that makes a tensor in pieces of whole blocks gets the same
 * elements as from one call.
 *
 * The calls return the statuses of creation. Also IRIS_ERR_INVALID: the dtype
 * has no such numbers. */

/** Uniform numbers in [0, 1): multiples of 2^-24 in f32, 2^-53 in f64, 2^-11 in
 *  f16, and 2^-8 in bf16, all equally likely. Both parts of a complex number are
 *  uniform. The default dtype is f32; integers are refused.
 *  @use job; blocks; captured on a stream */
IRIS_API iris_status_t iris_rand(iris_t *iris, iris_shape_t shape,
                                 const struct iris_tensor_options *options,
                                 iris_tensor_t *tensor_p);

/** Normal numbers with mean 0 and variance 1, by the method of Box and Muller in
 *  integer arithmetic. The bits are the same everywhere, and within 4 units in
 *  the last place of the exact result for the same random bits. f32 reaches 6.6
 *  standard deviations, and f64 9.4; f16 and bf16 are rounded from f32. Both
 *  parts of a complex number have variance 1/2. The default dtype is f32;
 *  integers are refused.
 *  @use job; blocks; captured on a stream */
IRIS_API iris_status_t iris_randn(iris_t *iris, iris_shape_t shape,
                                  const struct iris_tensor_options *options,
                                  iris_tensor_t *tensor_p);

/** Whole numbers from `low` to `high` - 1, all equally likely. The default dtype
 *  is i64. A float dtype must hold every integer of the range exactly. Also
 *  IRIS_ERR_INVALID: high is not above low, or the dtype cannot hold one of the
 *  numbers.
 *  @use job; blocks; captured on a stream
 *  @param low, high  the smallest number, and the one above the largest */
IRIS_API iris_status_t iris_randint(iris_t *iris, int64_t low, int64_t high,
                                    iris_shape_t shape,
                                    const struct iris_tensor_options *options,
                                    iris_tensor_t *tensor_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_RANDOM_H */
