/* SPDX-License-Identifier: MIT
 *
 * Running a function on every rank, with or without a launcher:
 *
 *     static int rank_main(iris_t *iris, void *arg)
 *     {
 *         printf("rank %d\n", iris_rank(iris));
 *         return 0;
 *     }
 *
 *     int main(void)
 *     {
 *         return iris_spawn(NULL, 0, rank_main, NULL) == IRIS_OK ? 0 : 1;
 *     }
 *
 * @use job; blocks; apart
 */
#ifndef IRIS_SPAWN_H
#define IRIS_SPAWN_H

#include <iris/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The function of a rank. It returns 0 for success, and any other number for a
 *  failure: an IRIS_ERR_... status, which iris_spawn() returns, or a number of
 *  the program's own. It must not finalize the context, which belongs to
 *  iris_spawn(); if it does and returns 0, the rank fails with
 *  IRIS_ERR_STATE. */
typedef int (*iris_rank_fn)(iris_t *iris, void *arg);

/** Runs fn(iris, arg) on every rank of a job. It initializes the context of
 *  each rank before fn and finalizes it afterwards. Blocks until the ranks that
 *  it started have ended.
 *
 *  Under a launcher this process is one rank, and num_ranks must be 0 or the
 *  launcher's count. There is a launcher if this process was started by mpirun
 *  or torchrun, or if IRIS_RANK is set, or if IRIS_BOOTSTRAP is not "auto".
 *
 *  Without a launcher the call starts num_ranks ranks, or IRIS_NUM_RANKS if
 *  num_ranks is 0. They are threads of this process or, with
 *  IRIS_SPAWN=processes, child processes with a copy of this process's memory.
 *  It then forks: call it before the process starts threads or uses the GPU's
 *  runtime. A rank whose fn fails leaves at once, and peers that wait for it
 *  get IRIS_ERR_PEER_LOST.
 *
 *  Returns IRIS_OK if every fn returned 0. Otherwise it returns the first
 *  failure, with a message that names the rank:
 *   - the status that fn returned, with the message of the last call that
 *     failed in fn; or
 *   - IRIS_ERR_PEER_LOST, with another number that fn returned or with the
 *     signal that killed the rank's process.
 *
 *  Also returns the statuses of iris_init() and iris_finalize(), and
 *  IRIS_ERR_INVALID      fn is NULL, or num_ranks is negative or not the
 *                        launcher's
 *  IRIS_ERR_LIMIT        a rank could not be started
 *  @param num_ranks  number of ranks; 0: IRIS_NUM_RANKS, or the launcher's
 *  @param fn  the function of a rank
 *  @param arg  passed to fn */
IRIS_API iris_status_t iris_spawn(const struct iris_config *config,
                                  int num_ranks, iris_rank_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_SPAWN_H */
