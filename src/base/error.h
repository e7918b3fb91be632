/* SPDX-License-Identifier: MIT
 *
 * Setting this thread's error message, and the log behind it.
 */
#ifndef IRIS_SRC_BASE_ERROR_H
#define IRIS_SRC_BASE_ERROR_H

#include <stdarg.h>
#include <stdatomic.h>

#include <iris/log.h>
#include <iris/status.h>

#define IRIS_MESSAGE_BYTES 1024

/* The rank that logs, and its level. */
struct iris_log {
    int rank;
    int num_ranks;
    atomic_int level; /* iris_log_level_t; the least severe that is printed */
};

/* The first function that decides which error it is calls this. It sets the
 * thread's message, with "[rank/num_ranks] " in front if `log` is known, logs
 * it at debug level, and returns `status`. `log` may be NULL. */
iris_status_t iris_i_fail(const struct iris_log *log, iris_status_t status,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* iris_i_fail() with ": <strerror(errno_value)>" behind the message. */
iris_status_t iris_i_fail_errno(const struct iris_log *log,
                                iris_status_t status, int errno_value,
                                const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes `message` this thread's last error, unchanged. Passes an error from the
 * thread that met it to the one that asks. Returns `status`. */
iris_status_t iris_i_fail_again(iris_status_t status, const char *message);

/* Puts "[rank/num_ranks] " in front of this thread's last error, if the
 * function that set it did not know the rank. Returns `status`; does nothing
 * with IRIS_OK. */
iris_status_t iris_i_fail_on(const struct iris_log *log, iris_status_t status);

/* Lines on stderr; `log` may be NULL. */
void iris_i_debug(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_info(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_warning(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_error(const struct iris_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void iris_i_log_args(const struct iris_log *log, int level, const char *format,
                     va_list args) __attribute__((format(printf, 3, 0)));

/* Level named by `text` ("info", ...), or -1. */
int iris_i_log_level(const char *text);

#endif /* IRIS_SRC_BASE_ERROR_H */
