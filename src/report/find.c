/* SPDX-License-Identifier: MIT
 *
 * Finding the control segments that a process has, by its descriptors in /proc.
 * No debugger: whoever may look at the process's files may read them, whether
 * it runs or is stopped.
 */
#include "config.h"

#include "report/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What one process may have of them. */
#define SEEN 64

struct seen {
    dev_t dev;
    ino_t ino;
};

/* Unnamed shared memory has such a name, which leads nowhere. */
static int may_be_segment(const char *path)
{
    char target[256];
    ssize_t length = readlink(path, target, sizeof target - 1);

    if (length < 0) {
        return 0;
    }
    target[length] = '\0';
    return strncmp(target, "/dev/shm/", 9) == 0 &&
           strstr(target, "(deleted)") != NULL;
}

/* Opens it if it is a segment, of any version; -1. */
static int open_segment(const char *path)
{
    int num_ranks, fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && iris_i_report_check(fd, &num_ranks) == IRIS_ERR_INVALID) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Descriptors of one file are one. */
static int is_new(int fd, struct seen *seen, int *count)
{
    struct stat stat;

    if (fstat(fd, &stat) != 0) {
        return 0;
    }
    for (int i = 0; i < *count; i++) {
        if (seen[i].dev == stat.st_dev && seen[i].ino == stat.st_ino) {
            return 0;
        }
    }
    if (*count < SEEN) {
        seen[(*count)++] = (struct seen){stat.st_dev, stat.st_ino};
    }
    return 1;
}

int iris_i_report_open(int pid, int n)
{
    struct seen seen[SEEN];
    char path[320];
    int count = 0, found = -1;
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    folder = opendir(path);
    if (folder == NULL) {
        errno = errno == ENOENT ? ESRCH : errno;
        return -1;
    }
    while (found < 0 && (entry = readdir(folder)) != NULL) {
        int fd;

        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, entry->d_name);
        fd = may_be_segment(path) ? open_segment(path) : -1;
        if (fd < 0) {
            continue;
        }
        if (is_new(fd, seen, &count) && n-- == 0) {
            found = fd;
        } else {
            close(fd);
        }
    }
    closedir(folder);
    errno = found < 0 ? ENOENT : 0;
    return found;
}
