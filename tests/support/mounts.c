/* SPDX-License-Identifier: MIT
 *
 * Mounting in a namespace of this process's own.
 */
#include "config.h"

#include "support/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int written = fd >= 0 && write(fd, text, strlen(text)) > 0;

    if (fd >= 0) {
        close(fd);
    }
    return written;
}

/* A mount namespace of this process's own. Who is not root becomes root of a
 * user namespace for it. */
static int leave_mounts(void)
{
    char uid_map[32], gid_map[32];

    snprintf(uid_map, sizeof uid_map, "0 %ld 1", (long)geteuid());
    snprintf(gid_map, sizeof gid_map, "0 %ld 1", (long)getegid());
    if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0) {
        return 1;
    }
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/uid_map", uid_map) &&
           write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/gid_map", gid_map);
}

int mounts_small(const char *path, const char *options)
{
    if (!leave_mounts() ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", path, "tmpfs", 0, options) != 0) {
        return 0;
    }
    return 1;
}
