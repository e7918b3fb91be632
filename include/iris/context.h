/* SPDX-License-Identifier: MIT
 *
 * The context: one rank's view of the job, from iris_init() to iris_finalize().
 * A process may hold several contexts, one after another or at the same time.
 *
 *     iris_t *iris;
 *     status = iris_init(NULL, &iris);    // settings from the environment
 *     if (status != IRIS_OK) {
 *         fprintf(stderr, "%s\n", iris_last_error());
 *         return status;
 *     }
 *     printf("%d of %d\n", iris_rank(iris), iris_num_ranks(iris));
 *     status = iris_finalize(iris);
 *
 * iris_spawn() does the same for every rank of a job that has no launcher.
 *
 * @use local; never blocks; apart
 */
#ifndef IRIS_CONTEXT_H
#define IRIS_CONTEXT_H

#include <iris/status.h>
#include <iris/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank. Opaque. Only one thread at a time may make collective calls on a
 *  context; any thread may call getters.
 *
 *  Every call that takes a context and returns a status can return
 *  IRIS_ERR_INVALID and IRIS_ERR_STATE, even if its comment does not list them.
 *  Where a comment lists a status without a cause, the cause is this one:
 *  IRIS_ERR_INVALID      the context is NULL (but see iris_finalize())
 *  IRIS_ERR_NO_MEMORY    the system or the GPU is out of memory
 *  IRIS_ERR_UNREACHABLE  that rank's heap is not mapped here
 *  IRIS_ERR_PEER_LOST    a rank died, or left after an error; the message names it
 *  IRIS_ERR_TIMEOUT      the deadline IRIS_TIMEOUT_MS passed; the message says
 *                        which rank is late and what it is doing
 *  IRIS_ERR_MISMATCH     ranks made different calls; the message names them
 *  IRIS_ERR_STATE        the context has been finalized, or it belongs to the
 *                        process that forked this one
 *  IRIS_ERR_LIMIT        no file descriptors or threads are left
 *  IRIS_ERR_DEVICE       the GPU or its runtime failed, now or in earlier work
 *  IRIS_ERR_INTERRUPTED  iris_interrupt() or this thread's wait check ended it
 *
 *  A call that can return IRIS_ERR_PEER_LOST can return IRIS_ERR_REVOKED, too: a
 *  rank called iris_revoke() or iris_shrink(). */
typedef struct iris_context iris_t;

/* All settings: X(field, kind, ENV_NAME, default, choices, help).
 * Kinds: STRING (any text), CHOICE (one of `choices`), BYTES (with K, M or G),
 * MS (milliseconds), COUNT (a positive integer), RANK (an integer from 0), FLAG
 * (1, true, yes, 0, false or no). struct iris_config, the parser, iris info and
 * the README's table are generated from this table. */
