/* SPDX-License-Identifier: MIT
 *
 * Kernels, written once for every target: a body over one workgroup, whose
 * lanes are loops.
 *
 * @use workgroup; never blocks
 * @param i  name of the index, a size_t
 * @param n  number of indices
 * @param type, name, count  type of the elements, name of the array, its length
 */
#ifndef IRIS_DEVICE_KERNEL_H
#define IRIS_DEVICE_KERNEL_H

#include <iris/types.h>
#include <iris/device/core/compat.h>
#include <iris/device/core/atomic.h>
#if IRIS_ON_CPU && IRIS_CHECK_LANES
#include <iris/device/watch/cpu.h>
#endif

/* There are two ways to compile a kernel for GPUs.
 * - iriscc compiles a C file twice: for the CPU, and as an image of GPU code,
 *   which it puts into the same object. The backend loads the image and finds
 *   `name`_gpu in it.
 * - hipcc and nvcc compile a C++ file, with its host code, for one GPU. (A HIP
 *   program includes <hip/hip_runtime.h> before this header: its host side
 *   needs the declarations behind __global__.) */
#if defined(IRIS_I_IMAGE) /* iriscc compiles the image */
#define IRIS_D_KERNEL_LINKAGE extern "C"
#else
#define IRIS_D_KERNEL_LINKAGE static
#endif

/** Lanes that a workgroup may be launched with on a GPU, at most
 *  IRIS_LAUNCH_BLOCK_MAX. A kernel that wants registers more than lanes defines
 *  less before it includes this. */
#ifndef IRIS_MAX_LANES
#define IRIS_MAX_LANES 1024
#endif

/** The workgroup a body runs for. On a GPU all its lanes run the body; on the
 *  CPU one thread does, and lanes exist as iterations of lane loops only. */
typedef struct iris_wg {
    uint32_t id;        /**< Its place in the grid, from 0. */
    uint32_t num_wgs;   /**< Workgroups of the grid. */
    uint32_t num_lanes; /**< Lanes of each. */
#if IRIS_ON_CPU
    IRIS_D_WG_MEMBERS
#endif
} iris_wg_t;

/* IRIS_KERNEL(name, ARGS) { ... } defines the kernel `name`, which takes a
 * const ARGS *args and iris_wg_t wg, at file scope:
 *
 *     struct scale_args { const float *in; float *out; size_t n; ... };
 *
 *     IRIS_KERNEL(scale, struct scale_args)
 *     {
 *         IRIS_LANES(wg, i, args->n)
 *             args->out[i] = 2.0f * args->in[i];
 *     }
 *
 *     iris_launch(iris, scale, grid, block, &args, sizeof args, stream);
 *
 * `name` becomes an array of one const struct iris_kernel, so that it is passed
 * without an &. The macro also defines name_body, name_cpu and name_gpu. On the
 * CPU a body that waits may never return (see iris_wait_until()): it must not
 * hold a resource that only it can release, such as memory from malloc(). */
#if IRIS_ON_CPU
#define IRIS_KERNEL(name, ARGS)                                             \
    IRIS_DEVICE void name##_body(iris_wg_t wg, const ARGS *args);           \
    static void name##_cpu(const void *wg, const void *args)                \
    {                                                                       \
        ARGS copy = *(const ARGS *)args; /* no store can change the copy */ \
        IRIS_D_ENTER(wg);                                                   \
        name##_body(*(const iris_wg_t *)wg, &copy);                         \
    }                                                                       \
    IRIS_UNUSED static const struct iris_kernel name[1] = {                 \
        {IRIS_KERNEL_VERSION, #name, sizeof(ARGS), name##_cpu,              \
         IRIS_D_GPU_IMAGE(name), NULL}};                                    \
    IRIS_DEVICE void name##_body(IRIS_UNUSED iris_wg_t wg,                  \
                                 IRIS_UNUSED const ARGS *args)
