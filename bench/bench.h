/* SPDX-License-Identifier: MIT
 *
 * The interface between the files of iris bench: options, one rank's state, the
 * groups of operations, the measurement of a point, and the report.
 */
#ifndef IRIS_BENCH_BENCH_H
#define IRIS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/iris.h>

#define BENCH_US_PER_S 1e6

/* The most references that are timed in alternation with an operation. */
#define BENCH_MAX_REFERENCES 4
#define BENCH_MAX_SHAPES 64

/* The pairs that work at once: each rank with the next one, each rank with
 * every other, or rank 0 with rank 1 while the rest are idle. */
enum bench_pairs { BENCH_RING, BENCH_ALL, BENCH_ONE };

enum bench_format { BENCH_TABLE, BENCH_CSV, BENCH_JSON };

/* Ways to call collectives: replay a graph, enqueue calls one by one, or wait
 * for each call. The bits are in the order of bench_calls_names. */
enum bench_calls { BENCH_GRAPH = 1, BENCH_EAGER = 2, BENCH_WAITED = 4 };

/* Element types of the atomics, in the order of bench_type_names. */
enum bench_type { BENCH_U32, BENCH_U64, BENCH_F32, BENCH_NUM_TYPES };

/* A product of (m, k) and (k, n). */
struct bench_shape {
    int64_t m;
    int64_t n;
    int64_t k;
    char text[48]; /* MxNxK */
};

struct bench_options {
    int num_ranks;       /* 0: the launcher's or IRIS_NUM_RANKS, else 2 */
    unsigned workgroups; /* of a kernel; 0: one for each compute unit */
    unsigned block;      /* lanes of a workgroup */
    size_t min_bytes;    /* powers of two */
    size_t max_bytes;
    int size_shift;     /* each size is 1 << size_shift times the last */
    int64_t iterations; /* operations of a point; 0: as `seconds` allow */
    double seconds;     /* time for a point */
    size_t live;        /* allocations alive while malloc is measured */
    int init_ranks;     /* ranks that the init operation starts */
    size_t init_heap_bytes;
    enum bench_pairs pairs;
    enum bench_format format;
    const char *output; /* NULL: stdout */
    const char *ops;    /* comma-separated names, checked; "all" */
    bool types[BENCH_NUM_TYPES];
    unsigned dtypes;   /* of collectives, products: 1 << IRIS_DTYPE_... */
    unsigned variants; /* 1 << IRIS_CCL_... */
    unsigned calls;    /* enum bench_calls */
    struct bench_shape shapes[BENCH_MAX_SHAPES]; /* of products */
    size_t num_shapes;
    bool peer;           /* measure NCCL, RCCL or MPI beside them */
    const char *tune;    /* the tuning file to write; NULL: no tuning */
    double tune_seconds; /* time limit of the tuning */
    double spread; /* allowed spread of its repeats, as a share of the least */
    bool graph;    /* capture enqueued operations if possible */
    bool progress;
    bool targets;
};

/* The result of one point. `rate` is 0 and `reference` is NULL in groups that
 * do not have them. */
struct bench_row {
    const char *group;
    const char *op;
    const char *variant; /* element type or the like; "" without variants */
    size_t bytes;        /* of one operation; 0 if it has no size */
    unsigned grid;       /* workgroups, where points differ in them, else 0 */
    enum bench_pairs pairs;
    double median_us; /* time of one operation on the slowest rank */
    double min_us;
    double p90_us;
    double rate; /* of one rank */
    const char *rate_unit;
    const char *reference; /* the first reference */
    double reference_rate;
    double ratio;                               /* rate / reference_rate */
    double references_us[BENCH_MAX_REFERENCES]; /* medians; 0: not measured */
    uint64_t wrong;                             /* wrong values on all ranks */

    /* For collectives only. */
    const char *calls; /* one of bench_calls_names; NULL: not a collective */
    iris_dtype_t dtype;
    iris_ccl_variant_t how;
    double bus_rate; /* rate of each link, as NCCL's tests count it */

    /* For fused operations only. They also set dtype. */
    const struct bench_shape *shape; /* NULL: not a fused operation */
    const char *peer;                /* NULL: no other library */
};

/* The process that calls iris_spawn() shares this memory with its ranks. */
struct bench_shared {
    uint64_t wrong;
    double init_us[8];
    char init_variant[24];
    int init_count;
    int init_ranks;
    double init_shm_bytes; /* increase of the use of /dev/shm */
};

struct bench;
struct bench_report;
struct bench_peer;

/* The operations that a function enqueues, captured for the current point. */
struct bench_graph {
    iris_status_t (*one)(struct bench *b, const void *arg);
    iris_graph_t *graph; /* NULL: not captured */
};

