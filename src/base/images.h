/* SPDX-License-Identifier: MIT
 *
 * The registry of images of GPU code. An object that is unloaded takes its
 * images and kernels along, and the next may have others at the same addresses.
 * So images have serial numbers, which are never used again, and it is counted
 * how many have gone.
 */
#ifndef IRIS_SRC_BASE_IMAGES_H
#define IRIS_SRC_BASE_IMAGES_H

#include <stdint.h>

typedef void (*iris_image_visit_t)(void *arg, const void *image,
                                   uint64_t serial);

/* Visits each image of GPU code in the program. Others may be added meanwhile;
 * what removes the one that is visited waits. Thread-safe. */
void iris_i_each_image(iris_image_visit_t visit, void *arg);

/* 0: it is none. Thread-safe. */
uint64_t iris_i_image_serial(const void *image);
uint64_t iris_i_images_removed(void);

#endif /* IRIS_SRC_BASE_IMAGES_H */
