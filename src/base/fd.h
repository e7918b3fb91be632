/* SPDX-License-Identifier: MIT
 *
 * Keeps the library's descriptors out of 0, 1 and 2. Inline, because modules
 * use it.
 */
#ifndef IRIS_SRC_BASE_FD_H
#define IRIS_SRC_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Every call that makes a descriptor goes through this. A program may have
 * closed its standard streams. If the library's file then got stderr's number,
 * log lines would be written into it, even into a heap. Takes `fd`, or -1 with
 * errno set. Returns the descriptor to use, or -1 with errno set and nothing
 * open. */
static inline int iris_i_fd_above_stdio(int fd)
{
    int ret, moved;

    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ret = errno;
    close(fd);
    errno = ret;
    return moved;
}

#endif /* IRIS_SRC_BASE_FD_H */
