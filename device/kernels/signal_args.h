/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of signal.h.
 */
#ifndef IRIS_DEVICE_KERNELS_SIGNAL_ARGS_H
#define IRIS_DEVICE_KERNELS_SIGNAL_ARGS_H

#include <stdint.h>

#include <iris/types.h>

struct iris_signal_args {
    const int64_t *context;
    uint64_t *signal; /* symmetric, in this rank's address space */
    uint64_t value;
    int32_t to_rank;
};

struct iris_wait_args {
    const int64_t *context;
    const uint64_t *signal; /* this rank's own signal */
    iris_cmp_t cmp;
    uint64_t value;
};

struct iris_forward_args {
    const int64_t *context;
    uint64_t *signal;     /* symmetric, in this rank's address space */
    const uint64_t *word; /* this rank's own */
    int32_t to_rank;
};

struct iris_quiet_args {
    const int64_t *context;
};

struct iris_update_args {
    uint64_t at; /* a device address on this rank's heap */
    uint64_t value;
    uint64_t expected;
    uint64_t old; /* device address of a word, which gets the old value */
    int32_t op;   /* enum iris_op */
    int32_t kind; /* enum iris_d_kind */
};

struct iris_transfer_args {
    const int64_t *context;
    void *symmetric;        /* in this rank's address space */
    void *other;            /* the near side, used as it is */
    uint64_t bytes;         /* of each row */
    int64_t symmetric_step; /* bytes from row to row */
    int64_t other_step;
    int32_t rank;
    int32_t gets; /* 0: it puts */
};

#endif /* IRIS_DEVICE_KERNELS_SIGNAL_ARGS_H */
