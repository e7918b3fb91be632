/* SPDX-License-Identifier: MIT
 *
 * The engine of UCX: packets are tagged messages of host memory, which UCX keeps
 * in order, over InfiniBand, RoCE, TCP or shared memory. libucp is loaded at run
 * time.
 *
 * A tag is the receiver's token and the sender's rank. Tokens are random, and travel
 * with the addresses through the rendezvous. An endpoint is made at the first
 * packet to its rank. Once it breaks, nothing is sent to the rank any more.
 */
#include "config.h"

#include "transport/internal.h"

#include "base/base.h"
#include "control/control.h"

#if HAVE_UCX

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <ucp/api/ucp.h>

/* The part of a tag that is the sender's rank. */
#define RANK_BITS 20
#define RANK_MASK ((UINT64_C(1) << RANK_BITS) - 1)

/* The most events that one look at a packet lets UCX work on. */
#define MOST_EVENTS 16

/* The most times that UCX works on a request that ends at once. */
#define END_TURNS (1 << 16)

/* The functions of UCX that are used. Their own names are those of its header. */
/* clang-format off */
#define UCX_CALLS(X)                                                       \
    X(ucp_init_version) X(ucp_config_read) X(ucp_config_release)           \
    X(ucp_cleanup) X(ucp_worker_create) X(ucp_worker_destroy)              \
    X(ucp_worker_get_address) X(ucp_worker_release_address)                \
    X(ucp_worker_get_efd) X(ucp_worker_arm) X(ucp_worker_progress)         \
    X(ucp_ep_create) X(ucp_ep_close_nbx) X(ucp_tag_send_nbx)               \
    X(ucp_tag_recv_nbx) X(ucp_tag_recv_request_test)                       \
    X(ucp_request_check_status) X(ucp_request_cancel) X(ucp_request_free)  \
    X(ucs_status_string)
/* clang-format on */

struct calls {
#define UCX_MEMBER(name) __typeof__(&(name)) name;
    UCX_CALLS(UCX_MEMBER)
#undef UCX_MEMBER
};

struct endpoint {
    ucp_ep_h ep; /* NULL: it is not made yet */
    uint64_t token;
    ucs_status_t broken; /* UCS_OK: it is not */
    ucp_address_t *address;
};

struct iris_ucx {
    struct iris_engine base;
    struct calls ucx;
    const struct iris_log *log;
    ucp_context_h context;
    ucp_worker_h worker;
    uint64_t token;             /* this rank's, above RANK_BITS */
    int efd;                    /* readable: the worker has events */
    struct endpoint *endpoints; /* for each rank */
};

static struct iris_ucx *ucx_of(struct iris_engine *engine)
{
    return (struct iris_ucx *)engine;
}

/* ---- Packets ---- */

static int ucx_enter(struct iris_engine *engine)
{
    (void)engine;
    return 1;
}

static void ucx_leave(struct iris_engine *engine)
{
    (void)engine;
}

static void note_broken(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct endpoint *endpoint = arg;

    (void)ep;
    endpoint->broken = status;
}

static int open_endpoint(struct iris_ucx *u, struct endpoint *endpoint)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = endpoint->address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = note_broken, .arg = endpoint}};
    ucs_status_t status =
        u->ucx.ucp_ep_create(u->worker, &params, &endpoint->ep);

    if (status != UCS_OK) {
        endpoint->ep = NULL;
        endpoint->broken = status;
    }
    return status == UCS_OK;
}

static int ucx_send(struct iris_engine *engine, int rank,
                    struct iris_packet *packet)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    struct iris_ucx *u = ucx_of(engine);
    struct endpoint *endpoint = &u->endpoints[rank];

    if (endpoint->broken != UCS_OK ||
        (endpoint->ep == NULL && !open_endpoint(u, endpoint))) {
        return 0;
    }
    packet->request = u->ucx.ucp_tag_send_nbx(
        endpoint->ep, packet->data, packet->bytes,
        endpoint->token | (uint64_t)u->log->rank, &param);
    if (UCS_PTR_IS_ERR(packet->request)) {
        endpoint->broken = UCS_PTR_STATUS(packet->request);
        return 0;
    }
    return 1;
}

