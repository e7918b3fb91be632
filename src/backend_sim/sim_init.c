/* SPDX-License-Identifier: MIT
 *
 * The simulation backend's vtable, and opening an instance.
 */
#include "config.h"

#include "backend_sim/sim.h"

#include "base/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static iris_status_t sim_probe(void)
{
    char why[IRIS_MESSAGE_BYTES];
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(1, &fd);
    if (status == IRIS_OK) {
        close(fd);
    }
    /* Want of room or descriptors says nothing about the backend. */
    if (status != IRIS_ERR_SYSTEM) {
        return status;
    }
    /* Copied: the message is about to be overwritten by one made from it. */
    snprintf(why, sizeof why, "%s", iris_last_error());
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "the sim backend keeps heaps in /dev/shm, which must be "
                       "a writable tmpfs (mount -t tmpfs tmpfs /dev/shm): %s",
                       why);
}

static iris_status_t sim_open(const struct iris_backend_params *params,
                              struct iris_backend **backend_p)
{
    const char *device = params->sim_device;
    struct sim_backend *sim;

    if (strcmp(device, "gpu") == 0 && params->gpu == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                           "simulation on a GPU (IRIS_SIM_DEVICE=gpu): %.600s, "
                           "or IRIS_SIM_DEVICE=cpu",
                           params->gpu_reason);
    }
    if (strcmp(device, "cpu") != 0 && params->gpu != NULL) {
        struct iris_backend_params shared = *params;

        shared.share_device = 1;
        return params->gpu->open(&shared, backend_p);
    }
    if (strcmp(params->allocator, "vmem") == 0) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "IRIS_ALLOCATOR=vmem needs a GPU; on the CPU use "
                           "pool");
    }
    if (params->sim_cus < 1 || params->sim_cus > INT32_MAX) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "IRIS_SIM_CUS is %lld; it must be at least 1",
                           (long long)params->sim_cus);
    }
    sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the sim backend");
    }
    sim->base.ops = &iris_i_sim_ops;
    sim->params = *params;
    *backend_p = &sim->base;
    return IRIS_OK;
}

static void sim_close(struct iris_backend *backend)
{
    free((struct sim_backend *)backend);
}

/* The processor's name as /proc/cpuinfo has it, else "cpu". */
static void cpu_name(char *name, size_t name_bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(name, name_bytes, "cpu");
    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        char *value = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            value += 1 + strspn(value + 1, " \t");
            snprintf(name, name_bytes, "%.*s", (int)strcspn(value, "\n"),
                     value);
            break;
        }
    }
    fclose(file);
}

static void sim_device_info(const struct iris_backend *backend,
                            struct iris_device_info *info_p)
{
    const struct sim_backend *sim = (const struct sim_backend *)backend;

    cpu_name(info_p->name, sizeof info_p->name);
    info_p->device_id = 0;
    info_p->num_cus = (int)sim->params.sim_cus;
    info_p->wavefront = 1;
    info_p->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
}

const struct iris_backend_ops iris_i_sim_ops = {
    .name = "sim",
    .simulation = 1,
    .probe = sim_probe,
    .open = sim_open,
    .close = sim_close,
    .heap_alloc = iris_i_sim_heap_alloc,
    .heap_free = iris_i_sim_heap_free,
    .heap_back = iris_i_sim_heap_back,
    .heap_export = iris_i_sim_heap_export,
    .heap_import = iris_i_sim_heap_import,
    .heap_unimport = iris_i_sim_heap_unimport,
    .stream_create = iris_i_sim_stream_create,
    .stream_destroy = iris_i_sim_stream_destroy,
    .stream_synchronize = iris_i_sim_stream_synchronize,
    .copy = iris_i_sim_copy,
    .set = iris_i_sim_set,
    .launch = iris_i_sim_launch,
    .device_info = sim_device_info,
};
