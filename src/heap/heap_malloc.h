/* SPDX-License-Identifier: MIT
 *
 * Allocating: one call of all ranks.
 */
#ifndef IRIS_SRC_HEAP_HEAP_MALLOC_H
#define IRIS_SRC_HEAP_HEAP_MALLOC_H

#include "control/exchange.h"
#include "heap/heap_parts.h"

/* One allocation of all ranks. Nothing is taken, on any rank, unless all
 * succeed. */
iris_status_t iris_i_heap_allocate(struct iris_heap *heap,
                                   const struct iris_heap_request *request,
                                   void **ptr_p);

void iris_i_heap_stats(const struct iris_heap *heap,
                       struct iris_heap_stats *stats_p);

/* Offers every other process memory of this rank's, and maps theirs: what
 * iris_i_exchange() does and returns, with handles made and closed here. */
iris_status_t iris_i_heap_share(struct iris_heap *heap,
                                struct iris_offer *offers, size_t num_offers,
                                iris_status_t status);

#endif /* IRIS_SRC_HEAP_HEAP_MALLOC_H */
