/* SPDX-License-Identifier: MIT
 *
 * The whole host API. Kernels include <iris/device.h>. Each header below begins
 * with a sample of its use.
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
#include <iris/spawn.h>
#include <iris/trace.h>
#include <iris/log.h>

#endif /* IRIS_IRIS_H */
