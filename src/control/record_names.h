/* SPDX-License-Identifier: MIT
 *
 * The kernels of a rank that may be running, from its own record.
 */
#ifndef IRIS_SRC_CONTROL_RECORD_NAMES_H
#define IRIS_SRC_CONTROL_RECORD_NAMES_H

#include "control/flight_record.h"

/* The names of kernels that may be running: those launched after the rank's
 * last synchronize of their streams. Text such as "step or iris_k_wait" */
void iris_i_record_launched_names(const struct iris_record *record,
                                  char names[IRIS_RECORD_NAME]);

#endif /* IRIS_SRC_CONTROL_RECORD_NAMES_H */
