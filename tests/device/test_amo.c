/* SPDX-License-Identifier: MIT
 *
 * What each atomic does, one at a time: every operation, type, order and scope
 * at every peer, old and new values, and the bytes beside the element.
 * test_amo_race.c has many at once, test_amo_words.c special cases.
 */
#include "config.h"

#include "support/amo_verbs.h"

#include <stdio.h>
#include <string.h>

#define CELL 16     /* bytes around one element */
#define GUARD 0xa5u /* what they hold else */
#define VALUES 6
#define PAIRS (VALUES * VALUES)
/* Each type with each verb, order and scope, at VALUES pairs of operands. */
#define CASES \
    (IRIS_D_NUM_KINDS * NUM_VERBS * NUM_SEMS * NUM_SCOPES * (size_t)VALUES)

struct args {
    const int64_t *context;
    uint64_t *wrong;
    char *cells; /* [caller][case] */
};

/* One case, and what its element is before, then, and after that. */
struct trial {
    uint32_t kind, verb;
    struct amo amo;
    uint64_t before, then, after;
    size_t offset; /* of the element in its cell */
};

/* clang-format off */
/* c_type model_f32(enum verb, c_type a, c_type b) and so on, in C's own
 * arithmetic. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_DEVICE uint64_t model_##name(uint32_t verb, uint64_t x, uint64_t y)   \
    {                                                                          \
        c_type a = iris_d_value_##name(x), b = iris_d_value_##name(y);         \
        return iris_d_bits_##name((c_type)(                                    \
            verb == ADD ? x + y : verb == SUB ? x - y :                        \
            verb == AND ? x & y : verb == OR ? x | y : verb == XOR ? x ^ y :   \
            verb == MIN ? (uint64_t)(a < b ? a : b) :                          \
            (uint64_t)(a > b ? a : b)));                                       \
    }
IRIS_INTEGER_TYPES(ROW, )
#undef ROW
#define ROW(name, c_type, to_number, from_number)                              \
    IRIS_DEVICE uint64_t model_##name(uint32_t verb, uint64_t x, uint64_t y)   \
    {                                                                          \
        c_type a = to_number(iris_d_value_##name(x));                          \
        c_type b = to_number(iris_d_value_##name(y));                          \
        return iris_d_bits_##name(from_number(                                 \
            verb == ADD ? a + b : verb == SUB ? a - b :                        \
            verb == MIN ? (a < b ? a : b) : (a > b ? a : b)));                 \
    }
ROW(f16, float, iris_f16_to_f32, iris_f16_from_f32)
ROW(bf16, float, iris_bf16_to_f32, iris_bf16_from_f32)
ROW(f32, float, , )
ROW(f64, double, , )
#undef ROW

/* What verb makes of x and y; y is what CAS stores. */
IRIS_DEVICE uint64_t model(uint32_t kind, uint32_t verb, uint64_t x, uint64_t y)
{
#define ROW(name, c_type, arg)                                                 \
    case IRIS_D_KIND_##name: return model_##name(verb, x, y);
    if (verb == XCHG || verb == CAS) {
        return y;
    }
    switch (kind) {
    IRIS_TYPES(ROW, )
    default: return 0;
    }
#undef ROW
}

/* Operands: integers at the ends of their range, floats of either sign, some
 * not to be added without rounding. */
IRIS_DEVICE uint64_t operand(uint32_t kind, size_t i)
{
    const uint64_t top = (uint64_t)1 << (8 * bytes_of(kind) - 1);
    const uint64_t integers[VALUES] = {0, 1, top | (top - 1), top, top - 1,
                                       0x5a3cc3a5965a3c69u & (top - 1)};
    const double numbers[VALUES] = {0, 1, -1.5, 100, -96.25, 0.0078125};
    switch (kind) {
    case IRIS_D_KIND_f16:
        return iris_d_bits_f16(iris_f16_from_f32((float)numbers[i]));
    case IRIS_D_KIND_bf16:
        return iris_d_bits_bf16(iris_bf16_from_f32((float)numbers[i]));
    case IRIS_D_KIND_f32: return iris_d_bits_f32((float)numbers[i]);
    case IRIS_D_KIND_f64: return iris_d_bits_f64(numbers[i]);
    default: return integers[i];
    }
}
/* clang-format on */

