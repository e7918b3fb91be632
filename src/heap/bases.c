/* SPDX-License-Identifier: MIT
 *
 * The heap-bases file, for whoever resolves addresses of a trace later: byte
 * for byte what Python's json.dump(..., indent=2) writes.
 */
#include "config.h"

#include "heap/heap.h"
#include "base/log.h"
#include "base/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Against others that write the same file at the same time. */
#define NAME_TRIES 100

static int print_bases(const struct iris_heap *heap, FILE *file)
{
    fprintf(file, "{\n  \"rank\": %d,\n  \"num_ranks\": %d,\n", heap->log->rank,
            heap->log->num_ranks);
    fprintf(file, "  \"heap_bases\": [");
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        fprintf(file, "%s\n    \"0x%llx\"", rank == 0 ? "" : ",",
                (unsigned long long)heap->bases[rank]);
    }
    fprintf(file, "\n  ]\n}");
    return ferror(file) ? -1 : 0;
}

/* Opens a file in path's folder that has no name yet; -1 if there is no such
 * thing there. */
static int open_unnamed(const char *path)
{
    char folder[PATH_MAX];
    char *slash;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL) {
        return open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    }
    slash[slash == folder ? 1 : 0] = '\0';
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
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
    return -1;
}

/* A rank killed at any moment leaves a complete file or none. 0 if that cannot
 * be had here. */
static int write_unnamed(const struct iris_heap *heap, const char *path)
{
    int fd = open_unnamed(path), done;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    done = print_bases(heap, file) == 0 && fflush(file) == 0 &&
           name_it(fd, path) == 0;
    fclose(file);
    return done;
}

/* The next best, for file systems without unnamed files: written aside, then
 * renamed. */
static int write_aside(const struct iris_heap *heap, const char *path)
{
    char aside[PATH_MAX + 32];
    FILE *file;
    int ret;

    snprintf(aside, sizeof aside, "%s.%ld.tmp", path, (long)getpid());
    file = fopen(aside, "we");
    if (file == NULL) {
        return errno;
    }
    ret = print_bases(heap, file) == 0 ? 0 : errno;
    if (fclose(file) != 0 && ret == 0) {
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

iris_status_t iris_i_bases_write(const struct iris_heap *heap,
                                 const char *prefix)
{
    char path[PATH_MAX];
    int ret;

    snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json", prefix,
             heap->log->rank);
    ret = write_unnamed(heap, path) ? 0 : write_aside(heap, path);
    if (ret == EMFILE || ret == ENFILE) {
        return iris_i_fail_fd(ret, "cannot write the heap-bases file");
    }
    if (ret != 0) {
        return iris_i_fail_errno(heap->log, IRIS_ERR_SYSTEM, ret,
                                 "cannot write %.600s; choose another "
                                 "IRIS_HEAP_BASES_PREFIX",
                                 path);
    }
    return IRIS_OK;
}
