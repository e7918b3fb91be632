/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/job: makes ranks; it connects `context` with
 * `trace`.
 */
#ifndef IRIS_SRC_JOB_INTERNAL_H
#define IRIS_SRC_JOB_INTERNAL_H

#include <iris/context.h>

#include "control/control.h"

/* ---- spawn.c ---- */

/* iris_init() for ranks that this process made: `bootstrap` identifies them. */
iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p);

#endif /* IRIS_SRC_JOB_INTERNAL_H */
