/* SPDX-License-Identifier: MIT
 *
 * Rules of which variant is best, and the file that has some.
 */
#ifndef IRIS_SRC_CCL_TUNING_H
#define IRIS_SRC_CCL_TUNING_H

#include "ccl/ccl_types.h"

/* What is best for an operation on such a device, in groups of at most so many
 * members and for at most so many bytes (of `count` elements). */
struct iris_ccl_rule {
    enum iris_ccl_op op;
    int on_gpu;
    int members;
    size_t bytes;
    iris_ccl_variant_t variant;
    int cus; /* workgroups at most; 0: as many as are worth it */
};

/* The rules of a tuning file, which come before the library's own. */
struct iris_ccl_tuning {
    struct iris_ccl_rule *rules;
    size_t count;
    uint64_t hash; /* the same on all members that have the same rules */
};

/* Reads the file that IRIS_CCL_TUNING names. IRIS_ERR_CONFIG says
 * which line is wrong. */
iris_status_t iris_i_ccl_read_tuning(const iris_t *iris,
                                     struct iris_ccl_tuning *tuning_p);

#endif /* IRIS_SRC_CCL_TUNING_H */
