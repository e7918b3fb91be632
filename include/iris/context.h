/* SPDX-License-Identifier: MIT
 *
 * The context: one rank's view of the job, from iris_init() to
 * iris_finalize(). A process may hold several, one after another or at once.
 */
#ifndef IRIS_CONTEXT_H
#define IRIS_CONTEXT_H

#include <iris/status.h>
#include <iris/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank. Opaque. Collective calls on one context must come from one thread
 *  at a time; getters may be called from any thread.
 *
 *  Every call that takes a context and returns a status returns, whether it
 *  says so or not,
 *  IRIS_ERR_INVALID      the context is NULL (but see iris_finalize())
 *  IRIS_ERR_STATE        it has been finalized, or belongs to the process that
 *                        forked this one */
typedef struct iris iris_t;

/* The configuration, once: X(field, kind, ENV_NAME, default, choices, help).
 * Kinds: STRING (any text), CHOICE (one of `choices`), BYTES (with K, M or G),
 * MS (milliseconds), COUNT (a positive integer), RANK (an integer from 0), FLAG
 * (1, true, yes, 0, false or no). This table makes struct iris_config, the
 * parser, iris-info and the README. */
/* clang-format off */
#define IRIS_CONFIG_ROWS(X)                                                    \
    X(backend, STRING, "IRIS_BACKEND", "",                                     \
      "", "backend to use; empty: the best one that can run")                  \
    X(simulation, FLAG, "IRIS_SIMULATION", "0",                                \
      "", "1, true or yes: the same as IRIS_BACKEND=sim")                      \
    X(heap_bytes, BYTES, "IRIS_HEAP_SIZE", "1G",                               \
      "", "symmetric heap of each rank, the same on all")                      \
    X(allocator, CHOICE, "IRIS_ALLOCATOR", "pool",                             \
      "pool torch vmem", "heap allocator; torch means pool")                   \
    X(hip_memory, CHOICE, "IRIS_HIP_MEMORY", "auto",                           \
      "auto fine uncached", "heaps on AMD GPUs; auto: pool fine, vmem uncached") \
    X(heap_bases_prefix, STRING, "IRIS_HEAP_BASES_PREFIX", "iris",             \
      "", "path prefix of <prefix>_rank_<r>_heap_bases.json")                  \
    X(heap_bases_files, FLAG, "IRIS_HEAP_BASES_FILES", "1",                    \
      "", "0, false or no: no heap-bases files are written")                   \
    X(log_level, CHOICE, "IRIS_LOG_LEVEL", "info",                             \
      "debug info warning error off", "least severe message to print")         \
    X(timeout_ms, MS, "IRIS_TIMEOUT_MS", "300000",                             \
      "", "deadline of every wait on the host; 0: none")                        \
    X(warn_ms, MS, "IRIS_WARN_MS", "10000",                                    \
      "", "a wait on the host that takes longer logs one line; 0: none does")  \
    X(device_timeout_ms, MS, "IRIS_DEVICE_TIMEOUT_MS", "0",                    \
      "", "deadline of every wait inside a kernel; 0: none")                   \
    X(nodes, COUNT, "IRIS_NODES", "1",                                         \
      "", "pretend that the ranks are on so many nodes, for tests")            \
    X(require_all, FLAG, "IRIS_REQUIRE_ALL", "0",                              \
      "", "1: iris_init() fails if a peer's heap cannot be mapped")            \
    X(sim_device, CHOICE, "IRIS_SIM_DEVICE", "auto",                           \
      "auto cpu gpu", "what the sim backend runs on; auto: a GPU if it can")   \
    X(sim_cus, COUNT, "IRIS_SIM_CUS", "4",                                     \
      "", "workgroups of one kernel that run at once on the CPU")              \
    X(check, CHOICE, "IRIS_CHECK", "none",                                     \
      "none bounds race", "bounds: end CPU kernels that access memory "        \
          "that is not allocated; race: report accesses that nothing "         \
          "orders")                                                            \
    X(module_dir, STRING, "IRIS_MODULE_DIR", "",                               \
      "", "folder of loadable modules; empty: where make install put them")   \
    X(bootstrap, CHOICE, "IRIS_BOOTSTRAP", "auto",                             \
      "auto mpi env", "how ranks meet")                                        \
    X(spawn, CHOICE, "IRIS_SPAWN", "threads",                                  \
      "threads processes", "what iris_spawn() makes ranks of")                 \
    X(rank, RANK, "IRIS_RANK", "0",                                            \
      "", "this rank, for the env bootstrap")                                  \
    X(num_ranks, COUNT, "IRIS_NUM_RANKS", "1",                                 \
      "", "ranks of the job, for the env bootstrap and iris_spawn()")          \
    X(job_id, STRING, "IRIS_JOB_ID", "",                                       \
      "", "name the ranks of one job share; empty: the launcher's, else "    \
          "the parent process")                                               \
    X(heap_usable, FLAG, "IRIS_HEAP_USABLE", "0",                              \
      "", "1: the heap size is what the program can allocate; the library's "  \
          "own comes on top")                                                 \
    X(ccl_bytes, BYTES, "IRIS_CCL_SIZE", "64M",                                \
      "", "heap for collectives, at most an eighth of it")                     \
    X(all_reduce, CHOICE, "IRIS_ALL_REDUCE", "auto",                           \
      "auto one_shot two_shot one_shot_packet two_shot_packet atomic "         \
          "spinlock ring",                                                     \
      "variant of iris_all_reduce() where the call names none")                \
    X(all_gather, CHOICE, "IRIS_ALL_GATHER", "auto",                           \
      "auto push pull packet", "the same of iris_all_gather()")                \
    X(reduce_scatter, CHOICE, "IRIS_REDUCE_SCATTER", "auto",                   \
      "auto direct packet", "the same of iris_reduce_scatter()")               \
    X(all_to_all, CHOICE, "IRIS_ALL_TO_ALL", "auto",                           \
      "auto push pull packet", "the same of iris_all_to_all()")                \
    X(ccl_broadcast, CHOICE, "IRIS_CCL_BROADCAST", "auto",                     \
      "auto push pull packet", "the same of iris_ccl_broadcast()")             \
    X(ccl_tuning, STRING, "IRIS_CCL_TUNING", "",                               \
      "", "file that says which variant is best, such as iris-bench --tune "   \
          "writes; empty: the library's own table")                              \
    X(report, STRING, "IRIS_REPORT", "",                                       \
      "", "path prefix of <prefix>_report_<n>.json, written when a deadline "  \
          "passes or a rank dies; empty: none")                            \
    X(blas, CHOICE, "IRIS_BLAS", "auto",                                       \
      "auto none cblas cublaslt hipblaslt rocblas",                                                \
      "library for products of matrices; auto: the device's, if it is there")  \
    X(trace, STRING, "IRIS_TRACE", "",                                         \
      "", "file such as trace.json: every rank records what it does and "      \
          "writes it there at its end; empty: none")                           \
    X(control, CHOICE, "IRIS_CONTROL", "shm",                                  \
      "shm socket tcp", "how ranks tell each other what they call: shared "    \
          "memory, local sockets, TCP on the loopback")                        \
    X(ops_chunks, CHOICE, "IRIS_OPS_CHUNKS", "auto",                           \
      "auto 1 2 3 4 5 6 7 8", "chunks of rows that a fused operation "         \
          "overlaps, unless the call sets the number; auto: the library "      \
          "chooses")                                                           \
    X(transport, CHOICE, "IRIS_TRANSPORT", "auto",                             \
      "auto none socket", "how kernels on CPUs reach ranks of other nodes; "   \
          "none: they do not")
