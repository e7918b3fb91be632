/* SPDX-License-Identifier: MIT
 *
 * Atomics under contention: what all ranks, workgroups and lanes got back must
 * be one history of each element, whatever the operation, type and order.
 */
#include "config.h"

#include "support/amo_verbs.h"

#include <stdio.h>

#define GRID 3u   /* workgroups; all run at once */
#define LANES 10u /* contenders of one workgroup for one element */
#define MOST (MATRIX_MAX_RANKS * GRID * LANES) /* fewer than 256 values */
#define SUBS (MATRIX_MAX_RANKS * GRID)
#define GUARD 0xa5u

/* A set of elements side by side for one type, order and scope on one rank.
 * Contenders of system scope share the first; each rank, or each workgroup, has
 * its own if the scope is no wider. Then what each contender got back. */
struct arena {
    uint64_t elements[SUBS];
    uint64_t old[MOST];
};
#define ARENAS ((size_t)IRIS_D_NUM_KINDS * NUM_SEMS * NUM_SCOPES)

struct args {
    const int64_t *context;
    uint64_t *wrong;
    struct arena *arenas;
    uint64_t verb;
    uint64_t rounds;
};

/* Contenders for one element, and elements in use. */
IRIS_DEVICE unsigned contenders(iris_dev_t dev, uint32_t scope)
{
    return LANES * (scope == IRIS_SCOPE_WG ? 1 : GRID) *
           (scope == IRIS_SCOPE_SYSTEM ? (unsigned)dev.num_ranks : 1);
}

IRIS_DEVICE unsigned elements(iris_dev_t dev, uint32_t scope)
{
    return (unsigned)dev.num_ranks * GRID * LANES / contenders(dev, scope);
}

/* Values are k of small(): the first one, and contender p's operand. */
IRIS_DEVICE unsigned first(uint32_t kind, uint32_t verb)
{
    unsigned highest = is_signed(kind) ? 127 : 255;

    return verb == ADD || verb == CAS || verb == OR || verb == XOR ? 0
           : verb == SUB                                           ? 250
           : verb == MIN                                           ? highest
           : verb == MAX ? (highest + 1) % 256
                         : 255;
}

IRIS_DEVICE unsigned operand(uint32_t verb, unsigned p)
{
    return verb == ADD || verb == SUB   ? 1
           : verb == AND                ? 255 ^ 1u << p % 8
           : verb == OR || verb == XOR  ? 1u << p % 8
           : verb == MIN || verb == MAX ? p + 5
           : verb == CAS                ? p + 1
                                        : p;
}

/* What contender p makes of k. */
IRIS_DEVICE unsigned next(uint32_t kind, uint32_t verb, unsigned k, unsigned p)
{
    unsigned v = operand(verb, p), sign = is_signed(kind) ? 128 : 0;

    switch (verb) {
    case ADD:
        return (k + v) % 256;
    case SUB:
        return (k - v) % 256;
    case AND:
        return k & v;
    case OR:
        return k | v;
    case XOR:
        return k ^ v;
    case MIN:
        return (k ^ sign) < (v ^ sign) ? k : v;
    case MAX:
        return (k ^ sign) > (v ^ sign) ? k : v;
    case CAS:
        return k == 0 ? v : k;
    default:
        return v;
    }
}

IRIS_DEVICE unsigned char *element(struct arena *arena, uint32_t kind,
                                   unsigned i)
{
    return (unsigned char *)arena->elements + (size_t)i * bytes_of(kind);
}

IRIS_KERNEL(prepare, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, a, ARENAS) {
        uint32_t kind = (uint32_t)(a / (NUM_SEMS * NUM_SCOPES));
        unsigned used = elements(dev, a % NUM_SCOPES) * bytes_of(kind);
        uint64_t bits = small(kind, first(kind, (uint32_t)args->verb));

        for (unsigned i = 0; i < sizeof args->arenas[a].elements; i++) {
            element(&args->arenas[a], IRIS_D_KIND_u8, i)[0] =
                i < used ? matrix_byte(bits, i % bytes_of(kind)) : GUARD;
        }
    }
}

IRIS_KERNEL(contend, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t verb = (uint32_t)args->verb;
    unsigned group = (unsigned)dev.rank * GRID + wg.id;

    for (size_t a = 0; a < ARENAS * (size_t)dev.num_ranks; a++) {
        struct arena *arena = &args->arenas[a / (size_t)dev.num_ranks];
        size_t setting = (size_t)(arena - args->arenas);
        uint32_t kind = (uint32_t)(setting / (NUM_SEMS * NUM_SCOPES));
        struct amo how;

        how.to = (int)(a % (size_t)dev.num_ranks);
        how.scope = (iris_scope_t)(setting % NUM_SCOPES);
        how.sem = (iris_sem_t)(setting / NUM_SCOPES % NUM_SEMS);
        how.expected = small(kind, 0);
        IRIS_WG_LANES (wg, lane, has_verb(kind, verb) ? LANES : 0) {
            unsigned all = group * LANES + (unsigned)lane;
            unsigned p = all % contenders(dev, how.scope);
            struct amo one = how;
            uint64_t old;

            one.ptr = element(arena, kind, all / contenders(dev, how.scope));
            one.value = small(kind, operand(verb, p));
            old = amo(dev, kind, (enum verb)verb, PLAIN, one);
            iris_store(dev, &arena->old[all], old, one.to);
        }
    }
}

