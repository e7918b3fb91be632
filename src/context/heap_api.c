/* SPDX-License-Identifier: MIT
 *
 * The public calls about the heap.
 */
#include "config.h"

#include "context/context.h"

#include <iris/heap.h>

#include "base/base.h"
#include "heap/heap.h"

#include <string.h>

static const struct iris_call_type malloc_call = {
    .name = "iris_malloc",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};
static const struct iris_call_type calloc_call = {
    .name = "iris_calloc",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};
static const struct iris_call_type as_symmetric_call = {
    .name = "iris_as_symmetric",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};

static iris_status_t allocate(iris_t *iris, const char *call, size_t bytes,
                              size_t alignment, void **ptr_p)
{
    const struct iris_heap_request request = {
        .type = &malloc_call, .bytes = bytes, .alignment = alignment};
    iris_status_t status = iris_i_enter(iris, call);

    return status == IRIS_OK
               ? iris_i_heap_allocate(&iris->heap, &request, ptr_p)
               : status;
}

iris_status_t iris_malloc_aligned(iris_t *iris, size_t bytes, size_t alignment,
                                  void **ptr_p)
{
    return allocate(iris, "iris_malloc_aligned", bytes, alignment, ptr_p);
}

iris_status_t iris_malloc(iris_t *iris, size_t bytes, void **ptr_p)
{
    return allocate(iris, "iris_malloc", bytes, IRIS_ALIGNMENT, ptr_p);
}

iris_status_t iris_calloc(iris_t *iris, size_t count, size_t size, void **ptr_p)
{
    struct iris_heap_request request = {.type = &calloc_call,
                                        .bytes = count * size,
                                        .alignment = IRIS_ALIGNMENT,
                                        .zero = 1};
    iris_status_t status = iris_i_enter(iris, "iris_calloc");

    if (status != IRIS_OK) {
        return status;
    }
    if (size != 0 && count > SIZE_MAX / size) {
        request.checked =
            iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                        "iris_calloc: count %zu times size %zu overflows; "
                        "ask for less",
                        count, size);
    }
    return iris_i_heap_allocate(&iris->heap, &request, ptr_p);
}

iris_status_t iris_free(iris_t *iris, void *ptr)
{
    iris_status_t status = iris_i_enter(iris, "iris_free");

    return status == IRIS_OK ? iris_i_heap_release(&iris->heap, ptr, IRIS_OK)
                             : status;
}

iris_status_t iris_free_later(iris_t *iris, void *ptr)
{
    iris_status_t status = iris_i_enter(iris, "iris_free_later");

    return status == IRIS_OK && ptr != NULL
               ? iris_i_deferred_add(&iris->heap, ptr)
               : status;
}

iris_status_t iris_free_deferred(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_free_deferred");
    size_t freed;

    return status == IRIS_OK ? iris_i_deferred_free(&iris->heap, &freed)
                             : status;
}

iris_status_t iris_as_symmetric(iris_t *iris, const void *ptr, size_t bytes,
                                void **symmetric_p, int *shared_p)
{
    const struct iris_heap_request request = {.type = &as_symmetric_call,
                                              .bytes = bytes,
                                              .alignment = IRIS_ALIGNMENT};
    iris_status_t status = iris_i_enter(iris, "iris_as_symmetric");

    return status == IRIS_OK ? iris_i_external_share(&iris->heap, &request, ptr,
                                                     symmetric_p, shared_p)
                             : status;
}

iris_status_t iris_heap_stats_sized(const iris_t *iris,
                                    struct iris_heap_stats *stats_p,
                                    size_t size)
{
    iris_status_t status = iris_i_enter(iris, "iris_heap_stats");
    struct iris_heap_stats stats = {.size = 0};

    if (status != IRIS_OK) {
        return status;
    }
    if (stats_p == NULL || !iris_i_sized_fits(size)) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_heap_stats: stats_p is NULL or of %zu bytes; "
                           "pass where to put the figures",
                           size);
    }
    iris_i_heap_stats(&iris->heap, &stats);
    stats.size = size < sizeof stats ? size : sizeof stats;
    memset(stats_p, 0, size);
    memcpy(stats_p, &stats, stats.size);
    return IRIS_OK;
}

iris_status_t iris_name(iris_t *iris, const void *ptr, const char *name)
{
    iris_status_t status = iris_i_enter(iris, "iris_name");

    return status == IRIS_OK
               ? iris_i_heap_set_name(&iris->heap.names, ptr, name)
               : status;
}

int iris_is_symmetric(const iris_t *iris, const void *ptr)
{
    return iris_i_enter(iris, "iris_is_symmetric") == IRIS_OK &&
           iris_i_heap_bytes_from(&iris->heap, ptr) > 0;
}

int iris_is_reachable(const iris_t *iris, int rank)
{
    return iris_i_enter(iris, "iris_is_reachable") == IRIS_OK && rank >= 0 &&
           rank < iris->log.num_ranks &&
           iris_i_heap_bases(&iris->heap.memory)[rank] != 0;
}

iris_status_t iris_as_remote(const iris_t *iris, const void *ptr, int rank,
                             void **remote_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_as_remote", remote_p, "remote_p");

    return status == IRIS_OK
               ? iris_i_heap_translate(&iris->heap, "iris_as_remote", ptr, rank,
                                       remote_p)
               : status;
}

iris_status_t iris_translate(const iris_t *iris, const void *ptr, int from_rank,
                             int to_rank, void **there_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_translate", there_p, "there_p");
    void *own = NULL;

    if (status == IRIS_OK) {
        status = iris_i_heap_untranslate(&iris->heap, "iris_translate", ptr,
                                         from_rank, &own);
    }
    return status == IRIS_OK
               ? iris_i_heap_translate(&iris->heap, "iris_translate", own,
                                       to_rank, there_p)
               : status;
}
