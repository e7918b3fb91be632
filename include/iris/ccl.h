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
 */
#ifndef IRIS_CCL_H
#define IRIS_CCL_H

#include <iris/group.h>
#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a collective is done: X(NAME, value, name). Values never change meaning;
 * new ones come at the end. */
/* clang-format off */
#define IRIS_CCL_VARIANT_ROWS(X)                                               \
    X(AUTO,            0, "auto")            /* the best one that can */       \
    X(ONE_SHOT,        1, "one_shot")        /* everybody reads all */         \
    X(TWO_SHOT,        2, "two_shot")        /* and combines a share for all */\
    X(ONE_SHOT_PACKET, 3, "one_shot_packet") /* data travels with flags */     \
    X(TWO_SHOT_PACKET, 4, "two_shot_packet")                                   \
    X(DIRECT,          5, "direct")          /* reads where it lies */         \
    X(PACKET,          6, "packet")                                            \
    X(PUSH,            7, "push")            /* writes where it belongs */     \
    X(PULL,            8, "pull")            /* reads from where it is */      \
    X(ATOMIC,          9, "atomic")          /* adds to everybody's output */  \
    X(SPINLOCK,       10, "spinlock")        /* the same, under locks */       \
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
 *  unknown value gives "?". */
IRIS_API const char *iris_ccl_variant_name(iris_ccl_variant_t variant);

/** Memory on the heap by which collectives of one group meet. Opaque. */
typedef struct iris_ccl_workspace iris_ccl_workspace_t;

/** Which rows a member combines, where members divide them: all_reduce, and
 *  reduce_scatter with own_rows. The result has the same bits. */
typedef enum iris_ccl_distribution {
    IRIS_CCL_DISTRIBUTION_AUTO = 0,
    IRIS_CCL_STRIDING = 1, /**< Member i of n has rows i, i + n, i + 2 n, ... */
    IRIS_CCL_BLOCK = 2 /**< Member i of n has the i-th of n blocks of rows. The
                            first (rows mod n) blocks have one row more than the
                            others, as in iris/ops.h. AUTO takes this one. */
} iris_ccl_distribution_t;

/** What a call may say beyond its arguments. All members say the same, but for
 *  stream and workspace. New fields come at the end. */
struct iris_ccl_options {
    size_t size;                     /**< Set by iris_ccl_options_init(). */
    iris_stream_t *stream;           /**< NULL: the default stream. */
    iris_group_t *group;             /**< NULL: all ranks. */
    iris_ccl_workspace_t *workspace; /**< NULL: the group's own. */
    int num_cus; /**< Workgroups at most; 0: as many as are worth it. */
    iris_ccl_variant_t all_reduce; /**< AUTO: what IRIS_ALL_REDUCE says. */
    iris_ccl_variant_t all_gather;
    iris_ccl_variant_t reduce_scatter;
    iris_ccl_variant_t all_to_all;
    iris_ccl_variant_t broadcast;
    int async;   /**< 1: no barrier at the end. The result is there, but members
                      may still read this rank's input. */
    size_t rows; /**< Not 0: buffers have so many rows (below). */
    size_t in_stride;  /**< Elements from a row of in to the next; 0: dense. */
    size_t out_stride; /**< The same of out. */
    iris_ccl_distribution_t distribution; /**< Of rows, over the members. */
    int own_rows;  /**< 1, of reduce_scatter with rows: in and out have the same
                        shape, and a member writes the rows that are its own. */
    int num_rings; /**< Of RING: 2: half goes around the other way. 0: 1. */
};

/** Makes every field NULL or 0. Local, cannot fail. */
#define iris_ccl_options_init(options) \
    iris_ccl_options_init_sized((options), sizeof *(options))

/** iris_ccl_options_init() for a struct of `size` bytes, as the caller's header
 *  has it. See iris_config_init_sized(). */
IRIS_API void iris_ccl_options_init_sized(struct iris_ccl_options *options,
                                          size_t size);

