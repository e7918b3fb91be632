/* SPDX-License-Identifier: MIT
 *
 * The GPU's peer: NCCL or RCCL. It is loaded when needed, so that no build
 * needs either. Both have the same interface, of which this file declares the
 * calls that it makes.
 */
#include "config.h"

#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ncclUniqueId, which NCCL takes by value. */
struct unique_id {
    char bytes[128];
};

struct nccl {
    struct bench_peer peer;
    void *library;
    void *driver; /* library that makes the device current; NULL: `library` */
    void *comm;
    void *stream; /* the GPU runtime's stream */
    char name[32];
    char why[256];
    const char *(*get_error_string)(int result);
    int (*get_version)(int *version_p);
    int (*get_unique_id)(struct unique_id *id_p);
    int (*comm_init_rank)(void **comm_p, int num_ranks, struct unique_id id,
                          int rank);
    int (*comm_destroy)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *in, void *out, size_t count, int type, int op,
                      void *comm, void *stream);
    int (*all_gather)(const void *in, void *out, size_t count, int type,
                      void *comm, void *stream);
    int (*reduce_scatter)(const void *in, void *out, size_t count, int type,
                          int op, void *comm, void *stream);
    int (*broadcast)(const void *in, void *out, size_t count, int type,
                     int root, void *comm, void *stream);
    int (*send)(const void *in, size_t count, int type, int to, void *comm,
                void *stream);
    int (*recv)(void *out, size_t count, int type, int from, void *comm,
                void *stream);
};

#define SUM 0 /* ncclSum */

/* ncclDataType_t of each element type; -1: NCCL does not have it. */
static int nccl_type_of(iris_dtype_t dtype)
{
    static const signed char types[] = {
        [IRIS_DTYPE_BOOL] = -1, [IRIS_DTYPE_I8] = 0,   [IRIS_DTYPE_I16] = -1,
        [IRIS_DTYPE_I32] = 2,   [IRIS_DTYPE_I64] = 4,  [IRIS_DTYPE_U8] = 1,
        [IRIS_DTYPE_U16] = -1,  [IRIS_DTYPE_U32] = 3,  [IRIS_DTYPE_U64] = 5,
        [IRIS_DTYPE_F16] = 6,   [IRIS_DTYPE_BF16] = 9, [IRIS_DTYPE_F32] = 7,
        [IRIS_DTYPE_F64] = 8};

    return (size_t)dtype < sizeof types ? types[dtype] : -1;
}

static bool has_nccl_type(const struct bench_ccl *call)
{
    return nccl_type_of(call->dtype) >= 0;
}

/* Sends and receives between all pairs at once, as NCCL's manual shows. */
static int all_to_all(const struct nccl *nccl, const struct bench_ccl *call)
{
    size_t part = call->count * iris_dtype_size(call->dtype);
    int type = nccl_type_of(call->dtype);
    int ret = nccl->group_start(), ended;

    for (int i = 0; i < call->num_ranks && ret == 0; i++) {
        ret = nccl->send((char *)call->in + (size_t)i * part, call->count, type,
                         i, nccl->comm, nccl->stream);
        if (ret == 0) {
            ret = nccl->recv((char *)call->out + (size_t)i * part, call->count,
                             type, i, nccl->comm, nccl->stream);
        }
    }
    ended = nccl->group_end();
    return ret != 0 ? ret : ended;
}

static int enqueue_nccl(const struct nccl *nccl, const struct bench_ccl *call)
{
    int type = nccl_type_of(call->dtype);

    switch (call->op) {
    case BENCH_ALL_REDUCE:
        return nccl->all_reduce(call->in, call->out, call->count, type, SUM,
                                nccl->comm, nccl->stream);
    case BENCH_ALL_GATHER:
        return nccl->all_gather(call->in, call->out, call->count, type,
                                nccl->comm, nccl->stream);
    case BENCH_REDUCE_SCATTER:
        return nccl->reduce_scatter(call->in, call->out, call->count, type, SUM,
                                    nccl->comm, nccl->stream);
    case BENCH_ALL_TO_ALL:
        return all_to_all(nccl, call);
    default:
        return nccl->broadcast(call->in, call->out, call->count, type, 0,
                               nccl->comm, nccl->stream);
    }
}

static bool nccl_call(struct bench_peer *peer, const struct bench_ccl *call)
{
    struct nccl *nccl = (struct nccl *)peer;
    int ret = enqueue_nccl(nccl, call);

    if (ret != 0) {
        fprintf(stderr, "iris bench: %s: %s\n", peer->name,
                nccl->get_error_string(ret));
    }
    return ret == 0;
}

/* The libraries stay loaded, since their threads may still run. */
static void nccl_close(struct bench_peer *peer)
{
    struct nccl *nccl = (struct nccl *)peer;

    if (nccl->comm != NULL) {
        nccl->comm_destroy(nccl->comm);
    }
    free(nccl);
}

