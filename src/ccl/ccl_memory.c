/* SPDX-License-Identifier: MIT
 *
 * A context's memory for collectives, and the rules of the tuning file. The
 * memory is one allocation on every heap, from which each rank takes pieces by
 * itself.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/constants.h>

#include "context/context.h"
#include "heap/heap.h"

#include <stdlib.h>

/* The most bytes of a slot. On a GPU, packets in one step are the fastest way
 * up to a megabyte. On the CPU, copies from memory are faster. */
#define GPU_SLOT_BYTES_MAX ((size_t)1 << 20)
#define CPU_SLOT_BYTES_MAX ((size_t)64 << 10)

static const struct iris_call_type prepare_call = {
    .name = "iris_ccl_prepare",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};

iris_status_t iris_i_ccl_no_memory(const iris_t *iris)
{
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                       "no memory for collectives");
}

static void close_ccl(struct iris_extension *extension)
{
    struct iris_ccl *ccl = (struct iris_ccl *)extension;

    while (ccl->workspaces != NULL) {
        struct iris_ccl_workspace *workspace = ccl->workspaces;

        ccl->workspaces = workspace->next;
        free(workspace);
    }
    iris_i_alloc_destroy(ccl->alloc);
    free(ccl);
}

/* This rank's part, before the agreement. The caller owns the result even if
 * the tuning file is wrong. */
static iris_status_t make_ccl(iris_t *iris, size_t bytes,
                              struct iris_ccl **ccl_p)
{
    struct iris_ccl_tuning *tuning;
    struct iris_ccl *ccl = calloc(1, sizeof *ccl);
    iris_status_t status = ccl == NULL
                               ? IRIS_ERR_NO_MEMORY
                               : iris_i_alloc_create(bytes, &ccl->alloc);

    if (status != IRIS_OK) {
        free(ccl);
        return iris_i_ccl_no_memory(iris);
    }
    ccl->extension.close = close_ccl;
    ccl->bytes = bytes;
    ccl->most_slot_bytes = iris_i_device(iris)->wavefront > 1
                               ? GPU_SLOT_BYTES_MAX
                               : CPU_SLOT_BYTES_MAX;
    ccl->stages = iris_i_device(iris)->wavefront <= 1;
    *ccl_p = ccl;
    status = iris_i_ccl_tuning(iris, &tuning);
    if (status == IRIS_OK) {
        ccl->tuning = tuning;
    }
    return status;
}

iris_status_t iris_i_ccl_prepare(iris_t *iris)
{
    size_t most = iris_i_heap_bytes(&iris_i_heap(iris)->memory) / 8;
    size_t asked = (size_t)iris_i_settings(iris)->ccl_bytes.number;
    struct iris_heap_request request = {
        .type = &prepare_call, .alignment = IRIS_ALIGNMENT, .is_lazy = 1};
    struct iris_ccl *ccl = NULL;
    void *memory;
    iris_status_t status;

    request.bytes = asked < most ? asked : most;
    request.checked = make_ccl(iris, request.bytes, &ccl);
    status = iris_i_heap_allocate(iris_i_heap(iris), &request, &memory);
    if (status != IRIS_OK) {
        if (ccl != NULL) {
            close_ccl(&ccl->extension);
        }
        return status;
    }
    ccl->queue = iris_i_queue(iris);
    ccl->memory = memory;
    iris_i_extend(iris, IRIS_EXTENSION_CCL, &ccl->extension);
    return IRIS_OK;
}

iris_status_t iris_ccl_prepare(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_ccl_prepare");

    return status == IRIS_OK &&
                   iris_i_extension(iris, IRIS_EXTENSION_CCL) == NULL
               ? iris_i_ccl_prepare(iris)
               : status;
}
