/* SPDX-License-Identifier: MIT
 *
 * Collectives on streams: all_reduce, all_gather, reduce_scatter, all_to_all,
 * broadcast, reduce, gather and scatter between the members of a group, with
 * parts of any size, and messages between two of them.
 *
 *     struct iris_ccl_options options;
 *
 *     iris_ccl_options_init(&options);
 *     options.stream = stream;
 *     status = iris_all_reduce(iris, data, data, count, IRIS_DTYPE_F32,
 *                              IRIS_REDUCE_SUM, &options);
 *     status = iris_stream_synchronize(iris, stream);
 *
 * @use local; never blocks; apart
 * @param in  elements that the call reads
 * @param out  elements that the call writes
 */
#ifndef IRIS_CCL_H
#define IRIS_CCL_H

#include <iris/group.h>
#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Algorithms of collectives: X(NAME, value, name). Values never change meaning;
 * later versions add new ones at the end. */
/* clang-format off */
#define IRIS_CCL_VARIANT_ROWS(X)                                               \
    X(AUTO,            0, "auto")            /* the library chooses */         \
    X(ONE_SHOT,        1, "one_shot")        /* each reads all inputs */       \
    X(TWO_SHOT,        2, "two_shot")        /* each combines one share */     \
    X(ONE_SHOT_PACKET, 3, "one_shot_packet") /* data travels with flags */     \
    X(TWO_SHOT_PACKET, 4, "two_shot_packet")                                   \
    X(DIRECT,          5, "direct")          /* reads peers' inputs */         \
    X(PACKET,          6, "packet")                                            \
    X(PUSH,            7, "push")            /* writes to peers' outputs */    \
    X(PULL,            8, "pull")            /* reads from peers' inputs */    \
    X(ATOMIC,          9, "atomic")          /* adds to all outputs */         \
    X(SPINLOCK,       10, "spinlock")        /* adds to them under locks */    \
    X(RING,           11, "ring")            /* from neighbour to neighbour */
/* clang-format on */

/** IRIS_CCL_AUTO and so on. Each collective has these variants:
 *    all_reduce      ONE_SHOT, TWO_SHOT, ONE_SHOT_PACKET, TWO_SHOT_PACKET
 *    reduce_scatter  DIRECT, PACKET
 *    all_gather      PUSH, PULL, PACKET
 *    all_to_all      PUSH, PULL, PACKET
 *    broadcast       PUSH, PULL, PACKET
 *    reduce          all_reduce's, by the field and the setting of that
 *  The other calls have no variants. All variants of a call give the same bits.
 *  Those with packets accept buffers that are not on the heap, and always work
 *  in place. On a CPU the same is true of all but ONE_SHOT, unless options.rows
 *  is set.
 *
 *  all_reduce has three more variants, for comparison. AUTO never takes them,
 *  because they do not add in the group's order, and round to the element's
 *  type after each addition:
 *    ATOMIC    SUM only; the bits differ from run to run and between members
 *    SPINLOCK  the same as ATOMIC
 *    RING      any operation; the bits depend on the count
 *  All three need buffers on the heap. ATOMIC and SPINLOCK also need `in` and
 *  `out` apart. `out` need not be zero before the call. */
typedef enum iris_ccl_variant {
#define IRIS_CCL_VARIANT_ENUM(NAME, value, name) IRIS_CCL_##NAME = value,
    IRIS_CCL_VARIANT_ROWS(IRIS_CCL_VARIANT_ENUM)
#undef IRIS_CCL_VARIANT_ENUM
} iris_ccl_variant_t;

/** Name of a variant, such as "two_shot". Never NULL; the string is static. An
 *  unknown value gives "?".
 *  @param variant  the variant */
IRIS_API const char *iris_ccl_variant_name(iris_ccl_variant_t variant);

/** Memory on the heap that one group's collectives use to synchronize and to
 *  pass data. Opaque. */
typedef struct iris_ccl_workspace iris_ccl_workspace_t;

/** The rows that each member combines, in calls that divide rows among members:
 *  all_reduce, and reduce_scatter with own_rows. Both choices give the same
 *  bits. */
