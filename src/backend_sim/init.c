/* SPDX-License-Identifier: MIT
 *
 * The simulation backend: its tables, and an instance's beginning and end.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "backend/backend.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static iris_status_t probe_sim(int *num_devices_p)
{
    char why[IRIS_MESSAGE_BYTES];
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(1, &fd);
    if (status == IRIS_OK) {
        close(fd);
        *num_devices_p = 1;
    }
    /* A lack of memory or descriptors says nothing about the backend. */
    if (status != IRIS_ERR_SYSTEM) {
        return status;
    }
    /* Copied, because the next message is made from it and overwrites it. */
    snprintf(why, sizeof why, "%s", iris_last_error());
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "the sim backend keeps heaps in /dev/shm, which must be "
                       "a writable tmpfs (mount -t tmpfs tmpfs /dev/shm): %s",
                       why);
}

/* The processor's name from /proc/cpuinfo, or "cpu". */
static void read_cpu_name(char *name, size_t name_bytes)
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

static iris_status_t survey_sim(struct iris_survey *survey_p)
{
    long pages = sysconf(_SC_PHYS_PAGES);

    memset(survey_p, 0, sizeof *survey_p);
    snprintf(survey_p->runtime, sizeof survey_p->runtime, "threads of the CPU");
    survey_p->num_devices = 1;
    read_cpu_name(survey_p->devices[0].name, sizeof survey_p->devices[0].name);
    survey_p->devices[0].memory_bytes =
        pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
    survey_p->devices[0].access = 1;
    survey_p->devices[0].atomics = 1;
    return IRIS_OK;
}

static const struct iris_device_ops device_ops;

static iris_status_t open_sim(const struct iris_backend_params *params,
                              struct iris_backend **backend_p)
{
    struct sim_backend *sim;

    if (params->vmem) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "IRIS_ALLOCATOR=vmem needs a GPU; on the CPU use "
                           "pool");
    }
    if (params->num_cus < 1) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "IRIS_SIM_CUS is %d; it must be at least 1",
                           params->num_cus);
    }
    sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the sim backend");
    }
    sim->base.type = &iris_i_sim_type;
    sim->base.device = &device_ops;
    sim->base.memory = &iris_i_sim_heap_ops;
    sim->base.queue = &iris_i_sim_queue_ops;
    iris_i_backend_made(&sim->base);
    pthread_mutex_init(&sim->lock, NULL);
    sim->params = *params;
    *backend_p = &sim->base;
    return IRIS_OK;
}

static void close_sim(struct iris_backend *backend)
{
    struct sim_backend *sim = (struct sim_backend *)backend;

    if (!sim->abandoned) {
        pthread_mutex_destroy(&sim->lock);
        free(sim);
    }
}

static void read_info(const struct iris_backend *backend,
                      struct iris_device_info *info_p)
{
    const struct sim_backend *sim = (const struct sim_backend *)backend;

    memset(info_p, 0, sizeof *info_p);
    read_cpu_name(info_p->name, sizeof info_p->name);
    info_p->num_cus = sim->params.num_cus;
    info_p->wavefront = 1;
    info_p->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    info_p->heaps_grow = 1;
}

static void renumber_rank(struct iris_backend *backend, int rank, int num_ranks)
{
    struct sim_backend *sim = (struct sim_backend *)backend;

    sim->params.rank = rank;
    sim->params.num_ranks = num_ranks;
}

static const struct iris_device_ops device_ops = {
    .info = read_info,
    .stream_create = iris_i_sim_stream_create,
    .stream_wrap = iris_i_no_stream_wrap,
    .stream_destroy = iris_i_sim_stream_destroy,
    .graph_destroy = iris_i_no_graph_destroy,
    .clear_fault = iris_i_sim_clear_fault,
    .renumber = renumber_rank,
    .close = close_sim,
};

const struct iris_backend_type iris_i_sim_type = {
    .name = "sim",
    .simulates = 1,
    .probe = probe_sim,
    .survey = survey_sim,
    .open = open_sim,
};