/* clang-format off */
#define IRIS_CONFIG_ROWS(X)                                                    \
    X(backend, STRING, "IRIS_BACKEND", "",                                     \
      "", "backend to use; empty: the best one that can run. IRIS_SIMULATION=1 "\
          "means sim, too")                                                    \
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
      "", "for tests: number of nodes that the ranks pretend to be on")        \
    X(require_all, FLAG, "IRIS_REQUIRE_ALL", "0",                              \
      "", "1: iris_init() fails if a peer's heap cannot be mapped")            \
    X(sim_device, CHOICE, "IRIS_SIM_DEVICE", "auto",                           \
      "auto cpu gpu", "device of the sim backend; auto: a GPU if it can use "  \
          "one")                                                               \
    X(sim_cus, COUNT, "IRIS_SIM_CUS", "4",                                     \
      "", "workgroups of one kernel that run at once on the CPU")              \
    X(check, CHOICE, "IRIS_CHECK", "none",                                     \
      "none bounds race weak", "bounds: end CPU kernels that access memory "   \
          "that is not allocated; race: report accesses that nothing "         \
          "orders; weak: let reads see old values")                                                            \
    X(module_dir, STRING, "IRIS_MODULE_DIR", "",                               \
      "", "folder of loadable modules; empty: where make install put them")   \
    X(bootstrap, CHOICE, "IRIS_BOOTSTRAP", "auto",                             \
      "auto mpi env", "how ranks meet")                                        \
    X(spawn, CHOICE, "IRIS_SPAWN", "threads",                                  \
      "threads processes", "ranks that iris_spawn() starts are threads or "    \
          "processes")                                                         \
    X(rank, RANK, "IRIS_RANK", "0",                                            \
      "", "this rank, for the env bootstrap")                                  \
    X(num_ranks, COUNT, "IRIS_NUM_RANKS", "1",                                 \
      "", "ranks of the job, for the env bootstrap and iris_spawn()")          \
    X(job_id, STRING, "IRIS_JOB_ID", "",                                       \
      "", "name the ranks of one job share; empty: the launcher's, else "    \
          "the parent process")                                               \
    X(heap_usable, FLAG, "IRIS_HEAP_USABLE", "0",                              \
      "", "1: the program can allocate the whole heap size; the library's "    \
          "share comes on top")                                                \
    X(ccl_bytes, BYTES, "IRIS_CCL_SIZE", "64M",                                \
      "", "heap for collectives, at most an eighth of it")                     \
    X(ccl, LIST, "IRIS_CCL", "",                                               \
      "all_reduce=one_shot all_reduce=two_shot all_reduce=one_shot_packet "    \
          "all_reduce=two_shot_packet all_reduce=atomic all_reduce=spinlock "  \
          "all_reduce=ring all_gather=push all_gather=pull all_gather=packet " \
          "reduce_scatter=direct reduce_scatter=packet all_to_all=push "       \
          "all_to_all=pull all_to_all=packet broadcast=push broadcast=pull "   \
          "broadcast=packet",                                                  \
      "variants of collectives where the call names none, separated by "       \
          "commas; the last one of a collective counts")                       \
    X(ccl_tuning, STRING, "IRIS_CCL_TUNING", "",                               \
      "", "tuning file written by iris bench --tune; empty: the library's "    \
          "own table")                                                         \
    X(report, STRING, "IRIS_REPORT", "",                                       \
      "", "path prefix of <prefix>_report_<n>.json, written when a deadline "  \
          "passes or a rank dies; empty: none")                            \
    X(blas, CHOICE, "IRIS_BLAS", "auto",                                       \
      "auto none cblas cublaslt hipblaslt",                                    \
      "library for products of matrices; auto: the device's, if it is there")  \
    X(trace, STRING, "IRIS_TRACE", "",                                         \
      "", "file such as trace.json: every rank records its operations and "    \
          "writes them there at its end; nvtx or roctx: ranges for a profiler; "   \
          "empty: no trace")                     \
    X(ops_chunks, CHOICE, "IRIS_OPS_CHUNKS", "auto",                           \
      "auto 1 2 3 4 5 6 7 8", "parts of a product that a fused operation "     \
          "overlaps, unless the call sets the number; auto: the library "      \
          "chooses")                                                           \
    X(transport, CHOICE, "IRIS_TRANSPORT", "auto",                             \
      "auto none socket mpi mpi-messages ucx", "how kernels on CPUs reach "    \
          "ranks of other nodes: sockets (auto, too), MPI_Put with messages, " \
          "messages of MPI alone, or UCX; none: they do not")                  \
    X(seed, COUNT, "IRIS_SEED", "1",                                           \
      "", "number of the run that IRIS_CHECK=weak makes")                      \
    X(schedule, STRING, "IRIS_SCHEDULE", "",                                   \
      "", "file that IRIS_CHECK=weak records its run in; empty: none")         \
    X(replay, STRING, "IRIS_REPLAY", "",                                       \
      "", "recorded file that IRIS_CHECK=weak follows; empty: the seed")       \
    X(root, STRING, "IRIS_ROOT", "",                                           \
      "", "rank 0's host and a free port there, for jobs of several hosts; "   \
          "empty: the launcher's, if it names them")                           \
    X(suppressions, STRING, "IRIS_CHECK_SUPPRESSIONS", "",                     \
      "", "file of races that IRIS_CHECK=race does not report; empty: none")   \
    X(device_delay, STRING, "IRIS_DEVICE_DELAY", "",                           \
      "", "for tests: RANK:MICROSECONDS, separated by commas; kernels on GPUs "\
          "compiled with iriscc --trace wait at random up to that long before "\
          "each operation")                                                    \
    X(job_secret, STRING, "IRIS_JOB_SECRET", "",                               \
      "", "16 or more characters that all ranks of a job of several hosts "    \
          "share and no other user knows")                                     \
    X(job_secret_file, STRING, "IRIS_JOB_SECRET_FILE", "",                     \
      "", "file with such a secret, readable only by its owner, on each host") \
    X(insecure, FLAG, "IRIS_INSECURE", "0",                                    \
      "", "1: no warning if a job of several hosts has no secret")             \
    X(heap_reserve, BYTES, "IRIS_HEAP_RESERVE", "0",                           \
      "", "size that each heap may grow to, also more than there is memory; "  \
          "0: IRIS_HEAP_SIZE")
