/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=bounds: an observer that ends CPU kernels at the first access
 * outside an allocation.
 */
#ifndef IRIS_SRC_CHECK_BOUNDS_H
#define IRIS_SRC_CHECK_BOUNDS_H

#include "base/settings.h"
#include "heap/heap_parts.h"

/* Bytes left free between two allocations while bounds are checked, besides the
 * rounding: an access past the end of one does not reach the next. The same on
 * all ranks, like the setting. */
#define IRIS_RED_ZONE_BYTES ((size_t)1024)

struct iris_bounds;

/* 0: bounds are not checked. */
size_t iris_i_bounds_red_zone(const struct iris_settings *settings);

/* Starts to watch a heap that is connected and has no allocations yet. Its
 * hooks report the allocations. The heap outlives the checker.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT */
iris_status_t iris_i_bounds_create(const struct iris_heap *heap,
                                   struct iris_bounds **bounds_p);

/* No kernel of the context is running. `bounds` may be NULL. */
void iris_i_bounds_destroy(struct iris_bounds *bounds);

#endif /* IRIS_SRC_CHECK_BOUNDS_H */
