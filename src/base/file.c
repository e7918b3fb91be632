/* SPDX-License-Identifier: MIT
 *
 * Writing a file aside and giving it its name when it is complete.
 */
#include "config.h"

#include "base/file.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Against others that write the same file at the same time. */
#define NAME_TRIES 100

#define MODE 0644

static int write_all(int fd, const void *data, size_t bytes)
{
    const char *next = data;

    while (bytes > 0) {
        ssize_t written = write(fd, next, bytes);

        if (written < 0 && errno != EINTR) {
            return errno;
        }
        if (written > 0) {
            next += written;
            bytes -= (size_t)written;
        }
    }
    return 0;
}

/* The folder that `path` is in, with a slash behind it unless it is the current
 * one, whose name is then empty. 0 if the path is too long. */
static int folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;

    if (length >= PATH_MAX) {
        return 0;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    return 1;
}

/* Gives the unnamed file its name, in place of an older one of that name. */
static int name_it(int fd, const char *path)
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    for (int tries = 0; tries < NAME_TRIES; tries++) {
        if (linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            return 0;
        }
        if (errno != EEXIST || (unlink(path) != 0 && errno != ENOENT)) {
            break;
        }
    }
    return errno;
}

/* Writes a file that has no name before it is complete. *can_p is 0 if the file
 * system or a missing /proc does not allow that, and nothing is there then. */
static int write_unnamed(const char *folder, const char *path, const void *data,
                         size_t bytes, int *can_p)
{
    int fd =
        iris_i_fd_above_stdio(open(folder[0] == '\0' ? "." : folder,
                                   O_TMPFILE | O_WRONLY | O_CLOEXEC, MODE));
    int ret;

    *can_p = fd >= 0;
    if (fd < 0) {
        return errno;
    }
    ret = write_all(fd, data, bytes);
    if (ret == 0) {
        ret = name_it(fd, path);
        *can_p = ret == 0;
    }
    close(fd);
    return ret;
}

int iris_i_file_open_aside(const char *path, char aside[PATH_MAX + 32])
{
    char folder[PATH_MAX];
    uint64_t number;
    int fd = -1, ret;

    if (!folder_of(path, folder)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int tries = 0; fd < 0 && tries < NAME_TRIES; tries++) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
            return -1;
        }
        snprintf(aside, PATH_MAX + 32, "%s.iris-%016llx.tmp", folder,
                 (unsigned long long)number);
        fd = open(aside, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
                  MODE);
        if (fd < 0 && errno != EEXIST) {
            return -1;
        }
    }
    if (fd >= 0 && (fd = iris_i_fd_above_stdio(fd)) < 0) {
        ret = errno;
        unlink(aside);
        errno = ret;
    }
    return fd;
}

/* The next best: written under a name of its own, then renamed. */
static int write_aside(const char *path, const void *data, size_t bytes)
{
    char aside[PATH_MAX + 32];
    int fd = iris_i_file_open_aside(path, aside), ret;

    if (fd < 0) {
        return errno;
    }
    ret = write_all(fd, data, bytes);
    if (close(fd) != 0 && ret == 0) {
        ret = errno;
    }
    if (ret == 0 && rename(aside, path) != 0) {
        ret = errno;
    }
    if (ret != 0) {
        unlink(aside);
    }
    return ret;
}

int iris_i_file_write(const char *path, const void *data, size_t bytes)
{
    char folder[PATH_MAX];
    int can = 0, ret;

    if (!folder_of(path, folder)) {
        return ENAMETOOLONG;
    }
    ret = write_unnamed(folder, path, data, bytes, &can);
    return can ? ret : write_aside(path, data, bytes);
}