/* clang-format on */

#define IRIS_CONFIG_STRING(field) const char *field;
#define IRIS_CONFIG_CHOICE(field) const char *field;
#define IRIS_CONFIG_LIST(field) const char *field;
#define IRIS_CONFIG_BYTES(field) int64_t field;
#define IRIS_CONFIG_MS(field) int64_t field;
#define IRIS_CONFIG_COUNT(field) int64_t field;
#define IRIS_CONFIG_RANK(field) int64_t field;
#define IRIS_CONFIG_FLAG(field) int64_t field;

/** The settings that a program may pass to iris_init(). iris_config_init() sets
 *  every field to NULL or -1. A field with that value comes from the
 *  environment variable, or from the default if the variable is not set. The
 *  library borrows strings until the call that takes the configuration returns.
 *
 *  Later versions add fields at the end. A program that was compiled with an
 *  older or newer header than the library's works. If it sets a field that the
 *  library does not know, the call fails with IRIS_ERR_CONFIG. */
struct iris_config {
    size_t size; /**< Set by iris_config_init(). */
#define IRIS_CONFIG_FIELD(field, kind, env, value, choices, help) \
    IRIS_CONFIG_##kind(field)
    IRIS_CONFIG_ROWS(IRIS_CONFIG_FIELD)
#undef IRIS_CONFIG_FIELD
};

#undef IRIS_CONFIG_STRING
#undef IRIS_CONFIG_CHOICE
#undef IRIS_CONFIG_LIST
#undef IRIS_CONFIG_BYTES
#undef IRIS_CONFIG_MS
#undef IRIS_CONFIG_COUNT
#undef IRIS_CONFIG_RANK
#undef IRIS_CONFIG_FLAG

/** Marks every field as not set. Local, cannot fail.
 *  @param config  the struct to set */
#define iris_config_init(config) \
    iris_config_init_sized((config), sizeof *(config))

/** iris_config_init() for a struct of `size` bytes, which is the size in the
 *  caller's header: a multiple of a pointer's size, up to 4096. With any other
 *  size the call changes nothing, and the call that takes the struct fails. The
 *  same holds for every ..._init_sized(). */
IRIS_API void iris_config_init_sized(struct iris_config *config, size_t size);

/** Sets a field by name, for bindings: iris_config_set(&config, "heap_size",
 *  "64M"). `name` is the name of the field, or of its environment variable
 *  without IRIS_, in upper or lower case. `value` has the form that the
 *  variable takes; NULL unsets the field. The library borrows a text until the
 *  call that takes the configuration returns. It reads a number or a flag at
 *  once. Local. On an error the configuration is unchanged.
 *
 *  IRIS_ERR_INVALID      config or name is NULL
 *  IRIS_ERR_CONFIG       there is no such setting (the message lists them), the
 *                        value does not parse (the message says what does), or
 *                        iris_config_init() was not called before
 *  @param config  the struct, after iris_config_init()
 *  @param name  the setting, such as "heap_size"
 *  @param value  its value as text; NULL unsets it */
IRIS_API iris_status_t iris_config_set(struct iris_config *config,
                                       const char *name, const char *value);

