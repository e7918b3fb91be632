/* SPDX-License-Identifier: MIT
 *
 * Places in the program: the caller of a host call, the site of an access.
 *
 * A site is constant once it has a number, and equal sites of all ranks have one
 * number. A rank's own table finds the number from an address; both change under
 * a spin lock. addr2line, a tool of the compiler's, knows the source lines: it
 * names all the functions that were inlined at an address, from the device API's
 * to the kernel's body, of which the first outside of the API is the program's.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
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

void iris_i_race_caller(struct iris_race_caller *caller_p)
{
    void *frames[64];
    int count = backtrace(frames, (int)(sizeof frames / sizeof *frames));
    const struct link_map *own =
        count == 0 ? NULL : find_map(frames[0]); /* this function */
    bool is_shared =
        own != NULL && own->l_name != NULL && own->l_name[0] != '\0';
    int i = 0;

    memset(caller_p, 0, sizeof *caller_p);
    while (is_shared && i < count && find_map(frames[i]) == own) {
        i++;
    }
    if (is_shared && i < count) {
        caller_p->frames[0] = frames[i];
    }
    for (; !is_shared && i < count && i < IRIS_RACE_FRAMES &&
           find_map(frames[i]) == own;
         i++) {
        caller_p->frames[i] = frames[i];
    }
}

/* ---- Numbers ---- */

void iris_i_race_find_file(const void *address, unsigned i,
                           struct iris_race_site *site)
{
    struct link_map *map = NULL;
    Dl_info info;
    ssize_t got;

    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        map == NULL) {
        return;
    }
    site->offsets[i] = (uint64_t)((uintptr_t)address - map->l_addr) - 1;
    if (i != 0) {
        return; /* all of them are in one file */
    }
    if (map->l_name != NULL && map->l_name[0] != '\0') {
        snprintf(site->file, sizeof site->file, "%s", map->l_name);
        return;
    }
    got = readlink("/proc/self/exe", site->file, sizeof site->file - 1);
    site->file[got < 0 ? 0 : got] = '\0';
}

static struct iris_race_known make_key(const struct iris_cpu_event *event)
{
    return (struct iris_race_known){
        .address = event->site,
        .kernel = event->kernel,
        .how = (uint64_t)event->op | (uint64_t)event->sem << 16 |
               (uint64_t)event->scope << 18 | (uint64_t)event->atomic << 20};
}

/* The slot of a key in the rank's table. */
static struct iris_race_known *find_known(struct iris_race *race,
                                          const struct iris_race_known *key)
{
    uint64_t hash = ((uintptr_t)key->address ^ (uintptr_t)key->kernel << 20 ^
                     key->how << 40) *
                    UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 40);
    struct iris_race_known *known;

    do {
        known = &race->sites.known[at++ % IRIS_RACE_KNOWN_SITES];
    } while (atomic_load_explicit(&known->number, memory_order_acquire) != 0 &&
             (known->address != key->address || known->kernel != key->kernel ||
              known->how != key->how));
    return known;
}

/* The number of an equal site, which may be another rank's; 0: too many. */
static uint32_t add_site(struct iris_race_shared *shared,
                         const struct iris_race_site *site)
{
    uint32_t i = 1;

    while (i <= shared->num_sites &&
           memcmp(&shared->sites[i], site, sizeof *site) != 0) {
        i++;
    }
    if (i == IRIS_RACE_SITES) {
        return 0;
    }
    if (i > shared->num_sites) {
        shared->sites[i] = *site;
        shared->num_sites = i;
    }
    return i;
}

static uint32_t number_site(struct iris_race *race,
                            const struct iris_race_known *key,
                            const struct iris_race_site *site)
{
    struct iris_race_known *known;
    uint32_t number;

    iris_i_order_spin_lock(race->order.shared, &race->shared->lock);
    known = find_known(race, key);
    number = atomic_load(&known->number);
    if (number == 0) {
        number = add_site(race->shared, site);
        known->address = key->address;
        known->kernel = key->kernel;
        known->how = key->how;
        atomic_store_explicit(&known->number, number, memory_order_release);
    }
    iris_i_order_spin_unlock(&race->shared->lock);
    if (number == 0) {
        atomic_store(&race->order.shared->blind, true);
    }
    return number;
}

