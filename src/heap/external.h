/* SPDX-License-Identifier: MIT
 *
 * External memory, the program's own, on the symmetric heap.
 */
#ifndef IRIS_SRC_HEAP_EXTERNAL_H
#define IRIS_SRC_HEAP_EXTERNAL_H

#include "heap/heap_parts.h"

/* The memory of a program, made symmetric by all ranks: shared where that can
 * be, else copied; *shared_p says which. `request` as for an allocation. */
iris_status_t iris_i_external_share(struct iris_heap *heap,
                                    const struct iris_heap_request *request,
                                    const void *ptr, void **symmetric_p,
                                    int *shared_p);

#endif /* IRIS_SRC_HEAP_EXTERNAL_H */
