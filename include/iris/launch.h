/* SPDX-License-Identifier: MIT
 *
 * Launching kernels defined with IRIS_KERNEL() (<iris/device.h>).
 */
#ifndef IRIS_LAUNCH_H
#define IRIS_LAUNCH_H

#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest argument struct of a kernel, in bytes. */
#define IRIS_LAUNCH_ARGS_MAX 4096

/** Lanes of a workgroup at most, on any device. */
#define IRIS_LAUNCH_BLOCK_MAX 1024

/** Runs `grid` workgroups of `block` lanes of a kernel on the stream.
 *  Asynchronous; the argument struct is copied before the call returns, what
 *  it points to is not. iris_num_cus() workgroups run at once for sure, lowest
 *  ids first: a workgroup may wait for one that runs or has run, never for one
 *  that may not have started (see docs/kernels.md). All writes of the kernel
 *  are visible to every rank that later learns of its end.
 *
 *  IRIS_ERR_INVALID      grid or block is 0, block is more than
 *                        IRIS_LAUNCH_BLOCK_MAX, args_bytes is not the kernel's,
 *                        kernel or args is NULL, no stream of this context
 *  IRIS_ERR_UNSUPPORTED  the program has no version of this kernel for the
 *                        backend in use, or compiled it with headers of another
 *                        version (IRIS_KERNEL_VERSION)
 *  IRIS_ERR_DEVICE       the GPU's runtime refused it, or failed before
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_STATE
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t) */
IRIS_API iris_status_t iris_launch(iris_t *iris,
                                   const struct iris_kernel *kernel,
                                   unsigned grid, unsigned block,
                                   const void *args, size_t args_bytes,
                                   iris_stream_t *stream);

/** Version of struct iris_gpu_image. */
#define IRIS_GPU_IMAGE_VERSION 1

/** An object's image of GPU code, as iriscc adds it to the program before main
 *  and takes it away again: a GPU loads all of them at iris_init(), since
 *  loading one later could wait for a kernel that waits. */
struct iris_gpu_image {
    size_t version; /* IRIS_GPU_IMAGE_VERSION; it never changes place */
    const void *image;
    /* Set by the library; do not touch. */
    struct iris_gpu_image *next;
    unsigned long long serial; /* not that of any other image */
};

/** Called by code that iriscc generates, not by programs. Thread-safe; cannot
 *  fail, but an image of another version is not added: the log says so. */
IRIS_API void iris_gpu_image_add(struct iris_gpu_image *image);
IRIS_API void iris_gpu_image_remove(struct iris_gpu_image *image);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_LAUNCH_H */
