/* SPDX-License-Identifier: MIT
 *
 * Which kernels of a rank may be running, by its own record.
 */
#ifndef IRIS_SRC_CONTROL_RECORD_NAMES_H
#define IRIS_SRC_CONTROL_RECORD_NAMES_H

#include "control/flight_record.h"

/* The names of kernels that may run: launched behind what the rank has
 * synchronized last with their streams. "step or iris_k_wait" */
void iris_i_record_launched_names(const struct iris_record *record,
                                  char names[IRIS_RECORD_NAME]);

#endif /* IRIS_SRC_CONTROL_RECORD_NAMES_H */