/** Joins the job: opens the backend, allocates this rank's heap and maps every
 *  peer's heap. Collective over the job; blocks until all ranks have called it
 *  or the deadline passes. `config` may be NULL. On success the caller owns
 *  *iris_p until iris_finalize(). On failure nothing is left open.
 *
 *  IRIS_ERR_INVALID      iris_p is NULL
 *  IRIS_ERR_CONFIG       a value does not parse (the message names it), or the
 *                        heap has no room for the library's own data
 *  IRIS_ERR_BACKEND      the backend is unknown or cannot run; the message says
 *                        why
 *  IRIS_ERR_BOOTSTRAP    the rank is out of range or taken, or another job uses
 *                        the job id
 *  IRIS_ERR_MISMATCH     ranks differ in number, heap size or backend
 *  IRIS_ERR_NO_MEMORY    no memory for the heap, or no shared memory
 *  IRIS_ERR_LIMIT        no file descriptors or threads left
 *  IRIS_ERR_UNSUPPORTED  the backend lacks a feature that a setting asks for,
 *                        ranks are on several nodes, or the bootstrap is MPI
 *                        and the library was built without it
 *  IRIS_ERR_UNREACHABLE  IRIS_REQUIRE_ALL=1, and a peer's heap cannot be mapped
 *  IRIS_ERR_PEER_LOST    a rank died meanwhile
 *  IRIS_ERR_TIMEOUT      a rank did not call in time
 *  IRIS_ERR_INTERRUPTED  this thread's wait check interrupted the call
 *  IRIS_ERR_SYSTEM       a system call failed
 *  IRIS_ERR_DEVICE       a call of the GPU's runtime failed
 *
 *  Under mpirun the first call initializes MPI if the program has not. MPI
 *  waits without a deadline until every rank has come; when the process ends,
 *  it waits until every rank ends. With IRIS_BOOTSTRAP=env Iris does not use
 *  MPI.
 *
 *  The first call that may use a GPU sets environment variables for the GPU's
 *  runtime. No other thread may read or change the environment meanwhile. A
 *  process's second context on a GPU may wait for kernels of the first.
 *  @use job; blocks; apart
 *  @param iris_p  receives the context */
IRIS_API iris_status_t iris_init(const struct iris_config *config,
                                 iris_t **iris_p);

/** Leaves the job: completes the work on this rank's streams, waits for every
 *  peer to finalize, so that no heap goes away under a running kernel, and
 *  frees everything. Collective. The context is gone after every status; an
 *  error says that some peers did not finalize. NULL does nothing.
 *
 *  A GPU may first complete the kernels of the process's other contexts. Those
 *  kernels must not wait for something that a peer does only after it has
 *  finalized this context.
 *
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED
 *  IRIS_ERR_MISMATCH     a peer made another call, or finalizes another of its
 *                        contexts first, so that the ranks would wait for each
 *                        other. All ranks finalize their contexts in the same
 *                        order, except those passed to iris_finalize_later().
 *  IRIS_ERR_STATE        already finalized; or the process forked; or a stream
 *                        is being captured, and its earlier work may still run
 *
 *  Also returns the error of work on a stream of any rank, such as
 *  IRIS_ERR_DEVICE.
 *  @use job; blocks; refused */
IRIS_API iris_status_t iris_finalize(iris_t *iris);

/** Finalizes the context without waiting, for garbage collectors. The context
 *  is gone for this rank when the call returns; work on its streams continues.
 *  A thread of the library completes that work, waits for every peer to
 *  finalize (with this call or iris_finalize()), and frees everything. Until
 *  then this rank and its peers keep the heap mapped. Ranks may pass their
 *  contexts to this call in different orders.
 *
 *  Only the work on streams has a deadline: a peer may keep its context for any
 *  time. If the process ends first, the system frees the rest, and peers that
 *  finalize later still get IRIS_OK. In a job of several nodes
 *  the ranks' messages pass through the lowest rank of each node. The end of its
 *  process therefore waits until the other ranks of its node have finalized, for
 *  IRIS_TIMEOUT_MS at most. Errors are
 *  logged. Local and thread-safe; never blocks. NULL does nothing.
 *
 *  IRIS_ERR_STATE        already finalized, or the process forked
 *  IRIS_ERR_LIMIT        no thread could be started; the context is unchanged
 *  @use any thread */
