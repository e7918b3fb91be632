/* SPDX-License-Identifier: MIT
 *
 * Constants of the public headers, as functions.
 */
#include "config.h"

#include <iris/constants.h>

#include <iris/context.h>
#include <iris/device/layout.h>
#include <iris/heap.h>
#include <iris/launch.h>

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

const char *iris_reduce_op_name(iris_reduce_op_t op)
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

size_t iris_alignment_max(void)
{
    return IRIS_ALIGNMENT_MAX;
}

size_t iris_launch_args_max(void)
{
    return IRIS_LAUNCH_ARGS_MAX;
}

unsigned iris_launch_block_max(void)
{
    return IRIS_LAUNCH_BLOCK_MAX;
}

size_t iris_kernel_version(void)
{
    return IRIS_KERNEL_VERSION;
}
