/* SPDX-License-Identifier: MIT
 *
 * Places in the program that call the library, and the source line of an
 * address.
 *
 * addr2line, a tool of the compiler's, knows the lines: it names all the functions
 * that were inlined at an address, from the device API's to the kernel's body,
 * of which the first outside of the API is the program's. It is asked only for a
 * report, so a program that needs no report starts no tool.
 */
#define _GNU_SOURCE
#include "config.h"

#include "base/base.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Callers ---- */

/* The file that contains the code; NULL: unknown. */
static const struct link_map *find_map(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ? NULL
                                                                        : map;
}

/* The functions of IRIS_RUNS_PROGRAM, by the linker; NULL in a program with none,
 * such as a test of one file. */
extern const char __start_iris_program[]
    __attribute__((visibility("hidden"), weak));
extern const char __stop_iris_program[]
    __attribute__((visibility("hidden"), weak));

/* A program's function that ends with a call of the library jumps there: then
 * the stack has no frame of it between the library's. */
static bool runs_program(const void *address)
{
    const char *at = address;

    return at > __start_iris_program && at <= __stop_iris_program;
}

/* Threads of the library begin in the C library, and Python calls through
 * libffi: no line of those is the program's. */
static bool is_between(const struct link_map *map)
{
    const char *name = map == NULL ? NULL : strrchr(map->l_name, '/');

    return name != NULL && (strncmp(name, "/libc.so", 8) == 0 ||
                            strncmp(name, "/libpthread", 11) == 0 ||
                            strncmp(name, "/libffi", 7) == 0);
}

void iris_i_source_caller(struct iris_caller *caller_p)
{
    void *frames[64];
    int count = backtrace(frames, (int)(sizeof frames / sizeof *frames));
    const struct link_map *own =
        count == 0 ? NULL : find_map(frames[0]); /* this function */
    bool is_shared =
        own != NULL && own->l_name != NULL && own->l_name[0] != '\0';
    int i = 0;

    memset(caller_p, 0, sizeof *caller_p);
    while (is_shared && i < count && find_map(frames[i]) == own &&
           !runs_program(frames[i])) {
        i++;
    }
    if (is_shared && i < count && !runs_program(frames[i]) &&
        !is_between(find_map(frames[i]))) {
        caller_p->frames[0] = frames[i];
    }
    for (; !is_shared && i < count && i < IRIS_SOURCE_FRAMES &&
           find_map(frames[i]) == own && !runs_program(frames[i]);
         i++) {
        caller_p->frames[i] = frames[i];
    }
}

void iris_i_source_find(const struct iris_caller *caller,
                        struct iris_source *source_p)
{
    const struct link_map *map = find_map(caller->frames[0]);
    ssize_t got;

    memset(source_p, 0, sizeof *source_p);
    if (map == NULL) {
        return;
    }
    /* All of them are in one file. */
    for (unsigned i = 0; i < IRIS_SOURCE_FRAMES && caller->frames[i] != NULL;
         i++) {
        source_p->offsets[i] =
            (uint64_t)((uintptr_t)caller->frames[i] - map->l_addr) - 1;
    }
    if (map->l_name != NULL && map->l_name[0] != '\0') {
        snprintf(source_p->file, sizeof source_p->file, "%s", map->l_name);
        return;
    }
    got = readlink("/proc/self/exe", source_p->file, sizeof source_p->file - 1);
    source_p->file[got < 0 ? 0 : got] = '\0';
}

/* ---- Lines ---- */

/* "/dir/device/core/rma.h:82" and "/dir/iris.hpp:31" belong to the API. */
static bool is_api_line(const char *line)
{
    const char *folder = strstr(line, "/device/");

    return (folder != NULL && strstr(folder, ".h:") != NULL) ||
           strstr(line, "/iris.hpp:") != NULL;
}

/* Turns "/build/../src/a.c:1" into "/src/a.c:1": compilers name the same file
 * in several ways. */
static void shorten_line(char *line)
{
    char *up = strstr(line, "/../"), *start;

    while (up != NULL && up != line) {
        *up = '\0';
        start = strrchr(line, '/');
        *up = '/';
        if (start == NULL) {
            break;
        }
        memmove(start, up + 3, strlen(up + 3) + 1);
        up = strstr(line, "/../");
    }
}

/* Finds the program's line in the output of addr2line: the first that does not
 * belong to the API, else the last of the API. No line in the folder of
 * Iris's sources is the program's. Returns whether there was any output. */
