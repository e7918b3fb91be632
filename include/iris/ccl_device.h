/* SPDX-License-Identifier: MIT
 *
 * Handles by which workgroups do collectives inside a kernel
 * (iris/device/wg_ccl.h).
 */
#ifndef IRIS_CCL_DEVICE_H
#define IRIS_CCL_DEVICE_H

#include <iris/group.h>
#include <iris/device/ccl_handle.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a handle for up to max_wgs workgroups of each member of a group (NULL:
 *  all ranks). Kernels get it by value. Workgroup `index` of each member, 0 to
 *  max_wgs - 1, meets those with the same index. A kernel may use fewer. Two
 *  kernels that run at the same time need different indices or two handles.
 *
 *  slot_bytes: bytes of a member's data that one step moves, rounded up to a
 *  multiple of 64; 0: 4096. More bytes take several steps. A handle takes about
 *  6 * slot_bytes * members * max_wgs bytes of the memory for workspaces
 *  (IRIS_CCL_SIZE).
 *
 *  Collective over the group, with the same numbers on all members; blocks. The
 *  handle is the caller's until iris_ccl_device_destroy(), or until the group or
 *  the context ends.
 *
 *  IRIS_ERR_INVALID      handle_p is NULL; max_wgs is less than 1, or more than
 *                        run at once on every member (iris_num_cus()): the
 *                        message says how many do
 *  IRIS_ERR_NO_MEMORY    the workspaces' memory is used up: raise IRIS_CCL_SIZE
 *  IRIS_ERR_MISMATCH     members made different calls
 *  IRIS_ERR_STATE, IRIS_ERR_CONFIG  see iris_ccl_prepare()
 *  IRIS_ERR_UNREACHABLE, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT,
 *  IRIS_ERR_DEVICE */
IRIS_API iris_status_t iris_ccl_device_create(iris_t *iris, iris_group_t *group,
                                              int max_wgs, size_t slot_bytes,
                                              iris_ccl_device_t *handle_p);

/** Frees what a handle has, which no kernel uses any more. Collective over its
 *  group; blocks. NULL is fine.
 *
 *  IRIS_ERR_INVALID      not a live handle of this context
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_ccl_device_destroy(iris_t *iris,
                                               const iris_ccl_device_t *handle);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CCL_DEVICE_H */
