/* SPDX-License-Identifier: MIT
 *
 * Simulated heaps.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_HEAP_H
#define IRIS_SRC_BACKEND_SIM_SIM_HEAP_H

#include "backend_sim/sim.h"

IRIS_SLOT(iris_i_sim_heap_alloc, memory, alloc);
IRIS_SLOT(iris_i_sim_heap_free, memory, free);
IRIS_SLOT(iris_i_sim_heap_export, memory, export_heap);
IRIS_SLOT(iris_i_sim_heap_import, memory, import_heap);
IRIS_SLOT(iris_i_sim_heap_unimport, memory, unimport_heap);
IRIS_SLOT(iris_i_sim_commit, memory, commit);
IRIS_SLOT(iris_i_sim_decommit, memory, decommit);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_HEAP_H */
