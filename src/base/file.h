/* SPDX-License-Identifier: MIT
 *
 * Files for the program's user, written completely or not at all.
 */
#ifndef IRIS_SRC_BASE_FILE_H
#define IRIS_SRC_BASE_FILE_H

#include <limits.h>
#include <stddef.h>

/* An unfinished file. It has no name until it is complete, so nothing remains
 * if its writer is killed. On a file system without unnamed files, it is a
 * `.iris-*.tmp` file beside its destination, locked by its writer. The next
 * file that is made in the folder removes such files whose writer is gone. */
struct iris_file {
    int fd;
    char aside[PATH_MAX + 32]; /* empty if the file is unnamed */
};

/* Starts a file for `path`, with mode 0644 less the umask. Returns 0 or an
 * errno. */
int iris_i_file_open(const char *path, struct iris_file *file_p);

/* Gives the file the name `path`, and replaces a file or a symbolic link of
 * that name. With `keep` 0, and after a failure, nothing remains. Never follows
 * a symbolic link in the last part of the path, even if others may write to the
 * folder. Returns 0 or an errno. */
int iris_i_file_close(struct iris_file *file, const char *path, int keep);

/* Opens the file, writes these bytes, and closes it. */
int iris_i_file_write(const char *path, const void *data, size_t bytes);

#endif /* IRIS_SRC_BASE_FILE_H */
