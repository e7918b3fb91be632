/* SPDX-License-Identifier: MIT
 *
 * Tracing: records the operations of kernels and the calls of the host, with
 * times, and writes them to a file that Perfetto and iris-trace(1) open.
 * IRIS_TRACE=trace.json in the environment traces any program without a change.
 * docs/tracing.md is the guide.
 *
 *     status = iris_trace_enable(iris, 1000000);        // all ranks
 *     ...
 *     status = iris_trace_export(iris, "trace.json", 1);
 *
 * @use local; blocks; refused
 */
#ifndef IRIS_TRACE_H
#define IRIS_TRACE_H

#include <iris/context.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Ids of events that programs record themselves. A program may use any number
 *  from 1024 to 4095: 1024 to 2047 for movements of data, 2048 to 3071 for
 *  computation, 3072 to 4095 for waits. The ids below have names;
 *  iris_trace_name() names others. */
enum iris_trace_event {
    IRIS_TRACE_FETCH = 1024,
    IRIS_TRACE_COMPUTE = 2048,
    IRIS_TRACE_REDUCE = 2049,
    IRIS_TRACE_WAIT = 3072,
    IRIS_TRACE_BARRIER = 3073,
};
#define IRIS_TRACE_EVENT_MIN 1024
#define IRIS_TRACE_EVENT_MAX 4095

/** Starts recording: up to `max_events` operations of kernels, in memory of the
 *  symmetric heap (80 bytes each), and half this number of host calls, but at
 *  least 4096. When the space is used up, the library counts and drops further
 *  events and keeps the earlier ones. On the CPU, a lane loop's accesses to
 *  contiguous elements are one operation. The library records all kernels on
 *  the CPU. It records kernels on a GPU if they were compiled by `iriscc
 *  --trace`, or with IRIS_TRACE defined as 1. It does not record kernels that
 *  are already running.
 *
 *  Collective over the job, like iris_malloc(); every rank passes the same
 *  number. The call measures the differences of the ranks' clocks and of the
 *  devices' clocks. A second call discards the records and starts again with
 *  another size. No kernel of this rank may run meanwhile.
 *
 *  IRIS_ERR_INVALID      max_events is 0 or more than 2^30
 *  IRIS_ERR_NO_MEMORY    the heap has too little memory, on any rank; the
 *                        message says how much the call needs
 *  IRIS_ERR_MISMATCH     the ranks made different calls
 *  IRIS_ERR_LIMIT        too many observers watch the context
 *  @use job
 *  @param max_events  operations of kernels to keep, up to 2^30 */
IRIS_API iris_status_t iris_trace_enable(iris_t *iris, size_t max_events);

/** Discards this rank's records and continues recording. Waits for the default
 *  stream; no other kernel of this rank may run. IRIS_ERR_STATE: tracing is not
 *  enabled */
IRIS_API iris_status_t iris_trace_reset(iris_t *iris);

/** Counts of this rank's records. */
struct iris_trace_counts {
    uint64_t device_events; /**< Operations of kernels. */
    uint64_t host_events;   /**< Calls of the host, kernels' runs on the CPU. */
    uint64_t dropped;       /**< Events of both kinds that found no space. */
};

/** Counts this rank's records so far. Waits for the default stream. counts_p
 *  may be NULL. IRIS_ERR_STATE: tracing is not enabled
 *  @param counts_p  receives the counts; may be NULL */
IRIS_API iris_status_t iris_trace_counts(iris_t *iris,
                                         struct iris_trace_counts *counts_p);

/** Writes this rank's records as Chrome trace events. If `file` is
 *  `dir/trace.json`, rank 0 writes `dir/trace_rank0.json`. A name that ends in
 *  .gz gives compressed files. Metadata of the trace lets `iris trace resolve`
 *  find the allocation of an address. A file gets its name once it is complete.
 *  The call
 *  logs the number of dropped events and the accuracy of the times. It waits
 *  for all streams of this rank. If their work has failed or a peer is lost, it
 *  logs that and still writes the file. Recording continues.
 *
 *  With `merge` 0 the call does no more: it is local, and succeeds even if other
 *  ranks are dead. Otherwise it is collective over the job, and every rank
 *  passes the same arguments. Rank 0 then merges all ranks' files into
 *  `dir/trace.json`, with arrows from signals to the waits that they ended, and
 *  removes them. If a rank is lost or late, this rank writes its own file and
 *  returns the error; `iris trace merge` makes one trace of the files that
 *  exist.
 *
 *  IRIS_ERR_STATE        tracing is not enabled
 *  IRIS_ERR_INVALID      file is NULL, or does not end in .json or .json.gz
 *  IRIS_ERR_UNSUPPORTED  the name ends in .gz, and Iris was built without zlib
 *  IRIS_ERR_SYSTEM       a file could not be written, with `merge` on any rank:
 *                        the disk is full, the folder missing
 *  IRIS_ERR_DEVICE       records could not be read from the GPU
 *  IRIS_ERR_MISMATCH     with `merge`: the ranks made different calls
 *  IRIS_ERR_PEER_LOST    with `merge`: a rank died; this rank's own file is
 *                        written
 *  IRIS_ERR_TIMEOUT      with `merge`: a rank is late; this rank's own file is
 *                        written
 *  @param file  path of the trace, in .json or .json.gz
 *  @param merge  1: rank 0 makes one trace of all ranks; 0: this rank only */
IRIS_API iris_status_t iris_trace_export(iris_t *iris, const char *file,
                                         int merge);

/** Sets the name that exports use for events with id `event`. The call copies
 *  the name, which has at most 47 characters. Call iris_trace_enable() first.
 *  IRIS_ERR_INVALID (id or name), IRIS_ERR_STATE, IRIS_ERR_LIMIT (a context has
 *  at most 256 names)
 *  @use local; never blocks; apart
 *  @param name  up to 47 characters, copied */
IRIS_API iris_status_t iris_trace_name(iris_t *iris, int event,
                                       const char *name);

/** Begin and end an event of the host. The event that begins last on a thread
 *  ends first. Pass the result of iris_trace_begin() to iris_trace_end(); it is
 *  0 while nothing is recorded. In kernels, use iris_dev_trace_begin().
 *  @use local; never blocks; apart
 *  @param span  result of iris_trace_begin() */
IRIS_API uint64_t iris_trace_begin(iris_t *iris, int event);
IRIS_API void iris_trace_end(iris_t *iris, uint64_t span);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_TRACE_H */
