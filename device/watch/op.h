/* SPDX-License-Identifier: MIT
 *
 * The ids of device operations, for observers on the CPU and for traces.
 */
#ifndef IRIS_DEVICE_OP_H
#define IRIS_DEVICE_OP_H

/* Values 0 to 13 are upstream Iris's trace event ids; the others are ours. */
enum iris_op {
    IRIS_OP_LOAD = 0,
    IRIS_OP_STORE = 1,
    IRIS_OP_GET = 2,
    IRIS_OP_PUT = 3,
    IRIS_OP_COPY = 4,
    IRIS_OP_ATOMIC_ADD = 5,
    IRIS_OP_ATOMIC_SUB = 6,
    IRIS_OP_ATOMIC_CAS = 7,
    IRIS_OP_ATOMIC_XCHG = 8,
    IRIS_OP_ATOMIC_XOR = 9,
    IRIS_OP_ATOMIC_AND = 10,
    IRIS_OP_ATOMIC_OR = 11,
    IRIS_OP_ATOMIC_MIN = 12,
    IRIS_OP_ATOMIC_MAX = 13,
    IRIS_OP_FENCE = 64,
    IRIS_OP_OWN = 1024, /* and more: the program's own, except the next */
    IRIS_OP_WAIT = 3072,
    IRIS_OP_BARRIER = 3073,
    IRIS_OP_COLLECTIVE = 3074, /* a collective of a workgroup (wg_ccl.h) */
};

#endif /* IRIS_DEVICE_OP_H */
