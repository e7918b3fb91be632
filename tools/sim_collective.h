/* SPDX-License-Identifier: MIT
 *
 * A collective as amounts of a platform's costs.
 */
#ifndef IRIS_TOOLS_SIM_COLLECTIVE_H
#define IRIS_TOOLS_SIM_COLLECTIVE_H

#include "sim_platform.h"
#include "ccl/ccl.h"

struct sim_call {
    enum iris_ccl_op op;
    size_t bytes; /* size of the larger buffer */
    int ranks;
    iris_ccl_variant_t variant; /* IRIS_CCL_AUTO: the library's choice */
};

/* `amounts` are counts, or MB, of each cost; the call takes the sum of their
 * products with the platform's costs. */
struct sim_plan {
    double amounts[SIM_COSTS];
    const char *way; /* the variant's name, or "far": of several nodes */
    int shots;       /* exchanges */
    double sent;     /* bytes that a rank sends to its peers, flags included */
};

struct sim_plan sim_plan(const struct sim_platform *platform,
                         const struct sim_call *call);

/* Microseconds. */
double sim_time(const struct sim_platform *platform,
                const double amounts[SIM_COSTS]);

#endif /* IRIS_TOOLS_SIM_COLLECTIVE_H */