/* clang-format on */

#define IRIS_CONFIG_STRING(field) const char *field;
#define IRIS_CONFIG_CHOICE(field) const char *field;
#define IRIS_CONFIG_BYTES(field) int64_t field;
#define IRIS_CONFIG_MS(field) int64_t field;
#define IRIS_CONFIG_COUNT(field) int64_t field;
#define IRIS_CONFIG_RANK(field) int64_t field;
#define IRIS_CONFIG_FLAG(field) int64_t field;

/** What a program may set before iris_init(). A field left as
 *  iris_config_init() made it (NULL or -1) comes from the environment, else
 *  from the default. Strings are borrowed until the call that the
 *  configuration is passed to returns.
 *
 *  New fields come at the end. A program that was compiled with an older or a
 *  newer header than the library's works as long as it sets no field that the
 *  library does not know: that is IRIS_ERR_CONFIG. */
struct iris_config {
    size_t size; /**< Set by iris_config_init(). */
#define IRIS_CONFIG_FIELD(field, kind, env, value, choices, help) \
    IRIS_CONFIG_##kind(field)
    IRIS_CONFIG_ROWS(IRIS_CONFIG_FIELD)
#undef IRIS_CONFIG_FIELD
};

#undef IRIS_CONFIG_STRING
#undef IRIS_CONFIG_CHOICE
#undef IRIS_CONFIG_BYTES
#undef IRIS_CONFIG_MS
#undef IRIS_CONFIG_COUNT
#undef IRIS_CONFIG_RANK
#undef IRIS_CONFIG_FLAG

