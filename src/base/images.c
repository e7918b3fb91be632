/* SPDX-License-Identifier: MIT
 *
 * The registry of images of GPU code: objects of the program add theirs before
 * main, backends visit them.
 */
#include "config.h"

#include "base/images.h"

#include <iris/launch.h>

#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* The program's images; they belong to its objects. */
static pthread_mutex_t images_lock = PTHREAD_MUTEX_INITIALIZER;
static struct iris_gpu_image *images;
static uint64_t last_serial;
static _Atomic uint64_t num_removed;

void iris_gpu_image_add(struct iris_gpu_image *image)
{
    if (image->version != IRIS_GPU_IMAGE_VERSION) {
        iris_i_error(NULL,
                     "an object of the program has GPU code that another "
                     "version of iriscc added (images of version %zu, this "
                     "library takes %d); its kernels will not be found on "
                     "GPUs: recompile it",
                     image->version, IRIS_GPU_IMAGE_VERSION);
        return;
    }
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
