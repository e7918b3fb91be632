/* SPDX-License-Identifier: MIT
 *
 * Small file systems of a test's own, in a child process that has mounts of its
 * own.
 */
#ifndef IRIS_TESTS_MOUNTS_H
#define IRIS_TESTS_MOUNTS_H

/* Puts a tmpfs on the folder `path`, for this process and its children. Who is
 * not root becomes root of a user namespace for it. 0 if the system does not
 * allow that. */
int mounts_small(const char *path, const char *options);

#endif /* IRIS_TESTS_MOUNTS_H */
