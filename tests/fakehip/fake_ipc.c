/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's memory in other processes: opened through /proc by
 * what an IPC handle says.
 */
#include "config.h"

#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
    char magic[8];
    int pid;
    int fd;
    uint64_t inode; /* so that a descriptor used anew is not taken for it */
    uint64_t bytes;
    int bus; /* the device, in the node */
};

_Static_assert(sizeof(struct handle) <= sizeof(hipIpcMemHandle_t),
               "what a handle says fits in one");

static const char magic[8] = "fakehip";

FAKE_EXPORT hipError_t hipMemGetAddressRange(hipDeviceptr_t *start_p,
                                             size_t *bytes_p,
                                             hipDeviceptr_t ptr)
{
    hipError_t error = fake_enter_driver(__func__);
    struct fake_range range;

    if (error == hipSuccess &&
        (!fake_range_find(ptr, &range) || range.kind == FAKE_PINNED)) {
        error = hipErrorNotFound;
    }
    if (error == hipSuccess) {
        *start_p = range.start;
        *bytes_p = range.bytes;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle_p,
                                          void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct handle handle = {.pid = getpid()};
    struct fake_range range;
    struct stat st;

    if (error == hipSuccess &&
        (!fake_range_find(ptr, &range) || range.kind != FAKE_MEMORY ||
         fstat(range.fd, &st) != 0 || fake_quirk("no-ipc"))) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    memcpy(handle.magic, magic, sizeof magic);
    handle.fd = range.fd;
    handle.inode = st.st_ino;
    handle.bytes = range.bytes;
    handle.bus = range.device + (int)fake_setting("FAKEHIP_FIRST", 0);
    memset(handle_p, 0, sizeof *handle_p);
    memcpy(handle_p, &handle, sizeof handle);
    return hipSuccess;
}

static hipError_t open_handle(const struct handle *handle,
                              struct fake_range *range)
{
    char path[64];
    struct stat st;
    hipError_t error = hipErrorInvalidValue;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->fd);
    range->bytes = handle->bytes;
    range->fd = open(path, O_RDWR | O_CLOEXEC);
    if (range->fd < 0) {
        return hipErrorInvalidHandle;
    }
    if (fstat(range->fd, &st) == 0 && st.st_ino == handle->inode &&
        (uint64_t)st.st_size == handle->bytes) {
        if (fake_quirk("wrong-memory")) {
            close(range->fd);
            (void)fake_memory_create(range->bytes, &range->fd);
        }
        error = fake_memory_map(range->fd, range->bytes, &range->start);
    }
    if (error == hipSuccess) {
        range->ptr = range->start;
        error = fake_range_add(range);
        if (error != hipSuccess) {
            munmap(range->start, range->bytes);
        }
    }
    if (error != hipSuccess) {
        close(range->fd);
    }
    return error;
}

FAKE_EXPORT hipError_t hipIpcOpenMemHandle(void **ptr_p,
                                           hipIpcMemHandle_t bytes,
                                           unsigned flags)
{
    struct fake_range range = {.kind = FAKE_IMPORT, .device = fake_device()};
    hipError_t error = fake_enter(__func__);
    struct handle handle;

    memcpy(&handle, &bytes, sizeof handle);
    if (error == hipSuccess &&
        (memcmp(handle.magic, magic, sizeof magic) != 0 ||
         flags != hipIpcMemLazyEnablePeerAccess)) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess && handle.pid == getpid()) {
        error = hipErrorInvalidContext;
    }
    if (error == hipSuccess && fake_quirk("open-fails")) {
        error = hipErrorInvalidDevicePointer;
    }
    if (error == hipSuccess) {
        error = open_handle(&handle, &range);
    }
    if (error == hipSuccess) {
        *ptr_p = range.ptr;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipIpcCloseMemHandle(void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct fake_range range;

    if (!fake_range_remove(ptr, FAKE_IMPORT, &range)) {
        return fake_leave(hipErrorInvalidValue);
    }
    munmap(range.start, range.bytes);
    close(range.fd);
    return fake_leave(error);
}
