/* SPDX-License-Identifier: MIT
 *
 * The public log: lines of a context, or of none.
 */
#include "config.h"

#include <iris/log.h>

#include "context/context_type.h"

#include <stdarg.h>

#define LOG_FUNCTION(name, severity)                                        \
    void name(const iris_t *iris, const char *format, ...)                  \
    {                                                                       \
        va_list args;                                                       \
                                                                            \
        va_start(args, format);                                             \
        iris_i_log_args(iris == NULL ? NULL : &iris->log, severity, format, \
                        args);                                              \
        va_end(args);                                                       \
    }

/* void iris_debug(const iris_t *iris, const char *format, ...) and so on */
LOG_FUNCTION(iris_debug, IRIS_LOG_DEBUG)
LOG_FUNCTION(iris_info, IRIS_LOG_INFO)
LOG_FUNCTION(iris_warning, IRIS_LOG_WARNING)
LOG_FUNCTION(iris_error, IRIS_LOG_ERROR)
#undef LOG_FUNCTION

void iris_log_set_level(iris_t *iris, iris_log_level_t level)
{
    if (iris != NULL) {
        atomic_store_explicit(&iris->log.level, (int)level,
                              memory_order_relaxed);
    }
}
