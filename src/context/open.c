/* SPDX-License-Identifier: MIT
 *
 * The beginning of a context: its device, its backend and heap, the rendezvous with
 * its peers, and the checks that its settings ask for.
 *
 * A rank that fails before the rendezvous still goes there and says so, since its
 * peers wait for it: they all fail at once with its message. The rendezvous carries a
 * hello of each rank; after it the peers' heaps are mapped and the ranks agree on the
 * outcome. iris_i_close_all() (finalize.c) undoes any part that was made.
 */
#include "config.h"

#include "context/internal.h"

#include "backend/backend.h"
#include "base/base.h"
#include "check/check.h"
#include "context/context.h"
#include "control/control.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- The backend and the device ---- */

static iris_status_t probe_devices(const struct iris_backend_type *type,
                                   int *num_devices_p)
{
    return type == NULL ? IRIS_ERR_BACKEND : type->probe(num_devices_p);
}

/* The backend in the settings, or the first that can run. */
static iris_status_t select_backend(const struct iris_settings *settings,
                                    const struct iris_backend_type **type_p,
                                    int *num_devices_p)
{
    const char *wanted = settings->backend.text;
    const char *module_dir = settings->module_dir.text;
    const struct iris_backend_type *type = NULL;
    iris_status_t status = IRIS_ERR_BACKEND;

    if (wanted[0] != '\0') {
        status = iris_i_registry_find(wanted, module_dir, &type);
        status =
            status == IRIS_OK ? probe_devices(type, num_devices_p) : status;
    }
    for (size_t i = 0; wanted[0] == '\0' && status != IRIS_OK &&
                       iris_i_registry_at(i, module_dir, &type) != NULL;
         i++) {
        status = probe_devices(type, num_devices_p);
    }
    if (status == IRIS_OK) {
        *type_p = type;
    }
    return status;
}

/* The first GPU backend that can run, or NULL with this thread's message saying
 * why no backend can run. */
static const struct iris_backend_type *
find_gpu(const struct iris_settings *settings)
{
    const struct iris_backend_type *type;
    int known = 0, num_devices;

    for (size_t i = 0;
         iris_i_registry_at(i, settings->module_dir.text, &type) != NULL; i++) {
        if (type != NULL && !type->is_gpu) {
            continue;
        }
        known = 1;
        if (probe_devices(type, &num_devices) == IRIS_OK) {
            return type;
        }
    }
    if (!known) {
        iris_i_fail(NULL, IRIS_ERR_BACKEND,
                    "this build has no backend for GPUs; configure with "
                    "--with-backend=hip");
    }
    return NULL;
}

/* A simulation shares a real device if there is one and the settings allow
 * it. */
static iris_status_t place_simulation(const struct iris_settings *settings,
                                      int num_ranks,
                                      struct iris_placement *placement)
{
    const struct iris_backend_type *gpu = NULL;

    placement->simulation = 1;
    /* Looking for GPUs takes time, so only if it is needed. */
    if (settings->sim_device.number == IRIS_CHOICE_SIM_DEVICE_CPU) {
        return IRIS_OK;
    }
    gpu = find_gpu(settings);
    if (gpu != NULL) {
        placement->type = gpu;
        placement->ranks_on_device = num_ranks;
        return IRIS_OK;
    }
    snprintf(placement->no_gpu, sizeof placement->no_gpu, "%s",
             iris_last_error());
    if (settings->sim_device.number != IRIS_CHOICE_SIM_DEVICE_GPU) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "simulation on a GPU (IRIS_SIM_DEVICE=gpu): %.600s, or "
                       "IRIS_SIM_DEVICE=cpu",
                       placement->no_gpu);
}

/* One device for each rank. A launcher may show each rank only its own device,
 * which then has number 0 for each. The import of heaps detects two ranks that
 * share one. */
static iris_status_t choose_device(const struct iris_bootstrap *bootstrap,
                                   int num_devices,
                                   struct iris_placement *placement)
{
    placement->device = num_devices == 1 ? 0 : bootstrap->local_rank;
    if (placement->device < num_devices) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "rank %d of %d has no GPU for itself: this node shows "
                       "%d; start fewer ranks, or let them share one GPU with "
                       "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                       bootstrap->rank, bootstrap->num_ranks, num_devices);
}

