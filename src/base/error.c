/* SPDX-License-Identifier: MIT
 *
 * This thread's last error, and log lines on stderr.
 */
#include "config.h"

#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* State outside contexts. It belongs to the thread, so that a failed
 * iris_init(), which leaves no context, can still give its reason. */
static _Thread_local char last_error[IRIS_MESSAGE_BYTES];

const char *iris_last_error(void)
{
    return last_error;
}

int iris_i_log_level(const char *text)
{
    static const struct {
        const char *name;
        iris_log_level_t level;
    } levels[] = {
        {"debug", IRIS_LOG_DEBUG},     {"info", IRIS_LOG_INFO},
        {"warning", IRIS_LOG_WARNING}, {"error", IRIS_LOG_ERROR},
        {"off", IRIS_LOG_OFF},
    };

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(text, levels[i].name) == 0) {
            return (int)levels[i].level;
        }
    }
    return -1;
}

/* Without a context, only the environment sets the level. iris_init() reports a
 * value that does not parse. */
static int level_of(const struct iris_log *log)
{
    const char *text;
    int level;

    if (log != NULL) {
        return atomic_load_explicit(&log->level, memory_order_relaxed);
    }
    text = getenv("IRIS_LOG_LEVEL");
    level = text == NULL ? -1 : iris_i_log_level(text);
    return level < 0 ? IRIS_LOG_INFO : level;
}

/* The lines of a thread that holds a lock. */
static _Thread_local struct {
    int is_on;
    size_t bytes;
    char *text;
} held;

static void write_text(const char *text, size_t bytes)
{
    size_t done = 0;
    int saved = errno;

    do { /* a signal may interrupt it while a pipe is full */
        errno = 0;
        done += fwrite(text + done, 1, bytes - done, stderr);
    } while (done < bytes && errno == EINTR);
    errno = saved;
}

void iris_i_log_hold(void)
{
    held.is_on = 1;
}

void iris_i_log_release(void)
{
    held.is_on = 0;
    if (held.text != NULL) {
        write_text(held.text, held.bytes);
        free(held.text);
        held.text = NULL;
        held.bytes = 0;
    }
}

/* 0: there is no memory. */
static int keep_text(const char *text, size_t bytes)
{
    char *larger = realloc(held.text, held.bytes + bytes);

    if (larger != NULL) {
        memcpy(larger + held.bytes, text, bytes);
        held.text = larger;
        held.bytes += bytes;
    }
    return larger != NULL;
}

/* One write for the whole line, so that lines of several ranks do not mix. */
static void print_line(const struct iris_log *log, int level,
                       const char *message)
{
    char line[IRIS_MESSAGE_BYTES + 64];
    int length;

    if (level < level_of(log)) {
        return;
    }
    if (log != NULL) {
        length = snprintf(line, sizeof line, "[Iris] [%d/%d] %s\n", log->rank,
                          log->num_ranks, message);
    } else {
        length = snprintf(line, sizeof line, "[Iris] %s\n", message);
    }
    if (length > 0) {
        size_t bytes = (size_t)length;

        if (bytes >= sizeof line) {
            bytes = sizeof line - 1;
            line[bytes - 1] = '\n';
        }
        if (!held.is_on || !keep_text(line, bytes)) {
            write_text(line, bytes);
        }
    }
}

#define LOG_FUNCTION(name, severity)                               \
    void name(const struct iris_log *log, const char *format, ...) \
    {                                                              \
        va_list args;                                              \
        va_start(args, format);                                    \
        iris_i_log_args(log, severity, format, args);              \
        va_end(args);                                              \
    }

void iris_i_log_args(const struct iris_log *log, int level, const char *format,
                     va_list args)
{
    char message[IRIS_MESSAGE_BYTES];

    iris_i_vprint(message, sizeof message, format, args);
    print_line(log, level, message);
}

/* void iris_i_debug(const struct iris_log *log, const char *format, ...) and so
 * on */
LOG_FUNCTION(iris_i_debug, IRIS_LOG_DEBUG)
LOG_FUNCTION(iris_i_info, IRIS_LOG_INFO)
LOG_FUNCTION(iris_i_warning, IRIS_LOG_WARNING)
LOG_FUNCTION(iris_i_error, IRIS_LOG_ERROR)
#undef LOG_FUNCTION

static iris_status_t __attribute__((format(printf, 4, 0)))
fail_args(const struct iris_log *log, iris_status_t status, const char *behind,
          const char *format, va_list args)
{
    char message[IRIS_MESSAGE_BYTES];

    iris_i_vprint(message, sizeof message, format, args);
    if (log != NULL) {
        snprintf(last_error, sizeof last_error, "[%d/%d] %.900s%s%.80s",
                 log->rank, log->num_ranks, message, behind[0] ? ": " : "",
                 behind);
    } else {
        snprintf(last_error, sizeof last_error, "%.900s%s%.80s", message,
                 behind[0] ? ": " : "", behind);
    }
    iris_i_debug(log, "%s: %s", iris_status_string(status), last_error);
    return status;
}

iris_status_t iris_i_fail(const struct iris_log *log, iris_status_t status,
                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_args(log, status, "", format, args);
    va_end(args);
    return status;
}

iris_status_t iris_i_fail_errno(const struct iris_log *log,
                                iris_status_t status, int errno_value,
                                const char *format, ...)
{
    char text[128];
    va_list args;

    va_start(args, format);
    fail_args(log, status, strerror_r(errno_value, text, sizeof text), format,
              args);
    va_end(args);
    return status;
}

iris_status_t iris_i_fail_again(iris_status_t status, const char *message)
{
    if (message != last_error) {
        snprintf(last_error, sizeof last_error, "%s", message);
    }
    return status;
}

iris_status_t iris_i_fail_on(const struct iris_log *log, iris_status_t status)
{
    char message[IRIS_MESSAGE_BYTES];

    if (status != IRIS_OK && last_error[0] != '[') {
        snprintf(message, sizeof message, "[%d/%d] %.990s", log->rank,
                 log->num_ranks, last_error);
        snprintf(last_error, sizeof last_error, "%s", message);
    }
    return status;
}
