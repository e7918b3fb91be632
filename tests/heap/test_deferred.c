/* SPDX-License-Identifier: MIT
 *
 * Deferred free: what each rank releases on its own goes when all have, in
 * whatever order they did, and never while somebody may use it.
 */
#include "config.h"

#include "support/harness.h"

#include "context/context.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MANY 100000
#define THREADS 4
#define EACH 200
#define LARGE ((size_t)40 << 20) /* more than half of the heap */

static struct iris_heap_stats stats_of(const iris_t *iris)
{
    struct iris_heap_stats stats = {0};

    iris_heap_stats(iris, &stats);
    return stats;
}

/* All is as it was. */
static int check_start(const iris_t *iris, const struct iris_heap_stats *start)
{
    struct iris_heap_stats now = stats_of(iris);

    CHECK_EQUAL(now.used_bytes, start->used_bytes);
    CHECK_EQUAL(now.free_bytes, start->free_bytes);
    CHECK_EQUAL(now.largest_free_bytes, start->largest_free_bytes);
    CHECK_EQUAL(now.num_allocs, start->num_allocs);
    CHECK_EQUAL(now.num_deferred, 0);
    return 0;
}

/* An order of each rank's own. */
static void shuffle(void **ptrs, size_t count, int rank)
{
    uint64_t state = (uint64_t)rank + 1;

    for (size_t i = count - 1; i > 0; i--) {
        size_t other;
        void *ptr = ptrs[i];

        state = state * 6364136223846793005u + 1442695040888963407u;
        other = (size_t)(state >> 33) % (i + 1);
        ptrs[i] = ptrs[other];
        ptrs[other] = ptr;
    }
}

static int many(iris_t *iris, void *arg)
{
    struct iris_heap_stats start = stats_of(iris);
    size_t count = harness_count(MANY, MANY / 10);
    void **ptrs = malloc(count * sizeof *ptrs), *kept = arg;
    int rank = iris_rank(iris);

    CHECK(ptrs != NULL);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(iris_malloc(iris, 1 + i % 300, &ptrs[i]));
    }
    kept = ptrs[count / 2];
    shuffle(ptrs, count, rank);
    for (size_t i = 0; i < count; i++) {
        if (rank != 0 || ptrs[i] != kept) {
            CHECK_OK(iris_free_later(iris, ptrs[i]));
        }
    }
    CHECK_OK(iris_free_deferred(iris));
    /* What rank 0 still has, all have. */
    CHECK_EQUAL(stats_of(iris).num_allocs, start.num_allocs + 1);
    CHECK_EQUAL(stats_of(iris).num_deferred, rank != 0);
    CHECK_OK(iris_memset(iris, kept, 1, 1, NULL));
    CHECK_OK(iris_free_deferred(iris));
    CHECK_EQUAL(stats_of(iris).num_allocs, start.num_allocs + 1);
    if (rank == 0) {
        CHECK_OK(iris_free_later(iris, kept));
    }
    CHECK_OK(iris_free_deferred(iris));
    free(ptrs);
    return check_start(iris, &start);
}

static TEST(what_all_ranks_have_released_goes_in_any_order)
{
    harness_run_all(many, NULL);
}

/* Each call that may be followed by deferred frees. */
static iris_status_t call_malloc(iris_t *iris)
{
    void *ptr;
    iris_status_t status = iris_malloc(iris, 64, &ptr);

    return status == IRIS_OK ? iris_free_later(iris, ptr) : status;
}

static iris_status_t call_free(iris_t *iris)
{
    return iris_free(iris, NULL);
}

static iris_status_t call_barrier(iris_t *iris)
{
    return iris_barrier(iris, NULL, NULL);
}

static iris_status_t call_as_symmetric(iris_t *iris)
{
    static const char own[64];
    void *ptr;
    iris_status_t status = iris_as_symmetric(iris, own, 64, &ptr, NULL);

    return status == IRIS_OK ? iris_free_later(iris, ptr) : status;
}

static iris_status_t (*const calls[])(iris_t *) = {
    call_malloc, call_free, call_barrier, call_as_symmetric};
#define CALLS (sizeof calls / sizeof calls[0])

