/* SPDX-License-Identifier: MIT
 *
 * Ranks that MPI brings together.
 */
#ifndef IRIS_SRC_CONTROL_BOOTSTRAP_MPI_H
#define IRIS_SRC_CONTROL_BOOTSTRAP_MPI_H

#include "control/bootstrap.h"

/* Whether the program has initialised MPI, or mpirun started us. */
int iris_i_bootstrap_mpi_applies(void);

/* bootstrap_p->key is rank 0's on return, and before that this rank's; empty:
 * it has none. IRIS_ERR_BOOTSTRAP, IRIS_ERR_TIMEOUT, IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_bootstrap_mpi(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p);

#endif /* IRIS_SRC_CONTROL_BOOTSTRAP_MPI_H */