/** Marks every field as not set. Local, cannot fail. */
#define iris_config_init(config) \
    iris_config_init_sized((config), sizeof *(config))

/** iris_config_init() for a struct of `size` bytes, as the caller's header has
 *  it: a multiple of a pointer's size, up to 4096. Another size changes nothing,
 *  and the call that takes the struct then fails. The same is true of every
 *  ..._init_sized(). */
IRIS_API void iris_config_init_sized(struct iris_config *config, size_t size);

/** Sets a field by name, for bindings: iris_config_set(&config, "heap_size",
 *  "64M"). `name` is the field's, or its variable's without IRIS_, in upper or
 *  lower case; `value` what the variable takes, or NULL: not set. A text is
 *  borrowed until the call that the configuration is passed to returns, like
 *  the field itself; a number or a flag is read at once. Local. On an error
 *  nothing has changed.
 *
 *  IRIS_ERR_INVALID      config or name is NULL
 *  IRIS_ERR_CONFIG       no such setting (the message lists them), a value that
 *                        does not parse (it says what does), or no
 *                        iris_config_init() before it */
IRIS_API iris_status_t iris_config_set(struct iris_config *config,
                                       const char *name, const char *value);

/** Joins the job: opens the backend, allocates this rank's heap and maps every
 *  peer's. Collective over the job; blocks until all ranks have come or the
 *  deadline passes. `config` may be NULL. On success *iris_p is the caller's
 *  until iris_finalize(). On failure nothing is left open.
 *
 *  IRIS_ERR_INVALID      iris_p is NULL
 *  IRIS_ERR_CONFIG       a value does not parse (the message names it), or the
 *                        heap is too small for the library's own
 *  IRIS_ERR_BACKEND      the backend is unknown or cannot run, and why
 *  IRIS_ERR_BOOTSTRAP    rank out of range or taken, or the job id is in use
 *  IRIS_ERR_MISMATCH     ranks differ in number, heap size or backend
 *  IRIS_ERR_NO_MEMORY    the heap or shared memory cannot be had
 *  IRIS_ERR_LIMIT        no file descriptors or threads left
 *  IRIS_ERR_UNSUPPORTED  the backend lacks what a setting asks for, ranks on
 *                        several nodes, or MPI asked for and not built in
 *  IRIS_ERR_UNREACHABLE  IRIS_REQUIRE_ALL=1, and a peer's heap cannot be mapped
 *  IRIS_ERR_PEER_LOST    a rank died meanwhile
 *  IRIS_ERR_TIMEOUT      a rank did not come
 *  IRIS_ERR_INTERRUPTED  this thread's wait check said so
 *  IRIS_ERR_SYSTEM       a system call failed
 *  IRIS_ERR_DEVICE       a call of the GPU's runtime failed
 *
 *  Under mpirun the first call makes MPI ready if the program has not: MPI
 *  waits without a deadline for every rank to come, and at the process's end
 *  for every rank to end. With IRIS_BOOTSTRAP=env Iris leaves MPI alone.
 *
 *  The first call that may use a GPU sets environment variables for its
 *  runtime: no other thread may read or change the environment meanwhile. A
 *  process's second context on a GPU may wait for kernels of the first. */
