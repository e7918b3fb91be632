/* SPDX-License-Identifier: MIT
 *
 * The calls that query, end and clear a context, and its log.
 */
#include "config.h"

#include "context/internal.h"

#include <iris/log.h>

#include "control/control.h"

#include <stdarg.h>

int iris_rank(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_rank") == IRIS_OK ? iris->log.rank : -1;
}

int iris_num_ranks(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_ranks") == IRIS_OK ? iris->log.num_ranks
                                                           : -1;
}

int iris_node(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_node") == IRIS_OK
               ? iris_i_heap_node(&iris->heap.memory, iris->log.rank)
               : -1;
}

int iris_num_nodes(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_nodes") == IRIS_OK
               ? iris->heap.memory.num_nodes
               : -1;
}

int iris_device_id(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_id") == IRIS_OK
               ? iris->device.device_id
               : -1;
}

int iris_num_cus(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_cus") == IRIS_OK ? iris->device.num_cus
                                                         : -1;
}

const char *iris_backend_name(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_backend_name") == IRIS_OK
               ? iris->placement.name
               : NULL;
}

const int64_t *iris_heap_bases(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_heap_bases") == IRIS_OK
               ? iris_i_heap_bases(&iris->heap.memory)
               : NULL;
}

const int64_t *iris_device_context(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_context") == IRIS_OK
               ? iris->device_context
               : NULL;
}

void iris_interrupt(iris_t *iris)
{
    if (iris != NULL) { /* the struct remains even after finalize */
        atomic_store_explicit(&iris->interrupted, 1, memory_order_relaxed);
    }
}

void iris_set_leave_reason(iris_t *iris, const char *reason)
{
    if (iris_i_enter(iris, "iris_set_leave_reason") == IRIS_OK) {
        iris_i_peers_write_reason(iris->control, reason ? reason : "");
    }
}

int iris_lost_rank(iris_t *iris)
{
    if (iris_i_enter(iris, "iris_lost_rank") != IRIS_OK) {
        return -1;
    }
    (void)iris_i_peers_check_all(iris->control);
    return iris_i_peers_lost(iris->control);
}

iris_status_t iris_clear_error(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_clear_error");

    if (status == IRIS_OK) {
        status = iris_i_fail_on(&iris->log,
                                iris_i_device_clear_fault(iris->backend));
    }
    if (status == IRIS_OK) {
        iris_i_recorder_clear(iris);
    }
    return status;
}

/* ---- The log: lines of a context, or without one ---- */

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
