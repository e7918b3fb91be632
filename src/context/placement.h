/* SPDX-License-Identifier: MIT
 *
 * Placement: a rank's backend and device, the number of ranks that share it,
 * and whether that counts as a simulation.
 */
#ifndef IRIS_SRC_CONTEXT_PLACEMENT_H
#define IRIS_SRC_CONTEXT_PLACEMENT_H

#include "backend/backend.h"
#include "base/settings.h"
#include "control/bootstrap.h"

struct iris_placement {
    const char *name; /* the selected backend: "hip", "sim" */
    const struct iris_backend_type *type; /* the backend that actually runs */
    int simulation;      /* several ranks share a device where a real job
                          * would have one each */
    int device;          /* number in the type's survey */
    int ranks_on_device; /* 1: the rank has the device for itself */
    char no_gpu[IRIS_MESSAGE_BYTES]; /* why no GPU is used; empty: one is
                                      * used, or none was looked for */
};

/* Chooses the backend in the settings, or else the first whose probe succeeds,
 * and a device for this rank. IRIS_ERR_BACKEND lists the known backends, or
 * says why the backend cannot run, or that there are too few devices. */
iris_status_t iris_i_place(const struct iris_settings *settings,
                           const struct iris_bootstrap *bootstrap,
                           struct iris_placement *placement_p);

/* Loads the module before ranks that are threads would load it at once. A
 * module may set environment variables for its device's runtime, and other
 * threads must not be reading the environment then. */
void iris_i_place_preload(const struct iris_settings *settings);

#endif /* IRIS_SRC_CONTEXT_PLACEMENT_H */
