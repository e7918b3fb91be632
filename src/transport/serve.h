/* SPDX-License-Identifier: MIT
 *
 * Executes requests of other nodes' ranks on this rank's heap.
 */
#ifndef IRIS_SRC_TRANSPORT_SERVE_H
#define IRIS_SRC_TRANSPORT_SERVE_H

#include "heap/heap_parts.h"
#include "transport/far_message.h"

/* Executes a request, with a put's data; never trusts it. Makes the answer and
 * its data, which stays in place. The caller sends the answer if *answer_p says
 * so (`answers`). Only one thread may be in such a call. */
void iris_i_serve(struct iris_heap *heap,
                  const struct iris_far_message *request, const void *data,
                  struct iris_far_message *answer_p, const void **data_p);

#endif /* IRIS_SRC_TRANSPORT_SERVE_H */