/* One rank while it runs. */
struct bench {
    iris_t *iris;
    struct bench_options options; /* a copy, which targets.c changes */
    struct bench_shared *shared;
    struct bench_report *report; /* NULL except on rank 0 */
    int rank;
    int num_ranks;
    unsigned workgroups;
    size_t points_done; /* for the progress line */
    size_t points;
    int64_t start_ns;
    void *state; /* state of the open group */
    /* Graphs of the operation and its references. */
    struct bench_graph graphs[1 + BENCH_MAX_REFERENCES];
    uint32_t graph_ops;      /* operations in each graph of this point */
    bool no_graph;           /* this point cannot be captured */
    bool wait_each;          /* wait for each call of this point */
    struct bench_peer *peer; /* NULL: no other library */
};

/* The parameter that distinguishes the points of a group's operations. */
enum bench_axis {
    BENCH_BY_SIZE,
    BENCH_BY_TYPE,
    BENCH_BY_GRID,
    BENCH_BY_SHAPE, /* products: sizes and element type */
    BENCH_BY_CALL,  /* collectives: size, element type, variant, calls */
    BENCH_ONCE
};

/* Operations of one kind. `open` and `close` are collective and may be NULL.
 * `run` gets op, variant and bytes in *row_p, and fills in times, rate and
 * wrong. It may skip the point by leaving median_us 0. */
struct bench_group {
    const char *name;
    const char *text;
    const char *const *ops; /* names, NULL at the end */
    enum bench_axis axis;
    size_t min_bytes; /* least size of a point */
    iris_status_t (*open)(struct bench *b);
    iris_status_t (*run)(struct bench *b, size_t op, struct bench_row *row_p);
    void (*close)(struct bench *b);
};

extern const struct bench_group bench_lanes, bench_bulk, bench_depth,
    bench_kernels, bench_atomics, bench_collectives, bench_messages,
    bench_fused, bench_sync, bench_launch, bench_stream, bench_heap, bench_fill,
    bench_random, bench_tile_products, bench_wg_tiles, bench_sketch,
    bench_nodes, bench_init, bench_plan;

/* All groups, with NULL at the end. */
extern const struct bench_group *const bench_groups[];
extern const char *const bench_type_names[];
extern const char *const bench_pairs_names[];
extern const char *const bench_calls_names[];
extern const char *const bench_dtype_names[];   /* by iris_dtype_t */
extern const char *const bench_variant_names[]; /* by iris_ccl_variant_t */

/* ---- options.c ---- */

/* Fills *options_p. Ends the program after --help or --list (0), or after a
 * wrong option (2). */
void bench_options_parse(int argc, char **argv,
                         struct bench_options *options_p);

/* ---- run.c ---- */

/* Whether a list such as "put,atomics" selects `name`, which is in `group`; and
 * whether an item of a list names a group or an operation. */
bool bench_selected(const char *ops, const struct bench_group *group,
                    const char *name);
bool bench_is_known(const char *item, size_t length);

/* ---- measure.c, enqueue.c ---- */

/* The work that is timed: run() does `reps` operations on this rank, or those
 * of the reference with this number (from 1), and returns when they are done.
 * All ranks call it; on idle ones it returns at once. */
struct bench_work {
    iris_status_t (*run)(struct bench *b, const void *arg, uint32_t reps,
                         int reference);
    const void *arg;
    uint32_t max_reps; /* 0: no limit */
    uint32_t per_rep;  /* operations counted for each of reps; 0: one */
    uint32_t step;     /* reps come in multiples of it; 0: any number */
    int references;    /* references that run() can do, too */
};

/* Does the operations that one(b, arg) enqueues on the default stream `reps`
 * times, and waits until they are done. `arg` is the same throughout a point. A
 * point has at most 1 + BENCH_MAX_REFERENCES such functions. */
typedef iris_status_t (*bench_enqueue_fn)(struct bench *b, const void *arg);
iris_status_t bench_enqueue(struct bench *b, bench_enqueue_fn one,
                            const void *arg, uint32_t reps);

/* Destroys the graphs at the end of a point. */
void bench_graphs_drop(struct bench *b);

/* Warms up, finds out how many operations make a batch long enough, and times
 * batches that all ranks begin together. The slowest rank's time of each batch
 * counts. Fills in times and ratio. Collective. */
iris_status_t bench_measure(struct bench *b, const struct bench_work *work,
                            struct bench_row *row_p);

/* ---- tensor.c ---- */

/* b->state of the operations that fill a tensor. */
struct bench_tensor {
    iris_tensor_t memory; /* on the heap, of the largest size */
    unsigned char *host;
};

struct bench_tensor_op {
    int what;
    iris_dtype_t dtype;
};

