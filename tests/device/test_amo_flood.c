/* SPDX-License-Identifier: MIT
 *
 * Long runs of atomics of all ranks on a few words: no update is lost, no value
 * torn, and a lock made of them guards plain data.
 */
#include "config.h"

#include "support/matrix.h"

#define GRID 3u /* workgroups; all run at once */
#define NUM_SEMS 4
#define EVERY_BYTE 0x0101010101010101u

/* One on each rank's heap. */
struct yard {
    uint32_t tickets_u32;
    float sum_f32;
    uint64_t tickets_u64;
    double sum_f64;
    uint64_t whole; /* only ever the same byte eight times */
    uint64_t flags; /* a bit for each workgroup there is */
    uint32_t toggles;
    uint64_t token;
    uint64_t tokens;  /* sum of all that were put there less those taken */
    uint64_t steps;   /* counted with CAS */
    uint64_t lock;    /* 0: free */
    uint64_t guarded; /* a plain counter of the next rank's lock */
};

struct yard_args {
    const int64_t *context;
    uint64_t *wrong;
    struct yard *yard;
    uint64_t rounds;
};

/* Tickets grow, and what all write whole is read whole. */
IRIS_DEVICE iris_bool_t add(iris_dev_t dev, struct yard *yard, int to,
                            uint64_t rounds)
{
    uint64_t last_u64 = 0, last_u32 = 0, whole;
    iris_bool_t good = 1;

    for (uint64_t i = 1; i <= rounds; i++) {
        iris_sem_t sem = (iris_sem_t)(i % NUM_SEMS);
        uint64_t u32 = iris_atomic_add(dev, &yard->tickets_u32, 1, to, sem,
                                       IRIS_SCOPE_SYSTEM);
        uint64_t u64 = iris_atomic_add(dev, &yard->tickets_u64, 1, to, sem,
                                       IRIS_SCOPE_SYSTEM);

        good = good && (i == 1 || (u32 > last_u32 && u64 > last_u64));
        last_u32 = u32, last_u64 = u64;
        iris_store_volatile(dev, &yard->whole, u64 % 256 * EVERY_BYTE, to);
        whole = iris_load_volatile(dev, &yard->whole, to);
        good = good && whole == (whole & 255) * EVERY_BYTE;
    }
    return good;
}

/* Sums that floats hold exactly. */
IRIS_DEVICE void sum_up(iris_dev_t dev, struct yard *yard, int to,
                        uint64_t rounds)
{
    for (uint64_t i = 0; i < 2 * rounds; i++) {
        iris_sem_t sem = (iris_sem_t)(i % NUM_SEMS);

        if (i < rounds) {
            (void)iris_atomic_add(dev, &yard->sum_f32, 0.5f, to, sem,
                                  IRIS_SCOPE_SYSTEM);
        } else {
            (void)iris_atomic_sub(dev, &yard->sum_f64, 0.25, to, sem,
                                  IRIS_SCOPE_SYSTEM);
        }
    }
}

/* A bit that only the caller changes is each time as it left it. */
IRIS_DEVICE iris_bool_t flip(iris_dev_t dev, struct yard *yard, int to,
                             uint64_t bit, uint64_t rounds)
{
    iris_bool_t good = 1;

    for (uint64_t i = 0; i < rounds; i++) {
        iris_sem_t sem = (iris_sem_t)(i % NUM_SEMS);
        uint64_t set =
            iris_atomic_or(dev, &yard->flags, bit, to, sem, IRIS_SCOPE_SYSTEM);
        uint64_t cleared = iris_atomic_and(dev, &yard->flags, ~bit, to, sem,
                                           IRIS_SCOPE_SYSTEM);
        uint64_t toggled = iris_atomic_xor(dev, &yard->toggles, (uint32_t)bit,
                                           to, sem, IRIS_SCOPE_SYSTEM);

        good = good && (set & bit) == 0 && (cleared & bit) != 0 &&
               ((toggled & bit) != 0) == (i % 2 == 1);
    }
    return good;
}

/* Every token is taken as often as it was put there; CAS counts each step. */
IRIS_DEVICE void pass(iris_dev_t dev, struct yard *yard, int to, uint64_t wg,
                      uint64_t rounds)
{
    uint64_t sum = 0, step = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        iris_sem_t sem = (iris_sem_t)(i % NUM_SEMS);
        uint64_t token = matrix_mark(dev.rank, wg, i), seen;

        sum += token - iris_atomic_xchg(dev, &yard->token, token, to, sem,
                                        IRIS_SCOPE_SYSTEM);
        while ((seen = iris_atomic_cas(dev, &yard->steps, step, step + 1, to,
                                       sem, IRIS_SCOPE_SYSTEM)) != step) {
            step = seen;
        }
    }
    (void)iris_atomic_add(dev, &yard->tokens, sum, to, IRIS_RELAXED,
                          IRIS_SCOPE_SYSTEM);
}

