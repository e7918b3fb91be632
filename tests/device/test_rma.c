/* SPDX-License-Identifier: MIT
 *
 * Loads, stores, gets, puts and copies of every element type between every pair
 * of ranks, whole and in their place, with nothing beside them touched.
 */
#include "config.h"

#include "support/matrix.h"

#include <stdio.h>

#define GUARD 64
#define MOST 4096 /* elements */
#define HINTS 7

/* How an element gets to another rank: by whoever is to have it, by whoever has
 * it, or by anybody. */
/* clang-format off */
#define WAYS(X)                                                                \
    X(LOAD) X(LOAD_MASKED) X(LOAD_VOLATILE) X(LOAD_HINT)                       \
    X(GET) X(GET_MASKED) X(GET_PRIVATE)                                        \
    X(STORE) X(STORE_MASKED) X(STORE_VOLATILE) X(STORE_HINT)                   \
    X(PUT) X(PUT_MASKED) X(PUT_PRIVATE)                                        \
    X(COPY) X(COPY_MASKED)
/* clang-format on */
#define ROW(way) way,
enum way { WAYS(ROW) NUM_WAYS };
#undef ROW
#define ROW(way) #way,
static const char *const way_names[] = {WAYS(ROW)};
#undef ROW
#define ROW(name, c_type, arg) #name,
static const char *const type_names[] = {IRIS_TYPES(ROW, )};
#undef ROW

/* One round. Each rank has n elements at `source` and, for each rank they come
 * from (and for copies each caller), a region: guard, n elements, guard. */
struct args {
    const int64_t *context;
    uint64_t *wrong;
    char *source;
    char *regions;
    uint32_t way;
    uint32_t kind;
    uint32_t bytes; /* of an element */
    uint32_t hint;
    uint32_t holes; /* 1: some lanes are masked off */
    uint32_t guard; /* the byte */
    uint64_t n;
    uint64_t round;
};

IRIS_DEVICE size_t stride(const struct args *args)
{
    return 2 * GUARD + (args->n * args->bytes + 7) / 8 * 8;
}

IRIS_DEVICE iris_bool_t is_hole(const struct args *args, size_t i)
{
    return args->holes != 0 && i % 3 != 1;
}

/* One element's way; where lanes are masked off, nothing in it can be used. */
struct cell {
    const void *src;
    void *dst;
    int from;
    int to;
    iris_bool_t mask;
    iris_cache_t hint;
    uint64_t other;
};

IRIS_DEVICE struct cell cell_of(iris_dev_t dev, const struct args *args,
                                int pair, size_t i)
{
    int ranks = dev.num_ranks, copies = args->way >= COPY;
    struct cell cell;
    size_t region;

    cell.from = args->way < STORE ? pair : copies ? pair / ranks : dev.rank;
    cell.to = args->way < STORE ? dev.rank : copies ? pair % ranks : pair;
    region = (size_t)(copies ? dev.rank * ranks + cell.from : cell.from);
    cell.src = args->source + i * args->bytes;
    cell.dst = args->regions + region * stride(args) + GUARD + i * args->bytes;
    cell.mask = !is_hole(args, i);
    cell.hint = (iris_cache_t)args->hint;
    cell.other = matrix_mark(-1, i, args->round);
    if (!cell.mask) {
        cell.dst = args->way == LOAD_MASKED ? cell.dst : (void *)(uintptr_t)8;
        cell.src = (const void *)(uintptr_t)8;
        cell.from = cell.to = INT32_MAX;
    }
    return cell;
}

/* clang-format off */
/* move_f32 and so on: the kernels that move. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_DEVICE void one_##name(iris_dev_t dev, uint32_t way, struct cell c)   \
    {                                                                          \
        const c_type *src = (const c_type *)c.src;                             \
        c_type *dst = (c_type *)c.dst, own;                                    \
        switch (way) {                                                         \
        case LOAD: *dst = iris_load(dev, src, c.from); break;                  \
        case LOAD_MASKED:                                                      \
            *dst = iris_load_masked(dev, src, c.from, c.mask,                  \
                                    iris_d_value_##name(c.other)); break;      \
        case LOAD_VOLATILE: *dst = iris_load_volatile(dev, src, c.from); break;\
        case LOAD_HINT: *dst = iris_load_hint(dev, src, c.from, c.hint); break;\
        case GET: iris_get(dev, src, dst, c.from); break;                      \
        case GET_MASKED: iris_get_masked(dev, src, dst, c.from, c.mask); break;\
        case GET_PRIVATE: iris_get(dev, src, &own, c.from); *dst = own; break; \
        case STORE: iris_store(dev, dst, *src, c.to); break;                   \
        case STORE_MASKED:                                                     \
            iris_store_masked(dev, dst,                                        \
                              c.mask ? *src : iris_d_value_##name(c.other),    \
                              c.to, c.mask); break;                            \
        case STORE_VOLATILE: iris_store_volatile(dev, dst, *src, c.to); break; \
        case STORE_HINT: iris_store_hint(dev, dst, *src, c.to, c.hint); break; \
        case PUT: iris_put(dev, src, dst, c.to); break;                        \
        case PUT_MASKED: iris_put_masked(dev, src, dst, c.to, c.mask); break;  \
        case PUT_PRIVATE: own = *src; iris_put(dev, &own, dst, c.to); break;   \
        case COPY: iris_copy(dev, src, dst, c.from, c.to); break;              \
        default: iris_copy_masked(dev, src, dst, c.from, c.to, c.mask);        \
        }                                                                      \
    }                                                                          \
    IRIS_KERNEL(move_##name, struct args)                                      \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        int pairs = dev.num_ranks * (args->way >= COPY ? dev.num_ranks : 1);   \
        for (int pair = 0; pair < pairs; pair++) {                             \
            IRIS_LANES(wg, i, args->n) {                                       \
                one_##name(dev, args->way, cell_of(dev, args, pair, i));       \
            }                                                                  \
        }                                                                      \
    }
IRIS_TYPES(ROW, )
#undef ROW
/* clang-format on */

