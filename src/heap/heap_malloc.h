/* SPDX-License-Identifier: MIT
 *
 * Allocating: one call of all ranks.
 */
#ifndef IRIS_SRC_HEAP_HEAP_MALLOC_H
#define IRIS_SRC_HEAP_HEAP_MALLOC_H

#include "control/exchange.h"
#include "heap/heap_parts.h"

/* One allocation by all ranks. Unless it succeeds on all of them, no rank takes
 * anything. */
iris_status_t iris_i_heap_allocate(struct iris_heap *heap,
                                   const struct iris_heap_request *request,
                                   void **ptr_p);

void iris_i_heap_stats(const struct iris_heap *heap,
                       struct iris_heap_stats *stats_p);

/* Offers memory of this rank to every other process, and maps theirs. Works and
 * returns as iris_i_exchange(); makes and closes the handles. */
iris_status_t iris_i_heap_share(struct iris_heap *heap,
                                struct iris_offer *offers, size_t num_offers,
                                iris_status_t status);

#endif /* IRIS_SRC_HEAP_HEAP_MALLOC_H */