static RANK_TEST(each_collective_call_frees_what_it_can, 1, 3)
{
    struct iris_heap_stats start = stats_of(iris);

    for (size_t i = 0; i < CALLS; i++) {
        void *ptr;

        CHECK_OK(iris_calloc(iris, 1, 64, &ptr));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(iris_free_later(iris, ptr));
        CHECK_OK(calls[i](iris));
        /* What two of them have allocated and released themselves. */
        CHECK_EQUAL(stats_of(iris).num_deferred, i % 3 == 0);
        CHECK_OK(iris_free_deferred(iris));
        CHECK_EQUAL(check_start(iris, &start), 0);
    }
    return 0;
}

/* Rank 0 has something released, the others have not, or have it no more. */
static RANK_TEST(where_nothing_is_new_a_call_is_one_agreement, 2)
{
    void *one, *two;
    uint64_t seq;

    CHECK_OK(iris_malloc(iris, 64, &one));
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_free_later(iris, one));
    }
    seq = iris->world->members.seq;
    CHECK_OK(iris_malloc(iris, 64, &two));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, NULL));
    CHECK_EQUAL(iris->world->members.seq, seq + 3);
    if (iris_rank(iris) != 0) {
        CHECK_OK(iris_free_later(iris, two)); /* another one: none is common */
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    seq = iris->world->members.seq;
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(iris->world->members.seq, seq + 1);
    CHECK_OK(iris_free_later(iris, iris_rank(iris) == 0 ? two : one));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(stats_of(iris).num_deferred, 0);
    return 0;
}

/* Rank 0's stream waits for what its host does later. */
static RANK_TEST(nothing_goes_while_a_stream_may_use_it, 2)
{
    struct iris_heap_stats start = stats_of(iris);
    iris_stream_t *waits = NULL, *other = NULL;
    uint64_t *word;
    void *ptr;
    int rank = iris_rank(iris);

    CHECK_OK(iris_stream_create(iris, &waits));
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_calloc(iris, 1, 64, &ptr));
    if (rank == 0) {
        CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 1, waits));
    }
    CHECK_OK(iris_free_later(iris, ptr));
    for (size_t i = 0; i < CALLS; i++) {
        CHECK_OK(calls[i](iris));
    }
    /* It, and what two of the calls have released themselves. */
    CHECK_EQUAL(stats_of(iris).num_deferred, 3);
    CHECK(harness_holds(iris, ptr, 64, 0));
    if (rank == 0) {
        CHECK_OK(iris_signal_on_stream(iris, word, 1, 0, other));
    }
    CHECK_OK(iris_free_deferred(iris));
    CHECK_OK(iris_free(iris, word));
    iris_stream_destroy(iris, waits);
    iris_stream_destroy(iris, other);
    return check_start(iris, &start);
}

static RANK_TEST(a_full_heap_frees_what_it_can_before_it_fails, 1, 4)
{
    struct iris_heap_stats start = stats_of(iris);
    void *one, *two;
    int rank = iris_rank(iris);

    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_malloc(iris, LARGE, &one));
        CHECK_OK(iris_free_later(iris, one));
    }
    CHECK_OK(iris_free_deferred(iris));
    CHECK_EQUAL(check_start(iris, &start), 0);
    CHECK_OK(iris_malloc(iris, LARGE, &one));
    if (rank != 0) {
        CHECK_OK(iris_free_later(iris, one));
    }
    CHECK_BAD(iris, iris_malloc(iris, LARGE, &two), IRIS_ERR_NO_MEMORY, "bytes",
              "free some");
    if (rank == 0) {
        CHECK_OK(iris_free_later(iris, one));
    }
    CHECK_OK(iris_calloc(iris, LARGE, 1, &two));
    CHECK_OK(iris_free(iris, two));
    return check_start(iris, &start);
}

struct thread {
    iris_t *iris;
    void *ptrs[EACH];
    int failed;
};

static void *release_all(void *arg)
{
    struct thread *thread = arg;

    for (int i = 0; i < EACH; i++) {
        thread->failed +=
            iris_free_later(thread->iris, thread->ptrs[i]) != IRIS_OK;
    }
    return NULL;
}

/* Threads release while the rank makes collective calls. */
static RANK_TEST(any_thread_may_release, 2)
{
    struct iris_heap_stats start = stats_of(iris);
    struct thread all[THREADS];
    pthread_t ids[THREADS];
    void *ptr;

    for (int i = 0; i < THREADS * EACH; i++) {
        all[i % THREADS].iris = iris;
        all[i % THREADS].failed = 0;
        CHECK_OK(iris_malloc(iris, 64, &all[i % THREADS].ptrs[i / THREADS]));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&ids[i], NULL, release_all, &all[i]), 0);
    }
    for (int i = 0; i < EACH; i++) {
        CHECK_OK(iris_malloc(iris, 64, &ptr));
        CHECK_OK(iris_free(iris, ptr));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        CHECK_EQUAL(all[i].failed, 0);
    }
    CHECK_OK(iris_free_deferred(iris));
    return check_start(iris, &start);
}

