/* SPDX-License-Identifier: MIT
 *
 * The simulation backend's tables, and opening an instance.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "backend/backend.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static iris_status_t sim_probe(int *num_devices_p)
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

static iris_status_t sim_survey(struct iris_survey *survey_p)
{
    long pages = sysconf(_SC_PHYS_PAGES);

    memset(survey_p, 0, sizeof *survey_p);
    snprintf(survey_p->runtime, sizeof survey_p->runtime, "threads of the CPU");
    survey_p->num_devices = 1;
    cpu_name(survey_p->devices[0].name, sizeof survey_p->devices[0].name);
    survey_p->devices[0].memory_bytes =
        pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
    survey_p->devices[0].access = 1;
    survey_p->devices[0].atomics = 1;
    return IRIS_OK;
}

static const struct iris_device_ops device_ops;
static const struct iris_queue_ops queue_ops;

static iris_status_t sim_open(const struct iris_backend_params *params,
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
    sim->base.queue = &queue_ops;
    iris_i_backend_made(&sim->base);
    pthread_mutex_init(&sim->lock, NULL);
    sim->params = *params;
    *backend_p = &sim->base;
    return IRIS_OK;
}

static void sim_close(struct iris_backend *backend)
{
    struct sim_backend *sim = (struct sim_backend *)backend;

    if (!sim->abandoned) {
        pthread_mutex_destroy(&sim->lock);
        free(sim);
    }
}

static void sim_info(const struct iris_backend *backend,
                     struct iris_device_info *info_p)
{
    const struct sim_backend *sim = (const struct sim_backend *)backend;

    memset(info_p, 0, sizeof *info_p);
    cpu_name(info_p->name, sizeof info_p->name);
    info_p->num_cus = sim->params.num_cus;
    info_p->wavefront = 1;
    info_p->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
}

static const struct iris_device_ops device_ops = {
    .info = sim_info,
    .stream_create = iris_i_sim_stream_create,
    .stream_wrap = iris_i_no_stream_wrap,
    .stream_destroy = iris_i_sim_stream_destroy,
    .graph_destroy = iris_i_no_graph_destroy,
    .clear_fault = iris_i_sim_clear_fault,
    .close = sim_close,
};

static const struct iris_queue_ops queue_ops = {
    .synchronize = iris_i_sim_synchronize,
    .query = iris_i_sim_query,
    .copy = iris_i_sim_copy,
    .copy_rows = iris_i_sim_copy_rows,
    .set = iris_i_sim_set,
    .launch = iris_i_sim_launch,
    .signal = iris_i_no_signal,
    .wait = iris_i_no_wait,
    .follow = iris_i_sim_follow,
    .capture_begin = iris_i_no_capture_begin,
    .capture_end = iris_i_no_capture_end,
    .graph_launch = iris_i_no_graph_launch,
    .native = iris_i_no_native,
    .call = iris_i_no_call,
};

const struct iris_backend_type iris_i_sim_type = {
    .name = "sim",
    .simulates = 1,
    .probe = sim_probe,
    .survey = sim_survey,
    .open = sim_open,
};