iris_status_t iris_i_place(const struct iris_settings *settings,
                           const struct iris_bootstrap *bootstrap,
                           struct iris_placement *placement_p)
{
    struct iris_placement placement = {.ranks_on_device = 1};
    int num_devices = 0;
    iris_status_t status =
        select_backend(settings, &placement.type, &num_devices);

    if (status != IRIS_OK) {
        return status;
    }
    placement.name = placement.type->name;
    if (placement.type->simulates) {
        status = place_simulation(settings, bootstrap->num_ranks, &placement);
    } else if (placement.type->is_gpu) {
        status = choose_device(bootstrap, num_devices, &placement);
    } else {
        placement.simulation = 1;
    }
    if (status == IRIS_OK) {
        *placement_p = placement;
    }
    return status;
}

void iris_i_place_preload(const struct iris_settings *settings)
{
    const struct iris_backend_type *type;

    if (strcasecmp(settings->backend.text, "sim") == 0 &&
        settings->sim_device.number == IRIS_CHOICE_SIM_DEVICE_CPU) {
        return;
    }
    for (size_t i = 0;
         iris_i_registry_at(i, settings->module_dir.text, &type) != NULL; i++) {
    }
}

/* ---- The check of IRIS_CHECK ---- */

/* Whether the user has asked for one particular run. */
static bool is_scheduled(const struct iris_settings *settings)
{
    return settings->seed.origin != IRIS_ORIGIN_DEFAULT ||
           settings->replay.text[0] != '\0' ||
           settings->schedule.text[0] != '\0';
}

/* Watches the context from its first allocation on. On a GPU it only warns that
 * it checks nothing. */
static iris_status_t open_check(iris_t *iris)
{
    int64_t check = iris->settings->check.number;
    const struct iris_check_params params = {
        .heap = &iris->heap,
        .default_stream = iris->queue.streams,
        .group_key = iris_i_group_key,
        .group_size = iris_i_group_count,
        .prefix = iris->settings->report.text,
        .suppressions = iris->settings->suppressions.text,
        .is_scheduled = is_scheduled(iris->settings),
        .threads = (unsigned)iris->settings->sim_cus.number,
        .seed = (uint64_t)iris->settings->seed.number,
        .follow = iris->settings->replay.text,
        .record = iris->settings->schedule.text};
    iris_status_t status = IRIS_OK;

    if (check == IRIS_CHOICE_CHECK_NONE) {
        return IRIS_OK;
    }
    if (iris->placement.type->is_gpu) {
        iris_i_warning(&iris->log,
                       "IRIS_CHECK=%s checks nothing on a GPU; set "
                       "IRIS_SIM_DEVICE=cpu, too",
                       iris->settings->check.text);
        return IRIS_OK;
    }
    if (check == IRIS_CHOICE_CHECK_BOUNDS) {
        return iris_i_bounds_create(&iris->heap, &iris->bounds);
    }
    if (check == IRIS_CHOICE_CHECK_WEAK || params.is_scheduled) {
        status = iris_i_weak_create(&params, check == IRIS_CHOICE_CHECK_RACE,
                                    &iris->weak);
    }
    /* The scheduler comes second, so that this check sees an operation when it
     * is its turn. */
    return status == IRIS_OK && check == IRIS_CHOICE_CHECK_RACE
               ? iris_i_race_create(&params, &iris->race)
               : status;
}

#define HELLO_MAGIC 0x49726973u
#define HELLO_VERSION 14u

/* Whether to go on waiting for work: fails after the loss of a peer. */
static iris_status_t check_fate(void *arg)
{
    iris_t *iris = arg;

    /* A rank that leaves does not wait for others. */
    if (atomic_load_explicit(&iris->life, memory_order_acquire) ==
        IRIS_LIFE_FINALIZED) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "this rank has left the job");
    }
    return atomic_load(&iris->heedless) != 0
               ? IRIS_OK
               : iris_i_peers_check_all(iris->control);
}

