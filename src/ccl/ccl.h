/* SPDX-License-Identifier: MIT
 *
 * The interface of src/ccl: collectives on streams.
 */
#ifndef IRIS_SRC_CCL_CCL_H
#define IRIS_SRC_CCL_CCL_H

#include <iris/ccl.h>

#include "context/context.h"

/* ---- choose.c ---- */

enum iris_ccl_op {
    IRIS_CCL_ALL_REDUCE,
    IRIS_CCL_ALL_GATHER,
    IRIS_CCL_REDUCE_SCATTER,
    IRIS_CCL_ALL_TO_ALL,
    IRIS_CCL_BROADCAST,
    IRIS_CCL_REDUCE,
    /* Messages between pairs of members (ccl_pairs.h). */
    IRIS_CCL_GATHER_TO,
    IRIS_CCL_SCATTER_FROM,
    IRIS_CCL_ALL_GATHERV,
    IRIS_CCL_ALL_TO_ALLV,
    IRIS_CCL_SEND,
    IRIS_CCL_RECV,
    IRIS_CCL_SEND_RECV,
    IRIS_CCL_NUM_OPS,
};

/* Requirements of a variant on buffers, and whether the operation has to be
 * SUM. Variants that do not keep the order of addition must be asked for by
 * name. STAGES: if there are no rows and workspaces have stages, the variant
 * accepts any buffers. */
enum {
    IRIS_CCL_ON_HEAP = 1,
    IRIS_CCL_APART = 2,
    IRIS_CCL_ONLY_SUM = 4,
    IRIS_CCL_BY_NAME = 8,
    IRIS_CCL_ROWS = 16,
    IRIS_CCL_STAGES = 32,
};

struct iris_ccl_kind {
    const char *name;      /* the public function */
    const char *rule_name; /* name in tuning files */
    int reduces;
    int in_parts;  /* without rows, `in` has a part for each member */
    int out_parts; /* without rows, `out` has a part for each member */
    int has_root;
    int pairs;    /* 1: goes by messages between pairs, without variants */
    int exchange; /* enum iris_ccl_exchange for packets in one shot */
    struct {
        iris_ccl_variant_t variant; /* the list ends with IRIS_CCL_AUTO */
        int needs;
    } variants[8];
};
extern const struct iris_ccl_kind iris_i_ccl_kinds[IRIS_CCL_NUM_OPS];

struct iris_ccl_call {
    const char *name; /* the public function */
    enum iris_ccl_op op;
    const void *in;
    void *out;
    size_t count;
    iris_dtype_t dtype;
    iris_reduce_op_t reduce; /* operation of a reduction */
    int root;                /* root, if the collective has one */
    /* For messages: the numbers of elements for and from each member, and their
     * offsets, or NULL if they are contiguous. For send and receive: the ranks
     * of receiver and sender, or -1. */
    const size_t *in_counts;
    const size_t *in_displs;
    const size_t *out_counts;
    const size_t *out_displs;
    size_t out_count;
    int to;
    int from;
    struct iris_ccl_options options;

    /* Values derived from those above. */
    struct iris_group *group;
    struct iris_ccl_workspace *workspace; /* NULL for one member */
    size_t bytes;                         /* bytes of `count` elements */
    size_t in_bytes; /* bytes from a buffer's first element to its last */
    size_t out_bytes;
    size_t in_pitch; /* bytes from one row to the next */
    size_t out_pitch;
    size_t work_bytes; /* total of `bytes` over all rows */
    int kind;          /* enum iris_d_kind of a reduction */
    double scale;      /* factor of a sum's result; 1: none */
    int on_heap;       /* peers can reach in and out, or will be able to */
    int in_on_heap;    /* the same without a broadcast's root, whose input
                        * may be off the heap */
    int stages;        /* input off the heap may go through workspaces */
    int by_packets;    /* 1: on this device only variants with packets reduce
                        * the type */
    int in_place;      /* in and out overlap, in an allowed way */
    iris_ccl_variant_t variant;
    int cus;    /* most workgroups; 0: as many as are useful */
    int staged; /* peers read this rank's input in its workspace (ccl_stage.h)
                 */
};

/* The collective of that name, such as "all_reduce"; -1: not found. */
int iris_i_ccl_find_op(const char *name);

/* The variant that IRIS_CCL sets for the collective; IRIS_CCL_AUTO: none. */
iris_ccl_variant_t iris_i_ccl_set_variant(const iris_t *iris,
                                          enum iris_ccl_op op);

/* The collective's variant of that name, if auto may choose it; IRIS_CCL_AUTO:
 * not found. */
iris_ccl_variant_t iris_i_ccl_find_variant(enum iris_ccl_op op,
                                           const char *name);

/* The table's variant for a call of `bytes` (of `count` elements) in a group of
 * `members` ranks, on GPUs or on CPUs: the choice of auto without a tuning
 * file, for buffers on the heap and with workspaces that hold all packets. */
iris_ccl_variant_t iris_i_ccl_table_variant(enum iris_ccl_op op, int gpu,
                                            int members, size_t bytes);

/* Bytes of a part in one step of a variant with packets. */
size_t iris_i_ccl_step_bytes(const struct iris_ccl_call *call,
                             iris_ccl_variant_t variant);

/* Sets the variant and cus. IRIS_ERR_INVALID: the requested variant is not
 * possible. */
iris_status_t iris_i_ccl_choose(const iris_t *iris, struct iris_ccl_call *call);

/* Number of workgroups for this number of bytes of work on each rank. */
unsigned iris_i_ccl_grid(const iris_t *iris, const struct iris_ccl_call *call,
                         size_t bytes, size_t bytes_per_wg);

/* The best variant of an operation on such a device, for at most this number of
 * members and bytes (of `count` elements). */
struct iris_ccl_rule {
    enum iris_ccl_op op;
    int on_gpu;
    int members; /* the maximum; -4: exactly four */
    size_t bytes;
    iris_ccl_variant_t variant; /* IRIS_CCL_AUTO: the table's variant */
    int cus;                    /* most workgroups; 0: as many as are useful */
};

/* The contents of a tuning file. They take precedence over the library's own
 * values. */
struct iris_ccl_tuning {
    struct iris_extension extension; /* attached to the context */
    struct iris_ccl_rule *rules;
    size_t count;
    uint64_t hash; /* equal on members with the same lines */
};

/* The contents of the file that IRIS_CCL_TUNING names, read once; empty without
 * a file. IRIS_ERR_CONFIG names the wrong line. */
iris_status_t iris_i_ccl_tuning(iris_t *iris,
                                struct iris_ccl_tuning **tuning_p);

#endif /* IRIS_SRC_CCL_CCL_H */
