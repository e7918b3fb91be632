/* SPDX-License-Identifier: MIT
 *
 * Launching kernels: checks, then the backend.
 */
#include "config.h"

#include <iris/launch.h>

#include "context/context.h"
#include "base/log.h"
#include "backend/module.h"
#include "queue/stream.h"

#include <pthread.h>
#include <stdatomic.h>

/* The program's images; they belong to its objects. */
static pthread_mutex_t images_lock = PTHREAD_MUTEX_INITIALIZER;
static struct iris_gpu_image *images;
static uint64_t last_serial;
static _Atomic uint64_t num_removed;

void iris_gpu_image_add(struct iris_gpu_image *image)
{
    pthread_mutex_lock(&images_lock);
    image->serial = ++last_serial;
    image->next = images;
    images = image;
    pthread_mutex_unlock(&images_lock);
}

void iris_gpu_image_remove(struct iris_gpu_image *image)
{
    struct iris_gpu_image **link = &images;

    pthread_mutex_lock(&images_lock);
    while (*link != NULL && *link != image) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = image->next;
        atomic_fetch_add(&num_removed, 1);
    }
    pthread_mutex_unlock(&images_lock);
}

void iris_i_each_image(iris_image_visit_t visit, void *arg)
{
    pthread_mutex_lock(&images_lock);
    for (struct iris_gpu_image *one = images; one != NULL; one = one->next) {
        visit(arg, one->image, one->serial);
    }
    pthread_mutex_unlock(&images_lock);
}

uint64_t iris_i_image_serial(const void *image)
{
    const struct iris_gpu_image *one;
    uint64_t serial;

    pthread_mutex_lock(&images_lock);
    one = images;
    while (one != NULL && one->image != image) {
        one = one->next;
    }
    serial = one == NULL ? 0 : one->serial;
    pthread_mutex_unlock(&images_lock);
    return serial;
}

uint64_t iris_i_images_removed(void)
{
    return atomic_load(&num_removed);
}

static iris_status_t check(const iris_t *iris, const struct iris_kernel *kernel,
                           const struct iris_launch *launch, size_t args_bytes)
{
    if (kernel == NULL) {
        return iris_i_fail(iris, IRIS_ERR_INVALID,
                           "iris_launch: kernel is NULL; pass what IRIS_KERNEL "
                           "defined");
    }
    if (launch->grid == 0 || launch->block == 0 ||
        launch->block > IRIS_LAUNCH_BLOCK_MAX) {
        return iris_i_fail(iris, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: grid %u, block %u; both "
                           "must be at least 1, block at most %d",
                           kernel->name, launch->grid, launch->block,
                           IRIS_LAUNCH_BLOCK_MAX);
    }
    if (args_bytes != kernel->args_bytes || args_bytes > IRIS_LAUNCH_ARGS_MAX) {
        return iris_i_fail(
            iris, IRIS_ERR_INVALID,
            "iris_launch of kernel %s: args_bytes is %zu, its "
            "argument struct has %zu (at most %d); pass sizeof the "
            "struct",
            kernel->name, args_bytes, kernel->args_bytes, IRIS_LAUNCH_ARGS_MAX);
    }
    if (launch->args == NULL) {
        return iris_i_fail(iris, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: args is NULL; pass its "
                           "argument struct",
                           kernel->name);
    }
    return IRIS_OK;
}

iris_status_t iris_launch(iris_t *iris, const struct iris_kernel *kernel,
                          unsigned grid, unsigned block, const void *args,
                          size_t args_bytes, iris_stream_t *stream)
{
    struct iris_launch launch = {
        .kernel = kernel, .grid = grid, .block = block, .args = args};
    iris_status_t status = iris_i_enter(iris, "iris_launch");

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_stream_resolve(iris, stream, &stream);
    if (status == IRIS_OK) {
        status = check(iris, kernel, &launch, args_bytes);
    }
    if (status == IRIS_OK) {
        status = iris->ops->launch(stream, &launch);
    }
    return iris_i_fail_on(iris, status);
}
