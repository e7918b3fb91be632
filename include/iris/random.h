/* SPDX-License-Identifier: MIT
 *
 * Tensors of random numbers, made by Philox4x32-10: the same ones on CPUs and
 * GPUs, for any grid and any number of ranks.
 */
#ifndef IRIS_RANDOM_H
#define IRIS_RANDOM_H

#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a stream of random numbers is: a plain struct, the caller's own, to
 *  copy, to save and to set. Two generators whose seeds or sequences differ
 *  give independent numbers; two that are equal give the same. Philox's key is
 *  `seed`; its counter is `offset`, the lower half, and `sequence`. Not for two
 *  threads at once. (J. Salmon et al., "Parallel random numbers: as easy as
 *  1, 2, 3", SC 2011.) */
struct iris_generator {
    uint64_t seed;
    uint64_t sequence;
    uint64_t offset; /**< Blocks of 128 bits used so far. */
};

/** The generator at the start of a sequence. Local, cannot fail. */
static inline iris_generator_t iris_generator_make(uint64_t seed,
                                                   uint64_t sequence)
{
    iris_generator_t generator;

    generator.seed = seed;
    generator.sequence = sequence;
    generator.offset = 0;
    return generator;
}

/** The context's own generator, which the calls below use without another one:
 *  of seed 0 and with the rank as sequence, so that ranks differ. The caller
 *  may set it at any time: with sequence 0 on all ranks they all get the same.
 *  NULL on a bad context. Local. */
IRIS_API iris_generator_t *iris_default_generator(iris_t *iris);

/* Each makes a tensor as <iris/tensor.h> says of all that create one, and of
 * `out`, `format` and `stream`. Element i, counted with the last dimension
 * fastest, whatever the memory format is, comes of block offset + i / n of the
 * generator, whose offset a call that succeeds raises by the blocks it took. n,
 * the elements that a block gives, is 4; 2 for f64 and complex64, and for
 * integers in a range of more than 2^32; 1 for complex128. So a program that
 * makes elements in pieces of whole blocks gets those of one call. Each rank
 * makes its own numbers: without `out` the call is collective, the generators
 * may differ.
 *
 * Statuses as for creation. Also IRIS_ERR_INVALID: a dtype without such
 * numbers. */

/** Uniform numbers in [0, 1): multiples of 2^-24 in f32, 2^-53 in f64, 2^-11 in
 *  f16, 2^-8 in bf16, all of them equally likely. Complex: both parts. f32
 *  unless the options say otherwise; no integers. */
IRIS_API iris_status_t iris_rand(iris_t *iris, iris_shape_t shape,
                                 const struct iris_tensor_options *options,
                                 iris_tensor_t *tensor_p);

/** Normal numbers of mean 0 and variance 1, by Box and Muller in integer
 *  arithmetic: the same bits everywhere, within 4 units in the last place of
 *  the exact result for the same random bits. f32 goes to 6.6 standard
 *  deviations, f64 to 9.4; f16 and bf16 are f32's, rounded. Both parts of a
 *  complex number have variance 1/2. f32 unless the options say otherwise; no
 *  integers. */
IRIS_API iris_status_t iris_randn(iris_t *iris, iris_shape_t shape,
                                  const struct iris_tensor_options *options,
                                  iris_tensor_t *tensor_p);

/** Whole numbers from `low` up to but without `high`, all of them equally
 *  likely. i64 unless the options say otherwise; of floats those that hold
 *  every integer of the range exactly. Also IRIS_ERR_INVALID: high is not above
 *  low, or the dtype does not hold one of the numbers. */
IRIS_API iris_status_t iris_randint(iris_t *iris, int64_t low, int64_t high,
                                    iris_shape_t shape,
                                    const struct iris_tensor_options *options,
                                    iris_tensor_t *tensor_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_RANDOM_H */
