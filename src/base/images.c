/* SPDX-License-Identifier: MIT
 *
 * The registry of images of GPU code. The program's objects add their images
 * before main, and backends visit them.
 */
#include "config.h"

#include "base/base.h"

#include <iris/launch.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The program's images; they belong to its objects. */
static pthread_mutex_t images_lock = PTHREAD_MUTEX_INITIALIZER;
static struct iris_gpu_image *images IRIS_GUARDED_BY(images_lock);
static uint64_t last_serial IRIS_GUARDED_BY(images_lock);
static _Atomic uint64_t num_removed;

/* A visit in progress, on its thread's stack. */
struct visit {
    const struct iris_gpu_image *image;
    struct visit *next;
};

static struct visit *visits IRIS_GUARDED_BY(images_lock);
static pthread_cond_t visit_ended = PTHREAD_COND_INITIALIZER;

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

static bool is_visited(const struct iris_gpu_image *image)
    IRIS_REQUIRES(images_lock)
{
    const struct visit *one = visits;

    while (one != NULL && one->image != image) {
        one = one->next;
    }
    return one != NULL;
}

/* The caller frees the image's memory next, so a visit of it has to end
 * first. */
void iris_gpu_image_remove(struct iris_gpu_image *image)
{
    struct iris_gpu_image **link = &images;

    pthread_mutex_lock(&images_lock);
    while (is_visited(image)) {
        pthread_cond_wait(&visit_ended, &images_lock);
    }
    while (*link != NULL && *link != image) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = image->next;
        atomic_fetch_add(&num_removed, 1);
    }
    pthread_mutex_unlock(&images_lock);
}

/* The next image to visit: the one with the highest number below this one;
 * NULL: none. The list is in descending order. */
static const struct iris_gpu_image *next_below(uint64_t serial)
    IRIS_REQUIRES(images_lock)
{
    const struct iris_gpu_image *one = images;

    while (one != NULL && one->serial >= serial) {
        one = one->next;
    }
    return one;
}

static void end_visit(const struct visit *visit) IRIS_REQUIRES(images_lock)
{
    struct visit **link = &visits;

    while (*link != visit) {
        link = &(*link)->next;
    }
    *link = visit->next;
    pthread_cond_broadcast(&visit_ended);
}

/* A visit holds no lock. A runtime that loads code may load a library, and that
 * load waits for a thread of the program that is in dlopen() and adds an
 * image. */
void iris_i_each_image(iris_image_visit_t visit, void *arg)
{
    uint64_t serial = UINT64_MAX;
    struct visit self;

    pthread_mutex_lock(&images_lock);
    while ((self.image = next_below(serial)) != NULL) {
        serial = self.image->serial;
        self.next = visits;
        visits = &self;
        pthread_mutex_unlock(&images_lock);
        visit(arg, self.image->image, serial);
        pthread_mutex_lock(&images_lock);
        end_visit(&self);
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