typedef enum iris_ccl_distribution {
    IRIS_CCL_DISTRIBUTION_AUTO = 0,
    IRIS_CCL_STRIDING = 1, /**< Member i of n has rows i, i + n, i + 2 n, ... */
    IRIS_CCL_BLOCK = 2 /**< Member i of n has the i-th of n blocks of rows. The
                            first (rows mod n) blocks have one row more than the
                            others, as in iris/ops.h. AUTO takes this one. */
} iris_ccl_distribution_t;

/** Options of a call. All members pass the same options, except stream and
 *  workspace. Later versions add fields at the end. */
struct iris_ccl_options {
    size_t size;                     /**< Set by iris_ccl_options_init(). */
    iris_stream_t *stream;           /**< NULL: the default stream. */
    iris_group_t *group;             /**< NULL: all ranks. */
    iris_ccl_workspace_t *workspace; /**< NULL: the group's own. */
    int num_cus; /**< Largest number of workgroups; 0: the library chooses. */
    iris_ccl_variant_t all_reduce; /**< AUTO: IRIS_CCL decides. */
    iris_ccl_variant_t all_gather;
    iris_ccl_variant_t reduce_scatter;
    iris_ccl_variant_t all_to_all;
    iris_ccl_variant_t broadcast;
    int async;   /**< 1: no barrier at the end. The result is there, but members
                      may still read this rank's input. */
    size_t rows; /**< Number of rows of the buffers (see below); 0: no rows. */
    size_t in_stride; /**< Elements from one row of in to the next; 0: dense. */
    size_t
        out_stride; /**< Elements from one row of out to the next; 0: dense. */
    iris_ccl_distribution_t distribution; /**< How members share rows. */
    int own_rows; /**< 1, for reduce_scatter with rows: in and out have the same
                        shape, and each member writes its own rows. */
    int num_rings; /**< For RING. 2: half of the data goes around the other way;
                        0 means 1. */
    double scale;  /**< For SUM of floats and complex numbers: a factor of the
                        result. 0 means 1. */
};

/** Sets every field to NULL or 0. Local, cannot fail.
 *  @param options  the struct to set */
#define iris_ccl_options_init(options) \
    iris_ccl_options_init_sized((options), sizeof *(options))

/** iris_ccl_options_init() for a struct of `size` bytes, which is the size in
 *  the caller's header. See iris_config_init_sized(). */
IRIS_API void iris_ccl_options_init_sized(struct iris_ccl_options *options,
                                          size_t size);