/* The k of small() that has these bits; 256 if none has. */
IRIS_DEVICE unsigned small_of(uint32_t kind, uint64_t bits)
{
    unsigned k = is_float(kind) ? 0 : (unsigned)(bits & 255);
    unsigned end = is_float(kind) ? 256 : k + 1;

    while (k < end && small(kind, k) != bits) {
        k++;
    }
    return k < end ? k : 256;
}

/* The history of element i: each contender took the value from what it got
 * back to next(). Along one path each value is entered as often as left, but
 * for the first and the last. 0 if so, and it ended where it had to. */
IRIS_DEVICE_LARGE int history(iris_dev_t dev, struct args args, size_t a,
                              unsigned i)
{
    uint32_t kind = (uint32_t)(a / (NUM_SEMS * NUM_SCOPES));
    uint32_t verb = (uint32_t)args.verb;
    unsigned count = contenders(dev, a % NUM_SCOPES);
    unsigned goal = first(kind, verb), last;
    short left[257] = {0};
    uint64_t bits = 0;

    for (unsigned byte = bytes_of(kind); byte-- > 0;) {
        bits = bits << 8 | element(&args.arenas[a], kind, i)[byte];
    }
    last = small_of(kind, bits);
    for (unsigned p = 0; p < count; p++) {
        unsigned old = small_of(kind, args.arenas[a].old[i * count + p]);

        if (old == 256) {
            return 1;
        }
        left[old]++;
        left[next(kind, verb, old, p)]--;
        goal = next(kind, verb, goal, p);
    }
    left[first(kind, verb)]--;
    left[last]++;
    for (unsigned k = 0; k < 257; k++) {
        if (left[k] != 0) {
            return 2;
        }
    }
    /* XCHG and CAS may end with anybody's value, the others with one. */
    return verb == XCHG || verb == CAS || last == goal ? 0 : 3;
}

IRIS_KERNEL(judge, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t verb = (uint32_t)args->verb;

    IRIS_LANES (wg, a, ARENAS) {
        uint32_t kind = (uint32_t)(a / (NUM_SEMS * NUM_SCOPES));
        unsigned used = elements(dev, a % NUM_SCOPES);
        unsigned end = sizeof args->arenas[a].elements;
        iris_bool_t known = has_verb(kind, verb);

        for (unsigned i = 0; known && i < used; i++) {
            int wrong = history(dev, *args, a, i);

            matrix_expect(dev, args->wrong, wrong == 0,
                          a << 16 | i << 8 | (unsigned)wrong);
        }
        for (unsigned i = used * bytes_of(kind); i < end; i++) {
            matrix_expect(dev, args->wrong,
                          *element(&args->arenas[a], IRIS_D_KIND_u8, i) ==
                              GUARD,
                          a << 16 | i << 8 | 4);
        }
    }
}

static int play_arenas(iris_t *iris, void *arg)
{
    struct matrix matrix = {0};
    struct args args = {0};
    uint64_t where;
    void *arenas;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, ARENAS * sizeof(struct arena), &arenas));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.arenas = (struct arena *)arenas;
    for (size_t i = 0; i < *(const size_t *)arg * NUM_VERBS; i++) {
        args.verb = i % NUM_VERBS;
        CHECK_OK(
            iris_launch(iris, prepare, GRID, 64, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
        CHECK_OK(
            iris_launch(iris, contend, GRID, LANES, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
        CHECK_OK(iris_launch(iris, judge, GRID, 64, &args, sizeof args, NULL));
        CHECK_EQUAL(matrix_result(&matrix, &where), 0);
        if (where != 0) {
            char text[100];

            snprintf(text, sizeof text,
                     "verb %u kind %u sem %u scope %u element %u",
                     (unsigned)args.verb, (unsigned)(where >> 16 & 255) / 12,
                     (unsigned)(where >> 16 & 255) / 3 % 4,
                     (unsigned)(where >> 16 & 255) % 3,
                     (unsigned)(where >> 8 & 255));
            return harness_failed(__FILE__, __LINE__, text, where & 255, 0);
        }
    }
    return 0;
}

static TEST(old_values_of_all_contenders_are_one_history)
{
    size_t rounds = harness_count(50, 3);

    harness_run_all(play_arenas, &rounds);
}

TEST_GROUP(matrix, one_gpu);
