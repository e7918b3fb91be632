/* SPDX-License-Identifier: MIT
 *
 * Backends that are loaded at run time, so that a library built with them runs
 * on machines that lack their device's runtime: what the core and such a module
 * tell each other.
 */
#ifndef IRIS_SRC_MODULE_H
#define IRIS_SRC_MODULE_H

#include <iris/log.h>

#include "backend.h"

/* Both sides are built together; a module left behind by another build is
 * refused. */
#define IRIS_MODULE_VERSION "iris " PACKAGE_VERSION " module 1"

/* What the module needs of the core. */
struct iris_module_core {
    const char *version;
    iris_status_t (*fail)(iris_status_t status, const char *message);
    const char *(*last_error)(void);
    void (*log)(iris_log_level_t level, const char *message);
    /* Calls visit(arg, image) for each image of GPU code in the program. */
    void (*each_image)(void (*visit)(void *arg, const void *image), void *arg);
};

/* The one symbol a module exports. NULL: built for another core. `core` lives
 * as long as the process. */
#define IRIS_MODULE_SYMBOL "iris_backend_module"
typedef const struct iris_backend_ops *(*iris_module_entry_t)(
    const struct iris_module_core *core);

/* module_core.each_image, on the core's side and on the module's. */
void iris_i_each_image(void (*visit)(void *arg, const void *image), void *arg);

/* A module's entry does this: takes note of the core, whose functions
 * (iris_i_fail(), iris_warning(), ...) it may call from then on. */
const struct iris_backend_ops *
iris_i_module_open(const struct iris_module_core *core,
                   const struct iris_backend_ops *ops);

#endif /* IRIS_SRC_MODULE_H */
