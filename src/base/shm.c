/* SPDX-License-Identifier: MIT
 *
 * Unnamed POSIX shared memory: creation, committing, mapping.
 */
#include "config.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The folder of shm_open()'s objects. With O_TMPFILE, a file there never has a
 * name, so a killed rank leaves nothing behind. */
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

static iris_status_t fail_size(int errno_value, size_t bytes)
{
    return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno_value,
                             "cannot size shared memory to %zu bytes; lower "
                             "IRIS_HEAP_SIZE",
                             bytes);
}

static iris_status_t fail_room(int fd, int errno_value, size_t bytes)
{
    struct statvfs fs = {0};

    if (fd < 0) {
        statvfs(SHM_DIRECTORY, &fs);
    } else {
        fstatvfs(fd, &fs);
    }
    if (errno_value != ENOSPC && errno_value != ENOMEM) {
        return iris_i_fail_errno(
            NULL, IRIS_ERR_SYSTEM, errno_value,
            "cannot put memory behind shared memory in " SHM_DIRECTORY);
    }
    return iris_i_fail_errno(
        NULL, IRIS_ERR_NO_MEMORY, errno_value,
        SHM_DIRECTORY
        " has no room for %zu more bytes (%llu free of %llu); "
        "free some, allocate less, or enlarge it (mount -o remount,size=..., "
        "docker run --shm-size=...)",
        bytes, (unsigned long long)fs.f_bavail * fs.f_bsize,
        (unsigned long long)fs.f_blocks * fs.f_bsize);
}

/* Growing a file beyond RLIMIT_FSIZE would raise a signal that kills the
 * process. */
static iris_status_t check_file_limit(size_t bytes)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    getrlimit(RLIMIT_FSIZE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                       "shared memory of %zu bytes is above RLIMIT_FSIZE "
                       "(ulimit -f), %llu bytes; raise it, or lower "
                       "IRIS_HEAP_SIZE",
                       bytes, (unsigned long long)limit.rlim_cur);
}

iris_status_t iris_i_shm_create(size_t bytes, int *fd_p)
{
    iris_status_t status = check_file_limit(bytes);
    int fd;

    if (status != IRIS_OK) {
        return status;
    }
    fd = iris_i_fd_above_stdio(
        open(SHM_DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd < 0) {
        return errno == ENOSPC
                   ? fail_room(-1, errno, bytes)
                   : iris_i_fail_fd(
                         errno, "cannot make shared memory in " SHM_DIRECTORY);
    }
    if (bytes > INT64_MAX || ftruncate(fd, (off_t)bytes) != 0) {
        int ret = bytes > INT64_MAX ? EFBIG : errno;

        close(fd);
        return fail_size(ret, bytes);
    }
    *fd_p = fd;
    return IRIS_OK;
}

/* Commits all at once, so that the system undoes everything if there is not
 * enough memory. Signals are blocked: one would end the call and undo its work,
 * and a periodic one could do so forever. */
iris_status_t iris_i_shm_commit(int fd, size_t offset, size_t bytes)
{
    sigset_t all, before;
    int ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    do {
        ret = fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
    } while (ret == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ret == 0 ? IRIS_OK : fail_room(fd, ret, bytes);
}

static size_t page_up(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

void iris_i_shm_decommit(int fd, size_t offset, size_t bytes)
{
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)bytes) != 0) {
        iris_i_warning(NULL,
                       "%zu bytes of shared memory are not given back: "
                       "%s",
                       bytes, strerror(errno));
    }
}

/* A page without access precedes and follows every mapping, so that an address
 * there is known to be outside of it. */
size_t iris_i_shm_guard_bytes(void)
{
    return page_up(1);
}

void iris_i_shm_unmap(void *base, size_t bytes)
{
    size_t guard = iris_i_shm_guard_bytes();

    munmap((char *)base - guard, guard + page_up(bytes) + guard);
}

static iris_status_t fail_map(int errno_value, size_t bytes)
{
    return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno_value,
                             "cannot map %zu bytes of shared memory; lower "
                             "IRIS_HEAP_SIZE, or raise the limit on address "
                             "space (ulimit -v)",
                             bytes);
}

/* Reserves twice the addresses and unmaps those around the range. */
iris_status_t iris_i_shm_map(int fd, size_t bytes, void **base_p)
{
    size_t guard = iris_i_shm_guard_bytes(), alignment = guard;
    size_t length = guard + page_up(bytes) + guard;
    char *range, *base, *first;

    if (length > SIZE_MAX / 4) {
        return fail_map(ENOMEM, bytes);
    }
    while (alignment <= bytes / 2) {
        alignment *= 2;
    }
    range = mmap(NULL, length + alignment, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        return fail_map(errno, bytes);
    }
    base = range + guard;
    base += (alignment - (uintptr_t)base % alignment) % alignment;
    first = base - guard;
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             0) == MAP_FAILED) {
        int ret = errno;

        munmap(range, length + alignment);
        return fail_map(ret, bytes);
    }
    if (first > range) {
        munmap(range, (size_t)(first - range));
    }
    if (first < range + alignment) {
        munmap(first + length, (size_t)(range + alignment - first));
    }
    *base_p = base;
    return IRIS_OK;
}
