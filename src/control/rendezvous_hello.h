/* SPDX-License-Identifier: MIT
 *
 * Rank 0's check of a hello.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_HELLO_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_HELLO_H

#include "control/rendezvous.h"

/* Whether a hello belongs to this job and is the first of its rank, compared
 * with rank 0's own. */
iris_status_t
iris_i_rendezvous_check_hello(const struct iris_rendezvous *rendezvous,
                              const struct iris_hello *hello);

/* Whether its rank is prepared, with the same settings as rank 0. */
iris_status_t
iris_i_rendezvous_compare(const struct iris_rendezvous *rendezvous,
                          const struct iris_hello *hello);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_HELLO_H */