static int ucx_is_sent(struct iris_engine *engine, struct iris_packet *packet)
{
    const struct iris_ucx *u = ucx_of(engine);
    ucs_status_t status = UCS_OK;

    if (packet->request != NULL) {
        status = u->ucx.ucp_request_check_status(packet->request);
        if (status == UCS_INPROGRESS) {
            return 0;
        }
        u->ucx.ucp_request_free(packet->request);
    }
    return status == UCS_OK ? 1 : -1;
}

static int ucx_receive(struct iris_engine *engine, struct iris_packet *packet)
{
    const ucp_request_param_t param = {.op_attr_mask =
                                           UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    struct iris_ucx *u = ucx_of(engine);

    packet->request =
        u->ucx.ucp_tag_recv_nbx(u->worker, packet->data, IRIS_PACKET_BYTES,
                                u->token, ~RANK_MASK, &param);
    if (UCS_PTR_IS_ERR(packet->request)) {
        packet->request = NULL;
    }
    return packet->request != NULL;
}

/* A packet that is too long, or whose sender breaks off, is passed on as one byte,
 * which is no message. */
static int ucx_is_received(struct iris_engine *engine,
                           struct iris_packet *packet, int *rank_p)
{
    const struct iris_ucx *u = ucx_of(engine);
    ucp_tag_recv_info_t info = {0};
    ucs_status_t status;

    if (packet->request == NULL) {
        return -1;
    }
    for (int i = 0; i < MOST_EVENTS; i++) {
        status = u->ucx.ucp_tag_recv_request_test(packet->request, &info);
        if (status != UCS_INPROGRESS ||
            u->ucx.ucp_worker_progress(u->worker) == 0) {
            break;
        }
    }
    if (status == UCS_INPROGRESS) {
        return 0;
    }
    u->ucx.ucp_request_free(packet->request);
    packet->request = NULL;
    packet->bytes = status == UCS_OK ? info.length : 1;
    if ((info.sender_tag & ~RANK_MASK) == u->token) {
        *rank_p = (int)(info.sender_tag & RANK_MASK);
    }
    return status == UCS_OK || *rank_p >= 0 ? 1 : -1;
}

static int ucx_is_broken(const struct iris_engine *engine, int rank)
{
    return ((const struct iris_ucx *)engine)->endpoints[rank].broken != UCS_OK;
}

static const char *ucx_explain(const struct iris_engine *engine, int rank)
{
    const struct iris_ucx *u = (const struct iris_ucx *)engine;

    return u->ucx.ucs_status_string(u->endpoints[rank].broken);
}

static void ucx_wait(struct iris_engine *engine, int bell, int timeout_ms)
{
    const struct iris_ucx *u = ucx_of(engine);
    struct pollfd polled[] = {{.fd = bell, .events = POLLIN},
                              {.fd = u->efd, .events = POLLIN}};

    if (u->ucx.ucp_worker_arm(u->worker) == UCS_OK) {
        (void)poll(polled, 2, timeout_ms);
    }
    iris_i_bell_silence(bell);
}

/* ---- Opening and closing ---- */

/* Ends a request that is cancelled, or whose endpoint is. */
static void end_request(const struct iris_ucx *u, void *request)
{
    if (request == NULL || UCS_PTR_IS_ERR(request)) {
        return;
    }
    for (int i = 0; i < END_TURNS &&
                    u->ucx.ucp_request_check_status(request) == UCS_INPROGRESS;
         i++) {
        (void)u->ucx.ucp_worker_progress(u->worker);
    }
    u->ucx.ucp_request_free(request);
}

/* Every request has been answered, so that nothing is left to send. */
static void close_endpoints(struct iris_ucx *u)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};

    for (int rank = 0; u->endpoints != NULL && rank < u->log->num_ranks;
         rank++) {
        if (u->endpoints[rank].ep != NULL) {
            end_request(u,
                        u->ucx.ucp_ep_close_nbx(u->endpoints[rank].ep, &param));
        }
        free(u->endpoints[rank].address);
    }
    free(u->endpoints);
}

