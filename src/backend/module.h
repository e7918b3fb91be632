/* SPDX-License-Identifier: MIT
 *
 * Backends that are loaded at run time, so that a library built with them runs
 * on machines without their device's runtime: the interface between the core
 * and such a module.
 */
#ifndef IRIS_SRC_BACKEND_MODULE_H
#define IRIS_SRC_BACKEND_MODULE_H

#include <iris/log.h>
#include <iris/device/layout.h>

#include "backend/backend.h"
#include "base/images.h"
#include "base/host_wait.h"

/* The core and its modules are built together. A module of another build is
 * refused: one with another version, or with other sizes of the shared structs.
 * Increase the version for changes that keep all sizes. */
#define IRIS_MODULE_VERSION "iris " PACKAGE_VERSION " module 6"
#define IRIS_MODULE_STRUCTS(X) \
    X(iris_module_core)        \
    X(iris_backend)            \
    X(iris_backend_params)     \
    X(iris_backend_type)       \
    X(iris_core_ops)           \
    X(iris_dev_watch)          \
    X(iris_device_info)        \
    X(iris_device_ops)         \
    X(iris_external)           \
    X(iris_fault)              \
    X(iris_heap_handle)        \
    X(iris_heap_region)        \
    X(iris_kernel)             \
    X(iris_launch)             \
    X(iris_log)                \
    X(iris_memory_ops)         \
    X(iris_queue_ops)          \
    X(iris_stream)             \
    X(iris_survey)             \
    X(iris_wait)               \
    X(iris_wait_type)          \
    X(iris_waiter)

/* The size of each struct. The first member is this struct's own size: the
 * others may be read only if it matches. */
struct iris_module_layout {
    size_t bytes;
#define IRIS_MODULE_MEMBER(name) size_t name;
    IRIS_MODULE_STRUCTS(IRIS_MODULE_MEMBER)
#undef IRIS_MODULE_MEMBER
};

#define IRIS_MODULE_SIZE(name) sizeof(struct name),
#define IRIS_MODULE_LAYOUT                        \
    {                                             \
        sizeof(struct iris_module_layout),        \
            IRIS_MODULE_STRUCTS(IRIS_MODULE_SIZE) \
    }

/* The functions of the core for modules. The first two never move. */
struct iris_module_core {
    const char *version;
    const struct iris_module_layout *layout;
    iris_status_t (*fail)(const struct iris_log *log, iris_status_t status,
                          const char *message);
    iris_status_t (*fail_again)(iris_status_t status, const char *message);
    const char *(*last_error)(void);
    void (*log)(const struct iris_log *log, iris_log_level_t level,
                const char *message);
    /* Visits each image of GPU code in the program. */
    void (*each_image)(iris_image_visit_t visit, void *arg);
    /* An unloaded object takes its images and kernels along, and the next
     * object may have others at the same addresses. Therefore images have
     * serial numbers, which are never used again (0: not an image), and the
     * core counts removed images. Not to be called from a visit. */
    uint64_t (*image_serial)(const void *image);
    uint64_t (*images_removed)(void);
    void (*wait_start)(struct iris_wait *wait);
    iris_status_t (*wait_turn)(struct iris_wait *wait);
    void (*wait_moment)(struct iris_wait *wait, int64_t ms);
};

/* The only exported symbol of a module. NULL: built for another core. `core`
 * lives as long as the process. */
#define IRIS_MODULE_SYMBOL "iris_backend_module"
typedef const struct iris_backend_type *(*iris_module_entry_t)(
    const struct iris_module_core *core);

/* Called by a module's entry: stores the core, whose functions (iris_i_fail(),
 * iris_i_warning(), ...) the module may call from then on. */
const struct iris_backend_type *
iris_i_module_open(const struct iris_module_core *core,
                   const struct iris_backend_type *type);

#endif /* IRIS_SRC_BACKEND_MODULE_H */
