/* SPDX-License-Identifier: MIT
 *
 * The whole host API. Kernels include <iris/device.h>. Each header below begins
 * with a sample of its use.
 *
 * The marks below hold for all headers, unless a header, a section or a call has its
 * own (scripts/reference).
 *
 * @use all nodes; CPU and GPU
 * @param iris  the context of this rank, from iris_init() or iris_spawn()
 * @param config  the settings; NULL: all from the environment
 * @param size  sizeof the struct in the program
 * @param stream  a stream of this context; NULL: its default stream
 * @param group  a group of this context; NULL: all ranks
 * @param options  the options; NULL: the defaults
 * @param dtype  type of the elements, such as IRIS_DTYPE_F32
 * @param op  operation of the reduction, such as IRIS_REDUCE_SUM
 * @param bytes  number of bytes
 * @param count  number of elements
 * @param rank, to_rank, from_rank  rank in the job, 0 to iris_num_ranks() - 1
 * @param root  index of the root in the group, from 0
 * @param ptr  address in this rank's heap
 * @param ptr_p  receives the address of the memory
 * @param signal  8 aligned bytes, symmetric: at the same offset of each heap
 * @param cmp  comparison of the word in memory with `value`, such as
 *    IRIS_CMP_GE
 * @param tensor  the tensor, which the call does not change
 * @param tensor_p  receives the new tensor
 * @param view_p  receives the view; may be the tensor itself
 * @param shape  sizes of the dimensions, from IRIS_SHAPE()
 * @param symmetric_p  receives the symmetric memory or tensor on the heap
 * @param shared_p  receives 1 if memory is shared, 0 if copied; may be NULL
 * @param wg  the workgroup, which IRIS_KERNEL() passes to the body
 * @param dev  the job as a lane sees it, from iris_dev_init()
 * @param mask  false: the call touches no memory
 * @param sem  memory order, such as IRIS_RELEASE
 * @param scope  lanes that see the order; IRIS_SCOPE_SYSTEM reaches other ranks
 * @param tile  view of the tile, from iris_tile()
 * @param event  id of the event, 1024 to 4095
 * @param handle  the handle, from iris_ccl_device_create()
 * @param workspace  the workspace; NULL does nothing
 * @param workspace_p  receives the workspace
 * @param graph  a graph from iris_capture_end()
 */
#ifndef IRIS_IRIS_H
#define IRIS_IRIS_H

#include <iris/status.h>
#include <iris/types.h>
#include <iris/constants.h>
#include <iris/context.h>
#include <iris/heap.h>
#include <iris/graph.h>
#include <iris/group.h>
#include <iris/stream.h>
#include <iris/launch.h>
#include <iris/sync.h>
#include <iris/tensor.h>
#include <iris/random.h>
#include <iris/dlpack.h>
#include <iris/ccl.h>
#include <iris/ccl_device.h>
#include <iris/ops.h>
#include <iris/plan.h>
#include <iris/spawn.h>
#include <iris/trace.h>
#include <iris/log.h>

#endif /* IRIS_IRIS_H */
