/* SPDX-License-Identifier: MIT
 *
 * Messages on stderr: "[Iris] [rank/num_ranks] message".
 *
 * @use local; never blocks; apart
 */
#ifndef IRIS_LOG_H
#define IRIS_LOG_H

#include <iris/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Severity. A context prints messages at or above its level. */
typedef enum iris_log_level {
    IRIS_LOG_DEBUG = 10,
    IRIS_LOG_INFO = 20,
    IRIS_LOG_WARNING = 30,
    IRIS_LOG_ERROR = 40,
    IRIS_LOG_OFF = 50,
} iris_log_level_t;

/** Sets the context's level; IRIS_LOG_LEVEL sets the first one. Thread-safe.
 *  NULL does nothing.
 *  @param level  least severe level to print */
IRIS_API void iris_log_set_level(iris_t *iris, iris_log_level_t level);

/** Each call formats a message as printf() does, and prints it as one line. With
 *  a NULL context it prints "[Iris] message", if IRIS_LOG_LEVEL permits.
 *  Thread-safe.
 *  @param format  as for printf(), with its arguments after it */
#define IRIS_PRINTF __attribute__((format(printf, 2, 3)))
IRIS_API void iris_debug(const iris_t *iris, const char *format,
                         ...) IRIS_PRINTF;
IRIS_API void iris_info(const iris_t *iris, const char *format,
                        ...) IRIS_PRINTF;
IRIS_API void iris_warning(const iris_t *iris, const char *format,
                           ...) IRIS_PRINTF;
IRIS_API void iris_error(const iris_t *iris, const char *format,
                         ...) IRIS_PRINTF;
#undef IRIS_PRINTF

#ifdef __cplusplus
}
#endif

#endif /* IRIS_LOG_H */
