/* SPDX-License-Identifier: MIT
 *
 * A HIP runtime without GPUs, for tests of the GPU backend's host half: the
 * calls that backend makes, over host memory. Kernels run their CPU versions on
 * threads. What it is like is read from the environment at each call:
 *
 *   FAKEHIP_DEVICES  how many GPUs there are (8)
 *   FAKEHIP_FIRST    the number in the node of the first of them (0), as where
 *                    a launcher shows each rank its own
 *   FAKEHIP_PARTITIONS  devices of one GPU, which have its PCI address (1)
 *   FAKEHIP_PAGEABLE  1: kernels can access all memory of the host
 *   FAKEHIP_CUS      workgroups of a kernel that run at once (4)
 *   FAKEHIP_MEMORY   bytes of each GPU (64 GiB)
 *   FAKEHIP_GRANULARITY  bytes of which mappings are multiples (2 MiB)
 *   FAKEHIP_NO_PEER  pairs that cannot reach each other: "0-1,2-3"; "0>1":
 *                    the first cannot reach the second
 *   FAKEHIP_NO_ATOMICS  pairs whose links have no atomics
 *   FAKEHIP_STREAM_WAITS  1: streams wait for words by themselves (0)
 *   FAKEHIP_VERSION  of HIP, as hipRuntimeGetVersion() tells it (7.14)
 *   FAKEHIP_TORN_COPIES  1: large copies leave out their end (0)
 *   FAKEHIP_MI200    1: GPUs are MI200, their clocks run at 25 MHz (0: MI300)
 *   FAKEHIP_LATE     a seed: streams, copies, callbacks and queries are as late
 *                    as HIP allows (0: they are not)
 *   FAKEHIP_FAIL     calls that fail; see fakehip_fail()
 *   FAKEHIP_QUIRKS   what some HIP runtimes do, by name, with commas; "name:2":
 *                    the first two times in this process
 *     wave32         wavefronts have 32 lanes, as gfx1250's
 *     wrong-memory   what a peer's handle maps is other memory
 *     one-uuid       partitions of a GPU have one UUID, too
 *     no-ipc         hipIpcGetMemHandle() fails
 *     open-fails     hipIpcOpenMemHandle() fails
 *     export-not-ready  hipMemExportToShareableHandle() says so
 *     no-uncached    memory of this type cannot be created; or, with
 *                    no-uncached-granularity, its granularity not be asked for
 *     set-access-from-first  hipMemSetAccess() takes ranges only that begin
 *                    with the first that is mapped in reserved addresses
 *     load-deadlock  threads that load code at the same time never come back
 *     one-descriptor  hipMemExportToShareableHandle() gives the descriptor that
 *                    the runtime keeps for the handle
 *     query-before-callback  streams and events are done while a callback at
 *                    the end has yet to run
 *     copy-before-fill  a copy overtakes the fill that came before it
 *     shared-queues  streams beyond GPU_MAX_HW_QUEUES corrupt their queue: calls
 *                    that enqueue there fail
 *     kernel-behind-kernel  kernels of streams beyond GPU_MAX_HW_QUEUES, and of all
 *                    streams without DEBUG_HIP_DYNAMIC_QUEUES=0, wait for kernels
 *                    that came before to other streams of the GPU
 *     copy-behind-kernel  a copy waits for kernels that came before to other
 *                    streams of the GPU
 *
 * Here is what tests can ask of it beyond HIP.
 */
#ifndef IRIS_TESTS_FAKEHIP_H
#define IRIS_TESTS_FAKEHIP_H

#include <stddef.h>

#define FAKEHIP_API __attribute__((visibility("default")))

/* Which calls fail from now on; counting starts anew. NULL: none, and a lost
 * device is back. A list of "call:nth:error" with commas:
 *
 *   call   a function's name, or "work": what a stream does, one by one
 *   nth    which of its calls in this process, from 1; "3+" is the third and
 *          all after it
 *   error  a hipError_t as a number, or "lost": from then on every call fails
 *          and kernels end, as on a GPU that fell off the bus; or "hang": the
 *          call never returns
 *
 * Returns how many calls the list that was there has made fail. */
FAKEHIP_API int fakehip_fail(const char *list);

/* Memory as a program makes it by the virtual memory calls, fit to be exported
 * or not. fakehip_map() returns a hipError_t. */
FAKEHIP_API int fakehip_map(int device, size_t bytes, int exportable,
                            void **ptr_p);
FAKEHIP_API void fakehip_unmap(void *ptr, size_t bytes);

/* Waits until all streams of this process are done, as drivers do that load a
 * kernel. */
FAKEHIP_API void fakehip_wait_for_all(void);

/* What this process holds of the runtime. */
struct fakehip_counts {
    int allocations; /* of device and of pinned memory; mappings of memory */
    int handles;     /* of memory to map */
    int rooms;       /* reserved addresses */
    int imports;     /* open IPC handles */
    int streams;     /* not the default ones */
    int graphs;      /* as captured, and made ready */
    int captures;    /* streams that capture */
};

FAKEHIP_API void fakehip_count(struct fakehip_counts *counts_p);

#endif /* IRIS_TESTS_FAKEHIP_H */