/* Rank 0 logs the device of the simulation, if there was a choice. */
static void report_simulation(const iris_t *iris)
{
    int gpu = iris->placement.type->is_gpu;

    if (iris->log.rank == 0 && iris->placement.simulation &&
        iris->settings->sim_device.number == IRIS_CHOICE_SIM_DEVICE_AUTO &&
        HAVE_HIP) {
        iris_i_info(&iris->log, "simulation on the %s%s%s",
                    gpu ? "GPU " : "CPU", gpu ? iris->device.name : "",
                    gpu ? "" : "; IRIS_SIM_DEVICE=gpu says why not the GPU");
    }
}

/* core_ops.locate. */
static int locate_address(void *core, const void *address,
                          struct iris_location *place_p)
{
    const iris_t *iris = core;

    return iris_i_heap_locate(&iris->heap, address, place_p);
}

static struct iris_waiter make_waiter(iris_t *iris)
{
    return (struct iris_waiter){
        .log = &iris->log,
        .timeout_ms = iris->settings->timeout_ms.number,
        .warn_ms = iris->settings->warn_ms.number,
        .interrupted = &iris->interrupted,
        .heedless = &iris->heedless,
        .fate = check_fate,
        .describe = iris_i_recorder_describe_wait,
        .note = iris_i_recorder_note_wait,
        .arg = iris,
    };
}

static iris_status_t open_backend(iris_t *iris,
                                  const struct iris_bootstrap *bootstrap)
{
    static const struct iris_core_ops core_ops = {
        .describe_late = iris_i_group_describe_late,
        .note_wait = iris_i_note_wait,
        .wait_over = iris_i_wait_over,
        .locate = locate_address,
    };
    const struct iris_settings *settings = iris->settings;
    struct iris_layout_sizes sizes =
        iris_i_layout_sizes(settings, iris->log.num_ranks);
    int is_default = settings->allocator.origin == IRIS_ORIGIN_DEFAULT;
    struct iris_backend_params params = {
        .rank = iris->log.rank,
        .num_ranks = iris->log.num_ranks,
        .num_cus = (int)settings->sim_cus.number,
        .vmem = settings->allocator.number == IRIS_CHOICE_ALLOCATOR_VMEM,
        .vmem_if_needed = is_default,
        .memory = settings->hip_memory.text,
        .heap_bytes = sizes.heap_bytes,
        .reserve_bytes = sizes.reserve_bytes,
        .wait = iris_i_wait_kernel(),
        .device_timeout_ms = settings->device_timeout_ms.number,
        .log = &iris->log,
        .core_ops = &core_ops,
        .core = iris,
        .hooks = &iris->hooks,
        .far = &iris->far,
        .waiter = &iris->waiter,
    };
    iris_status_t status = iris_i_place(settings, bootstrap, &iris->placement);

    iris->waiter = make_waiter(iris);
    if (status == IRIS_OK) {
        params.device = iris->placement.device;
        params.ranks_on_device = iris->placement.ranks_on_device;
        params.vmem |= is_default && iris->placement.type->is_gpu &&
                       sizes.reserve_bytes > sizes.heap_bytes;
        status =
            iris_i_device_open(iris->placement.type, &params, &iris->backend);
    }
    if (status == IRIS_OK) {
        iris_i_device_info(iris->backend, &iris->device);
        iris->queue.backend = iris->backend;
        status = iris_i_queue_open(&iris->queue);
    }
    if (status == IRIS_OK) {
        report_simulation(iris);
    }
    return status;
}

/* The simulated node of this rank. Consecutive ranks share a node; node sizes
 * differ by at most one. */
static int32_t pretended_node(const iris_t *iris)
{
    int64_t nodes = iris->settings->nodes.number;
    int num_ranks = iris->log.num_ranks;

    nodes = nodes < num_ranks ? nodes : num_ranks;
    return (int32_t)(iris->log.rank * nodes / num_ranks);
}

