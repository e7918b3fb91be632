/* SPDX-License-Identifier: MIT
 *
 * Plans: copies by copy engines that a running kernel starts.
 *
 *     struct iris_plan_segment ring = {.from_rank = rank, .to_rank = peer,
 *                                      .src = data, .dst = inbox,
 *                                      .bytes = bytes};
 *     iris_plan_t *plan;
 *     uint32_t epoch;
 *
 *     status = iris_plan_create(iris, &ring, 1, NULL, &plan);
 *     status = iris_plan_begin(iris, plan, stream, &epoch);
 *     // a kernel calls iris_plan_publish(wg, dev, plan's device half, 0, epoch, 1)
 *     status = iris_plan_end(iris, plan);
 *     status = iris_plan_destroy(iris, plan);
 *
 * @use local; never blocks; apart; CPU nodes
 * @param plan  the plan, from iris_plan_create()
 */
#ifndef IRIS_PLAN_H
#define IRIS_PLAN_H

#include <iris/context.h>
#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

struct iris_dev_plan; /* <iris/device/layout.h> */

/** Copies that ranks make again and again, each time when a kernel says that
 *  their sources are ready. Opaque.
 *
 *  Each use of a plan is an epoch. In an epoch, iris_plan_begin() enqueues this
 *  rank's copies on a stream of the plan, where they wait for a gate. A kernel
 *  opens the gate with iris_plan_publish() of <iris/device/wg/plan.h>, which
 *  stores two words. On a GPU the copy engines then copy without a processor of
 *  the GPU, and without another launch. A receiver's kernel waits for the data
 *  with iris_plan_wait(), its host with iris_plan_end().
 *
 *  A plan has up to 32 batches of segments, each with its own gate. A rank copies
 *  its batches in the order of their numbers. The copies to a rank also wait
 *  until that rank has begun the epoch. Epochs are numbers of 32 bits; 0 follows
 *  2^32 - 1. On AMD, a kernel of one lane waits for each gate, from
 *  iris_plan_begin() on.
 *
 *  One thread of a rank at a time uses a plan. */
typedef struct iris_plan iris_plan_t;

/** One copy: `bytes` bytes of from_rank's `src` to to_rank's `dst`. Both are
 *  symmetric. All ranks pass all segments; each rank makes those that begin at
 *  it. */
struct iris_plan_segment {
    int from_rank;   /**< The rank that copies. */
    int to_rank;     /**< The rank that receives; may be the same. */
    const void *src; /**< On from_rank; symmetric. */
    void *dst;       /**< On to_rank; symmetric. */
    size_t bytes;    /**< 1 to 2^30 (1 GiB). */
    int batch;       /**< 0 to 31: the gate that it waits for. */
};

/** Options of a plan. All ranks pass the same. Later versions add fields at the
 *  end. */
struct iris_plan_options {
    size_t size;          /**< Set by iris_plan_options_init(). */
    uint32_t first_epoch; /**< Number of the first epoch; 0: it is 1. */
};

/** Sets the defaults. Local, cannot fail.
 *  @param options  the struct to set */
#define iris_plan_options_init(options) \
    iris_plan_options_init_sized((options), sizeof *(options))

/** iris_plan_options_init() for a struct of `size` bytes, which is the size in
 *  the caller's header. See iris_config_init_sized(). */
IRIS_API void iris_plan_options_init_sized(struct iris_plan_options *options,
                                           size_t size);

/** The state of a plan on this rank. */
typedef enum iris_plan_state {
    IRIS_PLAN_COMPLETE, /**< Nothing is armed: the latest epoch has ended, or no
                             epoch has begun. */
    IRIS_PLAN_ARMED,    /**< An epoch has begun; no kernel has published. */
    IRIS_PLAN_ACTIVE,   /**< A kernel has published; something is missing. */
    IRIS_PLAN_FAILED,   /**< A call failed, or another rank gave the plan up. */
    IRIS_PLAN_ABORTED,  /**< iris_plan_abort() was called. */
} iris_plan_state_t;

/** Makes a plan. Collective over the job. All ranks pass the same segments and
 *  options, with addresses of their own heap; the call compares a digest of
 *  them. Allocates about 300 bytes of the heap for each batch, and two streams.
 *  The caller owns *plan_p until iris_plan_destroy().
 *
 *  IRIS_ERR_INVALID      a segment names no rank, has memory that is not on the
 *                        heap, fewer than 1 or more than 2^30 bytes, or a batch
 *                        outside of 0 to 31; it overlaps itself; there are no
 *                        segments; or plan_p is NULL
 *  IRIS_ERR_MISMATCH     ranks passed different segments or first epochs; the
 *                        message has each rank's digest
 *  IRIS_ERR_LIMIT        a rank's epoch is more than 400 calls on a stream
 *  IRIS_ERR_UNREACHABLE  the GPU does not reach a receiver's heap
 *
 *  Also returns the statuses of iris_malloc() and iris_stream_create().
 *  @use job; blocks; refused
 *  @param segments  array of `count` segments
 *  @param count  number of segments
 *  @param options  NULL: the defaults
 *  @param plan_p  receives the plan */