/* ---- Collectives ------------------------------------------------------------
 *
 * All members of the group make the same calls in the same order, each with its
 * own buffers. A call enqueues on the stream and does not block the host, but
 * for a full stream, and the first call of a group, which makes its workspace
 * (below). When the stream has done it the result is there, and the rank's own
 * buffers may be written again. No barrier is needed between calls.
 *
 * Any count is legal; 0 does nothing. `in` and `out` are aligned for their
 * elements, and are memory that kernels of this rank can use. On the heap
 * (iris_malloc()) they are used where they are. On a CPU a member whose buffers
 * are off the heap copies its input through its workspace, at most a few times
 * slower; members may differ in where their buffers are, unless a tuning file
 * names ONE_SHOT for the call. On a GPU variants with packets carry the data, at
 * half the bandwidth, and all members' buffers are on the heap or none. in and
 * out are the same place, as each call says, or do not overlap; all members
 * alike.
 *
 * Reductions are deterministic: each element is combined in the group's order,
 * member 0 first, whatever the variant, the number of workgroups, the place in
 * the buffer or the device. f16 and bf16 are added and multiplied as f32 and
 * rounded once, at the end. Integers wrap around. MIN and MAX of a NaN and a
 * number are the number; of +0 and -0 the earlier member's. A result that is a
 * NaN is always the same one, quiet and positive. BAND, BOR and BXOR are for
 * integers and bool; other reductions of bool are not defined, of complex ones
 * SUM is.
 *
 * `options` may be NULL: all fields as iris_ccl_options_init() makes them.
 *
 * IRIS_ERR_INVALID      in or out is NULL (and count is not 0), misaligned,
 *                       past the end of a heap, or overlaps; no such type,
 *                       operation for the type, root, group, stream or
 *                       workspace; a field of options is out of range (the
 *                       message says what is allowed); the collective does not
 *                       have the variant, or the variant needs buffers on the
 *                       heap or apart
 * IRIS_ERR_STATE        the workspace was last used on another stream, whose
 *                       work may not be done (a captured call uses it when the
 *                       graph is launched); a group that is not all of the
 *                       job came before iris_ccl_prepare()
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
 * destroy the group. */

/** out[i] is the reduction of all members' in[i], for i < count. `in` may be
 *  `out`, but not with ONE_SHOT. */
IRIS_API iris_status_t iris_all_reduce(iris_t *iris, const void *in, void *out,
                                       size_t count, iris_dtype_t dtype,
                                       iris_reduce_op_t op,
                                       const struct iris_ccl_options *options);

/** out has count elements of each member, in group order: what it has in `in`.
 *  `in` may be this rank's own part of `out`. */
IRIS_API iris_status_t iris_all_gather(iris_t *iris, const void *in, void *out,
                                       size_t count, iris_dtype_t dtype,
                                       const struct iris_ccl_options *options);

/** in has count elements for each member, in group order; out[i] is the
 *  reduction of what all have for this one. `out` may be this rank's own part
 *  of `in`. */
IRIS_API iris_status_t iris_reduce_scatter(
    iris_t *iris, const void *in, void *out, size_t count, iris_dtype_t dtype,
    iris_reduce_op_t op, const struct iris_ccl_options *options);

/** in has count elements for each member, in group order, and out gets count
 *  elements from each. `in` may be `out`, but not with PUSH and PULL. */
IRIS_API iris_status_t iris_all_to_all(iris_t *iris, const void *in, void *out,
                                       size_t count, iris_dtype_t dtype,
                                       const struct iris_ccl_options *options);

/** out gets count elements of member index `root`'s in; others' in is not
 *  looked at. `in` may be `out`. The members' `out` decides the variant: the
 *  root's `in` may be off the heap, unless options.rows is set.
 *  (iris_broadcast() is for the host's data.) */
IRIS_API iris_status_t iris_ccl_broadcast(
    iris_t *iris, const void *in, void *out, size_t count, iris_dtype_t dtype,
    int root, const struct iris_ccl_options *options);

/** out[i] of member index `root` is the reduction of all members' in[i]; the
 *  others' out is not looked at. `in` may be `out`, but not with ONE_SHOT.
 *  Variants that do not keep the group's order are AUTO here. */
IRIS_API iris_status_t iris_reduce(iris_t *iris, const void *in, void *out,
                                   size_t count, iris_dtype_t dtype,
                                   iris_reduce_op_t op, int root,
                                   const struct iris_ccl_options *options);

/* ---- Messages ---------------------------------------------------------------
 *
 * The calls below move elements between pairs of members, in messages. Buffers
 * may be anywhere, on all devices: what is on the heap, is larger than a piece
 * and can be reached is read where it is; the rest goes through the workspace,
 * a piece at a time. A message may be larger than the workspace. Fields of
 * options for variants, rows and async have no effect, but rows must be 0. A
 * buffer that has no elements on this rank may be NULL.
 *
 * Counts and displacements are in elements. A displacement says where a
 * member's part of a buffer begins; with NULL the parts lie one behind another
 * in the group's order. The arrays are the caller's again on return. Parts of
 * an `out` may not overlap, which is not checked. */

/** out of member index `root` has count elements of each member, in group
 *  order; the others' out is not looked at. The root's `in` may be its own part
 *  of `out`. */
IRIS_API iris_status_t iris_gather(iris_t *iris, const void *in, void *out,
                                   size_t count, iris_dtype_t dtype, int root,
                                   const struct iris_ccl_options *options);

/** in of member index `root` has count elements for each member, in group
 *  order, and out gets this one's; the others' in is not looked at. The root's
 *  `out` may be its own part of `in`. */
IRIS_API iris_status_t iris_scatter(iris_t *iris, const void *in, void *out,
                                    size_t count, iris_dtype_t dtype, int root,
                                    const struct iris_ccl_options *options);

/** out gets counts[i] elements from each member i, at displs[i]; in has this
 *  member's. All members pass the same counts. `in` may be this rank's own part
 *  of `out`. */