static int may_have_nodes(const iris_t *iris,
                          const struct iris_bootstrap *bootstrap)
{
    return bootstrap->root.bytes != 0 ||
           (iris->settings->nodes.number > 1 && iris->log.num_ranks > 1);
}

/* How ranks of different nodes connect. */
static enum iris_control_kind find_kind(const iris_t *iris,
                                        const struct iris_bootstrap *bootstrap)
{
    return bootstrap->root.bytes != 0        ? IRIS_CONTROL_TCP
           : may_have_nodes(iris, bootstrap) ? IRIS_CONTROL_UNIX
                                             : IRIS_CONTROL_SHM;
}

/* Opens this rank's heap, and an endpoint for messages about arriving data. */
static iris_status_t open_heap(iris_t *iris, struct iris_hello *hello,
                               struct iris_control_parts *parts)
{
    struct iris_layout_sizes sizes =
        iris_i_layout_sizes(iris->settings, iris->log.num_ranks);
    const struct iris_heap_params params = {
        .log = &iris->log,
        .backend = iris->backend,
        .stream = iris->queue.streams,
        .hooks = &iris->hooks,
        .bytes = sizes.reserve_bytes,
        .size_bytes = sizes.heap_bytes,
        .reserved_bytes = sizes.own_bytes,
        .red_zone_bytes = iris_i_bounds_red_zone(iris->settings)};
    iris_status_t status =
        iris_i_layout_check(iris->settings, &iris->log, iris->log.num_ranks);

    if (status == IRIS_OK) {
        status = iris_i_heap_open(&iris->heap, &params);
    }
    if (status == IRIS_OK && iris->log.num_ranks > 1 &&
        iris_i_heap_needs_handles(&iris->heap.memory)) {
        status = iris_i_endpoint_open(&parts->endpoint);
    }
    if (status == IRIS_OK && parts->endpoint != NULL) {
        memcpy(hello->endpoint, parts->endpoint->name, sizeof hello->endpoint);
    }
    if (status == IRIS_OK) {
        status = iris_i_layout_write_id(iris, &hello->heap_id);
    }
    return status == IRIS_OK ? iris_i_heap_export(&iris->heap, &hello->handle)
                             : status;
}

/* Whether a proxy connects to ranks of other nodes, if there are any. */
static int wants_proxy(const iris_t *iris)
{
    return iris->settings->transport.number != IRIS_CHOICE_TRANSPORT_NONE;
}

/* Opens this rank for ranks of other nodes, before the rendezvous: its hello tells
 * them where. */
static iris_status_t prepare_far(iris_t *iris,
                                 const struct iris_bootstrap *bootstrap,
                                 struct iris_hello *hello)
{
    switch (iris->settings->transport.number) {
    case IRIS_CHOICE_TRANSPORT_MPI:
    case IRIS_CHOICE_TRANSPORT_MPI_MESSAGES:
        return IRIS_OK;
    case IRIS_CHOICE_TRANSPORT_UCX:
        return iris_i_ucx_prepare(hello, &iris->far_ucx);
    default:
        return iris_i_channel_socket_listen(find_kind(iris, bootstrap), hello,
                                            &iris->far_listener);
    }
}

/* This rank's preparation before the rendezvous. */
static iris_status_t prepare_rank(iris_t *iris,
                                  const struct iris_bootstrap *bootstrap,
                                  struct iris_hello *hello,
                                  struct iris_control_parts *parts)
{
    iris_status_t status =
        iris_i_control_prepare(find_kind(iris, bootstrap), hello, parts);