IRIS_API iris_status_t iris_plan_create(
    iris_t *iris, const struct iris_plan_segment *segments, size_t count,
    const struct iris_plan_options *options, iris_plan_t **plan_p);

/** Begins the next epoch: tells the ranks that copy to this one that they may
 *  overwrite its targets, and arms this rank's copies. Both happen after all
 *  earlier work of `stream`, so put the kernels that read the previous epoch's
 *  data there. Launch the kernel that publishes after this call, or before it
 *  on another stream. Local; does not wait for peers.
 *
 *  IRIS_ERR_STATE        the previous epoch has not ended (iris_plan_end()), the
 *                        plan has failed or was aborted, or iris_capture_begin()
 *                        captures the stream
 *  IRIS_ERR_INVALID      no such plan or stream
 *
 *  Also returns the statuses of iris_put_on_stream(); the plan has then failed.
 *  @use local; never blocks; refused; CPU nodes
 *  @param epoch_p  receives the epoch's number, for kernels; may be NULL */
IRIS_API iris_status_t iris_plan_begin(iris_t *iris, iris_plan_t *plan,
                                       iris_stream_t *stream,
                                       uint32_t *epoch_p);

/** Waits until this rank's copies of the epoch are done, and all copies to this
 *  rank have arrived. Later work on every stream of this rank sees the data, and
 *  may change the sources. Blocks.
 *
 *  IRIS_ERR_STATE        no epoch has begun; or the plan was aborted, here or on
 *                        the rank that the message names
 *  IRIS_ERR_TIMEOUT      the deadline passed. The message names the gate that no
 *                        kernel opened, or the late rank. The epoch goes on: end
 *                        or abort it
 *  IRIS_ERR_PEER_LOST    a rank died; the plan has failed
 *  IRIS_ERR_INVALID      no such plan
 *  IRIS_ERR_DEVICE, IRIS_ERR_INTERRUPTED
 *  @use local; blocks; refused; CPU nodes */
IRIS_API iris_status_t iris_plan_end(iris_t *iris, iris_plan_t *plan);

/** The plan's state now. Looks at the plan's words in device memory. Returns the
 *  statuses of iris_memcpy(). Also IRIS_ERR_INVALID: no such plan, or state_p is
 *  NULL.
 *  @use local; blocks at times; refused; CPU nodes
 *  @param state_p  receives the state */
IRIS_API iris_status_t iris_plan_state(iris_t *iris, iris_plan_t *plan,
                                       iris_plan_state_t *state_p);

/** Gives the plan up on this rank, and tells the ranks that copy to it or
 *  receive from it: their iris_plan_wait() returns 0, and their iris_plan_end()
 *  returns IRIS_ERR_STATE. No epoch can begin any more. The contents of the
 *  targets are undefined on all ranks. Local; does not wait.
 *
 *  IRIS_ERR_INVALID      no such plan
 *
 *  Also returns the statuses of iris_signal_on_stream().
 *  @use local; never blocks; refused; CPU nodes */
IRIS_API iris_status_t iris_plan_abort(iris_t *iris, iris_plan_t *plan);

/** Frees a plan. Collective over the job; blocks. No kernel may still use the
 *  plan. Call it before iris_finalize(). Afterwards the plan is gone, even if the
 *  call fails, except with IRIS_ERR_INVALID and IRIS_ERR_STATE. NULL does
 *  nothing.
 *
 *  IRIS_ERR_STATE        an epoch has begun and not ended on a rank: end or
 *                        abort it; the plan stays on all ranks
 *  IRIS_ERR_INVALID      no such plan
 *
 *  Also returns the statuses of iris_free().
 *  @use job; blocks; apart */
IRIS_API iris_status_t iris_plan_destroy(iris_t *iris, iris_plan_t *plan);

/** The plan's struct in device memory, for the functions of
 *  <iris/device/wg/plan.h>. Owned by the plan. NULL on a bad context or plan. */
IRIS_API struct iris_dev_plan *iris_plan_device(const iris_t *iris,
                                                const iris_plan_t *plan);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_PLAN_H */
