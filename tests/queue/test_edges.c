/* SPDX-License-Identifier: MIT
 *
 * Copies, fills, signals and waits at the heap's ends: the library's own memory
 * at its start, and the first byte behind it.
 */
#include "config.h"

#include "support/harness.h"

static RANK_TEST(the_edges_of_the_heap_are_guarded, 2)
{
    char *base = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];
    uint64_t *first = (uint64_t *)base, host[2] = {0, 0};
    struct iris_heap_stats stats;
    char *end;

    CHECK_OK(iris_heap_stats(iris, &stats));
    end = base + stats.heap_bytes;
#define PAST(call) \
    CHECK_BAD(iris, call, IRIS_ERR_INVALID, "go past the end", "copy less")
    PAST(iris_memset(iris, end - 8, 0, 16, NULL));
    PAST(iris_memcpy(iris, end - 8, host, 16, NULL));
    PAST(iris_memcpy(iris, host, end - 8, 16, NULL));
    if (!harness_on_gpu(iris)) { /* where nothing else begins at the end */
        PAST(iris_memset(iris, end, 0, 1, NULL));
        PAST(iris_memcpy(iris, end, host, 8, NULL));
        PAST(iris_memcpy(iris, host, end, 8, NULL));
        PAST(iris_memcpy_sync(iris, host, end, 8));
    }
#undef PAST
#define OURS(call)                                                   \
    CHECK_BAD(iris, call, IRIS_ERR_INVALID, "library keeps its own", \
              "pass memory from iris_malloc")
    for (int to = 0; to < iris_num_ranks(iris); to++) {
        OURS(iris_signal_on_stream(iris, first, 1, to, NULL));
        OURS(iris_signal_on_stream(iris, first + 64, 1, to, NULL));
        OURS(iris_put_on_stream(iris, first, host, 16, to, NULL));
        OURS(iris_put_signal_on_stream(iris, first, host, 16, first, 1,
                                       IRIS_SIGNAL_ADD, to, NULL));
    }
    OURS(iris_wait_on_stream(iris, first, IRIS_CMP_EQ, 1, NULL));
    OURS(iris_memset(iris, first, 0, 16, NULL));
    OURS(iris_memcpy(iris, first, host, 16, NULL));
#undef OURS
    CHECK_OK(iris_memcpy_sync(iris, host, /* reading is harmless */
                              iris_device_context(iris), sizeof host));
    CHECK_EQUAL(host[0], iris_rank(iris));
    return iris_barrier(iris, NULL, NULL);
}

TEST_GROUP(rank);