/* Case c: what it does and what comes of it. */
IRIS_DEVICE struct trial trial_of(size_t c)
{
    size_t pair = c % VALUES, combination = c / VALUES;
    struct trial t;
    uint32_t bytes;

    t.amo.ptr = NULL;
    t.amo.to = 0;
    t.amo.sem = (iris_sem_t)(combination % NUM_SEMS);
    t.amo.scope = (iris_scope_t)(combination / NUM_SEMS % NUM_SCOPES);
    combination /= NUM_SEMS * NUM_SCOPES;
    t.verb = combination % NUM_VERBS;
    t.kind = (uint32_t)(combination / NUM_VERBS);
    bytes = bytes_of(t.kind);
    /* Every operand; its partner differs from order to order. */
    t.before = operand(t.kind, pair);
    t.amo.value = operand(t.kind, (pair + c / VALUES) % VALUES);
    t.amo.expected = t.before;
    t.then = model(t.kind, t.verb, t.before, t.amo.value);
    t.after = model(t.kind, t.verb, t.then, t.amo.value);
    t.offset = 4 + c % (8 / bytes) * bytes;
    t.offset = bytes == 8 ? 8 : t.offset;
    return t;
}

/* A bit for each thing that went wrong. */
IRIS_DEVICE unsigned judge(iris_dev_t dev, struct trial t)
{
    enum verb verb = (enum verb)t.verb;
    struct amo a = t.amo, wild = t.amo;
    unsigned wrong = 0;

    a.value = t.before;
    (void)access(dev, t.kind, 1, a);
    a.value = t.amo.value;
    if (verb == CAS) { /* first one that fails */
        a.expected = t.before ^ 1;
        wrong |= amo(dev, t.kind, verb, PLAIN, a) != t.before;
        wrong |= access(dev, t.kind, 0, a) == t.before ? 0u : 2u;
        a.expected = t.before;
    }
    wrong |= amo(dev, t.kind, verb, PLAIN, a) == t.before ? 0u : 4u;
    wrong |= access(dev, t.kind, 0, a) == t.then ? 0u : 8u;
    wild.ptr = (void *)(uintptr_t)8;
    wild.to = INT32_MAX;
    wrong |= amo(dev, t.kind, verb, MASK_OFF, wild) == 0 ? 0u : 16u;
    a.expected = t.then;
    wrong |= amo(dev, t.kind, verb, MASK_ON, a) == t.then ? 0u : 32u;
    wrong |= access(dev, t.kind, 0, a) == t.after ? 0u : 64u;
    return wrong;
}

IRIS_KERNEL(one_at_a_time, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int to = 0; to < dev.num_ranks; to++) {
        IRIS_LANES (wg, c, CASES) {
            struct trial t = trial_of(c);
            unsigned wrong = 0;

            t.amo.to = to;
            t.amo.ptr =
                args->cells + t.offset + ((size_t)dev.rank * CASES + c) * CELL;
            if (has_verb(t.kind, t.verb)) {
                wrong = judge(dev, t);
            }
            matrix_expect(dev, args->wrong, wrong == 0, c << 8 | wrong);
        }
    }
}

/* After one_at_a_time: each cell has its element's last value and guards. */
IRIS_KERNEL(look_around, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, cell, (size_t)dev.num_ranks * CASES) {
        const char *bytes = args->cells + cell * CELL;
        struct trial t = trial_of(cell % CASES);

        for (size_t i = 0; i < CELL; i++) {
            size_t k = i - t.offset;
            unsigned want = GUARD;

            if (k < bytes_of(t.kind) && has_verb(t.kind, t.verb)) {
                want = matrix_byte(t.after, k);
            }
            matrix_expect(dev, args->wrong, (unsigned char)bytes[i] == want,
                          (cell % CASES) << 8 | 128 | i);
        }
    }
}

static RANK_TEST(every_atomic_type_order_and_scope_changes_its_element_alone,
                 ALL_RANKS)
{
    const size_t bytes = (size_t)iris_num_ranks(iris) * CASES * CELL;
    struct matrix matrix = {0};
    struct args args = {0};
    uint64_t where;
    void *cells;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, bytes, &cells));
    CHECK_OK(iris_memset(iris, cells, GUARD, bytes, NULL));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.cells = (char *)cells;
    CHECK_OK(matrix_meet(&matrix));
    CHECK_OK(iris_launch(iris, one_at_a_time, 3, 64, &args, sizeof args, NULL));
    CHECK_OK(matrix_meet(&matrix));
    CHECK_OK(iris_launch(iris, look_around, 3, 64, &args, sizeof args, NULL));
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    if (where != 0) {
        struct trial t = trial_of((where & INT64_MAX) >> 8);
        char text[100];

        snprintf(text, sizeof text, "kind %u verb %u sem %d scope %d: bits",
                 t.kind, t.verb, t.amo.sem, t.amo.scope);
        return harness_failed(__FILE__, __LINE__, text, where & 255, 0);
    }
    return 0;
}

TEST_GROUP(matrix, sample);
