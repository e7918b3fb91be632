/* SPDX-License-Identifier: MIT
 *
 * DLPack's structs as its own header has them, for test_dlpack.c to compare
 * ours with: one file cannot have both. Without the header all is 0.
 */
#include "config.h"

#include "tensor/dlpack_layout.h"

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define HAS_DLPACK 1
#endif
#endif

#ifdef HAS_DLPACK
const struct dlpack_layout dlpack_layout = {
    .tensor = {DLPACK_TENSOR_LAYOUT(DLTensor, device.device_type,
                                    device.device_id)},
#ifdef DLPACK_MAJOR_VERSION
    .versioned = {DLPACK_VERSIONED_LAYOUT(version.major, version.minor,
                                          manager_ctx, dl_tensor)},
#endif
    .values = {kDLCPU, kDLCUDA, kDLCUDAHost, kDLROCM, kDLROCMHost,
               kDLCUDAManaged, kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex,
               sizeof(DLDataType), offsetof(DLDataType, bits),
               offsetof(DLDataType, lanes)},
};
#else
const struct dlpack_layout dlpack_layout = {.values = {0}};
#endif