IRIS_API iris_status_t iris_all_gatherv(iris_t *iris, const void *in, void *out,
                                        const size_t *counts,
                                        const size_t *displs,
                                        iris_dtype_t dtype,
                                        const struct iris_ccl_options *options);

/** in has in_counts[i] elements for each member i, at in_displs[i], and out gets
 *  out_counts[i] from it, at out_displs[i]. `in` and `out` do not overlap. Where
 *  two members' counts differ, these two get IRIS_ERR_MISMATCH; members whose
 *  counts agree with everybody's may get IRIS_OK, and then have all of theirs. */
IRIS_API iris_status_t iris_all_to_allv(iris_t *iris, const void *in,
                                        const size_t *in_counts,
                                        const size_t *in_displs, void *out,
                                        const size_t *out_counts,
                                        const size_t *out_displs,
                                        iris_dtype_t dtype,
                                        const struct iris_ccl_options *options);

/** Sends count elements to member index `to`, which receives them. Only these
 *  two call. Messages from one member to another match in the order of the calls,
 *  on one workspace; both pass the same count, type and num_cus.
 *
 *  The call does not block the host. A small message ends when it is in the
 *  receiver's workspace, a large one when the receiver has taken it: the work
 *  behind it on the stream waits for the matching iris_recv(). Two ranks that
 *  first send to each other on one stream, and then receive, wait for each
 *  other if the messages are large, until a deadline: use iris_send_recv().
 *
 *  A receiver that expects another count or type gets IRIS_ERR_MISMATCH, and so
 *  does the sender, unless its small message has already ended: then its next
 *  message to that member does. */
IRIS_API iris_status_t iris_send(iris_t *iris, const void *in, size_t count,
                                 iris_dtype_t dtype, int to,
                                 const struct iris_ccl_options *options);

/** Receives count elements from member index `from`. See iris_send(). */
IRIS_API iris_status_t iris_recv(iris_t *iris, void *out, size_t count,
                                 iris_dtype_t dtype, int from,
                                 const struct iris_ccl_options *options);

/** iris_send() to one member and iris_recv() from another or the same one, at
 *  the same time: rings and exchanges of any size do not wait for each other in
 *  a circle. Each half matches a send, a receive or another send_recv. `to` and
 *  `from` may both be this member, with equal counts. */
IRIS_API iris_status_t iris_send_recv(iris_t *iris, const void *in,
                                      size_t in_count, int to, void *out,
                                      size_t out_count, int from,
                                      iris_dtype_t dtype,
                                      const struct iris_ccl_options *options);

/* ---- Rows -------------------------------------------------------------------
 *
 * With options.rows = M a call is of matrices on the heap, and its count N the
 * elements of a row:
 *   all_reduce, broadcast  in and out have M rows of N
 *   all_gather      in has M rows of N, out those of all members, W * M rows
 *   all_to_all      both have M rows of W * N; columns r * N to (r + 1) * N go
 *                   to member r, and come from it
 *   reduce_scatter  in has W * M rows of N, out M; with own_rows both have M
 * Variants are TWO_SHOT, PUSH, PULL and DIRECT; strides are the same on all
 * members, and in place those of in and out. */

/* ---- Memory -----------------------------------------------------------------
 *
 * Workspaces come from one allocation on the heap, IRIS_CCL_SIZE bytes, at most
 * an eighth of it. The first call of a group that is all of the job makes that,
 * and a group's first call the group's workspace: both block the host until all
 * members come, and wait for the default stream, which is not being captured
 * then. */

/** Makes that allocation. Collective over the job; blocks the host. To be
 *  called before the first collective of a group that is not all of the job.
 *  Calls after the first do nothing, on all ranks.
 *
 *  IRIS_ERR_CONFIG       the file that IRIS_CCL_TUNING names cannot be read, or
 *                        a line of it (the message says which) is no rule
 *  IRIS_ERR_NO_MEMORY    the heap has no space for it
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE,
 *  IRIS_ERR_DEVICE */
IRIS_API iris_status_t iris_ccl_prepare(iris_t *iris);

/** Makes the workspace that a call with these options would make, so that no
 *  later call blocks. Collective over the group.
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

/** Makes another workspace for a group, for another stream or graph: those that
 *  run at the same time need one each. Collective over the group. The caller's
 *  until iris_ccl_workspace_destroy(), or until the group or the context ends.
 *  Statuses as iris_all_reduce_preamble(). */
IRIS_API iris_status_t iris_ccl_workspace_create(
    iris_t *iris, iris_group_t *group, iris_ccl_workspace_t **workspace_p);

/** Frees a workspace that no stream and no graph uses any more. Collective over
 *  its group; blocks. NULL is fine.
 *
 *  IRIS_ERR_INVALID      not a live workspace of this context that
 *                        iris_ccl_workspace_create() gave
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t
iris_ccl_workspace_destroy(iris_t *iris, iris_ccl_workspace_t *workspace);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CCL_H */
