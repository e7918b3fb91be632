/* SPDX-License-Identifier: MIT
 *
 * cuBLASLt and hipBLASLt without GPUs, for tests of their modules: the
 * calls that those make, with plain loops in f32 on the fake HIP runtime's
 * streams. Each library is a shared object of its own and refuses what the
 * real one would. What it is like is read from the environment at each call:
 *
 *   FAKEBLAS_FAIL  "Matmul:13": this call returns that status.
 *                  "Matmul:13@1+2": only on device 1, and after 2 such calls.
 *                  "none": no call, as if it were not set
 *   FAKEBLAS_NONE  1: there is no algorithm for any product
 *   FAKEBLAS_LOAD  1: the first product by an algorithm waits for all kernels of
 *                  the process, as a driver does that loads a kernel
 *
 * Here is what tests can ask of each, by dlsym().
 */
#ifndef IRIS_TESTS_FAKEBLAS_H
#define IRIS_TESTS_FAKEBLAS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define FAKEBLAS_EXPORT __attribute__((visibility("default")))

/* A product, by columns as the library has it: d = alpha * op(a) * op(b) +
 * beta * c + bias. */
struct fakeblas_product {
    const void *a;
    const void *b;
    const void *c;
    void *d;
    const void *bias; /* a number for each row; NULL: none */
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t lda;
    int64_t ldb;
    int64_t ldc;
    int64_t ldd;
    int trans_a;
    int trans_b;
    float alpha;
    float beta;
    int element; /* 4: f32; 2: f16; 3: bf16 */
};

/* What a library has been asked for so far. */
struct fakeblas_seen {
    struct fakeblas_product last;
    void *stream;  /* of the last */
    int device;    /* that was current then */
    int algorithm; /* of the last; counted from 1 */
    int rows;      /* d's columns, that algorithm was chosen for */
    int products;
    int heuristics;
    int reductions;  /* reduction schemes that its preference allowed, as a
                     * mask; 7: all (..Lt) */
    int workspaces;  /* products that had one, or heuristics that allowed one */
    atomic_int live; /* handles and descriptors that are not destroyed */
};

/* "fakeblas_seen": const struct fakeblas_seen *. */
typedef const struct fakeblas_seen *(*fakeblas_seen_t)(void);

/* ---- What the libraries share ---- */

extern struct fakeblas_seen fakeblas;

/* 0, or the status that FAKEBLAS_FAIL has for this call. */
int fakeblas_fails(const char *call);
int fakeblas_has_none(void);

/* With FAKEBLAS_LOAD, waits if this algorithm is used for the first time. */
void fakeblas_load(uint64_t algorithm);

/* Enqueues it on the stream. 0: the runtime refuses. */
int fakeblas_enqueue(const struct fakeblas_product *product, void *stream);

#endif /* IRIS_TESTS_FAKEBLAS_H */
