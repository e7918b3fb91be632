/* SPDX-License-Identifier: MIT
 *
 * Handles for collectives of workgroups: a workspace with a part for each
 * workgroup.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/ccl.h>
#include <iris/ccl_device.h>

#include "context/context.h"
#include "queue/kernels.h"

#define SLOT_BYTES ((size_t)4096)
/* Slots hold at least a few elements, and halves of slots hold whole shares. */
#define SLOT_GRAIN ((size_t)64)

static iris_status_t check_numbers(const iris_t *iris, const char *call,
                                   int max_wgs, size_t *slot_bytes)
{
    if (max_wgs < 1) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: max_wgs is %d; pass 1 to iris_num_cus()", call,
                           max_wgs);
    }
    if (*slot_bytes > (size_t)1 << 30) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: slot_bytes is %zu; pass at most 1 GiB", call,
                           *slot_bytes);
    }
    *slot_bytes = *slot_bytes == 0 ? SLOT_BYTES
                                   : (*slot_bytes + SLOT_GRAIN - 1) /
                                         SLOT_GRAIN * SLOT_GRAIN;
    return IRIS_OK;
}

iris_status_t iris_ccl_device_create(iris_t *iris, iris_group_t *group,
                                     int max_wgs, size_t slot_bytes,
                                     iris_ccl_device_t *handle_p)
{
    const char *call = "iris_ccl_device_create";
    struct iris_ccl_workspace wanted, *workspace = NULL;
    iris_status_t status =
        iris_i_enter_output(iris, call, handle_p, "handle_p");

    if (status == IRIS_OK) {
        status = check_numbers(iris, call, max_wgs, &slot_bytes);
    }
    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, group, &group);
    }
    if (status == IRIS_OK) {
        status = iris_i_group_check_reachable(iris, group, call);
    }
    if (status == IRIS_OK) {
        wanted = (struct iris_ccl_workspace){
            .group = group, .parts = max_wgs, .slot_bytes = slot_bytes};
        status = iris_i_ccl_make(iris, &wanted, &workspace);
    }
    if (status == IRIS_OK) {
        *handle_p = (iris_ccl_device_t){
            .context = iris_i_queue_context(iris_i_queue(iris)),
            .spaces = workspace->device,
            .stride = workspace->part_bytes,
            .piece = workspace->slot_bytes,
            .max_wgs = (uint32_t)max_wgs};
    }
    return status;
}

/* The live workspace of a handle, or NULL. */
static struct iris_ccl_workspace *find(const iris_t *iris,
                                       const iris_ccl_device_t *handle)
{
    struct iris_ccl_workspace *workspace =
        iris_i_extension(iris, IRIS_EXTENSION_CCL) == NULL
            ? NULL
            : iris_i_ccl_of(iris)->workspaces;

    while (workspace != NULL && (workspace->parts == 0 ||
                                 (void *)workspace->device != handle->spaces)) {
        workspace = workspace->next;
    }
    return workspace;
}

iris_status_t iris_ccl_device_destroy(iris_t *iris,
                                      const iris_ccl_device_t *handle)
{
    struct iris_ccl_workspace *workspace;
    iris_status_t status = iris_i_enter(iris, "iris_ccl_device_destroy");

    if (status != IRIS_OK || handle == NULL) {
        return status;
    }
    workspace = find(iris, handle);
    if (workspace == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_ccl_device_destroy: no live handle; pass one "
                           "from iris_ccl_device_create, once");
    }
    return iris_ccl_workspace_destroy(iris, workspace);
}
