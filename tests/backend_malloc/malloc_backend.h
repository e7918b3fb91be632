/* SPDX-License-Identifier: MIT
 *
 * A backend over malloc(), for rank threads of one process: the example that
 * docs/backends.md walks through.
 */
#ifndef IRIS_TESTS_MALLOC_BACKEND_H
#define IRIS_TESTS_MALLOC_BACKEND_H

#include "backend/backend.h"

extern const struct iris_backend_type malloc_backend_type;

#endif /* IRIS_TESTS_MALLOC_BACKEND_H */
