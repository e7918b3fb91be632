/* SPDX-License-Identifier: MIT
 *
 * The CPU's peer: MPI's collectives between the same buffers, and its puts and
 * messages, in a job that mpirun started.
 */
#include "config.h"

#include "bench.h"

#include <stdio.h>

#if HAVE_MPI
#include <mpi.h>

/* MPI has no 16-bit floats. */
static MPI_Datatype type_of(iris_dtype_t dtype)
{
    switch (dtype) {
    case IRIS_DTYPE_I8:
        return MPI_INT8_T;
    case IRIS_DTYPE_I16:
        return MPI_INT16_T;
    case IRIS_DTYPE_I32:
        return MPI_INT32_T;
    case IRIS_DTYPE_I64:
        return MPI_INT64_T;
    case IRIS_DTYPE_U8:
        return MPI_UINT8_T;
    case IRIS_DTYPE_U16:
        return MPI_UINT16_T;
    case IRIS_DTYPE_U32:
        return MPI_UINT32_T;
    case IRIS_DTYPE_U64:
        return MPI_UINT64_T;
    case IRIS_DTYPE_F32:
        return MPI_FLOAT;
    case IRIS_DTYPE_F64:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static bool has_mpi_type(const struct bench_ccl *call)
{
    return type_of(call->dtype) != MPI_DATATYPE_NULL &&
           call->count <= INT32_MAX;
}

/* MPI requires MPI_IN_PLACE if a buffer is both input and output. */
static const void *in_of(const struct bench_ccl *call)
{
    size_t bytes = call->count * iris_dtype_size(call->dtype);
    const char *own = call->out;
    int rank = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (call->op == BENCH_ALL_GATHER) {
        own += (size_t)rank * bytes;
    }
    return call->in == own ? MPI_IN_PLACE : call->in;
}

static bool do_call(struct bench_peer *peer, const struct bench_ccl *call)
{
    MPI_Datatype type = type_of(call->dtype);
    int count = (int)call->count, ret;

    (void)peer;
    switch (call->op) {
    case BENCH_ALL_REDUCE:
        ret = MPI_Allreduce(in_of(call), call->out, count, type, MPI_SUM,
                            MPI_COMM_WORLD);
        break;
    case BENCH_ALL_GATHER:
        ret = MPI_Allgather(in_of(call), count, type, call->out, count, type,
                            MPI_COMM_WORLD);
        break;
    case BENCH_REDUCE_SCATTER:
        ret = MPI_Reduce_scatter_block(call->in, call->out, count, type,
                                       MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_ALL_TO_ALL:
        ret = MPI_Alltoall(call->in, count, type, call->out, count, type,
                           MPI_COMM_WORLD);
        break;
    default:
        ret = MPI_Bcast(call->out, count, type, 0, MPI_COMM_WORLD);
        break;
    }
    return ret == MPI_SUCCESS;
}

static void do_close(struct bench_peer *peer)
{
    (void)peer; /* MPI belongs to the library, which finalizes it */
}

/* ---- Between two ranks ---- */

static MPI_Win window = MPI_WIN_NULL;
static char *blocks; /* two: one to send from, one to receive into */
static size_t block_bytes;

static bool far_open(size_t bytes)
{
    block_bytes = bytes;
    return MPI_Win_allocate((MPI_Aint)(2 * bytes), 1, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &blocks, &window) == MPI_SUCCESS &&
           MPI_Win_lock_all(MPI_MODE_NOCHECK, window) == MPI_SUCCESS;
}

static void far_close(void)
{
    if (window != MPI_WIN_NULL) {
        MPI_Win_unlock_all(window);
        MPI_Win_free(&window);
    }
}

/* The target of the puts waits in MPI, which may need this for progress. */
static bool far_put_flush(const struct bench_far_call *call)
{
    int ret = MPI_SUCCESS, bytes = (int)call->bytes;

    if (!call->leads) {
        return MPI_Recv(NULL, 0, MPI_BYTE, call->partner, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    for (uint32_t rep = 0; rep < call->reps && ret == MPI_SUCCESS; rep++) {
        for (uint32_t i = 0; i < call->count && ret == MPI_SUCCESS; i++) {
            ret = MPI_Put(blocks, bytes, MPI_BYTE, call->partner,
                          (MPI_Aint)block_bytes, bytes, MPI_BYTE, window);
        }
        ret = ret == MPI_SUCCESS ? MPI_Win_flush(call->partner, window) : ret;
    }
    return ret == MPI_SUCCESS && MPI_Send(NULL, 0, MPI_BYTE, call->partner, 0,
                                          MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool far_send(const struct bench_far_call *call)
{
    return MPI_Send(blocks, (int)call->bytes, MPI_BYTE, call->partner, 0,
                    MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool far_ping_pong(const struct bench_far_call *call)
{
    bool fine = true;

    for (uint32_t rep = 0; rep < call->reps && fine; rep++) {
        fine = (!call->leads || far_send(call)) &&
               MPI_Recv(blocks + block_bytes, (int)call->bytes, MPI_BYTE,
                        call->partner, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE) == MPI_SUCCESS &&
               (call->leads || far_send(call));
    }
    return fine;
}

struct bench_peer *bench_peer_mpi(int num_ranks, const char **why_p)
{
    static const struct bench_far far = {far_open, far_put_flush, far_ping_pong,
                                         far_close};
    static char name[32];
    static struct bench_peer peer = {name,    false,    has_mpi_type,
                                     do_call, do_close, &far};
    int is_up = 0, size = 0;

    MPI_Initialized(&is_up);
    if (is_up) {
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    if (size != num_ranks) {
        *why_p = "MPI has not started the ranks; run mpirun -n RANKS "
                 "iris bench --peer, with IRIS_BOOTSTRAP unset";
        return NULL;
    }
#ifdef OMPI_MAJOR_VERSION
    snprintf(name, sizeof name, "Open MPI %d.%d.%d", OMPI_MAJOR_VERSION,
             OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#else
    snprintf(name, sizeof name, "MPI");
#endif
    return &peer;
}

#else /* !HAVE_MPI */

struct bench_peer *bench_peer_mpi(int num_ranks, const char **why_p)
{
    (void)num_ranks;
    *why_p = "the peer on a CPU is Open MPI, and this build is without; "
             "configure --with-mpi";
    return NULL;
}

#endif
