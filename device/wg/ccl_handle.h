/* SPDX-License-Identifier: MIT
 *
 * The handle by which the workgroups of a kernel do a group's collectives.
 */
#ifndef IRIS_DEVICE_CCL_HANDLE_H
#define IRIS_DEVICE_CCL_HANDLE_H

#include <stdint.h>

/** Made by iris_ccl_device_create(); kernels get it by value, as a field of
 *  their arguments. The fields are the library's. */
typedef struct iris_ccl_device {
    const int64_t *context;
    void *spaces;     /* this rank's spaces, one for each workgroup */
    uint64_t stride;  /* bytes from a space to the next one */
    uint64_t piece;   /* bytes of a member's data in one step */
    uint32_t max_wgs; /* spaces */
    uint32_t far;     /* 1: the group has ranks of several nodes */
} iris_ccl_device_t;

#endif /* IRIS_DEVICE_CCL_HANDLE_H */
