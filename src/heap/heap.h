/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap's insides.
 */
#ifndef IRIS_SRC_HEAP_HEAP_H
#define IRIS_SRC_HEAP_HEAP_H

#include "context/context.h"
#include "control/agree.h"
#include "control/rendezvous.h"

/* Allocates this rank's heap, sets up the allocator, and fills in what others
 * need to know; a descriptor in the handle is the caller's. What
 * iris_i_heap_close undoes. */
iris_status_t iris_i_heap_open(iris_t *iris, struct iris_hello *hello);

/* Maps every peer's heap and sets up the device context. */
iris_status_t iris_i_heap_connect(iris_t *iris,
                                  const struct iris_meeting *meeting);

/* Unmaps the peers' heaps, which nothing of this rank uses any more. May be
 * called again. */
void iris_i_heap_disconnect(iris_t *iris);

/* Undoes all of these, as far as they got. No peer uses this heap any more. */
void iris_i_heap_close(iris_t *iris);

/* One allocation of all ranks. `asked` is the call they compare, with bytes and
 * alignment as its first two arguments; `checked` what the caller found wrong
 * with it already. Nothing is taken, on any rank, unless all succeed. */
iris_status_t iris_i_heap_allocate(iris_t *iris, const struct iris_call *asked,
                                   iris_status_t checked, void **ptr_p);

/* Puts memory behind every piece of [offset, offset + bytes) that lacks it, or
 * behind none. On a heap that grows, one of the next three must follow.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_back(iris_t *iris, size_t offset, size_t bytes);

/* Takes that memory away again. */
void iris_i_heap_unback(iris_t *iris);

/* Or takes note that the peers will have it by another way. */
void iris_i_heap_keep(iris_t *iris);

/* Or, collectively, once all ranks have agreed that each has put it there:
 * maps it everywhere. If that fails on one rank, all take it away. */
iris_status_t iris_i_heap_settle(iris_t *iris);

/* Tells every other process of memory of this rank's, and maps theirs: what
 * iris_i_exchange() does and returns, with handles made and closed here. */
iris_status_t iris_i_heap_share(iris_t *iris, struct iris_offer *offers,
                                size_t num_offers, iris_status_t status);

/* Takes away what is mapped at a heap offset, here and for every peer. */
void iris_i_heap_unmap(iris_t *iris, size_t offset);

/* Bytes from `ptr` to the end of this rank's heap, or of the memory that
 * iris_as_symmetric() has added to it there; 0: it is in neither. */
size_t iris_i_heap_room(const iris_t *iris, const void *ptr);

/* Whether iris_as_symmetric() gave this pointer to shared memory, and its end:
 * after a meeting of all ranks about it. */
int iris_i_adopted_is_start(iris_t *iris, const void *ptr);
void iris_i_adopted_free(iris_t *iris, const void *ptr);

/* Forgets what is left; the backend unmaps it. */
void iris_i_adopted_close(iris_t *iris);

/* Copies host memory to the heap and waits for it. */
iris_status_t iris_i_heap_write(iris_t *iris, void *dst, const void *src,
                                size_t bytes);

/* Bytes that a heap has at least: the library's own, and as many again. */
size_t iris_i_heap_least(int num_ranks);

/* Where the device half of the group in `slot` lives: in this rank's heap. */
struct iris_dev_group *iris_i_heap_group(const iris_t *iris, int slot);

/* Writes <prefix>_rank_<r>_heap_bases.json, whole or not at all. */
iris_status_t iris_i_bases_write(const iris_t *iris, const char *prefix);

#endif /* IRIS_SRC_HEAP_HEAP_H */
