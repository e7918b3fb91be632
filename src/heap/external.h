/* SPDX-License-Identifier: MIT
 *
 * External memory, owned by the program, on the symmetric heap.
 */
#ifndef IRIS_SRC_HEAP_EXTERNAL_H
#define IRIS_SRC_HEAP_EXTERNAL_H

#include "heap/heap_parts.h"

/* Makes memory of the program symmetric, on all ranks: shared if possible, else
 * copied; *shared_p says which. `request` is the same as for an allocation. */
iris_status_t iris_i_external_share(struct iris_heap *heap,
                                    const struct iris_heap_request *request,
                                    const void *ptr, void **symmetric_p,
                                    int *shared_p);

#endif /* IRIS_SRC_HEAP_EXTERNAL_H */
