/* SPDX-License-Identifier: MIT
 *
 * The backends of this build by name; loads those that are modules.
 */
#include "config.h"

#include "backend/backend.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_BACKENDS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In order of preference. `type` is set from the start, by a module when it is
 * loaded, or by iris_i_registry_add(). */
static struct entry {
    const char *name;
    int built; /* 0: configure supports it, but this build does not have it */
    const struct iris_backend_type *type IRIS_GUARDED_BY(lock);
} entries[MAX_BACKENDS] = {
    {"hip", HAVE_HIP, NULL},
    {"sim", 1, &iris_i_sim_type},
};

static iris_status_t core_fail(const struct iris_log *log, iris_status_t status,
                               const char *message)
{
    return iris_i_fail(log, status, "%s", message);
}

static void core_log(const struct iris_log *log, iris_log_level_t level,
                     const char *message)
{
    switch (level) {
    case IRIS_LOG_INFO:
        iris_i_info(log, "%s", message);
        break;
    case IRIS_LOG_WARNING:
        iris_i_warning(log, "%s", message);
        break;
    default:
        iris_i_error(log, "%s", message);
    }
}

/* The result of the module's entry function, or NULL with the message set. */
static const struct iris_backend_type *
enter_module(iris_module_entry_t entry, const char *name, const char *path)
{
    static const struct iris_module_layout layout = IRIS_MODULE_LAYOUT;
    static const struct iris_module_core core = {
        .version = IRIS_MODULE_VERSION,
        .layout = &layout,
        .fail = core_fail,
        .fail_again = iris_i_fail_again,
        .last_error = iris_last_error,
        .log = core_log,
        .each_image = iris_i_each_image,
        .image_serial = iris_i_image_serial,
        .images_removed = iris_i_images_removed,
        .wait_start = iris_i_wait_start,
        .wait_turn = iris_i_wait_turn,
        .wait_moment = iris_i_wait_moment,
    };
    const struct iris_backend_type *type = entry == NULL ? NULL : entry(&core);

    if (type == NULL) {
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "backend \"%s\": %s belongs to another build of Iris than "
                    "this library, " PACKAGE_VERSION "; install both together, "
                    "or use IRIS_BACKEND=sim",
                    name, path);
    } else if (strcmp(type->name, name) != 0) {
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "backend \"%s\": %s has a backend called \"%.60s\"; "
                    "install the right file there",
                    name, path, type->name);
        type = NULL;
    }
    return type;
}

/* Loads a module once for the process. It stays loaded, since the device's
 * runtime cannot be unloaded. Only success is remembered. */
static const struct iris_backend_type *load_module(const char *name,
                                                   const char *folder)
{
    const struct iris_backend_type *type;
    iris_module_entry_t entry;
    struct iris_loader loader;

    *(void **)&entry =
        iris_i_loader_open(&loader, folder, name, IRIS_MODULE_SYMBOL);
    if (loader.handle == NULL) {
        iris_i_fail(
            NULL, IRIS_ERR_BACKEND,
            "backend \"%s\" cannot be loaded: %s. Install the missing file "
            "(IRIS_MODULE_DIR names the folder of modules), or use "
            "IRIS_BACKEND=sim",
            name, loader.why);
        return NULL;
    }
    type = enter_module(entry, name, loader.path);
    if (type == NULL) {
        iris_i_loader_close(&loader);
    }
    return type;
}

/* "hip, sim": the backends of this build. */
static void list_backends(char *text, size_t bytes)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < MAX_BACKENDS && entries[i].name != NULL; i++) {
        if (entries[i].built && length < bytes) {
            length +=
                (size_t)snprintf(text + length, bytes - length, "%s%s",
                                 length == 0 ? "" : ", ", entries[i].name);
        }
    }
}

static const struct iris_backend_type *type_of(struct entry *entry,
                                               const char *module_dir)
{
    const struct iris_backend_type *type;
    char known[128];

    if (!entry->built) {
        list_backends(known, sizeof known);
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "backend \"%s\" (IRIS_BACKEND) is not in this build; it "
                    "has: %s. Configure with --with-backend=%s, or use "
                    "IRIS_BACKEND=sim",
                    entry->name, known, entry->name);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (entry->type == NULL) {
        entry->type = load_module(entry->name, module_dir);
    }
    type = entry->type;
    pthread_mutex_unlock(&lock);
    return type;
}

const char *iris_i_registry_at(size_t i, const char *module_dir,
                               const struct iris_backend_type **type_p)
{
    for (size_t at = 0; at < MAX_BACKENDS; at++) {
        if (entries[at].name != NULL && entries[at].built && i-- == 0) {
            *type_p = type_of(&entries[at], module_dir);
            return entries[at].name;
        }
    }
    return NULL;
}

/* The backend that a name of something else probably means. */
static const char *guess_backend(const char *name)
{
    static const char *const gpus[] = {"cuda", "nvidia", "amd", "rocm", "gpu"};

    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        if (strcasecmp(gpus[i], name) == 0) {
            return ". GPUs of AMD and of NVIDIA are IRIS_BACKEND=hip, several "
                   "ranks on one GPU IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu";
        }
    }
    return strcasecmp(name, "cpu") == 0 || strncasecmp(name, "sim", 3) == 0
               ? ". Ranks on CPUs are IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu"
               : "";
}

iris_status_t iris_i_registry_find(const char *name, const char *module_dir,
                                   const struct iris_backend_type **type_p)
{
    const struct iris_backend_type *type;
    char known[128];

    for (size_t i = 0; i < MAX_BACKENDS && entries[i].name != NULL; i++) {
        if (strcasecmp(entries[i].name, name) == 0) {
            type = type_of(&entries[i], module_dir);
            *type_p = type == NULL ? *type_p : type;
            return type == NULL ? IRIS_ERR_BACKEND : IRIS_OK;
        }
    }
    list_backends(known, sizeof known);
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "backend \"%.60s\" (IRIS_BACKEND) is unknown; this "
                       "build has: %s%s",
                       name, known, guess_backend(name));
}

iris_status_t iris_i_registry_add(const struct iris_backend_type *type)
{
    size_t i = 0;

    while (i < MAX_BACKENDS && entries[i].name != NULL) {
        i++;
    }
    if (i == MAX_BACKENDS) {
        return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                           "%d backends are registered already", MAX_BACKENDS);
    }
    entries[i] = (struct entry){type->name, 1, type};
    return IRIS_OK;
}
