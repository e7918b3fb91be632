/* SPDX-License-Identifier: MIT
 *
 * The context of a rank.
 */
#ifndef IRIS_SRC_JOB_INIT_H
#define IRIS_SRC_JOB_INIT_H

#include <iris/context.h>

#include "control/bootstrap.h"

/* iris_init() for ranks that this process made: `bootstrap` identifies them. */
iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p);

#endif /* IRIS_SRC_JOB_INIT_H */
