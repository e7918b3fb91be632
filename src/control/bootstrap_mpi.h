/* SPDX-License-Identifier: MIT
 *
 * Bootstrap by MPI.
 */
#ifndef IRIS_SRC_CONTROL_BOOTSTRAP_MPI_H
#define IRIS_SRC_CONTROL_BOOTSTRAP_MPI_H

#include "control/bootstrap.h"

/* Whether the program has initialised MPI, or mpirun started us. */
int iris_i_bootstrap_mpi_applies(void);

/* All ranks get rank 0's random secret. IRIS_ERR_BOOTSTRAP, IRIS_ERR_TIMEOUT,
 * IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_bootstrap_mpi(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p);

/* Call these around every call of MPI after bootstrap, from any thread. */
void iris_i_mpi_enter(void);
void iris_i_mpi_leave(void);

/* Whether MPI can be called: it is initialised, and not finalized. */
int iris_i_mpi_is_up(void);

/* Whether the library's threads may call MPI, and the job's ranks are those of
 * MPI_COMM_WORLD. IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_mpi_check_calls(int rank, int num_ranks);

#endif /* IRIS_SRC_CONTROL_BOOTSTRAP_MPI_H */
