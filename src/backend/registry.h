/* SPDX-License-Identifier: MIT
 *
 * The backends of this build by name, loading those that are modules.
 */
#ifndef IRIS_SRC_BACKEND_REGISTRY_H
#define IRIS_SRC_BACKEND_REGISTRY_H

#include "backend/backend.h"

/* Registered by the build (registry.c lists them). */
extern const struct iris_backend_type iris_i_sim_type;

/* Name of the `i`th backend of this build, best first; NULL after the last.
 * *type_p is NULL if it is a module that cannot be loaded here; this thread's
 * message says why. `module_dir`: where modules are; NULL
 * or empty: where make install puts them. */
const char *iris_i_registry_at(size_t i, const char *module_dir,
                               const struct iris_backend_type **type_p);

/* The backend of that name, in any case. IRIS_ERR_BACKEND says which there are,
 * or why this one cannot be had. */
iris_status_t iris_i_registry_find(const char *name, const char *module_dir,
                                   const struct iris_backend_type **type_p);

/* Adds a backend behind the others; it lives as long as the process. Not while
 * another thread uses the registry. IRIS_ERR_LIMIT */
iris_status_t iris_i_registry_add(const struct iris_backend_type *type);

#endif /* IRIS_SRC_BACKEND_REGISTRY_H */
