/* SPDX-License-Identifier: MIT
 *
 * Heaps on GPUs that come, grow and go while peers have them.
 */
#include "config.h"

#include "support/hip_job.h"

#include "backend/calls.h"
#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)
#define SETTLED 10 /* heaps after which the process's addresses come again */
#define TRIES 100
#define PIECE ((size_t)65536)
#define ODD (16 * PIECE + 4096)

static iris_status_t keep_waiting(void *core)
{
    return IRIS_OK;
}

static void describe_late(void *core, const void *word, char *text,
                          size_t bytes)
{
    text[0] = '\0';
}

static void note_wait(void *core, struct iris_wait_note *note)
{
}

static int locate(void *core, const void *address,
                  struct iris_location *place_p)
{
    return 0;
}

static const struct iris_core_ops core_ops = {
    .note_wait = note_wait,
    .wait_over = note_wait,
    .describe_late = describe_late,
    .locate = locate,
};

static const struct iris_waiter waiter = {.fate = keep_waiting};

static struct iris_backend *open_backend(int rank, const char *allocator)
{
    const struct iris_backend_params params = {
        .num_ranks = 2,
        .rank = rank,
        .device = rank,
        .ranks_on_device = 1,
        .vmem = strcmp(allocator, "vmem") == 0,
        .core_ops = &core_ops,
        .waiter = &waiter,
        .heap_bytes = BYTES,
    };
    const struct iris_backend_type *type;
    struct iris_backend *backend = NULL;

    if (iris_i_registry_find("hip", getenv("IRIS_MODULE_DIR"), &type) ==
        IRIS_OK) {
        (void)iris_i_device_open(type, &params, &backend);
    }
    return backend;
}

/* Fills a heap and names it to the peer. The fake's memory is the host's. */
static int offer(struct iris_backend *backend, struct iris_heap_region *heap,
                 int value, int out)
{
    struct iris_heap_handle handle;

    memset(heap->base, value, BYTES);
    CHECK_OK(iris_i_memory_export(backend, heap, &handle));
    CHECK(write(out, &handle, sizeof handle) == sizeof handle);
    return 0;
}

/* Two heaps, one after the other, at one address; the peer says when. */
static int offer_two(int in, int out)
{
    struct iris_backend *backend = open_backend(1, "pool");
    struct iris_heap_region heap;
    void *first;
    char word;

    CHECK(backend != NULL);
    for (int i = 0; i < SETTLED; i++) {
        CHECK_OK(iris_i_memory_alloc(backend, BYTES, &heap));
        iris_i_memory_free(backend, &heap);
    }
    CHECK_OK(iris_i_memory_alloc(backend, BYTES, &heap));
    first = heap.base;
    CHECK_EQUAL(offer(backend, &heap, 1, out), 0);
    CHECK(read(in, &word, 1) == 1);
    for (int i = 0; i == 0 || heap.base != first; i++) {
        CHECK(i < TRIES);
        iris_i_memory_free(backend, &heap);
        CHECK_OK(iris_i_memory_alloc(backend, BYTES, &heap));
    }
    CHECK_EQUAL(offer(backend, &heap, 2, out), 0);
    CHECK(read(in, &word, 1) == 1);
    iris_i_memory_free(backend, &heap);
    iris_i_device_close(backend);
    return 0;
}

static TEST(a_peer_s_next_heap_is_not_taken_for_its_last)
{
    struct iris_backend *backend;
    void *bases[2];
    int here[2], there[2], ended;
    pid_t pid;

    assert_true(pipe(here) == 0 && pipe(there) == 0);
    pid = fork();
    if (pid == 0) {
        _exit(offer_two(there[0], here[1]));
    }
    close(here[1]); /* so that what the child does not write has an end */
    close(there[0]);
    backend = open_backend(0, "pool");
    assert_non_null(backend);
    for (int i = 0; i < 2; i++) {
        struct iris_heap_handle handle;

        assert_int_equal(read(here[0], &handle, sizeof handle), sizeof handle);
        assert_int_equal(
            iris_i_memory_import(backend, &handle, BYTES, &bases[i]), IRIS_OK);
        assert_int_equal(*(char *)bases[i], i + 1);
        assert_int_equal(write(there[1], "", 1), 1);
    }
    for (int i = 0; i < 2; i++) {
        iris_i_memory_unimport(backend, bases[i], BYTES);
    }
    iris_i_device_close(backend);
    assert_true(waitpid(pid, &ended, 0) == pid && ended == 0);
    close(here[0]);
    close(there[1]);
}

