/* SPDX-License-Identifier: MIT
 *
 * What a context says of itself.
 */
#include "config.h"

#include "context/context.h"

int iris_rank(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_rank") == IRIS_OK ? iris->log.rank : -1;
}

int iris_num_ranks(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_ranks") == IRIS_OK ? iris->log.num_ranks
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
    return iris_i_enter(iris, "iris_heap_bases") == IRIS_OK ? iris->heap.bases
                                                            : NULL;
}

const int64_t *iris_device_context(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_context") == IRIS_OK
               ? iris->device_context
               : NULL;
}
