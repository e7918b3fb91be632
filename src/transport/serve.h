/* SPDX-License-Identifier: MIT
 *
 * What a proxy does on its own rank's heap for ranks of other nodes.
 */
#ifndef IRIS_SRC_TRANSPORT_SERVE_H
#define IRIS_SRC_TRANSPORT_SERVE_H

#include "heap/heap_parts.h"
#include "transport/far_message.h"

/* Does what a request asks, with a put's data; never trusts it. Makes the
 * answer, and the data that goes with it, which stays where it is. The caller
 * sends that if *answer_p says so (`answers`). Nobody else may be in such a
 * call. */
void iris_i_serve(struct iris_heap *heap,
                  const struct iris_far_message *request, const void *data,
                  struct iris_far_message *answer_p, const void **data_p);

#endif /* IRIS_SRC_TRANSPORT_SERVE_H */
