/* SPDX-License-Identifier: MIT
 *
 * Files of the program's user, written whole or not at all.
 */
#ifndef IRIS_SRC_BASE_FILE_H
#define IRIS_SRC_BASE_FILE_H

#include <limits.h>
#include <stddef.h>

/* A file in the making. Until it is complete it has no name, so nothing of it
 * is left if its writer is killed. Where the file system has no unnamed files
 * it is a `.iris-*.tmp` beside its place, locked by its writer: the next file
 * that is made in the folder removes those whose writer is gone. */
struct iris_file {
    int fd;
    char aside[PATH_MAX + 32]; /* empty: unnamed */
};

/* Starts a file for `path`, with mode 0644 less the umask. Returns 0, or the
 * errno of what failed. */
int iris_i_file_open(const char *path, struct iris_file *file_p);

/* Makes the file `path`, in place of a file or a symbolic link of that name;
 * with `keep` 0, and after a failure, nothing is left of it. Follows no
 * symbolic link in the last part of the path, whoever may write to the folder.
 * Returns 0, or the errno of what failed. */
int iris_i_file_close(struct iris_file *file, const char *path, int keep);

/* Both, with these bytes written between. */
int iris_i_file_write(const char *path, const void *data, size_t bytes);

#endif /* IRIS_SRC_BASE_FILE_H */
