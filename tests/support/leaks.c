/* SPDX-License-Identifier: MIT
 *
 * Counting what a process holds, from /proc.
 */
#include "config.h"

#include "support/leaks.h"

#include "support/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Milliseconds that a joined thread gets to leave /proc, and one that ends by
 * itself to unmap what it has. */
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

/* What a real GPU's runtime holds for as long as the process lives is left out:
 * descriptors and threads. */
static void count_ours(struct leaks *leaks_p, const struct leaks *before)
{
    count(leaks_p);
    if (getenv("IRIS_TEST_GPU") != NULL) {
        leaks_p->fds = before->fds;
        leaks_p->threads = before->threads;
    }
}

int leaks_found(const struct leaks *before)
{
    struct leaks now;

    count_ours(&now, before);
    for (int ms = 0; ms < PATIENCE &&
                     (now.fds > before->fds || now.threads > before->threads ||
                      now.mappings > before->mappings);
         ms++) {
        poll(NULL, 0, 1);
        count_ours(&now, before);
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

/* Folders where programs leave files, and what they held at the start. */
static struct place {
    const char *path; /* NULL: $TMPDIR or /tmp */
    const char *ours; /* in the name of every file that can be ours */
    char *names;      /* "/name/name/" */
} places[] = {{"/dev/shm", "", NULL}, {NULL, "iris", NULL}};

static const char *path_of(const struct place *place)
{
    const char *tmp = getenv("TMPDIR");

    return place->path != NULL ? place->path : tmp != NULL ? tmp : "/tmp";
}

/* Open MPI, the C library's semaphores, and harnesses have such names; the
 * harness's own folder is looked at by itself. */
static int is_known(const char *name)
{
    static const char *const others[] = {".",    "vader_segment", "ompi.",
                                         "sem.", "iris-test-",    "filler"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

static int was_there(const struct place *place, const char *name)
{
    char text[300];

    snprintf(text, sizeof text, "/%s/", name);
    return place->names != NULL && strstr(place->names, text) != NULL;
}

void leaks_note_files(void)
{
    leaks_forget_files();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t bytes;
        FILE *text = open_memstream(&places[i].names, &bytes);
        DIR *dir = opendir(path_of(&places[i]));
        struct dirent *entry;

        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            fprintf(text, "/%s/", entry->d_name);
        }
        if (dir != NULL) {
            closedir(dir);
        }
        fclose(text);
    }
}

void leaks_forget_files(void)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        free(places[i].names);
        places[i].names = NULL;
    }
}

/* The name of a file of this user's that has come to the place; "" if none. */
static void find_new(const struct place *place, char name[256])
{
    DIR *dir = opendir(path_of(place));
    struct dirent *entry;
    struct stat st;

    name[0] = '\0';
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, place->ours) != NULL &&
            !is_known(entry->d_name) && !was_there(place, entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(st.st_mode) && st.st_uid == geteuid()) {
            snprintf(name, 256, "%s", entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Other tests' files come and go; a file is left behind if it stays. */
static int found_new(const struct place *place)
{
    char name[256];

    find_new(place, name);
    for (int ms = 0; name[0] != '\0' && ms < PATIENCE; ms += 10) {
        poll(NULL, 0, 10);
        find_new(place, name);
    }
    if (name[0] == '\0') {
        return 0;
    }
    fprintf(stderr, "left behind: %s/%s\n", path_of(place), name);
    return 1;
}

static int found_in_folder(void)
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

int leaks_found_files(void)
{
    int found = found_in_folder();

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        found |= found_new(&places[i]);
    }
    return found;
}
