/* SPDX-License-Identifier: MIT
 *
 * The backends of this build by name; loads those that are modules.
 */
#ifndef IRIS_SRC_BACKEND_REGISTRY_H
#define IRIS_SRC_BACKEND_REGISTRY_H

#include "backend/backend.h"

/* Registered at build time (registry.c lists them). */
extern const struct iris_backend_type iris_i_sim_type;

/* Name of the `i`th backend of this build, in order of preference; NULL after
 * the last. *type_p is NULL if it is a module that cannot be loaded here; this
 * thread's message says why. `module_dir` is the folder of modules; NULL or
 * empty: the installation's. */
const char *iris_i_registry_at(size_t i, const char *module_dir,
                               const struct iris_backend_type **type_p);

/* The backend of that name, in upper or lower case. IRIS_ERR_BACKEND lists the
 * available ones, or says why this one cannot be used. */
iris_status_t iris_i_registry_find(const char *name, const char *module_dir,
                                   const struct iris_backend_type **type_p);

/* Adds a backend after the others; it lives as long as the process. Not while
 * another thread uses the registry. IRIS_ERR_LIMIT */
iris_status_t iris_i_registry_add(const struct iris_backend_type *type);

#endif /* IRIS_SRC_BACKEND_REGISTRY_H */