uint32_t iris_i_race_site(struct iris_race *race,
                          const struct iris_cpu_event *event)
{
    const struct iris_race_known key = make_key(event);
    uint32_t number = atomic_load(&find_known(race, &key)->number);
    struct iris_race_site site;

    if (number != 0) {
        return number;
    }
    /* With the padding: sites are compared as bytes. */
    memset(&site, 0, sizeof site);
    site.op = event->op;
    site.host_op = -1;
    site.sem = event->sem;
    site.scope = event->scope;
    site.atomic = event->atomic != 0;
    snprintf(site.kernel, sizeof site.kernel, "%s", event->kernel);
    iris_i_race_find_file(event->site, 0, &site);
    return number_site(race, &key, &site);
}

/* A hash of all callers. Two that share it count as one. */
static const void *hash_caller(const struct iris_race_caller *caller)
{
    uint64_t hash = 0;

    for (unsigned i = 0; i < IRIS_RACE_FRAMES; i++) {
        hash = (hash ^ (uintptr_t)caller->frames[i]) *
               UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (const void *)(uintptr_t)hash;
}

uint32_t iris_i_race_host_site(struct iris_race *race, enum iris_host_op op,
                               const struct iris_race_caller *caller)
{
    const struct iris_race_known key = {.address = hash_caller(caller),
                                        .how =
                                            (uint64_t)1 << 32 | (uint64_t)op};
    uint32_t number = atomic_load(&find_known(race, &key)->number);
    struct iris_race_site site;

    if (number != 0) {
        return number;
    }
    memset(&site, 0, sizeof site);
    site.host_op = (int32_t)op;
    for (unsigned i = 0; i < IRIS_RACE_FRAMES && caller->frames[i] != NULL;
         i++) {
        iris_i_race_find_file(caller->frames[i], i, &site);
    }
    return number_site(race, &key, &site);
}

/* ---- Source lines ---- */

/* "/dir/device/core/rma.h:82" and "/dir/iris.hpp:31" belong to the API, as does
 * every line in the folder `own` of Iris's sources, if it is known. */
static bool is_own_line(const char *line, const char *own)
{
    const char *folder = strstr(line, "/device/");

    return (folder != NULL && strstr(folder, ".h:") != NULL) ||
           strstr(line, "/iris.hpp:") != NULL ||
           (own[0] != '\0' && strncmp(line, own, strlen(own)) == 0);
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

/* Finds the program's line in the output of addr2line; the last one if all
 * lines belong to the API. */
static bool read_lines(FILE *pipe, char *text, size_t bytes)
{
    char line[1024], folder[1024] = "";
    bool found = false, own = true;
    const char *end;

    while (fgets(line, sizeof line, pipe) != NULL) {
        line[strcspn(line, "\n(")] = '\0';
        if (!own || strncmp(line, "??", 2) == 0) {
            continue;
        }
        shorten_line(line);
        end = strstr(line, "check/race_site.c:");
        if (end != NULL) { /* lists of callers begin in this file */
            snprintf(folder, sizeof folder, "%.*s", (int)(end - line), line);
        }
        own = is_own_line(line, folder);
        found = true;
        snprintf(text, bytes, "%s",
                 strrchr(line, '/') != NULL ? strrchr(line, '/') + 1 : line);
        text[strcspn(text, " ")] = '\0';
    }
    return found;
}

static FILE *ask_addr2line(const struct iris_race_site *site)
{
    char command[512 + 20 * IRIS_RACE_FRAMES];
    size_t length;

    if (strchr(site->file, '\'') != NULL) {
        return NULL;
    }
    length =
        (size_t)snprintf(command, sizeof command,
                         "exec addr2line -i -e '%s' 2>/dev/null", site->file);
    for (unsigned i = 0; i < IRIS_RACE_FRAMES && site->offsets[i] != 0; i++) {
        length +=
            (size_t)snprintf(command + length, sizeof command - length,
                             " 0x%llx", (unsigned long long)site->offsets[i]);
    }
    return popen(command, "re");
}

static void find_line(const struct iris_race_site *site, char *text,
                      size_t bytes)
{
    const char *name = strrchr(site->file, '/');
    bool found = false;
    FILE *pipe;

    text[0] = '\0';
    if (site->file[0] == '\0') {
        return;
    }
    pipe = ask_addr2line(site);
    if (pipe != NULL) {
        found = read_lines(pipe, text, bytes);
        pclose(pipe);
    }
    if (!found) {
        snprintf(text, bytes, "%s+0x%llx", name == NULL ? site->file : name + 1,
                 (unsigned long long)site->offsets[0]);
    }
}

/* A line that the process has found. The table only grows, and its lines never
 * change, so it needs no lock. */
struct line {
    uint64_t offsets[IRIS_RACE_FRAMES];
    char file[sizeof((struct iris_race_site *)NULL)->file];
    char text[160];
};

static struct line *_Atomic lines[1024];

void iris_i_race_line(const struct iris_race_site *site, char *text,
                      size_t bytes)
{
    struct line *line, *none = NULL;
    uint64_t sum = 0;

    for (unsigned i = 0; i < IRIS_RACE_FRAMES; i++) {
        sum += site->offsets[i];
    }
    line = atomic_load(&lines[sum % 1024]);
    if (line != NULL &&
        memcmp(line->offsets, site->offsets, sizeof line->offsets) == 0 &&
        strcmp(line->file, site->file) == 0) {
        snprintf(text, bytes, "%s", line->text);
        return;
    }
    find_line(site, text, bytes);
    line = line == NULL ? calloc(1, sizeof *line) : NULL;
    if (line != NULL) {
        memcpy(line->offsets, site->offsets, sizeof line->offsets);
        memcpy(line->file, site->file, sizeof line->file);
        snprintf(line->text, sizeof line->text, "%s", text);
        if (!atomic_compare_exchange_strong(&lines[sum % 1024], &none, line)) {
            free(line);
        }
    }
}

/* ---- The operation of a site ---- */

static const char *name_host_call(const struct iris_race_site *site)
{
    switch ((enum iris_host_op)site->host_op) {
    case IRIS_HOST_COPY:
        return "copy on a stream";
    case IRIS_HOST_SET:
        return "fill on a stream";
    case IRIS_HOST_SIGNAL:
        return "signal on a stream";
    case IRIS_HOST_WAIT:
        return "wait on a stream";
    case IRIS_HOST_FREE:
        return "iris_free";
    default:
        return "collective";
    }
}

void iris_i_race_deed(const struct iris_race_site *site, char *text,
                      size_t bytes)
{
    static const char *const sems[] = {
        [IRIS_RELAXED] = "relaxed",
        [IRIS_ACQUIRE] = "acquire",
        [IRIS_RELEASE] = "release",
        [IRIS_ACQ_REL] = "acquire and release",
    };
    static const char *const scopes[] = {
        [IRIS_SCOPE_WG] = "workgroup scope",
        [IRIS_SCOPE_AGENT] = "agent scope",
        [IRIS_SCOPE_SYSTEM] = "system scope",
    };
    const char *op = iris_i_op_name(site->op);

    if (site->host_op >= 0) {
        snprintf(text, bytes, "%s", name_host_call(site));
    } else if (site->atomic && (unsigned)site->sem < 4 &&
               (unsigned)site->scope < 3) {
        snprintf(text, bytes, "%s%s, %s, %s",
                 strncmp(op, "atomic", 6) == 0 || site->op == IRIS_OP_WAIT
                     ? ""
                     : "atomic ",
                 op, sems[site->sem], scopes[site->scope]);
    } else {
        snprintf(text, bytes, "%s", op);
    }
}
