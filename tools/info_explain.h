/* SPDX-License-Identifier: MIT
 *
 * The work that a rank enqueues for a fused operation.
 */
#ifndef IRIS_TOOLS_INFO_EXPLAIN_H
#define IRIS_TOOLS_INFO_EXPLAIN_H

#include <iris/iris.h>

#include <stdatomic.h>

#include "base/hooks.h"

#define INFO_MAX_STEPS 256

typedef iris_status_t (*call_fn)(iris_t *, const iris_tensor_t *,
                                 const iris_tensor_t *, const iris_tensor_t *,
                                 const struct iris_ops_options *);
typedef iris_status_t (*preamble_fn)(iris_t *, const iris_tensor_t *,
                                     const iris_tensor_t *,
                                     const iris_tensor_t *,
                                     const struct iris_ops_options *,
                                     iris_ops_workspace_t **);

struct explain_operation {
    const char *name;
    int shares_a; /* a is a share of the rows */
    int shares_out;
    call_fn call;
    preamble_fn preamble;
};

struct explain_request {
    const struct explain_operation *operation;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t ranks;
    iris_dtype_t dtype;
    char prefix[64]; /* prefix of heap-bases files, which are removed */
};

/* The steps that one rank enqueues, in order. */
struct explain_steps {
    struct iris_host_event events[INFO_MAX_STEPS];
    size_t count;
    atomic_int is_enqueued;
};

/* Makes the tensors a, b and out, and the workspaces, which a capture cannot.
 * Collective. */
iris_status_t info_explain_prepare(iris_t *iris,
                                   const struct explain_request *request,
                                   iris_tensor_t *tensors,
                                   struct iris_ops_options *options);

/* Enqueues the call without running it, and records its steps. */
iris_status_t info_explain_steps(iris_t *iris,
                                 const struct explain_request *request,
                                 const iris_tensor_t *tensors,
                                 const struct iris_ops_options *options,
                                 struct explain_steps *steps);

#endif /* IRIS_TOOLS_INFO_EXPLAIN_H */