/* One size of one of these operations. */
struct bench_tensor_point {
    const struct bench_tensor_kind *kind;
    int what;
    iris_tensor_t out; /* as many elements as the point has */
};

struct bench_tensor_kind {
    const struct bench_tensor_op *ops;
    uint32_t max_enqueued;
    bench_enqueue_fn enqueue; /* `arg` is the point */
    /* Adds the number of wrong elements on all ranks. Collective. */
    iris_status_t (*verify)(struct bench *b,
                            const struct bench_tensor_point *point,
                            uint64_t *wrong_p);
};

iris_status_t bench_tensor_open(struct bench *b, size_t host_bytes);
void bench_tensor_close(struct bench *b);
iris_status_t bench_tensor_run(struct bench *b,
                               const struct bench_tensor_kind *kind, size_t op,
                               struct bench_row *row_p);

/* Enqueues iris_memset of a point's memory. */
iris_status_t bench_tensor_memset(struct bench *b, const void *arg);

/* Fills in times from single operations that this rank timed. Each figure is
 * the slowest rank's. Sorts `samples`. Idle ranks pass count 0. Collective. */
iris_status_t bench_sampled(struct bench *b, double *samples, size_t count,
                            struct bench_row *row_p);

/* Replaces each value by the maximum, or by the sum, over all ranks.
 * Collective. */
iris_status_t bench_max(struct bench *b, double *values, size_t count);
iris_status_t bench_sum(struct bench *b, uint64_t *value);

/* Compute the rate of moving `bytes` bytes, or of operations, from medians. */
void bench_rate_bytes(struct bench_row *row, size_t bytes, const char *against);
void bench_rate_ops(struct bench_row *row, double median_us);

/* A quantile of `samples`, 0.5 for the median. Sorts `samples`. */
double bench_quantile(double *samples, size_t count, double fraction);

/* CLOCK_MONOTONIC. */
int64_t bench_now_ns(void);

/* ---- Pairs of ranks ---- */

/* The ranks that a rank works with: `count` ranks from `first` on, where rank 0
 * follows the last one. An idle rank has count 0. */
struct bench_peers {
    int first;
    int count;
};
struct bench_peers bench_peers_of(const struct bench *b, int rank);
bool bench_is_peer(const struct bench *b, int rank, int peer);

/* Copies between host memory and this rank's heap, and waits. */
iris_status_t bench_copy(struct bench *b, void *dst, const void *src,
                         size_t bytes);

/* ---- collectives.c, ccl_values.c ---- */

/* The first ones are those of enum iris_ccl_op. */
enum bench_ccl_op {
    BENCH_ALL_REDUCE,
    BENCH_ALL_GATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALL_TO_ALL,
    BENCH_BROADCAST,
    /* For the group of messages. */
    BENCH_REDUCE,
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_ALL_TO_ALLV,
    BENCH_SEND_RECV
};

/* One collective of all ranks, by this library or a peer: it sums, or its root
 * is rank 0. */
struct bench_ccl {
    int num_ranks;
    enum bench_ccl_op op;
    size_t count; /* elements, as the call takes it */
    iris_dtype_t dtype;
    iris_ccl_variant_t variant;
    int num_cus;
    void *in; /* on the heap, like out */
    void *out;
};

/* Whether the operation has the variant and, with `ordered`, whether the
 * variant gives the same bits as the others. */
bool bench_ccl_has(enum bench_ccl_op op, iris_ccl_variant_t variant,
                   bool ordered);

/* The call whose larger buffer has at most `bytes` bytes, with the buffers of
 * the open group. */
struct bench_ccl bench_ccl_call(const struct bench *b, enum bench_ccl_op op,
                                size_t bytes, iris_dtype_t dtype);

/* Prepares collectives, so that they can be captured, and finds out whether the
 * device has graphs. Collective. */
iris_status_t bench_ccl_prepare(struct bench *b);

/* Enqueues the call on the default stream, with this library or with a peer
 * that has streams. */
iris_status_t bench_ccl_enqueue(struct bench *b, const struct bench_ccl *call);
iris_status_t bench_ccl_enqueue_peer(struct bench *b,
                                     const struct bench_ccl *call);

/* Times the call, in alternation with the peer's if there is a peer.
 * Collective. */
iris_status_t bench_ccl_time(struct bench *b, const struct bench_ccl *call,
                             struct bench_row *row_p);

/* The share of the larger buffer that each rank's link carries, as NCCL's own
 * tests count it. */
double bench_ccl_bus_share(const struct bench_ccl *call);

/* Fill `in`, and count wrong elements of `out`. `host` has room for the larger
 * buffer. Both wait. */
iris_status_t bench_ccl_fill(struct bench *b, const struct bench_ccl *call,
                             void *host);
