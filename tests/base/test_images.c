/* SPDX-License-Identifier: MIT
 *
 * Images of GPU code that objects of the program add and take away.
 */
#include "config.h"

#include "base/images.h"
#include "support/harness.h"

#include <iris/launch.h>

#include <stdlib.h>
#include <string.h>

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

static void an_image_is_there_until_it_is_removed(void **state)
{
    struct iris_gpu_image image = {.version = IRIS_GPU_IMAGE_VERSION,
                                   .image = "code"};
    int before = visit_all().count;
    uint64_t removed = iris_i_images_removed();

    (void)state;
    iris_gpu_image_add(&image);
    assert_int_equal(visit_all().count, before + 1);
    assert_int_equal(iris_i_image_serial(image.image), image.serial);
    iris_gpu_image_remove(&image);
    assert_int_equal(visit_all().count, before);
    assert_int_equal(iris_i_image_serial(image.image), 0);
    assert_int_equal(iris_i_images_removed(), removed + 1);
}

static void an_image_of_another_version_is_not_touched(void **state)
{
    struct iris_gpu_image image, before;
    int count = visit_all().count;
    struct harness_capture capture;

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_there_until_it_is_removed),
        cmocka_unit_test(an_image_of_another_version_is_not_touched),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