void iris_i_ucx_drop(struct iris_ucx *ucx)
{
    if (ucx == NULL) {
        return;
    }
    close_endpoints(ucx);
    if (ucx->worker != NULL) {
        ucx->ucx.ucp_worker_destroy(ucx->worker);
    }
    if (ucx->context != NULL) {
        ucx->ucx.ucp_cleanup(ucx->context);
    }
    free(ucx);
}

static int ucx_close(struct iris_engine *engine, int is_clean,
                     struct iris_packet **receives, int count)
{
    struct iris_ucx *u = ucx_of(engine);

    (void)is_clean;
    for (int i = 0; i < count; i++) {
        if (receives[i]->request != NULL) {
            u->ucx.ucp_request_cancel(u->worker, receives[i]->request);
            end_request(u, receives[i]->request);
        }
    }
    iris_i_ucx_drop(u);
    return 1;
}

static const struct iris_engine_ops ops = {
    .name = "UCX",
    .enter = ucx_enter,
    .leave = ucx_leave,
    .send = ucx_send,
    .is_sent = ucx_is_sent,
    .receive = ucx_receive,
    .is_received = ucx_is_received,
    .is_broken = ucx_is_broken,
    .explain = ucx_explain,
    .wait = ucx_wait,
    .close = ucx_close,
};

static iris_status_t load_calls(struct calls *calls)
{
    void *library = iris_i_loader_library("libucp.so.0", 0);
    const char *missing = library == NULL ? "libucp.so.0" : NULL;

#define UCX_FIND(name)                                    \
    if (missing == NULL) {                                \
        *(void **)(&calls->name) = dlsym(library, #name); \
        missing = calls->name == NULL ? #name : NULL;     \
    }
    UCX_CALLS(UCX_FIND)
#undef UCX_FIND
    return missing == NULL
               ? IRIS_OK
               : iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                             "IRIS_TRANSPORT=ucx finds no %s; install UCX "
                             "(package libucx0 or ucx), or set "
                             "IRIS_TRANSPORT=socket",
                             missing);
}

static iris_status_t fail_ucx(const struct iris_ucx *u, const char *what,
                              ucs_status_t status)
{
    return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                       "UCX cannot %s: %s; UCX_LOG_LEVEL=info says more, "
                       "IRIS_TRANSPORT=socket goes without it",
                       what, u->ucx.ucs_status_string(status));
}

static iris_status_t make_worker(struct iris_ucx *u)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features =
                                     UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP};
    const ucp_worker_params_t worker = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_config_t *config;
    ucs_status_t status = u->ucx.ucp_config_read(NULL, NULL, &config);

    if (status != UCS_OK) {
        return fail_ucx(u, "read its settings", status);
    }
    status = u->ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params,
                                     config, &u->context);
    u->ucx.ucp_config_release(config);
    if (status != UCS_OK) {
        u->context = NULL;
        return fail_ucx(u, "start", status);
    }
    status = u->ucx.ucp_worker_create(u->context, &worker, &u->worker);
    if (status != UCS_OK) {
        u->worker = NULL;
        return fail_ucx(u, "make a worker", status);
    }
    status = u->ucx.ucp_worker_get_efd(u->worker, &u->efd);
    return status == UCS_OK ? IRIS_OK
                            : fail_ucx(u, "wait for messages", status);
}

static iris_status_t announce_address(struct iris_ucx *u,
                                      struct iris_hello *hello)
{
    iris_status_t ret = IRIS_OK;
    ucp_address_t *address;
    ucs_status_t status;
    size_t bytes;

