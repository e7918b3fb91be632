/* SPDX-License-Identifier: MIT
 *
 * IRIS_TRACE: a trace of any program.
 */
#ifndef IRIS_SRC_TRACE_AUTOMATIC_H
#define IRIS_SRC_TRACE_AUTOMATIC_H

#include "context/context_type.h"

extern const struct iris_life_ops iris_i_life_ops;

#endif /* IRIS_SRC_TRACE_AUTOMATIC_H */
