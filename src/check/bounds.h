/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=bounds: an observer that ends CPU kernels at the first access
 * outside of what is allocated.
 */
#ifndef IRIS_SRC_CHECK_BOUNDS_H
#define IRIS_SRC_CHECK_BOUNDS_H

#include "base/settings.h"
#include "heap/heap_parts.h"

/* Between two allocations while bounds are checked, beside what rounding
 * leaves: an access that runs past one does not reach the next. The same on all
 * ranks, like the setting. */
#define IRIS_RED_ZONE_BYTES ((size_t)1024)

struct iris_bounds;

/* 0: bounds are not to be checked. */
size_t iris_i_bounds_red_zone(const struct iris_settings *settings);

/* Begins to watch a heap that is connected and has no allocations yet, through
 * its hooks, from whose events it learns of allocations. The heap outlives the
 * checker. IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT */
iris_status_t iris_i_bounds_create(const struct iris_heap *heap,
                                   struct iris_bounds **bounds_p);

/* No kernel of the context runs. NULL is fine. */
void iris_i_bounds_destroy(struct iris_bounds *bounds);

#endif /* IRIS_SRC_CHECK_BOUNDS_H */