/* ---- Collectives ------------------------------------------------------------
 *
 * All members of the group make the same calls in the same order, each with its
 * own buffers. A call enqueues on the stream and does not block the host. It
 * blocks only if the stream is full, or if it is the first call of a group,
 * which makes the group's workspace (see below). When the stream has completed
 * the call, the result is there, and the rank may write its own buffers again.
 * Calls need no barrier between them.
 *
 * Any count is legal. With 0, a call moves nothing and ignores its buffers, but
 * it is a call like any other: the members compare it. `in` and `out` are
 * aligned for their elements, and are memory that this rank's kernels can
 * access. Each call says if they may be the same place; otherwise they do not
 * overlap. This is the same on all members.
 *
 * Buffers on the heap (iris_malloc()) need no copies. Elsewhere:
 *   - On a CPU, a member with buffers off the heap copies its input through its
 *     workspace, which is at most a few times slower. Some members' buffers may
 *     be on the heap and others' off it, unless a tuning file names ONE_SHOT for
 *     the call.
 *   - On a GPU, variants with packets carry the data, at half the bandwidth.
 *     Either all members' buffers are on the heap, or none.
 *
 * Reductions are deterministic. Each element is combined in the group's order,
 * member 0 first, for every variant, number of workgroups, place in the buffer
 * and device. Rules by type:
 *   - f16, bf16, f8e4m3 and f8e5m2 are added and multiplied as f32, and rounded
 *     once at the end, to the nearest, as PyTorch converts them. An f8e4m3 that
 *     rounds beyond 448 is NaN, because the type has no infinity. GPUs reduce the
 *     two 8-bit types by packets only, without options.rows. ATOMIC, SPINLOCK and
 *     RING do not take them.
 *   - AVG and options.scale take floating-point and complex types, and not
 *     ATOMIC, SPINLOCK or RING. The sum is multiplied once, before that
 *     rounding: AVG by 1 / members, a SUM by options.scale. The factor and the
 *     product are rounded to f32, for f64 and complex128 to f64. A program that
 *     has premultiplied sums (ncclRedOpCreatePreMulSum(), PREMUL_SUM) passes
 *     their scalar as scale. It is the same on all members, and a sum of f32
 *     that overflows stays infinite.
 *   - Integers wrap around.
 *   - MIN and MAX of a NaN and a number give the number. If the operands are +0
 *     and -0, they give the earlier member's.
 *   - A NaN result is always the same NaN, quiet and positive.
 *   - BAND, BOR and BXOR take integers and bool. bool has no other reductions,
 *     and complex types have only SUM and AVG.
 *
 * NULL options mean the defaults of iris_ccl_options_init().
 *
 * IRIS_ERR_INVALID      in or out is NULL (and count is not 0), misaligned,
 *                       past the end of a heap, overlaps, or is pageable host
 *                       memory, which the GPU cannot access (the library asks
 *                       the runtime once for a range); there is no such
 *                       type, operation for the type, root, group, stream or
 *                       workspace; a field of options is out of range (the
 *                       message says what is allowed); the collective does not
 *                       have the variant, or the variant needs buffers on the
 *                       heap or apart
 * IRIS_ERR_STATE        the workspace was last used on another stream whose work
 *                       may not have completed (a captured call uses it when the
 *                       graph is launched); or the first call of a group of some
 *                       ranks came before iris_ccl_prepare()
 * IRIS_ERR_UNREACHABLE  a member's heap is not mapped here
 * IRIS_ERR_UNSUPPORTED  the library has no kernels for this GPU
 * IRIS_ERR_DEVICE       the GPU or its runtime failed
 * IRIS_ERR_PEER_LOST    the stream was full, and a peer died meanwhile
 * IRIS_ERR_TIMEOUT      the stream was full, and the deadline passed
 *
 * The first call of a group also returns the statuses of
 * iris_all_reduce_preamble().
 *
 * Members that make different calls all get IRIS_ERR_MISMATCH from
 * iris_stream_synchronize(). The message names the other rank, both calls with
 * their counts and types, and which call of the group it was. A member that
 * does not come is IRIS_ERR_TIMEOUT or IRIS_ERR_PEER_LOST there. The workspace
 * cannot be used after such an error: destroy it and create another, or
 * destroy the group.
 *
 * @use group; blocks at first; captured; CPU nodes
 * @param count  elements of each part */

/** out[i] is the reduction of all members' in[i], for i < count. `in` may be
 *  `out`, but not with ONE_SHOT. */
IRIS_API iris_status_t iris_all_reduce(iris_t *iris, const void *in, void *out,
                                       size_t count, iris_dtype_t dtype,
                                       iris_reduce_op_t op,
                                       const struct iris_ccl_options *options);

/** Gathers the inputs: `in` has count elements, and `out` receives those of
 *  every member, in group order. `in` may be this rank's own part of `out`. */
IRIS_API iris_status_t iris_all_gather(iris_t *iris, const void *in, void *out,
                                       size_t count, iris_dtype_t dtype,
                                       const struct iris_ccl_options *options);

/** `in` has one part of count elements for each member, in group order. out[i]
 *  is the reduction of element i of all members' parts for this member. `out`
 *  may be this rank's own part of `in`. */
IRIS_API iris_status_t iris_reduce_scatter(
    iris_t *iris, const void *in, void *out, size_t count, iris_dtype_t dtype,
    iris_reduce_op_t op, const struct iris_ccl_options *options);

/** `in` has count elements for each member, in group order, and `out` receives
 *  count elements from each. `in` may be `out`, but not with PUSH and PULL. */
IRIS_API iris_status_t iris_all_to_all(iris_t *iris, const void *in, void *out,
                                       size_t count, iris_dtype_t dtype,
                                       const struct iris_ccl_options *options);

/** `out` receives the count elements in `in` of the member with index `root`.
 *  The call ignores the other members' `in`. `in` may be `out`. The place of
 *  the members' `out` decides the variant; the root's `in` may be off the heap,
 *  unless options.rows is set. (iris_broadcast() broadcasts host memory.) */
IRIS_API iris_status_t iris_ccl_broadcast(
    iris_t *iris, const void *in, void *out, size_t count, iris_dtype_t dtype,
    int root, const struct iris_ccl_options *options);

