/* SPDX-License-Identifier: MIT
 *
 * Counting what a process holds, from /proc.
 */
#include "config.h"

#include "leaks.h"

#include "harness.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Milliseconds that a joined thread gets to leave /proc. */
#define PATIENCE 2000

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static int count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    int count = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, "/dev/shm/") != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static void count(struct leaks *leaks_p)
{
    leaks_p->fds = count_entries("/proc/self/fd");
    leaks_p->mappings = count_mappings();
    leaks_p->threads = count_entries("/proc/self/task");
}

static void *tell_id(void *arg)
{
    *(pid_t *)arg = gettid();
    return NULL;
}

/* Sanitizers start a thread of their own with the process's first. This one is
 * gone when the call returns. */
static void start_first_thread(void)
{
    pthread_t thread;
    char path[64];
    pid_t id;

    if (pthread_create(&thread, NULL, tell_id, &id) != 0) {
        return;
    }
    pthread_join(thread, NULL);
    snprintf(path, sizeof path, "/proc/self/task/%ld", (long)id);
    while (access(path, F_OK) == 0) {
        poll(NULL, 0, 1);
    }
}

void leaks_note(struct leaks *leaks_p)
{
    start_first_thread();
    count(leaks_p);
}

int leaks_found(const struct leaks *before)
{
    struct leaks now;

    count(&now);
    for (int ms = 0; now.threads > before->threads && ms < PATIENCE; ms++) {
        poll(NULL, 0, 1);
        count(&now);
    }
    if (now.fds <= before->fds && now.mappings <= before->mappings &&
        now.threads <= before->threads) {
        return 0;
    }
    fprintf(stderr,
            "left behind: descriptors %d -> %d, mappings %d -> %d, threads "
            "%d -> %d\n",
            before->fds, now.fds, before->mappings, now.mappings,
            before->threads, now.threads);
    return 1;
}

int leaks_found_files(void)
{
    const char *end = "_heap_bases.json";
    DIR *dir = opendir(harness_folder());
    struct dirent *entry;
    int found = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (entry->d_name[0] != '.' &&
            (length < strlen(end) ||
             strcmp(entry->d_name + length - strlen(end), end) != 0)) {
            fprintf(stderr, "left behind: %s/%s\n", harness_folder(),
                    entry->d_name);
            found = 1;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}