IRIS_API iris_status_t iris_init(const struct iris_config *config,
                                 iris_t **iris_p);

/** Leaves the job: finishes this rank's streams, waits for every peer to
 *  finalize (no heap goes away under a running kernel), then frees everything.
 *  Collective. The context is gone whatever the status is: an error says that
 *  peers did not come along. A GPU may first finish what other contexts of the
 *  process run there: none of that may wait for what a peer does only once it
 *  has finalized. NULL is fine.
 *
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED
 *  IRIS_ERR_MISMATCH     a peer called something else; or it finalizes another
 *                        of its contexts first, so that each would wait for the
 *                        other: the order is the same on every rank, but for
 *                        those given to iris_finalize_later()
 *  IRIS_ERR_STATE        already finalized, or the process forked; or a stream
 *                        is being captured, whose earlier work then may run on
 *
 *  Also returns the error of work on a stream of any rank, such as
 *  IRIS_ERR_DEVICE. */
IRIS_API iris_status_t iris_finalize(iris_t *iris);

/** iris_finalize() that does not wait, for a garbage collector: the context is
 *  gone for this rank, whose work on streams goes on. A thread of the library
 *  finishes that, then waits for every peer to finalize, in either way, and
 *  frees everything; until then the heap stays mapped, here and for the peers.
 *  Contexts may be given to this call in any order, another one on each rank.
 *  It has no deadline but that of the work on streams: a rank may keep its
 *  context for as long as it likes. When the process ends first, what is left
 *  goes with it, and peers that finalize later still get IRIS_OK. With
 *  IRIS_CONTROL=socket or tcp, the ranks reach each other by way of rank 0: the
 *  end of its process waits until the others have finalized, IRIS_TIMEOUT_MS at
 *  most. Errors are logged. Local, never blocks, any thread; NULL is fine.
 *
 *  IRIS_ERR_STATE        already finalized, or the process forked
 *  IRIS_ERR_LIMIT        no thread can be had: the context stays as it is */
IRIS_API iris_status_t iris_finalize_later(iris_t *iris);

/** Lets this rank's device work again after an error ended some of its work.
 *  An error that ends one piece of work (a peer that died, a deadline, a wrong
 *  access) fails the context: enqueued work is skipped, kernels that wait end,
 *  and every later call that needs the device returns that same error, until
 *  this call or iris_finalize(). The outputs of the failed work are undefined,
 *  and so are the signals it waited for: set them again. The call waits until
 *  the old work is over. Local; no error to clear is fine.
 *
 *  IRIS_ERR_STATE        the error stays: a kernel cannot be ended, or the
 *                        GPU's runtime has failed for good */
IRIS_API iris_status_t iris_clear_error(iris_t *iris);

/** Ends every wait of this context on the host with IRIS_ERR_INTERRUPTED, now
 *  and from now on: for a handler of SIGINT, say. Kernels that wait end, too.
 *  After it only iris_finalize() makes sense, which then does not wait for
 *  peers; they are told. Local; never blocks. The context is live; NULL is
 *  fine. The only call that a signal handler may make. */
