/* SPDX-License-Identifier: MIT
 *
 * Memory of heaps in a small /dev/shm: what cannot be had on every rank is kept
 * on none, what is freed goes back, and what was never allocated is not
 * touched.
 */
#include "config.h"

#include "context/context.h"
#include "heap/heap.h"
#include "support/harness.h"
#include "support/leaks.h"
#include "support/mounts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static const char *const ways[] = {"threads", "processes"};

static size_t free_bytes(void)
{
    struct statvfs stats = {0};

    statvfs("/dev/shm", &stats);
    return (size_t)stats.f_bavail * stats.f_bsize;
}

static size_t mapped(const iris_t *iris)
{
    struct iris_heap_stats stats = {0};

    (void)iris_heap_stats(iris, &stats);
    return stats.mapped_bytes;
}

/* Runs `body` on two ranks that have a /dev/shm of 64 MiB to themselves, as
 * threads and as processes. */
static void run(iris_rank_fn body)
{
    for (int way = 0; way < 2; way++) {
        struct iris_config config;
        int how = -1;
        pid_t pid;

        iris_config_init(&config);
        config.spawn = ways[way];
        config.heap_bytes = (int64_t)(32 * MIB);
        config.heap_reserve = (int64_t)(65536 * MIB); /* more than there is */
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            iris_status_t status;

            if (!mounts_small("/dev/shm", "size=64m")) {
                _exit(77);
            }
            status = iris_spawn(&config, 2, body, NULL);
            if (status != IRIS_OK) {
                fprintf(stderr, "%s: %s\n", ways[way], iris_last_error());
            }
            fflush(NULL);
            _exit(status != IRIS_OK);
        }
        assert_int_equal(waitpid(pid, &how, 0), pid);
        if (WIFEXITED(how) && WEXITSTATUS(how) == 77) {
            print_message("cannot mount a /dev/shm of its own: nothing done\n");
            skip();
        }
        assert_int_equal(how, 0);
    }
}

/* 40 MiB fit once but not twice, 25 fit twice. Rank 1 asks once rank 0 has
 * them, so that it is rank 1 alone that fails. */
static int fail_then_fit(iris_t *iris, void *arg)
{
    size_t before = mapped(iris), left;
    void *ptr, *other;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        left = free_bytes();
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        for (int ms = 0; iris_rank(iris) == 1 && ms < 30000 &&
                         free_bytes() > left - 40 * MIB;
             ms++) {
            poll(NULL, 0, 1);
        }
        CHECK_STATUS(iris_malloc(iris, 40 * MIB, &ptr), IRIS_ERR_NO_MEMORY);
        CHECK_MESSAGE("33554432 bytes (IRIS_HEAP_SIZE) may grow to "
                      "68719476736 (IRIS_HEAP_RESERVE)");
        CHECK_MESSAGE("iris_heap_trim() gives back");
        CHECK_EQUAL(mapped(iris), before);
    }
    CHECK_OK(iris_malloc(iris, 25 * MIB, &ptr));
    CHECK_STATUS(iris_calloc(iris, 20 * MIB, 1, &other), IRIS_ERR_NO_MEMORY);
    CHECK_OK(iris_memset(iris, ptr, 7, 25 * MIB, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return iris_free(iris, ptr);
}

static TEST(memory_that_one_rank_lacks_is_kept_on_none)
{
    run(fail_then_fit);
}

static int free_and_look(iris_t *iris, void *arg)
{
    size_t before = mapped(iris), left;
    void *ptrs[3];

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    left = free_bytes();
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int round = 0; round < 5; round++) { /* 5 times 12 would not fit */
        for (int i = 0; i < 3; i++) {
            CHECK_OK(iris_malloc(iris, 4 * MIB, &ptrs[i]));
            CHECK_OK(iris_memset(iris, ptrs[i], 7, 4 * MIB, NULL));
            CHECK_OK(iris_stream_synchronize(iris, NULL));
        }
        CHECK(mapped(iris) >= before + 12 * MIB);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK(free_bytes() <= left - 24 * MIB);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        for (int i = 0; i < 3; i++) {
            CHECK_OK(iris_free(iris, ptrs[(i + round) % 3]));
        }
        CHECK(mapped(iris) <= before + MIB);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK(free_bytes() >= left - 2 * MIB);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    /* New memory tells nothing of what it held before. */
    CHECK_OK(iris_malloc(iris, 12 * MIB, &ptrs[0]));
    CHECK(harness_holds(iris, (char *)ptrs[0] + 4 * MIB, MIB, 0));
    return iris_free(iris, ptrs[0]);
}

static TEST(freed_memory_goes_back_to_the_system)
{
    run(free_and_look);
}

#define PIECES 300

/* In order, reversed and scattered; each of the last free ranges that reach
 * 1 MiB joins others. */
static int free_pieces(iris_t *iris, void *arg)
{
    size_t before = mapped(iris), freed = 0;
    void *ptrs[PIECES];

    for (int order = 0; order < 3; order++) {
        for (int i = 0; i < PIECES; i++) {
            CHECK_OK(iris_malloc(iris, 66000, &ptrs[i]));
        }
        CHECK(mapped(iris) >= before + (size_t)PIECES * 66000 - MIB / 8);
        for (int i = 0; i < PIECES; i++) {
            int which = order == 0   ? i
                        : order == 1 ? PIECES - 1 - i
                                     : i * 91 % PIECES;

            CHECK_OK(iris_free(iris, ptrs[which]));
        }
        CHECK(mapped(iris) <= before + MIB / 8);
    }
    /* Too little to go back by itself. */
    for (int i = 0; i < 12; i++) {
        CHECK_OK(iris_malloc(iris, 200000, &ptrs[i]));
    }
    for (int i = 0; i < 12; i += 2) {
        CHECK_OK(iris_free(iris, ptrs[i]));
    }
    before = mapped(iris);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    freed = free_bytes();
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_heap_trim(iris, NULL));
    before -= mapped(iris);
    CHECK(before > 0);
    /* On all ranks, once the call has returned on one. */
    CHECK_EQUAL(free_bytes() - freed, 2 * before);
    return iris_barrier(iris, NULL, NULL);
}

