/* SPDX-License-Identifier: MIT
 *
 * What the tests of collectives share: elements of every type that say whose
 * they are, what reductions of them have to give, and buffers around which
 * nothing may change.
 */
#ifndef IRIS_TESTS_CCL_CASES_H
#define IRIS_TESTS_CCL_CASES_H

#include "support/harness.h"

#define CASES_MEMBERS 8
#define CASES_GUARD 64 /* bytes before and behind each buffer */

/* What is asked of a reduction, over members with these seeds. */
struct case_reduction {
    iris_reduce_op_t op;
    double scale; /* of floats; 0: none */
    const uint64_t *seeds;
    int members;
};

/* An element type. */
struct case_type {
    const char *name;
    iris_dtype_t dtype;
    size_t bytes;
    int is_integer;
    /* `count` elements from number `first` on, of whoever has this seed. */
    void (*fill)(void *to, size_t first, size_t count, uint64_t seed);
    /* Their reduction over the members, in that order: bits. */
    void (*reduce)(void *to, size_t first, size_t count,
                   const struct case_reduction *how);
};

extern const struct case_type case_types[];
extern const size_t case_num_types;

/* Whether the operation is defined for the type. */
int case_reduces(const struct case_type *type, iris_reduce_op_t op);

/* A seed that no other member and round has. */
uint64_t case_seed(int member, uint64_t round);

/* The group's members' seeds, of rounds that all have. */
void case_seeds(const iris_t *iris, const iris_group_t *group, uint64_t round,
                uint64_t *seeds);

/* Host memory for `bytes` with guards, all of it `value`; what is between. */
char *case_host(size_t bytes, int value);
void case_host_free(char *inside);

/* Copies a buffer with its guards to or from device memory. */
iris_status_t case_write(iris_t *iris, char *device, const char *inside,
                         size_t bytes);
iris_status_t case_read(iris_t *iris, char *inside, const char *device,
                        size_t bytes);

/* Whether the two are the same, guards included; says where not. */
int case_same(const char *seen, const char *expected, size_t bytes,
              const char *what);

#endif /* IRIS_TESTS_CCL_CASES_H */
