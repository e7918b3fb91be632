/* SPDX-License-Identifier: MIT
 *
 * Atomics in special cases: NaN and signed zero, and one word used at several
 * widths in turn.
 */
#include "config.h"

#include "support/amo_verbs.h"

struct args {
    const int64_t *context;
    uint64_t *wrong;
    void *words;
    uint64_t phase;
};

/* For a float type: min and max with a NaN on either side keep the number, and
 * CAS compares bits. */
IRIS_DEVICE unsigned judge_specials(iris_dev_t dev, uint32_t kind, struct amo a)
{
    const uint64_t top = (uint64_t)1 << (8 * bytes_of(kind) - 1);
    const uint64_t nan = kind == IRIS_D_KIND_f16    ? 0x7e01
                         : kind == IRIS_D_KIND_bf16 ? 0x7fc1
                         : kind == IRIS_D_KIND_f32  ? 0x7fc00001
                                                    : 0x7ff8000000000001;
    const uint64_t three = small(kind, 3);
    unsigned wrong = 0;

    for (int i = 0; i < 4; i++) {
        a.value = i % 2 == 0 ? nan : three;
        (void)access(dev, kind, 1, a);
        a.value = nan ^ three ^ a.value;
        (void)amo(dev, kind, i / 2 == 0 ? MIN : MAX, PLAIN, a);
        wrong |= (unsigned)(access(dev, kind, 0, a) != three) << i;
    }
    a.value = top; /* -0 */
    (void)access(dev, kind, 1, a);
    a.value = nan;
    a.expected = 0;
    wrong |= amo(dev, kind, CAS, PLAIN, a) == top ? 0u : 16u;
    wrong |= access(dev, kind, 0, a) == top ? 0u : 32u;
    a.expected = top;
    wrong |= amo(dev, kind, CAS, PLAIN, a) == top ? 0u : 64u;
    a.value = three;
    a.expected = nan;
    wrong |= amo(dev, kind, CAS, PLAIN, a) == nan ? 0u : 128u;
    wrong |= access(dev, kind, 0, a) == three ? 0u : 256u;
    return wrong;
}

IRIS_KERNEL(special_floats, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int to = 0; iris_wg_leader(wg) && to < dev.num_ranks; to++) {
        for (uint32_t kind = IRIS_D_KIND_f16; kind <= IRIS_D_KIND_f64; kind++) {
            struct amo a;
            unsigned wrong;

            a.ptr = (uint64_t *)args->words + dev.rank;
            a.to = to;
            a.sem = IRIS_ACQ_REL;
            a.scope = IRIS_SCOPE_SYSTEM;
            wrong = judge_specials(dev, kind, a);
            matrix_expect(dev, args->wrong, wrong == 0, kind << 16 | wrong);
        }
    }
}

/* The parts of an 8-byte word, each phase with accesses of other widths. */
IRIS_KERNEL(mixed_widths, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *word = (uint64_t *)args->words;
    uint64_t n = (uint64_t)dev.num_ranks, want;

    for (int to = 0; iris_wg_leader(wg) && to < dev.num_ranks; to++) {
        if (args->phase == 0 && to == dev.rank) {
            iris_atomic_store(dev, word, 0x80ff0000ffffffff, to, IRIS_RELEASE,
                              IRIS_SCOPE_SYSTEM);
        } else if (args->phase == 1) {
            (void)iris_atomic_add(dev, (uint32_t *)word, 1, to, IRIS_RELAXED,
                                  IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_sub(dev, (uint16_t *)word + 2, 1, to,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_add(dev, (uint8_t *)word + 7, 1, to, IRIS_ACQUIRE,
                                  IRIS_SCOPE_SYSTEM);
        } else if (args->phase == 2) {
            (void)iris_atomic_add(dev, word, 0xfffffff0, to, IRIS_RELEASE,
                                  IRIS_SCOPE_SYSTEM);
        }
    }
    if (args->phase == 3 && iris_wg_leader(wg)) {
        want = (0x80 + n) << 56 | (uint64_t)0xff << 48 |
               ((0x10000 - n) & 0xffff) << 32 | (n - 1);
        want += n * 0xfffffff0;
        matrix_expect(dev, args->wrong, *word == want, *word & INT64_MAX);
    }
}

/* `arg` is the kernel. */
static int play_words(iris_t *iris, void *arg)
{
    const struct iris_kernel *kernel = (const struct iris_kernel *)arg;
    struct matrix matrix = {0};
    struct args args = {0};
    uint64_t where;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_calloc(iris, MATRIX_MAX_RANKS, 8, &args.words));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    for (args.phase = 0; args.phase < 4; args.phase++) {
        CHECK_OK(iris_launch(iris, kernel, 1, 1, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
    }
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    CHECK_EQUAL(where, 0);
    return 0;
}

static TEST(min_max_and_cas_take_nan_and_signed_zero_as_documented)
{
    harness_run_all(play_words, (void *)special_floats);
}

static TEST(one_word_may_be_used_at_other_widths_in_turn)
{
    harness_run_all(play_words, (void *)mixed_widths);
}

TEST_GROUP(matrix);