IRIS_API iris_status_t iris_finalize_later(iris_t *iris);

/** Makes this rank's device usable again after an error. If an error ends one
 *  piece of work (a peer died, a deadline passed, a kernel accessed wrong
 *  memory), the context fails: the streams skip enqueued work, waiting kernels
 *  end, and every later call that needs the device returns the same error. This
 *  lasts until this call or iris_finalize(). The outputs of the failed work are
 *  undefined, and so are the signals that it waited for: set them again. The
 *  call waits until the old work has ended. Local. Without an error it does
 *  nothing.
 *
 *  IRIS_ERR_STATE        the error stays: a kernel cannot be ended, or the
 *                        GPU's runtime has failed for good
 *  @use blocks */
IRIS_API iris_status_t iris_clear_error(iris_t *iris);

/** Ends every present and future host wait of this context with
 *  IRIS_ERR_INTERRUPTED, for example from a handler of SIGINT. Waiting kernels
 *  end, too. The only useful call afterwards is iris_finalize(), which then
 *  notifies the peers and does not wait for them. Local; never blocks. The
 *  context must be live; NULL does nothing. A signal handler may make this call
 *  and no other. */
IRIS_API void iris_interrupt(iris_t *iris);

/** Ends every present and future wait of all ranks of the job, on the host and in
 *  kernels, with IRIS_ERR_REVOKED, until they call iris_shrink(). So if one rank
 *  cannot go on as before, the others notice at once, wherever they wait. A rank
 *  that does not wait notices at its next collective call. Ranks of other nodes do
 *  not notice. Local; never blocks. A second call does nothing. */
IRIS_API iris_status_t iris_revoke(iris_t *iris);

/** Goes on with the ranks that are left, after IRIS_ERR_PEER_LOST,
 *  IRIS_ERR_TIMEOUT, IRIS_ERR_MISMATCH or IRIS_ERR_REVOKED. Every living rank
 *  calls it, or leaves by iris_finalize(). The call revokes the job first, so
 *  that the others come. It ends this rank's kernels that wait, and completes
 *  its other work. All ranks that return IRIS_OK from the same round have the
 *  same survivors, whichever ranks die meanwhile.
 *
 *  The context stays, with fewer ranks: iris_rank() counts the survivors in
 *  their former order, and iris_num_ranks() is their number. So are streams,
 *  the heaps of the survivors, their contents, and the addresses and offsets of
 *  all allocations on them. Groups, workspaces, plans, graphs, and pointers from
 *  iris_as_remote() to a lost heap are gone. iris_heap_bases() moves up.
 *
 *  A collective call that was under way may have succeeded on some survivors
 *  and failed on others. The program agrees on where to go on, for example by
 *  an iris_broadcast() of the last step that is complete.
 *
 *  If another rank dies before a rank returns, that rank shrinks once more. The
 *  survivors that have returned get IRIS_ERR_PEER_LOST or IRIS_ERR_REVOKED from
 *  their next call that waits, and call iris_shrink() again.
 *
 *  After an error except IRIS_ERR_INVALID, IRIS_ERR_STATE and
 *  IRIS_ERR_UNSUPPORTED, only iris_finalize() may follow.
 *
 *  IRIS_ERR_UNSUPPORTED  ranks are on several nodes; a trace records; or
 *                        IRIS_CHECK is race or weak
 *  IRIS_ERR_STATE        a kernel of this rank cannot be ended
 *  IRIS_ERR_MISMATCH     an allocation that was under way succeeded on some
 *                        survivors and failed on others
 *  IRIS_ERR_TIMEOUT      a living rank did not call in time
 *  IRIS_ERR_INTERRUPTED  this rank, or one that waited in this call, was interrupted
 *  IRIS_ERR_SYSTEM       the others took this rank for dead
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_DEVICE
 *  @use job; blocks; refused; one node
 *  @param former_ranks  receives the former rank of each rank that is left, so
 *                       it has room for the former iris_num_ranks(); may be
 *                       NULL */
