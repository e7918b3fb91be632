/* SPDX-License-Identifier: MIT
 *
 * The contract of backends as tests: what is asked of each.
 */
#ifndef IRIS_TESTS_CONTRACT_H
#define IRIS_TESTS_CONTRACT_H

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "backend/calls.h"
#endif

/* Bytes of a heap, and a part of it. */
#define CONTRACT_BYTES ((size_t)1 << 20)
#define CONTRACT_PIECE 65536

/* Runs the tests on the backend of that name; NULL: on each that this build has
 * and that runs here. How many failed. */
int contract_run(const char *name);

/* Runs `body` on an open backend of each kind that is wanted and runs here. */
void contract_walk(void (*body)(struct iris_backend *));

/* Makes and commits a heap of CONTRACT_BYTES. */
void contract_heap_make(struct iris_backend *backend,
                        struct iris_heap_region *region_p);

/* Waits for a stream, after which it has nothing to do. */
void contract_finish(struct iris_stream *stream);

/* ---- contract_memory.c ---- */

void a_heap_can_be_named_and_mapped_again(void **state);
void rows_are_copied_from_pitch_to_pitch(void **state);
void failures_leave_outputs_alone(void **state);

#endif /* IRIS_TESTS_CONTRACT_H */