/* Tries RCCL first, because machines with AMD GPUs may have both. */
static bool load_nccl(struct nccl *nccl)
{
    const struct {
        const char *name;
        void *function_p;
    } symbols[] = {{"ncclGetErrorString", &nccl->get_error_string},
                   {"ncclGetVersion", &nccl->get_version},
                   {"ncclGetUniqueId", &nccl->get_unique_id},
                   {"ncclCommInitRank", &nccl->comm_init_rank},
                   {"ncclCommDestroy", &nccl->comm_destroy},
                   {"ncclGroupStart", &nccl->group_start},
                   {"ncclGroupEnd", &nccl->group_end},
                   {"ncclAllReduce", &nccl->all_reduce},
                   {"ncclAllGather", &nccl->all_gather},
                   {"ncclReduceScatter", &nccl->reduce_scatter},
                   {"ncclBroadcast", &nccl->broadcast},
                   {"ncclSend", &nccl->send},
                   {"ncclRecv", &nccl->recv}};
    bool is_rccl = true;
    int version = 0;

    nccl->library = dlopen("librccl.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nccl->library == NULL) {
        is_rccl = false;
        nccl->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        nccl->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (nccl->library == NULL || (!is_rccl && nccl->driver == NULL)) {
        snprintf(nccl->why, sizeof nccl->why,
                 "neither RCCL nor NCCL can be loaded (%s); name the folder of "
                 "librccl.so.1 or libnccl.so.2 in LD_LIBRARY_PATH",
                 nccl->library == NULL ? "no such library"
                                       : "no libcuda.so.1, which it needs");
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(nccl->library, symbols[i].name);

        if (symbol == NULL) {
            snprintf(nccl->why, sizeof nccl->why,
                     "%s has no %s; a newer one has", is_rccl ? "RCCL" : "NCCL",
                     symbols[i].name);
            return false;
        }
        memcpy(symbols[i].function_p, &symbol, sizeof symbol);
    }
    nccl->get_version(&version);
    snprintf(nccl->name, sizeof nccl->name, "%s %d.%d.%d",
             is_rccl ? "RCCL" : "NCCL", version / 10000, version / 100 % 100,
             version % 100);
    return true;
}

/* NCCL works on the calling thread's current device, which is not always this
 * rank's. Makes the device of the rank's stream current. */
static bool make_current(const struct bench *b, struct nccl *nccl)
{
    int (*set_device)(int device),
        (*get_context)(void *stream, void **context_p),
        (*set_context)(void *context);
    void *context = NULL;
    void *of_hip = dlsym(nccl->library, "hipSetDevice");
    void *of_stream, *to_set;

    if (nccl->driver == NULL) {
        memcpy(&set_device, &of_hip, sizeof of_hip);
        return of_hip != NULL && set_device(iris_device_id(b->iris)) == 0;
    }
    of_stream = dlsym(nccl->driver, "cuStreamGetCtx");
    to_set = dlsym(nccl->driver, "cuCtxSetCurrent");
    memcpy(&get_context, &of_stream, sizeof of_stream);
    memcpy(&set_context, &to_set, sizeof to_set);
    return of_stream != NULL && to_set != NULL &&
           get_context(nccl->stream, &context) == 0 &&
           set_context(context) == 0;
}

/* All ranks call this, even those without a library. */
static bool connect_ranks(struct bench *b, struct nccl *nccl)
{
    struct unique_id id;
    double failed = nccl->why[0] != '\0';
    int ret = 0;

    memset(&id, 0, sizeof id);
    if (failed == 0 && b->rank == 0) {
        ret = nccl->get_unique_id(&id);
        failed = ret != 0;
    }
    if (bench_max(b, &failed, 1) != IRIS_OK || failed != 0 ||
        iris_broadcast(b->iris, &id, sizeof id, 0, NULL) != IRIS_OK) {
        if (nccl->why[0] == '\0') {
            snprintf(nccl->why, sizeof nccl->why, "another rank failed");
        }
        return false;
    }
    ret = nccl->comm_init_rank(&nccl->comm, b->num_ranks, id, b->rank);
    if (ret != 0) {
        nccl->comm = NULL;
        snprintf(nccl->why, sizeof nccl->why,
                 "%s cannot start: %s; it needs one GPU for each rank",
                 nccl->name, nccl->get_error_string(ret));
    }
    return ret == 0;
}

struct bench_peer *bench_peer_nccl(struct bench *b, const char **why_p)
{
    static _Thread_local char why[256]; /* ranks may be threads */
    struct nccl *nccl = calloc(1, sizeof *nccl);

    if (nccl == NULL) {
        *why_p = "no memory";
        return NULL;
    }
    nccl->peer = (struct bench_peer){nccl->name, true,       has_nccl_type,
                                     nccl_call,  nccl_close, NULL};
    nccl->stream = iris_stream_native(b->iris, NULL);
    if (load_nccl(nccl) && !make_current(b, nccl)) {
        snprintf(nccl->why, sizeof nccl->why,
                 "%s: the device of this rank cannot be made current",
                 nccl->name);
    }
    if (!connect_ranks(b, nccl)) {
        memcpy(why, nccl->why, sizeof why);
        *why_p = why;
        nccl_close(&nccl->peer);
        return NULL;
    }
    return &nccl->peer;
}