IRIS_API iris_status_t iris_shrink(iris_t *iris, int *former_ranks);

/** Sets the reason for which this rank is about to leave the job. Its peers'
 *  messages quote it: "rank 1 (pid 77) left the job: KeyError: 'x'". The
 *  library keeps up to 191 bytes of `reason`; NULL removes the reason. After a
 *  failure, call iris_interrupt() and iris_finalize() next; at the regular end
 *  of a program, call iris_finalize() alone. A peer that is in any other call
 *  than iris_finalize() then gets IRIS_ERR_PEER_LOST with the reason; without a
 *  reason it would get IRIS_ERR_MISMATCH. Local; never blocks. On a bad context
 *  it does nothing.
 *  @param reason  one line of text, copied; NULL: none */
IRIS_API void iris_set_leave_reason(iris_t *iris, const char *reason);

/** Sets a function that this thread's host waits call, in any context and in
 *  iris_init(): first after some milliseconds, then about every 50 ms.
 *  Interpreters run their signal handlers in it, so that Ctrl-C ends a wait. If
 *  check(arg) returns 0, the wait continues. Any other value interrupts the
 *  waiting context, as iris_interrupt() does, and the call returns
 *  IRIS_ERR_INTERRUPTED; iris_init() then leaves nothing open. The library
 *  holds no lock while it calls `check`, which may make every call that does
 *  not wait, such as iris_free_later(). NULL removes the check. Each thread has
 *  its own check. Local.
 *
 *  The following waits do not call it:
 *   - the start and end of MPI;
 *   - iris_spawn(), while it waits for its ranks;
 *   - iris_init(), while ranks map each other's heaps;
 *   - iris_init() of ranks other than 0, where ranks are threads.
 *  @param check  the function; NULL: none
 *  @param arg  its argument */
IRIS_API void iris_set_wait_check(int (*check)(void *arg), void *arg);

/** The rank that was lost: its process ended, or it left after an error. If
 *  several ranks were lost, the one that was found first, from which the loss
 *  of the others followed. -1 if no rank was lost, or on a bad context. The
 *  call looks at every peer, with one system call for each peer process. Local
 *  and thread-safe; does not block. */
IRIS_API int iris_lost_rank(iris_t *iris);

/** This rank, 0 <= rank < iris_num_ranks(). -1 on a bad context. */
IRIS_API int iris_rank(const iris_t *iris);

/** Ranks in the job. -1 on a bad context. */
IRIS_API int iris_num_ranks(const iris_t *iris);

/** The node of this rank, 0 <= node < iris_num_nodes(). Ranks of one node map
 *  each other's heaps; see iris_is_reachable(). -1 on a bad context. */
IRIS_API int iris_node(const iris_t *iris);

/** Number of nodes that the job's ranks are on: 1 unless IRIS_NODES pretends
 *  more. The ranks of a node have consecutive numbers. -1 on a bad context. */
IRIS_API int iris_num_nodes(const iris_t *iris);

/** Device this rank uses; always 0 on the CPU. -1 on a bad context. */
IRIS_API int iris_device_id(const iris_t *iris);

/** The number of workgroups of one kernel that are certain to run at the same
 *  time: a GPU's compute units, or this rank's share of them if ranks share the
 *  GPU; on the CPU, IRIS_SIM_CUS. -1 on a bad context. */
IRIS_API int iris_num_cus(const iris_t *iris);

/** Name of the backend in use: "sim" or "hip". NULL on a bad context. */
IRIS_API const char *iris_backend_name(const iris_t *iris);

/** Host-readable table of iris_num_ranks() heap addresses. Element r is the
 *  address of rank r's heap in this rank's address space, or 0 if this rank
 *  does not map it. Owned by the context. NULL on a bad context. */
IRIS_API const int64_t *iris_heap_bases(const iris_t *iris);

/** The device context that kernels pass to iris_dev_init(): int64 words in
 *  device memory, in the layout of <iris/device/layout.h>. Owned by the
 *  context. NULL on a bad context. */
IRIS_API const int64_t *iris_device_context(const iris_t *iris);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CONTEXT_H */
