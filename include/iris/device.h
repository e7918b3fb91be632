/* SPDX-License-Identifier: MIT
 *
 * The whole device API. Kernels include this header; a C compiler compiles them
 * for the CPU, and hipcc or nvcc for a GPU. Host code includes <iris/iris.h>.
 */
#ifndef IRIS_DEVICE_H
#define IRIS_DEVICE_H

#include <iris/types.h>
#include <iris/device/core/half.h>
#include <iris/device/core/translate.h>
#include <iris/device/core/rma.h>
#include <iris/device/core/amo.h>
#include <iris/device/core/signal.h>
#include <iris/device/core/signals.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/wg/wg.h>
#include <iris/device/wg/tile.h>
#include <iris/device/wg/tile_product.h>
#include <iris/device/wg/wave.h>
#include <iris/device/wg/barrier.h>
#include <iris/device/wg/plan.h>
#include <iris/device/watch/trace.h>
#include <iris/device/core/generic.h>

#endif /* IRIS_DEVICE_H */
