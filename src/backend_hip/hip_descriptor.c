/* SPDX-License-Identifier: MIT
 *
 * Descriptors of memory: whose they are when the runtime has exported one, and
 * what to say when the process has no more.
 */
#include "config.h"

#include "backend_hip/hip_descriptor.h"

#include "backend_hip/hip_call.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

/* Descriptors that a process has for other things, roughly. */
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

/* ROCm 7.14 gives away the descriptor that it keeps for the handle: who closes
 * that gets the same number at the next export, and with it no file or another
 * one (rocm-systems #7786, #8440). Two exports tell: other runtimes make a new
 * one each time, which the caller closes. */
hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p)
{
    int fd = -1, again = -1;
    hipError_t error = export(handle, &fd);

    if (error != hipSuccess) {
        return error;
    }
    error = export(handle, &again);
    if (error != hipSuccess) { /* one that is kept is always there */
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

/* ROCm 7.14 keeps a descriptor for each handle, and says that memory is out
 * when it gets none (rocm-systems #10604). The limit is the program's to raise:
 * select() takes no descriptor from 1024 on. */
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
