/* SPDX-License-Identifier: MIT
 *
 * What a kernel does wrong ends it with a message: no such rank, an address off
 * the heap, a misaligned atomic. The context goes on.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum wrong {
    LOAD_NO_RANK,
    STORE_NO_RANK,
    PUT_NO_RANK,
    GET_NO_RANK,
    COPY_NO_RANK,
    AS_REMOTE_NO_RANK,
    ADD_NO_RANK,
    SIGNAL_NO_RANK,
    WG_PUT_NO_RANK,
    ADD_U16_MISALIGNED,
    ADD_U32_MISALIGNED,
    XCHG_F64_MISALIGNED,
    CAS_U64_MISALIGNED,
    STORE_U32_MISALIGNED,
    SIGNAL_MISALIGNED,
    WAIT_MISALIGNED,
    ADD_OFF_HEAP,
    ADD_ONE_PAST,
    WG_PUT_ACROSS_END,
    WG_GET_OFF_HEAP,
    NUM_WRONGS,
};

/* What the message says besides rank, kernel and workgroup. */
static const char *const says[NUM_WRONGS][2] = {
    [LOAD_NO_RANK] = {"load of 4 bytes", "rank is out of range"},
    [STORE_NO_RANK] = {"store of 4 bytes", "rank is out of range"},
    [PUT_NO_RANK] = {"put of 4 bytes", "rank is out of range"},
    [GET_NO_RANK] = {"get of 4 bytes", "rank is out of range"},
    [COPY_NO_RANK] = {"copy of 4 bytes", "rank is out of range"},
    [AS_REMOTE_NO_RANK] = {"load", "rank is out of range"},
    [ADD_NO_RANK] = {"atomic add of 4 bytes", "the job has ranks 0 to"},
    [SIGNAL_NO_RANK] = {"store of 8 bytes", "rank is out of range"},
    [WG_PUT_NO_RANK] = {"put of 16 bytes", "rank is out of range"},
    [ADD_U16_MISALIGNED] = {"atomic add of 2 bytes", "a multiple of 2"},
    [ADD_U32_MISALIGNED] = {"atomic add of 4 bytes", "a multiple of 4"},
    [XCHG_F64_MISALIGNED] = {"atomic xchg of 8 bytes", "a multiple of 8"},
    [CAS_U64_MISALIGNED] = {"atomic cas of 8 bytes", "a multiple of 8"},
    [STORE_U32_MISALIGNED] = {"store of 4 bytes", "a multiple of 4"},
    [SIGNAL_MISALIGNED] = {"store of 8 bytes", "misaligned"},
    [WAIT_MISALIGNED] = {"wait or test of 8 bytes", "misaligned"},
    [ADD_OFF_HEAP] = {"atomic add of 4 bytes", "not on this rank's heap"},
    [ADD_ONE_PAST] = {"atomic add of 4 bytes", "not on this rank's heap"},
    [WG_PUT_ACROSS_END] = {"put of 32 bytes",
                           "goes past the end of this rank's heap"},
    [WG_GET_OFF_HEAP] = {"get of 16 bytes", "pass this rank's own pointer"},
};

struct fault_args {
    const int64_t *context;
    char *board; /* symmetric */
    char *own;   /* not symmetric */
    char *end;   /* of the heap */
    enum wrong wrong;
    int none; /* no rank */
};

/* Addresses are made here, as integers: no compiler may reason about what a
 * misaligned pointer cannot be. */
#define AT(type, place, offset) ((type *)((uintptr_t)(place) + (offset)))

