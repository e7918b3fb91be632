/* SPDX-License-Identifier: MIT
 *
 * The shared memory of the race checker. Rank 0 makes an unnamed file, which
 * the others open through /proc. Untouched pages cost nothing.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/check.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Attempts before the thread yields, and before it takes the lock of a dead
 * rank. */
#define SPINS 100
#define MAX_YIELDS 10000000

#define ARENA_BYTES ((size_t)4 << 30)

static const struct iris_call_type open_call = {.name = "iris_init"};

/* The place of rank 0's file. */
struct place {
    int64_t pid;
    int64_t fd;
};

static size_t round_up(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static size_t shared_bytes(void)
{
    return round_up(sizeof(struct iris_race_shared));
}

static size_t shadow_bytes(size_t heap_bytes)
{
    return round_up(heap_bytes) / 8 * IRIS_RACE_CELLS *
           sizeof(struct iris_race_access);
}

static iris_status_t make_file(size_t bytes, int *fd_p)
{
    int fd = iris_i_fd_above_stdio(memfd_create("iris-race", MFD_CLOEXEC));

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        int ret = errno;

        if (fd >= 0) {
            close(fd);
        }
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, ret,
                                 "IRIS_CHECK=race: no shared memory of %zu "
                                 "bytes",
                                 bytes);
    }
    *fd_p = fd;
    return IRIS_OK;
}

static iris_status_t map(int fd, size_t heap_bytes,
                         struct iris_race_memory *memory)
{
    char *at = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (at == MAP_FAILED) {
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno,
                                 "IRIS_CHECK=race: cannot map %zu bytes of "
                                 "address space; lower IRIS_HEAP_SIZE",
                                 memory->bytes);
    }
    memory->shared = (void *)at;
    memory->arena = (void *)(at + shared_bytes());
    memory->shadow = (void *)(at + shared_bytes() + ARENA_BYTES);
    memory->heap_bytes = heap_bytes;
    return IRIS_OK;
}

static void begin(struct iris_race_shared *shared)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    shared->arena_used = 1; /* 0 means no place */
    shared->num_sites = 1;
    shared->num_edges = 1;
}

/* This rank's part: the others have received the place of rank 0's file. */
static iris_status_t join(struct iris_members *members, size_t heap_bytes,
                          struct iris_race_memory *memory)
{
    struct place place = {0, -1};
    char path[64];
    iris_status_t status;
    int fd;

    (void)iris_i_agree_payload(members, 0, &place, sizeof place);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)place.pid,
             (long long)place.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "IRIS_CHECK=race: cannot open %s of rank 0; "
                                 "ranks must see each other's processes",
                                 path);
    }
    status = map(fd, heap_bytes, memory);
    close(fd);
    return status;
}

iris_status_t iris_i_race_memory_open(struct iris_members *members, int rank,
                                      int num_ranks, size_t heap_bytes,
                                      struct iris_race_memory *memory_p)
{
    struct iris_call call = {.type = &open_call};
    struct place place = {getpid(), -1};
    iris_status_t status;
    int fd = -1;

    memory_p->bytes = shared_bytes() + ARENA_BYTES +
                      (size_t)num_ranks * shadow_bytes(heap_bytes);
    if (rank == 0) {
        call.status = make_file(memory_p->bytes, &fd);
        call.status = call.status == IRIS_OK ? map(fd, heap_bytes, memory_p)
                                             : call.status;
        if (call.status == IRIS_OK) {
            begin(memory_p->shared);
            place.fd = fd;
            call.payload = &place;
            call.payload_bytes = sizeof place;
        }
    }
    status = iris_i_agree(members, &call);
    if (status == IRIS_OK) {
        call = (struct iris_call){.type = &open_call};
        call.status = rank == 0 ? IRIS_OK : join(members, heap_bytes, memory_p);
        status = iris_i_agree(members, &call);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

void iris_i_race_memory_close(struct iris_race_memory *memory)
{
    if (memory->shared != NULL) {
        munmap(memory->shared, memory->bytes);
    }
}

void iris_i_race_lock(struct iris_race_shared *shared)
{
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&shared->lock);
        shared->blind = true;
    }
}

void iris_i_race_unlock(struct iris_race_shared *shared)
{
    pthread_mutex_unlock(&shared->lock);
}

void iris_i_race_spin(struct iris_race_shared *shared, atomic_uint *lock)
{
    for (unsigned attempts = 0; attempts < SPINS + MAX_YIELDS; attempts++) {
        if (iris_i_race_spin_try(lock)) {
            return;
        }
        if (attempts >= SPINS) {
            sched_yield();
        }
    }
    atomic_store(&shared->blind, true);
}