#define ROW(name, c_type, arg) {move_##name, sizeof(c_type)},
static const struct {
    const struct iris_kernel *move;
    uint32_t bytes;
} types[] = {IRIS_TYPES(ROW, )};
#undef ROW

IRIS_KERNEL(fill, struct args)
{
    int rank = iris_dev_init(args->context).rank;

    IRIS_LANES (wg, b, args->n * args->bytes) {
        args->source[b] = (char)matrix_byte(
            matrix_mark(rank, b / args->bytes, args->round), b % args->bytes);
    }
}

/* Byte b of a region, as it should be. */
IRIS_DEVICE unsigned char expected(const struct args *args, int from, size_t b)
{
    size_t i = (b - GUARD) / args->bytes;

    if (b < GUARD || i >= args->n ||
        (is_hole(args, i) && args->way != LOAD_MASKED)) {
        return (unsigned char)args->guard;
    }
    return matrix_byte(
        matrix_mark(is_hole(args, i) ? -1 : from, i, args->round),
        b % args->bytes);
}

IRIS_KERNEL(check, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int regions = dev.num_ranks * (args->way >= COPY ? dev.num_ranks : 1);

    for (int region = 0; region < regions; region++) {
        const char *bytes = args->regions + (size_t)region * stride(args);

        IRIS_LANES (wg, b, stride(args)) {
            unsigned char want = expected(args, region % dev.num_ranks, b);

            matrix_expect(dev, args->wrong, (unsigned char)bytes[b] == want,
                          (uint64_t)args->way << 56 |
                              (uint64_t)args->kind << 48 | args->n << 32 |
                              (uint64_t)region << 24 | b);
        }
    }
}

/* A range of ways and of sizes. */
struct sweep {
    enum way first, last;
    const size_t *sizes; /* ends with 0 */
    uint32_t hints;      /* how many to try */
    uint32_t holes;
    size_t rounds;
};

static int play(struct matrix *matrix, struct args *args)
{
    const int64_t ranks = iris_num_ranks(matrix->iris);
    const size_t regions = (size_t)(args->way >= COPY ? ranks * ranks : ranks);
    const unsigned grid = 1 + (unsigned)(matrix->round / 2 % 5);

    args->round = matrix->round;
    args->guard = (uint32_t)(0x5a + args->round) & 0xff;
    CHECK_OK(iris_memset(matrix->iris, args->regions, (int)args->guard,
                         regions * stride(args), NULL));
    CHECK_OK(
        iris_launch(matrix->iris, fill, grid, 64, args, sizeof *args, NULL));
    CHECK_OK(matrix_meet(matrix));
    CHECK_OK(iris_launch(matrix->iris, types[args->kind].move, grid, 64, args,
                         sizeof *args, NULL));
    CHECK_OK(matrix_meet(matrix));
    CHECK_OK(
        iris_launch(matrix->iris, check, grid, 64, args, sizeof *args, NULL));
    return 0;
}

/* Every type by every way of the sweep. */
static int play_types(struct matrix *matrix, struct args *args,
                      const struct sweep *sweep)
{
    for (args->way = sweep->first; args->way <= sweep->last; args->way++) {
        for (args->kind = 0; args->kind < IRIS_D_NUM_KINDS; args->kind++) {
            args->bytes = types[args->kind].bytes;
            if (play(matrix, args) != 0) {
                return 1;
            }
        }
    }
    return 0;
}

