/* SPDX-License-Identifier: MIT
 *
 * An MPI window over every rank's heap, into which blocks are put without the
 * target's help.
 */
#ifndef IRIS_SRC_TRANSPORT_MPI_WINDOW_H
#define IRIS_SRC_TRANSPORT_MPI_WINDOW_H

#include "heap/heap_parts.h"

#if HAVE_MPI

#include <mpi.h>

struct iris_mpi_window;

/* Opens the window on all ranks of `comm`, or, where a test finds that blocks do
 * not arrive, on none: NULL. Collective. */
struct iris_mpi_window *iris_i_mpi_window_open(struct iris_heap *heap,
                                               MPI_Comm comm);

/* Puts a copy of a block, which need not arrive before the next flush. 0: it has
 * to go by a message, because it is small, or not in what this rank's heap has
 * committed. */
int iris_i_mpi_window_put(struct iris_mpi_window *window, int rank,
                          uint64_t offset, const void *data, size_t bytes);

/* Waits until all blocks have arrived at the rank. 0: MPI has failed. */
int iris_i_mpi_window_flush(struct iris_mpi_window *window, int rank);

/* Blocks that arrived before a message are seen by what follows. */
void iris_i_mpi_window_see(struct iris_mpi_window *window);

/* Collective. NULL is fine. */
void iris_i_mpi_window_close(struct iris_mpi_window *window);

#endif

#endif /* IRIS_SRC_TRANSPORT_MPI_WINDOW_H */