    status = u->ucx.ucp_worker_get_address(u->worker, &address, &bytes);
    if (status != UCS_OK) {
        return fail_ucx(u, "name its address", status);
    }
    if (bytes > sizeof hello->far_name) {
        ret = iris_i_fail(NULL, IRIS_ERR_LIMIT,
                          "UCX's address has %zu bytes of at most %zu; name "
                          "fewer devices in UCX_NET_DEVICES",
                          bytes, sizeof hello->far_name);
    } else {
        memcpy(hello->far_name, address, bytes);
    }
    u->ucx.ucp_worker_release_address(u->worker, address);
    if (ret == IRIS_OK &&
        getrandom(&u->token, sizeof u->token, 0) != (ssize_t)sizeof u->token) {
        ret = iris_i_fail(NULL, IRIS_ERR_SYSTEM, "no random numbers");
    }
    u->token &= ~RANK_MASK;
    hello->far_token = u->token;
    return ret;
}

iris_status_t iris_i_ucx_prepare(struct iris_hello *hello,
                                 struct iris_ucx **ucx_p)
{
    struct iris_ucx *u = calloc(1, sizeof *u);
    iris_status_t status;

    if (u == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for UCX");
    }
    u->base.ops = &ops;
    status = load_calls(&u->ucx);
    if (status == IRIS_OK) {
        status = make_worker(u);
    }
    if (status == IRIS_OK) {
        status = announce_address(u, hello);
    }
    if (status != IRIS_OK) {
        iris_i_ucx_drop(u);
        return status;
    }
    *ucx_p = u;
    return IRIS_OK;
}

/* Keeps the addresses of the ranks. */
static iris_status_t read_addresses(struct iris_ucx *u,
                                    const struct iris_rendezvous *rendezvous)
{
    int num_ranks = u->log->num_ranks;

    u->endpoints = calloc((size_t)num_ranks, sizeof u->endpoints[0]);
    for (int rank = 0; u->endpoints != NULL && rank < num_ranks; rank++) {
        const struct iris_hello *hello = &rendezvous->hellos[rank];
        struct endpoint *endpoint = &u->endpoints[rank];

        endpoint->token = hello->far_token;
        endpoint->address = malloc(sizeof hello->far_name);
        if (endpoint->address == NULL) {
            return IRIS_ERR_NO_MEMORY;
        }
        memcpy(endpoint->address, hello->far_name, sizeof hello->far_name);
    }
    return u->endpoints == NULL ? IRIS_ERR_NO_MEMORY : IRIS_OK;
}

iris_status_t iris_i_channel_ucx_open(const struct iris_log *log,
                                      const struct iris_rendezvous *rendezvous,
                                      struct iris_ucx *ucx,
                                      struct iris_channel **channel_p)
{
    ucx->log = log;
    if (read_addresses(ucx, rendezvous) != IRIS_OK) {
        iris_i_ucx_drop(ucx);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for addresses of UCX");
    }
    return iris_i_channel_packets_open(log, &ucx->base, channel_p);
}

#else /* !HAVE_UCX */

iris_status_t iris_i_ucx_prepare(struct iris_hello *hello,
                                 struct iris_ucx **ucx_p)
{
    (void)hello;
    (void)ucx_p;
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "IRIS_TRANSPORT asks for UCX, but this library was "
                       "built without it; configure where its headers are "
                       "(package libucx-dev), or set IRIS_TRANSPORT=socket");
}

void iris_i_ucx_drop(struct iris_ucx *ucx)
{
    (void)ucx;
}

iris_status_t iris_i_channel_ucx_open(const struct iris_log *log,
                                      const struct iris_rendezvous *rendezvous,
                                      struct iris_ucx *ucx,
                                      struct iris_channel **channel_p)
{
    (void)log, (void)rendezvous, (void)ucx, (void)channel_p;
    return IRIS_ERR_UNSUPPORTED;
}

#endif