iris_status_t bench_ccl_check(struct bench *b, const struct bench_ccl *call,
                              void *host, uint64_t *wrong_p);

/* ---- bench_fused.c, peer_cblas.c ---- */

/* Indices of fused operations' references_us. */
enum { BENCH_UNFUSED, BENCH_PRODUCT, BENCH_COLLECTIVE, BENCH_PEER };

/* The longer of product and collective as a share of the fused time. It is 1 if
 * the fused operation hides the other one completely. */
double bench_bound_share(const struct bench_row *row);

/* Bytes of heap that products of these shapes need. */
size_t bench_fused_bytes(const struct bench_options *options);

/* CBLAS's product out (m, n) = a (m, k) b (k, n) of dense f32 matrices. NULL if
 * no CBLAS library is installed. */
typedef void (*bench_cblas_fn)(const struct bench_shape *shape, const float *a,
                               const float *b, float *out);
bench_cblas_fn bench_peer_cblas(int num_ranks, const char **name_p);

/* ---- tune.c ---- */

/* Measures the variants of the selected collectives. Writes the tuning file,
 * unless repeats disagree. Collective; all ranks get the same status. */
iris_status_t bench_tune(struct bench *b);

/* ---- peer.c, peer_mpi.c, peer_nccl.c ---- */

/* The work of one of two ranks, `reps` times. */
struct bench_far_call {
    int partner;
    bool leads; /* this rank puts, or sends first */
    size_t bytes;
    uint32_t count; /* puts before a flush */
    uint32_t reps;
};

/* One-sided puts and messages between two ranks. The functions return false if
 * MPI returned an error. open() and close() are collective. */
struct bench_far {
    bool (*open)(size_t bytes);
    bool (*put_flush)(const struct bench_far_call *call);
    bool (*ping_pong)(const struct bench_far_call *call);
    void (*close)(void);
};

/* Another library, with its collectives for the job's device. Each rank has
 * one. A function that fails has printed the reason on rank 0. */
struct bench_peer {
    const char *name;
    bool on_stream; /* calls enqueue; else they are done when they return */
    bool (*has)(const struct bench_ccl *call); /* this element type */
    bool (*call)(struct bench_peer *peer, const struct bench_ccl *call);
    void (*close)(struct bench_peer *peer);
    const struct bench_far *far; /* NULL: no puts and messages */
};

/* Opens the peer for this job. Without one, prints the reason and returns
 * IRIS_ERR_UNSUPPORTED. Collective: either all ranks get a peer or no rank
 * does. */
iris_status_t bench_peer_open(struct bench *b);
void bench_peer_close(struct bench *b);

/* Return NULL and a static string in *why_p if the peer is not available. The
 * second call is collective. */
struct bench_peer *bench_peer_mpi(int num_ranks, const char **why_p);
struct bench_peer *bench_peer_nccl(struct bench *b, const char **why_p);

/* ---- report.c, table.c ---- */

/* Open and close the output on rank 0, and write rows in between. Opening and
 * closing are collective: all ranks get IRIS_ERR_SYSTEM if it cannot be
 * written. */
iris_status_t bench_report_open(struct bench *b);
void bench_report_row(struct bench *b, const struct bench_row *row);
iris_status_t bench_report_close(struct bench *b);

/* One row of --targets; `limit` and `held` are "" without a target. */
struct bench_verdict {
    const char *target;
    const char *limit;
    const char *measured;
    const char *held;
};
void bench_report_verdict(struct bench *b, const struct bench_verdict *verdict);

/* The progress line on a terminal, once a run is long; NULL clears it. */
void bench_progress(struct bench *b, const struct bench_row *row);

/* "64", "4K", "1M", "2G"; text has room for 24 characters. */
const char *bench_bytes_string(size_t bytes, char *text);

/* ---- run.c, targets.c, init.c ---- */

/* Runs the selected operations, or the targets, on this rank. */
iris_status_t bench_run(struct bench *b);
iris_status_t bench_run_targets(struct bench *b);

/* Runs one operation at all its points and hands each row to row_fn, on every
 * rank. */
typedef void (*bench_row_fn)(struct bench *b, const struct bench_row *row);
iris_status_t bench_run_op(struct bench *b, const struct bench_group *group,
                           size_t op, bench_row_fn row_fn);

/* Starts and ends jobs, before the job that reports, and fills *shared_p. */
iris_status_t bench_measure_init(const struct iris_config *config,
                                 const struct bench_options *options,
                                 struct bench_shared *shared_p);

/* Removes the heap-bases file that a rank wrote at `prefix`. */
void bench_remove_bases(const char *prefix, int rank);

#endif /* IRIS_BENCH_BENCH_H */