    if (status == IRIS_OK) {
        status = open_backend(iris, bootstrap);
    }
    if (status == IRIS_OK) {
        status = open_heap(iris, hello, parts);
    }
    if (status == IRIS_OK && may_have_nodes(iris, bootstrap) &&
        wants_proxy(iris)) {
        status = prepare_far(iris, bootstrap, hello);
    }
    if (status == IRIS_OK) {
        snprintf(hello->backend, sizeof hello->backend, "%s%s",
                 iris->placement.name,
                 iris->placement.ranks_on_device > 1 ? " on a GPU" : "");
        snprintf(hello->message, sizeof hello->message, "%s",
                 iris->placement.no_gpu);
        hello->heap_bytes = iris_i_heap_size(&iris->heap.memory);
        hello->heap_reserve = iris_i_heap_bytes(&iris->heap.memory);
        hello->check = (int32_t)iris->settings->check.number;
    } else {
        snprintf(hello->message, sizeof hello->message, "%s",
                 iris_last_error());
    }
    return status;
}

static const struct iris_heap_handle *get_handle(void *arg, int rank)
{
    return &((const struct iris_rendezvous *)arg)->hellos[rank].handle;
}

static uint64_t get_id(void *arg, int rank)
{
    return ((const struct iris_rendezvous *)arg)->hellos[rank].heap_id;
}

static int is_same_node(void *arg, int rank, int other)
{
    const struct iris_rendezvous *rendezvous = arg;

    return iris_i_hello_same_node(&rendezvous->hellos[rank],
                                  &rendezvous->hellos[other]);
}

static int is_far(void *arg, int rank)
{
    return iris_i_heap_is_far(arg, rank);
}

/* This rank while it connects to other nodes. */
struct start {
    struct iris_control *control;
    struct iris_rendezvous *rendezvous;
};

/* Rank 0 tells the others of a rank that dies before it joins the control
 * plane. */
static iris_status_t check_start(void *arg)
{
    const struct start *start = arg;
    iris_status_t status = iris_i_peers_check_all(start->control);

    if (status != IRIS_OK) {
        return status;
    }
    return start->rendezvous->rank == 0
               ? iris_i_rendezvous_root_check(start->rendezvous)
               : iris_i_rendezvous_hear(start->rendezvous);
}

static iris_status_t open_channel(iris_t *iris,
                                  const struct iris_rendezvous *rendezvous,
                                  const struct iris_waiter *waiter,
                                  struct iris_channel **channel_p)
{
    int64_t transport = iris->settings->transport.number;
    const struct iris_channel_mpi_params mpi = {
        .heap = &iris->heap,
        .waiter = waiter,
        .puts = transport == IRIS_CHOICE_TRANSPORT_MPI &&
                !iris->placement.type->is_gpu};
    const struct iris_channel_params params = {.log = &iris->log,
                                               .rendezvous = rendezvous,
                                               .waiter = waiter,
                                               .listener = iris->far_listener,
                                               .is_far = is_far,
                                               .arg = &iris->heap.memory};
    struct iris_ucx *ucx = iris->far_ucx;

    iris->far_listener = -1;
    iris->far_ucx = NULL;
    switch (transport) {
    case IRIS_CHOICE_TRANSPORT_MPI:
    case IRIS_CHOICE_TRANSPORT_MPI_MESSAGES:
        return iris_i_channel_mpi_open(&mpi, channel_p);
    case IRIS_CHOICE_TRANSPORT_UCX:
        return iris_i_channel_ucx_open(&iris->log, rendezvous, ucx, channel_p);
    default:
        return iris_i_channel_socket_open(&params, channel_p);
    }
}

/* Connects to the ranks of other nodes. */
static iris_status_t open_proxy(iris_t *iris,
                                struct iris_rendezvous *rendezvous)
{
    struct iris_waiter waiter = iris_i_peers_waiter(iris->control);
    struct iris_channel *channel;
    struct start start = {iris->control, rendezvous};
    iris_status_t status;

    waiter.fate = check_start;
    waiter.arg = &start;
    status = open_channel(iris, rendezvous, &waiter, &channel);
    if (status == IRIS_OK) {
        status = iris_i_proxy_open(
            &iris->heap, channel,
            iris->placement.type->is_gpu ? iris_i_update_kernel : NULL,
            &iris->proxy);
    }
    if (status == IRIS_OK) {
        iris->far = iris_i_proxy_far(iris->proxy);
        iris->heap.has_proxy = 1;
        iris->queue.is_far = iris->placement.type->is_gpu;
    }
    return status;
}

