/* SPDX-License-Identifier: MIT
 *
 * What a test may not leave behind: descriptors, mappings of shared memory,
 * threads, files.
 */
#ifndef IRIS_TESTS_LEAKS_H
#define IRIS_TESTS_LEAKS_H

/* What this process holds at one moment. */
struct leaks {
    int fds;
    int mappings; /* of files in /dev/shm */
    int threads;
};

void leaks_note(struct leaks *leaks_p);

/* 1, and a line on stderr, if this process holds more than it did. A thread that
 * ends may take a moment to go, and to close its descriptors. */
int leaks_found(const struct leaks *before);

/* Remembers what /dev/shm and the temporary folder hold; harness_setup() and
 * harness_teardown() call these. */
void leaks_note_files(void);
void leaks_forget_files(void);

/* 1, and a line on stderr, if the harness's folder holds anything but
 * heap-bases files, or if a file of ours has come to /dev/shm or the temporary
 * folder and stays. */
int leaks_found_files(void);

#endif /* IRIS_TESTS_LEAKS_H */
