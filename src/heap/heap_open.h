/* SPDX-License-Identifier: MIT
 *
 * Opens and closes the heap: this rank's memory, its records, and the mappings
 * of the peers.
 */
#ifndef IRIS_SRC_HEAP_HEAP_OPEN_H
#define IRIS_SRC_HEAP_HEAP_OPEN_H

#include "heap/heap_parts.h"

/* The parameters of a heap. */
struct iris_heap_params {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_stream *stream; /* for the heap's own copies and fills */
    struct iris_hooks *hooks;   /* NULL: no observers */
    size_t bytes;
    size_t reserved_bytes; /* the library's own bytes, at offset 0 */
    size_t red_zone_bytes; /* bytes left free behind each allocation */
};

/* Allocates this rank's heap, sets up the allocator, and commits the library's
 * own memory. The caller closes the heap even if this fails. */
iris_status_t iris_i_heap_open(struct iris_heap *heap,
                               const struct iris_heap_params *params);

/* Makes a handle of the heap for the peers. The caller closes a descriptor in
 * the handle. */
iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p);

/* Maps every peer's heap from its handle, and checks that it is the peer's:
 * each heap has a unique word at `id_offset`. A heap that cannot be mapped
 * (IRIS_ERR_UNREACHABLE, or on another node) gets base 0; with `require_all`
 * this fails. IRIS_ERR_SYSTEM (other memory was mapped) */
struct iris_heap_peers {
    const struct iris_heap_handle *(*handle)(void *arg, int rank);
    uint64_t (*id)(void *arg, int rank);
    int (*same_node)(void *arg, int rank, int other);
    void *arg;
    size_t id_offset;
    int require_all;
};
iris_status_t iris_i_heap_connect(struct iris_heap *heap,
                                  struct iris_members *world,
                                  const struct iris_heap_peers *peers);

/* Collective, after all ranks have connected. If one rank does not reach
 * another, the other no longer reaches it either, so that no barrier waits in
 * vain. *changed_p: another peer has base 0 now. */
iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap,
                                         int *changed_p);

/* Unmaps the peers' heaps, which this rank no longer uses. May be called
 * again. */
void iris_i_heap_disconnect(struct iris_heap *heap);

/* Undoes the functions above, as far as they succeeded. No peer uses this heap
 * any more. */
void iris_i_heap_close(struct iris_heap *heap);

#endif /* IRIS_SRC_HEAP_HEAP_OPEN_H */
