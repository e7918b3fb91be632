/* SPDX-License-Identifier: MIT
 *
 * Running a function on every rank, with or without a launcher.
 */
#ifndef IRIS_SPAWN_H
#define IRIS_SPAWN_H

#include <iris/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What each rank runs. 0 is success; anything else is the rank's failure: a
 *  status it got (IRIS_ERR_...) is passed on, any other number is its own. It
 *  leaves the context to iris_spawn(): one that finalizes it has failed, with
 *  IRIS_ERR_STATE if it returns 0. */
typedef int (*iris_rank_fn)(iris_t *iris, void *arg);

/** Runs fn(iris, arg) on every rank of a job, with the context initialised
 *  before and finalized after it, and returns when the ranks made here are
 *  done.
 *
 *  Under a launcher (mpirun, torchrun, or IRIS_RANK set; IRIS_BOOTSTRAP, if it
 *  is not "auto", says that there is one) this process is one rank: num_ranks
 *  must then be 0 or the launcher's count. Otherwise num_ranks ranks (0:
 *  IRIS_NUM_RANKS) are made here, as threads of this process or, with
 *  IRIS_SPAWN=processes, as child processes, which inherit `arg` as it is now
 *  and whose memory is their own. A rank whose fn fails leaves at once: peers
 *  that wait for it get IRIS_ERR_PEER_LOST.
 *
 *  Returns IRIS_OK if every fn returned 0; otherwise the first failure and its
 *  message, which names the rank: the status fn returned, with the message of
 *  the last call that failed in it, or IRIS_ERR_PEER_LOST with the number it
 *  returned or the signal that killed its process. Also what iris_init() and
 *  iris_finalize() return, IRIS_ERR_INVALID for a bad fn or num_ranks, and
 *  IRIS_ERR_LIMIT if a rank cannot be started. With IRIS_SPAWN=processes it
 *  forks: call it from a process of one thread that has not used the GPU's
 *  runtime. Blocks. */
IRIS_API iris_status_t iris_spawn(const struct iris_config *config,
                                  int num_ranks, iris_rank_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_SPAWN_H */