#else
#define IRIS_KERNEL(name, ARGS)                                                \
    IRIS_DEVICE void name##_body(iris_wg_t wg, const ARGS *args);              \
    IRIS_D_KERNEL_LINKAGE __global__ void IRIS_D_MAX_LANES(IRIS_MAX_LANES)     \
        name##_gpu(ARGS args)                                                  \
    {                                                                          \
        iris_wg_t wg = {iris_d_wg_id(), iris_d_num_wgs(), iris_d_num_lanes()}; \
        name##_body(wg, &args);                                                \
    }                                                                          \
    IRIS_UNUSED static const struct iris_kernel name[1] = {                    \
        {IRIS_KERNEL_VERSION, #name, sizeof(ARGS), NULL, NULL,                 \
         (const void *)name##_gpu}};                                           \
    IRIS_DEVICE void name##_body(IRIS_UNUSED iris_wg_t wg,                     \
                                 IRIS_UNUSED const ARGS *args)
#endif

/* Where workgroup `id`'s contiguous share of [0, n) starts; the first n % wgs
 * shares have one more. */
IRIS_DEVICE size_t iris_d_share(iris_wg_t wg, uint32_t id, size_t n)
{
    size_t extra = n % wg.num_wgs;

    return n / wg.num_wgs * id + (id < extra ? id : extra);
}

/** IRIS_LANES(wg, i, n) statement: runs the statement for this workgroup's
 *  share of the size_t indices [0, n). The whole grid runs each index exactly
 *  once; the target chooses the workgroup and the lane. All lanes call it. The
 *  statement must not contain a workgroup operation. n is evaluated once. On the
 *  CPU it is a plain loop, which -O3 vectorises. gcc does so if the loop has one
 *  load, store, get, put or copy whose rank does not depend on i (for more,
 *  hoist with iris_dev_as_remote()); clang does so for any number.
 *
 *  IRIS_WG_LANES(wg, i, n) statement: the same, but each workgroup runs all of
 *  [0, n). */
#if IRIS_ON_CPU && IRIS_CHECK_LANES
IRIS_DEVICE size_t iris_d_begin_lanes(size_t n)
{
    iris_cpu_lanes(IRIS_CPU_LOOP);
    return n;
}

/* Whether the loop goes on; the index stands for that lane from here on. */
IRIS_DEVICE int iris_d_enter_lane(iris_wg_t wg, size_t i, size_t end)
{
    size_t lane = i % wg.num_lanes, others = IRIS_CPU_PARTS - 2;
    size_t part = lane == 0 ? 1 : 2 + (lane - 1) * others / (wg.num_lanes - 1);

    /* Lanes of one part are not told apart. */
    iris_cpu_lanes(i < end ? (int)part : 0);
    return i < end;
}

#define IRIS_LANES(wg, i, n)                                    \
    for (size_t i##_n = iris_d_begin_lanes(n),                  \
                i = iris_d_share(wg, (wg).id, i##_n),           \
                i##_end = iris_d_share(wg, (wg).id + 1, i##_n); \
         iris_d_enter_lane(wg, i, i##_end); i++)
#define IRIS_WG_LANES(wg, i, n)                         \
    for (size_t i = 0, i##_end = iris_d_begin_lanes(n); \
         iris_d_enter_lane(wg, i, i##_end); i++)
#elif IRIS_ON_CPU
#define IRIS_LANES(wg, i, n)                                       \
    for (size_t i##_n = (n), i = iris_d_share(wg, (wg).id, i##_n), \
                i##_end = iris_d_share(wg, (wg).id + 1, i##_n);    \
         i < i##_end; i++)
#define IRIS_WG_LANES(wg, i, n) \
    for (size_t i = ((void)(wg), (size_t)0), i##_end = (n); i < i##_end; i++)
#else
#define IRIS_LANES(wg, i, n)                                          \
    for (size_t i = (size_t)(wg).id * (wg).num_lanes + iris_d_lane(), \
                i##_end = (n);                                        \
         i < i##_end; i += (size_t)(wg).num_wgs * (wg).num_lanes)
#define IRIS_WG_LANES(wg, i, n)                                \
    for (size_t i = iris_d_lane(), i##_end = (n); i < i##_end; \
         i += (wg).num_lanes)
#endif

/** IRIS_WG_LOCAL(type, name, count); declares an array that all lanes of the
 *  workgroup share: LDS on AMD, shared memory on NVIDIA (48 KiB at most), the
 *  stack of the workgroup's thread on the CPU. Use it at the top of a kernel's
 *  body. Its contents are undefined at first. Lanes see each other's writes
 *  after iris_wg_barrier(). Its addresses mean nothing to other workgroups and
 *  ranks, and bulk copies do not take them.
 *  @use lane */
#if IRIS_ON_CPU
#define IRIS_WG_LOCAL(type, name, count) type name[count]
#else
#define IRIS_WG_LOCAL(type, name, count) __shared__ type name[count]
#endif

/** True in exactly one lane of the workgroup, always the same one. On the CPU
 *  that is any code outside a lane loop. */
IRIS_DEVICE iris_bool_t iris_wg_leader(iris_wg_t wg)
{
    (void)wg;
    return iris_d_lane() == 0;
}

#endif /* IRIS_DEVICE_KERNEL_H */
