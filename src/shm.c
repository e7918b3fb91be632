/* SPDX-License-Identifier: MIT
 *
 * Unnamed POSIX shared memory: creation, backing, mapping.
 */
#include "config.h"

#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "log.h"

/* Where shm_open() keeps its objects. O_TMPFILE makes one there that never has
 * a name: a rank killed at any moment leaves nothing. */
#define SHM_DIRECTORY "/dev/shm"

iris_status_t iris_i_fail_fd(int errno_value, const char *what)
{
    struct rlimit limit = {0};

    if (errno_value != EMFILE && errno_value != ENFILE) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno_value, "%s",
                                 what);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    return iris_i_fail_errno(
        NULL, IRIS_ERR_LIMIT, errno_value,
        "%s: no file descriptors left; raise RLIMIT_NOFILE (ulimit -n), now "
        "%llu: a rank needs about 3 for each rank of the job",
        what, (unsigned long long)limit.rlim_cur);
}

iris_status_t iris_i_shm_create(size_t bytes, int *fd_p)
{
    int fd = open(SHM_DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) {
        return iris_i_fail_fd(errno,
                              "cannot make shared memory in " SHM_DIRECTORY);
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        int ret = errno;

        close(fd);
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, ret,
                                 "cannot size shared memory to %zu bytes; "
                                 "lower IRIS_HEAP_SIZE",
                                 bytes);
    }
    *fd_p = fd;
    return IRIS_OK;
}

iris_status_t iris_i_shm_back(int fd, size_t offset, size_t bytes)
{
    struct statvfs fs = {0};
    int ret;

    do {
        ret = fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
    } while (ret == EINTR);
    if (ret == 0) {
        return IRIS_OK;
    }
    fstatvfs(fd, &fs);
    return iris_i_fail_errno(
        NULL, IRIS_ERR_NO_MEMORY, ret,
        SHM_DIRECTORY
        " has no room for %zu more bytes (%llu free of %llu); "
        "free some, allocate less, or enlarge it (mount -o remount,size=..., "
        "docker run --shm-size=...)",
        bytes, (unsigned long long)fs.f_bavail * fs.f_bsize,
        (unsigned long long)fs.f_blocks * fs.f_bsize);
}

iris_status_t iris_i_shm_map(int fd, size_t bytes, void **base_p)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED) {
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno,
                                 "cannot map %zu bytes of shared memory",
                                 bytes);
    }
    *base_p = base;
    return IRIS_OK;
}
