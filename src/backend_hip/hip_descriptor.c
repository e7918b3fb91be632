/* SPDX-License-Identifier: MIT
 *
 * Descriptors of memory: their owner after an export by the runtime, and the
 * message if the process has no more.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

/* Rough number of descriptors that a process uses otherwise. */
#define OTHERS 256

static hipError_t export(hipMemGenericAllocationHandle_t handle, int *fd_p)
{
    int tries = 0;
    hipError_t error;

    do {
        error = hipMemExportToShareableHandle(
            fd_p, handle, hipMemHandleTypePosixFileDescriptor, 0);
    } while (iris_i_hip_try_again(error, &tries));
    return error;
}

/* ROCm 7.14 returns the descriptor that it keeps for the handle. A caller that
 * closes it gets the same number at the next export, but it refers to no file
 * or another one (rocm-systems #7786, #8440). Two exports find this out: other
 * runtimes make a new descriptor each time, which the caller closes. */
hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p)
{
    int fd = -1, again = -1;
    hipError_t error = export(handle, &fd);

    if (error != hipSuccess) {
        return error;
    }
    error = export(handle, &again);
    if (error != hipSuccess) { /* a kept descriptor always exists */
        close(fd);
        return error;
    }
    if (fd == again) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    } else {
        close(again);
        fd = iris_i_fd_above_stdio(fd);
    }
    if (fd < 0) {
        return hipErrorUnknown;
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    *fd_p = fd;
    return hipSuccess;
}

static bool are_used_up(void)
{
    int fd = open("/", O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE;
    }
    close(fd);
    return false;
}

/* ROCm 7.14 keeps a descriptor for each handle, and reports a lack of memory if
 * it gets none (rocm-systems #10604). Only the program may raise the limit:
 * select() accepts no descriptor from 1024 on. */
bool iris_i_hip_lacks_descriptors(const struct hip_backend *hip, size_t bytes,
                                  iris_status_t *status_p)
{
    struct rlimit limit = {0};

    if (!are_used_up()) {
        return false;
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    *status_p = iris_i_hip_refuse(
        hip, IRIS_ERR_LIMIT,
        "no file descriptor left for %zu bytes of a heap: the runtime may keep "
        "one for each of up to %d pieces of a rank's heap. Raise RLIMIT_NOFILE "
        "(ulimit -n), now %llu, to %llu, or use IRIS_ALLOCATOR=pool",
        bytes, HIP_MOST_PIECES, (unsigned long long)limit.rlim_cur,
        (unsigned long long)OTHERS +
            (unsigned long long)HIP_MOST_PIECES *
                (unsigned long long)hip->params.num_ranks);
    return true;
}
