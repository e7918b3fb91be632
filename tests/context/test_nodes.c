/* SPDX-License-Identifier: MIT
 *
 * Ranks that cannot map each other's heaps, as if on two nodes (IRIS_NODES=2),
 * without a proxy (IRIS_TRANSPORT=none): what needs no mapping works, the rest
 * names the rank.
 */
#include "config.h"

#include <iris/device.h>

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>

#define RANKS 4
#define BLOCK ((size_t)1500000)

static int is_near(int rank, int other)
{
    return rank / 2 == other / 2;
}

/* One of the other node. */
static int far_of(int rank)
{
    return (rank + 2) % RANKS;
}

/* ---- Host calls ---- */

static int check_far(iris_t *iris, uint64_t *words, int far)
{
    uint64_t host = 1;
    char text[64];
    void *remote = &host;

    snprintf(text, sizeof text, "rank %d's heap is not mapped on rank %d", far,
             iris_rank(iris));
#define FAR(call) \
    CHECK_BAD(iris, call, IRIS_ERR_UNREACHABLE, text, "IRIS_REQUIRE_ALL=1")
    FAR(iris_as_remote(iris, words, far, &remote));
    CHECK(remote == &host);
    FAR(iris_put_on_stream(iris, words, &host, sizeof host, far, NULL));
    FAR(iris_get_on_stream(iris, &host, words, sizeof host, far, NULL));
    FAR(iris_signal_on_stream(iris, words, 1, far, NULL));
    FAR(iris_put_signal_on_stream(iris, words, &host, sizeof host, words + 1, 1,
                                  IRIS_SIGNAL_ADD, far, NULL));
#undef FAR
    CHECK_EQUAL(iris_is_reachable(iris, far), 0);
    CHECK_EQUAL(iris_heap_bases(iris)[far], 0);
    return 0;
}