static int gpu; /* there is one */

/* Memory that is shared rather than copied, of the fake runtime; NULL: this is
 * not it. */
static char *make_own(iris_t *iris)
{
    void *fake = dlopen("libfakehip.so", RTLD_NOW | RTLD_NOLOAD), *own = NULL;
    int (*map)(int device, size_t bytes, int exportable, void **ptr_p);

    *(void **)&map = fake == NULL ? NULL : dlsym(fake, "fakehip_map");
    return map == NULL || !harness_on_gpu(iris) ||
                   map(iris_device_id(iris), (size_t)2 << 20, 1, &own) != 0
               ? NULL
               : own;
}

static int share(iris_t *iris, char *own, void **ptr_p)
{
    int is_shared = 0;

    CHECK_OK(iris_as_symmetric(iris, own, 1000, ptr_p, &is_shared));
    CHECK_EQUAL(is_shared, 1);
    return 0;
}

static int shared(iris_t *iris, void *arg)
{
    char *own = make_own(iris);
    void *ptr;

    if (own == NULL) {
        return harness_left_out(__func__, "the fake runtime gives it");
    }
    CHECK_EQUAL(share(iris, own + 256, &ptr), 0);
    CHECK_BAD(iris, iris_free_later(iris, (char *)ptr + 1), IRIS_ERR_INVALID,
              "iris_free_later", "pass its address");
    CHECK_OK(iris_free_later(iris, ptr));
    CHECK_BAD(iris, iris_free_later(iris, ptr), IRIS_ERR_INVALID,
              "given to iris_free_later before", "once");
    CHECK(iris_is_symmetric(iris, ptr));
    CHECK_OK(iris_free_deferred(iris));
    CHECK(!iris_is_symmetric(iris, ptr));
    CHECK_EQUAL(stats_of(iris).num_deferred, 0);
    return 0;
}

/* Four of one allocation, three of them at one address. Ranks release the same
 * ones, however many each has released. */
static int shared_more_than_once(iris_t *iris, void *arg)
{
    char *own = make_own(iris);
    int first = iris_rank(iris) == 0;
    void *ptr[3], *other;

    if (own == NULL) {
        return harness_left_out(__func__, "the fake runtime gives it");
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(share(iris, own + 256, &ptr[i]), 0);
        CHECK(ptr[i] == ptr[0]);
    }
    CHECK_EQUAL(share(iris, own + 4096, &other), 0);
    CHECK_OK(iris_free_later(iris, ptr[0]));
    CHECK_OK(first ? iris_free_later(iris, ptr[0]) : IRIS_OK);
    CHECK_OK(iris_free_deferred(iris));
    CHECK_EQUAL(stats_of(iris).num_deferred, first);
    /* One of two waits on one rank, and the other goes. */
    CHECK_OK(iris_free(iris, ptr[0]));
    CHECK_OK(iris_free(iris, other));
    CHECK(!iris_is_symmetric(iris, other));
    CHECK(iris_is_symmetric(iris, ptr[0]));
    CHECK_EQUAL(stats_of(iris).num_deferred, first);
    if (first) {
        CHECK_BAD(iris, iris_free_later(iris, ptr[0]), IRIS_ERR_INVALID,
                  "given to iris_free_later before", "once");
    } else {
        CHECK_OK(iris_free_later(iris, ptr[0]));
    }
    CHECK_OK(iris_free_deferred(iris));
    CHECK(!iris_is_symmetric(iris, ptr[0]));
    CHECK_EQUAL(stats_of(iris).num_deferred, 0);
    return 0;
}

static TEST(shared_memory_of_the_programs_goes_the_same_way)
{
    if (!gpu) {
        print_message("left out: sharing needs a GPU\n");
        skip();
    }
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    harness_run(1, shared, NULL);
    harness_run(2, shared, NULL);
    harness_run(2, shared_more_than_once, NULL);
    harness_run(4, shared_more_than_once, NULL);
    unsetenv("IRIS_ALLOCATOR");
}

static int set_up(void **state)
{
    gpu = harness_has_gpu(); /* before this process uses one */
    setenv("IRIS_HEAP_SIZE", "64M", 1);
    return harness_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, rank, standard);