/** out[i] of the member with index `root` is the reduction of all members'
 *  in[i]. The call ignores the other members' `out`. `in` may be `out`, but not
 *  with ONE_SHOT. ATOMIC, SPINLOCK and RING count as AUTO. */
IRIS_API iris_status_t iris_reduce(iris_t *iris, const void *in, void *out,
                                   size_t count, iris_dtype_t dtype,
                                   iris_reduce_op_t op, int root,
                                   const struct iris_ccl_options *options);

/* ---- Messages ---------------------------------------------------------------
 *
 * The calls below move elements between pairs of members, in messages. Buffers
 * may be in any memory, on all devices. A member reads a message directly from
 * the sender's buffer if that is on the heap, is reachable, and is larger than
 * one piece of the workspace. Otherwise the message passes through the
 * workspace, piece by piece. A message may be larger than the workspace. Fields
 * of options for variants and async have no effect; rows must be 0. A buffer
 * without elements on this rank may be NULL.
 *
 * Counts and displacements are in elements. A displacement is the start of a
 * member's part in a buffer; NULL means that the parts follow one another in
 * the group's order. The call does not use the arrays after it returns. Parts
 * of an `out` must not overlap; the calls do not check this.
 *
 * @use group; blocks at first; captured; CPU nodes
 * @param counts, in_counts, out_counts  elements of each member, in group order
 * @param displs, in_displs, out_displs  first element of each part; NULL: dense
 * @param to, from  index of the other member in the group */

/** `out` of the member with index `root` receives count elements of each member,
 *  in group order. The call ignores the other members' `out`. The root's `in`
 *  may be its own part of `out`. */
IRIS_API iris_status_t iris_gather(iris_t *iris, const void *in, void *out,
                                   size_t count, iris_dtype_t dtype, int root,
                                   const struct iris_ccl_options *options);

/** `in` of the member with index `root` has count elements for each member, in
 *  group order, and `out` receives this member's. The call ignores the other
 *  members' `in`. The root's `out` may be its own part of `in`. */
IRIS_API iris_status_t iris_scatter(iris_t *iris, const void *in, void *out,
                                    size_t count, iris_dtype_t dtype, int root,
                                    const struct iris_ccl_options *options);

/** `out` receives counts[i] elements from each member i, at displs[i]. `in` has
 *  this member's elements. All members pass the same counts. `in` may be this
 *  rank's own part of `out`. */
IRIS_API iris_status_t iris_all_gatherv(iris_t *iris, const void *in, void *out,
                                        const size_t *counts,
                                        const size_t *displs,
                                        iris_dtype_t dtype,
                                        const struct iris_ccl_options *options);

/** `in` has in_counts[i] elements for each member i, at in_displs[i]. `out`
 *  receives out_counts[i] elements from member i, at out_displs[i]. `in` and
 *  `out` do not overlap. If two members' counts for each other differ, both get
 *  IRIS_ERR_MISMATCH. Members whose counts agree with all others may get
 *  IRIS_OK, and then have all their elements. */
IRIS_API iris_status_t iris_all_to_allv(iris_t *iris, const void *in,
                                        const size_t *in_counts,
                                        const size_t *in_displs, void *out,
                                        const size_t *out_counts,
                                        const size_t *out_displs,
                                        iris_dtype_t dtype,
                                        const struct iris_ccl_options *options);

/** Sends count elements to the member with index `to`, which calls iris_recv().
 *  The other members make no call. Messages from one member to another match in
 *  the order of the calls on one workspace, also those of 0 elements. Both pass
 *  the same count, type and num_cus.
 *
 *  The call does not block the host. A small message completes when it is in
 *  the receiver's workspace. A large message completes when the receiver has
 *  taken it, so later work on the stream waits for the matching iris_recv(). If
 *  two ranks first send large messages to each other on one stream, and then
 *  receive, they wait for each other until a deadline: use iris_send_recv().
 *
 *  If the receiver expects another count or type, it gets IRIS_ERR_MISMATCH.
 *  The sender gets it, too: for this message, or, if a small message has
 *  already completed, for its next message to that member.
 *  @use pair */