IRIS_KERNEL(flood, struct yard_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t bit = (uint64_t)1 << ((unsigned)dev.rank * GRID + wg.id);

    for (int to = 0; iris_wg_leader(wg) && to < dev.num_ranks; to++) {
        matrix_expect(dev, args->wrong, add(dev, args->yard, to, args->rounds),
                      101);
        sum_up(dev, args->yard, to, args->rounds);
        matrix_expect(dev, args->wrong,
                      flip(dev, args->yard, to, bit, args->rounds), 102);
        pass(dev, args->yard, to, wg.id, args->rounds);
    }
}

IRIS_KERNEL(flooded, struct yard_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const struct yard *yard = args->yard;
    uint64_t total = args->rounds * wg.num_wgs * (uint64_t)dev.num_ranks;

    matrix_expect(dev, args->wrong, yard->tickets_u32 == total, 1);
    matrix_expect(dev, args->wrong, yard->tickets_u64 == total, 2);
    matrix_expect(dev, args->wrong, yard->sum_f32 == 0.5f * (float)total, 3);
    matrix_expect(dev, args->wrong, yard->sum_f64 == -0.25 * (double)total, 4);
    matrix_expect(dev, args->wrong, yard->flags == 0, 5);
    matrix_expect(dev, args->wrong, yard->toggles == 0, 6);
    matrix_expect(dev, args->wrong, yard->tokens == yard->token, 7);
    matrix_expect(dev, args->wrong, yard->steps == total, 8);
}

/* Takes and gives back a lock in each of the ways there are. */
IRIS_DEVICE void take(iris_dev_t dev, uint64_t *lock, int to, uint64_t way)
{
    const iris_sem_t sem = way % 2 == 0 ? IRIS_ACQUIRE : IRIS_ACQ_REL;

    while ((way % 3 == 0
                ? iris_atomic_cas(dev, lock, 0, 1, to, sem, IRIS_SCOPE_SYSTEM)
            : way % 3 == 1
                ? iris_atomic_xchg(dev, lock, 1, to, sem, IRIS_SCOPE_SYSTEM)
                : iris_atomic_or(dev, lock, 1, to, sem, IRIS_SCOPE_SYSTEM)) !=
           0) {
    }
}

IRIS_DEVICE void give(iris_dev_t dev, uint64_t *lock, int to, uint64_t way)
{
    if (way % 3 == 0) {
        iris_atomic_store(dev, lock, 0, to, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    } else if (way % 3 == 1) {
        (void)iris_atomic_cas(dev, lock, 1, 0, to, IRIS_RELEASE,
                              IRIS_SCOPE_SYSTEM);
    } else {
        (void)iris_atomic_and(dev, lock, 0, to, IRIS_ACQ_REL,
                              IRIS_SCOPE_SYSTEM);
    }
}

IRIS_KERNEL(guard, struct yard_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct yard *yard = args->yard;
    int ranks = iris_wg_leader(wg) ? dev.num_ranks : 0;

    for (int at = 0; at < ranks; at++) {
        int home = (at + 1) % ranks; /* of what the lock is for */

        for (uint64_t i = 0; i < args->rounds; i++) {
            uint64_t count;

            take(dev, &yard->lock, at, i + wg.id);
            count = iris_load(dev, &yard->guarded, home);
            iris_store(dev, &yard->guarded, count + 1, home);
            give(dev, &yard->lock, at, i / 3);
        }
    }
}

IRIS_KERNEL(guarded, struct yard_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    matrix_expect(dev, args->wrong,
                  args->yard->guarded ==
                      args->rounds * wg.num_wgs * (uint64_t)dev.num_ranks,
                  args->yard->guarded);
}

/* A kernel, and the one that looks at what it left. */
struct pair {
    const struct iris_kernel *kernels[2];
    size_t rounds;
};

static int play_yard(iris_t *iris, void *arg)
{
    const struct pair *pair = (const struct pair *)arg;
    struct matrix matrix = {0};
    struct yard_args args = {0};
    uint64_t where;
    void *yard;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_calloc(iris, 1, sizeof(struct yard), &yard));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.yard = (struct yard *)yard;
    args.rounds = pair->rounds;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_launch(iris, pair->kernels[i], GRID, 64, &args,
                             sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
    }
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    CHECK_EQUAL(where & INT64_MAX, 0);
    CHECK_EQUAL(where, 0);
    return 0;
}

static TEST(floods_of_updates_lose_none_and_tear_nothing)
{
    struct pair pair = {{flood, flooded}, harness_count(100000, 2000)};

    harness_run_all(play_yard, &pair);
}

static TEST(a_lock_on_one_rank_guards_plain_data_on_another)
{
    struct pair pair = {{guard, guarded}, harness_count(5000, 200)};

    harness_run_all(play_yard, &pair);
}

TEST_GROUP(matrix);
