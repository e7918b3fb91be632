/* SPDX-License-Identifier: MIT
 *
 * Keeps the library's descriptors out of 0, 1 and 2, and its sockets out of
 * forked children.
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
 * open. Inline, because modules use it. */
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

/* iris_i_fd_above_stdio() for a socket of this process. A child that fork() makes
 * closes its copy before fork() returns in it: peers know the death of a process
 * on another host by the end of its connections, and a child that lives on would
 * hold them open. A child that runs another program (vfork, posix_spawn) keeps
 * its copies only until then, since all descriptors are close-on-exec. errno is
 * kept. */
int iris_i_fd_socket(int fd);

#endif /* IRIS_SRC_BASE_FD_H */
