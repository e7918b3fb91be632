/* SPDX-License-Identifier: MIT
 *
 * Copies of the host's memory, and what the host does for streams: on a runtime
 * that says too early that a stream is done, and beside other ranks' copies.
 */
#include "config.h"

#include "support/hip_job.h"

#include "backend/calls.h"
#include "context/context.h"
#include "queue/queue.h"

#include <iris/device.h>

#include <stdlib.h>
#include <string.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define BYTES 30000
#define ROUNDS 40
#define PIECE ((size_t)2 << 20) /* of mapped memory */

/* ---- Done too early ---- */

static int early_body(iris_t *iris, void *arg)
{
    static const size_t sizes[] = {BYTES, 8, 4092};
    unsigned char *block, in[BYTES], out[BYTES];
    iris_stream_t *stream;

    CHECK_OK(iris_malloc(iris, BYTES, (void **)&block));
    CHECK_OK(iris_stream_create(iris, &stream));
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = sizes[round % 3];
        int value = round * 3 + iris_rank(iris) * 31;

        memset(in, value, bytes);
        CHECK_OK(iris_memcpy(iris, block, in, bytes, stream));
        CHECK_OK(iris_memcpy(iris, out, block, bytes, stream));
        CHECK_OK(iris_stream_synchronize(iris, stream));
        CHECK_EQUAL(memcmp(out, in, bytes), 0);
    }
    iris_stream_destroy(iris, stream);
    return 0;
}

static TEST(a_stream_is_done_when_the_host_has_done_its_part)
{
    setenv("FAKEHIP_QUIRKS", "query-before-callback", 1);
    setenv("FAKEHIP_LATE", "1", 1);
    harness_run(3, early_body, NULL);
}

/* ---- Other ranks ---- */

struct scene {
    uint64_t *words; /* the first is waited for */
    uint64_t host[2];
    iris_stream_t
        *stream; /* that has a get to do, behind a kernel that waits */
    iris_stream_t *other;
};

static int make_scene(iris_t *iris, struct scene *scene)
{
    *scene = (struct scene){.host = {7, 8}};
    CHECK_OK(iris_calloc(iris, 4, sizeof(uint64_t), (void **)&scene->words));
    CHECK_OK(iris_stream_create(iris, &scene->stream));
    CHECK_OK(iris_stream_create(iris, &scene->other));
    CHECK_OK(hip_wait_for(iris, scene->words, 1, scene->stream));
    CHECK_OK(
        iris_memcpy(iris, scene->host, scene->words + 1, 8, scene->stream));
    return 0;
}

/* Not one byte of the source is the get's, but the last of these are beside. */
static RANK_TEST(a_put_goes_at_once_beside_gets_to_other_memory, 2)
{
    uint64_t own[4] = {1, 2, 3, 4}, seen[2] = {0, 0};
    struct scene scene;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    CHECK_OK(iris_barrier(iris, scene.other, NULL));
    if (iris_rank(iris) == 0) {
        (void)fakehip_fail("hipStreamAddCallback:1+:700");
        CHECK_OK(iris_memcpy(iris, scene.words + 2, own, 16, scene.other));
        CHECK_OK(
            iris_memcpy(iris, scene.words + 2, scene.host + 1, 8, scene.other));
        CHECK_EQUAL(fakehip_fail("hipStreamAddCallback:1+:700"), 0);
        CHECK_STATUS(
            iris_memcpy(iris, scene.words + 2, scene.host, 16, scene.other),
            IRIS_ERR_DEVICE);
        CHECK_EQUAL(fakehip_fail(NULL), 1);
    }
    CHECK_OK(iris_barrier(iris, scene.other, NULL));
    CHECK_OK(iris_signal_on_stream(iris, scene.words, 1, iris_rank(iris),
                                   scene.other));
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    CHECK_OK(harness_read(iris, seen, scene.words + 2, sizeof seen));
    CHECK_EQUAL(seen[0], iris_rank(iris) == 0 ? 8 : 0);
    CHECK_EQUAL(seen[1], iris_rank(iris) == 0 ? 2 : 0);
    CHECK_EQUAL(scene.host[0], 0);
    return 0;
}

/* ---- Failures ---- */

/* The program may have freed that memory by then. */
static RANK_TEST(what_is_given_up_writes_no_more_host_memory, 1)
{
    struct scene scene;

    CHECK_EQUAL(make_scene(iris, &scene), 0);
    (void)fakehip_fail("hipStreamQuery:1+:700");
    CHECK_STATUS(iris_stream_synchronize(iris, scene.stream), IRIS_ERR_DEVICE);
    (void)fakehip_fail(NULL);
    CHECK_EQUAL(hipStreamSynchronize(iris_stream_native(iris, scene.stream)),
                hipSuccess);
    CHECK_EQUAL(scene.host[0], 7);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_memcpy(iris, scene.host, scene.words + 1, 8, scene.stream));
    CHECK_OK(iris_stream_synchronize(iris, scene.stream));
    CHECK_EQUAL(scene.host[0], 0);
    return 0;
}

/* ---- More than the stage has in any number of blocks ---- */

/* At the backend: above, 2^48 bytes from any address run into a heap. 32 bits
 * do not hold the number of blocks. The fake runtime is told to fail. */
static RANK_TEST(a_copy_of_any_size_is_the_runtime_s_to_refuse, 1)
{
    static const size_t sizes[] = {(size_t)1 << 24, (size_t)1 << 48,
                                   ((size_t)1 << 48) + 1};
    iris_stream_t *stream;
    char host = 0;
    void *own;

    CHECK_EQUAL(fakehip_map(0, PIECE, 1, &own), 0);
    CHECK_OK(iris_i_stream_resolve(&iris->queue, NULL, &stream));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        (void)fakehip_fail("hipMemcpyAsync:1:1");
        CHECK_STATUS(iris_i_queue_copy(stream, own, &host, sizes[i]),
                     IRIS_ERR_DEVICE);
        CHECK_EQUAL(fakehip_fail(NULL), 1);
    }
    fakehip_unmap(own, PIECE);
    return 0;
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