/* Uses the results of the rendezvous. */
static iris_status_t connect_peers(iris_t *iris,
                                   struct iris_rendezvous *rendezvous,
                                   struct iris_control_parts *parts)
{
    const struct iris_heap_peers peers = {
        .handle = get_handle,
        .id = get_id,
        .same_node = is_same_node,
        .arg = rendezvous,
        .id_offset = iris_i_layout_id_offset(iris->log.num_ranks),
        .require_all = (int)iris->settings->require_all.number};
    iris_status_t status =
        iris_i_control_open(&iris->log, rendezvous, parts, &iris->control);

    if (status != IRIS_OK) {
        return status;
    }
    iris->control->interrupted = &iris->interrupted;
    iris->control->timeout_ms = iris->settings->timeout_ms.number;
    iris->control->warn_ms = iris->settings->warn_ms.number;
    iris->control->by_ns = rendezvous->deadline;
    status = iris_i_recorder_open(iris);
    if (status == IRIS_OK) {
        iris->world = iris_i_group_make(iris, NULL, iris->log.num_ranks);
        status = iris->world == NULL ? IRIS_ERR_NO_MEMORY : IRIS_OK;
    }
    if (status == IRIS_OK) {
        status =
            iris_i_heap_connect(&iris->heap, &iris->world->members, &peers);
    }
    if (status == IRIS_OK && wants_proxy(iris) &&
        iris->heap.memory.num_nodes > 1) {
        status = open_proxy(iris, rendezvous);
    }
    if (status == IRIS_OK) {
        status = open_check(iris);
    }
    if (status == IRIS_OK) {
        status = iris_i_layout_write_context(iris);
    }
    return status == IRIS_OK ? iris_i_group_write_device(iris, iris->world)
                             : status;
}

/* A default prefix may name a folder without write permission. */
iris_status_t iris_i_write_bases(iris_t *iris)
{
    const struct iris_setting *prefix = &iris->settings->heap_bases_prefix;
    int asked = prefix->origin != IRIS_ORIGIN_DEFAULT;
    iris_status_t status;

    if (!iris->settings->heap_bases_files.number ||
        (!iris->placement.simulation && !asked)) {
        return IRIS_OK;
    }
    status = iris_i_bases_write(&iris->heap.memory, prefix->text);
    if (status != IRIS_OK && !asked) {
        iris_i_warning(&iris->log, "no heap-bases file: %s", iris_last_error());
        return IRIS_OK;
    }
    if (status == IRIS_OK && iris->log.rank == 0) {
        iris_i_info(&iris->log,
                    "heap bases are in %.500s_rank_*_heap_bases.json%s; "
                    "IRIS_HEAP_BASES_FILES=0 writes none",
                    prefix->text,
                    prefix->text[0] == '/' ? "" : " in the working directory");
    }
    return status;
}

/* A base of 0 goes into the device context and into the world's words, too. */
static iris_status_t agree_on_reach(iris_t *iris)
{
    int changed = 0;
    iris_status_t status = iris_i_heap_agree_on_reach(&iris->heap, &changed);

    iris_i_agree_reset(iris->control);
    if (status == IRIS_OK && changed) {
        status = iris_i_layout_write_context(iris);
    }
    return status == IRIS_OK && changed
               ? iris_i_group_write_device(iris, iris->world)
               : status;
}

/* All ranks meet, even after a failed preparation (`status`), so that all learn
 * of a failure at once. */
static iris_status_t join_peers(iris_t *iris,
                                const struct iris_bootstrap *bootstrap,
                                iris_status_t status,
                                struct iris_control_parts *parts)
{
    struct iris_hello hello = {.magic = HELLO_MAGIC,
                               .version = HELLO_VERSION,
                               .rank = iris->log.rank,
                               .num_ranks = iris->log.num_ranks,
                               .pid = getpid(),
                               .part = pretended_node(iris),
                               .control_address = bootstrap->own,
                               .far_address = bootstrap->own,
                               .handle = {.fd = -1}};
    struct iris_rendezvous rendezvous;

