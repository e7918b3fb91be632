/* SPDX-License-Identifier: MIT
 *
 * Tracing: what kernels and the host do, with times, as a file that Perfetto
 * and iris-trace(1) open. docs/tracing.md is the guide. IRIS_TRACE=trace.json
 * in the environment does it for any program.
 */
#ifndef IRIS_TRACE_H
#define IRIS_TRACE_H

#include <iris/context.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Ids of events that programs record themselves. Any number from 1024 to 4095
 *  will do: 1024 to 2047 are movements of data, 2048 to 3071 computation, from
 *  3072 on waits. These have names; iris_trace_name() gives one to others. */
enum iris_trace_event {
    IRIS_TRACE_FETCH = 1024,
    IRIS_TRACE_COMPUTE = 2048,
    IRIS_TRACE_REDUCE = 2049,
    IRIS_TRACE_WAIT = 3072,
    IRIS_TRACE_BARRIER = 3073,
};
#define IRIS_TRACE_EVENT_MIN 1024
#define IRIS_TRACE_EVENT_MAX 4095

/** Records from now on: operations of kernels, up to `max_events` of them in
 *  memory of the symmetric heap (80 bytes each), and half as many calls of the
 *  host, at least 4096. When there is no more space, events are counted and
 *  dropped; what has been recorded stays. On the CPU a lane loop's accesses of
 *  contiguous elements are one operation. Kernels on the CPU are always
 *  recorded; those on a GPU if they were compiled by `iriscc --trace`, or with
 *  IRIS_TRACE defined as 1. Kernels that run already are not.
 *
 *  Collective over the job, like iris_malloc(); every rank passes the same
 *  number. Measures how the ranks' clocks and the device's differ. Called
 *  again, it begins anew with another size. No kernel of this rank runs.
 *
 *  IRIS_ERR_INVALID      max_events is 0 or more than 2^30
 *  IRIS_ERR_NO_MEMORY    the heap has too little, on any rank: the message says
 *                        what it takes
 *  IRIS_ERR_MISMATCH     ranks called differently
 *  IRIS_ERR_LIMIT        too many observers watch the context */
IRIS_API iris_status_t iris_trace_enable(iris_t *iris, size_t max_events);

/** Forgets what this rank has recorded, and goes on recording. Waits for the
 *  default stream; no other kernel of this rank runs. IRIS_ERR_STATE: tracing
 *  is not enabled */
IRIS_API iris_status_t iris_trace_reset(iris_t *iris);

/** What this rank has recorded so far. NULL outputs are left out. Waits for the
 *  default stream. IRIS_ERR_STATE: tracing is not enabled */
struct iris_trace_counts {
    uint64_t device_events; /**< Operations of kernels. */
    uint64_t host_events;   /**< Calls of the host, kernels' runs on the CPU. */
    uint64_t dropped;       /**< Of both, for which there was no space. */
};
IRIS_API iris_status_t iris_trace_counts(iris_t *iris,
                                         struct iris_trace_counts *counts_p);

/** Writes what this rank has recorded as Chrome trace events: of
 *  `dir/trace.json` rank 0's file is `dir/trace_rank0.json`. Names that end in
 *  .gz are compressed. Beside it go `dir/trace_rank_0_heap_bases.json` and
 *  `dir/trace_rank_0_allocations.json`, with which `iris-trace resolve` finds
 *  what an address was. A file has its name once it is complete. Logs what was
 *  dropped, and how exact times are. Waits for all streams of this rank; if
 *  their work has failed or a peer is lost, it logs that and writes all the
 *  same. Recording goes on.
 *
 *  With `merge` 0 that is all: the call is local, and succeeds when other ranks
 *  are dead. Else it is collective over the job, every rank passes the same
 *  arguments, and rank 0 makes `dir/trace.json` of all ranks' files, with
 *  arrows from signals to the waits they ended. If a rank is lost or late, this
 *  one writes its own files, and returns the error; `iris-trace merge` makes
 *  one trace of the files there are.
 *
 *  IRIS_ERR_STATE        tracing is not enabled
 *  IRIS_ERR_INVALID      file is NULL, or has no .json or .json.gz at its end
 *  IRIS_ERR_UNSUPPORTED  the name ends in .gz, and Iris was built without zlib
 *  IRIS_ERR_SYSTEM       a file could not be written, with `merge` on any rank:
 *                        the disk is full, the folder missing
 *  IRIS_ERR_DEVICE       records could not be read from the GPU
 *  IRIS_ERR_MISMATCH     with `merge`: ranks called differently
 *  IRIS_ERR_PEER_LOST    with `merge`: a rank died; this rank's own files are
 *                        written
 *  IRIS_ERR_TIMEOUT      with `merge`: a rank is late; the same */
IRIS_API iris_status_t iris_trace_export(iris_t *iris, const char *file,
                                         int merge);

/** The name that exports give the event of that id, copied; of at most 47
 *  characters. Needs iris_trace_enable() first. IRIS_ERR_INVALID (id, or name),
 *  IRIS_ERR_STATE, IRIS_ERR_LIMIT (there are 256 names at most) */
IRIS_API iris_status_t iris_trace_name(iris_t *iris, int event,
                                       const char *name);

/** An event of the host that the program delimits itself; what begins last on a
 *  thread ends first. Returns what iris_trace_end() wants: 0 if nothing is
 *  recorded, which is fine there. In kernels: iris_dev_trace_begin(). */
IRIS_API uint64_t iris_trace_begin(iris_t *iris, int event);
IRIS_API void iris_trace_end(iris_t *iris, uint64_t span);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_TRACE_H */
