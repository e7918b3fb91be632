/* SPDX-License-Identifier: MIT
 *
 * Backends that are loaded at run time, so that a library built with them runs
 * on machines that lack their device's runtime: what the core and such a module
 * tell each other.
 */
#ifndef IRIS_SRC_BACKEND_MODULE_H
#define IRIS_SRC_BACKEND_MODULE_H

#include <iris/log.h>
#include <iris/device/layout.h>

#include "backend/backend.h"
#include "base/images.h"
#include "base/host_wait.h"

/* Both sides are built together; a module left behind by another build is
 * refused: one of another version, or for which what both sides use has other
 * sizes. A change that keeps all sizes counts the version up. */
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

/* Each struct's size. The first member is this one's own, which tells whether
 * the others may be looked at. */
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

/* What the module needs of the core. The first two never change place. */
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
    /* An object that is unloaded takes its images and kernels along, and the
     * next may have others at the same addresses. So images have serial
     * numbers, which are never used again (0: it is none), and it is counted
     * how many have gone. Not from a visit. */
    uint64_t (*image_serial)(const void *image);
    uint64_t (*images_removed)(void);
    void (*wait_start)(struct iris_wait *wait);
    iris_status_t (*wait_turn)(struct iris_wait *wait);
    void (*wait_moment)(struct iris_wait *wait, int64_t ms);
};

/* The one symbol a module exports. NULL: built for another core. `core` lives
 * as long as the process. */
#define IRIS_MODULE_SYMBOL "iris_backend_module"
typedef const struct iris_backend_type *(*iris_module_entry_t)(
    const struct iris_module_core *core);

/* A module's entry does this: takes note of the core, whose functions
 * (iris_i_fail(), iris_i_warning(), ...) it may call from then on. */
const struct iris_backend_type *
iris_i_module_open(const struct iris_module_core *core,
                   const struct iris_backend_type *type);

#endif /* IRIS_SRC_BACKEND_MODULE_H */