static bool read_lines(FILE *pipe, char *text, size_t bytes)
{
    char line[1024], folder[1024] = "";
    bool any = false, api = true;
    const char *end, *number;

    while (fgets(line, sizeof line, pipe) != NULL) {
        any = true;
        line[strcspn(line, "\n(")] = '\0';
        number = strrchr(line, ':'); /* "??:0" and "file.c:?": unknown */
        if (!api || number == NULL || atoi(number + 1) <= 0) {
            continue;
        }
        shorten_line(line);
        end = strstr(line, "base/source.c:");
        if (end != NULL) { /* lists of callers begin in this file */
            snprintf(folder, sizeof folder, "%.*s", (int)(end - line), line);
        }
        if (folder[0] != '\0' && strncmp(line, folder, strlen(folder)) == 0) {
            continue;
        }
        api = is_api_line(line);
        snprintf(text, bytes, "%s",
                 strrchr(line, '/') != NULL ? strrchr(line, '/') + 1 : line);
        text[strcspn(text, " ")] = '\0';
    }
    return any;
}

/* addr2line must neither ask a server nor take long. */
static FILE *ask_addr2line(const struct iris_source *source, int limit_ms)
{
    char command[512 + 20 * IRIS_SOURCE_FRAMES];
    size_t length;

    if (strchr(source->file, '\'') != NULL) {
        return NULL;
    }
    length = (size_t)snprintf(command, sizeof command,
                              "DEBUGINFOD_URLS= exec timeout %d.%03d addr2line "
                              "-i -e '%s' 2>/dev/null",
                              limit_ms / 1000, limit_ms % 1000, source->file);
    for (unsigned i = 0; i < IRIS_SOURCE_FRAMES && source->offsets[i] != 0;
         i++) {
        length +=
            (size_t)snprintf(command + length, sizeof command - length,
                             " 0x%llx", (unsigned long long)source->offsets[i]);
    }
    return popen(command, "re");
}

/* A shell's status if it finds no such command. */
#define NOT_FOUND (127 << 8)

/* Whether the answer is final: it does not change with more time. */
static bool find_line(const struct iris_source *source, int limit_ms,
                      char *text, size_t bytes)
{
    static atomic_bool has_no_tool;
    FILE *pipe = NULL;
    bool is_final = true;

    text[0] = '\0';
    if (source->file[0] != '\0' && !atomic_load(&has_no_tool)) {
        pipe = ask_addr2line(source, limit_ms);
    }
    if (pipe != NULL) {
        is_final = read_lines(pipe, text, bytes);
        if (pclose(pipe) == NOT_FOUND) {
            atomic_store(&has_no_tool, true);
        }
    }
    if (text[0] == '\0') {
        iris_i_source_place(source, text, bytes);
    }
    return is_final;
}

void iris_i_source_place(const struct iris_source *source, char *text,
                         size_t bytes)
{
    const char *name = strrchr(source->file, '/');

    text[0] = '\0';
    if (source->file[0] != '\0' && source->offsets[1] == 0) {
        snprintf(text, bytes, "%s+0x%llx",
                 name == NULL ? source->file : name + 1,
                 (unsigned long long)source->offsets[0]);
    }
}

/* A line that the process has found. The table only grows, and its lines never
 * change, so it needs no lock. */
struct line {
    struct iris_source source;
    char text[160];
};

static struct line *_Atomic lines[1024];

void iris_i_source_line(const struct iris_source *source, int limit_ms,
                        char *text, size_t bytes)
{
    struct line *line, *none = NULL;
    uint64_t sum = 0;

    for (unsigned i = 0; i < IRIS_SOURCE_FRAMES; i++) {
        sum += source->offsets[i];
    }
    line = atomic_load(&lines[sum % 1024]);
    if (line != NULL &&
        memcmp(line->source.offsets, source->offsets, sizeof source->offsets) ==
            0 &&
        strcmp(line->source.file, source->file) == 0) {
        snprintf(text, bytes, "%s", line->text);
        return;
    }
    line = find_line(source, limit_ms, text, bytes) && line == NULL
               ? calloc(1, sizeof *line)
               : NULL;
    if (line != NULL) {
        line->source = *source;
        snprintf(line->text, sizeof line->text, "%s", text);
        if (!atomic_compare_exchange_strong(&lines[sum % 1024], &none, line)) {
            free(line);
        }
    }
}
