/* SPDX-License-Identifier: MIT
 *
 * A file that is written in pieces. It is compressed if its name says so, and
 * gets its name when it is complete.
 */
#include "config.h"

#include "trace/trace.h"

#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if HAVE_ZLIB
#include <zlib.h>
#endif

/* The longest piece that one iris_i_out_print() makes. */
#define PIECE_BYTES 1024

static const char *find_end(const char *path, const char *end)
{
    size_t length = strlen(path), bytes = strlen(end);

    return length > bytes && strcmp(path + length - bytes, end) == 0
               ? path + length - bytes
               : NULL;
}

const char *iris_i_out_ending(const char *path)
{
    const char *ending = find_end(path, ".json.gz");

    return ending != NULL ? ending : find_end(path, ".json");
}

int iris_i_out_is_gz(const char *path)
{
    return find_end(path, ".gz") != NULL;
}

static void fail(struct iris_out *out, int error)
{
    if (out->failed == 0) {
        out->failed = error != 0 ? error : EIO;
    }
}

static void open_gz(struct iris_out *out)
{
#if HAVE_ZLIB
    int fd = dup(out->file.fd);

    out->gz = fd < 0 ? NULL : gzdopen(fd, "wb3");
    if (out->gz == NULL) {
        fail(out, fd < 0 ? errno : ENOMEM);
        if (fd >= 0) {
            close(fd);
        }
    }
#else
    fail(out, ENOTSUP);
#endif
}

void iris_i_out_open(struct iris_out *out, const char *path)
{
    int error;

    out->path = path;
    out->gz = NULL;
    out->failed = 0;
    out->num_elements = 0;
    out->used = 0;
    error = iris_i_file_open(path, &out->file);
    if (error != 0) {
        fail(out, error);
    } else if (iris_i_out_is_gz(path)) {
        open_gz(out);
    }
}

/* Writes the buffer. */
static void flush(struct iris_out *out)
{
    size_t done = 0;

    while (done < out->used && out->failed == 0) {
        ssize_t ret = -1;

        errno = 0;
#if HAVE_ZLIB
        if (out->gz != NULL) {
            int put = gzwrite(out->gz, out->buffer + done,
                              (unsigned)(out->used - done));

            ret = put == 0 ? -1 : put;
        }
#endif
        if (out->gz == NULL) {
            ret = write(out->file.fd, out->buffer + done, out->used - done);
        }
        if (ret < 0 && errno != EINTR) {
            fail(out, errno);
        }
        done += ret > 0 ? (size_t)ret : 0;
    }
    out->used = 0;
}

void iris_i_out_write(struct iris_out *out, const char *text, size_t bytes)
{
    while (bytes > 0 && out->failed == 0) {
        size_t space = sizeof out->buffer - out->used;
        size_t piece = bytes < space ? bytes : space;

        memcpy(out->buffer + out->used, text, piece);
        out->used += piece;
        text += piece;
        bytes -= piece;
        if (out->used == sizeof out->buffer) {
            flush(out);
        }
    }
}

void iris_i_out_print(struct iris_out *out, const char *format, ...)
{
    va_list args;
    int length;

    if (sizeof out->buffer - out->used < PIECE_BYTES) {
        flush(out);
    }
    va_start(args, format);
    length = vsnprintf(out->buffer + out->used, PIECE_BYTES, format, args);
    va_end(args);
    if (length < 0 || length >= PIECE_BYTES) {
        fail(out, EOVERFLOW);
    } else {
        out->used += (size_t)length;
    }
}

static void to_out(void *arg, const char *text, size_t bytes)
{
    iris_i_out_write(arg, text, bytes);
}

void iris_i_out_string(struct iris_out *out, const char *text)
{
    iris_i_json_escape(text, to_out, out);
}

void iris_i_out_next(struct iris_out *out)
{
    iris_i_out_print(out, out->num_elements++ == 0 ? "\n" : ",\n");
}

void iris_i_out_us(struct iris_out *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    iris_i_out_print(out, "%s%llu.%03llu", ns < 0 ? "-" : "",
                     (unsigned long long)(size / 1000),
                     (unsigned long long)(size % 1000));
}

static void close_gz(struct iris_out *out)
{
#if HAVE_ZLIB
    if (out->gz != NULL) {
        errno = 0;
        if (gzclose(out->gz) != Z_OK) {
            fail(out, errno);
        }
    }
#endif
    out->gz = NULL;
}

int iris_i_out_close(struct iris_out *out, int keep)
{
    flush(out);
    close_gz(out);
    if (out->file.fd >= 0) {
        int error =
            iris_i_file_close(&out->file, out->path, keep && out->failed == 0);

        if (error != 0) {
            fail(out, error);
        }
    }
    return out->failed;
}
