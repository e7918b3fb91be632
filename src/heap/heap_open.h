/* SPDX-License-Identifier: MIT
 *
 * The heap's making and unmaking: this rank's memory, its records, and every
 * peer's mapping.
 */
#ifndef IRIS_SRC_HEAP_HEAP_OPEN_H
#define IRIS_SRC_HEAP_HEAP_OPEN_H

#include "heap/heap_parts.h"

/* What a heap is made of. */
struct iris_heap_params {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_stream *stream; /* for the heap's own copies and fills */
    struct iris_hooks *hooks;   /* NULL: nobody watches */
    size_t bytes;
    size_t reserved_bytes; /* the library's own, at offset 0 */
    size_t red_zone_bytes; /* left free behind each allocation */
};

/* Allocates this rank's heap and sets up the allocator, with memory committed
 * to what is the library's own. The caller closes the heap, also if this fails.
 */
iris_status_t iris_i_heap_open(struct iris_heap *heap,
                               const struct iris_heap_params *params);

/* Names the heap to the others; a descriptor in the handle is the caller's. */
iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p);

/* Maps every peer's heap from its handle, and looks whether it is the peer's:
 * at `id_offset` each has a word of its own. One that cannot be mapped
 * (IRIS_ERR_UNREACHABLE, or it is on another node) has base 0; with
 * `require_all` that fails. IRIS_ERR_SYSTEM (other memory was mapped) */
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

/* Collective, when all ranks have connected: whom a rank does not reach does
 * not reach it either, so that no barrier waits for what cannot come.
 * *changed_p: some peer has base 0 now. */
iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap,
                                         int *changed_p);

/* Unmaps the peers' heaps, which nothing of this rank uses any more. May be
 * called again. */
void iris_i_heap_disconnect(struct iris_heap *heap);

/* Undoes all of these, as far as they got, if any was called. No peer uses this
 * heap any more. */
void iris_i_heap_close(struct iris_heap *heap);

#endif /* IRIS_SRC_HEAP_HEAP_OPEN_H */
