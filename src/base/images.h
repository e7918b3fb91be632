/* SPDX-License-Identifier: MIT
 *
 * The registry of images of GPU code. An unloaded object takes its images and
 * kernels along, and the next object may have others at the same addresses.
 * Therefore images have serial numbers, which are never used again, and the
 * registry counts removed images.
 */
#ifndef IRIS_SRC_BASE_IMAGES_H
#define IRIS_SRC_BASE_IMAGES_H

#include <stdint.h>

typedef void (*iris_image_visit_t)(void *arg, const void *image,
                                   uint64_t serial);

/* Visits each image of GPU code in the program. Other threads may add images
 * during a visit. Removing the visited image waits. Thread-safe. */
void iris_i_each_image(iris_image_visit_t visit, void *arg);

/* The image's serial number; 0: it is not registered. Thread-safe. */
uint64_t iris_i_image_serial(const void *image);
uint64_t iris_i_images_removed(void);

#endif /* IRIS_SRC_BASE_IMAGES_H */
