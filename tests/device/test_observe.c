/* SPDX-License-Identifier: MIT
 *
 * Observers see every device operation before it happens and after, with all
 * that is known of it, and what the operations do stays the same.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"
#endif

#include <stdlib.h>
#include <string.h>

#define GRID 2
#define MAX_EVENTS 256 /* of one workgroup */
#define BYTES 24       /* of a workgroup's copy */

/* One for each workgroup, on each rank's heap. */
struct board {
    int32_t a[8];
    int32_t b[8]; /* written by this rank */
    int32_t c[8]; /* written by the rank whose target this is */
    uint64_t words[4];
    uint64_t signals[3];
    double real;
};

struct watched_args {
    const int64_t *context;
    struct board *boards;
    struct iris_dev_group *group;
};

/* Whom a rank reads from, whom it writes to. */
IRIS_HOST_DEVICE int source_of(int rank, int num_ranks)
{
    return (rank + 1) % num_ranks;
}

IRIS_HOST_DEVICE int target_of(int rank, int num_ranks)
{
    return (rank + 2) % num_ranks;
}

IRIS_DEVICE void watched_elements(iris_dev_t dev, struct board *board)
{
    int from = source_of(dev.rank, dev.num_ranks);
    int to = target_of(dev.rank, dev.num_ranks);
    int32_t local = 77, value;

    value = iris_load(dev, &board->a[0], from);
    iris_store(dev, &board->c[1], value + 1, to);
    iris_get(dev, &board->a[2], &board->b[2], from);
    iris_put(dev, &board->a[3], &board->c[3], to);
    iris_copy(dev, &board->a[4], &board->c[4], from, to);
    value = iris_load_volatile(dev, &board->a[5], from);
    iris_store_volatile(dev, &board->c[5], value, to);
    value = iris_load_hint(dev, &board->a[6], from, IRIS_CACHE_STREAMING);
    iris_store_hint(dev, &board->c[6], value, to, IRIS_CACHE_WRITE_THROUGH);
    /* Masked off: nothing. */
    value = iris_load_masked(dev, &board->a[7], from, 0, value);
    iris_store_masked(dev, &board->c[7], value, to, 0);
    iris_put_masked(dev, &local, &board->c[7], to, 0);
    (void)iris_atomic_add_masked(dev, &board->c[7], 1, to, 0, IRIS_RELAXED,
                                 IRIS_SCOPE_WG);
}

