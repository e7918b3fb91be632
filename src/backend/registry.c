/* SPDX-License-Identifier: MIT
 *
 * Which backends this build has, loading those that are modules, and which of
 * them to use.
 */
#include "config.h"

#include "backend/backend.h"

#include "backend_sim/sim.h"
#include "base/log.h"
#include "backend/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Best first. */
static const struct {
    const char *name;
    const struct iris_backend_ops *ops; /* NULL: a module */
} backends[] = {
#if HAVE_HIP
    {"hip", NULL},
#endif
    {"sim", &iris_i_sim_ops},
};

#define NUM_BACKENDS (sizeof backends / sizeof backends[0])

static iris_status_t core_fail(iris_status_t status, const char *message)
{
    return iris_i_fail(NULL, status, "%s", message);
}

static void core_log(iris_log_level_t level, const char *message)
{
    switch (level) {
    case IRIS_LOG_INFO:
        iris_info(NULL, "%s", message);
        break;
    case IRIS_LOG_WARNING:
        iris_warning(NULL, "%s", message);
        break;
    default:
        iris_error(NULL, "%s", message);
    }
}

/* Loads a module once for the process: it stays, since the device's runtime
 * cannot be unloaded. Only success is remembered. */
static const struct iris_backend_ops *load(const char *name, const char *folder)
{
    static const struct iris_module_layout layout = IRIS_MODULE_LAYOUT;
    static const struct iris_module_core core = {
        .version = IRIS_MODULE_VERSION,
        .layout = &layout,
        .fail = core_fail,
        .last_error = iris_last_error,
        .log = core_log,
        .each_image = iris_i_each_image,
        .image_serial = iris_i_image_serial,
        .images_removed = iris_i_images_removed,
    };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct iris_backend_ops *loaded;
    const struct iris_backend_ops *ops;
    iris_module_entry_t entry = NULL;
    char path[1024];
    void *module = NULL;

    pthread_mutex_lock(&lock);
    snprintf(path, sizeof path, "%s/iris_%s.so",
             folder[0] != '\0' ? folder : IRIS_MODULE_DIR, name);
    if (loaded == NULL) {
        module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (module != NULL) {
        *(void **)&entry = dlsym(module, IRIS_MODULE_SYMBOL);
    }
    if (entry != NULL) {
        loaded = entry(&core);
    }
    ops = loaded;
    if (ops == NULL && module == NULL) {
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "backend \"%s\" cannot be loaded: %s. Install what is "
                    "missing (IRIS_MODULE_DIR says where modules are), or use "
                    "IRIS_BACKEND=sim",
                    name, dlerror());
    } else if (ops == NULL) {
        dlclose(module);
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "backend \"%s\": %s belongs to another build of Iris than "
                    "this library, " PACKAGE_VERSION "; install both together, "
                    "or use IRIS_BACKEND=sim",
                    name, path);
    }
    pthread_mutex_unlock(&lock);
    return ops;
}

/* The `i`th backend; a module is loaded only by this. */
static const struct iris_backend_ops *
ops_of(size_t i, const struct iris_settings *settings)
{
    return backends[i].ops != NULL
               ? backends[i].ops
               : load(backends[i].name, settings->module_dir.text);
}

const char *iris_i_backend_at(size_t i, const struct iris_settings *settings,
                              const struct iris_backend_ops **ops_p)
{
    if (i >= NUM_BACKENDS) {
        return NULL;
    }
    *ops_p = ops_of(i, settings);
    return backends[i].name;
}

static iris_status_t fail_unknown(const char *name)
{
    char known[64] = "";

    for (size_t i = 0; i < NUM_BACKENDS; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 i == 0 ? "" : ", ", backends[i].name);
    }
    if (strcasecmp(name, "hip") == 0) {
        return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                           "backend \"hip\" (IRIS_BACKEND) is not in this "
                           "build; it has: %s. Configure with "
                           "--with-backend=hip, or use IRIS_BACKEND=sim",
                           known);
    }
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "backend \"%.60s\" (IRIS_BACKEND) is unknown; this "
                       "build has: %s",
                       name, known);
}

iris_status_t iris_i_backend_select(const struct iris_settings *settings,
                                    const struct iris_backend_ops **ops_p)
{
    const char *wanted = settings->backend.text;
    iris_status_t status = IRIS_ERR_BACKEND;
    int known = 0;

    for (size_t i = 0; i < NUM_BACKENDS && !known; i++) {
        const struct iris_backend_ops *ops;

        if (wanted[0] != '\0' && strcasecmp(backends[i].name, wanted) != 0) {
            continue;
        }
        known = wanted[0] != '\0';
        ops = ops_of(i, settings);
        status = ops == NULL ? IRIS_ERR_BACKEND : ops->probe();
        if (status == IRIS_OK) {
            *ops_p = ops;
            return IRIS_OK;
        }
    }
    return wanted[0] != '\0' && !known ? fail_unknown(wanted) : status;
}

void iris_i_backend_preload(const struct iris_settings *settings)
{
    if (strcasecmp(settings->backend.text, "sim") == 0 &&
        strcmp(settings->sim_device.text, "cpu") == 0) {
        return;
    }
    for (size_t i = 0; i < NUM_BACKENDS; i++) {
        (void)ops_of(i, settings);
    }
}

/* The backend of a GPU that can be used here, or NULL with this thread's
 * message saying why there is none. */
static const struct iris_backend_ops *
find_gpu(const struct iris_settings *settings)
{
    for (size_t i = 0; i < NUM_BACKENDS; i++) {
        if (strcmp(backends[i].name, "hip") == 0) {
            const struct iris_backend_ops *ops = ops_of(i, settings);

            return ops != NULL && ops->probe() == IRIS_OK ? ops : NULL;
        }
    }
    fail_unknown("hip");
    return NULL;
}

void iris_i_backend_params(const struct iris_settings *settings,
                           struct iris_backend_params *params_p, char *reason,
                           size_t reason_bytes)
{
    params_p->sim_cus = settings->sim_cus.number;
    params_p->sim_device = settings->sim_device.text;
    params_p->allocator = settings->allocator.text;
    params_p->heap_bytes = (size_t)settings->heap_bytes.number;
    params_p->timeout_ms = settings->timeout_ms.number;
    params_p->device_timeout_ms = settings->device_timeout_ms.number;
    params_p->gpu_reason = reason;
    reason[0] = '\0';
    /* A look at the GPUs takes its time. */
    if (strcmp(params_p->sim_device, "cpu") != 0) {
        params_p->gpu = find_gpu(settings);
        if (params_p->gpu == NULL) {
            snprintf(reason, reason_bytes, "%s", iris_last_error());
        }
    }
}
