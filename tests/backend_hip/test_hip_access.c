/* SPDX-License-Identifier: MIT
 *
 * Host memory where kernels access it: refused before anything is enqueued, if
 * the GPU cannot access it. Pinned memory and the GPU's own are accepted.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/ccl.h>
#include <iris/ops.h>
#include <iris/tensor.h>

#include <stdlib.h>
#include <string.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define COUNT 64
#define BYTES (COUNT * sizeof(float))

#define REFUSED(call)                                          \
    CHECK_BAD(iris, call, IRIS_ERR_INVALID, "are host memory", \
              "or pinned memory")

/* Each collective, with a place for its input and its output. */
static int refuse_collectives(iris_t *iris, float *host, float *heap)
{
    int other = 1 - iris_rank(iris);
    const size_t counts[2] = {4, 4};
    const iris_dtype_t f32 = IRIS_DTYPE_F32;

    REFUSED(iris_all_reduce(iris, host, heap, 4, f32, IRIS_REDUCE_SUM, NULL));
    REFUSED(iris_all_reduce(iris, heap, host, 4, f32, IRIS_REDUCE_SUM, NULL));
    REFUSED(iris_reduce(iris, host, heap, 4, f32, IRIS_REDUCE_SUM, 0, NULL));
    REFUSED(iris_all_gather(iris, host, heap, 4, f32, NULL));
    REFUSED(iris_all_gather(iris, heap, host, 4, f32, NULL));
    REFUSED(
        iris_reduce_scatter(iris, host, heap, 4, f32, IRIS_REDUCE_SUM, NULL));
    REFUSED(iris_all_to_all(iris, host, heap, 4, f32, NULL));
    REFUSED(iris_all_to_allv(iris, host, counts, NULL, heap, counts, NULL, f32,
                             NULL));
    REFUSED(iris_all_gatherv(iris, heap, host, counts, NULL, f32, NULL));
    REFUSED(iris_ccl_broadcast(iris, heap, host, 4, f32, 0, NULL));
    REFUSED(iris_gather(iris, host, heap, 4, f32, 0, NULL));
    REFUSED(iris_scatter(iris, heap, host, 4, f32, 0, NULL));
    REFUSED(iris_send(iris, host, 4, f32, other, NULL));
    REFUSED(iris_recv(iris, host, 4, f32, other, NULL));
    return 0;
}

static int refuse_tensors(iris_t *iris, float *host, float *heap)
{
    iris_tensor_t on = {.data = heap,
                        .dtype = IRIS_DTYPE_F32,
                        .ndim = 2,
                        .shape = {4, 4},
                        .strides = {4, 1}};
    iris_tensor_t off = on, out = on;

    off.data = host;
    out.data = heap + 16;
    REFUSED(iris_matmul_all_reduce(iris, &off, &on, &out, NULL));
    REFUSED(iris_matmul_all_reduce(iris, &on, &off, &out, NULL));
    off.strides[0] = 1;
    off.strides[1] = 4;
    REFUSED(iris_tensor_copy(iris, &on, &off, NULL)); /* with a kernel */
    REFUSED(iris_tensor_copy(iris, &off, &on, NULL));
    return 0;
}

static int sum(iris_t *iris, float *data)
{
    return iris_all_reduce(iris, data, data, 4, IRIS_DTYPE_F32, IRIS_REDUCE_SUM,
                           NULL);
}

static RANK_TEST(host_memory_is_refused_for_kernels, 2)
{
    float *heap, *host = malloc(BYTES);

    CHECK(host != NULL);
    memset(host, 0, BYTES);
    CHECK_OK(iris_calloc(iris, COUNT, sizeof *heap, (void **)&heap));
    CHECK_EQUAL(refuse_collectives(iris, host, heap), 0);
    CHECK_EQUAL(refuse_tensors(iris, host, heap), 0);
    /* Copies take any memory. */
    CHECK_OK(iris_memcpy(iris, heap, host, BYTES, NULL));
    CHECK_OK(iris_put_on_stream(iris, heap, host, 8, 0, NULL));
    CHECK_OK(iris_get_on_stream(iris, host, heap, 8, 0, NULL));
    /* Nothing was enqueued, and the members are still in step. */
    CHECK_OK(sum(iris, heap));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    free(host);
    return 0;
}

/* Pinned and device memory, on all members; the range is then known. Pinned
 * memory that was freed is host memory again. */
static RANK_TEST(memory_that_kernels_can_access_is_accepted, 2)
{
    float *pinned = NULL, *device = NULL, *heap;
    iris_graph_t *graph;

    CHECK_OK(iris_malloc_typed(iris, 4, &heap));
    CHECK_EQUAL(hipHostMalloc((void **)&pinned, BYTES, 0), hipSuccess);
    CHECK_EQUAL(hipExtMallocWithFlags((void **)&device, BYTES,
                                      hipDeviceMallocFinegrained),
                hipSuccess);
    memset(pinned, 0, BYTES);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sum(iris, pinned));
        CHECK_OK(sum(iris, device + 4 * i));
        CHECK_OK(iris_memset(iris, pinned, 0, 16, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_capture_begin(iris, NULL));
    CHECK_OK(sum(iris, pinned)); /* a question during a capture */
    REFUSED(sum(iris, (float *)&graph));
    CHECK_OK(iris_capture_end(iris, NULL, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_graph_destroy(iris, graph);
    CHECK_OK(iris_barrier(iris, NULL, NULL)); /* a free waits for the GPU */
    CHECK_EQUAL(hipHostFree(pinned), hipSuccess);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    REFUSED(sum(iris, pinned));
    CHECK_OK(sum(iris, device));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(hipFree(device), hipSuccess);
    return iris_barrier(iris, NULL, NULL);
}

/* Some GPUs access all host memory. */
static int pageable_body(iris_t *iris, void *arg)
{
    float host[4] = {1, 2, 3, 4};

    CHECK_OK(sum(iris, host));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK(host[3] == 8);
    return iris_barrier(iris, NULL, NULL);
}

static TEST(a_gpu_with_access_to_host_memory_takes_it)
{
    setenv("FAKEHIP_PAGEABLE", "1", 1);
    harness_run(2, pageable_body, NULL);
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
