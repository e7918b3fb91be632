/* SPDX-License-Identifier: MIT
 *
 * Setting this thread's error message, and the log behind it.
 */
#ifndef IRIS_SRC_BASE_LOG_H
#define IRIS_SRC_BASE_LOG_H

#include <iris/log.h>

#define IRIS_MESSAGE_BYTES 1024

/* The first function that decides which error it is calls this: sets the
 * thread's message ("[rank/num_ranks] " in front when `iris` is known), logs it
 * at debug level, and returns `status`. `iris` may be NULL. */
iris_status_t iris_i_fail(const iris_t *iris, iris_status_t status,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* iris_i_fail() with ": <strerror(errno_value)>" behind the message. */
iris_status_t iris_i_fail_errno(const iris_t *iris, iris_status_t status,
                                int errno_value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes `message` this thread's last error, as it is: hands an error from the
 * thread that met it to the one that asks. Returns `status`. */
iris_status_t iris_i_fail_again(iris_status_t status, const char *message);

/* Puts "[rank/num_ranks] " in front of this thread's last error if whoever set
 * it did not know the context. Returns `status`; IRIS_OK does nothing. */
iris_status_t iris_i_fail_on(const iris_t *iris, iris_status_t status);

/* Level named by `text` ("info", ...), or -1. */
int iris_i_log_level(const char *text);

#endif /* IRIS_SRC_BASE_LOG_H */
