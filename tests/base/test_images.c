/* SPDX-License-Identifier: MIT
 *
 * Images of GPU code that objects of the program add and take away.
 */
#include "config.h"

#include "base/base.h"
#include "support/harness.h"

#include <iris/launch.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HANG_S 60 /* a hang is a failure */

struct visits {
    int count;
    const void *last;
};

static void visit(void *arg, const void *image, uint64_t serial)
{
    struct visits *visits = arg;

    assert_true(serial > 0);
    visits->count++;
    visits->last = image;
}

static struct visits visit_all(void)
{
    struct visits visits = {0, NULL};

    iris_i_each_image(visit, &visits);
    return visits;
}

static TEST(an_image_is_there_until_it_is_removed)
{
    struct iris_gpu_image image = {.version = IRIS_GPU_IMAGE_VERSION,
                                   .image = "code"};
    int before = visit_all().count;
    uint64_t removed = iris_i_images_removed();

    iris_gpu_image_add(&image);
    assert_int_equal(visit_all().count, before + 1);
    assert_int_equal(iris_i_image_serial(image.image), image.serial);
    iris_gpu_image_remove(&image);
    assert_int_equal(visit_all().count, before);
    assert_int_equal(iris_i_image_serial(image.image), 0);
    assert_int_equal(iris_i_images_removed(), removed + 1);
}

/* A visitor that waits until another thread has added an image, as a runtime
 * does that waits for a library to be loaded. */
static void *add(void *image)
{
    iris_gpu_image_add(image);
    return NULL;
}

static void visit_and_wait(void *arg, const void *code, uint64_t serial)
{
    static struct iris_gpu_image other = {.version = IRIS_GPU_IMAGE_VERSION,
                                          .image = "other"};
    pthread_t thread;

    if (code == arg) {
        assert_int_equal(pthread_create(&thread, NULL, add, &other), 0);
        pthread_join(thread, NULL);
        iris_gpu_image_remove(&other);
    }
}

static TEST(images_may_be_added_while_one_is_visited)
{
    struct iris_gpu_image image = {.version = IRIS_GPU_IMAGE_VERSION,
                                   .image = "code"};

    alarm(HANG_S);
    iris_gpu_image_add(&image);
    iris_i_each_image(visit_and_wait, (void *)(uintptr_t)image.image);
    iris_gpu_image_remove(&image);
    alarm(0);
    assert_int_equal(iris_i_image_serial(image.image), 0);
}

/* An image that one thread visits while another removes it. */
struct removal {
    pthread_t thread;
    struct iris_gpu_image image;
    atomic_int removed;
};

static void *remove_it(void *arg)
{
    struct removal *self = arg;

    iris_gpu_image_remove(&self->image);
    atomic_store(&self->removed, 1);
    return NULL;
}

static void visit_while_removed(void *arg, const void *code, uint64_t serial)
{
    struct removal *self = arg;

    if (code == self->image.image) {
        assert_int_equal(pthread_create(&self->thread, NULL, remove_it, self),
                         0);
        for (int i = 0; i < 1000; i++) {
            sched_yield(); /* to it, which has to wait */
        }
        assert_int_equal(atomic_load(&self->removed), 0);
    }
}

static TEST(an_image_is_not_removed_while_it_is_visited)
{
    struct removal self = {
        .image = {.version = IRIS_GPU_IMAGE_VERSION, .image = "code"}};

    iris_gpu_image_add(&self.image);
    iris_i_each_image(visit_while_removed, &self);
    pthread_join(self.thread, NULL);
    assert_int_equal(iris_i_image_serial(self.image.image), 0);
}

static TEST(an_image_of_another_version_is_not_touched)
{
    struct iris_gpu_image image, before;
    int count = visit_all().count;
    struct harness_capture capture;

    memset(&image, 0x5a, sizeof image);
    image.version = IRIS_GPU_IMAGE_VERSION + 1;
    before = image;
    harness_capture(&capture);
    iris_gpu_image_add(&image);
    harness_captured(&capture);
    assert_non_null(strstr(capture.text, "another version of iriscc"));
    assert_non_null(strstr(capture.text, "recompile it"));
    free(capture.text);
    assert_int_equal(visit_all().count, count);
    iris_gpu_image_remove(&image);
    assert_memory_equal(&image, &before, sizeof image);
}

TEST_GROUP(unit);
