/* SPDX-License-Identifier: MIT
 *
 * An MPI window over every rank's heap. Blocks are put into it without the
 * target's help.
 */
#ifndef IRIS_SRC_TRANSPORT_MPI_WINDOW_H
#define IRIS_SRC_TRANSPORT_MPI_WINDOW_H

#include "heap/heap_parts.h"

#if HAVE_MPI

#include <mpi.h>

struct iris_mpi_window;

/* Opens the window on all ranks of `comm`. If a test shows that blocks do not
 * arrive, opens it on no rank and returns NULL. Collective. */
struct iris_mpi_window *iris_i_mpi_window_open(struct iris_heap *heap,
                                               MPI_Comm comm);

/* Puts a copy of a block. It may arrive as late as the next flush. 0: the block
 * has to go by a message, because it is small, or is not in the committed
 * memory of this rank's heap. */
int iris_i_mpi_window_put(struct iris_mpi_window *window, int rank,
                          uint64_t offset, const void *data, size_t bytes);

/* Waits until all blocks have arrived at the rank. 0: MPI has failed. */
int iris_i_mpi_window_flush(struct iris_mpi_window *window, int rank);

/* Makes blocks that arrived before a message visible to later reads. */
void iris_i_mpi_window_see(struct iris_mpi_window *window);

/* Collective. `window` may be NULL. */
void iris_i_mpi_window_close(struct iris_mpi_window *window);

#endif

#endif /* IRIS_SRC_TRANSPORT_MPI_WINDOW_H */
