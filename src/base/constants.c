/* SPDX-License-Identifier: MIT
 *
 * Constants of the public headers, as functions; names and texts of statuses,
 * from the one table.
 */
#include "config.h"

#include <iris/constants.h>

#include "base/base.h"

#include <iris/context.h>
#include <iris/device/layout.h>
#include <iris/heap.h>
#include <iris/launch.h>
#include <iris/status.h>

size_t iris_dtype_size(iris_dtype_t dtype)
{
    switch (dtype) {
#define DTYPE_SIZE(NAME, value, name, bytes) \
    case IRIS_DTYPE_##NAME:                  \
        return bytes;
        IRIS_DTYPE_ROWS(DTYPE_SIZE)
#undef DTYPE_SIZE
    }
    return 0;
}

const char *iris_dtype_name(iris_dtype_t dtype)
{
    switch (dtype) {
#define DTYPE_NAME(NAME, value, name, bytes) \
    case IRIS_DTYPE_##NAME:                  \
        return name;
        IRIS_DTYPE_ROWS(DTYPE_NAME)
#undef DTYPE_NAME
    }
    return "?";
}

const char *iris_i_reduce_op_name(iris_reduce_op_t op)
{
    switch (op) {
#define REDUCE_OP_NAME(NAME, value, name) \
    case IRIS_REDUCE_##NAME:              \
        return name;
        IRIS_REDUCE_OP_ROWS(REDUCE_OP_NAME)
#undef REDUCE_OP_NAME
    }
    return "?";
}

size_t iris_config_size(void)
{
    return sizeof(struct iris_config);
}

size_t iris_context_words(int num_ranks)
{
    return num_ranks < 1 ? 0 : IRIS_CONTEXT_WORDS(num_ranks);
}

size_t iris_alignment(void)
{
    return IRIS_ALIGNMENT;
}

const char *iris_status_string(iris_status_t status)
{
    switch (status) {
#define STATUS_NAME(name, value, text) \
    case IRIS_##name:                  \
        return "IRIS_" #name;
        IRIS_STATUS_ROWS(STATUS_NAME)
#undef STATUS_NAME
    }
    return "IRIS_ERR_?";
}

const char *iris_status_text(iris_status_t status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text) \
    case IRIS_##name:                  \
        return text;
        IRIS_STATUS_ROWS(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *iris_version(void)
{
    return PACKAGE_VERSION;
}
