/* SPDX-License-Identifier: MIT
 *
 * Placement: which backend and which of its devices a rank gets, how many ranks
 * share it, and whether that counts as simulation.
 */
#ifndef IRIS_SRC_CONTEXT_PLACEMENT_H
#define IRIS_SRC_CONTEXT_PLACEMENT_H

#include "backend/backend.h"
#include "base/settings.h"
#include "control/bootstrap.h"

struct iris_placement {
    const char *name; /* of what was selected: "hip", "sim" */
    const struct iris_backend_type *type; /* what it runs on */
    int simulation;      /* several ranks where the real thing has one */
    int device;          /* number in the type's survey */
    int ranks_on_device; /* 1: a device of its own */
    char no_gpu[IRIS_MESSAGE_BYTES]; /* why no GPU is used; empty: one is, or
                                      * nobody looked for one */
};

/* The backend that the settings name, or else the first whose probe says yes,
 * and a device for this rank. IRIS_ERR_BACKEND says what is known or why it
 * cannot run, or that there are too few devices. */
iris_status_t iris_i_place(const struct iris_settings *settings,
                           const struct iris_bootstrap *bootstrap,
                           struct iris_placement *placement_p);

/* Loads now what ranks that are threads would load at once: a module may set
 * environment variables for its device's runtime, which other threads must not
 * be reading then. */
void iris_i_place_preload(const struct iris_settings *settings);

#endif /* IRIS_SRC_CONTEXT_PLACEMENT_H */
