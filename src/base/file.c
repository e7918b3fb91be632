/* SPDX-License-Identifier: MIT
 *
 * Files that other programs read: they get their name when they are complete, and
 * JSON in them.
 *
 * A file is written without a name, or under a temporary one where the file system
 * has no unnamed files. Closing gives it its name in one step, or removes it.
 */
#include "config.h"

#include "base/base.h"
#include "base/link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files ---- */

/* Attempts to find a free name while others write the same file. */
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

/* A file system of a server or a process may take long over these calls, so a
 * signal may interrupt them. */
static int open_at(int dir, const char *name, int flags)
{
    int fd;

    do {
        fd = openat(dir, name, flags | O_CLOEXEC, MODE);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Without waiting for others. */
static int lock_file(int fd)
{
    int ret;

    do {
        ret = flock(fd, LOCK_EX | LOCK_NB);
    } while (ret != 0 && errno == EINTR);
    return ret;
}

/* The folder of `path`, with a slash at its end. Empty for the current folder.
 * 0 if the path is too long. */
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

/* ---- Names of unfinished files ---- */

#define ASIDE_PREFIX ".iris-"
#define ASIDE_SUFFIX ".tmp"
#define ASIDE_DIGITS 16

static int is_aside(const char *name)
{
    size_t prefix = strlen(ASIDE_PREFIX);

    return strncmp(name, ASIDE_PREFIX, prefix) == 0 &&
           strspn(name + prefix, "0123456789abcdef") == ASIDE_DIGITS &&
           strcmp(name + prefix + ASIDE_DIGITS, ASIDE_SUFFIX) == 0;
}

/* Removes the file if it belongs to this user and nobody has locked it. */
static void remove_if_left(int dir, const char *name)
{
    struct stat stat;
    int fd = open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        return;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
        stat.st_uid == geteuid() && lock_file(fd) == 0) {
        unlinkat(dir, name, 0);
    }
    close(fd);
}

static void remove_left(const char *folder)
{
    DIR *dir = opendir(folder[0] == '\0' ? "." : folder);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_aside(entry->d_name)) {
            remove_if_left(dirfd(dir), entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Makes and locks a file under a new name; -1 with errno set. Before it is
 * locked, another writer may take it for a left one and remove it; the next
 * name is tried then. */
static int make_aside(const char *folder, char aside[PATH_MAX + 32])
{
    struct stat stat;
    uint64_t number;
    int fd;

    if (iris_i_secret_random(&number, sizeof number) != IRIS_OK) {
        return -1;
    }
    snprintf(aside, PATH_MAX + 32, "%s" ASIDE_PREFIX "%016llx" ASIDE_SUFFIX,
             folder, (unsigned long long)number);
    fd = open_at(AT_FDCWD, aside, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR);
    if (fd >= 0 && lock_file(fd) == 0 && fstat(fd, &stat) == 0 &&
        stat.st_nlink == 0) {
        close(fd);
        errno = EEXIST;
        return -1;
    }
    return fd;
}

static int open_aside(const char *folder, struct iris_file *file)
{
    int ret;

    remove_left(folder);
    file->fd = -1;
    for (int tries = 0; file->fd < 0 && tries < NAME_TRIES; tries++) {
        file->fd = make_aside(folder, file->aside);
        if (file->fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (file->fd < 0) {
        return errno;
    }
    /* The new descriptor keeps the lock. */
    file->fd = iris_i_fd_above_stdio(file->fd);
    if (file->fd < 0) {
        ret = errno;
        unlink(file->aside);
        return ret;
    }
    return 0;
}

/* ---- Unfinished files ---- */

int iris_i_file_open(const char *path, struct iris_file *file_p)
{
    char folder[PATH_MAX];

    file_p->aside[0] = '\0';
    file_p->fd = -1;
    if (!folder_of(path, folder)) {
        return ENAMETOOLONG;
    }
    file_p->fd = iris_i_fd_above_stdio(open_at(
        AT_FDCWD, folder[0] == '\0' ? "." : folder, O_TMPFILE | O_RDWR));
    return file_p->fd >= 0 ? 0 : open_aside(folder, file_p);
}

/* Gives the unnamed file its name, replacing an older file of that name. */
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

/* Copies the unnamed file to a named one. Needed if /proc or the file system
 * does not let the unnamed one be named. */
static int copy_aside(int from, const char *path, struct iris_file *copy_p)
{
    char folder[PATH_MAX], piece[4096];
    ssize_t bytes;
    off_t at = 0;
    int ret;

    (void)folder_of(path, folder);
    ret = open_aside(folder, copy_p);
    while (ret == 0 && (bytes = pread(from, piece, sizeof piece, at)) != 0) {
        if (bytes > 0) {
            ret = write_all(copy_p->fd, piece, (size_t)bytes);
            at += bytes;
        } else if (errno != EINTR) {
            ret = errno;
        }
    }
    return ret;
}

static int rename_aside(struct iris_file *file, const char *path, int ret)
{
    if (file->fd >= 0 && ret == 0 && rename(file->aside, path) != 0) {
        ret = errno;
    }
    if (file->fd >= 0 && ret != 0) {
        unlink(file->aside);
    }
    if (file->fd >= 0 && close(file->fd) != 0 && ret == 0) {
        ret = errno; /* a full disk of a file server may show only now */
        unlink(path);
    }
    return ret;
}

int iris_i_file_close(struct iris_file *file, const char *path, int keep)
{
    struct iris_file copy = {.fd = -1};
    int ret = 0;

    if (file->aside[0] != '\0') {
        ret = rename_aside(file, path, keep ? 0 : ECANCELED);
    } else if (keep && (ret = name_it(file->fd, path)) != 0) {
        ret = rename_aside(&copy, path, copy_aside(file->fd, path, &copy));
    }
    if (file->aside[0] == '\0' && close(file->fd) != 0 && ret == 0) {
        ret = errno;
    }
    file->fd = -1;
    return keep ? ret : 0;
}

int iris_i_file_write(const char *path, const void *data, size_t bytes)
{
    struct iris_file file;
    int ret = iris_i_file_open(path, &file), closed;

    if (ret != 0) {
        return ret;
    }
    ret = write_all(file.fd, data, bytes);
    closed = iris_i_file_close(&file, path, ret == 0);
    return ret != 0 ? ret : closed;
}

/* ---- JSON: text ---- */

size_t iris_i_utf8_char(const char *text, uint32_t *code_p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    size_t bytes = c[0] < 0x80   ? 1
                   : c[0] < 0xc0 ? 0
                   : c[0] < 0xe0 ? 2
                   : c[0] < 0xf0 ? 3
                   : c[0] < 0xf8 ? 4
                                 : 0;
    uint32_t code = bytes <= 1 ? c[0] : c[0] & (0x7fu >> bytes);

    for (size_t i = 1; i < bytes; i++) {
        /* The terminating 0 is no such byte either. */
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (c[i] & 0x3fu);
    }
    *code_p = code;
    return bytes == 0 || code < least[bytes] || code > 0x10ffff ||
                   (code >= 0xd800 && code < 0xe000)
               ? 0
               : bytes;
}

void iris_i_json_string(FILE *file, const char *text)
{
    const char *from = text;

    fputc('"', file);
    while (*text != '\0') {
        uint32_t code;
        size_t bytes = iris_i_utf8_char(text, &code);

        if (bytes != 0 && code >= 0x20 && code != 0x7f && code != '"' &&
            code != '\\') {
            text += bytes;
            continue;
        }
        fwrite(from, 1, (size_t)(text - from), file);
        fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "\\u%04x",
                (unsigned char)*text);
        from = ++text;
    }
    fwrite(from, 1, (size_t)(text - from), file);
    fputc('"', file);
}

/* ---- JSON: documents ---- */

struct iris_json_writer iris_i_json_writer(FILE *file)
{
    return (struct iris_json_writer){.file = file, .is_empty = 1};
}

static void begin_value(struct iris_json_writer *json, const char *name,
                        int own_line)
{
    if (!json->is_empty) {
        fputs(own_line ? "," : ", ", json->file);
    }
    if (own_line && json->depth > 0) {
        fprintf(json->file, "\n%*s", json->depth, "");
    }
    if (name != NULL) {
        iris_i_json_string(json->file, name);
        fputs(": ", json->file);
    }
    json->is_empty = 0;
}

void iris_i_json_begin(struct iris_json_writer *json, const char *name,
                       char kind)
{
    begin_value(json, name, 1);
    json->open[json->depth++] = kind;
    json->is_empty = 1;
    fputc(kind, json->file);
}

void iris_i_json_end(struct iris_json_writer *json)
{
    json->is_empty = 0;
    fputc(json->open[--json->depth] == '{' ? '}' : ']', json->file);
    if (json->depth == 0) {
        fputc('\n', json->file);
    }
}

void iris_i_json_text(struct iris_json_writer *json, const char *name,
                      const char *text)
{
    begin_value(json, name, 0);
    if (text == NULL) {
        fputs("null", json->file);
    } else {
        iris_i_json_string(json->file, text);
    }
}

void iris_i_json_bool(struct iris_json_writer *json, const char *name,
                      int value)
{
    begin_value(json, name, 0);
    fputs(value ? "true" : "false", json->file);
}

void iris_i_json_int(struct iris_json_writer *json, const char *name,
                     int64_t value)
{
    begin_value(json, name, 0);
    fprintf(json->file, "%lld", (long long)value);
}

void iris_i_json_uint(struct iris_json_writer *json, const char *name,
                      uint64_t value)
{
    begin_value(json, name, 0);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void iris_i_json_real(struct iris_json_writer *json, const char *name,
                      double value)
{
    char text[32];

    begin_value(json, name, 0);
    if (value - value == 0) {
        iris_i_print(text, sizeof text, "%.6g", value);
        fputs(text, json->file);
    } else {
        fputs("null", json->file);
    }
}
