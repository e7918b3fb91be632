/* SPDX-License-Identifier: MIT
 *
 * Files of the program's user, written whole or not at all.
 */
#ifndef IRIS_SRC_BASE_FILE_H
#define IRIS_SRC_BASE_FILE_H

#include <limits.h>
#include <stddef.h>

/* Makes `path` a file of these bytes, with mode 0644 less the umask, in place
 * of a file or a symbolic link of that name. Whoever is killed on the way, or
 * finds the disk full, leaves a whole file or none, but where the file system
 * has no unnamed files a kill may leave a `.iris-*.tmp` beside it. Follows no
 * symbolic link in the last part of the path, whoever may write to the folder.
 * Returns 0, or the errno of what failed. */
int iris_i_file_write(const char *path, const void *data, size_t bytes);

/* A new file beside `path`, under a name that nobody could have put there
 * before, for the caller to rename; -1 with errno set. */
int iris_i_file_open_aside(const char *path, char aside[PATH_MAX + 32]);

#endif /* IRIS_SRC_BASE_FILE_H */