IRIS_API iris_status_t iris_send(iris_t *iris, const void *in, size_t count,
                                 iris_dtype_t dtype, int to,
                                 const struct iris_ccl_options *options);

/** Receives count elements from member index `from`. See iris_send().
 *  @use pair */
IRIS_API iris_status_t iris_recv(iris_t *iris, void *out, size_t count,
                                 iris_dtype_t dtype, int from,
                                 const struct iris_ccl_options *options);

/** Sends to one member and receives from another, or from the same one, at the
 *  same time. So members in a ring, or pairs that exchange messages of any size,
 *  do not wait for each other in a cycle. Each half matches a send, a receive
 *  or another send_recv. `to` and `from` may both be this member, with equal
 *  counts.
 *  @use pair
 *  @param in_count, out_count  elements to send and to receive */
IRIS_API iris_status_t iris_send_recv(iris_t *iris, const void *in,
                                      size_t in_count, int to, void *out,
                                      size_t out_count, int from,
                                      iris_dtype_t dtype,
                                      const struct iris_ccl_options *options);

/* ---- Rows -------------------------------------------------------------------
 *
 * With options.rows = M, a call takes matrices on the heap. Its count N is the
 * number of elements of a row, and W the number of members:
 *   all_reduce, broadcast  in and out have M rows of N
 *   all_gather      in has M rows of N; out has W * M rows, those of all members
 *   all_to_all      both have M rows of W * N; columns r * N to (r + 1) * N go
 *                   to member r, and come from it
 *   reduce_scatter  in has W * M rows of N, and out has M; with own_rows both
 *                   have M
 * The variants are TWO_SHOT, PUSH, PULL and DIRECT. Strides are the same on all
 * members. In place, in and out have the same stride. */

/* ---- Memory -----------------------------------------------------------------
 *
 * Workspaces come from one allocation on the heap, of IRIS_CCL_SIZE bytes, at
 * most an eighth of the heap. The first call of a group of all ranks makes this
 * allocation, and the first call of each group makes the group's workspace.
 * Both block the host until all members have called, and wait for the default
 * stream, which must not be in a capture.
 *
 * @use group; blocks; refused */

/** Makes the allocation for workspaces. Collective over the job; blocks the
 *  host. Call it before the first collective of a group that is not all of the
 *  job. Later calls do nothing, on all ranks.
 *
 *  IRIS_ERR_CONFIG       the file that IRIS_CCL_TUNING names cannot be read, or
 *                        one of its lines (the message says which) is not a rule
 *  IRIS_ERR_NO_MEMORY    the heap has no space for it
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE,
 *  IRIS_ERR_DEVICE
 *  @use job */
IRIS_API iris_status_t iris_ccl_prepare(iris_t *iris);

/** Makes the workspace that a call with these options would make, so that later
 *  calls do not block. Collective over the group.
 *
 *  IRIS_ERR_NO_MEMORY    the workspaces' memory is used up: raise IRIS_CCL_SIZE;
 *                        or the system is out of shared memory
 *  IRIS_ERR_STATE, IRIS_ERR_CONFIG  see iris_ccl_prepare()
 *  IRIS_ERR_MISMATCH     members made different calls, or have different rules
 *                        from IRIS_CCL_TUNING
 *  IRIS_ERR_INVALID, IRIS_ERR_UNREACHABLE,
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_DEVICE */
IRIS_API iris_status_t
iris_all_reduce_preamble(iris_t *iris, const struct iris_ccl_options *options);

/** Makes another workspace for a group. Streams and graphs that run at the same
 *  time need one each. Collective over the group. The caller owns it until
 *  iris_ccl_workspace_destroy(), or until the group or the context ends.
 *  Returns the statuses of iris_all_reduce_preamble(). */
IRIS_API iris_status_t iris_ccl_workspace_create(
    iris_t *iris, iris_group_t *group, iris_ccl_workspace_t **workspace_p);

/** Frees a workspace; no stream and no graph may use it afterwards. Collective
 *  over its group; blocks. NULL does nothing.
 *
 *  IRIS_ERR_INVALID      not a live workspace that iris_ccl_workspace_create()
 *                        made for this context
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @use apart */
IRIS_API iris_status_t
iris_ccl_workspace_destroy(iris_t *iris, iris_ccl_workspace_t *workspace);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CCL_H */