IRIS_DEVICE void misalign(iris_dev_t dev, const struct fault_args *args)
{
    switch (args->wrong) {
    case ADD_U16_MISALIGNED:
        iris_atomic_add(dev, AT(uint16_t, args->board, 1), 1, 0, IRIS_RELAXED,
                        IRIS_SCOPE_SYSTEM);
        break;
    case ADD_U32_MISALIGNED:
        iris_atomic_add(dev, AT(uint32_t, args->board, 2), 1, 0, IRIS_RELAXED,
                        IRIS_SCOPE_SYSTEM);
        break;
    case XCHG_F64_MISALIGNED:
        iris_atomic_xchg(dev, AT(double, args->board, 4), 1.0, 0, IRIS_RELAXED,
                         IRIS_SCOPE_SYSTEM);
        break;
    case CAS_U64_MISALIGNED:
        iris_atomic_cas(dev, AT(uint64_t, args->board, 3), 0, 1, 0,
                        IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        break;
    case STORE_U32_MISALIGNED:
        iris_atomic_store(dev, AT(uint32_t, args->board, 1), 1, 0, IRIS_RELAXED,
                          IRIS_SCOPE_SYSTEM);
        break;
    case SIGNAL_MISALIGNED:
        iris_signal_set(dev, AT(uint64_t, args->board, 4), 1, 0);
        break;
    default:
        iris_wait_until(dev, AT(uint64_t, args->board, 4), IRIS_CMP_NE, 0);
    }
}

IRIS_DEVICE void leave_heap(iris_wg_t wg, iris_dev_t dev,
                            const struct fault_args *args)
{
    switch (args->wrong) {
    case ADD_OFF_HEAP:
        iris_atomic_add(dev, AT(uint32_t, args->own, 0), 1, 0, IRIS_RELAXED,
                        IRIS_SCOPE_SYSTEM);
        break;
    case ADD_ONE_PAST:
        iris_atomic_add(dev, AT(uint32_t, args->end, 0), 1, 0, IRIS_RELAXED,
                        IRIS_SCOPE_SYSTEM);
        break;
    case WG_PUT_ACROSS_END:
        iris_wg_put(wg, dev, args->own, args->end - 16, 32, 0);
        break;
    default:
        iris_wg_get(wg, dev, args->own, args->board, 16, 0);
    }
}

IRIS_DEVICE void miss_rank(iris_wg_t wg, iris_dev_t dev,
                           const struct fault_args *args)
{
    int none = args->none;
    int32_t *word = AT(int32_t, args->board, 0);

    switch (args->wrong) {
    case LOAD_NO_RANK:
        word[1] = iris_load(dev, word, none);
        break;
    case STORE_NO_RANK:
        iris_store(dev, word, 1, none);
        break;
    case PUT_NO_RANK:
        iris_put(dev, word + 1, word, none);
        break;
    case GET_NO_RANK:
        iris_get(dev, word + 1, word, none);
        break;
    case COPY_NO_RANK:
        iris_copy(dev, word + 1, word, 0, none);
        break;
    case AS_REMOTE_NO_RANK:
        *(int32_t *)iris_dev_as_remote(dev, word, none) = 1;
        break;
    case ADD_NO_RANK:
        iris_atomic_add(dev, word, 1, none, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        break;
    case SIGNAL_NO_RANK:
        iris_signal_set(dev, AT(uint64_t, args->board, 0), 1, none);
        break;
    default:
        iris_wg_put(wg, dev, args->own, args->board, 16, none);
    }
}

IRIS_KERNEL(go_wrong, struct fault_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (args->wrong <= WG_PUT_NO_RANK) {
        miss_rank(wg, dev, args);
    } else if (args->wrong <= WAIT_MISALIGNED) {
        misalign(dev, args);
    } else {
        leave_heap(wg, dev, args);
    }
    args->board[63] = 1; /* not reached */
}

static int go(iris_t *iris, enum wrong wrong, int none, void *board)
{
    static const char zeros[64];
    char own[64] = {0}, copy[64], who[64];
    struct iris_heap_stats stats;
    struct fault_args args = {.context = iris_device_context(iris),
                              .board = board,
                              .own = own,
                              .wrong = wrong,
                              .none = none};

    CHECK_OK(iris_heap_stats(iris, &stats));
    args.end = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)] +
               stats.heap_bytes;
    CHECK_OK(iris_launch(iris, go_wrong, 1, 64, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID);
    snprintf(who, sizeof who,
             "rank %d: kernel go_wrong, workgroup 0:", iris_rank(iris));
    CHECK_MESSAGE(who);
    CHECK_MESSAGE(says[wrong][0]);
    CHECK_MESSAGE(says[wrong][1]);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(harness_read(iris, copy, board, sizeof copy));
    CHECK(memcmp(copy, zeros, sizeof copy) == 0);
    return 0;
}

static RANK_TEST(a_wrong_access_ends_the_kernel_and_says_why, ALL_RANKS)
{
    int nones[] = {-1, -2, INT_MIN, iris_num_ranks(iris), INT_MAX};
    int num_nones = (int)(sizeof nones / sizeof nones[0]);
    void *board;

    CPU_ONLY(iris, "GPUs check no access");
    CHECK_OK(iris_calloc(iris, 64, 1, &board));
    for (int wrong = 0; wrong < NUM_WRONGS; wrong++) {
        for (int i = 0; i < (wrong <= WG_PUT_NO_RANK ? num_nones : 1); i++) {
            CHECK_EQUAL(go(iris, (enum wrong)wrong, nones[i], board), 0);
        }
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, board));
    return 0;
}

TEST_GROUP(rank, one_gpu);