/* Whether there is memory: to a pipe that has room. */
static int is_memory(const void *ptr)
{
    int ends[2], there;

    assert_int_equal(pipe(ends), 0);
    there = write(ends[1], ptr, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return there;
}

/* One rank thread gives its heap back while the other, on another GPU, has it:
 * there is nothing on its own GPU to wait for. */
static void lend(const char *allocator)
{
    struct iris_backend *mine = open_backend(0, allocator);
    struct iris_backend *theirs = open_backend(1, allocator);
    struct iris_heap_handle handle;
    struct iris_heap_region heap;
    struct iris_device_info info;
    void *base;

    assert_true(mine != NULL && theirs != NULL);
    iris_i_device_info(theirs, &info);
    assert_int_equal(iris_i_memory_alloc(theirs, BYTES, &heap), IRIS_OK);
    assert_int_equal(iris_i_memory_commit(theirs, heap.base, info.page_bytes),
                     IRIS_OK);
    assert_int_equal(iris_i_memory_export(theirs, &heap, &handle), IRIS_OK);
    if (handle.fd >= 0) {
        close(handle.fd);
    }
    assert_int_equal(iris_i_memory_import(mine, &handle, BYTES, &base),
                     IRIS_OK);
    assert_ptr_equal(base, heap.base);
    iris_i_memory_free(theirs, &heap);
    assert_true(is_memory(base));
    iris_i_device_close(theirs);
    assert_true(is_memory(base));
    iris_i_memory_unimport(mine, base, BYTES);
    assert_false(is_memory(base));
    iris_i_device_close(mine);
}

static TEST(a_heap_stays_while_another_gpu_s_rank_thread_has_it)
{
    static const char *const allocators[] = {"pool", "vmem"};

    for (int i = 0; i < 2; i++) {
        struct hip_held before;

        hip_note(&before);
        lend(allocators[i]);
        assert_int_equal(hip_found(&before), 0);
    }
}

/* ---- Small pages ---- */

/* A heap whose end is in the middle of a piece, and memory behind it. */
static int fill_and_share(iris_t *iris, void *arg)
{
    struct iris_heap_stats stats;
    void *heap, *own, *symmetric;
    int shared;

    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_OK(iris_malloc(iris, stats.largest_free_bytes, &heap));
    CHECK_EQUAL(fakehip_map(iris_device_id(iris), PIECE, 1, &own), 0);
    CHECK_OK(iris_as_symmetric(iris, own, PIECE, &symmetric, &shared));
    CHECK_EQUAL(shared, 1);
    CHECK_OK(iris_memset(iris, symmetric, 3, PIECE, NULL));
    CHECK(harness_holds(iris, symmetric, PIECE, 3));
    fakehip_unmap(own, PIECE);
    return iris_barrier(iris, NULL, NULL);
}

static TEST(heaps_grow_by_pieces_that_the_core_can_have)
{
    struct hip_held before;
    char bytes[32];

    hip_note(&before);
    snprintf(bytes, sizeof bytes, "%zu", ODD);
    setenv("IRIS_HEAP_SIZE", bytes, 1);
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    setenv("FAKEHIP_GRANULARITY", "4096", 1);
    harness_run(1, fill_and_share, NULL);
    harness_run(2, fill_and_share, NULL);
    unsetenv("FAKEHIP_GRANULARITY");
    unsetenv("IRIS_ALLOCATOR");
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    assert_int_equal(hip_found(&before), 0);
}

/* What is committed is filled with zeros first, and then what is allocated. */
static int fail_to_zero(iris_t *iris, void *arg)
{
    struct iris_heap_stats before, after;
    void *ptr;

    CHECK_OK(iris_heap_stats(iris, &before));
    (void)fakehip_fail(arg);
    CHECK(iris_calloc(iris, 1, before.largest_free_bytes, &ptr) != IRIS_OK);
    CHECK(fakehip_fail(NULL) > 0);
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.mapped_bytes, before.mapped_bytes);
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    return 0;
}

static TEST(memory_that_cannot_be_zeroed_is_given_back)
{
    static char first[] = "hipMemsetAsync:1+:2";
    static char second[] = "hipMemsetAsync:2+:2";

    setenv("IRIS_ALLOCATOR", "vmem", 1);
    harness_run(1, fail_to_zero, first);
    harness_run(1, fail_to_zero, second);
}

static TEST(a_full_gpu_says_what_is_free_and_what_to_lower)
{
    iris_t *iris;

    setenv("FAKEHIP_MEMORY", "1000000", 1);
    assert_int_equal(iris_init(NULL, &iris), IRIS_ERR_NO_MEMORY);
    assert_true(harness_message_has("rank 0"));
    assert_true(harness_message_has("GPU 0"));
    assert_true(harness_message_has("1000000 of 1000000 bytes are free"));
    assert_true(harness_message_has("IRIS_HEAP_SIZE"));
    assert_true(harness_message_has("out of memory (hipErrorOutOfMemory)"));
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
