/* SPDX-License-Identifier: MIT
 *
 * Handles for collectives of workgroups inside a kernel
 * (iris/device/wg_ccl.h):
 *
 *     iris_ccl_device_t handle;
 *     status = iris_ccl_device_create(iris, NULL, 4, 0, &handle);
 *     // pass `handle` to the kernel by value
 *     status = iris_ccl_device_destroy(iris, &handle);
 *
 * @use group; blocks
 */
#ifndef IRIS_CCL_DEVICE_H
#define IRIS_CCL_DEVICE_H

#include <iris/group.h>
#include <iris/device/wg/ccl_handle.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a handle for up to max_wgs workgroups of each member of a group (NULL:
 *  all ranks). Pass it to kernels by value. The workgroups with the same index
 *  (0 to max_wgs - 1), one of each member, run collectives together. A kernel
 *  may use fewer workgroups. Two kernels that run at the same time need
 *  different indices or two handles.
 *
 *  slot_bytes: bytes of a member's data that one step moves, rounded up to a
 *  multiple of 64; 0: 4096. More bytes take several steps. A handle takes about
 *  6 * slot_bytes * members * max_wgs bytes of the memory for workspaces
 *  (IRIS_CCL_SIZE).
 *
 *  Collective over the group, with the same numbers on all members; blocks. The
 *  caller owns the handle until iris_ccl_device_destroy(), or until the group or
 *  the context ends.
 *
 *  IRIS_ERR_INVALID      handle_p is NULL; max_wgs is less than 1, or more than
 *                        run at once on every member (iris_num_cus()): the
 *                        message says how many do
 *  IRIS_ERR_NO_MEMORY    the workspaces' memory is used up: raise IRIS_CCL_SIZE
 *  IRIS_ERR_MISMATCH     members made different calls
 *  IRIS_ERR_STATE, IRIS_ERR_CONFIG  see iris_ccl_prepare()
 *  IRIS_ERR_UNREACHABLE, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT,
 *  IRIS_ERR_DEVICE
 *  @use refused
 *  @param max_wgs  largest number of workgroups of a member, from 1
 *  @param slot_bytes  bytes that one step moves; 0: 4096
 *  @param handle_p  receives the handle */
IRIS_API iris_status_t iris_ccl_device_create(iris_t *iris, iris_group_t *group,
                                              int max_wgs, size_t slot_bytes,
                                              iris_ccl_device_t *handle_p);

/** Frees a handle's memory; no kernel may use it afterwards. Collective over its
 *  group; blocks. NULL does nothing.
 *
 *  IRIS_ERR_INVALID      not a live handle of this context
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @use apart
 *  @param handle  the handle; NULL does nothing */
IRIS_API iris_status_t iris_ccl_device_destroy(iris_t *iris,
                                               const iris_ccl_device_t *handle);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CCL_DEVICE_H */
