/* SPDX-License-Identifier: MIT
 *
 * Placement: chooses a rank's backend and device, and whether that is a
 * simulation.
 */
#include "config.h"

#include "context/context.h"

#include "backend/backend.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static iris_status_t probe(const struct iris_backend_type *type,
                           int *num_devices_p)
{
    return type == NULL ? IRIS_ERR_BACKEND : type->probe(num_devices_p);
}

/* The backend in the settings, or the first that can run. */
static iris_status_t select_backend(const struct iris_settings *settings,
                                    const struct iris_backend_type **type_p,
                                    int *num_devices_p)
{
    const char *wanted = settings->backend.text;
    const char *module_dir = settings->module_dir.text;
    const struct iris_backend_type *type = NULL;
    iris_status_t status = IRIS_ERR_BACKEND;

    if (wanted[0] != '\0') {
        status = iris_i_registry_find(wanted, module_dir, &type);
        status = status == IRIS_OK ? probe(type, num_devices_p) : status;
    }
    for (size_t i = 0; wanted[0] == '\0' && status != IRIS_OK &&
                       iris_i_registry_at(i, module_dir, &type) != NULL;
         i++) {
        status = probe(type, num_devices_p);
    }
    if (status == IRIS_OK) {
        *type_p = type;
    }
    return status;
}

/* The first GPU backend that can run, or NULL with this thread's message saying
 * why no backend can run. */
static const struct iris_backend_type *
find_gpu(const struct iris_settings *settings)
{
    const struct iris_backend_type *type;
    int known = 0, num_devices;

    for (size_t i = 0;
         iris_i_registry_at(i, settings->module_dir.text, &type) != NULL; i++) {
        if (type != NULL && !type->is_gpu) {
            continue;
        }
        known = 1;
        if (probe(type, &num_devices) == IRIS_OK) {
            return type;
        }
    }
    if (!known) {
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "this build has no backend for GPUs; configure with "
                    "--with-backend=hip");
    }
    return NULL;
}

/* A simulation shares a real device if there is one and the settings allow
 * it. */
static iris_status_t place_simulation(const struct iris_settings *settings,
                                      int num_ranks,
                                      struct iris_placement *placement)
{
    const struct iris_backend_type *gpu = NULL;

    placement->simulation = 1;
    /* Looking for GPUs takes time, so only if it is needed. */
    if (settings->sim_device.number == IRIS_CHOICE_SIM_DEVICE_CPU) {
        return IRIS_OK;
    }
    gpu = find_gpu(settings);
    if (gpu != NULL) {
        placement->type = gpu;
        placement->ranks_on_device = num_ranks;
        return IRIS_OK;
    }
    snprintf(placement->no_gpu, sizeof placement->no_gpu, "%s",
             iris_last_error());
    if (settings->sim_device.number != IRIS_CHOICE_SIM_DEVICE_GPU) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "simulation on a GPU (IRIS_SIM_DEVICE=gpu): %.600s, or "
                       "IRIS_SIM_DEVICE=cpu",
                       placement->no_gpu);
}

/* One device for each rank. A launcher may show each rank only its own device,
 * which then has number 0 for each. The import of heaps detects two ranks that
 * share one. */
static iris_status_t choose_device(const struct iris_bootstrap *bootstrap,
                                   int num_devices,
                                   struct iris_placement *placement)
{
    placement->device = num_devices == 1 ? 0 : bootstrap->local_rank;
    if (placement->device < num_devices) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "rank %d of %d has no GPU for itself: this node shows "
                       "%d; start fewer ranks, or let them share one GPU with "
                       "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                       bootstrap->rank, bootstrap->num_ranks, num_devices);
}

iris_status_t iris_i_place(const struct iris_settings *settings,
                           const struct iris_bootstrap *bootstrap,
                           struct iris_placement *placement_p)
{
    struct iris_placement placement = {.ranks_on_device = 1};
    int num_devices = 0;
    iris_status_t status =
        select_backend(settings, &placement.type, &num_devices);

    if (status != IRIS_OK) {
        return status;
    }
    placement.name = placement.type->name;
    if (placement.type->simulates) {
        status = place_simulation(settings, bootstrap->num_ranks, &placement);
    } else if (placement.type->is_gpu) {
        status = choose_device(bootstrap, num_devices, &placement);
    } else {
        placement.simulation = 1;
    }
    if (status == IRIS_OK) {
        *placement_p = placement;
    }
    return status;
}

void iris_i_place_preload(const struct iris_settings *settings)
{
    const struct iris_backend_type *type;

    if (strcasecmp(settings->backend.text, "sim") == 0 &&
        settings->sim_device.number == IRIS_CHOICE_SIM_DEVICE_CPU) {
        return;
    }
    for (size_t i = 0;
         iris_i_registry_at(i, settings->module_dir.text, &type) != NULL; i++) {
    }
}
