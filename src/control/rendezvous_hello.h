/* SPDX-License-Identifier: MIT
 *
 * Rank 0's judgement of a hello.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_HELLO_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_HELLO_H

#include "control/rendezvous.h"

/* Whether a hello is one of this job and new, given rank 0's own. */
iris_status_t
iris_i_rendezvous_check_hello(const struct iris_rendezvous *rendezvous,
                              const struct iris_hello *hello);

/* Whether its rank is prepared, and for the same job as rank 0. */
iris_status_t
iris_i_rendezvous_compare(const struct iris_rendezvous *rendezvous,
                          const struct iris_hello *hello);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_HELLO_H */