static TEST(freed_pieces_go_back_in_every_order)
{
    run(free_pieces);
}

/* With nothing left in /dev/shm a page that is not there is SIGBUS. */
static int use_nothing(iris_t *iris, void *arg)
{
    uint64_t host = 5, *ptr, *far;
    iris_status_t status;
    void *more;

    CHECK_OK(iris_calloc(iris, 1, sizeof *ptr, (void **)&ptr));
    far = ptr + 16 * MIB;
    for (size_t bytes = 32 * MIB; bytes >= MIB / 16; bytes /= 2) {
        while (iris_malloc(iris, bytes, &more) == IRIS_OK) {
            far = (uint64_t *)more + 24 * MIB;
        }
    }
#define NOTHING(call)                                                        \
    CHECK_BAD(iris, call, IRIS_ERR_INVALID, "are not allocated and have no", \
              "pass memory from iris_malloc")
    NOTHING(iris_put_on_stream(iris, far, &host, sizeof host, 1, NULL));
    NOTHING(iris_get_on_stream(iris, &host, far, sizeof host, 1, NULL));
    NOTHING(iris_signal_on_stream(iris, far, 1, 1, NULL));
    NOTHING(iris_wait_on_stream(iris, far, IRIS_CMP_EQ, 1, NULL));
    NOTHING(iris_memset(iris, far, 0, sizeof host, NULL));
    NOTHING(iris_memcpy(iris, far, &host, sizeof host, NULL));
    NOTHING(iris_memcpy(iris, &host, far, sizeof host, NULL));
#undef NOTHING
    status = iris_stream_synchronize(iris, NULL);
    CHECK_OK(status);
    return iris_barrier(iris, NULL, NULL);
}

static TEST(what_was_never_allocated_is_not_touched)
{
    run(use_nothing);
}

/* ---- Memory that comes with its use ---- */

#define LAZY_BYTES ((size_t)4 << 20)
#define PART_BYTES ((size_t)300 << 10)

static const struct iris_call_type lazy_call = {
    .name = "lazy", .fields = {{.name = "bytes"}, {.name = "alignment"}}};

static RANK_TEST(a_lazy_allocation_gets_memory_part_by_part, 2)
{
    struct iris_heap_request request = {.type = &lazy_call,
                                        .bytes = LAZY_BYTES,
                                        .alignment = IRIS_ALIGNMENT,
                                        .is_lazy = 1};
    struct iris_heap_stats before, after;
    unsigned char *memory, *part;

    CHECK_OK(iris_heap_stats(iris, &before));
    CHECK_OK(iris_i_heap_allocate(&iris->heap, &request, (void **)&memory));
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.mapped_bytes, before.mapped_bytes);
    part = memory + 256;
    CHECK_OK(iris_i_heap_clear(&iris->heap.memory, part, PART_BYTES));
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK(after.mapped_bytes >= before.mapped_bytes + PART_BYTES);
    CHECK(after.mapped_bytes < before.mapped_bytes + 2 * PART_BYTES);
    CHECK(harness_holds(iris, part, PART_BYTES, 0));
    /* What is there already is zeroed, and what is next to it is not. */
    memset(part, 0x5a, PART_BYTES);
    CHECK_OK(iris_i_heap_clear(&iris->heap.memory, part + 100, 2 * PART_BYTES));
    CHECK(harness_holds(iris, part, 100, 0x5a));
    CHECK(harness_holds(iris, part + 100, 2 * PART_BYTES, 0));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, memory));
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK(after.mapped_bytes < before.mapped_bytes + PART_BYTES);
    return 0;
}

/* With 64 ranks it would be 4 GiB, before the first collective. */
static RANK_TEST(memory_for_collectives_waits_for_workspaces, 2)
{
    struct iris_heap_stats before, after;

    CHECK_OK(iris_heap_stats(iris, &before));
    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.mapped_bytes, before.mapped_bytes);
    CHECK(after.used_bytes >= before.used_bytes + ((size_t)1 << 20));
    return 0;
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, one_node);