static int body(iris_t *iris, void *arg)
{
    const struct sweep *sweep = (const struct sweep *)arg;
    const size_t ranks = (size_t)iris_num_ranks(iris);
    struct args args = {0};
    struct matrix matrix = {0};
    uint64_t where;
    char text[200];
    void *memory;

    if (matrix_open(iris, &matrix) != 0) {
        return 1;
    }
    CHECK_OK(iris_malloc(iris, (1 + ranks * ranks) * (MOST * 8 + 2 * GUARD),
                         &memory));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.source = (char *)memory;
    args.regions = args.source + MOST * 8 + 2 * GUARD;
    args.holes = sweep->holes;
    for (size_t round = 0; round < sweep->rounds; round++) {
        for (size_t i = 0; sweep->sizes[i] != 0; i++) {
            args.n = sweep->sizes[i];
            args.hint = (uint32_t)(round % sweep->hints);
            CHECK_EQUAL(play_types(&matrix, &args, sweep), 0);
        }
    }
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    snprintf(text, sizeof text, "%s of %s, %u elements: region %u, byte %u",
             way_names[(where >> 56 & 127) % NUM_WAYS],
             type_names[(where >> 48 & 255) % IRIS_D_NUM_KINDS],
             (unsigned)(where >> 32 & 0xffff), (unsigned)(where >> 24 & 255),
             (unsigned)(where & 0xffffff));
    return where == 0 ? 0 : harness_failed(__FILE__, __LINE__, text, 1, 0);
}

static TEST(every_way_moves_every_type_between_every_pair_of_ranks)
{
    const size_t sizes[] = {257, 0};
    struct sweep sweep = {LOAD, COPY_MASKED, sizes, 1, 0, 1};

    harness_run_all(body, &sweep);
}

static TEST(every_size_arrives_whole_and_nothing_beside_it)
{
    const size_t sizes[] = {1, 8, 16, 32, 257, MOST, 0};
    const enum way ways[] = {LOAD, GET, STORE, PUT, COPY};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct sweep sweep = {ways[i], ways[i], sizes, 1, 0, 1};

        harness_run_all(body, &sweep);
    }
}

static TEST(no_cache_hint_changes_a_value)
{
    const size_t sizes[] = {33, 0};
    struct sweep loads = {LOAD_HINT, LOAD_HINT, sizes, HINTS, 0, HINTS};
    struct sweep stores = {STORE_HINT, STORE_HINT, sizes, HINTS, 0, HINTS};

    harness_run_all(body, &loads);
    harness_run_all(body, &stores);
}

static TEST(masked_off_lanes_touch_nothing_and_load_other)
{
    const enum way ways[] = {LOAD_MASKED, GET_MASKED, STORE_MASKED, PUT_MASKED,
                             COPY_MASKED};
    const size_t sizes[] = {1, 257, 0};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct sweep sweep = {ways[i], ways[i], sizes, 1, 1, 1};

        harness_run_all(body, &sweep);
    }
}

static TEST(rounds_follow_each_other_through_the_same_memory)
{
    const size_t sizes[] = {31, 0};
    struct sweep gets = {GET, GET, sizes, 1, 0, harness_count(300, 4)};
    struct sweep puts = {PUT, PUT, sizes, 1, 0, harness_count(300, 4)};

    harness_run_all(body, &gets);
    harness_run_all(body, &puts);
}

/* ---- Peers that are none ---- */

#define LANES 64
#define ROUNDS 5
#define NOBODY INT32_MAX

struct guarded_args {
    const int64_t *context;
    const int32_t *peers; /* one for each lane */
    uint64_t *words;      /* symmetric, LANES for each round */
    uint64_t rounds;
};

/* Compilers take what does not change out of loops, such as the base of a
 * peer's heap, but must not look for that of a peer that is none. */
IRIS_KERNEL(store_guarded, struct guarded_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t lane = iris_d_lane(); /* on the CPU one, 0 */
    int32_t peer = args->peers[lane];

    for (uint64_t round = 0; round < args->rounds; round++) {
        uint64_t *word = &args->words[round * LANES + lane];

        iris_wg_barrier(wg);
        if (peer != NOBODY) {
            iris_store(dev, word, (uint64_t)iris_d_num_lanes(), peer);
        }
    }
}

static RANK_TEST(a_peer_that_is_none_does_no_harm_behind_a_test, ALL_RANKS)
{
    uint64_t seen[ROUNDS * LANES], lanes;
    struct guarded_args args = {.context = iris_device_context(iris),
                                .rounds = ROUNDS};
    int32_t peers[LANES];
    int to = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    void *memory;

    for (int i = 0; i < LANES; i++) {
        peers[i] = i % 3 == 0 ? to : NOBODY;
    }
    CHECK_OK(iris_malloc(iris, sizeof peers, &memory));
    CHECK_OK(harness_write(iris, memory, peers, sizeof peers));
    args.peers = (const int32_t *)memory;
    CHECK_OK(iris_calloc(iris, 1, sizeof seen, &memory));
    args.words = (uint64_t *)memory;
    CHECK_OK(
        iris_launch(iris, store_guarded, 1, LANES, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, seen, memory, sizeof seen));
    lanes = seen[0];
    CHECK(lanes == 1 || lanes == LANES);
    for (uint64_t i = 0; i < ROUNDS * LANES; i++) {
        uint64_t lane = i % LANES;

        CHECK_EQUAL(seen[i], lane < lanes && lane % 3 == 0 ? lanes : 0);
    }
    return 0;
}

TEST_GROUP(matrix, code, sample, slow);
