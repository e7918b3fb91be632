/* SPDX-License-Identifier: MIT
 *
 * Places in code that access memory: their numbers, and their source lines.
 */
#ifndef IRIS_SRC_CHECK_RACE_SITE_H
#define IRIS_SRC_CHECK_RACE_SITE_H

#include "base/hooks.h"
#include "check/race_caller.h"
#include "check/race_memory.h"

/* A rank's own table of the sites that it has met. Under the lock. */
#define IRIS_RACE_KNOWN_SITES (2 * IRIS_RACE_SITES)
struct iris_race_key {
    const void *address;
    const char *kernel;
    uint64_t how;
};

struct iris_race_key iris_i_race_key(const struct iris_cpu_event *event);
bool iris_i_race_is_same_key(const struct iris_race_key *a,
                             const struct iris_race_key *b);

struct iris_race_sites {
    struct {
        struct iris_race_key key;
        uint32_t number; /* 0: free */
    } known[IRIS_RACE_KNOWN_SITES];
};

/* The site's number; 0: there are too many. */
uint32_t iris_i_race_site(struct iris_race_memory *memory,
                          struct iris_race_sites *sites,
                          const struct iris_cpu_event *event);
uint32_t iris_i_race_host_site(struct iris_race_memory *memory,
                               struct iris_race_sites *sites,
                               enum iris_host_op op,
                               const struct iris_race_caller *caller);

/* Sets element i of the site's files: the file that contains the code, and the
 * offset in it. */
void iris_i_race_find_file(const void *address, unsigned i,
                           struct iris_race_site *site);

/* "file.c:12", or "program+0x12ab" without addr2line or debug information;
 * empty: unknown. May take about 10 ms. The lock is not held. */
void iris_i_race_line(const struct iris_race_site *site, char *text,
                      size_t bytes);

/* The site's operation: "store", "atomic add, release, system scope". */
void iris_i_race_deed(const struct iris_race_site *site, char *text,
                      size_t bytes);

#endif /* IRIS_SRC_CHECK_RACE_SITE_H */