IRIS_DEVICE void watched_atomics(iris_dev_t dev, struct board *board)
{
    int to = target_of(dev.rank, dev.num_ranks);
    uint64_t *word = &board->words[1];

    (void)iris_atomic_add(dev, word, 9, to, IRIS_RELAXED, IRIS_SCOPE_WG);
    (void)iris_atomic_sub(dev, word, 2, to, IRIS_ACQUIRE, IRIS_SCOPE_AGENT);
    (void)iris_atomic_cas(dev, word, 7, 8, to, IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);
    (void)iris_atomic_xchg(dev, word, 6, to, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    (void)iris_atomic_xor(dev, word, 3, to, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    (void)iris_atomic_and(dev, word, 7, to, IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);
    (void)iris_atomic_or(dev, word, 16, to, IRIS_RELEASE, IRIS_SCOPE_AGENT);
    (void)iris_atomic_min(dev, word, 15, to, IRIS_ACQ_REL, IRIS_SCOPE_AGENT);
    (void)iris_atomic_max(dev, &board->real, 2.5, to, IRIS_ACQ_REL,
                          IRIS_SCOPE_WG);
    (void)iris_atomic_load(dev, word, to, IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);
    iris_atomic_store(dev, word, 4, to, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
}

IRIS_DEVICE void watched_signals(iris_dev_t dev, struct board *board)
{
    uint64_t *set = board->signals;
    const int status[3] = {0, 1, 0};
    size_t found[3];

    iris_signal_set(dev, &set[0], 1, dev.rank);
    iris_signal_add(dev, &set[2], 1, dev.rank);
    (void)iris_signal_fetch(dev, &set[0]);
    (void)iris_wait_until(dev, &set[0], IRIS_CMP_EQ, 1);
    (void)iris_test(dev, &board->a[0], IRIS_CMP_EQ, 0);
    iris_wait_until_all(dev, set, 3, status, IRIS_CMP_GE, 1);
    (void)iris_wait_until_any(dev, set, 3, status, IRIS_CMP_GE, 1);
    (void)iris_wait_until_some(dev, set, 3, NULL, IRIS_CMP_GE, 1, found);
    (void)iris_test_all(dev, set, 3, NULL, IRIS_CMP_GE, 1);
    (void)iris_test_any(dev, set, 3, status, IRIS_CMP_GE, 1);
    (void)iris_test_some(dev, set, 3, NULL, IRIS_CMP_GE, 1, found);
    iris_put_signal(dev, &board->a[1], &board->b[0], &set[1], 5, dev.rank);
    iris_fence(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    iris_fence(IRIS_ACQUIRE, IRIS_SCOPE_AGENT);
}

IRIS_KERNEL(watched, struct watched_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = &args->boards[wg.id];
    int from = source_of(dev.rank, dev.num_ranks);
    int to = target_of(dev.rank, dev.num_ranks);

    watched_elements(dev, board);
    watched_atomics(dev, board);
    watched_signals(dev, board);
    iris_wg_barrier(wg);
    iris_wg_get(wg, dev, &board->words[2], &board->words[3], 8, from);
    iris_wg_put(wg, dev, board->a, board->b, BYTES, dev.rank);
    iris_wg_copy(wg, dev, board->a, board->c, BYTES, from, to);
    iris_wg_put(wg, dev, board->a, board->c, 0, to); /* no event */
    iris_wg_put_signal(wg, dev, board->a, board->b, 4, &board->signals[0], 3,
                       dev.rank);
    if (wg.id == 0) {
        iris_dev_barrier(wg, dev, args->group);
    }
}

#if IRIS_ON_CPU /* all else is about the CPU */

/* What a rank's observer noted; each workgroup writes its own part. */
struct record {
    size_t count[GRID]; /* of events before an operation */
    size_t strays;      /* with a workgroup, kernel or id that there is not */
    struct iris_cpu_event events[GRID][MAX_EVENTS];
    uint64_t after[GRID][MAX_EVENTS]; /* events after an operation, by id */
};

static iris_status_t note(void *observer, const struct iris_cpu_event *event)
{
    struct record *record = observer;
    unsigned wg = event->workgroup;

    if (wg >= GRID || strcmp(event->kernel, "watched") != 0 ||
        record->count[wg] == MAX_EVENTS || event->id == 0 ||
        event->id >= MAX_EVENTS) {
        __atomic_fetch_add(&record->strays, 1, __ATOMIC_RELAXED);
    } else if (event->after) {
        record->after[wg][event->id]++;
    } else {
        record->events[wg][record->count[wg]++] = *event;
    }
    return IRIS_OK;
}

/* Both sides of an operation have one id, and are seen again after it; ids
 * count up from 1. A wait for several signals is seen again for each that it
 * found. */
static int check_ids(const struct iris_cpu_event *events, size_t count,
                     const uint64_t *after)
{
    uint64_t id = 0;

    for (size_t i = 0; i < count; i++) {
        int second = i > 0 && events[i].write && !events[i - 1].write &&
                     events[i].op == events[i - 1].op &&
                     events[i].id == events[i - 1].id;
        int several = events[i].op == IRIS_OP_WAIT && events[i].bytes > 8;

        id += !second;
        CHECK_EQUAL(events[i].id, id);
        CHECK(after[id] >= 1);
        CHECK(several || after[id] <= 2);
    }
    CHECK_EQUAL(after[id + 1], 0);
    return 0;
}

/* The events of a workgroup, in order. */
enum whose { OWN, SOURCE, TARGET, NOBODY };
#define AT(member) offsetof(struct board, member)
#define SYSTEM(sem) sem, IRIS_SCOPE_SYSTEM
#define PLAIN IRIS_RELAXED, IRIS_SCOPE_WG
static const struct row {
    enum iris_op op;
    int write;
    enum whose whose;
    size_t offset;
    size_t bytes;
    iris_sem_t sem;
    iris_scope_t scope;
} rows[] = {
    {IRIS_OP_LOAD, 0, SOURCE, AT(a[0]), 4, PLAIN},
    {IRIS_OP_STORE, 1, TARGET, AT(c[1]), 4, PLAIN},
    {IRIS_OP_GET, 0, SOURCE, AT(a[2]), 4, PLAIN},
    {IRIS_OP_GET, 1, OWN, AT(b[2]), 4, PLAIN},
    {IRIS_OP_PUT, 0, OWN, AT(a[3]), 4, PLAIN},
    {IRIS_OP_PUT, 1, TARGET, AT(c[3]), 4, PLAIN},
    {IRIS_OP_COPY, 0, SOURCE, AT(a[4]), 4, PLAIN},
    {IRIS_OP_COPY, 1, TARGET, AT(c[4]), 4, PLAIN},
    {IRIS_OP_LOAD, 0, SOURCE, AT(a[5]), 4, SYSTEM(IRIS_RELAXED)},
    {IRIS_OP_STORE, 1, TARGET, AT(c[5]), 4, SYSTEM(IRIS_RELAXED)},
    {IRIS_OP_LOAD, 0, SOURCE, AT(a[6]), 4, PLAIN},
    {IRIS_OP_STORE, 1, TARGET, AT(c[6]), 4, PLAIN},
    /* watched_atomics() */
    {IRIS_OP_ATOMIC_ADD, 1, TARGET, AT(words[1]), 8, PLAIN},
    {IRIS_OP_ATOMIC_SUB, 1, TARGET, AT(words[1]), 8, IRIS_ACQUIRE,
     IRIS_SCOPE_AGENT},
    {IRIS_OP_ATOMIC_CAS, 1, TARGET, AT(words[1]), 8, SYSTEM(IRIS_ACQ_REL)},
    {IRIS_OP_ATOMIC_XCHG, 1, TARGET, AT(words[1]), 8, SYSTEM(IRIS_RELEASE)},
    {IRIS_OP_ATOMIC_XOR, 1, TARGET, AT(words[1]), 8, SYSTEM(IRIS_RELAXED)},
    {IRIS_OP_ATOMIC_AND, 1, TARGET, AT(words[1]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_ATOMIC_OR, 1, TARGET, AT(words[1]), 8, IRIS_RELEASE,
     IRIS_SCOPE_AGENT},
    {IRIS_OP_ATOMIC_MIN, 1, TARGET, AT(words[1]), 8, IRIS_ACQ_REL,
     IRIS_SCOPE_AGENT},
    {IRIS_OP_ATOMIC_MAX, 1, TARGET, AT(real), 8, IRIS_ACQ_REL, IRIS_SCOPE_WG},
    {IRIS_OP_LOAD, 0, TARGET, AT(words[1]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_STORE, 1, TARGET, AT(words[1]), 8, SYSTEM(IRIS_RELEASE)},
    /* watched_signals(); a wait for all has one event for each signal, the
     * others one for the set. */
    {IRIS_OP_STORE, 1, OWN, AT(signals[0]), 8, SYSTEM(IRIS_RELEASE)},
    {IRIS_OP_ATOMIC_ADD, 1, OWN, AT(signals[2]), 8, SYSTEM(IRIS_RELEASE)},
    {IRIS_OP_LOAD, 0, OWN, AT(signals[0]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals[0]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(a[0]), 4, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals[0]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals[2]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals), 24, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals), 24, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals[0]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals[1]), 8, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals), 24, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_WAIT, 0, OWN, AT(signals), 24, SYSTEM(IRIS_ACQUIRE)},
    {IRIS_OP_PUT, 0, OWN, AT(a[1]), 4, PLAIN},
    {IRIS_OP_PUT, 1, OWN, AT(b[0]), 4, PLAIN},
    {IRIS_OP_STORE, 1, OWN, AT(signals[1]), 8, SYSTEM(IRIS_RELEASE)},
    {IRIS_OP_FENCE, 0, NOBODY, 0, 0, SYSTEM(IRIS_RELEASE)},
    {IRIS_OP_FENCE, 0, NOBODY, 0, 0, IRIS_ACQUIRE, IRIS_SCOPE_AGENT},
    /* the workgroup's */
    {IRIS_OP_BARRIER, 0, NOBODY, 0, 0, IRIS_ACQ_REL, IRIS_SCOPE_WG},
    {IRIS_OP_GET, 0, SOURCE, AT(words[2]), 8, PLAIN},
    {IRIS_OP_GET, 1, OWN, AT(words[3]), 8, PLAIN},
    {IRIS_OP_PUT, 0, OWN, AT(a), BYTES, PLAIN},
    {IRIS_OP_PUT, 1, OWN, AT(b), BYTES, PLAIN},
    {IRIS_OP_COPY, 0, SOURCE, AT(a), BYTES, PLAIN},
    {IRIS_OP_COPY, 1, TARGET, AT(c), BYTES, PLAIN},
    {IRIS_OP_PUT, 0, OWN, AT(a), 4, PLAIN},
    {IRIS_OP_PUT, 1, OWN, AT(b), 4, PLAIN},
    {IRIS_OP_BARRIER, 0, NOBODY, 0, 0, IRIS_ACQ_REL, IRIS_SCOPE_WG},
    {IRIS_OP_STORE, 1, OWN, AT(signals[0]), 8, SYSTEM(IRIS_RELEASE)},
};

#define NUM_ROWS (sizeof rows / sizeof *rows)

static int is_like(const struct iris_cpu_event *event, const struct row *row,
                   int target_rank, const void *address)
{
    return event->op == row->op && event->write == row->write &&
           event->target_rank == target_rank && event->address == address &&
           event->bytes == row->bytes && event->sem == row->sem &&
           event->scope == row->scope;
}

/* The events of the table, on one workgroup's board. */
static int check_rows(const iris_t *iris, const struct board *board,
                      const struct iris_cpu_event *events, unsigned workgroup)
{
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    const int whose[] = {rank, source_of(rank, num_ranks),
                         target_of(rank, num_ranks), -1};

    for (size_t i = 0; i < NUM_ROWS; i++) {
        const char *address = (const char *)board + rows[i].offset;

        CHECK_EQUAL(events[i].rank, rank);
        CHECK_EQUAL(events[i].workgroup, workgroup);
        if (!is_like(&events[i], &rows[i], whose[rows[i].whose],
                     rows[i].whose == NOBODY ? NULL : address)) {
            return harness_failed(__FILE__, __LINE__, "event differs",
                                  (long long)i, -1);
        }
    }
    return 0;
}

/* The events of iris_dev_barrier(): two barriers of the workgroup, and stores
 * and waits in between. */
static int check_barrier(const iris_t *iris, struct iris_dev_group *group,
                         const struct iris_cpu_event *events, size_t count)
{
    static const struct row row = {IRIS_OP_BARRIER,     0, NOBODY, 0, 0,
                                   SYSTEM(IRIS_ACQ_REL)};
    static const struct row inner = {
        IRIS_OP_BARRIER, 0, NOBODY, 0, 0, IRIS_ACQ_REL, IRIS_SCOPE_WG};
    static const struct row store = {IRIS_OP_STORE,       1, NOBODY, 0, 8,
                                     SYSTEM(IRIS_RELEASE)};
    static const struct row wait = {IRIS_OP_WAIT,        0, NOBODY, 0, 8,
                                    SYSTEM(IRIS_ACQUIRE)};
    int rank = iris_rank(iris), members = iris_num_ranks(iris);
    uint64_t *arrivals = (uint64_t *)(uintptr_t)group->arrivals;

    CHECK_EQUAL(count, 3 + 2 * members);
    CHECK(is_like(&events[0], &inner, -1, NULL));
    CHECK(is_like(&events[1], &row, -1, group));
    for (int i = 0; i < members; i++) {
        CHECK(is_like(&events[2 + i], &store, i, &arrivals[rank]));
        CHECK(is_like(&events[2 + members + i], &wait, rank, &arrivals[i]));
    }
    CHECK(is_like(&events[count - 1], &inner, -1, NULL));
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(events[i].inside,
                    i < 2 || i == count - 1 ? 0 : events[1].id);
    }
    return 0;
}

/* Runs the kernel on fresh boards; what they then hold goes to *result_p. */
static int run(iris_t *iris, struct watched_args *args,
               struct board result_p[GRID])
{
    memset(result_p, 0, GRID * sizeof *result_p);
    for (int wg = 0; wg < GRID; wg++) {
        for (int i = 0; i < 8; i++) {
            result_p[wg].a[i] = 1000 * iris_rank(iris) + 100 * wg + i;
        }
        result_p[wg].words[2] = 11 * (uint64_t)iris_rank(iris) + 1;
    }
    CHECK_OK(
        harness_write(iris, args->boards, result_p, GRID * sizeof *result_p));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_launch(iris, watched, GRID, 1, args, sizeof *args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(
        harness_read(iris, result_p, args->boards, GRID * sizeof *result_p));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

static RANK_TEST(an_observer_sees_every_operation_and_changes_none, ALL_RANKS)
{
    struct watched_args args = {iris_device_context(iris), NULL,
                                iris_group_device(iris, NULL)};
    struct board plain[GRID], seen[GRID], again[GRID];
    struct record *record;
    struct iris_observer observer = {.device = note};
    void *boards;

    CPU_ONLY(iris, "nobody observes a GPU");
    record = calloc(1, sizeof *record);
    CHECK(record != NULL);
    CHECK_OK(iris_malloc(iris, sizeof plain, &boards));
    args.boards = boards;
    CHECK_EQUAL(run(iris, &args, plain), 0);
    observer.self = record;
    CHECK_OK(iris_i_hooks_add(&iris->hooks, &observer));
    CHECK_EQUAL(run(iris, &args, seen), 0);
    iris_i_hooks_remove(&iris->hooks, &observer);
    CHECK_EQUAL(run(iris, &args, again), 0);
    CHECK(memcmp(plain, seen, sizeof plain) == 0);
    CHECK(memcmp(plain, again, sizeof plain) == 0);
    CHECK_EQUAL(record->strays, 0);
    for (unsigned wg = 0; wg < GRID; wg++) {
        CHECK(record->count[wg] >= NUM_ROWS);
        CHECK_EQUAL(check_rows(iris, &args.boards[wg], record->events[wg], wg),
                    0);
        CHECK_EQUAL(
            check_ids(record->events[wg], record->count[wg], record->after[wg]),
            0);
    }
    CHECK_EQUAL(check_barrier(iris, args.group, record->events[0] + NUM_ROWS,
                              record->count[0] - NUM_ROWS),
                0);
    CHECK_EQUAL(record->count[1], NUM_ROWS);
    free(record);
    CHECK_OK(iris_free(iris, boards));
    return 0;
}

TEST_GROUP(rank);
#endif /* IRIS_ON_CPU */