    snprintf(hello.message, sizeof hello.message, "%s", iris_last_error());
    hello.status = iris_i_rendezvous_open(bootstrap, iris->settings, &iris->log,
                                          &rendezvous);
    if (hello.status != IRIS_OK) {
        return status == IRIS_OK ? (iris_status_t)hello.status
                                 : iris_i_fail_again(status, hello.message);
    }
    if (status == IRIS_OK) {
        status = prepare_rank(iris, bootstrap, &hello, parts);
    }
    hello.status = status;
    status = iris_i_rendezvous_join(&rendezvous, &hello);
    if (hello.status != IRIS_OK) {
        return iris_i_fail_again((iris_status_t)hello.status, hello.message);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = connect_peers(iris, &rendezvous, parts);
    if (status == IRIS_OK) {
        status = iris_i_write_bases(iris);
    }
    if (status == IRIS_OK) {
        iris_i_peers_set_state(iris->control, IRIS_RANK_RUNNING);
    } else { /* others may wait for this rank before they come to agree */
        iris_i_peers_leave(iris->control, iris_last_error());
    }
    status = iris_i_rendezvous_agree(&rendezvous, status);
    iris_i_rendezvous_drop(&rendezvous);
    if (status == IRIS_OK) {
        status = agree_on_reach(iris);
    }
    if (status == IRIS_OK) {
        iris->control->by_ns = 0;
    }
    return status;
}

static iris_t *make_context(const struct iris_bootstrap *bootstrap,
                            const struct iris_settings *settings)
{
    iris_t *iris = calloc(1, sizeof *iris);
    struct iris_settings *kept = malloc(sizeof *kept);

    if (iris == NULL || kept == NULL) {
        free(iris);
        free(kept);
        iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a context");
        return NULL;
    }
    iris->pid = getpid();
    iris->far_listener = -1;
    iris->owner = pthread_self();
    iris->log.rank = bootstrap->rank;
    iris->generator = iris_generator_make(0, (uint64_t)bootstrap->rank);
    iris->log.num_ranks = bootstrap->num_ranks;
    *kept = *settings;
    iris->settings = kept;
    iris->queue.log = &iris->log;
    iris->queue.heap = &iris->heap;
    iris->queue.hooks = &iris->hooks;
    atomic_init(&iris->log.level, iris_i_log_level(settings->log_level.text));
    atomic_init(&iris->life, IRIS_LIFE_LIVE);
    pthread_mutex_init(&iris->groups_lock, NULL);
    return iris;
}

iris_status_t iris_i_context_open(const struct iris_settings *settings,
                                  const struct iris_bootstrap *bootstrap,
                                  const struct iris_life_ops *life_ops,
                                  iris_status_t status, iris_t **iris_p)
{
    iris_t *iris = make_context(bootstrap, settings);
    struct iris_control_parts parts = IRIS_CONTROL_NO_PARTS;
    const char *heap;

    if (iris == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    iris->life_ops = life_ops;
    if (iris->log.rank == 0) {
        iris_i_environment_check(&iris->log);
    }
    status = join_peers(iris, bootstrap, status, &parts);
    if (status != IRIS_OK) {
        iris_i_fail_on(&iris->log, status);
        iris_i_peers_leave(iris->control, iris_last_error());
        iris_i_close_all(iris);
        iris_i_control_parts_close(&parts);
        free(iris->settings);
        free(iris);
        return status;
    }
    heap = iris_i_device(iris)->heap;
    iris_i_debug(&iris->log,
                 "ready: backend %s, heap %zu bytes of %s at %p, reserved %zu, "
                 "bootstrap %s",
                 iris->placement.name, iris_i_heap_size(&iris->heap.memory),
                 heap[0] == '\0' ? "host memory" : heap,
                 (void *)iris_i_heap_base(&iris->heap.memory),
                 iris_i_heap_bytes(&iris->heap.memory), bootstrap->how);
    iris_i_enlist(iris);
    life_ops->begun(iris);
    *iris_p = iris;
    return IRIS_OK;
}