IRIS_API void iris_interrupt(iris_t *iris);

/** Says why this rank is about to leave the job, for the messages of its peers:
 *  "rank 1 (pid 77) left the job: KeyError: 'x'". Up to 191 bytes of `reason`
 *  are kept; NULL: none. Then call iris_interrupt() and iris_finalize() after a
 *  failure, or iris_finalize() alone at a program's regular end. A peer that
 *  has called something other than iris_finalize() by then gets
 *  IRIS_ERR_PEER_LOST with the reason, where it would get IRIS_ERR_MISMATCH.
 *  Local, never blocks; on a bad context it does nothing. */
IRIS_API void iris_set_leave_reason(iris_t *iris, const char *reason);

/** From now on every wait of this thread on the host, in any context and in
 *  iris_init(), calls check(arg) when it has lasted for some milliseconds and
 *  then about every 50 ms: an interpreter runs its handlers of signals there,
 *  so that Ctrl-C ends a wait. 0: the wait goes on. Anything else interrupts
 *  the context that waits, as iris_interrupt() does, and the call returns
 *  IRIS_ERR_INTERRUPTED; iris_init() then leaves nothing open. While check runs
 *  the library holds no lock, and it may make every call that does not wait,
 *  such as iris_free_later(). NULL: no check. Each thread has its own; local.
 *
 *  Not asked: MPI's own start and end, iris_spawn() itself while it waits for
 *  its ranks, and iris_init() once all ranks have come and map each other's
 *  heaps, or where ranks are threads and this is not rank 0. */
IRIS_API void iris_set_wait_check(int (*check)(void *arg), void *arg);

/** The rank that was lost, by its process's end or by leaving after an error;
 *  of several the first that was found, and where it all began. -1: none, or a
 *  bad context. Looks at every peer, by a system call for each that is another
 *  process. Local, does not block, any thread, several at once. */
IRIS_API int iris_lost_rank(iris_t *iris);

/** This rank, 0 <= rank < iris_num_ranks(). -1 on a bad context. */
IRIS_API int iris_rank(const iris_t *iris);

/** Ranks in the job. -1 on a bad context. */
IRIS_API int iris_num_ranks(const iris_t *iris);

/** The node of this rank, 0 <= node < iris_num_nodes(). Ranks of one node map
 *  each other's heaps; see iris_is_reachable(). -1 on a bad context. */
IRIS_API int iris_node(const iris_t *iris);

/** Nodes that the job's ranks are on: 1 unless IRIS_NODES pretends more. -1 on
 *  a bad context. */
IRIS_API int iris_num_nodes(const iris_t *iris);

/** The node of `rank`. The ranks of a node have consecutive numbers. -1 on a
 *  bad context or if there is no such rank. */
IRIS_API int iris_rank_node(const iris_t *iris, int rank);

/** Device this rank uses; always 0 on the CPU. -1 on a bad context. */
IRIS_API int iris_device_id(const iris_t *iris);

/** Workgroups of one kernel that the device runs at once for sure: compute
 *  units of a GPU, this rank's share of them if ranks share it, IRIS_SIM_CUS on
 *  the CPU. -1 on a bad context. */
IRIS_API int iris_num_cus(const iris_t *iris);

/** Name of the backend in use: "sim" or "hip". NULL on a bad context. */
IRIS_API const char *iris_backend_name(const iris_t *iris);

/** Host-readable table of iris_num_ranks() heap addresses: element r is where
 *  rank r's heap is mapped in this rank's address space, 0 if it is not.
 *  Owned by the context. NULL on a bad context. */
IRIS_API const int64_t *iris_heap_bases(const iris_t *iris);

/** The device context kernels start from (iris_dev_init()): int64 words in
 *  device memory, laid out as <iris/device/layout.h> says. Owned by the
 *  context. NULL on a bad context. */
IRIS_API const int64_t *iris_device_context(const iris_t *iris);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CONTEXT_H */
