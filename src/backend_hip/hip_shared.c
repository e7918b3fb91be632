/* SPDX-License-Identifier: MIT
 *
 * What a GPU's contexts in this process share: two streams for what the
 * backends do themselves, and room for streams and graphs.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <stdlib.h>
#include <unistd.h>

/* Whether streams have to be cared for as below. No document says so; seen with
 * CUDA 13.0 on an H200. Nothing is known of AMD. */
#if IRIS_HIP_NVIDIA || IRIS_HIP_FAKE
#define LIKE_CUDA 1
#else
#define LIKE_CUDA 0
#endif

/* A process has room for some 34 streams and graphs on a GPU at first, and for
 * some 4000 kernels and copies in graphs. To make room for another waits for
 * all that runs there, and all other calls wait for that; if a kernel waits for
 * a rank whose thread is in such a call, for ever. The room stays when they are
 * gone. */
#define NUM_RESERVED 256
#define NUM_RESERVED_NODES 16384

/* Streams that run at once, whatever the environment asks for. */
#define MOST_QUEUES 32

struct shared {
    pthread_mutex_t lock; /* guards what follows */
    pid_t pid;            /* of the process that made it: not a forked child */
    unsigned num_users;   /* contexts */
    struct hip_services services;
    bool reserved;
};

static struct shared gpus[HIP_MAX_DEVICES] = {
    [0 ... HIP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

/* Streams that have had no work share a queue: if one stream's first kernels
 * wait, another's first may never run. So the first work is one that does not
 * wait; an event does not count. It is no kernel, as it would be on AMD: there
 * may be no room for one. */
hipError_t iris_i_hip_give_first_work(const struct hip_backend *hip,
                                      hipStream_t native)
{
    char *word = (char *)(uintptr_t)hip->info.watch + sizeof *hip->watch;
    hipError_t error = hipErrorNotSupported;

    if (LIKE_CUDA) {
        error = hipStreamWriteValue64(native, word, 0, 0);
    }
    if (error != hipErrorNotSupported) {
        return error;
    }
    (void)hipGetLastError();
    return hipSuccess;
}

hipError_t iris_i_hip_native_create(const struct hip_backend *hip,
                                    hipStream_t *native_p)
{
    hipError_t error = hipStreamCreateWithFlags(native_p, hipStreamNonBlocking);

    if (error != hipSuccess) {
        *native_p = NULL;
        return error;
    }
    error = iris_i_hip_give_first_work(hip, *native_p);
    if (error != hipSuccess) {
        (void)hipStreamDestroy(*native_p);
        *native_p = NULL;
    }
    return error;
}

/* Makes a graph of copies, which are never done. */
static hipError_t reserve_nodes(hipStream_t native, uint64_t *words)
{
    hipGraphExec_t exec;
    hipGraph_t graph = NULL;
    hipError_t error =
        hipStreamBeginCapture(native, hipStreamCaptureModeRelaxed);
    hipError_t ended;

    if (error != hipSuccess) {
        return error;
    }
    for (int i = 0; i < NUM_RESERVED_NODES && error == hipSuccess; i++) {
        error = hipMemcpyAsync(words, words + 1, sizeof words[0],
                               hipMemcpyDefault, native);
    }
    ended = hipStreamEndCapture(native, &graph);
    error = error == hipSuccess ? ended : error;
    if (error == hipSuccess) {
        error = hipGraphInstantiate(&exec, graph, NULL, NULL, 0);
    }
    if (error == hipSuccess) {
        error = hipGraphExecDestroy(exec);
    }
    if (graph != NULL) {
        (void)hipGraphDestroy(graph);
    }
    return error;
}

static hipError_t reserve_streams_and_nodes(void)
{
    hipStream_t natives[NUM_RESERVED];
    hipError_t error = hipSuccess;
    void *words = NULL;
    int count = 0;

    while (count < NUM_RESERVED && error == hipSuccess) {
        error = hipStreamCreateWithFlags(&natives[count], hipStreamNonBlocking);
        count += error == hipSuccess;
    }
    if (error == hipSuccess) {
        error = hipExtMallocWithFlags(&words, 2 * sizeof(uint64_t),
                                      hipDeviceMallocFinegrained);
    }
    if (error == hipSuccess) {
        error = reserve_nodes(natives[0], words);
        (void)hipFree(words);
    }
    while (count > 0) {
        (void)hipStreamDestroy(natives[--count]);
    }
    return error;
}

/* Makes room before a second rank's kernels can wait for the first's; whether
 * there is. */
static bool reserve(const struct hip_backend *hip)
{
    hipError_t error = reserve_streams_and_nodes();

    if (error != hipSuccess) {
        (void)hipGetLastError();
        iris_i_warning(
            NULL,
            "rank %d: GPU %d has no room now for the streams and "
            "graphs of ranks that share it (%s): making one later may "
            "wait for kernels that wait for this rank. Leave the GPU "
            "more memory (IRIS_HEAP_SIZE)",
            hip->params.rank, hip->device, hipGetErrorString(error));
    }
    return error == hipSuccess;
}

/* Each context has a stream at least, and there are the two for all. */
static void warn_of_queues(const struct hip_backend *hip, unsigned num_users)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    unsigned long queues = text == NULL ? 0 : strtoul(text, NULL, 10);

    queues = queues < MOST_QUEUES ? queues : MOST_QUEUES;
    if (LIKE_CUDA && num_users + 1 == queues) {
        iris_i_warning(NULL,
                       "rank %d is context %u of this process on GPU %d, which "
                       "runs %lu streams at once: kernels that wait for each "
                       "other may wait for ever. Use fewer rank threads, or "
                       "processes (IRIS_SPAWN=processes, mpirun)",
                       hip->params.rank, num_users, hip->device, queues);
    }
}

static void destroy(struct hip_services *services)
{
    if (services->fill != NULL) {
        (void)hipStreamDestroy(services->fill);
    }
    if (services->copy != NULL) {
        (void)hipStreamDestroy(services->copy);
    }
    *services = (struct hip_services){NULL, NULL};
    (void)hipGetLastError();
}

/* What the first context makes; the lock is held. */
static hipError_t begin(const struct hip_backend *hip, struct shared *gpu)
{
    hipError_t error;

    if (gpu->pid != getpid()) {
        gpu->pid = getpid();
        gpu->num_users = 0;
        gpu->services = (struct hip_services){NULL, NULL};
        gpu->reserved = false;
    }
    if (gpu->services.copy != NULL) {
        return hipSuccess;
    }
    error = iris_i_hip_native_create(hip, &gpu->services.fill);
    if (error == hipSuccess) {
        error = iris_i_hip_native_create(hip, &gpu->services.copy);
    }
    if (error != hipSuccess) {
        destroy(&gpu->services);
    }
    return error;
}

hipError_t iris_i_hip_services_share(struct hip_backend *hip)
{
    struct shared *gpu = &gpus[hip->device];
    hipError_t error;

    pthread_mutex_lock(&gpu->lock);
    error = begin(hip, gpu);
    if (error == hipSuccess) {
        gpu->num_users++;
        /* Behind a kernel that cannot be ended it would never come back. */
        if (LIKE_CUDA && gpu->num_users == 2 && !gpu->reserved &&
            !iris_i_hip_keeps_all()) {
            gpu->reserved = reserve(hip);
        }
        warn_of_queues(hip, gpu->num_users);
        hip->services = gpu->services;
    }
    pthread_mutex_unlock(&gpu->lock);
    return error;
}

void iris_i_hip_services_leave(struct hip_backend *hip)
{
    struct shared *gpu = &gpus[hip->device];

    pthread_mutex_lock(&gpu->lock);
    gpu->num_users--;
    if (gpu->num_users == 0 && !iris_i_hip_keeps_all()) {
        destroy(&gpu->services);
    }
    pthread_mutex_unlock(&gpu->lock);
}
