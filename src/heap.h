/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap's insides.
 */
#ifndef IRIS_SRC_HEAP_H
#define IRIS_SRC_HEAP_H

#include "context.h"
#include "wire.h"

/* Memory is put behind the heap in pieces of this size. */
#define IRIS_BACK_BYTES ((size_t)65536)

/* Allocates this rank's heap and fills in its handle, whose descriptor is the
 * caller's. What iris_i_heap_close undoes. */
iris_status_t iris_i_heap_open(iris_t *iris, struct iris_heap_handle *handle_p);

/* Maps every peer's heap and sets up the allocator and the device context. */
iris_status_t iris_i_heap_connect(iris_t *iris,
                                  const struct iris_meeting *meeting);

/* Undoes both, as far as they got. No peer uses this heap any more. */
void iris_i_heap_close(iris_t *iris);

/* Puts memory behind every piece of [offset, offset + bytes) that lacks it.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_back(iris_t *iris, size_t offset, size_t bytes);

/* Copies host memory to the heap and waits for it. */
iris_status_t iris_i_heap_write(iris_t *iris, void *dst, const void *src,
                                size_t bytes);

/* Where the device half of the group in `slot` lives: in this rank's heap. */
struct iris_dev_group *iris_i_heap_group(const iris_t *iris, int slot);

/* Writes <prefix>_rank_<r>_heap_bases.json, whole or not at all. */
iris_status_t iris_i_bases_write(const iris_t *iris, const char *prefix);

#endif /* IRIS_SRC_HEAP_H */
