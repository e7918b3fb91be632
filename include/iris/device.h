/* SPDX-License-Identifier: MIT
 *
 * The whole device API. Kernels include this header; a C compiler compiles them
 * for the CPU, and hipcc or nvcc for a GPU. Host code includes <iris/iris.h>.
 */
#ifndef IRIS_DEVICE_H
#define IRIS_DEVICE_H

#include <iris/types.h>
#include <iris/device/half.h>
#include <iris/device/translate.h>
#include <iris/device/rma.h>
#include <iris/device/amo.h>
#include <iris/device/signal.h>
#include <iris/device/signals.h>
#include <iris/device/kernel.h>
#include <iris/device/wg.h>
#include <iris/device/tile.h>
#include <iris/device/tile_product.h>
#include <iris/device/wave.h>
#include <iris/device/barrier.h>
#include <iris/device/trace.h>
#include <iris/device/generic.h>

#endif /* IRIS_DEVICE_H */