static int check_near(iris_t *iris, uint64_t *words, int near)
{
    uint64_t host = 100 + (uint64_t)iris_rank(iris), seen;
    int rank = iris_rank(iris);

    CHECK_EQUAL(iris_is_reachable(iris, near), 1);
    CHECK(iris_heap_bases(iris)[near] != 0);
    CHECK_OK(iris_put_on_stream(iris, &words[2 + rank], &host, sizeof host,
                                near, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_get_on_stream(iris, &seen, &words[2 + rank], sizeof seen,
                                near, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(seen, host);
    return 0;
}

static int host_body(iris_t *iris, void *arg)
{
    uint64_t *words;
    int rank = iris_rank(iris);

    CHECK_EQUAL(iris_is_reachable(iris, -1), 0);
    CHECK_EQUAL(iris_is_reachable(iris, RANKS), 0);
    CHECK_EQUAL(iris_num_nodes(iris), 2);
    CHECK_EQUAL(iris_node(iris), rank / 2);
    for (int round = 0; round < 4; round++) { /* heaps grow where they do */
        int word = -1;

        CHECK_OK(iris_calloc(iris, BLOCK, 1, (void **)&words));
        for (int other = 0; other < RANKS; other++) {
            CHECK_EQUAL(is_near(rank, other) ? check_near(iris, words, other)
                                             : check_far(iris, words, other),
                        0);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        for (int other = 0; other < RANKS; other++) {
            uint64_t seen;

            CHECK_OK(
                iris_memcpy_sync(iris, &seen, &words[2 + other], sizeof seen));
            CHECK_EQUAL(seen, is_near(rank, other) ? 100 + other : 0);
        }
        word = rank == round ? 17 + round : -1;
        CHECK_OK(iris_broadcast(iris, &word, sizeof word, round, NULL));
        CHECK_EQUAL(word, 17 + round);
        if (round % 2 == 1) {
            CHECK_OK(iris_free(iris, words));
        }
    }
    return 0;
}

/* ---- Groups ---- */

static int groups_body(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris), word = rank;
    int near[2] = {rank & 2, (rank & 2) + 1};
    static const int across[2] = {1, 2};
    iris_group_t *node = NULL, *pair = NULL;

    CHECK_OK(iris_group_create(iris, near, 2, &node));
    CHECK_OK(
        iris_group_create(iris, across, rank == 1 || rank == 2 ? 2 : 0, &pair));
    for (int i = 0; i < 10; i++) {
        CHECK_OK(iris_device_barrier(iris, NULL, node));
        CHECK_OK(iris_barrier(iris, NULL, node));
    }
    CHECK_OK(iris_broadcast(iris, &word, sizeof word, 1, node));
    CHECK_EQUAL(word, near[1]);
    CHECK_BAD(iris, iris_device_barrier(iris, NULL, NULL), IRIS_ERR_UNREACHABLE,
              rank < 2 ? "rank 3's heap is not mapped" : "rank 1's heap is not",
              "IRIS_REQUIRE_ALL");
    if (pair != NULL) {
        CHECK_BAD(iris, iris_device_barrier(iris, NULL, pair),
                  IRIS_ERR_UNREACHABLE,
                  rank == 1 ? "iris_device_barrier: rank 2's heap"
                            : "iris_device_barrier: rank 1's heap",
                  "IRIS_REQUIRE_ALL");
        CHECK_OK(iris_barrier(iris, NULL, pair));
        word = rank;
        CHECK_OK(iris_broadcast(iris, &word, sizeof word, 1, pair));
        CHECK_EQUAL(word, 2);
        CHECK_OK(iris_group_destroy(iris, pair));
    }
    CHECK_OK(iris_group_destroy(iris, node));
    return iris_barrier(iris, NULL, NULL);
}

/* ---- Kernels ---- */

enum touch {
    LOAD,
    STORE,
    STORE_MASKED,
    GET,
    PUT,
    COPY,
    VOLATILE,
    HINT,
    ATOMIC,
    SIGNAL,
    WG_PUT,
    WG_GET,
    WG_COPY,
    AS_REMOTE,
    BARRIER,
    NUM_TOUCHES,
};

struct touch_args {
    const int64_t *context;
    uint32_t *words; /* symmetric */
    struct iris_dev_group *group;
    int32_t rank;
    int32_t touch;
};

IRIS_DEVICE void touch_more(iris_wg_t wg, iris_dev_t dev,
                            const struct touch_args *args)
{
    uint32_t *words = args->words;

    switch (args->touch) {
    case SIGNAL:
        iris_signal_set(dev, (uint64_t *)words, 1, args->rank);
        break;
    case WG_PUT:
        iris_wg_put(wg, dev, words, words + 64, 256, args->rank);
        break;
    case WG_GET:
        iris_wg_get(wg, dev, words, words + 64, 256, args->rank);
        break;
    case WG_COPY:
        iris_wg_copy(wg, dev, words, words + 64, 256, dev.rank, args->rank);
        break;
    case AS_REMOTE:
        *(uint32_t *)iris_dev_as_remote(dev, words, args->rank) = 1;
        break;
    case BARRIER:
        iris_dev_barrier(wg, dev, args->group);
        break;
    default:
        break;
    }
}

IRIS_KERNEL(touch_rank, struct touch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t *words = args->words;
    int rank = args->rank;

    switch (args->touch) {
    case LOAD:
        words[1] = iris_load_u32(dev, words, rank);
        break;
    case STORE:
        iris_store_u32(dev, words, 1, rank);
        break;
    case STORE_MASKED:
        iris_store_masked_u32(dev, words, 1, rank, 1);
        break;
    case GET:
        iris_get_u32(dev, words, &words[1], rank);
        break;
    case PUT:
        iris_put_u32(dev, &words[1], words, rank);
        break;
    case COPY:
        iris_copy_u32(dev, words, words, dev.rank, rank);
        break;
    case VOLATILE:
        iris_store_volatile_u32(dev, words, 1, rank);
        break;
    case HINT:
        iris_store_hint_u32(dev, words, 1, rank, IRIS_CACHE_STREAMING);
        break;
    case ATOMIC:
        (void)iris_atomic_add_u32(dev, words, 1, rank, IRIS_RELAXED,
                                  IRIS_SCOPE_SYSTEM);
        break;
    default:
        touch_more(wg, dev, args);
        break;
    }
}

static iris_status_t touch(iris_t *iris, struct touch_args args, int rank,
                           int touch)
{
    iris_status_t status;

    args.rank = rank;
    args.touch = touch;
    status = iris_launch(iris, touch_rank, 1, 1, &args, sizeof args, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

static int kernels_body(iris_t *iris, void *arg)
{
    struct touch_args args = {.context = iris_device_context(iris),
                              .group = iris_group_device(iris, NULL)};
    int rank = iris_rank(iris), far = far_of(rank);
    char text[128];

    CPU_ONLY(iris, "there a touch of another node is a fault of the GPU");
    CHECK_OK(iris_calloc(iris, RANKS, 1024, (void **)&args.words));
    args.words += rank * 256; /* of who writes there */
    snprintf(text, sizeof text, "rank %d's heap is not mapped on rank", far);
    for (int i = 0; i < NUM_TOUCHES; i++) {
        if (i != BARRIER) {
            CHECK_OK(touch(iris, args, rank ^ 1, i));
            CHECK_OK(touch(iris, args, rank, i));
        } else { /* it announces to all in order */
            snprintf(text, sizeof text, "rank %d's heap is not mapped on rank",
                     rank < 2 ? 2 : 0);
        }
        CHECK_STATUS(touch(iris, args, far, i), IRIS_ERR_UNREACHABLE);
        CHECK_MESSAGE("kernel touch_rank, workgroup 0");
        CHECK_MESSAGE(text);
        CHECK_OK(iris_clear_error(iris));
    }
    return iris_barrier(iris, NULL, NULL);
}

/* ---- The tests ---- */

static void run(int num_ranks, iris_rank_fn body)
{
    setenv("IRIS_NODES", "2", 1);
    setenv("IRIS_TRANSPORT", "none", 1);
    harness_run(num_ranks, body, NULL);
    unsetenv("IRIS_TRANSPORT");
    unsetenv("IRIS_NODES");
}

static TEST(host_calls_name_the_rank_they_cannot_reach)
{
    run(RANKS, host_body);
}

static TEST(groups_of_reachable_ranks_work)
{
    run(RANKS, groups_body);
}

static TEST(a_kernel_that_touches_another_node_ends)
{
    run(RANKS, kernels_body);
}

static TEST(heaps_that_grow_are_mapped_within_a_node)
{
    if (!harness_has_gpu()) {
        print_message("left out: IRIS_ALLOCATOR=vmem needs a GPU\n");
        skip();
    }
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    run(RANKS, host_body);
    run(RANKS, groups_body);
    unsetenv("IRIS_ALLOCATOR");
}

static int never(iris_t *iris, void *arg)
{
    return harness_failed(__FILE__, __LINE__, "the function ran", 1, 0);
}

static TEST(a_job_may_insist_on_reaching_all)
{
    if (!harness_fits(RANKS)) {
        skip();
    }
    setenv("IRIS_NODES", "2", 1);
    setenv("IRIS_REQUIRE_ALL", "1", 1);
    assert_int_equal(iris_spawn(NULL, RANKS, never, NULL),
                     IRIS_ERR_UNREACHABLE);
    assert_true(harness_message_has("is on another node than rank"));
    unsetenv("IRIS_REQUIRE_ALL");
    unsetenv("IRIS_NODES");
}

TEST_GROUP(rank, one_node);
