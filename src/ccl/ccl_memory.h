/* SPDX-License-Identifier: MIT
 *
 * A context's memory for the collectives of all its groups, and its tuning
 * rules.
 */
#ifndef IRIS_SRC_CCL_CCL_MEMORY_H
#define IRIS_SRC_CCL_CCL_MEMORY_H

#include "ccl/tuning.h"

struct iris_ccl {
    struct iris_extension extension; /* attached to the context */
    struct iris_queue *queue;        /* the context's queue */
    char *memory;
    size_t bytes;
    size_t most_slot_bytes;
    int stages;               /* workspaces have stages (ccl_stage.h) */
    struct iris_alloc *alloc; /* allocator of offsets in it */
    struct iris_ccl_workspace *workspaces;
    const struct iris_ccl_tuning *tuning; /* the context's rules */
};

static inline struct iris_ccl *iris_i_ccl_of(const iris_t *iris)
{
    return (struct iris_ccl *)iris_i_extension(iris, IRIS_EXTENSION_CCL);
}

/* IRIS_ERR_NO_MEMORY, with its message. */
iris_status_t iris_i_ccl_no_memory(const iris_t *iris);

/* Allocates the memory and reads the rules, once. Collective over the job. */
iris_status_t iris_i_ccl_prepare(iris_t *iris);

#endif /* IRIS_SRC_CCL_CCL_MEMORY_H */
