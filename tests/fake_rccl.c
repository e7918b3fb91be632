/* SPDX-License-Identifier: MIT
 *
 * RCCL as far as iris bench calls it, for the fake HIP runtime and ranks that
 * are threads: f32 sums of host memory, done when a call is made.
 * FAKE_RCCL_WRONG=1 makes every result wrong.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 8, FLOAT32 = 7, INVALID = 4 };

struct unique_id {
    char bytes[128];
};

struct comm {
    int rank;
    int num_ranks;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int is_ready;
static const float *inputs[MAX_RANKS];
static const float *sent[MAX_RANKS][MAX_RANKS];

/* What a thread receives in a group. */
static _Thread_local struct comm *in_group;
static _Thread_local float *received[MAX_RANKS];
static _Thread_local size_t received_count;

/* All ranks' inputs are known between begin() and end(). */
static const float *const *begin(struct comm *comm, const void *in)
{
    inputs[comm->rank] = in;
    pthread_barrier_wait(&barrier);
    return inputs;
}

static int end(float *first)
{
    if (getenv("FAKE_RCCL_WRONG") != NULL) {
        *first += 1;
    }
    pthread_barrier_wait(&barrier);
    return 0;
}

static float sum(const struct comm *comm, const float *const *in, size_t i)
{
    float result = 0;

    for (int rank = 0; rank < comm->num_ranks; rank++) {
        result += in[rank][i];
    }
    return result;
}

int hipSetDevice(int device);
int hipSetDevice(int device)
{
    return device < 0;
}

const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result)
{
    return result == INVALID ? "invalid argument" : "no error";
}

int ncclGetVersion(int *version_p);
int ncclGetVersion(int *version_p)
{
    *version_p = 21805;
    return 0;
}

int ncclGetUniqueId(struct unique_id *id_p);
int ncclGetUniqueId(struct unique_id *id_p)
{
    memset(id_p, 42, sizeof *id_p);
    return 0;
}

int ncclCommInitRank(struct comm **comm_p, int num_ranks, struct unique_id id,
                     int rank);
int ncclCommInitRank(struct comm **comm_p, int num_ranks, struct unique_id id,
                     int rank)
{
    struct comm *comm = malloc(sizeof *comm);

    if (comm == NULL || num_ranks > MAX_RANKS || id.bytes[127] != 42) {
        free(comm);
        return INVALID;
    }
    pthread_mutex_lock(&lock);
    if (!is_ready) {
        pthread_barrier_init(&barrier, NULL, (unsigned)num_ranks);
        is_ready = 1;
    }
    pthread_mutex_unlock(&lock);
    *comm = (struct comm){rank, num_ranks};
    *comm_p = comm;
    return 0;
}

/* What tells that HIP has begun stays open (src/backend_hip/quirks.c). */
int ncclCommInitAll(struct comm **comms, int count, const int *devices);
int ncclCommInitAll(struct comm **comms, int count, const int *devices)
{
    struct unique_id id;
    int ret = devices == NULL && open("/dev/full", O_RDWR) >= 0 ? 0 : INVALID;

    (void)ncclGetUniqueId(&id);
    for (int i = 0; i < count && ret == 0; i++) {
        ret = ncclCommInitRank(&comms[i], count, id, i);
    }
    return ret;
}

int ncclCommDestroy(struct comm *comm);
int ncclCommDestroy(struct comm *comm)
{
    free(comm);
    return 0;
}

int ncclAllReduce(const void *in, float *out, size_t count, int type, int op,
                  struct comm *comm, void *stream);
int ncclAllReduce(const void *in, float *out, size_t count, int type, int op,
                  struct comm *comm, void *stream)
{
    const float *const *all = begin(comm, in);

    if (type != FLOAT32 || op != 0 || stream == NULL) {
        return INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = sum(comm, all, i);
    }
    return end(out);
}

int ncclReduceScatter(const void *in, float *out, size_t count, int type,
                      int op, struct comm *comm, void *stream);
int ncclReduceScatter(const void *in, float *out, size_t count, int type,
                      int op, struct comm *comm, void *stream)
{
    const float *const *all = begin(comm, in);

    if (type != FLOAT32 || op != 0 || stream == NULL) {
        return INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = sum(comm, all, (size_t)comm->rank * count + i);
    }
    return end(out);
}

int ncclAllGather(const void *in, float *out, size_t count, int type,
                  struct comm *comm, void *stream);
int ncclAllGather(const void *in, float *out, size_t count, int type,
                  struct comm *comm, void *stream)
{
    const float *const *all = begin(comm, in);

    if (type != FLOAT32 || stream == NULL) {
        return INVALID;
    }
    for (int rank = 0; rank < comm->num_ranks; rank++) {
        memcpy(out + (size_t)rank * count, all[rank], count * sizeof *out);
    }
    return end(out);
}

int ncclBroadcast(const void *in, float *out, size_t count, int type, int root,
                  struct comm *comm, void *stream);
int ncclBroadcast(const void *in, float *out, size_t count, int type, int root,
                  struct comm *comm, void *stream)
{
    const float *const *all = begin(comm, in);

    if (type != FLOAT32 || stream == NULL) {
        return INVALID;
    }
    memmove(out, all[root], count * sizeof *out);
    return end(out);
}

int ncclGroupStart(void);
int ncclGroupStart(void)
{
    in_group = NULL;
    return 0;
}

int ncclSend(const void *in, size_t count, int type, int to, struct comm *comm,
             void *stream);
int ncclSend(const void *in, size_t count, int type, int to, struct comm *comm,
             void *stream)
{
    (void)count;
    sent[comm->rank][to] = in;
    in_group = comm;
    return type == FLOAT32 && stream != NULL ? 0 : INVALID;
}

int ncclRecv(void *out, size_t count, int type, int from, struct comm *comm,
             void *stream);
int ncclRecv(void *out, size_t count, int type, int from, struct comm *comm,
             void *stream)
{
    received[from] = out;
    received_count = count;
    in_group = comm;
    return type == FLOAT32 && stream != NULL ? 0 : INVALID;
}

int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    const struct comm *comm = in_group;

    pthread_barrier_wait(&barrier);
    for (int rank = 0; rank < comm->num_ranks; rank++) {
        memcpy(received[rank], sent[rank][comm->rank],
               received_count * sizeof(float));
    }
    return end(received[0]);
}
