/* SPDX-License-Identifier: MIT
 *
 * Finds the control segments of a process, by its descriptors in /proc. This
 * needs no debugger: a user who may look at the process's files may read them,
 * whether it runs or is stopped.
 */
#include "config.h"

#include "report/report.h"

#include "control/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Unnamed shared memory has such a name in /proc, which does not exist as a
 * file. */
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

/* Whether the user owns the process. /proc/PID itself may belong to root. */
static int is_of(int pid, uid_t user)
{
    char path[64], line[256];
    unsigned ids[4];
    int found = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    file = fopen(path, "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = sscanf(line, "Uid: %u %u %u %u", &ids[0], &ids[1], &ids[2],
                       &ids[3]) == 4 &&
                (ids[0] == user || ids[1] == user || ids[2] == user ||
                 ids[3] == user);
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Whether it is memory, in a file system of the folder's kind. Reads from a
 * file system that a program serves may never return. */
static int is_memory(int fd, const struct stat *file)
{
    struct stat folder;
    struct statfs system;

    return (fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC) ||
           (stat("/dev/shm", &folder) == 0 && folder.st_dev == file->st_dev);
}

/* Whether the descriptor, a reference that did not open the file, is the kind
 * of file that its name says: any process may give anything such a name. */
static int is_what_it_says(int place, int pid)
{
    struct stat file;

    return fstat(place, &file) == 0 && S_ISREG(file.st_mode) &&
           file.st_nlink == 0 && is_of(pid, file.st_uid) &&
           is_memory(place, &file);
}

/* Opens it if it is a segment, of any version; -1 otherwise. Opening a FIFO or
 * a device may block or have effects, so the file is checked before it is
 * opened. */
static int open_segment(const char *path, int pid)
{
    int num_ranks, fd = -1, place = open(path, O_PATH | O_CLOEXEC);
    char again[64];

    if (place >= 0 && is_what_it_says(place, pid)) {
        snprintf(again, sizeof again, "/proc/self/fd/%d", place);
        fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (place >= 0) {
        close(place);
    }
    if (fd >= 0 && iris_i_records_check(fd, &num_ranks) == IRIS_ERR_INVALID) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int iris_i_report_is_new(struct iris_report_seen *seen, int fd)
{
    const int most = (int)(sizeof seen->files / sizeof seen->files[0]);
    struct stat stat;

    if (fstat(fd, &stat) != 0 || seen->count == most) {
        return 0;
    }
    for (int i = 0; i < seen->count; i++) {
        if (seen->files[i].dev == stat.st_dev &&
            seen->files[i].ino == stat.st_ino) {
            return 0;
        }
    }
    seen->files[seen->count].dev = stat.st_dev;
    seen->files[seen->count++].ino = stat.st_ino;
    return 1;
}

int iris_i_report_open(int pid, int n)
{
    struct iris_report_seen seen = {.count = 0};
    char path[320];
    int found = -1;
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
        fd = may_be_segment(path) ? open_segment(path, pid) : -1;
        if (fd < 0) {
            continue;
        }
        if (iris_i_report_is_new(&seen, fd) && n-- == 0) {
            found = fd;
        } else {
            close(fd);
        }
    }
    closedir(folder);
    errno = found < 0 ? ENOENT : 0;
    return found;
}
