/* SPDX-License-Identifier: MIT
 *
 * The core's functions inside a module: errors and log lines go to the library
 * that loaded it, which keeps the thread's last error. Part of modules, not of
 * the core.
 */
#include "config.h"

#include "backend/backend.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct iris_module_core *core;

const struct iris_backend_type *
iris_i_module_open(const struct iris_module_core *caller,
                   const struct iris_backend_type *type)
{
    static const struct iris_module_layout layout = IRIS_MODULE_LAYOUT;

    if (strcmp(caller->version, IRIS_MODULE_VERSION) != 0 ||
        caller->layout->bytes != sizeof layout ||
        memcmp(caller->layout, &layout, sizeof layout) != 0) {
        return NULL;
    }
    core = caller;
    return type;
}

iris_status_t iris_i_fail(const struct iris_log *log, iris_status_t status,
                          const char *format, ...)
{
    char message[IRIS_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    iris_i_vprint(message, sizeof message, format, args);
    va_end(args);
    return core->fail(log, status, message);
}

iris_status_t iris_i_fail_again(iris_status_t status, const char *message)
{
    return core->fail_again(status, message);
}

void iris_i_each_image(iris_image_visit_t visit, void *arg)
{
    core->each_image(visit, arg);
}

uint64_t iris_i_image_serial(const void *image)
{
    return core->image_serial(image);
}

uint64_t iris_i_images_removed(void)
{
    return core->images_removed();
}

void iris_i_wait_start(struct iris_wait *wait)
{
    core->wait_start(wait);
}

iris_status_t iris_i_wait_turn(struct iris_wait *wait)
{
    return core->wait_turn(wait);
}

void iris_i_wait_moment(struct iris_wait *wait, int64_t ms)
{
    core->wait_moment(wait, ms);
}

const char *iris_last_error(void)
{
    return core->last_error();
}

/* clang-format off */
#define LOG_FUNCTION(name, level)                                              \
    void name(const struct iris_log *log, const char *format, ...)                     \
    {                                                                          \
        char message[IRIS_MESSAGE_BYTES];                                      \
        va_list args;                                                          \
        va_start(args, format);                                                \
        iris_i_vprint(message, sizeof message, format, args);                      \
        va_end(args);                                                          \
        core->log(log, level, message);                                             \
    }
/* clang-format on */
LOG_FUNCTION(iris_i_info, IRIS_LOG_INFO)
LOG_FUNCTION(iris_i_warning, IRIS_LOG_WARNING)
LOG_FUNCTION(iris_i_error, IRIS_LOG_ERROR)
